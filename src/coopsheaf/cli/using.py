"""``coopsheaf evaluate`` and ``coopsheaf predict``: trained runs, on old data or new."""

from __future__ import annotations

import csv
import io

import torch

from coopsheaf.cli import args, show
from coopsheaf.data.dataset import GraphDataset, NodeDataset
from coopsheaf.data.pack import prepared_graph
from coopsheaf.files import write_atomically
from coopsheaf.scale.inference import infer
from coopsheaf.train.batches import CHUNK
from coopsheaf.train.data import run_data
from coopsheaf.train.loop import evaluate as evaluate_feed
from coopsheaf.train.run import Run, load_run, make_feed, read_result
from coopsheaf.train.run_info import CheckpointError


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
        logits = _logits(run, dataset)
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
    logits = _logits(run, dataset)
    ids = dataset.node_ids or tuple(str(i) for i in range(dataset.num_nodes))
    write_atomically(command.output, _csv(run, ids, logits).encode())
    show.say(f"{len(ids)} predictions: {command.output}")
    return 0


def find_data(
    run: Run, command: args.Evaluate | args.Predict | args.Explain, *, labelled: bool
) -> tuple[NodeDataset | GraphDataset, int]:
    """The data that a command is about, and which split of it; what reading had to say is said."""
    data = run_data(run, command.nodes, command.edges, data_dir=command.data_dir, labelled=labelled)
    for note in data.notes:
        show.say(note)
    return data.dataset, data.split


def _csv(run: Run, ids: tuple[str, ...], logits: torch.Tensor) -> str:
    """Id first, then the prediction, then a probability per class."""
    name = (run.info.get("tables") or {}).get("id") or "id"
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if run.task.kind == "regression":
        writer.writerow([name, "prediction"])
        for node, value in zip(ids, logits.reshape(len(ids), -1)[:, 0].tolist(), strict=True):
            writer.writerow([node, repr(value)])
        return text.getvalue()
    probabilities = run.task.probabilities(logits.double())
    names = run.class_names or tuple(str(k) for k in range(probabilities.shape[1]))
    writer.writerow([name, "prediction", *(f"p({label})" for label in names)])
    classes = run.task.classes(logits)
    for node, k, row in zip(ids, classes.tolist(), probabilities.tolist(), strict=True):
        writer.writerow([node, names[k], *(f"{p:.6f}" for p in row)])
    return text.getvalue()


def _logits(run: Run, dataset: NodeDataset) -> torch.Tensor:
    """Outputs at all nodes, in bounded memory."""
    dtype = next(run.model.parameters()).dtype
    if dataset.num_features != run.info["in_channels"]:
        raise CheckpointError(
            f"the data has {dataset.num_features} features; the model was trained with "
            f"{run.info['in_channels']}"
        )
    weight = dataset.edge_weight
    return infer(
        run.model,
        dataset.x,
        prepared_graph(dataset),
        edge_weight=None if weight is None else weight.to(dtype),
        chunk=run.recipe.batch.chunk or CHUNK,
    )
