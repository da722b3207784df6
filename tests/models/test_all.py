"""What every network of the registry must do. A new one costs one line in ``SMALL``."""

from __future__ import annotations

import dataclasses
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from graphs import bidirected, generator, randn
from torch import Tensor
from torch._dynamo.testing import CompileCounter
from torch.testing import assert_close
from torch_geometric.data import Batch, Data

from coopsheaf import Graph
from coopsheaf.models.network import Network
from coopsheaf.models.registry import MODELS
from coopsheaf.train.checkpoint import load_tensors, save_tensors

F_IN, OUT = 5, 3

# Settings small enough for tests, and the number of parameters they give.
SMALL: dict[str, tuple[dict[str, Any], int]] = {
    "csnn": ({"hidden_channels": 4, "num_layers": 2, "learner": "sage-projected"}, 9_255),
    "csnn-identity": ({"hidden_channels": 4, "num_layers": 2}, 167),
    "csnn-random": ({"hidden_channels": 4, "num_layers": 2}, 2_359),
    "mlp": ({"hidden_channels": 8}, 75),
    "gcn-plain": ({"hidden_channels": 8}, 75),
    "gat-plain": ({"hidden_channels": 8, "num_heads": 2}, 97),
    "sage-plain": ({"hidden_channels": 8}, 139),
    "nsd-diag": ({"hidden_channels": 4}, 311),
    "nsd-orthogonal": ({"hidden_channels": 4}, 359),
    "nsd-general": ({"hidden_channels": 4}, 599),
    "nsd-identity": ({"hidden_channels": 4}, 167),
    "nsd-random": ({"hidden_channels": 4}, 311),
    "isn": ({"hidden_channels": 4}, 167),
    "dsnn": ({"hidden_channels": 4}, 587),
    "polynsd": (
        {"hidden_channels": 4, "num_hops": 3, "maps": "orthogonal", "learn_weights": False},
        266,
    ),
    "nsp": ({"hidden_channels": 4}, 353),
    "onda": (
        {"hidden_channels": 4, "num_steps": 2, "dissipation": True, "forcing": True},
        1_297,
    ),
    "onda-directional": (
        {"hidden_channels": 4, "num_steps": 2, "dissipation": True, "forcing": True},
        1_729,
    ),
    "dnsd": ({"hidden_channels": 4, "num_layers": 2, "stalk_dim": 3}, 1_133),
    "sheaf-attention": ({"hidden_channels": 4}, 353),
    "copresheaf": ({"hidden_channels": 8, "num_heads": 2}, 1_419),
    "snn": ({"hidden_channels": 4}, 115),
    "conn-nsd": ({"hidden_channels": 4}, 167),
    "conn-nsd-edge-random": ({"hidden_channels": 4}, 167),
    "conn-nsd-node-random": ({"hidden_channels": 4}, 167),
    "quiver-nsd": ({"hidden_channels": 4}, 599),
    "nlsd": ({"hidden_channels": 4}, 959),
    "jdsnn": ({"hidden_channels": 4}, 203),
    "risnn": ({"hidden_channels": 4}, 527),
    "resnet": ({"hidden_channels": 8}, 411),
    "gcn": ({"hidden_channels": 8}, 411),
    "sage": ({"hidden_channels": 8}, 539),
    "gat": ({"hidden_channels": 8, "num_heads": 2}, 623),
    "gat-sep": ({"hidden_channels": 8, "num_heads": 2}, 751),
    "gt": ({"hidden_channels": 8, "num_heads": 2}, 1_019),
    "gt-sep": ({"hidden_channels": 8, "num_heads": 2}, 1_147),
    "bunn": ({"hidden_channels": 8, "num_bundles": 2, "phi_layers": 1}, 1_199),
    "cognn": (
        {
            "hidden_channels": 8,
            "num_layers": 2,
            "action_channels": 4,
            "action_layers": 2,
            "temperature": "learned",
            "norm": "layer",
            "skip": True,
        },
        543,
    ),
    "gin": ({"hidden_channels": 8, "num_layers": 2}, 456),
    "ggnn": ({"hidden_channels": 8, "num_layers": 2}, 1_064),
    "gcn-match": ({"hidden_channels": 8, "num_layers": 2}, 248),
    "gat-match": ({"hidden_channels": 8, "num_layers": 2}, 280),
    "gcnii": ({"hidden_channels": 8, "num_layers": 2}, 203),
    "gcnii-star": ({"hidden_channels": 8, "num_layers": 2}, 331),
    "gprgnn": ({"hidden_channels": 8}, 86),
    "gprgnn-lab": ({"hidden_channels": 8, "num_hops": 4}, 80),
    "fagcn": ({"hidden_channels": 8}, 109),
    "pairnorm": ({"hidden_channels": 8}, 75),
    "linkx": ({"hidden_channels": 8}, 291),
    "dirgnn": ({"hidden_channels": 8, "num_layers": 2}, 387),
    "mixhop": ({"hidden_channels": 8}, 123),
    "mixhop-linkx": ({"hidden_channels": 8}, 447),
    "h2gcn": ({"hidden_channels": 4}, 104),
    "h2gcn-linkx": ({"hidden_channels": 4}, 127),
    "ggcn": ({"hidden_channels": 8}, 135),
    "geom-gcn": ({"hidden_channels": 8}, 176),
    "fsgnn": ({"hidden_channels": 4, "num_layers": 2}, 114),
    "acm-gcn": ({"hidden_channels": 8}, 243),
    "acm-gcn-plus": ({"hidden_channels": 8}, 367),
    "acmii": ({"hidden_channels": 8}, 367),
    "glognn": ({"hidden_channels": 8}, 157),
    "glognn++": ({"hidden_channels": 8}, 160),
    "gcn-lrgb": ({"hidden_channels": 8, "num_layers": 2}, 363),
    "gine": ({"hidden_channels": 8, "num_layers": 2}, 515),
    "gatedgcn": ({"hidden_channels": 8, "num_layers": 2}, 1_011),
    "gps": ({"hidden_channels": 8, "num_layers": 2, "num_heads": 2}, 2_171),
    "drew": ({"hidden_channels": 8, "num_layers": 2}, 291),
    "san": ({"hidden_channels": 8, "num_layers": 2, "num_heads": 2}, 1_755),
    "exphormer": ({"hidden_channels": 8, "num_layers": 2, "num_heads": 2}, 2_059),
    "graph-vit": (
        {"hidden_channels": 8, "num_layers": 2, "num_heads": 2, "num_patches": 4},
        2_221,
    ),
    "graph-mixer": ({"hidden_channels": 8, "num_layers": 2, "num_patches": 4}, 1_837),
}

