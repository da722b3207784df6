"""Geom-GCN against a loop over nodes and edges, and on the published relations."""

from __future__ import annotations

import pytest
import torch
from allocations import LargestTensor
from graphs import generator, randn
from published import REAL_DATA, needs_real_data
from torch import Tensor
from torch.testing import assert_close

from coopsheaf import Graph, make_model
from coopsheaf.data import load_dataset
from coopsheaf.data.dataset import NodeDataset
from coopsheaf.train import train
from coopsheaf.zoo.geom_gcn import GeomGCN

N, R = 8, 3
EDGES = torch.randint(0, N - 1, (2, 24), generator=generator(6)).unique(dim=1)
KIND = torch.randint(0, R, (EDGES.shape[1],), generator=generator(2))


def one_hot(kind: Tensor = KIND) -> Tensor:
    return torch.nn.functional.one_hot(kind, R).double()


def slow(model: GeomGCN, x: Tensor, edges: Tensor, kind: Tensor) -> Tensor:
    """As the authors tell it: a merged graph in which every pair is in one division, loops last."""
    merged = {(j, i): int(r) for (j, i), r in zip(edges.T.tolist(), kind, strict=True)}
    divisions = int(model.convs[0].divisions)
    for i in range(len(x)):
        merged[i, i] = divisions
    degree = [sum(target == i for _, target in merged) for i in range(len(x))]
    for t, conv in enumerate(model.convs):
        rows = []
        for i in range(len(x)):
            messages = [torch.zeros(conv.out_channels).double() for _ in range(divisions + 1)]
            for (j, target), r in merged.items():
                if target == i:
                    sent = x[j] @ conv.weight[r] / degree[j] ** 0.5
                    messages[r] = messages[r] + sent
            messages = [message / degree[i] ** 0.5 for message in messages]
            last = t == model.num_layers - 1
            rows.append(sum(messages) / len(messages) if last else torch.cat(messages).relu())
        x = torch.stack(rows)
    return x


@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_the_network_is_what_its_authors_tell(num_layers: int) -> None:
    torch.manual_seed(0)
    model = GeomGCN(4, 5, num_layers, 3, edge_channels=R).double().eval()
    x = randn(N, 4)
    assert (EDGES[0] == EDGES[1]).any()
    left, right = x.clone().requires_grad_(), x.clone().requires_grad_()
    got, want = model(left, EDGES, edge_attr=one_hot()), slow(model, right, EDGES, KIND)
    assert_close(got, want, rtol=0, atol=1e-12)
    probe = randn(N, 3, seed=4)
    found = [torch.autograd.grad((out * probe).sum(), leaf) for out, leaf in ((got, left), (want, right))]  # fmt: skip
    assert_close(found[0], found[1], rtol=0, atol=1e-11)


def test_without_relations_there_are_neighbours_and_the_node() -> None:
    torch.manual_seed(0)
    model, x = GeomGCN(4, 5, 2, 3).double().eval(), randn(N, 4)
    assert_close(model(x, EDGES), slow(model, x, EDGES, torch.zeros_like(KIND)))


def test_a_relation_is_its_weights_and_nothing_else() -> None:
    """To name the divisions otherwise is to exchange their weights; a weight of 0 is no edge."""
    torch.manual_seed(0)
    model, x = GeomGCN(4, 5, 1, 3, edge_channels=R).double().eval(), randn(N, 4)
    want = model(x, EDGES, edge_attr=one_hot())
    attr = one_hot()[:, [2, 0, 1]]
    assert not torch.allclose(model(x, EDGES, edge_attr=attr), want)
    with torch.no_grad():
        model.convs[0].weight.copy_(model.convs[0].weight[[2, 0, 1, 3]])
    assert_close(model(x, EDGES, edge_attr=attr), want)


def test_features_of_edges_are_checked() -> None:
    model, x = GeomGCN(4, 5, 2, 3, edge_channels=R).double(), randn(N, 4)
    with pytest.raises(ValueError, match=r"`edge_attr` must have shape \(m, 3\): GeomGCN was"):
        model(x, EDGES)
    with pytest.raises(ValueError, match="`edge_attr` must have shape"):
        model(x, EDGES, edge_attr=one_hot()[:, :2])


def test_nothing_has_the_size_of_edges_times_width() -> None:
    n, m, width = 200, 6000, 24
    graph = Graph(torch.randint(0, n, (2, m), generator=generator(2)), n)
    model = GeomGCN(width, width, 2, width, edge_channels=R)
    x, attr = randn(n, width).float().requires_grad_(), torch.rand(m, R)
    with LargestTensor() as largest:
        model(x, graph, edge_attr=attr).sum().backward()
    assert largest.numel < m * width // 4, largest.where


@needs_real_data
def test_it_trains_on_the_published_relations() -> None:
    data = load_dataset("texas", REAL_DATA, relations="poincare")
    assert isinstance(data, NodeDataset)
    run = train(data, "geom-gcn", settings={"train.epochs": 30, "train.lr": 0.05})
    assert run.model.edge_channels == 8
    assert run.model.convs[0].weight.shape == (9, 1703, 32)
    again = make_model("geom-gcn", data.num_features, 5, edge_channels=8)
    assert sum(p.numel() for p in again.parameters()) == 9 * 32 * (1703 + 9 * 5)
