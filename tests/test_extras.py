"""A package that is missing or broken is named together with its extra."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from coopsheaf.extras import EXTRAS, MissingExtra, load_extra
from coopsheaf.train.recipes import tomllib


@pytest.mark.parametrize("package", EXTRAS)
def test_missing(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra) as error:
        load_extra(package, "this needs", ", or not")
    what = f"pip install 'coopsheaf[{EXTRAS[package]}]', or not"
    assert str(error.value) == f"this needs {package}, which is not installed: {what}"
    assert isinstance(error.value, ImportError)
    assert isinstance(error.value, ValueError)


def test_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> None:
        raise ImportError("libX.so.1: cannot open\nshared object", name="matplotlib._c")

    monkeypatch.setattr("coopsheaf.extras.import_module", fail)
    with pytest.raises(MissingExtra, match=r"matplotlib, which cannot be imported \(libX.so.1: cannot open shared object\): pip install 'coopsheaf\[viz\]'"):  # fmt: skip
        load_extra("matplotlib", "figures need")


def test_the_extras_are_those_of_the_package() -> None:
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    declared = tomllib.loads(text)["project"]["optional-dependencies"]
    for package, extra in EXTRAS.items():
        distribution = {"sklearn": "scikit-learn"}.get(package, package)
        assert any(line.startswith(distribution) for line in declared[extra]), package