# Nobody hears what the last layer makes of the edges; published networks have its norm all the same.
UNHEARD = {
    "gatedgcn": "layers.1.edge_norm",
    "gps": "layers.1.local.edge_norm",
    "exphormer": "layers.1.gated.edge_norm",
}

EACH_MODEL = pytest.mark.parametrize("name", MODELS)
# Ablations are the networks of other models with other maps: compiling them again is slow and new
# to nobody.
EACH_NETWORK = pytest.mark.parametrize(
    "name", [name for name in MODELS if not name.endswith(("-identity", "-random"))]
)


# Networks that are no sequence of layers cannot be read layer by layer.
NOT_LAYERED = (
    "gprgnn",
    "gprgnn-lab",
    "linkx",
    "fsgnn",
    "glognn",
    "glognn++",
    "graph-vit",
    "graph-mixer",
)
EACH_LAYERED = pytest.mark.parametrize("name", [n for n in MODELS if n not in NOT_LAYERED])
# Networks that belong to one graph are built for its number of nodes.
EACH_INDUCTIVE = pytest.mark.parametrize("name", [n for n in MODELS if MODELS[n].inductive])
# Networks on the parts that METIS finds, which depend on the order of the nodes.
ORDERED = ("graph-vit", "graph-mixer")


def build(
    name: str, n: int = 9, *, graph_level: bool = False, seed: int = 0, **settings: Any
) -> Network:
    torch.manual_seed(seed)
    config = MODELS[name].settings(**(SMALL[name][0] | settings))
    return config.build(F_IN, OUT, graph_level=graph_level, num_nodes=n).double().eval()


