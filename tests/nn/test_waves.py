"""Waves through a CSNN: against the equation, their energy, their way back, and where they grow."""

from __future__ import annotations

import pytest
import torch
from analysis.cooperation import fixed
from graphs import ODD_GRAPHS, randn
from torch import Tensor
from torch.testing import assert_close

from coopsheaf import CSNN, Graph
from coopsheaf.nn.waves import Swing
from coopsheaf.sheaves import propagate
from coopsheaf.sheaves.diffusion import paper_diffusion
from coopsheaf.sheaves.maps import ConformalMaps
from coopsheaf.sheaves.operator import Operator
from coopsheaf.train.recipe import default_recipe

N, EDGES = ODD_GRAPHS["random-directed"]
GRAPH = Graph(EDGES, N)
RING = Graph(torch.tensor([[k, (k + 1) % 7] for k in range(7)]).T.repeat(1, 1), 7)
BOTH = Graph(torch.cat([RING.edge_index, RING.edge_index.flip(0)], dim=1), 7)


def build(**options: object) -> CSNN:
    torch.manual_seed(0)
    return CSNN(5, 4, 3, 3, stalk_dim=2, step="wave", **options).double()


def identity(x: Tensor) -> Tensor:
    return x


def equal_maps(scale: float = 1.0) -> Operator:
    """The paper's operator with S = T, on a ring whose edges go both ways."""
    turns = torch.linalg.qr(randn(7, 3, 3)).Q
    maps = ConformalMaps(torch.full((7,), scale, dtype=torch.float64), turns)
    return paper_diffusion(BOTH, maps, maps)


def swing(operator: Operator, x: Tensor, steps: int, step_size: float) -> tuple[Tensor, Tensor]:
    wave = Swing(step_size, identity, 0.0)
    for _ in range(steps):
        x = wave.step(x, operator.mv(x), torch.ones((), dtype=x.dtype))
    assert wave.velocity is not None
    return x, wave.velocity


@pytest.mark.parametrize("semantics", ["paper", "released", "messages"])
def test_a_network_is_the_equation_written_out(semantics: str) -> None:
    model = build(semantics=semantics, step_size=0.7, norm="layer").eval()
    with torch.no_grad():
        for k, epsilon in enumerate(model.epsilons):
            epsilon.fill_(0.3 * k - 0.2)
    features = randn(N, 5)
    x, v = model.encode(features), torch.zeros(N, 2, 4, dtype=torch.float64)
    for conv, epsilon, norm in zip(model.convs, model.epsilons, model.norms, strict=True):
        v = v + torch.tanh(epsilon) * v - 0.7 * torch.nn.functional.gelu(conv(x, GRAPH))
        x = norm((x + 0.7 * v).flatten(1)).view_as(x)
    assert_close(model(features, GRAPH), model.readout(x.flatten(1)))
    assert_close(model(features, GRAPH), model(features, GRAPH))  # at rest when a pass begins


def test_linear_steps_are_those_of_waves() -> None:
    operator, x = equal_maps(), randn(7, 3, 2)
    expected = propagate(operator, x, 9, 0.8)
    assert_close(swing(operator, x, 9, 0.8), tuple(expected))


def test_energy_is_kept_and_the_way_back_leads_home() -> None:
    operator, x, s = equal_maps(1.7), randn(7, 3, 2), 0.9

    def energy(x: Tensor, v: Tensor) -> Tensor:
        pushed = operator.mv(x)
        return (v * v).sum() + (x * pushed).sum() - s * (v * pushed).sum()

    start = energy(x, torch.zeros_like(x))
    there, v = swing(operator, x, 400, s)
    assert_close(energy(there, v), start, rtol=1e-10, atol=1e-10)
    before = there - s * v  # X of the step before; the same steps, turned round
    for _ in range(399):
        there, before = before, 2 * before - there - s * s * operator.mv(before)
    assert_close(before, x, rtol=1e-8, atol=1e-8)


