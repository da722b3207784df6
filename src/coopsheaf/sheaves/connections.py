r"""Connections: orthogonal maps between neighbours that are known before anything is learned.

Local PCA (Singer & Wu, 2012; Barbero et al., 2022) gives every node v a frame: the first d left
singular vectors :math:`O_v` of the differences :math:`[x_u - x_v]_{u \in N(v)}` between its
neighbours' features and its own. Two frames meet in the orthogonal matrix nearest to their product,

.. math:: O_{vu} = U V^\top, \qquad O_v^\top O_u = U \Sigma V^\top,

which moves features from the frame of u into that of v. :math:`O_{uv} = O_{vu}^\top` exactly: each
pair of neighbours is computed once.

Frames are n·p·d numbers for features of size p. They are made for some nodes at a time, so that no
more than ``FRAME_NUMBERS`` of them are there at once, and made again where two such parts meet.

What an equation leaves open is decided, so that the same features give the same maps:

* **too few neighbours**: the nearest other nodes of the same graph make them d;
* **too few directions** (duplicates, or features that do not differ): the first principal axes of
  all nodes of the graph that are new, and after them coordinate axes;
* **signs**: towards the neighbours' mean; if that is balanced, their third moments, and then the
  largest coordinate;
* **frames with orthogonal parts**: of all nearest matrices the one nearest to the identity there.

Equal singular values are still at the mercy of the library that finds them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import torch
from torch import Tensor

from coopsheaf.checks import check_int
from coopsheaf.sheaves.draws import KINDS
from coopsheaf.sheaves.graph import Graph, as_graph
from coopsheaf.sheaves.sheaf import Sheaf
from coopsheaf.tensor_checks import check_shape

FRAME_NUMBERS = 1 << 25
"""Numbers of the frames that are there at once: 256 MB."""
PART_NUMBERS = 1 << 22
"""Numbers that are decomposed, or gathered at pairs, at once."""
NULL = 1e-10
"""Singular values of products of frames, at most 1, below this are none."""


def connection_maps(
    x: Tensor,
    edge_index: Tensor | Graph,
    stalk_dim: int,
    *,
    batch: Tensor | None = None,
) -> Tensor:
    r"""The connection of local PCA: for every edge e = j→i the map :math:`O_{ij}`, ``(m, d, d)``.

    Orthogonal, and transposed in the other direction. It does not change when a vector is added to
    all features or all are rotated together (but for what the module says of ties). Neighbours are
    neighbours whichever way the edge goes and count once; a self-loop has the identity. Computed in
    double precision, without a gradient.

    Args:
        x: ``(n, p)`` features, finite.
        edge_index: ``(2, m)``, or a :class:`~coopsheaf.Graph`.
        stalk_dim: d, at most p.
        batch: ``(n,)``, the graph of each node; missing neighbours are looked for in it alone.
    """
    check_shape("x", x, "(n, p)", (None, None))
    graph = as_graph(edge_index, x.shape[0])
    check_frame_dim(stalk_dim, x.shape[1])
    maps = _local_transports(x.detach().double(), graph.source, graph.target, batch, stalk_dim)
    return maps.to(x.dtype)


def random_connection(
    edge_index: Tensor | Graph,
    stalk_dim: int,
    num_nodes: int | None = None,
    *,
    features: int | None = None,
    seed: int = 0,
    dtype: torch.dtype | None = None,
) -> Tensor:
    r"""A connection that knows nothing of features, as a control: ``(m, d, d)``.

    Uniform on O(d) for each pair of neighbours; or, with a number of ``features``, a uniform frame
    :math:`O_v` in :math:`\mathbb{R}^p` for each node, which are aligned as those of
    :func:`connection_maps` are. It depends on the seed and on which nodes are neighbours, not on
    the order of the edges.

    Args:
        edge_index: ``(2, m)``, or a :class:`~coopsheaf.Graph`.
        stalk_dim: d.
        num_nodes: n; the largest index plus one if not given.
        features: p, at least d; a map per pair and no frames if not given.
        seed: of the maps.
        dtype: of the maps; PyTorch's default if not given.
    """
    graph = as_graph(edge_index, num_nodes)
    check_int("stalk_dim", stalk_dim, minimum=1)
    if features is not None:
        check_frame_dim(stalk_dim, features)
    ends = graph.source, graph.target
    maps = _random_transports(*ends, graph.num_nodes, stalk_dim, features, seed)
    return maps.to(dtype or torch.get_default_dtype())


def connection_sheaf(edge_index: Tensor | Graph, transports: Tensor) -> Sheaf:
    r"""The sheaf of a connection: each pair of neighbours once, with the maps I and :math:`O_{uv}`.

    Its Laplacian has the blocks :math:`L_{uu} = \deg(u) I` and :math:`L_{uv} = -O_{uv}`. Loops and
    repeated edges are left out.

    Args:
        edge_index: ``(2, m)``, or a :class:`~coopsheaf.Graph`.
        transports: ``(m, d, d)``, as :func:`connection_maps` gives them for these edges.
    """
    graph = as_graph(edge_index)
    m = graph.num_edges
    check_shape("transports", transports, f"(m, d, d) with m = {m}", (m, None, None))
    pairs = Pairs(graph.source, graph.target)
    kept = transports[pairs.first]
    from_high = (graph.target[pairs.first] == pairs.low)[:, None, None]
    maps = torch.where(from_high, kept, kept.mT)  # from the larger end to the smaller
    eye = torch.eye(maps.shape[-1]).to(maps).expand_as(maps)
    ends = torch.stack([pairs.low, pairs.high])
    return Sheaf(ends, torch.stack([eye, maps], dim=1), graph.num_nodes)


def check_frame_dim(stalk_dim: int, features: int) -> int:
    """A stalk that is no larger than the features in which its frame is."""
    check_int("stalk_dim", stalk_dim, minimum=1)
    if stalk_dim > features:
        raise ValueError(
            f"`stalk_dim` must be at most the number of features, {features}: a frame has no more "
            f"directions; got {stalk_dim}"
        )
    return stalk_dim


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
        found = torch.eye(maps.shape[-1]).to(maps).repeat(self.source.numel(), 1, 1)
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


def align(frames: Frames, pairs: Pairs) -> Tensor:
    """For every pair (u, v), u < v, the orthogonal matrix O_uv nearest to O_uᵀ O_v."""
    p, d = frames.features, frames.stalk_dim
    maps = torch.empty(len(pairs), d, d, dtype=torch.float64)
    if len(pairs) == 0:
        return maps
    used = torch.unique(torch.cat([pairs.low, pairs.high]))
    low, high = torch.searchsorted(used, pairs.low), torch.searchsorted(used, pairs.high)
    size = max(1, FRAME_NUMBERS // (2 * p * d))  # two parts are there at once
    blocks = list(used.split(size))
    for i, first in enumerate(blocks):
        left = frames(first)
        for j, second in list(enumerate(blocks))[i:]:
            chosen = ((low // size == i) & (high // size == j)).nonzero().flatten()
            if chosen.numel() == 0:
                continue
            right = left if i == j else frames(second)
            for part in chosen.split(max(1, PART_NUMBERS // (p * d))):
                one, other = left[low[part] - i * size], right[high[part] - j * size]
                maps[part] = nearest_orthogonal(one.mT @ other)
    return maps


def nearest_orthogonal(matrices: Tensor) -> Tensor:
    """U Vᵀ of matrices U Σ Vᵀ, ``(k, d, d)``.

    Where singular values vanish many are equally near: then the one that is nearest to the
    identity between what is left over on both sides, so that the transposed gives the transposed.
    """
    u, values, vh = torch.linalg.svd(matrices)
    null = values <= NULL
    if not bool(null.any()):
        return u @ vh
    # Identity beside the overlaps of what vanishes on the left with what does on the right.
    both = null.unsqueeze(-1) & null.unsqueeze(-2)
    middle = torch.where(both, u.mT @ vh.mT, torch.diag_embed((~null).to(u.dtype)))
    a, _, b = torch.linalg.svd(middle)
    return u @ a @ b @ vh


@torch.library.custom_op("coopsheaf::random_transports", mutates_args=())
def _random_transports(
    source: Tensor,
    target: Tensor,
    num_nodes: int,
    stalk_dim: int,
    features: int | None,
    seed: int,
) -> Tensor:
    pairs = Pairs(source.cpu(), target.cpu())
    if features is None:
        draw, shape = torch.Generator().manual_seed(seed), (len(pairs), stalk_dim, stalk_dim)
        maps = KINDS["orthogonal"](shape, draw, torch.float64)
    else:
        maps = align(RandomFrames(features, stalk_dim, num_nodes, seed), pairs)
    return pairs.at_edges(maps).to(source.device)


@_random_transports.register_fake
def _(
    source: Tensor, target: Tensor, num_nodes: int, stalk_dim: int, features: int | None, seed: int
) -> Tensor:
    return source.new_empty(source.shape[0], stalk_dim, stalk_dim, dtype=torch.float64)


@torch.library.custom_op("coopsheaf::local_transports", mutates_args=())
def _local_transports(
    x: Tensor, source: Tensor, target: Tensor, batch: Tensor | None, stalk_dim: int
) -> Tensor:
    """One opaque step for compilers: its loops follow the degrees of nodes."""
    if not bool(x.isfinite().all()):
        raise ValueError("`x` must be finite for local PCA; got infinite or undefined features")
    pairs = Pairs(source.cpu(), target.cpu())
    groups = None if batch is None else batch.cpu()
    maps = align(LocalFrames(x.cpu(), pairs, stalk_dim, groups), pairs)
    return pairs.at_edges(maps).to(x.device)


@_local_transports.register_fake
def _(x: Tensor, source: Tensor, target: Tensor, batch: Tensor | None, stalk_dim: int) -> Tensor:
    return x.new_empty(source.shape[0], stalk_dim, stalk_dim)


@_local_transports.register_vmap
def _(info: object, in_dims: tuple[int | None, ...], *inputs: object) -> tuple[Tensor, int]:
    """Features of several runs at once: one after the other."""
    x, source, target, batch, stalk_dim = inputs
    assert isinstance(x, Tensor)
    assert in_dims[0] is not None, "the graph is the same for all"
    rest = (source, target, batch, stalk_dim)
    return torch.stack([_local_transports(part, *rest) for part in x.unbind(in_dims[0])]), 0
