"""Exported runs: plain programs, the same numbers, for graphs of any size, without the library."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
import pytest
import torch
from cli.program import SMALL as SMALL_WORDS
from cli.program import Program, write_tables
from graphs import generator
from models.test_all import SMALL
from torch import Tensor
from train.small import graph_dataset, node_dataset, recipe

from coopsheaf import CSNN
from coopsheaf.data.dataset import Processing
from coopsheaf.export import (
    _FOR_ONNX,
    KEY,
    METADATA,
    _matrix_exp,
    _solve,
    describe_run,
    export_run,
    make_program,
)
from coopsheaf.models.registry import make_model
from coopsheaf.nn.learners import LEARNERS
from coopsheaf.sheaves.edge_list import EdgeList
from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.orthogonal import ORTHOGONAL, SCALES
from coopsheaf.train.run import Run, load_run, run_split, save_run
from coopsheaf.train.task import Task

F_IN, OUT = 5, 3

# Nodes and undirected pairs, none of them what a program is made with; many nodes are isolated.
SIZES = [(4, 2), (23, 60), (40, 9), (6, 0)]


def graph(n: int, pairs: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Features, and edges that go both ways, without loops."""
    rng = generator(seed)
    ends = torch.randint(0, n, (2, pairs), generator=rng)
    ends = ends[:, ends[0] != ends[1]]
    edges = torch.unique(torch.cat([ends, ends.flip(0)], dim=1), dim=1)
    return torch.randn(n, F_IN, generator=rng), edges


def odd_graph() -> tuple[Tensor, Tensor]:
    """One way only, with a loop, parallel edges and a node that has none."""
    edges = torch.tensor([[0, 0, 0, 2, 3, 3], [1, 1, 2, 2, 1, 0]])
    return torch.randn(5, F_IN, generator=generator(3)), edges


def as_run(model: torch.nn.Module, *, name: str = "csnn", weights: bool = False) -> Run:
    info = {
        "in_channels": F_IN, "out_channels": OUT, "level": "node", "model": name, "dataset": "own",
        "config_hash": "0", "edge_weights": weights,
        "processing": asdict(Processing("stored", "keep", "raw")),
    }  # fmt: skip
    made = recipe()
    return Run(model.eval(), made, Task("multiclass", "accuracy"), ("a", "b", "c"), info)


def small_csnn(**options: Any) -> CSNN:
    torch.manual_seed(0)
    model = CSNN(F_IN, 3, 1, OUT, **{"stalk_dim": 3, "learner_channels": 4, **options})
    with torch.no_grad():  # away from where learners start
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def open_onnx(path: Path) -> Any:
    session = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])

    def call(*inputs: Tensor) -> Tensor:
        names = [entry.name for entry in session.get_inputs()]
        assert names == ["x", "edge_index", "edge_weight"][: len(inputs)]
        values = (value.numpy() for value in inputs)
        return torch.from_numpy(session.run(None, dict(zip(names, values, strict=True)))[0])

    return call


def check(call: Any, model: torch.nn.Module, *inputs: Tensor, tolerance: float = 2e-6) -> None:
    """The same up to this share of the largest output: each side is off by up to 5e-7 by itself."""
    x, edge_index, *weight = inputs
    with torch.no_grad():
        want = model(x, edge_index, edge_weight=weight[0] if weight else None)
    got = call(*inputs)
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    assert (got - want).abs().max() <= tolerance * want.abs().max()


# Every learner, every kind of orthogonal maps, every scale and both semantics at least once.
KINDS: list[dict[str, Any]] = [
    {"learner": "mlp", "orthogonal": "householder"},
    {"learner": "sage-graph-norm", "orthogonal": "cayley", "scale": "softplus"},
    {"learner": "sage-node-norm", "orthogonal": "matrix-exponential", "scale": "unit"},
    {"learner": "sage-projected", "orthogonal": "euler", "norm": "layer"},
    {
        "learner": "sage-embedded",
        "orthogonal": "identity",
        "scale": "rectified",
        "semantics": "released",
    },
]


