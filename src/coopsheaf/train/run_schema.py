"""What ``run.json`` must hold before anything in it is used. Imports no PyTorch.

A run may come from a stranger. Every key has a type and bounds here, in one table each: a new key
is one line. Keys that are not in a table are left alone and reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coopsheaf.data.metrics import METRICS, metrics_of
from coopsheaf.schema import (
    Kind,
    an_object,
    each,
    find_fault,
    keys,
    kind,
    many,
    number,
    one_of,
    or_null,
    text,
    truth,
    unknown_keys,
    whole,
)
from coopsheaf.train.recipe import Recipe

LEVELS = ("node", "graph", "link")
STATUSES = ("running", "interrupted", "finished")
MOST_CHANNELS = 2**31 - 1
MOST_CLASSES = 1_000_000

# Which metrics can be computed for a task.
METRICS_OF_TASK = {
    task: metrics_of(task) for task in ("binary", "multiclass", "multilabel", "regression", "link")
}

RESULT: dict[str, Kind] = {
    "scores": keys({part: or_null(number) for part in ("train", "val", "test")}),
    "best_epoch": whole(),
    "epochs": whole(),
    "seconds": number,
    "history": many(many(or_null(number), most=100)),
    "interrupted": truth,
}

RESULT_OPTIONAL: dict[str, Kind] = {"eval_every": whole(1)}

REQUIRED: dict[str, Kind] = {
    "format": whole(),
    "status": one_of(STATUSES),
    "identity": text,
    "model": text,
    "model_version": whole(1),
    "recipe": an_object,  # its sections are checked by `recipe_from_mapping`
    "config_hash": text,
    "seed": whole(high=2**32 - 1),
    "split": whole(),
    "dataset": text,
    "dataset_checksum": text,
    "processing": keys(
        dict.fromkeys(("direction", "self_loops", "features"), text),
        dict.fromkeys(("relations", "pe", "bonds"), text),
    ),
    "level": one_of(LEVELS),
    "task": one_of(METRICS_OF_TASK),
    "metric": one_of(METRICS),
    "class_names": many(text, most=MOST_CLASSES),
    "in_channels": whole(1, MOST_CHANNELS),
    "out_channels": whole(1, MOST_CHANNELS),
    "parameters": whole(),
    "result": keys(RESULT, RESULT_OPTIONAL),
}
_share = kind("a number between 0 and 1", lambda v: type(v) is float and 0 < v < 1)
_scale = kind("a number from 0.001 to 1000", lambda v: type(v) is float and 1e-3 <= v <= 1e3)
DECISION: dict[str, Kind] = {
    "scale": _scale,
    "shift": many(number, most=MOST_CLASSES),
    "threshold": _share,
    "rule": text,
    "notes": many(text, most=10),
}
SUMMARY: dict[str, Kind] = {
    "metrics": each(or_null(number)),
    "confusion": many(many(whole(), most=100), most=100),
}

OPTIONAL: dict[str, Kind] = {
    "decision": keys(DECISION),
    "summary": keys({}, {"val": keys(SUMMARY), "test": keys(SUMMARY)}),
    "splits": whole(1),
    "dataset_remark": text,
    "edge_weights": truth,
    "edge_channels": whole(high=MOST_CHANNELS),
    "pe_channels": whole(high=MOST_CHANNELS),
    "num_nodes": whole(1, MOST_CHANNELS),  # of a network that belongs to one graph
    "undirected": truth,
    "threads": whole(),
    "versions": each(text),
    "machine": text,
    "instructions": each(text),
    "peak_mb": or_null(number),
    "together": whole(1),  # how many runs one pass has trained
    "batches": an_object,
    "data_dir": or_null(text),
    "encoder": an_object,  # `FeatureEncoder.from_json` reads it
    "tables": or_null(an_object),
    "estimator": keys({"name": text}),  # its settings are checked by `load` of the estimator
}

# Of a fit under way: `state.safetensors`. Its JSON may have NaN and infinities.
_real = kind("a number", lambda v: type(v) in (int, float))
STATE: dict[str, Kind] = {
    "epoch": whole(),
    "best_epoch": whole(),
    "best": each(_real),
    "seconds": number,
    "history": many(many(_real, most=100)),
    "plateau": an_object,
}
STATE_OPTIONAL: dict[str, Kind] = {"losses": many(_real)}

_column, _columns = or_null(text), many(text)
TABLES: dict[str, Kind] = {
    "nodes": or_null(text),  # null: it came through a pipe and is nowhere now
    "edges": or_null(text),
    "graphs": or_null(text),
    **dict.fromkeys(("id", "source", "edge_target", "weight", "time", "graph"), _column),
    **dict.fromkeys(("task", "self_loops", "duplicates"), or_null(text)),
    "undirected": truth,
    "parts": _columns,
    "targets": or_null(an_object),  # `TargetReader.from_json` reads it
    "edge_encoder": or_null(an_object),
    "options": an_object,
    # Of earlier versions, which kept what had been asked for alone:
    "target": or_null(text),
    "features": or_null(_columns),
    "categorical": or_null(_columns),
    "split": _column,
    "seed": whole(high=2**32 - 1),
}


def check_info(info: Mapping[str, Any]) -> tuple[str, ...]:
    """Check types and bounds of all of a finished run's ``run.json``.

    Returns:
        What is not known here, one line each.

    Raises:
        ValueError: the first fault, in one line without the file's name.
    """
    fault = find_fault(info, keys(REQUIRED, OPTIONAL)) or _tables_fault(info)
    fault = fault or _outputs_fault(info)
    if fault is not None:
        raise ValueError(fault)
    return (
        *_unknown("run.json", unknown_keys(info, REQUIRED, OPTIONAL)),
        *_unknown("result in run.json", unknown_keys(info["result"], RESULT, RESULT_OPTIONAL)),
        *_unknown("tables in run.json", unknown_keys(info.get("tables") or {}, TABLES)),
    )


def check_state(meta: Mapping[str, Any]) -> None:
    """Check what ``state.safetensors`` says beside its tensors; the first fault is an error."""
    fault = find_fault(meta, keys({"state": keys(STATE, STATE_OPTIONAL), "rates": many(number)}))
    if fault is None and (unknown := unknown_keys(meta["state"], STATE, STATE_OPTIONAL)):
        fault = f"state has {unknown[0]}, which this version does not know"
    if fault is not None:
        raise ValueError(fault)


def check_recipe(info: Mapping[str, Any], recipe: Recipe) -> tuple[str, ...]:
    """Check that what ``run.json`` says in several places is the same everywhere.

    Returns:
        What is odd but may be: a run of another version, one line each.
    """
    said = {
        "model": (info["model"], recipe.model_name),
        "seed": (info["seed"], recipe.train.seed),
        "metric": (info["metric"], recipe.train.metric or info["metric"]),
    }
    for key, (value, wanted) in said.items():
        if value != wanted:
            raise ValueError(f"{key} must be that of its recipe, {wanted!r}; got {value!r}")
    parts = ("model", "model_version", "config_hash", "seed", "split", "dataset")
    identity = "/".join(str(info[key]) for key in (*parts, "dataset_checksum"))
    if info.get("edge_channels"):
        identity += f"/{info['edge_channels']} edge features"
    if info["identity"] != identity:
        raise ValueError(f"identity must be {identity!r}, as its other keys say")
    notes = []
    if info["model_version"] != recipe.version:
        notes.append(
            f"run.json: {recipe.model_name} was of version {info['model_version']} when it was "
            f"trained and is of version {recipe.version} now: it may compute something else"
        )
    if info["config_hash"] != recipe.hash():
        notes.append(
            f"run.json: its settings are not those that it was trained with (their hash is "
            f"{recipe.hash()}, then {info['config_hash'][:16]!r})"
        )
    return tuple(notes)


def _tables_fault(info: Mapping[str, Any]) -> str | None:
    """Types of the known keys of ``tables``; the rest is known to whoever reads them again."""
    tables = info.get("tables")
    if tables is None:
        return None
    if "encoder" not in info:
        return "it has tables but lacks 'encoder'"
    fault = find_fault(tables, keys({}, TABLES))
    return None if fault is None else f"tables: {fault}"


def _outputs_fault(info: Mapping[str, Any]) -> str | None:
    """Task, metric, classes and outputs have to fit each other."""
    task, names, outputs = info["task"], info["class_names"], info["out_channels"]
    if info["metric"] not in METRICS_OF_TASK[task]:
        return f"metric must be one of {', '.join(METRICS_OF_TASK[task])} for task {task}"
    if task == "binary" and outputs != 1:
        return f"out_channels must be 1 for task binary; got {outputs}"
    wanted = {"binary": 2, "regression": 0, "link": 0}.get(task, outputs)
    if names and len(names) != wanted:
        return (
            f"class_names must be {wanted} for {outputs} outputs and task {task}; got {len(names)}"
        )
    if fault := _decision_fault(info):
        return fault
    if len(set(names)) < len(names):
        return "class_names must differ; some are the same"
    if info["split"] >= info.get("splits", info["split"] + 1):
        return f"split must be below the number of splits, {info['splits']}; got {info['split']}"
    return None


def _decision_fault(info: Mapping[str, Any]) -> str | None:
    """Decisions and tables of them have to fit the outputs and the classes."""
    task, outputs, decision = info["task"], info["out_channels"], info.get("decision")
    if decision is not None:
        if task in ("regression", "link"):
            return f"decision must not be there for task {task}"
        if len(decision["shift"]) not in (0, outputs):
            return f"decision.shift must be {outputs} numbers, one per output, or none"
        if decision["threshold"] != 0.5 and task != "binary":
            return f"decision.threshold must be 0.5 for task {task}; it is for two classes"
    size = {"binary": 2, "multiclass": outputs}.get(task, 0)
    for part, summary in info.get("summary", {}).items():
        if unknown := unknown_keys(summary["metrics"], METRICS_OF_TASK[task]):
            return f"summary.{part} has {unknown[0]}, which is no metric for task {task}"
        table = summary["confusion"]
        if table and any(len(row) != size for row in (table, *table)):
            return f"summary.{part}.confusion must have {size} rows of {size} counts, or none"
    return None


def _unknown(where: str, names: list[str]) -> list[str]:
    if not names:
        return []
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return [
        f"{where}: keys that this version does not know are not used: {', '.join(names[:5])}{more}"
    ]
