"""What trained networks do over distance: exact influence, and the spectra of their operators."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from coopsheaf.analysis.hops import average_by_hop, hop_distances
from coopsheaf.analysis.jacobians import influence
from coopsheaf.analysis.probing import evaluating
from coopsheaf.config import config_hash
from coopsheaf.data.dataset import NodeDataset
from coopsheaf.files import append_line, finite, is_json
from coopsheaf.models.csnn import CSNN
from coopsheaf.nn.csnn_conv import CSNNConv, record_maps
from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.waves import needed_damping
from coopsheaf.train.build import build_model
from coopsheaf.train.data import load_data
from coopsheaf.train.records import read_lines
from coopsheaf.train.run import load_run, run_identity
from lab.long_range.plan import TASKS, recipe
from lab.squash.runner import provenance

FILE = "inside/trained.jsonl"  # beside the records of runs, in a folder of its own
LOOKED_AT = ("barbell-10", "ring-transfer-5", "ring-transfer-10")


@dataclass(frozen=True)
class LayerSpectrum:
    """Numbers of one operator: its eigenvalues, its numerical range, how far it is from normal.

    Args:
        real: smallest and largest real part of an eigenvalue.
        imaginary: largest imaginary part.
        range: smallest and largest value of ⟨x, A x⟩ / ⟨x, x⟩.
        departure: ‖A Aᵀ - Aᵀ A‖ / ‖A‖², Frobenius norms; 0 for normal operators.
        damping: the least damping with which no mode of its waves grows; ``None`` if there is none.
    """

    real: tuple[float, float]
    imaginary: float
    range: tuple[float, float]
    departure: float
    damping: float | None


@dataclass(frozen=True)
class Inside:
    """One network, looked into on the first graph of its task.

    Args:
        influence: root mean square of ‖∂y/∂x‖ by distance, of the node that is asked for a label or
            of one that is not at the bridge.
        before: the same as the network was drawn.
        layers: of a CSNN, one entry for each.
    """

    contestant: str
    task: str
    seed: int
    config_hash: str
    test: float
    influence: list[float]
    before: list[float]
    layers: list[dict[str, Any]] = field(default_factory=list)
    commit: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    time: str = ""


def spectrum_of(matrix: Tensor) -> LayerSpectrum:
    """The numbers of a dense operator, ``(k, k)``."""
    values = torch.linalg.eigvals(matrix)
    symmetric = torch.linalg.eigvalsh((matrix + matrix.T) / 2)
    commutator = matrix @ matrix.T - matrix.T @ matrix
    size = matrix.square().sum()
    tiny = 1e-9 * float(matrix.abs().max())  # what rounding makes of a real, positive spectrum
    damping = max(needed_damping(_clean(complex(v), tiny)) for v in values.tolist())
    return LayerSpectrum(
        real=(float(values.real.min()), float(values.real.max())),
        imaginary=float(values.imag.abs().max()),
        range=(float(symmetric[0]), float(symmetric[-1])),
        departure=float(commutator.norm() / size) if size > 0 else 0.0,
        damping=damping if math.isfinite(damping) else None,
    )


def _clean(value: complex, tiny: float) -> complex:
    real, imaginary = value.real, value.imag
    return complex(0.0 if abs(real) < tiny else real, 0.0 if abs(imaginary) < tiny else imaginary)


def first_graph(data: NodeDataset) -> tuple[Tensor, Graph]:
    """Features and edges of the first of many graphs, which begins with node 0."""
    reached = hop_distances(data.edge_index, [0], num_nodes=data.num_nodes)[0] >= 0
    n = int(reached.sum())
    inside = data.edge_index[0] < n
    return data.x[:n], Graph(data.edge_index[:, inside], n)


def by_distance(model: nn.Module, x: Tensor, graph: Graph, target: int) -> list[float]:
    """Root mean square influence on one node, by distance from it."""
    with evaluating(model):
        squared = influence(model, x, graph, targets=[target]).squared
    hops = hop_distances(graph, [target])
    return average_by_hop(squared, hops).sqrt().tolist()


@torch.no_grad()
def layer_operators(model: CSNN, x: Tensor, graph: Graph) -> list[Tensor]:
    """The operator of every layer as a dense matrix, with the maps that the network has on x."""
    with evaluating(model), record_maps(model) as maps:
        model(x, graph)
    found = []
    for conv, pair in zip(model.convs, maps, strict=True):
        assert isinstance(conv, CSNNConv)
        source, target = (type(m)(m.scale.double(), m.orthogonal.double()) for m in pair)
        found.append(conv.diffusion(graph, source, target, None).to_dense())
    return found


def look(
    contestants: Sequence[str], tasks: Sequence[str], results: Path, work: Path
) -> Iterator[Inside]:
    """Look into what was trained with seed 0 and is in ``work``; what is recorded is not again."""
    known = {(row.contestant, row.config_hash) for row in read_inside(results)}
    for task in tasks:
        if task not in LOOKED_AT:
            continue
        for contestant in contestants:
            plan = recipe(contestant, task, 0)
            data = load_data(plan.data)
            assert isinstance(data, NodeDataset)
            name = config_hash(run_identity(plan, data, 0))
            folder = work / f"{plan.model_name}-{task}-0-{name}"
            if (contestant, plan.hash()) in known or not (folder / "model.safetensors").exists():
                continue
            run = load_run(folder)
            x, graph = first_graph(data)
            target = 0 if TASKS[task].group == "transfer" else 1
            network = getattr(run.model, "network", run.model)
            layers = layer_operators(network, x, graph) if isinstance(network, CSNN) else []
            made = provenance()
            row = Inside(
                contestant=contestant,
                task=task,
                seed=0,
                config_hash=plan.hash(),
                test=run.scores["test"],
                influence=by_distance(run.model, x, graph, target),
                before=by_distance(build_model(plan, data), x, graph, target),
                layers=[asdict(spectrum_of(matrix)) for matrix in layers],
                commit=made["commit"],
                versions=made["versions"],
                time=made["time"],
            )
            line = json.dumps(finite(asdict(row)), ensure_ascii=False, allow_nan=False)
            append_line(results / FILE, line, is_whole=is_json)
            yield row


def read_inside(results: Path) -> list[Inside]:
    """All that was looked into."""
    path = results / FILE
    return read_lines(Inside, [path]) if path.exists() else []
