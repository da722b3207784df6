"""Checkpoints of the authors' released implementation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from coopsheaf.checks import check_choice, check_int, check_probability
from coopsheaf.models.csnn import CSNN
from coopsheaf.nn.learners import (
    EmbeddedSAGELearner,
    GraphNormSAGELearner,
    LearnerRecipe,
    MLPLearner,
    ProjectedSAGELearner,
)

# The released constructor's keywords and defaults; sizes are read off the tensors.
_DEFAULTS: dict[str, Any] = {
    "in_channels": None,
    "hidden_channels": None,
    "num_layers": None,
    "out_channels": None,
    "use_eps": True,
    "stalk_dimension": 2,
    "input_dropout": 0.0,
    "dropout": 0.0,
    "act": "gelu",
    "pe_size": 0,
    "num_heads": 1,
    "norm": "none",
    "graph_level": False,
    "pooling": "mean",
    "left_weights": True,
    "right_weights": True,
    "use_bias": False,
    "sheaf_act": "tanh",
    "orth_trans": "householder",
    "linear_emb": True,
    "gnn_type": "SAGE",
    "gnn_layers": 1,
    "gnn_hidden": 32,
    "gnn_default": 0,
    "gnn_residual": False,
    "conformal": True,
    "print_params": False,
}

_ACTS = {name: name for name in ("tanh", "relu", "gelu", "sigmoid", "elu")} | {"id": None}
_NORMS = {"none": None, "LayerNorm": "layer", "BatchNorm": "batch"}
_POOLS = {"mean": "mean", "add": "sum", "sum": "sum", "max": "max"}
_ORTHOGONAL = {
    "householder": "householder",
    "cayley": "cayley",
    "matrix_exp": "matrix-exponential",
    "euler": "euler",
}


def from_released(state_dict: Mapping[str, Tensor], config: Mapping[str, Any]) -> CSNN:
    """Our :class:`~coopsheaf.CSNN` with the parameters of a released single-file ``CSNN``.

    Load the file with ``torch.load(path, weights_only=True)``, which executes nothing. The model
    that comes back computes what the released one computes (``semantics="released"``) in the
    precision of the given tensors, and is in training mode, as new modules are.

    Args:
        state_dict: the released model's ``state_dict()``.
        config: the keywords of its constructor; what is left out has the constructor's default.

    Raises:
        ValueError: naming the tensor that is missing, unknown or of another shape, or the option
            that is unknown or cannot be reproduced.
    """
    for name, value in (("state_dict", state_dict), ("config", config)):
        if not isinstance(value, Mapping):
            raise ValueError(f"`{name}` must be a mapping; got {type(value).__name__}")
    options = _read_options(config)
    d, h, layers = _read_sizes(state_dict, options)
    recipe = _recipe(options)
    pool = check_choice("config['pooling']", options["pooling"], _POOLS)
    model = CSNN(
        state_dict["lin1.weight"].shape[1],
        h,
        layers,
        _readout_bias(state_dict, options).shape[0],
        stalk_dim=d,
        learner=recipe,
        orthogonal=check_choice("config['orth_trans']", options["orth_trans"], _ORTHOGONAL),
        scale="exp" if options["conformal"] else "unit",
        left_weights=options["left_weights"],
        right_weights=options["right_weights"],
        semantics="released",
        input_dropout=options["input_dropout"],
        dropout=options["dropout"],
        act=check_choice("config['act']", options["act"], _ACTS),
        norm=check_choice("config['norm']", options["norm"], _NORMS),
        readout_layers=options["num_heads"],
        pool=pool if options["graph_level"] else None,
        pe_channels=options["pe_size"],
    ).to(state_dict["lin1.weight"].dtype)
    model.load_state_dict(_translate(state_dict, model, recipe, options))
    return model


def _read_options(config: Mapping[str, Any]) -> dict[str, Any]:
    for name in config:
        check_choice("config", name, _DEFAULTS)
    options = {**_DEFAULTS, **config}
    # The released code without ε has no residual at all; with biases its weights are not linear.
    required = {"use_eps": True, "use_bias": False, "sheaf_act": "tanh"}
    if options["gnn_layers"] != 0 and options["gnn_default"] == 0:
        required |= {"gnn_type": "SAGE", "linear_emb": True}
    for name, value in required.items():
        if options[name] != value:
            raise ValueError(
                f"`config[{name!r}]` must be {value!r}: nothing else can be reproduced; "
                f"got {options[name]!r}"
            )
    for name, minimum in (
        ("stalk_dimension", 2),
        ("gnn_layers", 0),
        ("num_heads", 1),
        ("pe_size", 0),
        ("gnn_hidden", 1),
    ):
        check_int(f"config[{name!r}]", options[name], minimum=minimum)
    for name in ("dropout", "input_dropout"):
        check_probability(f"config[{name!r}]", options[name])
    for name, default in _DEFAULTS.items():
        if isinstance(default, bool) and not isinstance(options[name], bool):
            raise ValueError(f"`config[{name!r}]` must be True or False; got {options[name]!r}")
    return options


def _read_sizes(
    state_dict: Mapping[str, Tensor], options: Mapping[str, Any]
) -> tuple[int, int, int]:
    """Stalk dimension, channels and layers; what the config says of them must agree."""
    for name, value in state_dict.items():
        if not isinstance(value, Tensor):
            raise ValueError(f"`state_dict[{name!r}]` must be a tensor; got {type(value).__name__}")
    if "lin1.weight" not in state_dict or state_dict["lin1.weight"].dim() != 2:
        raise ValueError("`state_dict` must hold the matrix 'lin1.weight' of a released CSNN")
    dtype = state_dict["lin1.weight"].dtype
    for name, value in state_dict.items():
        if not name.endswith("num_batches_tracked") and value.dtype != dtype:
            raise ValueError(
                f"`state_dict[{name!r}]` must have the dtype of 'lin1.weight', {dtype}; "
                f"got {value.dtype}"
            )
    if not dtype.is_floating_point:
        raise ValueError(f"`state_dict` must hold floating point tensors; got {dtype}")
    width, in_channels = state_dict["lin1.weight"].shape
    d = options["stalk_dimension"]
    if width % d != 0:
        raise ValueError(
            f"`state_dict['lin1.weight']` must have a multiple of the stalk dimension {d} as rows; "
            f"got shape {(width, in_channels)}"
        )
    indices = [re.match(r"coop_layers\.(\d+)\.|epsilons\.(\d+)$", name) for name in state_dict]
    layers = 1 + max((int(found[1] or found[2]) for found in indices if found), default=-1)
    read = {
        "in_channels": in_channels,
        "hidden_channels": width // d,
        "num_layers": layers,
        "out_channels": _readout_bias(state_dict, options).shape[0],
    }
    for name, value in read.items():
        if options[name] is not None and options[name] != value:
            raise ValueError(
                f"`config[{name!r}]` must be {value}, as the tensors have it; got {options[name]!r}"
            )
    if layers == 0:
        raise ValueError("`state_dict` must hold at least one layer, 'coop_layers.0...'")
    return d, width // d, layers


def _readout_bias(state_dict: Mapping[str, Tensor], options: Mapping[str, Any]) -> Tensor:
    name = f"mlp.{2 * (options['num_heads'] - 1)}.bias"
    if name not in state_dict or state_dict[name].dim() != 1:
        raise ValueError(
            f"`state_dict` must hold the vector {name!r} for num_heads={options['num_heads']}"
        )
    return state_dict[name]


def _recipe(options: Mapping[str, Any]) -> LearnerRecipe:
    kind, layers, hidden = (options[f"gnn_{key}"] for key in ("default", "layers", "hidden"))
    if layers == 0:
        return MLPLearner(hidden)
    if kind == 1:
        return GraphNormSAGELearner(hidden, layers)
    if kind == 2:
        return ProjectedSAGELearner(hidden, layers)
    if kind == 0:
        return EmbeddedSAGELearner(hidden, layers, residual=bool(options["gnn_residual"]))
    raise ValueError(f"`config['gnn_default']` must be 0, 1 or 2; got {kind!r}")


def _translate(
    state_dict: Mapping[str, Tensor],
    model: CSNN,
    recipe: LearnerRecipe,
    options: Mapping[str, Any],
) -> dict[str, Tensor]:
    """The released tensors under our names, each checked."""
    ours = model.state_dict()
    theirs = {_released_name(name, recipe): name for name in ours}
    for name in theirs:
        if name not in state_dict:
            raise ValueError(f"`state_dict` must hold {name!r}; it is missing")
    for name in state_dict:
        if name not in theirs:
            raise ValueError(f"`state_dict` holds {name!r}, which such a model does not have")
    d = model.stalk_dim
    keep = None
    if options["orth_trans"] in ("cayley", "matrix_exp"):
        # Their learners also emit the diagonal of the triangle, which cancels in A - Aᵀ.
        rows, columns = torch.tril_indices(d, d)
        keep = [k for k in range(rows.numel()) if rows[k] != columns[k]]
        keep += [rows.numel()] if options["conformal"] else []
    translated = {}
    for name, our_name in theirs.items():
        tensor, shape = state_dict[name], list(ours[our_name].shape)
        emits_maps = keep is not None and _is_learner_output(our_name, recipe)
        if emits_maps:
            shape[0] += d
        if list(tensor.shape) != shape:
            raise ValueError(
                f"`state_dict[{name!r}]` must have shape {tuple(shape)}; got {tuple(tensor.shape)}"
            )
        translated[our_name] = tensor[keep] if emits_maps else tensor
    return translated


def _released_name(name: str, recipe: LearnerRecipe) -> str:
    """What the released code calls one of our tensors."""
    name = re.sub(r"^encoder\.", "lin1.", name)
    name = re.sub(r"^readout\.", "mlp.", name)
    name = re.sub(r"^convs\.", "coop_layers.", name)
    name = re.sub(r"\.(left|right)\.", r".lin_\1_weights.", name)
    # Released names follow the Laplacians: the "in" learner gives S, the "out" learner gives T.
    inside = "" if isinstance(recipe, EmbeddedSAGELearner) else "phi."
    name = name.replace(".source_learner.learner.", f".in_maps_learner.{inside}")
    name = name.replace(".target_learner.learner.", f".out_maps_learner.{inside}")
    return name.replace(".phi.layers.", ".phi.")


def _is_learner_output(name: str, recipe: LearnerRecipe) -> bool:
    if "_learner." not in name:
        return False
    if isinstance(recipe, MLPLearner):
        return ".layers.2." in name
    if isinstance(recipe, EmbeddedSAGELearner):
        return ".emb2." in name
    assert isinstance(recipe, GraphNormSAGELearner | ProjectedSAGELearner)
    last = f".convs.{recipe.num_layers - 1}."
    return f".learner{last}lin_l" in name or f".learner{last}lin_r" in name
