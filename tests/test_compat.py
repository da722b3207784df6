"""Released checkpoints: same outputs, same input gradients, and errors that name the tensor."""

from __future__ import annotations

import pytest
import torch
from graphs import randn
from released import ReleasedCSNN
from torch import nn

from coopsheaf.compat import from_released

N, F_IN, H, LAYERS, OUT = 9, 5, 4, 2, 3
# One-directional, with loops, a parallel edge and isolated nodes: the degrees all differ.
EDGES = torch.tensor([[0, 1, 1, 2, 3, 3, 4, 4, 5, 0], [1, 2, 2, 0, 3, 4, 0, 5, 3, 6]])

CONFIGS: dict[str, dict] = {
    "defaults": {},
    "mlp": {"gnn_layers": 0, "gnn_hidden": 6, "stalk_dimension": 3},
    "kind-1": {"gnn_default": 1, "gnn_layers": 2, "gnn_hidden": 6, "stalk_dimension": 3},
    "kind-1-one-layer": {"gnn_default": 1, "gnn_layers": 1, "stalk_dimension": 3},
    "kind-2": {"gnn_default": 2, "gnn_layers": 3, "gnn_hidden": 6, "stalk_dimension": 4},
    "custom-residual": {"gnn_layers": 2, "gnn_hidden": 6, "gnn_residual": True},
    "cayley": {"orth_trans": "cayley", "gnn_layers": 0, "stalk_dimension": 3},
    "matrix-exp": {
        "orth_trans": "matrix_exp", "gnn_default": 2, "gnn_layers": 2, "stalk_dimension": 3,
    },
    "matrix-exp-custom": {"orth_trans": "matrix_exp", "stalk_dimension": 3},
    "cayley-not-conformal": {
        "orth_trans": "cayley", "conformal": False, "gnn_default": 1, "gnn_layers": 2,
    },
    "euler-2": {"orth_trans": "euler", "gnn_layers": 0},
    "euler-3": {"orth_trans": "euler", "gnn_layers": 0, "stalk_dimension": 3},
    "not-conformal": {"conformal": False, "gnn_layers": 0, "stalk_dimension": 3},
    "no-weights": {"left_weights": False, "right_weights": False, "gnn_layers": 0},
    "left-only": {"right_weights": False, "gnn_layers": 0},
    "layer-norm": {"norm": "LayerNorm", "gnn_layers": 0},
    "batch-norm": {"norm": "BatchNorm", "gnn_layers": 0},
    "heads": {"num_heads": 3, "gnn_layers": 0},
    "identity": {"act": "id", "gnn_layers": 0},
    "elu": {"act": "elu", "gnn_layers": 0},
    "graph-mean": {"graph_level": True, "gnn_layers": 0},
    "graph-add": {"graph_level": True, "pooling": "add", "gnn_layers": 0},
    "graph-max": {"graph_level": True, "pooling": "max", "gnn_layers": 0},
    "positional": {"pe_size": 2, "gnn_default": 2, "gnn_layers": 1},
}  # fmt: skip


def released(config: dict) -> ReleasedCSNN:
    torch.manual_seed(0)
    model = ReleasedCSNN(F_IN, H, LAYERS, OUT, **config).double().eval()
    for tensor in model.state_dict().values():  # nothing at its initial value
        if tensor.is_floating_point():
            tensor += 0.3 * torch.rand_like(tensor)
    return model


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_outputs_and_gradients_equal_the_released_ones(config: dict) -> None:
    theirs = released(config)
    ours = from_released(theirs.state_dict(), config).eval()
    assert ours.semantics == "released"
    x = randn(N, F_IN, seed=1).requires_grad_()
    pe = randn(N, config["pe_size"], seed=2) if config.get("pe_size") else None
    batch = torch.tensor([0, 0, 0, 0, 0, 0, 0, 1, 1])
    expected = theirs(x, EDGES, batch, pe)
    got = ours(x, EDGES, batch=batch, pe=pe)
    assert got.shape == expected.shape
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-9)
    weights = randn(*got.shape, seed=3)
    (want,) = torch.autograd.grad((expected * weights).sum(), x)
    (have,) = torch.autograd.grad((got * weights).sum(), x)
    assert want.abs().max() > 1e-3
    torch.testing.assert_close(have, want, rtol=0, atol=1e-9)


