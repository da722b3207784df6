"""Our explanations through PyG's ``Explainer``, so that its metrics can be applied to them."""

from __future__ import annotations

import logging
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.explain import Explanation as PyGExplanation
from torch_geometric.explain.algorithm import ExplainerAlgorithm
from torch_geometric.explain.config import (
    MaskType,
    ModelMode,
    ModelReturnType,
    ModelTaskLevel,
)

from coopsheaf.analysis.explain import Explanation, explain_node
from coopsheaf.analysis.hops import check_nodes
from coopsheaf.sheaves.graph import as_graph


class AttributionExplainer(ExplainerAlgorithm):
    r"""Masks of nodes and edges as large as what :func:`~coopsheaf.analysis.explain_node` finds.

    The mask of feature p at node j is :math:`|a_{jp}| / \max |a|`, that of edge e
    :math:`|w_e \, \partial f / \partial w_e|` over the largest of these: numbers in [0, 1], as the
    thresholds and metrics of ``torch_geometric.explain`` want them. Of several nodes the sizes are
    added up. f is the margin of the class that is explained over the best of the others::

        from torch_geometric.explain import Explainer, metric

        explainer = Explainer(
            model,
            AttributionExplainer(),
            explanation_type="model",
            node_mask_type="attributes",
            edge_mask_type="object",
            model_config=dict(
                mode="multiclass_classification", task_level="node", return_type="raw"
            ),
            threshold_config=("topk", 50),
        )
        explanation = explainer(x, edge_index, index=7)
        fid_plus, fid_minus = metric.fidelity(explainer, explanation)

    PyG masks a feature by multiplying it, so that what is masked is 0 and not the mean; therefore
    the distance is that from 0 unless another baseline is given.

    Args:
        baseline: ``(F,)``, what features are compared with; by default zeros.
    """

    def __init__(self, baseline: Tensor | None = None) -> None:
        super().__init__()
        self.baseline = baseline

    def supports(self) -> bool:
        """Logits or numbers of nodes; every kind of mask but attributes of edges."""
        model, masks = self.model_config, self.explainer_config
        rules = {
            "'task_level' to be 'node'": model.task_level == ModelTaskLevel.node,
            "'return_type' to be 'raw'": model.return_type == ModelReturnType.raw,
            "'edge_mask_type' to be 'object' or None": masks.edge_mask_type
            in (None, MaskType.object),
        }
        for rule, kept in rules.items():
            if not kept:  # PyG raises the error, and the log says why
                logging.getLogger(__name__).error("AttributionExplainer expects %s", rule)
        return all(rules.values())

    def forward(
        self,
        model: nn.Module,
        x: Any,
        edge_index: Any,
        *,
        target: Tensor,
        index: int | Tensor | None = None,
        **kwargs: Any,
    ) -> PyGExplanation:
        """Called by PyG's ``Explainer``, with ``index``, the nodes to explain."""
        if index is None:
            raise ValueError("`index` must say which nodes are to be explained; got None, all")
        if not isinstance(x, Tensor):
            raise ValueError(
                "`x` must be a tensor, that of a graph with one kind of nodes; got "
                f"{type(x).__name__}"
            )
        graph = as_graph(edge_index, x.shape[0])
        baseline = x.new_zeros(x.shape[1]) if self.baseline is None else self.baseline
        cells, edges = x.new_zeros(x.shape, dtype=torch.float64, device="cpu"), None
        for node in check_nodes("index", index, len(x)).tolist():
            for output in self._outputs(target[node]):
                margin = self.model_config.mode == ModelMode.multiclass_classification
                found = explain_node(
                    model, x, graph, node, output=output, margin=margin, baseline=baseline, **kwargs
                )
                cells += found.columns.cells.abs()
                edges = self._add(edges, found)
        return PyGExplanation(node_mask=self._node_mask(cells, x), edge_mask=_scaled(edges, x))

    def _outputs(self, target: Tensor) -> range | list[int]:
        """The outputs that are explained: that of the class, or every number of a regression."""
        if self.model_config.mode == ModelMode.multiclass_classification:
            return [int(target)]
        return range(target.numel() if self.model_config.mode == ModelMode.regression else 1)

    def _add(self, edges: Tensor | None, found: Explanation) -> Tensor | None:
        if self.explainer_config.edge_mask_type is None:
            return None
        if found.edge_attribution is None:
            raise ValueError(
                "`edge_mask_type` must be None for a network that takes no weights of edges; got "
                "'object'"
            )
        sizes = found.edge_attribution.abs()
        return sizes if edges is None else edges + sizes

    def _node_mask(self, cells: Tensor, x: Tensor) -> Tensor | None:
        kind = self.explainer_config.node_mask_type
        if kind is None:
            return None
        if kind == MaskType.object:
            cells = cells.sum(1, keepdim=True)  # (n, 1)
        elif kind == MaskType.common_attributes:
            cells = cells.sum(0, keepdim=True)  # (1, F)
        return _scaled(cells, x)


def _scaled(sizes: Tensor | None, like: Tensor) -> Tensor | None:
    """Divided by the largest, where there is one."""
    if sizes is None:
        return None
    most = sizes.max() if sizes.numel() else sizes.new_ones(())
    return (sizes / most if most > 0 else sizes).to(like)
