"""The laboratory: the paper's experiments, and this repository's own measuring.

It is no part of the wheel. ``python -m lab --help``, from the top of the repository, lists what it
does.
"""
