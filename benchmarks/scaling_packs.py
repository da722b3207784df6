"""Graphs that never are in memory: training on batches of packs of 10⁶ to 10⁸ edges.

Part of :mod:`scaling` (``--packs``). The packs are generated piece by piece; a CSNN is trained on
batches, and then gives its outputs at all nodes layer by layer.
"""

from __future__ import annotations

import re
import shutil
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from train_step import MB, SEED, aligned

from coopsheaf.data.communities import pack_communities
from coopsheaf.data.pack import read_pack
from coopsheaf.memory import forget_peak, peak_bytes
from coopsheaf.scale import infer, make_batch_feed
from coopsheaf.train.batches import BatchConfig

SIZES = (1_000_000, 10_000_000, 100_000_000)  # edges
# Nodes in the order of their communities make batches of ranges, one epoch of them; in random order
# neighbours are sampled: an epoch of that sees every edge many times, so some batches of it.
PLANS: dict[str, tuple[BatchConfig, int | None]] = {
    "communities": (BatchConfig("ranges"), None),
    "random": (BatchConfig("neighbours", size=512, fanouts="5,3,2,2"), 50),
}


def write_big_pack(folder: str, edges: int, per_node: int, order: str) -> dict[str, Any]:
    """Generate a pack, in a process of its own; not if it is there already."""
    if (Path(folder) / "meta.json").is_file():
        return {}
    torch.set_num_threads(1)
    begin, wall = time.process_time(), time.perf_counter()
    pack_communities(folder, edges // per_node, edges, shuffle=order == "random", seed=SEED)
    return {
        "generate_s": round(time.process_time() - begin, 1),
        "generate_wall_s": round(time.perf_counter() - wall, 1),
        "generate_peak_mb": round(peak_bytes() / MB, 1),
    }


class MemoryWatch:
    """The most memory that a process has had for itself: what the system cannot take away.

    Pages of mapped files are not in it: they are given back when somebody else needs the room.
    """

    def __init__(self) -> None:
        self.peak = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> MemoryWatch:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        self._look()
        while not self._done.wait(0.05):
            self._look()

    def _look(self) -> None:
        with suppress(OSError):
            found = re.search(r"RssAnon:\s+(\d+) kB", Path("/proc/self/status").read_text())
            self.peak = max(self.peak, int(found[1]) * 1024 if found else 0)


def measure_pack(
    folder: str, order: str, start: Callable[[int], Any], make_model: Callable[..., Any]
) -> dict[str, Any]:
    """Train on batches of a pack and infer: seconds and memory of each."""
    clock, _ = start(1)
    config, limit = PLANS[order]
    found: dict[str, Any] = {"order": order, "kind": config.kind}

    def measured(name: str, work: Callable[[], Any]) -> Any:
        forget_peak()
        begin, wall = clock(), time.perf_counter()
        with MemoryWatch() as watch:
            result = work()
        found[f"{name}_s"] = round(clock() - begin, 3)
        found[f"{name}_wall_s"] = round(time.perf_counter() - wall, 2)
        found[f"{name}_own_mb"] = round(watch.peak / MB, 1)
        found[f"{name}_peak_mb"] = round(peak_bytes() / MB, 1)
        return result

    dataset = measured("open", lambda: read_pack(folder))
    model = make_model(dataset)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, fused=True)
    place = {"device": torch.device("cpu"), "dtype": torch.float32}
    feed = measured("feed", lambda: make_batch_feed(dataset, 0, config, seed=SEED, **place))
    summary = feed.summary(model)

    def train() -> int:
        done = 0
        for logits, y in feed.steps(model, 0):
            optimizer.zero_grad(set_to_none=True)
            F.cross_entropy(logits, y).backward()
            optimizer.step()
            done += 1
            if done == limit:
                break
        return done

    steps = measured("train", train)
    scratch = Path(folder).parent
    model.eval()
    out = measured("infer", lambda: infer(model, dataset.x, dataset.graph, scratch=scratch))
    val = feed.index["val"]
    hits = (out[val].argmax(1) == dataset.y[val]).double().mean()
    pairs = dataset.num_edges / 2
    return {
        "edges": round(pairs),
        "nodes": dataset.num_nodes,
        **found,
        "steps": summary["steps"],
        "steps_done": steps,
        "nodes_per_step": summary["nodes_per_step"],
        "edges_kept": round(summary["edges_kept"], 4),
        "step_s": round(found["train_s"] / steps, 4),
        "infer_s_per_million": round(found["infer_s"] / pairs * 1e6, 4),
        **(
            {"train_s_per_million": round(found["train_s"] / pairs * 1e6, 4)}
            if steps == summary["steps"]
            else {}
        ),
        "val": round(float(hits), 4),
        "pack_mb": round(sum(f.stat().st_size for f in Path(folder).iterdir()) / MB, 1),
    }


def pack_table(records: list[dict[str, Any]], order: str) -> str:
    head = ("edges", "nodes", "batches", "step s", "training s", "s per 10⁶", "outputs s")
    rows = [(*head, "s per 10⁶", "val", "own MB", "with files MB")]
    for r in records:
        each = r.get("train_s_per_million")
        first = (f"{r['edges']:,}", f"{r['nodes']:,}", f"{r['steps_done']:,}", f"{r['step_s']:.3f}")
        times = (f"{r['train_s']:,.1f}", "-" if each is None else f"{each:.2f}")
        times += (f"{r['infer_s']:,.1f}", f"{r['infer_s_per_million']:.2f}", f"{r['val']:.3f}")
        parts = ("open", "feed", "train", "infer")
        own, peak = (max(r[f"{part}_{what}_mb"] for part in parts) for what in ("own", "peak"))
        rows.append((*first, *times, f"{own:,.0f}", f"{peak:,.0f}"))
    title = f"batches of packs, nodes in the order: {order}, batches: {records[0]['kind']}"
    return f"{title}\n" + aligned(rows, ">" * len(rows[0]))


def remove_pack(folder: str) -> None:
    shutil.rmtree(folder)
