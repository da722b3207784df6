"""What can be typed after ``coopsheaf``. Imports neither PyTorch nor PyG."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import tyro
from tyro.conf import Positional, arg

from coopsheaf.cli.compare_args import Compare as Compare
from coopsheaf.cli.shared_args import METRIC_HELP, File
from coopsheaf.cli.shared_args import Set as Set
from coopsheaf.cli.shared_args import Tables as Tables
from coopsheaf.cli.sweep_args import Sweep as Sweep


@dataclass(frozen=True)
class Train:
    """Train a model on a dataset by name, or on your own tables.

    Examples: `coopsheaf train tolokers --splits 0`, or
    `coopsheaf train --nodes nodes.csv --edges edges.csv --target label --out my-run`.
    """

    dataset: Positional[str | None] = None
    """Name of a dataset (see `coopsheaf data list`), or pack:FOLDER (see `coopsheaf data pack`);
    leave out with --nodes and --edges."""
    tables: tyro.conf.OmitArgPrefixes[Tables] = field(default_factory=Tables)
    model: str = "csnn"
    """Model to train (see `coopsheaf models`)."""
    recipe: str | None = None
    """Settings to start from: a recipe's name or a TOML file; by default the model's recipe for
    this dataset."""
    set: Set = ()
    """Override a setting, e.g. --set model.stalk_dim=4; may be repeated."""
    splits: str | None = None
    """Splits to run: 0, 0-9 or 0,2,5; the first by default. Own tables have one, or as many as
    folds."""
    epochs: int | None = None
    """At most this many epochs; short for --set train.epochs=N."""
    seed: int | None = None
    """Seed of initialisation, dropout and shuffling; short for --set train.seed=N."""
    metric: Annotated[str | None, arg(metavar="NAME", help_behavior_hint="", help=METRIC_HELP)] = (
        None
    )
    class_weights: bool = False
    """Weigh classes by their inverse frequency, and calibrate probabilities on validation; short
    for --set train.class_weights=true."""
    threshold: Annotated[str | None, arg(metavar="RULE", help_behavior_hint="")] = None
    """How likely the second of two classes must be to be predicted, chosen on validation: f1,
    youden, precision=0.9, cost=10:1 (of a miss and of a false alarm), or a number; 0.5 by default.
    Short for --set train.threshold=RULE."""
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
    requeue_exit_code: int | None = None
    """Exit code when SIGTERM or SIGHUP has stopped the run and its state is saved, for schedulers
    that start a job again on such a code; by default 128 and the signal's number."""


@dataclass(frozen=True)
class Evaluate:
    """Measure a trained run again, on its own data or on new tables with labels."""

    run: Positional[Path]
    """Folder of a finished run."""
    nodes: File = None
    """Table of nodes with the target column; by default the run's own data."""
    edges: File = None
    """Table of edges."""
    graphs: File = None
    """Table of graphs with the target column, if the run predicts whole graphs."""
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
    nodes: File = None
    """Table of nodes, with the feature columns of training; by default the run's own data. - is
    standard input."""
    edges: File = None
    """Table of edges."""
    graphs: File = None
    """Table of graphs, if the run predicts whole graphs."""
    pairs: File = None
    """Table of pairs of nodes to score, if the run predicts links; columns as in the edge table."""
    data_dir: Path | None = None
    """Folder to look for dataset files in."""
    force: bool = False
    """Overwrite the output file."""
    raw: bool = False
    """Write ids and labels exactly; by default ' comes before what a spreadsheet would run."""


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
    together: bool = False
    """Train all splits of a recipe in one pass, several times as fast on small graphs: the same
    runs up to rounding and masks of sparse features. What broke off begins again."""
    seeds: str | None = None
    """With --together, seeds to run every split with: 43, 43-45 or 43,50; that of the recipe by
    default."""
    verify: str | None = None
    """Run this record again, FILE.jsonl:LINE, with its number of threads, and say whether it agrees
    exactly, within the spread of seeds, or not; nothing is recorded."""
    threads: int | None = None
    """Number of CPU threads."""
    requeue_exit_code: int | None = None
    """Exit code when SIGTERM or SIGHUP has stopped it, as of `train`."""


@dataclass(frozen=True)
class Report:
    """Tables of the recorded runs.

    Example: `coopsheaf report --html -o report.html`.
    """

    results: Path = Path("results")
    """Folder of the records."""
    format: str = "markdown"
    """markdown, latex or html."""
    html: bool = False
    """One web page: tables to sort, the scores of every run, training curves, links to explorers;
    short for --format html."""
    runs: Path | None = None
    """Of a page: where to look for folders of runs (run.json, explorer.html); by default runs."""
    output: Annotated[Path | None, arg(aliases=["-o"])] = None
    """File to write; the screen by default."""
    datasets: tuple[str, ...] | None = None
    """Only these datasets."""
    models: tuple[str, ...] | None = None
    """Only these models."""


