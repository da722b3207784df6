"""P7: what the counting of parameters and operations can be checked against."""

from __future__ import annotations

import pytest
import torch
from graphs import graphs, randn, random_flat
from hypothesis import given
from hypothesis import strategies as st
from paper.operators import EXACT, FEW

from coopsheaf import CSNN, Graph, in_laplacian, out_laplacian
from coopsheaf.nn import ProjectedSAGELearner


def test_parameters_of_the_roman_empire_model() -> None:
    """The released roman-empire configuration has the printed 339,900 parameters."""
    model = CSNN(300, 32, 5, 18, stalk_dim=4, learner=ProjectedSAGELearner(32, 3))
    count = sum(parameter.numel() for parameter in model.parameters())
    assert count == 339_900
    # 2,269,714, the printed count of the GCN, is 6.68 times as many and 568 % more.
    assert 2_269_714 / count == pytest.approx(6.68, abs=5e-3)
    assert (2_269_714 - count) / count == pytest.approx(5.68, abs=5e-3)


@FEW
@given(graph=graphs(), conformal=st.booleans(), seed=st.integers(0, 99))
def test_target_maps_come_out_of_the_sum(graph: Graph, conformal: bool, seed: int) -> None:
    """Σ_j T_iᵀ S_j x_j = T_iᵀ Σ_j S_j x_j: node-wise products equal one message per edge."""
    flat = random_flat(graph, 2, conformal=conformal, seed=seed)
    x = randn(graph.num_nodes, 2, 3, seed=seed)
    for laplacian in (out_laplacian, in_laplacian):
        per_edge = laplacian(flat.to_directed())
        torch.testing.assert_close(laplacian(flat) @ x, per_edge @ x, **EXACT)
        torch.testing.assert_close(laplacian(flat).T @ x, per_edge.T @ x, **EXACT)
