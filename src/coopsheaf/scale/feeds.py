"""Feeds of mini-batches of one graph; evaluation sees the whole graph, exactly."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from coopsheaf.data.dataset import PARTS, NodeDataset
from coopsheaf.data.pack import prepared_graph
from coopsheaf.models.csnn import CSNN
from coopsheaf.nn.edge_features import EdgeFeatures, edge_means
from coopsheaf.scale.as_built import is_plain_csnn
from coopsheaf.scale.clusters import partition
from coopsheaf.scale.halo import degrees_of, halo_hops, halo_steps, surround
from coopsheaf.scale.inference import infer
from coopsheaf.scale.prefetch import make_ahead
from coopsheaf.scale.sampling import is_compiled, sample_neighbours
from coopsheaf.scale.wrapped import unwrap
from coopsheaf.sheaves.graph import Graph, Subgraph
from coopsheaf.train.batches import (
    CHUNK,
    CLUSTER_NODES,
    FANOUTS,
    PREFETCH,
    SIZES,
    BatchConfig,
    parse_fanouts,
)
from coopsheaf.train.order import derive_seed, epoch_batches

LOOKED_AT = 8  # batches whose edges are counted before training


class Batch(NamedTuple):
    """What a step sees."""

    subgraph: Subgraph
    place: Tensor  # positions of the training nodes in it
    nodes: Tensor  # the same in the whole graph
    hears: int  # so many nodes, the first ones, are meant to hear all that they would hear


class Inputs(NamedTuple):
    """The same as a network is given it, on its device."""

    x: Tensor
    graph: Graph
    of_edges: dict[str, Any]  # by the names of the network's arguments
    place: Tensor
    y: Tensor  # targets at ``place``


class BatchFeed(ABC):
    """Steps on parts of a graph; the loss is taken at the training nodes in each.

    The batches of an epoch follow from the seed and the epoch. Several processes have equally many,
    and each has its share of every step; the first of them computes the outputs of the whole graph.
    While a step computes, the next batch is prepared in a thread; its items, seed and epoch decide
    it, so that this changes nothing.

    Args:
        dataset: the whole graph.
        split: which of its splits.
        config: the settings.
        seed: of clusters, order and samples.
        device, dtype: of what a model sees; the graph itself stays where it is.
        rank: which of the processes this is.
        world_size: how many there are.
        folder: of kept clusters; the user's cache if not given.
    """

    one_pass = True  # the outputs of all nodes, layer by layer

    def __init__(
        self,
        dataset: NodeDataset,
        split: int,
        config: BatchConfig,
        *,
        seed: int,
        device: torch.device,
        dtype: torch.dtype,
        rank: int = 0,
        world_size: int = 1,
        folder: Path | None = None,
    ) -> None:
        assert config.kind is not None
        self.kind, self.config, self.seed = config.kind, config, seed
        self.device, self.dtype = device, dtype
        self.rank, self.world_size, self.folder = rank, world_size, folder
        self.size = config.size or SIZES[self.kind]
        self.chunk = config.chunk or CHUNK
        self.prefetch = PREFETCH if config.prefetch is None else config.prefetch
        self.x, self.y = dataset.x, dataset.y
        self.graph = prepared_graph(dataset)
        # Sums of weights must be what a model with this dtype would find.
        weight = dataset.edge_weight
        self.edge_weight = None if weight is None else weight.to(dtype)
        self.index = dataset.positions(split)
        self.is_train = dataset.train[split]
        self.whole = degrees_of(self.graph, self.edge_weight)
        attr = dataset.edge_attr
        self.edge_attr = None if attr is None else attr.to(dtype)
        # Those of the whole graph, whatever part of it a step sees.
        self.means = None if attr is None else edge_means(self.graph, attr.to(dtype))

    @abstractmethod
    def items(self, epoch: int) -> list[Tensor]:
        """What each batch of this process is made from."""

    @abstractmethod
    def make(self, model: nn.Module, epoch: int, step: int, items: Tensor) -> Batch:
        """A batch; ``step`` counts those of this process."""

    def batches(self, model: nn.Module, epoch: int) -> Iterator[Batch]:
        """The batches of this process in an epoch."""
        for step, items in enumerate(self.items(epoch)):
            yield self.make(model, epoch, step, items)

    def steps(self, model: nn.Module, epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        def prepare(numbered: tuple[int, Tensor]) -> Inputs:
            return self._inputs(model, self.make(model, epoch, *numbered))

        items = enumerate(self.items(epoch))
        for x, graph, of_edges, place, y in make_ahead(prepare, items, self.prefetch):
            yield model(x, graph, **of_edges)[place], y

    def _inputs(self, model: nn.Module, batch: Batch) -> Inputs:
        found = batch.subgraph
        weight = None if self.edge_weight is None else self.edge_weight[found.edge]
        if weight is not None:
            weight = weight.to(self.device, non_blocking=True)
        return Inputs(
            self.x[found.nodes].to(self.device, self.dtype, non_blocking=True),
            found.graph.to(self.device),
            {"edge_weight": weight, **self._edge_features(model, found)},
            batch.place.to(self.device, non_blocking=True),
            self._targets(batch.nodes),
        )

    def outputs(
        self, model: nn.Module, parts: Sequence[str] = PARTS
    ) -> dict[str, tuple[Tensor, Tensor]]:
        if self.rank > 0:
            return {}
        weight = self.edge_weight
        logits = infer(
            model,
            self.x,
            self.graph.to(self.device),
            edge_weight=None if weight is None else weight.to(self.device),
            **self._edge_features(model),
            chunk=self.chunk,
        )
        return {
            part: (logits[self.index[part].to(self.device)], self._targets(self.index[part]))
            for part in parts
        }

    def evaluation_share(self, model: nn.Module, parts: Sequence[str]) -> float:
        found = self.summary(model)
        return self.graph.num_nodes / (found["steps"] * found["nodes_per_step"])

    def train_targets(self) -> Tensor:
        return self._targets(self.index["train"])

    def summary(self, model: nn.Module) -> dict[str, Any]:
        """What the batches are like: numbers of steps, nodes and edges, and the share of edges.

        The share is that of the edges into the nodes of a batch that are in the batch too (with a
        halo: into the nodes that the halo is for; of samples: into all nodes that look for
        neighbours), over the first batches of the first epoch.
        """
        steps = len(self.items(0))
        nodes = edges = count = 0
        here = there = 0.0
        for step, batch in zip(range(LOOKED_AT), self.batches(model, 0), strict=False):
            count = step + 1
            graph = batch.subgraph.graph
            nodes, edges = nodes + graph.num_nodes, edges + graph.num_edges
            here += float(graph.in_degree[: batch.hears].sum())
            there += float(self.graph.by_target.degree(batch.subgraph.nodes[: batch.hears]).sum())
        return {
            "kind": self.kind,
            **self._describe(),
            "steps": steps,
            "nodes_per_step": round(nodes / count),
            "edges_per_step": round(edges / count),
            "edges_kept": here / there if there else 1.0,
        }

    def _describe(self) -> dict[str, Any]:
        return {"size": self.size}

    def _targets(self, nodes: Tensor) -> Tensor:
        y = self.y[nodes]
        y = y.to(self.dtype) if y.is_floating_point() else y
        return y.to(self.device, non_blocking=True)

    def _edge_features(self, model: nn.Module, part: Subgraph | None = None) -> dict[str, Any]:
        """What a network is told of the features of the edges, of a part or of the whole graph."""
        if self.means is None or self.edge_attr is None:
            return {}
        found: EdgeFeatures
        if isinstance(unwrap(model)[0], CSNN):
            found = self.means if part is None else self.means.at(part.nodes)
        else:  # one's own network sees the edges that are there
            found = self.edge_attr if part is None else self.edge_attr[part.edge]
        return {"edge_attr": found.to(self.device)}

    def _induce(self, model: nn.Module, nodes: Tensor) -> Batch:
        """Some nodes with the edges among them, and with their halo if the settings ask for it."""
        around = nodes
        if self.config.halo:
            around = surround(self.graph, nodes, halo_steps(model))
        place = self.is_train[nodes].nonzero().squeeze(1)
        found = self.graph.subgraph(around, self.whole)
        return Batch(found, place, nodes[place], nodes.numel())


class GroupFeed(BatchFeed):
    """Several groups of nodes per batch, with the edges within and between them.

    Every node is in one group.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        n = self.graph.num_nodes
        self.parts = self.config.parts or max(1, n // CLUSTER_NODES)
        if self.parts > n:
            raise ValueError(f"`batch.parts` must be at most {n}, the nodes; got {self.parts}")
        self._useful: Tensor | None = None

    @property
    @abstractmethod
    def count(self) -> int:
        """The number of groups."""

    @abstractmethod
    def group(self, k: int) -> Tensor:
        """The nodes of a group, one or more."""

    @property
    def useful(self) -> Tensor:
        """Which groups have training nodes."""
        if self._useful is None:
            found = [bool(self.is_train[self.group(k)].any()) for k in range(self.count)]
            self._useful = torch.tensor(found)
        return self._useful

    def items(self, epoch: int) -> list[Tensor]:
        return epoch_batches(
            self.count,
            self.size,
            seed=self.seed,
            epoch=epoch,
            useful=self.useful,
            rank=self.rank,
            world_size=self.world_size,
        )

    def make(self, model: nn.Module, epoch: int, step: int, items: Tensor) -> Batch:
        return self._induce(model, torch.cat([self.group(k) for k in items.tolist()]))

    def _describe(self) -> dict[str, Any]:
        return {"size": min(self.size, self.count), "parts": self.count}


class ClusterFeed(GroupFeed):
    """Groups with few edges between them, found by METIS."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._members: list[Tensor] | None = None

    @property
    def members(self) -> list[Tensor]:
        """The nodes of each cluster that is not empty; found when first asked for."""
        if self._members is None:
            found = partition(self.graph, self.parts, seed=self.seed, folder=self.folder)
            order = torch.argsort(found, stable=True)
            sizes = torch.bincount(found).tolist()
            self._members = [nodes for nodes in order.split(sizes) if nodes.numel()]
        return self._members

    @property
    def count(self) -> int:
        return len(self.members)

    def group(self, k: int) -> Tensor:
        return self.members[k]


class RangeFeed(GroupFeed):
    """Runs of consecutive nodes, which a pack in community order makes good groups.

    Nothing has to be found or held for it, at any size.
    """

    @property
    def count(self) -> int:
        return self.parts

    def group(self, k: int) -> Tensor:
        n, parts = self.graph.num_nodes, self.parts
        return torch.arange(k * n // parts, (k + 1) * n // parts, device=self.graph.device)


class RandomNodeFeed(BatchFeed):
    """Random nodes with the edges among them; every node is in one batch of an epoch."""

    def items(self, epoch: int) -> list[Tensor]:
        return epoch_batches(
            self.graph.num_nodes,
            self.size,
            seed=self.seed,
            epoch=epoch,
            useful=self.is_train,
            rank=self.rank,
            world_size=self.world_size,
        )

    def make(self, model: nn.Module, epoch: int, step: int, items: Tensor) -> Batch:
        return self._induce(model, items)


class NeighbourFeed(BatchFeed):
    """Training nodes with neighbours sampled as far as the network looks."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.fanouts = parse_fanouts(self.config.fanouts or FANOUTS)
        if is_compiled(self.graph):  # it draws from the generator that dropout draws from
            self.prefetch = 0

    def items(self, epoch: int) -> list[Tensor]:
        train = self.index["train"]
        batches = epoch_batches(
            train.numel(),
            self.size,
            seed=self.seed,
            epoch=epoch,
            rank=self.rank,
            world_size=self.world_size,
        )
        return [train[batch] for batch in batches]

    def make(self, model: nn.Module, epoch: int, step: int, items: Tensor) -> Batch:
        fanouts, direction = self._hops(model)
        number = self.rank + step * self.world_size
        seed = derive_seed(self.seed, epoch, number)
        sample = sample_neighbours(self.graph, items, fanouts, seed=seed, direction=direction)
        hears = sum(sample.nodes_per_hop[:-1])
        place = torch.arange(items.numel())
        return Batch(sample.to_subgraph(self.whole), place, items, hears)

    def _hops(self, model: nn.Module) -> tuple[tuple[int, ...], str]:
        """The fan-outs of every hop, and which way they go."""
        if not is_plain_csnn(unwrap(model)[0]):
            return self.fanouts, "in"
        directions = {step for layer in halo_steps(model) for step in layer}
        if len(directions) > 1:
            raise ValueError(
                "`batch.kind` 'neighbours' needs `semantics` 'paper' or 'messages', or a learner "
                "that looks at nodes alone ('mlp'): the released diffusion looks along the edges, "
                "its learners against them"
            )
        hops = halo_hops(model)
        if len(self.fanouts) not in (1, hops):
            raise ValueError(
                f"`batch.fanouts` must be one number, or {hops}, one for each hop that the model "
                f"looks; got {len(self.fanouts)}"
            )
        fanouts = self.fanouts * hops if len(self.fanouts) == 1 else self.fanouts
        return fanouts, directions.pop()

    def _describe(self) -> dict[str, Any]:
        return {"size": self.size, "fanouts": ",".join(map(str, self.fanouts))}


FEEDS: dict[str, type[BatchFeed]] = {
    "clusters": ClusterFeed,
    "neighbours": NeighbourFeed,
    "nodes": RandomNodeFeed,
    "ranges": RangeFeed,
}


def make_batch_feed(
    dataset: NodeDataset, split: int, config: BatchConfig, **options: Any
) -> BatchFeed:
    """The feed that the settings ask for; options are those of :class:`BatchFeed`."""
    if not config.is_set:
        raise ValueError("`config` must have a kind of batches; got none")
    assert config.kind is not None
    return FEEDS[config.kind](dataset, split, config, **options)
