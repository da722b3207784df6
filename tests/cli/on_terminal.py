"""A process on a terminal of its own, in a module that a new process can import by its name."""

from __future__ import annotations

import fcntl
import os
import termios
from collections.abc import Mapping
from pathlib import Path

import torch
from processes import hear_signals

from coopsheaf.cli import main


def train_on_terminal(name: str, folder: Path, words: tuple[str, ...], environment: Mapping[str, str]) -> None:  # fmt: skip
    """Open a terminal, make it ours, and let all three streams be it."""
    hear_signals()
    os.setsid()
    terminal = os.open(name, os.O_RDWR)
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
    for stream in (0, 1, 2):
        os.dup2(terminal, stream)
    torch.set_num_threads(1)
    os.environ.update(environment)
    os.chdir(folder)
    main(words)


def train_share_here(folder: Path, words: tuple[str, ...]) -> None:
    """One process of several that train together; it leaves its exit code."""
    os.chdir(folder)
    rank = os.environ["RANK"]
    for stream in (1, 2):
        os.dup2(os.open(f"said-{rank}.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
    try:
        main(words)
    except SystemExit as end:
        Path(f"code-{rank}").write_text(str(end.code))
