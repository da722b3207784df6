"""Influence: exact against PyTorch's Jacobian, estimates against their stated errors."""

from __future__ import annotations

import math

import pytest
import torch
from analysis.networks import build, csnn, gcn, ring
from graphs import generator, path, randn
from models.test_all import EACH_MODEL, EDGES, F_IN, N
from torch import Tensor, nn

from coopsheaf import Graph
from coopsheaf.analysis import (
    compare_influence,
    hop_distances,
    influence,
    influence_by_hop,
    layer_features,
)
from coopsheaf.analysis.jacobians import _two_stage
from coopsheaf.zoo.match.network import MatchNetwork, PairEmbedding

EXACT = {"rtol": 1e-12, "atol": 1e-14}


def jacobian_norms(function: object, x: Tensor) -> Tensor:
    """‖∂ out_i / ∂ x_j‖ for all pairs, ``(n, n)``, the plain way."""
    jacobian = torch.autograd.functional.jacobian(function, x)
    return jacobian.transpose(1, 2).flatten(2).norm(dim=2)


@EACH_MODEL
def test_exact_influence_is_the_norm_of_the_jacobian(name: str) -> None:
    model, x = build(name), randn(N, F_IN)
    got = influence(model, x, EDGES)
    torch.testing.assert_close(got.norms, jacobian_norms(lambda z: model(z, EDGES), x), **EXACT)
    assert got.probes is None
    assert not got.squared_error.any()


@pytest.mark.parametrize("at", [0, 1, 2, "embedding"])
def test_after_some_layers(at: int | str) -> None:
    model, x = csnn(), randn(N, F_IN)
    depth = 2 if at == "embedding" else at
    want = jacobian_norms(lambda z: layer_features(model, z, EDGES)[depth].flatten(1), x)
    torch.testing.assert_close(influence(model, x, EDGES, at=at).norms, want, **EXACT)


def test_chosen_pairs_are_those_of_the_whole() -> None:
    model, x = csnn(), randn(N, F_IN)
    whole = influence(model, x, EDGES).squared
    part = influence(model, x, Graph(EDGES, N), targets=[4, 1], sources=torch.tensor([7, 0, 1]))
    assert torch.equal(part.squared, whole[[4, 1]][:, [7, 0, 1]])
    assert influence(model, x, EDGES, targets=3).squared.shape == (1, N)


def test_a_pool_makes_graphs_the_targets() -> None:
    model, x = csnn(pool="mean"), randn(6, F_IN)
    edges = torch.cat([path(3), path(3) + 3], dim=1)
    batch = torch.tensor([0, 0, 0, 1, 1, 1])
    got = influence(model, x, edges, batch=batch, batch_size=2).norms
    assert (got > 0).tolist() == [[True] * 3 + [False] * 3, [False] * 3 + [True] * 3]
    inside = influence_by_hop(model, x, edges, at="embedding", batch=batch, batch_size=2)
    assert len(inside.rms) == 3
    with pytest.raises(ValueError, match="`at` must be 'embedding'"):
        influence_by_hop(model, x, edges, batch=batch, batch_size=2)


def test_by_the_encoder_of_integer_features() -> None:
    torch.manual_seed(0)
    model = MatchNetwork(2, 8, 2, 3, kind="gcn", encoder=PairEmbedding(5, 5, 8)).double()
    x = torch.randint(0, 5, (5, 2), generator=generator(1))
    norms = influence(model, x, path(5), targets=0, wrt="encoder").norms[0]
    assert (norms > 0).tolist() == [True, True, True, False, False]
    with pytest.raises(ValueError, match="`x` must have a floating point dtype"):
        influence(model, x, path(5))
    encoded = model.encoder(x)
    head = nn.Sequential(model.readout)
    want = jacobian_norms(lambda z: head(_embed_from(model, z)), encoded.detach())[0]
    torch.testing.assert_close(norms, want, **EXACT)


