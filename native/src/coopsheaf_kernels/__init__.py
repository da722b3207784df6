"""Fused kernels for ``coopsheaf``, which finds and uses them by itself: nothing here to call."""

from pathlib import Path

__version__ = "0.2.0"

LIBRARY = Path(__file__).with_name("library.so")
