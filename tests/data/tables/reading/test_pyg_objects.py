"""``Data`` and ``HeteroData`` of PyG as tables."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch_geometric.data import Data, HeteroData

from coopsheaf.data.errors import DataError
from coopsheaf.data.tables.load import load_tables

N = 12
INDEX = torch.stack([torch.arange(N), (torch.arange(N) + 1) % N])


def pyg(**change: Any) -> Data:
    x = torch.arange(2.0 * N).reshape(N, 2)
    return Data(**({"x": x, "edge_index": INDEX, "y": torch.arange(N) % 3} | change))


def masks(splits: int | None = None) -> dict[str, Any]:
    found = {f"{p}_mask": torch.arange(N) // 4 == i for i, p in enumerate(("train", "val", "test"))}
    return found if splits is None else {n: m[:, None].repeat(1, splits) for n, m in found.items()}


def test_data() -> None:
    data = load_tables(pyg(name="mine", edge_attr=torch.ones(N, 3)))
    assert data.encoder.names == ("x[0]", "x[1]")
    assert data.dataset.y.tolist() == [0, 1, 2] * 4
    assert torch.equal(data.dataset.edge_index, INDEX)
    assert data.dataset.x.mean(0).abs().max() < 1  # standardised
    notes = "\n".join(data.notes)
    assert "not used of the Data: 'name'" in notes
    assert "not used: 'edge_attr[0]', 'edge_attr[1]', 'edge_attr[2]'" in notes
    used = load_tables(pyg(edge_attr=torch.rand(N, 3)), edge_features=["edge_attr"])
    assert used.dataset.edge_attr.shape == (N, 3)


@pytest.mark.parametrize("splits", [None, 3])
def test_masks_are_the_split(splits: int | None) -> None:
    data = load_tables(pyg(**masks(splits)))
    assert data.dataset.train.shape == (splits or 1, N)
    assert data.dataset.val[-1].nonzero().flatten().tolist() == [4, 5, 6, 7]
    assert any("split: the masks of the data: 4/4/4 nodes" in note for note in data.notes)
    later = load_tables(pyg(**masks(splits)), like=data.schema)
    assert torch.equal(later.dataset.test, data.dataset.test)


def test_unknown_classes_and_weights() -> None:
    y = torch.arange(N) % 3
    y[5] = -1
    data = load_tables(pyg(y=y, edge_weight=torch.full((N,), 2.0)))
    assert data.class_names == ("0", "1", "2")
    assert data.dataset.y[5] == -1
    assert not (data.dataset.train | data.dataset.val | data.dataset.test)[0, 5]
    assert data.dataset.edge_weight.tolist() == [2.0] * N


def test_several_targets() -> None:
    labels = (torch.arange(3 * N).reshape(N, 3) % 2).float()
    data = load_tables(pyg(y=labels))
    assert (data.dataset.task, data.dataset.y.shape) == ("multilabel", (N, 3))
    data = load_tables(pyg(y=torch.rand(N, 2)))
    assert (data.dataset.task, data.dataset.y.shape) == ("regression", (N, 2))


def test_links_of_data_with_targets() -> None:
    many = torch.randint(0, N, (2, 60), generator=torch.Generator().manual_seed(0))
    data = load_tables(pyg(edge_index=many), task="link")
    assert data.encoder.names == ("x[0]", "x[1]")
    assert any("not used: 'y'" in note for note in data.notes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": None}, "`data` must have `x`"),
        ({"y": None}, "name the target"),
        ({"x": torch.zeros(0, 2), "y": torch.zeros(0)}, "`data` must have nodes"),
        ({"x": torch.full((N, 2), torch.nan)}, "`data.x` must be finite; row 0, column 0 is nan"),
        ({"y": torch.zeros(5)}, "`data.y` must have 12 rows, as many as `x`; got 5"),
        ({"edge_index": INDEX + 1}, r"`data.edge_index` must join nodes 0 to 11 and 0 to 11; edge 10 is \(11, 12\)"),
        ({"edge_index": INDEX - 1}, r"edge 0 is \(-1, 0\)"),
        ({"edge_index": INDEX.float()}, "`data.edge_index` must be whole numbers"),
        ({"edge_weight": torch.ones(3)}, "`edge_weight` must have 12 rows, as many as there are edges; got 3"),
        ({"edge_weight": -torch.ones(N)}, "a weight must be a finite number, not negative"),
        ({"train_mask": torch.ones(N, dtype=torch.bool)}, "the masks of train, val and test must be given together"),
        ({n: torch.zeros_like(m) for n, m in masks().items()}, "`data`: there must be labelled nodes for training"),
        ({n: m[:5] for n, m in masks().items()}, "the train mask must be boolean of shape"),
    ],
)  # fmt: skip
def test_bad_data(change: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_tables(pyg(**change))


# --- several types ---------------------------------------------------------------------------


def hetero() -> HeteroData:
    data = HeteroData()
    data["author"].x = torch.arange(6.0)[:, None]
    data["paper"].x = torch.arange(2.0 * N).reshape(N, 2)
    data["paper"].y = torch.arange(N) % 2
    data["venue"].num_nodes = 2
    data["author", "writes", "paper"].edge_index = torch.tensor([[0, 5], [0, 11]])
    data["paper", "in", "venue"].edge_index = torch.tensor([[3], [1]])
    data["paper", "in", "venue"].edge_weight = torch.ones(1)
    return data


def test_types_become_one_graph() -> None:
    data = load_tables(hetero())
    assert data.ids[0] == "author/0"
    assert data.ids[6] == "paper/0"
    assert data.dataset.edge_index.tolist() == [[0, 5, 9], [6, 17, 19]]
    assert data.encoder.names == ("node type", "author.x[0]", "paper.x[0]", "paper.x[1]")
    assert data.dataset.y.tolist() == [-1] * 6 + [0, 1] * 6 + [-1] * 2
    notes = "\n".join(data.notes)
    assert "one graph is made of 3 types of nodes ('author', 'paper', 'venue')" in notes
    assert "not used of the HeteroData: 'paper in venue.edge_weight'" in notes
    later = load_tables(hetero(), like=data.schema)
    assert torch.equal(later.dataset.x, data.dataset.x)
    typed = load_tables(hetero(), edge_features=["edge type"])
    assert typed.dataset.edge_attr.shape[0] == 3


@pytest.mark.parametrize("splits", [None, 2])
def test_masks_of_the_type_with_targets(splits: int | None) -> None:
    data = hetero()
    for name, mask in masks(splits).items():
        data["paper"][name] = mask
    found = load_tables(data).dataset
    assert found.train.shape == (splits or 1, N + 8)
    assert found.val[-1].nonzero().flatten().tolist() == [10, 11, 12, 13]


def test_several_targets_of_a_type() -> None:
    data = hetero()
    data["paper"].y = torch.rand(N, 2)
    found = load_tables(data).dataset
    assert (found.task, found.y.shape) == ("regression", (N + 8, 2))
    assert found.y[0].isnan().all()


def test_bad_types() -> None:
    data = hetero()
    data["author"].y = torch.zeros(6)
    with pytest.raises(
        DataError, match="`data` must have targets `y` for one type of nodes; got 'author', 'paper'"
    ):
        load_tables(data)
    data = hetero()
    data["author", "writes", "paper"].edge_index = torch.tensor([[6], [0]])
    with pytest.raises(
        DataError, match=r"edge_index` must join nodes 0 to 5 and 0 to 11; edge 0 is \(6, 0\)"
    ):
        load_tables(data)
    data = hetero()
    data["paper"].y = torch.zeros(3)
    with pytest.raises(DataError, match=r"`data\['paper'\].y` must have 12 rows"):
        load_tables(data)
    with pytest.raises(DataError, match="`data` must have nodes"):
        load_tables(HeteroData())
