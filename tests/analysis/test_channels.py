"""Closed channels: counted right, and closed to the last bit when asked."""

from __future__ import annotations

import pytest
import torch
from analysis.cooperation import fixed, maps_of, scaled
from analysis.networks import csnn, ring
from analysis.test_actions import EACH_SEMANTICS, EDGES, N, features
from analysis.test_strengths import scales
from graphs import path
from models.test_all import build
from torch.testing import assert_close

from coopsheaf.analysis import closed_channels, flow_edges, read_actions, silenced


@EACH_SEMANTICS
def test_on_a_path_by_hand(semantics: str) -> None:
    report = read_actions(
        scaled([1, 0, 1, 0], [1, 1, 0, 0], semantics=semantics), features(4), path(4)
    )
    (layer,) = closed_channels(report, path(4))
    # 0 and 2 speak, 0 and 1 listen: 0 -> 1 and 2 -> 1 are open.
    assert (layer.channels, layer.deaf, layer.mute) == (6, 0.5, 0.5)
    assert layer.closed == pytest.approx(4 / 6)
    assert layer.carry == 0
    # From a node that is deaf to one that is mute the released code carries nothing either way.
    assert layer.shut == pytest.approx((5 if semantics == "released" else 4) / 6)
    # Between nodes of one strength an edge carries one over the root of its ends' degrees.
    plain = {(0, 1): 2**-0.5, (1, 2): 0.5, (2, 3): 2**-0.5}
    total = 2 * sum(plain.values())
    assert layer.would_carry == pytest.approx(1 - (plain[0, 1] + plain[1, 2]) / total)


def test_shares_are_those_of_the_report() -> None:
    source, target = scales(8, N)
    loops = torch.cat([EDGES, torch.arange(3).repeat(2, 1)], dim=1)
    report = read_actions(scaled(source, target), features(N), loops)
    (layer,) = closed_channels(report, loops)
    found = report.layers[0]
    assert layer.channels == EDGES.shape[1]
    closed = [
        int(found.action[i]) in (2, 3) or int(found.action[j]) in (1, 3)
        for j, i in EDGES.T.tolist()
    ]
    assert 0 < sum(closed) < len(closed)
    assert layer.closed == pytest.approx(sum(closed) / len(closed))
    flow, would = found.flow[: len(closed)], found.typical_flow[: len(closed)]
    mask = torch.tensor(closed)
    assert layer.carry == pytest.approx(float(flow[mask].sum() / flow.sum()))
    assert layer.would_carry == pytest.approx(float(would[mask].sum() / would.sum()))
    assert layer.shut == pytest.approx(float((flow < would / 100).double().mean()))
    assert layer.deaf == pytest.approx(float((found.action >= 2).double().mean()))
    assert layer.mute == pytest.approx(float((found.action % 2 == 1).double().mean()))


def test_without_edges_nothing_is_closed() -> None:
    empty = torch.empty(2, 0, dtype=torch.int64)
    for layer in closed_channels(read_actions(csnn(), features(3), empty), empty):
        assert (layer.channels, layer.closed, layer.would_carry, layer.carry) == (0, 0, 0, 0)


@EACH_SEMANTICS
def test_silenced_maps_are_exactly_zero(semantics: str) -> None:
    layers = []
    for k in range(2):
        source, target = scales(20 + k, N)
        layers.append((maps_of(source), maps_of(target, seed=1)))
    model = fixed(layers, semantics=semantics)
    x = features(N)
    report = read_actions(model, x, EDGES)
    before = model(x, EDGES)
    with silenced(model, report):
        inside = read_actions(model, x, EDGES, threshold=1e-12)
        changed = model(x, EDGES)
    for now, was in zip(inside.layers, report.layers, strict=True):
        assert torch.equal(now.action, was.action)  # what was called silent is, exactly
        assert (now.listening[was.action >= 2] == 0).all()
        start, end = flow_edges(report, EDGES)
        closed = (was.action[end] >= 2) | (was.action[start] % 2 == 1)
        assert torch.equal(now.flow == 0, closed)
        kept = ~closed
        assert_close(now.flow[kept] > 0, torch.ones(int(kept.sum()), dtype=torch.bool))
    assert (changed - before).abs().max() > 1e-6
    assert torch.equal(model(x, EDGES), before)  # and afterwards all is as it was


def test_bad_input_is_named() -> None:
    report = read_actions(csnn(), features(N), EDGES)
    with pytest.raises(
        ValueError, match="`edge_index` must hold the 26 edges of the report; got 6"
    ):
        closed_channels(report, ring(3))
    drawn = read_actions(build("cognn"), features(N), EDGES, draws=2)
    with pytest.raises(ValueError, match="`report` must be of a CSNN"):
        closed_channels(drawn, EDGES)
    with (
        pytest.raises(ValueError, match="with as many layers"),
        silenced(csnn(num_layers=3), report),
    ):
        pass
