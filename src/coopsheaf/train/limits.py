"""Whether a training fits into memory, before it begins."""

from __future__ import annotations

import torch

from coopsheaf.data.links import AnyDataset
from coopsheaf.models.size import TRAINING_COPIES, check_parameters, check_sizes
from coopsheaf.train.recipe import Recipe


def check_memory(recipe: Recipe, dataset: AnyDataset) -> None:
    """Refuse a training whose parameters, with what an optimiser keeps of them, do not fit.

    What a step needs beside that depends on the graph and the kernels; that it is too much is found
    out by trying. With an accelerator the memory of this machine says nothing.
    """
    check_sizes(recipe.model)
    copies = 1 if torch.accelerator.is_available() else TRAINING_COPIES
    sizes = (dataset.num_features, dataset.out_channels)
    nodes = getattr(dataset, "num_nodes", None)  # many graphs have no such number
    beside = {"edge_channels": dataset.edge_channels, "pe_channels": dataset.pe_channels}
    check_parameters(recipe.model, *sizes, copies=copies, num_nodes=nodes, **beside)
