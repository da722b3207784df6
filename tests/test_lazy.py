"""The doors of the packages: what they promise is there, and nothing is loaded before it is used."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

DOORS = [
    "coopsheaf",
    *(f"coopsheaf.{name}" for name in (
        "sheaves", "nn", "models", "zoo", "data", "train", "scale", "report", "sweep", "analysis",
        "figures", "pages",
    )),
    *(f"coopsheaf.zoo.{name}" for name in (
        "nsd", "snn", "bunn", "cognn", "platonov", "plain", "match",
    )),
]  # fmt: skip


@pytest.mark.parametrize("door", DOORS)
def test_every_promised_name_is_there_and_listed(door: str) -> None:
    package = import_module(door)
    assert set(package.__all__) <= set(dir(package))
    for name in package.__all__:
        value = getattr(package, name)
        assert getattr(value, "__name__", name) == name
    with pytest.raises(AttributeError, match=f"module '{door}' has no attribute 'nonsense'"):
        package.nonsense  # noqa: B018


@pytest.mark.parametrize("door", DOORS)
def test_a_door_loads_nothing_heavy(door: str) -> None:
    code = f"import sys, {door}; print(sorted({{'torch', 'numpy'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_submodules_are_reached_and_completed() -> None:
    import coopsheaf

    for name in ("data", "train", "models", "pages", "zoo", "sheaves"):
        assert name in dir(coopsheaf)
        assert getattr(coopsheaf, name).__name__ == f"coopsheaf.{name}"
    assert "nsd" in dir(coopsheaf.zoo)
    assert coopsheaf.zoo.nsd.NSD.__name__ == "NSD"


def test_the_front_doors_have_what_users_call() -> None:
    import coopsheaf

    for door, names in {
        "data": ("load_dataset", "load_tables", "from_networkx", "from_data", "NodeDataset"),
        "train": ("train", "load_run", "run_data"),
        "models": ("make_model", "list_models", "register_model"),
        "pages": ("explore",),
    }.items():
        assert set(names) <= set(getattr(coopsheaf, door).__all__)
    assert "Operator" in coopsheaf.__all__
    assert "keep_freed_memory" not in coopsheaf.__all__
