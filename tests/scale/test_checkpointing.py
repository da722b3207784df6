"""Layers computed again on the way back: the same numbers, fewer of them kept."""

from __future__ import annotations

import pytest
import torch
from graphs import generator
from torch.autograd.graph import saved_tensors_hooks

from coopsheaf import CSNN, Graph, record_maps
from coopsheaf.models.registry import make_settings
from coopsheaf.nn.learners import LEARNERS

N = 90
GRAPH = Graph(torch.randint(0, N, (2, 400), generator=generator(0)), N)
X = torch.randn(N, 5, generator=generator(1))


def build(*, again: bool, learner: str = "mlp", norm: str | None = "batch", **options) -> CSNN:
    torch.manual_seed(0)
    return CSNN(
        5, 4, 3, 2, learner=learner, norm=norm, dropout=0.4, input_dropout=0.2,
        checkpoint_layers=again, **options,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("learner", "semantics"), [*((name, "paper") for name in LEARNERS), ("mlp", "released")]
)
def test_steps_are_the_same_to_the_last_bit(learner: str, semantics: str) -> None:
    ends = []
    for again in (False, True):
        model = build(again=again, learner=learner, semantics=semantics)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        torch.manual_seed(5)
        for _ in range(2):
            optimizer.zero_grad()
            model(X, GRAPH).square().mean().backward()
            optimizer.step()
        ends.append((model.state_dict(), torch.get_rng_state()))
    for name, value in ends[0][0].items():  # statistics of the batch norms too
        assert torch.equal(value, ends[1][0][name]), name
    assert torch.equal(ends[0][1], ends[1][1])


def kept(model: CSNN) -> int:
    """Numbers kept for the way back, each memory once."""
    sizes: dict[int, int] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        sizes[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        model(X, GRAPH)
    return sum(sizes.values())


def test_less_is_kept() -> None:
    plain, again = (kept(build(again=again, norm=None)) for again in (False, True))
    assert again < plain / 3


def test_without_training_nothing_is_computed_twice() -> None:
    model = build(again=True).eval()
    with record_maps(model) as maps:
        model(X, GRAPH).sum().backward()
    assert len(maps) == 3


def test_it_is_a_setting_of_recipes() -> None:
    for value in (None, False, True):
        config = make_settings("csnn", hidden_channels=4, checkpoint_layers=value)
        assert config.build(5, 2, graph_level=False).checkpoint_layers is bool(value)
