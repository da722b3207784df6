"""``coopsheaf env``: what computes here."""

from __future__ import annotations

import os
import sys

import torch

from coopsheaf.memory import machine_bytes
from coopsheaf.sheaves.kernels import VARIABLE, active_kernel, describe_kernel, native, on_cuda
from coopsheaf.train.provenance import instructions, versions


def show() -> int:
    """One line for each thing that speed, or the last bit of a number, depends on."""
    facts = {"kernel": _kernel(), **instructions_beside(), "threads": _threads()}
    facts |= {"memory": f"{machine_bytes() / 2**30:.1f} GB", "devices": _devices()}
    facts |= {"Triton": _triton(), **versions()}
    width = max(map(len, facts))
    sys.stdout.write("".join(f"{name:{width}}  {value}\n" for name, value in facts.items()))
    return 0


def instructions_beside() -> dict[str, str]:
    return {name: value for name, value in instructions().items() if name != "kernel"}


def _kernel() -> str:
    if active_kernel() == "native":
        return f"native: {describe_kernel()}"
    if native.is_available():
        return f"{active_kernel()} ({native.describe()} is installed; {VARIABLE} says otherwise)"
    return f"{active_kernel()} (coopsheaf-kernels is not installed: pip install ./native)"


def _threads() -> str:
    said = f"{torch.get_num_threads()} of {os.cpu_count()} cores"
    if active_kernel() == "native" and not native.uses_threads():
        said += " (compiled kernels: one, since this PyTorch, older than 2.10 perhaps, lends none)"
    return said


def _devices() -> str:
    if not torch.cuda.is_available():
        return "cpu"
    names = [torch.cuda.get_device_name(k) for k in range(torch.cuda.device_count())]
    return ", ".join(["cpu", *names])


def _triton() -> str:
    if not on_cuda.has_triton():
        return "not installed"
    return "on" if on_cuda.is_wanted() else "off (never run on a card; COOPSHEAF_TRITON=1 asks)"
