"""Neighbours sampled around some nodes: at most so many per node and hop, without replacement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch_geometric.typing
from torch import Tensor
from torch_geometric.sampler import BaseSampler, SamplerOutput

from coopsheaf.sheaves.graph import CSR, Degrees, Graph, Subgraph
from coopsheaf.sheaves.places import Placing, check_nodes
from coopsheaf.train.order import derive_seed

DIRECTIONS = ("in", "out")
BACKENDS = ("auto", "torch", "pyg-lib")


class Sample(NamedTuple):
    """Nodes and edges found around some nodes; each node looks for neighbours once.

    The nodes of hop 0 are those asked for, in their order; then come those that hop 1 found, and
    so on. The edges are in the order of the hops too.
    """

    nodes: Tensor  # (k,) nodes of the whole graph
    source: Tensor  # (e,) positions in ``nodes``
    target: Tensor  # (e,)
    edge: Tensor  # (e,) edges of the whole graph
    nodes_per_hop: tuple[int, ...]  # hops + 1 numbers
    edges_per_hop: tuple[int, ...]  # hops numbers

    def to_subgraph(self, whole: Degrees) -> Subgraph:
        """The sampled graph, which remembers the degrees of the whole one."""
        graph = Graph(torch.stack([self.source, self.target]), self.nodes.numel())
        return Subgraph(graph.part_of(whole.at(self.nodes)), self.nodes, self.edge)


def sample_neighbours(
    graph: Graph,
    nodes: Tensor,
    fanouts: Sequence[int],
    *,
    seed: int,
    direction: str = "in",
    backend: str = "auto",
) -> Sample:
    """Sample neighbours of some nodes, then neighbours of those, hop by hop.

    Every subset of a node's edges of the right size is equally likely. A node that was found before
    is not asked again, so that no edge is there twice. The same seed gives the same sample on every
    machine, unless pyg-lib is installed on one of them and not on the other.

    Args:
        graph: the whole graph, on any device (pyg-lib's sampler wants the CPU).
        nodes: ``(k,)`` different nodes, on the same device.
        fanouts: at most so many edges per node, hop by hop; -1 for all of them.
        seed: of the choice.
        direction: ``"in"``, from a node to the sources of edges into it (what it hears), or
            ``"out"``.
        backend: ``"torch"``; ``"pyg-lib"``, whose compiled sampler PyG uses; or ``"auto"``, the
            second if it is installed.
    """
    for name, value, choices in (
        ("direction", direction, DIRECTIONS),
        ("backend", backend, BACKENDS),
    ):
        if value not in choices:
            raise ValueError(f"`{name}` must be one of {', '.join(choices)}; got {value!r}")
    if not fanouts or any(fanout < 1 and fanout != -1 for fanout in fanouts):
        raise ValueError(
            "`fanouts` must be numbers of at least 1, or -1 for all edges, one per hop; "
            f"got {list(fanouts)}"
        )
    lists = graph.by_target if direction == "in" else graph.by_source
    if backend == "pyg-lib":
        if not torch_geometric.typing.WITH_PYG_LIB:
            raise ValueError(
                "`backend` 'pyg-lib' needs pyg-lib, which is not installed; use 'torch'"
            )
        if not is_compiled(graph):
            raise ValueError(
                "`backend` 'pyg-lib' needs lists of int64; those of a pack are int32; use 'torch'"
            )
    if backend != "torch" and is_compiled(graph):
        check_nodes(nodes, graph.num_nodes)
        sample = _sample_compiled(lists, nodes, list(fanouts), seed)
    else:
        with graph.placing(nodes) as placing:
            sample = _sample(lists, nodes, fanouts, seed, placing)
    if direction == "out":
        return sample._replace(source=sample.target, target=sample.source)
    return sample


def is_compiled(graph: Graph) -> bool:
    """Whether ``backend="auto"`` samples with pyg-lib, which knows no int32."""
    return torch_geometric.typing.WITH_PYG_LIB and graph.by_target.other.dtype == torch.int64


def choose_edges(
    lists: CSR, nodes: Tensor, fanout: int, rng: torch.Generator
) -> tuple[Tensor, Tensor]:
    """At most ``fanout`` entries of each row, uniformly and without replacement.

    Returns:
        Positions of the entries in the list, and for each the place of its row in ``nodes``, as
        :meth:`~coopsheaf.sheaves.graph.CSR.take`.
    """
    count = lists.ptr[nodes + 1] - lists.ptr[nodes]
    if fanout == -1 or nodes.numel() == 0 or int(count.max()) <= fanout:
        return lists.take(nodes)
    few = (count <= fanout).nonzero().squeeze(1)
    many = (count > fanout).nonzero().squeeze(1)
    position, place = lists.take(nodes[few])
    chosen = _choose(count[many], fanout, rng) + lists.ptr[nodes[many]].unsqueeze(1)
    position = torch.cat([position, chosen.flatten()])
    return position, torch.cat([few[place], many.repeat_interleave(fanout)])


def _choose(count: Tensor, size: int, rng: torch.Generator) -> Tensor:
    """``size`` different numbers below each count, ``(rows, size)``, by Floyd's algorithm.

    Number t of the choice is drawn from the first count - size + t + 1 numbers; if it was drawn
    before, the last of those takes its place. All subsets are equally likely, and the cost does
    not depend on the counts.
    """
    # Drawn by the host's generator wherever the graph is: the same choice on every device.
    draws = torch.rand(count.numel(), size, generator=rng, dtype=torch.float64, device="cpu")
    draws = draws.to(count.device, non_blocking=True)
    chosen = torch.empty(count.numel(), size, dtype=torch.int64, device=count.device)
    for t in range(size):
        last = count - size + t
        drawn = (draws[:, t] * (last + 1)).long().clamp_(max=last)
        known = (chosen[:, :t] == drawn.unsqueeze(1)).any(1)
        chosen[:, t] = torch.where(known, last, drawn)
    return chosen


def _sample(
    lists: CSR, nodes: Tensor, fanouts: Sequence[int], seed: int, placing: Placing
) -> Sample:
    rng = torch.Generator().manual_seed(derive_seed(seed))
    found, frontier = [nodes], nodes
    columns: list[tuple[Tensor, Tensor, Tensor]] = []
    for fanout in fanouts:
        position, row = choose_edges(lists, frontier, fanout, rng)
        other = lists.other[position].long()
        target = placing.find(frontier)[row]
        frontier = placing.add_new(other)
        columns.append((placing.find(other), target, lists.edge[position].long()))
        found.append(frontier)
    source, target, edge = (torch.cat(column) for column in zip(*columns, strict=True))
    return Sample(
        placing.nodes,
        source,
        target,
        edge,
        tuple(part.numel() for part in found),
        tuple(part[0].numel() for part in columns),
    )


def _sample_compiled(lists: CSR, nodes: Tensor, fanouts: list[int], seed: int) -> Sample:
    """The same by pyg-lib, called as PyG's own ``NeighborSampler`` calls it."""
    known = torch_geometric.typing
    arguments: list[Any] = [lists.ptr, lists.other, nodes, fanouts, None]  # no times
    arguments += [None] if known.WITH_EDGE_TIME_NEIGHBOR_SAMPLE else []
    arguments += [None]
    arguments += [None] if known.WITH_WEIGHTED_NEIGHBOR_SAMPLE else []
    # Compressed by column, without replacement, sampled edges only, one graph, edge numbers too.
    arguments += [True, False, True, False, "uniform", True]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(seed))  # it draws from PyTorch's own generator
        row, column, found, position, node_counts, edge_counts = torch.ops.pyg.neighbor_sample(
            *arguments
        )[:6]
    edge = lists.edge[position]
    return Sample(found, row, column, edge, tuple(node_counts), tuple(edge_counts))


