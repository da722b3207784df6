"""What happens inside of patches, and between them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from coopsheaf.checks import check_int, check_probability
from coopsheaf.zoo.graph_vit.patches import Patches
from coopsheaf.zoo.platonov.layers import check_heads


class NormedLinear(nn.Module):
    """A linear layer without bias, batch norm and ReLU.

    Args:
        in_channels: size of the input.
        out_channels: size of the output.

    Shapes:
        x ``(n, in_channels)``. Returns ``(n, out_channels)``.
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.lin = nn.Linear(in_channels, out_channels, bias=False)
        self.norm = nn.BatchNorm1d(out_channels)

    def reset_parameters(self) -> None:
        self.lin.reset_parameters()
        self.norm.reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.norm(self.lin(x)))


class PatchConv(nn.Module):
    r"""A layer of GINE (Hu et al., 2020) on the copies of nodes in their patches.

    .. math::
        x_i' = W_3 \bigl(x_i + \operatorname{ReLU}(\operatorname{BN}(
               W_2 \operatorname{ReLU}(\operatorname{BN}(W_1 z_i))))\bigr) + b, \qquad
        z_i = (1 + \varepsilon) x_i + \sum_{e = (j \to i)} \operatorname{ReLU}(x_j + w_e)

    Every layer but the first begins with what the patch knows: x + U(mean of its patch), with U a
    :class:`NormedLinear`, and then all copies of a node become their mean.

    Args:
        channels: number of channels.
        dropout: dropout probability, before the residual.
        first: leave out what the patch knows.

    Shapes:
        x ``(c, channels)``, copies of nodes; edges ``(f, channels)``, copies of edges. Returns
        ``(c, channels)``.
    """

    def __init__(self, channels: int, *, dropout: float = 0.0, first: bool = False) -> None:
        super().__init__()
        self.channels = check_int("channels", channels, minimum=1)
        self.dropout = check_probability("dropout", dropout)
        self.update = None if first else NormedLinear(channels, channels)
        self.inner = NormedLinear(channels, channels)
        self.lin = nn.Linear(channels, channels, bias=False)
        self.epsilon = nn.Parameter(torch.zeros(1))
        self.norm = nn.BatchNorm1d(channels)
        self.out = nn.Linear(channels, channels)

    def reset_parameters(self) -> None:
        for child in self.children():
            child.reset_parameters()  # type: ignore[operator]
        nn.init.zeros_(self.epsilon)

    def forward(self, x: Tensor, edges: Tensor, patches: Patches, num_nodes: int) -> Tensor:
        if self.update is not None:
            x = self.share(x, patches, num_nodes)
        sent = F.relu(x.index_select(0, patches.source) + edges)
        heard = torch.zeros_like(x).index_add(0, patches.target, sent)
        y = self.lin(self.inner((1 + self.epsilon) * x + heard))
        y = F.dropout(F.relu(self.norm(y)), self.dropout, self.training)
        return self.out(x + y)

    def share(self, x: Tensor, patches: Patches, num_nodes: int) -> Tensor:
        """What the patch knows, and one value for all copies of a node."""
        assert self.update is not None
        known = patch_means(x, patches).index_select(0, patches.patch)
        x = x + self.update(known)
        return mean_at(patches.node, x, num_nodes).index_select(0, patches.node)

    def __repr__(self) -> str:
        return f"PatchConv({self.channels}, dropout={self.dropout})"


class HadamardBlock(nn.Module):
    r"""Pre-norm attention between patches, weighted by how many nodes they share.

    .. math::
        Y = X + \Bigl(A \odot \operatorname{softmax}\bigl(Q K^\top / \sqrt{c}\bigr)\Bigr) V W,
        \qquad X' = Y + \mathrm{FFN}(\operatorname{LN}(Y))

    with Q, K and V of LN(X), A the overlap of the patches, and weights that are not divided by
    their sum again. Empty patches are not attended to. The perceptron is twice as wide, with ReLU.

    Args:
        channels: number of channels.
        num_heads: number of heads; divides ``channels``.
        dropout: dropout probability, of the weights too.

    Shapes:
        x ``(graphs, P, channels)``; overlap ``(graphs, P, P)``, A; filled ``(graphs, P)``. Returns
        ``(graphs, P, channels)``.
    """

    def __init__(self, channels: int, *, num_heads: int = 8, dropout: float = 0.0) -> None:
        super().__init__()
        self.channels = check_int("channels", channels, minimum=1)
        self.num_heads = check_heads(num_heads, channels)
        self.dropout = check_probability("dropout", dropout)
        for name in ("query", "key", "value", "out"):
            self.add_module(name, nn.Linear(channels, channels))
        self.norm, self.last_norm = nn.LayerNorm(channels), nn.LayerNorm(channels)
        self.lin_in, self.lin_out = (
            nn.Linear(channels, 2 * channels),
            nn.Linear(2 * channels, channels),
        )

    query: nn.Linear
    key: nn.Linear
    value: nn.Linear
    out: nn.Linear

    def reset_parameters(self) -> None:
        """Projections as Glorot & Bengio (2010) draw them, those of the input narrower."""
        for child in self.children():
            child.reset_parameters()  # type: ignore[operator]
        for linear in (self.query, self.key, self.value):
            nn.init.xavier_uniform_(linear.weight, gain=0.5**0.5)
        nn.init.xavier_uniform_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, x: Tensor, overlap: Tensor, filled: Tensor) -> Tensor:
        x = x + self._drop(self.attend(self.norm(x), overlap, filled))
        inner = self._drop(F.relu(self.lin_in(self.last_norm(x))))
        return x + self._drop(self.lin_out(inner))

    def attend(self, x: Tensor, overlap: Tensor, filled: Tensor) -> Tensor:
        parts = (self.query(x), self.key(x), self.value(x))
        q, k, v = (p.unflatten(2, (self.num_heads, -1)).transpose(1, 2) for p in parts)
        scores = q @ k.mT / q.shape[-1] ** 0.5  # (graphs, heads, P, P)
        lowest = torch.finfo(scores.dtype).min  # not infinity: a graph may have no patch at all
        scores = scores.masked_fill(~filled[:, None, None, :], lowest)
        weights = self._drop(scores.softmax(-1) * overlap.unsqueeze(1).to(x.dtype))
        return self.out((weights @ v).transpose(1, 2).flatten(2))

    def _drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout, self.training)

    def __repr__(self) -> str:
        return f"HadamardBlock({self.channels}, num_heads={self.num_heads}, dropout={self.dropout})"