def _embed_from(model: MatchNetwork, encoded: Tensor) -> Tensor:
    encoder, model.encoder = model.encoder, nn.Identity()
    try:
        return model.embed(encoded, Graph(path(5)))
    finally:
        model.encoder = encoder


def test_the_model_is_left_as_it_was() -> None:
    model, x = csnn(dropout=0.5), randn(N, F_IN)
    model.train()
    model.convs[0].eval()
    modes = [module.training for module in model.modules()]
    first, second = influence(model, x, EDGES), influence(model, x, EDGES)
    assert torch.equal(first.squared, second.squared)  # no dropout
    assert [module.training for module in model.modules()] == modes
    assert all(parameter.grad is None for parameter in model.parameters())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_single_precision_sees_influence_whose_square_it_has_not() -> None:
    model, x = gcn(3, "identity").float(), randn(N, 5).float()
    with torch.no_grad():
        model.layers[0].lin.weight *= 1e-30
    norms = influence(model, x, EDGES).norms
    assert 0 < norms.max() < 1e-25


# Estimates.

GRAPH = Graph(ring(12))
X = randn(12, F_IN, seed=5)


def test_estimates_are_unbiased_and_say_how_sure_they_are() -> None:
    """Over 60 seeds: the mean hits the truth, the error is the scatter, intervals cover."""
    model = gcn(3, out_channels=12)
    exact = influence(model, X, GRAPH, targets=[0]).squared[0]
    runs = [influence(model, X, GRAPH, targets=[0], probes=6, seed=seed) for seed in range(60)]
    assert runs[0].probes == 6
    squared = torch.stack([run.squared[0] for run in runs])
    seen = exact > 0
    assert (squared[:, ~seen] == 0).all()  # zero is known exactly
    deviation = (squared.mean(0) - exact) / (squared.std(0) / math.sqrt(60))
    assert deviation[seen].abs().max() < 3.5
    stated = torch.stack([run.squared_error[0] for run in runs]).square().mean(0).sqrt()
    assert ((stated / squared.std(0))[seen] - 1).abs().max() < 0.35
    bounds = [run.interval() for run in runs]
    covered = torch.stack([(low[0] <= exact) & (exact <= high[0]) for low, high in bounds])
    assert 0.8 < covered[:, seen].double().mean() <= 1.0
    narrow = torch.stack(
        [(run.squared[0] - exact).abs() <= 0.2 * run.squared_error[0] for run in runs]
    )
    assert narrow[:, seen].double().mean() < 0.4  # the errors are not just large


def test_enough_probes_are_exact() -> None:
    model = csnn()
    got = influence(model, X, GRAPH, targets=[2], probes=3)
    assert got.probes is None
    assert torch.equal(got.squared, influence(model, X, GRAPH, targets=[2]).squared)


def test_the_same_seed_gives_the_same() -> None:
    model, options = csnn(), {"at": "embedding", "probes": 2, "targets": 1}
    first = influence(model, X, GRAPH, seed=3, **options).squared
    assert torch.equal(first, influence(model, X, GRAPH, seed=3, **options).squared)
    assert not torch.equal(first, influence(model, X, GRAPH, seed=4, **options).squared)


def irregular(n: int, *, apart: int = 0) -> Graph:
    """A ring of n nodes with a few chords, a loop and a parallel edge; some nodes apart."""
    chords = torch.tensor([[0, 5, 2], [7, 5, 3]])
    edges = torch.cat([ring(n), chords, chords.flip(0)], dim=1)
    return Graph(edges, n + apart)


def plain_profile(squared: Tensor, distances: Tensor) -> tuple[list[float], float]:
    """Averages by hop and the range, pair by pair."""
    means, top, bottom = [], 0.0, 0.0
    for hop in range(int(distances.max()) + 1):
        per_target = []
        for row, distance in zip(squared, distances, strict=True):
            values = row[distance == hop]
            top, bottom = top + hop * float(values.sum()), bottom + float(values.sum())
            if len(values):
                per_target.append(float(values.mean()))
        means.append(sum(per_target) / len(per_target))
    return means, top / bottom


