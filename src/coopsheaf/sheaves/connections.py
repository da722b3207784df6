r"""Connections: orthogonal maps between neighbours that are known before anything is learned.

Local PCA (Singer & Wu, 2012; Barbero et al., 2022) gives every node v a frame: the first d left
singular vectors :math:`O_v` of the differences :math:`[x_u - x_v]_{u \in N(v)}` between its
neighbours' features and its own. Two frames meet in the orthogonal matrix nearest to their product,

.. math:: O_{vu} = U V^\top, \qquad O_v^\top O_u = U \Sigma V^\top,

which moves features from the frame of u into that of v. :math:`O_{uv} = O_{vu}^\top` exactly: each
pair of neighbours is computed once.

Frames are n·p·d numbers for features of size p. They are made for some nodes at a time, so that no
more than ``FRAME_NUMBERS`` of them are there at once, and made again where two such parts meet.

What an equation leaves open is decided, so that the same features give the same maps: frames with
orthogonal parts have, of all nearest matrices, the one nearest to the identity there, and
:mod:`coopsheaf.sheaves.frames` says what is done where a neighbourhood has too few directions.
"""

from __future__ import annotations

import torch
from torch import Tensor

from coopsheaf.checks import check_int
from coopsheaf.sheaves.draws import KINDS
from coopsheaf.sheaves.frames import PART_NUMBERS, Frames, LocalFrames, Pairs, RandomFrames
from coopsheaf.sheaves.graph import Graph, as_graph
from coopsheaf.sheaves.kernels.stalks import identity_like
from coopsheaf.sheaves.sheaf import Sheaf
from coopsheaf.tensor_checks import check_shape

FRAME_NUMBERS = 1 << 25
"""Numbers of the frames that are there at once: 256 MB."""
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
    eye = identity_like(maps, maps.shape[-1]).expand_as(maps)
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
