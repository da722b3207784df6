"""What is to be run, and what is recorded of it."""

from __future__ import annotations

import pytest
from bench.example import make

from coopsheaf.bench.agenda import AGENDA, RELEASED, ZEROS, Item, command, remaining
from coopsheaf.data.registry import DATASETS
from coopsheaf.models.registry import MODELS


def test_the_agenda_speaks_of_what_there_is() -> None:
    assert len(set(AGENDA)) == len(AGENDA)
    for item in AGENDA:
        assert item.model in MODELS
        assert item.dataset in DATASETS


def test_records_count_for_their_own_item_only() -> None:
    plain = {"model": {"scale": "exp"}}
    zeros = {"model": {"scale": "rectified"}}
    records = [
        *(make(split=k, config_hash="a", config=plain) for k in range(3)),
        *(make(split=k, config_hash="b", config=plain) for k in (0, 0, 5)),
        make(split=7, config_hash="c", config=zeros),
        make(split=0, config_hash="d", config=plain, semantics="released"),
    ]
    dataset = records[0].dataset
    counts = [Item("csnn", dataset, 10, setting).recorded(records) for setting in ("", RELEASED, ZEROS)]  # fmt: skip
    assert counts == [3, 1, 1]
    assert Item("mlp", dataset, 10).recorded(records) == 0
    left = dict(remaining(records))
    assert left[Item("csnn", dataset, 10)] == 3


def test_what_is_whole_is_not_on_the_list() -> None:
    item = Item("mlp", "texas", 10)
    records = [make(model="mlp", dataset="texas", split=k) for k in range(10)]
    assert item in AGENDA
    assert item in dict(remaining(records[1:]))
    assert item not in dict(remaining(records))


def test_seeds_are_counted_where_there_is_one_split() -> None:
    records = [make(dataset="peptides-func", metric="ap", seed=k) for k in range(3)]
    assert Item("csnn", "peptides-func", 4).recorded(records) == 3


@pytest.mark.parametrize(
    ("item", "words"),
    [
        (Item("csnn", "texas", 10), "coopsheaf bench csnn/texas --splits 0-9"),
        (
            Item("csnn", "tolokers", 3, RELEASED),
            "coopsheaf bench csnn/tolokers --splits 0-2 --set model.semantics=released",
        ),
        (
            Item("csnn", "peptides-func", 4),
            "for seed in $(seq 1 4); do coopsheaf bench csnn/peptides-func --set train.seed=$seed; done",
        ),
    ],
)
def test_commands(item: Item, words: str) -> None:
    assert command([item]) == words
