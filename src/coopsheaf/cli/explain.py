"""``coopsheaf explain``: a page on which a trained run can be explored."""

from __future__ import annotations

from coopsheaf.checks import check_int
from coopsheaf.cli import args, show
from coopsheaf.cli.using import find_data, predicts
from coopsheaf.data import messages
from coopsheaf.data.dataset import NodeDataset
from coopsheaf.files import write_atomically
from coopsheaf.pages.explorer import explore
from coopsheaf.train.run import load_run

PAGE = "explorer.html"


def explain(command: args.Explain) -> int:
    output = command.output or command.run / PAGE
    if output.exists() and not command.force:
        raise ValueError(f"{output}: exists already; use --force to overwrite it")
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
    page = explore(
        run,
        dataset,
        split,
        center=None if command.center is None else _node(dataset, command.center, "--center"),
        hops=command.hops,
        max_nodes=command.max_nodes,
        max_edges=command.max_edges,
        explain=[_node(dataset, name, "--explain") for name in command.explain],
        threshold=command.threshold,
        stage=show.notice,
    )
    content = page.html.encode()
    write_atomically(output, content)
    show.say(
        f"{page.num_nodes:,} nodes and {page.num_edges:,} edges, laid out "
        f"{'as a grid' if page.layout == 'grid' else 'by forces'}"
    )
    for note in page.notes:
        show.say(note)
    show.say(f"page: {output} ({len(content) / 1e6:.1f} MB)")
    show.say(f"open it in a browser: {output.resolve().as_uri()}")
    return 0


def _node(dataset: NodeDataset, name: str, option: str) -> int:
    """The number of a node that is given by name, or by number."""
    if name in dataset.node_ids:
        return dataset.node_ids.index(name)
    if name.isascii() and name.isdecimal() and int(name) < dataset.num_nodes:
        return int(name)
    kind = "a name or a number" if dataset.node_ids else "a number"
    raise ValueError(
        f"{option} must be a node, {kind} from 0 to {dataset.num_nodes - 1}; got "
        f"{messages.show(name)}"
    )
