"""Frames at nodes: orthonormal directions in the space of features, of local PCA or drawn.

That of a node are the first d left singular vectors of what its neighbours' features differ from
its own in. What this leaves open is decided, so that the same features give the same frames:

* **too few neighbours**: the nearest other nodes of the same graph make them d;
* **too few directions** (duplicates, or features that do not differ): the first principal axes of
  all nodes of the graph that are new, and after them coordinate axes;
* **signs**: towards the neighbours' mean; if that is balanced, their third moments, and then the
  largest coordinate.

Equal singular values are still at the mercy of the library that finds them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import torch
from torch import Tensor

from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.kernels.stalks import identity_like

PART_NUMBERS = 1 << 22
"""Numbers that are decomposed, or gathered at pairs, at once."""


class Pairs:
    """The pairs of neighbours of a list of edges: without loops, each once, smaller end first.

    Args:
        source: ``(m,)``.
        target: ``(m,)``.
    """

    def __init__(self, source: Tensor, target: Tensor) -> None:
        self.source, self.target = source, target
        low, high = torch.minimum(source, target), torch.maximum(source, target)
        self.size = int(high.max()) + 1 if high.numel() else 1
        edges = (low != high).nonzero().flatten()
        codes, place = torch.unique((low * self.size + high)[edges], return_inverse=True)
        self.low, self.high = codes // self.size, codes % self.size  # (pairs,)
        self.edges, self.place = edges, place
        last = torch.arange(len(edges) - 1, -1, -1, device=source.device)
        self.first = torch.empty_like(codes).scatter_(0, place[last], edges[last])

    def __len__(self) -> int:
        return self.low.numel()

    def at_edges(self, maps: Tensor) -> Tensor:
        """Maps ``(pairs, d, d)`` into the frame of the smaller end, at all edges ``(m, d, d)``."""
        found = identity_like(maps, maps.shape[-1]).repeat(self.source.numel(), 1, 1)
        here = maps[self.place]
        into_low = (self.target < self.source)[self.edges]
        found[self.edges] = torch.where(into_low[:, None, None], here, here.mT)
        return found


class Frames(ABC):
    """Orthonormal frames in the space of features, made when they are asked for.

    Args:
        features: p.
        stalk_dim: d.
    """

    def __init__(self, features: int, stalk_dim: int) -> None:
        self.features, self.stalk_dim = features, stalk_dim

    @abstractmethod
    def __call__(self, nodes: Tensor) -> Tensor:
        """``(k,)`` nodes to ``(k, p, d)``, in double precision."""


class RandomFrames(Frames):
    """Uniform frames; that of a node depends on the seed and its number alone."""

    def __init__(self, features: int, stalk_dim: int, num_nodes: int, seed: int) -> None:
        super().__init__(features, stalk_dim)
        draw = torch.Generator().manual_seed(seed)
        # Of a seed the generator reads 32 bits.
        self.seeds = torch.randint(1 << 32, (num_nodes,), generator=draw)

    def __call__(self, nodes: Tensor) -> Tensor:
        shape, draw = (self.features, self.stalk_dim), torch.Generator()
        drawn = [
            torch.randn(shape, generator=draw.manual_seed(seed), dtype=torch.float64)
            for seed in self.seeds[nodes].tolist()
        ]
        q, r = torch.linalg.qr(torch.stack(drawn))
        return q * r.diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2)


class LocalFrames(Frames):
    """Frames of local PCA.

    Args:
        x: ``(n, p)``, in double precision.
        pairs: of neighbours.
        stalk_dim: d.
        batch: ``(n,)``, the graph of each node.
    """

    def __init__(self, x: Tensor, pairs: Pairs, stalk_dim: int, batch: Tensor | None) -> None:
        super().__init__(x.shape[1], stalk_dim)
        self.x = x
        self.batch = torch.zeros(len(x), dtype=torch.int64) if batch is None else batch
        ends = torch.stack([torch.cat([pairs.low, pairs.high]), torch.cat([pairs.high, pairs.low])])
        self.neighbours = Graph(ends, len(x)).by_source
        self._axes: dict[int, Tensor] = {}

    def __call__(self, nodes: Tensor) -> Tensor:
        frames = self.x.new_empty(len(nodes), self.features, self.stalk_dim)
        degree = self.neighbours.degree(nodes)
        for count in torch.unique(degree).tolist():
            group = (degree == count).nonzero().flatten()
            step = max(1, PART_NUMBERS // (max(count, self.stalk_dim) * self.features))
            for part in group.split(step):
                frames[part] = self._frames(nodes[part], count)
        return frames

    def _frames(self, nodes: Tensor, count: int) -> Tensor:
        """Those of nodes with as many neighbours each."""
        position, _ = self.neighbours.take(nodes)
        others = self.neighbours.other[position].view(len(nodes), count)
        if count >= self.stalk_dim:
            return self._complete(nodes, self.x[others] - self.x[nodes].unsqueeze(1))
        rows = []
        for k, near in zip(range(len(nodes)), self._nearest(nodes, others), strict=True):
            both = torch.cat([others[k], near])
            rows.append(self._complete(nodes[k : k + 1], (self.x[both] - self.x[nodes[k]])[None]))
        return torch.cat(rows)

    def _nearest(self, nodes: Tensor, others: Tensor) -> Iterator[Tensor]:
        """For each node as many more, the nearest of its graph, as it lacks neighbours."""
        missing = self.stalk_dim - others.shape[1]
        square = self.x.square().sum(1)
        step = max(1, PART_NUMBERS // len(self.x))
        for some, taken in zip(nodes.split(step), others.split(step), strict=True):
            distance = square[some, None] + square - 2 * self.x[some] @ self.x.T
            distance[self.batch[some, None] != self.batch] = torch.inf
            distance.scatter_(1, taken, torch.inf).scatter_(1, some[:, None], torch.inf)
            found = distance.sort(dim=1, stable=True)
            for values, near in zip(found.values, found.indices, strict=True):
                yield near[:missing][values[:missing].isfinite()]

    def _complete(self, nodes: Tensor, differences: Tensor) -> Tensor:
        """Frames of differences ``(k, count, p)``, with d directions whatever their rank is."""
        d = self.stalk_dim
        values, found = leading_directions(differences, d)
        size = max(differences.shape[1:]) * torch.finfo(values.dtype).eps
        rank = (values > size * values[:, :1]).sum(1).clamp(max=d)
        frames = towards(found, differences).mT
        if bool((rank == d).all()):
            return frames.contiguous()
        whole = []
        for node, frame, known in zip(nodes.tolist(), frames, rank.tolist(), strict=True):
            candidates = self._candidates(int(self.batch[node]))
            whole.append(frame if known == d else extend(frame[:, :known], candidates, d))
        return torch.stack(whole)

    def _candidates(self, graph: int) -> Tensor:
        """Directions for frames that lack some, ``(at most 2d, p)``: principal axes come first."""
        if graph not in self._axes:
            x = self.x[self.batch == graph]
            centred = x - x.mean(0)
            _, values, right = torch.linalg.svd(centred, full_matrices=False)
            size = max(x.shape) * torch.finfo(x.dtype).eps
            axes = right[: self.stalk_dim][values[: self.stalk_dim] > size * values[:1]]
            axes = towards(axes[None], centred[None])[0]
            units = torch.eye(self.stalk_dim, self.features, dtype=x.dtype)
            self._axes[graph] = torch.cat([axes, units])
        return self._axes[graph]


def leading_directions(differences: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Singular values ``(k, r)`` of ``(k, rows, p)``, and the first right vectors, as rows.

    The large side is only ever factored, not rotated: of hundreds of vectors a few are wanted.
    """
    rows, p = differences.shape[1:]
    if rows >= p:
        _, values, right = torch.linalg.svd(torch.linalg.qr(differences, mode="r").R)
        return values, right[:, :count]
    _, values, right = torch.linalg.svd(torch.linalg.qr(differences.mT, mode="r").R)
    images = differences.mT @ right[:, :count].mT  # (k, p, count): vectors times their values
    q, r = torch.linalg.qr(images)
    signs = torch.where(r.diagonal(dim1=-2, dim2=-1) < 0, -1.0, 1.0).to(q)
    return values, (q * signs.unsqueeze(-2)).mT


