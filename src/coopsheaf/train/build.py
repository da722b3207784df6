"""From a recipe to a network."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from coopsheaf.data.dataset import GraphDataset
from coopsheaf.data.links import AnyDataset
from coopsheaf.data.processing import POSITIONS
from coopsheaf.models.network import Network
from coopsheaf.models.registry import find_model
from coopsheaf.train.limits import check_memory
from coopsheaf.train.links import LinkNetwork
from coopsheaf.train.loop import train_dtype
from coopsheaf.train.recipe import Recipe

SHOWN = 5  # names of columns in an error


class Rescaled(nn.Module):
    """A network whose outputs are in the units of the targets it was trained on.

    Networks start with outputs around zero and move in small steps: prices in the thousands
    would take them for ever.
    """

    def __init__(self, network: Network, out_channels: int) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("shift", torch.zeros(out_channels))
        self.register_buffer("scale", torch.ones(out_channels))

    @torch.no_grad()
    def fit(self, y: Tensor) -> None:
        """Take mean and deviation from the training targets, ``(n,)`` or ``(n, k)``, NaN aside."""
        for k, column in enumerate(y.reshape(y.shape[0], -1).unbind(1)):
            known = column[~torch.isnan(column)]
            if known.numel():
                self.get_buffer("shift")[k] = known.mean()
                spread = known.std(correction=0)
                self.get_buffer("scale")[k] = spread if spread > 0 else 1.0

    def map_learners(self) -> list[nn.Module]:
        return self.network.map_learners()

    def parameter_groups(self) -> list[dict[str, Any]]:
        return self.network.parameter_groups()

    def forward(self, *arguments: Any, **options: Any) -> Tensor:
        return self.finish(self.network(*arguments, **options))

    def finish(self, outputs: Tensor) -> Tensor:
        """From outputs of the network to the units of the targets."""
        return outputs * self.get_buffer("scale") + self.get_buffer("shift")


def build_network(
    recipe: Recipe,
    in_channels: int,
    out_channels: int,
    *,
    graph_level: bool,
    task: str,
    edge_channels: int = 0,
    pe_channels: int = 0,
    undirected: bool = False,
    num_nodes: int | None = None,
) -> nn.Module:
    """The recipe's network for data of these sizes, with whatever parameters come.

    ``undirected`` is about links: whether they have no direction. ``num_nodes`` is for networks
    that belong to one graph.
    """
    # Pairs are scored from the features of the last layer.
    outputs = None if task == "link" else out_channels
    model = recipe.model.build(
        in_channels,
        outputs,
        graph_level=graph_level,
        edge_channels=edge_channels,
        pe_channels=pe_channels,
        num_nodes=num_nodes,
    )
    if task == "regression":
        model = Rescaled(model, out_channels)
    elif task == "link":
        model = LinkNetwork(model, undirected=undirected)
    return model.to(train_dtype(recipe.train))


def build_model(recipe: Recipe, dataset: AnyDataset) -> nn.Module:
    """The recipe's network for a dataset, its parameters drawn from the recipe's seed."""
    transductive = not find_model(recipe.model_name).inductive or recipe.model.of_one_graph
    if recipe.batch.kind is not None and transductive:
        raise ValueError(
            f"`batch.kind` must be left out: {recipe.model_name} knows every node of one graph and "
            f"cannot be trained on parts of it; got {recipe.batch.kind!r}"
        )
    if dataset.edge_channels:
        find_model(recipe.model_name).check_edge_features(_columns(dataset))
    check_positions(recipe)
    check_memory(recipe, dataset)
    torch.manual_seed(recipe.train.seed)
    return build_network(
        recipe,
        dataset.num_features,
        dataset.out_channels,
        graph_level=isinstance(dataset, GraphDataset),
        task=dataset.task,
        edge_channels=dataset.edge_channels,
        pe_channels=dataset.pe_channels,
        undirected=getattr(dataset, "undirected", False),
        num_nodes=getattr(dataset, "num_nodes", None),  # many graphs have no such number
    )


def check_positions(recipe: Recipe) -> None:
    """Refuse a network that reads other numbers of places than the data gives."""
    reads, given = getattr(recipe.model, "pe_kind", None), recipe.data.pe
    if reads in POSITIONS and reads != given:
        raise ValueError(
            f"`model.pe_kind` {reads!r} reads places of `data.pe` {reads!r}; got {given!r}"
        )


def _columns(dataset: AnyDataset) -> str:
    """The features of edges in a few words."""
    names, count = dataset.edge_names, dataset.edge_channels
    if not names:
        return f"{count} columns" if count > 1 else "1 column"
    some = ", ".join(names[:SHOWN]) + (", ..." if count > SHOWN else "")
    return f"columns {some}" if count > 1 else f"column {some}"
