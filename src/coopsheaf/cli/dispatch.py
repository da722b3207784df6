"""From a parsed command to what does it; errors become one line and exit code 2."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

from coopsheaf.cli import args, stop_writing
from coopsheaf.cli.stopping import interruptible
from coopsheaf.memory import keep_freed_memory
from coopsheaf.train.launch import FirstFailed, find_launch


def run(command: Any) -> int:
    """Carry a command out; returns the exit code."""
    if find_launch().size > 1 and not isinstance(command, args.Train):
        return _fail("torchrun goes with `train` alone; start other commands without it")
    return guarded(lambda: _call(command))


def guarded(work: Callable[[], int]) -> int:
    """Do what a command wants; whatever a user can cause becomes one line and exit code 2."""
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    keep_freed_memory()
    try:
        return work()
    except KeyboardInterrupt:
        sys.stderr.write("coopsheaf: interrupted\n")
        return 130
    except BrokenPipeError:
        return stop_writing()
    except OSError as error:
        name = error.filename2 or error.filename  # of two files, the one that was to be
        where = f"{name}: " if name else ""
        return _fail(f"{where}{error.strerror or error}")
    except ValueError as error:
        return _fail(str(error))
    except FirstFailed:
        return 2
    except RecursionError:
        return _fail("a file is nested too deeply to be read")
    except RuntimeError as error:
        if "memory" not in str(error):
            raise
        return _fail("not enough memory for these settings; make the model or the batch smaller")
    except MemoryError as error:
        return _fail(f"not enough memory ({error})" if str(error) else "not enough memory")


def _fail(message: str) -> int:
    """One line; of several processes each says which it is, since only one may be in trouble."""
    launch = find_launch()
    who = f" (process {launch.rank} of {launch.size})" if launch.size > 1 else ""
    sys.stderr.write(f"coopsheaf: error{who}: {' '.join(message.split())}\n")
    return 2


def _call(command: Any) -> int:
    work = _find(command)  # PyTorch is imported here, where Ctrl-C ends at once
    with interruptible():
        return work(command)


def _find(command: Any) -> Callable[[Any], int]:
    """What carries a command out."""
    if isinstance(command, args.DataCommands):
        from coopsheaf.cli import datasets

        return lambda command: datasets.run(command.command)
    if isinstance(command, args.Models):
        from coopsheaf.cli import reports

        return lambda command: reports.models()
    if isinstance(command, args.Report):
        from coopsheaf.cli import reports

        return reports.report
    if isinstance(command, args.Compare):
        from coopsheaf.cli import compare

        return compare.compare
    if isinstance(command, args.Env):
        from coopsheaf.cli import environment

        return lambda command: environment.show()
    if isinstance(command, args.Explain):
        from coopsheaf.cli import explain

        return explain.explain
    if isinstance(command, args.Export):
        from coopsheaf.cli import export

        return export.export
    if isinstance(command, args.Figures):
        from coopsheaf.cli import figures

        return figures.figures
    if isinstance(command, args.Sweep):
        from coopsheaf.cli import sweep

        return sweep.sweep
    if isinstance(command, args.Bench | args.Train):
        from coopsheaf.cli import training

        return training.bench if isinstance(command, args.Bench) else training.train
    from coopsheaf.cli import using

    return using.evaluate if isinstance(command, args.Evaluate) else using.predict
