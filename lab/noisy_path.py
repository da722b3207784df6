r"""The noisy path: four nodes in a row, of which the first shall learn what the last one knows.

Path 0 – 1 – 2 – 3, every edge both ways. Each node carries a key (its number of "blue" neighbours)
and a random value, one-hot side by side. Source 3 and target 0 have the same key, 1 and 2 have
others; node 0 is to predict the value of node 3. The values of 0, 1 and 2 are noise.

The network is a CSNN of three layers without activation, norm and dropout. With its maps held still
it is linear, :math:`x_i^{(t)} = \sum_j M_{ij}^{(t)} x_j^{(0)}`, and the **significance** of node j
for node i after t layers is the spectral norm of the (d·h)×(d·h) block :math:`M_{ij}^{(t)}`, the
product of the layers with the maps of that example. In one layer, as the paper measures it, it is
the spectral norm of the d×d block of :math:`(\Delta^{in})^\top \Delta^{out}` that multiplies
:math:`x_j`.

A block of M also holds what the readout never looks at. So beside it stands the significance *at
the output*: the spectral norm of readout · :math:`M_{0j}` · encoder of the values.

Both hold the maps still. In a network they are learned from features, values included, and may undo
or do what the diffusion does alone. What a value really does to a prediction is found by *swapping*
it: how far the logits of node 0 move when node j has another value and everything is computed anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from coopsheaf.checks import check_choice, check_int
from coopsheaf.files import append_line, finite
from coopsheaf.models.csnn import CSNN
from coopsheaf.nn.csnn_conv import CSNNConv, LayerMaps, record_maps
from coopsheaf.nn.learners import LearnerRecipe, MLPLearner
from coopsheaf.report.text import markdown_table
from coopsheaf.sheaves.diffusion import SEMANTICS
from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.laplacian import flat_in_laplacian, flat_out_laplacian
from coopsheaf.sheaves.maps import ConformalMaps
from lab.squash.networks import PlainSAGELearner

LENGTH = 4
TARGET, SOURCE = 0, LENGTH - 1
FILE = "noisy-path.jsonl"
PATH_PLACE = "noisy-path"  # of the table in a document
ENOUGH = 10.0  # how far node 3 should outweigh the others


@dataclass(frozen=True)
class PathConfig:
    """Settings of the experiment. The paper gives none but three layers; these are our own.

    Args:
        num_keys, num_values: how many keys and values there are.
        hidden_channels, stalk_dim: sizes of the CSNN.
        learner: ``"sage"`` (three layers, sees the whole path) or ``"mlp"``.
        semantics: ``"paper"``, ``"released"`` or ``"messages"``.
        steps, batch_size, lr: of Adam.
        examples: on how many fresh examples the result is measured.
    """

    num_keys: int = 4
    num_values: int = 8
    hidden_channels: int = 8
    stalk_dim: int = 2
    num_layers: int = 3
    learner: str = "sage"
    semantics: str = "paper"
    steps: int = 1500
    batch_size: int = 64
    lr: float = 5e-3
    examples: int = 64

    def __post_init__(self) -> None:
        check_int("num_keys", self.num_keys, minimum=2)
        check_int("num_values", self.num_values, minimum=2)
        for name in ("hidden_channels", "stalk_dim", "num_layers", "steps", "batch_size"):
            check_int(name, getattr(self, name), minimum=1)
        check_int("examples", self.examples, minimum=1)
        check_choice("learner", self.learner, {"sage": 0, "mlp": 0})
        check_choice("semantics", self.semantics, SEMANTICS)


@dataclass(frozen=True)
class PathResult:
    """What one seed gave.

    Args:
        config: the settings.
        seed: of parameters and examples.
        accuracy: share of fresh examples that are right.
        significance: ``[layer][i][j]`` of node j for node i after 1, 2, … layers, mean over the
            examples.
        in_layer: the same within each layer alone.
        source_scale, target_scale: ``[layer][node]``, mean over the examples.
        ratio: of node 3 at node 0 to the larger of nodes 1 and 2 there, after the last layer;
            median over the examples.
        at_output: ``[node]``, from the values of a node to the logits of node 0, mean.
        output_ratio: the same ratio of those.
        swapped: ``[node]``, how far the logits of node 0 move when the value of a node is swapped
            for another, root mean square over those, mean over the examples.
        swap_ratio: the same ratio of those.
        arrows: ``[layer]``, the arrows of the first example that the figure shows.
    """

    config: PathConfig
    seed: int
    accuracy: float
    significance: list[list[list[float]]]
    in_layer: list[list[list[float]]]
    source_scale: list[list[float]]
    target_scale: list[list[float]]
    ratio: float
    at_output: list[float]
    output_ratio: float
    swapped: list[float]
    swap_ratio: float
    arrows: list[list[tuple[int, int]]] = field(default_factory=list)


def path_graph(copies: int) -> Graph:
    """``copies`` disjoint paths of four nodes, every edge both ways."""
    start = torch.arange(LENGTH - 1)
    one_way = torch.stack([start, start + 1])
    both = torch.cat([one_way, one_way.flip(0)], dim=1)  # (2, 6)
    shift = LENGTH * torch.arange(copies).view(1, -1, 1)
    return Graph((both.unsqueeze(1) + shift).flatten(1), LENGTH * copies)


def draw_paths(
    count: int, config: PathConfig, generator: torch.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """Keys ``(count, 4)``, values ``(count, 4)`` and features ``(4·count, keys + values)``."""
    own = torch.randint(config.num_keys, (count, 1), generator=generator)
    others = torch.randint(config.num_keys - 1, (count, LENGTH - 2), generator=generator)
    others = others + (others >= own).long()  # any key but the own one
    keys = torch.cat([own, others, own], dim=1)
    values = torch.randint(config.num_values, (count, LENGTH), generator=generator)
    return keys, values, encode_paths(keys, values, config)


def encode_paths(keys: Tensor, values: Tensor, config: PathConfig) -> Tensor:
    """The features of keys and values ``(count, 4)``: ``(4·count, keys + values)``."""
    x = torch.cat([F.one_hot(keys, config.num_keys), F.one_hot(values, config.num_values)], dim=2)
    return x.flatten(0, 1).float()


def build_path_network(config: PathConfig) -> CSNN:
    """The linear CSNN of the experiment."""
    learner: LearnerRecipe = MLPLearner(32)
    if config.learner == "sage":
        learner = PlainSAGELearner(32, LENGTH - 1)
    return CSNN(
        config.num_keys + config.num_values,
        config.hidden_channels,
        config.num_layers,
        config.num_values,
        stalk_dim=config.stalk_dim,
        learner=learner,
        semantics=config.semantics,
        act=None,
    )


def run_path(
    config: PathConfig,
    seed: int,
    *,
    report: Callable[[int, float], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> PathResult | None:
    """Train one seed and measure it; ``None`` if it was asked to stop."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model, graph = build_path_network(config), path_graph(config.batch_size)
    optimizer = torch.optim.Adam(model.parameters(), lr=config.lr, fused=True)
    for step in range(config.steps):
        _, values, x = draw_paths(config.batch_size, config, generator)
        loss = F.cross_entropy(model(x, graph)[TARGET::LENGTH], values[:, SOURCE])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if report is not None:
            report(step + 1, loss.item())
        if should_stop is not None and should_stop():
            return None
    return measure_path(model, config, seed, generator)


