"""How long reading tables takes and how much memory it needs, beside polars and pandas.

Two graphs are generated: one of 200,000 nodes and 2,000,000 weighted edges, and one of 20,000 nodes
with 500 columns of numbers. Every side does the same job in a process of its own, in turns, with
one thread::

    python benchmarks/tables.py --repeats 5

``README.md`` beside this file has the protocol and the results.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

NUMERIC = [f"x{i}" for i in range(8)]
CATEGORICAL = ["city", "kind"]
WIDE = [f"x{i}" for i in range(500)]
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "POLARS_MAX_THREADS": "1",
    "ARROW_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


# --- the tables --------------------------------------------------------------------------------


def write_large(folder: Path, nodes: int, edges: int, rng: np.random.Generator) -> None:
    """Nodes with 8 columns of numbers and 2 of categories; edges with weights."""
    names = np.array([f"n{number}" for number in rng.permutation(10 * nodes)[:nodes]])
    columns: dict[str, Any] = {"id": names}
    for name in NUMERIC:
        columns[name] = np.char.mod("%.5f", rng.normal(3, 2, nodes))
    for name, size in zip(CATEGORICAL, (40, 12), strict=True):
        columns[name] = np.char.add(name, rng.integers(0, size, nodes).astype(str))
    columns["label"] = np.array(["a", "b", "c"])[rng.integers(0, 3, nodes)]
    write(folder / "large-nodes.csv", columns)
    write_edges(folder / "large-edges.csv", names, edges, rng)


def write_wide(folder: Path, nodes: int, columns: int, rng: np.random.Generator) -> None:
    """Nodes with hundreds of columns of numbers, and a few edges."""
    names = np.array([f"n{number}" for number in range(nodes)])
    found: dict[str, Any] = {"id": names}
    for name in WIDE[:columns]:
        found[name] = np.char.mod("%.5f", rng.normal(0, 1, nodes))
    found["label"] = np.array(["a", "b", "c"])[rng.integers(0, 3, nodes)]
    write(folder / "wide-nodes.csv", found)
    write_edges(folder / "wide-edges.csv", names, 2 * nodes, rng)


def write_edges(path: Path, names: Any, edges: int, rng: np.random.Generator) -> None:
    ends = names[rng.integers(0, len(names), (2, edges))]
    weight = np.char.mod("%.4f", rng.random(edges))
    write(path, {"source": ends[0], "target": ends[1], "weight": weight})


def write(path: Path, columns: dict[str, Any]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(",".join(columns) + "\n")
        size, step = len(next(iter(columns.values()))), 50_000
        for start in range(0, size, step):
            rows = zip(*(c[start : start + step].tolist() for c in columns.values()), strict=True)
            file.writelines(",".join(row) + "\n" for row in rows)


# --- the same job, several ways ----------------------------------------------------------------


def by_polars(nodes: Path, edges: Path) -> dict[str, Any]:
    """Standardised numbers, one-hot categories, edges by joins; the arrays a network needs."""
    import polars as pl

    table = pl.read_csv(nodes)
    columns = pl.col([name for name in table.columns if name[0] == "x"])
    words = [name for name in CATEGORICAL if name in table.columns]
    scaled = ((columns - columns.mean()) / columns.std()).cast(pl.Float32)
    parts = [table.select(scaled), *([table.select(words).to_dummies()] if words else [])]
    x = np.concatenate([part.to_numpy().astype(np.float32, copy=False) for part in parts], axis=1)
    y = table["label"].cast(pl.Categorical).to_physical().to_numpy().astype(np.int64)
    ids = table.select("id").with_row_index("number")
    del table, parts
    rows = pl.read_csv(edges, schema_overrides={"weight": pl.Float32})
    weight = rows["weight"].to_numpy()
    ends = []
    for end in (
        "source",
        "target",
    ):  # one at a time, which needs less than one join after the other
        joined = rows.select(end).join(ids, left_on=end, right_on="id", how="left")
        ends.append(joined["number"].to_numpy().astype(np.int64))
        rows = rows.drop(end)
    return {"x": x, "y": y, "edge_index": np.stack(ends), "weight": weight}


def by_pandas(nodes: Path, edges: Path) -> dict[str, Any]:
    import pandas as pd

    table = pd.read_csv(nodes)
    numbers = table[[name for name in table.columns if name[0] == "x"]]
    parts = [((numbers - numbers.mean()) / numbers.std()).to_numpy(np.float32)]
    words = [name for name in CATEGORICAL if name in table.columns]
    if words:
        parts.append(pd.get_dummies(table[words]).to_numpy(np.float32))
    y = table["label"].astype("category").cat.codes.to_numpy(np.int64)
    ids = pd.Series(np.arange(len(table)), index=table["id"])
    rows = pd.read_csv(edges)
    ends = [ids.loc[rows[end]].to_numpy(np.int64) for end in ("source", "target")]
    weight = rows["weight"].to_numpy(np.float32)
    x = np.concatenate(parts, axis=1)
    return {"x": x, "y": y, "edge_index": np.stack(ends), "weight": weight}


def by_coopsheaf(nodes: Path, edges: Path) -> dict[str, Any]:
    from coopsheaf.data.tables.load import load_tables

    dataset = load_tables(nodes, edges, target="label", weight="weight").dataset
    found = {"x": dataset.x, "y": dataset.y, "edge_index": dataset.edge_index}
    return {name: value.numpy() for name, value in found.items()} | {
        "weight": dataset.edge_weight.numpy()
    }


SIDES: dict[str, tuple[Callable[[Path, Path], dict[str, Any]], tuple[str, ...]]] = {
    "polars": (by_polars, ("polars",)),
    "pandas": (by_pandas, ("pandas",)),
    "coopsheaf": (by_coopsheaf, ("coopsheaf.data.tables.load", "pyarrow.csv", "pyarrow.compute")),
    "coopsheaf, no pyarrow": (by_coopsheaf, ("coopsheaf.data.tables.load",)),
}
JOBS = {
    "large": ("polars", "coopsheaf", "coopsheaf, no pyarrow"),
    "wide": ("pandas", "coopsheaf", "coopsheaf, no pyarrow"),
}


# --- measuring ---------------------------------------------------------------------------------


def status(field: str) -> float:
    """Megabytes that the kernel counts for this process: ``VmRSS`` now, ``VmHWM`` at most."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) / 1024
    raise SystemExit("the memory of a process is read from /proc, which is not there")


