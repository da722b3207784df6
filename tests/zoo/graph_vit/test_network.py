"""Graph-ViT and its mixer against sums written out, patch by patch and copy by copy."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from graphs import generator, path, randn
from torch import Tensor, nn
from torch.testing import assert_close
from zoo.graph_vit.test_patches import grid
from zoo.norms import normed, shake_norms

from coopsheaf import Graph
from coopsheaf.zoo.graph_vit import GraphMixer, GraphViT, HadamardBlock, MixerBlock, make_patches
from coopsheaf.zoo.graph_vit.layers import returning_walks

N, EDGES = grid(4, 3)
M = EDGES.shape[1]
BOTH = pytest.mark.parametrize("kind", [GraphViT, GraphMixer])


def build(kind: Any, num_layers: int = 2, **options: Any) -> Any:
    torch.manual_seed(0)
    heads = {"num_heads": 2} if kind is GraphViT else {}
    options = {"num_patches": 4, "patch_steps": 3, "edge_channels": 3} | heads | options
    model = shake_norms(kind(5, 8, num_layers, 3, **options).double().eval())
    for conv in model.inside:
        nn.init.normal_(conv.epsilon)
    return model


def linear(part: nn.Linear, x: Tensor) -> Tensor:
    y = x @ part.weight.T
    return y if part.bias is None else y + part.bias


def slow_normed(part: Any, x: Tensor) -> Tensor:
    return normed(part.norm, linear(part.lin, x)).relu()


def slow_inside(model: Any, x: Tensor, edges: Tensor, attr: Tensor) -> dict[int, dict[int, Tensor]]:
    """Features of every copy: by patch, by node."""
    found = make_patches(Graph(edges, x.shape[0]), num_patches=model.num_patches)
    h, e = linear(model.encoder, x), linear(model.edge_encoder.features, attr)
    copies: dict[int, dict[int, Tensor]] = {}
    for node, patch in zip(found.node.tolist(), found.patch.tolist(), strict=True):
        copies.setdefault(patch, {})[node] = h[node]
    for conv in model.inside:
        if conv.update is not None:
            for nodes in copies.values():
                mean = torch.stack(list(nodes.values())).mean(0, keepdim=True)
                known = slow_normed(conv.update, mean)[0]
                for node in nodes:
                    nodes[node] = nodes[node] + known
            for node in range(x.shape[0]):
                own = [nodes[node] for nodes in copies.values() if node in nodes]
                for nodes in copies.values():
                    if node in nodes:
                        nodes[node] = torch.stack(own).mean(0)
        for patch, nodes in copies.items():
            new = {}
            for i in nodes:
                z = (1 + conv.epsilon) * nodes[i]
                for m, (j, t) in enumerate(edges.T.tolist()):
                    if t == i and j in nodes:
                        z = z + (nodes[j] + e[m]).relu()
                y = normed(conv.norm, linear(conv.lin, slow_normed(conv.inner, z.view(1, -1))))
                new[i] = linear(conv.out, nodes[i] + y[0].relu())
            copies[patch] = new
    return copies


def slow_block(block: Any, z: Tensor, overlap: Tensor, filled: Tensor) -> Tensor:
    """One graph: ``(P, channels)``."""

    def layer_norm(norm: nn.LayerNorm, x: Tensor) -> Tensor:
        gap = x - x.mean(-1, keepdim=True)
        return (
            gap / (gap.square().mean(-1, keepdim=True) + norm.eps).sqrt() * norm.weight + norm.bias
        )

    def mlp(part: Any, x: Tensor) -> Tensor:
        return linear(part.lin_out, nn.functional.gelu(linear(part.lin_in, x)))

    y = layer_norm(block.norm, z)
    if isinstance(block, MixerBlock):
        z = z + torch.stack([mlp(block.across, y[:, c]) for c in range(8)], dim=1)
        return z + mlp(block.along, layer_norm(block.last_norm, z))
    q, k, v = (linear(part, y) for part in (block.query, block.key, block.value))
    heads = []
    for h in range(2):
        part, rows = slice(4 * h, 4 * h + 4), []
        for p in range(len(z)):
            there = [r for r in range(len(z)) if filled[r]]
            scores = torch.stack([(q[p, part] * k[r, part]).sum() / 2 for r in there]).exp()
            weights = scores / scores.sum()
            rows.append(
                sum(w * overlap[p, r] * v[r, part] for w, r in zip(weights, there, strict=True))
            )
        heads.append(torch.stack(rows))
    z = z + linear(block.out, torch.cat(heads, 1))
    inner = linear(block.lin_in, layer_norm(block.last_norm, z)).relu()
    return z + linear(block.lin_out, inner)


def slow(model: Any, x: Tensor, edges: Tensor, attr: Tensor) -> tuple[Tensor, Tensor]:
    """What the readout sees of the nodes, and of the graph."""
    found = make_patches(Graph(edges, x.shape[0]), num_patches=model.num_patches)
    overlap, filled = found.overlap[0].double(), found.filled[0]
    copies = slow_inside(model, x, edges, attr)
    z = torch.zeros(model.num_patches, 8).double()
    walk = overlap / overlap.sum(1, keepdim=True).clamp(min=1)
    for patch, nodes in copies.items():
        steps = torch.stack([torch.linalg.matrix_power(walk, t)[patch, patch] for t in (1, 2, 3)])
        z[patch] = torch.stack(list(nodes.values())).mean(0)
        z[patch] += slow_normed(model.patch_places, steps.view(1, -1))[0]
    for block in model.between:
        z = slow_block(block, z, overlap, filled)
    z = model.last_norm(z)
    rows = []
    for node in range(x.shape[0]):
        own = [torch.cat([n[node], z[p]]) for p, n in copies.items() if node in n]
        rows.append(torch.stack(own).mean(0))
    return torch.stack(rows), z[filled].mean(0)


@BOTH
@pytest.mark.parametrize("num_patches", [4, 16])  # the second has empty ones
def test_the_network_is_that_of_the_equations(kind: Any, num_patches: int) -> None:
    x, attr = randn(N, 5), randn(M, 3, seed=1)
    nodes = build(kind, num_patches=num_patches)
    whole = build(kind, num_patches=num_patches, pool="mean")
    assert nodes.embedding_channels == 16
    assert whole.embedding_channels == 8
    want, _ = slow(nodes, x, EDGES, attr)
    got = nodes.embed(x, Graph(EDGES, N), edge_attr=attr)
    assert_close(got, want, rtol=0, atol=1e-11)
    _, want = slow(whole, x, EDGES, attr)
    head, last = whole.readout
    want = linear(last, slow_normed(head, want.view(1, -1)))
    assert_close(whole(x, EDGES, edge_attr=attr), want, rtol=0, atol=1e-11)


def test_hadamard_attention_with_ones_is_plain_attention() -> None:
    torch.manual_seed(0)
    block = HadamardBlock(8, num_heads=2).double()
    plain = nn.MultiheadAttention(8, 2, batch_first=True).double()
    with torch.no_grad():
        plain.in_proj_weight.copy_(torch.cat([block.query.weight, block.key.weight, block.value.weight]))  # fmt: skip
        plain.in_proj_bias.copy_(torch.cat([block.query.bias, block.key.bias, block.value.bias]))
        plain.out_proj.weight.copy_(block.out.weight)
        plain.out_proj.bias.copy_(block.out.bias)
    x, filled = randn(3, 5, 8), torch.ones(3, 5).bool()
    filled[1, :2] = False
    want, _ = plain(x, x, x, key_padding_mask=~filled)
    got = block.attend(x, torch.ones(3, 5, 5), filled)
    assert_close(got, want, rtol=0, atol=1e-12)
    # The overlap is a factor: the weights are not divided by their sum again.
    bias = block.out.bias
    twice = block.attend(x, torch.full((3, 5, 5), 2.0), filled)
    assert_close(twice - bias, 2 * (want - bias), rtol=0, atol=1e-12)


def test_walks_between_patches_return_as_powers_say() -> None:
    member = torch.rand(2, 6, 20, generator=generator(0)).double() > 0.6
    member[1, 2] = False  # an empty patch
    overlap = member.double() @ member.double().mT
    got = returning_walks(overlap, 4)
    assert got.shape == (2, 6, 4)
    for g in range(2):
        walk = overlap[g] / overlap[g].sum(1, keepdim=True).clamp(min=1)
        for t in range(4):
            want = torch.linalg.matrix_power(walk, t + 1).diagonal()
            assert_close(got[g, :, t], want, rtol=0, atol=1e-12)
    assert (got[1, 2] == 0).all()


@BOTH
def test_a_batch_is_its_graphs_one_by_one(kind: Any) -> None:
    """Also the patches that some of them leave empty, and however many others there are."""
    model = build(kind, pool="mean", num_patches=8)
    parts = [(n, e, randn(n, 5, seed=n), randn(e.shape[1], 3, seed=n)) for n, e in ((N, EDGES), (3, path(3)), (20, path(20)))]  # fmt: skip
    alone = torch.cat([model(x, e, edge_attr=a) for _, e, x, a in parts])
    first = [0, N, N + 3]
    together = model(
        torch.cat([x for _, _, x, _ in parts]),
        torch.cat([e + k for k, (_, e, _, _) in zip(first, parts, strict=True)], 1),
        edge_attr=torch.cat([a for *_, a in parts]),
        batch=torch.tensor([0] * N + [1] * 3 + [2] * 20),
        batch_size=4,
    )
    assert together.shape == (4, 3)
    assert_close(together[:3], alone, rtol=0, atol=1e-11)


@BOTH
def test_evaluation_is_the_same_every_time_and_training_is_not(kind: Any) -> None:
    n, edges = grid(6, 6)
    model = build(kind, pool="mean", edge_channels=0)
    x = randn(n, 5)
    torch.manual_seed(1)
    want = model(x, edges)
    torch.manual_seed(2)
    assert torch.equal(model(x, edges), want)
    graph = Graph(edges, n)
    assert torch.equal(model(x, graph), want)
    assert model.find_patches(graph, None) is model.find_patches(graph, None)
    model.train()
    drawn = [model.find_patches(graph, None) for _ in range(5)]
    assert len({tuple(found.patch.tolist()) for found in drawn}) > 1
    model.eval()
    assert torch.equal(model(x, graph), want)


def test_small_graphs_may_be_renamed_where_patches_attend() -> None:
    """A part per node does not depend on METIS; the mixer knows the numbers of patches."""
    model, x = build(GraphViT, num_patches=20, pool="mean", edge_channels=0), randn(N, 5)
    names = torch.randperm(N, generator=generator(0))
    got, want = model(x[names.argsort()], names[EDGES]), model(x, EDGES)
    assert_close(got, want, rtol=0, atol=1e-11)
    mixer = build(GraphMixer, num_patches=20, pool="mean", edge_channels=0)
    assert not torch.allclose(mixer(x[names.argsort()], names[EDGES]), mixer(x, EDGES))


@BOTH
def test_steps_of_walks_are_added_to_the_features(kind: Any) -> None:
    options: dict[str, Any] = {"pe_kind": "rwse", "pe_channels": 6, "pe_steps": 4, "pool": "mean"}
    model = build(kind, **options, edge_channels=0)
    x, pe = randn(N, 5), torch.rand(N, 6, generator=generator(0)).double()
    out = model(x, EDGES, pe=pe)
    other = torch.cat([pe[:, :4], 1 - pe[:, 4:]], 1)
    assert torch.equal(model(x, EDGES, pe=other), out)
    assert not torch.allclose(model(x, EDGES, pe=1 - pe), out)
    added = slow_normed(model.places, pe[:, :4])
    with torch.no_grad():
        model.places.norm.weight.zero_()
        model.places.norm.bias.zero_()
    assert not torch.allclose(model(x, EDGES, pe=pe), out)
    assert added.shape == (N, 8)
    with pytest.raises(ValueError, match=r"`pe` must have shape \(n, 6\)"):
        model(x, EDGES)


@BOTH
@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"pool": "sum"}, "`pool` must be 'mean', the mean over patches, or None; got 'sum'"),
        ({"pe_kind": "lappe", "pe_channels": 4}, "`pe_kind` must be one of 'none', 'rwse'"),
        ({"num_patches": 0}, "`num_patches` must be an integer of at least 1"),
        ({"drop": 1.0}, "`drop` must be a number in"),
        ({"mixer_dropout": -1.0}, "`mixer_dropout` must be a number in"),
    ],
)
def test_what_it_cannot_do_is_said(kind: Any, options: dict[str, Any], rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        build(kind, **options)


@BOTH
def test_batch_norm_does_not_see_empty_patches(kind: Any) -> None:
    """Statistics of a batch are those of the patches that are there."""
    seen: list[Tensor] = []
    model = build(kind, num_patches=20, pool="mean", edge_channels=0).train()
    model.patch_places.register_forward_pre_hook(lambda module, args: seen.append(args[0]))
    batch = torch.tensor([0] * N + [1] * 3)
    model(randn(N + 3, 5), torch.cat([EDGES, path(3) + N], 1), batch=batch)
    assert seen[0].shape == (N + 3, 3)  # a patch per node
    assert (seen[0].sum(1) > 0).all()
