"""Read pickled files of others without running what is in them.

A pickle is a program. Here it may build lists, tuples, dictionaries, sets, text, bytes and numbers,
and describe numpy arrays of numbers or of such things; it can call nothing else. The arrays are
made by this module after the pickle has ended: numpy never sees an object that the pickle chose.
"""

from __future__ import annotations

import io
import math
import pickle
import pickletools
import re
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.lib import format as npy

from coopsheaf.data.errors import DataError
from coopsheaf.data.files import one_line, printable

# The names a pickle of numpy arrays refers to (numpy 2 has moved the first).
ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
}
# Everything else imports, calls or refers to something outside of the pickle.
OPCODES = {
    "PROTO", "FRAME", "STOP", "MARK", "POP", "POP_MARK", "DUP", "NONE", "NEWTRUE", "NEWFALSE",
    "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT",
    "STRING", "BINSTRING", "SHORT_BINSTRING",
    "UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8",
    "SHORT_BINBYTES", "BINBYTES", "BINBYTES8",
    "EMPTY_LIST", "LIST", "APPEND", "APPENDS", "EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3",
    "EMPTY_DICT", "DICT", "SETITEM", "SETITEMS", "EMPTY_SET", "ADDITEMS", "FROZENSET",
    "PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE", "GET", "BINGET", "LONG_BINGET",
    "GLOBAL", "STACK_GLOBAL", "REDUCE", "BUILD",
}  # fmt: skip
DTYPES = re.compile(r"(b1|[iu][1248]|f[248]|O8?)")
# Hashing a tuple recurses without end in sight: deep enough, it would crash the interpreter.
MAX_TUPLES = 10_000
TUPLES = {"TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "FROZENSET"}


def load_pickle(path: Path) -> Any:
    """The plain data in a pickle file; anything that is not plain data is a ``DataError``."""
    return _load(path, _read(path))


def load_object_array(path: Path) -> np.ndarray:
    """The array in a ``.npy`` file, of objects (plain data only) or of numbers."""
    stream = io.BytesIO(_read(path))
    try:
        version = npy.read_magic(stream)
        if version == (1, 0):
            shape, _, dtype = npy.read_array_header_1_0(stream)
        else:
            shape, _, dtype = npy.read_array_header_2_0(stream)
        if not dtype.hasobject:
            stream.seek(0)
            return npy.read_array(stream, allow_pickle=False)
    except Exception as error:
        raise DataError(f"{path}: must be a .npy file; {one_line(error)}") from error
    array = _load(path, stream.read())
    if not isinstance(array, np.ndarray) or array.dtype != dtype or array.shape != shape:
        raise DataError(
            f"{path}: must hold the array of shape {shape} that its header announces; "
            f"got {type(array).__name__} of shape {getattr(array, 'shape', None)}"
        )
    return array


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: must be readable; {one_line(error)}") from error


def _load(path: Path, data: bytes) -> Any:
    try:
        _check_opcodes(data)
        value = _Unpickler(io.BytesIO(data), encoding="latin1").load()
        return _plain(value, {})
    except _Forbidden as error:
        raise DataError(
            printable(
                f"{path}: a pickle must hold plain data only; this one wants {error}: not run"
            )
        ) from error
    except Exception as error:
        raise DataError(f"{path}: must be a pickle of plain data; {one_line(error)}") from error


class _Forbidden(Exception):
    """The pickle refers to something that is not plain data."""


def _check_opcodes(data: bytes) -> None:
    """Look through the program before it runs."""
    tuples = 0
    argument: Any
    for opcode, argument, _ in pickletools.genops(data):
        if opcode.name not in OPCODES:
            raise _Forbidden(f"the operation {opcode.name} {argument or ''}".rstrip())
        if opcode.name == "GLOBAL" and tuple(argument.split(" ", 1)) not in ALLOWED:
            raise _Forbidden(f"{argument.replace(' ', '.')!r}")
        # The unpickler makes a table as long as the largest number it meets here.
        if opcode.name in ("PUT", "LONG_BINPUT") and argument > len(data):
            raise ValueError(f"memo entry {argument} of a pickle of {len(data)} bytes")
        tuples += opcode.name in TUPLES
        if tuples > MAX_TUPLES:
            raise ValueError(f"more than {MAX_TUPLES} tuples")


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ALLOWED:
            raise _Forbidden(repr(f"{module}.{name}"))
        return _Name(name)


class _Name:
    """One of the allowed names. A call makes a description, never the thing itself."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *arguments: Any) -> _Array | _Dtype:
        if self.name == "dtype" and arguments and isinstance(arguments[0], str):
            return _Dtype(arguments[0])
        if self.name == "_reconstruct" and arguments and isinstance(arguments[0], _Name):
            return _Array()
        raise _Forbidden(f"a call of numpy.{self.name} with unusual arguments")

    def __setstate__(self, state: Any) -> NoReturn:
        raise _Forbidden(f"to change numpy.{self.name}")


class _Dtype:
    """Description of the type of an array's entries."""

    __slots__ = ("byte_order", "text")

    def __init__(self, text: str) -> None:
        if not DTYPES.fullmatch(text):
            raise _Forbidden(f"an array of type {text[:20]!r}")
        self.text, self.byte_order = text, "="

    def __setstate__(self, state: Any) -> None:
        # (version, byte order, subarray, names, fields, size, alignment, flags)
        if (
            not isinstance(state, tuple)
            or len(state) < 5
            or state[1] not in ("<", ">", "|", "=")
            or any(part is not None for part in state[2:5])
        ):
            raise _Forbidden("an array of an unusual type")
        self.byte_order = state[1]

    @property
    def dtype(self) -> np.dtype:
        return np.dtype("O" if self.text[0] == "O" else self.byte_order + self.text)


class _Array:
    """Description of an array: its state is kept until the pickle has ended."""

    __slots__ = ("state",)

    def __init__(self) -> None:
        self.state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def build(self, seen: dict[int, Any]) -> np.ndarray:
        # (version, shape, dtype, column-major, bytes or list of objects)
        _, shape, kind, fortran, content = self.state
        if (
            not isinstance(shape, tuple)
            or not all(type(size) is int and size >= 0 for size in shape)
            or not isinstance(kind, _Dtype)
        ):
            raise ValueError("an array without a valid shape or type")
        if kind.dtype.hasobject:
            if not isinstance(content, list) or len(content) != math.prod(shape):
                raise ValueError(f"an array of shape {shape} without its entries")
            flat = np.empty(len(content), dtype=object)
            for index, entry in enumerate(content):
                flat[index] = _plain(entry, seen)
        elif isinstance(content, bytes):
            flat = np.frombuffer(content, dtype=kind.dtype).copy()
        else:
            raise ValueError("an array of numbers without its bytes")
        return flat.reshape(shape, order="F" if fortran else "C")


def _plain(value: Any, seen: dict[int, Any]) -> Any:
    """The value with every description of an array replaced by the array.

    ``seen`` holds the results by identity: something that is in many places is treated once, and
    something inside itself is an error.
    """
    if isinstance(value, _Name | _Dtype):
        raise _Forbidden("a numpy name in place of data")
    if not isinstance(value, _CONTAINERS):
        return value
    if id(value) in seen:
        if seen[id(value)] is _UNFINISHED:
            raise ValueError("something holds itself")
        return seen[id(value)]
    seen[id(value)] = _UNFINISHED
    result: Any
    if isinstance(value, _Array):
        result = value.build(seen)
    elif isinstance(value, dict):
        result = {_plain(k, seen): _plain(v, seen) for k, v in value.items()}
    else:
        result = type(value)(_plain(entry, seen) for entry in value)
    seen[id(value)] = result
    return result


_CONTAINERS = (list, tuple, dict, set, frozenset, _Array)
_UNFINISHED = object()