def test_every_kind_is_tried() -> None:
    for name, known in (("learner", LEARNERS), ("orthogonal", ORTHOGONAL), ("scale", SCALES)):
        assert {options.get(name, "exp") for options in KINDS} == set(known)


@pytest.mark.thorough
@pytest.mark.parametrize("options", KINDS, ids=lambda options: "-".join(map(str, options.values())))
def test_csnn_of_every_kind_as_onnx_and_as_a_program(
    options: dict[str, Any], tmp_path: Path
) -> None:
    model = small_csnn(**options)
    run = as_run(model)
    program = make_program(run).module()
    export_run(run, tmp_path / "model.onnx")
    call = open_onnx(tmp_path / "model.onnx")
    for inputs in (*(graph(*size) for size in SIZES), odd_graph()):
        check(program, model, *inputs)
        check(call, model, *inputs)


# Compilers take seconds for each: most only in the thorough tests.
FEW = ("mlp", "gat-plain", "nsd-diag", "bunn", "cognn")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in FEW else pytest.mark.thorough)
        for name in SMALL
        if name != "csnn"
    ],
)
def test_every_network_as_a_program(name: str) -> None:
    torch.manual_seed(0)
    model = make_model(name, F_IN, OUT, num_nodes=7, **SMALL[name][0])
    if not model.exportable:
        with pytest.raises(ValueError, match=rf"{re.escape(name)} cannot be exported: a program"):
            make_program(as_run(model, name=name))
        return
    program = make_program(as_run(model, name=name)).module()
    for size in SIZES:
        check(program, model, *graph(*size))


# One of each family, and how its layers see edges: sums, means, attention, edge maps.
AS_ONNX = ("mlp", "gcn-plain", "gat-plain", "gat-sep", "gt", "nsd-diag", "snn", "bunn", "cognn")


@pytest.mark.thorough
@pytest.mark.parametrize("name", AS_ONNX)
def test_networks_of_every_family_as_onnx(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = make_model(name, F_IN, OUT, **SMALL[name][0])
    export_run(as_run(model, name=name), tmp_path / "model.onnx")
    # In single precision BuNN itself is off by 1.9e-6 here, the others by less than 5e-7.
    tolerance = 4e-6 if name == "bunn" else 2e-6
    for size in SIZES:
        check(open_onnx(tmp_path / "model.onnx"), model, *graph(*size), tolerance=tolerance)


@pytest.mark.parametrize("d", [1, 2, 3, 5, 8])
def test_what_is_written_out_for_onnx_is_exact(d: int) -> None:
    """Up to the edge of what tanh lets through."""
    entries = 2 * torch.rand(200, d, d, generator=generator(d), dtype=torch.float64) - 1
    skew = entries.tril(-1)
    skew[0] = skew[0].sign()
    skew, eye = skew - skew.mT, torch.eye(d, dtype=torch.float64)
    got, want = (
        _solve(eye - skew / 2, eye + skew / 2),
        torch.linalg.solve(eye - skew / 2, eye + skew / 2),
    )
    assert (got - want).abs().max() < 1e-14
    assert (_matrix_exp(skew) - torch.linalg.matrix_exp(skew)).abs().max() < 1e-13


@pytest.mark.thorough
def test_what_onnx_does_not_have_is_said_in_one_line(tmp_path: Path) -> None:
    model = make_model("nsd-general", F_IN, OUT, **SMALL["nsd-general"][0])
    with pytest.raises(ValueError, match=r"nsd-general with these settings cannot become ONNX: it has no aten.*eigh.*; export a .pt2 instead"):  # fmt: skip
        export_run(as_run(model, name="nsd-general"), tmp_path / "model.onnx")
    assert not (tmp_path / "model.onnx").exists()


@pytest.mark.parametrize("ending", ["pt2", "onnx"])
def test_edge_weights_are_an_input_if_the_run_had_them(ending: str, tmp_path: Path) -> None:
    model = small_csnn()
    run = as_run(model, weights=True)
    export_run(run, tmp_path / f"model.{ending}")
    if ending == "onnx":
        call = open_onnx(tmp_path / "model.onnx")
    else:
        call = torch.export.load(tmp_path / "model.pt2").module()
    x, edges = odd_graph()
    weight = torch.rand(edges.shape[1], generator=generator(1))
    check(call, model, x, edges, weight)
    assert list(describe_run(run)["inputs"]) == ["x", "edge_index", "edge_weight"]


@pytest.mark.parametrize(("ending", "weights"), [("pt2", True), ("onnx", False)])
def test_features_of_edges_are_an_input_by_name(ending: str, weights: bool, tmp_path: Path) -> None:
    model = small_csnn(edge_channels=2)
    run = as_run(model, weights=weights)
    run.info["edge_channels"] = 2
    path = tmp_path / f"model.{ending}"
    export_run(run, path)
    x, edges = odd_graph()
    attr = torch.randn(edges.shape[1], 2, generator=generator(2))
    given = (x, edges, torch.rand(edges.shape[1], generator=generator(1)))[: 2 + weights]
    with torch.no_grad():
        want = model(*given, edge_attr=attr)
    if ending == "pt2":
        got = torch.export.load(path).module()(*given, edge_attr=attr).detach()
    else:
        session = onnxruntime.InferenceSession(path.read_bytes())
        names = ("x", "edge_index", "edge_weight")[: 2 + weights]
        values = dict(zip((*names, "edge_attr"), (*given, attr), strict=True))
        got = torch.from_numpy(session.run(None, {k: v.numpy() for k, v in values.items()})[0])
    torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-6)
    assert describe_run(run)["inputs"]["edge_attr"] == {"shape": ["m", 2], "dtype": "float32"}


