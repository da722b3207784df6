"""Typed settings: read, overridden, hashed; what does not fit is named."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coopsheaf.config import (
    ConfigError,
    config_hash,
    field_types,
    from_mapping,
    override,
    to_mapping,
)


@dataclass(frozen=True)
class Inner:
    rate: float = 0.1
    clip: float | None = None


@dataclass(frozen=True)
class Outer:
    width: int
    name: str = "x"
    fast: bool = False
    limit: int | None = None
    inner: Inner = field(default_factory=Inner)


FULL: dict[str, Any] = {
    "width": 3,
    "name": "y",
    "fast": True,
    "limit": 7,
    "inner": {"rate": 0.5, "clip": 1.0},
}


def test_a_mapping_becomes_a_configuration_and_back() -> None:
    config = from_mapping(Outer, FULL, "file")
    assert config == Outer(3, "y", True, 7, Inner(0.5, 1.0))
    assert to_mapping(config) == FULL


def test_what_is_missing_has_its_default_and_none_is_left_out() -> None:
    config = from_mapping(Outer, {"width": 3}, "file")
    assert config == Outer(3)
    assert to_mapping(config) == {"width": 3, "name": "x", "fast": False, "inner": {"rate": 0.1}}


def test_a_whole_number_is_a_number() -> None:
    rate = from_mapping(Inner, {"rate": 2}, "file").rate
    assert (rate, type(rate)) == (2.0, float)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"widht": 3},
            r"file: unknown setting 'widht' \(did you mean 'width'\?\); there are width, name, fast, limit, inner",
        ),
        ({"zzz": 3}, r"file: unknown setting 'zzz'; there are width"),
        ({}, r"file: missing setting\(s\) width"),
        ({"width": 3.5}, r"file: width must be a whole number; got 3\.5"),
        ({"width": "3"}, r"file: width must be a whole number; got '3'"),
        ({"width": True}, r"file: width must be a whole number; got True"),
        ({"width": None}, r"file: width must be a whole number; got None"),
        ({"width": [3]}, r"file: width must be a whole number; got \[3\]"),
        ({"width": 3, "fast": 1}, r"file: fast must be true or false; got 1"),
        ({"width": 3, "name": 1}, r"file: name must be text; got 1"),
        ({"width": 3, "limit": 1.5}, r"file: limit must be a whole number or none; got 1\.5"),
        ({"width": 3, "inner": 5}, r"file: inner must be a table of settings; got 5"),
        (
            {"width": 3, "inner": {"rat": 5}},
            r"file: inner: unknown setting 'rat' \(did you mean 'rate'\?\)",
        ),
        (
            {"width": 3, "inner": {"rate": "fast"}},
            r"file: inner: rate must be a number; got 'fast'",
        ),
    ],
)
def test_what_does_not_fit_is_named(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        from_mapping(Outer, values, "file")


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("width", "12", {"width": 12}),
        ("name", "12", {"name": "12"}),
        ("fast", "true", {"fast": True}),
        ("fast", "No", {"fast": False}),
        ("limit", "none", {"limit": None}),
        ("limit", "4", {"limit": 4}),
        ("inner.rate", "1e-3", {"inner": Inner(0.001)}),
        ("inner.rate", "2", {"inner": Inner(2.0)}),
        ("inner.clip", "0.5", {"inner": Inner(0.1, 0.5)}),
    ],
)
def test_overrides_have_the_fields_type(path: str, text: str, expected: dict[str, Any]) -> None:
    config = Outer(3, limit=9)
    assert override(config, path, text) == replace(config, **expected)
    assert config == Outer(3, limit=9)


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        (
            "widht",
            "1",
            r"--set widht: unknown setting 'widht' \(did you mean 'width'\?\); there are width, name",
        ),
        (
            "inner.rat",
            "1",
            r"--set inner\.rat: unknown setting 'rat' \(did you mean 'rate'\?\); there are rate, clip",
        ),
        ("inner", "1", r"'inner' is a section; its settings are inner\.rate, inner\.clip"),
        ("width.more", "1", r"'width' has no settings of its own"),
        ("width", "1.5", r"--set width must be a whole number; got '1\.5'"),
        ("fast", "maybe", r"--set fast must be true or false; got 'maybe'"),
        ("inner.rate", "quick", r"--set inner\.rate must be a number; got 'quick'"),
        ("inner.rate", "none", r"--set inner\.rate must be a number; got 'none'"),
    ],
)
def test_overrides_that_do_not_fit_are_named(path: str, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        override(Outer(3), path, text)


def test_equal_settings_have_equal_hashes() -> None:
    one = config_hash("csnn", Outer(3), {"b": 1, "a": 2})
    assert one == config_hash("csnn", from_mapping(Outer, {"width": 3}, ""), {"a": 2, "b": 1})
    assert len(one) == 16
    assert set(one) <= set("0123456789abcdef")


@pytest.mark.parametrize(
    "other",
    [Outer(4), Outer(3, "y"), Outer(3, fast=True), Outer(3, limit=0), Outer(3, inner=Inner(0.2))],
)
def test_different_settings_have_different_hashes(other: Outer) -> None:
    assert config_hash(Outer(3)) != config_hash(other)


def test_hashes_are_the_same_tomorrow() -> None:
    """A changed hash would make every recorded run be run again."""
    text = '["csnn",{"fast":false,"inner":{"rate":0.1},"name":"x","width":3}]'
    assert config_hash("csnn", Outer(3)) == hashlib.sha256(text.encode()).hexdigest()[:16]


@given(
    st.builds(
        Outer,
        st.integers(-(2**63) + 1, 2**63 - 1),
        st.text(),
        st.booleans(),
        st.none() | st.integers(-(2**63) + 1, 2**63 - 1),
        st.builds(Inner, st.floats(allow_nan=False), st.none() | st.floats(allow_nan=False)),
    )
)
def test_any_configuration_survives_a_round_trip(config: Outer) -> None:
    again = from_mapping(Outer, to_mapping(config), "file")
    assert again == config
    assert config_hash(again) == config_hash(config)


def test_field_types() -> None:
    assert field_types(Inner) == {"rate": float, "clip": float | None}


def test_a_message_is_short_however_long_the_value_is() -> None:
    message = str(ConfigError("--set train.lr must be a number; got " + "[" * 10_000))
    assert message.startswith("--set train.lr must be a number; got [[[")
    assert len(message) < 1600
