"""What every loader returns and every trainer takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import (
    add_remaining_self_loops,
    coalesce,
    contains_self_loops,
    remove_self_loops,
)

from coopsheaf.checks import check_choice
from coopsheaf.data.metrics import METRICS as METRICS
from coopsheaf.notebook import dataset_html
from coopsheaf.tensor_checks import check_finite, check_shape

PARTS = ("train", "val", "test")
TASKS = {
    "binary": "two classes, one logit",
    "multiclass": "several classes, one logit each",
    "multilabel": "several yes/no labels at once, one logit each; NaN where unknown",
    "regression": "real targets; NaN where unknown",
}
DIRECTIONS = {
    "stored": "the edges as the file lists them",
    "reversed": "every edge turned round",
    "undirected": "every edge both ways, each once",
    "rows": "every edge turned round, each once: rows of the 0/1 matrix of the list hear columns",
}
SELF_LOOPS = {
    "keep": "as they are",
    "remove": "taken out",
    "add": "one at every node",
    # For networks that give a loop only to nodes without one, as if they had added the identity.
    "double": "those that there are of weight 2, all other edges of weight 1",
}
FEATURES = {
    "raw": "as they are",
    "row-normalized": "each node's features divided by their sum",
    "standardized": "zero mean and unit variance per feature, over all nodes",
}
RELATIONS = {
    "poincare": "embedded in a hyperbolic disk",
    "mds": "embedded by Isomap",
    "struc2vec": "embedded by struc2vec",
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
class Processing:
    """How a stored graph becomes the graph a model sees.

    Args:
        direction: a key of ``DIRECTIONS``.
        self_loops: a key of ``SELF_LOOPS``.
        features: a key of ``FEATURES``.
        relations: a key of ``RELATIONS``: the edges of a published file of relations in place of
            the graph's own, each with its relation as a feature.
    """

    direction: str = "stored"
    self_loops: str = "keep"
    features: str = "raw"
    relations: str | None = None

    def __post_init__(self) -> None:
        check_choice("direction", self.direction, DIRECTIONS)
        check_choice("self_loops", self.self_loops, SELF_LOOPS)
        check_choice("features", self.features, FEATURES)
        if self.relations is None:
            return
        check_choice("relations", self.relations, RELATIONS)
        if self.direction == "undirected":
            raise ValueError(
                "`direction` must be 'stored', 'reversed' or 'rows' beside `relations`, whose file "
                "lists pairs both ways with a relation each; got 'undirected'"
            )

    def to_json(self) -> dict[str, str]:
        """Plain values; without relations as it was before there were any."""
        return {key: value for key, value in asdict(self).items() if value is not None}


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
            x=_process_features(self.x, processing.features),
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
        train, val, test: positions of the graphs of each part.
        task, metric, class_names, checksum, processing, remark: as in :class:`NodeDataset`.
        graph_ids: the user's names of the graphs.
    """

    name: str
    graphs: list[Data]
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

    def _repr_html_(self) -> str:
        parts = [len(getattr(self, part)) for part in PARTS]
        return dataset_html(self, {"graphs": len(self.graphs)}, parts)

    @property
    def num_features(self) -> int:
        return self.graphs[0].x.shape[1]

    @property
    def edge_channels(self) -> int:
        """Number of features of an edge; 0 if edges have none."""
        attr = _edge_features(self.graphs[0]) if self.graphs else None
        return 0 if attr is None else attr.shape[-1]

    @property
    def edge_names(self) -> tuple[str, ...]:
        """Nobody has named the features of the edges."""
        return ()

    @property
    def out_channels(self) -> int:
        """Number of outputs that a model of this task has."""
        if self.task == "multiclass":
            return len(self.class_names)
        return self.graphs[0].y.shape[-1]

    @property
    def num_splits(self) -> int:
        return 1


_EdgeTensors = tuple[Tensor, Tensor | None, Tensor | None]  # edge_index, edge_weight, edge_attr


def process_edges(edges: _EdgeTensors, processing: Processing, num_nodes: int) -> _EdgeTensors:
    """Edges, weights and features of the graph that a model sees."""
    edge_index, weight, attr = edges
    if processing.direction == "reversed":
        edge_index = edge_index.flip(0)
    elif processing.direction == "rows":
        edge_index, weight, attr = _merge(edge_index.flip(0), weight, attr, num_nodes)
    elif processing.direction == "undirected":
        edge_index = torch.cat([edge_index, edge_index.flip(0)], dim=1)
        weight = None if weight is None else weight.repeat(2)
        attr = None if attr is None else attr.repeat(2, 1)
        edge_index, weight, attr = _merge(edge_index, weight, attr, num_nodes)
    if processing.self_loops == "remove":
        keep = edge_index[0] != edge_index[1]
        weight, attr = (None if part is None else part[keep] for part in (weight, attr))
        edge_index = edge_index[:, keep]
    elif processing.self_loops == "add":
        if attr is not None:  # the order of the edges is the same in both calls
            _, attr = add_remaining_self_loops(edge_index, attr, 0.0, num_nodes)
        edge_index, weight = add_remaining_self_loops(edge_index, weight, num_nodes=num_nodes)
    elif processing.self_loops == "double":
        is_loop = (edge_index[0] == edge_index[1]).to(torch.get_default_dtype())
        weight = (1 + is_loop) if weight is None else weight * (1 + is_loop).to(weight.dtype)
    return edge_index, weight, attr


def _merge(
    edge_index: Tensor, weight: Tensor | None, attr: Tensor | None, num_nodes: int
) -> _EdgeTensors:
    """Each edge once; the larger of two weights, the mean of features."""
    once: Tensor = coalesce(edge_index, num_nodes=num_nodes)
    if weight is not None:
        weight = coalesce(edge_index, weight, num_nodes=num_nodes, reduce="max")[1]
    if attr is not None:
        attr = coalesce(edge_index, attr, num_nodes=num_nodes, reduce="mean")[1]
    return once, weight, attr


def _edge_features(graph: Data) -> Tensor | None:
    """The features of the edges of a graph; integers are codes, of which nobody can take means."""
    attr = graph.edge_attr
    return attr if attr is not None and attr.is_floating_point() else None


def _check_edge_attr(argument: str, edge_attr: Tensor | None, num_edges: int) -> None:
    if edge_attr is None:
        return
    check_shape(argument, edge_attr, f"(m, k) with m = {num_edges}", (num_edges, None))
    if edge_attr.shape[1] == 0:
        raise ValueError(f"`{argument}` must have a column or more, or be None; got none")
    check_finite(argument, edge_attr)


def _process_features(x: Tensor, kind: str) -> Tensor:
    if kind == "row-normalized":
        total = x.sum(-1, keepdim=True)
        return x / torch.where(total == 0, 1.0, total)
    if kind == "standardized":
        return (x - x.mean(0)) / x.std(0, unbiased=False).clamp(min=1e-12)
    return x
