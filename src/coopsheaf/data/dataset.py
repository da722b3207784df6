"""What every loader returns and every trainer takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import contains_self_loops, remove_self_loops

from coopsheaf.checks import check_choice
from coopsheaf.data.metrics import METRICS as METRICS
from coopsheaf.data.processing import DIRECTIONS as DIRECTIONS
from coopsheaf.data.processing import FEATURES as FEATURES
from coopsheaf.data.processing import RELATIONS as RELATIONS
from coopsheaf.data.processing import SELF_LOOPS as SELF_LOOPS
from coopsheaf.data.processing import Processing as Processing
from coopsheaf.data.processing import process_edges as process_edges
from coopsheaf.data.processing import process_features
from coopsheaf.data.stored_graphs import StoredGraphs
from coopsheaf.notebook import dataset_html
from coopsheaf.tensor_checks import check_finite, check_shape

PARTS = ("train", "val", "test")
TASKS = {
    "binary": "two classes, one logit",
    "multiclass": "several classes, one logit each",
    "multilabel": "several yes/no labels at once, one logit each; NaN where unknown",
    "regression": "real targets; NaN where unknown",
}
METRIC_OF_TASK = {
    "binary": "auroc",
    "multiclass": "accuracy",
    "multilabel": "ap",
    "regression": "mae",
}


def default_metric(task: str, y: Tensor, *masks: Tensor) -> str:
    """The metric of a task on parts of the nodes, each mask ``(splits, n)``.

    AUROC needs both classes in every part it is computed on; accuracy does not.
    """
    if task != "binary":
        return METRIC_OF_TASK[task]
    both = all(len(y[mask].unique()) == 2 for part in masks for mask in part if mask.any())
    return "auroc" if both else "accuracy"


@dataclass(frozen=True)
class NodeDataset:
    """One graph whose nodes have targets, with one or more splits.

    Args:
        name: the registry's name, or one of the user's.
        x: ``(n, F)`` features.
        edge_index: ``(2, m)``, sources above targets.
        y: ``(n,)`` class numbers (-1 where unknown), or ``(n,)`` / ``(n, k)`` real targets or 0/1
            labels (NaN where unknown).
        train, val, test: ``(splits, n)`` masks.
        task: a key of ``TASKS``.
        metric: a key of ``METRICS``.
        class_names: names of the classes (or labels), in the order of their numbers.
        node_ids: the user's names of the nodes.
        edge_weight: ``(m,)``.
        checksum: sha256 of what was read, in hexadecimal; empty if generated in memory.
        processing: what was done to the stored graph.
        remark: what a table must say beside the numbers, such as "substitute features".
        edge_attr: ``(m, k)`` features of the edges, finite; for networks that can use them.
        edge_names: names of the k columns of ``edge_attr``, or none.
        sample_weight: ``(n,)``, how much each training node counts in the loss; not negative.
    """

    name: str
    x: Tensor
    edge_index: Tensor
    y: Tensor
    train: Tensor
    val: Tensor
    test: Tensor
    task: str
    metric: str
    class_names: tuple[str, ...] = ()
    node_ids: Sequence[str] = ()
    edge_weight: Tensor | None = None
    checksum: str = ""
    processing: Processing = field(default_factory=Processing)
    remark: str = ""
    edge_attr: Tensor | None = None
    edge_names: tuple[str, ...] = ()
    sample_weight: Tensor | None = None

    def __post_init__(self) -> None:
        check_choice("task", self.task, TASKS)
        check_choice("metric", self.metric, METRICS)
        if self.sample_weight is not None:
            check_shape("sample_weight", self.sample_weight, f"({self.num_nodes},)", (len(self.x),))
            check_finite("sample_weight", self.sample_weight)
            if bool((self.sample_weight < 0).any()):
                raise ValueError("`sample_weight` must not be negative; some are")
        _check_edge_attr("edge_attr", self.edge_attr, self.num_edges)
        if self.edge_names and len(self.edge_names) != self.edge_channels:
            raise ValueError(
                f"`edge_names` must name the {self.edge_channels} columns of `edge_attr`, or be "
                f"empty; got {len(self.edge_names)}"
            )
        n = self.num_nodes
        for name in PARTS:
            mask = getattr(self, name)
            if mask.dtype != torch.bool or mask.dim() != 2 or mask.shape[1] != n:
                raise ValueError(
                    f"`{name}` must be a boolean tensor of shape (splits, {n}); "
                    f"got {mask.dtype} of shape {tuple(mask.shape)}"
                )

    def positions(self, split: int) -> dict[str, Tensor]:
        """The nodes of each part of a split; some must be there to train on."""
        if not 0 <= split < self.num_splits:
            raise ValueError(
                f"`split` must be between 0 and {self.num_splits - 1} for {self.name}; got {split}"
            )
        found = {part: getattr(self, part)[split].nonzero().squeeze(1) for part in PARTS}
        if found["train"].numel() == 0:
            raise ValueError(f"split {split} of {self.name} has no training nodes")
        return found

    @property
    def num_nodes(self) -> int:
        return self.x.shape[0]

    @property
    def num_edges(self) -> int:
        return self.edge_index.shape[1]

    @property
    def num_features(self) -> int:
        return self.x.shape[1]

    @property
    def edge_channels(self) -> int:
        """Number of features of an edge; 0 if edges have none."""
        return 0 if self.edge_attr is None else self.edge_attr.shape[1]

    @property
    def pe_channels(self) -> int:
        """Nothing says where the nodes of one graph are; see :class:`GraphDataset`."""
        return 0

    @property
    def num_splits(self) -> int:
        return self.train.shape[0]

    @property
    def out_channels(self) -> int:
        """Number of outputs that a model of this task has."""
        if self.task == "multiclass":
            return max(len(self.class_names), int(self.y.max()) + 1)
        return 1 if self.y.dim() == 1 else self.y.shape[1]

    def process(self, processing: Processing) -> NodeDataset:
        """The graph that a model sees; call it once, on the graph as stored."""
        for name in ("pe", "bonds"):
            if (value := getattr(processing, name)) is not None:
                raise ValueError(
                    f"`{name}` must be left out for one graph whose nodes have targets: it is for "
                    f"many graphs, such as molecules; got {value!r}"
                )
        if processing.relations is not None and self.edge_attr is None:
            raise ValueError(
                "`relations` are read together with a dataset: give them to load_dataset; got "
                f"{processing.relations!r} for a graph without features of edges"
            )
        edge_index, weight, attr = process_edges(
            (self.edge_index, self.edge_weight, self.edge_attr), processing, self.num_nodes
        )
        return replace(
            self,
            x=process_features(self.x, processing.features),
            edge_index=edge_index,
            edge_weight=weight,
            edge_attr=attr,
            processing=processing,
        )

    def edge_inputs(
        self, dtype: torch.dtype, device: torch.device | None = None
    ) -> dict[str, Tensor | None]:
        """What a network is told of the edges, by the names of its arguments."""
        weight, attr = self.edge_weight, self.edge_attr
        inputs = {"edge_weight": None if weight is None else weight.to(device, dtype)}
        # Networks that are not ours need not know of features of edges.
        return inputs if attr is None else inputs | {"edge_attr": attr.to(device, dtype)}

    @property
    def has_self_loops(self) -> bool:
        return contains_self_loops(self.edge_index)

    @property
    def reciprocated(self) -> float:
        """Share of the edges between different nodes whose reverse is there as well."""
        edge_index, _ = remove_self_loops(self.edge_index)
        if edge_index.shape[1] == 0:
            return 1.0
        n = self.num_nodes
        forward, backward = edge_index[0] * n + edge_index[1], edge_index[1] * n + edge_index[0]
        return torch.isin(forward, backward).double().mean().item()

    def _repr_html_(self) -> str:
        sizes = {"nodes": self.num_nodes, "edges": self.num_edges, "features": self.num_features}
        parts = [int(getattr(self, part)[:1].sum()) for part in PARTS]
        return dataset_html(self, sizes | {"splits": self.num_splits}, parts)

    def to_data(self, split: int = 0) -> Data:
        """As a PyG ``Data`` with the masks of one split."""
        return Data(
            x=self.x,
            edge_index=self.edge_index,
            edge_weight=self.edge_weight,
            edge_attr=self.edge_attr,
            y=self.y,
            train_mask=self.train[split],
            val_mask=self.val[split],
            test_mask=self.test[split],
        )


@dataclass(frozen=True)
class GraphDataset:
    """Many graphs with one target each, and one split by graph.

    Args:
        name: the registry's name.
        graphs: PyG ``Data`` with ``x``, ``edge_index`` and ``y`` of shape ``(1, k)``, or ``(1,)``
            class numbers of a multiclass task. A floating point ``edge_attr (m, k)``, which all of
            them have or none, is features of edges; integers are codes, which no network is given.
            ``pe (n, k)``, which all of them have or none, is the places of nodes.
        train, val, test: positions of the graphs of each part.
        task, metric, class_names, checksum, processing, remark: as in :class:`NodeDataset`.
        graph_ids: the user's names of the graphs.
    """

    name: str
    graphs: Sequence[Data]
    train: Tensor
    val: Tensor
    test: Tensor
    task: str
    metric: str
    class_names: tuple[str, ...] = ()
    checksum: str = ""
    processing: Processing = field(default_factory=Processing)
    remark: str = ""
    graph_ids: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_choice("task", self.task, TASKS)
        check_choice("metric", self.metric, METRICS)
        if isinstance(self.graphs, StoredGraphs) and self.graphs.untouched:  # all are alike
            attr = self.graphs.whole("edge_attr")
            if attr is not None and attr.is_floating_point():
                _check_edge_attr("edge_attr", attr, sum(self.graphs.edges))
            return
        for number, graph in enumerate(self.graphs):
            attr = _edge_features(graph)
            found = 0 if attr is None else attr.shape[-1]
            if found != self.edge_channels:
                raise ValueError(
                    f"`graphs` must all have {self.edge_channels} features of edges, as the first; "
                    f"graph {number} has {found}"
                )
            if attr is not None:
                _check_edge_attr(f"graphs[{number}].edge_attr", attr, graph.edge_index.shape[1])
            places = _pe_width(graph)
            if places != self.pe_channels:
                raise ValueError(
                    f"`graphs` must all have `pe` of {self.pe_channels} columns, as the first; "
                    f"graph {number} has {places}"
                )

    def _repr_html_(self) -> str:
        parts = [len(getattr(self, part)) for part in PARTS]
        return dataset_html(self, {"graphs": len(self.graphs)}, parts)

    @property
    def num_features(self) -> int:
        graph = self._first()
        if graph is None:
            raise IndexError(f"{self.name} has no graphs")
        return int(graph.x.shape[1])

    @property
    def edge_channels(self) -> int:
        """Number of features of an edge; 0 if edges have none."""
        graph = self._first()
        attr = None if graph is None else _edge_features(graph)
        return 0 if attr is None else attr.shape[-1]

    @property
    def pe_channels(self) -> int:
        """Number of numbers that say where a node is; 0 if nothing does."""
        graph = self._first()
        return 0 if graph is None else _pe_width(graph)

    @property
    def edge_names(self) -> tuple[str, ...]:
        """Nobody has named the features of the edges."""
        return ()

    @property
    def out_channels(self) -> int:
        """Number of outputs that a model of this task has."""
        if self.task == "multiclass":
            return len(self.class_names)
        graph = self._first()
        if graph is None:
            raise IndexError(f"{self.name} has no graphs")
        return int(graph.y.shape[-1])

    @property
    def num_splits(self) -> int:
        return 1

    def stack(self, name: str) -> Tensor:
        """What all graphs have under one name, one after the other; ``edge_index`` side by side."""
        found = self.graphs.whole(name) if isinstance(self.graphs, StoredGraphs) else None
        if found is not None:
            return found.T.contiguous() if name == "edge_index" else found
        return torch.cat([graph[name] for graph in self.graphs], dim=int(name == "edge_index"))

    def counts(self) -> tuple[list[int], list[int]]:
        """How many nodes and how many edges each graph has."""
        if isinstance(self.graphs, StoredGraphs):
            return self.graphs.nodes, self.graphs.edges
        nodes, edges = [len(g.x) for g in self.graphs], [g.edge_index.shape[1] for g in self.graphs]
        return nodes, edges

    def _first(self) -> Data | None:
        if isinstance(self.graphs, StoredGraphs):
            return self.graphs.first()
        return self.graphs[0] if self.graphs else None


def _edge_features(graph: Data) -> Tensor | None:
    """The features of the edges of a graph; integers are codes, of which nobody can take means."""
    attr = graph.edge_attr
    return attr if attr is not None and attr.is_floating_point() else None


def _pe_width(graph: Data) -> int:
    pe = graph.get("pe")
    return 0 if pe is None else int(pe.shape[-1])


def _check_edge_attr(argument: str, edge_attr: Tensor | None, num_edges: int) -> None:
    if edge_attr is None:
        return
    check_shape(argument, edge_attr, f"(m, k) with m = {num_edges}", (num_edges, None))
    if edge_attr.shape[1] == 0:
        raise ValueError(f"`{argument}` must have a column or more, or be None; got none")
    check_finite(argument, edge_attr)
