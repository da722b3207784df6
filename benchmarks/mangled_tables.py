"""Valid small tables in every format, what happens to them, and how they are to be read.

A case is drawn from a seed and a number. Every step of it has a seed of its own, so that steps can
be left out without changing the others: that is how ``mangle.py`` makes a failure small.
"""

from __future__ import annotations

import gzip
import io
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mangling_steps import BYTE_STEPS, COLUMN_STEPS, NASTY, TEXT_STEPS, Columns

TEXT_FORMATS = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz")
BINARY_FORMATS = (".parquet", ".feather", ".arrow")
FORMATS = (*TEXT_FORMATS, *BINARY_FORMATS)
NODES = 24
GRAPHS = 8


@dataclass(frozen=True)
class Step:
    """One thing that happens to one of the tables.

    Args:
        table: ``nodes``, ``edges`` or ``graphs``.
        name: a key of ``COLUMN_STEPS``, ``TEXT_STEPS`` or ``BYTE_STEPS``.
        seed: of what is random in it.
    """

    table: str
    name: str
    seed: str


@dataclass(frozen=True)
class Case:
    """Tables, what happens to them, and how they are to be read.

    Args:
        seed: of the valid tables.
        formats: the ending of each table.
        steps: what happens, columns first, then the text, then the bytes.
        options: of ``load_tables``.
        later: what happens to other tables, which are read like the first if these are sound;
            ``None`` if there are none.
    """

    seed: str
    formats: dict[str, str]
    steps: tuple[Step, ...]
    options: dict[str, Any] = field(default_factory=dict)
    later: tuple[Step, ...] | None = None

    def write(self, folder: Path) -> dict[str, Path]:
        """Write the tables, mangled, and say where each of them is."""
        paths = {}
        for table, ending in self.formats.items():
            steps = [step for step in self.steps if step.table == table]
            paths[table] = folder / (table + ending)
            paths[table].write_bytes(content(valid(self.seed, table), ending, self.seed, steps))
        return paths

    def smaller(self) -> list[Case]:
        """The same with one step or option less."""
        fewer = [
            replace(self, steps=self.steps[:i] + self.steps[i + 1 :])
            for i in range(len(self.steps))
        ]
        kept = [{k: v for k, v in self.options.items() if k != name} for name in self.options]
        found = fewer + [replace(self, options=options) for options in kept]
        return [*found, replace(self, later=None)] if self.later is not None else found

    def after(self) -> Case:
        """The tables that are read later."""
        return replace(self, seed=f"{self.seed} later", steps=self.later or ())


def draw_case(seed: int, number: int, formats: tuple[str, ...] = FORMATS) -> Case:
    """The case of a number; the formats take turns."""
    rng = random.Random(f"{seed} {number}")
    with_graphs = rng.random() < 0.15
    tables = ["nodes", "edges", *(["graphs"] if with_graphs else [])]
    first = formats[number % len(formats)]
    used = {table: first if rng.random() < 0.6 else rng.choice(formats) for table in tables}
    steps = draw_steps(rng, used)
    options = draw_options(rng, with_graphs)
    later = draw_steps(rng, used) if rng.random() < 0.3 else None
    return Case(str(rng.random()), used, steps, options, later)


def draw_steps(rng: random.Random, formats: dict[str, str]) -> tuple[Step, ...]:
    """What happens to tables of these formats, often nothing or one thing."""
    steps = []
    for _ in range(rng.choice((0, 0, 1, 1, 1, 1, 2, 4))):
        table = rng.choice(list(formats))
        places: list[dict[str, Any]] = [COLUMN_STEPS] * 3 + [BYTE_STEPS]
        places += [TEXT_STEPS] * (2 if formats[table] in TEXT_FORMATS else 0)
        name = rng.choice(list(rng.choice(places)))
        steps.append(Step(table, name, str(rng.random())))
    return tuple(steps)


# --- valid tables ------------------------------------------------------------------------------


