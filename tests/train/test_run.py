"""Runs on disk: read back, killed, resumed, refused."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import pickle
import random
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from train.small import graph_dataset, node_dataset, recipe, train_in_pieces

from coopsheaf.train.checkpoint import load_tensors, save_tensors
from coopsheaf.train.run import load_run, run_split
from coopsheaf.train.run_info import CheckpointError


def test_a_run_reads_back(tmp_path: Path) -> None:
    dataset = node_dataset()
    run, result = run_split(recipe(), dataset, out=tmp_path / "run", extra={"note": "mine"})
    back = load_run(tmp_path / "run")
    assert back.recipe == run.recipe
    assert back.info["note"] == "mine"
    assert back.info["result"]["scores"] == result.scores
    assert torch.equal(
        back.model(dataset.x, dataset.edge_index), run.model(dataset.x, dataset.edge_index)
    )
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "model.safetensors",
        "run.json",
    ]
    again, repeated = run_split(recipe(), dataset, out=tmp_path / "run", resume=True)
    assert repeated == result
    assert again.info == back.info


def test_graph_level_runs_read_back(tmp_path: Path) -> None:
    run_split(recipe(epochs=2), graph_dataset(), out=tmp_path / "run")
    assert load_run(tmp_path / "run").model.pool is not None


def test_a_folder_with_a_run_is_not_overwritten(tmp_path: Path) -> None:
    run_split(recipe(), node_dataset(), out=tmp_path / "run")
    before = (tmp_path / "run" / "model.safetensors").read_bytes()
    with pytest.raises(CheckpointError, match="holds a run already; continue it with --resume"):
        run_split(recipe(), node_dataset(), out=tmp_path / "run")
    with pytest.raises(CheckpointError, match="holds another run"):
        run_split(recipe(lr=0.5), node_dataset(), out=tmp_path / "run", resume=True)
    with pytest.raises(CheckpointError, match="holds another run"):
        run_split(recipe(), node_dataset(), 1, out=tmp_path / "run", resume=True)
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == before


def test_killed_at_random_moments_it_ends_the_same(tmp_path: Path) -> None:
    """Ten kills with SIGKILL, then a run to the end."""
    whole, expected = run_split(recipe(epochs=150), node_dataset())
    # Processes that are forked from one that has imported everything start at once.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["coopsheaf.train.run", "train.small"])
    rng = random.Random(0)
    folder, kills = tmp_path / "run", 0
    while kills < 10:
        process = context.Process(target=train_in_pieces, args=(folder, torch.get_num_threads()))
        process.start()
        process.join(rng.uniform(0.3, 0.9))
        if process.is_alive():
            process.kill()
            kills += 1
        process.join()
        if kills < 10 and (folder / "model.safetensors").exists():
            for path in folder.iterdir():  # it ended before the last kill: once more from the start
                path.unlink()
    run, result = run_split(recipe(epochs=150), node_dataset(), out=folder, resume=True)
    assert result.scores == expected.scores
    assert result.history == expected.history
    theirs = whole.model.state_dict()
    for name, tensor in run.model.state_dict().items():
        assert torch.equal(tensor, theirs[name]), name
    assert sorted(path.name for path in folder.iterdir()) == ["model.safetensors", "run.json"]


def test_an_unfinished_run_cannot_be_loaded(tmp_path: Path) -> None:
    run_split(recipe(), node_dataset(), out=tmp_path / "run", should_stop=lambda: True)
    with pytest.raises(CheckpointError, match=r"has not ended \(status 'interrupted'\).*--resume"):
        load_run(tmp_path / "run")


class Evil:
    def __reduce__(self) -> tuple:
        return os.system, (f"touch {os.environ['EVIL_MARK']}",)


def break_json(folder: Path) -> None:
    (folder / "run.json").write_text("{")


def break_format(folder: Path) -> None:
    (folder / "run.json").write_text('{"format": 99}')


def drop_key(folder: Path) -> None:
    info = json.loads((folder / "run.json").read_text())
    del info["task"]
    (folder / "run.json").write_text(json.dumps(info))


def truncate(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def empty(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"")


def disguise(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(pickle.dumps(Evil()))


def torch_pickle(folder: Path) -> None:
    torch.save({"x": Evil()}, folder / "model.safetensors")


def swap(folder: Path) -> None:
    tensors, _ = load_tensors(folder / "model.safetensors")
    save_tensors(folder / "model.safetensors", tensors, {"identity": "other"})


def reshape(folder: Path) -> None:
    tensors, meta = load_tensors(folder / "model.safetensors")
    tensors["encoder.weight"] = tensors["encoder.weight"].T
    save_tensors(folder / "model.safetensors", tensors, meta)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (break_json, "run.json: not readable JSON"),
        (break_format, "run.json: not a run of coopsheaf, format 1"),
        (drop_key, "run.json: not a run of coopsheaf"),
        (truncate, "model.safetensors: not a readable safetensors file"),
        (empty, "model.safetensors: not a readable safetensors file"),
        (disguise, "model.safetensors: not a readable safetensors file"),
        (torch_pickle, "model.safetensors: not a readable safetensors file"),
        (swap, "model.safetensors: belongs to another run"),
        (reshape, r"model.safetensors: does not fit the model.*encoder\.weight"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_damaged_runs_are_named_and_nothing_is_executed(
    damage, message, tmp_path, monkeypatch
) -> None:
    mark = tmp_path / "executed"
    monkeypatch.setenv("EVIL_MARK", str(mark))
    run_split(recipe(epochs=2), node_dataset(), out=tmp_path / "run")
    damage(tmp_path / "run")
    with pytest.raises(CheckpointError, match=message) as caught:
        load_run(tmp_path / "run")
    assert "\n" not in str(caught.value)
    assert not mark.exists()


def test_not_a_run(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="not a run"):
        load_run(tmp_path)


def test_a_full_disk_leaves_the_previous_state_intact(tmp_path: Path, monkeypatch) -> None:
    folder = tmp_path / "run"
    stops = iter([False, False, True])
    run_split(recipe(), node_dataset(), out=folder, should_stop=lambda: next(stops))
    before = (folder / "state.safetensors").read_bytes()

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left on device"):
        run_split(recipe(), node_dataset(), out=folder, resume=True)
    assert (folder / "state.safetensors").read_bytes() == before
    assert not list(folder.glob(".*.part"))
    monkeypatch.undo()
    _, result = run_split(recipe(), node_dataset(), out=folder, resume=True)
    assert result.history == run_split(recipe(), node_dataset())[1].history


def test_bad_splits_are_named() -> None:
    with pytest.raises(ValueError, match="`split` must be between 0 and 1 for small; got 2"):
        run_split(recipe(), node_dataset(), 2)


def test_what_a_killed_process_left_is_cleared_away(tmp_path: Path) -> None:
    """It was killed after its last word, before it had tidied up."""
    _, result = run_split(recipe(), node_dataset(), out=tmp_path / "run")
    for name in ("state.safetensors", ".run.json.abc.part"):
        (tmp_path / "run" / name).write_bytes(b"half")
    _, again = run_split(recipe(), node_dataset(), out=tmp_path / "run", resume=True)
    assert again == result
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "model.safetensors",
        "run.json",
    ]


def test_undefined_scores_are_nan_again_when_read_back(tmp_path: Path) -> None:
    dataset = node_dataset()
    dataset = replace(dataset, test=torch.zeros_like(dataset.test))
    _, result = run_split(recipe(epochs=2), dataset, out=tmp_path / "run")
    _, again = run_split(recipe(epochs=2), dataset, out=tmp_path / "run", resume=True)
    assert math.isnan(again.scores["test"])
    assert repr(again) == repr(result)


@pytest.mark.parametrize("options", [{"lr": 1e30, "epochs": 50}, {"class_weights": True}], ids=str)
def test_a_run_that_came_to_nothing_leaves_nothing(options: dict, tmp_path: Path) -> None:
    dataset = node_dataset(task="regression")
    with pytest.raises(ValueError, match=r"the loss became|needs classes"):
        run_split(recipe(**options), dataset, out=tmp_path / "run")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match=r"the loss became|needs classes"):
        run_split(recipe(**options), dataset, out=tmp_path / "run")
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["notes.txt"]


def test_regressions_read_back_with_their_units(tmp_path: Path) -> None:
    dataset = node_dataset(task="regression")
    run, _ = run_split(recipe(), dataset, out=tmp_path / "run")
    back = load_run(tmp_path / "run")
    expected = run.model(dataset.x, dataset.edge_index)
    assert torch.equal(back.model(dataset.x, dataset.edge_index), expected)
