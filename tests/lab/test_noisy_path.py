"""The noisy path: data, significances and arrows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.testing import assert_close

from coopsheaf.analysis import frozen_maps
from coopsheaf.nn import record_maps
from coopsheaf.nn.csnn_conv import LayerMaps
from coopsheaf.sheaves.maps import ConformalMaps
from lab.noisy_path import (
    PathConfig,
    append_path_result,
    arrows,
    build_path_network,
    draw_paths,
    layer_significance,
    output_significance,
    path_graph,
    path_table,
    read_path_results,
    run_path,
    significance,
    swap_effects,
)

TINY = PathConfig(hidden_channels=3, steps=4, batch_size=8, examples=5)


def test_source_and_target_share_a_key_that_no_other_node_has() -> None:
    generator = torch.Generator().manual_seed(0)
    keys, values, x = draw_paths(500, TINY, generator)
    assert (keys[:, 0] == keys[:, 3]).all()
    assert (keys[:, 1:3] != keys[:, :1]).all()
    assert set(keys.unique().tolist()) == set(range(4))
    assert set(values.unique().tolist()) == set(range(8))
    assert (x.view(500, 4, 12)[..., :4].argmax(-1) == keys).all()
    assert (x.view(500, 4, 12)[..., 4:].argmax(-1) == values).all()
    graph = path_graph(2)
    pairs = {(0, 1), (1, 2), (2, 3)}
    both = pairs | {(b, a) for a, b in pairs}
    want = both | {(a + 4, b + 4) for a, b in both}
    assert set(map(tuple, graph.edge_index.T.tolist())) == want
    assert graph.num_edges == len(want)


@pytest.mark.parametrize("semantics", ["paper", "released"])
@pytest.mark.parametrize("learner", ["sage", "mlp"])
def test_significance_is_the_norm_of_the_jacobian_with_maps_held_still(
    semantics: str, learner: str
) -> None:
    config = replace(TINY, semantics=semantics, learner=learner)
    torch.manual_seed(0)
    model = build_path_network(config)
    with torch.no_grad():
        for epsilon in model.epsilons:
            epsilon.uniform_(-1, 1)
    graph = path_graph(2)
    _, _, x = draw_paths(2, config, torch.Generator().manual_seed(1))
    with torch.no_grad(), record_maps(model) as maps:
        model(x, graph)
    encoded, captured = model.encoder(x).detach(), []

    def swap(module: Any, inputs: Any, output: Any) -> Any:
        return captured[0]

    handle = model.encoder.register_forward_hook(swap)

    def run(z: torch.Tensor) -> torch.Tensor:
        captured[:] = [z]
        return model.embed(x, graph)

    with frozen_maps(model):
        jacobian = torch.autograd.functional.jacobian(run, encoded)  # (8, w, 8, w)
    handle.remove()
    for path in range(2):
        block = jacobian[4 * path :, :, 4 * path :][:4, :, :4].permute(0, 2, 1, 3)
        found = significance(model, graph, maps)[-1, path]
        assert_close(found, torch.linalg.matrix_norm(block, ord=2), rtol=1e-4, atol=1e-5)
    out = model.readout[-1].weight @ block[0] @ model.encoder.weight[:, 4:]  # (4, V, V)
    out = out - out.mean(1, keepdim=True)
    out = out - out.mean(2, keepdim=True)
    want = torch.linalg.matrix_norm(out, ord=2)
    assert_close(output_significance(model, graph, maps, 4)[1], want, rtol=1e-3, atol=1e-5)
    dense = model.convs[0].diffusion(graph, *maps[0], None).to_dense()
    blocks = dense[:8, :8].view(4, 2, 4, 2).transpose(1, 2)
    found = layer_significance(model, graph, maps)[0, 0]
    assert_close(found, torch.linalg.matrix_norm(blocks, ord=2), rtol=1e-4, atol=1e-5)


def test_swapping_a_value_shows_what_it_does_maps_included() -> None:
    torch.manual_seed(0)
    model = build_path_network(TINY)
    keys, values, x = draw_paths(2, TINY, torch.Generator().manual_seed(1))
    with torch.no_grad():
        want = []
        for j in range(4):
            moves = []
            for value in range(8):
                if value == values[1, j]:
                    continue
                other = x.clone().view(2, 4, 12)
                other[1, j, 4:] = 0
                other[1, j, 4 + value] = 1
                pair = [model(z.view(8, 12), path_graph(2))[4] for z in (other, x)]
                moves.append((pair[0] - pair[1]).var(correction=0) * 8)
            want.append(torch.stack(moves).mean().sqrt())
    assert_close(swap_effects(model, keys, values, TINY)[1], torch.stack(want), rtol=1e-4, atol=0)


def maps(source: list[float], target: list[float]) -> LayerMaps:
    eye = torch.eye(2).expand(4, 2, 2)
    return LayerMaps(
        ConformalMaps(torch.tensor(source), eye), ConformalMaps(torch.tensor(target), eye)
    )


def test_arrows_are_drawn_where_somebody_speaks_and_somebody_listens() -> None:
    every = {(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)}
    assert arrows(maps([1.0] * 4, [1.0] * 4)) == every
    assert arrows(maps([0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 1.0, 0.0])) == {(3, 2)}
    assert arrows(maps([1.0] * 4, [0.0] * 4)) == set()
    assert arrows(maps([0.0] * 4, [1.0] * 4)) == set()


def test_a_run_is_measured_and_goes_round(tmp_path: Path) -> None:
    seen: list[int] = []
    result = run_path(TINY, 3, report=lambda step, loss: seen.append(step))
    assert result is not None
    assert seen == [1, 2, 3, 4]
    assert torch.tensor(result.significance).shape == (3, 4, 4)
    assert torch.tensor(result.source_scale).shape == (3, 4)
    assert len(result.arrows) == 3
    append_path_result(tmp_path, result, {"commit": "x"})
    assert read_path_results(tmp_path) == [result]
    assert run_path(TINY, 3) == result
    assert run_path(TINY, 3, should_stop=lambda: True) is None
    others = [
        replace(result, seed=seed, swap_ratio=ratio) for seed, ratio in ((1, 10.0), (2, 30.0))
    ]
    again = replace(result, swap_ratio=2.0)
    row = path_table([result, *others, again]).splitlines()[2].split(" | ")
    assert row[:4] == ["| sage", "paper", "4", "3"]
    assert row[-2:] == ["2.0 – 10.0 – 30.0", "2 of 3 |"]
    assert "Nothing has been recorded" in path_table([])


def test_the_task_is_learned() -> None:
    result = run_path(PathConfig(steps=150, hidden_channels=4, batch_size=32), 0)
    assert result is not None
    assert result.accuracy > 0.35  # chance is 1/8


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"num_keys": 1}, "num_keys"),
        ({"steps": 0}, "steps"),
        ({"learner": "gat"}, "learner"),
        ({"semantics": "?"}, "semantics"),
    ],
)
def test_bad_settings_are_named(changes: Any, name: str) -> None:
    with pytest.raises(ValueError, match=f"`{name}`"):
        PathConfig(**changes)