@torch.no_grad()
def measure_path(
    model: CSNN, config: PathConfig, seed: int, generator: torch.Generator
) -> PathResult:
    """Accuracy, maps and significances of a network on fresh examples."""
    model.eval()
    count = config.examples
    graph = path_graph(count)
    keys, values, x = draw_paths(count, config, generator)
    with record_maps(model) as maps:
        logits = model(x, graph)[TARGET::LENGTH]
    swapped = swap_effects(model, keys, values, config)  # (count, 4)
    after = significance(model, graph, maps)  # (layers, count, 4, 4)
    last = after[-1, :, TARGET]
    out = output_significance(model, graph, maps, config.num_keys)  # (count, 4)
    source = torch.stack([layer.source.scale.view(count, LENGTH) for layer in maps])
    target = torch.stack([layer.target.scale.view(count, LENGTH) for layer in maps])
    return PathResult(
        config=config,
        seed=seed,
        accuracy=(logits.argmax(1) == values[:, SOURCE]).float().mean().item(),
        significance=after.mean(1).tolist(),
        in_layer=layer_significance(model, graph, maps).mean(1).tolist(),
        source_scale=source.mean(1).tolist(),
        target_scale=target.mean(1).tolist(),
        ratio=_ratio(last),
        at_output=out.mean(0).tolist(),
        output_ratio=_ratio(out),
        swapped=swapped.mean(0).tolist(),
        swap_ratio=_ratio(swapped),
        arrows=[sorted(arrows(layer)) for layer in maps],
    )


