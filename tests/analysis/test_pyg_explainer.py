"""Our explanations as masks of PyG's Explainer, measured by its metrics."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from analysis.networks import build, csnn
from analysis.test_explain_check import neighbours_task, trained
from graphs import randn
from models.test_all import EDGES, F_IN, N
from torch import Tensor, nn
from torch.testing import assert_close
from torch_geometric.explain import Explainer, metric
from torch_geometric.explain.algorithm import DummyExplainer

from coopsheaf import CSNN
from coopsheaf.analysis import AttributionExplainer, explain_node

__all__ = ["trained"]

X = randn(N, F_IN, seed=2)
CLASSES = {"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"}


def explainer(model: nn.Module, algorithm: Any = None, **options: Any) -> Explainer:
    given = {
        "explanation_type": "model",
        "node_mask_type": "attributes",
        "edge_mask_type": "object",
        "model_config": CLASSES,
    }
    return Explainer(model, algorithm or AttributionExplainer(), **(given | options))


def test_masks_are_sizes_of_attributions() -> None:
    model = build("csnn")
    found = explainer(model)(X, EDGES, index=4)
    why = explain_node(model, X, EDGES, 4, baseline=torch.zeros(F_IN))
    cells, edges = why.columns.cells.abs(), why.edge_attribution.abs()
    assert_close(found.node_mask, cells / cells.max())
    assert_close(found.edge_mask, edges / edges.max())
    assert sorted(found.available_explanations) == ["edge_mask", "node_mask"]  # PyG keeps a set


def test_kinds_of_masks() -> None:
    model = build("csnn")
    cells = explain_node(model, X, EDGES, 4, baseline=torch.zeros(F_IN)).columns.cells.abs()
    for kind, sums in (("object", cells.sum(1, True)), ("common_attributes", cells.sum(0, True))):
        found = explainer(model, node_mask_type=kind, edge_mask_type=None)(X, EDGES, index=4)
        assert_close(found.node_mask, sums / sums.max())
        assert "edge_mask" not in found
    found = explainer(model, node_mask_type=None)(X, EDGES, index=4)
    assert "node_mask" not in found
    assert found.edge_mask.shape == (EDGES.shape[1],)


def test_several_nodes_other_baselines_and_given_classes() -> None:
    model, baseline = build("csnn"), X.mean(0)
    target = torch.tensor([k % 3 for k in range(N)])
    algorithm = AttributionExplainer(baseline)
    found = explainer(model, algorithm, explanation_type="phenomenon")(
        X, EDGES, target=target, index=torch.tensor([1, 5])
    )
    cells = sum(
        explain_node(model, X, EDGES, i, output=int(target[i])).columns.cells.abs() for i in (1, 5)
    )
    assert_close(found.node_mask, cells / cells.max())


def test_numbers_and_two_classes() -> None:
    for mode, out in (("regression", 2), ("binary_classification", 1)):
        model = csnn(out_channels=out)
        found = explainer(model, model_config=CLASSES | {"mode": mode})(X, EDGES, index=4)
        cells = sum(
            explain_node(model, X, EDGES, 4, output=k, margin=False, baseline=torch.zeros(F_IN)).columns.cells.abs()
            for k in range(out)
        )  # fmt: skip
        assert_close(found.node_mask, cells / cells.max())


def test_weights_of_edges_are_passed_on() -> None:
    model, weight = build("csnn"), torch.linspace(0.5, 1.5, EDGES.shape[1]).double()
    found = explainer(model)(X, EDGES, index=4, edge_weight=weight)
    why = explain_node(model, X, EDGES, 4, baseline=torch.zeros(F_IN), edge_weight=weight)
    edges = why.edge_attribution.abs()
    assert_close(found.edge_mask, edges / edges.max())
    assert metric.fidelity(explainer(model), found) is not None


def test_pygs_metrics_prefer_it_to_chance(trained: tuple[CSNN, Tensor, Tensor]) -> None:
    """Without what is said to matter predictions turn; with it alone they stay."""
    model, x, edges = trained
    assert torch.equal(x, neighbours_task()[0])
    nodes = range(0, 120, 6)
    found = {}
    for name, algorithm in (("ours", AttributionExplainer()), ("chance", DummyExplainer())):
        torch.manual_seed(0)
        tool = explainer(model, algorithm, edge_mask_type=None, threshold_config=("topk_hard", 12))
        plus, minus, unfaithful = [], [], []
        for node in nodes:
            explanation = tool(x, edges, index=node)
            fidelity = metric.fidelity(tool, explanation)
            plus.append(fidelity[0])
            minus.append(fidelity[1])
            unfaithful.append(metric.unfaithfulness(tool, explanation))
        found[name] = [sum(values) / len(nodes) for values in (plus, minus, unfaithful)]
    ours, chance = found["ours"], found["chance"]
    assert ours[0] > chance[0] + 0.2  # higher is better
    assert ours[1] < chance[1] - 0.2  # lower is better
    assert ours[2] < chance[2]


def test_what_is_refused() -> None:
    model = build("csnn")
    for config in (
        {"model_config": CLASSES | {"task_level": "graph"}},
        {"model_config": CLASSES | {"return_type": "probs"}},
    ):
        with pytest.raises(ValueError, match="does not support the given explanation settings"):
            explainer(model, **config)
    with pytest.raises(ValueError, match="`index` must say which nodes"):
        explainer(model)(X, EDGES)
    with pytest.raises(ValueError, match="`edge_mask_type` must be None for a network that takes"):
        explainer(build("gat"))(X, EDGES, index=4)
    assert explainer(build("gat"), edge_mask_type=None)(X, EDGES, index=4).node_mask.max() == 1