def child(side: str, job: str, folder: Path) -> dict[str, Any]:
    """What one side needs for one job; ends the process."""
    run, modules = SIDES[side]
    for module in modules:
        __import__(module)
    if "pyarrow.csv" in modules:
        import pyarrow

        pyarrow.set_cpu_count(1)
        pyarrow.set_io_thread_count(1)
    if side == "coopsheaf, no pyarrow":
        from coopsheaf.data.tables.reading import inputs

        inputs.has_pyarrow = lambda: False
    imported, before = status("VmRSS"), time.process_time()
    made = run(folder / f"{job}-nodes.csv", folder / f"{job}-edges.csv")
    used = time.process_time() - before
    shapes = {name: list(value.shape) for name, value in made.items()}
    sums = [float(made["weight"].sum(dtype=np.float64)), int(made["edge_index"].sum())]
    assert [str(made[name].dtype) for name in ("x", "edge_index")] == ["float32", "int64"]
    return {
        "cpu_s": used, "imports_cpu_s": before, "peak_mb": status("VmHWM"), "imports_mb": imported,
        "shapes": shapes, "sums": sums,
    }  # fmt: skip


def measure(folder: Path, jobs: list[str], repeats: int) -> dict[tuple[str, str], list[Any]]:
    """All sides of all jobs in turns."""
    found: dict[tuple[str, str], list[Any]] = {}
    for turn in range(repeats):
        for job in jobs:
            for side in JOBS[job]:
                words = [sys.executable, __file__, "--child", side, job, str(folder)]
                environment = {**os.environ, **ENVIRONMENT}
                done = subprocess.run(words, env=environment, capture_output=True, text=True)
                if done.returncode:
                    raise SystemExit(done.stderr)
                found.setdefault((job, side), []).append(json.loads(done.stdout))
                print(f"\r{turn + 1}/{repeats} {job}, {side}    ", end="", file=sys.stderr)
    print(file=sys.stderr)
    return found


def compare(found: dict[tuple[str, str], list[Any]]) -> list[dict[str, Any]]:
    """Medians, and ratios to the first side of the job in the same turn."""
    rows = []
    for (job, side), values in found.items():
        first = found[job, JOBS[job][0]]
        assert all(v["sums"][1] == f["sums"][1] for v, f in zip(values, first, strict=True)), side
        row: dict[str, Any] = {"job": job, "side": side, "turns": len(values)}
        for name in ("cpu_s", "peak_mb", "imports_mb", "imports_cpu_s"):
            row[name] = round(statistics.median(v[name] for v in values), 2)
        row["increase_mb"] = round(
            statistics.median(v["peak_mb"] - v["imports_mb"] for v in values)
        )
        for name in ("cpu_s", "peak_mb"):
            ratios = [v[name] / f[name] for v, f in zip(values, first, strict=True)]
            row[f"{name}_ratio"] = round(statistics.median(ratios), 2)
        rows.append(row | {"cpu_s_all": [round(v["cpu_s"], 2) for v in values]})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--jobs", nargs="+", default=list(JOBS), choices=JOBS)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--nodes", type=int, default=200_000)
    parser.add_argument("--edges", type=int, default=2_000_000)
    parser.add_argument("--rows", type=int, default=20_000, help="of the wide table")
    parser.add_argument("--json", type=Path, help="append the measurements to this file")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(child(options.child[0], options.child[1], Path(options.child[2]))))
        return
    with tempfile.TemporaryDirectory() as folder:
        rng = np.random.default_rng(0)
        write_large(Path(folder), options.nodes, options.edges, rng)
        write_wide(Path(folder), options.rows, len(WIDE), rng)
        rows = compare(measure(Path(folder), options.jobs, options.repeats))
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    print("| job | side | CPU s | ratio | peak MB | ratio | of it imports MB | increase MB |")
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    for row in rows:
        print(
            f"| {row['job']} | {row['side']} | {row['cpu_s']:.2f} | {row['cpu_s_ratio']:.2f} | "
            f"{row['peak_mb']:.0f} | {row['peak_mb_ratio']:.2f} | {row['imports_mb']:.0f} | "
            f"{row['increase_mb']} |"
        )
        if options.json is not None:
            with options.json.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
