"""``coopsheaf export``: a trained run as one file that runs without this library."""

from __future__ import annotations

from coopsheaf.cli import args, show
from coopsheaf.export import describe_run, export_run
from coopsheaf.train.run import load_run


def export(command: args.Export) -> int:
    if command.output.exists() and not command.force:
        raise ValueError(f"{command.output}: exists already; use --force to overwrite it")
    run = load_run(command.run)
    with show.notice(f"exporting {run.info['model']} ..."):
        done = export_run(run, command.output)
    about = describe_run(run)
    for name, what in {**about["inputs"], "output": about["outputs"]}.items():
        shape = ", ".join(str(size) for size in what["shape"])
        show.say(f"{name}: {what['dtype']} ({shape})")
    show.say(f"  {about['meaning']}")
    show.say(
        f"model: {done.path} ({done.path.stat().st_size / 1e6:.2f} MB), within "
        f"{done.deviation:.0e} of the run's own outputs"
    )
    return 0
