"""Feeds: what a training step and an evaluation see, for one graph or for many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from coopsheaf.data.dataset import PARTS, GraphDataset, NodeDataset
from coopsheaf.data.pack import prepared_graph
from coopsheaf.nn.sparse_inputs import note_zeros
from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.many_graphs import ManyGraphs
from coopsheaf.train.order import epoch_batches


class Feed(Protocol):
    """Supplies the steps of an epoch, and outputs with targets for evaluation."""

    one_pass: bool
    """Whether outputs of one part of the split cost as much as those of all."""

    def steps(self, model: nn.Module, epoch: int) -> Iterator[tuple[Tensor, ...]]:
        """Logits and targets of each training step, computed with ``model``.

        Weights of the samples, if there are any, come third.
        """
        ...

    def outputs(
        self, model: nn.Module, parts: Sequence[str] = PARTS
    ) -> dict[str, tuple[Tensor, Tensor]]:
        """Logits and targets of some parts of the split.

        With several processes, this one's share of them; a part it has none of is not there.
        """
        ...

    def evaluation_share(self, model: nn.Module, parts: Sequence[str]) -> float:
        """How many nodes or graphs :meth:`outputs` computes for each that an epoch trains on."""
        ...

    def train_targets(self) -> Tensor:
        """All targets of the training part."""
        ...

    def summary(self, model: nn.Module) -> dict[str, Any] | None:
        """What mini-batches of one graph are like; ``None`` if there are none."""
        ...


class NodeFeed:
    """The whole graph in every step; the loss is taken at the training nodes of one split."""

    one_pass = True

    def __init__(
        self, dataset: NodeDataset, split: int, *, device: torch.device, dtype: torch.dtype
    ) -> None:
        self.x = dataset.x.to(device, dtype)
        note_zeros(self.x)  # it comes back in every step
        self.graph = prepared_graph(dataset).to(device)
        self.edge_inputs = dataset.edge_inputs(dtype, device)
        y = dataset.y
        y = (y.to(dtype) if y.is_floating_point() else y).to(device)
        # Positions, not masks: indexing with a mask would wait for the device in every step.
        self.index = {part: nodes.to(device) for part, nodes in dataset.positions(split).items()}
        self.y = {part: y[index] for part, index in self.index.items()}
        weight = dataset.sample_weight
        train = self.index["train"]
        self.weight = () if weight is None else (weight.to(device, dtype)[train],)

    def forward(self, model: nn.Module) -> Tensor:
        return model(self.x, self.graph, **self.edge_inputs)

    def steps(self, model: nn.Module, epoch: int) -> Iterator[tuple[Tensor, ...]]:
        yield self.forward(model)[self.index["train"]], self.y["train"], *self.weight

    def outputs(
        self, model: nn.Module, parts: Sequence[str] = PARTS
    ) -> dict[str, tuple[Tensor, Tensor]]:
        logits = self.forward(model)
        return {part: (logits[self.index[part]], self.y[part]) for part in parts}

    def evaluation_share(self, model: nn.Module, parts: Sequence[str]) -> float:
        return 1.0

    def train_targets(self) -> Tensor:
        return self.y["train"]

    def summary(self, model: nn.Module) -> None:
        return None


class Joined(NamedTuple):
    """Several graphs as one: what a network is called with, and the targets."""

    x: Tensor
    graph: Graph
    inputs: dict[str, Any]
    y: Tensor


class Stacked(NamedTuple):
    """All graphs of a dataset behind one another, sorted once, in the dtype of training."""

    graphs: ManyGraphs
    x: Tensor  # (all nodes, F)
    y: Tensor  # (graphs, k), or (graphs,) class numbers
    edge_attr: Tensor | None  # (all edges, k)
    pe: Tensor | None  # (all nodes, k)


def stack_graphs(dataset: GraphDataset, dtype: torch.dtype) -> Stacked:
    """What batches of graphs are cut out of."""
    nodes, edges = dataset.counts()

    def stack(name: str) -> Tensor:
        parts = dataset.stack(name)
        return parts if name == "y" and not parts.is_floating_point() else parts.to(dtype)

    return Stacked(
        ManyGraphs(dataset.stack("edge_index").split(edges, dim=1), nodes),
        stack("x"),
        stack("y"),
        stack("edge_attr") if dataset.edge_channels else None,
        stack("pe") if dataset.pe_channels else None,
    )


class GraphFeed:
    """Mini-batches of graphs, shuffled anew in every epoch from the seed and the epoch alone.

    Several processes share every step, and the graphs of an evaluation. All graphs are sorted once;
    those of the validation part, which every evaluation looks at, are joined once.
    """

    one_pass = False

    def __init__(
        self,
        dataset: GraphDataset,
        *,
        batch_size: int,
        seed: int,
        device: torch.device,
        dtype: torch.dtype,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        self.dataset, self.batch_size, self.seed = dataset, batch_size, seed
        self.device, self.dtype = device, dtype
        self.rank, self.world_size = rank, world_size
        self._val: list[Joined] | None = None
        self._stacked: Stacked | None = None

    def steps(self, model: nn.Module, epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        train = self.dataset.train
        for batch in epoch_batches(
            train.numel(),
            self.batch_size,
            seed=self.seed,
            epoch=epoch,
            rank=self.rank,
            world_size=self.world_size,
        ):
            yield self.step(model, train[batch])

    def outputs(
        self, model: nn.Module, parts: Sequence[str] = PARTS
    ) -> dict[str, tuple[Tensor, Tensor]]:
        out = {}
        for part in parts:
            pieces = [self._apply(model, batch) for batch in self._evaluated(part)]
            if pieces:
                logits, y = (torch.cat(column) for column in zip(*pieces, strict=True))
                out[part] = (logits, y)
        return out

    def evaluation_share(self, model: nn.Module, parts: Sequence[str]) -> float:
        computed = sum(getattr(self.dataset, part).numel() for part in parts)
        return computed / self.dataset.train.numel()

    def summary(self, model: nn.Module) -> None:
        return None

    def train_targets(self) -> Tensor:
        return self.dataset.stack("y")[self.dataset.train]

    def step(self, model: nn.Module, index: Tensor) -> tuple[Tensor, Tensor]:
        """Logits and targets of some graphs."""
        return self._apply(model, self._join(index))

    def _join(self, index: Tensor) -> Joined:
        """Some graphs side by side; sent without waiting for them to arrive."""
        if self._stacked is None:
            self._stacked = stack_graphs(self.dataset, self.dtype)
        found, stacked = self._stacked.graphs.take(index), self._stacked
        inputs = {"batch": self._send(found.batch), "batch_size": index.numel()}
        if stacked.edge_attr is not None:
            inputs["edge_attr"] = self._send(stacked.edge_attr[found.edges])
        if stacked.pe is not None:
            inputs["pe"] = self._send(stacked.pe[found.nodes])
        x, y = self._send(stacked.x[found.nodes]), self._send(stacked.y[index])
        return Joined(x, found.graph.to(self.device), inputs, y)

    def _send(self, part: Tensor) -> Tensor:
        return part.to(self.device, non_blocking=True)

    def _apply(self, model: nn.Module, batch: Joined) -> tuple[Tensor, Tensor]:
        return model(batch.x, batch.graph, **batch.inputs), batch.y

    def _evaluated(self, part: str) -> Iterable[Joined]:
        """The graphs of a part that this process evaluates, batch by batch."""
        if part == "val" and self._val is not None:
            return self._val
        mine = getattr(self.dataset, part).tensor_split(self.world_size)[self.rank]
        batches = (self._join(batch) for batch in mine.split(self.batch_size) if batch.numel())
        if part != "val":
            return batches
        self._val = list(batches)
        return self._val