def valid(seed: str, table: str) -> Columns:
    """One of three tables that belong together."""
    rng = random.Random(f"{seed} {table}")
    rows = range(NODES)
    ids = [f"p{i}" for i in rows]
    of_graph = [f"g{i * GRAPHS // NODES}" for i in rows]
    if table == "nodes":
        columns = {
            "id": ids,
            "age": [str(rng.randint(18, 90)) for _ in rows],
            "city": [rng.choice(("paris", "rome", "Köln")) for _ in rows],
            "joined": [f"{rng.randint(1, 28):02}/{rng.randint(1, 12):02}/2021" for _ in rows],
            "balance": [f"${rng.randint(0, 99999):,}.50" for _ in rows],
            "vip": [rng.choice(("yes", "no", "")) for _ in rows],
            "zip": [f"{rng.randint(0, 99999):05}" for _ in rows],
            "note": [" ".join(rng.choices(("late", "paid", "call", "new"), k=4)) for _ in rows],
            "score": [f"{rng.gauss(0, 1):.4f}" for _ in rows],
            "label": [rng.choice(("a", "b", "b", "")) for _ in range(NODES - 6)] + ["a", "b"] * 3,
            "graph": of_graph,
        }
        if rng.random() < 0.3:
            columns["split"] = [("train", "val", "test")[i % 3] for i in rows]
    elif table == "edges":
        ends = [(i, (i + rng.randint(0, 2)) % NODES) for i in rows for _ in range(2)]
        columns = {
            "source": [ids[i] for i, _ in ends],
            "target": [ids[j] for _, j in ends],
            "weight": [f"{rng.random():.3f}" for _ in ends],
            "amount": [f"{rng.randint(1, 9999):,}" for _ in ends],
            "time": [f"2021-{rng.randint(1, 12):02}-{rng.randint(1, 28):02} 10:00" for _ in ends],
            "kind": [rng.choice(("call", "text")) for _ in ends],
        }
    else:
        labels = ["a", "b"] * (GRAPHS // 2)
        columns = {"graph": [f"g{i}" for i in range(GRAPHS)], "label": labels}
    if rng.random() < 0.2:
        columns = {"": [str(i) for i in range(len(columns[next(iter(columns))]))], **columns}
    return columns


# --- formats -----------------------------------------------------------------------------------


def content(columns: Columns, ending: str, seed: str, steps: list[Step]) -> bytes:
    """The bytes of a table after everything that happened to it."""
    chosen = [(step, random.Random(step.seed)) for step in steps]
    for step, rng in chosen:
        if step.name in COLUMN_STEPS and columns:
            columns = COLUMN_STEPS[step.name](rng, dict(columns))
    if ending in BINARY_FORMATS:
        data = write_binary(columns, ending, random.Random(seed))
    else:
        separator = "\t" if ending.startswith(".tsv") else ","
        text = write_text(columns, separator)
        for step, rng in chosen:
            if step.name in TEXT_STEPS:
                text = TEXT_STEPS[step.name](rng, text)
        data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")
    packed = ending.endswith(".gz")
    before = (
        packed and random.Random(seed + "gz").random() < 0.6
    )  # mangle inside, or the gzip itself
    for where in (True, False):
        if where == before or not packed:
            for step, rng in chosen:
                if step.name in BYTE_STEPS:
                    data = BYTE_STEPS[step.name](rng, data)
        if not packed:
            break
        if where:
            data = gzip.compress(data, mtime=0)
    return data


def write_text(columns: Columns, separator: str) -> str:
    """Delimited text with quotes where they are needed."""

    def cell(text: str) -> str:
        odd = any(mark in text for mark in (separator, '"', "\n", "\r"))
        return '"' + text.replace('"', '""') + '"' if odd else text

    rows = [list(columns), *zip(*columns.values(), strict=False)]
    return "".join(separator.join(map(cell, row)) + "\n" for row in rows)


def write_binary(columns: Columns, ending: str, rng: random.Random) -> bytes:
    """A Parquet, Feather or Arrow file, each column of some type that can hold its texts."""
    import pyarrow as pa
    from pyarrow import feather, parquet

    arrays = [typed(rng, texts) for texts in columns.values()]
    table = pa.Table.from_arrays(arrays, names=[clean(name) for name in columns])
    sink = io.BytesIO()
    if ending == ".parquet":
        packing = rng.choice(("snappy", "zstd", "none"))
        parquet.write_table(table, sink, compression=packing, row_group_size=rng.choice((7, 1000)))
    elif ending == ".feather":
        feather.write_feather(table, sink, compression=rng.choice(("lz4", "uncompressed")))
    else:
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=rng.choice((5, 1000)))
    return sink.getvalue()


