"""Graphs whose edges are to be predicted, and how their edges are split."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from coopsheaf.checks import check_choice, check_int
from coopsheaf.data.dataset import PARTS, GraphDataset, NodeDataset, Processing
from coopsheaf.data.errors import DataError
from coopsheaf.data.metrics import METRICS, metrics_of
from coopsheaf.data.non_edges import NonEdges
from coopsheaf.data.splits import check_ratios, part_sizes
from coopsheaf.sheaves.edges import join_weight, read_edges
from coopsheaf.tensor_checks import check_edge_weight, check_shape, check_tensor

LINK_METRICS = {name: METRICS[name] for name in metrics_of("link")}
NEGATIVES = 50


@dataclass(frozen=True)
class LinkDataset:
    """One graph whose edges are to be predicted: which nodes a node has links to.

    Messages travel on the training edges alone. Each link (i, j) of validation and test is ranked
    against the same non-edges (i, k) of the whole graph every time.

    Args:
        name: the registry's name, or one of the user's.
        x: ``(n, F)`` features.
        edge_index: ``(2, m)``, the edges that messages travel on.
        train, val, test: ``(2, k)``, the links of each part, sources above targets. Of an
            undirected graph each link is there from both of its ends.
        val_negatives, test_negatives: ``(k, K)``, for each link K nodes that its source has no edge
            to.
        undirected: links have no direction; every edge of ``edge_index`` is there both ways.
        metric: a key of ``LINK_METRICS``.
        node_ids, edge_weight, checksum, processing, remark: as in
            :class:`~coopsheaf.data.NodeDataset`.
    """

    name: str
    x: Tensor
    edge_index: Tensor
    train: Tensor
    val: Tensor
    test: Tensor
    val_negatives: Tensor
    test_negatives: Tensor
    undirected: bool = False
    metric: str = "mrr"
    node_ids: tuple[str, ...] = ()
    edge_weight: Tensor | None = None
    checksum: str = ""
    processing: Processing = field(default_factory=Processing)
    remark: str = ""

    # What other datasets choose, and links have no choice of.
    task: ClassVar[str] = "link"
    class_names: ClassVar[tuple[str, ...]] = ()
    num_splits: ClassVar[int] = 1
    out_channels: ClassVar[int] = 1
    pe_channels: ClassVar[int] = 0
    edge_channels: ClassVar[int] = 0  # a link that is asked for has no features yet
    edge_names: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        check_choice("metric", self.metric, LINK_METRICS)
        for part in PARTS:
            _check_nodes(part, getattr(self, part), "(2, k), k at least 1", 2, self.num_nodes)
        for part in PARTS[1:]:
            k, name = getattr(self, part).shape[1], f"{part}_negatives"
            _check_nodes(name, getattr(self, name), f"({k}, K), K at least 1", k, self.num_nodes)

    def candidates(self, part: str) -> tuple[Tensor, Tensor]:
        """The sources ``(k, 1)`` of validation or test, and their targets ``(k, 1 + K)``: in each
        row the link, then its non-edges."""
        source, target = getattr(self, part).unsqueeze(-1)
        return source, torch.cat([target, getattr(self, f"{part}_negatives")], dim=1)

    def edge_inputs(
        self, dtype: torch.dtype, device: torch.device | None = None
    ) -> dict[str, Tensor | None]:
        """What a network is told of the edges, by the names of its arguments."""
        weight = self.edge_weight
        return {"edge_weight": None if weight is None else weight.to(device, dtype)}

    @property
    def num_nodes(self) -> int:
        return self.x.shape[0]

    @property
    def num_edges(self) -> int:
        return self.edge_index.shape[1]

    @property
    def num_features(self) -> int:
        return self.x.shape[1]


AnyDataset = NodeDataset | GraphDataset | LinkDataset


class LinkSplit(NamedTuple):
    """A graph whose edges were split."""

    dataset: LinkDataset
    edges: Tensor  # (m,) for each edge that carries messages, its position in the list given
    notes: tuple[str, ...]  # what the user should be told, one line each


def split_links(
    x: Tensor,
    edge_index: Tensor,
    edge_weight: Tensor | None = None,
    *,
    time: Tensor | None = None,
    undirected: bool = False,
    ratios: tuple[float, float, float] = (0.8, 0.1, 0.1),
    negatives: int = NEGATIVES,
    seed: int = 0,
    metric: str = "mrr",
    name: str = "links",
    node_ids: tuple[str, ...] = (),
    checksum: str = "",
    processing: Processing | None = None,
    remark: str = "",
) -> LinkSplit:
    """Split the edges of a whole graph into links to learn from and links to find::

        dataset, _, notes = split_links(x, edge_index, time=time)
        run = train(dataset, "csnn")

    With times the latest links are for test and those before them for validation; a border moves
    to the nearest change of time, unless a part would lose half of its links. Without times the
    split is random. An edge that is listed several times is one link, the first of them in time, or
    else in the list, with its weight. Self-loops carry messages and are never asked for; with
    times, those after the last training link are left out. Links whose source has an edge to every
    node are left out of validation and test.

    Args:
        x: ``(n, F)`` features.
        edge_index: ``(2, m)``, all edges, sources above targets.
        edge_weight: ``(m,)``, finite and not negative.
        time: ``(m,)``, when each edge came to be.
        undirected: j→i and i→j are one link; it may be listed both ways or one way.
        ratios: shares of train, validation and test among the links; they sum to one.
        negatives: non-edges (i, k) that each link (i, j) of validation and test is ranked against;
            as many as there are if there are fewer.
        seed: decides a random split, the order of links of the same time, and the non-edges.
        metric: ``"mrr"``, ``"hits@1"``, ``"hits@3"``, ``"hits@10"``, ``"auroc"`` or ``"ap"``.
        name, node_ids, processing, remark: of the dataset.
        checksum: sha256 of what was read; that of the tensors if not given. The dataset's is made
            of it and of how the edges were split.

    Raises:
        DataError: one line that names the rule and what was found.
    """
    check_ratios(ratios)
    check_int("negatives", negatives, minimum=1)
    check_int("seed", seed, minimum=0)
    n = check_shape("x", x, "(n, F)", (None, None)).shape[0]
    read = read_edges(edge_index, n)
    ends, edge_weight = read.ends, join_weight(read, edge_weight)
    if edge_weight is not None:
        check_edge_weight(edge_weight, ends.shape[1], "edge_weight", edge_weight)
    if time is not None:
        _check_time(time, ends.shape[1])
    notes: list[str] = []
    rng = torch.Generator().manual_seed(seed)
    links, loops = _distinct(ends, n, edge_weight, time, undirected, notes)
    parts = _split(links, time, ratios, rng, notes)
    if time is not None:
        loops = loops[time[loops] <= time[parts["train"]].max()]
    edges, messages = _messages(ends, torch.cat([parts["train"], loops]).sort().values, undirected)
    pairs = {part: _both_ways(ends[:, rows], undirected) for part, rows in parts.items()}
    non_edges = NonEdges(_both_ways(ends[:, links], undirected), n)
    for part in PARTS[1:]:
        pairs[part] = _with_non_edges(part, pairs[part], non_edges, notes)
    sources = {part: pairs[part][0] for part in PARTS[1:]}
    number = _count_negatives(non_edges.count[torch.cat([*sources.values()])], negatives, notes)
    drawn = {part: non_edges.draw(source, number, rng) for part, source in sources.items()}
    how = {
        "time": time is not None,
        "undirected": undirected,
        "ratios": ratios,
        "negatives": negatives,
        "seed": seed,
        "metric": metric,
    }
    dataset = LinkDataset(
        name=name,
        x=x,
        edge_index=messages,
        **pairs,
        val_negatives=drawn["val"],
        test_negatives=drawn["test"],
        undirected=undirected,
        metric=metric,
        node_ids=node_ids,
        edge_weight=None if edge_weight is None else edge_weight[edges],
        checksum=_digest(checksum or _hash_tensors(x, ends, edge_weight, time), how),
        processing=processing or Processing(direction="undirected" if undirected else "stored"),
        remark=remark,
    )
    return LinkSplit(dataset, edges, tuple(notes))


def _messages(ends: Tensor, rows: Tensor, undirected: bool) -> tuple[Tensor, Tensor]:
    """The edges that carry messages, ``(2, m)``, after their positions in the list, ``(m,)``."""
    if not undirected:
        return rows, ends[:, rows]
    back = rows[ends[0, rows] != ends[1, rows]]  # a self-loop is its own way back
    return torch.cat([rows, back]), torch.cat([ends[:, rows], ends[:, back].flip(0)], dim=1)


def _check_nodes(name: str, nodes: Tensor, rule: str, rows: int, n: int) -> None:
    if nodes.dtype != torch.int64 or nodes.dim() != 2 or len(nodes) != rows or not nodes.numel():
        raise ValueError(
            f"`{name}` must be an int64 tensor of shape {rule}; got {nodes.dtype} of shape "
            f"{tuple(nodes.shape)}"
        )
    if not (int(nodes.min()) >= 0 and int(nodes.max()) < n):
        raise ValueError(
            f"`{name}` must hold nodes 0 to {n - 1}; got {int(nodes.min())} to {int(nodes.max())}"
        )


def _check_time(time: Tensor, m: int) -> None:
    check_tensor("time", time)
    if time.shape != (m,) or time.is_complex():
        raise DataError(
            f"`time` must be {m} numbers, one per edge; got {time.dtype} of shape "
            f"{tuple(time.shape)}"
        )
    bad = (~time.isfinite()).nonzero()
    if len(bad):
        edge = int(bad[0])
        raise DataError(f"`time` must be finite; edge {edge} has {time[edge].item()}")


def _distinct(
    ends: Tensor,
    n: int,
    weight: Tensor | None,
    time: Tensor | None,
    undirected: bool,
    notes: list[str],
) -> tuple[Tensor, Tensor]:
    """Where each link and each self-loop is listed first, in time or else in the list."""
    source, target = ends
    listed = source * n + target
    repeats = len(listed) - len(listed.unique())
    if repeats:
        which = "in time" if time is not None else "in the list"
        notes.append(
            f"{repeats:,} edges are repeats of others: of equal edges the first {which} counts"
        )
    key = torch.minimum(listed, target * n + source) if undirected else listed
    order = torch.arange(len(key)) if time is None else time.argsort(stable=True)
    key, place = key[order].sort(stable=True)
    first = torch.ones_like(key, dtype=torch.bool)
    first[1:] = key[1:] != key[:-1]
    rows, every = order[place[first]], order[place]
    if weight is not None:
        other = weight[every] != weight[rows[first.cumsum(0) - 1]]
        if other.any():
            notes.append(
                f"{int(other.sum()):,} edges have another weight than the first of their link, "
                "which counts"
            )
    rows = rows.sort().values
    loop = source[rows] == target[rows]
    if loop.any():
        notes.append(f"{int(loop.sum()):,} self-loops are never asked for")
    return rows[~loop], rows[loop]


def _split(
    links: Tensor,
    time: Tensor | None,
    ratios: tuple[float, float, float],
    rng: torch.Generator,
    notes: list[str],
) -> dict[str, Tensor]:
    """The links of each part, each part in the order of the list."""
    if len(links) < len(PARTS):
        raise DataError(
            "there must be at least three edges between different nodes, one for each of train, "
            f"val and test; got {len(links)}"
        )
    order = links[torch.randperm(len(links), generator=rng)]
    train, val, test = part_sizes(len(links), ratios)
    borders = [train, train + val]
    if time is not None:
        order = order[time[order].argsort(stable=True)]
        room = (min(train, val) / 2, min(val, test) / 2)
        borders = _move_borders(time[order], borders, room, notes)
    parts = dict(zip(PARTS, order.tensor_split(borders), strict=True))
    sizes = ", ".join(f"{len(rows):,} for {part}" for part, rows in parts.items())
    if time is None:
        notes.append(f"links split at random: {sizes}")
    else:
        ends = [f"{time[parts[part]].max().item():.15g}" for part in ("train", "val")]
        notes.append(
            f"links split by time: {sizes}; train goes up to {ends[0]}, val up to {ends[1]}"
        )
    return {part: rows.sort().values for part, rows in parts.items()}


def _move_borders(
    time: Tensor, borders: list[int], room: tuple[float, float], notes: list[str]
) -> list[int]:
    """Each border at the nearest change of time, if there is one closer than its room."""
    changes = (time[1:] != time[:-1]).nonzero().squeeze(1) + 1
    moved = []
    for border, limit, parts in zip(borders, room, ("train and val", "val and test"), strict=True):
        distance = (changes - border).abs()
        near = int(changes[distance.argmin()]) if len(changes) else -len(time)
        if abs(near - border) < max(limit, 1):
            moved.append(near)
            continue
        moved.append(border)
        notes.append(
            f"links of time {time[border].item():.15g} are too many for one part: the seed divides "
            f"them between {parts}"
        )
    return moved


def _both_ways(pairs: Tensor, undirected: bool) -> Tensor:
    return torch.cat([pairs, pairs.flip(0)], dim=1) if undirected else pairs


def _with_non_edges(part: str, pairs: Tensor, non_edges: NonEdges, notes: list[str]) -> Tensor:
    """The pairs whose source has non-edges to be ranked against."""
    known = non_edges.count[pairs[0]] > 0
    lost = len(known) - int(known.sum())
    if lost == len(known):
        raise DataError(
            f"the links of {part} must have sources that lack an edge to some node; all "
            f"{len(known)} have edges to all {non_edges.num_nodes - 1} others: there is nothing to "
            "rank them against"
        )
    if lost:
        notes.append(f"{lost:,} links of {part} are left out: their sources have no non-edges")
    return pairs[:, known]


def _count_negatives(available: Tensor, wanted: int, notes: list[str]) -> int:
    """How many non-edges each link is ranked against, if its source has ``available``, ``(k,)``."""
    number = min(wanted, int(available.max()))
    if number < wanted:
        notes.append(f"links are ranked against {number} non-edges each: no source has more")
    few = int((available < number).sum())
    if few:
        notes.append(f"{few:,} links have sources with fewer than {number} non-edges: these repeat")
    return number


def _digest(checksum: str, how: dict[str, object]) -> str:
    return hashlib.sha256(json.dumps([checksum, how], sort_keys=True).encode()).hexdigest()


def _hash_tensors(*tensors: Tensor | None) -> str:
    digest = hashlib.sha256()
    for tensor in tensors:
        if tensor is not None:
            digest.update(f"{tensor.dtype}{tuple(tensor.shape)}".encode())
            digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
