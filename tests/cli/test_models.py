"""Every model of the registry trains on real data through the same command, into the same table."""

from __future__ import annotations

import math

import pytest
from cli.program import Program, records
from published import REAL_DATA, needs_real_data

from coopsheaf.models.registry import MODELS


@needs_real_data
@pytest.mark.parametrize("name", MODELS)
def test_every_model_trains_on_chameleon(program: Program, name: str) -> None:
    out = program.ok("train", "chameleon", "--model", name, "--data-dir", REAL_DATA, "--epochs", 2)
    assert f"{name}: recipe" in out
    (record,) = records()
    assert (record.model, record.dataset, record.split) == (name, "chameleon", 0)
    assert math.isfinite(record.test)
    assert 0 < record.val < 1
    table = program.ok("report")
    assert name in table