def test_exact_profile_is_the_plain_average() -> None:
    graph, model = irregular(13, apart=1), csnn()
    x = randn(14, F_IN, seed=2)
    profile = influence_by_hop(model, x, graph)
    means, reach = plain_profile(influence(model, x, graph).squared, hop_distances(graph))
    torch.testing.assert_close(
        profile.mean_squared, torch.tensor(means, dtype=torch.float64), rtol=1e-10, atol=0
    )
    assert profile.effective_range == pytest.approx(reach, rel=1e-12)
    assert not profile.error.any()
    assert profile.range_error == 0
    assert (profile.num_targets, profile.population) == (14, 14)
    total = float(influence(model, x, graph).squared.sum()) / 14
    assert float(profile.total.sum()) == pytest.approx(total, rel=1e-12)
    assert profile.beyond == 0


def test_estimated_profiles_cover_the_exact_one() -> None:
    """Targets drawn and probes drawn, over 60 seeds: no bias, and errors as stated."""
    graph, model, x = irregular(14), gcn(3, out_channels=12), randn(14, F_IN, seed=2)
    exact = influence_by_hop(model, x, graph)
    runs = [
        influence_by_hop(model, x, graph, num_targets=8, probes=2, seed=seed) for seed in range(60)
    ]
    hops = slice(0, 4)  # a distance that some draws do not have is not compared
    means = torch.stack([run.mean_squared[hops] for run in runs])
    deviation = (means.mean(0) - exact.mean_squared[hops]) / (means.std(0) / math.sqrt(60))
    assert deviation.abs().max() < 3.5
    stated = torch.stack([run.error[hops] for run in runs]).square().mean(0).sqrt()
    assert ((stated / means.std(0)) - 1).abs().max() < 0.35
    ranges = torch.tensor([run.effective_range for run in runs])
    errors = torch.tensor([run.range_error for run in runs])
    assert abs(float(ranges.mean()) - exact.effective_range) < 0.5 * float(ranges.std())
    covered = ((ranges - exact.effective_range).abs() < 1.96 * errors).double().mean()
    assert 0.8 < covered <= 1.0
    assert (errors.mean() / ranges.std() - 1).abs() < 0.35


@pytest.mark.parametrize("fraction", [0.25, 0.75, 1.0])
def test_the_error_of_two_stages_is_the_scatter(fraction: float) -> None:
    """Drawing m of 20 targets and 3 noisy values each: the stated variance is the true one."""
    random, truth = generator(0), randn(20, seed=1)
    noise = 0.5 + torch.rand(20, generator=random, dtype=torch.float64)
    m = int(20 * fraction)
    means, stated = [], []
    for _ in range(3000):
        drawn = torch.randperm(20, generator=random)[:m]
        values = truth[drawn, None] + noise[drawn, None] * torch.randn(
            m, 3, generator=random, dtype=torch.float64
        )
        means.append(values.mean())
        stated.append(_two_stage(values.mean(1), values.var(1) / 3, fraction).square())
    scatter, claimed = torch.stack(means).var(), torch.stack(stated).mean()
    assert float(claimed / scatter) == pytest.approx(1, abs=0.08)


def test_one_target_of_many_says_nothing_of_the_rest() -> None:
    """A distance that one drawn target alone has gets no finite error."""
    edges = torch.cat([path(6), torch.tensor([[0], [0]])], dim=1)
    runs = [influence_by_hop(gcn(2), randn(6, 5), edges, num_targets=2, seed=k) for k in range(9)]
    assert any(run.error.isinf().any() for run in runs)
    assert not any(run.error.isnan().any() for run in runs)


