"""Graph-ViT and Graph-MLP-Mixer: a graph network inside of patches, and something between them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from coopsheaf.checks import check_choice, check_int, check_probability
from coopsheaf.models.arguments import arguments_of
from coopsheaf.models.network import Network
from coopsheaf.nn.inputs import PE_KINDS, EdgeInputs, check_steps, make_features, take_pe
from coopsheaf.nn.per_batch import remember_with_batch
from coopsheaf.sheaves.graph import Graph
from coopsheaf.zoo.graph_vit.layers import (
    HadamardBlock,
    MixerBlock,
    NormedLinear,
    PatchConv,
    mean_at,
    patch_means,
    returning_walks,
)
from coopsheaf.zoo.graph_vit.patches import Patches, make_patches

WALKS = {kind: PE_KINDS[kind] for kind in ("none", "rwse")}


class GraphMixer(Network):
    """Graph-MLP-Mixer of He et al. (ICML 2023): patches of a graph, mixed by perceptrons.

    Every graph is cut into overlapping patches (:func:`make_patches`), in training anew in every
    pass and with some edges hidden from METIS, in evaluation always in the same way. Layers of
    :class:`PatchConv` run inside of the patches; the mean of each, and an encoding of how random
    walks between patches return, go through blocks of :class:`MixerBlock`; the mean over the
    patches that are not empty is the graph's. Encodings of nodes and of patches are added after a
    linear layer, batch norm and ReLU.

    The parts that METIS finds depend on the order of the nodes, and so do outputs; numbers of
    patches mean something to the mixer, and those of graphs with fewer nodes than patches are
    drawn from their size. Batch norm sees patches that are not empty and no others, where the
    authors' sees all. Without a pool, the features of a node are the mean over its copies of
    [its own, its patch's], as in the authors' networks for nodes.

    Args:
        in_channels: size of the input features.
        hidden_channels: size of a layer.
        num_layers: number of layers inside of patches.
        out_channels: size of the output; ``None`` for what the readout would see.
        mixer_layers: number of blocks between patches.
        num_patches: number of patches of every graph.
        drop: how much of the list of edges METIS does not see in training.
        patch_steps: steps of random walks between patches; 0 for no encoding of patches.
        dropout: dropout probability inside of patches.
        mixer_dropout: dropout probability between patches.
        encoder: ``"linear"``, or ``"atoms"`` for the codes of atoms and bonds.
        pe_kind: ``"none"`` or ``"rwse"``, the encoding of places that is added to the features.
        pe_steps: how many steps of random walks are looked at; all of the data's if not given.
        pool: ``None`` for node outputs, ``"mean"`` for graph outputs: the mean over patches.
        pe_channels: number of columns of the encoding in the data.
        edge_channels: number of features of an edge; 0 for one vector for all edges.

    Shapes:
        x ``(n, in_channels)``; edge_index ``(2, m)`` or a :class:`~coopsheaf.Graph`; batch
        ``(n,)``; pe ``(n, pe_channels)``; edge_attr ``(m, edge_channels)``. Returns
        ``(n, out_channels)``, or ``(graphs, out_channels)`` with a pool.
    """

    exportable = False
    why_not_exportable = "this network needs METIS, which cuts graphs into patches"

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int = 64,
        num_layers: int = 4,
        out_channels: int | None = None,
        *,
        mixer_layers: int = 2,
        num_patches: int = 32,
        drop: float = 0.3,
        patch_steps: int = 8,
        dropout: float = 0.0,
        mixer_dropout: float = 0.0,
        encoder: str = "linear",
        pe_kind: str = "none",
        pe_steps: int | None = None,
        pool: str | None = None,
        pe_channels: int = 0,
        edge_channels: int = 0,
    ) -> None:
        super().__init__(in_channels, out_channels, pool=pool)
        if pool not in (None, "mean"):
            raise ValueError(f"`pool` must be 'mean', the mean over patches, or None; got {pool!r}")
        width = self.hidden_channels = check_int("hidden_channels", hidden_channels, minimum=1)
        self.num_layers = check_int("num_layers", num_layers, minimum=1)
        self.mixer_layers = check_int("mixer_layers", mixer_layers, minimum=1)
        self.num_patches = check_int("num_patches", num_patches, minimum=1)
        self.drop = check_probability("drop", drop)
        self.patch_steps = check_int("patch_steps", patch_steps, minimum=0)
        self.mixer_dropout = check_probability("mixer_dropout", mixer_dropout)
        check_choice("pe_kind", pe_kind, WALKS)
        self.pe_steps = check_steps(pe_kind, pe_channels, pe_steps)
        self.pe_channels = pe_channels
        self.encoder = make_features(in_channels, width, encoder)
        self.places = NormedLinear(self.pe_steps, width) if pe_channels else None
        self.patch_places = NormedLinear(patch_steps, width) if patch_steps else None
        self.edge_encoder = EdgeInputs(edge_channels, width, encoder=encoder)
        self.edge_channels = self.edge_encoder.edge_channels
        self.inside = nn.ModuleList(
            PatchConv(width, dropout=dropout, first=t == 0) for t in range(num_layers)
        )
        self.between = nn.ModuleList(self.make_block() for _ in range(mixer_layers))
        self.last_norm = self.make_last_norm()
        self.readout = make_head(self._end_layers(width if pool else 2 * width), out_channels)
        self.reset_parameters()

    def make_block(self) -> nn.Module:
        """What stands between patches, ``mixer_layers`` times."""
        return MixerBlock(self.hidden_channels, self.num_patches, dropout=self.mixer_dropout)

    def make_last_norm(self) -> nn.Module:
        """What is done after the last of them."""
        return nn.LayerNorm(self.hidden_channels)

    def embed(
        self,
        x: Tensor,
        graph: Graph,
        *,
        batch: Tensor | None = None,
        pe: Tensor | None = None,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
    ) -> Tensor:
        patches, n = self.find_patches(graph, batch), graph.num_nodes
        h = self.encoder(x)
        if self.places is not None:
            steps = take_pe(pe, x, self.pe_channels)[:, : self.pe_steps]
            h = h + self.places(steps.to(h.dtype))
        edges = self.edge_encoder(edge_attr, graph)
        h, edges = h.index_select(0, patches.node), edges.index_select(0, patches.edge)
        for conv in self.inside:
            h = conv(h, edges, patches, n)
        z = self.mix(patch_means(h, patches), patches)  # (graphs, P, width)
        if self.pool is None:
            beside = z.flatten(0, 1).index_select(0, patches.patch)
            return mean_at(patches.node, torch.cat([h, beside], dim=1), n)
        filled = patches.filled.to(z.dtype).unsqueeze(-1)
        mean = (z * filled).sum(1) / filled.sum(1).clamp(min=1)  # (graphs, width)
        # The same for all nodes of a graph: their mean is the graph's.
        return mean.expand(n, -1) if batch is None else mean.index_select(0, batch)

    def mix(self, means: Tensor, patches: Patches) -> Tensor:
        """From means of patches ``(graphs · P, width)`` to ``(graphs, P, width)``."""
        overlap, filled = patches.overlap.to(means.dtype), patches.filled
        if self.patch_places is not None:
            walks = returning_walks(overlap, self.patch_steps).flatten(0, 1)
            means = means + self._place_patches(walks, filled.flatten())
        z = means.unflatten(0, (-1, self.num_patches))
        for block in self.between:
            z = block(z, overlap, filled)
        return self.last_norm(z)

    def _place_patches(self, walks: Tensor, filled: Tensor) -> Tensor:
        """Encodings of the patches that are not empty, and zeros."""
        assert self.patch_places is not None
        if not self.training:  # then a norm takes row by row
            return self.patch_places(walks) * filled.unsqueeze(1)
        rows = filled.nonzero().squeeze(1)
        zeros = walks.new_zeros(walks.shape[0], self.hidden_channels)
        return zeros.index_add(0, rows, self.patch_places(walks[rows]))

    def find_patches(self, graph: Graph, batch: Tensor | None) -> Patches:
        """New patches in training; otherwise those of the graph, which are kept with it."""

        def make() -> Patches:
            drop = self.drop if self.training else None
            return make_patches(graph, batch, num_patches=self.num_patches, drop=drop)

        if self.training:
            return make()
        return remember_with_batch(graph, f"{self.num_patches} patches", batch, make)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.in_channels}, {self.hidden_channels}, "
            f"num_layers={self.num_layers}, out_channels={self.out_channels}, "
            f"num_patches={self.num_patches})"
        )


class GraphViT(GraphMixer):
    """Graph-ViT of He et al. (ICML 2023): patches attend to each other where they overlap.

    :class:`GraphMixer` with blocks of :class:`HadamardBlock` between the patches and no norm after
    them. Numbers of patches mean nothing to attention, so a graph with fewer nodes than patches has
    outputs that do not depend on the order of its nodes; others depend on what METIS makes of it.

    Args:
        in_channels: size of the input features.
        hidden_channels: size of a layer.
        num_layers: number of layers inside of patches.
        out_channels: size of the output; ``None`` for what the readout would see.
        num_heads: number of heads; divides ``hidden_channels``.
        others: as of :class:`GraphMixer`.

    Shapes:
        as of :class:`GraphMixer`.
    """

    @arguments_of(GraphMixer)
    def __init__(
        self,
        in_channels: int,
        hidden_channels: int = 64,
        num_layers: int = 4,
        out_channels: int | None = None,
        *,
        num_heads: int = 8,
        **others: Any,
    ) -> None:
        # Blocks are made while the rest is.
        object.__setattr__(self, "num_heads", check_int("num_heads", num_heads, minimum=1))
        super().__init__(in_channels, hidden_channels, num_layers, out_channels, **others)

    num_heads: int

    def make_block(self) -> nn.Module:
        options = {"num_heads": self.num_heads, "dropout": self.mixer_dropout}
        return HadamardBlock(self.hidden_channels, **options)  # type: ignore[arg-type]

    def make_last_norm(self) -> nn.Module:
        return nn.Identity()


def make_head(width: int, out_channels: int | None) -> nn.Module:
    """Two linear layers with batch norm and ReLU between them, or nothing."""
    if out_channels is None:
        return nn.Identity()
    return nn.Sequential(NormedLinear(width, width), nn.Linear(width, out_channels))
