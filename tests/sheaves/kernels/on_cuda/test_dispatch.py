"""When the Triton kernels are used; everything works without Triton."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch
from graphs import ODD_GRAPHS, randn
from torch.testing import assert_close

from coopsheaf import Graph
from coopsheaf.nn import SAGEConv, sage
from coopsheaf.sheaves import kernels
from coopsheaf.sheaves.kernels import factored, on_cuda, reference, sparse
from coopsheaf.sheaves.kernels.eager import is_plain
from coopsheaf.sheaves.kernels.terms import Terms

STEP = """
import torch
from coopsheaf import CSNN, Graph
from coopsheaf.sheaves.kernels import on_cuda
model = CSNN(4, 8, 2, 3, learner="sage-projected", dropout=0.1)
graph = Graph(torch.tensor([[0, 1, 2, 0], [1, 2, 0, 3]]), 5)
model(torch.randn(5, 4), graph).sum().backward()
"""


def run(code: str, **environment: str) -> str:
    command = [sys.executable, "-c", code]
    env = os.environ | environment
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    assert done.stderr == ""
    return done.stdout.strip()


def test_a_step_on_the_cpu_loads_no_kernel() -> None:
    """Triton itself may have been loaded by others."""
    code = f"import sys\n{STEP}\nprint([name for name in sys.modules if 'on_cuda.' in name])"
    assert run(code) == "[]"


def test_a_step_without_triton() -> None:
    code = f"import sys\nsys.modules['triton'] = None\n{STEP}\nprint(on_cuda.has_triton())"
    assert run(code) == "False"


@pytest.mark.parametrize(("value", "wanted"), [("", "False"), ("0", "False"), ("1", "True")])
def test_they_must_be_asked_for(value: str, wanted: str) -> None:
    code = "from coopsheaf.sheaves.kernels import on_cuda; print(on_cuda._wanted)"
    assert run(code, COOPSHEAF_TRITON=value) == wanted


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tensors count as those of a card; Triton is not installed."""
    monkeypatch.setattr(on_cuda, "DEVICE", "cpu")
    monkeypatch.setattr(on_cuda, "_wanted", True)
    monkeypatch.setattr(kernels, "_active", "factored")
    monkeypatch.setattr(on_cuda, "has_triton", lambda: False)
    monkeypatch.setattr(sparse, "_has_block_product", lambda work: False)
    for module in (factored, sage):
        monkeypatch.setattr(module, "is_plain_eager", lambda *tensors: False)


@pytest.mark.usefixtures("elsewhere")
def test_without_triton_a_card_gets_the_composition() -> None:
    n, edges = ODD_GRAPHS["random-directed"]
    graph = Graph(edges, n)
    parts = [randn(n, seed=1), randn(n, 3, 3, seed=2), randn(n, 3, 3, seed=3)]
    x, *parts = (part.float() for part in (randn(n, 3, 4), *parts))
    terms = Terms(graph, *parts)
    assert not on_cuda.takes_node_maps(x, terms)
    assert_close(factored.node_maps(x, terms), reference.node_maps(x, terms), rtol=1e-4, atol=1e-4)
    conv = SAGEConv(4, 3, project=True)
    assert not on_cuda.takes_sage(x[:, 0], list(conv.parameters()), None)
    assert conv(x[:, 0], graph).shape == (n, 3)


def test_who_is_a_tensor_of_a_card() -> None:
    x = torch.zeros(2, 3, 4)
    assert is_plain([x], "cpu")
    assert not is_plain([x], "cuda")
    assert not is_plain([x, x.to("meta")], "cpu")
    assert is_plain([None, x], "cpu")
    assert not is_plain([x.double()], "cpu", (torch.float32,))
    assert not on_cuda.takes(x)
    with torch.autocast("cuda", dtype=torch.bfloat16, enabled=False):
        assert is_plain([x], "cpu")


def test_the_switch_goes_back() -> None:
    before = on_cuda._wanted
    with on_cuda.use_triton(not before):
        assert on_cuda._wanted is not before
    assert on_cuda._wanted is before
    with pytest.raises(RuntimeError, match="stop"), on_cuda.use_triton(not before):
        raise RuntimeError("stop")
    assert on_cuda._wanted is before