@dataclass(frozen=True)
class Explain:
    """Write a page to explore a trained run: who listens, who broadcasts, what comes out, and why.

    Example: `coopsheaf explain my-run -o page.html`; then open it in a browser. `coopsheaf explain
    my-run --explain AC-7` also says which columns moved that prediction.
    """

    run: Positional[Path]
    """Folder of a finished run."""
    output: Annotated[Path | None, arg(aliases=["-o"])] = None
    """HTML file to write, one that needs no other; by default explorer.html in the run's folder."""
    explain: tuple[str, ...] = ()
    """Nodes whose predictions are explained, by name or number: which nodes, paths and columns
    moved them."""
    importance: Literal["val", "test", "train", "all"] | None = None
    """Say which columns matter for all nodes together: by how much the score falls on this part of
    the split (all: every labelled node) when a column is shuffled."""
    repeats: int = 5
    """How often each column is shuffled for --importance."""
    center: str | None = None
    """Show the surroundings of this node, given by name or number."""
    hops: int | None = None
    """How far the surroundings go; by default as far as --max-nodes allows."""
    max_nodes: int = 20_000
    """Draw at most so many nodes."""
    max_edges: int = 200_000
    """Draw at most so many edges, the strongest."""
    threshold: float | None = None
    """Strength below which a node counts as silent; by default a quarter of the root mean square
    of its layer, 0.25 (CSNN), or an action is the most frequent one (CO-GNN)."""
    nodes: File = None
    """Table of nodes; by default the run's own data."""
    edges: File = None
    """Table of edges."""
    data_dir: Path | None = None
    """Folder to look for dataset files in."""
    force: bool = False
    """Overwrite the output file."""


@dataclass(frozen=True)
class Export:
    """Write a trained run as one file that runs without coopsheaf.

    Examples: `coopsheaf export my-run model.pt2` (needs PyTorch alone), `coopsheaf export my-run
    model.onnx` (for onnxruntime and others).
    """

    run: Positional[Path]
    """Folder of a finished run."""
    output: Positional[Path]
    """File to write, ending in .pt2 or .onnx: takes x and edge_index of any graph; names of classes
    and features are inside."""
    force: bool = False
    """Overwrite the output file."""


@dataclass(frozen=True)
class Figures:
    """Draw what a trained run made of its maps: actions, scales, spectra.

    Example: `coopsheaf figures my-run -o figures`.
    """

    run: Positional[Path]
    """Folder of a finished run of a CSNN or a CO-GNN."""
    output: Annotated[Path, arg(aliases=["-o"])]
    """Folder to write the figures to."""
    format: str = "svg"
    """svg, pdf or png."""
    data_dir: Path | None = None
    """Folder to look for the run's dataset files in."""
    force: bool = False
    """Overwrite figures."""


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
class DataPack:
    """Write a dataset or your own tables as a folder of arrays that are mapped into memory instead
    of read.

    Example: `coopsheaf data pack tolokers -o tolokers-pack`; then `coopsheaf train
    pack:tolokers-pack`.
    """

    output: Annotated[Path, arg(aliases=["-o"])]
    """Folder to write."""
    name: Positional[str | None] = None
    """Name of the dataset; leave out with --nodes and --edges."""
    tables: tyro.conf.OmitArgPrefixes[Tables] = field(default_factory=Tables)
    set: Set = ()
    """How a dataset is processed, e.g. --set data.direction=undirected; may be repeated."""
    seed: int | None = None
    """Seed of the split of own tables."""
    data_dir: Path | None = None
    """Folder to look for dataset files in."""
    order: Literal["stored", "community"] = "stored"
    """Order of the nodes: as they are, or neighbours near each other, which makes steps on large
    graphs faster; names and predictions stay those of the nodes."""
    force: bool = False
    """Replace a pack."""


@dataclass(frozen=True)
class Models:
    """List the models."""


@dataclass(frozen=True)
class Env:
    """Say what computes here: versions, kernels, instructions, threads, devices."""


DataCommand = (
    Annotated[DataList, tyro.conf.subcommand("list")]
    | Annotated[DataInfo, tyro.conf.subcommand("info")]
    | Annotated[DataFetch, tyro.conf.subcommand("fetch")]
    | Annotated[DataVerify, tyro.conf.subcommand("verify")]
    | Annotated[DataImport, tyro.conf.subcommand("import")]
    | Annotated[DataPack, tyro.conf.subcommand("pack")]
)


@dataclass(frozen=True)
class DataCommands:
    """Datasets: list, describe, fetch, verify, import, pack."""

    command: tyro.conf.OmitSubcommandPrefixes[DataCommand]


Command = (
    Annotated[Train, tyro.conf.subcommand("train")]
    | Annotated[Evaluate, tyro.conf.subcommand("evaluate")]
    | Annotated[Predict, tyro.conf.subcommand("predict")]
    | Annotated[Bench, tyro.conf.subcommand("bench")]
    | Annotated[Sweep, tyro.conf.subcommand("sweep")]
    | Annotated[Compare, tyro.conf.subcommand("compare")]
    | Annotated[Report, tyro.conf.subcommand("report")]
    | Annotated[Explain, tyro.conf.subcommand("explain")]
    | Annotated[Export, tyro.conf.subcommand("export")]
    | Annotated[Figures, tyro.conf.subcommand("figures")]
    | Annotated[DataCommands, tyro.conf.subcommand("data")]
    | Annotated[Models, tyro.conf.subcommand("models")]
    | Annotated[Env, tyro.conf.subcommand("env")]
)
