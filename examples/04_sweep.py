"""Search settings: a few trials on a small minesweeper board; validation alone decides.

Run with: python examples/04_sweep.py [FOLDER]
On the command line, with several processes: coopsheaf sweep texas --trials 40 --workers 2
"""

import sys
from pathlib import Path

from coopsheaf.data.dataset import Processing
from coopsheaf.data.synthetic import minesweeper
from coopsheaf.sweep.plan import make_plan
from coopsheaf.sweep.search import Sweep
from coopsheaf.sweep.space import load_space
from coopsheaf.train.recipe import default_recipe

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "sweeps/example")
folder.parent.mkdir(parents=True, exist_ok=True)

# Lists are choices, tables are ranges; what is not here is as the recipe has it.
file = folder.parent / "space.toml"
file.write_text(
    """
[model]
stalk_dim = [1, 2, 3]
learner = ["mlp", "sage-node-norm"]
learner_layers = [1, 2]   # does not matter for the MLP, and is not searched then
[train]
lr = { low = 1e-3, high = 1e-1, log = true }
"""
)
recipe = default_recipe("csnn").set("train.epochs=15").set("model.hidden_channels=8")
dataset = minesweeper(height=15, width=15).process(Processing(direction="undirected"))
plan = make_plan(recipe, load_space(recipe, file), dataset, splits=[0, 1], seed=0)

with Sweep(plan, folder) as sweep:
    sweep.grow(8)  # a larger number, later, continues
    sweep.work(dataset)
    for row in sweep.queue.rows():
        chosen = ", ".join(
            f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}"
            for name, value in row.params.items()
        )
        print(
            f"trial {row.number}: {row.state}, validation {plan.metric} {row.value:.3f}; {chosen}"
        )
    print(f"\nThe best recipe is in {sweep.write_best()}:\n{sweep.describe(sweep.best())}.")
