"""Features are folded to the columns they were made of."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from analysis.planted import planted_tables, trained
from graphs import randn
from pages.explorer.pages import train
from small_tables import table
from train.small import node_dataset

from coopsheaf.analysis import Columns
from coopsheaf.data.tables.columns.encoding import FeatureEncoder


def test_an_encoder_knows_whose_features_are_whose() -> None:
    found = table(
        age=np.array([1.0, np.nan, 3.0, 4.0]),
        colour=["red", "blue", "", "red"],
        since=np.array(["2020-01-01", "2021-03-05", "2020-02-02", "2020-02-09"], "datetime64[D]"),
    )
    encoder = FeatureEncoder.fit(found, ("age", "colour", "since"), np.ones(4, dtype=bool)).encoder
    columns = Columns.of(encoder)
    assert columns.names == ("age", "colour", "since")
    assert columns.num_features == encoder.num_features
    for number, name in enumerate(encoder.feature_names):
        assert name.startswith(columns.names[int(columns.place[number])])
    features = torch.cat([columns.features(column) for column in range(3)])
    assert features.tolist() == list(range(encoder.num_features))


def test_folding_adds_up_what_belongs_together() -> None:
    columns = Columns(("a", "b", "c"), torch.tensor([0, 1, 1, 2, 1]))
    values = torch.tensor([[1.0, 10, 20, 5, 30], [0, 1, -1, 2, 4]])
    assert columns.fold(values).tolist() == [[1, 60, 5], [0, 4, 2]]
    assert columns.features(1).tolist() == [1, 2, 4]
    x = randn(6, 5)
    assert torch.equal(Columns.each(5).fold(x), x)


def test_a_table_without_columns_has_the_constant() -> None:
    columns = Columns.of(FeatureEncoder(()))
    assert (columns.names, columns.place.tolist()) == (("1",), [0])


def test_columns_of_runs() -> None:
    run = train(node_dataset())
    assert Columns.of_run(run).names == ("x[0]", "x[1]", "x[2]", "x[3]", "x[4]")
    data = planted_tables(0)
    columns = Columns.of_run(trained(data, epochs=1))
    assert columns.names == data.schema.encoder.names
    assert columns.num_features == data.dataset.num_features > len(columns)


def test_what_is_no_column() -> None:
    columns = Columns.each(3)
    assert columns.find(["x[2]", "x[0]"]) == [2, 0]
    with pytest.raises(ValueError, match=r"`columns` must be names of columns, 'x\[0\]', .*'age'"):
        columns.find(["age"])
    with pytest.raises(ValueError, match="those of the 4 features of `x`; got columns of 3"):
        columns.check(4)
    with pytest.raises(ValueError, match="`place` must hold numbers of the 2 columns; got 2"):
        Columns(("a", "b"), torch.tensor([0, 2]))
    with pytest.raises(ValueError, match="`place` must be an int64 tensor"):
        Columns(("a", "b"), torch.tensor([0.0, 1.0]))