# Another Python on whose path the library is not: neither it nor PyG can be imported.
ELSEWHERE = """
import json, sys
sys.modules["coopsheaf"] = sys.modules["torch_geometric"] = None
import torch
path, = sys.argv[1:]
files = {"coopsheaf.json": ""}
program = torch.export.load(path, extra_files=files)
names = {str(node.target) for node in program.graph.nodes if node.op == "call_function"}
assert not [name for name in names if "coopsheaf" in name], names
about = json.loads(files["coopsheaf.json"])
call = program.module()
outputs = [call(torch.tensor(x), torch.tensor(e).reshape(2, -1).long()).tolist() for x, e in json.load(sys.stdin)]
assert not [name for name in sys.modules if name.startswith("coopsheaf.")]
print(json.dumps([about, outputs]))
"""


def call_elsewhere(path: Path, graphs: list[tuple[Tensor, Tensor]]) -> tuple[dict, list[Tensor]]:
    words = [sys.executable, "-c", ELSEWHERE, str(path)]
    given = json.dumps([[x.tolist(), edges.tolist()] for x, edges in graphs])
    done = subprocess.run(words, input=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    about, outputs = json.loads(done.stdout)
    return about, [torch.tensor(value) for value in outputs]


def test_a_program_runs_where_the_library_is_not_installed(tmp_path: Path) -> None:
    model = small_csnn(learner="sage-projected")
    run = as_run(model)
    export_run(run, tmp_path / "model.pt2")
    graphs = [*(graph(*size) for size in SIZES), odd_graph()]
    about, outputs = call_elsewhere(tmp_path / "model.pt2", graphs)
    assert about == describe_run(run)
    for inputs, got in zip(graphs, outputs, strict=True):
        check(lambda *_, got=got: got, model, *inputs)


@pytest.mark.thorough
def test_a_regression_is_in_the_units_of_its_targets(tmp_path: Path) -> None:
    data = node_dataset(task="regression")
    data = replace(data, y=1000 + 50 * data.y)
    run, _ = run_split(recipe(epochs=2).set("model.num_layers=1"), data)
    for ending in ("pt2", "onnx"):
        assert export_run(run, tmp_path / f"model.{ending}").deviation < 1e-6
    _, (got,) = call_elsewhere(tmp_path / "model.pt2", [(data.x, data.edge_index)])
    assert 900 < got.mean() < 1100
    check(lambda *_: got, run.model, data.x, data.edge_index)
    check(open_onnx(tmp_path / "model.onnx"), run.model, data.x, data.edge_index)
    assert describe_run(run)["meaning"].endswith("in the units of the targets")


def test_a_run_on_whole_graphs_takes_one_graph(tmp_path: Path) -> None:
    data = graph_dataset()
    run, _ = run_split(recipe(epochs=1).set("model.num_layers=1"), data)
    export_run(run, tmp_path / "model.onnx")
    one = data.graphs[0]
    assert describe_run(run)["outputs"]["shape"] == [1, 2]
    check(open_onnx(tmp_path / "model.onnx"), run.model, one.x, one.edge_index)


def test_double_precision_stays(tmp_path: Path) -> None:
    run, _ = run_split(recipe(epochs=1, precision="64"), node_dataset())
    assert export_run(run, tmp_path / "model.pt2").deviation < 1e-14
    assert describe_run(run)["inputs"]["x"]["dtype"] == "float64"


def test_a_file_that_would_be_wrong_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(_FOR_ONNX, "aten.linalg_matrix_exp.default", lambda matrix: matrix + 1)
    run = as_run(small_csnn(orthogonal="matrix-exponential"))
    with pytest.raises(ValueError, match="not written, since its outputs would differ"):
        export_run(run, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_another_ending_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"the ending of the file.*\.pt2.*\.onnx.*got '\.txt'"):
        export_run(as_run(small_csnn()), tmp_path / "model.txt")


def test_without_onnx_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ValueError, match=r"pip install 'coopsheaf\[export\]'; a .pt2 file needs"):
        export_run(as_run(small_csnn()), tmp_path / "model.onnx")


