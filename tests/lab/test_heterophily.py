"""The page of networks for heterophily: published settings alone, and both ways."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from report.example import make

from coopsheaf.report.rows import summarise, validation
from coopsheaf.train.recipes import recipe_for
from coopsheaf.train.records import Record
from lab.agenda import AGENDA, FRIENDS, HETEROPHILY, PENN94, Item
from lab.best_of_grid import FORMS
from lab.compare import standard_error
from lab.heterophily import (
    TOO_FAR,
    apart,
    as_published,
    changes,
    friends,
    rows_apart,
    table,
    tried,
)
from lab.outcomes import OUTCOMES, Outcome, outcome_of
from lab.published import PAPER, PUBLISHED
from lab.reproduction import load_evidence

ROOT = Path(__file__).parents[2]


def runs(model: str, dataset: str, tests: list[float], **changes: Any) -> list[Record]:
    values: dict[str, Any] = {
        "semantics": "",
        "metric": "accuracy",
        "config_hash": recipe_for(model, dataset).hash(),
        "recipe": f"{model}/{dataset}",
        "processing": {},
    }
    return [
        make(model=model, dataset=dataset, split=k, test=test, **(values | changes))
        for k, test in enumerate(tests)
    ]


NEAR = [0.84, 0.86] * 5  # GGCN's print on texas is 84.86
FAR = [0.50, 0.52] * 5


def test_only_the_settings_of_the_recipe_count() -> None:
    others = runs("ggcn", "texas", FAR, config_hash="other", val=1.0)
    records = [*others, *runs("ggcn", "texas", NEAR)]
    assert as_published(records)["ggcn", "texas"].mean == sum(NEAR) / 10
    assert as_published(others) == {}
    (line,) = (line for line in table(records).splitlines() if line.startswith("| ggcn "))
    assert "84.86 ± 4.55 → 85.00 ± 1.00 (+0.4 s.e.)" in line
    assert "86.86 ± 3.29 → –" in line  # not run


def test_both_ways_count() -> None:
    high = runs("pairnorm", "texas", [0.84, 0.86] * 5)  # printed 60.27
    low = runs("ggcn", "texas", FAR)
    near = runs("fsgnn", "texas", [0.87, 0.88] * 5)
    records = [*low, *near, *high]
    assert [row.model for row in rows_apart(records)] == ["ggcn", "pairnorm"]
    lines = apart(records).splitlines()
    assert "| pairnorm |" in lines[2]  # the highest first
    assert "| ggcn |" in lines[3]
    assert apart(near) == "There is no such number.\n"


def test_friendship_networks_stand_beside_the_print_and_are_not_it() -> None:
    records = [
        *runs("h2gcn-linkx", "reed98", [0.6, 0.7, 0.6, 0.7, 0.65]),
        *runs("mlp", "reed98", [0.9] * 5, config_hash="default", recipe="default"),
    ]
    text = friends(records)
    assert "| h2gcn-linkx (H2GCN) | 81.31 ± 0.60 | 65.00 ± 4.47 | – | – | – |" in text
    assert "| mlp (MLP) | 73.61 ± 0.40 | – |" in text  # our defaults are not the benchmark's
    assert "wrgat (not here)" in text
    assert "65.00 ± 5.00 (2 of 5)" in friends(records[:2])


def changed(model: str, dataset: str, *settings: str) -> dict[str, Any]:
    """What a record of a recipe with something set otherwise has."""
    recipe = recipe_for(model, dataset).set(*settings)
    return {"config_hash": recipe.hash(), "config": recipe.to_mapping(), "recipe": recipe.name}


def test_what_was_tried_stands_beside_the_recipe() -> None:
    settings = changed("pairnorm", "texas", "model.num_layers=4", "train.lr=0.1")
    others = runs("pairnorm", "texas", FAR, **settings)
    text = tried(runs("pairnorm", "texas", NEAR), others)
    assert r"| texas | pairnorm | model.num\_layers=4, train.lr=0.1 | 10 of 10 |" in text
    assert "51.00 ± 1.00" in text
    assert "85.00 ± 1.00" in text
    assert tried([], []) == "Nothing yet.\n"


def test_a_few_splits_stand_beside_the_same_ones_of_the_recipe() -> None:
    others = runs("pairnorm", "texas", [0.5], **changed("pairnorm", "texas", "train.patience=7"))
    text = tried(runs("pairnorm", "texas", [0.9, *[0.1] * 9]), others)
    assert "| train.patience=7 | 1 of 10 |" in text
    assert "| 50.00 |" in text
    assert "| 90.00 |" in text


def test_what_is_set_otherwise_is_found_in_the_settings() -> None:
    """Not in what the source says, which is that of the recipe at that time."""
    settings = changed("mixhop", "texas", "model.hidden_channels=192", "train.seed=7")
    (record,) = runs("mixhop", "texas", [0.5], **settings)
    assert changes(record) == "model.hidden_channels=192, train.seed=7"
    (same,) = runs("mixhop", "texas", [0.5], **changed("mixhop", "texas"))
    assert changes(same) == ""
    del same.config["train"]["patience"]
    assert changes(same) == "train.patience=none"


def test_every_row_of_the_two_tables_is_on_the_agenda() -> None:
    """All but the system that is refused by name."""
    for name, datasets in (("geom-gcn", ("texas", "film")), ("penn94", ("penn94", *FRIENDS))):
        models = {entry.model for entry in PUBLISHED if entry.table == name} - {"wrgat"}
        for dataset in datasets:
            wanted = {item.model for item in AGENDA if item.dataset == dataset}
            assert models <= wanted, dataset
    assert not any(i.model == "geom-gcn" and i.dataset == "cornell-corrected" for i in AGENDA)
    assert set(HETEROPHILY) >= {"gcnii-star", "glognn++", "acm-gcn-plus", "linkx", "dirgnn"}
    assert "csnn" not in PENN94  # it has a line of its own


def test_default_settings_do_not_count_where_published_ones_are_wanted() -> None:
    item = Item("mlp", "reed98", 5, as_published=True)
    assert item in AGENDA
    assert item.recorded(runs("mlp", "reed98", [0.6] * 5)) == 5
    assert item.recorded(runs("mlp", "reed98", [0.6] * 5, recipe="default")) == 0


EVIDENCE = load_evidence(ROOT / "results")
OUTCOME_OF_EACH = [
    pytest.param(model, dataset, outcome, id=f"{model}/{dataset}")
    for model, outcomes in OUTCOMES.items()
    for dataset, outcome in outcomes.items()
]


def test_every_number_that_is_apart_has_an_outcome() -> None:
    """Cell by cell; a model with one is no excuse for another data set."""
    missing = [
        f"{row.model}/{row.dataset}"
        for row in rows_apart(EVIDENCE.records)
        if len(row.runs) == row.expected and not outcome_of(row.model, row.dataset)
    ]
    assert missing == []


@pytest.mark.parametrize(("model", "dataset", "outcome"), OUTCOME_OF_EACH)
def test_a_run_that_explains_is_there_and_does(model: str, dataset: str, outcome: Outcome) -> None:
    """Validation prefers it to all else that was run for the cell, and it is at the print."""
    entry = PAPER.find(model, dataset)
    assert entry is not None
    if not outcome.run:
        return
    recipes = as_published(EVIDENCE.records)
    forms = FORMS.get(model, (model,))
    rows = {form: recipes[form, dataset] for form in forms if (form, dataset) in recipes}
    mine = [r for r in EVIDENCE.tried if r.model in forms and r.dataset == dataset]
    for words in {changes(record) for record in mine}:
        (rows[words],) = summarise([r for r in mine if changes(r) == words], PAPER)
    whole = {words: row for words, row in rows.items() if len(row.runs) == row.expected}
    assert max(whole, key=lambda words: validation(whole[words])) == outcome.run
    row, error = whole[outcome.run], standard_error(whole[outcome.run])
    assert row.mean is not None
    assert error is not None
    assert row.mean > entry.value - TOO_FAR * error


def test_an_outcome_says_whether_there_is_a_reason() -> None:
    assert outcome_of("fagcn", "texas").startswith("explained: ")
    assert outcome_of("nsd-general", "film").startswith("not explained: ")
    assert str(Outcome("so they compute it", fact=True)) == "explained: so they compute it"
    assert outcome_of("mlp", "texas") == ""
    records = runs("fagcn", "texas", FAR)
    assert f"| {outcome_of('fagcn', 'texas')} |" in apart(records)


def test_what_is_apart_was_investigated() -> None:
    """Every model with such a number has its paragraph, too."""
    page = (ROOT / "docs" / "heterophily.md").read_text(encoding="utf-8")
    prose = page.split("### What came of it, row by row")[1].split("\n## ")[0]
    investigated = set(re.findall(r"\*\*`([a-z0-9+-]+)`\*\*", prose))
    whole = [row for row in rows_apart(EVIDENCE.records) if len(row.runs) == row.expected]
    for row in whole:
        assert row.model in investigated, f"{row.model}/{row.dataset}"
