"""The main job: CSNN beside PyG's GCN and MLP on a generated minesweeper board.

Neighbours differ here: whether a cell is a mine has little to do with what its neighbours are, and
everything with what they *say* (how many mines they touch), half of which is hidden.

Run with: python examples/02_minesweeper.py [FOLDER] [EPOCHS]
"""

import sys
from pathlib import Path

from coopsheaf.cli import show
from coopsheaf.data.registry import load_dataset
from coopsheaf.models.registry import make_settings
from coopsheaf.train.config import TrainConfig
from coopsheaf.train.recipe import Recipe
from coopsheaf.train.run import run_split

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/demo")
epochs = int(sys.argv[2]) if len(sys.argv) > 2 else 120
dataset = load_dataset("minesweeper-generated")
print(
    f"A board of 100 x 100 cells: {dataset.num_nodes:,} nodes, {dataset.num_edges:,} directed "
    f"edges, {int(dataset.y.sum()):,} mines.\nHalf of the cells hide their number; the task is to "
    "tell mines from free cells (area under the ROC curve).\n"
)

csnn = make_settings(
    "csnn",
    hidden_channels=16,
    num_layers=3,
    stalk_dim=2,
    left_weights=False,
    dropout=0.1,
    norm="layer",
)
rows = []
for name, model, lr in (
    ("mlp", make_settings("mlp", num_layers=3, dropout=0.2), 0.01),
    ("gcn-plain", make_settings("gcn-plain", num_layers=3, dropout=0.2), 0.01),
    ("csnn", csnn, 0.02),
):
    recipe = Recipe(name, model, train=TrainConfig(lr=lr, epochs=epochs, eval_every=2, seed=0))
    with show.progress(f"{name:8}") as report:
        run, result = run_split(recipe, dataset, out=folder / name, resume=True, report=report)
    rows.append(
        [
            name,
            f"{run.info['parameters']:,}",
            f"{result.scores['val']:.3f}",
            f"{result.scores['test']:.3f}",
            f"{result.seconds:.0f}",
        ]
    )
show.table(["model", "parameters", "val AUROC", "test AUROC", "seconds"], rows)
print(
    f"""
Each run is a folder with run.json (settings, curve, scores) and model.safetensors: {folder}
Next (`source .venv/bin/activate` if the command is not found):
  coopsheaf train --help                          your own tables, or a dataset by name
  coopsheaf train minesweeper-generated           the published CSNN settings (slower, better)
  coopsheaf predict {folder}/csnn -o mines.csv
  coopsheaf data list                             the benchmarks of the paper"""
)
