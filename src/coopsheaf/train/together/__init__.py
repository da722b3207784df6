"""Many runs of one graph in one pass: stacked parameters, one network, an end for each run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coopsheaf.lazy import attach

if TYPE_CHECKING:
    from coopsheaf.train.together.bench import bench_together as bench_together
    from coopsheaf.train.together.run import Ended as Ended
    from coopsheaf.train.together.run import Job as Job
    from coopsheaf.train.together.run import run_together as run_together

__getattr__, __dir__, __all__ = attach(__name__)
