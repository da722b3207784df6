"""What is read from files: a good example of each, how it may be damaged, and who reads it.

The examples are those of the tests. Used by ``fuzz.py``.
"""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from coopsheaf.data.fb100 import read_fb100
from coopsheaf.data.geom_gcn import read_geom_gcn
from coopsheaf.data.pack import read_pack, write_pack
from coopsheaf.data.peptides import read_labels, read_split
from coopsheaf.data.platonov import read_platonov
from coopsheaf.data.synthetic import contextual_sbm
from coopsheaf.data.tables.load import load_tables
from coopsheaf.data.unpickle import load_object_array, load_pickle
from coopsheaf.estimators import CSNNClassifier
from coopsheaf.pages.results.page import results_page
from coopsheaf.pages.results.run_files import find_runs
from coopsheaf.predictions import predict
from coopsheaf.report.formats import render
from coopsheaf.sweep.plan import load_plan, make_plan
from coopsheaf.sweep.search import Sweep
from coopsheaf.sweep.space import load_space
from coopsheaf.train.data import run_data
from coopsheaf.train.recipe import default_recipe
from coopsheaf.train.recipes import load_recipe
from coopsheaf.train.records import PassedOver, append_record, find_records
from coopsheaf.train.run import load_run, run_split
from coopsheaf.train.runner import make_record

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import published
import pyarrow
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
from cli.program import write_tables

sys.path.insert(0, str(Path(__file__).parent))

import mutations as m

SETTINGS = ("model.hidden_channels=4", "model.num_layers=1", "model.stalk_dim=2", "train.epochs=2")
RECIPE = default_recipe("csnn").set(*SETTINGS)
ASSIGNMENTS = (
    *SETTINGS,
    "model.norm=none",
    "model.dropout=0.5",
    "train.lr=0.01",
    "train.clip=none",
    "data.direction=stored",
    "train.class_weights=true",
    "batch.kind=clusters",
    "model.learner=sage",
)


@dataclass(frozen=True)
class Target:
    """A kind of file.

    Args:
        make: writes a good example into an empty folder.
        read: reads it, as a user's call would.
        files: which of its files to damage (a pattern), and how.
        command: words of the command line that read it; ``None`` if there are none.
        seal: makes checksums fit after the damage, as whoever means harm would.
    """

    make: Callable[[Path], None]
    read: Callable[[Path], object]
    files: tuple[tuple[str, m.Mutation], ...]
    command: tuple[str, ...] | None = None
    seal: Callable[[Path], None] = lambda folder: None


def dataset():  # type: ignore[no-untyped-def]
    return contextual_sbm(24, 3.0, homophily=0.5, num_features=4, signal=1.0)


def make_tables(folder: Path) -> None:
    write_tables(folder, 24)


def make_gz(folder: Path) -> None:
    """The table of nodes compressed; that of edges as it is."""
    write_tables(folder, 24)
    published.write_text_gz(folder / "nodes.csv.gz", (folder / "nodes.csv").read_text("utf-8"))


def make_parquet(folder: Path) -> None:
    write_tables(folder, 24)
    for name in ("nodes", "edges"):
        pyarrow.parquet.write_table(
            pyarrow.csv.read_csv(folder / f"{name}.csv"), folder / f"{name}.parquet"
        )


def make_feather(folder: Path) -> None:
    write_tables(folder, 24)
    for name in ("nodes", "edges"):
        pyarrow.feather.write_feather(
            pyarrow.csv.read_csv(folder / f"{name}.csv"), str(folder / f"{name}.feather")
        )


def read_as(nodes: str, edges: str) -> Callable[[Path], object]:
    return lambda folder: load_tables(folder / nodes, folder / edges, target="label")


def train_on(nodes: str, edges: str) -> tuple[str, ...]:
    """Words of the command line that read two tables."""
    settings = (word for text in SETTINGS[:3] for word in ("--set", text))
    own = ("--nodes", nodes, "--edges", edges, "--target", "label")
    return ("train", *own, "--epochs", "1", *settings)


def make_run(folder: Path) -> None:
    data = load_tables(*write_tables(folder, 24), target="label")
    run_split(RECIPE, data.dataset, out=folder / "run", extra=data.kept)


def make_estimator(folder: Path) -> None:
    nodes, edges = write_tables(folder, 24)
    model = CSNNClassifier(hidden_channels=4, num_layers=1, stalk_dim=2, epochs=2)
    model.fit(nodes, edges, target="label").save(folder / "run")