def test_an_edge_list_is_the_same_graph() -> None:
    _, edges = odd_graph()
    plain, sorted_graph = EdgeList(edges, 5), Graph(edges, 5)
    for got, want in ((plain, sorted_graph), (plain.reverse(), sorted_graph.reverse())):
        assert got.num_nodes == 5
        assert torch.equal(got.in_degree, want.in_degree)
        assert torch.equal(got.out_degree, want.out_degree)
        assert torch.equal(got.edge_index, want.edge_index)
    loops = plain.with_self_loops()
    assert torch.equal(loops.edge_index, sorted_graph.with_self_loops().edge_index)


class TestCommand:
    """``coopsheaf export`` on own tables."""

    @pytest.fixture
    def program(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> Program:
        monkeypatch.chdir(tmp_path)
        return Program(capfd)

    def test_a_run_on_tables_says_how_x_is_made(self, program: Program) -> None:
        nodes, edges = write_tables(Path())
        tables = ("--nodes", nodes, "--edges", edges, "--target", "label", "--weight", "strength")
        split = ("--split-column", "part")
        one = ("--set", "model.num_layers=1")
        program.ok("train", *tables, *split, "--epochs", 1, "--out", "run", *SMALL_WORDS, *one)
        out = program.ok("export", "run", "model.pt2")
        assert "x: float32 (n, 6)" in out
        assert "edge_weight: float32 (m)" in out
        assert "output: float32 (n, 1)" in out
        program.ok("export", "run", "model.onnx")
        stored = onnx.load("model.onnx").metadata_props
        about = json.loads(next(entry.value for entry in stored if entry.key == KEY))
        files = {METADATA: ""}
        torch.export.load("model.pt2", extra_files=files)
        assert json.loads(files[METADATA]) == about
        assert about == describe_run(load_run(Path("run")))
        assert about["class_names"] == ["old, wise", "young"]
        assert about["feature_names"][:2] == ["age", "kind=blue"]
        assert len(about["feature_names"]) == about["inputs"]["x"]["shape"][1]
        assert about["encoder"]["columns"][0]["name"] == "age"
        assert any("(value - mean) / std" in step for step in about["prepare"])

    def test_files_are_not_overwritten(self, program: Program) -> None:
        run, _ = run_split(recipe(epochs=1), node_dataset())
        save_run(run, Path("run"))
        Path("model.pt2").write_text("mine")
        assert (
            "model.pt2: exists already; use --force" in program("export", "run", "model.pt2").error
        )
        assert Path("model.pt2").read_text() == "mine"
        program.ok("export", "run", "model.pt2", "--force")
        assert "the ending of the file" in program("export", "run", "model.txt").error
