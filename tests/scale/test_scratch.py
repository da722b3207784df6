"""Arrays in files: what was written stays, the files do not."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from coopsheaf.scale import scratch
from coopsheaf.scale.scratch import open_scratch

CPU = torch.device("cpu")


def test_letting_go_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "LET_GO", 20)
    times = []
    real = scratch.Scratch._let_go
    monkeypatch.setattr(scratch.Scratch, "_let_go", lambda self: times.append(1) or real(self))
    with open_scratch(tmp_path, 0, CPU) as space:
        one, two = (space.make((100, 3), torch.float64, CPU) for _ in range(2))
        for rows in space.chunks(100, 8):
            one[rows], two[rows] = rows.start, -rows.start
        want = torch.arange(100)[:, None] // 8 * 8
        assert torch.equal(one, want.expand(100, 3).double())
        assert torch.equal(two, -want.expand(100, 3).double())
        assert len(times) == 4  # 24 rows each
        assert len([*tmp_path.rglob("*")]) == 3
        assert space.make((0, 3), torch.float32, CPU).shape == (0, 3)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("room", [True, False], ids=["room", "no room"])
def test_what_would_fill_the_memory_goes_into_files(
    room: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scratch, "machine_bytes", lambda: 4000)
    monkeypatch.setattr(scratch.tempfile, "gettempdir", lambda: str(tmp_path))
    usage = type("Usage", (), {"free": 10_000 if room else 0})
    monkeypatch.setattr(scratch.shutil, "disk_usage", lambda folder: usage)
    for size, expected in ((1000, False), (1001, room)):
        with open_scratch(None, size, CPU) as space:
            assert (space.folder is not None) == expected
            assert bool([*tmp_path.iterdir()]) == expected
    with open_scratch(None, 1001, torch.device("meta")) as space:
        assert space.folder is None


def test_files_are_for_the_cpu(tmp_path: Path) -> None:
    with (
        pytest.raises(ValueError, match="`scratch` goes with a model on the CPU; it is on meta"),
        open_scratch(tmp_path, 0, torch.device("meta")) as space,
    ):
        space.make((2,), torch.float32, torch.device("meta"))
