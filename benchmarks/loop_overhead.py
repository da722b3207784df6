"""What the training loop costs over the bare training step, on a graph of tolokers' size.

Takes turns in one process between a hand-written step (forward, loss, backward, Adam) and one epoch
of the real loop, without evaluation, on the same graph with the same network::

    python benchmarks/loop_overhead.py --threads 1 --repeats 15

``README.md`` beside this file has the protocol and the results.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import time
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from train_step import SEED, SETTINGS, WARMUP_STEPS, positive

import coopsheaf
from coopsheaf.data.dataset import NodeDataset
from coopsheaf.train.config import TrainConfig
from coopsheaf.train.feed import NodeFeed
from coopsheaf.train.loop import fit
from coopsheaf.train.task import Task
from coopsheaf.train.world import make_fabric

SETTING = SETTINGS["tolokers"]
LIMIT = 1.05


class TimedFeed(NodeFeed):
    """The loop's own feed; it also notes when each epoch begins, and what runs between two."""

    def __init__(self, dataset: NodeDataset, bare: Bare, repeats: int) -> None:
        super().__init__(dataset, 0, device=torch.device("cpu"), dtype=torch.float32)
        self.bare, self.repeats = bare, repeats
        self.loop_seconds: list[float] = []
        self.bare_seconds: list[float] = []
        self.started: float | None = None

    def steps(self, model: nn.Module, epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        # From here to the same place of the next epoch is one whole turn of the loop.
        if self.started is not None:
            self.loop_seconds.append(time.perf_counter() - self.started)
            if sys.stderr.isatty():
                print(f"\r{len(self.loop_seconds)}/{self.repeats}", end="", file=sys.stderr)
        start = time.perf_counter()
        self.bare.step()
        self.started = time.perf_counter()
        self.bare_seconds.append(self.started - start)
        yield from super().steps(model, epoch)


class Bare:
    """The step as one would write it by hand, with everything prepared outside."""

    def __init__(self, dataset: NodeDataset, model: nn.Module) -> None:
        self.x = dataset.x
        self.graph = coopsheaf.Graph(dataset.edge_index, dataset.num_nodes)
        self.nodes = dataset.train[0].nonzero().squeeze(1)
        self.y = dataset.y[self.nodes].float()
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), **SETTING.optimizer)

    def step(self) -> float:
        self.optimizer.zero_grad(set_to_none=True)
        out = self.model(self.x, self.graph)[self.nodes]
        loss = F.binary_cross_entropy_with_logits(out.squeeze(1), self.y)
        loss.backward()
        self.optimizer.step()
        return loss.item()


def make_dataset() -> NodeDataset:
    """The graph of ``train_step.py`` with random features, labels and one half/quarter split."""
    torch.manual_seed(SEED)
    graph, n = SETTING.make_graph(), SETTING.num_nodes
    part = torch.randperm(n) * 4 // n
    return NodeDataset(
        name="tolokers-sized",
        x=torch.randn(n, SETTING.sizes[0]),
        edge_index=graph.edge_index,
        y=torch.randint(2, (n,)),
        train=(part < 2)[None],
        val=(part == 2)[None],
        test=(part == 3)[None],
        task="binary",
        metric="auroc",
    )


def measure(threads: int, repeats: int) -> tuple[list[float], list[float]]:
    """Seconds of the bare steps and of the loop's epochs, warm-up left out."""
    torch.set_num_threads(threads)
    dataset = make_dataset()
    models = []
    for _ in range(2):
        torch.manual_seed(SEED)
        models.append(SETTING.make_model())
    epochs = WARMUP_STEPS + repeats + 1  # an epoch's time is known when the next one begins
    config = TrainConfig(epochs=epochs, eval_every=10 * epochs, **SETTING.optimizer)
    feed = TimedFeed(dataset, Bare(dataset, models[0]), epochs - 1)
    fit(models[1], feed, Task("binary", "auroc"), config, fabric=make_fabric(config, "cpu"))
    last = WARMUP_STEPS + repeats
    return feed.bare_seconds[WARMUP_STEPS:last], feed.loop_seconds[WARMUP_STEPS:last]


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=positive, default=1, help="default: 1")
    parser.add_argument("--repeats", type=positive, default=15, help="default: 15")
    return parser.parse_args()


def main() -> None:
    args = parse_args()
    bare, loop = measure(args.threads, args.repeats)
    print(
        f"coopsheaf {coopsheaf.__version__}, torch {torch.__version__}, "
        f"Python {platform.python_version()}, {os.cpu_count()} cores, {args.threads} thread(s), "
        f"repeats {args.repeats}"
    )
    # Each pair was measured back to back: whatever else the machine does hits both.
    ratio = statistics.median(b / a for a, b in zip(bare, loop, strict=True))
    print(
        f"bare step {1000 * statistics.median(bare):,.0f} ms, loop "
        f"{1000 * statistics.median(loop):,.0f} ms per epoch (medians); median ratio of pairs "
        f"{ratio:.3f}, limit {LIMIT}: {'held' if ratio <= LIMIT else 'EXCEEDED'}"
    )
    sys.exit(0 if ratio <= LIMIT else 1)


if __name__ == "__main__":
    main()