def typed(rng: random.Random, texts: list[str]) -> Any:
    """Texts as an array of some type."""
    import pyarrow as pa

    plain = pa.array([clean(text) or None for text in texts], pa.string())
    wanted = [
        pa.int64(),
        pa.float64(),
        pa.float32(),
        pa.timestamp("ns"),
        pa.string(),
        pa.large_string(),
    ]
    wanted += [
        pa.dictionary(pa.int32(), pa.string()),
        pa.string_view(),
        pa.binary(),
        pa.decimal128(20, 4),
    ]
    kinds = rng.choices(wanted, weights=[6, 6, 2, 3, 5, 2, 2, 1, 0.2, 1], k=3)
    if rng.random() < 0.02:
        return pa.array([{"a": text} for text in texts])
    if rng.random() < 0.03:
        return pa.array([[len(text), 1.5] for text in texts])
    if rng.random() < 0.02:
        return pa.nulls(len(texts))
    for kind in kinds:
        try:
            return plain.cast(kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            pass
    return plain


def clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


# --- how they are to be read -------------------------------------------------------------------


def draw_options(rng: random.Random, with_graphs: bool) -> dict[str, Any]:
    """Options of ``load_tables``, most of them sensible."""
    nodes = [
        "id",
        "age",
        "city",
        "joined",
        "balance",
        "vip",
        "zip",
        "note",
        "score",
        "label",
        "graph",
        "none",
    ]
    edges = ["source", "target", "weight", "amount", "time", "kind", "none"]
    some = lambda names: rng.sample(names, rng.choice((1, 1, 2, 3)))  # noqa: E731
    options: dict[str, Any] = {
        "target": "label" if rng.random() < 0.8 else rng.choice((*nodes, some(nodes)))
    }
    if rng.random() < 0.1 and not with_graphs:
        options = {"task": "link"}
    draws: dict[str, Callable[[], Any]] = {
        "id": lambda: rng.choice(nodes),
        "features": lambda: some(nodes),
        "drop": lambda: some(nodes),
        "categorical": lambda: some(nodes),
        "text": lambda: some(nodes) if rng.random() < 0.3 else ["note"],
        "split": lambda: rng.choice(("split", *nodes)),
        "source": lambda: rng.choice(edges),
        "edge_target": lambda: rng.choice(edges),
        "weight": lambda: rng.choice(("weight", "weight", *edges)),
        "edge_features": lambda: some(edges) if rng.random() < 0.3 else ["amount"],
        "time": lambda: "time" if rng.random() < 0.8 else rng.choice(edges),
        "task": lambda: rng.choice(
            ("classification", "binary", "multiclass", "multilabel", "regression", "link")
        ),
        "unlabelled": lambda: [rng.choice(NASTY)],
        "undirected": lambda: True,
        "self_loops": lambda: rng.choice(("keep", "remove", "add")),
        "duplicates": lambda: rng.choice(("keep", "merge")),
        "isolated": lambda: rng.choice(("keep", "exclude")),
        "seed": lambda: rng.choice((0, 1, 12345, -1)),
        "graph": lambda: rng.choice(nodes),
    }  # fmt: skip
    for name in rng.sample(list(draws), rng.choice((0, 0, 1, 1, 2, 4))):
        if (name != "graph" or with_graphs) and (name != "time" or options.get("task") == "link"):
            options[name] = draws[name]()
    return options
