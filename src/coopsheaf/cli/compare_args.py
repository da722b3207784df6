"""What ``coopsheaf compare`` takes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro
from tyro.conf import Positional, arg

from coopsheaf.cli.shared_args import METRIC_HELP, Set, Tables


@dataclass(frozen=True)
class Compare:
    """Does the graph help? Networks and boosted trees on the same folds, each with the same number
    of trials; a table with paired intervals, and what it means in words.

    The same command continues what broke off. Examples: `coopsheaf compare --nodes nodes.csv
    --edges edges.csv --target label`, or `coopsheaf compare texas --splits 0-9`.
    """

    dataset: Positional[str | None] = None
    """Name of a dataset (see `coopsheaf data list`); leave out with --nodes and --edges."""
    tables: tyro.conf.OmitArgPrefixes[Tables] = field(default_factory=Tables)
    models: tuple[str, ...] = ()
    """Models to compare (see `coopsheaf models`), and boosted-columns and boosted-neighbours, trees
    of scikit-learn on the columns alone and with degrees and means of the neighbours' columns; by
    default csnn, gcn-plain, sage-plain, mlp and both kinds of trees."""
    folds: int | None = None
    """Test on each of so many folds, validate on the next; 5 where the data has no splits."""
    repeats: int | None = None
    """Instead: so many random splits, 60/20/20."""
    splits: str | None = None
    """Instead: these splits of the data, 0, 0-9 or 0,2,5; by default its first five."""
    trials: int = 4
    """Settings that each model tries: its default, then others drawn around it; in each fold
    validation chooses."""
    metric: Annotated[str | None, arg(metavar="NAME", help_behavior_hint="", help=METRIC_HELP)] = (
        None
    )
    epochs: int | None = None
    """At most this many epochs of networks; short for --set train.epochs=N."""
    set: Set = ()
    """Set a setting of all networks, which then is not searched; may be repeated."""
    class_weights: bool = False
    """Weigh classes by their inverse frequency, for all models."""
    seed: int = 0
    """Seed of folds and of what is drawn; that of training is --set train.seed=N."""
    max_fits: int = 500
    """Refuse to begin more fits than these; how many there are is said first."""
    out: Path | None = None
    """Folder of the comparison; by default comparisons/DATASET."""
    output: Annotated[Path | None, arg(aliases=["-o"])] = None
    """Also write the table and the sentence to this Markdown file."""
    data_dir: Path | None = None
    """Folder to look for dataset files in; else $COOPSHEAF_DATA, else the user's cache."""
    threads: int | None = None
    """Number of CPU threads."""