class NeighbourSampler(BaseSampler):
    """:func:`sample_neighbours` for PyG's ``NodeLoader``::

        sampler = NeighbourSampler(Graph(data.edge_index, data.num_nodes), [10, 5])
        loader = NodeLoader(data, sampler, input_nodes=data.train_mask, batch_size=512)

    What is sampled around some nodes depends on them, the seed and the epoch (``set_epoch``), and
    on nothing else: not on the number of workers nor on the order of the batches.

    Args:
        graph: the whole graph.
        fanouts: see :func:`sample_neighbours`.
        seed: of the choice.
        direction, backend: see :func:`sample_neighbours`.
    """

    def __init__(
        self,
        graph: Graph,
        fanouts: Sequence[int],
        *,
        seed: int = 0,
        direction: str = "in",
        backend: str = "auto",
    ) -> None:
        self.graph, self.fanouts, self.seed, self.epoch = graph, tuple(fanouts), seed, 0
        self.direction, self.backend = direction, backend

    def set_epoch(self, epoch: int) -> None:
        """Make another choice from now on."""
        self.epoch = epoch

    def sample(self, nodes: Tensor, step: int | None = None) -> Sample:
        """The sample around some nodes; ``step`` may stand in for them as what decides it."""
        what = nodes.tolist() if step is None else [step]
        return sample_neighbours(
            self.graph,
            nodes,
            self.fanouts,
            seed=derive_seed(self.seed, self.epoch, *what),
            direction=self.direction,
            backend=self.backend,
        )

    def sample_from_nodes(self, index: Any, **options: Any) -> SamplerOutput:
        sample = self.sample(index.node)
        return SamplerOutput(
            node=sample.nodes,
            row=sample.source,
            col=sample.target,
            edge=sample.edge,
            batch=None,
            num_sampled_nodes=list(sample.nodes_per_hop),
            num_sampled_edges=list(sample.edges_per_hop),
            metadata=(index.input_id, index.time),
        )

    def sample_from_edges(self, index: Any, neg_sampling: Any = None) -> SamplerOutput:
        raise NotImplementedError("this sampler starts from nodes, not from edges")

    @property
    def edge_permutation(self) -> None:
        """Edges are numbered as in the graph's own list."""
        return None
