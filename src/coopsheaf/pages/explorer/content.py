"""What stands on the page, as plain values and packed arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from torch import Tensor

from coopsheaf.analysis.action_summary import GROUPINGS, group_nodes, summarise_actions
from coopsheaf.analysis.actions import ACTIONS, ActionReport
from coopsheaf.analysis.importance import ColumnImportance
from coopsheaf.data.dataset import PARTS
from coopsheaf.data.metrics import METRICS
from coopsheaf.pages.explorer.layout import Layout
from coopsheaf.pages.explorer.neighbourhood import Selection
from coopsheaf.pages.explorer.opening import Opening
from coopsheaf.pages.explorer.packing import pack, pack_indices, pack_strengths, shorten
from coopsheaf.pages.explorer.reading import Reading
from coopsheaf.pages.explorer.reasons import Reasons, compose_importance, compose_reasons
from coopsheaf.train.run import read_result

FORMAT = 1
BINS = 40
# A larger table is not read by anybody: the rarest classes share a row.
MOST_CLASSES = 24
# The tail of a histogram beyond this quantile is in its last bar.
_TAIL = 0.995
_LABEL = 60


def compose(
    reading: Reading,
    selection: Selection,
    layout: Layout,
    reasons: Sequence[Reasons] = (),
    importance: ColumnImportance | None = None,
    opening: Opening | None = None,
) -> dict[str, Any]:
    """Everything the page shows.

    Nodes and edges are those of the selection, numbered anew; counts, histograms and tables are
    of the whole graph.
    """
    info, names = reading.run.info, labels_of(reading)
    return {
        "format": FORMAT,
        "title": f"{info['model']} on {shorten(str(info['dataset']), _LABEL)}",
        "graph": _graph(reading, selection, layout),
        "nodes": _nodes(reading, selection, layout),
        "edges": _edges(reading, selection),
        "targets": _targets(reading, selection),
        "actions": _actions(reading, selection),
        "silence": reading.silence,
        "opening": asdict(opening or Opening()),
        "groupings": _groupings(reading),
        "training": _training(reading),
        "settings": _settings(reading),
        "explanations": [compose_reasons(each, selection, names) for each in reasons],
        "importance": None if importance is None else compose_importance(importance),
    }


def labels_of(reading: Reading) -> list[str] | None:
    """The user's names of all nodes, short enough for a table; ``None`` if they have none."""
    names = reading.dataset.node_ids
    return [shorten(name, _LABEL) for name in names] if names else None


def _graph(reading: Reading, selection: Selection, layout: Layout) -> dict[str, Any]:
    data = reading.dataset
    return {
        "nodes": data.num_nodes,
        "edges": data.num_edges,
        "layout": layout.kind,
        "notes": list(selection.notes),
    }


def _nodes(reading: Reading, selection: Selection, layout: Layout) -> dict[str, Any]:
    n, chosen = reading.dataset.num_nodes, torch.from_numpy(selection.nodes)
    part = torch.zeros(n, dtype=torch.int64)
    for number, name in enumerate(PARTS, start=1):
        part[reading.part(name)] = number
    source, target = reading.edges
    names = reading.dataset.node_ids
    return {
        "count": len(chosen),
        "id": pack_indices(chosen, n),
        "names": [shorten(names[i]) for i in chosen.tolist()] if names else None,
        "x": pack(layout.positions[:, 0], "f4"),
        "y": pack(layout.positions[:, 1], "f4"),
        "part": pack(part[chosen], "u1"),
        "parts": ["none", *PARTS],
        "in_degree": pack(torch.bincount(target, minlength=n)[chosen], "u4"),
        "out_degree": pack(torch.bincount(source, minlength=n)[chosen], "u4"),
    }


def _edges(reading: Reading, selection: Selection) -> dict[str, Any]:
    number = torch.full((reading.dataset.num_nodes,), -1)
    number[torch.from_numpy(selection.nodes)] = torch.arange(len(selection.nodes))
    source, target = number[reading.edges[:, torch.from_numpy(selection.edges)]]
    size = len(selection.nodes)
    return {
        "count": len(source),
        "source": pack_indices(source, size),
        "target": pack_indices(target, size),
    }


