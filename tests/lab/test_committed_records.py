"""What has been measured stays valid: the hash of recorded settings is still the hash of them.

And where it comes from can be looked up: commits that records name are in this history or listed.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

from coopsheaf.train.recipe import recipe_from_mapping
from coopsheaf.train.records import read_records

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
FILES = [
    *sorted(RESULTS.glob("*.jsonl")),
    *sorted((RESULTS / "defaults").glob("*.jsonl")),
    *sorted((RESULTS / "investigations").glob("*.jsonl")),
    *sorted((RESULTS / "long-range").glob("*.jsonl")),
    *sorted((RESULTS / "peptides").glob("*.jsonl")),
    *sorted((RESULTS / "sweeps").rglob("*.jsonl")),
]


def test_there_are_records() -> None:
    assert len(FILES) >= 200


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT / "results")))
def test_recorded_settings_have_the_hash_that_was_recorded(file: Path) -> None:
    for record in read_records([file]):
        recipe = recipe_from_mapping(record.config, file.name)
        assert recipe.hash() == record.config_hash
        assert recipe.to_mapping() == record.config


# Where records come from.

COMMIT = re.compile(r'"?commit"?(?:: | = )"([0-9a-f]+)[+]?"')
TIME = re.compile(r'"time": "([^"]+)"')
LISTED = json.loads((RESULTS / "commits.json").read_text(encoding="utf-8"))["commits"]


def named_commits() -> dict[str, list[str]]:
    """The commits that records name, and the times of those records that have one."""
    found: dict[str, list[str]] = defaultdict(list)
    for folder in (RESULTS, ROOT / "benchmarks" / "results"):
        for file in folder.rglob("*"):
            if file.suffix in (".json", ".jsonl", ".toml") and file.name != "commits.json":
                for line in file.read_text(encoding="utf-8").splitlines():
                    for commit in COMMIT.findall(line):
                        found[commit].extend(TIME.findall(line))
    return found


def git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture(scope="module")
def history() -> dict[str, tuple[int, str]]:
    """Of every commit: how many came before, and when it was made."""
    try:
        if Path(git("rev-parse", "--show-toplevel")) != ROOT.resolve():
            pytest.skip("these files are in no repository of their own")
        if git("rev-parse", "--is-shallow-repository") != "false":
            pytest.skip("the history of this repository is not whole")
        lines = git("log", "--topo-order", "--reverse", "--format=%H %cI").splitlines()
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("there is no history here")
    return {line[:12]: (place, line.split()[1]) for place, line in enumerate(lines)}


def missing(named: Iterable[str], history: dict[str, tuple[int, str]]) -> set[str]:
    return {commit for commit in named if commit[:12] not in history and commit not in LISTED}


def test_commits_of_records_are_in_this_history_or_listed(
    history: dict[str, tuple[int, str]],
) -> None:
    """A branch that lands as one commit takes the names of its own commits with it."""
    named = named_commits()
    assert len(named) > 50
    assert not missing(named, history), "say in results/commits.json where their work is"
    assert missing(["0123456789ab"], history) == {"0123456789ab"}
    assert set(LISTED) <= set(named), "no record names these"


def test_listed_commits_lie_where_it_is_said(history: dict[str, tuple[int, str]]) -> None:
    named = named_commits()
    for commit, said in LISTED.items():
        assert commit not in history
        before, after = history[said["newest_then"]], history[said["work_is_in"]]
        assert before[0] < after[0]
        for time in named[commit]:
            assert before[1] <= time <= after[1], commit
