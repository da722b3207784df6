"""Settings as scikit-learn handles them: ``get_params``, ``set_params``, ``repr``, clones."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from coopsheaf.estimators.settings import is_registered, known_settings, unknown_setting

if TYPE_CHECKING:
    from typing_extensions import Self


class Parameters:
    """Arguments of the constructor, and any setting of the model by name.

    A setting that is given is an attribute of its name; one that is not is ``None``, and what the
    default recipe says. Names are checked at once, values by ``fit``.
    """

    model: str

    def _keep(self, settings: dict[str, Any]) -> None:
        """Take settings from a constructor."""
        for name, value in settings.items():
            self._check_name(name, TypeError)
            if value is not None:
                setattr(self, name, value)

    @classmethod
    def _arguments(cls, *, hidden: bool = False) -> dict[str, inspect.Parameter]:
        """What the constructor names; with ``**settings``, also what those above it name.

        Args:
            hidden: also what a constructor sets for its callers, as a shorthand does the model.
        """
        found: dict[str, inspect.Parameter] = {}
        for kind in cls.__mro__:
            if "__init__" not in vars(kind) or kind is object:
                continue
            parameters = inspect.signature(vars(kind)["__init__"]).parameters
            named = {n: p for n, p in parameters.items() if p.kind != p.VAR_KEYWORD and n != "self"}
            found |= {name: p for name, p in named.items() if name not in found}
            passes_on = len(named) < len(parameters) - 1 and not vars(kind).get("_closed", False)
            if not passes_on and not hidden:
                break
        return found

    def _settings(self) -> list[str]:
        """The names of the model's settings; none if there is no such model, which fit says."""
        return list(known_settings(self.model)) if is_registered(self.model) else []

    def _names(self) -> list[str]:
        return list(dict.fromkeys((*self._arguments(), *self._settings())))

    def _given(self) -> dict[str, Any]:
        """The settings that were given, arguments of the constructor aside."""
        others = self._arguments(hidden=True)
        return {
            name: value
            for name, value in vars(self).items()
            if name not in others and not name.startswith("_") and not name.endswith("_")
            if value is not None
        }

    def _check_name(self, name: str, error: type[Exception] = ValueError) -> None:
        if is_registered(self.model) and name not in self._names():
            raise error(unknown_setting(name, type(self).__name__, self._names()))

    def __getattr__(self, name: str) -> Any:
        model: Any = self.__dict__.get("model")
        if not name.startswith("_") and is_registered(model) and name in known_settings(model):
            return None  # that of the default recipe
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings by name; ``None`` where the default recipe decides."""
        given = self._given()
        return {name: getattr(self, name) for name in self._names()} | given

    def set_params(self, **values: Any) -> Self:
        """Change settings; takes effect with the next ``fit``."""
        # The model first: it decides which others there are.
        for name in sorted(values, key=lambda name: name != "model"):
            self._check_name(name)
            setattr(self, name, values[name])
        return self

    def __repr__(self) -> str:
        arguments = self._arguments()
        default = {name: argument.default for name, argument in arguments.items()}
        changed = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if value is not default.get(name) and not _same(value, default.get(name))
        ]
        return f"{type(self).__name__}({', '.join(changed)})"


def _same(value: Any, default: Any) -> bool:
    try:
        return type(value) is type(default) and bool(value == default)
    except ValueError:  # arrays compare entry by entry
        return False


def copy_unfitted(estimator: Any) -> Any:
    """The same settings without what was learned; scikit-learn's own way where it is needed."""
    if isinstance(estimator, Parameters):
        return type(estimator)(**estimator.get_params(deep=False))
    from sklearn.base import clone

    return clone(estimator)
