"""Tables in which one column decides, hidden among others that do not."""

from __future__ import annotations

from typing import Any

import numpy as np

from coopsheaf.data import load_tables
from coopsheaf.data.tables.load import TableData
from coopsheaf.models.registry import make_settings
from coopsheaf.train.config import TrainConfig
from coopsheaf.train.recipe import Recipe
from coopsheaf.train.run import Run, run_split

NAMES = ("a", "b", "c", "d", "kind", "since", "planted")


def planted_tables(seed: int, *, at: str = "own", words: bool = False, n: int = 400) -> TableData:
    """Nodes with numbers, a category, a date and a column that decides their class.

    Args:
        at: whose column decides: that of the node (``"own"``) or those of its ``"neighbours"``.
        words: the column that decides holds categories, six of them, and no numbers.
    """
    import pandas as pd

    rng = np.random.default_rng(seed)
    value = rng.standard_normal(n)
    ends = rng.integers(0, n, (2, 3 * n))
    ends = ends[:, ends[0] != ends[1]]
    if words:
        value = np.sign(value)
    heard = np.zeros(n)
    np.add.at(heard, ends[1], value[ends[0]])
    np.add.at(heard, ends[0], value[ends[1]])
    says = value if at == "own" else heard
    label = says + 0.1 * rng.standard_normal(n) > 0
    days = np.datetime64("2020-01-01") + rng.integers(0, 900, n).astype("timedelta64[D]")
    names = np.where(value > 0, rng.choice(["x", "y", "z"], n), rng.choice(["u", "v", "w"], n))
    columns: dict[str, Any] = {name: rng.standard_normal(n) for name in "abcd"}
    columns |= {
        "kind": rng.choice(list("klmnop"), n),
        "since": days.astype(str),
        "planted": names if words else value,
    }
    # Where a column stands must not matter.
    order = rng.permutation(list(columns))
    ids = np.array([f"n{i}" for i in range(n)])
    nodes = pd.DataFrame({"id": ids, **{name: columns[name] for name in order}})
    nodes["label"] = np.where(label, "yes", "no")
    edges = pd.DataFrame({"source": ids[ends[0]], "target": ids[ends[1]]})
    return load_tables(nodes, edges, target="label", id="id", undirected=True, seed=seed)


def trained(data: TableData, *, epochs: int = 40, seed: int = 0) -> Run:
    """A small CSNN."""
    model = make_settings("csnn", hidden_channels=8, num_layers=1, stalk_dim=2, dropout=0.1)
    recipe = Recipe("csnn", model, train=TrainConfig(lr=0.03, epochs=epochs, seed=seed))
    return run_split(recipe, data.dataset, extra=data.kept)[0]
