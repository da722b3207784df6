"""``coopsheaf figures``: what a trained run made of its maps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coopsheaf.analysis.actions import cooperative_network, read_actions
from coopsheaf.analysis.spectra import layer_spectra
from coopsheaf.checks import check_choice
from coopsheaf.cli import args, show
from coopsheaf.cli.using import predicts
from coopsheaf.data.dataset import NodeDataset
from coopsheaf.figures.actions import (
    composition_figure,
    scales_figure,
    sensitivity_figure,
)
from coopsheaf.figures.influence import save
from coopsheaf.figures.spectra import spectra_figure
from coopsheaf.models.csnn import CSNN
from coopsheaf.train.build import build_model
from coopsheaf.train.data import run_data
from coopsheaf.train.run import Run, load_run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = {"svg": "for web pages", "pdf": "for papers", "png": "for everything else"}

Drawings = dict[str, Callable[[], "Figure"]]


def figures(command: args.Figures) -> int:
    check_folder(command.output, command.format)
    drawings = _of_run(command.run, command.data_dir)
    return draw_all(drawings, command.output, command.format, force=command.force)


def check_folder(output: Path, format: str) -> None:
    """Refuse a format or a folder that cannot be, before anything is computed."""
    check_choice("--format", format, FORMATS)
    for place in (output, *output.parents):
        if place.exists() and not place.is_dir():
            raise ValueError(f"{place}: must be a folder; there is a file of this name")


def draw_all(drawings: Drawings, output: Path, format: str, *, force: bool) -> int:
    """Draw figures into a folder, all of them or none."""
    files = {name: output / f"{name}.{format}" for name in drawings}
    for file in files.values():
        if file.exists() and not force:
            raise ValueError(f"{file}: exists already; use --force to overwrite it")
    with show.notice(f"drawing {len(drawings)} figures ..."):
        drawn = {name: draw() for name, draw in drawings.items()}
    for name, figure in drawn.items():
        show.say(f"figure: {save(figure, files[name])}")
    return 0


def _of_run(folder: Path, data_dir: Path | None) -> Drawings:
    """The figures of a run; its network is read and asked now, so that errors come first."""
    run = load_run(folder)
    if run.info["level"] != "node":
        raise ValueError(f"{folder}: {predicts(run)}; figures of runs take node tasks only")
    network = cooperative_network(run.model)
    with show.notice(f"reading {run.info['dataset']} ..."):
        dataset = run_data(run, data_dir=data_dir).dataset
    assert isinstance(dataset, NodeDataset)
    inputs = _inputs(run, dataset)
    report = read_actions(run.model, **inputs)
    title = f"{run.info['model']} on {dataset.name}"
    drawings: Drawings = {
        "run-actions": lambda: composition_figure(report, title=title),
        "run-scales": lambda: scales_figure(report, title=title),
        "run-sensitivity": lambda: sensitivity_figure(report, title=title),
    }
    if isinstance(network, CSNN):
        drawings["run-spectra"] = lambda: _spectra(run, dataset, inputs, title)
    return drawings


def _spectra(run: Run, dataset: NodeDataset, inputs: dict[str, Any], title: str) -> Figure:
    """After training, and before it: the recipe's seed gives the parameters it began with."""
    after = layer_spectra(run.model, **inputs)
    before = layer_spectra(build_model(run.recipe, dataset), **inputs)
    return spectra_figure(after, before, title=title)


def _inputs(run: Run, dataset: NodeDataset) -> dict[str, Any]:
    """What the network of a run is called with, in its precision."""
    dtype = next(run.model.parameters()).dtype
    run.check_graph(dataset)
    run.check_edge_features(dataset)
    x, edge_index = dataset.x.to(dtype), dataset.edge_index
    return {"x": x, "edge_index": edge_index, **dataset.edge_inputs(dtype)}
