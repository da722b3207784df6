"""Typed configurations: frozen dataclasses read from mappings, overridden by text, hashed.

Fields are numbers, strings, booleans, optional ones of these, or nested configurations. Nothing
here imports PyTorch.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

from coopsheaf.checks import did_you_mean

C = TypeVar("C")


class ConfigError(ValueError):
    """A setting that does not exist or does not fit; one line, however long the value is."""

    def __init__(self, message: str) -> None:
        super().__init__(message if len(message) <= 1500 else f"{message[:1500]}...")


def from_mapping(kind: type[C], values: Mapping[str, Any], where: str) -> C:
    """Build a configuration; unknown keys and values of the wrong type are errors."""
    hints = field_types(kind)
    arguments = {}
    for key, value in values.items():
        if key not in hints:
            raise ConfigError(f"{where}: unknown setting {key!r}{_suggest(key, hints)}")
        arguments[key] = _convert(hints[key], value, f"{where}: {key}")
    missing = [
        field.name
        for field in dataclasses.fields(kind)  # type: ignore[arg-type]
        if field.name not in arguments
        and field.default is dataclasses.MISSING
        and field.default_factory is dataclasses.MISSING
    ]
    if missing:
        raise ConfigError(f"{where}: missing setting(s) {', '.join(missing)}")
    try:
        return kind(**arguments)
    except ValueError as error:  # a value of the right type that the settings do not allow
        raise ConfigError(f"{where}: {error}") from None


def change(config: C, values: Mapping[str, Any], where: str) -> C:
    """A configuration with other values, given as Python has them; numbers of NumPy are numbers."""
    hints = field_types(type(config))
    arguments = {}
    for key, value in values.items():
        if key not in hints:
            raise ConfigError(f"{where}: unknown setting {key!r}{_suggest(key, hints)}")
        plain = value.item() if hasattr(value, "dtype") and hasattr(value, "item") else value
        arguments[key] = _convert(hints[key], plain, f"{where}: `{key}`")
    try:
        return dataclasses.replace(config, **arguments)  # type: ignore[type-var]
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from None


def to_mapping(config: Any) -> dict[str, Any]:
    """Plain values, nested as the configuration is; ``None`` is left out (TOML has none)."""
    out = {}
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if dataclasses.is_dataclass(value):
            out[field.name] = to_mapping(value)
        elif value is not None:
            out[field.name] = value
    return out


def override(config: C, path: str, text: str) -> C:
    """Set ``section.field`` from what a user typed, converted to the field's type."""
    return _override(config, path, text, f"--set {path}")


def _override(config: C, path: str, text: str, where: str) -> C:
    name, _, rest = path.partition(".")
    hints = field_types(type(config))
    if name not in hints:
        raise ConfigError(f"{where}: unknown setting {name!r}{_suggest(name, hints)}")
    current = getattr(config, name)
    if dataclasses.is_dataclass(current):
        if not rest:
            choices = ", ".join(f"{name}.{key}" for key in field_types(type(current)))
            raise ConfigError(f"{where}: {name!r} is a section; its settings are {choices}")
        value: Any = _override(current, rest, text, where)
    elif rest:
        raise ConfigError(f"{where}: {name!r} has no settings of its own")
    else:
        value = _parse(hints[name], text, where)
    try:
        return dataclasses.replace(config, **{name: value})  # type: ignore[type-var]
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from None


def config_hash(*parts: Any) -> str:
    """A short name for everything that ``parts`` say: equal settings, equal hash."""
    plain = [to_mapping(part) if dataclasses.is_dataclass(part) else part for part in parts]
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def field_types(kind: type) -> dict[str, Any]:
    """The settings of a configuration with their types."""
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def _convert(hint: Any, value: Any, where: str) -> Any:
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        if not isinstance(value, Mapping):
            raise ConfigError(f"{where} must be a table of settings; got {value!r}")
        return from_mapping(hint, value, where)
    kinds = _kinds(hint)
    if value is None and type(None) in kinds:
        return None
    if isinstance(value, bool):
        if bool in kinds:
            return value
    elif isinstance(value, int) and float in kinds and int not in kinds:
        return float(value)
    elif isinstance(value, tuple(kind for kind in kinds if kind is not type(None))):
        return _check_size(value, where)
    raise ConfigError(f"{where} must be {_describe(kinds)}; got {value!r}")


def _parse(hint: Any, text: str, where: str) -> Any:
    kinds = _kinds(hint)
    if type(None) in kinds and text.lower() in ("none", "null", ""):
        return None
    if bool in kinds and text.lower() in ("true", "yes", "on", "1", "false", "no", "off", "0"):
        return text.lower() in ("true", "yes", "on", "1")
    for kind in (int, float):
        if kind in kinds:
            try:
                value = kind(text)
            except ValueError:
                continue
            return _check_size(value, where)
    if str in kinds:
        return text
    raise ConfigError(f"{where} must be {_describe(kinds)}; got {text!r}")


def _check_size(value: Any, where: str) -> Any:
    """No tensor takes a larger number, and no setting means one."""
    if isinstance(value, int) and abs(value) >= 2**63:
        bits = value.bit_length()
        shown = f"{value:.3g}" if bits < 1000 else f"a number of {bits} bits"  # no float is larger
        raise ConfigError(f"{where} must be below 2**63; got {shown}")
    return value


def _kinds(hint: Any) -> tuple[type, ...]:
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return typing.get_args(hint)
    return (hint,)


def _describe(kinds: tuple[type, ...]) -> str:
    names = {
        int: "a whole number",
        float: "a number",
        bool: "true or false",
        str: "text",
        type(None): "none",
    }
    return " or ".join(names[kind] for kind in kinds)


def _suggest(name: str, choices: Mapping[str, Any]) -> str:
    return f"{did_you_mean(name, choices)}; there are {', '.join(choices)}"
