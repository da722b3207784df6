"""What the page of models says of costs is what the records say."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import pytest
from shared import read_json_lines

from coopsheaf.models.kinship import sheaf_systems
from coopsheaf.models.registry import MODELS
from lab.documents import fill_document

ROOT = Path(__file__).parents[2]


def load() -> Any:
    """The benchmark; its name is that of a package of tests."""
    path = ROOT / "benchmarks" / "models.py"
    spec = importlib.util.spec_from_file_location("benchmark_of_models", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


models = load()
SHEAVES = ROOT / "benchmarks" / "results" / "models-sheaves.jsonl"
RECORDS = ROOT / "benchmarks" / "results" / "models-heterophily.jsonl"


def record(model: str, graph: str = "tolokers", **more: object) -> dict:
    what = {"model": model, "graph": graph, "threads": 1, "recipe": "default", "parameters": 5}
    return {**what, "step_s": 0.2, "peak_mb": 100.0, **more}


def test_multiples_of_csnn_and_refusals() -> None:
    refused = {"model": "h2gcn", "graph": "tolokers", "threads": 1, "recipe": "default", "refused": "too many"}  # fmt: skip
    found = [record("csnn"), record("linkx", step_s=0.1, peak_mb=150.0), refused]
    text = models.document_table(found)
    assert "| `linkx` | one graph | – | – | 0.50 × | 1.50 × |" in text
    assert "| `h2gcn` | any | – | – | refused | refused |" in text
    table = models.format_table(found)
    assert "0.50x" in table
    assert "refused" in table


def test_the_page_is_that_of_the_records() -> None:
    page = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    records = read_json_lines(RECORDS)
    assert fill_document(page, models.PLACE, models.document_table(records)) == page
    assert {r["model"] for r in records} <= set(MODELS)
    assert {"csnn", "gcnii", "linkx", "glognn", "h2gcn"} <= {r["model"] for r in records}


def test_sheaf_networks_of_one_size() -> None:
    """96 numbers at every node; the settings of a network that has no such say are its own."""
    for name in sheaf_systems():
        recipe = models.alike(name, "minesweeper")
        model = recipe.model.build(7, 1, num_nodes=9)
        parts = 2 if name == "dsnn" else 1  # real and imaginary
        assert model.embedding_channels == 96 * parts, name
        assert model.num_layers == 2


def test_what_takes_more_than_it_may_says_so() -> None:
    found = [record("csnn"), record("bunn", refused="more than 10 GB")]
    assert "| `bunn` | any | – | – | more than 10 GB | more than 10 GB |" in models.document_table(
        found
    )
    most = models.Most(gb=10)
    assert (
        most.reason(RuntimeError("DefaultCPUAllocator: can't allocate memory")) == "more than 10 GB"
    )
    assert most.reason(RuntimeError("shapes differ")) is None
    slow = models.Most(seconds=5)
    with pytest.raises(RuntimeError) as stopped:
        slow._stop()
    assert slow.reason(stopped.value) == "more than 5 s"


def test_the_page_of_kinship_is_that_of_the_records() -> None:
    page = (ROOT / "docs" / "kinship.md").read_text(encoding="utf-8")
    records = read_json_lines(SHEAVES)
    assert fill_document(page, models.SHEAF_PLACE, models.document_table(records)) == page
    assert {r["model"] for r in records} == set(sheaf_systems())
    assert {r["recipe"] for r in records} == {models.ALIKE}
