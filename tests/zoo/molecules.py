"""Graphs such as the peptides are, and their networks with the settings of the recipes."""

from __future__ import annotations

import torch
from graphs import bidirected, generator
from torch import Tensor
from torch_geometric.data import Batch, Data
from zoo.norms import shake_norms

from coopsheaf.data.encodings import laplacian_eigenpairs, random_walks
from coopsheaf.data.peptides import bond_features
from coopsheaf.models.network import Network
from coopsheaf.nn.encoders import ATOM_VOCABULARY, BOND_VOCABULARY
from coopsheaf.train.recipe import Recipe
from coopsheaf.train.recipes import load_recipe


def build_recipe(recipe: str | Recipe) -> Network:
    """The network of a recipe, as the data make it: nine codes, ten labels or eleven targets."""
    recipe = load_recipe(recipe) if isinstance(recipe, str) else recipe
    channels = {"codes": 3, "one-hot": 13, None: 0}[recipe.data.bonds]
    outputs = 10 if recipe.data.name.endswith("func") else 11
    return recipe.model.build(9, outputs, graph_level=True, edge_channels=channels, pe_channels=20)  # type: ignore[no-any-return]


def trained(recipe: Recipe) -> Network:
    """The same in evaluation and in double precision, its batch norms not those of the start."""
    torch.manual_seed(0)
    return shake_norms(build_recipe(recipe).double()).eval()  # type: ignore[return-value]


def call(model: Network, graph: Data) -> Tensor:
    batch = getattr(graph, "batch", None)
    size = None if batch is None else graph.num_graphs
    inputs = (
        {"pe": graph.pe, "edge_attr": graph.edge_attr} if model.edge_channels else {"pe": graph.pe}
    )
    return model(graph.x, graph.edge_index, batch=batch, batch_size=size, **inputs)


def together(model: Network, graphs: list[Data]) -> Tensor:
    return call(model, Batch.from_data_list(graphs))


def molecules(
    sizes: tuple[int, ...] = (12, 3, 1, 20), kind: str = "lappe", bonds: str = "codes"
) -> list[Data]:
    """Chains with side chains and rings, with random codes, and what a network sees of them.

    One of those that come by themselves has no bonds, two have fewer nodes than eigenvectors.
    """
    encode = {"rwse": random_walks, "lappe": laplacian_eigenpairs}[kind]
    graphs = []
    for seed, n in enumerate(sizes):
        rng = generator(seed)
        pairs = [
            (k, int(torch.randint(max(0, k - 4), k, (1,), generator=rng))) for k in range(1, n)
        ]
        pairs += [(k, k - 5) for k in range(9, n, 9) if (k, k - 5) not in pairs]
        edges = bidirected(torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T)
        codes = draw(BOND_VOCABULARY, len(pairs), rng)
        graphs.append(
            Data(
                x=draw(ATOM_VOCABULARY, n, rng).double(),
                edge_index=edges,
                edge_attr=bond_features(torch.cat([codes, codes]), bonds).double(),
                pe=encode(edges, n).double(),
            )
        )
    return graphs


def draw(vocabulary: tuple[int, ...], n: int, rng: torch.Generator) -> Tensor:
    columns = [torch.randint(0, size, (n,), generator=rng) for size in vocabulary]
    return torch.stack(columns, dim=1)


def renamed(graph: Data, seed: int = 9) -> Data:
    """The same graph, its nodes in another order and its edges, too."""
    names = torch.randperm(len(graph.x), generator=generator(seed))
    order = torch.randperm(graph.num_edges, generator=generator(seed + 1))
    old = names.argsort()
    return Data(
        x=graph.x[old],
        edge_index=names[graph.edge_index][:, order],
        edge_attr=graph.edge_attr[order],
        pe=graph.pe[old],
    )
