"""Kill processes at random moments, start them again, and compare their end with a quiet one.

A process trains a small network and writes its state after every epoch. It is killed with SIGKILL
at a random moment and started again with ``resume=True``, over and over; whenever a run reaches its
end it is compared bit for bit with a run that nobody disturbed, and the next one begins::

    python benchmarks/kill.py --kills 100 --seed 0
    python benchmarks/kill.py --kills 125 --what loop predict pack sweep
    python benchmarks/kill.py --kills 100 --what all
    python benchmarks/kill.py --kills 50 --what train bench sweep torchrun --signals TERM HUP

``loop`` is that; the other names are commands of the program (``kill_commands.py``), ``torchrun``
kills one process of a job of two, ``postgres`` stops the server of a sweep (``kill_server.py``),
``writers`` lets four processes append to one file. With ``--signals`` commands are asked to end
(``endings.py``): then the last finished epoch must have been saved, too.

``README.md`` beside this file has the protocol and the results.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

import torch

from coopsheaf.data.dataset import NodeDataset
from coopsheaf.data.synthetic import contextual_sbm
from coopsheaf.models.registry import make_settings
from coopsheaf.train.checkpoint import load_tensors
from coopsheaf.train.config import TrainConfig
from coopsheaf.train.recipe import Recipe
from coopsheaf.train.run import read_result, read_run_info, run_split

sys.path.insert(0, str(Path(__file__).parent))

import kill_commands
import kill_server
from endings import SIGNALS

WHAT = ["loop", *kill_commands.COMMANDS, "torchrun", "postgres", "writers"]
EPOCHS = 150
SHORTEST, LONGEST = 0.05, 1.0  # seconds from the start of a process to its end


def make_recipe() -> Recipe:
    """Dropout, batch norm and a schedule: everything that has a state of its own."""
    model = make_settings(
        "csnn", hidden_channels=8, num_layers=2, stalk_dim=2, dropout=0.2, norm="batch"
    )
    train = TrainConfig(epochs=EPOCHS, lr=0.02, schedule="plateau", plateau_patience=5, seed=1)
    return Recipe("csnn", model, train=train, name="kill")


def make_dataset() -> NodeDataset:
    return contextual_sbm(200, 4.0, homophily=0.2, num_features=8, signal=1.0)


def train(folder: Path) -> None:
    """Train to the end, from wherever the folder stands."""
    torch.set_num_threads(1)  # the order of sums, and so the last bits, depends on it
    run_split(make_recipe(), make_dataset(), out=folder, resume=True, checkpoint_seconds=0)


def differences(folder: Path, expected: Path) -> list[str]:
    """What is not bit for bit the same in two finished runs."""
    found = []
    result, wanted = (read_result(read_run_info(path)) for path in (folder, expected))
    for name in ("scores", "best_epoch", "epochs", "history"):
        # As text: NaN is equal to itself there, and every bit of a number shows.
        if repr(getattr(result, name)) != repr(getattr(wanted, name)):
            found.append(name)
    tensors, theirs = (load_tensors(path / "model.safetensors")[0] for path in (folder, expected))
    if tensors.keys() != theirs.keys():
        found.append("names of tensors")
    found += [name for name in tensors if not torch.equal(tensors[name], theirs[name])]
    names = sorted(path.name for path in folder.iterdir())
    if names != ["model.safetensors", "run.json"]:
        found.append(f"files left over: {', '.join(names)}")
    return found


def report(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def positive(text: str) -> int:
    if not (text.isdecimal() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"must be a positive integer; got {text!r}")
    return int(text)


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=positive, default=100, help="of each; default: 100")
    parser.add_argument(
        "--what", nargs="+", choices=[*WHAT, "all"], default=["loop"], help="default: loop"
    )
    parser.add_argument(
        "--signals",
        nargs="+",
        choices=list(SIGNALS),
        default=["KILL"],
        help="one of them ends a process: commands and torchrun; default: KILL",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the moments; default: 0")
    return parser.parse_args()


def run(kills: int, seed: int, work: Path) -> bool:
    """Kill and resume in ``work``; prints the verdict and returns whether all was the same."""
    # Processes forked from one that has imported everything start at once.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["coopsheaf.train.run", "coopsheaf.data.synthetic"])
    rng, start = random.Random(seed), time.monotonic()
    expected, folder = work / "quiet", work / "killed"

    def live(folder: Path, seconds: float | None) -> bool:
        """One process; returns whether it was killed."""
        process = context.Process(target=train, args=(folder,))
        process.start()
        process.join(seconds)
        killed = process.is_alive()
        process.kill()
        process.join()
        if not killed and process.exitcode != 0:
            raise SystemExit(f"error: the training process failed, exit code {process.exitcode}")
        return killed

    report("the quiet run ...")
    live(expected, None)
    done = ended = early = torn = 0
    wrong: list[str] = []
    while done < kills or folder.exists() or not ended:
        if live(folder, rng.uniform(SHORTEST, LONGEST) if done < kills else None):
            done += 1
            early += not (folder / "state.safetensors").exists()
            torn += folder.exists() and any(folder.glob(".*.part"))
            if done % 10 == 0:
                report(f"{done} of {kills} kills, {ended} runs ended")
        else:
            ended += 1
            wrong += [f"run {ended}: {what}" for what in differences(folder, expected)]
            shutil.rmtree(folder)
    print(
        f"{'DIFFERENT' if wrong else 'identical'}: {done} kills ({torn} in the middle of writing a "
        f"file, {early} before the first state) over {ended} runs of {EPOCHS} epochs; "
        + ("; ".join(wrong) if wrong else "scores, history and tensors equal bit for bit")
        + f" ({time.monotonic() - start:.0f} s)"
    )
    return not wrong


def main() -> None:
    args = parse_args()
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(prefix="coopsheaf-kill-") as name:
        work = Path(name)
        for what in WHAT if "all" in args.what else args.what:
            if what == "loop":
                wrong += [] if run(args.kills, args.seed, work / "loop") else ["loop"]
            elif what == "writers":
                wrong += kill_commands.four_writers(work)
            elif what == "torchrun":
                wrong += kill_commands.kill_rank(args.kills, args.seed, work, args.signals)
            elif what == "postgres":
                wrong += kill_server.kill_server(args.kills, args.seed, work)
            elif what == "import" and not os.environ.get("COOPSHEAF_DATA"):
                report("import: left out; it needs published files, in $COOPSHEAF_DATA")
            else:
                wrong += kill_commands.kill_command(what, args.kills, args.seed, work, args.signals)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
