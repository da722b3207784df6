"""The convolution of a fixed sheaf."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from coboundaries import atlas
from graphs import randn, random_sheaf
from laws import EXACT
from torch.testing import assert_close
from torch_geometric.nn import GCNConv

from coopsheaf import Graph, Sheaf, sheaf_laplacian
from coopsheaf.sheaves.operator import Identity
from coopsheaf.zoo.snn.conv import FixedSheafConv, sheaf_diffusion

SHEAF = random_sheaf(Graph(torch.tensor([[0, 1, 2, 0], [1, 2, 3, 2]])), 2)


def trivial(n: int, edges: torch.Tensor) -> Sheaf:
    """The trivial sheaf of dimension 1 on a graph given both ways; a sheaf lists an edge once."""
    once = edges[:, edges[0] < edges[1]]
    return Sheaf(once, torch.ones(once.shape[1], 2, 1, 1).double(), n)


@pytest.mark.parametrize(("channels", "out"), [(5, 3), (3, 5)])
@pytest.mark.parametrize("normalization", [None, "augmented", "plain"])
def test_values_and_gradients_are_those_of_the_equation(channels, out, normalization) -> None:
    torch.manual_seed(0)
    conv = FixedSheafConv(channels, out, 2, act=torch.tanh).double()
    torch.nn.init.normal_(conv.left.weight)
    x = randn(4, 2, channels).requires_grad_()
    matrix = torch.eye(8).double() - sheaf_laplacian(SHEAF, normalization).to_dense()
    mixed = torch.kron(torch.eye(4).double(), conv.left.weight) @ x.flatten(0, 1)
    want = torch.tanh(matrix @ mixed @ conv.right.weight.T).view(4, 2, out)
    got = conv(x, sheaf_diffusion(SHEAF, normalization))
    assert_close(got, want, **EXACT)
    leaves, weights = [x, *conv.parameters()], randn(4, 2, out, seed=1)
    grads = [torch.autograd.grad((y * weights).sum(), leaves) for y in (got, want)]
    for a, b in zip(*grads, strict=True):
        assert_close(a, b, **EXACT)


def test_the_trivial_sheaf_gives_a_layer_of_a_gcn() -> None:
    for seed, (n, edges) in enumerate(atlas(40)):
        torch.manual_seed(seed)
        conv = FixedSheafConv(4, 3, 1, left_weights=False, act=F.relu).double()
        gcn = GCNConv(4, 3, bias=False).double()
        gcn.lin.weight = conv.right.weight
        x = randn(n, 4, seed=seed)
        got = conv(x.unsqueeze(1), sheaf_diffusion(trivial(n, edges))).squeeze(1)
        assert_close(got, F.relu(gcn(x, edges)), **EXACT)


def test_it_takes_any_operator_that_fits() -> None:
    conv = FixedSheafConv(3, 3, 2, left_weights=False).double()
    x = randn(4, 2, 3)
    assert_close(conv(x, Identity(4, 2)), conv.right(x))
    for operator in (Identity(5, 2), Identity(4, 3), torch.eye(8)):
        with pytest.raises(ValueError, match="`operator` must be an Operator on 4 nodes"):
            conv(x, operator)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"`x` must have shape \(n, 2, 3\)"):
        conv(randn(4, 3, 3), Identity(4, 3))
    with pytest.raises(ValueError, match="`stalk_dim`"):
        FixedSheafConv(3, 3, 0)


def test_how_it_starts_and_what_it_says() -> None:
    conv = FixedSheafConv(3, 5, 2)
    assert torch.equal(conv.left.weight, torch.eye(2))
    assert conv.right.weight.abs().max() <= (6 / 8) ** 0.5
    assert repr(conv) == "FixedSheafConv(3, 5, stalk_dim=2)"
    assert [key for key, _ in conv.named_parameters()] == ["left.weight", "right.weight"]
