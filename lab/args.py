"""What can be typed after ``python -m lab``. Imports neither PyTorch nor PyG."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from tyro.conf import Positional, arg


@dataclass(frozen=True)
class Tables:
    """The paper's tables beside our runs: on the screen, as a page, or in documents.

    Examples: `python -m lab tables`, or `python -m lab tables --document README.md
    docs/reproduction.md docs/results.md docs/heterophily.md`.
    """

    results: Path = Path("results")
    """Folder of the records."""
    format: str = "markdown"
    """markdown, latex or html (a page; see `coopsheaf report --html`)."""
    runs: Path | None = None
    """Of a page: where to look for folders of runs; by default runs."""
    output: Annotated[Path | None, arg(aliases=["-o"])] = None
    """File to write; the screen by default."""
    datasets: tuple[str, ...] | None = None
    """Only these datasets."""
    models: tuple[str, ...] | None = None
    """Only these models."""
    document: tuple[Path, ...] = ()
    """Instead: write the tables into the marked places of these documents."""


@dataclass(frozen=True)
class Figures:
    """Draw the ideas behind cooperative sheaves, each from a computed operator.

    Example: `python -m lab figures docs/figures`.
    """

    output: Positional[Path]
    """Folder to write the figures to."""
    format: str = "svg"
    """svg, pdf or png."""
    force: bool = False
    """Overwrite figures."""


@dataclass(frozen=True)
class Squash:
    """Over-squashing: how deep a tree may be for a model to fit NeighborsMatch.

    What is recorded already is skipped, what broke off continues.
    Example: `python -m lab squash --depths 2-5 --models gcn csnn --figure depth.svg`.
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
    """Of CSNN's diffusion: paper, released, messages."""
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

    Example: `python -m lab noisy-path --seeds 10 --figure path.svg`.
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
    """paper, released or messages."""
    figure: Path | None = None
    """Draw the run of seed 0: a .svg, .pdf or .png file."""
    document: Path | None = None
    """Write a table of all recorded seeds between the markers of this Markdown file."""
    results: Path = Path("results/squash")
    """Folder of the records."""
    threads: int | None = None
    """Number of CPU threads."""


@dataclass(frozen=True)
class Channels:
    """Do trained CSNNs close channels? Trains networks of the recipes and looks into them.

    What is recorded already is skipped.
    Example: `python -m lab channels --datasets texas wisconsin --splits 10`.
    """

    datasets: tuple[str, ...] = ("texas", "wisconsin", "chameleon", "tolokers", "minesweeper")
    """Datasets with a recipe of csnn."""
    splits: int = 1
    """How many of their splits, from 0 on."""
    epochs: int | None = None
    """Train for no longer than this; by default as long as the recipe says."""
    report: bool = False
    """Only show what is recorded; train nothing."""
    document: Path | None = None
    """Write the tables between the markers of this Markdown file."""
    results: Path = Path("results/channels")
    """Folder of the records."""
    data_dir: Path | None = None
    """Folder to look for the files of datasets in."""
    threads: int | None = None
    """Number of CPU threads."""


@dataclass(frozen=True)
class Units:
    """Draw the actions of a run in the unit of each layer, beside those in one unit for all.

    Example: `python -m lab units runs/mines docs/actions.png`.
    """

    run: Positional[Path]
    """Folder of a trained run of csnn."""
    figure: Positional[Path]
    """File to draw: .svg, .pdf or .png."""


@dataclass(frozen=True)
class Kinship:
    """How the sheaf networks are related: one row for each, from the registry.

    Example: `python -m lab kinship --document docs/kinship.md`.
    """

    document: Path | None = None
    """Write the table between the markers of this Markdown file; the screen by default."""


@dataclass(frozen=True)
class Defaults:
    """Settings for data that nobody has tuned on: candidates, trained and ranked by validation.

    What is recorded already is skipped.
    Example: `python -m lab defaults --rounds 3 --document docs/csnn-options.md`.
    """

    rounds: int = 1
    """How many splits of every data set, from 0 on."""
    candidates: tuple[str, ...] = ()
    """Which settings; all by default."""
    sets: tuple[str, ...] = ()
    """Which data sets; all of the development data by default."""
    held_back: bool = False
    """Of the data that was set aside instead."""
    options: bool = False
    """Of CSNN's options instead, each changed alone, on the graphs of web pages."""
    together: bool = False
    """Train the splits of a candidate in one pass."""
    report: bool = False
    """Only show what is recorded; train nothing."""
    document: Path | None = None
    """Write the table between the markers of this Markdown file."""
    results: Path = Path("results/defaults")
    """Folder of the records."""
    work: Path = Path("runs/defaults")
    """Folder of the runs."""
    data_dir: Path | None = None
    """Folder to look for the files of datasets in."""
    threads: int | None = None
    """Number of CPU threads."""


