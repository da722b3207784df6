"""How much processor time commands take before they begin, beside importing PyTorch and PyG.

Each command is started anew and ended where its own work would begin: ``train`` at its first epoch,
``predict`` and ``evaluate`` at the network's first outputs, ``explain`` where the page is made, the
data read in all cases::

    python benchmarks/startup.py --repeats 7

``README.md`` beside this file has the protocol and the results.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from train_step import positive

BASELINE = "import torch, torch_geometric, time; print(time.process_time())"

# Ends the process with its own processor time once a function is called.
UNTIL = """
import os, sys, time
def end(*arguments, **options):
    os.write(1, f"\\n{{time.process_time()}}".encode())
    os._exit(0)
from importlib import abc, machinery, util
class Watch(abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != {module!r}:
            return None
        sys.meta_path.remove(self)
        spec = util.find_spec(name)
        run = spec.loader.exec_module
        def load(module):
            run(module)
            setattr(module, {function!r}, end)
        spec.loader.exec_module = load
        return spec
sys.meta_path.insert(0, Watch())
from coopsheaf.cli import main
main(sys.argv[1:])
"""

# The command's words, and the module and function where its work begins.
COMMANDS = {
    "train": (["train", "DATASET", "--out", "new"], "coopsheaf.train.loop", "train_epoch"),
    "predict": (["predict", "run", "-o", "out.csv"], "coopsheaf.cli.using", "_logits"),
    "evaluate": (["evaluate", "run"], "coopsheaf.cli.using", "evaluate_feed"),
    "explain": (["explain", "run", "-o", "page.html"], "coopsheaf.cli.explain", "explore"),
}


def cpu_seconds(words: list[str], folder: Path) -> float:
    """What a process says of itself in its last line."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", *words], cwd=folder, env=environment, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return float(done.stdout.split()[-1])


def measure(dataset: str, repeats: int, folder: Path) -> dict[str, list[float]]:
    """Seconds of the imports alone and of every command, in turns."""
    train = [sys.executable, "-m", "coopsheaf", "train", dataset, "--epochs", "1", "--out", "run"]
    subprocess.run(train, cwd=folder, check=True, capture_output=True)
    codes = {"imports": [BASELINE]}
    for name, (words, module, function) in COMMANDS.items():
        code = UNTIL.format(module=module, function=function)
        codes[name] = [code, *(dataset if word == "DATASET" else word for word in words)]
    seconds: dict[str, list[float]] = {name: [] for name in codes}
    for turn in range(-1, repeats):
        for name, words in codes.items():
            (folder / "new" / "run.json").unlink(missing_ok=True)
            taken = cpu_seconds(words, folder)
            if turn >= 0:  # the first turn fills caches
                seconds[name].append(taken)
        print(f"\r{turn + 1}/{repeats}", end="", file=sys.stderr)
    print(file=sys.stderr)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dataset", default="texas")
    parser.add_argument("--repeats", type=positive, default=7)
    parser.add_argument("--json", type=Path, help="append the measurements to this file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        seconds = measure(options.dataset, options.repeats, Path(folder))
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    print("| until | CPU s, median | least | most | times the imports |\n|---|---:|---:|---:|---:|")
    for name, values in seconds.items():
        ratios = [one / base for one, base in zip(values, seconds["imports"], strict=True)]
        middle, ratio = statistics.median(values), statistics.median(ratios)
        print(f"| {name} | {middle:.2f} | {min(values):.2f} | {max(values):.2f} | {ratio:.2f} |")
        if options.json is not None:
            record = {
                "until": name, "dataset": options.dataset, "cpu_s": [round(v, 3) for v in values],
                "median_s": round(middle, 3), "ratio": round(ratio, 3),
            }  # fmt: skip
            with options.json.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