class Perceptron(nn.Module):
    """Dropout, linear, GELU, dropout, linear.

    Args:
        channels: size of input and output.
        hidden_channels: size between them.
        dropout: dropout probability.
    """

    def __init__(self, channels: int, hidden_channels: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = check_probability("dropout", dropout)
        self.lin_in = nn.Linear(channels, hidden_channels)
        self.lin_out = nn.Linear(hidden_channels, channels)

    def reset_parameters(self) -> None:
        self.lin_in.reset_parameters()
        self.lin_out.reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        inner = F.gelu(self.lin_in(F.dropout(x, self.dropout, self.training)))
        return self.lin_out(F.dropout(inner, self.dropout, self.training))


class MixerBlock(nn.Module):
    r"""The block of MLP-Mixer (Tolstikhin et al., 2021): across the patches, then across channels.

    .. math:: Y = X + f(\operatorname{LN}(X)^\top)^\top, \qquad X' = Y + g(\operatorname{LN}(Y))

    with :class:`Perceptron` f, four times as wide as there are channels, and g, half as wide.

    Args:
        channels: number of channels.
        num_patches: number P of patches.
        dropout: dropout probability.

    Shapes:
        x ``(graphs, P, channels)``; overlap and filled are not looked at. Returns the same.
    """

    def __init__(self, channels: int, num_patches: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.channels = check_int("channels", channels, minimum=1)
        self.num_patches = check_int("num_patches", num_patches, minimum=1)
        self.norm, self.last_norm = nn.LayerNorm(channels), nn.LayerNorm(channels)
        self.across = Perceptron(num_patches, 4 * channels, dropout=dropout)
        self.along = Perceptron(channels, max(1, channels // 2), dropout=dropout)

    def reset_parameters(self) -> None:
        for child in self.children():
            child.reset_parameters()  # type: ignore[operator]

    def forward(self, x: Tensor, overlap: Tensor, filled: Tensor) -> Tensor:
        x = x + self.across(self.norm(x).mT).mT
        return x + self.along(self.last_norm(x))

    def __repr__(self) -> str:
        return f"MixerBlock({self.channels}, {self.num_patches})"


def mean_at(index: Tensor, x: Tensor, size: int) -> Tensor:
    """The means of the rows with each index, ``(size, c)``; zeros where there is none."""
    total = x.new_zeros(size, x.shape[1]).index_add(0, index, x)
    count = x.new_zeros(size).index_add(0, index, torch.ones_like(index, dtype=x.dtype))
    return total / count.clamp(min=1).unsqueeze(1)


def patch_means(x: Tensor, patches: Patches) -> Tensor:
    """The mean of every patch, ``(graphs · P, c)``; zeros for empty ones."""
    graphs, count = patches.overlap.shape[:2]
    return mean_at(patches.patch, x, graphs * count)


def returning_walks(overlap: Tensor, steps: int) -> Tensor:
    r"""The diagonals of :math:`M, M^2, \dots`, with M the overlap divided by the sums of its rows.

    Args:
        overlap: ``(graphs, P, P)``.
        steps: number of powers.

    Returns:
        ``(graphs, P, steps)``; zeros for empty patches.
    """
    walk = overlap / overlap.sum(-1, keepdim=True).clamp(min=1)
    power, found = walk, [walk.diagonal(dim1=1, dim2=2)]
    for _ in range(steps - 1):
        power = power @ walk
        found.append(power.diagonal(dim1=1, dim2=2))
    return torch.stack(found, dim=-1)
