r"""Over-smoothing: the Dirichlet energy of features, layer by layer.

.. math::
    E(X) = \sum_{\{i, j\}} \Bigl\| \frac{x_i}{\sqrt{d_i + 1}} - \frac{x_j}{\sqrt{d_j + 1}} \Bigr\|^2
         = \langle X, \Delta X \rangle

over the edges of the underlying undirected graph: each pair of neighbours counts once, whichever
way and however often it is listed, and loops do not count. It is zero where neighbours agree. The
*relative* energy :math:`E(X) / \|X\|^2` is free of the size of the features and lies in [0, 2];
it is what has to be looked at when layers shrink or amplify.

With the Laplacian that a layer has learned in place of that of the graph it is the *Rayleigh
quotient* of what the layer diffuses (Hernandez Caralt et al., 2026): if it is no smaller than that
of the graph, the learned maps do not agree better with the features than identities do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from coopsheaf.analysis.probing import evaluating, layer_features
from coopsheaf.models.network import Network
from coopsheaf.sheaves.graph import Graph, as_graph
from coopsheaf.sheaves.sheaf import Sheaf
from coopsheaf.sheaves.spectral import dirichlet_energy
from coopsheaf.tensor_checks import check_floating
from coopsheaf.zoo.nsd.network import NSD


@dataclass(frozen=True)
class EnergyProfile:
    """Energy after 0, 1, ..., T layers.

    Args:
        energy: ``(T + 1,)``.
        squared_norm: ``(T + 1,)``, of the features.
    """

    energy: Tensor
    squared_norm: Tensor

    @property
    def relative(self) -> Tensor:
        """Energy over squared norm, ``(T + 1,)``; 0 for features that are zero."""
        some = self.squared_norm > 0
        return torch.where(some, self.energy / self.squared_norm.where(some, 1.0), 0.0)

    @property
    def decay(self) -> float:
        """The factor by which the relative energy changes per layer, by least squares on its log.

        Below 1: features become smoother. NaN without layers, or if some energy is zero.
        """
        logs = self.relative.log()
        if len(logs) < 2 or not logs.isfinite().all():
            return float("nan")
        depth = torch.arange(len(logs), dtype=logs.dtype)
        depth = depth - depth.mean()
        return float(((depth @ logs) / depth.square().sum()).exp())


def graph_sheaf(edge_index: Tensor | Graph, num_nodes: int | None = None) -> Sheaf:
    """The constant sheaf on the underlying undirected graph, stalks of dimension 1."""
    graph = as_graph(edge_index, num_nodes)
    n = graph.num_nodes
    low, high = torch.minimum(graph.source, graph.target), torch.maximum(graph.source, graph.target)
    pairs = torch.unique((low * n + high)[low != high])
    edges = torch.stack([pairs // max(n, 1), pairs % max(n, 1)])
    maps = torch.ones(len(pairs), 2, 1, 1, dtype=torch.float64, device=graph.device)
    return Sheaf(edges, maps, n)


def feature_energy(
    x: Tensor, edge_index: Tensor | Graph, normalization: str | None = "augmented"
) -> Tensor:
    """The Dirichlet energy of features ``(n, ...)`` on a graph, a scalar in double precision.

    Args:
        x: features.
        edge_index: ``(2, m)``, or a :class:`~coopsheaf.Graph`.
        normalization: ``"augmented"``, as above; ``"plain"`` with d in place of d + 1; or ``None``
            without the roots.
    """
    x = check_floating("x", x)
    if x.dim() < 2:
        raise ValueError(f"`x` must have shape (n, ...); got {tuple(x.shape)}")
    return _energy(graph_sheaf(edge_index, x.shape[0]), x, normalization)


def energy_by_layer(
    model: Network,
    x: Tensor,
    edge_index: Tensor | Graph,
    *,
    normalization: str | None = "augmented",
    **inputs: Any,
) -> EnergyProfile:
    """The energy of a network's features before, between and after its layers.

    The features are those of :func:`~coopsheaf.analysis.layer_features`, the energy is that of the
    graph: the same measure for every network, with a sheaf or without.

    Args:
        model: a network of the registry.
        x: ``(n, in_channels)``.
        edge_index: ``(2, m)``, or a :class:`~coopsheaf.Graph`.
        normalization: as in :func:`feature_energy`.
        inputs: ``batch``, ``batch_size``, ``pe``, ``edge_weight`` or ``edge_attr``, as the network
            takes them.
    """
    graph = as_graph(edge_index, x.shape[0])
    with torch.no_grad():
        states = layer_features(model, x, graph, **inputs)
        sheaf = graph_sheaf(graph)
        energies = torch.stack([_energy(sheaf, state, normalization) for state in states])
        norms = torch.stack([state.double().square().sum() for state in states])
    return EnergyProfile(energies.cpu(), norms.cpu())


def compare_energy(
    models: Mapping[str, Network], x: Tensor, edge_index: Tensor | Graph, **options: Any
) -> dict[str, EnergyProfile]:
    """:func:`energy_by_layer` of several models, with the same options."""
    graph = as_graph(edge_index, x.shape[0])
    return {name: energy_by_layer(model, x, graph, **options) for name, model in models.items()}


@dataclass(frozen=True)
class RayleighProfile:
    r"""Rayleigh quotients :math:`\langle Y, \Delta Y \rangle / \|Y\|^2` of what T layers diffuse.

    Args:
        sheaf: ``(T,)``, with the Laplacian of the layer.
        identity: ``(T,)``, with identities for maps: the relative energy on the graph.
    """

    sheaf: Tensor
    identity: Tensor


@torch.no_grad()
def rayleigh_by_layer(
    model: Network, x: Tensor, edge_index: Tensor | Graph, **inputs: Any
) -> RayleighProfile:
    r"""How much neighbours disagree by the maps of each layer, beside what they would by none.

    Looked at is :math:`Y = (I_n \otimes W_1) X W_2`, which the Laplacian of the layer is applied
    to, without dropout. The identity is that of the graph without weights, as in
    :func:`feature_energy`.

    Args:
        model: Neural Sheaf Diffusion (``nsd-*``, ``isn``) or a relative whose layers have its form.
        x: ``(n, in_channels)``.
        edge_index: ``(2, m)``, or a :class:`~coopsheaf.Graph`.
        inputs: ``batch``, ``batch_size`` or ``edge_weight``, as the network takes them.
    """
    if not isinstance(model, NSD):
        raise ValueError(
            "`model` must be Neural Sheaf Diffusion or a relative of it to have Rayleigh "
            f"quotients; got {type(model).__name__}"
        )
    graph, found = as_graph(edge_index, x.shape[0]), []
    sheaf = graph_sheaf(graph)

    def look(conv: Any, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        operator, y = named.get("laplacian"), conv.mix(args[0])
        if operator is None:
            return
        image = operator.mv(y)
        square = operator.domain == operator.codomain  # a root of the Laplacian is not
        energy = (y * image).sum() if square else image.square().sum()
        norm = y.double().square().sum()
        size = norm if norm > 0 else torch.ones_like(norm)
        found.append(torch.stack([energy.double() / size, _energy(sheaf, y, "augmented") / size]))

    hooks = [conv.register_forward_pre_hook(look, with_kwargs=True) for conv in model.convs]
    try:
        with evaluating(model):
            model(x, graph, **inputs)
    finally:
        for hook in hooks:
            hook.remove()
    if len(found) != model.num_layers:
        raise ValueError(
            f"`model` must diffuse with one Laplacian in each of its {model.num_layers} layers to "
            f"have Rayleigh quotients; {type(model).__name__} has {len(found)}"
        )
    return RayleighProfile(*torch.stack(found, dim=1).cpu())


def _energy(sheaf: Sheaf, x: Tensor, normalization: str | None) -> Tensor:
    columns = x.double().flatten(1).unsqueeze(1)  # (n, 1, c)
    return dirichlet_energy(sheaf, columns, normalization).clamp(min=0)  # rounding may leave -1e-20