def test_the_largest_step_is_stable_where_maps_are_equal_and_a_larger_one_is_not() -> None:
    large, x = equal_maps(30.0), randn(7, 3, 2)  # its spectrum comes near to 4
    top = torch.linalg.eigvals(large.to_dense()).real.max()
    assert 3.5 < top < 4
    assert swing(large, x, 2000, 1.0)[0].abs().max() < 200
    assert swing(large, x, 2000, 1.06)[0].abs().max() > 1e6


def test_messages_grow_even_where_maps_are_equal() -> None:
    model = build(semantics="messages")
    turns = torch.linalg.qr(randn(7, 2, 2)).Q
    maps = ConformalMaps(torch.ones(7, dtype=torch.float64), turns)
    operator = model.convs[0].diffusion(BOTH, maps, maps, None)  # type: ignore[union-attr, operator]
    values = torch.linalg.eigvals(operator.to_dense()).real
    assert values.min() < -0.1 < 0.1 < values.max()
    assert swing(operator, randn(7, 2, 2), 200, 1.0)[0].abs().max() > 1e6


def test_a_node_that_hears_nothing_stays_where_it_is() -> None:
    maps = ConformalMaps(torch.ones(N, dtype=torch.float64), torch.eye(2).double().expand(N, 2, 2))
    deaf = ConformalMaps(maps.scale.clone().index_fill_(0, torch.tensor([2]), 0.0), maps.orthogonal)
    model = fixed([(maps, deaf)] * 2, semantics="messages", step="wave")
    x = randn(N, model.in_channels)
    out = list(model.layer_outputs(x, GRAPH))
    assert_close(out[-1][2], model.encode(x).flatten(1)[2])


def test_parameters_and_hashes_stay_what_they_are() -> None:
    assert set(build().state_dict()) == set(CSNN(5, 4, 3, 3, stalk_dim=2).state_dict())
    plain = default_recipe("csnn", "texas")
    assert not {"step", "step_size"} & set(plain.to_mapping()["model"])
    assert plain.set("model.step=wave").hash() != plain.hash()
    assert repr(build()).endswith("semantics='paper', step='wave')")


def test_dropout_leaves_the_features_themselves_whole() -> None:
    model = build(dropout=0.5, left_weights=False, right_weights=False).train()
    torch.manual_seed(3)
    x = randn(N, 5)
    first = next(iter(model.layer_outputs(x, GRAPH)))
    torch.manual_seed(3)
    from coopsheaf.nn.dropout import dropout

    y = model.encode(x)
    pushed = dropout(model.convs[0](dropout(y, 0.5, True), GRAPH), 0.5, True)
    assert_close(first, (y - torch.nn.functional.gelu(pushed)).flatten(1))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"step": "verlet"}, "`step` must be one of 'euler', 'wave'; got 'verlet'"),
        ({"step_size": 1.5}, "`step_size` must be above 0 and at most 1, beyond which"),
        ({"step_size": 0.0}, "`step_size` must be above 0 and at most 1, beyond which"),
        ({"step": "euler", "step_size": 0.5}, "`step_size` goes with `step` 'wave'; got 0.5 alone"),
        ({"block": "prenorm"}, "`block` does not go with `step` 'wave'; leave it out"),
        ({"own_dropout": 0.1}, "`own_dropout` does not go with `step` 'wave'; leave it out"),
        ({"checkpoint_layers": True}, "`checkpoint_layers` does not go with `step` 'wave'"),
    ],
)
def test_bad_arguments(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        CSNN(5, 4, 3, 3, stalk_dim=2, **({"step": "wave"} | options))


@pytest.mark.parametrize("semantics", ["paper", "messages"])
def test_it_compiles_in_one_graph(semantics: str) -> None:
    model, x = build(semantics=semantics, norm="layer").eval(), randn(N, 5).requires_grad_()
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    expected, got = model(x, GRAPH), compiled(x, GRAPH)
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-10)
    # The first ε acts on a velocity that is still zero.
    leaves = [x, *(p for name, p in model.named_parameters() if name != "epsilons.0")]
    both = [torch.autograd.grad(out.sum(), leaves) for out in (expected, got)]
    for a, b in zip(*both, strict=True):
        torch.testing.assert_close(b, a, rtol=0, atol=1e-10)