@dataclass(frozen=True)
class LongRange:
    """How far networks hear: Barbell, transfer over rings and trees, distances in long graphs.

    What is recorded already is skipped.
    Example: `python -m lab long-range --tasks barbell-10 ring-transfer-5 --seeds 3`.
    """

    tasks: tuple[str, ...] = ()
    """Which tasks; all of the plan by default."""
    contestants: tuple[str, ...] = ()
    """Which networks; all of the plan by default."""
    seeds: int = 1
    """Number of seeds, from 0 on."""
    report: bool = False
    """Only show what is recorded; train nothing."""
    look: bool = False
    """Look into trained networks of seed 0, on the smaller tasks, and record what is found."""
    figure: Path | None = None
    """Draw errors and influence by distance: a .svg, .pdf or .png file."""
    document: Path | None = None
    """Write the tables between the markers of this Markdown file."""
    results: Path = Path("results/long-range")
    """Folder of the records."""
    work: Path = Path("runs/long-range")
    """Folder of the runs."""
    threads: int | None = None
    """Number of CPU threads."""


@dataclass(frozen=True)
class Peptides:
    """The benchmark of peptides: a search for CSNN in short runs, a cut protocol, the whole one.

    What is recorded already is skipped, and a run that was stopped goes on where it was.
    Example: `python -m lab peptides --part cut --models gcn-lrgb gine --minutes 60`.
    """

    part: str = "cut"
    """search (settings of csnn), cut (40 epochs, one seed) or full (as the recipes say)."""
    models: tuple[str, ...] = ()
    """Which networks, of cut and full; all by default."""
    seeds: int = 1
    """Of full: number of seeds, from 0 on; all networks with one of them, then with the next."""
    minutes: float | None = None
    """Stop after the epoch in which so many minutes are over."""
    precision: str = "32"
    """Of training: 32, 64 or bf16. It is part of the settings."""
    report: bool = False
    """Only show what is recorded; train nothing."""
    document: Path | None = None
    """Write the tables between the markers of this Markdown file."""
    results: Path = Path("results")
    """Folder of all records; those of the short parts are in its folder peptides."""
    work: Path = Path("runs/peptides")
    """Folder of the runs."""
    data_dir: Path | None = None
    """Folder to look for the files of datasets in."""
    threads: int | None = None
    """Number of CPU threads."""


@dataclass(frozen=True)
class Contest:
    """Fair searches: every model the same number of trials, drawn before anything runs.

    What is recorded already is skipped, so it can be run in slices; processes that run at once
    should have other data sets or models each.
    Example: `python -m lab contest --league sheaves --datasets texas --minutes 10`.
    """

    league: str = "heterophily"
    """heterophily, sheaves or directions."""
    models: tuple[str, ...] = ()
    """Which contestants; all of the league by default."""
    datasets: tuple[str, ...] = ()
    """Which data sets; all of the league by default."""
    minutes: float | None = None
    """Begin nothing after so many minutes."""
    plan: bool = False
    """Only show what is searched; train nothing."""
    report: bool = False
    """Train nothing: show where the league stands, and write documents."""
    document: tuple[Path, ...] = ()
    """Write tables and answers into the marked places of these documents."""
    figure: Path | None = None
    """Draw scores by the share of arcs that tell by direction (league directions) to this file
    (.svg, .pdf or .png)."""
    results: Path = Path("results")
    """Folder of all records; those of contests are in its folder contest."""
    data_dir: Path | None = None
    """Folder to look for the files of datasets in."""
    threads: int | None = None
    """Number of CPU threads."""


Command = (
    Annotated[Tables, tyro.conf.subcommand("tables")]
    | Annotated[Squash, tyro.conf.subcommand("squash")]
    | Annotated[NoisyPath, tyro.conf.subcommand("noisy-path")]
    | Annotated[Figures, tyro.conf.subcommand("figures")]
    | Annotated[Channels, tyro.conf.subcommand("channels")]
    | Annotated[Units, tyro.conf.subcommand("units")]
    | Annotated[Kinship, tyro.conf.subcommand("kinship")]
    | Annotated[Defaults, tyro.conf.subcommand("defaults")]
    | Annotated[LongRange, tyro.conf.subcommand("long-range")]
    | Annotated[Peptides, tyro.conf.subcommand("peptides")]
    | Annotated[Contest, tyro.conf.subcommand("contest")]
)
