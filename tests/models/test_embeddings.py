"""What the readout sees: embeddings of every network, and what it makes of all its layers."""

from __future__ import annotations

import dataclasses
import inspect

import pytest
import torch
from graphs import randn
from models.test_all import EACH_MODEL, EDGES, F_IN, OUT, SMALL, N, build
from torch.testing import assert_close
from torch_geometric.nn import JumpingKnowledge

from coopsheaf import Graph
from coopsheaf.analysis.probing import layer_features
from coopsheaf.models.network import JUMPS, Network
from coopsheaf.models.registry import MODELS
from coopsheaf.zoo.plain.network import PlainNetwork

# Networks whose layers are no sequence of features of one width.
NOT_JUMPING = (
    "gcnii",
    "gcnii-star",
    "gprgnn",
    "gprgnn-lab",
    "fagcn",
    "pairnorm",
    "linkx",
    "mixhop",
    "mixhop-linkx",
    "h2gcn",
    "h2gcn-linkx",
    "ggcn",
    "geom-gcn",
    "fsgnn",
    "acm-gcn",
    "acm-gcn-plus",
    "acmii",
    "glognn",
    "glognn++",
    "drew",
    "san",
    "exphormer",
    "graph-vit",
    "graph-mixer",
)
JUMPING = [
    name
    for name in MODELS
    if not issubclass(MODELS[name].find_network(), PlainNetwork) and name not in NOT_JUMPING
]
EACH_THAT_JUMPS = pytest.mark.parametrize("name", JUMPING)


def embedder(name: str, **settings: object) -> Network:
    torch.manual_seed(0)
    config = MODELS[name].settings(**(SMALL[name][0] | settings))
    return config.build(F_IN, None, num_nodes=N).double().eval()


@EACH_MODEL
def test_without_outputs_it_gives_embeddings(name: str) -> None:
    model, x = embedder(name), randn(N, F_IN)
    out = model(x, EDGES)
    assert out.shape == (N, model.embedding_channels)
    assert torch.equal(out, model.embed(x, Graph(EDGES, N)))
    assert out.std() > 0


@EACH_MODEL
def test_the_readout_sees_the_embedding(name: str) -> None:
    model, x = build(name), randn(N, F_IN)
    seen = model.embed(x, Graph(EDGES, N))
    assert seen.shape == (N, model.embedding_channels)
    assert torch.equal(model.readout(seen), model(x, EDGES))


@EACH_MODEL
def test_a_network_that_cannot_jump_has_no_such_argument(name: str) -> None:
    arguments = inspect.signature(MODELS[name].find_network().__init__).parameters
    fields = {field.name: field.default for field in dataclasses.fields(MODELS[name].settings)}
    assert ("jk" in arguments) == ("jk" in fields) == (name in JUMPING)
    assert fields.get("jk") is None


@EACH_THAT_JUMPS
@pytest.mark.parametrize("jk", JUMPS)
def test_jumping_is_what_pyg_makes_of_the_layers(name: str, jk: str) -> None:
    model, x = embedder(name, jk=jk), randn(N, F_IN).requires_grad_()
    layers = list(model.layer_outputs(x, Graph(EDGES, N)))
    layers = [model.after_layers(layer) for layer in layers]
    assert len(layers) == model.num_layers
    out = model(x, EDGES)
    assert out.shape == (N, model.embedding_channels)
    if jk == "last":
        want = layers[-1]
    else:
        theirs = JumpingKnowledge(jk, layers[0].shape[1], len(layers)).double()
        theirs.load_state_dict(model.jump.state_dict())
        want = theirs(layers)
    assert_close(out, want, rtol=0, atol=1e-12)
    out.square().sum().backward()
    assert torch.isfinite(x.grad).all()


@EACH_THAT_JUMPS
def test_the_last_layer_is_the_default(name: str) -> None:
    """Same parameters, same draws, same outputs with ``None`` and ``"last"``."""
    plain, last, x = build(name), build(name, jk="last"), randn(N, F_IN)
    assert list(plain.state_dict()) == list(last.state_dict())
    assert torch.equal(plain(x, EDGES), last(x, EDGES))
    wide = build(name, jk="cat")
    assert wide(x, EDGES).shape == (N, OUT)
    assert wide.embedding_channels == plain.embedding_channels * plain.num_layers


@pytest.mark.parametrize("name", ["csnn", "nsd-diag", "snn", "gin", "gcn-match"])
def test_the_outputs_of_layers_are_the_inputs_of_the_next(name: str) -> None:
    model, x, graph = build(name), randn(N, F_IN), Graph(EDGES, N)
    between = layer_features(model, x, graph)[1:]
    outputs = list(model.layer_outputs(x, graph))
    for want, got in zip(between, outputs, strict=True):
        assert_close(got, want.flatten(1), rtol=0, atol=1e-12)


def test_an_unknown_way_to_jump_is_named() -> None:
    with pytest.raises(ValueError, match="`jk` must be one of 'last', 'cat', 'max', 'lstm'"):
        build("csnn", jk="mean")


@pytest.mark.thorough
@pytest.mark.parametrize("jk", ["cat", "max"])
def test_it_compiles_with_all_layers(jk: str) -> None:
    torch.compiler.reset()
    model, x, graph = build("csnn", jk=jk), randn(N, F_IN), Graph(EDGES, N)
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    assert_close(compiled(x, graph), model(x, graph), rtol=0, atol=1e-10)
