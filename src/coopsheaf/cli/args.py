"""What can be typed after ``coopsheaf``. Imports neither PyTorch nor PyG."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from tyro.conf import Positional, arg

Set = Annotated[
    tuple[str, ...], tyro.conf.UseAppendAction, arg(name="set", metavar="SECTION.FIELD=VALUE")
]


@dataclass(frozen=True)
class Tables:
    """Your own graph: a table of nodes and a table of edges (CSV or TSV)."""

    nodes: Path | None = None
    """Table of nodes: one row each, the first column its id."""
    edges: Path | None = None
    """Table of edges: the first two columns are the ids of source and target."""
    target: str | None = None
    """Column to predict; empty cells are nodes to be predicted."""
    id: str | None = None
    """Column with the nodes' ids; the first one by default."""
    features: tuple[str, ...] | None = None
    """Columns to learn from; by default all that have no other role."""
    categorical: tuple[str, ...] = ()
    """Features to treat as categories even if they are numbers."""
    split_column: str | None = None
    """Column that says train, val or test; by default a stratified 60/20/20 split."""
    source: str | None = None
    """Column of the edge table with the sources; the first one by default."""
    edge_target: str | None = None
    """Column of the edge table with the targets; the second one by default."""
    weight: str | None = None
    """Column of the edge table with weights."""
    task: str | None = None
    """classification or regression; found from the target by default."""
    undirected: bool = False
    """Use every edge both ways."""


@dataclass(frozen=True)
class Train:
    """Train a model on a dataset by name, or on your own tables.

    Examples: `coopsheaf train tolokers --splits 0`, or
    `coopsheaf train --nodes nodes.csv --edges edges.csv --target label --out my-run`.
    """

    dataset: Positional[str | None] = None
    """Name of a dataset (see `coopsheaf data list`); leave out with --nodes and --edges."""
    tables: tyro.conf.OmitArgPrefixes[Tables] = Tables()
    model: str = "csnn"
    """Model to train (see `coopsheaf models`)."""
    recipe: str | None = None
    """Settings to start from: a recipe's name or a TOML file; by default the model's recipe for
    this dataset."""
    set: Set = ()
    """Override a setting, e.g. --set model.stalk_dim=4; may be repeated."""
    splits: str | None = None
    """Splits to run: 0, 0-9 or 0,2,5; the first by default. Own tables have one."""
    epochs: int | None = None
    """At most this many epochs; short for --set train.epochs=N."""
    seed: int | None = None
    """Seed of initialisation, dropout and shuffling; short for --set train.seed=N."""
    class_weights: bool = False
    """Weigh classes by their inverse frequency; short for --set train.class_weights=true."""
    out: Path | None = None
    """Folder of the run; by default runs/MODEL-DATASET-SPLIT."""
    resume: bool = False
    """Continue an interrupted run; it ends as if it had never been interrupted."""
    data_dir: Path | None = None
    """Folder to look for dataset files in; else $COOPSHEAF_DATA, else the user's cache."""
    results: Path = Path("results")
    """Folder of the records: one line per finished run."""
    threads: int | None = None
    """Number of CPU threads."""


@dataclass(frozen=True)
class Evaluate:
    """Measure a trained run again, on its own data or on new tables with labels."""

    run: Positional[Path]
    """Folder of a finished run."""
    nodes: Path | None = None
    """Table of nodes with the target column; by default the run's own data."""
    edges: Path | None = None
    """Table of edges."""
    data_dir: Path | None = None
    """Folder to look for dataset files in."""


@dataclass(frozen=True)
class Predict:
    """Predict with a trained run; nodes may be new.

    Example: `coopsheaf predict my-run --nodes nodes.csv --edges edges.csv -o out.csv`.
    """

    run: Positional[Path]
    """Folder of a finished run."""
    output: Annotated[Path, arg(aliases=["-o"])]
    """CSV file to write: id, predicted label, probabilities."""
    nodes: Path | None = None
    """Table of nodes, with the feature columns of training; by default the run's own data."""
    edges: Path | None = None
    """Table of edges."""
    data_dir: Path | None = None
    """Folder to look for dataset files in."""
    force: bool = False
    """Overwrite the output file."""


@dataclass(frozen=True)
class Bench:
    """Run recipes over splits; what is recorded already is skipped, what broke off continues.

    Example: `coopsheaf bench csnn/tolokers --splits 0-9`.
    """

    recipes: Positional[tuple[str, ...]]
    """Names of recipes (model/dataset) or TOML files."""
    splits: str | None = None
    """Splits to run: 0, 0-9 or 0,2,5; all by default."""
    set: Set = ()
    """Override a setting of every recipe; may be repeated."""
    data_dir: Path | None = None
    """Folder to look for dataset files in."""
    results: Path = Path("results")
    """Folder of the records."""
    work: Path = Path("runs")
    """Folder of the runs themselves."""
    threads: int | None = None
    """Number of CPU threads."""


