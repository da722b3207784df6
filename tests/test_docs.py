"""What README and documentation print is true: code runs, commands parse, links lead somewhere.

Tutorials are run by ``make docs``, which shows what they print and fails if one does not run.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import pytest

import coopsheaf
from coopsheaf.cli import parse
from coopsheaf.cli.args import Command
from lab.args import Command as LabCommand

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PROGRAM = DOCS / "_extensions" / "snippets.py"
REPOSITORY = "https://github.com/coopsheaf/coopsheaf"


def load(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


snippets = load(PROGRAM)
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("tutorials/*.md"))]
SNIPPETS = {page: snippets.find_snippets(page.read_text("utf-8")) for page in PAGES}


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def uses(language: str) -> list[Path]:
    return [page for page in PAGES if any(s.language == language for s in SNIPPETS[page])]


RUN_HERE = [page for page in uses("python") if not snippets.is_tutorial(page)]


@pytest.mark.parametrize("page", RUN_HERE, ids=name_of)
def test_code_runs_as_printed(page: Path, tmp_path: Path) -> None:
    """All snippets of a page one after the other, in one namespace and an empty folder."""
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning:coopsheaf", PROGRAM, page, tmp_path],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)) == len(SNIPPETS[page])


@pytest.mark.parametrize("page", uses("bash"), ids=name_of)
def test_commands_parse(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for snippet in SNIPPETS[page]:
        if snippet.language == "bash":
            for line in snippets.find_commands(snippet.code):
                check_command(line, f"{page.name}:{snippet.line}", capsys)


def check_command(line: str, where: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A command of ours must parse; others must be of a kind that can be checked."""
    words = shlex.split(line, comments=True)
    if words[0] == "torchrun":  # its own options, then a module of ours
        line = shlex.join(words[words.index("-m") + 1 :])
    ours = snippets.split_command(line)
    assert ours is not None, f"{where}: mark what is no command of ours as `console`: {line}"
    module, rest = ours
    kind = {"coopsheaf": Command, "lab": LabCommand}[module]
    try:
        parse(kind, module, "", rest)
    except SystemExit:
        pytest.fail(f"{where}: {line}\n{capsys.readouterr().out}")


def commands(kind: Any) -> set[str]:
    """The words that a union of commands begins with."""
    return {part.__metadata__[0].name for part in get_args(kind)}


COMMANDS, LAB_COMMANDS = commands(Command), commands(LabCommand)


def test_inline_commands_exist() -> None:
    """``coopsheaf word`` in running text names a command."""
    for page in PAGES:
        for word in re.findall(r"`coopsheaf ([a-z][a-z-]*)", page.read_text("utf-8")):
            assert word in COMMANDS, f"{page.name}: coopsheaf {word}"
        for word in re.findall(r"`python -m lab ([a-z][a-z-]*)", page.read_text("utf-8")):
            assert word in LAB_COMMANDS, f"{page.name}: python -m lab {word}"


def test_every_fence_says_what_it_is() -> None:
    """Nothing is passed over because its language was forgotten or misspelt."""
    known = {"python", "bash", "console", "text", "toml", "{eval-rst}", "{toctree}"}
    for page in PAGES:
        opening = re.findall(r"^```(.*)$", page.read_text("utf-8"), re.MULTILINE)[::2]
        for fence in opening:
            assert fence.partition(" ")[0] in known, f"{page.name}: ```{fence}"


def test_code_that_is_marked_as_text_is_none() -> None:
    for page in PAGES:
        for snippet in SNIPPETS[page]:
            if snippet.language in ("text", "console"):
                assert "import coopsheaf" not in snippet.code
                assert not snippet.code.startswith(("coopsheaf ", "python -m lab"))


def test_links_of_the_readme_lead_to_files_and_are_absolute() -> None:
    """A package index shows the README without the repository around it."""
    links = re.findall(r"\]\(([^)]+)\)", (ROOT / "README.md").read_text("utf-8"))
    assert len(links) > 10
    for link in links:
        assert link.startswith("https://"), link
        found = re.fullmatch(rf"{re.escape(REPOSITORY)}/(?:blob|raw)/main/([^#]+)(#.*)?", link)
        assert found is not None or REPOSITORY not in link, link
        if found is not None:
            assert (ROOT / found[1]).is_file(), link


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 112


