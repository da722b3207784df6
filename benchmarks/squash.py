"""Training throughput on NeighborsMatch: one shared tree against a PyG loader of separate graphs.

Both sides train the same network with the same parameters (forward, cross-entropy, backward, Adam),
interleaved in one run. ``ordinary`` takes its batches from PyG's ``DataLoader`` of one ``Data`` per
tree, which joins them anew every time, and computes all nodes of all layers: the four classic
networks with PyG's own layers, the sheaf networks with the library's, which sort the edges of each
batch. ``shared`` is what ``python -m lab squash`` does::

    python benchmarks/squash.py --depths 4 6 --models gcn gat csnn --json FILE
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from shared import SEED  # first: it finds the laboratory
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader

from coopsheaf import Graph
from coopsheaf.data.synthetic import NeighborsMatch, neighbors_match
from coopsheaf.memory import keep_freed_memory
from coopsheaf.zoo.match.network import KINDS, MatchNetwork
from lab.squash.networks import tree_network
from lab.squash.runner import PART_NODES
from lab.squash.settings import TREE_MODELS, TreeModel, batch_size
from lab.squash.trees import Forests


class Loose:
    """A joined batch in place of a forest: each kind of graph is sorted once per batch."""

    def __init__(self, batch: Batch) -> None:
        self.copies, self.batch = batch.num_graphs, batch
        self.known: dict[str, Graph] = {}

    def graph(self, edges: str) -> Graph:
        if edges not in self.known:
            self.known[edges] = self._build(edges)
        return self.known[edges]

    def _build(self, edges: str) -> Graph:
        edge_index = self.batch.edge_index
        if edges == "to-leaves":
            edge_index = edge_index.flip(0)
        if edges == "both-ways":
            edge_index = edge_index[:, edge_index[0] != edge_index[1]]
            edge_index = torch.cat([edge_index, edge_index.flip(0)], dim=1)
        return Graph(edge_index, self.batch.num_nodes)


def ordinary_logits(model: nn.Module, batch: Batch) -> Tensor:
    roots = batch.ptr[:-1]
    if isinstance(model, MatchNetwork):
        return MatchNetwork.forward(model, batch.x, batch.edge_index)[roots]
    loose: Any = Loose(batch)
    x = model.encoder(batch.x)
    for layer, norm in zip(model.layers, model.norms, strict=True):
        x = norm(layer(x, loose))
    return model.readout(x[roots])


def make_steps(name: str, data: NeighborsMatch, trees: int) -> dict[str, Callable[[], float]]:
    """A training step of each side; the two start with the same parameters and return the loss."""
    model = TreeModel(name) if name != "csnn" else TreeModel(name, "to-root", "sage", "paper")
    networks, optimizers = {}, {}
    for side in ("ordinary", "shared"):
        torch.manual_seed(SEED)
        network = tree_network(model, data.depth)
        networks[side] = network
        fused = side == "shared"
        optimizers[side] = torch.optim.Adam(network.parameters(), lr=1e-3, fused=fused)
    chosen = data.train[: 4 * trees]
    graphs = [
        Data(x=data.features[i].long(), edge_index=data.edge_index, y=data.labels[i].view(1))
        for i in chosen.tolist()
    ]
    loader = DataLoader(graphs, batch_size=trees, shuffle=False)
    batches = iter(())
    position = 0
    forests = Forests(data.depth)
    part_size = min(trees, max(1, PART_NODES // data.num_nodes)) if name != "gin" else trees

    def ordinary() -> float:
        nonlocal batches
        batch = next(batches, None)
        if batch is None:
            batches = iter(loader)
            batch = next(batches)
        optimizers["ordinary"].zero_grad()
        loss = F.cross_entropy(ordinary_logits(networks["ordinary"], batch), batch.y)
        loss.backward()
        optimizers["ordinary"].step()
        return loss.item()

    def shared() -> float:
        nonlocal position
        examples = chosen[position : position + trees]
        position = (position + trees) % len(chosen)
        optimizers["shared"].zero_grad(set_to_none=True)
        total = 0.0
        for part in examples.split(part_size):
            logits = networks["shared"](data.features[part], forests(len(part)))
            loss = F.cross_entropy(logits, data.labels[part], reduction="sum") / len(examples)
            loss.backward()
            total += loss.item()
        optimizers["shared"].step()
        return total

    return {"ordinary": ordinary, "shared": shared}


def measure(name: str, depth: int, trees: int | None, repeats: int) -> dict[str, Any]:
    data = neighbors_match(depth)
    trees = batch_size(name, depth)[0] if trees is None else trees
    steps = make_steps(name, data, trees)
    losses = {side: step() for side, step in steps.items()}  # untimed
    if abs(losses["ordinary"] - losses["shared"]) > 1e-3 * abs(losses["shared"]):
        raise SystemExit(f"{name}, r = {depth}: the two sides differ: {losses}")
    seconds: dict[str, list[float]] = {side: [] for side in steps}
    for _ in range(repeats):
        for side, step in steps.items():
            start = time.process_time()
            step()
            seconds[side].append(time.process_time() - start)
    rate = {side: trees / statistics.median(values) for side, values in seconds.items()}
    return {
        "model": name,
        "depth": depth,
        "trees": trees,
        "repeats": repeats,
        "ordinary_trees_per_s": round(rate["ordinary"], 1),
        "shared_trees_per_s": round(rate["shared"], 1),
        "ratio": round(rate["shared"] / rate["ordinary"], 2),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "machine": platform.machine(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--models", nargs="+", choices=TREE_MODELS, default=[*KINDS, "csnn"])
    add("--depths", nargs="+", type=int, default=[4, 6], help="default: 4 6")
    add("--trees", type=int, help="trees of a batch; as published by default")
    add("--repeats", type=int, default=5, help="timed steps of each side; default: 5")
    add("--threads", type=int, default=1, help="default: 1")
    add("--json", type=Path, metavar="FILE", help="append the results as JSON Lines")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    keep_freed_memory()  # both sides; as the command line does
    print(f"{'model':<6} {'r':>2} {'trees':>6} {'ordinary':>10} {'shared':>10} {'ratio':>7}")
    for depth in args.depths:
        for name in args.models:
            row = measure(name, depth, args.trees, args.repeats)
            print(
                f"{name:<6} {depth:>2} {row['trees']:>6} {row['ordinary_trees_per_s']:>10,.0f} "
                f"{row['shared_trees_per_s']:>10,.0f} {row['ratio']:>6.2f}x",
                flush=True,
            )
            if args.json is not None:
                with args.json.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
