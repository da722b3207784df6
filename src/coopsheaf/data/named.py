"""Every dataset that has a name: stored ones, and generated ones that need no files."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable
from dataclasses import replace

from coopsheaf.data.dataset import GraphDataset, NodeDataset, Processing
from coopsheaf.data.pack import PREFIX, pack_processing, read_pack
from coopsheaf.data.registry import DATASETS, dataset_info, load
from coopsheaf.data.synthetic import minesweeper

GENERATED: dict[str, tuple[Callable[[], NodeDataset], Processing, str]] = {
    "minesweeper-generated": (
        minesweeper,
        Processing("undirected", "remove", "raw"),
        "minesweeper by its published recipe, generated on the spot",
    ),
}


def default_processing(name: str) -> Processing:
    """What is done to a dataset unless a recipe says otherwise."""
    if name in GENERATED:
        return GENERATED[name][1]
    if name.startswith(PREFIX):
        return pack_processing(name.removeprefix(PREFIX))
    if name not in DATASETS:
        close = difflib.get_close_matches(name, all_names(), n=3)
        hint = f" (did you mean {' or '.join(map(repr, close))}?)" if close else ""
        names = ", ".join(map(repr, all_names()))
        raise ValueError(f"the dataset must be one of {names}; got {name!r}{hint}")
    return dataset_info(name).processing


def load_named(
    name: str,
    data_dir: str | os.PathLike[str] | None = None,
    *,
    direction: str | None = None,
    self_loops: str | None = None,
    features: str | None = None,
) -> NodeDataset | GraphDataset:
    """Load a dataset by name, or a pack by ``pack:FOLDER``; what is not given is its default
    processing, and that of a pack cannot be another one."""
    wanted = {"direction": direction, "self_loops": self_loops, "features": features}
    processing = replace(
        default_processing(name), **{key: value for key, value in wanted.items() if value}
    )
    if name in GENERATED:
        return GENERATED[name][0]().process(processing)
    if name.startswith(PREFIX):
        return read_pack(name.removeprefix(PREFIX)).process(processing)
    return load(name, data_dir, processing)


def all_names() -> list[str]:
    """All names, stored and generated."""
    return [*DATASETS, *GENERATED]
