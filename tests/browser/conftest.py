"""The page of a real board."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from pages.explorer.pages import train

from coopsheaf.analysis.actions import ActionReport, read_actions
from coopsheaf.data.dataset import NodeDataset
from coopsheaf.data.registry import load_dataset
from coopsheaf.pages.explorer import explore
from coopsheaf.train.run import Run


@dataclass(frozen=True)
class Board:
    """A board of 100 by 100 cells, a network trained for a moment, its actions and its page."""

    dataset: NodeDataset
    run: Run
    report: ActionReport
    file: Path


@pytest.fixture(scope="session")
def board(tmp_path_factory: pytest.TempPathFactory) -> Board:
    dataset = load_dataset("minesweeper-generated")
    run = train(dataset, epochs=2, eval_every=2)
    report = read_actions(run.model, dataset.x, dataset.edge_index)
    file = tmp_path_factory.mktemp("board") / "page.html"
    file.write_bytes(explore(run, dataset, explain=[4242]).html.encode())
    return Board(dataset, run, report, file)
