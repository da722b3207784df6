"""``coopsheaf data``: list, info, fetch, verify, import, pack."""

from __future__ import annotations

import os
from typing import Any

from coopsheaf.cli import args, show
from coopsheaf.cli.own import has_own, read_own
from coopsheaf.data.dataset import NodeDataset
from coopsheaf.data.errors import DataError
from coopsheaf.data.files import data_dirs, locate
from coopsheaf.data.importing import import_folder
from coopsheaf.data.links import LinkDataset
from coopsheaf.data.pack import PREFIX, read_pack, write_pack
from coopsheaf.data.registry import (
    DATASETS,
    dataset_info,
    fetch,
    load_dataset,
    missing_files,
    statistics,
    verify,
)
from coopsheaf.train.config import TrainConfig
from coopsheaf.train.data import load_data
from coopsheaf.train.recipe import default_recipe


def run(command: Any) -> int:
    if isinstance(command, args.DataList):
        return _list(command)
    if isinstance(command, args.DataInfo):
        return _info(command)
    if isinstance(command, args.DataFetch):
        if not command.names:
            raise ValueError("name at least one dataset (see `coopsheaf data list`)")
        for name in command.names:
            for path in fetch(name, command.data_dir):
                show.say(str(path))
        return 0
    if isinstance(command, args.DataVerify):
        return _verify(command)
    if isinstance(command, args.DataPack):
        return _pack(command)
    return _import(command)


def _list(command: args.DataList) -> int:
    rows = []
    data_dirs(command.data_dir)  # a folder that is not there is an error, not a lack of files
    for name, info in DATASETS.items():
        try:
            here = "no" if missing_files(name, command.data_dir) else "yes"
        except DataError:
            here = "damaged"
        known = info.published
        here = here if info.generate is None else "generated"
        rows.append([name, f"{known.nodes:,}", f"{known.edges:,}", info.metric, here, info.remark])
    show.table(["dataset", "nodes", "edges", "metric", "here", "remark"], rows)
    return 0


def _info(command: args.DataInfo) -> int:
    name = command.name
    if name.startswith(PREFIX):
        packed = read_pack(name.removeprefix(PREFIX))
        show.say(f"{packed.name}: {packed.task}, {packed.metric}; {packed.processing}")
        _show_statistics(statistics(packed))
        return 0
    info = dataset_info(name)
    done = info.processing
    show.say(f"{name}: {info.title}")
    show.say(f"licence: {info.licence}")
    show.say(f"task: {info.task}, metric: {info.metric}")
    show.say(
        f"default: direction {done.direction}, self-loops {done.self_loops}, "
        f"features {done.features}"
    )
    if info.remark:
        show.say(f"NOTE: {info.remark}")
    missing = missing_files(name, command.data_dir)
    for file in info.files:
        state = "missing" if file.path in missing else "here"
        show.say(f"file {file.path} ({state}): {file.url}")
    for relations, file in info.relations.items():
        state = "missing" if locate(file, command.data_dir) is None else "here"
        show.say(f"relations {relations}, {file.path} ({state}): {file.url}")
    if not missing:
        _show_statistics(statistics(load_dataset(name, command.data_dir)))
    return 0


def _show_statistics(found: dict[str, Any]) -> None:
    for key, value in found.items():
        if value is None:
            continue
        if key == "split_sizes":
            value = f"{value[0]} in split 0"
        show.say(f"  {key.replace('_', ' ')}: {value}")


def _verify(command: args.DataVerify) -> int:
    names = command.names or tuple(
        name
        for name, info in DATASETS.items()
        if info.files and not missing_files(name, command.data_dir)
    )
    if not names:
        where = os.environ.get("COOPSHEAF_DATA", "the user's cache")
        raise ValueError(f"no dataset is on this machine (looked in {where}); fetch one first")
    wrong = 0
    for name in names:
        differences = verify(name, command.data_dir).differences
        wrong += bool(differences)
        show.say(f"{name}: " + ("; ".join(differences) if differences else "as published"))
    if wrong:
        raise ValueError(f"{wrong} of {len(names)} datasets differ from what was published")
    return 0


def _import(command: args.DataImport) -> int:
    result = import_folder(command.folder)
    for label in ("imported", "present", "skipped", "unknown"):
        for item in getattr(result, label):
            show.say(f"{label}: {item}")
    if result.skipped:
        raise ValueError(f"{command.folder}: {len(result.skipped)} file(s) were skipped, see above")
    if not (result.imported or result.present):
        raise ValueError(f"{command.folder}: holds no file of a dataset (see `data list`)")
    return 0


def _pack(command: args.DataPack) -> int:
    kept: dict[str, Any] = {}
    if has_own(command.tables, command.name):
        if command.set:
            raise ValueError("--set data.* is for datasets by name; tables have their own options")
        seed = TrainConfig().seed if command.seed is None else command.seed
        dataset, kept = read_own(command.tables, seed)
    else:
        recipe = default_recipe("csnn", command.name or "").set(*command.set)
        with show.notice(f"reading {command.name} ..."):
            dataset = load_data(recipe.data, command.data_dir)
    if not isinstance(dataset, NodeDataset):
        raise ValueError(
            f"{dataset.name}: a pack holds one graph whose nodes have targets; this is a task of "
            + ("links" if isinstance(dataset, LinkDataset) else "whole graphs")
        )
    options: dict[str, Any] = {"force": command.force, "kept": kept, "order": command.order}
    folder = write_pack(dataset, command.output, **options)
    size = sum(path.stat().st_size for path in folder.iterdir())
    show.say(f"{folder}: {size / 1e6:,.1f} MB; train on it with `coopsheaf train pack:{folder}`")
    return 0