def _targets(reading: Reading, selection: Selection) -> list[dict[str, Any]]:
    """One entry per thing predicted: classes, or a number."""
    task, data, outputs = reading.run.task, reading.dataset, reading.outputs
    chosen = torch.from_numpy(selection.nodes)
    if task.kind in ("binary", "multiclass"):
        outputs = outputs.double()
        probabilities, predicted = reading.run.probabilities(outputs), reading.run.classes(outputs)
        count = probabilities.shape[1]
        names = [shorten(name, _LABEL) for name in reading.run.class_names]
        names += [str(k) for k in range(len(names), count)]
        return [_classes("class", names, data.y, predicted, probabilities, chosen, reading)]
    columns = data.y.reshape(data.num_nodes, -1)
    titles = [shorten(name, _LABEL) for name in reading.run.class_names]
    titles += [str(k) for k in range(len(titles), columns.shape[1])]
    entries = []
    for k, title in enumerate(titles if columns.shape[1] > 1 else ["target"]):
        y, out = columns[:, k].double(), outputs[:, k].double()
        if task.kind == "multilabel":
            truth = torch.where(y.isnan(), -1.0, y).long()
            yes = out.sigmoid()
            both = torch.stack([1 - yes, yes], dim=1)
            entries.append(
                _classes(title, ["no", "yes"], truth, (out > 0).long(), both, chosen, reading)
            )
        else:
            entries.append(
                {
                    "name": title,
                    "kind": "numbers",
                    "truth": pack(y[chosen], "f4"),
                    "predicted": pack(out[chosen], "f4"),
                }
            )
    return entries


def _classes(
    title: str,
    names: list[str],
    truth: Tensor,
    predicted: Tensor,
    probabilities: Tensor,
    chosen: Tensor,
    reading: Reading,
) -> dict[str, Any]:
    likely = probabilities.gather(1, predicted[:, None]).squeeze(1)
    return {
        "name": title,
        "kind": "classes",
        "classes": names,
        "truth": pack(truth[chosen], "i2"),
        "predicted": pack(predicted[chosen], "i2"),
        "probability": pack(likely[chosen], "f4"),
        "confusion": _confusion(names, truth, predicted, reading),
    }


def _confusion(
    names: list[str], truth: Tensor, predicted: Tensor, reading: Reading
) -> dict[str, Any]:
    """How often each class was taken for each, by part; truth down, prediction across."""
    known = truth >= 0
    count = len(names)
    order = torch.arange(count)
    if count > MOST_CLASSES:
        often = torch.bincount(truth[known], minlength=count)
        kept = torch.argsort(often, descending=True, stable=True)[: MOST_CLASSES - 1].sort()[0]
        order = torch.full((count,), MOST_CLASSES - 1)
        order[kept] = torch.arange(MOST_CLASSES - 1)
        names = [*(names[k] for k in kept.tolist()), "all others"]
        count = MOST_CLASSES
    masks = {"all": known, **{part: known & reading.part(part) for part in PARTS}}
    tables = {}
    for part, mask in masks.items():
        cell = order[truth[mask]] * count + order[predicted[mask]]
        tables[part] = torch.bincount(cell, minlength=count * count).view(count, count).tolist()
    return {"classes": names, "tables": tables}


def _actions(reading: Reading, selection: Selection) -> dict[str, Any] | None:
    report = reading.actions
    if report is None:
        return None
    nodes, edges = torch.from_numpy(selection.nodes), torch.from_numpy(selection.edges)
    layers = []
    for layer in report.layers:
        turn = layer.from_identity
        layers.append(
            {
                "source_scale": pack(layer.source_scale[nodes], "f4"),
                "target_scale": pack(layer.target_scale[nodes], "f4"),
                "broadcasting": pack(layer.broadcasting[nodes], "f4"),
                "listening": pack(layer.listening[nodes], "f4"),
                "action": pack(layer.action[nodes], "u1"),
                "flow": pack_strengths(layer.flow[edges]),
                "turn": None if turn is None else pack((turn[edges] * 255).round(), "u1"),
            }
        )
    return {
        "family": report.family,
        "threshold": report.threshold,
        "most_frequent_of": reading.most_frequent_of,
        "names": list(ACTIONS),
        "counts": report.counts.tolist(),
        "layers": layers,
        "histograms": _histograms(report),
    }


