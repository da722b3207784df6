"""A guard that sees every tensor an expression creates, inside our own operators too."""

from __future__ import annotations

from typing import Any

import torch
from torch._library.custom_ops import OPDEFS
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from coopsheaf.sheaves.kernels import sparse


class LargestTensor(TorchDispatchMode):
    """Records the largest number of elements any operation returned as new memory.

    Args:
        inside: look into all of our operators that are written in Python, not just at the kernels
            of sums over neighbours.
    """

    def __init__(self, *, inside: bool = False) -> None:
        super().__init__()
        self.inside = inside
        self.numel = 0
        self.where = ""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        # A custom operator runs below this mode: step inside with the mode on.
        if func is torch.ops.coopsheaf.sparse_product.default:
            with self:
                return sparse._multiply(*args[:5])
        if func is torch.ops.coopsheaf.edge_products.default:
            with self:
                return sparse._sample(*args[:5])
        if self.inside and func.namespace == "coopsheaf" and func._schema.name in OPDEFS:
            with self:
                return OPDEFS[func._schema.name]._init_fn(*args, **(kwargs or {}))
        out = func(*args, **(kwargs or {}))
        # What an operation wrote into was there before.
        known = any(found.alias_info is not None for found in func._schema.returns)
        if not func.is_view and not known:
            for leaf in tree_leaves(out):
                if isinstance(leaf, torch.Tensor) and leaf.layout == torch.strided:
                    size = leaf.untyped_storage().nbytes() // max(1, leaf.element_size())
                    if size > self.numel:
                        self.numel, self.where = size, str(func)
        return out


class StepCounts(TorchDispatchMode):
    """Counts matrix products and new tensors of at least ``large`` elements."""

    def __init__(self, large: int) -> None:
        super().__init__()
        self.limit = large
        self.products = self.batched = self.large = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        self.products += name in ("mm", "addmm", "addmm_")
        self.batched += name in ("bmm", "baddbmm", "baddbmm_")
        if not func.is_view and not func._schema.is_mutable:
            leaves = (leaf for leaf in tree_leaves(out) if isinstance(leaf, torch.Tensor))
            self.large += any(leaf.numel() >= self.limit for leaf in leaves)
        return out
