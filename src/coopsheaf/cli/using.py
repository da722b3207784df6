"""``coopsheaf evaluate`` and ``coopsheaf predict``: trained runs, on old data or new."""

from __future__ import annotations

import torch

from coopsheaf.cli import args, show
from coopsheaf.data.dataset import GraphDataset
from coopsheaf.data.links import AnyDataset, LinkDataset
from coopsheaf.data.metrics import METRICS
from coopsheaf.files import write_atomically
from coopsheaf.predictions import LinkPredictions, Predictions, predict_links, score
from coopsheaf.predictions import predict as predict_all
from coopsheaf.train.data import read_pairs, run_data
from coopsheaf.train.loop import evaluate as evaluate_feed
from coopsheaf.train.make_feed import make_feed
from coopsheaf.train.run import Run, load_run, read_result


def evaluate(command: args.Evaluate) -> int:
    run = load_run(command.run)
    if run.info["level"] == "link" and command.nodes is not None:
        raise ValueError(
            f"{command.run}: predicts links, and new tables have no links set apart to be found; "
            "leave --nodes and --edges out to evaluate it on its own data"
        )
    dataset, split = find_data(run, command, labelled=True)
    if command.nodes is not None:
        return _evaluate_new(run, dataset, command)
    feed = make_feed(dataset, split, run.recipe, torch.device("cpu"))
    scores = evaluate_feed(run.model, feed, run.task)
    before = read_result(run.info).scores
    show.table(
        ["part", METRICS[run.task.metric].label, "at training"],
        [[part, f"{score:.4f}", f"{before[part]:.4f}"] for part, score in scores.items()],
        f"{run.info['model']} on {dataset.name}, split {split}",
    )
    return 0


def predict(command: args.Predict) -> int:
    if command.output.exists() and not command.force:
        raise ValueError(f"{command.output}: exists already; use --force to overwrite it")
    run = load_run(command.run)
    links = run.info["level"] == "link"
    if links and command.pairs is None:
        raise ValueError(f"{command.run}: predicts links; give --pairs, a table of pairs to score")
    if command.pairs is not None and not links:
        raise ValueError(
            f"{command.run}: {predicts(run)}; leave --pairs out, it is for runs that predict links"
        )
    dataset, _ = find_data(run, command, labelled=False)
    predictions: Predictions | LinkPredictions
    if command.pairs is not None:
        assert not isinstance(dataset, GraphDataset)
        predictions = predict_links(run, dataset, read_pairs(run, command.pairs, dataset))
    else:
        predictions = predict_all(run, dataset)
    write_atomically(command.output, predictions.to_csv(raw=command.raw).encode())
    show.say(f"{len(predictions)} predictions: {command.output}")
    if not command.raw and (count := predictions.num_shielded):
        show.say(
            f"{count} cells begin as formulas do, with = + - or @: they are written with ' before "
            "them, so that no spreadsheet runs them; --raw writes them as they are"
        )
    return 0


def _evaluate_new(run: Run, dataset: AnyDataset, command: args.Evaluate) -> int:
    """The metric on what is labelled of new tables."""
    assert not isinstance(dataset, LinkDataset)
    try:
        found = score(run, dataset)
    except ValueError as error:
        raise ValueError(f"{command.graphs or command.nodes}: {error}") from None
    what = "graphs" if isinstance(dataset, GraphDataset) else "nodes"
    show.say(
        f"{found.labelled} labelled {what}: {METRICS[run.task.metric].label} {found.value:.4f}"
    )
    return 0


def predicts(run: Run) -> str:
    """What a run is about."""
    levels = {"link": "links", "graph": "whole graphs", "node": "nodes"}
    return f"predicts {levels[run.info['level']]}"


def find_data(
    run: Run, command: args.Evaluate | args.Predict | args.Explain, *, labelled: bool
) -> tuple[AnyDataset, int]:
    """The data that a command is about, and which split of it; what reading had to say is said."""
    data = run_data(
        run,
        command.nodes,
        command.edges,
        graphs=getattr(command, "graphs", None),
        data_dir=command.data_dir,
        labelled=labelled,
    )
    for note in data.notes:
        show.say(note)
    return data.dataset, data.split
