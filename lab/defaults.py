"""Settings for data that nobody has tuned on, chosen by validation over a set of data sets.

Every candidate is trained with the same protocol (default recipe, one seed) on development data:
benchmarks, and generated communities of low and high homophily, directed and not, with few and many
features. Candidates are ranked on every data set by their mean validation score; the mean rank
decides. ``HELD_BACK`` was set aside before anything was measured and is not looked at until a
choice is made.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from coopsheaf.compare.networks import NetworkContestant
from coopsheaf.data.catalogue import DATASETS
from coopsheaf.data.communities import heterophilic_communities
from coopsheaf.data.dataset import NodeDataset, Processing
from coopsheaf.report.text import markdown_table
from coopsheaf.train.data import load_data
from coopsheaf.train.defaults import MANY
from coopsheaf.train.recipe import DataConfig, Recipe, default_recipe
from coopsheaf.train.records import Record, find_records
from coopsheaf.train.runner import bench
from coopsheaf.train.together.bench import bench_together

PLACE, HELD_PLACE = "defaults-development", "defaults-held-back"
OPTIONS_PLACE = "defaults-options"

_REGULARISED = ("model.input_dropout=0.5", "model.dropout=0.5", "train.weight_decay=5e-4")
_MAPS = ("train.map_weight_decay=1e-2",)
_MESSAGES = ("model.semantics=messages", "model.map_start=equal")
_ROWS = ("model.structure=rows",)
_BLOCK = ("model.block=prenorm",)


@dataclass(frozen=True)
class Candidate:
    """A model and what is changed of its default recipe."""

    model: str
    settings: tuple[str, ...]
    about: str

    def recipe(self, dataset: str) -> Recipe:
        return default_recipe(self.model, dataset).set(*self.settings)


CANDIDATES: dict[str, Candidate] = {
    "plain": Candidate("csnn", (), "CSNN with the plain default recipe"),
    "regularised": Candidate("csnn", _REGULARISED, "input dropout, dropout 0.5, decay 5e-4"),
    "maps": Candidate("csnn", _REGULARISED + _MAPS, "the same, learners' decay 1e-2"),
    "start": Candidate(
        "csnn", _REGULARISED + _MAPS + _MESSAGES[1:], "the same, maps that start equal"
    ),
    "messages": Candidate("csnn", _REGULARISED + _MAPS + _MESSAGES, "the same, messages alone"),
    "dry": Candidate(
        "csnn", _REGULARISED[1:] + _MAPS + _MESSAGES, "messages, without input dropout"
    ),
    "light": Candidate("csnn", _MESSAGES, "messages and equal start, nothing else"),
    "block": Candidate(
        "csnn", _REGULARISED + _MAPS + _MESSAGES + _BLOCK, "the same, pre-norm blocks"
    ),
    "rows": Candidate(
        "csnn", _REGULARISED + _MAPS + _MESSAGES + _ROWS, "messages, rows of the adjacency"
    ),
    "gcn-plain": Candidate("gcn-plain", (), "its default recipe"),
    "sage-plain": Candidate("sage-plain", (), "its default recipe"),
    "mlp": Candidate("mlp", (), "its default recipe"),
    "linkx": Candidate("linkx", (), "its default recipe"),
}


_DEFAULT = _REGULARISED + _MAPS + _MESSAGES

# The rule's settings with one of CSNN's options changed, beside those that are candidates.
OPTIONS: dict[str, Candidate] = {
    "jk": Candidate("csnn", (*_DEFAULT, "model.jk=cat"), "the readout sees all layers"),
    "own-dropout": Candidate("csnn", (*_DEFAULT, "model.own_dropout=0"), "own path kept whole"),
    "learner-dropout": Candidate(
        "csnn", (*_DEFAULT, "model.learner_dropout=0.5"), "dropout inside of learners"
    ),
    "slow-maps": Candidate(
        "csnn", (*_DEFAULT, "train.map_lr_factor=0.1"), "learners at a tenth of the rate"
    ),
    "start-alone": Candidate(
        "csnn", _REGULARISED + _MESSAGES, "maps that start equal without a decay of learners"
    ),
    "decay-alone": Candidate(
        "csnn", _REGULARISED + _MAPS + _MESSAGES[:1], "a decay of learners, maps start drawn"
    ),
    "paper-rows": Candidate(
        "csnn", _REGULARISED + _MAPS + _MESSAGES[1:] + _ROWS, "rows with the paper's operator"
    ),
    "paper-block": Candidate(
        "csnn", _REGULARISED + _MAPS + _MESSAGES[1:] + _BLOCK, "blocks with the paper's operator"
    ),
}
# What is compared: the rule's settings, without messages, and with each option.
OPTION_ROWS = ("messages", "start", "rows", "block", *OPTIONS)
OPTION_SETS = ("texas", "wisconsin", "cornell-corrected")
# Candidates for the rule; "dry" and "light" were asked about where features are few.
RANKED = tuple(name for name in CANDIDATES if name not in ("dry", "light"))
HELD_ROWS = ("rule", "plain", "gcn-plain", "mlp")  # what was chosen, and what it must not be behind


class ByRule(Candidate):
    """What :func:`coopsheaf.train.default_for` chooses, which is one of the others."""

    def recipe(self, dataset: str) -> Recipe:
        source = (DEVELOPMENT | HELD_BACK)[dataset]
        features = DATASETS[dataset].published.features if source is None else source.features
        return CANDIDATES["messages" if features >= MANY else "dry"].recipe(dataset)


@dataclass(frozen=True)
class Generated:
    """A graph of communities (:func:`~coopsheaf.data.communities.heterophilic_communities`)."""

    nodes: int
    pairs: int
    classes: int
    features: int
    homophily: float
    signal: float
    directed: bool
    seed: int

    def make(self, name: str) -> NodeDataset:
        data = heterophilic_communities(
            self.nodes,
            self.pairs,
            num_classes=self.classes,
            num_features=self.features,
            community=self.nodes // 4,
            homophily=self.homophily,
            signal=self.signal,
            seed=self.seed,
        )
        edges = data.edge_index
        processing = data.processing
        if self.directed:  # each edge once, in a direction that says nothing
            rng = torch.Generator().manual_seed(self.seed)
            once = edges[:, : self.pairs]
            turned = torch.rand(self.pairs, generator=rng) < 0.5
            edges = torch.where(turned, once.flip(0), once)
            processing = Processing(direction="stored", self_loops="remove")
        digest = hashlib.sha256(data.x.numpy().tobytes() + edges.numpy().tobytes())
        return replace(
            data,
            name=name,
            edge_index=edges,
            processing=processing,
            checksum=digest.hexdigest(),
        )


Source = Generated | None  # None: a dataset of the registry
DEVELOPMENT: dict[str, Source] = {
    "texas": None,
    "wisconsin": None,
    "cornell-corrected": None,
    "reed98": None,
    "chameleon": None,
    "low-few": Generated(600, 2400, 4, 16, 0.1, 1.0, False, 1),
    "low-many-directed": Generated(600, 2400, 4, 400, 0.1, 2.0, True, 2),
    "high-few-directed": Generated(600, 2400, 4, 16, 0.8, 1.0, True, 3),
    "high-many": Generated(600, 2400, 4, 400, 0.8, 2.0, False, 4),
    "amherst41": None,
    "film": None,
    "minesweeper": None,
    # With those above, all eight of homophily, features and direction.
    "low-few-directed": Generated(600, 2400, 4, 16, 0.1, 1.0, True, 5),
    "low-many": Generated(600, 2400, 4, 400, 0.1, 2.0, False, 6),
    "high-few": Generated(600, 2400, 4, 16, 0.8, 1.0, False, 7),
    "high-many-directed": Generated(600, 2400, 4, 400, 0.8, 2.0, True, 8),
}
HELD_BACK: dict[str, Source] = {
    "held-low-few": Generated(800, 4000, 5, 24, 0.2, 0.8, True, 7001),
    "held-low-many": Generated(800, 4000, 5, 600, 0.15, 2.5, False, 7002),
    "held-high-few": Generated(800, 4000, 3, 24, 0.65, 0.8, False, 7003),
    "held-high-many-directed": Generated(800, 4000, 3, 600, 0.7, 2.5, True, 7004),
    "squirrel": None,
    "johns-hopkins55": None,
}


CANDIDATES["rule"] = ByRule("csnn", (), "what the rule says")
CANDIDATES |= OPTIONS


def load(name: str, source: Source, data_dir: Path | None = None) -> NodeDataset:
    """A data set of this study."""
    found = load_data(DataConfig(name), data_dir) if source is None else source.make(name)
    assert isinstance(found, NodeDataset)
    return found


def measure(
    names: Sequence[str],
    sets: Mapping[str, Source],
    rounds: int,
    results: Path,
    work: Path,
    data_dir: Path | None = None,
    *,
    together: bool = False,
) -> Iterator[tuple[str, Record, bool]]:
    """Train what is not recorded yet: split 0 of everything, then split 1, and so on.

    ``together``: all splits of a candidate in one pass, one data set after the other.
    """
    loaded: dict[str, NodeDataset] = {}
    run = bench_together if together else bench
    for splits in [range(rounds)] if together else [range(k, k + 1) for k in range(rounds)]:
        for name, source in sets.items():
            if name not in loaded:
                loaded[name] = load(name, source, data_dir)
            dataset = loaded[name]
            some = [split for split in splits if split < dataset.num_splits]
            if not some:
                continue
            for candidate in names:
                recipe = CANDIDATES[candidate].recipe(name)
                taken = NetworkContestant(recipe).taken(dataset)  # both ways, where it must be
                assert isinstance(taken, NodeDataset)
                for outcome in run(recipe, taken, some, results=results, work=work):
                    yield candidate, outcome.record, outcome.skipped


def scores(
    names: Sequence[str], sets: Mapping[str, Source], results: Path, part: str = "val"
) -> dict[str, dict[str, float]]:
    """Mean scores by data set and candidate, over the splits that all candidates have."""
    records = find_records(results)
    found: dict[str, dict[str, float]] = {}
    for data in sets:
        runs: dict[str, dict[int, float]] = {}
        for name in names:
            wanted = CANDIDATES[name].recipe(data).hash()
            runs[name] = {
                record.split: getattr(record, part)
                for record in records
                if record.dataset == data and record.config_hash == wanted
                if getattr(record, part) is not None
            }
        common = set.intersection(*(set(splits) for splits in runs.values()))
        if common:
            found[data] = {
                name: sum(runs[name][split] for split in common) / len(common) for name in names
            }
    return found


def ranks(row: Mapping[str, float]) -> dict[str, float]:
    """1 for the best; equals share the mean of their places."""
    values = sorted(row.values(), reverse=True)
    return {
        name: values.index(value) + 1 + (values.count(value) - 1) / 2 for name, value in row.items()
    }


def mean_ranks(found: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Over all data sets."""
    placed = [ranks(row) for row in found.values()]
    return {name: sum(row[name] for row in placed) / len(placed) for name in placed[0]}


