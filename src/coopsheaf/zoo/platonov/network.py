"""The classic networks in the residual skeleton of Platonov et al. (ICLR 2023)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from torch import Tensor, nn

from coopsheaf.checks import check_choice, check_int, check_probability
from coopsheaf.models.network import NORMS, Network, make_readout
from coopsheaf.sheaves.graph import Graph
from coopsheaf.zoo.platonov.layers import (
    AttentionBlock,
    AttentionSepBlock,
    FeedForwardBlock,
    GATBlock,
    GATSepBlock,
    GCNBlock,
    ResidualStack,
    SAGEBlock,
)


class PlatonovNetwork(Network):
    r"""A classic network as Platonov et al. (ICLR 2023) compare them, for nodes or whole graphs.

    .. math::
        x &\gets \operatorname{GELU}(\operatorname{dropout}(W x + b)), \\
        x &\gets x + \operatorname{block}(\operatorname{norm}(x))
            \quad \text{for each block of each layer}, \\
        y &= W' \operatorname{norm}(x) + b'

    A subclass says which blocks a layer has (:mod:`coopsheaf.zoo.platonov.layers`). Loops are added
    by the blocks that want them; the caller adds none.

    Args:
        in_channels: size of the input features.
        hidden_channels: number of channels.
        num_layers: number of layers.
        out_channels: size of the output; ``None`` for the features of the last layer.
        hidden_multiplier: size between the two linear layers of a feed-forward network, in
            multiples of ``hidden_channels``.
        dropout: dropout probability, in the encoder and in the blocks.
        norm: ``"layer"`` or ``"batch"``.
        pool: ``None`` for node outputs; ``"mean"``, ``"sum"`` or ``"max"`` for graph outputs.
        jk: what the readout sees of the layers: ``None`` or ``"last"`` for the last one, ``"cat"``,
            ``"max"`` or ``"lstm"`` for all of them (PyG's ``JumpingKnowledge``).
        block_options: what else blocks with attention are to know.

    Shapes:
        as those of :class:`~coopsheaf.models.network.Network`; inside ``(n, hidden_channels)``.
    """

    blocks: ClassVar[tuple[type[nn.Module], ...]]

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int = 512,
        num_layers: int = 2,
        out_channels: int | None = None,
        *,
        hidden_multiplier: float = 1.0,
        dropout: float = 0.2,
        norm: str = "layer",
        pool: str | None = None,
        jk: str | None = None,
        **block_options: Any,
    ) -> None:
        attends = any(issubclass(block, GATBlock | AttentionBlock) for block in self.blocks)
        if block_options and not attends:
            raise ValueError(
                f"`{type(self).__name__}` takes no {next(iter(block_options))!r}: it has no "
                "attention"
            )
        super().__init__(in_channels, out_channels, pool=pool)
        self.hidden_channels = check_int("hidden_channels", hidden_channels, minimum=1)
        self.num_layers = check_int("num_layers", num_layers, minimum=1)
        dropout = check_probability("dropout", dropout)

        def make(block: type[nn.Module]) -> nn.Module:
            options: dict[str, Any] = {"dropout": dropout}
            if not issubclass(block, AttentionBlock):
                options["hidden_multiplier"] = hidden_multiplier
            if issubclass(block, GATBlock | AttentionBlock):
                options |= block_options
            return block(hidden_channels, **options)

        self.stack = ResidualStack(
            in_channels,
            hidden_channels,
            [make(block) for _ in range(num_layers) for block in self.blocks],
            norm=check_choice("norm", norm, NORMS),
            dropout=dropout,
        )
        seen = self._end_layers(hidden_channels, jk, num_layers)
        self.readout = make_readout(seen, out_channels)
        self.reset_parameters()

    def layer_outputs(
        self,
        x: Tensor,
        graph: Graph,
        *,
        batch: Tensor | None = None,
        pe: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Iterator[Tensor]:
        for k, y in enumerate(self.stack.block_outputs(x, graph, edge_weight)):
            if k > 0 and k % len(self.blocks) == 0:
                yield y

    def after_layers(self, x: Tensor) -> Tensor:
        return self.stack.last_norm(x)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.in_channels}, {self.hidden_channels}, "
            f"num_layers={self.num_layers}, out_channels={self.out_channels})"
        )


class PlatonovResNet(PlatonovNetwork):
    """Feed-forward blocks alone: features only, no edges."""

    blocks = (FeedForwardBlock,)
    sees_edges = False


class PlatonovGCN(PlatonovNetwork):
    """Graph convolutions (Kipf & Welling, ICLR 2017), each with a feed-forward network."""

    blocks = (GCNBlock,)
    takes_edge_weight = True


class PlatonovSAGE(PlatonovNetwork):
    """Means of neighbours beside the node (Hamilton et al., NeurIPS 2017)."""

    blocks = (SAGEBlock,)
    takes_edge_weight = True


class PlatonovAttention(PlatonovNetwork):
    """A network with attention; ``num_heads`` divides ``hidden_channels``."""

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int = 512,
        num_layers: int = 2,
        out_channels: int | None = None,
        *,
        num_heads: int = 8,
        hidden_multiplier: float = 1.0,
        dropout: float = 0.2,
        norm: str = "layer",
        pool: str | None = None,
        jk: str | None = None,
    ) -> None:
        super().__init__(
            in_channels,
            hidden_channels,
            num_layers,
            out_channels,
            hidden_multiplier=hidden_multiplier,
            dropout=dropout,
            norm=norm,
            pool=pool,
            jk=jk,
            num_heads=num_heads,
        )


class PlatonovGAT(PlatonovAttention):
    """Graph attention (Veličković et al., ICLR 2018), each with a feed-forward network."""

    blocks = (GATBlock,)


class PlatonovGATSep(PlatonovAttention):
    """Graph attention that keeps the node apart from its neighbours."""

    blocks = (GATSepBlock,)


class PlatonovGT(PlatonovAttention):
    """A graph transformer along the edges (Shi et al., IJCAI 2021): attention, feed-forward."""

    blocks = (AttentionBlock, FeedForwardBlock)


class PlatonovGTSep(PlatonovAttention):
    """A graph transformer that keeps the node apart from its neighbours."""

    blocks = (AttentionSepBlock, FeedForwardBlock)
