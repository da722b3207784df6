"""Which feed a dataset and a recipe need."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import torch

from coopsheaf.data.dataset import GraphDataset
from coopsheaf.data.links import AnyDataset, LinkDataset
from coopsheaf.models.registry import find_model
from coopsheaf.train.feed import Feed, GraphFeed, NodeFeed
from coopsheaf.train.links import LinkFeed
from coopsheaf.train.loop import train_dtype
from coopsheaf.train.recipe import Recipe

# What cuts a graph into batches stands above this room and is imported when a recipe asks for it:
# a run on a whole graph needs neither samplers nor METIS.
BATCH_FEEDS = "coopsheaf.scale.feeds"


def make_feed(
    dataset: AnyDataset,
    split: int,
    recipe: Recipe,
    device: torch.device,
    *,
    rank: int = 0,
    world_size: int = 1,
) -> Feed:
    """One split of a dataset as the training loop wants it; a share of it in several processes."""
    dtype = train_dtype(recipe.train)
    if isinstance(dataset, LinkDataset):
        _check_links(dataset, split, recipe, world_size)
        return LinkFeed(dataset, seed=recipe.train.seed, device=device, dtype=dtype)
    if isinstance(dataset, GraphDataset):
        if recipe.batch.is_set:
            raise ValueError(
                "`batch` cuts one graph into parts; many graphs have `train.batch_size`: "
                f"{dataset.name} has {len(dataset.graphs)} graphs"
            )
        return GraphFeed(
            dataset,
            batch_size=recipe.train.batch_size,
            seed=recipe.train.seed,
            device=device,
            dtype=dtype,
            rank=rank,
            world_size=world_size,
        )
    if recipe.batch.is_set:
        if recipe.batch.kind == "neighbours" and not find_model(recipe.model_name).directed:
            raise ValueError(
                "`batch.kind` 'neighbours' samples edges in one direction, which "
                f"{recipe.model_name!r} does not take; choose 'clusters', 'nodes' or 'ranges'"
            )
        if dataset.sample_weight is not None:
            raise ValueError(
                "`sample_weight` goes with steps on the whole graph; leave `batch.kind` out, got "
                f"{recipe.batch.kind!r}"
            )
        make: Any = import_module(BATCH_FEEDS).make_batch_feed
        feed: Feed = make(
            dataset,
            split,
            recipe.batch,
            seed=recipe.train.seed,
            device=device,
            dtype=dtype,
            rank=rank,
            world_size=world_size,
        )
        return feed
    if world_size > 1:
        raise ValueError(
            "several processes share the batches of a step, and there are none; cut the graph with "
            "e.g. --set batch.kind=clusters, or start one process"
        )
    return NodeFeed(dataset, split, device=device, dtype=dtype)


def _check_links(dataset: LinkDataset, split: int, recipe: Recipe, world_size: int) -> None:
    """What links are not trained with."""
    if split != 0:
        raise ValueError(f"`split` must be 0 for the links of {dataset.name}; got {split}")
    if recipe.batch.is_set:
        raise ValueError(
            "`batch` is for node tasks: links are learned on the whole graph in every step; leave "
            f"`batch.kind` out, got {recipe.batch.kind!r}"
        )
    if world_size > 1:
        raise ValueError(
            "links are learned on the whole graph in every step, by one process; "
            f"got {world_size} processes"
        )