def simple_graph(n: int = 9, pairs: int = 14, seed: int = 3) -> Tensor:
    """An undirected simple graph, both ways, in no particular order."""
    drawn = torch.randint(0, n, (2, 4 * pairs), generator=generator(seed))
    codes = torch.unique(drawn.amin(0) * n + drawn.amax(0))
    u, v = codes // n, codes % n
    keep = (u != v).nonzero().flatten()[:pairs]
    edges = bidirected(torch.stack([u[keep], v[keep]]))
    return edges[:, torch.randperm(edges.shape[1], generator=generator(seed))]


N, EDGES = 9, simple_graph()

# (num_nodes, edge_index): simple undirected graphs at the edges of what there is.
GRAPHS: dict[str, tuple[int, Tensor]] = {
    "simple": (N, EDGES),
    "isolated nodes": (8, bidirected(torch.tensor([[1, 4, 4], [4, 2, 6]]))),
    "no edges": (3, torch.empty(2, 0, dtype=torch.int64)),
    "single node": (1, torch.empty(2, 0, dtype=torch.int64)),
}


def test_every_model_of_the_registry_is_tested() -> None:
    assert list(SMALL) == list(MODELS)


def test_every_model_is_in_the_documentation() -> None:
    text = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")
    assert [name for name in MODELS if f"`{name}`" not in text] == []


@EACH_MODEL
def test_every_network_is_reached_from_its_package(name: str) -> None:
    network, package = type(build(name)), import_module(MODELS[name].package or "")
    assert issubclass(network, Network)
    assert getattr(package, network.__name__) is network
    assert network.__name__ in dir(package)


@EACH_MODEL
def test_parameters_are_as_many_as_counted(name: str) -> None:
    assert sum(parameter.numel() for parameter in build(name).parameters()) == SMALL[name][1]


@EACH_MODEL
@pytest.mark.parametrize("graph", GRAPHS)
def test_shapes_and_finite_values(name: str, graph: str) -> None:
    n, edges = GRAPHS[graph]
    model, x = build(name, n), randn(n, F_IN).requires_grad_()
    out = model(x, edges)
    assert out.shape == (n, OUT)
    assert out.dtype == torch.float64
    out.sum().backward()
    assert torch.isfinite(out).all()
    assert torch.isfinite(x.grad).all()
    for key, parameter in model.named_parameters():
        assert parameter.grad is None or torch.isfinite(parameter.grad).all(), key


@EACH_MODEL
def test_single_precision_is_close_to_double(name: str) -> None:
    model, x = build(name), randn(N, F_IN)
    want = model(x, EDGES)
    assert_close(model.float()(x.float(), EDGES).double(), want, rtol=1e-3, atol=1e-4)


@EACH_MODEL
def test_repr_says_what_it_is(name: str) -> None:
    model = build(name)
    assert repr(model).startswith(type(model).__name__ + "(")
    assert str(F_IN) in repr(model)
    assert str(OUT) in repr(model)
    assert "\n" not in repr(model)


@EACH_MODEL
def test_it_is_documented(name: str) -> None:
    model, info = build(name), MODELS[name]
    assert type(model).__doc__
    assert info.settings.__doc__
    assert info.description
    assert type(model).takes_edge_weight == info.edge_weight


@EACH_MODEL
def test_gradients_reach_every_parameter(name: str) -> None:
    model = build(name).train()
    torch.manual_seed(1)
    total = 0.0
    for seed in range(4):  # dropout and sampled actions may silence one of them for a while
        total = total + model(randn(N, F_IN, seed=seed), EDGES).square().sum()
    total.backward()
    for key, parameter in model.named_parameters():
        if parameter.requires_grad and not key.startswith(UNHEARD.get(name, "-")):
            assert parameter.grad is not None, key
            assert parameter.grad.abs().sum() > 0, key


