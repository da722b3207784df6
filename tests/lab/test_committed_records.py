"""What has been measured stays valid: the hash of recorded settings is still the hash of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from coopsheaf.train.recipe import recipe_from_mapping
from coopsheaf.train.records import read_records

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
FILES = [
    *sorted(RESULTS.glob("*.jsonl")),
    *sorted((RESULTS / "defaults").glob("*.jsonl")),
    *sorted((RESULTS / "investigations").glob("*.jsonl")),
    *sorted((RESULTS / "long-range").glob("*.jsonl")),
    *sorted((RESULTS / "sweeps").rglob("*.jsonl")),
]


def test_there_are_records() -> None:
    assert len(FILES) >= 200


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT / "results")))
def test_recorded_settings_have_the_hash_that_was_recorded(file: Path) -> None:
    for record in read_records([file]):
        recipe = recipe_from_mapping(record.config, file.name)
        assert recipe.hash() == record.config_hash
        assert recipe.to_mapping() == record.config
