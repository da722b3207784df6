"""Options of CSNN that are not the paper's: each against its equation, and what stays as it was."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from allocations import LargestTensor
from analysis.cooperation import fixed, maps_of
from graphs import ODD_GRAPHS, generator, randn, random_weight
from torch import Tensor, nn
from torch.testing import assert_close
from train.small import graph_dataset, node_dataset, recipe

from coopsheaf import CSNN, CSNNClassifier, Graph, record_maps
from coopsheaf.config import ConfigError
from coopsheaf.export import make_program
from coopsheaf.models.registry import MODELS, make_settings
from coopsheaf.nn import AdjacencyLinear, EmbeddedSAGELearner, MLPLearner, ProjectedSAGELearner
from coopsheaf.nn.dropout import dropout
from coopsheaf.nn.learners import LEARNERS, MLP, EmbeddedSAGE
from coopsheaf.scale.halo import halo_hops
from coopsheaf.scale.inference import infer
from coopsheaf.sheaves.diffusion import SEMANTICS
from coopsheaf.sheaves.orthogonal import ORTHOGONAL, SCALES
from coopsheaf.train.batches import BatchConfig
from coopsheaf.train.recipe import default_recipe, recipe_from_mapping
from coopsheaf.train.run import load_run, run_split
from coopsheaf.train.run_info import CheckpointError

N, EDGES = ODD_GRAPHS["random-directed"]
GRAPH = Graph(EDGES, N)
X = randn(N, 5)
EACH_LEARNER = pytest.mark.parametrize("learner", LEARNERS)


def build(seed: int = 0, **options: object) -> CSNN:
    torch.manual_seed(seed)
    return CSNN(5, 4, 2, 3, stalk_dim=2, **options).double()


# What was there before.


def test_parameters_have_the_names_that_they_had() -> None:
    learner = ["layers.0.weight", "layers.0.bias", "layers.2.weight", "layers.2.bias"]
    sides = [f"{side}_learner.learner.{name}" for side in ("source", "target") for name in learner]
    layer = [f"convs.0.{name}" for name in (*sides, "left.weight", "right.weight")]
    norm = ["norms.0.weight", "norms.0.bias"]
    ends = ["encoder.weight", "encoder.bias", "readout.0.weight", "readout.0.bias"]
    assert set(CSNN(5, 4, 1, 3, norm="layer").state_dict()) == {*layer, "epsilons.0", *norm, *ends}


@pytest.mark.parametrize("name", ["csnn", "csnn-identity", "csnn-random"])
def test_hashes_of_settings_are_those_without_the_options(name: str) -> None:
    plain = default_recipe(name, "texas")
    said = plain.to_mapping()["model"]
    assert not {"map_start", "structure", "block", "own_dropout", "learner_dropout"} & set(said)
    assert "map_lr_factor" not in plain.to_mapping()["train"]
    if name == "csnn":
        for text in (
            "model.map_start=equal", "model.structure=rows", "model.block=prenorm",
            "model.own_dropout=0.1", "model.learner_dropout=0.1", "train.map_lr_factor=0.5",
        ):  # fmt: skip
            changed = plain.set(text)
            assert changed.hash() != plain.hash(), text
            again = recipe_from_mapping(changed.to_mapping(), "here")
            assert again.hash() == changed.hash()


# Maps that start equal.


@EACH_LEARNER
@pytest.mark.parametrize("orthogonal", ORTHOGONAL)
@pytest.mark.parametrize("scale", SCALES)
def test_all_maps_start_as_one(learner: str, orthogonal: str, scale: str) -> None:
    model = build(learner=learner, orthogonal=orthogonal, scale=scale, map_start="equal").eval()
    model.reset_parameters()  # again, as whoever draws anew
    with record_maps(model) as maps:
        model(X, GRAPH)
    for layer in maps:
        for part in (layer.source, layer.target):
            assert torch.equal(part.scale, maps[0].source.scale[:1].expand(N))
            assert_close(part.orthogonal, maps[0].source.orthogonal[:1].expand(N, 2, 2))


def test_with_equal_maps_messages_are_those_of_a_graph() -> None:
    """T_iᵀ S_j = I, so that M is -(D + I)^-½ A (D + I)^-½ on every coordinate."""
    model = build(map_start="equal", semantics="messages").eval()
    with record_maps(model) as maps:
        model(X, GRAPH)
    adjacency = torch.zeros(N, N, dtype=torch.float64)
    adjacency.index_put_((GRAPH.target, GRAPH.source), torch.ones(EDGES.shape[1]).double(), True)
    root = (adjacency.sum(0) + 1).rsqrt()
    want = -root[:, None] * adjacency * root
    got = model.convs[0].diffusion(GRAPH, *maps[0], None).to_dense()
    assert_close(got, torch.kron(want, torch.eye(2).double()), rtol=0, atol=1e-12)


@EACH_LEARNER
def test_they_do_not_stay_equal(learner: str) -> None:
    model = build(learner=learner, map_start="equal")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        (model(X, GRAPH) - randn(N, 3, seed=3)).square().mean().backward()
        optimizer.step()
    for name, parameter in model.named_parameters():
        if "learner" in name:  # also what stands behind the layer that began at zero
            assert parameter.grad.abs().sum() > 0, name
    with record_maps(model.eval()) as maps:
        model(X, GRAPH)
    assert maps[0].source.scale.std() > 1e-6


def test_nothing_else_is_drawn_otherwise() -> None:
    plain, equal = build().state_dict(), build(map_start="equal").state_dict()
    differ = {name for name in plain if not torch.equal(plain[name], equal[name])}
    assert differ == {name for name in plain if "learner.layers.2" in name}


class Own(nn.Module):
    """A learner of the user's own."""

    hops = 0

    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(8, 2)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.last(x)


