"""Packages whose names are loaded when they are first used.

A package lists what it exports once, as imports under ``if TYPE_CHECKING:``, where editors and type
checkers look for it; :func:`attach` reads the same lines and makes them work at run time::

    if TYPE_CHECKING:
        from coopsheaf.models.csnn import CSNN as CSNN

    __getattr__, __dir__, __all__ = attach(__name__)

So a name is written down in one place, and ``dir()`` and completion know it.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules
from typing import Any


def attach(
    package: str, *, submodules: bool = False
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package.

    Args:
        package: its ``__name__``.
        submodules: also reach its submodules as attributes, without importing them first.
    """
    module = sys.modules[package]
    spec = module.__spec__
    assert spec is not None
    loader: Any = spec.loader
    homes = _read_homes(loader.get_source(package))
    inside = {m.name for m in iter_modules(module.__path__) if m.name[0] != "_"}
    assert not inside & set(homes), "a name cannot be a module and something in it"
    below = inside if submodules else set()

    def get(name: str) -> Any:
        if name in homes:
            value = getattr(import_module(homes[name]), name)
            setattr(module, name, value)
            return value
        if name in below:
            return import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def names() -> list[str]:
        own = {name for name in vars(module) if name.startswith("__")}
        return sorted(own | set(homes) | below)

    return get, names, sorted(homes)


def _read_homes(source: str) -> dict[str, str]:
    """Which module each name comes from, by the imports under ``if TYPE_CHECKING:``."""
    homes: dict[str, str] = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for line in node.body:
                assert isinstance(line, ast.ImportFrom), "one form of import, `from x import y`"
                assert line.module is not None, "imports are absolute"
                homes |= {alias.asname or alias.name: line.module for alias in line.names}
    return homes
