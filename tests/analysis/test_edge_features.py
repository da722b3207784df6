"""Readings of a network whose learners see features of edges: nothing of them is left out."""

from __future__ import annotations

import pytest
import torch
from analysis.networks import build
from graphs import generator, randn
from torch.testing import assert_close

from coopsheaf import CSNN, Graph
from coopsheaf.analysis import (
    check_explanation,
    energy_by_layer,
    explain_node,
    influence,
    layer_features,
    layer_spectra,
    read_actions,
)
from coopsheaf.nn import edge_means, record_maps

N = 8
EDGES = torch.randint(0, N, (2, 16), generator=generator(1))
X, ATTR = randn(N, 5), randn(16, 2, seed=1)


def csnn() -> CSNN:
    torch.manual_seed(0)
    return CSNN(5, 3, 2, 3, stalk_dim=2, edge_channels=2).double().eval()


def test_actions_and_spectra_are_those_of_the_maps_with_them() -> None:
    model = csnn()
    with record_maps(model) as maps, torch.no_grad():
        model(X, EDGES, edge_attr=ATTR)
    report = read_actions(model, X, EDGES, edge_attr=ATTR)
    for layer, (source, target) in zip(report.layers, maps, strict=True):
        assert_close(layer.source_scale, source.scale)
        assert_close(layer.target_scale, target.scale)
    found = layer_spectra(model, X, EDGES, edge_attr=ATTR)
    other = layer_spectra(model, X, EDGES, edge_attr=-ATTR)
    assert not torch.allclose(found.layers[0].first, other.layers[0].first)


def test_features_and_energies_layer_by_layer() -> None:
    model = csnn()
    states = layer_features(model, X, EDGES, edge_attr=ATTR)
    with torch.no_grad():
        assert_close(model.readout(states[-1]), model(X, EDGES, edge_attr=ATTR))
    means = edge_means(Graph(EDGES, N), ATTR)
    assert_close(
        energy_by_layer(model, X, EDGES, edge_attr=ATTR).energy,
        energy_by_layer(model, X, EDGES, edge_attr=means).energy,
    )
    assert len(layer_features(build("gcn"), X, EDGES, edge_attr=None)) > 1


def test_influence_is_the_jacobian_with_them() -> None:
    model = csnn()
    got = influence(model, X, EDGES, edge_attr=ATTR).squared
    leaf = X.clone().requires_grad_()
    out = model(leaf, EDGES, edge_attr=ATTR)
    for i in (0, 5):
        rows = [torch.autograd.grad(out[i, c], leaf, retain_graph=True)[0] for c in range(3)]
        want = torch.stack(rows)  # (out, n, in)
        assert_close(got[i], want.square().sum((0, 2)))


def test_explanations_and_their_check() -> None:
    model = csnn()
    found = explain_node(model, X, EDGES, 3, edge_attr=ATTR)
    with torch.no_grad():
        assert_close(found.outputs, model(X, EDGES, edge_attr=ATTR)[3])
    check = check_explanation(model, X, EDGES, found, edge_attr=ATTR, sample=3)
    j = int(check.nodes[0])
    keep = EDGES.ne(j).all(0)
    with torch.no_grad():
        whole, rest = (
            model(X, EDGES, edge_attr=ATTR),
            model(X, EDGES[:, keep], edge_attr=ATTR[keep]),
        )
    want = found.score.of(whole) - found.score.of(rest)
    assert float(check.cut[0]) == pytest.approx(float(want))
    means = edge_means(Graph(EDGES, N), ATTR)
    with pytest.raises(ValueError, match="`edge_attr` must have a row per edge"):
        check_explanation(model, X, EDGES, found, edge_attr=means)


def test_networks_that_cannot_use_them_say_so() -> None:
    with pytest.raises(ValueError, match="does not use edge features"):
        layer_features(build("gcn"), X, EDGES, edge_attr=ATTR)
    with pytest.raises(ValueError, match="does not use edge features"):
        explain_node(build("gcn"), X, EDGES, 0, edge_attr=ATTR)
    with pytest.raises(ValueError, match="CSNN was built with edge_channels=2; got None"):
        read_actions(csnn(), X, EDGES)
