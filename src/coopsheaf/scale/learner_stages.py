"""Map learners on a whole graph, chunk of nodes by chunk of nodes.

What a node does by itself is done by the learner's own modules; only the sums over edges, and norms
over the whole graph, are written down here.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import LayerNorm

from coopsheaf.nn.learners import MLP, EmbeddedSAGE, MapLearner, is_as_built
from coopsheaf.nn.sage import SAGE, SAGEConv
from coopsheaf.scale.chunks import chunks, sum_rows
from coopsheaf.scale.scratch import Scratch
from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.maps import ConformalMaps


def learn_in_chunks(
    learner: MapLearner, x: Tensor, graph: Graph, chunk: int, scratch: Scratch
) -> ConformalMaps:
    """The maps of all nodes, without a temporary of more than ``chunk`` rows as wide as x.

    Args:
        learner: as in evaluation: no dropout.
        x: ``(n, in_channels)``.
        graph: the whole graph.
        chunk: nodes at a time.
        scratch: what x was made by, which lets go of it from time to time.
    """
    module = learner.learner
    raw = None
    if is_as_built(module, SAGE) and module.act in (F.relu, F.gelu):
        raw = _sage(module, x, graph, chunk)
    elif is_as_built(module, EmbeddedSAGE):
        raw = _embedded(module, x, graph, chunk)
    elif module is not None and not is_as_built(module, MLP):
        return learner(x, graph)  # the user's own: nobody knows what it does
    d = learner.orthogonal.stalk_dim
    scale, orthogonal = x.new_empty(x.shape[0]), x.new_empty(x.shape[0], d, d)
    for rows in scratch.chunks(x.shape[0], chunk):
        # An MLP looks at its own rows; what the others gave needs no graph any more.
        known = None if raw is None else raw[rows]
        maps = learner(x[rows], graph, raw=known)
        scale[rows], orthogonal[rows] = maps
    return ConformalMaps(scale, orthogonal)


def _sage(stack: SAGE, x: Tensor, graph: Graph, chunk: int) -> Tensor:
    last = len(stack.convs) - 1
    for level, conv in enumerate(stack.convs):
        assert isinstance(conv, SAGEConv)
        x = _convolve(conv, x, graph, chunk)
        if level < last:
            _normalize(stack.norms[level], x, chunk)
            _apply(stack.act, x, chunk)
    return x


def _embedded(module: EmbeddedSAGE, x: Tensor, graph: Graph, chunk: int) -> Tensor:
    n = x.shape[0]
    hidden = x.new_empty(n, module.emb1.out_features)
    for rows in chunks(n, chunk):
        hidden[rows] = F.gelu(module.emb1(x[rows]))
    for conv in module.phi:
        assert isinstance(conv, SAGEConv)
        new = _convolve(conv, hidden, graph, chunk)
        _apply(F.gelu, new, chunk)
        hidden = new.add_(hidden) if module.residual else new
    return torch.cat([module.emb2(hidden[rows]) for rows in chunks(n, chunk)])


def _convolve(conv: SAGEConv, x: Tensor, graph: Graph, chunk: int) -> Tensor:
    """W_l mean(p(x_j)) + b + W_r x_i for all nodes, ``(n, out_channels)``."""
    n = x.shape[0]
    # A layer that widens and does not project tells x itself: no copy of that.
    plain = conv.lin is None and conv.out_channels > conv.in_channels
    sent = x if plain else torch.cat([conv.tell(x[rows]) for rows in chunks(n, chunk)])
    out = x.new_empty(n, conv.out_channels)
    for rows in chunks(n, chunk):
        degree = graph.by_target.ptr[rows.start : rows.stop + 1].diff().clamp(min=1)
        mean = sum_rows(sent, graph.by_target, rows) / degree.to(x.dtype).unsqueeze(1)
        out[rows] = conv.hear(mean, x[rows])
    return out


def _normalize(norm: nn.Module, x: Tensor, chunk: int) -> None:
    """A norm between layers, in place; over the whole graph it takes two passes before."""
    if isinstance(norm, nn.Identity):
        return
    if not (isinstance(norm, LayerNorm) and norm.mode == "graph"):
        _apply(norm, x, chunk)
        return
    pieces = list(chunks(x.shape[0], chunk))
    mean = torch.stack([x[rows].double().sum() for rows in pieces]).sum() / x.numel()
    squares = torch.stack([(x[rows].double() - mean).square().sum() for rows in pieces])
    centre, factor = mean.to(x.dtype), 1 / ((squares.sum() / x.numel()).sqrt() + norm.eps)
    for rows in pieces:
        part = (x[rows] - centre) * factor.to(x.dtype)
        x[rows] = part if norm.weight is None else part * norm.weight + norm.bias


def _apply(function: Callable[[Tensor], Tensor], x: Tensor, chunk: int) -> None:
    for rows in chunks(x.shape[0], chunk):
        x[rows] = function(x[rows])
