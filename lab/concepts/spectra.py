"""The spectra of four operators on one small graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from coopsheaf.checks import check_int
from coopsheaf.figures.spectra import spectrum_figure
from coopsheaf.sheaves.diffusion import paper_diffusion
from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.laplacian import sheaf_laplacian
from coopsheaf.sheaves.maps import ConformalMaps
from coopsheaf.sheaves.operator import Product
from coopsheaf.sheaves.sheaf import Sheaf
from coopsheaf.sheaves.spectral import spectrum

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZE = 600
"""Rows of the matrices of :func:`layer_spectra`: all of them take well below a minute."""


def small_spectra_figure(*, num_nodes: int = 24, stalk_dim: int = 2, seed: int = 0) -> Figure:
    """The spectra of four operators on one small graph with random conformal maps.

    The graph is a ring with a few chords, all edges both ways. The undirected sheaf has one map
    per node, the directed one a source map and a target map.
    """
    check_int("num_nodes", num_nodes, minimum=4)
    check_int("stalk_dim", stalk_dim, minimum=1)
    graph, source, target = _small_sheaf(num_nodes, stalk_dim, seed)
    once = graph.edge_index[:, : graph.num_edges // 2]
    one = source.to_dense()
    sheaf = Sheaf(once, torch.stack([one[once[0]], one[once[1]]], dim=1), num_nodes)
    product = paper_diffusion(graph, source, target)
    assert isinstance(product, Product)
    operators = {
        "undirected Δ\n(one map per node)": sheaf_laplacian(sheaf, "augmented"),
        "Δₒᵤₜ": product.b,
        "Δᵢₙᵀ": product.a,
        "Δᵢₙᵀ Δₒᵤₜ": product,
    }
    return spectrum_figure({name: spectrum(each) for name, each in operators.items()})


def _small_sheaf(n: int, d: int, seed: int) -> tuple[Graph, ConformalMaps, ConformalMaps]:
    generator = torch.Generator().manual_seed(seed)
    nodes = torch.arange(n)
    ring = torch.stack([nodes, (nodes + 1) % n])
    chords = torch.stack([nodes[::4], (nodes[::4] + n // 2 + 1) % n])
    once = torch.cat([ring, chords], dim=1)
    graph = Graph(torch.cat([once, once.flip(0)], dim=1), n)
    maps = []
    for _ in range(2):
        scale = 0.4 + 1.6 * torch.rand(n, generator=generator, dtype=torch.float64)
        free = torch.randn(n, d, d, generator=generator, dtype=torch.float64)
        maps.append(ConformalMaps(scale, torch.linalg.qr(free).Q))
    return graph, maps[0], maps[1]
