"""Neural Sheaf Diffusion: what is around its layers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from coboundaries import atlas, symmetric_weight
from graphs import randn
from laws import EXACT
from torch.testing import assert_close

from coopsheaf import Graph
from coopsheaf.models.registry import make_settings
from coopsheaf.sheaves.operator import Operator
from coopsheaf.zoo.nsd.network import NSD

N, EDGES = atlas()[-2]
F_IN, H, OUT = 5, 4, 3


def network(**settings: Any) -> NSD:
    torch.manual_seed(0)
    model = NSD(F_IN, H, 3, OUT, stalk_dim=2, **settings).double().eval()
    for epsilon in model.epsilons:
        torch.nn.init.normal_(epsilon)
    return model


@pytest.mark.parametrize("second_linear", [False, True])
@pytest.mark.parametrize("maps", ["diagonal", "orthogonal", "general", "identity"])
def test_layers_follow_the_equation(maps: str, second_linear: bool) -> None:
    model = network(maps=maps, second_linear=second_linear, add_lp=True)
    x, weight = randn(N, F_IN), symmetric_weight(EDGES)
    state = F.elu(model.encoder(x))
    state = (model.second(state) if second_linear else state).view(N, 3, H)
    for conv, epsilon in zip(model.convs, model.epsilons, strict=True):
        state = (1 + epsilon.tanh()) * state - F.elu(conv(state, EDGES, weight))
    want = model.readout(state.flatten(1))
    assert_close(model(x, EDGES, edge_weight=weight), want, **EXACT)


def test_maps_can_be_learned_once() -> None:
    model = network(maps="general", maps_once=True)
    assert len(model.map_learners()) == 1
    x = randn(N, F_IN)
    state = F.elu(model.encoder(x)).view(N, 2, H)
    laplacian = model.convs[0].laplacian(state, EDGES)
    for conv, epsilon in zip(model.convs, model.epsilons, strict=True):
        y = laplacian.mv(conv.left.weight @ conv.right(state))
        state = (1 + epsilon.tanh()) * state - F.elu(y)
    assert_close(model(x, EDGES), model.readout(state.flatten(1)), **EXACT)


def test_dropout_spares_the_residual_and_the_first_learner(monkeypatch) -> None:
    """Dropout that erases everything: the layers then add nothing, and the first sheaf is seen."""
    seen = []
    model = network(maps="diagonal", dropout=0.5)
    model.train()

    def erase(x: torch.Tensor, p: float, training: bool) -> torch.Tensor:
        return 0 * x if training and p > 0 else x

    monkeypatch.setattr(F, "dropout", erase)
    for conv in model.convs:
        learn = conv.laplacian

        def spy(x: torch.Tensor, *rest: Any, learn: Any = learn) -> Operator:
            seen.append(float(x.detach().abs().sum()))
            return learn(x, *rest)

        monkeypatch.setattr(conv, "laplacian", spy)
    # The encoder's output is erased as well: put something behind it.
    model.second = torch.nn.Linear(2 * H, 2 * H).double()
    start = model.second.bias.view(1, 2, H).expand(N, 2, H)
    for epsilon in model.epsilons:
        start = (1 + epsilon.tanh()) * start
    assert_close(model(randn(N, F_IN), EDGES), model.readout(start.flatten(1)), **EXACT)
    assert seen[0] > 0
    assert seen[1:] == [0.0, 0.0]


CONFIGS = {
    "diag": (make_settings("nsd-diag"), 3),
    "orthogonal": (make_settings("nsd-orthogonal"), 3),
    "general": (make_settings("nsd-general"), 9),
}


@pytest.mark.parametrize("fixed", [0, 1, 2])
@pytest.mark.parametrize("name", CONFIGS)
def test_parameters_are_counted_by_a_formula(name: str, fixed: int) -> None:
    defaults, numbers = CONFIGS[name]
    layers, h, d = 3, 8, 3 + fixed
    config = type(defaults)(
        hidden_channels=h,
        num_layers=layers,
        add_lp=fixed > 0,
        add_hp=fixed > 1,
        sparse_learner=fixed == 1,
        second_linear=fixed == 2,
    )
    c = d * h
    learner = 2 * (h if fixed == 1 else c) * numbers + 2 * c * (name == "orthogonal")
    want = F_IN * c + c + layers * (d * d + h * h + d + learner) + c * OUT + OUT
    want += (c * c + c) * (fixed == 2)
    model = config.build(F_IN, OUT, graph_level=False)
    assert sum(parameter.numel() for parameter in model.parameters()) == want


@pytest.mark.parametrize(
    "config", [make_settings("nsd-random"), make_settings("csnn-random", num_layers=2)]
)
def test_random_maps_are_not_trained(config) -> None:
    torch.manual_seed(0)
    model = config.build(F_IN, OUT, graph_level=False)
    frozen = {key for key, parameter in model.named_parameters() if not parameter.requires_grad}
    assert frozen
    assert all("learner" in key for key in frozen)
    assert {key for key, _ in model.named_parameters() if "learner" in key} == frozen
    learners = model.map_learners()
    assert sum(len(list(learner.parameters())) for learner in learners) == len(frozen)
    before = {key: value.clone() for key, value in model.named_parameters()}
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    model(torch.randn(N, F_IN), EDGES).square().sum().backward()
    optimizer.step()
    for key, value in model.named_parameters():
        assert torch.equal(before[key], value) == (key in frozen), key
    model.reset_parameters()  # a new draw, and still not trained
    assert all(
        not parameter.requires_grad for key, parameter in model.named_parameters() if key in frozen
    )


def test_identity_maps_leave_nothing_to_learn() -> None:
    torch.manual_seed(0)
    model = make_settings("nsd-identity", hidden_channels=H).build(F_IN, OUT, graph_level=False)
    assert model.map_learners() == []
    torch.manual_seed(0)
    cooperative = make_settings("csnn-identity", hidden_channels=H).build(
        F_IN, OUT, graph_level=False
    )
    assert (
        sum(p.numel() for learner in cooperative.map_learners() for p in learner.parameters()) == 0
    )
    with pytest.raises(ValueError, match=r"`orthogonal` must be 'identity'.*got 'cayley'"):
        make_settings("csnn-identity", orthogonal="cayley")
    with pytest.raises(ValueError, match=r"`scale` must be 'unit'.*got 'exp'"):
        make_settings("csnn-identity", scale="exp")


def test_settings_say_none_in_words() -> None:
    model = make_settings("nsd-diag", normalization="none").build(F_IN, OUT, graph_level=False)
    assert model.convs[0].normalization is None
    with pytest.raises(ValueError, match="`normalization` must be one of 'augmented', 'degree'"):
        make_settings("nsd-diag", normalization="plain").build(F_IN, OUT, graph_level=False)


def test_self_loops_are_refused() -> None:
    model, x = network(), randn(3, F_IN)
    with pytest.raises(ValueError, match=r"must not hold self-loops.*data\.self_loops=remove"):
        model(x, torch.tensor([[0, 1, 2], [1, 0, 2]]))
    torch.compiler.reset()
    torch.manual_seed(0)
    small = NSD(F_IN, H, 1, OUT, maps="identity").double()
    compiled = torch.compile(small, backend="aot_eager", fullgraph=True)
    with pytest.raises(RuntimeError, match="must not hold self-loops"):
        compiled(x, Graph(torch.tensor([[0, 1, 2], [1, 0, 2]])))


@pytest.mark.parametrize("maps", ["diagonal", "orthogonal", "general", "identity"])
def test_half_precision_is_close(maps: str) -> None:
    model = network(maps=maps, add_hp=True)
    x = randn(N, F_IN)
    want = model(x, EDGES)
    model, x = model.float(), x.float()
    with torch.autocast("cpu", torch.bfloat16):
        got = model(x, EDGES)
    assert_close(got.double(), want, rtol=0.1, atol=0.1)
    got = model.bfloat16()(x.bfloat16(), EDGES)
    assert got.dtype == torch.bfloat16
    assert_close(got.double(), want, rtol=0.1, atol=0.1)


def test_repr() -> None:
    assert repr(network(add_lp=True)) == (
        "NSD(5, 4, num_layers=3, out_channels=3, stalk_dim=2 + 1, "
        "maps=OrthogonalMaps(Householder(2)))"
    )


def test_the_identity_sheaf_network_is_nsd_with_identities() -> None:
    """And its operator is the normalised Laplacian of the graph, once per stalk coordinate."""
    small = {"hidden_channels": H, "stalk_dim": 2}
    isn, plain = (
        make_settings(name, **small).build(F_IN, OUT).double().eval()
        for name in ("isn", "nsd-identity")
    )
    plain.load_state_dict(isn.state_dict())
    x = randn(N, F_IN)
    assert_close(isn(x, EDGES), plain(x, EDGES), **EXACT)
    adjacency = torch.zeros(N, N).double()
    adjacency[EDGES[1], EDGES[0]] = 1
    degree = adjacency.sum(1)
    root = torch.diag((degree + 1).rsqrt())
    want = torch.kron(root @ (torch.diag(degree) - adjacency) @ root, torch.eye(2).double())
    assert_close(isn.convs[0].laplacian(randn(N, 2, H), EDGES).to_dense(), want, **EXACT)
