"""Constructors that pass arguments on, and say which."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from typing import Any, TypeVar

Init = TypeVar("Init", bound=Callable[..., None])


def arguments_of(base: type[Any], *, without: tuple[str, ...] = ()) -> Callable[[Init], Init]:
    """Lets a constructor that ends in ``**others`` show the arguments of the one it gives them to.

    Settings of a model are read off the signature of its network; so are its documentation and what
    it takes to build it again. A network that is another one with a few arguments more names those
    and passes on the rest: this writes the rest into its signature, types and defaults included.

    Args:
        base: the class whose constructor gets ``**others``.
        without: its arguments that are decided here and are nobody's to give.
    """

    def show(init: Init) -> Init:
        own = inspect.signature(init)
        open_end = inspect.Parameter.VAR_KEYWORD
        named = [item for item in own.parameters.values() if item.kind is not open_end]
        passed = [
            item.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for name, item in inspect.signature(base.__init__).parameters.items()
            if name not in own.parameters and name not in without and item.kind is not open_end
        ]
        hints = typing.get_type_hints(base.__init__)
        found: Any = init
        found.__signature__ = own.replace(parameters=[*named, *passed])
        found.__annotations__ |= {item.name: hints[item.name] for item in passed}
        return init

    return show