def read_estimator(folder: Path) -> None:
    model = CSNNClassifier.load(folder / "run")
    model.predict(folder / "nodes.csv", folder / "edges.csv")
    str(model)


def make_peptides(folder: Path) -> None:
    published.write_text_gz(folder / "func.csv.gz", published.peptides_func_text())
    published.write_peptides_split(folder / "split.pickle")


def read_peptides(folder: Path) -> None:
    molecules = read_labels(folder / "func.csv.gz")
    read_split(folder / "split.pickle", len(molecules.smiles))


def read_run(folder: Path) -> None:
    run = load_run(folder / "run")
    predict(run, run_data(run).dataset).to_csv()


def make_state(folder: Path) -> None:
    stop = iter((True,))
    run_split(RECIPE, dataset(), out=folder / "run", should_stop=lambda: next(stop))


def resume(folder: Path) -> None:
    run_split(RECIPE, dataset(), out=folder / "run", resume=True)


def make_records(folder: Path) -> None:
    run, result = run_split(RECIPE, dataset())
    for split in range(3):
        record = replace(make_record(run, result), split=split, splits=3)
        append_record(folder / "results/a.jsonl", record)
    run_split(RECIPE, dataset(), out=folder / "runs/a")


def report(folder: Path) -> None:
    passed_over = PassedOver()
    records = find_records(folder / "results", passed_over)
    runs = find_runs(folder / "runs", passed_over)
    for form in ("markdown", "latex"):
        render(records, form, timing=True)
    results_page(records, runs=runs, folder=folder)


def make_sweep(folder: Path) -> None:
    space = folder / "space.toml"
    space.write_text('[grid]\nsource = "here"\n[train]\nlr = [0.01, 0.1]\n')
    plan = make_plan(
        RECIPE, load_space(RECIPE, space), dataset(), (0,), sampler="random", seed=0, prune=False
    )
    with Sweep(plan, folder / "sweep", None) as sweep:
        sweep.grow(2)
        sweep.work(dataset(), worker="w")


def read_sweep(folder: Path) -> None:
    with Sweep(load_plan(folder / "sweep"), folder / "sweep", None) as sweep:
        for row in sweep.queue.rows():
            str(row)
        sweep.queue.is_finished()


def make_packed(folder: Path) -> None:
    write_pack(dataset(), folder / "pack")


