"""A CSNN training step on a CUDA device: what an owner of a card runs and pastes.

Nobody has run it on a card so far. It takes full training steps (forward, loss, backward, Adam)
with the settings of ``settings.py`` on generated graphs, in several ways that take turns::

    python benchmarks/gpu.py --repeats 20 --json FILE

``README.md`` beside this file has the protocol. Without a card it says so and ends with code 2.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import statistics
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from settings import SETTINGS, Setting
from torch import Tensor, nn
from train_step import TOLERANCE, aligned, positive, read_json_lines, write_json_lines

import coopsheaf
from coopsheaf.sheaves.kernels import on_cuda

SEED = 0
WARMUP_STEPS = 5
MB = 2**20
# Each way of computing a step: with the Triton kernels or without, compiled or not, in bfloat16.
WAYS: dict[str, dict[str, bool]] = {
    "composition": {"triton": False},
    "triton": {"triton": True},
    "compiled": {"triton": True, "compiled": True},
    "bf16": {"triton": True, "bf16": True},
    "gcn": {},
}
# What computes CSNN in full precision, so that losses and gradients must agree.
EXACT = ("composition", "triton", "compiled")


class Way:
    """A network, its optimiser, and how a step of it is computed."""

    def __init__(self, name: str, setting: Setting, data: dict[str, Any], device: str) -> None:
        self.name, self.data, self.device, self.options = name, data, device, WAYS[name]
        torch.manual_seed(SEED)
        model = setting.make_gcn() if name == "gcn" else setting.make_model()
        self.model: nn.Module = model.to(device)
        fused = {} if name == "gcn" else {"fused": True}
        self.adam = torch.optim.Adam(self.model.parameters(), **setting.optimizer, **fused)
        self.call = torch.compile(self.model) if self.options.get("compiled") else self.model

    def loss(self) -> Tensor:
        edges = self.data["edge_index" if self.name == "gcn" else "graph"]
        autocast: AbstractContextManager = nullcontext()
        if self.options.get("bf16"):
            autocast = torch.autocast(self.device, dtype=torch.bfloat16)
        with autocast:
            out = self.call(self.data["x"], edges).float()
        if out.shape[1] == 1:
            return F.binary_cross_entropy_with_logits(out.squeeze(1), self.data["y"].float())
        return F.cross_entropy(out, self.data["y"])

    def step(self) -> None:
        with on_cuda.use_triton(self.options.get("triton", True)):
            self.adam.zero_grad(set_to_none=True)
            self.loss().backward()
            self.adam.step()

    def check(self) -> tuple[float, float]:
        """Loss and norm of its gradient, before training and without dropout."""
        self.model.eval()
        with on_cuda.use_triton(self.options.get("triton", True)):
            loss = self.loss()
            loss.backward()
        gradients = [p.grad for p in self.model.parameters() if p.grad is not None]
        found = loss.item(), float(torch.nn.utils.get_total_norm(gradients))
        self.adam.zero_grad(set_to_none=True)
        self.model.train()
        return found


class Card:
    """Time and memory of a step, as the device itself measures them."""

    device = "cuda"

    def time(self, step: Callable[[], None]) -> float:
        """Milliseconds between two marks in the device's queue."""
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        step()
        end.record()
        torch.cuda.synchronize()
        return start.elapsed_time(end)

    def peak(self, step: Callable[[], None]) -> float:
        """Megabytes that a step takes beyond what is there before it."""
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        step()
        torch.cuda.synchronize()
        return (torch.cuda.max_memory_allocated() - before) / MB

    def waits(self, step: Callable[[], None]) -> bool:
        """Whether a step makes the host wait, as far as PyTorch notices."""
        torch.cuda.set_sync_debug_mode("error")
        try:
            step()
        except RuntimeError as error:
            if "synchroniz" not in str(error):
                raise
            return True
        finally:
            torch.cuda.set_sync_debug_mode("default")
        return False

    def describe(self) -> dict[str, str]:
        kind = torch.cuda.get_device_properties(0)
        return {"card": kind.name, "capability": f"{kind.major}.{kind.minor}"}


