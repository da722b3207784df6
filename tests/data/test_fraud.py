"""The messy tables of accounts: what each column becomes, and that the graph is worth reading."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from coopsheaf import predict
from coopsheaf.data import TableData, load_tables
from coopsheaf.data.fraud import FraudTables, fraud_tables, new_fraud_tables
from coopsheaf.models.registry import make_settings
from coopsheaf.train.config import TrainConfig
from coopsheaf.train.recipe import Recipe
from coopsheaf.train.run import Run, run_split

OPTIONS = {
    "target": "fraud",
    "id": "account",
    "undirected": True,
    "self_loops": "remove",
    "duplicates": "merge",
}


def read(folder: Path, tables: FraudTables, **options: object) -> TableData:
    return load_tables(*tables.write(folder), **{**OPTIONS, **options})


def trained(model: str, data: TableData, **settings: object) -> tuple[Run, float]:
    chosen = make_settings(model, num_layers=2, dropout=0.2, **settings)
    train = TrainConfig(lr=0.02, epochs=40, eval_every=4, seed=0)
    run, result = run_split(Recipe(model, chosen, train=train), data.dataset, extra=data.kept)
    return run, result.scores["test"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> TableData:
    return read(tmp_path_factory.mktemp("fraud"), fraud_tables())


def test_every_column_becomes_what_it_is(data: TableData) -> None:
    kinds = {column.name: column.kind for column in data.encoder.columns}
    assert kinds == {
        "opened": "time",
        "last_login": "time",
        "balance": "numeric",
        "cash_share": "numeric",
        "verified": "numeric",
        "postcode": "categorical",
        "merchant": "hashed",
        "channel": "categorical",
        "risk_points": "numeric",
        "account_age": "numeric",
    }
    columns = {column.name: column for column in data.encoder.columns}
    assert columns["opened"].pattern == "dmy"
    assert not columns["opened"].clock
    assert columns["last_login"].clock
    assert 0.1 < columns["cash_share"].mean < 0.3  # per cent are hundredths
    assert columns["verified"].format.truths
    assert all(len(code) == 5 for code in columns["postcode"].categories)
    assert data.class_names == ("no", "yes")
    assert data.ids == tuple(fraud_tables().accounts["account"])


def test_numbers_are_those_that_were_written(data: TableData) -> None:
    tables = fraud_tables()
    column = next(c for c in data.encoder.columns if c.name == "balance")
    place = data.encoder.feature_names.index(column.feature_names[0])
    found = data.dataset.x[:, place].double().numpy() * column.std + column.mean
    texts = [text.replace("$", "").replace(",", "") for text in tables.accounts["balance"]]
    wanted = np.array([column.mean if text == "-" else float(text) for text in texts])
    assert np.abs(found - wanted).max() < 1e-2


def test_everything_is_said(data: TableData) -> None:
    notes = "\n".join(data.notes)
    for line in (
        "node ids: column 'account'; not used: 'Unnamed: 0'",
        "edges: from column 'from' to column 'to'; not used: 'Unnamed: 0', 'when', 'amount'",
        "edges repeat earlier ones",
        "62 edges join a node to itself",
        "nodes have no edge",
        "column 'opened': dates are read like 31/01/2020",
        "column 'balance': numbers with '.' before the fraction, ',' between thousands",
        "cells have leading zeros",
        "more than 300 are not one-hot",
        "'APP' and 'App'; 'Web' and 'web'",
        "column 'note' is left out: ",
        "column 'risk_points': 6 of 5000 cells are not a number and count as missing: ",
        "missing cells (of 5000): 'last_login' ",
        "task: binary ('no', 'yes'); 44",
    ):
        assert line in notes
    assert all(len(note.splitlines()) == 1 for note in data.notes)
    assert "WARNING" not in notes  # nothing gives the answer away, not even the age of an account


def test_a_column_that_gives_the_answer_away(tmp_path: Path) -> None:
    data = read(tmp_path, fraud_tables(1000, leak=True))
    warned = [note for note in data.notes if note.startswith("WARNING")]
    assert len(warned) == 1
    assert "'case_opened'" in warned[0]


def test_amounts_of_transfers(tmp_path: Path) -> None:
    tables = fraud_tables(500)
    kept = {"self_loops": "keep", "duplicates": "keep", "undirected": False}
    data = read(tmp_path, tables, weight="amount", edge_features=["amount", "when"], **kept)
    amounts = [float(text.replace(",", "")) for text in tables.transfers["amount"]]
    assert data.dataset.edge_weight.tolist() == pytest.approx(amounts, rel=1e-6)
    assert data.dataset.edge_names[0] == "amount"
    ids = np.array(data.ids)
    ends = [ids[end].tolist() for end in data.dataset.edge_index.numpy()]
    assert ends == [tables.transfers["from"], tables.transfers["to"]]


def test_the_graph_helps_with_accounts_that_are_new(tmp_path: Path, data: TableData) -> None:
    _, alone = trained("mlp", data, hidden_channels=32)
    run, together = trained("csnn", data, hidden_channels=16, stalk_dim=2)
    assert together > 0.85
    assert together > alone + 0.1

    new = new_fraud_tables()
    assert list(new.accounts) != list(fraud_tables(400).accounts)
    later = load_tables(*new.write(tmp_path, parquet=True), like=data.schema)
    found = predict(run, later.dataset)
    assert found.id_name == "account"
    assert found.ids == tuple(new.accounts["account"])
    suspicion = found.probabilities[:, found.class_names.index("yes")].numpy()
    first = np.argsort(-suspicion)[: new.fraud.sum()]
    assert new.fraud[first].mean() > 0.4  # 0.03 by chance
    assert any("'merchant'" in note and "not seen in training" in note for note in later.notes)


def test_drawn_by_their_seed() -> None:
    first, again, other = fraud_tables(500), fraud_tables(500), fraud_tables(500, seed=3)
    assert first.accounts == again.accounts
    assert first.transfers == again.transfers
    assert first.accounts != other.accounts
    assert first.fraud.sum() == 15
    assert set(first.accounts["fraud"]) == {"yes", "no", ""}
    with pytest.raises(ValueError, match="`num_accounts` must be"):
        fraud_tables(10)
