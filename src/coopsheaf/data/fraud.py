"""Accounts and transfers as people have them, generated: tables to try the reading of tables on.

Nothing here is clean: numbers are texts with marks, dates are not those of programs, words for yes
and for nothing are many. Who is a fraudster is only hinted at by the columns of an account; whom it
sends money to says more. Imports no PyTorch.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from coopsheaf.checks import check_int

TODAY = np.datetime64("2024-06-30T12:00", "m")
ACCOUNTS_PER_RING = 10  # fraudsters who use the same mules
MULES_PER_RING = 3
MERCHANTS = 900
TRUTHS = {True: ("yes", "Yes", "Y", "TRUE"), False: ("no", "No", "N", "FALSE")}
CHANNELS = ("Web", "web", "App", "APP", "branch")
WORDS = (
    "called about card", "asked for a higher limit", "address changed", "lost password",
    "complained about fees", "closed a savings plan", "new phone", "travels abroad",
)  # fmt: skip

Columns = dict[str, list[str]]
"""Names and texts of a table."""


@dataclass(frozen=True)
class FraudTables:
    """A table of accounts, a table of transfers, and what they do not say.

    Args:
        accounts: one row per account; ``account`` has their names.
        transfers: one row per transfer, ``from`` an account ``to`` another.
        fraud: ``(accounts,)`` who is a fraudster, known or not.
    """

    accounts: Columns
    transfers: Columns
    fraud: NDArray[np.bool_]

    def write(self, folder: str | Path, *, parquet: bool = False) -> tuple[Path, Path]:
        """Write both tables into a folder, as CSV or, if pyarrow is installed, as Parquet."""
        ending = "parquet" if parquet and find_spec("pyarrow") is not None else "csv"
        paths = (Path(folder) / f"accounts.{ending}", Path(folder) / f"transfers.{ending}")
        paths[0].parent.mkdir(parents=True, exist_ok=True)
        for path, columns in zip(paths, (self.accounts, self.transfers), strict=True):
            (_write_parquet if ending == "parquet" else _write_csv)(path, columns)
        return paths


def fraud_tables(num_accounts: int = 5000, *, leak: bool = False, seed: int = 0) -> FraudTables:
    """Accounts to train on, one in 33 of which is a fraudster.

    Fraudsters work in rings: they send money to one another and to a few mules, ordinary accounts
    that draw out most of what they receive in cash. One label in ten is not known.

    Args:
        num_accounts: at least 400.
        leak: add a column ``case_opened``, which is filled in after a fraud was found.
        seed: of everything.
    """
    rng = np.random.default_rng(seed)
    tables = _draw(rng, check_int("num_accounts", num_accounts, minimum=400), "AC", "shop")
    label = np.where(tables.fraud, "yes", "no")
    label[rng.random(num_accounts) < 0.1] = ""
    if leak:
        tables.accounts["case_opened"] = np.where(label == "yes", "Y", "N").tolist()
    tables.accounts["fraud"] = label.tolist()
    return tables


def new_fraud_tables(num_accounts: int = 1000, *, seed: int = 1) -> FraudTables:
    """Accounts of another month, without labels: other names, other merchants among the known ones,
    and the columns in another order."""
    rng = np.random.default_rng(seed)
    tables = _draw(rng, check_int("num_accounts", num_accounts, minimum=400), "NEW", "stall")
    names = list(reversed(tables.accounts))
    transfers = {name: tables.transfers[name] for name in ("to", "amount", "from", "when", "")}
    return FraudTables({n: tables.accounts[n] for n in names}, transfers, tables.fraud)


def _draw(rng: np.random.Generator, n: int, prefix: str, shop: str) -> FraudTables:
    fraud, mule, ring = _draw_rings(rng, n)
    names = np.array([f"{prefix}-{number}" for number in 100_000 + rng.permutation(9 * n)[:n]])
    source, target = _draw_transfers(rng, fraud, mule, ring)
    return FraudTables(
        _accounts(rng, names, fraud, mule, shop),
        _transfers(rng, names, source, target, fraud),
        fraud,
    )


def _draw_rings(
    rng: np.random.Generator, n: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.int64]]:
    """``(n,)`` who is a fraudster, who is a mule, and in which ring; -1 for in none."""
    order = rng.permutation(n)
    frauds = round(0.03 * n)
    rings = max(1, frauds // ACCOUNTS_PER_RING)
    members, mules = order[:frauds], order[frauds : frauds + MULES_PER_RING * rings]
    ring = np.full(n, -1)
    ring[members] = np.arange(frauds) % rings
    ring[mules] = np.arange(len(mules)) % rings
    fraud, mule = np.zeros(n, dtype=np.bool_), np.zeros(n, dtype=np.bool_)
    fraud[members], mule[mules] = True, True
    return fraud, mule, ring


def _draw_transfers(
    rng: np.random.Generator,
    fraud: NDArray[np.bool_],
    mule: NDArray[np.bool_],
    ring: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Who sends to whom: ordinary transfers, those of the rings, some twice, some to oneself."""
    n = len(fraud)
    active = np.flatnonzero((rng.random(n) > 0.04) | fraud | mule)  # the others are isolated
    source, target = rng.choice(active, (2, 4 * n))
    pairs = [np.stack([source, target])[:, source != target]]
    for number in range(int(ring.max()) + 1):
        members = np.flatnonzero(fraud & (ring == number))
        mules = np.flatnonzero(mule & (ring == number))
        pairs.append(np.stack([np.repeat(members, 3), rng.choice(mules, 3 * len(members))]))
        pairs.append(np.stack([members, np.roll(members, 1)]))
    every = np.concatenate(pairs, axis=1)
    own = rng.choice(active, n // 80)
    again = every[:, rng.integers(0, every.shape[1], n // 30)]
    every = np.concatenate([every, again, np.stack([own, own])], axis=1)
    every = every[:, rng.permutation(every.shape[1])]
    return every[0], every[1]


def _accounts(
    rng: np.random.Generator,
    names: NDArray[np.str_],
    fraud: NDArray[np.bool_],
    mule: NDArray[np.bool_],
    shop: str,
) -> Columns:
    n = len(names)
    age = np.maximum(rng.gamma(2.0, np.where(fraud, 480, 600), n).astype(np.int64), 1)
    login = TODAY - (rng.exponential(20 * 1440, n)).astype("timedelta64[m]")
    balance = np.round(rng.lognormal(7.2 - 0.5 * fraud, 1.1, n) - 150, 2)
    cash = np.clip(rng.beta(2 + 9 * mule, 9 - 5 * mule, n), 0, 1)
    verified = rng.random(n) < np.where(fraud, 0.7, 0.82)
    merchant = np.minimum(rng.zipf(1.2, n) - 1, 10 * MERCHANTS) % MERCHANTS
    kind = np.where(rng.random(n) < 0.3, shop, "shop")
    points = rng.poisson(20 + 3 * fraud, n).astype(str)
    points[rng.choice(n, 6, replace=False)] = ["see file", "tbc", "20?", "ask Kim", "tbc", "~15"]
    channel = rng.choice(CHANNELS, n, p=(0.35, 0.15, 0.25, 0.05, 0.2))
    dates = (TODAY - age.astype("timedelta64[D]")).astype("datetime64[D]")
    return {
        "": [str(row) for row in range(n)],
        "opened": [_spell_date(str(date)) for date in dates],
        "last_login": _gaps(rng, [str(t).replace("T", " ") for t in login], "NA", 0.02),
        "account": names.tolist(),
        "balance": _gaps(rng, [_spell_money(value) for value in balance.tolist()], "-", 0.03),
        "cash_share": _gaps(rng, [f"{100 * share:.1f} %" for share in cash.tolist()], "?", 0.02),
        "verified": [rng.choice(TRUTHS[yes]) for yes in verified.tolist()],
        "postcode": [f"{area:05}" for area in 501 + 1237 * rng.integers(0, 80, n)],
        "merchant": [f"{k} {m:03}" for k, m in zip(kind, merchant.tolist(), strict=True)],
        "channel": channel.tolist(),
        "risk_points": points.tolist(),
        "account_age": age.astype(str).tolist(),
        "note": [f"{rng.choice(WORDS)} {rng.integers(1000, 9999)}" for _ in range(n)],
    }


def _transfers(
    rng: np.random.Generator,
    names: NDArray[np.str_],
    source: NDArray[np.int64],
    target: NDArray[np.int64],
    fraud: NDArray[np.bool_],
) -> Columns:
    amounts = np.round(rng.lognormal(4 + 0.5 * fraud[source], 1.0), 2).tolist()
    times = TODAY - rng.integers(1, 90 * 1440, len(source)).astype("timedelta64[m]")
    return {
        "": [str(row) for row in range(len(source))],
        "when": [str(time).replace("T", " ") for time in times],
        "from": names[source].tolist(),
        "to": names[target].tolist(),
        "amount": [f"{amount:,.2f}" for amount in amounts],
    }


def _spell_date(date: str) -> str:
    """31/01/2020."""
    year, month, day = date.split("-")
    return f"{day}/{month}/{year}"


def _spell_money(value: float) -> str:
    return f"-${-value:,.2f}" if value < 0 else f"${value:,.2f}"


def _gaps(rng: np.random.Generator, texts: list[str], word: str, share: float) -> list[str]:
    """The texts with a word for missing in some of the rows."""
    gone = (rng.random(len(texts)) < share).tolist()
    return [word if gap else text for text, gap in zip(texts, gone, strict=True)]


def _write_csv(path: Path, columns: Columns) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def _write_parquet(path: Path, columns: Columns) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table({name: pa.array(texts) for name, texts in columns.items()}), path)