class OwnWithEnd(Own):
    def start_at_zero(self) -> None:
        nn.init.zeros_(self.last.weight)
        nn.init.zeros_(self.last.bias)


def test_a_learner_of_ones_own_says_how_it_starts() -> None:
    model = build(learner=OwnWithEnd(), map_start="equal")
    assert not model.convs[1].target_learner.learner.last.weight.any()
    with pytest.raises(ValueError, match=r"`map_start` 'equal' needs a learner with a method"):
        build(learner=Own(), map_start="equal")
    with pytest.raises(ValueError, match="`map_start` must be one of 'random', 'equal'; got 'I'"):
        build(map_start="I")


# Dropout inside learners.


def test_dropout_of_an_mlp_is_before_its_last_layer() -> None:
    mlp = MLP(5, 64, 3, dropout=0.4).double()
    first, relu, last = mlp.layers
    torch.manual_seed(2)
    got = mlp(X, GRAPH)
    torch.manual_seed(2)
    assert_close(got, last(dropout(relu(first(X)), 0.4)))
    assert torch.equal(mlp.eval()(X, GRAPH), last(relu(first(X))))


def test_dropout_of_an_embedded_sage_is_before_its_last_layer() -> None:
    sage = EmbeddedSAGELearner(16, 1, dropout=0.4)(5, 3).double()
    assert isinstance(sage, EmbeddedSAGE)
    torch.manual_seed(2)
    got = sage(X, GRAPH)
    torch.manual_seed(2)
    hidden = F.gelu(sage.phi[0](F.gelu(sage.emb1(X)), GRAPH))
    assert_close(got, sage.emb2(dropout(hidden, 0.4)))


@EACH_LEARNER
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_learners_together_drop_as_one_by_one_do(learner: str, dtype: torch.dtype) -> None:
    """The mean over many draws of what the last layer gives is what it gives without."""
    torch.manual_seed(0)
    conv = build(learner=learner, learner_dropout=0.5).to(dtype).convs[0]
    x = randn(N, 2, 4).to(dtype)
    with torch.no_grad():
        # Scales are exponentials of the last raw number.
        quiet = conv.eval().maps(x, GRAPH)[1].scale.log()
        draws = [conv.train().maps(x, GRAPH)[1].scale.log() for _ in range(400)]
    spread = torch.stack(draws)
    assert spread.std(0).min() > 1e-3
    if learner in ("mlp", "sage-embedded"):  # the others go on with what was dropped
        error = (spread.mean(0) - quiet).abs() / (spread.std(0) / 20)
        assert error.max() < 5