@EACH_INDUCTIVE
def test_renaming_the_nodes_renames_the_output(name: str) -> None:
    if name in ORDERED:
        pytest.skip("depends on the order of the nodes")
    model, x = build(name), randn(N, F_IN)
    names = torch.randperm(N, generator=generator(0))
    old = names.argsort()
    assert_close(model(x[old], names[EDGES]), model(x, EDGES)[old], rtol=0, atol=1e-10)


@EACH_MODEL
def test_the_order_of_the_edges_does_not_matter(name: str) -> None:
    model, x = build(name), randn(N, F_IN)
    order = torch.randperm(EDGES.shape[1], generator=generator(5))
    assert_close(model(x, EDGES[:, order]), model(x, EDGES), rtol=0, atol=1e-10)
    assert torch.equal(model(x, Graph(EDGES, N)), model(x, EDGES))


@EACH_INDUCTIVE
@pytest.mark.parametrize("graph_level", [False, True])
def test_a_batch_of_graphs_is_its_graphs_one_by_one(name: str, graph_level: bool) -> None:
    model = build(name, graph_level=graph_level)
    parts = [
        Data(x=randn(n, F_IN, seed=seed), edge_index=edges, num_nodes=n)
        for seed, (n, edges) in enumerate(GRAPHS.values())
    ]
    batch = Batch.from_data_list(parts)
    together = model(batch.x, batch.edge_index, batch=batch.batch, batch_size=batch.num_graphs)
    alone = torch.cat([model(part.x, part.edge_index) for part in parts])
    assert together.shape == ((len(parts) if graph_level else batch.num_nodes), OUT)
    assert_close(together, alone, rtol=0, atol=1e-9)


@EACH_MODEL
def test_parameters_are_saved_loaded_and_drawn_anew(name: str, tmp_path: Path) -> None:
    model, other, x = build(name), build(name, seed=1), randn(N, F_IN)
    want = model(x, EDGES)
    save_tensors(tmp_path / "model.safetensors", model.state_dict(), {})
    other.load_state_dict(load_tensors(tmp_path / "model.safetensors")[0])
    assert torch.equal(other(x, EDGES), want)
    before = {key: value.clone() for key, value in model.named_parameters()}
    torch.manual_seed(7)
    model.reset_parameters()
    again = build(name, seed=8)
    torch.manual_seed(7)
    again.reset_parameters()
    assert_close(model(x, EDGES), again(x, EDGES))
    # What starts at random starts elsewhere; ε, norms and identities start where they did.
    assert any(not torch.equal(before[key], value) for key, value in model.named_parameters())


@pytest.mark.thorough
@EACH_NETWORK
def test_it_compiles_in_one_piece(name: str) -> None:
    torch.compiler.reset()
    model, x = build(name), randn(N, F_IN)
    graph = Graph(EDGES, N)
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    assert_close(compiled(x, graph), model(x, graph), rtol=0, atol=1e-10)
    compiled(x, graph).sum().backward()


@pytest.mark.thorough
@EACH_NETWORK
def test_it_is_compiled_at_most_twice_for_graphs_of_all_sizes(name: str) -> None:
    """The second size makes sizes variables; no further one may compile again."""
    if not MODELS[name].inductive:
        pytest.skip("belongs to a graph of one size")
    torch.compiler.reset()
    fields = {field.name for field in dataclasses.fields(MODELS[name].settings)}
    settings = {"num_layers": 1} if "num_layers" in fields else {}
    counter, model = CompileCounter(), build(name, **settings)
    compiled = torch.compile(model, backend=counter, fullgraph=True)
    for n in (9, 11, 12, 14):
        edges = simple_graph(n, n + 5, seed=n)
        x, graph = randn(n, F_IN), Graph(edges, n)
        with torch.no_grad():
            assert_close(compiled(x, graph), model(x, graph), rtol=0, atol=1e-10)
    assert counter.frame_count <= 2


