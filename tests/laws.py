"""The laws every operator obeys, as one suite: a new operator costs one line in a test."""

from __future__ import annotations

from collections.abc import Callable

import torch
from graphs import randn, random_orthogonal
from torch import Tensor
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
from coopsheaf.sheaves.diffusion import message_diffusion, paper_diffusion, released_diffusion
from coopsheaf.sheaves.kernels import KERNELS, use_kernel
from coopsheaf.sheaves.operator import Operator

AnySheaf = Sheaf | DirectedSheaf | FlatSheaf
Build = Callable[[AnySheaf], Operator]

EXACT = {"rtol": 0.0, "atol": 1e-10}


def paper(sheaf: AnySheaf) -> Operator:
    assert isinstance(sheaf, FlatSheaf)
    return paper_diffusion(sheaf.graph, sheaf.source, sheaf.target, sheaf.edge_weight)


def released(sheaf: AnySheaf) -> Operator:
    assert isinstance(sheaf, FlatSheaf)
    return released_diffusion(sheaf.graph, sheaf.source, sheaf.target, sheaf.edge_weight)


def messages(sheaf: AnySheaf) -> Operator:
    assert isinstance(sheaf, FlatSheaf)
    return message_diffusion(sheaf.graph, sheaf.source, sheaf.target, sheaf.edge_weight)


def laplacian(kind: Callable[..., Operator], normalization: str | None) -> Build:
    return lambda sheaf: kind(sheaf, normalization)


NORMALIZATIONS = (None, "augmented", "plain")
UNDIRECTED = {f"sheaf-{name}": laplacian(sheaf_laplacian, name) for name in NORMALIZATIONS}
DIRECTED = {
    f"{side}-{name}": laplacian(kind, name)
    for side, kind in (("out", out_laplacian), ("in", in_laplacian))
    for name in NORMALIZATIONS
}
FLAT = {**DIRECTED, "paper": paper, "released": released, "messages": messages}


def parameters(sheaf: AnySheaf) -> list[Tensor]:
    """The tensors of a sheaf that gradients reach."""
    if isinstance(sheaf, Sheaf):
        found = [sheaf.maps]
    elif isinstance(sheaf, DirectedSheaf):
        found = [sheaf.source_maps, sheaf.target_maps]
    else:
        found = [
            part
            for maps in (sheaf.source, sheaf.target)
            for part in (maps if isinstance(maps, ConformalMaps) else [maps])
        ]
    return found if sheaf.edge_weight is None else [*found, sheaf.edge_weight]


def close(got: Tensor, expected: Tensor) -> None:
    """Equal to 1e-10 of the largest entry: badly conditioned blocks have large inverse roots."""
    largest = expected.detach().abs().max().item() if expected.numel() else 0.0
    assert_close(got, expected, rtol=0.0, atol=1e-10 * max(1.0, largest))


def check_operator(operator: Operator, seed: int = 0) -> None:
    """mv is the dense product, .T the adjoint, and the algebra is that of matrices."""
    (k, d), (rows, e) = operator.domain, operator.codomain
    matrix = operator.to_dense()
    assert matrix.shape == (rows * e, k * d)
    x, y = randn(k, d, 2, seed=seed), randn(rows, e, 2, seed=seed + 1)
    close(operator.mv(x), (matrix @ x.flatten(0, 1)).view(rows, e, 2))
    close((operator.mv(x) * y).sum(), (x * operator.T.mv(y)).sum())
    close(operator.T.to_dense(), matrix.T)
    close(operator.T.T.mv(x), operator.mv(x))
    close(operator @ x, operator.mv(x))
    gram = operator.T @ operator
    close(gram.to_dense(), matrix.T @ matrix)
    close((2 * gram - gram / 2 + gram).mv(x), 2.5 * operator.T.mv(operator.mv(x)))
    close((-operator).mv(x), -operator.mv(x))
    close((operator + operator).T.to_dense(), 2 * matrix.T)


