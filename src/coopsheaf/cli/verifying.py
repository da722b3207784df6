"""``coopsheaf bench --verify``: one record, run again."""

from __future__ import annotations

import torch

from coopsheaf.cli import args, show
from coopsheaf.cli.limits import check_threads
from coopsheaf.cli.stopping import stoppable
from coopsheaf.train.data import load_data
from coopsheaf.train.verify import Verdict, find_record, record_recipe, verify_record


def verify(command: args.Bench) -> int:
    if command.recipes or command.splits is not None or command.set:
        raise ValueError("--verify takes its settings from the record; leave out all others")
    assert command.verify is not None
    record = find_record(command.verify)
    recipe = record_recipe(record)
    torch.set_num_threads(check_threads(command.threads or record.threads or 1))
    with show.notice(f"reading {recipe.data.name} ..."):
        dataset = load_data(recipe.data, command.data_dir)
    show.say(
        f"{record.model} on {record.dataset}, split {record.split}, seed {record.seed}: recorded "
        f"{record.metric} {record.test if record.test is not None else '-'} on {record.time or '-'}"
    )
    with stoppable() as stop:
        verdict = verify_record(
            record,
            dataset,
            progress=lambda seed: show.progress(f"seed {seed}"),
            should_stop=stop,
        )
    if verdict is None:
        show.note("stopped; nothing is known")
        return stop.exit_code(command.requeue_exit_code)
    return _conclude(verdict)


def _conclude(verdict: Verdict) -> int:
    for name, then, now in verdict.changes:
        show.say(f"  {name}: {then} then, {now} now")
    if verdict.exact:
        show.say("agrees exactly: the same scores at the same epochs, to the last bit")
        return 0
    scores = ", ".join(f"{score:.4f}" for score in verdict.others)
    low, high = verdict.spread
    show.say(
        f"now {verdict.again:.4f}; with other seeds {scores}: 95 % of seeds lie between {low:.4f} "
        f"and {high:.4f}"
    )
    if verdict.within:
        show.say("agrees within the spread of seeds, not exactly")
        return 0
    raise ValueError("does not agree: the recorded score is outside of what these seeds give")
