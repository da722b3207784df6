"""Whoever types the name of a setting as an option is told how to set it."""

from __future__ import annotations

import pytest
from cli.program import Program

from coopsheaf.cli.hints import settings_meant


@pytest.mark.parametrize(
    ("words", "hints"),
    [
        (("train", "texas", "--lr", "0.1"), ["--lr is a setting: --set train.lr=0.1"]),
        (("train", "texas", "--lr=0.1"), ["--lr is a setting: --set train.lr=0.1"]),
        (("train", "texas", "--stalk-dim"), ["--stalk-dim is a setting: --set model.stalk_dim=VALUE"]),
        (("train", "texas", "--model", "gat", "--num-heads", "4"), ["--num-heads is a setting: --set model.num_heads=4"]),
        (("bench", "gat/texas", "--num-heads", "4"), ["--num-heads is a setting: --set model.num_heads=4"]),
        (("sweep", "texas", "--direction", "stored"), ["--direction is a setting: --set data.direction=stored"]),
        (("train", "texas", "--nonsense"), []),
        (("predict", "run", "--lr", "0.1"), []),
        ((), []),
    ],
)  # fmt: skip
def test_what_was_meant(words: tuple[str, ...], hints: list[str]) -> None:
    assert list(settings_meant(words)) == [f"coopsheaf: {hint}" for hint in hints]


def test_it_is_said(program: Program) -> None:
    done = program("train", "texas", "--lr", 0.1)
    assert done.code == 2
    assert done.err.endswith("coopsheaf: --lr is a setting: --set train.lr=0.1\n")
    assert "is a setting" not in program("train", "--help").err


def test_a_setting_without_its_section(program: Program) -> None:
    error = program("train", "texas", "--set", "lr=0.1").error
    assert error.endswith("with a section of model, data, train, batch (did you mean train.lr?)")
    error = program("train", "texas", "--model", "cssn").error
    assert "(did you mean 'csnn'" in error
