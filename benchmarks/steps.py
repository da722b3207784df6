"""Training steps by every kernel that ``train_step.py`` compares."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch
import torch.nn.functional as F
from settings import SETTINGS, Setting
from shared import SEED
from torch import Tensor, nn

from coopsheaf.memory import keep_freed_memory
from coopsheaf.sheaves.kernels import VARIABLE, use_kernel
from coopsheaf.threads import on_every_thread

# Implementations of CSNN, and PyG's GCN: of the same width and depth, the same with its
# normalisation cached on a CSR matrix, and of the size that the paper compares with.
OURS = ("edgewise", "factored", "native", "bf16", "compiled")
CSNNS = ("baseline", *OURS)
GCNS = {"gcn": (None, None), "gcn-cached": (None, None), "gcn-512": (512, 4)}  # width, layers
KERNELS = (*CSNNS, *GCNS)
FLOOR = "floor"

NATIVE, PRODUCTS = "coopsheaf.sheaves.kernels.native", "coopsheaf.nn.products"


def why_not(kernel: str) -> str | None:
    """Why a kernel cannot run here; ``None`` if it can."""
    if kernel == "native" and not has_native():
        if os.environ.get(VARIABLE):
            return f"{VARIABLE}={os.environ[VARIABLE]} switches it off"
        return "the package coopsheaf-kernels is not installed: pip install ./native"
    if kernel == "bf16" and _find(PRODUCTS) is None:
        return "this version has no products in bfloat16"
    if kernel == "compiled" and shutil.which("g++") is None:
        return "there is no C++ compiler"
    return None


def has_native() -> bool:
    """Whether compiled kernels are installed, and not switched off for this process."""
    if os.environ.get(VARIABLE, "native") != "native":
        return False
    native = _find(NATIVE)
    return native is not None and bool(native.is_available())


def _find(module: str) -> Any:
    try:
        return import_module(module)
    except ModuleNotFoundError:
        return None


def versions(kernel: str) -> dict[str, str]:
    """The packages whose code a kernel runs."""
    own = "coopsheaf" if kernel in OURS else "torch_geometric"
    names = ["torch", own]
    if kernel in ("native", "bf16") and has_native():
        names.append("coopsheaf-kernels")
    found = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # run from its sources
            found[name] = "sources"
    return found


def computing(kernel: str) -> AbstractContextManager:
    """Computes as a kernel says, forward and back; products in bfloat16 by native code if there."""
    stack = ExitStack()
    if kernel in ("edgewise", "native"):
        stack.enter_context(use_kernel(kernel))
    elif kernel == "bf16":
        stack.enter_context(use_kernel("native" if has_native() else "factored"))
        stack.enter_context(_find(PRODUCTS).use_products("bf16"))
    else:
        stack.enter_context(use_kernel("factored"))
    return stack


def keep_memory(allocator: str) -> bool:
    """Keep freed memory, on whichever side; where that cannot be, the numbers are "plain"."""
    return allocator == "kept" and keep_freed_memory()


def drop_tiny_numbers() -> None:
    """Until this process ends they are zero, as in training; for all sides."""
    on_every_thread(lambda: torch.set_flush_denormal(True))


class Training:
    """A graph with features and labels, and one network and optimiser per kernel."""

    def __init__(self, name: str, kernels: tuple[str, ...], threads: int) -> None:
        torch.set_num_threads(threads)
        self.setting = SETTINGS[name]
        torch.manual_seed(SEED)
        self.graph = self.setting.make_graph()
        in_channels, _, _, out_channels = self.setting.sizes
        self.x = torch.randn(self.setting.num_nodes, in_channels)
        self.y = torch.randint(max(2, out_channels), (self.setting.num_nodes,))
        self.edges = {kernel: self._edges(kernel) for kernel in kernels}
        self.models, self.optimizers = {}, {}
        for kernel in kernels:
            torch.manual_seed(SEED)
            model = make_network(kernel, self.setting)
            # Ours trains with the fused Adam; the others with the ordinary one.
            fused = {"fused": True} if kernel in OURS else {}
            adam = torch.optim.Adam(model.parameters(), **self.setting.optimizer, **fused)
            self.optimizers[kernel] = adam
            self.models[kernel] = torch.compile(model) if kernel == "compiled" else model

    def _edges(self, kernel: str) -> Any:
        """The edges as a kernel takes them, prepared as far as it can use that."""
        if kernel in OURS:
            return self.graph
        if kernel != "gcn-cached":
            return self.graph.edge_index
        n, rows = self.setting.num_nodes, self.graph.edge_index.flip(0)
        ones = torch.ones(self.graph.num_edges)
        adjacency = torch.sparse_coo_tensor(rows, ones, (n, n), check_invariants=True)
        return adjacency.coalesce().to_sparse_csr()  # transposed, with sorted columns

    def loss(self, kernel: str) -> Tensor:
        out = self.models[kernel](self.x, self.edges[kernel])
        if out.shape[1] == 1:
            return F.binary_cross_entropy_with_logits(out.squeeze(1), self.y.to(out.dtype))
        return F.cross_entropy(out, self.y)

    def step(self, kernel: str) -> None:
        """One full training step."""
        self.optimizers[kernel].zero_grad(set_to_none=True)
        with computing(kernel):
            self.loss(kernel).backward()
        self.optimizers[kernel].step()

    def check(self) -> dict[str, tuple[float, float]]:
        """Loss and norm of its gradient of each network, before training and without dropout."""
        found = {}
        for kernel, model in self.models.items():
            model.eval()
            with computing(kernel):
                loss = self.loss(kernel)
                loss.backward()
            gradients = [p.grad for p in model.parameters()]
            found[kernel] = loss.item(), float(torch.nn.utils.get_total_norm(gradients))
            self.optimizers[kernel].zero_grad(set_to_none=True)
            model.train()
        return found


def make_network(kernel: str, setting: Setting) -> nn.Module:
    if kernel == "baseline":
        return setting.make_baseline()
    if kernel in GCNS:
        return setting.make_gcn(*GCNS[kernel], cached=kernel == "gcn-cached")
    return setting.make_model()


class Floor:
    """The matrix products of the CSNN, each on its own: forward, and both of its derivatives.

    The derivative by the input features, which nobody asks for, is left out.
    """

    def __init__(self, setting: Setting) -> None:
        self.products = []
        for k, (rows, inputs, outputs) in enumerate(setting.products()):
            matrices = torch.randn(rows, inputs), torch.randn(outputs, inputs)
            self.products.append((*matrices, torch.randn(rows, outputs), k > 0))

    def step(self) -> None:
        for x, weight, grad, for_input in self.products:
            torch.mm(x, weight.T)
            torch.mm(grad.T, x)
            if for_input:
                torch.mm(grad, weight)


def make_steps(
    graph: str, kernels: tuple[str, ...], threads: int, *, floor: bool
) -> tuple[dict[str, Callable[[], None]], dict[str, tuple[float, float]]]:
    """A step of every kernel, and of the floor, by name; what their networks compute at first."""
    training = Training(graph, kernels, threads)
    steps: dict[str, Callable[[], None]] = {}
    for kernel in kernels:
        steps[kernel] = lambda kernel=kernel: training.step(kernel)
    if floor:
        steps[FLOOR] = Floor(training.setting).step
    return steps, training.check()
