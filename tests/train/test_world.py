"""Several processes: the same parameters everywhere, and those of one process with all the work."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest
import torch
from isolation import cache as cache
from processes import run_processes, start_processes
from torch import Tensor
from torch.testing import assert_close
from train.shares import agree, fail_first, refuse, train_share, train_until_lost
from train.small import node_dataset, recipe

from coopsheaf.train.checkpoint import load_tensors
from coopsheaf.train.launch import Launch, find_launch
from coopsheaf.train.run import load_run, run_split
from coopsheaf.train.world import World, is_lost, make_fabric

pytest.importorskip("pymetis")

TOLERANCE = 1e-9  # float64: only the order of sums differs


def left(folder: Path, name: str, rank: int) -> tuple[dict[str, Tensor], list[list[float]]]:
    history = json.loads((folder / f"{name}-{rank}.json").read_text())["history"]
    return load_tensors(folder / f"{name}-{rank}.safetensors")[0], history


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("clusters", {}),
        ("nodes", {"class_weights": True}),
        ("neighbours", {"clip": 0.1}),
        ("graphs", {"schedule": "plateau", "eval_parts": "all"}),
    ],
)
def test_two_processes_do_what_one_does_with_twice_the_batch(
    kind: str, options: dict[str, object], tmp_path: Path
) -> None:
    run_processes(2, train_share, tmp_path, "two", kind, dict(options))
    train_share(tmp_path, "one", kind, dict(options))
    first, second, alone = (
        left(tmp_path, *which) for which in (("two", 0), ("two", 1), ("one", 0))
    )
    assert first[1] == second[1]
    for name, value in first[0].items():
        assert torch.equal(value, second[0][name]), name
        assert_close(value, alone[0][name], rtol=0, atol=TOLERANCE)
    curves = (torch.tensor(history, dtype=torch.float64) for history in (first[1], alone[1]))
    assert_close(*curves, rtol=0, atol=TOLERANCE)
    assert len(first[1]) == 3
    run = load_run(tmp_path / "two")
    assert run.recipe.train.processes == 2
    assert load_run(tmp_path / "one").info["config_hash"] != run.info["config_hash"]


def test_a_stop_anywhere_stops_all_and_the_run_ends_as_if_it_had_not(tmp_path: Path) -> None:
    """Dropout and batch norm: random numbers and running means of both processes come back."""
    run_processes(2, train_share, tmp_path, "whole", "graphs", {"dropout": True})
    first, second = (left(tmp_path, "whole", rank)[0] for rank in (0, 1))
    assert any("running_mean" in name for name in first)
    assert all(torch.equal(value, second[name]) for name, value in first.items())
    run_processes(2, train_share, tmp_path, "parts", "graphs", {"dropout": True, "stops": 3})
    assert json.loads((tmp_path / "parts-0.json").read_text())["epochs"] == 3
    state = load_tensors(tmp_path / "parts" / "state.safetensors")[0]
    assert not torch.equal(state["rng/0/cpu"], state["rng/1/cpu"])
    run_processes(2, train_share, tmp_path, "parts", "graphs", {"dropout": True})
    for rank in (0, 1):
        want, got = left(tmp_path, "whole", rank), left(tmp_path, "parts", rank)
        assert want[1] == got[1]
        for name, value in want[0].items():
            assert torch.equal(value, got[0][name]), name
    # What has ended is read, by both.
    run_processes(2, train_share, tmp_path, "parts", "graphs", {"dropout": True})
    assert left(tmp_path, "parts", 1)[1] == left(tmp_path, "whole", 0)[1]


def test_what_cannot_be_shared_is_refused(tmp_path: Path) -> None:
    run_processes(2, refuse, tmp_path, None, False, "several processes share the batches of a step")
    run_processes(2, refuse, tmp_path, 3, True, "`train.processes` must be 2")
    refuse(tmp_path, 3, True, r"`train.processes` must be 1, .* torchrun --nproc-per-node 3")
    assert not (tmp_path / "run").exists()
    with pytest.raises(ValueError, match="`processes` must be an integer of at least 2; got 1"):
        recipe(processes=1)


def test_an_error_of_the_first_process_is_said_once(tmp_path: Path) -> None:
    run_split(recipe(epochs=1), node_dataset(), out=tmp_path / "run", device="cpu")
    run_processes(2, fail_first, tmp_path)


def test_what_processes_tell_each_other(tmp_path: Path) -> None:
    run_processes(2, agree, tmp_path)


def test_alone_nothing_is_sent() -> None:
    assert find_launch() == Launch(0, 1, 1)
    world = World(make_fabric(recipe().train, "cpu"))
    assert world.sum(2, 3) == [2.0, 3.0]
    assert world.any(True, False) == [True, False]
    assert world.gather("a") == ["a"]
    assert world.by_first(lambda: 5) == 5
    loss = torch.tensor(2.0)
    assert world.balance(loss, 7.0) is loss


@pytest.mark.parametrize("victim", [0, 1])
def test_a_process_that_dies_leaves_a_state_behind(victim: int, tmp_path: Path) -> None:
    processes = start_processes(2, train_until_lost, tmp_path)
    state = tmp_path / "run" / "state.safetensors"
    end = time.monotonic() + 100
    while not state.exists():
        assert time.monotonic() < end
        time.sleep(0.01)
    pid = processes[victim].pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [-9, 0][:: 1 - 2 * victim]
    epoch = load_tensors(state)[1]["state"]["epoch"]
    told = (tmp_path / f"lost-{1 - victim}").read_text()
    assert f"the state after epoch {epoch} is in" in told
    assert "--resume" in told


def test_only_lost_connections_are_taken_for_lost_processes() -> None:
    assert is_lost(RuntimeError("[/gloo/transport/tcp/pair.cc:553] Connection closed by peer"))
    assert not is_lost(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    assert not is_lost(ValueError("gloo"))
