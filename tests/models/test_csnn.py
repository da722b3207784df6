"""The whole network."""

from __future__ import annotations

import copy
import pickle
import shutil
from collections.abc import Iterator

import pytest
import torch
import torch.nn.functional as F
from graphs import ODD_GRAPHS, bidirected, generator, randn
from torch import nn
from torch.testing import assert_close
from torch_geometric.data import Batch, Data

from coopsheaf import CSNN, Graph, record_maps
from coopsheaf.nn import GraphNormSAGELearner, MLPLearner, ProjectedSAGELearner
from coopsheaf.nn.dropout import dropout
from coopsheaf.nn.learners import LEARNERS

EACH_LEARNER = pytest.mark.parametrize("learner", LEARNERS)
EACH_SEMANTICS = pytest.mark.parametrize("semantics", ["paper", "released", "messages"])
N, EDGES = ODD_GRAPHS["random-directed"]

# The published settings and their numbers of parameters.
COUNTS: dict[str, tuple[int, CSNN]] = {
    "roman-empire": (339_900, CSNN(300, 32, 5, 18, stalk_dim=4, learner=ProjectedSAGELearner(32, 3))),
    "amazon-ratings": (192_299, CSNN(300, 64, 3, 5, stalk_dim=4, learner=GraphNormSAGELearner(32, 2))),
    "minesweeper": (642_840, CSNN(7, 32, 5, 1, learner=ProjectedSAGELearner(64, 5), left_weights=False, norm="layer")),
    "tolokers": (16_151, CSNN(10, 32, 2, 1, learner=MLPLearner(32), left_weights=False)),
    "questions": (53_257, CSNN(301, 32, 4, 1, stalk_dim=4, learner=GraphNormSAGELearner(32, 1), right_weights=False)),
    "squirrel": (271_305, CSNN(2089, 32, 5, 5, learner=GraphNormSAGELearner(32, 2))),
}  # fmt: skip


@pytest.mark.parametrize("name", COUNTS)
def test_parameter_counts_are_the_published_ones(name: str) -> None:
    count, model = COUNTS[name]
    assert sum(parameter.numel() for parameter in model.parameters()) == count


def test_it_is_the_equation() -> None:
    """Encoder, two layers with residual and norm, readout; written out by hand."""
    torch.manual_seed(0)
    model = CSNN(5, 4, 2, 2, norm="layer", readout_layers=2).double()
    for epsilon in model.epsilons:
        nn.init.normal_(epsilon)
    x = randn(N, 5)
    y = F.gelu(x @ model.encoder.weight.T + model.encoder.bias).view(N, 3, 4)
    for conv, epsilon, norm in zip(model.convs, model.epsilons, model.norms, strict=True):
        y = (1 + torch.tanh(epsilon)) * y - F.gelu(conv(y, EDGES))
        y = F.layer_norm(y.reshape(N, 12), (12,), norm.weight, norm.bias).view(N, 3, 4)
    y = F.gelu(model.readout[0](y.reshape(N, 12)))
    assert_close(model(x, EDGES), model.readout[2](y), rtol=0, atol=1e-12)


def test_dropout_reaches_residual_learners_and_diffusion() -> None:
    """One mask for what enters a layer (residual and learners alike), one for what leaves it."""
    torch.manual_seed(0)
    model = CSNN(5, 4, 1, 2, input_dropout=0.3, dropout=0.4).double().train()
    x = randn(N, 5)
    torch.manual_seed(7)
    got = model(x, EDGES)
    torch.manual_seed(7)
    y = F.gelu(model.encoder(dropout(x, 0.3))).view(N, 3, 4)
    y = dropout(y, 0.4)
    z = F.gelu(dropout(model.convs[0](y, EDGES), 0.4))
    assert_close(got, model.readout((y - z).flatten(1)))
    assert not torch.equal(model(x, EDGES), got)
    model.eval()
    assert torch.equal(model(x, EDGES), model(x, EDGES))


@EACH_LEARNER
@EACH_SEMANTICS
def test_gradients_reach_every_parameter(learner: str, semantics: str) -> None:
    torch.manual_seed(0)
    model = CSNN(5, 4, 2, 2, learner=learner, semantics=semantics, norm="batch").double()
    model(randn(N, 5), EDGES).square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


