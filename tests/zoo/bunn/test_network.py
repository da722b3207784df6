"""The Bundle Neural Network."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from graphs import bidirected, path, randn
from torch import nn
from torch.testing import assert_close
from torch_geometric.data import Batch, Data

from coopsheaf import Graph
from coopsheaf.models.registry import make_settings
from coopsheaf.train.recipes import load_recipe
from coopsheaf.zoo.bunn.heat import LimitHeat, SpectralHeat, TaylorHeat
from coopsheaf.zoo.bunn.network import BuNN

SMALL = {"hidden_channels": 8, "num_bundles": 2, "phi_layers": 1}
EDGES = bidirected(torch.tensor([[0, 1, 2, 3, 1], [1, 2, 3, 4, 4]]))  # 5 is alone


def build(**settings: Any) -> BuNN:
    torch.manual_seed(0)
    config = make_settings("bunn", **(SMALL | settings))
    model = config.build(4, 3, graph_level=False)
    assert isinstance(model, BuNN)
    return model.double().eval()


def test_forward_is_the_residual_skeleton() -> None:
    model, x, graph = build(num_layers=3), randn(6, 4), Graph(EDGES, 6)
    y = F.gelu(model.encoder(x))
    for learner, conv in zip(model.learners, model.convs, strict=True):
        y = y + conv(F.layer_norm(y, (8,)), learner(y, graph), graph)  # φ before the norm
    expected = model.readout(F.layer_norm(y, (8,)))
    assert_close(model(x, EDGES), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("phi_layers", "concat"), [(0, "node"), (3, "node"), (1, "none")])
def test_parameters_are_as_many_as_the_formula(phi_layers: int, concat: str) -> None:
    f, h, out, layers, bundles = 4, 8, 3, 2, 2
    norm, square = 2 * h, h * h + h
    double = 2 * h * h + h + square  # two linear layers from 2h
    phi = square + h * bundles + bundles
    if phi_layers > 0:
        phi += phi_layers * (norm + double) + norm
    update = double if concat == "node" else 2 * square
    count = (f * h + h) + layers * (phi + norm + update) + norm + (h * out + out)
    model = build(phi_layers=phi_layers, concat=concat)
    assert sum(parameter.numel() for parameter in model.parameters()) == count


@pytest.mark.parametrize("name", ["roman-empire", "amazon-ratings", "questions"])
def test_recipes_build_what_was_published(name: str) -> None:
    settings = load_recipe(f"bunn/{name}").model
    with torch.device("meta"):
        model = settings.build(300, 2, graph_level=False)
    assert isinstance(model, BuNN)
    assert model.hidden_channels == 2 * model.num_bundles  # one column per bundle
    layers, phi, steps, tau = {
        "roman-empire": (8, 8, 8, 0.4),
        "amazon-ratings": (2, 0, 4, 1.5),
        "questions": (6, 6, 8, 1.0),
    }[name]
    assert len(model.convs) == layers
    assert model.learners[0].num_layers == phi
    assert (model.convs[0].heat.num_steps, model.convs[0].heat.tau) == (steps, tau)


def test_learners_of_maps_are_found() -> None:
    model = build(num_layers=3)
    assert model.map_learners() == list(model.learners)
    assert len(model.map_learners()) == 3


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({"heat": "taylor", "heat_steps": 3, "normalization": "random-walk"}, TaylorHeat),
        ({"heat": "spectral", "tau": 2.0, "concat": "none"}, SpectralHeat),
        ({"heat": "spectral", "tau_init": "multiscale", "concat": "common"}, SpectralHeat),
        ({"heat": "mean"}, LimitHeat),
        ({"orthogonal": "householder"}, TaylorHeat),
    ],
)
def test_variants_spread_as_they_say_and_train(settings: dict[str, Any], kind: type) -> None:
    model = build(**settings)
    assert all(type(conv.heat) is kind for conv in model.convs)
    graphs = [
        Data(x=randn(n, 4, seed=n), edge_index=edges, num_nodes=n)
        for n, edges in ((6, EDGES), (3, path(3)), (1, torch.empty(2, 0, dtype=torch.int64)))
    ]
    batch = Batch.from_data_list(graphs)
    together = model(batch.x, batch.edge_index, batch=batch.batch, batch_size=3)
    alone = torch.cat([model(part.x, part.edge_index) for part in graphs])
    assert_close(together, alone, rtol=0, atol=1e-11)
    together.square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_layers_do_not_share_their_times() -> None:
    model = build(heat="spectral")
    assert model.convs[0].heat.tau is not model.convs[1].heat.tau
    assert not torch.equal(model.convs[0].heat.tau, model.convs[1].heat.tau)


def test_the_spectral_kernel_refuses_one_way_edges() -> None:
    with pytest.raises(ValueError, match="`edge_index` must hold every edge both ways"):
        build(heat="spectral")(randn(3, 4), torch.tensor([[0, 1], [1, 2]]))


def test_half_precision_is_close_to_single() -> None:
    model, x = build().float(), randn(6, 4).float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        got = model(x, EDGES)
    assert_close(got.float(), model(x, EDGES), rtol=0, atol=0.2)


def test_norms_are_chosen_by_name() -> None:
    assert isinstance(build(norm="batch").last_norm, nn.BatchNorm1d)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hidden_channels": 6}, "`hidden_channels` must be a multiple of .* = 4; got 6"),
        ({"num_bundles": 0}, "`num_bundles` must be an integer of at least 1; got 0"),
        ({"stalk_dim": 1}, "`stalk_dim` must be an integer of at least 2; got 1"),
        ({"phi_layers": -1}, "`phi_layers` must be an integer of at least 0; got -1"),
        ({"heat": "?"}, "`heat` must be one of 'taylor', 'spectral', 'mean'"),
        ({"concat": "?"}, "`concat` must be one of"),
        ({"norm": "?"}, "`norm` must be one of"),
        ({"orthogonal": "?"}, "`orthogonal` must be one of"),
        ({"tau": -1.0}, "`tau` must be a finite number of at least 0; got -1.0"),
    ],
)
def test_bad_settings_are_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build(**settings)


def test_repr_states_the_transformation() -> None:
    assert repr(build()) == (
        "BuNN(4, 8, num_layers=2, out_channels=3, num_bundles=2, stalk_dim=2, "
        "heat=TaylorHeat(8, tau=1.0, normalization='symmetric'))"
    )


def test_settings_of_a_kernel_go_with_its_name() -> None:
    named = BuNN(5, 8, 1, 3, num_bundles=2, heat_steps=3, tau=0.5)
    assert repr(named) == repr(BuNN(5, 8, 1, 3, num_bundles=2, heat=TaylorHeat(3, 0.5)))
    with pytest.raises(ValueError, match="go with the name of a heat kernel"):
        BuNN(5, 8, 1, 3, num_bundles=2, heat=TaylorHeat(3, 0.5), tau=2.0)


@pytest.mark.parametrize(("data", "outputs"), [("func", 10), ("struct", 11)])
def test_recipes_for_peptides_have_the_size_of_their_equations(data: str, outputs: int) -> None:
    """Atoms, places, layers of φ with its two ends, U and a norm, readout; below the budget."""
    recipe = load_recipe(f"bunn/peptides-{data}")
    if data == "func":
        d, layers, bundles, places, width = 112, 4, 8, 2 * 20 + 20 * 28 + 28, 28
        phi = 2 * (d * d + d) + 2 * d * d + d + 4 * d  # one block with its norms
    else:
        d, layers, bundles, places, width = 160, 3, 16, 2 * 32 + 32 + 32 * 16 + 16, 16
        phi = d * d + d
    layer = phi + d * bundles + bundles + 3 * d * d + 2 * d + 2 * d
    ends = 174 * (d - width) + places + 2 * d + 2 * (d * d + d) + d * outputs + outputs
    model = recipe.model.build(9, outputs, graph_level=True, pe_channels=20)
    count = sum(parameter.numel() for parameter in model.parameters())
    assert count == layers * layer + ends <= 500_000
    assert recipe.model.pe_kind == recipe.data.pe


@pytest.mark.parametrize("data", ["func", "struct"])
def test_recipes_for_peptides_keep_the_protocol(data: str) -> None:
    train = load_recipe(f"bunn/peptides-{data}").train
    found = (train.epochs, train.warmup, train.clip, train.batch_size, train.lr, train.schedule)
    assert found == (250, 5, 1.0, 200, 1e-3, "cosine")
