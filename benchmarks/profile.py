"""``python benchmarks/profile.py``: see ``profile_step.py``, which does the work.

Programs in this folder find this file where PyTorch looks for the standard library's module of the
same name; then it steps aside.
"""

import importlib.util
import os
import sys
from pathlib import Path

if __name__ == "__main__":
    from profile_step import main

    main()
else:
    standard = importlib.util.spec_from_file_location(
        __name__, Path(os.__file__).with_name("profile.py")
    )
    sys.modules[__name__] = importlib.util.module_from_spec(standard)
    standard.loader.exec_module(sys.modules[__name__])
