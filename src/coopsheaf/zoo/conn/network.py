"""Neural Sheaf Diffusion on connections that are known before training, and its random controls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple, cast

import torch
from torch import Tensor
from torch.autograd import forward_ad

from coopsheaf.checks import check_choice, check_int
from coopsheaf.models.arguments import arguments_of
from coopsheaf.nn.structure import check_rows
from coopsheaf.sheaves.connections import check_frame_dim, connection_maps, random_connection
from coopsheaf.sheaves.graph import Graph
from coopsheaf.zoo.conn.conv import ConnectionConv, ConnectionMaps
from coopsheaf.zoo.nsd.network import NSD

# What a connection has no use for.
LEARNING = (
    "maps",
    "orthogonal",
    "map_act",
    "sparse_learner",
    "sparse_reading",
    "learn_weights",
    "maps_once",
)

DRAWS = {
    "edge": "a uniform orthogonal map for every pair of neighbours",
    "node": "a uniform frame in the space of features for every node, aligned as of local PCA",
}


class ConnNSD(NSD):
    r"""Conn-NSD: Neural Sheaf Diffusion on the connection of local PCA (Barbero et al., 2022).

    .. math::
        X_{t+1} = (1 + \tanh \varepsilon_t) \odot X_t
                  - \sigma\bigl(\Delta (I_n \otimes W_{1,t}) \tilde X_t W_{2,t}\bigr)

    as in :class:`~coopsheaf.zoo.nsd.NSD`, with one Δ for all layers whose blocks are
    :math:`-O_{ij}`: orthogonal maps from the input features and the graph alone
    (:func:`~coopsheaf.sheaves.connection_maps`), found at the first call and remembered with the
    :class:`~coopsheaf.Graph` for as long as the features stay the same. Nothing of them is learned,
    and no gradient reaches the features through them; dropout does not touch what they are made of.

    Features of size p and n nodes take O(m p d) beyond what finds the frames, once. Cut out of a
    graph, a part has the neighbours that are there, and other maps than the whole.

    Args:
        in_channels: size p of the input features.
        hidden_channels: number h of channels.
        num_layers: number of layers.
        out_channels: size of the output; ``None`` for the features of the last layer.
        stalk_dim: dimension d of the stalks on which maps act, at most p.
        settings: as for :class:`~coopsheaf.zoo.nsd.NSD`, but for what learns maps.

    Shapes:
        as those of :class:`~coopsheaf.zoo.nsd.NSD`.
    """

    conv_kind = ConnectionConv
    needs_frames: ClassVar[bool] = True  # in the space of the features
    exportable = False
    why_not_exportable = "this network finds its maps by decompositions of the features"

    @arguments_of(NSD, without=LEARNING)
    def __init__(
        self,
        in_channels: int,
        hidden_channels: int = 32,
        num_layers: int = 2,
        out_channels: int | None = None,
        *,
        stalk_dim: int = 3,
        **settings: Any,
    ) -> None:
        if self.needs_frames:
            check_frame_dim(stalk_dim, check_int("in_channels", in_channels, minimum=1))
        super().__init__(
            in_channels,
            hidden_channels,
            num_layers,
            out_channels,
            stalk_dim=stalk_dim,
            maps=ConnectionMaps(stalk_dim),
            learn_weights=False,
            **settings,
        )

    def transports(self, x: Tensor, graph: Graph, batch: Tensor | None = None) -> Tensor:
        """The connection, ``(m, d, d)``, of features ``(n, in_channels)``."""
        return remembered_maps(x, graph, self.stalk_dim, batch)

    def layer_outputs(
        self,
        x: Tensor,
        graph: Graph,
        *,
        batch: Tensor | None = None,
        pe: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Iterator[Tensor]:
        transports = self.transports(x, graph, batch)
        x = self.encode(x)
        laplacian = cast(ConnectionConv, self.convs[0]).connect(transports, x, graph, edge_weight)
        for t in range(self.num_layers):
            x = self.residual(t, x) - self.act(self.diffuse(t, x, graph, laplacian))
            yield x.flatten(1)  # (n, d·h)


class RandomConnNSD(ConnNSD):
    """The controls of Barbero et al. (2022): a connection that knows nothing of features.

    A map for every pair of neighbours, or a frame for every node, is drawn once and never trained
    (:func:`~coopsheaf.sheaves.random_connection`). So it belongs to one graph, whose nodes it knows
    by their numbers.

    Args:
        in_channels: size p of the input features.
        hidden_channels: number h of channels.
        num_layers: number of layers.
        out_channels: size of the output; ``None`` for the features of the last layer.
        num_nodes: number of nodes of the graph.
        draw: ``"edge"`` or ``"node"``.
        map_seed: of what is drawn.
        pool: must be ``None``.
        settings: as for :class:`ConnNSD`.

    Shapes:
        as those of :class:`~coopsheaf.zoo.nsd.NSD`, with ``num_nodes`` nodes.
    """

    needs_frames = False
    why_not_exportable = "this network knows every node of one graph"

    @arguments_of(ConnNSD)
    def __init__(
        self,
        in_channels: int,
        hidden_channels: int = 32,
        num_layers: int = 2,
        out_channels: int | None = None,
        *,
        num_nodes: int,
        draw: str = "edge",
        map_seed: int = 0,
        pool: str | None = None,
        **settings: Any,
    ) -> None:
        if pool is not None:
            raise ValueError(
                f"`pool` must be None: this network belongs to one graph; got {pool!r}"
            )
        check_choice("draw", draw, DRAWS)
        super().__init__(in_channels, hidden_channels, num_layers, out_channels, **settings)
        if draw == "node":
            check_frame_dim(self.stalk_dim, in_channels)
        self.num_nodes = check_int("num_nodes", num_nodes, minimum=1)
        self.map_seed = check_int("map_seed", map_seed, minimum=0)
        self.draw = draw

    def transports(self, x: Tensor, graph: Graph, batch: Tensor | None = None) -> Tensor:
        check_rows(x, self.num_nodes, type(self).__name__)
        features = self.in_channels if self.draw == "node" else None
        d, seed = self.stalk_dim, self.map_seed

        def make(graph: Graph) -> Tensor:
            return random_connection(graph, d, features=features, seed=seed, dtype=torch.float64)

        name = f"random connection of {d} in {features}, seed {seed}"
        return graph.remember(name, make).to(x.dtype)


class _Kept(NamedTuple):
    """Maps, and the features and graphs of a batch that they belong to."""

    x: Tensor
    version: int
    batch: Tensor | None
    maps: Tensor

    def fits(self, x: Tensor, batch: Tensor | None) -> bool:
        if self.x._version != self.version or x.dtype != self.x.dtype or x.shape != self.x.shape:
            return False
        here = (x.device, x.data_ptr(), x.stride())
        same = here == (self.x.device, self.x.data_ptr(), self.x.stride())
        # A copy, perhaps; to compare values on another device would wait for it.
        if not same and not (x.is_cpu and self.x.is_cpu and torch.equal(x, self.x)):
            return False
        if batch is None or self.batch is None:
            return batch is self.batch
        return torch.equal(batch, self.batch)


def remembered_maps(x: Tensor, graph: Graph, stalk_dim: int, batch: Tensor | None = None) -> Tensor:
    """The connection of local PCA, kept with the graph until it is asked for other features."""
    # What a transform has wrapped must not outlive it; features that it leaves alone are as always.
    wrapped = torch._C._functorch.is_functorch_wrapped_tensor
    if torch.compiler.is_compiling() or wrapped(x) or forward_ad._current_level >= 0:
        return connection_maps(x, graph, stalk_dim, batch=batch)
    kept: dict[int, _Kept] = graph.remember("connection maps", lambda graph: {})
    x = x.detach().as_subclass(Tensor)
    if stalk_dim in kept and kept[stalk_dim].fits(x, batch):
        return kept[stalk_dim].maps
    with torch.inference_mode(False), torch.no_grad():
        maps = connection_maps(x, graph, stalk_dim, batch=batch)
    if not x.is_inference():  # of such tensors nobody knows whether they were written to
        kept[stalk_dim] = _Kept(x, x._version, batch, maps)
    return maps
