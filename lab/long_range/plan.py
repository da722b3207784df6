"""What is trained on what, how deep and for how long. Imports no PyTorch."""

from __future__ import annotations

import math
from dataclasses import dataclass

from coopsheaf.train.recipe import Recipe, default_recipe

WIDTH = 48  # of a layer, of all networks
STALK = 3
RATE = 0.01  # one learning rate for all: nothing is searched
SEEDS = (0, 1, 2)
BUNN_HOPS = 8  # the degree of its heat kernel

_DRY = ("model.dropout=0.0",)  # default recipes have some
_PLAIN = (f"model.hidden_channels={WIDTH}",)
_SHEAF = (f"model.hidden_channels={WIDTH // STALK}", f"model.stalk_dim={STALK}", *_DRY)


@dataclass(frozen=True)
class Contestant:
    """A network and what is changed of its default recipe.

    Args:
        model: its name in the registry.
        settings: assignments.
        hops: how far one layer reaches.
        about: one line for tables.
        depth: the setting that makes it deeper.
        slow: whether it has a tensor for every edge, which takes its time on cliques.
    """

    model: str
    settings: tuple[str, ...]
    hops: int
    about: str
    depth: str = "model.num_layers"
    slow: bool = False

    def layers(self, hops: int) -> int:
        """Layers that reach one hop further than the task needs."""
        return max(1, math.ceil((hops + 1) / self.hops))


CONTESTANTS: dict[str, Contestant] = {
    "csnn": Contestant("csnn", _SHEAF, 2, "the paper's operator"),
    "csnn-released": Contestant(
        "csnn", (*_SHEAF, "model.semantics=released"), 2, "the released code's order"
    ),
    "csnn-messages": Contestant(
        "csnn", (*_SHEAF, "model.semantics=messages"), 1, "one hop, no diagonal"
    ),
    "csnn-wave": Contestant("csnn", (*_SHEAF, "model.step=wave"), 2, "second order in time"),
    "csnn-deep": Contestant("csnn", _SHEAF, 1, "the paper's, as many layers as one hop takes"),
    "csnn-identity": Contestant("csnn-identity", _SHEAF, 2, "no maps are learned"),
    "nsd-orthogonal": Contestant("nsd-orthogonal", _SHEAF, 1, "orthogonal maps", slow=True),
    "onda": Contestant(
        "onda",
        (*_SHEAF, "model.num_layers=1", "model.step_size=1.0"),
        1,
        "waves, one block; its depth is steps",
        depth="model.num_steps",
        slow=True,
    ),
    "gcn-plain": Contestant("gcn-plain", (*_PLAIN, *_DRY), 1, "no residual, no norm"),
    "gat-plain": Contestant(
        "gat-plain",
        (*_PLAIN, *_DRY, "model.input_dropout=0.0", "model.attention_dropout=0.0"),
        1,
        "no residual, no norm",
        slow=True,
    ),
    "gin": Contestant("gin", _PLAIN, 1, "residual, batch and layer norms"),
    "bunn": Contestant(
        "bunn",
        (*_PLAIN, *_DRY, "model.num_bundles=8", f"model.heat_steps={BUNN_HOPS}"),
        BUNN_HOPS,
        f"heat kernels of degree {BUNN_HOPS}, residual, layer norm",
    ),
    "cognn": Contestant("cognn", (*_PLAIN, *_DRY), 1, "actions, no residual"),
}


@dataclass(frozen=True)
class LongTask:
    """A dataset, the distance that it needs, and how long a network may learn it.

    Args:
        dataset: its name in the catalogue.
        hops: how far information has to go.
        settings: of data, batches and training.
        group: the table that it is in.
    """

    dataset: str
    hops: int
    settings: tuple[str, ...]
    group: str


def _ranges(parts: int, size: int) -> tuple[str, ...]:
    return ("batch.kind=ranges", f"batch.parts={parts}", f"batch.size={size}", "batch.prefetch=0")


def _barbell(size: int) -> LongTask:
    graphs = 160 // size  # of a batch: 320 nodes, whatever they are in
    epochs = round(400 * graphs / 160)  # 400 steps
    every = max(1, epochs // 8)
    settings = (
        *_ranges(240, graphs),
        "data.features=standardized",
        f"train.epochs={epochs}",
        f"train.eval_every={every}",
    )
    return LongTask(f"barbell-{size}", 3, settings, "barbell")


def _transfer(shape: str, hops: int) -> LongTask:
    settings = ("train.epochs=300", "train.eval_every=20", "train.select=loss")
    return LongTask(f"{shape}-transfer-{hops}", hops, settings, "transfer")


def _echo_like(target: str) -> LongTask:
    settings = ("train.epochs=4", "train.eval_every=2")
    batches = ("train.batch_size=6",) if target == "diameter" else _ranges(30, 1)
    return LongTask(f"echo-like-{target}", 40, (*batches, *settings), "echo-like")


# In the order in which they are run: what is cheap comes first.
TASKS: dict[str, LongTask] = {
    task.dataset: task
    for task in (
        _barbell(10),
        _transfer("ring", 5),
        _transfer("ring", 10),
        _transfer("tree", 5),
        _echo_like("sssp"),
        _transfer("ring", 20),
        _barbell(20),
        _transfer("tree", 8),
        _echo_like("ecc"),
        _echo_like("diameter"),
        _barbell(50),
        _transfer("ring", 35),
        _transfer("ring", 50),
    )
}


def recipe(contestant: str, task: str, seed: int) -> Recipe:
    """Everything that determines a run: depth by the rule, one learning rate, one seed."""
    who, what = CONTESTANTS[contestant], TASKS[task]
    return default_recipe(who.model, task).set(
        *who.settings,
        f"{who.depth}={who.layers(what.hops)}",
        "train.weight_decay=0.0",
        "train.patience=0",
        "train.clip=1.0",
        *what.settings,
        f"train.lr={RATE}",
        f"train.seed={seed}",
    )
