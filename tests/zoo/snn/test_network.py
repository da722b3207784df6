"""The Sheaf Neural Network of the constant and the signed sheaf."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from coboundaries import atlas, augmented_matrix, laplacian_matrix, symmetric_weight
from graphs import randn
from laws import EXACT
from torch.testing import assert_close
from torch_geometric.nn import GCNConv

from coopsheaf import Graph
from coopsheaf.sheaves.operator import Operator
from coopsheaf.zoo.snn.network import SNN

N, EDGES = atlas()[-2]
SIGNED = symmetric_weight(EDGES) * (1 - 2 * ((EDGES.sum(0) % 3) == 0).double())


def network(**settings) -> SNN:
    torch.manual_seed(0)
    return SNN(5, 4, 2, 3, **settings).double().eval()


def test_the_signed_sheaf_has_the_sign_in_one_of_its_maps() -> None:
    assert (SIGNED < 0).any()
    assert (SIGNED > 0).any()
    model, x = network(), randn(N, 5)
    # The map of the larger end of an edge carries the sign.
    sign = torch.where(EDGES[1] > EDGES[0], SIGNED.sign(), 1.0)
    maps = sign[:, None, None] * torch.eye(2).double()
    laplacian = laplacian_matrix(N, EDGES, maps, SIGNED.abs())
    diffusion = torch.eye(2 * N).double() - augmented_matrix(laplacian, N)
    state = F.relu(model.encoder(x)).view(N, 2, 4)
    for conv in model.convs:
        torch.nn.init.normal_(conv.left.weight)
        mixed = conv.left.weight @ conv.right(state)
        state = F.relu((diffusion @ mixed.flatten(0, 1)).view_as(mixed))
    want = model.readout(state.flatten(1))
    assert_close(model(x, EDGES, edge_weight=SIGNED), want, **EXACT)


def test_stalks_of_dimension_one_give_a_gcn() -> None:
    model, x = network(stalk_dim=1, left_weights=False), randn(N, 5)
    state = F.relu(model.encoder(x))
    for conv in model.convs:
        gcn = GCNConv(4, 4, bias=False).double()
        gcn.lin.weight = conv.right.weight
        state = F.relu(gcn(state, EDGES))
    assert_close(model(x, EDGES), model.readout(state), **EXACT)


@pytest.mark.parametrize("normalization", ["augmented", "plain"])
def test_the_diffusion_is_that_of_a_laplacian(normalization: str) -> None:
    """I - Δ has its spectrum in [-1, 1], -1 excluded with the augmented Δ."""
    for seed, (n, edges) in enumerate(atlas(40)):
        model, x = network(normalization=normalization), randn(n, 2, 4)
        weight = symmetric_weight(edges, seed)
        weight = torch.where(edges.sum(0) % 2 == 0, weight, -weight)
        diffusion: Operator = model._diffusion(x, Graph(edges, n), weight)
        values = torch.linalg.eigvalsh(diffusion.to_dense())
        assert values.max() < 1 + 1e-12
        assert values.min() > (-1 if normalization == "augmented" else -1 - 1e-12)


def test_bad_arguments_are_named() -> None:
    model, x = network(), randn(N, 5)
    lopsided = SIGNED.clone()
    lopsided[0] = -lopsided[0]
    with pytest.raises(ValueError, match="`edge_weight` must be the same in both directions"):
        model(x, EDGES, edge_weight=lopsided)
    with pytest.raises(ValueError, match="`edge_weight` must be finite"):
        model(x, EDGES, edge_weight=SIGNED / 0)
    with pytest.raises(ValueError, match=r"`edge_weight` must have shape \(m,\)"):
        model(x, EDGES, edge_weight=SIGNED[1:])
    with pytest.raises(ValueError, match="must not hold self-loops"):
        model(randn(2, 5), torch.tensor([[0, 1, 1], [1, 0, 1]]))
    with pytest.raises(ValueError, match="`normalization` must be one of 'augmented', 'plain'"):
        network(normalization="degree")


def test_repr() -> None:
    assert repr(network()) == "SNN(5, 4, num_layers=2, out_channels=3, stalk_dim=2)"