def test_influence_without_a_path_is_kept_apart() -> None:
    """The norm over all nodes of one map learner joins what no edge joins."""
    edges, x = torch.cat([path(3), path(3) + 3], dim=1), randn(6, F_IN)
    near = influence_by_hop(csnn(learner="sage-node-norm"), x, edges)
    far = influence_by_hop(csnn(learner="sage-graph-norm"), x, edges)
    assert near.beyond == 0
    assert far.beyond > 0
    cut = influence_by_hop(csnn(), x, edges, max_hops=1)
    assert len(cut.rms) == 2
    assert cut.beyond > 0


def test_distances_follow_the_flow() -> None:
    """Released semantics gathers against the edges: distances are counted that way too."""
    one_way, x = torch.tensor([[0, 1, 2], [1, 2, 3]]), randn(4, F_IN)
    model = csnn(semantics="released")
    against = influence_by_hop(model, x, one_way, flow="target_to_source")
    assert against.beyond == 0
    assert against.effective_range > 0
    assert influence_by_hop(model, x, one_way).beyond > 0


def test_a_mean_of_neighbours_knows_its_range() -> None:
    """One linear layer with the constant weight on a ring: ⅓ of x_i and of both neighbours."""
    model = gcn(1, "identity")
    with torch.no_grad():
        model.layers[0].lin.weight.copy_(torch.eye(3, 5))
    profile = influence_by_hop(model, randn(8, 5), ring(8))
    torch.testing.assert_close(
        profile.rms[:2], torch.full((2,), 3**-0.5, dtype=torch.float64), **EXACT
    )
    assert not profile.rms[2:].any()
    assert profile.effective_range == pytest.approx(2 / 3)


def test_no_influence_has_no_range() -> None:
    model = gcn(1, "identity")
    with torch.no_grad():
        model.layers[0].lin.weight.zero_()
    assert math.isnan(influence_by_hop(model, randn(4, 5), ring(4)).effective_range)


def test_comparison_is_a_table() -> None:
    models = {"mlp": build("mlp"), "gcn-plain": build("gcn-plain"), "csnn": build("csnn")}
    table = compare_influence(models, randn(9, F_IN), path(9))
    assert table.header[:3] == ["model", "range", "hop 0"]
    assert [row[0] for row in table.rows] == list(models)
    assert all(len(row) == len(table.header) for row in table.rows)
    assert table.rows[0][1] == "0.00"
    assert table.rows[0][3] == "0"
    lines = str(table).splitlines()
    assert len(lines) == 4
    assert lines[1].startswith("mlp ")
    drawn = compare_influence(models, randn(9, F_IN), path(9), num_targets=4)
    assert "±" in str(drawn)


MODEL = csnn()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: influence(MODEL, X, GRAPH, targets=12), r"`targets` must hold indices.*got 12"),
        (lambda: influence(MODEL, X, GRAPH, sources=[-1]), "`sources` must hold indices"),
        (lambda: influence(MODEL, X, GRAPH, at="top"), r"`at` must be 'output'.*'top'"),
        (lambda: influence(MODEL, X, GRAPH, at=3), r"`at` must be .* from 0 to 2; got 3"),
        (lambda: influence(MODEL, X, GRAPH, at=True), "`at` must be"),
        (lambda: influence(MODEL, X, GRAPH, wrt="w"), "`wrt` must be one of 'input', 'encoder'"),
        (lambda: influence(gcn(1), X, GRAPH, wrt="encoder"), "`wrt` must be 'input' for a model"),
        (lambda: influence(MODEL, X, GRAPH, probes=1), "`probes` must be an integer of at least 2"),
        (lambda: influence(MODEL, X[:4], GRAPH), "expected 4 nodes"),
        (lambda: influence(MODEL, X[:, :2], GRAPH), r"`x` must have shape \(n, 5\)"),
        (lambda: influence(nn.Linear(5, 2), X, GRAPH, at=1), "`model` must be a coopsheaf Network"),
        (lambda: influence_by_hop(MODEL, X, GRAPH, num_targets=1), "`num_targets` must be an integer"),
        (lambda: compare_influence({}, X, GRAPH), "`models` must hold at least one"),
    ],
)  # fmt: skip
def test_bad_input_is_named(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
