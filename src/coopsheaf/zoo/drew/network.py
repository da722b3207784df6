"""DRew-GCN: layer t hears all nodes up to t hops away, each distance with weights of its own."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from coopsheaf.checks import check_int
from coopsheaf.models.network import Network, make_linear
from coopsheaf.nn.inputs import NodeInputs
from coopsheaf.sheaves.graph import Graph
from coopsheaf.zoo.drew.distances import pairs_by_distance
from coopsheaf.zoo.h2gcn.hops import HopPattern
from coopsheaf.zoo.plain.propagation import Propagation


class HopLinear(nn.Module):
    r"""A graph convolution on the pairs at one distance: :math:`S_k X W + b`.

    :math:`S_k = D^{-1/2} (A_k + I) D^{-1/2}` with the degrees of the pairs at distance k. A node
    without any such pair hears itself.

    Args:
        channels: number of channels that come in and go out.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.lin = nn.Linear(channels, channels, bias=False)
        self.bias = nn.Parameter(torch.empty(channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weights as Glorot & Bengio (2010) draw them, no bias."""
        nn.init.xavier_uniform_(self.lin.weight)
        nn.init.zeros_(self.bias)

    def forward(self, x: Tensor, propagate: Propagation) -> Tensor:
        return propagate(self.lin(x)) + self.bias


class DRewConv(nn.Module):
    r"""Layer t = 0, 1, ... of DRew-GCN (Gutteridge et al., ICML 2023).

    .. math::
        X_{t+1} = \operatorname{rows}\Bigl(X_t + \operatorname{ReLU}\Bigl(\sum_{k=1}^{t+1}
        S_k X_{t - \max(k - \nu, 0)} W_{k,t} + b_{k,t}\Bigr)\Bigr)

    where rows divides every row by its length. What is k hops away arrives as it was k - ν layers
    ago: ν = 1 is the full delay, a large ν none.

    Args:
        channels: number of channels.
        layer: the number t of the layer.
        nu: the delay parameter ν; ``None`` for no delay.

    Shapes:
        x ``(n, channels)``, :math:`X_t`; past, the list :math:`X_0, ..., X_t`; hops, the matrices
        :math:`S_1, S_2, ...`. Returns ``(n, channels)``.
    """

    def __init__(self, channels: int, layer: int, *, nu: int | None = None) -> None:
        super().__init__()
        self.channels = check_int("channels", channels, minimum=1)
        self.layer = check_int("layer", layer, minimum=0)
        self.nu = None if nu is None else check_int("nu", nu, minimum=1)
        self.hops = nn.ModuleList(HopLinear(channels) for _ in range(layer + 1))

    def reset_parameters(self) -> None:
        for hop in self.hops:
            hop.reset_parameters()  # type: ignore[operator]

    def delay(self, k: int) -> int:
        """How many layers ago what is k hops away was as it is heard now."""
        return 0 if self.nu is None else max(k - self.nu, 0)

    def forward(self, x: Tensor, past: list[Tensor], matrices: list[Propagation]) -> Tensor:
        heard = torch.zeros_like(x)
        for k, (conv, matrix) in enumerate(zip(self.hops, matrices, strict=False), start=1):
            late = self.delay(k)
            heard = heard + conv(x if late == 0 else past[self.layer - late], matrix)
        return F.normalize(x + heard.relu(), dim=1)

    def __repr__(self) -> str:
        return f"DRewConv({self.channels}, {self.layer}, nu={self.nu})"


class DRew(Network):
    r"""DRew-GCN of Gutteridge et al. (ICML 2023): the reach of a layer grows with its number.

    Layer t (:class:`DRewConv`) hears all nodes up to t + 1 hops away, each distance through weights
    of its own, so that T layers have T (T + 1) / 2 matrices. The pairs at every distance are found
    once per :class:`~coopsheaf.Graph` and kept with it; where there are too many, they are refused.
    Features of edges are not used.

    In the authors' code a distance that no pair of a batch has is left out. Here it never is: its
    nodes hear themselves, as they do there in any batch with one larger graph, and an output does
    not depend on what else is in the batch.

    Args:
        in_channels: size of the input features.
        hidden_channels: size of a layer.
        num_layers: number T of layers, and the largest distance.
        out_channels: size of the output; ``None`` for the features of the last layer.
        nu: the delay parameter ν, at least 1; ``None`` for no delay.
        encoder: ``"linear"``, or ``"atoms"`` for the codes of atoms.
        pe_kind: ``"none"``, ``"rwse"`` or ``"lappe"``, the encoding of places beside the features.
        pe_width: size of the encoding in the first layer.
        most_pairs: largest number of pairs of nodes within ``num_layers`` hops.
        pool: ``None`` for node outputs; ``"mean"``, ``"sum"`` or ``"max"`` for graph outputs.
        pe_channels: number of columns of the encoding in the data.

    Shapes:
        x ``(n, in_channels)``; edge_index ``(2, m)`` or a :class:`~coopsheaf.Graph`; batch
        ``(n,)``; pe ``(n, pe_channels)``. Returns ``(n, out_channels)``, or
        ``(graphs, out_channels)`` with a pool.
    """

    exportable = False
    why_not_exportable = "this network needs the distances between nodes"

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int = 64,
        num_layers: int = 5,
        out_channels: int | None = None,
        *,
        nu: int | None = None,
        encoder: str = "linear",
        pe_kind: str = "none",
        pe_width: int = 16,
        most_pairs: float = 2.5e7,
        pool: str | None = None,
        pe_channels: int = 0,
    ) -> None:
        super().__init__(in_channels, out_channels, pool=pool)
        self.hidden_channels = check_int("hidden_channels", hidden_channels, minimum=1)
        self.num_layers = check_int("num_layers", num_layers, minimum=1)
        self.nu = None if nu is None else check_int("nu", nu, minimum=1)
        if not 0 <= most_pairs < float("inf"):
            raise ValueError(f"`most_pairs` must be finite and not negative; got {most_pairs}")
        self.most_pairs = most_pairs
        self.encoder = NodeInputs(
            in_channels,
            hidden_channels,
            encoder=encoder,
            pe_kind=pe_kind,
            pe_channels=pe_channels,
            pe_width=pe_width,
        )
        self.pe_channels = self.encoder.pe_channels
        self.convs = nn.ModuleList(DRewConv(hidden_channels, t, nu=nu) for t in range(num_layers))
        self.readout = make_linear(self._end_layers(hidden_channels), out_channels)
        self.reset_parameters()

    def embed(
        self,
        x: Tensor,
        graph: Graph,
        *,
        batch: Tensor | None = None,
        pe: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        x = self.encoder(x, pe)
        matrices = [Propagation(pattern, x) for pattern in self._pairs(graph)]  # type: ignore[arg-type]
        past = [x]
        for conv in self.convs:
            past.append(conv(past[-1], past, matrices))
        return past[-1]

    def _pairs(self, graph: Graph) -> list[HopPattern]:
        def make(graph: Graph) -> list[HopPattern]:
            return pairs_by_distance(graph, self.num_layers, most=self.most_pairs)

        return graph.remember(f"pairs up to {self.num_layers} hops apart", make)

    def __repr__(self) -> str:
        return (
            f"DRew({self.in_channels}, {self.hidden_channels}, num_layers={self.num_layers}, "
            f"out_channels={self.out_channels}, nu={self.nu})"
        )