def test_headline_scores_are_those_of_the_generated_table() -> None:
    """What is typed in the README; its generated places have tests of their own."""
    readme = (ROOT / "README.md").read_text("utf-8")
    typed = re.sub(r"<!-- ([a-z-]+): begin -->.*?<!-- \1: end -->", "", readme, flags=re.DOTALL)
    table = (DOCS / "results.md").read_text("utf-8").split("<!-- summary: ")[1]
    scores = re.findall(r"\d+\.\d+ ± \d+\.\d+", typed)
    assert len(scores) >= 2
    for score in scores:
        assert score in table, score


def test_every_front_door_has_a_page_in_the_reference() -> None:
    described = set(re.findall(r"automodule:: (\S+)", "".join(
        page.read_text("utf-8") for page in DOCS.glob("api/*.rst")
    )))  # fmt: skip
    root = Path(coopsheaf.__file__).parent
    packages = {
        ".".join(("coopsheaf", *init.parent.relative_to(root).parts))
        for init in root.rglob("__init__.py")
        if "attach(" in init.read_text("utf-8")
    }
    inner = {"coopsheaf", "coopsheaf.pages.explorer", "coopsheaf.pages.results"}
    assert packages - inner <= described
    listed = (DOCS / "api" / "index.md").read_text("utf-8")
    for name in coopsheaf.__all__:
        assert re.search(rf"^   {name}$", listed, re.MULTILINE), name


def test_the_plan_of_the_house_is_that_of_the_imports() -> None:
    """The rooms stand in the order that ``test_architecture.py`` enforces."""
    page = (DOCS / "architecture.md").read_text("utf-8")
    table = page.split("## The house")[1].split("\n`lab/`")[0]
    shown = []
    for cell in re.findall(r"^\| ((?:&nbsp;)*)(`[^|]+) \|", table, re.MULTILINE):
        names = re.findall(r"`([a-z_]+)(?:\.py|/)`", cell[1])
        shown += [f"sheaves.{name}" if cell[0] else name for name in names]
    floors = load(ROOT / "tests" / "test_architecture.py").FLOORS
    inner = [floor for floor in floors if floor.startswith("sheaves.")]
    assert [name for name in shown if name.startswith("sheaves.")] == inner
    assert [name for name in shown if "." not in name] == [f for f in floors if "." not in f]


def test_a_snippet_that_fails_is_reported_with_its_line(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("Text.\n\n```python\na = 1\n```\n\n```python\nprint(a)\nb\n```\n", "utf-8")
    done = subprocess.run([sys.executable, PROGRAM, page], capture_output=True, text=True)
    assert done.returncode == 1
    assert 'page.md", line 9' in done.stderr
    assert "NameError: name 'b'" in done.stderr


def test_a_snippet_with_a_name_is_a_file_for_later_ones(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python part.py\na = 1\nprint(a)\n```\n```python\nimport part\n```\n")
    done = subprocess.run([sys.executable, PROGRAM, page, tmp_path], capture_output=True, text=True)
    assert json.loads(done.stdout) == ["1\n", "1\n"], done.stderr


def test_a_snippet_is_compiled_as_if_it_stood_alone(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nclass A:\n    x: int\nprint(A.__annotations__)\n```\n")
    done = subprocess.run([sys.executable, PROGRAM, page], capture_output=True, text=True)
    assert json.loads(done.stdout) == ["{'x': <class 'int'>}\n"], done.stderr


def test_commands_run_in_tutorials_alone(tmp_path: Path) -> None:
    """Those of other pages may take hours, or need data."""
    text = "```bash\ncoopsheaf models\n```\n"
    for folder, ran in (("tutorials", True), ("guides", False)):
        (tmp_path / folder).mkdir()
        page = tmp_path / folder / "page.md"
        page.write_text(text)
        done = subprocess.run([sys.executable, PROGRAM, page], capture_output=True, text=True)
        (printed,) = json.loads(done.stdout)
        assert ("nsd-orthogonal" in printed) == ran
