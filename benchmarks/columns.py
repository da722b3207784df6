"""Do attributions of columns say what muting a column does? On texas and on accounts and transfers.

For each node that is explained, the ten columns with the largest attribution and up to twenty
others are muted, the node's own and its neighbours', and the rank correlation (Spearman) of what
was said and what happened is printed: mean over the nodes, and the lowest. Beside the gradient at
the features as they are, which is what the library uses, stand integrated gradients: the mean of
the gradient at eight states between the baseline and the features, times the same distance.

    python benchmarks/columns.py [--data texas fraud] [--nodes 20] [--seeds 0]
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace

import torch

from coopsheaf import Graph
from coopsheaf.analysis import Columns, Explanation, check_columns, explain_node
from coopsheaf.data import load_dataset, load_tables
from coopsheaf.data.dataset import NodeDataset
from coopsheaf.data.fraud import fraud_tables
from coopsheaf.models.registry import make_settings
from coopsheaf.train import train
from coopsheaf.train.config import TrainConfig
from coopsheaf.train.recipe import Recipe
from coopsheaf.train.run import Run, run_split

STEPS = 8


def texas(seed: int) -> tuple[Run, NodeDataset]:
    """The recipe of the paper's table on split 0."""
    run = train("texas", settings={"train.seed": seed})
    dataset = load_dataset("texas", **run.info["processing"])
    assert isinstance(dataset, NodeDataset)
    return run, dataset


def fraud(seed: int) -> tuple[Run, NodeDataset]:
    """The network of examples/06_fraud.py on its tables."""
    with tempfile.TemporaryDirectory() as folder:
        data = load_tables(
            *fraud_tables().write(folder),
            target="fraud",
            id="account",
            undirected=True,
            self_loops="remove",
            duplicates="merge",
        )
    model = make_settings("csnn", num_layers=2, hidden_channels=16, stalk_dim=2, dropout=0.2)
    recipe = Recipe("csnn", model, train=TrainConfig(lr=0.02, epochs=40, seed=seed))
    return run_split(recipe, data.dataset, extra=data.kept)[0], data.dataset


DATA = {"texas": texas, "fraud": fraud}


def integrated(run: Run, x: torch.Tensor, graph: Graph, why: Explanation) -> Explanation:
    """The same explanation with integrated gradients instead of the gradient."""
    columns, total = why.columns.columns, torch.zeros_like(why.columns.cells)
    for step in range(STEPS):
        at = (why.baseline + (x - why.baseline) * (step + 0.5) / STEPS).requires_grad_()
        (gradient,) = torch.autograd.grad(why.score.of(run.model(at, graph)), at)
        total += columns.fold((gradient * (x - why.baseline)).double()) / STEPS
    return replace(why, columns=replace(why.columns, cells=total, diffusion_cells=None))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--nodes", type=int, default=20, help="test nodes; of accounts twice")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    options = parser.parse_args()
    print("data    seed  way         own mean  least   neighbours mean  least   both mean  least")
    for name in options.data:
        for seed in options.seeds:
            report(name, seed, options.nodes)


def report(name: str, seed: int, count: int) -> None:
    run, dataset = DATA[name](seed)
    run.model.eval()
    test = dataset.test[0].nonzero().flatten()
    nodes = test[:count].tolist()
    if name == "fraud":  # of 3 in 100, so that some are asked for
        nodes += test[dataset.y[test] == 1][:count].tolist()
    graph, columns = Graph(dataset.edge_index, dataset.num_nodes), Columns.of_run(run)
    found: dict[str, list[tuple[float, float, float]]] = {"gradient": [], "integrated": []}
    for node in nodes:
        why = explain_node(run.model, dataset.x, graph, node, columns=columns)
        for way, each in (
            ("gradient", why),
            ("integrated", integrated(run, dataset.x, graph, why)),
        ):
            check = check_columns(run.model, dataset.x, graph, each)
            found[way].append((check.own.muting, check.neighbours.muting, check.muting))
    for way, values in found.items():
        table = torch.tensor(values)
        mean, least = table.nanmean(0), table.nan_to_num(2.0).amin(0)
        text = "   ".join(f"{m:10.4f} {w:7.4f}" for m, w in zip(mean, least, strict=True))
        print(f"{name:7} {seed:4}  {way:10} {text}", flush=True)


if __name__ == "__main__":
    main()
