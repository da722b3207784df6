"""Tables as people have them: find fraudsters by their columns and by whom they send money to.

5,000 accounts, three in a hundred of them fraudulent; amounts, dates and words as they come out of
other programs. What was made of every column is said.

Run with: python examples/06_fraud.py [EPOCHS]
"""

import sys
import tempfile
from pathlib import Path

from coopsheaf import predict
from coopsheaf.data import load_tables
from coopsheaf.data.fraud import fraud_tables, new_fraud_tables
from coopsheaf.models.registry import make_settings
from coopsheaf.train.config import TrainConfig
from coopsheaf.train.recipe import Recipe
from coopsheaf.train.run import run_split

epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 40
with tempfile.TemporaryDirectory() as folder:
    accounts, transfers = fraud_tables().write(folder)
    for table in (accounts, transfers):
        print(table.name, *table.read_text(encoding="utf-8").splitlines()[:3], "...\n", sep="\n  ")

    # A transfer says something of both sides, once, however often it was booked. Of the columns
    # only that of the names must be pointed at.
    data = load_tables(
        accounts,
        transfers,
        target="fraud",
        id="account",
        undirected=True,
        self_loops="remove",
        duplicates="merge",
    )
    print("What was made of them:", *data.notes, sep="\n  ")

    # Accounts of another month: new names, new merchants, other column order, perhaps Parquet.
    new = new_fraud_tables()
    later = load_tables(*new.write(Path(folder) / "new", parquet=True), like=data.schema)

print("\nWhat was noticed in the new tables:", *later.notes, sep="\n  ")

settings = {
    "mlp": make_settings("mlp", num_layers=2, hidden_channels=32, dropout=0.2),
    "csnn": make_settings("csnn", num_layers=2, hidden_channels=16, stalk_dim=2, dropout=0.2),
}
print("\nArea under the ROC curve on accounts that were set apart:")
for name, model in settings.items():
    recipe = Recipe(name, model, train=TrainConfig(lr=0.02, epochs=epochs, seed=0))
    run, result = run_split(recipe, data.dataset, extra=data.kept)
    seen = "columns alone" if name == "mlp" else "columns and transfers"
    print(f"  {name:5} {result.scores['test']:.3f}   ({seen}, {result.seconds:.1f} s)")

found = predict(run, later.dataset)
suspicion = found.probabilities[:, found.class_names.index("yes")]
truth = dict(zip(new.accounts["account"], new.fraud.tolist(), strict=True))
print("\nThe most suspicious of the new accounts:")
for rank in suspicion.argsort(descending=True)[:10].tolist():
    was = "a fraudster" if truth[found.ids[rank]] else "innocent"
    print(f"  {found.ids[rank]}   {suspicion[rank]:.2f}   {was}")
