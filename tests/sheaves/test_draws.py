"""Constant and random sheaves."""

from __future__ import annotations

import pytest
import torch
from graphs import path
from torch.testing import assert_close

from coopsheaf import (
    ConformalMaps,
    DirectedSheaf,
    FlatSheaf,
    Sheaf,
    in_laplacian,
    out_laplacian,
    sheaf_laplacian,
)

ONCE = path(4)[:, :3]
KINDS = [Sheaf, DirectedSheaf, FlatSheaf]
DOUBLE = torch.float64


def all_maps(sheaf: Sheaf | DirectedSheaf | FlatSheaf) -> torch.Tensor:
    """(k, d, d)"""
    if isinstance(sheaf, Sheaf):
        return sheaf.maps.flatten(0, 1)
    return torch.cat([sheaf.source_maps, sheaf.target_maps])


@pytest.mark.parametrize("sheaf", KINDS)
def test_the_laplacian_of_a_constant_sheaf_is_that_of_the_graph(sheaf) -> None:
    weight = torch.tensor([1.0, 2.0, 0.5], dtype=DOUBLE)
    found = sheaf.constant(ONCE, 2, 5, edge_weight=weight, dtype=DOUBLE)
    assert repr(found) == f"{sheaf.__name__}(num_nodes=5, num_edges=3, stalk_dim=2, weighted)"
    adjacency = torch.zeros(5, 5, dtype=DOUBLE)
    adjacency[ONCE[1], ONCE[0]] = weight
    if sheaf is Sheaf:
        adjacency = adjacency + adjacency.T
        want = {sheaf_laplacian: adjacency.sum(1).diag() - adjacency}
    else:
        into, out = adjacency.sum(1).diag(), adjacency.sum(0).diag()
        want = {out_laplacian: out - adjacency, in_laplacian: into - adjacency.T}
    for laplacian, matrix in want.items():
        assert_close(laplacian(found).to_dense(), torch.kron(matrix, torch.eye(2, dtype=DOUBLE)))


@pytest.mark.parametrize("sheaf", KINDS)
def test_random_maps_are_of_their_kind_and_follow_the_seed(sheaf) -> None:
    for kind in ("orthogonal", "general", "diagonal"):
        maps = all_maps(sheaf.random(ONCE, 3, kind=kind, dtype=DOUBLE))
        again = all_maps(sheaf.random(ONCE, 3, kind=kind, dtype=DOUBLE))
        assert_close(maps, again, rtol=0, atol=0)
        assert not torch.equal(
            maps, all_maps(sheaf.random(ONCE, 3, kind=kind, seed=1, dtype=DOUBLE))
        )
        assert len(torch.unique(maps, dim=0)) == len(maps)  # no two are the same draw
        gram, eye = maps.mT @ maps, torch.eye(3, dtype=DOUBLE)
        assert torch.allclose(gram, eye.expand_as(gram)) == (kind == "orthogonal")
        assert ((maps * (1 - eye)) == 0).all() == (kind == "diagonal")


def test_orthogonal_maps_have_no_preferred_sign() -> None:
    """Plain QR leaves the sign of the first entry to the algorithm."""
    maps = FlatSheaf.random(torch.zeros(2, 0, dtype=torch.long), 1, 400).source_maps
    assert 100 < (maps > 0).sum() < 300


def test_flat_sheaves_keep_what_is_known_of_their_maps() -> None:
    assert isinstance(FlatSheaf.constant(ONCE, 2).source, ConformalMaps)
    assert isinstance(FlatSheaf.random(ONCE, 2).target, ConformalMaps)
    assert isinstance(FlatSheaf.random(ONCE, 2, kind="general").source, torch.Tensor)


def test_the_default_precision_is_that_of_pytorch() -> None:
    assert Sheaf.constant(ONCE).maps.dtype == torch.float32
    assert Sheaf.random(ONCE).maps.shape == (3, 2, 1, 1)


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="`kind` must be one of 'orthogonal', 'general', 'diag"):
        Sheaf.random(ONCE, 2, kind="identity")
    with pytest.raises(ValueError, match="`stalk_dim` must be an integer of at least 1; got 0"):
        FlatSheaf.constant(ONCE, 0)
