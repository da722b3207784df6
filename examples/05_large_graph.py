"""A graph in parts: packed on disk, trained in batches of clusters, evaluated whole and exactly.

Run with: python examples/05_large_graph.py [FOLDER]
Or in two processes: torchrun --nproc-per-node 2 examples/05_large_graph.py [FOLDER]
Needs: pip install 'coopsheaf[partition]'
"""

import sys
from pathlib import Path

import torch

from coopsheaf.data.communities import heterophilic_communities
from coopsheaf.data.pack import read_pack, write_pack
from coopsheaf.memory import keep_freed_memory
from coopsheaf.scale import infer
from coopsheaf.train.launch import find_launch
from coopsheaf.train.recipe import default_recipe
from coopsheaf.train.run import run_split

keep_freed_memory()
launch = find_launch()
folder = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/large")

# Five classes, one edge in ten within a class. A million nodes work the same way: what is in a
# pack is mapped, and a process reads the parts that it needs.
pack = folder / f"pack-{launch.rank}"
if not pack.exists():
    write_pack(heterophilic_communities(6_000, 60_000), pack)
dataset = read_pack(pack)

recipe = default_recipe("csnn")
for setting in (
    "model.hidden_channels=8",
    "model.norm=layer",
    "train.epochs=8",
    "train.lr=0.02",
    "batch.kind=clusters",
    "batch.parts=24",
    "batch.size=4",
):
    recipe = recipe.set(setting)


def announce(batches: dict) -> None:
    kept = f"{batches['edges_kept']:.0%} of the edges kept"
    print(f"{batches['steps']} steps of {batches['nodes_per_step']} nodes per epoch, {kept}")


run, result = run_split(recipe, dataset, announce=announce)
if launch.rank == 0:
    print(f"test accuracy {result.scores['test']:.3f} at epoch {result.best_epoch}")
    # Outputs at all nodes, a thousand at a time: no approximation, and no array of all edges.
    parts = infer(run.model, dataset.x, dataset.graph, chunk=1000)
    with torch.no_grad():
        whole = run.model(dataset.x, dataset.graph)
    print(f"in chunks and at once: {float((parts - whole).abs().max()):.0e} apart")
