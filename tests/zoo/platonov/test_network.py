"""The classic networks in one skeleton."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from graphs import randn
from torch import nn
from torch.testing import assert_close

from coopsheaf import Graph
from coopsheaf.models.registry import MODELS
from coopsheaf.zoo.platonov.layers import AttentionBlock, FeedForwardBlock
from coopsheaf.zoo.platonov.network import (
    PlatonovGAT,
    PlatonovGCN,
    PlatonovGT,
    PlatonovGTSep,
    PlatonovResNet,
    PlatonovSAGE,
)

ONE_WAY = torch.tensor([[0, 1, 2], [1, 2, 3]])


def count(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def test_gcn_has_as_many_parameters_as_published() -> None:
    """Four layers on roman-empire: 2,269,714 in the appendix of Ribeiro et al. (ICLR 2026)."""
    model = PlatonovGCN(300, 512, 4, 18)
    assert count(model) == 154_112 + 4 * (1_024 + 525_312) + 1_024 + 9_234 == 2_269_714


def test_forward_is_the_skeleton() -> None:
    torch.manual_seed(0)
    model, x = PlatonovGT(5, 8, 2, 3, num_heads=2).double().eval(), randn(4, 5)
    graph, stack = Graph(ONE_WAY, 4), model.stack
    kinds = [type(block) for block in stack.blocks]
    assert kinds == [AttentionBlock, FeedForwardBlock] * 2
    y = F.gelu(stack.encoder(x))
    for block in stack.blocks:
        y = y + block(F.layer_norm(y, (8,)), graph)
    assert_close(model(x, ONE_WAY), model.readout(F.layer_norm(y, (8,))), rtol=0, atol=1e-13)


def test_dropout_acts_on_the_encoder_and_inside_the_blocks() -> None:
    torch.manual_seed(0)
    model, x = PlatonovResNet(5, 64, 1, 3, dropout=0.5).double(), randn(4, 5)
    dropped: list[float] = []
    model.stack.norms[0].register_forward_hook(
        lambda module, inputs, output: dropped.append((inputs[0] == 0).double().mean().item())
    )
    model(x, ONE_WAY)
    assert 0.3 < dropped[0] < 0.7
    assert model.stack.blocks[0].feed_forward.dropout == 0.5
    assert PlatonovGTSep(5, 8, 1, 3, dropout=0.4).stack.blocks[0].dropout == 0.4


@pytest.mark.parametrize("model", [PlatonovGCN, PlatonovGAT, PlatonovGT])
def test_networks_that_want_loops_add_one_per_node(model: type) -> None:
    """Even where a loop is already there; with the others a lone node hears nobody."""
    torch.manual_seed(0)
    network, x = model(5, 8, 1, 3).double().eval(), randn(2, 5)
    none = torch.empty(2, 0, dtype=torch.int64)
    loops = torch.tensor([[0, 1], [0, 1]])
    # A mean over copies of the node itself is the node itself, however many there are.
    assert_close(network(x, loops), network(x, none), rtol=0, atol=1e-12)
    # Beside a neighbour the second loop counts.
    edge, and_loop = torch.tensor([[1], [0]]), torch.tensor([[1, 0], [0, 0]])
    assert not torch.allclose(network(x, and_loop)[0], network(x, edge)[0], atol=1e-6)


def test_options_reach_the_blocks() -> None:
    model = PlatonovGAT(5, 8, 1, 3, num_heads=4, hidden_multiplier=2, norm="batch")
    assert model.stack.blocks[0].num_heads == 4
    assert model.stack.blocks[0].feed_forward.lin_in.out_features == 16
    assert isinstance(model.stack.last_norm, nn.BatchNorm1d)
    assert PlatonovGT(5, 8, 1, 3).stack.blocks[0].num_heads == 8
    config = MODELS["gt-sep"].settings(hidden_channels=8, num_heads=2)
    assert config.build(5, 3, graph_level=False).stack.blocks[0].num_heads == 2


def test_networks_without_attention_have_no_heads() -> None:
    with pytest.raises(ValueError, match="`PlatonovGCN` takes no 'num_heads'"):
        PlatonovGCN(5, 8, 1, 3, num_heads=2)


def test_half_precision_is_close_to_single() -> None:
    torch.manual_seed(0)
    x = randn(4, 5).float()
    for name in ("gcn", "sage", "gat-sep", "gt"):
        model = MODELS[name].settings(hidden_channels=8).build(5, 3, graph_level=False).eval()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            got = model(x, ONE_WAY)
        assert_close(got.float(), model(x, ONE_WAY), rtol=0, atol=0.1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PlatonovGAT(5, 9, 1, 3), "`num_heads` must divide the number of channels, 9"),
        (lambda: PlatonovSAGE(5, 8, 1, 3, norm="?"), "`norm` must be one of 'layer', 'batch'"),
        (lambda: PlatonovSAGE(5, 8, 1, 3, hidden_multiplier=0), "`hidden_multiplier` must"),
    ],
)
def test_bad_arguments_are_named(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_repr_states_the_transformation() -> None:
    assert repr(PlatonovGCN(5, 8, 2, 3)) == "PlatonovGCN(5, 8, num_layers=2, out_channels=3)"
