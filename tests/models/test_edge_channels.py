"""A CSNN whose learners see features of edges; networks that cannot use them refuse."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from graphs import ODD_GRAPHS, generator, randn
from nn.test_edge_features import loop_means
from torch import Tensor, nn
from torch.func import functional_call, grad, jacrev
from torch.testing import assert_close

from coopsheaf import CSNN, Graph
from coopsheaf.models.network import Network
from coopsheaf.models.registry import MODELS, make_model, make_settings
from coopsheaf.nn import edge_means

K, F_IN, OUT = 2, 5, 3
LEARNERS = ("mlp", "sage-node-norm", "sage-embedded")
EXACT = {"rtol": 0, "atol": 1e-12}


def csnn(pe: int = 0, k: int = K, layers: int = 2, **options: Any) -> CSNN:
    torch.manual_seed(0)
    model = CSNN(F_IN, 4, layers, OUT, stalk_dim=2, pe_channels=pe, edge_channels=k, **options)
    return model.double().eval()


def directed(n: int = 9, m: int = 14, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Features, edges with loops and parallel ones, features of edges; node n - 1 is isolated."""
    edges = torch.randint(0, n - 1, (2, m), generator=generator(seed))
    edges[:, 0] = 1
    edges[:, 1] = edges[:, 2]
    return randn(n, F_IN, seed=seed), edges, randn(m, K, seed=seed + 1)


@pytest.mark.parametrize("name", ODD_GRAPHS)
@pytest.mark.parametrize("learner", LEARNERS)
def test_it_is_the_network_that_is_told_the_means_of_a_loop(name: str, learner: str) -> None:
    """Values and gradients; features of nodes, given as ``pe``, are what the means are to be."""
    n, edges = ODD_GRAPHS[name]
    x, attr = randn(n, F_IN), randn(edges.shape[1], K, seed=1).requires_grad_()
    model, told = csnn(learner=learner), csnn(2 * K, 0, learner=learner)
    told.load_state_dict(model.state_dict())  # the same names, the same shapes
    want = told(x, edges, pe=torch.cat(loop_means(edges, attr, n), dim=1))
    got = model(x, edges, edge_attr=attr)
    assert_close(got, want, **EXACT)
    assert_close(model(x, edges, edge_attr=edge_means(Graph(edges, n), attr)), want, **EXACT)
    if attr.numel():
        pairs = [torch.autograd.grad(y.square().sum(), attr)[0] for y in (got, want)]
        assert_close(*pairs, **EXACT)


def test_the_order_of_the_edges_does_not_count() -> None:
    x, edges, attr = directed()
    order, model = torch.randperm(edges.shape[1], generator=generator(3)), csnn()
    weight = torch.rand(edges.shape[1], generator=generator(4)).double()
    want = model(x, edges, weight, edge_attr=attr)
    assert_close(model(x, edges[:, order], weight[order], edge_attr=attr[order]), want, **EXACT)
    assert not torch.allclose(model(x, edges, weight, edge_attr=attr[order]), want)


def test_both_ends_count_and_both_differ() -> None:
    x, edges, attr = directed()
    model = csnn(learner="mlp")
    base = model(x, edges, edge_attr=attr)
    means = edge_means(Graph(edges, 9), attr)
    for changed in (means._replace(into=-means.into), means._replace(out=-means.out)):
        assert not torch.allclose(model(x, edges, edge_attr=changed), base)


def test_beside_positional_encodings() -> None:
    x, edges, attr = directed()
    model, told, pe = csnn(3), csnn(3 + 2 * K, 0), randn(9, 3, seed=5)
    told.load_state_dict(model.state_dict())
    beside = torch.cat([pe, *loop_means(edges, attr, 9)], dim=1)
    assert_close(model(x, edges, pe=pe, edge_attr=attr), told(x, edges, pe=beside), **EXACT)
    with pytest.raises(ValueError, match=r"`pe` must have shape \(n, 3\); got None"):
        model(x, edges, edge_attr=attr)
    with pytest.raises(ValueError, match=r"`pe` must have shape \(n, 3\); got \(9, 4\)"):
        model(x, edges, pe=randn(9, 4), edge_attr=attr)


