"""Packages that only some parts need: where one is missing or broken, its extra is named."""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Which extra brings a package.
EXTRAS = {
    "huggingface_hub": "hub",
    "matplotlib": "viz",
    "mlflow": "mlflow",
    "onnx": "export",
    "onnxruntime": "export",
    "onnxscript": "export",
    "optuna": "sweep",
    "pymetis": "partition",
    "rdkit": "molecules",
    "sklearn": "compare",
    "sqlalchemy": "sweep",
    "tensorboard": "tensorboard",
    "threadpoolctl": "compare",
    "wandb": "wandb",
}


class MissingExtra(ImportError, ValueError):
    """A package of an extra cannot be imported; one line that says what to install."""


def load_extra(module: str, who: str, otherwise: str = "") -> Any:
    """Import a module of an extra.

    Args:
        module: its name.
        who: what needs it, with its verb, such as ``"figures need"``.
        otherwise: what to do without it.
    """
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ImportError as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name == package
        reason = " ".join(str(error).split())
        state = "is not installed" if missing else f"cannot be imported ({reason})"
        remedy = f"pip install 'coopsheaf[{EXTRAS[package]}]'{otherwise}"
        raise MissingExtra(f"{who} {package}, which {state}: {remedy}", name=package) from error
