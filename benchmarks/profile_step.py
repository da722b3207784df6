"""Where a CSNN training step spends its time and its memory, part by part.

Watches every tensor operation of training steps with the published settings of three benchmarks
(those of ``train_step.py``) and adds up processor time and bytes by part of the model and by kind
of operation, forward and backward::

    python benchmarks/profile.py [--graphs NAME ...] [--kernel factored] [--steps 3] [--json FILE]

``README.md`` beside this file says how to read it.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from train_step import SETTINGS, Training, drop_tiny_numbers, positive, write_json_lines

from coopsheaf.models import csnn as csnn_module
from coopsheaf.nn import csnn_conv, sage
from coopsheaf.nn.learners import MapLearner
from coopsheaf.sheaves.operator import Operator

OTHER = "residual, activation, norm"
PARTS = (
    "encoder", "learners", "maps", "weights", "operator", "dropout", OTHER, "readout", "loss",
    "optimiser",
)  # fmt: skip

KINDS = {
    "products": ("mm", "addmm", "addmm_", "linear"),
    "stalk products": ("bmm", "baddbmm", "baddbmm_", "addcmul", "addcmul_"),
    "sparse products": ("_embedding_bag_forward_only", "sparse_product", "edge_products"),
    "random numbers": ("draw_mask", "random_", "bernoulli_", "native_dropout"),
    "copies": ("copy_", "_to_copy", "clone", "cat", "stack", "index_select", "index_add"),
}
KIND_OF = {name: kind for kind, names in KINDS.items() for name in names}
MB = 2**20


class Watch(TorchDispatchMode):
    """Adds up time, new bytes and calls of every operation, by the part it belongs to.

    In the forward pass that is the part being computed. In the backward pass it is the part whose
    forward pass made the autograd node at work: when a part ends, the nodes that lead to its
    outputs and belong to nobody yet are its own.
    """

    def __init__(self) -> None:
        super().__init__()
        self.part = OTHER
        self.owner: dict[Any, str] = {}
        self.seconds: dict[tuple[str, str], float] = defaultdict(float)
        self.bytes: dict[tuple[str, str], int] = defaultdict(int)
        self.calls: dict[tuple[str, str], int] = defaultdict(int)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        start = time.thread_time()
        out = func(*args, **(kwargs or {}))
        spent = time.thread_time() - start
        node = torch._C._current_autograd_node()
        part = self.part if node is None else self.owner.get(node, OTHER)
        key = part, KIND_OF.get(func.overloadpacket.__name__, "element by element")
        self.seconds[key] += spent
        self.calls[key] += not func.is_view
        if not func.is_view and not func._schema.is_mutable:
            for leaf in tree_leaves(out):
                if isinstance(leaf, Tensor):
                    self.bytes[key] += leaf.untyped_storage().nbytes()
        return out

    @contextmanager
    def inside(self, part: str) -> Iterator[None]:
        before, self.part = self.part, part
        try:
            yield
        finally:
            self.part = before

    def claim(self, outputs: Any, part: str) -> None:
        """Give the autograd nodes behind these outputs to a part."""
        nodes = [leaf.grad_fn for leaf in tree_leaves(outputs) if isinstance(leaf, Tensor)]
        while nodes:
            node = nodes.pop()
            if node is not None and node not in self.owner:
                self.owner[node] = part
                nodes += [following for following, _ in node.next_functions]

    def wrap(self, function: Callable[..., Any], part: str) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            self.claim((args, kwargs), self.part)
            with self.inside(part):
                out = function(*args, **kwargs)
            self.claim(out, part)
            return out

        return wrapped


def profile(graph: str, kernel: str, steps: int) -> list[dict[str, Any]]:
    """One record per part and kind of operation: seconds and bytes of one step, on average."""
    training = Training(graph, (kernel,), threads=1)
    drop_tiny_numbers()
    model = training.models[kernel]
    training.step(kernel)  # Adam's moments exist from the second step on
    watch = Watch()
    wrap = watch.wrap
    with ExitStack() as stack:
        enter = stack.enter_context
        enter(patch.object(csnn_module, "dropout", wrap(csnn_module.dropout, "dropout")))
        enter(patch.object(sage, "dropout", wrap(sage.dropout, "dropout")))
        enter(patch.object(csnn_conv, "learn_maps", wrap(csnn_conv.learn_maps, "learners")))
        enter(patch.object(MapLearner, "_maps", wrap(MapLearner._maps, "maps")))
        enter(patch.object(Operator, "mv", wrap(Operator.mv, "operator")))
        multiply = wrap(csnn_conv.multiply_stalks, "weights")
        enter(patch.object(csnn_conv, "multiply_stalks", multiply))
        modules = [(model.encoder, "encoder"), (model.readout, "readout")]
        modules += [(conv.right, "weights") for conv in model.convs if conv.right is not None]
        for module, part in modules:
            enter(patch.object(module, "forward", wrap(module.forward, part)))
        forward = wrap(model.forward, OTHER)
        enter(patch.object(model, "forward", forward))
        step = training.optimizers[kernel].step
        enter(patch.object(training.optimizers[kernel], "step", wrap(step, "optimiser")))
        enter(watch)
        for _ in range(steps):
            with watch.inside("loss"):
                training.step(kernel)
            watch.owner.clear()
    seconds, total_bytes = sum(watch.seconds.values()), sum(watch.bytes.values())
    return [
        {
            "graph": graph,
            "kernel": kernel,
            "part": part,
            "kind": kind,
            "ms": round(1000 * watch.seconds[part, kind] / steps, 2),
            "time_share": round(watch.seconds[part, kind] / seconds, 4),
            "mb": round(watch.bytes[part, kind] / steps / MB, 2),
            "bytes_share": round(watch.bytes[part, kind] / total_bytes, 4),
            "calls": watch.calls[part, kind] // steps,
        }
        for part in PARTS
        for kind in (*KINDS, "element by element")
        if (part, kind) in watch.seconds
    ]


def format_table(records: list[dict[str, Any]]) -> str:
    """Shares of time in percent: parts down, kinds of operation across; then time and bytes."""
    kinds = [*KINDS, "element by element"]
    lines = []
    for graph in dict.fromkeys(record["graph"] for record in records):
        own = [record for record in records if record["graph"] == graph]
        total = sum(record["ms"] for record in own)
        rows = [[f"{graph}: {total:,.0f} ms", *kinds, "time %", "bytes %"]]
        groups = [(part, [r for r in own if r["part"] == part]) for part in PARTS]
        for part, some in [*groups, ("all", own)]:
            shares = [sum(r["time_share"] for r in some if r["kind"] == kind) for kind in kinds]
            sums = [sum(r[key] for r in some) for key in ("time_share", "bytes_share")]
            rows.append([part, *(f"{100 * share:.1f}" for share in (*shares, *sums))])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for name, *cells in rows:
            right = (f"{cell:>{width}}" for cell, width in zip(cells, widths[1:], strict=True))
            lines.append("  ".join([f"{name:<{widths[0]}}", *right]))
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--graphs", nargs="+", choices=SETTINGS, default=[*SETTINGS], help="default: all")
    add("--kernel", choices=("edgewise", "factored"), default="factored")
    add("--steps", type=positive, default=3, help="steps to average over; default: 3")
    add("--json", type=Path, metavar="FILE", help="also write the results as JSON Lines")
    args = parser.parse_args()
    records = [r for graph in args.graphs for r in profile(graph, args.kernel, args.steps)]
    print(format_table(records))
    if args.json is not None:
        write_json_lines(args.json, records)


if __name__ == "__main__":
    main()
