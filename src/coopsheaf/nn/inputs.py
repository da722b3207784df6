"""What enters a network for whole graphs: features of nodes beside an encoding of their places, and
features of edges; numbers, or the codes of molecules."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from coopsheaf.checks import check_choice, check_int
from coopsheaf.nn.encoders import AtomEncoder, BondEncoder, LapPEEncoder, RWSEEncoder
from coopsheaf.sheaves.graph import Graph
from coopsheaf.tensor_checks import check_shape

ENCODERS = {
    "linear": "a linear layer of numbers",
    "atoms": "one vector per code of an atom and of a bond",
}
PE_KINDS = {
    "none": "no encoding of places",
    "rwse": "how likely random walks return",
    "lappe": "eigenvectors and eigenvalues of the Laplacian",
}


class NodeInputs(nn.Module):
    r"""Features of the nodes, beside an encoding of their places: :math:`[\,E(x) \Vert P(p)\,]`.

    E is a linear layer or an :class:`~coopsheaf.nn.encoders.AtomEncoder`, P an encoder of
    :mod:`coopsheaf.nn.encoders`; without an encoding E has the whole width.

    Args:
        in_channels: size of the features.
        width: size of the output.
        encoder: ``"linear"`` or ``"atoms"``.
        pe_kind: ``"none"``, ``"rwse"`` or ``"lappe"``.
        pe_channels: number of columns of the encoding: steps of walks, or entries of eigenvectors
            and then as many eigenvalues.
        pe_width: how much of the output is the encoding's.

    Shapes:
        x ``(n, in_channels)``; pe ``(n, pe_channels)``. Returns ``(n, width)``.
    """

    def __init__(
        self,
        in_channels: int,
        width: int,
        *,
        encoder: str = "linear",
        pe_kind: str = "none",
        pe_channels: int = 0,
        pe_width: int = 16,
    ) -> None:
        super().__init__()
        self.width = check_int("width", width, minimum=1)
        self.pe_channels = check_pe(pe_kind, pe_channels)
        self.places = make_places(pe_kind, pe_channels, pe_width, width)
        rest = width if self.places is None else width - pe_width
        self.features = make_features(in_channels, rest, encoder)

    def reset_parameters(self) -> None:
        for child in self.children():
            child.reset_parameters()  # type: ignore[operator]

    def forward(self, x: Tensor, pe: Tensor | None = None) -> Tensor:
        features = self.features(x)
        if self.places is None:
            return features
        places = self.places(take_pe(pe, x, self.pe_channels))
        return torch.cat([features, places.to(features.dtype)], dim=1)

    def __repr__(self) -> str:
        return f"NodeInputs({self.features}, places={self.places})"


class EdgeInputs(nn.Module):
    """Features of the edges, or one learned vector for all of them where there are none.

    Args:
        edge_channels: number of features of an edge; 0 for none.
        width: size of the output.
        encoder: ``"linear"``, or ``"atoms"`` for the three codes of a bond.

    Shapes:
        edge_attr ``(m, edge_channels)``. Returns ``(m, width)``.
    """

    def __init__(self, edge_channels: int, width: int, *, encoder: str = "linear") -> None:
        super().__init__()
        self.edge_channels = check_int("edge_channels", edge_channels, minimum=0)
        self.width = check_int("width", width, minimum=1)
        check_choice("encoder", encoder, ENCODERS)
        self.features: nn.Module | None = None
        self.vector: nn.Parameter | None = None
        if edge_channels == 0:
            self.vector = nn.Parameter(torch.empty(1, width))
        elif encoder == "atoms":
            check_columns("edge_channels", edge_channels, BondEncoder.columns, "a bond")
            self.features = BondEncoder(width)
        else:
            self.features = nn.Linear(edge_channels, width)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.vector is not None:
            nn.init.normal_(self.vector)  # as the rows of an embedding start
        if self.features is not None:
            self.features.reset_parameters()  # type: ignore[operator]

    def forward(self, edge_attr: Tensor | None, graph: Graph) -> Tensor:
        if self.features is None:
            assert self.vector is not None
            return self.vector.expand(graph.num_edges, -1)
        return self.features(edge_attr)

    def __repr__(self) -> str:
        return f"EdgeInputs({self.edge_channels}, {self.width})"


def make_features(in_channels: int, width: int, encoder: str) -> nn.Module:
    """From ``(n, in_channels)`` features to ``(n, width)``."""
    check_choice("encoder", encoder, ENCODERS)
    if encoder == "linear":
        return nn.Linear(in_channels, width)
    check_columns("in_channels", in_channels, AtomEncoder.columns, "an atom")
    return AtomEncoder(width)


def make_places(pe_kind: str, pe_channels: int, pe_width: int, width: int) -> nn.Module | None:
    """From ``(n, pe_channels)`` encodings to ``(n, pe_width)``; ``None`` for ``"none"``."""
    if pe_kind == "none":
        return None
    check_int("pe_width", pe_width, minimum=1)
    if pe_width >= width:
        raise ValueError(
            f"`pe_width` must be less than the width of the network, {width}, which it shares with "
            f"the features; got {pe_width}"
        )
    if pe_kind == "rwse":
        return RWSEEncoder(pe_channels, pe_width)
    return LapPEEncoder(pe_channels // 2, pe_width)


def check_pe(pe_kind: str, pe_channels: int) -> int:
    """The number of columns of an encoding, if it fits its kind."""
    check_choice("pe_kind", pe_kind, PE_KINDS)
    check_int("pe_channels", pe_channels, minimum=0)
    if pe_kind == "none" and pe_channels:
        raise ValueError(
            f"`pe_channels` must be 0 without an encoding of places: choose a `pe_kind`, or leave "
            f"the encoding out of the data; got {pe_channels}"
        )
    if pe_kind != "none" and pe_channels == 0:
        raise ValueError(
            f"`pe_channels` must be the number of columns of the encoding {pe_kind!r}: the data "
            "must have it, or `pe_kind` be 'none'; got 0"
        )
    if pe_kind == "lappe" and pe_channels % 2:
        raise ValueError(
            "`pe_channels` must be even for eigenvectors: entries, then as many eigenvalues; "
            f"got {pe_channels}"
        )
    return pe_channels


def take_pe(pe: Tensor | None, x: Tensor, pe_channels: int) -> Tensor:
    """The encoding of the nodes of x."""
    n, rule = x.shape[0], f"(n, {pe_channels}) with n = {x.shape[0]}"
    if pe is None:
        raise ValueError(f"`pe` must have shape {rule}; got None")
    return check_shape("pe", pe, rule, (n, pe_channels))


def check_steps(pe_kind: str, pe_channels: int, pe_steps: int | None) -> int:
    """How many columns of an encoding are looked at: all, or the first steps of random walks."""
    check_pe(pe_kind, pe_channels)
    if pe_steps is None or pe_kind == "none":
        return pe_channels
    check_int("pe_steps", pe_steps, minimum=1)
    if pe_kind != "rwse" or pe_steps > pe_channels:
        raise ValueError(
            f"`pe_steps` must be None but for random walks ('rwse'), and at most the {pe_channels} "
            f"steps of the data; got {pe_steps} with {pe_kind!r}"
        )
    return pe_steps


def check_columns(argument: str, value: int, columns: int, what: str) -> None:
    """Codes have a fixed number of columns."""
    if value != columns:
        raise ValueError(
            f"`{argument}` must be {columns} for `encoder` 'atoms', the codes of {what}; choose "
            f"'linear' for other features; got {value}"
        )
