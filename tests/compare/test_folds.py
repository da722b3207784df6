"""Folds: who is tested where, and which nodes an encoder has seen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from compare.tiny import dataset, tables

from coopsheaf.compare.data import Division, given_folds, table_folds
from coopsheaf.compare.folds import check_folds
from coopsheaf.data.links import split_links
from coopsheaf.data.tables.load import load_tables, table_options
from coopsheaf.train.task import Task

OPTIONS = table_options(target="label", seed=0)


def test_columns_are_encoded_by_the_training_nodes_of_their_fold() -> None:
    nodes, edges = tables()
    folds, _ = table_folds(nodes, edges, None, OPTIONS, Division(folds=3))
    made = [folds.make(k) for k in folds.numbers]
    for fold in made:
        data = fold.dataset
        train = data.train[fold.split]
        assert torch.allclose(data.x[train, 0].mean(), torch.tensor(0.0), atol=1e-5)
        assert torch.allclose(data.x[train, 0].std(correction=0), torch.tensor(1.0), atol=1e-5)
    assert not torch.equal(made[0].dataset.x, made[1].dataset.x)
    # Which numbers the tested nodes have moves nothing of the encoder.
    moved = dict(nodes)
    moved["sign"] = np.where(made[0].dataset.test[0].numpy(), 1e3, nodes["sign"])
    other, _ = table_folds(moved, edges, None, OPTIONS, Division(folds=3))
    train = made[0].dataset.train[0]
    assert torch.equal(other.make(0).dataset.x[train], made[0].dataset.x[train])


def test_everybody_is_tested_once_and_records_tell_the_divisions_apart() -> None:
    nodes, edges = tables()
    folds, first = table_folds(nodes, edges, None, OPTIONS, Division())
    assert (folds.over, len(folds.numbers)) == ("folds", 5)
    assert (sum(folds.masks[2]) == 1).all()
    assert folds.sizes[0] == (54, 18, 18)
    fold = folds.make(1)
    assert fold.split == 1
    assert fold.dataset.num_splits == 5
    assert fold.dataset.checksum == folds.checksums[1] != first.dataset.checksum
    other, _ = table_folds(nodes, edges, None, OPTIONS, Division(seed=1))
    assert other.checksums != folds.checksums
    repeats, _ = table_folds(nodes, edges, None, OPTIONS, Division(repeats=2))
    assert (repeats.over, repeats.numbers) == ("random splits", (0, 1))
    assert repeats.sizes == [(54, 18, 18)] * 2
    assert not torch.equal(repeats.masks[2][0], repeats.masks[2][1])


def test_splits_of_the_data_are_used_as_they_are() -> None:
    nodes, edges = tables()
    parts = {**nodes, "split": np.array((["train"] * 2 + ["val", "test"]) * 22 + ["train", "val"])}
    folds, first = table_folds(parts, edges, None, OPTIONS, Division())
    assert (folds.over, folds.numbers) == ("splits", (0,))
    assert torch.equal(folds.make(0).dataset.x, first.dataset.x)
    numbered = {**nodes, "fold": np.arange(90) % 4}
    folds, first = table_folds(numbered, edges, None, OPTIONS, Division())
    assert (folds.over, folds.numbers) == ("splits", (0, 1, 2, 3))
    data = folds.make(2).dataset
    assert torch.equal(data.test, first.dataset.test)
    # The first reading saw the training nodes of all folds, which are all nodes.
    assert not torch.equal(data.x, first.dataset.x)
    assert torch.allclose(data.x[data.train[2], 0].mean(), torch.tensor(0.0), atol=1e-5)
    own = given_folds(dataset(splits=7), Division())
    assert own.numbers == (0, 1, 2, 3, 4)
    assert own.make(3).dataset.checksum == "abc"


def test_whole_graphs_are_dealt_out_too() -> None:
    draw = np.random.default_rng(0)
    nodes = {"id": np.arange(60), "graph": np.arange(60) // 3, "size": draw.normal(size=60)}
    edges = {"source": np.arange(60), "target": (np.arange(60) // 3) * 3}
    graphs = {"graph": np.arange(20), "toxic": np.array(["no", "yes"] * 10)}
    options = table_options(target="toxic", seed=0)
    folds, _ = table_folds(nodes, edges, graphs, options, Division(folds=4))
    made = [folds.make(k) for k in folds.numbers]
    tested = torch.cat([fold.dataset.test for fold in made])
    assert sorted(tested.tolist()) == list(range(20))
    assert len(set(folds.checksums)) == 4
    assert {fold.split for fold in made} == {0}


@pytest.mark.parametrize(
    ("division", "message"),
    [
        (Division(folds=2), "`folds` must be at least 3, to train, to validate and to test; got 2"),
        (Division(folds=91), "`folds` must be at most the number of labelled nodes or graphs, 90; got 91"),
        (Division(folds=3, repeats=2), "`folds` and `repeats` exclude each other"),
        (Division(repeats=0), "`repeats` must be at least 1; got 0"),
        (Division(splits=(0,)), "`splits` chooses among the splits of the data, and .* has none"),
    ],
)  # fmt: skip
def test_divisions_that_cannot_be(division: Division, message: str) -> None:
    nodes, edges = tables()
    with pytest.raises(ValueError, match=message):
        table_folds(nodes, edges, None, OPTIONS, division)


def test_what_cannot_be_measured_is_refused_before_anything_is_trained() -> None:
    one_class = dataset()
    y = one_class.y.clone()
    y[one_class.test[1]] = 1
    folds = given_folds(replace(one_class, y=y), Division())
    with pytest.raises(ValueError, match=r"auroc is not defined on the test part of split 1 \(15 targets, of class yes\); take fewer splits, or another metric"):  # fmt: skip
        check_folds(folds, Task("binary", "auroc"))
    check_folds(folds, Task("binary", "accuracy"))
    y = one_class.y.clone()
    y[one_class.train[0]] = 0
    with pytest.raises(ValueError, match="split 0 of tiny has one class only among its training"):
        check_folds(given_folds(replace(one_class, y=y), Division()), Task("binary", "auroc"))
    empty = replace(one_class, val=torch.zeros_like(one_class.val))
    with pytest.raises(ValueError, match="split 0 of tiny has nothing to validate on"):
        check_folds(given_folds(empty, Division()), Task("binary", "auroc"))


def test_a_class_that_a_fold_does_not_train_is_said() -> None:
    data = dataset(task="binary")
    y = data.y.clone()
    y[data.test[0].nonzero()[0]] = 2
    odd = replace(data, task="multiclass", metric="accuracy", y=y, class_names=("a", "b", "rare"))
    notes = given_folds(odd, Division()).notes
    assert any("class rare is tested but not trained in split 0" in note for note in notes)


def test_links_are_refused() -> None:
    nodes, edges = tables()
    links = split_links(load_tables(nodes, edges, target="label").dataset.x, torch.randint(0, 90, (2, 300)), seed=0)  # fmt: skip
    bad: Any = links.dataset
    with pytest.raises(ValueError, match="models are compared on targets of nodes or graphs"):
        given_folds(bad, Division())