def test_the_recipe_decides_where_nothing_is_said() -> None:
    said = {"sage-projected": 0.2}
    for name in LEARNERS:
        for given, want in ((None, said.get(name, 0.0)), (0.0, 0.0), (0.6, 0.6)):
            model = build(learner=name, learner_dropout=given)
            assert model.convs[0].source_learner.learner.dropout == want
    assert ProjectedSAGELearner(8, 2).dropout == 0.2
    assert ProjectedSAGELearner(8, 2, 0.1).dropout == 0.1


@pytest.mark.parametrize("learner", [MLPLearner(8), Own()], ids=["recipe", "module"])
def test_dropout_goes_with_a_name(learner: object) -> None:
    with pytest.raises(ValueError, match="`learner_dropout` goes with the name of a learner"):  # fmt: skip
        build(learner=learner, learner_dropout=0.1)
    with pytest.raises(ValueError, match="`learner_dropout` must be"):
        build(learner_dropout=1.5)


# What a node keeps of itself, and what it sends.


@pytest.mark.parametrize("own", [0.0, 0.3])
def test_own_dropout_is_that_of_the_residual(own: float) -> None:
    model = build(dropout=0.4, own_dropout=own).train()
    torch.manual_seed(7)
    got = model(X, GRAPH)
    torch.manual_seed(7)
    y = F.gelu(model.encoder(X)).view(N, 2, 4)
    for conv in model.convs:
        sent = dropout(y, 0.4)
        kept = dropout(y, own)
        y = kept - F.gelu(dropout(conv(sent, GRAPH), 0.4))
    assert_close(got, model.readout(y.flatten(1)))


def test_one_mask_for_both_is_the_default() -> None:
    found = []
    for options in ({}, {"own_dropout": None}):
        model = build(dropout=0.4, **options).train()
        torch.manual_seed(7)
        found.append(model(X, GRAPH))
    assert torch.equal(*found)
    with pytest.raises(ValueError, match="`own_dropout` must be"):
        build(own_dropout=-0.1)


# Rows of the adjacency matrix.


@pytest.mark.parametrize("name", ODD_GRAPHS)
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_are_further_columns_of_x(name: str, weighted: bool) -> None:
    """A CSNN of [X, A] whose encoder has the weights of both side by side."""
    n, edges = ODD_GRAPHS[name]
    graph, x = Graph(edges, n), randn(n, 5)
    weight = random_weight(graph.num_edges) if weighted else None
    model = build(structure="rows", num_nodes=n).eval()
    torch.manual_seed(0)
    wide = CSNN(5 + n, 4, 2, 3, stalk_dim=2).double().eval()
    state = model.state_dict()
    both = torch.cat([state["encoder.weight"], state.pop("rows.weight").T], dim=1)
    wide.load_state_dict(state | {"encoder.weight": both})
    adjacency = torch.zeros(n, n, dtype=torch.float64)
    ones = torch.ones(graph.num_edges).double() if weight is None else weight
    adjacency.index_put_((graph.target, graph.source), ones, accumulate=True)
    want = wide(torch.cat([x, adjacency], dim=1), graph, weight)
    assert_close(model(x, graph, weight), want, rtol=0, atol=1e-10)


def test_rows_have_gradients() -> None:
    model = build(structure="rows", num_nodes=N)
    model(X, GRAPH).square().sum().backward()
    heard = torch.zeros(N, dtype=torch.bool)
    heard[GRAPH.source] = True  # whose row anybody looks at
    assert torch.equal(model.rows.weight.grad.abs().sum(1) > 0, heard)


def test_rows_are_never_a_matrix() -> None:
    n = 3000
    graph = Graph(torch.randint(0, n, (2, 4 * n), generator=generator(0)), n)
    model = CSNN(5, 4, 1, 2, stalk_dim=2, structure="rows", num_nodes=n)
    with LargestTensor() as guard:
        model(torch.randn(n, 5), graph).sum().backward()
    assert guard.numel < 100 * n  # of n² = 3000 n; the learners have 64 at every node


