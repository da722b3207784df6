"""Names and arguments on their way out: they still work, and say what to use instead.

What is public and for how long it stays is written in CONTRIBUTING.md. Warnings are of the kind
``FutureWarning``, which Python shows to everybody, and point at the line that uses the old name: so
Python prints each once per line of the user's code.

A name that a package exports no longer has its own place in ``__getattr__``::

    get, __dir__, __all__ = attach(__name__)

    def __getattr__(name: str) -> Any:
        if name == "Part":
            deprecated("coopsheaf.scale.Part", instead="coopsheaf.scale.Subgraph", removed_in="0.4")
            return get("Subgraph")
        return get(name)
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def deprecated(name: str, *, instead: str, removed_in: str) -> None:
    """Warn whoever called the function that calls this.

    Args:
        name: what is going, as the user writes it.
        instead: what to write in its place.
        removed_in: the version without it.
    """
    # One step up is the old function itself, two are the line that uses it.
    warnings.warn(_message(f"`{name}`", instead, removed_in), FutureWarning, stacklevel=3)


def renamed_argument(old: str, new: str, *, removed_in: str) -> Callable[[Function], Function]:
    """Let a function take the argument ``new`` under the name ``old`` as well, with a warning.

    Args:
        old: the name that is going; it is given by keyword.
        new: an argument of the function.
        removed_in: the version that no longer knows ``old``.
    """

    def decorate(function: Function) -> Function:
        name = function.__qualname__.removesuffix(".__init__")

        @functools.wraps(function)
        def call(*arguments: Any, **options: Any) -> Any:
            if old in options:
                if new in options:
                    raise ValueError(
                        f"`{new}` and `{old}` of {name} are one argument under two names; "
                        f"give `{new}` alone"
                    )
                message = _message(f"the argument `{old}` of {name}", new, removed_in)
                warnings.warn(message, FutureWarning, stacklevel=2)
                options[new] = options.pop(old)
            return function(*arguments, **options)

        return call  # type: ignore[return-value]

    return decorate


def _message(what: str, instead: str, removed_in: str) -> str:
    return f"{what} is deprecated and will be gone in coopsheaf {removed_in}; use `{instead}`"
