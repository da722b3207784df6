"""What the documentation's build does to pages, away from a build."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("sphinx", reason="the documentation needs Python 3.11")
EXTENSIONS = str(Path(__file__).parents[1] / "docs" / "_extensions")


@pytest.fixture
def extensions(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Imported as the build imports them, and forgotten afterwards."""
    names = ("snippets", "executed", "mathml", "references")
    monkeypatch.syspath_prepend(EXTENSIONS)
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)
    found = {name: __import__(name) for name in names}
    yield SimpleNamespace(**found)
    for name in names:
        sys.modules.pop(name, None)


class App:
    """As much of Sphinx as is asked for."""

    def __init__(self, folder: Path) -> None:
        self.srcdir = self.outdir = folder
        self.builder = SimpleNamespace(format="html")
        self.env = SimpleNamespace(doc2path=lambda name: str(folder / f"{name}.md"))


@pytest.fixture
def warnings(extensions: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    said: list[str] = []
    log = SimpleNamespace(warning=lambda text, *parts, **where: said.append(text % parts))
    for module in (extensions.executed, extensions.mathml, extensions.references):
        monkeypatch.setattr(module, "log", log)
    return said


def tutorial(folder: Path, text: str) -> list[str]:
    (folder / "tutorials").mkdir(exist_ok=True)
    (folder / "tutorials" / "page.md").write_text(text)
    return [text]


def test_tutorials_show_what_they_print(
    extensions: SimpleNamespace, warnings: list[str], tmp_path: Path
) -> None:
    text = "A\n\n```python\nprint(6 * 7)\n```\n\nB\n\n```python\nx = 1\n```\nC\n"
    source = tutorial(tmp_path, text)
    extensions.executed.run_tutorial(App(tmp_path), "tutorials/page", source)
    shown = "```\n\n```{code-block} text\n:class: printed\n\n42\n```\n\nB\n"
    assert source[0] == text.replace("```\n\nB\n", shown)
    assert not warnings
    other = ["```python\nprint(1)\n```\n"]
    extensions.executed.run_tutorial(App(tmp_path), "guide", other)
    assert other == ["```python\nprint(1)\n```\n"]


def test_pages_and_pictures_of_a_tutorial_are_published(
    extensions: SimpleNamespace, warnings: list[str], tmp_path: Path
) -> None:
    code = "for name in ('page.html', 'a.svg', 'secret.txt'):\n    open(name, 'w').close()"
    source = tutorial(tmp_path, f"```python\n{code}\n```\n")
    extensions.executed.run_tutorial(App(tmp_path), "tutorials/page", source)
    there = tmp_path / "_written" / "written" / "page"
    assert sorted(file.name for file in there.iterdir()) == ["a.svg", "page.html"]


def test_a_tutorial_that_fails_is_a_warning(
    extensions: SimpleNamespace, warnings: list[str], tmp_path: Path
) -> None:
    source = tutorial(tmp_path, "```python\n1 / 0\n```\n")
    extensions.executed.run_tutorial(App(tmp_path), "tutorials/page", source)
    assert "does not run" in warnings[0]
    assert 'page.md", line 2' in warnings[0]
    assert "ZeroDivisionError" in warnings[0]


def test_links_out_of_the_documentation_lead_to_the_repository(
    extensions: SimpleNamespace, warnings: list[str], tmp_path: Path
) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (tmp_path / "lab").mkdir()
    source = ["[a](../lab) [b](guide.md) [c](../nowhere.py#x)"]
    extensions.references.link_to_repository(App(docs), "page", source)
    base = extensions.references.REPOSITORY
    assert source == [f"[a]({base}lab) [b](guide.md) [c]({base}nowhere.py#x)"]
    assert warnings == ["link to ../nowhere.py, which is not there"]


def test_names_are_known_by_where_they_are_defined(extensions: SimpleNamespace) -> None:
    home = extensions.references._home
    for name in ("coopsheaf.Graph", "coopsheaf.sheaves.Graph", "coopsheaf.sheaves.graph.Graph"):
        assert home(name) == "coopsheaf.sheaves.graph.Graph"
    assert home("coopsheaf.Graph.reverse") == "coopsheaf.sheaves.graph.Graph.reverse"
    assert home("coopsheaf.sheaves") == "coopsheaf.sheaves"
    assert home("coopsheaf.nothing") is None
    assert home("torch.Tensor") is None


def test_pages_that_fetch_something_are_found(
    extensions: SimpleNamespace, warnings: list[str], tmp_path: Path
) -> None:
    (tmp_path / "a.html").write_text('<a href="https://x.org"></a><img src="b.png">')
    extensions.references.check_self_contained(App(tmp_path), None)
    assert not warnings
    (tmp_path / "b.html").write_text('<script async src="https://x.org/s.js"></script>')
    extensions.references.check_self_contained(App(tmp_path), None)
    assert warnings == ["b.html would fetch https://x.org/s.js"]


def test_equations_are_mathml(extensions: SimpleNamespace, warnings: list[str]) -> None:
    from docutils import nodes

    body: list[str] = []
    translator: Any = SimpleNamespace(body=body)
    with pytest.raises(nodes.SkipNode):
        extensions.mathml.visit_math(translator, nodes.math("", r"\Delta^\top"))
    with pytest.raises(nodes.SkipNode):
        extensions.mathml.visit_displaymath(translator, nodes.math_block("", r"a &= b \\ c &= d"))
    assert body[0].startswith("<math")
    assert 'display="block"' in body[1]
    assert body[1].count("<mtr>") == 2
    assert not warnings
    with pytest.raises(nodes.SkipNode):
        extensions.mathml.visit_math(translator, nodes.math("", r"\nonsense x"))
    assert warnings == [r"cannot be written as MathML: \nonsense x"]
