"""``coopsheaf evaluate`` and ``coopsheaf predict``: trained runs, on old data or new."""

from __future__ import annotations

import torch

from coopsheaf.cli import args, show
from coopsheaf.cli.summaries import PARTS as PART_NAMES
from coopsheaf.cli.summaries import show_summaries
from coopsheaf.data.dataset import PARTS, GraphDataset
from coopsheaf.data.links import AnyDataset, LinkDataset
from coopsheaf.files import write_atomically
from coopsheaf.predictions import LinkPredictions, Predictions, predict_links, summaries
from coopsheaf.predictions import predict as predict_all
from coopsheaf.train.data import own_parts, read_pairs, run_data
from coopsheaf.train.make_feed import make_feed
from coopsheaf.train.run import Run, load_run, read_result
from coopsheaf.train.summary import summarise

# How nodes of new tables are spoken of, of which the run may have met some.
_MET = {
    "train": " that the run was trained on",
    "val": " that it was selected by",
    "test": " of its test part",
    "new": " that are new to it",
}


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
    run.model.eval()
    with torch.no_grad():
        outputs = feed.outputs(run.model, PARTS)
    before = read_result(run.info).scores
    show.table(
        ["part", run.task.metric, "at training"],
        [
            [part, f"{run.task.score(*pair):.4f}", f"{before[part]:.4f}"]
            for part, pair in outputs.items()
        ],
        f"{run.info['model']} on {dataset.name}, split {split}",
    )
    parts = {part: summarise(run.task, run.decision, *pair) for part, pair in outputs.items()}
    show_summaries(run, parts, "test")
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
    """The metrics on what is labelled of new tables, apart from what the run was trained on."""
    assert not isinstance(dataset, LinkDataset)
    known = own_parts(run, dataset, command.data_dir)
    try:
        found = summaries(run, dataset, known.masks)
    except ValueError as error:
        raise ValueError(f"{command.graphs or command.nodes}: {error}") from None
    what = "graphs" if isinstance(dataset, GraphDataset) else "nodes"
    for part, (summary, count) in found.items():
        name = run.task.metric
        said = f"{count} labelled {what}{_MET[part] if len(known.masks) > 1 else ''}"
        show.say(f"{said}: {name} {summary.metrics[run.task.metric]:.4f}")
    if known.why_not:
        show.say(
            f"NOTE: {what} that the run was trained on cannot be told from others, because its own "
            f"tables are not to be had: {known.why_not}"
        )
    elif met := [part for part in found if part in ("train", "val")]:
        names = " and ".join(PART_NAMES[part] for part in met)
        show.say(
            f"NOTE: some {what} have the names of those of the run's {names} part: they are kept "
            "apart, because scores on what a run has learned from or was chosen by flatter it"
        )
    parts = {part: summary for part, (summary, _) in found.items()}
    show_summaries(run, parts, "new" if "new" in parts else "test")
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
