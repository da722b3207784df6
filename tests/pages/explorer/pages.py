"""Small graphs, trained runs and the pages made of them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from train.small import node_dataset, recipe

from coopsheaf.data.dataset import NodeDataset
from coopsheaf.models.registry import make_settings
from coopsheaf.pages.explorer.adjacency import Adjacency, pair_up
from coopsheaf.train.config import TrainConfig
from coopsheaf.train.recipe import Recipe
from coopsheaf.train.run import Run, run_split

HOSTILE = (
    "</script><script>window.hacked = 1</script>",
    "<script>alert(1)</script>",
    "<img src=x onerror='window.hacked = 2'>",
    "a" * 10_000,
    "line\u2028paragraph\u2029",
    "{{script}}",
    "&lt;b&gt;",
    "__proto__",
    "'\"`${window.hacked = 3}",
    "💥" * 40,
)


def board(width: int, height: int, *, corners: bool = True) -> np.ndarray:
    """Pairs of cells that touch, row by row, ``(2, e)``, each once."""
    cell = np.arange(width * height).reshape(height, width)
    pairs = [(cell[:, :-1], cell[:, 1:]), (cell[:-1], cell[1:])]
    if corners:
        pairs += [(cell[:-1, :-1], cell[1:, 1:]), (cell[:-1, 1:], cell[1:, :-1])]
    return np.stack([np.concatenate([p[k].ravel() for p in pairs]) for k in (0, 1)])


def shape(pairs: np.ndarray, n: int) -> Adjacency:
    return pair_up(pairs[0], pairs[1], n)


def board_dataset(width: int = 6, height: int = 5) -> NodeDataset:
    """A board with three classes, every edge both ways."""
    n = width * height
    pairs = torch.from_numpy(board(width, height))
    small = node_dataset(n)
    return replace(
        small,
        name="board",
        edge_index=torch.cat([pairs, pairs.flip(0)], dim=1),
        class_names=("red", "green", "blue"),
    )


def named_dataset(n: int = 40) -> NodeDataset:
    """A graph whose nodes and classes have names that try to be markup."""
    names = (*HOSTILE, *(f"p{i}" for i in range(n - len(HOSTILE))))
    classes = ("<b>bold</b>", "x" * 3000, "no & never")
    return replace(node_dataset(n), name="<i>graph</i>", node_ids=names, class_names=classes)


def train(dataset: NodeDataset, model: str = "csnn", **train_options: Any) -> Run:
    """A run of a few epochs."""
    options = {"epochs": 3, **train_options}
    if model == "csnn":
        made = recipe(**options)
    else:
        config: Any = make_settings("gcn-plain") if model == "gcn-plain" else make_settings("cognn")
        made = Recipe(model, replace(config, num_layers=2), train=TrainConfig(lr=0.02, **options))
    return run_split(made, dataset)[0]


def data_of(html: str) -> dict[str, Any]:
    """What the page says about itself."""
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html, re.S)
    return json.loads(text)


def array(packed: dict[str, Any]) -> np.ndarray:
    """As the page reads it."""
    import base64

    kinds = {"Uint8Array": "u1", "Int16Array": "<i2", "Uint16Array": "<u2", "Uint32Array": "<u4", "Float32Array": "<f4"}  # fmt: skip
    raw = base64.b64decode(packed["data"])
    if "largest" in packed:
        return np.frombuffer(raw, "<f2").astype(float) * packed["largest"]
    return np.frombuffer(raw, kinds[packed["type"]])
