"""Receptive fields: what equations say about hops, seen in Jacobians."""

from __future__ import annotations

import pytest
import torch
from analysis.networks import build, csnn, gcn
from graphs import path, randn
from models.test_all import EACH_LAYERED, EDGES, F_IN, N

from coopsheaf.analysis import (
    frozen_maps,
    hop_distances,
    influence,
    receptive_field,
    receptive_growth,
)
from coopsheaf.nn import MLPLearner, NodeNormSAGELearner


@EACH_LAYERED
def test_it_is_where_the_influence_is_not_zero(name: str) -> None:
    model, x = build(name), randn(N, F_IN)
    fields = receptive_field(model, x, EDGES)
    assert torch.equal(fields, influence(model, x, EDGES).squared > 0)
    part = receptive_field(model, x, EDGES, targets=[3, 0], at="embedding")
    assert torch.equal(part, influence(model, x, EDGES, targets=[3, 0], at="embedding").squared > 0)


def test_an_mlp_sees_the_node_itself() -> None:
    fields = receptive_field(build("mlp", act="tanh"), randn(N, F_IN), EDGES)
    assert torch.equal(fields, torch.eye(N, dtype=torch.bool))


@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_a_gcn_sees_a_hop_per_layer(num_layers: int) -> None:
    model, x = gcn(num_layers), randn(9, F_IN)
    growth = receptive_growth(model, x, path(9))
    assert growth.fields.shape == (num_layers + 1, 9, 9)
    distances = hop_distances(path(9))
    for depth in range(num_layers + 1):
        assert torch.equal(growth.fields[depth], distances <= depth)
    assert growth.reach[:, 0].tolist() == list(range(num_layers + 1))
    assert growth.sizes[:, 0].tolist() == list(range(1, num_layers + 2))


@pytest.mark.parametrize(("semantics", "hops"), [("paper", 2), ("released", 2), ("messages", 1)])
def test_csnn_sees_two_hops_per_layer_or_one(semantics: str, hops: int) -> None:
    model = csnn(num_layers=3, learner=MLPLearner(16), semantics=semantics)
    growth = receptive_growth(model, randn(9, F_IN), path(9))
    distances = hop_distances(path(9))
    for depth in range(4):
        assert torch.equal(growth.fields[depth], distances <= hops * depth)


def test_the_learners_of_csnn_see_further() -> None:
    model = csnn(num_layers=1, learner=NodeNormSAGELearner(16, 2))
    x = randn(7, F_IN)
    assert receptive_growth(model, x, path(7), targets=0).reach.flatten().tolist() == [0, 4]
    with frozen_maps(model):
        assert receptive_growth(model, x, path(7), targets=0).reach.flatten().tolist() == [0, 2]


def test_direction() -> None:
    one_way, x = torch.tensor([[0, 1, 2], [1, 2, 3]]), randn(4, F_IN)
    assert receptive_field(gcn(2), x, one_way, targets=[3]).tolist() == [[False, True, True, True]]
    model = csnn(num_layers=1, semantics="released")
    growth = receptive_growth(model, x, one_way, targets=[0], flow="target_to_source")
    assert growth.fields[-1].tolist() == [[True, True, True, False]]
    assert growth.reach.tolist() == [[0], [2]]


def test_what_is_not_a_number_counts_as_influence() -> None:
    x = randn(3, F_IN)
    x[0] = torch.nan
    assert receptive_field(gcn(1), x, path(3), targets=[0])[0, 0]


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match="`targets` must hold indices"):
        receptive_field(gcn(1), randn(3, F_IN), path(3), targets=3)
    with pytest.raises(ValueError, match="`targets` must hold indices"):
        receptive_growth(gcn(1), randn(3, F_IN), path(3), targets=[-2])
