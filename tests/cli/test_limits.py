"""Numbers that would end a machine end in one line."""

from __future__ import annotations

import pytest
from cli.program import Program
from published import REAL_DATA, needs_real_data

HUGE = 10**20


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("train", "texas", "--threads", 100_000), "--threads must be at most "),
        (("bench", "csnn/texas", "--threads", 100_000), "--threads must be at most "),
        (("sweep", "texas", "--threads", 100_000), "--threads must be at most "),
        (("sweep", "texas", "--workers", 100_000), "--workers must be at most "),
        (("train", "texas", "--epochs", HUGE), "--set train.epochs must be below 2**63; got 1e+20"),
        (("train", "texas", "--set", f"batch.size={HUGE}"), "batch.size must be below 2**63"),
        (("train", "texas", "--set", f"batch.size={10**400}"), "got a number of 1329 bits"),
        (
            ("train", "texas", "--set", f"model.hidden_channels={HUGE}"),
            "--set model.hidden_channels must be below 2**63; got 1e+20",
        ),
    ],
)
def test_refused_at_once(program: Program, words: tuple, message: str) -> None:
    assert message in program(*words).error


@needs_real_data
@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (f"hidden_channels={10**12}", "make `hidden_channels` smaller"),
        ("stalk_dim=1000", "`stalk_dim` must be at most 256"),
        (f"num_layers={10**12}", "`num_layers` must be at most 1000"),
    ],
)
def test_refused_before_building(program: Program, setting: str, message: str) -> None:
    words = ("train", "texas", "--data-dir", REAL_DATA, "--set", f"model.{setting}")
    assert message in program(*words).error
