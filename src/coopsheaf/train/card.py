"""The card of a model that is shared: what it is, on what it was measured, and its limits."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

from coopsheaf.schema import brief_text

LIMITS = """\
- It was trained on one dataset; on graphs that differ from it, its scores say little.
- Validation chose the epoch, so the validation score flatters; the test score is read off there.
- Names of columns and categories of the training data are in `config.json`. The data is not.
- Probabilities are those of the training data's classes, and calibrated only if the run was."""


def run_card(info: Mapping[str, Any]) -> str:
    """Markdown about a run, from what ``run.json`` says."""
    outputs = {"node": "nodes of a graph", "graph": "whole graphs", "link": "links of a graph"}
    classes = ", ".join(map(_word, info["class_names"][:20]))
    classes += f" and {len(info['class_names']) - 20} more" if len(info["class_names"]) > 20 else ""
    scores = info["result"]["scores"]
    table = "\n".join(
        f"| {part} | {_number(scores.get(part))} |" for part in ("train", "val", "test")
    )
    reads = (
        "It reads tables with the columns of training: `coopsheaf predict FOLDER --nodes N.csv "
        "--edges E.csv -o out.csv`."
        if info.get("tables")
        else "It takes data with the features of training."
    )
    told, metric = info["result"], _word(info["metric"])
    of = outputs[info["level"]] + (f": {classes}" if classes else "")
    return f"""{_head(info["model"], info["task"])}
# {_word(info["model"])} for {_word(info["dataset"])}

Predicts the {_word(info["task"])} targets of {of}.
{info["parameters"]:,} parameters; trained with [coopsheaf](https://github.com/coopsheaf/coopsheaf).

## Data

{_word(info["dataset"])}, split {info["split"]}; checksum `{_word(info["dataset_checksum"][:16])}`;
{info["in_channels"]} features. {_word(info.get("dataset_remark", ""))}

## Metric

{metric} at epoch {told["best_epoch"]} of {told["epochs"]}, which validation chose:

| part | {metric} |
|---|---|
{table}

## Intended use

Predictions for {outputs[info["level"]]} like those of the data above. {reads} In Python:

```python
from coopsheaf import from_pretrained

run = from_pretrained("FOLDER-OR-NAME")  # nothing in it is executed
```

## Limits

{LIMITS}
"""


def network_card(config: Mapping[str, Any]) -> str:
    """Markdown about a network of which only its weights are known."""
    outputs = (
        "embeddings" if config["out_channels"] is None else f"{config['out_channels']} outputs"
    )
    what = "graph" if config["graph_level"] else "node"
    return f"""{_head(config["model"], "")}
# {_word(config["model"])}

A network of [coopsheaf](https://github.com/coopsheaf/coopsheaf): {config["in_channels"]} features
in, {outputs} per {what}.

## Data and metric

Not recorded: weights and settings alone were saved. Whoever shares it should say here what it was
trained and measured on.

## Intended use

```python
from coopsheaf import from_pretrained

model = from_pretrained("FOLDER-OR-NAME")  # nothing in it is executed
out = model(x, edge_index)
```

## Limits

- How features have to be scaled or encoded is not part of it; a run keeps that.
"""


def _head(model: str, task: str) -> str:
    tags = ["graph-neural-network", "sheaf", *filter(None, (model, task))]
    lines = "\n".join(f"- {_tag(tag)}" for tag in tags)
    return f"---\nlibrary_name: coopsheaf\ntags:\n{lines}\n---"


def _tag(text: str) -> str:
    return "".join(c for c in text if c.isascii() and (c.isalnum() or c in "-_"))[:60] or "model"


def _word(text: str) -> str:
    """A text of the run's, as text: no markup, one line."""
    plain = html.escape(brief_text(str(text)), quote=False)
    return "".join(f"\\{c}" if c in "|`*_[]#" else c for c in plain)


def _number(value: float | None) -> str:
    return "not known" if value is None else f"{value:.4f}"
