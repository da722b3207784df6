"""``coopsheaf evaluate`` and ``coopsheaf predict``: trained runs, on old data or new."""

from __future__ import annotations

import torch

from coopsheaf.cli import args, show
from coopsheaf.data.dataset import GraphDataset, NodeDataset
from coopsheaf.files import write_atomically
from coopsheaf.predictions import node_outputs
from coopsheaf.predictions import predict as predict_nodes
from coopsheaf.train.data import run_data
from coopsheaf.train.loop import evaluate as evaluate_feed
from coopsheaf.train.run import Run, load_run, make_feed, read_result


def evaluate(command: args.Evaluate) -> int:
    run = load_run(command.run)
    dataset, split = find_data(run, command, labelled=True)
    if command.nodes is not None:
        assert isinstance(dataset, NodeDataset)
        known = dataset.test[0]
        if not known.any():
            raise ValueError(
                f"{command.nodes}: there must be labels to compare with in column "
                f"{run.info['tables']['target']!r}; there are none that the run knows"
            )
        logits = node_outputs(run, dataset)
        score = run.task.score(logits[known], dataset.y[known])
        show.say(f"{int(known.sum())} labelled nodes: {run.task.metric} {score:.4f}")
        return 0
    feed = make_feed(dataset, split, run.recipe, torch.device("cpu"))
    scores = evaluate_feed(run.model, feed, run.task)
    before = read_result(run.info).scores
    show.table(
        ["part", run.task.metric, "at training"],
        [[part, f"{score:.4f}", f"{before[part]:.4f}"] for part, score in scores.items()],
        f"{run.info['model']} on {dataset.name}, split {split}",
    )
    return 0


def predict(command: args.Predict) -> int:
    if command.output.exists() and not command.force:
        raise ValueError(f"{command.output}: exists already; use --force to overwrite it")
    run = load_run(command.run)
    dataset, _ = find_data(run, command, labelled=False)
    if isinstance(dataset, GraphDataset):
        raise ValueError(f"{command.run}: predicts whole graphs; predict takes node tasks only")
    predictions = predict_nodes(run, dataset)
    write_atomically(command.output, predictions.to_csv(raw=command.raw).encode())
    show.say(f"{len(predictions.ids)} predictions: {command.output}")
    if not command.raw and (count := predictions.num_shielded):
        show.say(
            f"{count} cells begin as formulas do, with = + - or @: they are written with ' before "
            "them, so that no spreadsheet runs them; --raw writes them as they are"
        )
    return 0


def find_data(
    run: Run, command: args.Evaluate | args.Predict | args.Explain, *, labelled: bool
) -> tuple[NodeDataset | GraphDataset, int]:
    """The data that a command is about, and which split of it; what reading had to say is said."""
    data = run_data(run, command.nodes, command.edges, data_dir=command.data_dir, labelled=labelled)
    for note in data.notes:
        show.say(note)
    return data.dataset, data.split
