r"""Positions by forces: neighbours pull, everybody pushes.

A node i of mass :math:`m_i` feels

.. math::
    F_i = \sum_j m_i m_j \frac{p_i - p_j}{\|p_i - p_j\|^3}
        - \sum_{j \sim i} w_{ij} \|p_i - p_j\| (p_i - p_j), \qquad
    w_{ij} = (\deg_i \deg_j)^{-1/2} .

The push falls off fast, so that the rim of a large graph is not blown up; the weights keep those
who have many neighbours from collapsing into a dot. Three things make it fast and good for ten
thousand nodes and more:

* **many levels**: neighbours are merged two by two until few are left. These are laid out by the
  lengths of the paths between them, and each level begins where the coarser one ended, so that
  long chains and rings unfold;
* **a mesh**: masses are spread on a square mesh, and one convolution by Fourier transforms gives
  the push of all on all;
* **steps that shrink**: a node moves along its force by a length that decreases geometrically.

Nothing is drawn at random: the same graph has the same picture.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from coopsheaf.pages.explorer.adjacency import Adjacency

# A level of this many nodes is laid out pair by pair; merging ends here.
FEW = 128
# Entries of matrices that are computed at once.
_TOGETHER = 1 << 20

_GOLDEN = math.pi * (3 - math.sqrt(5))


@dataclass(frozen=True)
class _Level:
    """A graph on the way from fine to coarse: each pair of neighbours once."""

    one: Tensor  # (e,)
    other: Tensor  # (e,)
    weight: Tensor  # (e,)
    mass: Tensor  # (n,)

    @property
    def num_nodes(self) -> int:
        return len(self.mass)


def force_positions(graph: Adjacency) -> Tensor:
    """Positions ``(n, 2)`` of a connected graph, around the origin."""
    if graph.num_nodes <= FEW:
        return small_positions([graph])[0]
    levels, parents = [_finest(graph)], []
    while levels[-1].num_nodes > FEW:
        coarser, parent = _coarsen(levels[-1])
        levels.append(coarser)
        parents.append(parent)
    place = _small(_matrix(levels[-1])[None], levels[-1].mass[None])[0]
    for level, parent in zip(reversed(levels[:-1]), reversed(parents), strict=True):
        # Twice as many nodes need twice the area; siblings start beside each other.
        grown = math.sqrt(level.num_nodes / int(parent.max() + 1))
        place = place[parent] * grown + 0.3 * _circle(level.num_nodes)
        place = _settle(level, place)
    return place


def small_positions(graphs: Sequence[Adjacency]) -> Tensor:
    """Positions ``(b, n, 2)`` of b connected graphs of n nodes each, all of them at once."""
    n = graphs[0].num_nodes
    pieces = []
    together = max(1, _TOGETHER // (n * n))
    for start in range(0, len(graphs), together):
        weight = torch.stack([_matrix(_finest(g)) for g in graphs[start : start + together]])
        pieces.append(_small(weight, weight.new_ones(weight.shape[:2])))
    return torch.cat(pieces)


def _finest(graph: Adjacency) -> _Level:
    row, column = torch.from_numpy(graph.rows), torch.from_numpy(graph.other)
    once = row < column
    one, other = row[once], column[once]
    degree = torch.from_numpy(graph.degree).double()
    return _Level(one, other, (degree[one] * degree[other]).rsqrt(), torch.ones_like(degree))


def _matrix(level: _Level) -> Tensor:
    """The weights of all pairs, ``(n, n)``."""
    matrix = torch.zeros(level.num_nodes, level.num_nodes, dtype=torch.float64)
    matrix[level.one, level.other] = level.weight
    return matrix + matrix.T


def _circle(n: int) -> Tensor:
    """n points of the unit circle; those that follow each other are far apart."""
    angle = torch.arange(n, dtype=torch.float64) * _GOLDEN
    return torch.stack([angle.cos(), angle.sin()], dim=1)


def _small(weight: Tensor, mass: Tensor) -> Tensor:
    """Positions ``(b, n, 2)`` from weights ``(b, n, n)`` and masses ``(b, n)``."""
    n = weight.shape[-1]
    # Who has the same paths to everybody is not in the same place.
    place = _by_paths(weight, mass) + 0.05 * _circle(n)
    both = mass[:, :, None] * mass[:, None]
    for step in _steps(40 if n <= 32 else 200, 0.5 * mass.sqrt().mean(1)[:, None, None]):
        apart = place[:, :, None] - place[:, None]  # (b, n, n, 2)
        square = apart.square().sum(-1)
        strength = both / square.clamp(min=1e-2).pow(1.5) - weight * square.sqrt()
        place = _step(place, (apart * strength[..., None]).sum(2), step)
    return place - place.mean(1, keepdim=True)


def _by_paths(weight: Tensor, mass: Tensor) -> Tensor:
    """Classical scaling: the plane in which distances are closest to lengths of paths.

    Forces alone leave folds and twists that they cannot undo.
    """
    n = weight.shape[-1]
    length = (mass[:, :, None] * mass[:, None]).pow(0.25)
    path = torch.where(weight > 0, length, math.inf)
    path.diagonal(dim1=1, dim2=2).zero_()
    for k in range(n):
        path = torch.minimum(path, path[:, :, k, None] + path[:, None, k])
    square = path.square()
    mean = square.mean(1, keepdim=True)
    centred = -0.5 * (square - mean - mean.mT + mean.mean(2, keepdim=True))
    value, vector = torch.linalg.eigh(centred)
    place = torch.zeros(*mass.shape, 2, dtype=torch.float64)
    for axis in range(min(2, n)):
        column = vector[:, :, -1 - axis] * value[:, -1 - axis, None].clamp(min=0).sqrt()
        # The sign of an eigenvector is free: the largest entry is positive.
        largest = column.gather(1, column.abs().argmax(1, keepdim=True))
        place[:, :, axis] = column * largest.sign()
    return place


def _steps(count: int, first: Any) -> Iterator[Any]:
    """Lengths of steps, from the first down to a fiftieth of it."""
    for k in range(count):
        yield first * 0.02 ** (k / count)


def _step(place: Tensor, force: Tensor, step: Any) -> Tensor:
    """Along the force; what is almost at rest goes a tenth of it, and does not swing."""
    length = force.norm(dim=-1, keepdim=True)
    return place + force * (step / length.clamp(min=1e-9)).clamp(max=0.1)


def _coarsen(level: _Level) -> tuple[_Level, Tensor]:
    """Merge neighbours in pairs; who finds no partner joins a pair next to it."""
    n = level.num_nodes
    # Those that pull each other most, for their masses, come last. Ties are broken as if by
    # chance: in the order of the numbers only one pair of a long chain would find together.
    pull = level.weight / (level.mass[level.one] * level.mass[level.other])
    tie = (level.one * 7919 + level.other * 104729) % 10007
    order = torch.argsort(pull * (1 + 1e-6 * tie), stable=True)
    one, other = level.one[order], level.other[order]
    # Each pair both ways, one after the other, so that they are ranked alike.
    row, column = torch.stack([one, other], 1).flatten(), torch.stack([other, one], 1).flatten()
    nodes = torch.arange(n)
    parent = torch.full((n,), -1)

    def favourite(possible: Tensor) -> Tensor:
        """The other end of each node's last possible pair, ``(n,)``; -1 without one."""
        at = possible.nonzero().squeeze(1)
        last = torch.full((n,), -1).scatter_reduce(0, row[at], at, "amax")
        return torch.where(last < 0, -1, column[last])

    for _ in range(20):
        wish = favourite((parent[row] < 0) & (parent[column] < 0))
        first = (wish >= 0) & (wish[wish] == nodes) & (nodes < wish)
        if not first.any():
            break
        parent[nodes[first]] = nodes[first]
        parent[wish[first]] = nodes[first]
    host = favourite((parent[row] < 0) & (parent[column] >= 0))
    joined = torch.where(parent >= 0, parent, torch.where(host >= 0, parent[host], nodes))
    return _merge(level, torch.unique(joined, return_inverse=True)[1])