def _ratio(at_target: Tensor) -> float:
    """Node 3 to the larger of nodes 1 and 2, median over the examples; from ``(count, 4)``."""
    ratio = at_target[:, SOURCE] / at_target[:, 1:SOURCE].max(dim=1).values
    return ratio.median().item()


def _transfers(model: CSNN, graph: Graph, maps: list[LayerMaps], j: int) -> Iterator[Tensor]:
    """M_ij of all i after each layer, with the maps held still: ``(paths, 4, d·h, d·h)``."""
    d, h = model.stalk_dim, model.hidden_channels
    paths, width = graph.num_nodes // LENGTH, d * h
    # Column by column of the identity at node j of every path, all columns as channels.
    field = torch.zeros(graph.num_nodes, d, h, width)
    field[j::LENGTH] = torch.eye(width).view(d, h, width)
    for t, layer in enumerate(maps):
        conv = cast(CSNNConv, model.convs[t])
        mixed = field
        if conv.left is not None:
            mixed = torch.einsum("ab,nbhw->nahw", conv.left.weight, mixed)
        if conv.right is not None:
            mixed = torch.einsum("gh,nahw->nagw", conv.right.weight, mixed)
        operator = conv.diffusion(graph, layer.source, layer.target, None)
        moved = operator.mv(mixed.flatten(2)).view_as(field)
        field = (1 + torch.tanh(model.epsilons[t])).unsqueeze(-1) * field - moved
        yield field.view(paths, LENGTH, width, width)


@torch.no_grad()
def significance(model: CSNN, graph: Graph, maps: list[LayerMaps]) -> Tensor:
    """‖M_ij‖ after each layer, with the maps held still: ``(layers, paths, 4, 4)``."""
    columns = [
        torch.stack([torch.linalg.matrix_norm(m, ord=2) for m in _transfers(model, graph, maps, j)])
        for j in range(LENGTH)
    ]
    return torch.stack(columns, dim=-1)


@torch.no_grad()
def output_significance(model: CSNN, graph: Graph, maps: list[LayerMaps], num_keys: int) -> Tensor:
    """‖R M_0j E‖, from the values of node j to the logits of node 0: ``(paths, 4)``.

    R is the readout and E the encoder's columns of the values. What is added to all logits alike
    changes no prediction and what all values share tells none of them apart: both are taken out.
    """
    readout = cast(nn.Linear, cast(nn.Sequential, model.readout)[-1]).weight
    values = cast(nn.Linear, model.encoder).weight[:, num_keys:]
    readout, values = readout - readout.mean(0), values - values.mean(1, keepdim=True)
    columns = []
    for j in range(LENGTH):
        *_, last = _transfers(model, graph, maps, j)
        columns.append(torch.linalg.matrix_norm(readout @ last[:, TARGET] @ values, ord=2))
    return torch.stack(columns, dim=-1)


@torch.no_grad()
def swap_effects(model: CSNN, keys: Tensor, values: Tensor, config: PathConfig) -> Tensor:
    """How far the logits of node 0 move when node j has another value: ``(paths, 4)``.

    Root mean square over all other values; what is added to all logits alike is taken out.
    """
    graph = path_graph(len(values))

    def predict(values: Tensor) -> Tensor:
        logits = model(encode_paths(keys, values, config), graph)[TARGET::LENGTH]
        return logits - logits.mean(1, keepdim=True)

    before = predict(values)
    moved = torch.zeros(values.shape)
    for j in range(LENGTH):
        for shift in range(1, config.num_values):
            other = values.clone()
            other[:, j] = (other[:, j] + shift) % config.num_values
            moved[:, j] += (predict(other) - before).square().sum(1)
    return (moved / (config.num_values - 1)).sqrt()