def check_kernels_agree(sheaf: AnySheaf, build: Build, seed: int = 0) -> None:
    """Dense, edgewise and factored: one value, one gradient for everything that has one."""
    x = randn(sheaf.num_nodes, sheaf.stalk_dim, 3, seed=seed).requires_grad_()
    weights = randn(*x.shape, seed=seed + 1)
    leaves = [x, *(leaf.requires_grad_() for leaf in parameters(sheaf))]
    results = {}
    for name in KERNELS:
        with use_kernel(name):
            y = build(sheaf).mv(x)
            results[name] = [
                y,
                *torch.autograd.grad((y * weights).sum(), leaves, materialize_grads=True),
            ]
    for name in ("edgewise", "factored"):
        for got, expected in zip(results[name], results["reference"], strict=True):
            close(got, expected)


def check_permutation(sheaf: AnySheaf, build: Build, seed: int = 0) -> None:
    """Renaming the nodes and shuffling the edges permutes the result, and does nothing else."""
    n, m = sheaf.num_nodes, sheaf.num_edges
    rng = torch.Generator().manual_seed(seed)
    names = torch.randperm(n, generator=rng)  # node i is now called names[i]
    old = names.argsort()
    edges = torch.randperm(m, generator=rng)
    edge_index = names[sheaf.edge_index][:, edges]
    weight = None if sheaf.edge_weight is None else sheaf.edge_weight[edges]
    renamed: AnySheaf
    if isinstance(sheaf, Sheaf):
        renamed = Sheaf(edge_index, sheaf.maps[edges], n, edge_weight=weight)
    elif isinstance(sheaf, DirectedSheaf):
        renamed = DirectedSheaf(
            edge_index, sheaf.source_maps[edges], sheaf.target_maps[edges], n, edge_weight=weight
        )
    else:
        source, target = (
            ConformalMaps(*(part[old] for part in maps))
            if isinstance(maps, ConformalMaps)
            else maps[old]
            for maps in (sheaf.source, sheaf.target)
        )
        renamed = FlatSheaf(edge_index, source, target, edge_weight=weight)
    x = randn(n, sheaf.stalk_dim, 2, seed=seed)
    close(build(renamed).mv(x[old]), build(sheaf).mv(x)[old])


def check_gauge(sheaf: AnySheaf, build: Build, seed: int = 0) -> None:
    """Another orthonormal basis in every stalk changes the coordinates, and nothing else."""
    n, d = sheaf.num_nodes, sheaf.stalk_dim
    basis = random_orthogonal(n, d, seed)
    graph, weight = sheaf.graph, sheaf.edge_weight
    turned: AnySheaf
    if isinstance(sheaf, Sheaf):
        ends = torch.stack([basis[graph.source], basis[graph.target]], dim=1)
        turned = Sheaf(graph, sheaf.maps @ ends.mT, edge_weight=weight)
    elif isinstance(sheaf, DirectedSheaf):
        turned = DirectedSheaf(
            graph,
            sheaf.source_maps @ basis[graph.source].mT,
            sheaf.target_maps @ basis[graph.target].mT,
            edge_weight=weight,
        )
    else:
        source, target = (
            ConformalMaps(maps.scale, maps.orthogonal @ basis.mT)
            if isinstance(maps, ConformalMaps)
            else maps @ basis.mT
            for maps in (sheaf.source, sheaf.target)
        )
        turned = FlatSheaf(graph, source, target, edge_weight=weight)
    x = randn(n, d, 2, seed=seed + 1)
    close(build(turned).mv(basis @ x), basis @ build(sheaf).mv(x))


def check_sheaf(sheaf: AnySheaf, build: Build, seed: int = 0) -> None:
    """All laws."""
    check_operator(build(sheaf), seed)
    check_permutation(sheaf, build, seed)
    check_gauge(sheaf, build, seed)
    check_kernels_agree(sheaf, build, seed)