def _histograms(report: ActionReport) -> dict[str, Any]:
    """Scales of all nodes per layer, over the same bins, so that layers can be compared."""
    every = torch.cat(
        [scale for layer in report.layers for scale in (layer.source_scale, layer.target_scale)]
    ).numpy()
    high = float(np.quantile(every, _TAIL)) if every.size else 1.0
    high = high if high > 0 else 1.0
    edges = np.linspace(0.0, high, BINS + 1)
    layers = []
    for layer in report.layers:
        counts = {
            name: np.histogram(np.clip(scale.numpy(), 0.0, high), edges)[0].tolist()
            for name, scale in (("source", layer.source_scale), ("target", layer.target_scale))
        }
        layers.append(counts)
    return {"high": high, "beyond": bool(every.size and every.max() > high), "layers": layers}


def _groupings(reading: Reading) -> list[dict[str, Any]]:
    """Who does what: actions and strengths by kinds of nodes, in every layer."""
    if reading.actions is None:
        return []
    task, data = reading.run.task, reading.dataset
    kinds = ["degree", "part"]
    options: dict[str, Any] = {"parts": {name: reading.part(name) for name in PARTS}}
    if task.kind in ("binary", "multiclass"):
        kinds = ["class", "correctness", "homophily", *kinds]
        names = [shorten(name, _LABEL) for name in reading.run.class_names]
        options |= {
            "y": data.y,
            "predicted": reading.run.classes(reading.outputs),
            "class_names": names,
        }
    groupings = []
    for kind in kinds:
        summary = summarise_actions(reading.actions, group_nodes(kind, reading.graph, **options))
        rows = [
            {
                "layer": row.layer,
                "group": row.group,
                "nodes": row.nodes,
                "counts": list(row.counts),
                "broadcasting": row.broadcasting,
                "listening": row.listening,
            }
            for row in summary.rows
        ]
        if rows:
            about = GROUPINGS[kind]
            groupings.append({"by": kind, "about": about[:1].upper() + about[1:], "rows": rows})
    return groupings


def _training(reading: Reading) -> dict[str, Any]:
    result = read_result(reading.run.info)
    metric = reading.run.task.metric
    return {
        "metric": METRICS[metric].label,
        "higher_is_better": METRICS[metric].higher,
        "columns": ["epoch", "loss", *PARTS],
        "history": result.history,
        "best_epoch": result.best_epoch,
        "scores": result.scores,
        "scores_here": reading.scores(),
    }


def _settings(reading: Reading) -> list[dict[str, Any]]:
    """Sections of names and values; paths of the user's machine are left out."""
    info, data = reading.run.info, reading.dataset
    result = read_result(info)
    recipe = info["recipe"]
    about = {
        "model": f"{info['model']}, version {info['model_version']}",
        "parameters": f"{info['parameters']:,}",
        "recipe": recipe["recipe"].get("name") or "none",
        "recipe from": recipe["recipe"].get("source") or "not said",
        "settings hash": info["config_hash"],
        "seed": info["seed"],
        "epochs": f"{result.epochs}, best {result.best_epoch}",
        "training time": f"{result.seconds:.1f} s",
    }
    graph = {
        "dataset": shorten(str(info["dataset"]), _LABEL),
        "remark": info.get("dataset_remark") or None,
        "checksum (sha256)": info["dataset_checksum"] or "none",
        "split": f"{info['split']} of {info['splits']}" if "splits" in info else info["split"],
        "task": info["task"],
        "nodes": f"{data.num_nodes:,}",
        "directed edges": f"{data.num_edges:,}",
        "features": f"{data.num_features:,}",
        **info["processing"],
    }
    if data.checksum != info["dataset_checksum"]:
        graph["shown"] = "other data than it was trained on"
    sections = {
        "Run": about,
        "Data": graph,
        **{f"Recipe: {name}": recipe.get(name, {}) for name in ("model", "data", "train")},
        "Versions": {**info.get("versions", {}), "machine": info.get("machine")},
    }
    return [
        {
            "title": title,
            "rows": [
                [str(key), _text(value)] for key, value in rows.items() if value not in (None, "")
            ],
        }
        for title, rows in sections.items()
        if rows
    ]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return shorten(f"{value:g}" if isinstance(value, float) else str(value))
