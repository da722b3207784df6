"""Where a node is in its graph, in numbers: walks that return, and eigenvectors of the Laplacian.

Both are of small dense matrices, one graph at a time; they depend on nothing learned and are
computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch_geometric.data import Data

from coopsheaf.checks import check_choice, check_int
from coopsheaf.data.progress import show_progress

STEPS = 20
FREQUENCIES = 10


def random_walks(edge_index: Tensor, num_nodes: int, steps: int = STEPS) -> Tensor:
    r"""How likely a random walk of 1, 2, ..., ``steps`` steps ends where it began (RWSE).

    .. math:: p_{i,t} = \bigl((D^{-1} A)^t\bigr)_{ii}

    A node without edges returns never: 0.

    Args:
        edge_index: ``(2, m)``; walks follow the edges.
        num_nodes: n.
        steps: number of lengths.

    Returns:
        ``(n, steps)`` float32.
    """
    check_int("steps", steps, minimum=1)
    walk = _adjacency(edge_index, num_nodes)
    walk = walk / walk.sum(1, keepdim=True).clamp(min=1)
    # Two shorter walks make a longer one: half of the products suffice, and one factor is sparse.
    powers, one_step = [walk], walk.to_sparse()
    while len(powers) < (steps + 1) // 2:
        powers.append(one_step @ powers[-1])
    columns = [walk.diagonal()]
    for t in range(2, steps + 1):
        one, other = powers[t // 2 - 1], powers[t - t // 2 - 1]
        columns.append((one * other.T).sum(1))
    return torch.stack(columns, dim=1).float()


def laplacian_eigenpairs(
    edge_index: Tensor, num_nodes: int, frequencies: int = FREQUENCIES
) -> Tensor:
    r"""The smallest eigenpairs of :math:`D - A`, the trivial one among them (LapPE).

    Eigenvectors have length 1; their signs, and bases of eigenvalues that are there more than
    once, are those that the solver happens to give.

    Args:
        edge_index: ``(2, m)``, every edge both ways.
        num_nodes: n.
        frequencies: number k of eigenpairs.

    Returns:
        ``(n, 2k)`` float32: the entries of the k eigenvectors at a node, then the k eigenvalues;
        NaN where the graph has fewer than k nodes.
    """
    check_int("frequencies", frequencies, minimum=1)
    adjacency = _adjacency(edge_index, num_nodes)
    if not torch.equal(adjacency, adjacency.T):
        raise ValueError(
            "`edge_index` must hold every edge both ways: eigenvectors are those of an undirected "
            "graph; got one that is not"
        )
    values, vectors = torch.linalg.eigh(adjacency.sum(1).diag() - adjacency)
    found = min(frequencies, num_nodes)
    pe = torch.full((num_nodes, 2, frequencies), float("nan"))
    pe[:, 0, :found] = vectors[:, :found].float()
    pe[:, 1, :found] = values[:found].clamp(min=0).float()
    return pe.flatten(1)


def _adjacency(edge_index: Tensor, num_nodes: int) -> Tensor:
    """``(n, n)`` float64, the number of edges from row to column."""
    check_int("num_nodes", num_nodes, minimum=1)
    matrix = torch.zeros(num_nodes, num_nodes, dtype=torch.float64)
    one = torch.ones(edge_index.shape[1], dtype=torch.float64)
    return matrix.index_put_((edge_index[0], edge_index[1]), one, accumulate=True)


Encoding = Callable[[Tensor, int], Tensor]
_FUNCTIONS: dict[str, Encoding] = {"rwse": random_walks, "lappe": laplacian_eigenpairs}


def encode_graphs(graphs: Sequence[Data], kind: str, name: str) -> Tensor:
    """The encodings of the nodes of all graphs, one graph after the other, ``(nodes, 20)``.

    Args:
        graphs: with ``x`` and ``edge_index``.
        kind: a key of ``POSITIONS`` of :mod:`coopsheaf.data.processing`.
        name: of the dataset, for who waits.
    """
    encode = check_choice("pe", kind, _FUNCTIONS)
    line = f"{kind} of {len(graphs):,} graphs of {name} (kept for the next time)"
    parts = []
    with show_progress(f"{kind} of graphs", line, len(graphs)) as advance:
        for number, graph in enumerate(graphs):
            try:
                parts.append(encode(graph.edge_index, graph.x.shape[0]))
            except (ValueError, RuntimeError) as error:
                raise ValueError(f"{name}: graph {number}: {error}") from None
            advance(1)
    return torch.cat(parts)
