"""The Cooperative Sheaf Neural Network."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import global_add_pool, global_max_pool, global_mean_pool
from torch_geometric.nn.resolver import activation_resolver

from coopsheaf.checks import check_choice, check_int, check_probability
from coopsheaf.graph import Graph, as_graph
from coopsheaf.nn.csnn_conv import CSNNConv
from coopsheaf.nn.learners import LearnerRecipe
from coopsheaf.orthogonal import Orthogonal, Scale
from coopsheaf.tensor_checks import check_batch, check_shape

NORMS: dict[str, Callable[[int], nn.Module]] = {"layer": nn.LayerNorm, "batch": nn.BatchNorm1d}

POOLS: dict[str, Callable[..., Tensor]] = {
    "mean": global_mean_pool,
    "sum": global_add_pool,
    "max": global_max_pool,
}


class CSNN(nn.Module):
    r"""Cooperative Sheaf Neural Network (Ribeiro et al., ICLR 2026), for nodes or whole graphs.

    An encoder lifts the input to h channels of stalk dimension d; then, layer by layer,

    .. math::
        X_{t+1} = (1 + \tanh \varepsilon_t) \odot X_t
                  - \sigma\bigl((\Delta_t^{in})^\top \Delta_t^{out} (I_n \otimes W_{1,t}) X_t
                  W_{2,t}\bigr),

    with one learned :math:`\varepsilon_t \in \mathbb{R}^d` per layer, shared by nodes and channels,
    and with maps learned anew from :math:`X_t` (:class:`~coopsheaf.nn.CSNNConv`); an optional norm
    follows. The readout is a linear layer or an MLP, after pooling for whole graphs.

    Dropout acts on what enters a layer (its residual and its learners see the dropped-out
    features) and on what the diffusion returns.

    Args:
        in_channels: size of the input features.
        hidden_channels: number h of channels; a layer is d·h wide.
        num_layers: number of layers.
        out_channels: size of the output.
        stalk_dim: dimension d of the stalks.
        learner: what learns the maps: a recipe such as
            :class:`~coopsheaf.nn.ProjectedSAGELearner`, its name (``"mlp"``,
            ``"sage-graph-norm"``, ``"sage-node-norm"``, ``"sage-projected"``,
            ``"sage-embedded"``), or a module that maps ``(x, edge_index)`` to the right width
            (every layer gets copies of it, their parameters drawn anew).
        orthogonal: ``"householder"``, ``"cayley"``, ``"matrix-exponential"``, ``"euler"``, or an
            object of :mod:`coopsheaf.orthogonal`.
        scale: ``"exp"``, ``"softplus"``, ``"rectified"``, ``"unit"``, or an object.
        left_weights: learn :math:`W_1`.
        right_weights: learn :math:`W_2`.
        semantics: ``"paper"`` or ``"released"`` (:mod:`coopsheaf.diffusion`).
        input_dropout: dropout probability of the input features.
        dropout: dropout probability inside the layers.
        act: the activation σ: a name that PyG resolves, a module, or ``"identity"`` / ``None``.
        norm: ``None``, ``"layer"`` or ``"batch"``, after each layer.
        readout_layers: number of linear layers of the readout, GELU between them.
        pool: ``None`` for node outputs; ``"mean"``, ``"sum"`` or ``"max"`` for graph outputs.
        pe_channels: size of positional encodings; only the map learners see them.

    Shapes:
        x ``(n, in_channels)``; edge_index ``(2, m)`` or a :class:`~coopsheaf.Graph`; batch
        ``(n,)``, the graph of each node; pe ``(n, pe_channels)``; edge_weight ``(m,)``. Returns
        ``(n, out_channels)``, or ``(graphs, out_channels)`` with a pool.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        num_layers: int,
        out_channels: int,
        *,
        stalk_dim: int = 3,
        learner: str | LearnerRecipe | nn.Module = "mlp",
        orthogonal: str | Orthogonal = "householder",
        scale: str | Scale = "exp",
        left_weights: bool = True,
        right_weights: bool = True,
        semantics: str = "paper",
        input_dropout: float = 0.0,
        dropout: float = 0.0,
        act: str | Callable[[Tensor], Tensor] | None = "gelu",
        norm: str | None = None,
        readout_layers: int = 1,
        pool: str | None = None,
        pe_channels: int = 0,
    ) -> None:
        super().__init__()
        self.in_channels = check_int("in_channels", in_channels, minimum=1)
        self.hidden_channels = check_int("hidden_channels", hidden_channels, minimum=1)
        self.num_layers = check_int("num_layers", num_layers, minimum=1)
        self.out_channels = check_int("out_channels", out_channels, minimum=1)
        self.stalk_dim = check_int("stalk_dim", stalk_dim, minimum=1)
        self.input_dropout = check_probability("input_dropout", input_dropout)
        self.dropout = check_probability("dropout", dropout)
        self.semantics = semantics
        self.act = _resolve_act(act)
        self.pool = None if pool is None else check_choice("pool", pool, POOLS)
        make_norm = nn.Identity if norm is None else check_choice("norm", norm, NORMS)
        check_int("readout_layers", readout_layers, minimum=1)

        width = stalk_dim * hidden_channels
        self.encoder = nn.Linear(in_channels, width)
        self.convs = nn.ModuleList(
            CSNNConv(
                hidden_channels,
                stalk_dim,
                learner=learner,
                orthogonal=orthogonal,
                scale=scale,
                left_weights=left_weights,
                right_weights=right_weights,
                semantics=semantics,
                pe_channels=pe_channels,
            )
            for _ in range(num_layers)
        )
        self.epsilons = nn.ParameterList(torch.empty(stalk_dim, 1) for _ in range(num_layers))
        self.norms = nn.ModuleList(make_norm(width) for _ in range(num_layers))
        hidden: list[nn.Module] = []
        for _ in range(readout_layers - 1):
            hidden += [nn.Linear(width, width), nn.GELU()]
        self.readout = nn.Sequential(*hidden, nn.Linear(width, out_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters anew; every ε starts at 0."""
        for module in (self.encoder, *self.convs, *self.norms, *self.readout, self.act):
            if hasattr(module, "reset_parameters"):
                module.reset_parameters()
        for epsilon in self.epsilons:
            nn.init.zeros_(epsilon)

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | Graph,
        batch: Tensor | None = None,
        batch_size: int | None = None,
        pe: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        check_shape("x", x, f"(n, {self.in_channels})", (None, self.in_channels))
        graph = as_graph(edge_index, x.shape[0])
        self._check_fit(x, graph)
        if self.pool is not None:
            check_batch(batch, batch_size, x.shape[0])
        x = F.dropout(x, self.input_dropout, self.training)
        x = self.act(self.encoder(x))
        x = x.unflatten(1, (self.stalk_dim, self.hidden_channels))  # (n, d, h)
        for conv, epsilon, norm in zip(self.convs, self.epsilons, self.norms, strict=True):
            x = F.dropout(x, self.dropout, self.training)
            y = F.dropout(conv(x, graph, pe, edge_weight), self.dropout, self.training)
            x = (1 + torch.tanh(epsilon)) * x - self.act(y)
            x = norm(x.flatten(1)).view_as(x)
        x = x.flatten(1)  # (n, d·h)
        if self.pool is not None:
            x = self.pool(x, batch, batch_size)
        return self.readout(x)

    def _check_fit(self, x: Tensor, graph: Graph) -> None:
        weight = self.epsilons[0]
        if x.dtype != weight.dtype and not torch.is_autocast_enabled(x.device.type):
            raise ValueError(
                f"`x` must have the dtype of the model, {weight.dtype} (model.to(dtype) changes "
                f"it); got {x.dtype}"
            )
        if not x.device == weight.device == graph.device:
            raise ValueError(
                f"`x` and `edge_index` must be on the device of the model, {weight.device}; "
                f"got {x.device} and {graph.device}"
            )

    def __repr__(self) -> str:
        return (
            f"CSNN({self.in_channels}, {self.hidden_channels}, num_layers={self.num_layers}, "
            f"out_channels={self.out_channels}, stalk_dim={self.stalk_dim}, "
            f"semantics={self.semantics!r})"
        )


def _resolve_act(act: str | Callable[[Tensor], Tensor] | None) -> Callable[[Tensor], Tensor]:
    if act is None or act == "identity":
        return nn.Identity()
    if isinstance(act, str):
        try:
            return activation_resolver(act)
        except ValueError as error:
            raise ValueError(f"`act` must be an activation or its name; {error}") from None
    if not callable(act):
        raise ValueError(f"`act` must be an activation or its name; got {act!r}")
    return act
