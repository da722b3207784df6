"""Directed Sheaf Neural Network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from coopsheaf.models.arguments import arguments_of
from coopsheaf.zoo.dsnn.conv import DSNNConv
from coopsheaf.zoo.nsd.network import NSD


class ComplexReLU(nn.Module):
    r"""Both parts where the real one is not negative, else 0: :math:`z\, [\operatorname{Re} z \ge
    0]`.

    Shapes:
        z ``(n, 2c, ...)``, real parts first; returns the same.
    """

    def forward(self, z: Tensor) -> Tensor:
        real, imaginary = z.chunk(2, dim=1)
        kept = real >= 0
        return torch.cat([torch.where(kept, part, 0.0) for part in (real, imaginary)], dim=1)


class DSNN(NSD):
    r"""Directed Sheaf Neural Network (Fiorini, Aktas, Duta et al., ICLR 2026).

    Neural Sheaf Diffusion on complex features, whose Laplacian turns the phase of what goes along
    an arc one way and of what comes back the other way
    (:class:`~coopsheaf.zoo.dsnn.DSNNConv`):

    .. math::
        X_0 = (1 + i)\,\operatorname{encoder}(x), \qquad
        X_{t+1} = (1 + \tanh \varepsilon_t) \odot X_t
                  - \sigma\bigl(\Delta_t (I_n \otimes W_{1,t}) \tilde X_t W_{2,t}\bigr),

    and a linear readout of real and imaginary parts. Dropout draws masks of their own for the two
    parts; where it stands and what it spares is as in :class:`~coopsheaf.zoo.nsd.NSD`.

    All of it is in real numbers: ``(n, 2·d·h)`` between the layers. On a graph that holds every
    edge both ways q makes no difference.

    Args:
        in_channels: size of the input features.
        hidden_channels: number h of complex channels.
        num_layers: number of layers.
        out_channels: size of the output; ``None`` for the features of the last layer.
        q: how far an arc turns, in whole turns: 0 ≤ q ≤ 1.
        learn_q: learn q, one per layer, between 0 and ¼.
        separate_weights: W₁ and W₂ of their own for imaginary parts.
        act: σ: ``"complex-relu"`` keeps both parts where the real one is not negative; any other
            activation acts on either part by itself, such as ``"elu"``.
        settings: as for :class:`~coopsheaf.zoo.nsd.NSD`; ``sparse_reading`` is ``"summed"``.

    Shapes:
        x ``(n, in_channels)``; edge_index ``(2, m)`` or a :class:`~coopsheaf.Graph`, no self-loop;
        batch ``(n,)``, the graph of each node; edge_weight ``(m,)``, of which a pair of neighbours
        has the mean. Returns ``(n, out_channels)``, or ``(graphs, out_channels)``.
    """

    undirected = False
    conv_kind = DSNNConv

    @arguments_of(NSD, without=("sparse_reading",))
    def __init__(
        self,
        in_channels: int,
        hidden_channels: int = 32,
        num_layers: int = 2,
        out_channels: int | None = None,
        *,
        q: float = 0.25,
        learn_q: bool = False,
        separate_weights: bool = False,
        act: str | Callable[[Tensor], Tensor] | None = "complex-relu",
        **settings: Any,
    ) -> None:
        super().__init__(
            in_channels,
            hidden_channels,
            num_layers,
            out_channels,
            q=q,
            learn_q=learn_q,
            separate_weights=separate_weights,
            act=ComplexReLU() if act == "complex-relu" else act,
            **settings,
        )

    def encode(self, x: Tensor) -> Tensor:
        x = torch.stack([x, x], dim=1)  # (n, 2, in_channels): the imaginary part is a copy
        x = self.encoder(F.dropout(x, self.input_dropout, self.training))
        x = F.dropout(self.act(x.flatten(1)), self.dropout, self.training)  # (n, 2·d·h)
        if self.second is not None:
            x = self.second(x.unflatten(1, (2, -1))).flatten(1)
        return x.unflatten(1, (2 * self.total_dim, self.hidden_channels))

    def residual(self, t: int, x: Tensor) -> Tensor:
        return (1 + torch.tanh(self.epsilons[t])).repeat(2, 1) * x
