r"""Spectra of the operators of sheaves and of the layers of a CSNN, in the complex plane.

Needs matplotlib (``pip install coopsheaf[viz]``) to draw. The Laplacian of an undirected sheaf is
symmetric: its eigenvalues are real and, normalised, lie in [0, 2]. Those of directed sheaves are
complex in general and may have negative real parts; so may those of the product
:math:`(\Delta^{in})^\top \Delta^{out}` with which a CSNN diffuses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from coopsheaf.analysis.actions import cooperative_network
from coopsheaf.analysis.figures import COLOURS, chart_figure, legend_above
from coopsheaf.analysis.hops import check_nodes, hop_distances
from coopsheaf.analysis.probing import evaluating
from coopsheaf.checks import check_int
from coopsheaf.diffusion import paper_diffusion
from coopsheaf.graph import Graph, as_graph
from coopsheaf.laplacian import sheaf_laplacian
from coopsheaf.models.csnn import CSNN
from coopsheaf.nn.csnn_conv import CSNNConv, record_maps
from coopsheaf.operator import Product
from coopsheaf.sheaf import ConformalMaps, Sheaf
from coopsheaf.spectral import spectrum

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE = 600
"""Rows of the matrices of :func:`layer_spectra`: all of them take well below a minute."""


@dataclass(frozen=True)
class LayerSpectra:
    """Eigenvalues of the operators of one layer, each ``(k·d,)``, complex.

    Args:
        first: of the pass that is applied first: Δ_out in the paper's semantics.
        second: of the pass that is applied to its result: (Δ_in)ᵀ in the paper's semantics.
        composed: of the two together.
    """

    first: Tensor
    second: Tensor
    composed: Tensor


@dataclass(frozen=True)
class Spectra:
    """The spectra of all layers of a CSNN, on k of its graph's n nodes.

    Args:
        layers: one entry per layer.
        nodes: ``(k,)``, the nodes that were looked at.
        num_nodes: n.
        semantics: ``"paper"`` or ``"released"``.
    """

    layers: tuple[LayerSpectra, ...]
    nodes: Tensor
    num_nodes: int
    semantics: str


@torch.no_grad()
def layer_spectra(
    model: nn.Module,
    x: Tensor,
    edge_index: Tensor | Graph,
    *,
    centre: int | None = None,
    size: int = SIZE,
    **inputs: Any,
) -> Spectra:
    """The eigenvalues of every layer's operators, with the maps that the network has on x.

    A graph of more than ``size / d`` nodes is too large to be made a dense matrix. Then the
    operators are those of the subgraph of the nodes nearest to ``centre``, normalised with its own
    degrees; the maps are still those of the whole graph.

    Args:
        model: a :class:`~coopsheaf.CSNN`.
        x: ``(n, in_channels)``.
        edge_index: ``(2, m)``, or a :class:`~coopsheaf.Graph`.
        centre: of the nodes to look at; by default the one with the most edges.
        size: rows of the matrices, at least d.
        inputs: ``pe`` or ``edge_weight``, as the network takes them.
    """
    network = cooperative_network(model)
    if not isinstance(network, CSNN):
        raise ValueError(
            f"`model` must be a CSNN to have spectra of maps; got {type(network).__name__}"
        )
    graph = as_graph(edge_index, x.shape[0])
    d = network.stalk_dim
    check_int("size", size, minimum=d)
    with evaluating(network), record_maps(network) as maps:
        network(x, graph, **inputs)
    nodes = _nearest(graph.to("cpu"), centre, size // d)
    part, kept = _induced(graph.to("cpu"), nodes)
    weight = inputs.get("edge_weight")
    weight = None if weight is None else weight.double().cpu()[kept]
    layers = []
    for conv, pair in zip(network.convs, maps, strict=True):
        assert isinstance(conv, CSNNConv)
        source, target = (
            ConformalMaps(m.scale.double().cpu()[nodes], m.orthogonal.double().cpu()[nodes])
            for m in pair
        )
        operator = conv.diffusion(part, source, target, weight)
        assert isinstance(operator, Product)
        found = (spectrum(each) for each in (operator.b, operator.a, operator))
        layers.append(LayerSpectra(*(values.to(torch.complex128) for values in found)))
    return Spectra(tuple(layers), nodes, graph.num_nodes, network.semantics)


def _nearest(graph: Graph, centre: int | None, count: int) -> Tensor:
    """The ``count`` nodes nearest to one, whatever the direction of the edges; sorted."""
    n = graph.num_nodes
    if n == 0:
        raise ValueError("`x` must have at least one node; got none")
    if centre is None:
        centre = int((graph.in_degree + graph.out_degree).argmax())
    (start,) = check_nodes("centre", check_int("centre", centre, minimum=0), n).tolist()
    if count >= n:
        return torch.arange(n)
    both = Graph(torch.cat([graph.edge_index, graph.edge_index.flip(0)], dim=1), n)
    distance = hop_distances(both, [start])[0]
    distance = distance.where(distance >= 0, n)  # what cannot be reached comes last
    return distance.argsort(stable=True)[:count].sort().values


def _induced(graph: Graph, nodes: Tensor) -> tuple[Graph, Tensor]:
    """The subgraph of some nodes, and which of the edges it keeps."""
    number = torch.full((graph.num_nodes,), -1)
    number[nodes] = torch.arange(len(nodes))
    source, target = number[graph.source], number[graph.target]
    kept = (source >= 0) & (target >= 0)
    return Graph(torch.stack([source[kept], target[kept]]), len(nodes)), kept


def spectra_figure(
    after: Spectra, before: Spectra | None = None, *, title: str | None = None
) -> Figure:
    """The spectra of all layers: a row per layer, a column per operator.

    Args:
        after: of the trained network.
        before: of the same network with the parameters it began with, drawn beneath.
        title: above the figure.
    """
    if before is not None and len(before.layers) != len(after.layers):
        raise ValueError(
            f"`before` must have the {len(after.layers)} layers of `after`; "
            f"got {len(before.layers)}"
        )
    names = ("Δₒᵤₜ", "Δᵢₙᵀ", "Δᵢₙᵀ Δₒᵤₜ")
    if after.semantics == "released":
        names = ("Δᵢₙᵀ", "Δₒᵤₜ", "Δₒᵤₜ Δᵢₙᵀ")  # its own order, with its own degrees
    rows = len(after.layers)
    figure = chart_figure(7.0, 0.9 + 2.0 * rows)
    grid = figure.subplots(rows, 3, squeeze=False)
    for t, line in enumerate(grid):
        for k, axes in enumerate(line):
            which = ("first", "second", "composed")[k]
            values = {"after training": getattr(after.layers[t], which)}
            if before is not None:
                values = {"before training": getattr(before.layers[t], which), **values}
            _scatter(axes, values)
            if t == 0:
                axes.set_title(names[k], fontsize=9)
            if t == rows - 1:
                axes.set_xlabel("real part", fontsize=8)
        line[0].set_ylabel(f"layer {t + 1}\nimaginary part", fontsize=8)
    part = len(after.nodes)
    where = (
        f"all {part:,} nodes"
        if part == after.num_nodes
        else (f"{part:,} neighbouring nodes of {after.num_nodes:,}")
    )
    legend_above(figure, grid[0, 0], where if title is None else f"{title}: {where}")
    return figure


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


def spectrum_figure(spectra: Mapping[str, Tensor], *, title: str | None = None) -> Figure:
    """Eigenvalues in the complex plane, one panel per operator.

    Args:
        spectra: what :func:`coopsheaf.spectral.spectrum` found, by name.
        title: above the figure.
    """
    if not spectra:
        raise ValueError("`spectra` must hold at least one spectrum; got none")
    columns = min(len(spectra), 4)
    rows = -(-len(spectra) // columns)
    figure = chart_figure(1.85 * columns, 2.0 * rows + (0.25 if title else 0.1))
    grid = figure.subplots(rows, columns, squeeze=False)
    for place, axes in enumerate(grid.flat):
        if place >= len(spectra):
            axes.set_visible(False)
    for axes, (name, values) in zip(grid.flat, spectra.items(), strict=False):
        _scatter(axes, {"": values})
        axes.set_title(name, fontsize=9)
        axes.set_xlabel("real part", fontsize=8)
    for line in grid:
        line[0].set_ylabel("imaginary part", fontsize=8)
    if title is not None:
        figure.suptitle(title, fontsize=9)
    return figure


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


def _scatter(axes: Axes, spectra: Mapping[str, Tensor]) -> None:
    """Points, with the axes of the plane through zero; where real parts are negative it is grey."""
    looks: Sequence[dict[str, Any]] = (
        {"marker": "o", "facecolors": COLOURS[0], "edgecolors": "none", "alpha": 0.6, "s": 9},
    )
    if len(spectra) == 2:
        behind = {"marker": "s", "facecolors": "none", "edgecolors": COLOURS[1], "s": 9}
        looks = ({**behind, "linewidths": 0.6}, *looks)
    for (name, values), look in zip(spectra.items(), looks, strict=True):
        values = values.detach().cpu().to(torch.complex128)
        axes.scatter(values.real.tolist(), values.imag.tolist(), label=name, zorder=3, **look)
    axes.axhline(0, color="#999999", linewidth=0.7, zorder=1)
    axes.axvline(0, color="#999999", linewidth=0.7, zorder=1)
    points = torch.cat([values.detach().cpu().to(torch.complex128) for values in spectra.values()])
    points = points[points.isfinite()]
    left = min(0.0, *points.real.tolist()) if len(points) else 0.0
    right = max(0.0, *points.real.tolist()) if len(points) else 1.0
    width = max(right - left, 1e-3)
    # A spectrum on the real line would be drawn without any height.
    height = max(0.15 * width, *points.imag.abs().tolist()) if len(points) else 1.0
    axes.set_xlim(left - 0.08 * width, right + 0.08 * width)
    axes.set_ylim(-1.16 * height, 1.16 * height)
    if left < -1e-9 * right:  # rounding aside
        axes.axvspan(left - 0.08 * width, 0, color="#f1f1f1", zorder=0, linewidth=0)
    axes.grid(color="#e3e3e3", linewidth=0.5)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=7)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
