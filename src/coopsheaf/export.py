"""A trained run as one file that runs where this library is not installed.

Two kinds of file, by their ending:

* ``.pt2``: a program of PyTorch's own operations; needs PyTorch alone;
* ``.onnx``: for runtimes such as onnxruntime; needs no PyTorch.

Both take ``x`` ``(n, features)``, ``edge_index`` ``(2, m)`` and, if the run was trained with them,
``edge_weight`` ``(m,)`` and, by its name, ``edge_attr`` ``(m, edge features)``, for any n and m,
and return ``(n, outputs)``; a run on whole graphs takes one graph and returns ``(1, outputs)``.
What the numbers mean is in the file, as JSON
(:func:`describe_run`): ``extra_files["coopsheaf.json"]`` of a ``.pt2``, and the entry ``coopsheaf``
of the metadata of an ``.onnx``.
"""

from __future__ import annotations

import io
import json
import logging
import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

import coopsheaf
from coopsheaf.checks import check_choice
from coopsheaf.data.tables.columns.encoding import FeatureEncoder
from coopsheaf.extras import load_extra
from coopsheaf.files import write_atomically
from coopsheaf.models.registry import find_model
from coopsheaf.sheaves.edge_list import EdgeList
from coopsheaf.sheaves.kernels.diagonal import compose_inverse_sqrt
from coopsheaf.train.decisions import Decision
from coopsheaf.train.run import Run

METADATA = "coopsheaf.json"  # in a .pt2
KEY = "coopsheaf"  # in an .onnx

# A program that is further off than this, relative to the largest output, is not written.
TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-8}


class Exported(NamedTuple):
    """A file that was written, and how far off its outputs were on a graph of another size."""

    path: Path
    deviation: float


def export_run(run: Run, path: Path) -> Exported:
    """Write a run's network to ``path``, a ``.pt2`` or an ``.onnx`` file.

    Before the file is there, the program is run on a graph of another size than the one that it was
    made with, and compared with the network.
    """
    write = check_choice("the ending of the file", path.suffix, _FORMATS)
    program = make_program(run)
    content, call = write(program, describe_run(run))
    example = _example(run, nodes=11, seed=1)
    with torch.no_grad():
        wanted = run.model(*example.arguments, **example.named)
    deviation = ((call(example) - wanted).abs().max() / wanted.abs().max().clamp(min=1e-30)).item()
    if not deviation <= TOLERANCE[wanted.dtype]:
        raise ValueError(
            f"{path}: not written, since its outputs would differ from the network's by "
            f"{deviation:.1e} of the largest; choose another format"
        )
    write_atomically(path, content)
    return Exported(path, deviation)


