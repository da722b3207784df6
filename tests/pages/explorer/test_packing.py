"""Arrays and texts survive the way into a page, and never become markup."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hn
from pages.explorer.pages import array

from coopsheaf.pages.explorer.packing import (
    pack,
    pack_indices,
    pack_strengths,
    shorten,
    to_script,
)


@pytest.mark.parametrize("kind", ["u1", "i2", "u2", "u4", "f4"])
@given(data=st.data())
def test_arrays_come_back(kind: str, data: st.DataObject) -> None:
    values = data.draw(hn.arrays(np.dtype(f"<{kind}"), st.integers(0, 20)))
    assert array(pack(values, kind)).tobytes() == values.tobytes()
    wide = values.astype(np.float64 if kind == "f4" else np.int64)
    assert array(pack(torch.from_numpy(wide), kind)).tobytes() == values.tobytes()


def test_indices_take_as_few_bytes_as_they_need() -> None:
    assert pack_indices(np.array([65535]), 65536)["type"] == "Uint16Array"
    assert pack_indices(np.array([65536]), 65537)["type"] == "Uint32Array"
    assert array(pack_indices(np.array([70000]), 70001)).tolist() == [70000]


@given(hn.arrays(np.float64, st.integers(1, 30), elements=st.floats(0, 1e12)))
def test_strengths_keep_three_digits_and_their_order(values: np.ndarray) -> None:
    packed = pack_strengths(torch.from_numpy(values))
    back = array(packed)
    large = values >= 1e-4 * values.max()
    assert np.allclose(back[large], values[large], rtol=1e-3, atol=0)
    assert (np.abs(back - values) <= 1e-7 * values.max() + 1e-3 * values).all()
    order = np.argsort(values, kind="stable")
    import base64

    codes = np.frombuffer(base64.b64decode(packed["data"]), "<u2")
    assert (np.diff(codes[order].astype(int)) >= 0).all()  # codes sort like values


def test_strengths_of_nothing() -> None:
    assert array(pack_strengths(torch.zeros(3, dtype=torch.float64))).tolist() == [0, 0, 0]
    assert array(pack_strengths(torch.zeros(0))).tolist() == []


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats() | st.text(),
    lambda inside: st.lists(inside, max_size=4) | st.dictionaries(st.text(), inside, max_size=4),
    max_leaves=10,
)


@given(anything)
def test_json_is_neither_markup_nor_lines(value: object) -> None:
    text = to_script({"value": value})
    assert not set("<>&\u2028\u2029\n\r") & set(text)
    assert text.isascii()
    json.loads(text)


@given(st.text())
def test_texts_come_back(text: str) -> None:
    assert json.loads(to_script(text)) == text


def test_what_is_not_a_number_is_null() -> None:
    assert to_script([float("nan"), float("inf"), 1.5]) == "[null,null,1.5]"


def test_long_names_are_cut_and_say_so() -> None:
    assert shorten("a" * 500) == "a" * 500
    assert shorten("a" * 10_000) == "a" * 500 + "… (10,000 characters)"
    assert shorten("abcdef", 3) == "abc… (6 characters)"
