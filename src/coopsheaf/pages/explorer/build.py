"""From a trained run and its graph to the page, step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from coopsheaf.analysis.hops import check_nodes
from coopsheaf.analysis.importance import ColumnImportance
from coopsheaf.checks import check_int
from coopsheaf.data.dataset import NodeDataset
from coopsheaf.pages.explorer.adjacency import adjacency
from coopsheaf.pages.explorer.content import compose
from coopsheaf.pages.explorer.layout import lay_out
from coopsheaf.pages.explorer.neighbourhood import Selection, choose_edges, choose_nodes
from coopsheaf.pages.explorer.opening import choose_opening
from coopsheaf.pages.explorer.packing import shorten
from coopsheaf.pages.explorer.page import render
from coopsheaf.pages.explorer.reading import Reading, read_run
from coopsheaf.pages.explorer.reasons import Reasons, find_reasons
from coopsheaf.train.data import run_data
from coopsheaf.train.run import Run, load_run

MAX_NODES = 20_000
MAX_EDGES = 200_000

Stage = Callable[[str], AbstractContextManager[Any]]


@dataclass(frozen=True)
class Exploration:
    """A page, and what is on it.

    Args:
        html: the whole file.
        num_nodes: shown.
        num_edges: drawn.
        layout: ``"grid"``, ``"rings"`` (around the centre) or ``"forces"``.
        has_actions: whether the network has any.
        notes: what was left out and why; empty if nothing was.
        reasons: why the nodes that were to be explained got their predictions.
    """

    html: str
    num_nodes: int
    num_edges: int
    layout: str
    has_actions: bool
    notes: tuple[str, ...]
    reasons: tuple[Reasons, ...] = ()


def explore(
    run: Run | str | Path,
    dataset: NodeDataset | None = None,
    split: int | None = None,
    *,
    center: int | None = None,
    hops: int | None = None,
    max_nodes: int = MAX_NODES,
    max_edges: int = MAX_EDGES,
    explain: Sequence[int] = (),
    importance: ColumnImportance | None = None,
    threshold: float | None = None,
    stage: Stage = lambda line: nullcontext(),
) -> Exploration:
    """Make the page of a run: the graph, who listens, who broadcasts, what comes out.

    The network always sees the whole graph; only what is drawn may be a part of it. The page opens
    on the first node to explain, or else on the centre, and on the layer with the most to see.

    Args:
        run: a trained run with outputs for nodes, or its folder.
        dataset: its graph, or another one with the same features; by default the data that the
            run was trained on.
        split: which of its splits; by default that of the run, or the first of another graph.
        center: show the surroundings of this node.
        hops: how far they go; by default as far as ``max_nodes`` allows.
        max_nodes, max_edges: draw at most so many.
        explain: nodes to explain, see :func:`~coopsheaf.analysis.explain.explain_node`. Without a
            centre, the first of them is the centre of a graph too large to be drawn whole.
        importance: what :func:`~coopsheaf.analysis.importance.column_importance` found, to stand on
            the page.
        threshold: of the actions, see :func:`~coopsheaf.analysis.actions.read_actions`.
        stage: called with what is about to be done; a context around doing it.
    """
    run = run if isinstance(run, Run) else load_run(Path(run))
    if run.info["level"] != "node":
        raise ValueError("`run` must predict nodes: the page shows what comes out at each")
    if dataset is None:
        found = run_data(run)
        assert isinstance(found.dataset, NodeDataset)
        dataset, split = found.dataset, found.split if split is None else split
    split = 0 if split is None else split
    n = dataset.num_nodes
    check_int("max_nodes", max_nodes, minimum=1)
    check_int("max_edges", max_edges, minimum=0)
    if explain:
        explain = list(dict.fromkeys(check_nodes("explain", list(explain), n).tolist()))
    if center is not None:
        center = int(check_nodes("center", center, n))
    if hops is not None:
        check_int("hops", hops, minimum=0)
        if center is None:
            raise ValueError(f"`hops` goes with `center`, a node to count from; got {hops} alone")
    if center is None and explain and n > max_nodes:
        center = explain[0]
    asked = explain[0] if explain else center
    with stage("reading the network's actions ..."):
        reading = read_run(run, dataset, split, threshold=threshold)
    graph = adjacency(dataset.edge_index, n)
    names = dataset.node_ids

    def name(node: int) -> str:
        return shorten(names[node], 60) if names else str(node)

    nodes, notes = choose_nodes(graph, center=center, hops=hops, max_nodes=max_nodes, name=name)
    for node in explain:
        if node not in nodes:
            assert center is not None  # without one all nodes are shown
            raise ValueError(
                f"`explain` must hold nodes that are shown; got {name(node)}, which is not among "
                f"the {len(nodes)} around {name(center)}"
            )
    edges, said = _choose_edges(reading, nodes, max_edges)
    selection = Selection(nodes, edges, notes + said)
    with stage("laying out the graph ..."):
        layout = lay_out(graph, None if len(nodes) == n else nodes, center)
    with stage("explaining nodes ..."):
        reasons = find_reasons(reading, explain)
    with stage("writing the page ..."):
        opening = choose_opening(reading.actions, selection, asked)
        html = render(compose(reading, selection, layout, reasons, importance, opening))
    return Exploration(
        html=html,
        num_nodes=len(nodes),
        num_edges=len(edges),
        layout=layout.kind,
        has_actions=reading.actions is not None,
        notes=selection.notes,
        reasons=tuple(reasons),
    )


def _choose_edges(
    reading: Reading, nodes: NDArray[np.int64], max_edges: int
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    shown = torch.zeros(reading.dataset.num_nodes, dtype=torch.bool)
    shown[torch.from_numpy(nodes)] = True
    source, target = reading.edges
    between = (shown[source] & shown[target]).nonzero().squeeze(1)
    strength = None
    if reading.actions is not None and reading.actions.layers:
        flows = [layer.flow[between] for layer in reading.actions.layers]
        # The strongest layer counts, each measured by its own strongest edge.
        shares = [flow / flow.max().clamp(min=1e-300) if len(flow) else flow for flow in flows]
        strength = torch.stack(shares).amax(0).numpy()
    chosen, notes = choose_edges(
        source[between].numpy(), target[between].numpy(), strength, max_edges=max_edges
    )
    return between.numpy()[chosen], notes
