"""Counts the places where a program would have to wait for its device."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

# Results whose size or value the host needs before it can go on.
WAITING = {
    "_local_scalar_dense": lambda x: 1,  # item(), bool(), float(), if
    "equal": lambda *tensors: True,
    "is_nonzero": lambda x: True,
}
SIZED_BY_DATA = {
    "nonzero", "masked_select", "unique_dim", "_unique2", "_unique", "unique_consecutive", "bincount", "histc",
    "_linalg_check_errors",
}  # fmt: skip


class Synchronisations(TorchDispatchMode):
    """Notes what would wait, on tensors that are not the CPU's.

    Made for the device "meta", which has shapes and no values, and where code takes the ways of an
    accelerator. What the host would read is one or true.
    """

    def __init__(self) -> None:
        super().__init__()
        self.found: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        if all(tensor.is_cpu for tensor in tensors):
            if _copies_there(name, kwargs):
                self.found[f"{name} to the device, waiting"] += 1
            return func(*args, **kwargs)
        if name in WAITING:
            self.found[name] += 1
            return WAITING[name](*args)
        if name in SIZED_BY_DATA:
            self.found[name] += 1
            return _stand_in(name, *args, **kwargs)
        if name == "index" and any(_is_mask(index) for index in args[1]):
            self.found["index by a mask"] += 1
            return args[0]
        if name == "repeat_interleave" and kwargs.get("output_size") is None:
            self.found["repeat_interleave without its size"] += 1
        if str(kwargs.get("device")) == "cpu":
            self.found[f"{name} to the host"] += 1
            return torch.ones(args[0].shape, dtype=kwargs.get("dtype") or args[0].dtype)
        if name == "copy_" and any(tensor.is_cpu for tensor in tensors):
            self.found["copy_ between devices"] += 1
        return func(*args, **kwargs)


def _copies_there(name: str, options: dict[str, Any]) -> bool:
    """A copy to another device for which the host waits."""
    device = options.get("device")
    there = device is not None and torch.device(device).type != "cpu"
    return name == "_to_copy" and there and not options.get("non_blocking")


def _is_mask(index: object) -> bool:
    return isinstance(index, Tensor) and index.dtype in (torch.bool, torch.uint8)


def _stand_in(name: str, x: Tensor, *args: Any, **kwargs: Any) -> Any:
    if name == "nonzero":
        return torch.zeros(1, x.dim(), dtype=torch.int64, device=x.device)
    if name == "bincount":
        return torch.zeros(max(args[-1] if args else 0, kwargs.get("minlength", 0), 1), dtype=torch.int64, device=x.device)  # fmt: skip
    if name == "masked_select":
        return x.flatten()[:1]
    raise NotImplementedError(name)