class _Portable(nn.Module):
    """A network that takes plain tensors and asks for no operator of this library."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        *,
        edge_attr: Tensor | None = None,
    ) -> Tensor:
        inputs = {"edge_weight": edge_weight, "edge_attr": edge_attr}
        return self.model(x, EdgeList(edge_index, x.shape[0]), **inputs)


class _Example(NamedTuple):
    """What a network is called with."""

    arguments: tuple[Tensor, ...]  # x, edge_index and perhaps edge_weight
    named: dict[str, Tensor]  # perhaps edge_attr


def make_program(run: Run) -> ExportedProgram:
    """The run's network as a graph of PyTorch's own operations, any number of nodes and edges."""
    if run.info["level"] == "link":
        raise ValueError(
            "the run predicts links, and a program takes a graph and no pairs; "
            "coopsheaf.predict_links scores them"
        )
    if run.info.get("pe_channels"):
        raise ValueError(
            "the run uses places of nodes, and a program takes none; train one without `data.pe`"
        )
    info = find_model(run.info["model"])
    if not info.find_network().exportable:
        raise ValueError(
            f"{info.name} cannot be exported: a program is for graphs of all sizes and without "
            f"preparation, and {info.find_network().why_not_exportable}; use the run itself"
        )
    if run.recipe.model.of_one_graph:
        raise ValueError(
            f"{info.name} with `structure` cannot be exported: a program is for graphs of all "
            "sizes, and this network knows every node of one graph; use the run itself"
        )
    inputs, named = _example(run, nodes=7, seed=0)
    rows, names = {0: Dim.DYNAMIC}, ("x", "edge_index", "edge_weight")[: len(inputs)]
    sizes = {**dict.fromkeys((*names, *named), rows), "edge_index": {1: Dim.DYNAMIC}}
    try:
        with _quiet(), torch.no_grad():
            program = torch.export.export(
                _Portable(run.model.eval()), inputs, named, dynamic_shapes=sizes, strict=False
            )
            program = _decompose(program, _OWN)
    except Exception as error:
        raise _cannot(run, "be exported", error) from error
    assert not {name for name in _operations(program) if name.startswith("coopsheaf")}
    return program


def uses_weights(run: Run) -> bool:
    """Whether a run was trained with edge weights."""
    known = run.info.get("edge_weights")
    return bool((run.info.get("tables") or {}).get("weight") if known is None else known)


def describe_run(run: Run) -> dict[str, Any]:
    """What goes beside the program: plain values that say what comes in and what goes out."""
    info = run.info
    dtype = str(next(run.model.parameters()).dtype).removeprefix("torch.")
    inputs = {
        "x": {"shape": ["n", info["in_channels"]], "dtype": dtype},
        "edge_index": {"shape": [2, "m"], "dtype": "int64", "rows": ["source", "target"]},
    }
    if uses_weights(run):
        inputs["edge_weight"] = {"shape": ["m"], "dtype": dtype}
    if info.get("edge_channels"):
        inputs["edge_attr"] = {"shape": ["m", info["edge_channels"]], "dtype": dtype}
    rows = 1 if info["level"] == "graph" else "n"
    stored = info.get("encoder")
    encoder = None if stored is None else FeatureEncoder.from_json(stored)
    return {
        "coopsheaf": coopsheaf.__version__,
        "model": info["model"],
        "dataset": info["dataset"],
        "config_hash": info["config_hash"],
        "level": info["level"],
        "task": run.task.kind,
        "inputs": inputs,
        "outputs": {"shape": [rows, info["out_channels"]], "dtype": dtype},
        "meaning": _MEANINGS[run.task.kind],
        "class_names": list(run.class_names),
        **_decision(run),
        "feature_names": [] if encoder is None else list(encoder.feature_names),
        "encoder": stored,
        "prepare": _how_to_prepare(run),
    }


def _decision(run: Run) -> dict[str, Any]:
    """How a run came to decide; outputs of exported programs are as the network gives them."""
    decision = run.decision
    if decision == Decision():
        return {}
    how = "probabilities are those of scale * output + shift"
    if run.task.kind == "binary":
        how += "; the second class is predicted where its probability is above threshold"
    return {"decision": {**decision.to_plain(), "meaning": how}}


_MEANINGS = {
    "binary": "one logit per row: the sigmoid is the probability of the second class",
    "multiclass": "one logit per class: their softmax is the probabilities",
    "multilabel": "one logit per label: the sigmoid of each is its probability",
    "regression": "the predictions themselves, in the units of the targets",
}


def _how_to_prepare(run: Run) -> list[str]:
    """How x and edge_index are made, a sentence each."""
    done, tables = run.info["processing"], run.info.get("tables")
    steps = [
        f"edges: direction {done['direction']}, self-loops {done['self_loops']}; every row of "
        "edge_index[0] is where an edge comes from, of edge_index[1] where it goes"
    ]
    if tables is None:
        return [f"features: {done['features']}", *steps]
    if tables["undirected"]:
        steps.append("every edge is there both ways")
    return [
        "a numeric column is (value - mean) / std, 0 where it is missing or std is 0, and is "
        "followed by a column of 1 where it is missing if `indicator` says so",
        "`format` of a numeric column says how its texts are read; true and false are 1 and 0",
        "a time column is its days since 1970 like a number, then sine and cosine of its place in "
        "the week (Monday first), the year (of 365.25 days) and, if `clock` says so, the day",
        "a categorical column is one column per category, then one for others, one for missing",
        "hashed and words columns are as coopsheaf.data.tables.columns.hashing says",
        *steps,
    ]


def _example(run: Run, *, nodes: int, seed: int) -> _Example:
    """Inputs that every network takes: edges go both ways, and the last node has none."""
    rng = torch.Generator().manual_seed(seed)
    dtype = next(run.model.parameters()).dtype
    x = torch.randn(nodes, run.info["in_channels"], generator=rng, dtype=dtype)
    ring = torch.arange(nodes - 1)
    there = torch.stack([ring, (ring + 1) % (nodes - 1)])
    edge_index = torch.cat([there, there.flip(0)], dim=1)
    coded = getattr(run.recipe.model, "encoder", None) == "atoms"
    if coded:  # 0 and 1 are codes of every column
        x = (x > 0).to(dtype)
    arguments: tuple[Tensor, ...] = (x, edge_index)
    named = {}
    if uses_weights(run):
        weight = 0.5 + torch.rand(nodes - 1, generator=rng, dtype=dtype)
        arguments = (*arguments, weight.repeat(2))
    if channels := run.info.get("edge_channels", 0):
        m = edge_index.shape[1]
        attr = torch.randn(m, channels, generator=rng, dtype=dtype)
        named["edge_attr"] = (attr > 0).to(dtype) if coded else attr
    return _Example(arguments, named)


def _cannot(run: Run, what: str, error: Exception) -> ValueError:
    reason = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return ValueError(f"{run.info['model']} with these settings cannot {what} ({reason[:200]})")


# Operators that other programs do not know, written out.

_Table = dict[Any, Callable[..., Any]]


def _at_reverse(values: Tensor, partner: Tensor) -> Tensor:
    return values.index_select(0, partner)


def _solve(matrix: Tensor, right: Tensor, *, left: bool = True) -> Tensor:
    """A⁻¹ B by elimination without a search for pivots, ``(..., d, d)`` both.

    For what the Cayley transform solves: A = I minus a skew matrix, whose pivots are at least 1.
    """
    assert left
    d = matrix.shape[-1]
    work = torch.cat([matrix, right.expand_as(matrix)], dim=-1)  # (..., d, 2d)
    row_number = torch.arange(d, device=matrix.device).unsqueeze(1)
    for k in range(d):
        row = work[..., k : k + 1, :] / work[..., k : k + 1, k : k + 1]
        work = torch.where(row_number == k, row, work - work[..., k : k + 1] * row)
    return work[..., d:]


def _matrix_exp(matrix: Tensor) -> Tensor:
    """eᴬ by scaling and squaring, for entries of at most 1 in size, ``(..., d, d)``."""
    d = matrix.shape[-1]
    squarings = math.ceil(math.log2(max(2, d))) + 2
    scaled, eye = matrix / 2**squarings, torch.eye(d, dtype=matrix.dtype, device=matrix.device)
    out = eye.expand_as(matrix)
    for k in range(12, 0, -1):  # Taylor's sum, innermost term first
        out = eye + scaled @ out / k
    for _ in range(squarings):
        out = out @ out
    return out


def _sort(values: Tensor, *, stable: bool, dim: int = -1, descending: bool = False) -> Any:
    """In ONNX the first of equals comes first, as in a stable sort."""
    return torch.topk(values, values.shape[dim], dim, largest=descending)


_OWN: dict[str, Callable[..., Any]] = {
    "coopsheaf.at_reverse.default": _at_reverse,
    "coopsheaf.inverse_sqrt.default": compose_inverse_sqrt,
}
_FOR_ONNX: dict[str, Callable[..., Any]] = {
    "aten.linalg_solve.default": _solve,
    "aten.linalg_matrix_exp.default": _matrix_exp,
    "aten.sort.stable": _sort,
}


def _operations(program: ExportedProgram) -> dict[str, Any]:
    """The operators of a program by name."""
    nodes = program.graph.nodes
    return {str(node.target): node.target for node in nodes if node.op == "call_function"}


def _decompose(program: ExportedProgram, known: dict[str, Callable[..., Any]]) -> ExportedProgram:
    """Write out those operators of a program that are in a table; nothing else is touched."""
    found = _operations(program)
    table: _Table = {found[name]: write for name, write in known.items() if name in found}
    return program.run_decompositions(table) if table else program


# Formats: from a program to the bytes of a file, and a function that runs it.

_Call = Callable[[_Example], Tensor]


def _write_pt2(program: ExportedProgram, about: dict[str, Any]) -> tuple[bytes, _Call]:
    stream = io.BytesIO()
    with _quiet():
        torch.export.save(program, stream, extra_files={METADATA: json.dumps(about)})
    module = program.module()
    return stream.getvalue(), lambda given: module(*given.arguments, **given.named).detach()


def _write_onnx(program: ExportedProgram, about: dict[str, Any]) -> tuple[bytes, _Call]:
    why = ("an .onnx file needs", "; a .pt2 file needs nothing")
    onnxruntime = load_extra("onnxruntime", *why)
    load_extra("onnxscript", *why)  # torch.onnx asks for it
    names = [*about["inputs"]]
    try:
        with _quiet(), torch.no_grad():
            made = torch.onnx.export(
                _decompose(program, _FOR_ONNX),
                dynamo=True,
                verbose=False,
                input_names=names,
                output_names=["output"],
            )
    except Exception as error:
        raise ValueError(
            f"{about['model']} with these settings cannot become ONNX: {_why_not_onnx(error)}; "
            "export a .pt2 instead"
        ) from error
    assert made is not None
    for node in made.model.graph.all_nodes():
        node.metadata_props.clear()  # where in our sources it came from
    made.model.metadata_props[KEY] = json.dumps(about)
    content: bytes = made.model_proto.SerializeToString()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])

    def call(given: _Example) -> Tensor:
        values = (value.numpy() for value in (*given.arguments, *given.named.values()))
        return torch.from_numpy(session.run(None, dict(zip(names, values, strict=True)))[0])

    return content, call


def _why_not_onnx(error: BaseException) -> str:
    """The operator that ONNX lacks, if PyTorch's error names one; else how its causes begin."""
    cause: BaseException | None = error
    while cause is not None:
        for word in str(cause).replace("'", " ").replace(">", " ").split():
            if word.startswith("aten."):
                return f"it has no {word.split('(')[0]}"
        error, cause = cause, cause.__cause__
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the advice that exporters have for those who wrote the network."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


_Writer = Callable[[ExportedProgram, dict[str, Any]], tuple[bytes, _Call]]
_FORMATS: dict[str, _Writer] = {".pt2": _write_pt2, ".onnx": _write_onnx}
