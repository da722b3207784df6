"""What is to be run, and what is recorded of it."""

from __future__ import annotations

import pytest
from report.example import make

from coopsheaf.data.catalogue import DATASETS
from coopsheaf.report.rows import summarise
from coopsheaf.train.recipes import recipe_for
from lab.agenda import (
    AGENDA,
    LARGE,
    LARGE_RIVALS,
    MARKED,
    PEPTIDES,
    RELEASED,
    ZEROS,
    Item,
    command,
    remaining,
    still_to_run,
)
from lab.cells import untuned
from lab.published import PUBLISHED


def test_the_agenda_can_be_run() -> None:
    """Its commands name recipes that can be made, settings they have and splits that exist."""
    assert len(set(AGENDA)) == len(AGENDA)
    for item in AGENDA:
        recipe_for(item.model, item.dataset).set(*item.setting.split())
        if "--splits" in command([item]):
            assert item.runs <= DATASETS[item.dataset].published.splits, item


def test_records_count_for_their_own_item_only() -> None:
    plain = {"model": {"scale": "exp"}}
    zeros = {"model": {"scale": "rectified"}}
    fixed = {"model": {"scale": "exp", "orthogonal": "identity"}}
    records = [
        *(make(split=k, config_hash="a", config=plain) for k in range(3)),
        *(make(split=k, config_hash="b", config=plain) for k in (0, 0, 5)),
        make(split=7, config_hash="c", config=zeros),
        *(make(split=k, config_hash="e", config=fixed) for k in range(5)),
        make(split=0, config_hash="d", config=plain, semantics="released"),
    ]
    dataset = records[0].dataset
    counts = [Item("csnn", dataset, 10, setting).recorded(records) for setting in ("", RELEASED, ZEROS)]  # fmt: skip
    assert counts == [3, 1, 1]
    assert Item("mlp", dataset, 10).recorded(records) == 0
    left = dict(remaining(records))
    assert left[Item("csnn", dataset, 10)] == 3


def test_runs_of_other_versions_and_files_do_not_add_up() -> None:
    records = [make(split=k, model_version=1 + k % 2, dataset_checksum="ab"[k // 5]) for k in range(10)]  # fmt: skip
    assert Item("csnn", "tolokers", 10).recorded(records) == 3


def test_rivals_on_large_graphs_are_those_of_a_size_that_a_cpu_trains() -> None:
    items = [item for item in AGENDA if item.dataset in LARGE and item.model != "csnn"]
    assert len(items) == 2 * len(LARGE_RIVALS)
    assert {item.runs for item in items} == {3}
    for item in items:
        recipe = recipe_for(item.model, item.dataset).set(*item.setting.split())
        sizes = recipe.to_mapping()
        assert sizes["model"]["hidden_channels"] <= 64
        assert sizes["train"]["epochs"] == 500
        small = {"model": item.model, "dataset": item.dataset, "semantics": ""}
        records = [make(split=k, config=sizes, recipe=recipe.name, **small) for k in range(3)]
        assert item.recorded(records) == 3
        published = recipe_for(item.model, item.dataset).to_mapping()
        assert item.recorded([make(config=published, **small)]) == 0
        (row,) = summarise(records)
        how = "shorter" if item.model == "cognn" else "smaller"
        assert untuned(row) == f" ({how} than published)"
        whole = [make(config=published, recipe=f"{item.model}/{item.dataset}", **small)]
        assert untuned(summarise(whole)[0]) == ""


def test_substitutes_have_three_splits() -> None:
    assert [item.runs for item in AGENDA if item.dataset in MARKED] == [3, 3]


def test_what_is_whole_is_not_on_the_list() -> None:
    item = Item("mlp", "texas", 10)
    records = [make(model="mlp", dataset="texas", split=k) for k in range(10)]
    assert item in AGENDA
    assert item in dict(remaining(records[1:]))
    assert item not in dict(remaining(records))


def test_seeds_are_counted_where_there_is_one_split() -> None:
    records = [make(dataset="peptides-func", metric="ap", seed=k) for k in range(3)]
    assert Item("csnn", "peptides-func", 4).recorded(records) == 3


def test_every_row_of_the_paper_is_asked_for_on_the_peptides() -> None:
    """With four seeds each, from the recipe of that model on that dataset."""
    printed = {(entry.model, entry.dataset) for entry in PUBLISHED if entry.table == "peptides"}
    items = {(item.model, item.dataset): item for item in AGENDA if item.dataset in PEPTIDES}
    assert set(items) == printed
    for (model, dataset), item in items.items():
        assert item.runs == 4
        assert recipe_for(model, dataset).name == f"{model}/{dataset}"
    (line,) = (line for line in still_to_run([]).splitlines() if "csnn/peptides-struct" in line)
    assert "csnn/peptides-struct gcn-lrgb/peptides-struct" in line
    assert "bunn/peptides-struct --set train.seed=$seed" in line


@pytest.mark.parametrize(
    ("item", "words"),
    [
        (Item("csnn", "texas", 10), "coopsheaf bench csnn/texas --splits 0-9"),
        (
            Item("csnn", "tolokers", 3, RELEASED),
            "coopsheaf bench csnn/tolokers --set model.semantics=released --splits 0-2",
        ),
        (
            Item("gcn", "tolokers", 3, "model.hidden_channels=64 train.lr=3e-3"),
            "coopsheaf bench gcn/tolokers --set model.hidden_channels=64 --set train.lr=3e-3 "
            "--splits 0-2",
        ),
        (
            Item("csnn", "peptides-func", 4, RELEASED),
            "for seed in $(seq 0 3); do coopsheaf bench csnn/peptides-func "
            "--set model.semantics=released --set train.seed=$seed; done",
        ),
        (
            Item("csnn", "peptides-func", 4),
            "for seed in $(seq 0 3); do coopsheaf bench csnn/peptides-func --set train.seed=$seed; done",
        ),
    ],
)
def test_commands(item: Item, words: str) -> None:
    assert command([item]) == words
