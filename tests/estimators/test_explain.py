"""Estimators say why: by the names of the table, down to its columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from graphs import generator
from torch_geometric.data import Data

from coopsheaf import GraphClassifier, GraphRegressor
from coopsheaf.analysis import explain_node

FAST = {"hidden_channels": 4, "num_layers": 1, "stalk_dim": 2, "epochs": 30, "lr": 0.05}


def frames(n: int = 120) -> tuple[Any, Any]:
    """Nodes whose names are numbers, but not their places; the column ``b`` decides."""
    import pandas as pd

    rng = np.random.default_rng(0)
    b, noise = rng.standard_normal((2, n))
    nodes = pd.DataFrame(
        {
            "id": np.arange(n)[::-1] + 10,
            "a": rng.standard_normal(n),
            "kind": rng.choice(list("xyz"), n),
            "b": b,
            "label": np.where(b + 0.15 * noise > 0, "yes", "no"),
            "size": 3 * b + 0.5 * noise,
        }
    )
    ends = rng.choice(nodes["id"], (2, 2 * n))
    return nodes, pd.DataFrame({"source": ends[0], "target": ends[1]})


def test_a_node_by_its_name_and_the_columns_of_its_table() -> None:
    nodes, edges = frames()
    model = GraphClassifier(**FAST).fit(nodes, edges, target="label", drop="size", id="id")
    assert model.score(nodes, edges) > 0.85
    size = torch.zeros(3)
    for row in range(0, 120, 8):
        name = int(nodes["id"][row])
        why = model.explain(nodes, edges, node=name)
        assert why.node == row
        assert set(why.columns.names) == {"a", "kind", "b"}
        size += why.columns.own.abs()
    assert why.columns.names[int(size.argmax())] == "b"
    assert model.explain(nodes, edges, node=str(name)).node == row
    assert model.explain(nodes, edges, node=5).node == 5  # nobody has that name
    with pytest.raises(ValueError, match="`node` must be a node, a name or a number"):
        model.explain(nodes, edges, node="nobody")


def test_numbers_and_arrays_without_names() -> None:
    nodes, edges = frames()
    model = GraphRegressor(**FAST).fit(nodes, edges, target="size", drop="label", id="id")
    far = int(
        nodes["b"].abs().argmax()
    )  # there is most to see where the value is far from the mean
    why = model.explain(nodes, edges, node=nodes["id"][far])
    assert why.node == far
    assert why.score.text() == "output 0"
    assert why.columns.names[why.columns.top()[0]] == "b"
    rng = generator(0)
    y = torch.arange(60) % 3
    x = torch.randn(60, 5, generator=rng) + 3 * torch.nn.functional.one_hot(y, 5).float()
    data = Data(x=x, edge_index=torch.randint(0, 60, (2, 180), generator=rng), y=y)
    model = GraphClassifier(**FAST).fit(data)
    why = model.explain(data, node=7, output=1)
    assert (why.node, why.score.output) == (7, 1)
    assert why.columns.names == tuple(f"x[{k}]" for k in range(5))
    dataset = model._read(data)
    want = explain_node(model.run_.model, dataset.x, dataset.edge_index, 7, output=1)
    assert torch.equal(why.attribution, want.attribution)


def test_before_fit() -> None:
    nodes, edges = frames()
    with pytest.raises(ValueError, match="not trained yet: call fit first"):
        GraphClassifier().explain(nodes, edges, node=1)