def measure(card: Any, graph: str, names: list[str], repeats: int) -> list[dict[str, Any]]:
    """One record per way."""
    setting = SETTINGS[graph]
    torch.manual_seed(SEED)
    prepared = setting.make_graph()
    in_channels, _, _, out_channels = setting.sizes
    data: dict[str, Any] = {
        "x": torch.randn(setting.num_nodes, in_channels).to(card.device),
        "y": torch.randint(max(2, out_channels), (setting.num_nodes,)).to(card.device),
        "edge_index": prepared.edge_index.to(card.device),
        "graph": prepared.to(card.device),
    }
    ways = [Way(name, setting, data, card.device) for name in names]
    found = {way.name: way.check() for way in ways}
    check_agreement(found)
    for way in ways:
        for _ in range(WARMUP_STEPS):
            way.step()
    times: dict[str, list[float]] = {way.name: [] for way in ways}
    for _ in range(repeats):
        for way in ways:
            times[way.name].append(card.time(way.step))
    return [
        {
            "graph": graph,
            "way": way.name,
            "step_ms": round(statistics.median(times[way.name]), 3),
            "peak_mb": round(card.peak(way.step), 1),
            "waits": card.waits(way.step),
            "loss": round(found[way.name][0], 6),
        }
        for way in ways
    ]


def check_agreement(found: dict[str, tuple[float, float]]) -> None:
    """Losses and norms of gradients of the same function must be the same."""
    for numbers in zip(*(found[name] for name in EXACT if name in found), strict=True):
        spread = max(numbers) - min(numbers)
        if not all(map(math.isfinite, numbers)) or spread > TOLERANCE * abs(max(numbers)):
            raise SystemExit(f"error: the ways compute different functions: {found}")


def versions(card: Any) -> dict[str, str]:
    found = {"coopsheaf": coopsheaf.__version__, "torch": torch.__version__}
    found |= {"cuda": str(torch.version.cuda), "python": platform.python_version()}
    if on_cuda.has_triton():
        import triton

        found["triton"] = triton.__version__
    return found | card.describe()


def format_table(records: list[dict[str, Any]]) -> str:
    rows = [("graph", "way", "step ms", "/ composition", "peak MB", "waits", "loss")]
    for r in records:
        same = (o for o in records if o["graph"] == r["graph"] and o["way"] == "composition")
        against = next(same, None)
        ratio = "-" if against is None else f"{r['step_ms'] / against['step_ms']:.2f}"
        left = (r["graph"], r["way"], f"{r['step_ms']:.2f}", ratio, f"{r['peak_mb']:,.0f}")
        rows.append((*left, "yes" if r["waits"] else "no", f"{r['loss']:.4f}"))
    return aligned(rows, "<<>>>>>")


def parse_args(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--graphs", nargs="+", choices=SETTINGS, default=[*SETTINGS], help="default: all")
    add("--ways", nargs="+", choices=WAYS, default=[*WAYS], help="default: all")
    add("--repeats", type=positive, default=20, help="timed steps of each way; default: 20")
    add("--json", type=Path, metavar="FILE", help="append the results as JSON Lines")
    args = parser.parse_args(arguments)
    if args.json is not None and (args.json.is_dir() or not args.json.parent.is_dir()):
        parser.error(f"argument --json: must be a file in an existing directory; got {args.json}")
    return args


def main(arguments: list[str] | None = None) -> int:
    args = parse_args(arguments)
    if not torch.cuda.is_available():
        print(
            "error: this needs a CUDA device, and PyTorch finds none; nothing was measured",
            file=sys.stderr,
        )
        return 2
    card = Card()
    names = [name for name in args.ways if name != "triton" or on_cuda.has_triton()]
    if names != args.ways:
        print("Triton is not installed: pip install 'coopsheaf[triton]'", file=sys.stderr)
    run, records = partial(measure, card, names=names, repeats=args.repeats), []
    about = versions(card)
    for graph in args.graphs:
        print(f"{graph}: {', '.join(names)} ...", file=sys.stderr, flush=True)
        records += [record | about for record in run(graph)]
    print(", ".join(f"{name} {value}" for name, value in about.items()) + "\n")
    print(format_table(records))
    if args.json is not None:
        before = read_json_lines(args.json) if args.json.exists() else []
        write_json_lines(args.json, before + records)
    print("\n" + "\n".join(json.dumps(record) for record in records))
    return 0


if __name__ == "__main__":
    sys.exit(main())
