"""Pickles of others: plain data comes out, and nothing in them is ever run."""

from __future__ import annotations

import copyreg
import datetime
import os
import pickle
import struct
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from published import mangled, write_object_array

from coopsheaf.data.errors import DataError
from coopsheaf.data.unpickle import load_object_array, load_pickle

PLAIN = {
    "train": [1, 2, 3],
    "nested": {"tuple": (1.5, None, True), "set": {1, 2}, "frozen": frozenset({"a"})},
    "text": "é",
    "bytes": b"\x00\xff",
    "big": 1 << 100,
}


class Reduce:
    """Pickles as a call of ``function`` with ``arguments``."""

    def __init__(self, function: Callable[..., Any], *arguments: Any, state: Any = None) -> None:
        self.function, self.arguments, self.state = function, arguments, state

    def __reduce__(self) -> Any:
        if self.state is None:
            return self.function, self.arguments
        return self.function, self.arguments, self.state


def save(path: Path, value: Any, protocol: int = 4) -> Path:
    path.write_bytes(pickle.dumps(value, protocol=protocol))
    return path


@pytest.mark.parametrize("protocol", [3, 4])
def test_plain_data_comes_out_as_it_went_in(tmp_path: Path, protocol: int) -> None:
    value = {key: item for key, item in PLAIN.items() if protocol > 3 or key != "nested"}
    assert load_pickle(save(tmp_path / "plain.pickle", value, protocol)) == value


@pytest.mark.parametrize(
    "array",
    [
        np.arange(12).reshape(3, 4),
        np.asfortranarray(np.arange(12.0).reshape(3, 4)),
        np.array([True, False]),
        np.arange(3, dtype=">i4"),
        np.arange(3, dtype=np.float16),
        np.empty((0, 5), dtype=np.uint8),
        np.array(7),
    ],
    ids=lambda array: f"{array.dtype}{array.shape}",
)
@pytest.mark.parametrize("protocol", [3, 4])
def test_arrays_of_numbers_come_out_as_they_went_in(
    tmp_path: Path, array: np.ndarray, protocol: int
) -> None:
    found = load_pickle(save(tmp_path / "array.pickle", {"a": [array, array]}, protocol))["a"]
    assert found[0] is found[1]
    assert found[0].dtype == array.dtype
    assert np.array_equal(found[0], array)


def test_arrays_of_objects_come_out_as_they_went_in(tmp_path: Path) -> None:
    entries: list[object] = [{"train": [1, 2]}, {"train": [3]}]
    array = load_object_array(write_object_array(tmp_path / "splits.npy", entries))
    assert array.shape == (2,)
    assert list(array) == entries


def test_a_file_of_numbers_needs_no_pickle(tmp_path: Path) -> None:
    np.save(tmp_path / "numbers.npy", np.arange(4))
    assert np.array_equal(load_object_array(tmp_path / "numbers.npy"), np.arange(4))


def attacks(target: Path) -> dict[str, tuple[Any, str]]:
    """Pickles that would create ``target``, and what the error must name."""
    code = f"open({str(target)!r}, 'w').close()"
    dtype = np.dtype("i8")
    system = f"{os.system.__module__}.system"
    return {
        "os.system": (Reduce(os.system, f"touch {target}"), system),
        "eval": (Reduce(eval, code), "builtins.eval"),
        "exec in a list": ([1, {"a": Reduce(exec, code)}], "builtins.exec"),
        "exec as a key": ({Reduce(exec, code): 1}, "builtins.exec"),
        "open": (Reduce(open, str(target), "w"), "open"),
        "nested": (Reduce(eval, Reduce(str, code)), "builtins."),
        "getattr": (Reduce(getattr, "", "join"), "builtins.getattr"),
        "numpy.load": (Reduce(np.load, str(target)), "numpy.load"),
        "numpy.memmap": (Reduce(np.memmap, str(target), "i8", "w+", 0, (1,)), "numpy.memmap"),
        "object in an array": (np.array([Reduce(exec, code)], dtype=object), "builtins.exec"),
        "subclass of an array": (
            Reduce(np.zeros(1).__reduce__()[0], np.memmap, (0,), b"b"),
            "numpy.memmap",
        ),
        "state of a dtype": (Reduce(np.dtype, "i8", False, True, state=Reduce(exec, code)), "exec"),
        "structured dtype": (np.zeros(2, dtype=[("a", "i8")]), "'V8'"),
        "dtype of anything": (Reduce(np.dtype, Reduce(exec, code)), "builtins.exec"),
        "flags of a dtype": (
            [
                Reduce(
                    np.dtype,
                    "i8",
                    False,
                    True,
                    state=(3, "<", None, ("f0",), {"f0": (dtype, 0)}, 8, 1, 63),
                )
            ],
            "unusual type",
        ),
        "a name as data": (np.ndarray, "numpy name"),
        "dates": (datetime.date(2020, 1, 1), "datetime.date"),
        "ordered": (OrderedDict(a=1), "collections.OrderedDict"),
    }


