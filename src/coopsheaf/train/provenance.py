"""What numbers depend on beside the settings: versions, and which instructions computed them."""

from __future__ import annotations

import os
import platform
import re
from contextlib import suppress
from pathlib import Path

import numpy
import torch
import torch_geometric

import coopsheaf
from coopsheaf.sheaves.kernels import describe_kernel

# What oneDNN calls the sets of instructions it knows, the best first, and the flags they need.
_ONEDNN = {
    "avx512_core_amx": ("amx_tile", "amx_int8", "amx_bf16"),
    "avx512_core_bf16": ("avx512_bf16", "avx512_vnni"),
    "avx512_core_vnni": ("avx512_vnni",),
    "avx512_core": ("avx512f", "avx512bw", "avx512vl", "avx512dq"),
    "avx2_vnni": ("avx_vnni",),
    "avx2": ("avx2",),
    "avx": ("avx",),
    "sse41": ("sse4_1",),
}


def versions() -> dict[str, str]:
    """The versions that numbers depend on."""
    built = torch.__config__.show()
    inside = {
        "mkl": r"Math Kernel Library Version (\S+)",
        "onednn": r"MKL-DNN v(\S+)",
        "openmp": r"OpenMP (\d+)",
    }
    found = {name: re.search(pattern, built) for name, pattern in inside.items()}
    return {
        "coopsheaf": coopsheaf.__version__,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "torch_geometric": torch_geometric.__version__,
        "numpy": numpy.__version__,
        **{name: match[1] for name, match in found.items() if match},
    }


def instructions() -> dict[str, str]:
    """Which kernels and instructions compute: one bit of a sum may differ with them.

    ``kernel`` is that of this package, with version and instructions if it is compiled (which draws
    other dropout masks, too); ``capability`` is that of PyTorch's own kernels, ``onednn`` the best
    set that oneDNN finds on this processor (Linux only; PyTorch does not say which it chose),
    ``subnormal`` what became of numbers too small to be normal in training. The variables of the
    environment that limit the sets are there by their names.
    """
    limits = ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "MKL_CBWR",
              "MKL_ENABLE_INSTRUCTIONS")  # fmt: skip
    found = {
        "kernel": describe_kernel(),
        "capability": torch.backends.cpu.get_cpu_capability(),
        "onednn": onednn_instructions(_cpu_flags()),
        "subnormal": "zero",  # see :func:`coopsheaf.train.engine.without_tiny_numbers`
        **{name: os.environ[name] for name in limits if name in os.environ},
    }
    return {name: value for name, value in found.items() if value}


def onednn_instructions(flags: frozenset[str]) -> str:
    """The best set of instructions for which a processor has all flags; empty if there is none."""
    return next((name for name, needed in _ONEDNN.items() if flags.issuperset(needed)), "")


def _cpu_flags() -> frozenset[str]:
    with suppress(OSError):
        line = re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        if line is not None:
            return frozenset(line[1].split())
    return frozenset()