def test_another_graph_is_refused() -> None:
    model = build(structure="rows", num_nodes=N)
    with pytest.raises(ValueError, match=f"`x` must have {N} rows, .*this CSNN knows.*got {N - 1}"):
        model(X[1:], torch.zeros(2, 0, dtype=torch.long))
    with pytest.raises(ValueError, match="`model` must not have `structure` 'rows' for parts"):
        halo_hops(model)
    for options, message in (
        ({"structure": "rows"}, "`num_nodes` must be given beside `structure` 'rows'"),
        ({"num_nodes": 3}, "`num_nodes` goes with `structure`; got 3 alone"),
        ({"structure": "rows", "num_nodes": 3, "pool": "mean"}, "`structure` must be None for whole"),
        ({"structure": "columns", "num_nodes": 3}, "`structure` must be one of 'rows'; got 'columns'"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            build(**options)


def with_rows(**train: object) -> object:
    settings = recipe(epochs=3, **train)
    return replace(settings, model=replace(settings.model, structure="rows", norm=None))


def test_a_run_finds_its_size_and_remembers_it(tmp_path: Path) -> None:
    data = node_dataset()
    run, _ = run_split(with_rows(), data, out=tmp_path / "run")
    assert run.info["num_nodes"] == data.num_nodes
    again = load_run(tmp_path / "run")
    assert torch.equal(again.model(data.x, data.edge_index), run.model(data.x, data.edge_index))
    with pytest.raises(CheckpointError, match="csnn knows every node of the graph"):
        again.check_graph(node_dataset(30))
    with pytest.raises(ValueError, match="csnn with `structure` cannot be exported"):
        make_program(again)
    plain, _ = run_split(recipe(epochs=3), data)
    assert "num_nodes" not in plain.info


def test_whole_graphs_and_parts_are_refused_in_one_line() -> None:
    with pytest.raises(ValueError, match="csnn with these settings knows every node of one graph"):
        run_split(with_rows(), graph_dataset())
    parts = replace(with_rows(), batch=BatchConfig("nodes"))
    with pytest.raises(ValueError, match="must be left out: csnn knows every node"):
        run_split(parts, node_dataset())


def test_models_without_rows_are_for_all_graphs() -> None:
    assert MODELS["csnn"].inductive
    assert not make_settings("csnn").of_one_graph
    assert make_settings("csnn", structure="rows").of_one_graph
    assert make_settings("linkx").of_one_graph
    assert repr(AdjacencyLinear(3, 2, bias=False)) == "AdjacencyLinear(3, 2, bias=False)"


# Pre-norm blocks.


def test_prenorm_is_its_equation() -> None:
    model = build(block="prenorm", act="relu", semantics="messages").eval()
    y = F.relu(model.encoder(X)).view(N, 2, 4)
    for conv, block in zip(model.convs, model.blocks, strict=True):
        z = F.layer_norm(y.flatten(1), (8,), block.norm.weight, block.norm.bias)
        both = torch.cat([z, conv(z.view(N, 2, 4), GRAPH).flatten(1)], dim=1)
        y = y + block.lin_out(F.relu(block.lin_in(both))).view(N, 2, 4)
    last = F.layer_norm(y.flatten(1), (8,), model.last_norm.weight, model.last_norm.bias)
    assert_close(model(X, GRAPH), model.readout(last), rtol=0, atol=1e-12)
    assert not {name for name in model.state_dict() if "epsilon" in name or name[:5] == "norms"}
    assert repr(model).endswith("semantics='messages', block='prenorm')")


def test_prenorm_drops_self_neighbours_and_inside() -> None:
    model = build(block="prenorm", dropout=0.4, own_dropout=0.2).train()
    block, conv, x = model.blocks[0], model.convs[0], randn(N, 2, 4)
    torch.manual_seed(3)
    got = block(x, lambda z: conv(z, GRAPH))
    torch.manual_seed(3)
    z = block.norm(x.flatten(1))
    heard = dropout(conv(z.view(N, 2, 4), GRAPH).flatten(1), 0.4)
    own = dropout(z, 0.2)
    hidden = dropout(F.gelu(block.lin_in(torch.cat([own, heard], dim=1))), 0.4)
    assert_close(got, x + dropout(block.lin_out(hidden), 0.4).view(N, 2, 4))


@pytest.mark.parametrize("semantics", SEMANTICS)
@pytest.mark.parametrize("norm", [None, "batch"])
def test_prenorm_trains_every_parameter(semantics: str, norm: str | None) -> None:
    model = build(block="prenorm", semantics=semantics, norm=norm)
    model(X, GRAPH).pow(3).sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad.abs().sum() > 0, name


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_in_a_block_the_deaf_hear_nothing_and_the_mute_are_not_heard(semantics: str) -> None:
    """T_i = 0: x_i' depends on x_i alone. S_j = 0: nobody but j depends on x_j."""
    source, target = torch.ones(N), torch.ones(N)
    source[2], target[5] = 0, 0
    maps = [(maps_of(source, seed=k), maps_of(target, seed=k + 5)) for k in (0,)]
    model = fixed(maps, block="prenorm", semantics=semantics)
    jacobian = torch.autograd.functional.jacobian(lambda x: model(x, GRAPH), X)
    linked = jacobian.abs().amax((1, 3)) > 0  # (n, n)
    assert linked[5].nonzero().flatten().tolist() == [5]
    assert linked[:, 2].nonzero().flatten().tolist() == [2]
    assert linked.sum() > N + 5


def test_prenorm_layers_can_be_computed_again() -> None:
    found = []
    for again in (False, True):
        model = build(block="prenorm", dropout=0.4, checkpoint_layers=again)
        torch.manual_seed(4)
        out = model(X, GRAPH).square().sum()
        found.append(torch.autograd.grad(out, list(model.parameters())))
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other)
    with pytest.raises(ValueError, match="`norm` must not be 'batch' beside `checkpoint_layers`"):
        build(block="prenorm", norm="batch", checkpoint_layers=True)
    with pytest.raises(
        ValueError, match="`block` must be one of 'residual', 'prenorm'; got 'post'"
    ):
        build(block="post")


@pytest.mark.parametrize(
    "options",
    [{"block": "prenorm"}, {"structure": "rows", "num_nodes": N}, {"own_dropout": 0.3}],
    ids=str,
)
@pytest.mark.parametrize("jk", [None, "cat", "max"])
def test_inference_is_the_network(options: dict, jk: str | None) -> None:
    model = build(**options, jk=jk).eval()
    with torch.no_grad():
        want = model(X, GRAPH)
    assert_close(infer(model, X, GRAPH, chunk=4), want, rtol=0, atol=1e-10)


# Everything by name.


def test_the_estimator_takes_all_of_them() -> None:
    options = {
        "semantics": "messages", "map_start": "equal", "learner_dropout": 0.1, "own_dropout": 0.2,
        "structure": "rows", "block": "prenorm", "jk": "cat", "input_dropout": 0.1, "dropout": 0.1,
        "map_weight_decay": 1e-2, "map_lr_factor": 0.5, "weight_decay": 5e-4,
    }  # fmt: skip
    data = node_dataset()
    model = CSNNClassifier(**options, epochs=3, hidden_channels=4)
    model.fit(data.x, data.y, edges=data.edge_index)
    built = model.run_.recipe.to_mapping()
    assert options.items() <= (built["model"] | built["train"]).items()
    assert model.predict(data.x, data.edge_index).shape == (data.num_nodes,)
    with pytest.raises((ValueError, CheckpointError), match="knows every node"):
        model.predict(data.x[:20], torch.zeros(2, 0, dtype=torch.long))


def test_settings_that_do_not_fit_are_named() -> None:
    with pytest.raises(ConfigError, match=r"map_lr_factor"):
        default_recipe("csnn").set("train.map_lr_factor=-1")