def test_a_batch_of_graphs_gives_what_its_graphs_give() -> None:
    model = csnn(pool="mean")
    graphs = [directed(seed=seed) for seed in range(3)]
    alone = torch.cat([model(x, edges, edge_attr=attr) for x, edges, attr in graphs])
    x, attr = torch.cat([g[0] for g in graphs]), torch.cat([g[2] for g in graphs])
    edges = torch.cat([g[1] + 9 * k for k, g in enumerate(graphs)], dim=1)
    batch = torch.arange(3).repeat_interleave(9)
    assert_close(model(x, edges, edge_attr=attr, batch=batch, batch_size=3), alone, **EXACT)


@pytest.mark.thorough
def test_it_compiles_as_a_whole_and_bears_transforms() -> None:
    x, edges, attr = directed()
    model, graph = csnn(layers=1), Graph(edges, 9)
    want = model(x, graph, edge_attr=attr)
    torch.compiler.reset()
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    assert_close(compiled(x, graph, edge_attr=attr), want, **EXACT)
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    assert_close(compiled(x, graph, edge_attr=edge_means(graph, attr)), want, **EXACT)

    def score(attr: Tensor) -> Tensor:
        return model(x, graph, edge_attr=attr).square().sum()

    leaf = attr.clone().requires_grad_()
    (by_hand,) = torch.autograd.grad(score(leaf), leaf)
    assert_close(grad(score)(attr), by_hand, **EXACT)
    jacobian = jacrev(lambda a: model(x, graph, edge_attr=a))(attr)  # (n, out, m, k)
    assert_close((2 * want[..., None, None] * jacobian).sum((0, 1)), by_hand, **EXACT)
    state = dict(model.named_parameters())
    called = functional_call(model, state, (x, graph), {"edge_attr": attr})
    assert_close(called, want, **EXACT)


def test_checkpointed_layers_and_autocast_bear_them() -> None:
    x, edges, attr = directed()
    plain, kept = csnn().train(), csnn(checkpoint_layers=True).train()
    grads = []
    for model in (plain, kept):
        leaf = attr.clone().requires_grad_()
        model(x, edges, edge_attr=leaf).square().sum().backward()
        grads.append(leaf.grad)
    assert_close(*grads, **EXACT)
    model = csnn().float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = model(x.float(), edges, edge_attr=attr.float())
    assert_close(out.float(), model(x.float(), edges, edge_attr=attr.float()), rtol=0.1, atol=0.1)


def test_what_does_not_fit_is_refused_in_one_line() -> None:
    x, edges, attr = directed()
    model = csnn()
    wrong: list[tuple[Any, str]] = [
        (
            None,
            r"`edge_attr` must have shape \(m, 2\): CSNN was built with edge_channels=2; got No",
        ),
        (attr[1:], r"`edge_attr` must have shape \(m, 2\) with m = 14; got \(13, 2\)"),
        (attr[:, :1], r"`edge_attr` must have shape \(m, 2\) with m = 14; got \(14, 1\)"),
        (attr.float(), "`edge_attr` and `x` must have the same dtype"),
        (attr.long(), "`edge_attr` must have a floating point dtype"),
        (attr.where(attr < 1, torch.inf), "`edge_attr` must be finite"),
        (
            edge_means(Graph(edges, 9), attr).at(torch.arange(8)),
            r"`edge_attr.into` must have shape",
        ),
        (edge_means(Graph(edges, 9), attr.float()), "`edge_attr.into` and `x` must have the same"),
    ]
    for value, message in wrong:
        with pytest.raises(ValueError, match=message) as caught:
            model(x, edges, edge_attr=value)
        assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="CSNN was built without edge_channels"):
        csnn(k=0)(x, edges, edge_attr=attr)
    with pytest.raises(ValueError, match="`edge_channels` must be 0 where no map is learned"):
        csnn(orthogonal="identity", scale="unit")


