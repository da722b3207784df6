r"""Why a network says what it says of one node: which nodes and which paths moved it.

**The score** f that is explained is the *margin* of node i, its logit of a class minus that of
another one (by default the predicted class and the runner-up), or one of its outputs. Networks
with a single output have no margin: f is that output, so that for two classes what is positive
speaks for the second one.

**Attribution.** With b the baseline (by default the mean feature over all nodes) and
:math:`g_j = \partial f / \partial x_j`,

.. math:: a_j = \langle g_j, x_j - b \rangle

is, to first order, by how much f would fall if the features of node j were replaced by b; it has a
sign. The *influence* :math:`\|g_j\|` asks how strongly f reacts to any change at j.

**Diffusion and learners.** Sheaf networks pass on features along maps that are themselves learned
from features. With the maps held as constants (:func:`~coopsheaf.analysis.frozen_maps`) the
gradient is :math:`g^D_j`, that of the diffusion alone. The rest :math:`g^L_j = g_j - g^D_j`, a
difference of vectors, is everything that passes through a map learner at least once. Attributions
are linear in g and add up, :math:`a_j = a^D_j + a^L_j`; norms do not. The actions of a CO-GNN jump
and have the derivative 0 almost everywhere: they are held, and nothing is to be separated.

**Edges.** Networks that take edge weights also give :math:`w_e \, \partial f / \partial w_e`: to
first order, by how much f would fall without the edge. What the map learners see of the edges is
not in it.

**Columns.** Before they are added up over its features, the attributions of a node say which of its
columns moved f: :mod:`coopsheaf.analysis.explain_columns`.

A whole explanation costs at most three backward passes.
:func:`~coopsheaf.analysis.check_explanation` compares it with what happens when nodes are muted
and edges are cut, :func:`~coopsheaf.analysis.check_columns` when columns are muted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from coopsheaf.analysis.actions import inner_network
from coopsheaf.analysis.columns import Columns
from coopsheaf.analysis.drawn_actions import drawing
from coopsheaf.analysis.explain_columns import ColumnAttribution, attribute_columns, largest
from coopsheaf.analysis.explain_paths import FlowPath, LayerFlow, layer_flows, search_paths
from coopsheaf.analysis.hops import check_nodes, hop_distances
from coopsheaf.analysis.probing import frozen_maps, trace
from coopsheaf.checks import check_int
from coopsheaf.models.csnn import CSNN
from coopsheaf.models.network import Network
from coopsheaf.sheaves.graph import Graph, as_graph
from coopsheaf.tensor_checks import check_shape
from coopsheaf.zoo.cognn.actions import ActionSampler
from coopsheaf.zoo.cognn.layers import Actions

# The noise of a CO-GNN that samples in evaluation, held for the length of an explanation.
_SEED = 0


@dataclass(frozen=True)
class Score:
    """What is explained: an output of a node, or the difference of two.

    Args:
        node: i.
        output: number of the output (class).
        against: number of the class that it is compared with; ``None`` for the output itself.
    """

    node: int
    output: int
    against: int | None

    def of(self, out: Tensor) -> Tensor:
        """From the outputs of a network, ``(n, c)``, to a number without axes."""
        row = out[self.node]
        return row[self.output] if self.against is None else row[self.output] - row[self.against]

    def text(self, class_names: Sequence[str] = ()) -> str:
        """What it is, in words; outputs without a name are called by their number."""
        one, other = (
            None if k is None else class_names[k] if k < len(class_names) else f"output {k}"
            for k in (self.output, self.against)
        )
        return f"{one}" if other is None else f"{one} over {other}"


@dataclass(frozen=True)
class Explanation:
    """Which nodes, edges and paths moved the prediction of one node.

    Args:
        score: what is explained.
        value: its value.
        outputs: ``(c,)``, all outputs of the node.
        baseline: ``(F,)``, the features that stand for "nothing known".
        attribution: ``(n,)``, signed.
        diffusion: ``(n,)``, the part of it with maps held; ``None`` for networks that learn none.
        learners: ``(n,)``, what passes through map learners; likewise.
        influence: ``(n,)``, norms of the gradient.
        influence_diffusion: ``(n,)``, norms of the gradient with maps held.
        influence_learners: ``(n,)``, norms of the difference.
        edges: ``(2, m)``, in the direction in which information flows: from row 0 to row 1.
        edge_attribution: ``(m,)``, signed; ``None`` for networks without edge weights.
        flow: ``(layers, m)``, how strongly edges carry; ``None`` for networks that do not say.
        distance: ``(n,)``, hops to the node along that direction; -1 without a path.
        columns: the attributions of nodes, told apart by columns.
        paths: the strongest path from each of the nodes that matter most, strongest first.
    """

    score: Score
    value: float
    outputs: Tensor
    baseline: Tensor
    attribution: Tensor
    diffusion: Tensor | None
    learners: Tensor | None
    influence: Tensor
    influence_diffusion: Tensor | None
    influence_learners: Tensor | None
    edges: Tensor
    edge_attribution: Tensor | None
    flow: Tensor | None
    distance: Tensor
    columns: ColumnAttribution
    paths: tuple[FlowPath, ...]

    @property
    def node(self) -> int:
        return self.score.node

    def top(self, count: int = 10) -> list[int]:
        """The nodes with the largest attribution of either sign; those with none are left out."""
        return largest(self.attribution, check_int("count", count, minimum=1))

    @property
    def header(self) -> list[str]:
        parts = [] if self.diffusion is None else ["diffusion", "learners"]
        return ["node", "hops", "attribution", *parts, "influence", "strongest path"]

    def rows(self, count: int = 10, names: Sequence[str] | None = None) -> list[list[str]]:
        """A row of text per node of :meth:`top`, under :attr:`header`.

        Args:
            count: how many rows at most.
            names: of the nodes; their numbers if not given.
        """
        paths = {path.nodes[0]: path for path in self.paths}
        rows = []
        for j in self.top(count):
            parts = [part for part in (self.diffusion, self.learners) if part is not None]
            hops = int(self.distance[j])
            rows.append(
                [
                    str(j) if names is None else names[j],
                    str(hops) if hops >= 0 else "–",
                    *(f"{float(part[j]):+.4g}" for part in (self.attribution, *parts)),
                    f"{float(self.influence[j]):.4g}",
                    paths[j].text(names) if j in paths else "",
                ]
            )
        return rows


@torch.enable_grad()
def explain_node(
    model: nn.Module,
    x: Tensor,
    edge_index: Tensor | Graph,
    node: int,
    *,
    output: int | None = None,
    against: int | None = None,
    margin: bool = True,
    baseline: Tensor | None = None,
    columns: Columns | None = None,
    top: int = 10,
    max_hops: int | None = None,
    **inputs: Any,
) -> Explanation:
    """Explain what a network says of one node; see the module for the equations.

    Args:
        model: any network of the registry with node outputs.
        x: ``(n, F)``.
        edge_index: ``(2, m)``, or a :class:`~coopsheaf.Graph`.
        node: the node.
        output: the class (or output) explained; by default the one with the highest logit.
        against: the class it is compared with; by default the highest of the others.
        margin: compare at all; ``False`` explains the output itself, as for several labels.
        baseline: ``(F,)``, what features are compared with; by default their mean.
        columns: which features belong together; by default each is a column by itself.
        top: for how many nodes to look for paths.
        max_hops: length of the longest path looked for; by default as far as the network reaches
            (two hops per layer for CSNN, one for CO-GNN).
        inputs: ``pe``, ``edge_weight`` or ``edge_attr``, as the network takes them.
    """
    graph = as_graph(edge_index, x.shape[0])
    node = int(check_nodes("node", check_int("node", node, minimum=0), graph.num_nodes))
    check_int("top", top, minimum=1)
    if max_hops is not None:
        check_int("max_hops", max_hops, minimum=1)
    baseline = _check_baseline(baseline, x)
    columns = Columns.each(x.shape[1]) if columns is None else columns.check(x.shape[1])
    network = inner_network(model)
    with steady_actions(network):
        leaf, out = trace(model, x, graph, at="output", wrt="input", inputs=inputs)
        if out.shape[0] != graph.num_nodes:
            raise ValueError(
                "`model` must have node outputs to explain a node; got a network with a pool"
            )
        score = _choose(out[node].detach(), node, output, against, margin)
        total, held = _gradient(score.of(out), leaf), None
        if _learns_maps(network):
            with frozen_maps(network):
                leaf, still = trace(model, x, graph, at="output", wrt="input", inputs=inputs)
            held = _gradient(score.of(still), leaf)
        edge_attribution = _edge_attribution(model, network, x, graph, score, inputs)
        flows = layer_flows(network, x, graph, inputs)
    apart = (x.detach() - baseline).double().cpu()
    attribution = (total * apart).sum(1)
    backwards = isinstance(network, CSNN) and network.semantics == "released"
    return Explanation(
        score=score,
        value=float(score.of(out.detach())),
        outputs=out[node].detach().double().cpu(),
        baseline=baseline,
        attribution=attribution,
        diffusion=None if held is None else (held * apart).sum(1),
        learners=None if held is None else ((total - held) * apart).sum(1),
        influence=total.norm(dim=1),
        influence_diffusion=None if held is None else held.norm(dim=1),
        influence_learners=None if held is None else (total - held).norm(dim=1),
        edges=(graph.reverse() if backwards else graph).edge_index.cpu(),
        edge_attribution=edge_attribution,
        flow=torch.stack([layer.flow for layer in flows]) if flows else None,
        distance=hop_distances(
            graph, [node], flow="target_to_source" if backwards else "source_to_target"
        )[0].cpu(),
        columns=attribute_columns(node, columns, apart, total, held),
        paths=_paths(flows, node, largest(attribution, top + 1), top, max_hops),
    )


@contextmanager
def steady_actions(network: nn.Module) -> Iterator[None]:
    """Let a CO-GNN choose the same actions in every call, and hold them as constants."""

    def hold(module: nn.Module, args: Any, output: Actions) -> Actions:
        return Actions(*(part.detach() for part in output))

    with ExitStack() as stack:
        for module in network.modules():
            if isinstance(module, ActionSampler):
                stack.callback(module.register_forward_hook(hold).remove)
                if module.evaluation == "sample":
                    stack.enter_context(drawing(module, _SEED))
        yield


def _paths(
    flows: list[LayerFlow], node: int, sources: list[int], top: int, max_hops: int | None
) -> tuple[FlowPath, ...]:
    others = [j for j in sources if j != node][:top]
    if not flows or not others:
        return ()
    return search_paths(flows, node, sources=others, count=len(others), max_hops=max_hops)


def _check_baseline(baseline: Tensor | None, x: Tensor) -> Tensor:
    if baseline is None:
        return x.detach().mean(0)
    check_shape("baseline", baseline, f"(F,) with F = {x.shape[1]}", (x.shape[1],))
    return baseline.detach().to(x)


def _choose(
    outputs: Tensor, node: int, output: int | None, against: int | None, margin: bool
) -> Score:
    classes = len(outputs)
    chosen = int(outputs.argmax()) if output is None else _check_class("output", output, classes)
    if against is not None:
        _check_class("against", against, classes)
        if against == chosen or not margin:
            reason = f"got {against}, the one explained" if margin else "got margin=False"
            raise ValueError(f"`against` must be another class to compare with; {reason}")
    elif margin and classes > 1:
        against = next(k for k in outputs.argsort(descending=True).tolist() if k != chosen)
    return Score(node, chosen, against)


def _check_class(argument: str, value: int, classes: int) -> int:
    return int(check_nodes(argument, value, classes, things="outputs"))


def _gradient(score: Tensor, leaf: Tensor) -> Tensor:
    """∂score / ∂leaf, in double precision on the CPU."""
    gradient = None
    if score.requires_grad:
        (gradient,) = torch.autograd.grad(score, leaf, allow_unused=True)
    gradient = torch.zeros_like(leaf) if gradient is None else gradient
    return gradient.double().cpu()


def _edge_attribution(
    model: nn.Module,
    network: nn.Module,
    x: Tensor,
    graph: Graph,
    score: Score,
    inputs: dict[str, Any],
) -> Tensor | None:
    if not getattr(network, "takes_edge_weight", False):
        return None
    weight = inputs.get("edge_weight")
    weight = x.new_ones(graph.num_edges) if weight is None else weight.detach().clone()
    weight.requires_grad_()
    weighted = inputs | {"edge_weight": weight}
    _, out = trace(model, x, graph, at="output", wrt="input", inputs=weighted)
    return _gradient(score.of(out), weight) * weight.detach().double().cpu()


def _learns_maps(network: nn.Module) -> bool:
    learners = network.map_learners() if isinstance(network, Network) else []
    return any(True for learner in learners for _ in learner.parameters())
