"""A network is no larger than the file of its weights: every model is built without memory first."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from coopsheaf.models.registry import MODELS
from coopsheaf.train.weights import Sizes, TooLarge, limited


def sizes(network: nn.Module) -> Sizes:
    state = network.state_dict()
    return Sizes(len(state), sum(value.numel() for value in state.values()))


@pytest.mark.parametrize("name", MODELS)
def test_every_model_can_be_sketched(name: str) -> None:
    settings = MODELS[name].settings()
    network = settings.build(5, 3, num_nodes=7)
    with limited(sizes(network)), torch.device("meta"):
        sketch = settings.build(5, 3, num_nodes=7)
    on_meta = {value.is_meta for value in sketch.state_dict().values()}
    assert on_meta == ({True, False} if name == "ggnn" else {True})  # PyG makes one of its tensors
    shapes = [{k: (v.shape, v.dtype) for k, v in net.state_dict().items()} for net in (network, sketch)]  # fmt: skip
    assert shapes[0] == shapes[1]


def test_building_stops_where_the_file_ends() -> None:
    built = []

    def layers() -> nn.ModuleList:
        return nn.ModuleList(built.append(0) or nn.Linear(10, 10) for _ in range(10**9))

    with pytest.raises(TooLarge, match="more parameters than model"), limited(Sizes(4, 220)):  # fmt: skip
        layers()
    assert len(built) < 200
    with pytest.raises(TooLarge, match="more layers than"), limited(Sizes(0, 0)):
        nn.ModuleList(nn.Identity() for _ in range(10**9))
    nn.ModuleList(nn.Linear(100, 100) for _ in range(20))  # nothing is counted any more
