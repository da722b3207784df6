"""Looking into networks: their features layer by layer, and their maps held still."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv

from coopsheaf.models.network import Network
from coopsheaf.nn.learners import MapLearner
from coopsheaf.sheaves.graph import Graph
from coopsheaf.zoo.nsd.edge_learners import EdgeLearner

# What networks call the list of their layers.
_LISTS = ("blocks", "convs", "layers")

WRT = {
    "input": "the input features x",
    "encoder": "what the encoder makes of them; also for integer features",
}


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Switch every module inside to evaluation (no dropout), and back as it was."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode


@contextmanager
def frozen_maps(model: nn.Module) -> Iterator[None]:
    """Treat learned restriction maps as constants.

    A sheaf network passes information on in two ways: features diffuse along the maps, and the
    maps themselves are learned from features. Inside the ``with`` block everything that map
    learners (and learned edge weights) return is detached, so that Jacobians show the diffusion
    alone; what ``forward`` returns does not change::

        with frozen_maps(model):
            through_diffusion = influence(model, x, edge_index)

    Networks without learned maps are not affected. Not for compiled models, and not for training.
    """
    learners: list[nn.Module] = [
        m for m in model.modules() if isinstance(m, MapLearner | EdgeLearner)
    ]
    if isinstance(model, Network):
        learners += [m for m in model.map_learners() if m not in learners]

    def freeze(module: nn.Module, inputs: Any, output: Any) -> Any:
        return _detached(output)

    handles = [learner.register_forward_hook(freeze) for learner in learners]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _detached(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach()
    if isinstance(value, tuple):
        parts = [_detached(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value


def layer_features(
    model: Network, x: Tensor, edge_index: Tensor | Graph, **inputs: Any
) -> list[Tensor]:
    r"""The features before, between and after the layers: :math:`X_0, X_1, \dots, X_T`.

    :math:`X_t` is what enters layer t + 1, and :math:`X_T` what
    :meth:`~coopsheaf.models.network.Network.embed` returns: after the encoder, before the readout.
    Networks with a norm before each layer are read before it (Platonov et al., BuNN) or, if the
    normed features are all that goes on, after it (CO-GNN). Dropout is off.

    Args:
        model: a network of the registry.
        x: ``(n, in_channels)``.
        edge_index: ``(2, m)``, or a :class:`~coopsheaf.Graph`.
        inputs: ``batch``, ``batch_size``, ``pe``, ``edge_weight`` or ``edge_attr``, as the network
            takes them.

    Returns:
        T + 1 tensors ``(n, ...)``, with gradients if x has them.
    """
    if not isinstance(model, Network):
        raise ValueError(
            "`model` must be a coopsheaf Network to be read layer by layer; "
            f"got {type(model).__name__}"
        )
    states: list[Tensor] = []

    def remember(module: nn.Module, args: tuple[Any, ...]) -> None:
        states.append(args[0])

    with evaluating(model):
        with torch.no_grad():
            model(x, edge_index, **inputs)  # a network checks its own arguments
        graph = edge_index if isinstance(edge_index, Graph) else Graph(edge_index, x.shape[0])
        inside = {
            key: value
            for key, value in inputs.items()
            if key != "batch_size" and value is not None  # not all networks know all arguments
        }
        with ExitStack() as stack:
            for layer in dict.fromkeys(_layers(model)):
                stack.callback(layer.register_forward_pre_hook(remember).remove)
            embedding = model.embed(x, graph, **inside)
    if len(states) != getattr(model, "num_layers", len(states)):
        raise ValueError(
            f"`model` must call its {model.num_layers} layers as modules to be read layer by "
            f"layer; {type(model).__name__} called {len(states)}"
        )
    return [*states, embedding]


def _layers(model: Network) -> list[nn.Module]:
    """The modules that get to see the features first, one per layer."""
    for part in (model, *model.children()):
        norms, last = getattr(part, "norms", None), getattr(part, "last_norm", None)
        if isinstance(norms, nn.ModuleList) and len(norms) > 0 and last is not None:
            # Norms that stand before their blocks, outside the residual; a layer may be two blocks.
            return list(norms)[:: len(norms) // int(getattr(model, "num_layers", len(norms)))]
    for name in _LISTS:
        layers = getattr(model, name, None)
        if isinstance(layers, nn.ModuleList) and len(layers) > 0:
            # Our own sums may stand in for those of PyG, and call but the linear part of a layer.
            inner = (GATConv, GCNConv)
            return [layer.lin if isinstance(layer, inner) else layer for layer in layers]
    raise ValueError(
        f"`model` must have a list of layers ({', '.join(_LISTS)}) to be read layer by layer; "
        f"got {type(model).__name__}"
    )


def trace(
    model: nn.Module,
    x: Tensor,
    graph: Graph,
    *,
    at: str | int,
    wrt: str,
    inputs: dict[str, Any],
) -> tuple[Tensor, Tensor]:
    """Run a model: what to differentiate by, ``(n, f)``, and what to differentiate, ``(n, c)``."""
    leaf, states = trace_all(model, x, graph, wrt=wrt, output=at == "output", inputs=inputs)
    if isinstance(at, str) and at in ("output", "embedding"):
        return leaf, states[-1]
    if isinstance(at, bool) or not isinstance(at, int) or not 0 <= at < len(states):
        raise ValueError(
            "`at` must be 'output', 'embedding' or a number of layers from 0 to "
            f"{len(states) - 1}; got {at!r}"
        )
    return leaf, states[at]


def trace_all(
    model: nn.Module,
    x: Tensor,
    graph: Graph,
    *,
    wrt: str,
    output: bool,
    inputs: dict[str, Any],
) -> tuple[Tensor, list[Tensor]]:
    """What to differentiate by, and the output or the features of all layers, each ``(n, c)``."""
    leaves: list[Tensor] = []

    def cut(module: nn.Module, args: Any, encoded: Tensor) -> Tensor:
        leaf = encoded.detach().requires_grad_()
        leaves[:] = [leaf]
        return leaf

    x = x.detach()
    with torch.enable_grad(), ExitStack() as stack:
        if wrt == "input":
            if not x.is_floating_point():
                raise ValueError(
                    "`x` must have a floating point dtype to differentiate by it (wrt='encoder' "
                    f"takes integers); got {x.dtype}"
                )
            x = x.clone().requires_grad_()
            leaves.append(x)
        elif wrt == "encoder":
            stack.callback(_encoder(model).register_forward_hook(cut).remove)
        else:
            raise ValueError(f"`wrt` must be one of {', '.join(map(repr, WRT))}; got {wrt!r}")
        if output:
            with evaluating(model):
                states = [model(x, graph, **inputs)]
        else:
            states = layer_features(model, x, graph, **inputs)  # type: ignore[arg-type]
    return leaves[0], [state.flatten(1) for state in states]


def _encoder(model: nn.Module) -> nn.Module:
    for name, module in model.named_modules():
        if name.split(".")[-1] == "encoder":
            return module
    raise ValueError(
        f"`wrt` must be 'input' for a model without an encoder; got {type(model).__name__}"
    )


def row_products(out: Tensor, leaf: Tensor, row: int, vectors: Tensor) -> Iterator[Tensor]:
    """vᵀ ∂out[row] / ∂leaf, of the shape of ``leaf``, for one v ``(c,)`` after the other."""
    # Our sparse operators have no batching rule, so the products are made one by one.
    weight = torch.zeros_like(out)
    for vector in vectors.to(out):
        weight[row] = vector
        gradient = None
        if out.requires_grad:
            (gradient,) = torch.autograd.grad(
                out, leaf, weight, retain_graph=True, allow_unused=True
            )
        yield torch.zeros_like(leaf) if gradient is None else gradient
