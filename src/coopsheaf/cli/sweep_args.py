"""What ``coopsheaf sweep`` takes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import tyro
from tyro.conf import Positional

from coopsheaf.cli.shared_args import Set, Tables


@dataclass(frozen=True)
class Sweep:
    """Search settings: train many, keep those that are best on validation.

    The same command continues what broke off. Examples: `coopsheaf sweep texas --trials 40
    --workers 2`, or `coopsheaf sweep --nodes nodes.csv --edges edges.csv --target label --space
    space.toml`.
    """

    dataset: Positional[str | None] = None
    """Name of a dataset (see `coopsheaf data list`); leave out with --nodes and --edges."""
    tables: tyro.conf.OmitArgPrefixes[Tables] = field(default_factory=Tables)
    model: str = "csnn"
    """Model to train (see `coopsheaf models`)."""
    recipe: str | None = None
    """Settings that are not searched: a recipe's name or a TOML file; by default the model's recipe
    for this dataset."""
    set: Set = ()
    """Set a setting, which then is not searched, e.g. --set model.learner=mlp; may be repeated."""
    epochs: int | None = None
    """At most this many epochs; short for --set train.epochs=N."""
    space: Path | None = None
    """What to search, a TOML file: [model] and [train] with a list of values for each setting, or a
    range such as { low = 1e-4, high = 0.1, log = true }; by default the model's published grid."""
    trials: int = 20
    """Number of trials in all; a pruned one counts. More of them continue a sweep."""
    workers: int = 1
    """Number of processes."""
    splits: str | None = None
    """Splits whose validation metric is averaged: 0, 0-9 or 0,2,5; the first three by default."""
    sampler: str = "tpe"
    """tpe (looks where good trials were), random, or grid (every point once)."""
    seed: int = 0
    """Seed of the sampler; that of training is --set train.seed=N."""
    prune: bool = True
    """Give a trial up that is worse than the median of the completed ones after as many splits."""
    together: bool = False
    """Train all splits of a trial in one pass, several times as fast on small graphs; then there is
    nothing to prune."""
    storage: str | None = None
    """Keep the trials in a PostgreSQL database, postgresql://user@host/database, so that several
    machines may take part; by default they are in the sweep's folder."""
    out: Path | None = None
    """Folder of the sweep; by default sweeps/MODEL-DATASET."""
    data_dir: Path | None = None
    """Folder to look for dataset files in; else $COOPSHEAF_DATA, else the user's cache."""
    threads: int | None = None
    """Number of CPU threads of each process; by default they share the processor."""