def seal_pack(folder: Path) -> None:
    """Sizes and checksums of the files as they are now, where the description still has any."""
    path = folder / "pack/meta.json"
    with suppress(Exception):
        meta = json.loads(path.read_text("utf-8"))
        for name, entry in meta["files"].items():
            data = (folder / "pack" / name).read_bytes()
            entry |= {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
        path.write_text(json.dumps(meta), encoding="utf-8")


def use_pack(folder: Path) -> None:
    run_split(RECIPE.set("train.epochs=1"), read_pack(folder / "pack"))


def read_texts(folder: Path) -> None:
    read_geom_gcn([folder / "edges.txt", folder / "nodes.txt", *sorted(folder.glob("*.npz"))])


def make_recipe(folder: Path) -> None:
    lines = [
        "[recipe]",
        'name = "mine"',
        'source = "here"',
        "[model]",
        'name = "csnn"',
        "hidden_channels = 4",
        'norm = "layer"',
        "[data]",
        'name = "texas"',
        "[train]",
        "epochs = 3",
        "lr = 0.01",
    ]
    (folder / "mine.toml").write_text("\n".join(lines) + "\n")


def read_recipe(folder: Path) -> None:
    load_recipe(str(folder / "mine.toml"))


def make_assignment(folder: Path) -> None:
    (folder / "set.txt").write_text("\n".join(ASSIGNMENTS))


def read_assignment(folder: Path) -> None:
    text = (folder / "set.txt").read_bytes().decode("utf-8", "replace")
    for line in text.split("\n"):
        with suppress(ValueError):
            RECIPE.set(line)
    RECIPE.set(*text.split("\n")[:1])


RUN = ("run", "-o", "out.csv", "--force")
TARGETS: dict[str, Target] = {
    # Tables are damaged in depth by mangle.py; here it is their bytes.
    "tables": Target(
        make_tables,
        read_as("nodes.csv", "edges.csv"),
        (("*.csv", m.mutate_text), ("*.csv", m.mutate_bytes)),
        train_on("nodes.csv", "edges.csv"),
    ),
    "gz": Target(
        make_gz,
        read_as("nodes.csv.gz", "edges.csv"),
        (("*.gz", m.mutate_bytes), ("*.gz", m.mutate_gz)),
        train_on("nodes.csv.gz", "edges.csv"),
    ),
    "parquet": Target(
        make_parquet,
        read_as("nodes.parquet", "edges.parquet"),
        (("*.parquet", m.mutate_bytes),),
        train_on("nodes.parquet", "edges.parquet"),
    ),
    "feather": Target(
        make_feather,
        read_as("nodes.feather", "edges.feather"),
        (("*.feather", m.mutate_bytes),),
        train_on("nodes.feather", "edges.feather"),
    ),
    "npz": Target(
        lambda folder: published.write_npz(folder / "a.npz", published.platonov_arrays()) and None,
        lambda folder: read_platonov([folder / "a.npz"]),
        (("a.npz", m.mutate_npz),),
    ),
    "mat": Target(
        lambda folder: published.write_fb100(folder / "a.mat") and None,
        lambda folder: read_fb100([folder / "a.mat"]),
        (("a.mat", m.mutate_bytes),),
    ),
    "object array": Target(
        lambda folder: published.write_fb100_splits(folder / "a.npy") and None,
        lambda folder: load_object_array(folder / "a.npy"),
        (("a.npy", m.mutate_bytes),),
    ),
    "pickle": Target(
        lambda folder: published.write_peptides_split(folder / "a.pickle") and None,
        lambda folder: load_pickle(folder / "a.pickle"),
        (("a.pickle", m.mutate_bytes),),
    ),
    "text datasets": Target(
        lambda folder: published.write_geom_gcn(folder) and None,
        read_texts,
        (("*.txt", m.mutate_text), ("*.npz", m.mutate_npz)),
    ),
    "peptides": Target(
        make_peptides,
        read_peptides,
        (("*.gz", m.mutate_gz), ("*.gz", m.mutate_bytes), ("*.pickle", m.mutate_bytes)),
    ),
    "recipe": Target(
        make_recipe,
        read_recipe,
        (("mine.toml", m.mutate_text),),
        ("bench", "mine.toml", "--data-dir", ".", "--splits", "0"),
    ),
    "assignment": Target(make_assignment, read_assignment, (("set.txt", m.mutate_text),)),
    "run.json": Target(make_run, read_run, (("run/run.json", m.mutate_json),), ("predict", *RUN)),
    "estimator": Target(make_estimator, read_estimator, (("run/run.json", m.mutate_estimator),)),
    "safetensors": Target(
        make_run, read_run, (("run/model.safetensors", m.mutate_safetensors),), ("evaluate", "run")
    ),
    "tables of a run": Target(
        make_run,
        read_run,
        (("*.csv", m.mutate_text),),
        ("explain", "run", "-o", "page.html", "--force"),
    ),
    "state": Target(
        make_state,
        resume,
        (("run/state.safetensors", m.mutate_safetensors), ("run/run.json", m.mutate_json)),
    ),
    "records": Target(
        make_records,
        report,
        (("results/*.jsonl", m.mutate_json_lines), ("runs/a/run.json", m.mutate_json)),
        ("report", "--results", "results", "--html", "--output", "page.html"),
    ),
    "journal": Target(make_sweep, read_sweep, (("sweep/journal.log", m.mutate_json_lines),)),
    "sweep.json": Target(make_sweep, read_sweep, (("sweep/sweep.json", m.mutate_json),)),
    "pack": Target(
        make_packed,
        use_pack,
        (("pack/meta.json", m.mutate_json), ("pack/*.npy", m.mutate_bytes)),
        ("train", "pack:pack", "--epochs", "1"),
        seal_pack,
    ),
}


def prepare(work: Path) -> dict[str, Path]:
    """A good example of every kind, each read once: what is damaged must have been whole."""
    folders = {}
    for number, (name, target) in enumerate(TARGETS.items()):
        folders[name] = work / f"good-{number}"
        folders[name].mkdir(parents=True)
        target.make(folders[name])
        copy = work / "copy"
        shutil.copytree(folders[name], copy)
        move(folders[name], copy)
        target.read(copy)
        shutil.rmtree(copy)
    return folders


def move(origin: Path, folder: Path) -> None:
    """Make a run in a copied folder name the tables beside it."""
    path = folder / "run/run.json"
    if path.exists():
        path.write_bytes(path.read_bytes().replace(str(origin).encode(), str(folder).encode()))


def damage(rng: random.Random, target: Target, folder: Path) -> Path:
    """Change one file of an example; returns which."""
    pattern, mutation = rng.choice(target.files)
    path = rng.choice(sorted(folder.glob(pattern)))
    path.write_bytes(mutation(rng, path.read_bytes()))
    target.seal(folder)
    return path