@EACH_MODEL
def test_a_graph_met_in_inference_mode_can_be_trained_on(name: str) -> None:
    model, x, graph = build(name), randn(N, F_IN), Graph(EDGES, N)
    with torch.inference_mode():
        want = model(x, graph).clone()
    out = model(x, graph)
    assert_close(out.detach(), want.clone())
    out.sum().backward()


@EACH_MODEL
def test_autocast_bears_edge_weights(name: str) -> None:
    model, x, weight = build(name).float(), randn(N, F_IN).float(), torch.ones(EDGES.shape[1])
    if not model.takes_edge_weight:
        pytest.skip("uses no edge weights")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        got, want = model(x, EDGES, edge_weight=weight), model(x, EDGES)
    assert_close(got.float(), want.float(), rtol=0.1, atol=0.1)


@EACH_MODEL
def test_edge_weights_count_or_are_refused(name: str) -> None:
    model, x = build(name), randn(N, F_IN)
    weight = 0.5 + torch.rand(EDGES.shape[1], generator=generator(2), dtype=torch.float64)
    weight = weight[(EDGES[0] * EDGES[1]) % EDGES.shape[1]]  # the same both ways
    if not model.sees_edges:
        assert torch.equal(model(x, EDGES, edge_weight=weight), model(x, EDGES))
    elif model.takes_edge_weight:
        ones = torch.ones_like(weight)
        assert_close(model(x, EDGES, edge_weight=ones), model(x, EDGES), rtol=0, atol=1e-10)
        assert not torch.allclose(model(x, EDGES, edge_weight=weight), model(x, EDGES))
    else:
        with pytest.raises(ValueError, match="`edge_weight` must be None"):
            model(x, EDGES, edge_weight=weight)


@EACH_MODEL
def test_direction_counts_or_is_refused(name: str) -> None:
    """A model whose registry entry says "directed" notices when every edge is turned round."""
    model, x = build(name, 4), randn(4, F_IN)
    one_way = torch.tensor([[0, 1, 2], [1, 2, 3]])
    if not model.sees_edges:
        assert torch.equal(model(x, one_way), model(x, one_way.flip(0)))
    elif MODELS[name].directed:
        assert not torch.allclose(model(x, one_way), model(x, one_way.flip(0)))
    else:
        with pytest.raises(ValueError, match="`edge_index` must hold every edge both ways"):
            model(x, one_way)


@EACH_MODEL
def test_bad_input_is_named(name: str) -> None:
    model, x = build(name), randn(N, F_IN)
    with pytest.raises(ValueError, match="`x` must have shape"):
        model(x[:, :2], EDGES)
    with pytest.raises(ValueError, match="`edge_index` must"):
        model(x, EDGES + 1)
    with pytest.raises(ValueError, match="`x` must have the dtype of the model"):
        model(x.float(), EDGES)
    with pytest.raises(ValueError, match="pe"):
        model(x, EDGES, pe=x)
    config = MODELS[name].settings
    fields = {field.name for field in dataclasses.fields(config)}
    for field, value in {
        "hidden_channels": 0,
        "num_layers": 0,
        "dropout": 1.5,
        **({"pool": "?"} if MODELS[name].graph_level else {}),
    }.items():
        if field in fields:
            with pytest.raises(ValueError, match=f"`{field}`"):
                config(**{field: value}).build(
                    F_IN, OUT, graph_level=MODELS[name].graph_level, num_nodes=N
                )


@EACH_MODEL
def test_a_network_that_belongs_to_one_graph_says_so(name: str) -> None:
    info = MODELS[name]
    config = info.settings(**SMALL[name][0])
    assert info.inductive != info.find_network().needs_num_nodes()
    if info.inductive:
        return
    with pytest.raises(ValueError, match="`num_nodes` must be given"):
        config.build(F_IN, OUT)
    with pytest.raises(ValueError, match=f"{re.escape(name)} gives no outputs for whole"):
        config.build(F_IN, OUT, graph_level=True, num_nodes=N)
    for n, edges in (GRAPHS["isolated nodes"], (N + 1, EDGES)):
        with pytest.raises(ValueError, match=f"`x` must have {N} rows.* got {n}"):
            build(name)(randn(n, F_IN), edges)
