"""Diffusion on flat vector bundles: one orthogonal map per node and bundle."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from coopsheaf.checks import check_choice, check_int, check_probability
from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.orthogonal import Orthogonal, make_orthogonal
from coopsheaf.tensor_checks import check_shape
from coopsheaf.zoo.bunn.heat import Heat
from coopsheaf.zoo.platonov.layers import ResidualStack, SAGEBlock

# What the update sees beside the diffused features.
CONCATS = {
    "node": "the features in the frames of the nodes",
    "common": "the features in the common frame",
    "none": "nothing",
}


class BundleLearner(nn.Module):
    r"""Learns the orthogonal maps of a flat bundle: :math:`O = \operatorname{Orth}(\phi(G, X))`.

    φ is a residual network of GraphSAGE blocks (:mod:`coopsheaf.zoo.platonov.layers`), or with 0
    layers two linear layers with dropout and GELU between them. Its output is neither bounded nor
    dropped out: Euler angles are 2π times it.

    Args:
        channels: size of the features that it sees, and of φ inside.
        num_bundles: number B of bundles.
        stalk_dim: dimension d of a bundle.
        num_layers: number of GraphSAGE blocks.
        orthogonal: a name or object of :mod:`coopsheaf.sheaves.orthogonal`.
        dropout: dropout probability.

    Shapes:
        x ``(n, channels)``; graph of n nodes; edge_weight ``(m,)``. Returns ``(n, B, d, d)``.
    """

    def __init__(
        self,
        channels: int,
        num_bundles: int,
        stalk_dim: int,
        *,
        num_layers: int,
        orthogonal: str | Orthogonal = "euler",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.channels = check_int("channels", channels, minimum=1)
        self.num_bundles = check_int("num_bundles", num_bundles, minimum=1)
        self.num_layers = check_int("num_layers", num_layers, minimum=0)
        check_int("stalk_dim", stalk_dim, minimum=2)  # below, nothing is left to learn
        self.orthogonal = make_orthogonal(orthogonal, stalk_dim)
        if self.orthogonal.num_parameters == 0:
            raise ValueError(f"`orthogonal` must have something to learn; got {self.orthogonal}")
        self.dropout = check_probability("dropout", dropout)
        self.stack = self.lin_in = None
        if num_layers == 0:
            self.lin_in = nn.Linear(channels, channels)
        else:
            blocks = [SAGEBlock(channels, dropout=dropout) for _ in range(num_layers)]
            self.stack = ResidualStack(channels, channels, blocks, dropout=dropout)
        self.lin_out = nn.Linear(channels, num_bundles * self.orthogonal.num_parameters)

    def reset_parameters(self) -> None:
        for child in self.children():
            child.reset_parameters()  # type: ignore[operator]

    def forward(self, x: Tensor, graph: Graph, edge_weight: Tensor | None = None) -> Tensor:
        if self.stack is not None:
            x = self.stack(x, graph, edge_weight)
        else:
            x = F.gelu(F.dropout(self.lin_in(x), self.dropout, self.training))  # type: ignore[misc]
        return self.orthogonal(self.lin_out(x).unflatten(1, (self.num_bundles, -1)))

    def __repr__(self) -> str:
        return (
            f"BundleLearner({self.channels}, {self.num_bundles}, {self.orthogonal.stalk_dim}, "
            f"num_layers={self.num_layers}, orthogonal={self.orthogonal})"
        )


class BundleConv(nn.Module):
    r"""The bundle diffusion of Bamberger et al. (ICLR 2025).

    .. math:: Y = O^\top\, U\bigl(X \,\Vert\, e^{-\tau L} O X\bigr), \qquad
              y_i = O_i^\top\, U(x_i \,\Vert\, z_i), \quad
              z = (e^{-\tau L} \otimes I)\, (O_j x_j)_j

    with an orthogonal map :math:`O_i` per node and bundle and L the normalised Laplacian of the
    graph. Heat spreads in a common frame, since :math:`e^{-\tau L_B} = O^\top (e^{-\tau L} \otimes
    I) O` for the bundle Laplacian :math:`L_B`, whose transport from j to i is
    :math:`O_i^\top O_j`. As in the authors' released code the update U sees x in the frame of the
    node beside z in the common one; it may see O x instead, or z alone.

    Args:
        channels: number of channels, B·d·k: k columns of each of B bundles of dimension d.
        num_bundles: number B of bundles.
        stalk_dim: dimension d of a bundle.
        heat: how features spread in the common frame (:mod:`coopsheaf.zoo.bunn.heat`).
        update: U, from ``(n, 2·channels)`` to ``(n, channels)``; from ``(n, channels)`` with
            ``concat="none"``.
        concat: what U sees beside z: ``"node"`` for x, ``"common"`` for O x, or ``"none"``.

    Shapes:
        x ``(n, channels)``; maps ``(n, B, d, d)``, orthogonal; graph of n nodes; batch ``(n,)``;
        edge_weight ``(m,)``. Returns ``(n, channels)``.
    """

    def __init__(
        self,
        channels: int,
        num_bundles: int,
        stalk_dim: int,
        *,
        heat: Heat,
        update: nn.Module,
        concat: str = "node",
    ) -> None:
        super().__init__()
        self.channels = check_int("channels", channels, minimum=1)
        self.num_bundles = check_int("num_bundles", num_bundles, minimum=1)
        self.stalk_dim = check_int("stalk_dim", stalk_dim, minimum=1)
        if channels % (num_bundles * stalk_dim):
            raise ValueError(
                "`channels` must be a multiple of num_bundles · stalk_dim = "
                f"{num_bundles * stalk_dim}; got {channels}"
            )
        check_choice("concat", concat, CONCATS)
        self.concat = concat
        self.heat = heat
        self.update = update

    def reset_parameters(self) -> None:
        self.heat.reset_parameters()
        self.update.reset_parameters()  # type: ignore[operator]

    def forward(
        self,
        x: Tensor,
        maps: Tensor,
        graph: Graph,
        batch: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        n, bundles, d = x.shape[0], self.num_bundles, self.stalk_dim
        check_shape("maps", maps, f"(n, {bundles}, {d}, {d})", (n, bundles, d, d))
        common = self._turn(maps, x)
        z = self.heat(common.unflatten(1, (bundles, -1)), graph, batch, edge_weight).flatten(1)
        if self.concat != "none":
            z = torch.cat([x if self.concat == "node" else common, z], dim=1)
        return self._turn(maps.mT, self.update(z))

    def _turn(self, maps: Tensor, x: Tensor) -> Tensor:
        """Apply the map of every node and bundle to all its columns, ``(n, channels)``."""
        field = x.unflatten(1, (self.num_bundles, self.stalk_dim, -1))  # (n, B, d, k)
        return (maps.to(x.dtype) @ field).flatten(1)

    def __repr__(self) -> str:
        return (
            f"BundleConv({self.channels}, {self.num_bundles}, {self.stalk_dim}, heat={self.heat}, "
            f"update={self.update}, concat={self.concat!r})"
        )
