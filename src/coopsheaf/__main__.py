"""``python -m coopsheaf`` is ``coopsheaf``."""

from coopsheaf.cli import main

if __name__ == "__main__":
    main()
