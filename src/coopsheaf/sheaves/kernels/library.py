"""The compiled kernels of the optional package ``coopsheaf-kernels``: found, loaded, called.

The library has plain C functions of numbers and addresses, in several sets of instructions. It is
loaded when a kernel is first asked for; nothing is ever compiled here.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import warnings
from collections import deque
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from torch import Tensor

from coopsheaf.threads import parallel_loop

# The arguments of every function: whole numbers (n), other numbers (x), addresses of arrays (a).
_ARGUMENTS = {
    "node_maps": "nnn" + 8 * "a" + "naaa",
    "node_maps_back": "nnn" + 10 * "a" + "n" + 7 * "a",
    "conformal": "nnaaa",
    "conformal_back": "nnaaaa",
    "augmented": "naaaaaa",
    "augmented_back": "naaaaaaaa",
    "linear": "nnnaaannaa",
    "linear_back": "nnnaaannaaaa",
    "mlps": "nnnnnaanaa",
    "mlps_back": "nnnnnaaaanaa",
    "sage": "nnnnnn" + "aaanaa" + "nnnn" + 4 * "a",
    "sage_back": "nnnnnn" + 6 * "a" + "naa" + "nnnn" + 4 * "a",
    "mix": "nnnaaana",
    "mix_back": "nnnaaaanaaa",
    "drop": "nanna",
    "norm": "nnaaaxa",
    "norm_back": "nnaaaxaa",
    "update": "nnnaaannna",
    "update_back": "nnnaaaannnaaa",
}
# From what every machine has to what few have: a machine with one has those before it.
_SETS = ("portable", "avx2", "avx512", "avx512_bf16", "amx")
_KINDS = {"n": ctypes.c_int64, "x": ctypes.c_float, "a": ctypes.c_void_p}

INTERFACE = 3  # raised, here and in `library.cpp`, with every change of arguments
LARGEST_STALK = 8  # the largest stalk dimension that was compiled


class Library:
    """The functions of the library for the instructions of this machine.

    Args:
        path: the shared library.
        version: of the package it comes from.
        instructions: the set to use; the best one if not given.
    """

    def __init__(self, path: Path, version: str, instructions: str | None = None) -> None:
        library = ctypes.CDLL(str(path))
        interface = library.coopsheaf_interface()
        if interface != INTERFACE:
            raise OSError(
                f"its functions are of interface {interface}, this version of coopsheaf calls "
                f"{INTERFACE}; install both of the same age"
            )
        best = library.coopsheaf_instructions
        best.restype = ctypes.c_char_p
        found = best().decode()  # also where a set is given: it asks the system for tiles
        if instructions is not None and _rank(instructions) > _rank(found):
            raise OSError(f"this machine has {found}, and not {instructions}, which was asked for")
        self.version = version
        self.instructions = instructions or found
        self.functions = {}
        for name, arguments in _ARGUMENTS.items():
            function = getattr(library, f"{name}_{self.instructions}")
            function.argtypes = [_KINDS[kind] for kind in arguments]
            function.restype = None
            self.functions[name] = function
        loop = parallel_loop()
        self.uses_threads = loop is not None  # PyTorch's; else everything is done in one
        library.coopsheaf_use_loop.argtypes = [ctypes.c_void_p]
        library.coopsheaf_use_loop(loop)

    def __call__(self, name: str, *arguments: Any) -> None:
        """Call a function; tensors, which must be contiguous, go by their addresses."""
        self.functions[name](*[a.data_ptr() if isinstance(a, Tensor) else a for a in arguments])

    def each(self, name: str, *columns: Iterable[Any]) -> None:
        """Call a function many times: ``columns`` are its arguments, numbers and addresses."""
        deque(map(self.functions[name], *columns), maxlen=0)

    def __repr__(self) -> str:
        return f"coopsheaf-kernels {self.version} ({self.instructions})"


@cache
def load_library() -> Library | None:
    """The library, or ``None`` where it is not installed or does not load."""
    if importlib.util.find_spec("coopsheaf_kernels") is None:
        return None
    package = importlib.import_module("coopsheaf_kernels")
    instructions = os.environ.get("COOPSHEAF_INSTRUCTIONS") or None
    try:
        return Library(package.LIBRARY, package.__version__, instructions)
    except (OSError, AttributeError) as error:  # of another platform, or of another version
        warnings.warn(
            f"coopsheaf-kernels is installed but does not load, and is not used: {error}",
            stacklevel=2,
        )
        return None


def _rank(instructions: str) -> int:
    if instructions not in _SETS:
        choices = ", ".join(_SETS)
        raise OSError(f"instructions must be one of {choices}; got {instructions!r}")
    return _SETS.index(instructions)


def addresses(tensors: list[Tensor]) -> Any:
    """An array of the addresses of some tensors."""
    return address_array([tensor.data_ptr() for tensor in tensors])


def address_array(places: Sequence[int | None]) -> Any:
    """An array of addresses."""
    return (ctypes.c_void_p * len(places))(*places)
