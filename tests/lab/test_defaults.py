"""Candidates for defaults: what is recorded is ranked by validation alone."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from coopsheaf.train.defaults import default_for
from coopsheaf.train.records import Record, append_record
from lab import args, defaults
from lab.choosing import defaults as command
from lab.defaults import (
    CANDIDATES,
    DEVELOPMENT,
    HELD_BACK,
    OPTION_ROWS,
    OPTION_SETS,
    OPTIONS,
    Generated,
    common_splits,
    mean_ranks,
    measure,
    page_table,
    places,
    ranks,
    score_table,
    scores,
)
from lab.documents import fill_document

ROOT = Path(__file__).parents[2]
SETS = {"one": Generated(60, 150, 2, 4, 0.8, 1.0, False, 1), "two": None}
NAMES = ("plain", "mlp")


def record(folder: Path, name: str, data: str, split: int, val: float, test: float) -> None:
    recipe = CANDIDATES[name].recipe(data)
    made = Record(recipe.model_name, data, split, 43, "", "accuracy", val, test, 1, recipe.hash())
    append_record(folder / "all.jsonl", made)


def test_places_and_their_means() -> None:
    assert ranks({"a": 0.5, "b": 0.9, "c": 0.5}) == {"a": 2.5, "b": 1.0, "c": 2.5}
    found = {"x": {"a": 0.5, "b": 0.9}, "y": {"a": 0.8, "b": 0.1}}
    assert mean_ranks(found) == {"a": 1.5, "b": 1.5}


def test_validation_decides_on_the_splits_that_all_have(tmp_path: Path) -> None:
    record(tmp_path, "plain", "one", 0, 0.6, 0.1)
    record(tmp_path, "plain", "one", 1, 0.9, 0.1)
    record(tmp_path, "mlp", "one", 0, 0.5, 0.99)
    found = scores(NAMES, SETS, tmp_path)
    assert found == {"one": {"plain": 0.6, "mlp": 0.5}}  # nobody has both on "two"
    assert common_splits(NAMES, SETS, tmp_path) == {"one": 1, "two": 0}
    lines = score_table(found, {"one": 1}).splitlines()
    assert "one (1)" in lines[0]
    assert lines[2].startswith("| plain | 1.00 | **60.0**")
    assert lines[3].startswith("| mlp | 2.00 | 50.0")


def test_data_that_not_all_were_trained_on_is_named(tmp_path: Path) -> None:
    record(tmp_path, "plain", "one", 0, 0.6, 0.1)
    alone = "Not yet run with all of these settings: one, two.\n"
    assert page_table(NAMES, SETS, tmp_path) == alone
    record(tmp_path, "mlp", "one", 0, 0.5, 0.99)
    assert page_table(NAMES, SETS, tmp_path).endswith(
        "\n\nNot yet run with all of these settings: two.\n"
    )
    assert "Not yet" not in page_table(NAMES, {"one": SETS["one"]}, tmp_path)


def test_every_option_is_one_change_of_the_rule() -> None:
    """Those with the paper's operator are one change of ``start``, the rule's with it."""
    changes = {"semantics", "map_start", "jk", "own_dropout", "learner_dropout", "structure"}
    changes |= {"block", "map_lr_factor", "map_weight_decay"}
    seen = set()
    for name in OPTIONS:
        base = CANDIDATES["start" if name.startswith("paper-") else "messages"].recipe("texas")
        ours = CANDIDATES[name].recipe("texas")
        pairs = [(base.model, ours.model), (base.train, ours.train)]
        changed = [
            key for old, new in pairs for key in vars(new) if vars(old)[key] != vars(new)[key]
        ]
        assert len(changed) == 1, (name, changed)
        assert changed[0] in changes
        seen |= set(changed)
    assert {"jk", "own_dropout", "learner_dropout", "map_lr_factor", "map_weight_decay"} <= seen
    assert set(OPTION_ROWS) <= set(CANDIDATES)
    assert set(OPTION_SETS) <= set(DEVELOPMENT)


def test_generated_communities_are_all_eight() -> None:
    made = [source for source in DEVELOPMENT.values() if source is not None]
    kinds = {(one.homophily, one.features, one.directed) for one in made}
    assert len(kinds) == len(made) == 8
    assert len({one.seed for one in made}) == 8


def test_the_page_has_the_tables_of_the_records() -> None:
    text = (ROOT / "docs" / "csnn-options.md").read_text("utf-8")
    for place, content in places(ROOT / "results" / "defaults").items():
        assert fill_document(text, place, content) == text, place


def test_every_candidate_can_be_said_and_differs_from_the_others() -> None:
    hashes = {name: CANDIDATES[name].recipe("texas").hash() for name in CANDIDATES}
    assert hashes.pop("rule") == hashes["messages"]
    assert len(set(hashes.values())) == len(hashes)
    assert not set(DEVELOPMENT) & set(HELD_BACK)


@pytest.mark.parametrize("name", ["low-few", "high-many", "held-high-few"])
def test_the_rule_is_that_of_the_library(name: str) -> None:
    source = (DEVELOPMENT | HELD_BACK)[name]
    assert source is not None
    want = default_for("csnn", source.make(name), name)
    assert CANDIDATES["rule"].recipe(name).hash() == want.hash()


@pytest.mark.parametrize("directed", [False, True])
def test_generated_graphs_are_what_they_say(directed: bool) -> None:
    spec = Generated(120, 400, 3, 5, 0.9, 1.0, directed, 3)
    data = spec.make("some")
    assert data.num_edges == (400 if directed else 800)
    assert data.reciprocated == (0 if directed else 1)
    same = data.y[data.edge_index[0]] == data.y[data.edge_index[1]]
    assert 0.8 < same.double().mean() < 1
    assert data.name == "some"
    again = spec.make("some")
    assert data.checksum == again.checksum
    assert torch.equal(data.edge_index, again.edge_index)
    assert Generated(120, 400, 3, 5, 0.9, 1.0, directed, 4).make("some").checksum != data.checksum


def test_what_is_missing_is_trained_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    short = {name: ("train.epochs=2", *CANDIDATES[name].settings) for name in NAMES}
    few = {name: defaults.Candidate(CANDIDATES[name].model, short[name], "") for name in NAMES}
    sets = {"directed": Generated(60, 150, 2, 4, 0.8, 1.0, True, 1)}
    monkeypatch.setattr(defaults, "CANDIDATES", few)
    where = {"results": tmp_path / "results", "work": tmp_path / "work"}
    first = list(measure(NAMES, sets, 3, **where))
    assert [(name, made.split, skipped) for name, made, skipped in first] == [
        ("plain", 0, False),
        ("mlp", 0, False),
    ]  # there is one split
    assert all(skipped for *_, skipped in measure(NAMES, sets, 1, **where))
    again = list(measure(NAMES, sets, 2, tmp_path / "b", tmp_path / "w", together=True))
    assert [(name, made.together) for name, made, _ in again] == [("plain", 1), ("mlp", 1)]
    monkeypatch.setattr("lab.choosing.DEVELOPMENT", sets)
    document = tmp_path / "page.md"
    document.write_text(f"<!-- {defaults.PLACE}: begin -->\n<!-- {defaults.PLACE}: end -->\n")
    options = {"candidates": NAMES, "report": True, "results": where["results"]}
    assert command(args.Defaults(**options, document=document)) == 0
    assert "| directed (1)" in document.read_text()
    with pytest.raises(ValueError, match="`--sets` must be one of 'directed'; got 'nowhere'"):
        command(args.Defaults(**options, sets=("nowhere",)))
    with pytest.raises(ValueError, match="leave --held-back out"):
        command(args.Defaults(options=True, held_back=True))
    with pytest.raises(ValueError, match="has no data set that all candidates were trained on"):
        command(args.Defaults(**options | {"results": tmp_path / "nothing"}))