def _merge(level: _Level, parent: Tensor) -> tuple[_Level, Tensor]:
    count = int(parent.max()) + 1
    one, other = parent[level.one], parent[level.other]
    kept = one != other
    key = torch.minimum(one, other) * count + torch.maximum(one, other)
    pairs, where = torch.unique(key[kept], return_inverse=True)
    weight = level.weight.new_zeros(len(pairs)).index_add(0, where, level.weight[kept])
    mass = level.mass.new_zeros(count).index_add(0, parent, level.mass)
    return _Level(pairs // count, pairs % count, weight, mass), parent


def _settle(level: _Level, place: Tensor) -> Tensor:
    """Follow the forces on many nodes."""
    for step in _steps(60, float(level.mass.sqrt().mean())):
        force = _push_mesh(place, level.mass) - _pull(place, level)
        place = _step(place, force, step)
    return place - place.mean(0)


def _pull(place: Tensor, level: _Level) -> Tensor:
    one, other, n = level.one, level.other, level.num_nodes
    x, y = place.unbind(1)
    right, down = x[one] - x[other], y[one] - y[other]
    strength = level.weight * torch.hypot(right, down)
    # Counting with weights sums several times faster than index_add does.
    columns = (
        torch.bincount(one, part, minlength=n) - torch.bincount(other, part, minlength=n)
        for part in (strength * right, strength * down)
    )
    return torch.stack(list(columns), dim=1)


def _push_mesh(place: Tensor, mass: Tensor) -> Tensor:
    """The same push from masses spread on a mesh; what is nearer than a cell pushes less."""
    cells = min(512, 2 ** math.ceil(math.log2(2 * math.sqrt(len(mass)))))
    low, high = place.amin(0), place.amax(0)
    cell = float((high - low).max()) / (cells - 2) + 1e-9
    at = (place - (low + high) / 2) / cell + cells / 2 - 0.5
    corner = at.floor().clamp(0, cells - 2).long()
    right, down = (at - corner).unbind(1)
    flat = corner[:, 1] * cells + corner[:, 0]
    flats = torch.stack([flat, flat + 1, flat + cells, flat + cells + 1])  # (4, n)
    left, up = 1 - right, 1 - down
    share = torch.stack([left * up, right * up, left * down, right * down])  # (4, n)
    spread = place.new_zeros(cells * cells)
    spread.index_add_(0, flats.reshape(-1), (share * mass).reshape(-1))
    field = _convolve(spread.view(cells, cells).float())
    felt = field.reshape(2, -1)[:, flats].double()  # (2, 4, n)
    return ((felt * share).sum(1) * (mass / cell**2)).T.contiguous()


def _convolve(spread: Tensor) -> Tensor:
    """The push of every cell on every cell, ``(2, cells, cells)``, in units of a cell."""
    cells = len(spread)
    shape = (2 * cells, 2 * cells)  # twice as large: the transform's mesh is a torus
    product = torch.fft.rfft2(spread, s=shape) * _kernel(cells)
    return torch.fft.irfft2(product, s=shape)[:, :cells, :cells]


@lru_cache(maxsize=4)
def _kernel(cells: int) -> Tensor:
    near = torch.fft.fftfreq(2 * cells, 1 / (2 * cells))
    x, y = near.expand(2 * cells, -1), near[:, None].expand(-1, 2 * cells)
    cube = (x.square() + y.square()).clamp(min=0.5).pow(1.5)
    return torch.fft.rfft2(torch.stack([x / cube, y / cube]))