@torch.no_grad()
def layer_significance(model: CSNN, graph: Graph, maps: list[LayerMaps]) -> Tensor:
    """The norms of the d×d blocks of each layer's operator: ``(layers, paths, 4, 4)``."""
    d, paths = model.stalk_dim, graph.num_nodes // LENGTH
    found = torch.empty(len(maps), paths, LENGTH, LENGTH)
    for t, layer in enumerate(maps):
        operator = cast(CSNNConv, model.convs[t]).diffusion(graph, layer.source, layer.target, None)
        for j in range(LENGTH):
            field = torch.zeros(graph.num_nodes, d, d)
            field[j::LENGTH] = torch.eye(d)
            blocks = operator.mv(field).view(paths, LENGTH, d, d)
            found[t, :, :, j] = torch.linalg.matrix_norm(blocks, ord=2)
    return found


def arrows(layer: LayerMaps, *, near_zero: float = 0.1) -> set[tuple[int, int]]:
    """The arrows j → i of the first path that the paper's figure would show.

    None points to a node whose ‖T‖ is near zero and none leaves one whose ‖S‖ is. Of the others,
    j → i is left out if its entries in both normalised Laplacians are near zero, or if the one of
    the out-Laplacian and the diagonal of the in-Laplacian at i are.
    """
    graph = path_graph(1)
    first = LayerMaps(*(ConformalMaps(*(part[:LENGTH] for part in maps)) for maps in layer))
    s, t = first.source.scale, first.target.scale
    outward = flat_out_laplacian(graph, first.source, first.target, None, "augmented")
    inward = flat_in_laplacian(graph, first.source, first.target, None, "augmented")
    out_entry, in_entry = outward.to_dense(), inward.T.to_dense()
    d = first.source.orthogonal.shape[-1]

    def small(matrix: Tensor, i: int, j: int) -> bool:
        block = matrix[i * d : (i + 1) * d, j * d : (j + 1) * d]
        return torch.linalg.matrix_norm(block, ord=2).item() < near_zero

    shown = set()
    for j, i in zip(graph.source.tolist(), graph.target.tolist(), strict=True):
        if t[i] < near_zero or s[j] < near_zero:
            continue
        if small(out_entry, i, j) and (small(in_entry, i, j) or small(in_entry, i, i)):
            continue
        shown.add((j, i))
    return shown


def append_path_result(folder: Path, result: PathResult, about: dict[str, object]) -> Path:
    """Append a result to the file of its kind; ``about`` says where it was computed."""
    path = folder / FILE
    append_line(path, json.dumps(finite({**asdict(result), **about}), allow_nan=False))
    return path


def read_path_results(folder: Path) -> list[PathResult]:
    """All recorded results."""
    path = folder / FILE
    if not path.exists():
        return []
    results = []
    for line in path.read_text(encoding="utf-8").splitlines():
        values = json.loads(line)
        kept = {name: values[name] for name in PathResult.__dataclass_fields__}
        kept["config"] = PathConfig(**kept["config"])
        kept["arrows"] = [[(j, i) for j, i in layer] for layer in kept["arrows"]]
        results.append(PathResult(**kept))
    return results


def path_table(results: list[PathResult]) -> str:
    """A table for the documentation: a line for all seeds of some settings, the latest of each."""
    groups: dict[PathConfig, dict[int, PathResult]] = {}
    for result in results:
        groups.setdefault(result.config, {})[result.seed] = result
    if not groups:
        return "Nothing has been recorded yet.\n"
    head = (
        "learner | semantics | steps | seeds | accuracy | in features | from values to logits"
        f" | by swapping | swapping ≥ {ENOUGH:g}"
    )
    rows = []
    for config, seeds in groups.items():
        found = list(seeds.values())
        accuracy = sum(result.accuracy for result in found) / len(found)
        ratios = [
            sorted(getattr(result, name) for result in found)
            for name in ("ratio", "output_ratio", "swap_ratio")
        ]
        spans = [f"{r[0]:.1f} – {r[len(r) // 2]:.1f} – {r[-1]:.1f}" for r in ratios]
        enough = sum(ratio >= ENOUGH for ratio in ratios[-1])
        cells = (config.learner, config.semantics, f"{config.steps:,}", str(len(found)))
        rows.append((*cells, f"{100 * accuracy:.1f} %", *spans, f"{enough} of {len(found)}"))
    return markdown_table(head, rows, "llrrrrrrr")