@dataclass(frozen=True)
class Report:
    """Tables of the recorded runs, beside the published numbers."""

    results: Path = Path("results")
    """Folder of the records."""
    format: str = "markdown"
    """markdown, latex or html."""
    output: Annotated[Path | None, arg(aliases=["-o"])] = None
    """File to write; the screen by default."""
    datasets: tuple[str, ...] | None = None
    """Only these datasets."""
    models: tuple[str, ...] | None = None
    """Only these models."""


@dataclass(frozen=True)
class DataList:
    """List the datasets, and which of them are on this machine."""

    data_dir: Path | None = None
    """Folder to look for dataset files in."""


@dataclass(frozen=True)
class DataInfo:
    """Describe a dataset: files, licence, statistics, how it is used."""

    name: Positional[str]
    """Name of the dataset."""
    data_dir: Path | None = None
    """Folder to look for dataset files in."""


@dataclass(frozen=True)
class DataFetch:
    """Download the files of datasets, verified."""

    names: Positional[tuple[str, ...]]
    """Names of datasets."""
    data_dir: Path | None = None
    """Folder to look in first."""


@dataclass(frozen=True)
class DataVerify:
    """Load datasets and compare them with their published statistics."""

    names: Positional[tuple[str, ...]] = ()
    """Names of datasets; by default all that are on this machine."""
    data_dir: Path | None = None
    """Folder to look for dataset files in."""


@dataclass(frozen=True)
class DataImport:
    """Copy known dataset files from a folder into the user's cache, verified."""

    folder: Positional[Path]
    """Any folder that holds dataset files."""


@dataclass(frozen=True)
class Models:
    """List the models."""


@dataclass(frozen=True)
class Squash:
    """Over-squashing: how deep a tree may be for a model to fit NeighborsMatch.

    What is recorded already is skipped, what broke off continues.
    Example: `coopsheaf squash --depths 2-5 --models gcn csnn --figure depth.svg`.
    """

    depths: str = "2-3"
    """Depths of the trees: 3, 2-5 or 2,4; from 2 to 8."""
    models: tuple[str, ...] = ()
    """gcn, gin, gat, ggnn, nsd, bunn, csnn; all by default."""
    directions: tuple[str, ...] = ("to-root",)
    """Of CSNN: as-released, to-root, bidirected."""
    learners: tuple[str, ...] = ("sage",)
    """Of CSNN's maps: sage, mlp."""
    semantics: tuple[str, ...] = ("paper",)
    """Of CSNN's diffusion: paper, released."""
    budget: str = "short"
    """short (blocks of 250 steps, 10 CPU minutes a point) or published (no cap: weeks)."""
    minutes: float | None = None
    """Most CPU minutes for a point; a larger number continues what a smaller one ended."""
    seed: int = 11
    """Seed of the parameters and of the order of the examples."""
    report: bool = False
    """Only show what is recorded; train nothing."""
    figure: Path | None = None
    """Draw accuracy by depth beside the published curves: a .svg, .pdf or .png file."""
    document: Path | None = None
    """Write the table between the markers of this Markdown file."""
    results: Path = Path("results/squash")
    """Folder of the records."""
    work: Path = Path("runs/squash")
    """Folder of unfinished runs."""
    threads: int | None = None
    """Number of CPU threads."""


@dataclass(frozen=True)
class NoisyPath:
    """Over-squashing: who is heard at the end of a path of four nodes, three of them noise.

    Example: `coopsheaf noisy-path --seeds 10 --figure path.svg`.
    """

    seeds: int = 10
    """Number of seeds, from 0 on; recorded ones are not run again."""
    steps: int = 1500
    """Optimiser steps of a seed."""
    hidden_channels: int = 8
    """Channels of the CSNN."""
    values: int = 8
    """Number of values that a node can have."""
    learner: str = "sage"
    """What learns the maps: sage or mlp."""
    semantics: str = "paper"
    """paper or released."""
    figure: Path | None = None
    """Draw the run of seed 0: a .svg, .pdf or .png file."""
    results: Path = Path("results/squash")
    """Folder of the records."""
    threads: int | None = None
    """Number of CPU threads."""


DataCommand = (
    Annotated[DataList, tyro.conf.subcommand("list")]
    | Annotated[DataInfo, tyro.conf.subcommand("info")]
    | Annotated[DataFetch, tyro.conf.subcommand("fetch")]
    | Annotated[DataVerify, tyro.conf.subcommand("verify")]
    | Annotated[DataImport, tyro.conf.subcommand("import")]
)


@dataclass(frozen=True)
class DataCommands:
    """Datasets: list, describe, fetch, verify, import."""

    command: tyro.conf.OmitSubcommandPrefixes[DataCommand]


Command = (
    Annotated[Train, tyro.conf.subcommand("train")]
    | Annotated[Evaluate, tyro.conf.subcommand("evaluate")]
    | Annotated[Predict, tyro.conf.subcommand("predict")]
    | Annotated[Bench, tyro.conf.subcommand("bench")]
    | Annotated[Report, tyro.conf.subcommand("report")]
    | Annotated[DataCommands, tyro.conf.subcommand("data")]
    | Annotated[Models, tyro.conf.subcommand("models")]
    | Annotated[Squash, tyro.conf.subcommand("squash")]
    | Annotated[NoisyPath, tyro.conf.subcommand("noisy-path")]
)