@pytest.mark.parametrize("name", attacks(Path("x")))
@pytest.mark.parametrize("protocol", [2, 4])
def test_a_malicious_pickle_is_named_and_not_run(tmp_path: Path, name: str, protocol: int) -> None:
    target = tmp_path / "executed"
    value, named = attacks(target)[name]
    path = save(tmp_path / "data.pickle", value, protocol)
    with pytest.raises(DataError) as error:
        load_pickle(path)
    assert not target.exists()
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)
    # Old protocols write bytes and dtypes through other forbidden names, which come first.
    assert named in str(error.value) or protocol == 2

    array = tmp_path / "data.npy"
    write_object_array(array, [1])
    header = array.read_bytes().index(b"\n") + 1
    array.write_bytes(array.read_bytes()[:header] + path.read_bytes())
    with pytest.raises(DataError, match=r"data\.npy"):
        load_object_array(array)
    assert not target.exists()


RAW = {
    "instance": b"(S'touch x'\nios\nsystem\n.",
    "object": b"(cos\nsystem\nS'touch x'\no.",
    "new object": b"cnumpy\nndarray\n)\x81.",
    "persistent": b"Pname\n.",
    "extension": b"\x82\x01.",
    "text global": b"cos\nsystem\n(S'touch x'\ntR.",
    "stack global": b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x01x\x85R.",
    "state of a name": b"cnumpy\ndtype\n(N}S'__call__'\nK\x01stb.",
    "array without state": b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\nK\x00\x85C\x01btR.",
    "huge memo": b"Nr" + struct.pack("<I", 2**32 - 1) + b".",
    "huge bytes": b"\x80\x04\x8e" + struct.pack("<Q", 2**60) + b"abc.",
    "holds itself": b"]q\x00(h\x00h\x00e.",
    "doubled": b"]" + b"2\x86" * 40 + b".",
    "deep": b"]" * 100_000 + b"a" * 99_999 + b".",
    "deep key": b"}" + b")" + b"\x85" * 200_000 + b"K\x01s.",
    "bad flags": b"cnumpy\ndtype\n(X\x02\x00\x00\x00i8I0\nI1\ntR(I3\nX\x01\x00\x00\x00<NNNI-1\nI-1\nI63\ntb.",
    "empty": b"",
    "nothing on the stack": b".",
    "text": b"this is not a pickle",
}


@pytest.mark.parametrize("name", RAW)
def test_hand_made_pickles_do_no_harm(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(copyreg._inverted_registry, 1, ("os", "system"))  # type: ignore[attr-defined]
    path = tmp_path / "data.pickle"
    path.write_bytes(RAW[name])
    if name == "doubled":  # two to the fortieth, if it were copied place by place
        assert isinstance(load_pickle(path), tuple)
    else:
        with pytest.raises(DataError, match=r"data\.pickle: .*pickle"):
            load_pickle(path)
    assert [found.name for found in tmp_path.iterdir()] == ["data.pickle"]


def test_a_description_of_an_array_must_fit_its_content(tmp_path: Path) -> None:
    valid = pickle.dumps(np.arange(4), protocol=4)
    path = tmp_path / "data.pickle"
    path.write_bytes(valid.replace(b"K\x04\x85", b"K\x05\x85"))
    with pytest.raises(DataError, match="reshape"):
        load_pickle(path)


def test_an_object_array_must_have_the_shape_of_its_header(tmp_path: Path) -> None:
    path = write_object_array(tmp_path / "splits.npy", [1, 2])
    path.write_bytes(path.read_bytes().replace(b"(2,)", b"(3,)"))
    with pytest.raises(DataError, match=r"shape \(3,\).*got ndarray of shape \(2,\)"):
        load_object_array(path)


@pytest.mark.parametrize("load", [load_pickle, load_object_array])
def test_a_missing_file_is_named(tmp_path: Path, load: Callable[[Path], Any]) -> None:
    with pytest.raises(DataError, match=r"gone\.npy: must be readable"):
        load(tmp_path / "gone.npy")


VALID = pickle.dumps({**PLAIN, "array": np.arange(6).reshape(2, 3)}, protocol=4)


@settings(
    deadline=None, max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=mangled(VALID) | st.binary(max_size=60))
def test_mangled_pickles_give_data_or_one_error(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "data.pickle"
    path.write_bytes(data)
    try:
        load_pickle(path)
    except DataError as error:
        assert "data.pickle" in str(error)
        assert "\n" not in str(error)
