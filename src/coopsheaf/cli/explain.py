"""``coopsheaf explain``: a page on which a trained run can be explored."""

from __future__ import annotations

from coopsheaf.analysis.explain_run import find_node
from coopsheaf.analysis.importance import WHERE, ColumnImportance, column_importance
from coopsheaf.checks import check_int
from coopsheaf.cli import args, show
from coopsheaf.cli.using import find_data, predicts
from coopsheaf.data import messages
from coopsheaf.data.dataset import NodeDataset
from coopsheaf.files import write_atomically
from coopsheaf.pages.explorer import explore
from coopsheaf.pages.explorer.reasons import Reasons
from coopsheaf.train.run import load_run

ROWS = 30  # of importance, in the terminal
PAGE = "explorer.html"
LAYOUTS = {"grid": "as a grid", "rings": "around the centre", "forces": "by forces"}


def explain(command: args.Explain) -> int:
    output = command.output or command.run / PAGE
    if output.exists() and not command.force:
        raise ValueError(f"{output}: exists already; use --force to overwrite it")
    check_int("--repeats", command.repeats, minimum=1)
    check_int("--max-nodes", command.max_nodes, minimum=1)
    check_int("--max-edges", command.max_edges, minimum=0)
    if command.hops is not None:
        check_int("--hops", command.hops, minimum=0)
        if command.center is None:
            raise ValueError("--hops goes with --center, the node to count from")
    run = load_run(command.run)
    if run.info["level"] != "node":
        raise ValueError(f"{command.run}: {predicts(run)}; explain takes node tasks only")
    with show.notice(f"reading {run.info['dataset']} ..."):
        dataset, split = find_data(run, command, labelled=True)
    assert isinstance(dataset, NodeDataset)
    importance = None
    if command.importance is not None:
        times = f"{command.repeats} times each" if command.repeats > 1 else "once each"
        with show.counting(f"columns shuffled, {times}") as report:
            importance = column_importance(
                run,
                dataset,
                split,
                part=command.importance,
                repeats=command.repeats,
                report=report,
            )
    page = explore(
        run,
        dataset,
        split,
        center=None if command.center is None else find_node("--center", dataset, command.center),
        hops=command.hops,
        max_nodes=command.max_nodes,
        max_edges=command.max_edges,
        explain=[find_node("--explain", dataset, name) for name in command.explain],
        importance=importance,
        threshold=command.threshold,
        stage=show.notice,
    )
    content = page.html.encode()
    write_atomically(output, content)
    show.say(
        f"{page.num_nodes:,} nodes and {page.num_edges:,} edges, laid out {LAYOUTS[page.layout]}"
    )
    for note in page.notes:
        show.say(note)
    for reasons in page.reasons:
        _say_why(reasons, dataset)
    if importance is not None:
        _say_importance(importance)
    show.say(f"page: {output} ({len(content) / 1e6:.1f} MB)")
    show.say(f"open it in a browser: {output.resolve().as_uri()}")
    return 0


def _say_why(reasons: Reasons, dataset: NodeDataset) -> None:
    """The columns that moved a prediction, a node's own and its neighbours'."""
    node = reasons.why.node
    name = messages.show(dataset.node_ids[node]) if dataset.node_ids else str(node)
    show.say()
    show.say(f"why {name}: {reasons.score} is {reasons.why.value:+.4g}")
    rows = []
    for part, found in reasons.columns.items():
        for row in found:
            parts = [part for part in (row.diffusion, row.learners) if part is not None]
            numbers = [f"{value:+.4g}" for value in (row.attribution, *parts, row.muted)]
            rows.append([part, _short(row.name), _short(row.value), *numbers])
    learned = ["diffusion", "learners"] if reasons.why.diffusion is not None else []
    if rows:
        show.table(["whose", "column", "value", "attribution", *learned, "muted"], rows)
    else:
        show.say("no column moves it")


def _say_importance(found: ColumnImportance) -> None:
    """By how much the score falls without each column."""
    show.say()
    show.say(
        f"{found.label} on {WHERE[found.part]} is {found.score:.4f}; by how much it gets worse "
        f"when a column is shuffled (mean and deviation of {found.drops.shape[1]}):"
    )
    rows = found.rows(ROWS)
    show.table(found.header, [[_short(row[0]), *row[1:]] for row in rows])
    if len(found.names) > len(rows):
        show.say(f"and {len(found.names) - len(rows):,} more columns")


def _short(text: str) -> str:
    """A name or a cell in a table of the terminal: on one line, and not too long."""
    return text if text.isprintable() and len(text) <= 40 else messages.show(text)
