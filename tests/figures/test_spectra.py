"""Spectra of layers: those of the very operators the network diffuses with."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
import torch
from analysis.networks import binary_tree, csnn, ring
from graphs import bidirected, randn, random_weight
from models.test_all import build

from coopsheaf import Graph
from coopsheaf.analysis.spectra import layer_spectra
from coopsheaf.figures.influence import save
from coopsheaf.figures.spectra import spectra_figure, spectrum_figure
from coopsheaf.nn.csnn_conv import record_maps
from coopsheaf.sheaves.diffusion import SEMANTICS
from coopsheaf.sheaves.maps import ConformalMaps
from coopsheaf.sheaves.operator import Product
from coopsheaf.sheaves.spectral import spectrum
from coopsheaf.train.build import Rescaled

pytest.importorskip("matplotlib")

X = randn(12, 5)


def same_spectrum(found: torch.Tensor, wanted: torch.Tensor) -> None:
    """Equal as sets: the order of equal real parts is anybody's guess."""
    assert found.shape == wanted.shape
    apart = (found[:, None] - wanted.to(found.dtype)[None]).abs()
    assert apart.min(0).values.max() < 1e-9
    assert apart.min(1).values.max() < 1e-9


@pytest.mark.parametrize("semantics", list(SEMANTICS))
@pytest.mark.parametrize("weighted", [False, True])
def test_the_operators_are_those_of_the_network(semantics: str, weighted: bool) -> None:
    model = csnn(semantics=semantics, num_layers=3)
    graph = Graph(torch.cat([ring(12), torch.tensor([[0, 3, 5], [4, 9, 5]])], dim=1), 12)
    inputs = {"edge_weight": random_weight(graph.num_edges)} if weighted else {}
    found = layer_spectra(model, X, graph, **inputs)
    with torch.no_grad(), record_maps(model) as maps:
        model(X, graph, **inputs)
    assert len(found.layers) == 3
    assert found.nodes.tolist() == list(range(12))
    assert (found.num_nodes, found.semantics) == (12, semantics)
    for layer, (source, target) in zip(found.layers, maps, strict=True):
        operator = SEMANTICS[semantics](graph, source, target, inputs.get("edge_weight"))
        if semantics == "messages":
            assert layer.second is None
            same_spectrum(layer.first, spectrum(operator))
            assert torch.equal(layer.composed, layer.first)
            continue
        assert isinstance(operator, Product)
        for values, each in (
            (layer.first, operator.b),
            (layer.second, operator.a),
            (layer.composed, operator),
        ):
            same_spectrum(values, spectrum(each))
            torch.testing.assert_close(values.sum().real, each.to_dense().trace())


def test_a_large_graph_is_looked_at_in_part() -> None:
    model, x = csnn(), randn(40, 5)
    edges = ring(40)
    found = layer_spectra(model, x, edges, centre=20, size=14)
    assert found.nodes.tolist() == [17, 18, 19, 20, 21, 22, 23]
    assert found.num_nodes == 40
    with torch.no_grad(), record_maps(model) as maps:
        model(x, edges)
    inside = bidirected(torch.stack([torch.arange(6), torch.arange(1, 7)]))
    for layer, pair in zip(found.layers, maps, strict=True):
        source, target = (
            ConformalMaps(m.scale[found.nodes], m.orthogonal[found.nodes]) for m in pair
        )
        operator = SEMANTICS["paper"](Graph(inside, 7), source, target, None)
        same_spectrum(layer.composed, spectrum(operator))


def test_weights_go_with_their_edges() -> None:
    model, x, edges = csnn(), randn(40, 5), ring(40)
    weight = random_weight(edges.shape[1])
    found = layer_spectra(model, x, edges, centre=20, size=14, edge_weight=weight)
    kept = ((edges >= 17) & (edges <= 23)).all(0)
    with torch.no_grad(), record_maps(model) as maps:
        model(x, edges, edge_weight=weight)
    source, target = (ConformalMaps(m.scale[17:24], m.orthogonal[17:24]) for m in maps[0])
    part = Graph(edges[:, kept] - 17, 7)
    operator = SEMANTICS["paper"](part, source, target, weight[kept])
    same_spectrum(found.layers[0].composed, spectrum(operator))