@EACH_LEARNER
@EACH_SEMANTICS
def test_renaming_the_nodes_renames_the_output(learner: str, semantics: str) -> None:
    model, x = CSNN(5, 4, 2, 2, learner=learner, semantics=semantics).double().eval(), randn(N, 5)
    names = torch.randperm(N, generator=generator(0))
    old = names.argsort()
    assert_close(model(x[old], names[EDGES]), model(x, EDGES)[old], rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", ODD_GRAPHS)
@EACH_LEARNER
def test_odd_graphs(name: str, learner: str) -> None:
    n, edge_index = ODD_GRAPHS[name]
    model = CSNN(5, 4, 2, 2, learner=learner, stalk_dim=2)
    out = model(torch.randn(n, 5), edge_index)
    assert out.shape == (n, 2)
    assert torch.isfinite(out).all()
    out.sum().backward()


def batch_of_graphs() -> tuple[list[Data], Batch]:
    parts = []
    for seed, name in enumerate(("random-directed", "path", "no-edges", "self-loops")):
        n, edge_index = ODD_GRAPHS[name]
        parts.append(Data(x=randn(n, 5, seed=seed), edge_index=edge_index, num_nodes=n))
    return parts, Batch.from_data_list(parts)


@pytest.mark.parametrize("learner", [name for name in LEARNERS if name != "sage-graph-norm"])
@pytest.mark.parametrize("pool", [None, "mean", "sum", "max"])
@EACH_SEMANTICS
def test_a_batch_of_graphs_is_its_graphs_one_by_one(learner: str, pool, semantics: str) -> None:
    torch.manual_seed(0)
    model = CSNN(5, 4, 2, 2, learner=learner, pool=pool, semantics=semantics).double().eval()
    parts, batch = batch_of_graphs()
    together = model(batch.x, batch.edge_index, batch=batch.batch, batch_size=batch.num_graphs)
    alone = torch.cat([model(part.x, part.edge_index) for part in parts])
    assert_close(together, alone, rtol=0, atol=1e-10)


def test_the_graph_norm_of_kind_one_couples_the_graphs_of_a_batch() -> None:
    """As documented: its statistics run over all nodes at hand."""
    torch.manual_seed(0)
    model = CSNN(5, 4, 2, 2, learner=GraphNormSAGELearner(8, 2)).double().eval()
    parts, batch = batch_of_graphs()
    together = model(batch.x, batch.edge_index, batch=batch.batch)
    alone = torch.cat([model(part.x, part.edge_index) for part in parts])
    assert not torch.allclose(together, alone, atol=1e-3)


def test_a_prepared_graph_gives_the_same() -> None:
    model, x = CSNN(5, 4, 2, 2, learner="sage-projected").double().eval(), randn(N, 5)
    assert torch.equal(model(x, Graph(EDGES, N)), model(x, EDGES))


def test_edge_weights_reach_the_diffusion() -> None:
    model, x = CSNN(5, 4, 2, 2).double().eval(), randn(N, 5)
    m = EDGES.shape[1]
    ones = torch.ones(m, dtype=torch.float64)
    assert_close(model(x, EDGES, edge_weight=ones), model(x, EDGES))
    # Weight zero is as good as no edge.
    weight = (torch.arange(m) < m // 2).double().requires_grad_()
    out = model(x, EDGES, edge_weight=weight)
    assert_close(out, model(x, EDGES[:, : m // 2]))
    out.sum().backward()
    assert weight.grad.abs().min() > 0


@pytest.mark.parametrize("scale", ["exp", "softplus", "rectified", "unit"])
@pytest.mark.parametrize("orthogonal", ["householder", "cayley", "matrix-exponential", "euler"])
def test_every_map_trains(scale: str, orthogonal: str) -> None:
    torch.manual_seed(0)
    model = CSNN(5, 4, 2, 1, scale=scale, orthogonal=orthogonal)
    x, y = torch.randn(N, 5), torch.randn(N, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for _ in range(40):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x, EDGES), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.3 * losses[0]


@pytest.fixture(autouse=True)
def _forget_compiled_code() -> Iterator[None]:
    yield
    torch.compiler.reset()


@pytest.mark.parametrize(
    ("learner", "semantics", "prepared"),
    [
        ("mlp", "released", False),
        ("sage-projected", "paper", True),
    ],
)
def test_compiles_in_one_graph(learner: str, semantics: str, prepared: bool) -> None:
    torch.manual_seed(0)
    model = CSNN(5, 4, 1, 2, learner=learner, semantics=semantics, norm="layer", pool="mean")
    model.double().eval()
    x, batch = randn(N, 5).requires_grad_(), torch.zeros(N, dtype=torch.int64)
    edges = Graph(EDGES, N) if prepared else EDGES
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    expected, got = (net(x, edges, batch=batch, batch_size=1) for net in (model, compiled))
    assert_close(got, expected, rtol=0, atol=1e-10)
    leaves = [x, *model.parameters()]
    for a, b in zip(
        torch.autograd.grad(expected.sum(), leaves),
        torch.autograd.grad(got.sum(), leaves),
        strict=True,
    ):
        assert_close(b, a, rtol=0, atol=1e-10)


@pytest.mark.thorough
@pytest.mark.skipif(
    not any(map(shutil.which, ("g++", "clang++", "c++"))), reason="inductor needs a C++ compiler"
)
def test_compiles_with_inductor_and_trains() -> None:
    torch.manual_seed(0)
    model = CSNN(5, 4, 1, 2, dropout=0.2)
    compiled = torch.compile(model, fullgraph=True)
    x, graph = torch.randn(N, 5), Graph(EDGES, N)
    compiled(x, graph).sum().backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in model.parameters())
    model.eval()
    assert_close(compiled(x, graph), model(x, graph), rtol=1e-4, atol=1e-5)


@pytest.mark.thorough
@pytest.mark.parametrize("learner", ["mlp", "sage-graph-norm"])
def test_exports_with_any_number_of_nodes_and_edges(learner: str) -> None:
    torch.manual_seed(0)
    model = CSNN(5, 4, 2, 2, learner=learner).eval()
    any_size = torch.export.Dim.DYNAMIC
    program = torch.export.export(
        model, (torch.randn(N, 5), EDGES), dynamic_shapes=({0: any_size}, {1: any_size})
    )
    for name in ("path", "parallel", "isolated"):
        n, edge_index = ODD_GRAPHS[name]
        x = torch.randn(n, 5)
        assert_close(program.module()(x, edge_index), model(x, edge_index))


def test_exports_with_a_prepared_graph() -> None:
    model, x, graph = CSNN(5, 4, 1, 2).eval(), torch.randn(N, 5), Graph(EDGES, N)
    program = torch.export.export(model, (x, graph))
    assert_close(program.module()(x, graph), model(x, graph))


def test_a_bad_index_stops_a_compiled_model() -> None:
    """It must not read foreign memory."""
    model, x = CSNN(5, 4, 1, 2).eval(), torch.randn(3, 5)
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    compiled(x, torch.tensor([[0, 1], [1, 2]]))
    for edges in ([[0, 10**9], [1, 2]], [[0, -5], [1, 1]], [[0, 1], [1, 3]]):
        with pytest.raises(RuntimeError, match="node indices in"):
            compiled(x, torch.tensor(edges))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@EACH_LEARNER
def test_whole_models_in_half_precision(dtype: torch.dtype, learner: str) -> None:
    torch.manual_seed(0)
    model = CSNN(5, 8, 2, 2, learner=learner).eval()
    x = torch.randn(N, 5)
    expected = model(x, EDGES)
    out = model.to(dtype)(x.to(dtype), EDGES)
    assert out.dtype == dtype
    assert (out.float() - expected).abs().max() < 0.08 * expected.abs().max()
    out.float().sum().backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in model.parameters())


def test_no_nodes() -> None:
    model, none = CSNN(5, 4, 2, 3, learner="sage-projected"), torch.empty(2, 0).long()
    assert model(torch.zeros(0, 5), none).shape == (0, 3)


def test_graphs_without_nodes_at_the_end_of_a_batch_are_counted() -> None:
    model = CSNN(5, 4, 1, 2, pool="sum")
    batch = torch.zeros(N, dtype=torch.int64)
    assert model(torch.randn(N, 5), EDGES, batch=batch, batch_size=3).shape == (3, 2)


def test_a_learned_activation_is_reset_too() -> None:
    model = CSNN(5, 4, 1, 2, act="prelu")
    with torch.no_grad():
        model.act.weight.fill_(9.0)
    model.reset_parameters()
    assert (model.act.weight == 0.25).all()


@EACH_LEARNER
def test_bfloat16_autocast_is_near_single_precision(learner: str) -> None:
    torch.manual_seed(0)
    model = CSNN(5, 8, 2, 2, learner=learner).eval()
    x = torch.randn(N, 5)
    expected = model(x, EDGES)
    with torch.autocast("cpu", dtype=torch.bfloat16), record_maps(model) as maps:
        out = model(x, EDGES)
        loss = out.float().square().sum()
    loss.backward()
    assert out.dtype == torch.bfloat16
    assert maps[0].source.orthogonal.dtype == torch.float32
    assert (out.float() - expected).abs().max() < 0.05 * expected.abs().max()
    assert all(torch.isfinite(parameter.grad).all() for parameter in model.parameters())


def test_reset_draws_everything_anew() -> None:
    torch.manual_seed(3)
    model = CSNN(5, 4, 2, 2, learner="sage-graph-norm", norm="batch", readout_layers=2)
    with torch.no_grad():
        for tensor in model.state_dict().values():
            tensor.fill_(7)
    torch.manual_seed(3)
    model.reset_parameters()
    assert not any((value == 7).any() for value in model.state_dict().values())
    assert all((epsilon == 0).all() for epsilon in model.epsilons)


def test_state_survives_a_round_trip() -> None:
    model = CSNN(5, 4, 2, 2, learner="sage-projected").eval()
    copy = CSNN(5, 4, 2, 2, learner="sage-projected").eval()
    copy.load_state_dict(model.state_dict())
    x = torch.randn(N, 5)
    assert torch.equal(copy(x, EDGES), model(x, EDGES))


def test_models_can_be_copied_and_pickled() -> None:
    model, x = CSNN(5, 4, 2, 2, learner="sage-graph-norm", pool="mean").eval(), torch.randn(N, 5)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.equal(other(x, EDGES), model(x, EDGES))


def test_repr_states_the_transformation() -> None:
    assert repr(CSNN(7, 32, 5, 1)) == (
        "CSNN(7, 32, num_layers=5, out_channels=1, stalk_dim=3, semantics='paper')"
    )


def test_the_callers_tensors_are_left_alone() -> None:
    model, x, edges = CSNN(5, 4, 1, 2), torch.randn(N, 5), bidirected(EDGES)
    x_before, edges_before = x.clone(), edges.clone()
    model(x, edges)
    assert torch.equal(x, x_before)
    assert torch.equal(edges, edges_before)


X = torch.zeros(3, 5)
ONE = torch.tensor([[0], [1]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: CSNN(5, 4, 2, 2, stalk_dim=0), "`stalk_dim` must be an integer of at least 1; got 0"),
        (lambda: CSNN(5, 4, 0, 2), "`num_layers` must be an integer of at least 1; got 0"),
        (lambda: CSNN(5, 4, 2.0, 2), "`num_layers` must be an integer of at least 1; got 2.0"),
        (lambda: CSNN(0, 4, 2, 2), "`in_channels` must be an integer of at least 1; got 0"),
        (lambda: CSNN(5, True, 2, 2), "`hidden_channels` must be an integer of at least 1; got True"),
        (lambda: CSNN(5, 4, 2, 2, dropout=1.0), r"`dropout` must be a number in \[0, 1\); got 1.0"),
        (lambda: CSNN(5, 4, 2, 2, input_dropout=-0.1), r"`input_dropout` must be a number in \[0, 1\)"),
        (lambda: CSNN(5, 4, 2, 2, semantics="code"), "`semantics` must be one of 'paper', 'released', 'messages'; got 'code'"),
        (lambda: CSNN(5, 4, 2, 2, learner="gat"), "`learner` must be one of 'mlp', 'sage-graph-norm'"),
        (lambda: CSNN(5, 4, 2, 2, norm="group"), "`norm` must be one of 'layer', 'batch'; got 'group'"),
        (lambda: CSNN(5, 4, 2, 2, pool="median"), "`pool` must be one of 'mean', 'sum', 'max'; got 'median'"),
        (lambda: CSNN(5, 4, 2, 2, act="gelatin"), "`act` must be an activation or its name; .*gelatin"),
        (lambda: CSNN(5, 4, 2, 2, stalk_dim=4, orthogonal="euler"), "2 or 3 for Euler angles; got 4"),
        (lambda: CSNN(5, 4, 2, 2, readout_layers=0), "`readout_layers` must be an integer of at least 1"),
        (lambda: CSNN(5, 4, 2, 2)(torch.zeros(3, 6), ONE), r"`x` must have shape \(n, 5\); got \(3, 6\)"),
        (lambda: CSNN(5, 4, 2, 2)(X.long(), ONE), "`x` must have a floating point dtype"),
        (lambda: CSNN(5, 4, 2, 2)(X, ONE.float()), "`edge_index` must have dtype int64 or int32"),
        (lambda: CSNN(5, 4, 2, 2)(X, ONE + 2), "below the number of nodes, 3; got 3"),
        (lambda: CSNN(5, 4, 2, 2)(X, ONE - 1), "negative node indices; got -1"),
        (lambda: CSNN(5, 4, 2, 2)(X, Graph(ONE)), "a graph of 2 nodes; expected 3 nodes"),
        (lambda: CSNN(5, 4, 2, 2, act=3), "`act` must be an activation or its name; got 3"),
        (lambda: CSNN(5, 4, 2, 2)(X.double(), ONE), "`x` must have the dtype of the model, torch.float32"),
        (lambda: CSNN(5, 4, 2, 2)(X, Graph(ONE, 3).to("meta")), "must be on the device of the model, cpu"),
        (lambda: CSNN(5, 4, 2, 2, pool="mean")(X, ONE, batch=torch.zeros(2).long()), r"`batch` must be an int64 tensor of shape \(3,\)"),
        (lambda: CSNN(5, 4, 2, 2, pool="mean")(X, ONE, batch=torch.zeros(3)), "`batch` must be an int64 tensor"),
        (lambda: CSNN(5, 4, 2, 2, pool="mean")(X, ONE, batch=torch.tensor([0, 1, 2]), batch_size=2), "from 0 and below batch_size = 2; got 0 to 2"),
        (lambda: CSNN(5, 4, 2, 2, pool="mean")(X, ONE, batch=torch.tensor([-1, 0, 0])), "`batch` must hold graph numbers from 0; got -1 to 0"),
        (lambda: CSNN(5, 4, 2, 2, pool="mean")(X, ONE, batch_size=3), "`batch_size` must come with `batch`; got 3 alone"),
        (lambda: CSNN(5, 4, 2, 2)(X, ONE, edge_weight=torch.ones(1).double()), "`edge_weight` and `x` must have the same dtype"),
        (lambda: CSNN(5, 4, 2, 2)(X, ONE, edge_weight=-torch.ones(1)), "`edge_weight` must be finite and not negative"),
    ],
)  # fmt: skip
def test_bad_input(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_sizes_of_a_learner_go_with_its_name() -> None:
    named = CSNN(5, 4, 1, 3, learner="sage-projected", learner_channels=7, learner_layers=3)
    given = CSNN(5, 4, 1, 3, learner=ProjectedSAGELearner(7, 3))
    shapes = [[p.shape for p in model.parameters()] for model in (named, given)]
    assert shapes[0] == shapes[1]
    with pytest.raises(ValueError, match="go with the name of a learner; got 7 and 2"):
        CSNN(5, 4, 1, 3, learner=ProjectedSAGELearner(), learner_channels=7)
