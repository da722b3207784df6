"""Chunks of nodes, and sums over the edges into them."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from coopsheaf.sheaves.graph import CSR


def chunks(num_nodes: int, size: int) -> Iterator[slice]:
    """All nodes, ``size`` at a time."""
    return (slice(start, min(start + size, num_nodes)) for start in range(0, num_nodes, size))


def sum_rows(x: Tensor, lists: CSR, rows: slice, weight: Tensor | None = None) -> Tensor:
    """Σ over the entries of some rows, ``(rows, c)``.

    Args:
        x: ``(n, c)``, what every node sends.
        lists: the compressed edges.
        rows: which rows.
        weight: ``(m,)``, in the order of the edges.
    """
    ptr = lists.ptr[rows.start : rows.stop + 1]
    first, last = int(ptr[0]), int(ptr[-1])
    if first == last:
        return x.new_zeros(rows.stop - rows.start, x.shape[1])
    other = lists.other[first:last]
    values = None if weight is None else weight[lists.edge[first:last]].to(x.dtype)
    if x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64):
        return F.embedding_bag(
            other,
            x,
            (ptr - first).to(other.dtype),
            mode="sum",
            per_sample_weights=values,
            include_last_offset=True,
        )
    sent = x[other] if values is None else values.unsqueeze(1) * x[other]
    places = torch.arange(rows.stop - rows.start, device=x.device)
    place = torch.repeat_interleave(places, ptr.diff(), output_size=last - first)
    return x.new_zeros(rows.stop - rows.start, x.shape[1]).index_add(0, place, sent)
