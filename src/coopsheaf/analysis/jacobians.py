r"""Who influences whom: norms of Jacobians, exactly or by random projections.

The influence of node j on node i is the Frobenius norm :math:`\|J_{ij}\|`, with
:math:`J_{ij} = \partial y_i / \partial x_j` and y the output, the embedding or the features after
some layer. Derivatives are taken at the given features and parameters, with dropout off. One
vector-Jacobian product costs one backward pass and gives a row :math:`v^\top J_{ij}` for *all* j.
Exactly, a target takes one such product per channel of y. For v of independent random signs,
:math:`\mathbb{E} \|v^\top J_{ij}\|^2 = \|J_{ij}\|^2`: the mean over a few *probes* v is an unbiased
estimate of the *squared* norm, and their scatter tells its error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from coopsheaf.analysis.hops import Nodes, check_nodes, hop_distances
from coopsheaf.analysis.probing import row_products, trace
from coopsheaf.checks import check_int
from coopsheaf.sheaves.graph import Graph, as_graph

# The two-sided 95 % quantile of the normal distribution.
Z95 = 1.959964


@dataclass(frozen=True)
class Influence:
    """Influence of s sources on t targets.

    Args:
        targets: ``(t,)``.
        sources: ``(s,)``.
        squared: ``(t, s)``, squared Frobenius norms, exact or estimated without bias.
        squared_error: ``(t, s)``, their standard errors; 0 where they are exact.
        probes: random signs per target; ``None`` if exact.
    """

    targets: Tensor
    sources: Tensor
    squared: Tensor
    squared_error: Tensor
    probes: int | None

    @property
    def norms(self) -> Tensor:
        """Frobenius norms, ``(t, s)``: the roots of ``squared`` (for estimates: biased down)."""
        return self.squared.sqrt()

    def interval(self, z: float = Z95) -> tuple[Tensor, Tensor]:
        """Bounds of the squared norms: z standard errors either way, not below 0.

        By default about 95 %, as far as means of ``probes`` values are normal: with fewer than
        about 30 probes it covers somewhat less.
        """
        return _interval(self.squared, self.squared_error, z)


@dataclass(frozen=True)
class HopProfile:
    r"""Influence by distance.

    Args:
        mean_squared: ``(K + 1,)``, squared influence of a node at distance k, averaged over the
            nodes at that distance from a target and then over the targets that have any.
        error: ``(K + 1,)``, standard errors of that: from drawing targets and from probes.
        total: ``(K + 1,)``, squared influence of all nodes at distance k together, averaged over
            targets.
        beyond: the same of all nodes without a path (or further than ``max_hops``).
        effective_range: :math:`\sum_k k \, \text{total}_k / \sum_k \text{total}_k`, the mean
            distance of what a target depends on, weighted by squared influence; nodes ``beyond``
            do not count. NaN if nothing has influence.
        range_error: its standard error, linearised as is usual for ratios.
        num_targets: targets looked at.
        population: targets they stand for.
        probes: random signs per target; ``None`` if exact.
    """

    mean_squared: Tensor
    error: Tensor
    total: Tensor
    beyond: float
    effective_range: float
    range_error: float
    num_targets: int
    population: int
    probes: int | None

    @property
    def rms(self) -> Tensor:
        """Root mean square influence at each distance, ``(K + 1,)``."""
        return self.mean_squared.sqrt()

    def interval(self, z: float = Z95) -> tuple[Tensor, Tensor]:
        """Bounds of ``mean_squared``: z standard errors either way, not below 0.

        By default about 95 % if many targets contribute. When a few carry most of the influence
        (an isolated node among others, say), draws that miss them are too sure of themselves.
        """
        return _interval(self.mean_squared, self.error, z)


def influence(
    model: nn.Module,
    x: Tensor,
    edge_index: Tensor | Graph,
    *,
    targets: Nodes = None,
    sources: Nodes = None,
    at: str | int = "output",
    wrt: str = "input",
    probes: int | None = None,
    seed: int = 0,
    **inputs: Any,
) -> Influence:
    r"""Squared Frobenius norms of :math:`\partial y_i / \partial x_j` for targets i, sources j.

    Args:
        model: any network of the registry, or a module called as ``model(x, graph)``.
        x: ``(n, in_channels)``.
        edge_index: ``(2, m)``, or a :class:`~coopsheaf.Graph`.
        targets: nodes i; all if not given. For networks with a pool the outputs are graphs, and so
            are the targets.
        sources: nodes j; all if not given.
        at: what y is: ``"output"``, ``"embedding"`` (after the last layer, before pool and
            readout), or the number of layers after which to look (0: before the first).
        wrt: ``"input"`` for derivatives by x, or ``"encoder"`` for derivatives by what the
            encoder returns, also when x holds integers.
        probes: number of random sign vectors per target, at least 2; exact if not given, or if
            there are not more channels than probes.
        seed: of the random signs.
        inputs: ``batch``, ``batch_size``, ``pe``, ``edge_weight`` or ``edge_attr``, as the network
            takes them.

    Cost: a backward pass per target and channel, or per target and probe.
    """
    graph = as_graph(edge_index, x.shape[0])
    leaf, out = trace(model, x, graph, at=at, wrt=wrt, inputs=inputs)
    rows = check_nodes("targets", targets, out.shape[0], things="rows of what is differentiated")
    columns = check_nodes("sources", sources, graph.num_nodes)
    signs = _Signs(probes, out.shape[1], seed)
    squared = torch.empty(len(rows), len(columns), dtype=torch.float64)
    error = torch.zeros_like(squared)
    for k, row in enumerate(rows.tolist()):
        samples = torch.stack(list(_pull(out, leaf, row, signs.draw())))[:, columns]
        squared[k] = signs.combine(samples)
        error[k] = signs.variance(samples).sqrt()
    return Influence(rows, columns, squared, error, signs.probes)


def influence_by_hop(
    model: nn.Module,
    x: Tensor,
    edge_index: Tensor | Graph,
    *,
    targets: Nodes = None,
    num_targets: int | None = None,
    at: str | int = "output",
    wrt: str = "input",
    probes: int | None = None,
    seed: int = 0,
    flow: str = "source_to_target",
    max_hops: int | None = None,
    **inputs: Any,
) -> HopProfile:
    """Influence averaged by distance, over all targets or some drawn at random.

    Args:
        model: any network of the registry with node outputs (with a pool: ``at="embedding"``).
        x: ``(n, in_channels)``.
        edge_index: ``(2, m)``, or a :class:`~coopsheaf.Graph`.
        targets: the nodes that count as targets; all if not given.
        num_targets: look only at so many of them, at least 2, drawn without repetition; the errors
            then say what that costs.
        at: what is differentiated, as in :func:`influence`.
        wrt: by what, as in :func:`influence`.
        probes: random sign vectors per target, as in :func:`influence`.
        seed: of the targets drawn and of the random signs.
        flow: in which direction distances are counted, as in :func:`hop_distances`.
        max_hops: how far to tell distances apart.
        inputs: ``batch``, ``pe``, ``edge_weight`` or ``edge_attr``, as the network takes them.
    """
    graph = as_graph(edge_index, x.shape[0])
    leaf, out = trace(model, x, graph, at=at, wrt=wrt, inputs=inputs)
    if out.shape[0] != graph.num_nodes:
        raise ValueError(
            "`at` must be 'embedding' or a number of layers for a network with a pool, since "
            f"graphs have no distances; got {at!r}"
        )
    nodes = check_nodes("targets", targets, graph.num_nodes)
    population = len(nodes)
    if num_targets is not None:
        check_int("num_targets", num_targets, minimum=2)
        drawn = torch.randperm(population, generator=torch.Generator().manual_seed(seed))
        nodes = nodes[drawn[:num_targets]]
    signs = _Signs(probes, out.shape[1], seed + 1)
    distances = hop_distances(graph, nodes, flow=flow, max_hops=max_hops).cpu()
    bins = int(distances.max()) + 2  # the last one: no path

    sums, counts, variances = [], [], []
    for node, distance in zip(nodes.tolist(), distances, strict=True):
        place = torch.where(distance < 0, bins - 1, distance)
        samples = torch.stack(list(_pull(out, leaf, node, signs.draw())))
        shells = samples.new_zeros(len(samples), bins).index_add(1, place, samples)
        sums.append(shells)
        counts.append(torch.bincount(place, minlength=bins))
    variances = [signs.variance(shells) for shells in sums]
    by_target = torch.stack([signs.combine(shells) for shells in sums])  # (t, K + 2)
    count, variance = torch.stack(counts).double(), torch.stack(variances)
    fraction = len(nodes) / population

    mean, error = [], []
    for k in range(bins - 1):
        some = count[:, k] > 0
        values, size = by_target[some, k], count[some, k]
        mean.append((values / size).mean())
        error.append(_two_stage(values / size, variance[some, k] / size.square(), fraction))

    # The range as a ratio of means: the distances summed up over the influence summed up.
    hops = torch.arange(bins - 1, dtype=torch.float64)
    near = by_target[:, :-1]
    weight = near.sum(1).mean()
    reach = (near @ hops).mean() / weight
    centred = [shells[:, :-1] @ (hops - reach) / weight for shells in sums]
    residual = torch.stack([signs.combine(part) for part in centred])
    scatter = torch.stack([signs.variance(part) for part in centred])
    return HopProfile(
        mean_squared=torch.stack(mean),
        error=torch.stack(error),
        total=near.mean(0),
        beyond=float(by_target[:, -1].mean()),
        effective_range=float(reach),
        range_error=float(_two_stage(residual, scatter, fraction)),
        num_targets=len(nodes),
        population=population,
        probes=signs.probes,
    )


@dataclass(frozen=True)
class Comparison:
    """Influence by distance of several models on the same features and graph."""

    profiles: dict[str, HopProfile]

    @property
    def header(self) -> list[str]:
        hops = max(len(profile.mean_squared) for profile in self.profiles.values())
        return ["model", "range", *(f"hop {k}" for k in range(hops))]

    @property
    def rows(self) -> list[list[str]]:
        """Per model its effective range and root mean square influence by hop; ± 95 %."""
        rows = []
        for name, profile in self.profiles.items():
            spread = f" ± {Z95 * profile.range_error:.2f}" if profile.range_error > 0 else ""
            values = [f"{value:.2e}" if value else "0" for value in profile.rms.tolist()]
            rows.append([name, f"{profile.effective_range:.2f}{spread}", *values])
        return rows

    def __str__(self) -> str:
        lines = [self.header, *self.rows]
        widths = [max(len(line[k]) for line in lines) for k in range(len(self.header))]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        )


def compare_influence(
    models: Mapping[str, nn.Module], x: Tensor, edge_index: Tensor | Graph, **options: Any
) -> Comparison:
    """:func:`influence_by_hop` of several models, with the same options and the same targets."""
    if not models:
        raise ValueError("`models` must hold at least one model; got none")
    graph = as_graph(edge_index, x.shape[0])
    return Comparison(
        {name: influence_by_hop(model, x, graph, **options) for name, model in models.items()}
    )


class _Signs:
    """The vectors that multiply Jacobians: all unit vectors, or a few of random signs."""

    def __init__(self, probes: int | None, channels: int, seed: int) -> None:
        if probes is not None:
            check_int("probes", probes, minimum=2)
        self.probes = None if probes is None or probes >= channels else probes
        self.channels = channels
        self.generator = torch.Generator().manual_seed(seed)

    def draw(self) -> Tensor:
        """``(k, channels)``."""
        if self.probes is None:
            return torch.eye(self.channels)
        bits = torch.randint(0, 2, (self.probes, self.channels), generator=self.generator)
        return 2.0 * bits - 1

    def combine(self, samples: Tensor) -> Tensor:
        """From what each vector gave, ``(k, ...)``, to the squared norm or its estimate."""
        return samples.sum(0) if self.probes is None else samples.mean(0)

    def variance(self, samples: Tensor) -> Tensor:
        """The estimated variance of :meth:`combine`."""
        if self.probes is None:
            return torch.zeros_like(samples[0])
        return samples.var(0) / self.probes


def _pull(out: Tensor, leaf: Tensor, row: int, vectors: Tensor) -> Iterator[Tensor]:
    """‖vᵀ J_ij‖² for i = row and every j, ``(n,)``, for one v after the other."""
    for product in row_products(out, leaf, row, vectors):
        yield product.flatten(1).double().square().sum(1).cpu()


def _two_stage(values: Tensor, variances: Tensor, fraction: float) -> Tensor:
    """The standard error of a mean over drawn targets, each itself estimated.

    With S² the scatter between targets, σ² the mean variance of one target's value, m drawn
    targets and f the fraction of all that they are, the variance is (1 - f) S²/m + σ²/m. The
    scatter seen between values is S² + σ².
    """
    m = len(values)
    own = variances.mean() / m
    if fraction >= 1:
        return own.sqrt()
    if m < 2:
        return torch.full_like(own, torch.inf)  # one target says nothing about the others
    return ((1 - fraction) * values.var() / m + fraction * own).sqrt()


def _interval(value: Tensor, error: Tensor, z: float) -> tuple[Tensor, Tensor]:
    return (value - z * error).clamp(min=0), value + z * error
