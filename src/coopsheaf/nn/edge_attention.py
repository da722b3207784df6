"""Attention whose scores are products of three: what a node asks, what another offers, and what
their edge says."""

from __future__ import annotations

import torch
from torch import Tensor

CLAMP = 5.0  # scores are kept between -5 and 5 before the exponential
LEAST = 1e-6  # added to the sum that weights are divided by


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """``(n, heads, c)`` out of ``(n, heads · c)``."""
    return x.unflatten(1, (num_heads, -1))


def edge_exponentials(
    queries: Tensor, keys: Tensor, edges: Tensor, source: Tensor, target: Tensor
) -> Tensor:
    r"""What every edge weighs before weights are divided by their sum.

    .. math:: s_e = \exp \operatorname{clamp}\Bigl(\frac{1}{\sqrt{c}} \sum_{r=1}^{c} q_{i r}\,
              k_{j r}\, w_{e r},\; -5,\; 5\Bigr), \qquad e = (j \to i)

    Args:
        queries, keys: ``(n, heads, c)``, q at the targets and k at the sources.
        edges: ``(m, heads, c)``, w.
        source, target: ``(m,)``, the ends of the edges.

    Returns:
        ``(m, heads)``.
    """
    products = queries.index_select(0, target) * keys.index_select(0, source) * edges
    return (products.sum(-1) / edges.shape[-1] ** 0.5).clamp(-CLAMP, CLAMP).exp()


def edge_sums(
    values: Tensor, weights: Tensor, source: Tensor, target: Tensor
) -> tuple[Tensor, Tensor]:
    r"""The sums :math:`\sum_{e = (j \to i)} s_e v_j` and :math:`\sum_e s_e` at every node.

    Args:
        values: ``(n, heads, c)``, v.
        weights: ``(m, heads)``, s.
        source, target: ``(m,)``.

    Returns:
        ``(n, heads, c)`` and ``(n, heads)``; zeros where no edge ends.
    """
    sent = values.index_select(0, source) * weights.unsqueeze(-1)
    sums = torch.zeros_like(values).index_add(0, target, sent)
    totals = values.new_zeros(values.shape[:2]).index_add(0, target, weights.to(values.dtype))
    return sums, totals


def divide(sums: Tensor, totals: Tensor) -> Tensor:
    """The weighted means, ``(n, heads · c)``; 0 where there was nothing to weigh."""
    return (sums / (totals + LEAST).unsqueeze(-1)).flatten(1)
