"""Sheaf attention: a layer and its network."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from coopsheaf.models.arguments import arguments_of
from coopsheaf.sheaves.graph import Graph, as_graph
from coopsheaf.sheaves.operator import Operator
from coopsheaf.zoo.nsd.conv import NSDConv
from coopsheaf.zoo.nsd.edge_learners import EdgeLearner
from coopsheaf.zoo.nsd.edge_maps import DiagonalMaps
from coopsheaf.zoo.nsd.network import NSD
from coopsheaf.zoo.platonov.attention import edge_softmax

# What a sheaf Laplacian has and attention has not.
_OF_LAPLACIANS = (
    "normalization",
    "learn_weights",
    "maps_once",
    "add_lp",
    "add_hp",
    "sparse_reading",
)
_WITHOUT = {"normalization": None, "learn_weights": False}


class SheafAttentionConv(NSDConv):
    r"""The sheaf attention of Barbero et al. (2022).

    .. math::
        Y = (\Lambda \otimes 1_{d \times d}) \odot A_F\, Z, \qquad Z = (I_n \otimes W_1) X W_2,

    where :math:`A_F` has identities on its diagonal and :math:`F_e^\top F_{\bar e}` for every edge
    e = j→i, with maps learned from X as in :class:`~coopsheaf.zoo.nsd.NSDConv`, and Λ is the
    attention of Veličković et al. (2018) over the neighbours of a node and itself,

    .. math:: \Lambda_{ij} = \operatorname{softmax}_j\bigl(\operatorname{LeakyReLU}_{0.2}(
              \langle a, z_i \rangle + \langle a', z_j \rangle)\bigr).

    Stalks of dimension 1 with identity maps give a graph attention layer exactly. With
    ``residual`` it returns Y - Z.

    Maps belong to edges: a pass forms m blocks of d×d.

    Args:
        channels: number h of channels.
        stalk_dim: dimension d of the stalks.
        residual: subtract the identity, for a network that adds X.
        options: as for :class:`~coopsheaf.zoo.nsd.NSDConv`, without what belongs to Laplacians.

    Shapes:
        x ``(n, d, h)``; edge_index ``(2, m)`` or a :class:`~coopsheaf.Graph`, every edge both ways
        and no self-loop. Returns ``(n, d, h)``.
    """

    @arguments_of(NSDConv, without=_OF_LAPLACIANS)
    def __init__(
        self, channels: int, stalk_dim: int, *, residual: bool = False, **options: Any
    ) -> None:
        super().__init__(channels, stalk_dim, **(options | _WITHOUT))
        self.residual = residual
        self.score = EdgeLearner(stalk_dim * channels, 1)

    def reset_parameters(self) -> None:
        super().reset_parameters()
        score = getattr(self, "score", None)  # none while the base is being built
        if score is not None:
            score.reset_parameters()

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | Graph,
        edge_weight: Tensor | None = None,
        *,
        laplacian: Operator | None = None,
    ) -> Tensor:
        if edge_weight is not None or laplacian is not None:
            raise ValueError("`edge_weight` and `laplacian` must be None: attention has neither")
        self._check(x)
        z = self.mix(x)
        y = self.attention(x, z, as_graph(edge_index, x.shape[0])).mv(z)
        return y - z if self.residual else y

    def attention(self, x: Tensor, z: Tensor, graph: Graph) -> Operator:
        """Λ ⊙ A_F of the maps that x and the scores that z gives rise to."""
        loops, m = graph.with_self_loops(), graph.num_edges
        scores = F.leaky_relu(self.score(z.flatten(1), loops), 0.2)  # (m + n, 1)
        share = edge_softmax(scores, loops).squeeze(1)
        kind, maps, own = self.edge_maps, self.maps(x, graph), share[m:]
        if isinstance(kind, DiagonalMaps):
            own = own.unsqueeze(1).expand(-1, self.stalk_dim)
        return kind.between(maps, self.at_reverse(maps, graph), graph, -share[:m], own)


class SheafAttention(NSD):
    r"""Sheaf attention network (Barbero et al., 2022).

    .. math:: X_{t+1} = \sigma\bigl((\Lambda_t \otimes 1) \odot A_{F,t}\,
              (I_n \otimes W_{1,t}) \tilde X_t W_{2,t}\bigr)

    with :class:`~coopsheaf.zoo.sheaf_attention.SheafAttentionConv`; in its residual form
    :math:`X_{t+1} = X_t + \sigma((\Lambda_t \odot A_{F,t} - I)(\cdots))`. Encoder, dropout and
    readout are those of :class:`~coopsheaf.zoo.nsd.NSD`: our own choice.

    Args:
        in_channels: size of the input features.
        hidden_channels: number h of channels; a layer is d·h wide.
        num_layers: number of layers.
        out_channels: size of the output; ``None`` for the features of the last layer.
        residual: the residual form.
        settings: as for :class:`~coopsheaf.zoo.nsd.NSD`, without what belongs to Laplacians.

    Shapes:
        x ``(n, in_channels)``; edge_index ``(2, m)`` or a :class:`~coopsheaf.Graph`, every edge
        both ways and no self-loop; batch ``(n,)``, the graph of each node. Returns
        ``(n, out_channels)``, or ``(graphs, out_channels)``.
    """

    takes_edge_weight = False
    conv_kind = SheafAttentionConv
    learns_epsilon = False

    @arguments_of(NSD, without=_OF_LAPLACIANS)
    def __init__(
        self,
        in_channels: int,
        hidden_channels: int = 32,
        num_layers: int = 2,
        out_channels: int | None = None,
        *,
        residual: bool = False,
        **settings: Any,
    ) -> None:
        for name in _OF_LAPLACIANS:
            if name in settings:
                raise ValueError(
                    f"`{name}` must not be given: attention has no such thing; "
                    f"got {settings[name]!r}"
                )
        super().__init__(
            in_channels,
            hidden_channels,
            num_layers,
            out_channels,
            residual=residual,
            **settings,
        )
        self.is_residual = residual

    def layer_outputs(
        self,
        x: Tensor,
        graph: Graph,
        *,
        batch: Tensor | None = None,
        pe: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Iterator[Tensor]:
        x = self.encode(x)
        for conv in self.convs:
            y = self.act(conv(F.dropout(x, self.dropout, self.training), graph))
            x = x + y if self.is_residual else y
            yield x.flatten(1)  # (n, d·h)
