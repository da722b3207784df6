"""The data of a comparison: a dataset by name, one at hand, or the user's own tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coopsheaf.compare.folds import (
    Dataset,
    Folds,
    choose_scheme,
    folds_of_dataset,
    folds_of_tables,
    table_reader,
)
from coopsheaf.data.dataset import NodeDataset
from coopsheaf.data.links import AnyDataset, LinkDataset
from coopsheaf.data.pack import kept_tables
from coopsheaf.data.tables.load import TableData
from coopsheaf.data.tables.options import TableOptions
from coopsheaf.data.tables.reading.inputs import Progress
from coopsheaf.train.data import load_data, whereabouts
from coopsheaf.train.recipe import DataConfig, default_recipe


@dataclass(frozen=True)
class Division:
    """How the data shall be divided: one of three ways, or as is usual for it."""

    folds: int | None = None
    repeats: int | None = None
    splits: tuple[int, ...] | None = None
    seed: int = 0

    def of(self, dataset: AnyDataset, divided: bool) -> Any:
        """The scheme for a dataset; ``divided`` says whether it has splits of its own."""
        return choose_scheme(
            dataset,
            divided,
            folds=self.folds,
            repeats=self.repeats,
            splits=self.splits,
            seed=self.seed,
        )


def named_folds(
    name: str,
    division: Division,
    *,
    settings: Sequence[str] = (),
    data_dir: Path | None = None,
) -> tuple[Folds, DataConfig]:
    """Folds of a dataset by name, processed as ``data.field=value`` among the settings says."""
    about_data = [text for text in settings if text.startswith("data.")]
    config = default_recipe("csnn", name).set(*about_data).data
    if config.name != name:
        raise ValueError(f"--set data.name={config.name}: the dataset is {name!r} already")
    dataset = load_data(config, data_dir)
    extra = whereabouts(data_dir) | kept_tables(dataset)
    return folds_of_dataset(dataset, division.of(dataset, divided=True), extra), config


def given_folds(dataset: AnyDataset, division: Division) -> Folds:
    """Folds of a dataset at hand, its features as they are."""
    found = _checked(dataset)
    return folds_of_dataset(found, division.of(found, divided=True))


def table_folds(
    nodes: Any,
    edges: Any,
    graphs: Any,
    options: TableOptions,
    division: Division,
    progress: Progress | None = None,
) -> tuple[Folds, TableData]:
    """Folds of the user's own tables, and what came of reading them first."""
    read = table_reader(nodes, edges, graphs, options, progress)
    first = read(None)
    dataset = _checked(first.dataset)
    divided = bool(first.schema.parts) or getattr(nodes, "train_mask", None) is not None
    return folds_of_tables(read, first, division.of(dataset, divided)), first


def _checked(dataset: AnyDataset) -> Dataset:
    if isinstance(dataset, LinkDataset):
        raise ValueError(
            "models are compared on targets of nodes or graphs; which edges are missing is "
            "nothing that trees of columns could say: compare links with `coopsheaf bench`"
        )
    assert isinstance(dataset, Dataset)
    if isinstance(dataset, NodeDataset) and dataset.num_nodes == 0:
        raise ValueError(f"{dataset.name} has no nodes to compare models on")
    return dataset
