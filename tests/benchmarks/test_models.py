"""What the page of models says of costs is what the records say."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from shared import read_json_lines

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