def score_table(found: Mapping[str, Mapping[str, float]], splits: Mapping[str, int]) -> str:
    """A row for each candidate, a column for each data set; in per cent, the best in bold."""
    average, rows = mean_ranks(found), []
    best = {data: max(row.values()) for data, row in found.items()}
    for name in sorted(average, key=lambda name: average[name]):
        cells = []
        for data, row in found.items():
            text = f"{100 * row[name]:.1f}"
            cells.append(f"**{text}**" if row[name] == best[data] else text)
        rows.append((name, f"{average[name]:.2f}", *cells))
    head = ["settings", "mean rank", *(f"{data} ({splits[data]})" for data in found)]
    return markdown_table(" | ".join(head), rows, "l" + "r" * (len(head) - 1))


def common_splits(
    names: Sequence[str], sets: Mapping[str, Source], results: Path
) -> dict[str, int]:
    """How many splits of each data set all candidates have."""
    records, counts = find_records(results), {}
    for data in sets:
        runs = []
        for name in names:
            wanted = CANDIDATES[name].recipe(data).hash()
            runs.append({r.split for r in records if r.dataset == data and r.config_hash == wanted})
        counts[data] = len(set.intersection(*runs))
    return counts


def page_table(
    names: Sequence[str], sets: Mapping[str, Source], results: Path, part: str = "val"
) -> str:
    """The table of what all candidates were trained on, and which data is still missing."""
    found = scores(names, sets, results, part)
    missing = [name for name in sets if name not in found]
    text = score_table(found, common_splits(names, sets, results)) if found else ""
    if missing:
        text += (
            "\n" * bool(text) + f"Not yet run with all of these settings: {', '.join(missing)}.\n"
        )
    return text


def places(results: Path) -> dict[str, str]:
    """What belongs in the places of ``docs/csnn-options.md``."""
    few = {name: DEVELOPMENT[name] for name in OPTION_SETS}
    return {
        PLACE: page_table(RANKED, DEVELOPMENT, results),
        OPTIONS_PLACE: page_table(OPTION_ROWS, few, results),
        HELD_PLACE: page_table(HELD_ROWS, HELD_BACK, results, "test"),
    }
