"""Graphs too large for one step: parts of them, and exact outputs in bounded memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coopsheaf.lazy import attach

if TYPE_CHECKING:
    from coopsheaf.scale.clusters import cluster_nodes as cluster_nodes
    from coopsheaf.scale.clusters import partition as partition
    from coopsheaf.scale.feeds import BatchFeed as BatchFeed
    from coopsheaf.scale.feeds import make_batch_feed as make_batch_feed
    from coopsheaf.scale.halo import forward_at as forward_at
    from coopsheaf.scale.halo import halo_hops as halo_hops
    from coopsheaf.scale.halo import halo_steps as halo_steps
    from coopsheaf.scale.halo import surround as surround
    from coopsheaf.scale.inference import infer as infer
    from coopsheaf.scale.sampling import NeighbourSampler as NeighbourSampler
    from coopsheaf.scale.sampling import Sample as Sample
    from coopsheaf.scale.sampling import sample_neighbours as sample_neighbours

__getattr__, __dir__, __all__ = attach(__name__)
