"""How soon the explorer of a graph of minesweeper's size shows its picture, and how large it is.

Trains a small CSNN for a moment, writes its page, opens it in a headless Chromium that draws with a
software renderer, several times from a fresh profile, and lays out a graph of the same size that is
no grid::

    python benchmarks/explorer.py --runs 7

Needs ``pip install playwright`` and a Chromium of the system (``--browser`` names another). Prints
one line of JSON; ``README.md`` beside this file says what is in it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import coopsheaf
from coopsheaf.data.dataset import NodeDataset
from coopsheaf.data.registry import load_dataset
from coopsheaf.models.registry import make_settings
from coopsheaf.pages.explorer import Exploration, explore
from coopsheaf.pages.explorer.adjacency import Adjacency, adjacency
from coopsheaf.pages.explorer.layout import lay_out
from coopsheaf.train.config import TrainConfig
from coopsheaf.train.recipe import Recipe
from coopsheaf.train.run import run_split

LIMIT_MS = 3000
OPTIONS = (
    "--no-sandbox",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
)
SIZE = {"width": 1280, "height": 800}
FRAMES = 30

# When the first drawn frame had been handed over, since navigation began.
FIRST_PICTURE = """
  (performance.getEntriesByName("first-picture")[0] || {startTime: 0}).startTime
"""
# Milliseconds between the frames of a picture that moves on and on, and how many edges they showed.
MOTION = """(frames) => new Promise((done) => {
  const times = [];
  const step = (now) => {
    times.push(now);
    const key = times.length % 2 ? "ArrowLeft" : "ArrowRight";
    document.dispatchEvent(new KeyboardEvent("keydown", {key}));
    if (times.length > frames) done(times.slice(1).map((time, k) => time - times[k]));
    else requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})"""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=7, help="how often the page is opened")
    parser.add_argument("--browser", default=shutil.which("chromium"), help="path of a Chromium")
    parser.add_argument("--data", default="minesweeper-generated", help="name of a dataset")
    parser.add_argument("--data-dir", default=None, help="folder to look for its files in")
    options = parser.parse_args()
    if options.browser is None:
        parser.error("no browser: apt-get install chromium, or name one with --browser")
    dataset = load_dataset(options.data, options.data_dir)
    assert isinstance(dataset, NodeDataset)
    page, seconds = timed(lambda: make_page(dataset))
    grid, grid_seconds = timed(lambda: lay_out(adjacency(dataset.edge_index, dataset.num_nodes)))
    _, forces_seconds = timed(lambda: lay_out(board_with_holes(dataset)))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "page.html"
        file.write_bytes(page.html.encode())
        size = file.stat().st_size
        first, frames, renderer = measure(file, options.browser, options.runs)
    result = {
        "benchmark": "explorer",
        "dataset": dataset.name,
        "nodes": page.num_nodes,
        "edges": page.num_edges,
        "page_mb": round(size / 1e6, 2),
        "page_seconds": round(seconds, 2),
        "layout": grid.kind,
        "layout_seconds": round(grid_seconds, 3),
        "forces_seconds": round(forces_seconds, 2),
        "first_picture_ms": round(statistics.median(first)),
        "first_picture_all_ms": [round(value) for value in first],
        "frame_ms": round(statistics.median(frames), 1),
        "renderer": renderer,
        "runs": options.runs,
        "met": statistics.median(first) < LIMIT_MS,
        "load": round(os.getloadavg()[0], 2),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "coopsheaf": coopsheaf.__version__,
    }
    print(json.dumps(result))
    return 0


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    value = work()
    return value, time.perf_counter() - start


def make_page(dataset: NodeDataset) -> Exploration:
    """The page of three layers; how well they are trained does not matter to the time."""
    model = make_settings("csnn", hidden_channels=16, num_layers=3, stalk_dim=2, norm="layer")
    recipe = Recipe("csnn", model, train=TrainConfig(lr=0.02, epochs=2, eval_every=1))
    run, _ = run_split(recipe, dataset)
    return explore(run, dataset)


def board_with_holes(dataset: NodeDataset) -> Adjacency:
    """The graph with nine tenths of its nodes: no grid any more."""
    chosen = np.random.default_rng(0).random(dataset.num_nodes) < 0.9
    return adjacency(dataset.edge_index, dataset.num_nodes).within(np.flatnonzero(chosen))


def measure(file: Path, browser: str, runs: int) -> tuple[list[float], list[float], str]:
    """Times of the first pictures, and of frames in motion, in milliseconds."""
    from playwright.sync_api import sync_playwright

    first: list[float] = []
    frames: list[float] = []
    renderer = ""
    with sync_playwright() as playwright:
        for _ in range(runs):
            # A browser of its own each time: nothing is compiled or cached yet.
            program = playwright.chromium.launch(executable_path=browser, args=list(OPTIONS))
            page = program.new_context(viewport=SIZE).new_page()
            page.goto(file.as_uri())
            while not (drawn := page.evaluate(FIRST_PICTURE)):
                page.wait_for_timeout(10)
            first.append(drawn)
            renderer = page.evaluate("explorer.state().renderer")
            page.wait_for_timeout(300)
            frames += page.evaluate(MOTION, FRAMES)
            program.close()
    return first, frames, renderer


if __name__ == "__main__":
    raise SystemExit(main())
