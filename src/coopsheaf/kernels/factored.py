"""The fast path: maps at the nodes, one sparse product between them.

The receiver's map is the same for all its edges, so it moves out of the sum,

    Σ_{j→i} w_ij Lᵢᵀ Rⱼ xⱼ = Lᵢᵀ Σ_{j→i} w_ij (Rⱼ xⱼ),

which leaves two node-wise products and one product with the bare adjacency: O(n·c·d + m·c) time
instead of O(m·c·d) for c = d·h, and nothing of size edges × stalk × channels. Maps that belong to
edges do not factor; their d×d blocks are formed once and multiplied as a block-sparse matrix.
"""

from __future__ import annotations

from torch import Tensor

from coopsheaf.graph import Graph
from coopsheaf.kernels.diagonal import apply_diagonal
from coopsheaf.kernels.sparse import sparse_product


def node_maps(
    x: Tensor,
    graph: Graph,
    diagonal: Tensor,
    left: Tensor,
    right: Tensor,
    edge_weight: Tensor | None,
) -> Tensor:
    sent = right @ x  # (n, d, h)
    if edge_weight is None:
        heard = sparse_product(sent, graph)
    else:
        flat = sent.flatten(1).unsqueeze(1)  # (n, 1, d·h)
        heard = sparse_product(flat, graph, edge_weight[:, None, None]).view_as(sent)
    return apply_diagonal(diagonal, x) - left.mT @ heard


def edge_maps(
    x: Tensor,
    graph: Graph,
    diagonal: Tensor,
    left: Tensor,
    right: Tensor,
    edge_weight: Tensor | None,
) -> Tensor:
    blocks = left.mT @ right  # (m, d, d)
    if edge_weight is not None:
        blocks = edge_weight[:, None, None] * blocks
    return apply_diagonal(diagonal, x) - sparse_product(x, graph, blocks)