def towards(directions: Tensor, differences: Tensor) -> Tensor:
    """Directions ``(k, r, p)`` with the sign that points to where the differences are.

    Args:
        directions: orthonormal rows.
        differences: ``(k, count, p)``.
    """
    along = differences @ directions.mT  # (k, count, r)
    sign = torch.zeros_like(along[:, 0])
    for moment in (along, along**3):
        total, size = moment.sum(1), moment.abs().sum(1)
        clear = (sign == 0) & (total.abs() > 1e-9 * size)
        sign = torch.where(clear, total.sign(), sign)
    largest = directions.gather(2, directions.abs().argmax(2, keepdim=True)).squeeze(2)
    sign = torch.where(sign == 0, torch.where(largest < 0, -1.0, 1.0).to(sign), sign)
    return directions * sign.unsqueeze(2)


def extend(frame: Tensor, candidates: Tensor, stalk_dim: int) -> Tensor:
    """A frame ``(p, r)`` with more directions, ``(p, d)``: the first candidates that are new.

    Of d orthonormal candidates some has at least 1/d of its square outside of fewer than d
    directions; half of that is new enough.
    """
    for candidate in candidates:
        if frame.shape[1] == stalk_dim:
            break
        rest = candidate - frame @ (frame.T @ candidate)
        if rest.square().sum() >= 0.5 / stalk_dim:
            rest = rest - frame @ (frame.T @ rest)  # once more, for the last digits
            frame = torch.cat([frame, (rest / rest.norm())[:, None]], dim=1)
    assert frame.shape[1] == stalk_dim, "coordinate axes complete every frame"
    return frame