def test_dropout_and_precision_are_those_of_the_released_model() -> None:
    config = {"gnn_layers": 0, "dropout": 0.3, "input_dropout": 0.4}
    state = ReleasedCSNN(F_IN, H, LAYERS, OUT, gnn_layers=0).state_dict()
    model = from_released(state, config)
    assert (model.dropout, model.input_dropout) == (0.3, 0.4)
    assert model.encoder.weight.dtype == torch.float32


def test_sizes_may_be_given_and_must_agree() -> None:
    config = {"gnn_layers": 0}
    state = released(config).state_dict()
    sizes = {"in_channels": F_IN, "hidden_channels": H, "num_layers": LAYERS, "out_channels": OUT}
    from_released(state, {**config, **sizes})
    for name in sizes:
        with pytest.raises(ValueError, match=rf"config\['{name}'\].*got 99"):
            from_released(state, {**config, name: 99})


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_every_missing_tensor_is_named(config: dict) -> None:
    state = released(config).state_dict()
    for name in state:
        rest = {key: value for key, value in state.items() if key != name}
        with pytest.raises(ValueError, match=name.replace(".", r"\.")):
            from_released(rest, config)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_every_misshaped_tensor_is_named(config: dict) -> None:
    state = released(config).state_dict()
    for name, tensor in state.items():
        with pytest.raises(ValueError, match=name.replace(".", r"\.")):
            from_released({**state, name: tensor.unsqueeze(-1)}, config)


def test_a_transposed_weight_is_named() -> None:
    state = released({"gnn_layers": 0}).state_dict()
    name = "coop_layers.1.in_maps_learner.phi.0.weight"
    with pytest.raises(ValueError, match=r"must have shape \(32, 8\); got \(8, 32\)"):
        from_released({**state, name: state[name].T}, {"gnn_layers": 0})


def test_an_extra_tensor_is_named() -> None:
    state = released({"gnn_layers": 0}).state_dict()
    with pytest.raises(ValueError, match="holds 'surprise', which"):
        from_released({**state, "surprise": torch.zeros(1).double()}, {"gnn_layers": 0})


def test_a_non_tensor_is_named() -> None:
    state = released({"gnn_layers": 0}).state_dict()
    with pytest.raises(ValueError, match=r"lin1\.bias.*must be a tensor; got list"):
        from_released({**state, "lin1.bias": [1.0]}, {"gnn_layers": 0})


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("use_eps", False),
        ("use_bias", True),
        ("sheaf_act", "relu"),
        ("gnn_type", "GAT"),
        ("linear_emb", False),
        ("gnn_default", 3),
        ("orth_trans", "qr"),
        ("act", "swish"),
        ("norm", "GroupNorm"),
        ("stalk_dimension", 1),
        ("surprise", 1),
        ("gnn_hidden", 0),
        ("dropout", 1.5),
        ("left_weights", "no"),
        ("pooling", "median"),
    ],
)
def test_unsupported_options_are_named(option: str, value: object) -> None:
    with pytest.raises(ValueError, match=option):
        from_released(released({}).state_dict(), {option: value})


def test_one_dtype_for_all() -> None:
    state = released({"gnn_layers": 0}).state_dict()
    with pytest.raises(ValueError, match=r"lin1\.bias.*must have the dtype of 'lin1.weight'"):
        from_released({**state, "lin1.bias": state["lin1.bias"].half()}, {"gnn_layers": 0})


@pytest.mark.parametrize("arguments", [(None, {}), ({}, None)])
def test_mappings_are_asked_for(arguments: tuple) -> None:
    with pytest.raises(ValueError, match="must be a mapping; got NoneType"):
        from_released(*arguments)


def test_an_unrelated_state_dict_is_refused() -> None:
    with pytest.raises(ValueError, match=r"lin1\.weight"):
        from_released(nn.Linear(2, 2).state_dict(), {})
