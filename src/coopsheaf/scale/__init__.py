"""Graphs too large for one step: parts of them, and exact outputs in bounded memory.

Nothing is imported before it is used: the settings are read by programs that need no PyTorch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coopsheaf.scale.config import BatchConfig
    from coopsheaf.scale.feeds import BatchFeed, make_batch_feed
    from coopsheaf.scale.halo import forward_at, halo_hops, halo_steps, surround
    from coopsheaf.scale.inference import infer
    from coopsheaf.scale.order import epoch_batches
    from coopsheaf.scale.partition import cluster_nodes, partition
    from coopsheaf.scale.sampling import NeighbourSampler, Sample, sample_neighbours

_HOME = {
    "BatchConfig": "config",
    "BatchFeed": "feeds",
    "NeighbourSampler": "sampling",
    "Sample": "sampling",
    "cluster_nodes": "partition",
    "epoch_batches": "order",
    "forward_at": "halo",
    "halo_hops": "halo",
    "halo_steps": "halo",
    "infer": "inference",
    "make_batch_feed": "feeds",
    "partition": "partition",
    "sample_neighbours": "sampling",
    "surround": "halo",
}

__all__ = [
    "BatchConfig",
    "BatchFeed",
    "NeighbourSampler",
    "Sample",
    "cluster_nodes",
    "epoch_batches",
    "forward_at",
    "halo_hops",
    "halo_steps",
    "infer",
    "make_batch_feed",
    "partition",
    "sample_neighbours",
    "surround",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"coopsheaf.scale.{_HOME[name]}"), name)
    raise AttributeError(f"module 'coopsheaf.scale' has no attribute {name!r}")
