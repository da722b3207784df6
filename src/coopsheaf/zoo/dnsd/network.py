"""Deep Neural Sheaf Diffusion."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

from torch import Tensor, nn

from coopsheaf.checks import check_int
from coopsheaf.models.network import Network, make_act, make_linear
from coopsheaf.sheaves.graph import Graph
from coopsheaf.zoo.dnsd.layers import ArcLearner, DNSDLayer
from coopsheaf.zoo.nsd.edge_maps import EdgeMaps


class DNSD(Network):
    r"""Deep Neural Sheaf Diffusion (Bourgerie et al., 2026), made for many layers.

    A linear encoder, layers of :class:`~coopsheaf.zoo.dnsd.DNSDLayer`,

    .. math:: X_{t+1} = \operatorname{LayerNorm}\bigl((1 + \varepsilon_t) \odot X_t
              - g_t \odot \sigma(W_{1,t}\, A_t X_t\, W_{2,t})\bigr),

    and a linear readout; no dropout. A is the adjacency of a sheaf with two maps per arc, or its
    Laplacian; nothing of it is symmetric, and directions count.

    The networks that the authors call NSD pass one map for both ends of an edge, which is not
    :class:`~coopsheaf.zoo.nsd.NSD`; and their tables have accuracies where others have areas under
    curves.

    Args:
        in_channels: size of the input features.
        hidden_channels: number h of channels; a layer is d·h wide.
        num_layers: number of layers.
        out_channels: size of the output; ``None`` for the features of the last layer.
        stalk_dim: dimension d of the stalks.
        maps: ``"general"``, ``"orthogonal"``, ``"diagonal"`` or ``"identity"``.
        operator: ``"adjacency"`` or ``"laplacian"``.
        act: σ, ``"tanh"`` or ``"relu"`` there.
        gate: learn g; 1 otherwise.
        pool: ``None`` for node outputs; ``"mean"``, ``"sum"`` or ``"max"`` for graph outputs.
        jk: what the readout sees of the layers: ``None`` or ``"last"`` for the last one, ``"cat"``,
            ``"max"`` or ``"lstm"`` for all of them (PyG's ``JumpingKnowledge``).

    Shapes:
        x ``(n, in_channels)``; edge_index ``(2, m)`` or a :class:`~coopsheaf.Graph`; batch
        ``(n,)``, the graph of each node; edge_weight ``(m,)``. Returns ``(n, out_channels)``, or
        ``(graphs, out_channels)``.
    """

    takes_edge_weight = True

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int = 8,
        num_layers: int = 4,
        out_channels: int | None = None,
        *,
        stalk_dim: int = 8,
        maps: str | EdgeMaps = "general",
        operator: str = "adjacency",
        act: str | Callable[[Tensor], Tensor] | None = "tanh",
        gate: bool = True,
        pool: str | None = None,
        jk: str | None = None,
    ) -> None:
        super().__init__(in_channels, out_channels, pool=pool)
        self.hidden_channels = check_int("hidden_channels", hidden_channels, minimum=1)
        self.num_layers = check_int("num_layers", num_layers, minimum=1)
        self.stalk_dim = check_int("stalk_dim", stalk_dim, minimum=1)
        width, act = stalk_dim * hidden_channels, make_act(act)
        self.encoder = nn.Linear(in_channels, width)
        self.layers = nn.ModuleList(
            DNSDLayer(hidden_channels, stalk_dim, maps=maps, operator=operator, act=act, gate=gate)
            for _ in range(num_layers)
        )
        self.readout = make_linear(self._end_layers(width, jk, num_layers), out_channels)
        self.reset_parameters()

    def map_learners(self) -> list[nn.Module]:
        convs = [cast(DNSDLayer, layer).conv for layer in self.layers]
        learners = (part for conv in convs for part in (conv.map_learner, conv.sender_learner))
        return [learner for learner in learners if isinstance(learner, ArcLearner)]

    def layer_outputs(
        self,
        x: Tensor,
        graph: Graph,
        *,
        batch: Tensor | None = None,
        pe: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Iterator[Tensor]:
        x = self.encoder(x).unflatten(1, (self.stalk_dim, self.hidden_channels))  # (n, d, h)
        for layer in self.layers:
            x = layer(x, graph, edge_weight)
            yield x.flatten(1)  # (n, d·h)

    def __repr__(self) -> str:
        maps = cast(DNSDLayer, self.layers[0]).conv.edge_maps
        return (
            f"DNSD({self.in_channels}, {self.hidden_channels}, num_layers={self.num_layers}, "
            f"out_channels={self.out_channels}, stalk_dim={self.stalk_dim}, maps={maps})"
        )
