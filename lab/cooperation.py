"""``python -m lab channels`` and ``python -m lab units``: what nodes of trained CSNNs do."""

from __future__ import annotations

from typing import Any

import torch

from coopsheaf.analysis.actions import cooperative_network, layer_passes, read_actions
from coopsheaf.cli import show
from coopsheaf.cli.training import set_threads
from coopsheaf.data.dataset import NodeDataset
from coopsheaf.models.csnn import CSNN
from coopsheaf.sheaves.graph import Graph
from coopsheaf.train.data import run_data
from coopsheaf.train.run import load_run
from lab import args
from lab.channels import (
    HEAD,
    PLACE,
    SCORE_HEAD,
    channel_tables,
    channels_of,
    layer_rows,
    percent,
    read_channels,
    score_rows,
)
from lab.documents import fill_files


def channels(command: args.Channels) -> int:
    if command.splits < 1:
        raise ValueError(f"--splits must be at least 1; got {command.splits}")
    if command.epochs is not None and command.epochs < 1:
        raise ValueError(f"--epochs must be at least 1; got {command.epochs}")
    if not command.report:
        set_threads(command.threads)
        for result, known in channels_of(
            command.datasets, command.splits, command.epochs, command.results, command.data_dir
        ):
            shares = ", ".join(percent([layer.closed]) for layer in result.layers)
            how = "recorded already" if known else f"{result.epochs} epochs"
            show.say(f"{result.dataset}, split {result.split}: closed {shares} ({how})")
    results = read_channels(command.results)
    if not results:
        raise ValueError(f"{command.results}: holds no records yet; run without --report first")
    show.table(list(HEAD), layer_rows(results), "Channels by layer")
    show.table(list(SCORE_HEAD), score_rows(results), "What closing does to the score")
    if command.document is not None:
        fill_files([command.document], {PLACE: channel_tables(results)})
        show.say(f"tables: {command.document}")
    return 0


def units(command: args.Units) -> int:
    from coopsheaf.figures.influence import save
    from lab.action_units import common_unit, units_figure

    if command.figure.suffix.lower() not in (".svg", ".pdf", ".png"):
        raise ValueError(f"FIGURE must end in .svg, .pdf or .png; got {command.figure.name!r}")
    run = load_run(command.run)
    dataset = run_data(run).dataset
    network = cooperative_network(run.model)
    if not isinstance(network, CSNN) or not isinstance(dataset, NodeDataset):
        raise ValueError(f"{command.run}: must be a run of csnn on nodes")
    graph = Graph(dataset.edge_index, dataset.num_nodes)
    x = dataset.x.to(next(network.parameters()).dtype)
    inputs: dict[str, Any] = dataset.edge_inputs(x.dtype)
    report = read_actions(run.model, x, graph, **inputs)
    before = common_unit(layer_passes(network, x, graph, inputs)[1])
    flows = torch.stack([layer.flow for layer in report.layers])
    title = f"{run.info['model']} on {run.info['dataset']}"
    show.say(f"one unit for all layers: {before.tolist()}")
    show.say(f"the unit of each layer: {report.counts.tolist()}")
    show.say(f"figure: {save(units_figure(before, report.counts, flows, title), command.figure)}")
    return 0