def test_directions_do_not_matter_for_who_is_near_and_the_unreachable_come_last() -> None:
    model = csnn()
    tree = binary_tree(2)  # 7 nodes, edges towards the root; nodes 7 to 11 are alone
    assert layer_spectra(model, X, tree, centre=0, size=6).nodes.tolist() == [0, 1, 2]
    assert layer_spectra(model, X, tree, centre=0, size=16).nodes.tolist() == list(range(8))
    assert layer_spectra(model, X, tree, centre=9, size=6).nodes.tolist() == [0, 1, 9]
    # By default around the node with the most edges.
    assert layer_spectra(model, X, tree, size=8).nodes.tolist() == [0, 1, 3, 4]


def test_a_network_in_single_precision_around_a_regression() -> None:
    model = csnn(out_channels=1)
    wrapped = Rescaled(model.float(), 1)
    found = layer_spectra(wrapped, X.float(), ring(12))
    assert found.layers[0].composed.dtype == torch.complex128


def test_the_model_is_left_as_it_was() -> None:
    model = csnn(dropout=0.5).train()
    before = [parameter.clone() for parameter in model.parameters()]
    once, again = (layer_spectra(model, X, ring(12)) for _ in range(2))
    assert torch.equal(once.layers[0].composed, again.layers[0].composed)  # no dropout
    assert model.training
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    assert not model._forward_hooks


def test_figure_of_layers(tmp_path: Path) -> None:
    after = layer_spectra(csnn(), X, ring(12))
    before = layer_spectra(csnn(seed=1), X, ring(12))
    figure = spectra_figure(after, before, title="csnn on a ring")
    assert len(figure.axes) == 6
    points = [part.get_offsets() for part in figure.axes[5].collections]
    assert len(points) == 2
    values = after.layers[1].composed
    torch.testing.assert_close(torch.as_tensor(points[1].data), torch.view_as_real(values))
    root = ElementTree.parse(save(figure, tmp_path / "a.svg")).getroot()
    text = " ".join("".join(node.itertext()) for node in root.iter() if node.tag.endswith("text"))
    for word in ("csnn on a ring: all 12 nodes", "before training", "after training", "Δₒᵤₜ"):
        assert word in text
    part = layer_spectra(csnn(), X, ring(12), size=8)
    alone = spectra_figure(part)
    assert "4 neighbouring nodes of 12" in alone.legends[0].get_title().get_text()
    assert len(alone.axes[0].collections) == 1


def test_released_semantics_has_its_own_order() -> None:
    figure = spectra_figure(layer_spectra(csnn(semantics="released"), X, ring(12)))
    assert [axes.get_title() for axes in figure.axes[:3]] == ["Δᵢₙᵀ", "Δₒᵤₜ", "Δₒᵤₜ Δᵢₙᵀ"]


def test_messages_are_one_operator() -> None:
    figure = spectra_figure(layer_spectra(csnn(semantics="messages"), X, ring(12)))
    assert [axes.get_title() for axes in figure.axes] == ["edges of Δₒᵤₜ", ""]  # two layers


@pytest.mark.parametrize(
    "values", [[], [0.0], [1.0], [float("nan"), 1.0], [-1.0, 2.0], [1e-300], [1j, -1j]]
)
def test_any_spectrum_can_be_drawn(values: list[complex]) -> None:
    spectra = {f"operator {k}": torch.tensor(values) for k in range(5)}
    spectrum_figure(spectra, title="Five").draw_without_rendering()


def test_bad_input_is_named() -> None:
    model = csnn()
    with pytest.raises(
        ValueError, match="`model` must be a CSNN to have spectra of maps; got CoGNN"
    ):
        layer_spectra(build("cognn"), X.float(), ring(12))
    with pytest.raises(ValueError, match="must be a CSNN or a CO-GNN to have actions; got"):
        layer_spectra(build("gcn-plain"), X, ring(12))
    with pytest.raises(ValueError, match="`size` must be an integer of at least 2; got 1"):
        layer_spectra(model, X, ring(12), size=1)
    with pytest.raises(ValueError, match=r"`centre` must hold indices of the 12 nodes"):
        layer_spectra(model, X, ring(12), centre=12)
    with pytest.raises(ValueError, match="`spectra` must hold at least one spectrum; got none"):
        spectrum_figure({})
    after, before = (layer_spectra(csnn(num_layers=k), X, ring(12)) for k in (1, 2))
    with pytest.raises(ValueError, match="`before` must have the 1 layers of `after`; got 2"):
        spectra_figure(after, before)