def test_rows_are_in_the_order_of_the_entries_of_a_sparse_matrix() -> None:
    """Otherwise every edge would silently have the features of another."""
    x, edges, model = randn(4, F_IN), torch.tensor([[3, 0, 1], [0, 2, 1]]), csnn()
    attr = randn(3, K)
    raw = torch.sparse_coo_tensor(edges.flip(0), torch.ones(3), (4, 4), check_invariants=True)
    want = model(x, edges, edge_attr=attr)
    order = (edges[1] * 4 + edges[0]).argsort()  # row by row
    assert_close(model(x, raw.coalesce(), edge_attr=attr[order]), want, **EXACT)
    for call in (lambda: model(x, raw, edge_attr=attr), lambda: edge_means(raw, attr)):
        with pytest.raises(ValueError, match=r"`edge_attr` is in the order of .* call .coalesce"):
            call()


def test_it_is_a_size_of_the_data_and_no_setting() -> None:
    assert "edge_channels" not in make_settings("csnn").__dataclass_fields__
    able = [name for name, info in MODELS.items() if info.edge_attr]
    longer = ["gine", "gatedgcn", "gps", "san", "exphormer", "graph-vit", "graph-mixer"]
    assert able == ["csnn", "csnn-random", "geom-gcn", *longer]
    names = [[key for key, _ in csnn(k=k).named_parameters()] for k in (0, K)]
    assert names[0] == names[1]
    assert repr(csnn()).endswith("semantics='paper', edge_channels=2)")


def test_models_that_cannot_say_which_can() -> None:
    assert make_model("csnn", F_IN, OUT, edge_channels=4).edge_channels == 4
    message = (
        r"^gcn cannot use edge features \(4 columns\); leave them out or choose csnn or csnn-r"
    )
    with pytest.raises(ValueError, match=message):
        make_model("gcn", F_IN, OUT, edge_channels=4)
    with pytest.raises(ValueError, match=r"^csnn-identity cannot use edge features"):
        make_model("csnn-identity", F_IN, OUT, edge_channels=4)


class Own(Network):
    """Adds up what its edges have: a network that takes the features row by row."""

    def __init__(self, in_channels: int, out_channels: int = 1, *, edge_channels: int = 0) -> None:
        super().__init__(in_channels, out_channels)
        self.edge_channels, self.embedding_channels = edge_channels, in_channels
        self.lin = nn.Linear(edge_channels or 1, in_channels)
        self.readout = nn.Linear(in_channels, out_channels)

    def embed(self, x, graph, *, batch=None, pe=None, edge_weight=None, edge_attr=None):  # type: ignore[no-untyped-def]
        return x if edge_attr is None else x.index_add(0, graph.target, self.lin(edge_attr))


def test_a_network_of_ones_own_is_given_rows() -> None:
    x, edges, attr = directed()
    own, without = Own(F_IN, edge_channels=K).double(), Own(F_IN).double()
    want = own.readout(x.index_add(0, edges[1], own.lin(attr)))
    assert_close(own(x, edges, edge_attr=attr), want, **EXACT)
    assert without(x, edges).shape == (9, 1)  # its `embed` need not know of them
    with pytest.raises(ValueError, match=r"`edge_attr` must be a torch.Tensor; got EdgeMeans"):
        own(x, edges, edge_attr=edge_means(Graph(edges, 9), attr))


def accuracy(k: int) -> float:
    """On nodes that are all alike but for the features of the edges into them."""
    rng, n = generator(0), 120
    edges = torch.randint(0, n, (2, 4 * n), generator=rng)
    y = torch.randint(0, 2, (n,), generator=rng)
    noise = torch.randn(4 * n, 1, generator=rng)
    attr = torch.cat([2.0 * y[edges[1], None] - 1 + 0.5 * noise, noise], dim=1)
    x, graph = torch.ones(n, 1), Graph(edges, n)
    seen = {"edge_attr": attr} if k else {}
    torch.manual_seed(0)
    model = CSNN(1, 4, 1, 2, stalk_dim=2, edge_channels=k)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(60):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x, graph, **seen)[:60], y[:60])
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        right = model(x, graph, **seen)[60:].argmax(1) == y[60:]
    return right.float().mean().item()


def test_a_label_that_only_the_edges_know_is_learned_with_them_and_not_without() -> None:
    assert accuracy(k=2) > 0.9
    assert accuracy(k=0) < 0.65
