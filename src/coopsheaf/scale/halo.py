r"""How far a CSNN looks, and exact outputs for some nodes from their surroundings alone.

A layer of the paper's semantics gives node i

.. math:: y_i = d_i z_i - \sum_{j \to i} T_i^\top S_j z_j / \ldots, \qquad
          z_j = d'_j \bar x_j - \sum_{k \to j} T_j^\top S_k \bar x_k / \ldots,

so its output at i needs the features and maps of all nodes within two hops against the edges, and
their maps need as many hops more as their learner has layers of message passing: none for an MLP.
The released semantics goes along the edges instead, its learners against them; with ``"messages"``
a layer looks one hop far instead of two. Degrees do not
count: a part of a graph remembers those of the whole one. Nor do features of edges: a part is given
the means that its nodes have in the whole graph.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch_geometric.nn import LayerNorm

from coopsheaf.models.csnn import CSNN
from coopsheaf.nn.csnn_conv import CSNNConv
from coopsheaf.nn.edge_features import edge_means
from coopsheaf.nn.learners import MLP, EmbeddedSAGE, MapLearner
from coopsheaf.nn.sage import SAGE
from coopsheaf.scale.as_built import is_plain_csnn
from coopsheaf.scale.wrapped import unwrap
from coopsheaf.sheaves.graph import CSR, Degrees, Graph
from coopsheaf.sheaves.laplacian import weighted_degree

IN, OUT = "in", "out"  # against the edges, to what a node hears; along them
_DIFFUSION = {"paper": (IN, IN), "released": (OUT, OUT), "messages": (IN,)}


def halo_hops(model: nn.Module) -> int:
    """How many hops around a node its output depends on.

    Per layer 2 for the diffusion (1 with ``semantics="messages"``) and the number of
    message-passing layers of the map learners: a CSNN of 3 layers with MLP learners looks 6 hops
    far, with SAGE learners of 2 layers 12.

    Args:
        model: a :class:`~coopsheaf.CSNN`, wrapped or not. Its learners must be local: the
            recipe ``"sage-graph-norm"`` with two layers or more averages over all nodes.
    """
    return sum(map(len, halo_steps(model)))


def halo_steps(model: nn.Module) -> tuple[tuple[str, ...], ...]:
    """The directions of the hops of every layer, the first layer first.

    Going outwards from the nodes of the outputs, a layer takes its hops in the order given:
    ``"in"`` to the sources of the edges into a node, ``"out"`` to the targets of those out of it.
    """
    network, _ = unwrap(model)
    if not is_plain_csnn(network):
        inside = " with layers that may look further" if isinstance(network, CSNN) else ""
        raise ValueError(
            f"`model` must be a CSNN for its halo to be known; got {type(network).__name__}{inside}"
        )
    if network.rows is not None:
        raise ValueError(
            "`model` must not have `structure` 'rows' for parts of its graph to do: it knows every "
            "node by its place"
        )
    steps = []
    for conv in network.convs:
        assert isinstance(conv, CSNNConv)
        learners = (conv.source_learner, conv.target_learner)
        hops = max(learner_hops(learner) for learner in learners)
        steps.append(_DIFFUSION[conv.semantics] + (IN,) * hops)
    return tuple(steps)


def learner_hops(learner: MapLearner) -> int:
    """How many hops around a node its map depends on, given the features of a layer.

    A module of the user's own says so with an attribute ``hops``.
    """
    module = learner.learner
    if module is None or type(module) is MLP:
        return 0
    if type(module) is SAGE:
        if any(isinstance(norm, LayerNorm) and norm.mode == "graph" for norm in module.norms):
            raise ValueError(
                "`model` must have learners that look at a part of the graph; a LayerNorm in them "
                "averages over all nodes (learner 'sage-node-norm' does not)"
            )
        return len(module.convs)
    if type(module) is EmbeddedSAGE:
        return len(module.phi)
    hops = getattr(module, "hops", None)
    if not isinstance(hops, int) or hops < 0:
        raise ValueError(
            "`model` has a learner whose reach is not known: give "
            f"{type(module).__name__} an attribute `hops`, its number of message-passing layers"
        )
    return hops


def surround(graph: Graph, nodes: Tensor, steps: tuple[tuple[str, ...], ...]) -> Tensor:
    """All nodes that the outputs at ``nodes`` depend on, ``(k,)``: those first, in their order.

    Args:
        graph: the whole graph.
        nodes: different nodes.
        steps: hops of every layer (:func:`halo_steps`).
    """
    with graph.placing(nodes) as placing:
        frontier, before = nodes, ""
        for direction in (step for layer in reversed(steps) for step in layer):
            # In another direction the inner nodes have neighbours that nobody has looked at.
            start = frontier if direction == before else placing.nodes
            lists = graph.by_target if direction == IN else graph.by_source
            frontier = placing.add_new(lists.other[lists.take(start)[0]].long())
            before = direction
        return placing.nodes


def degrees_of(graph: Graph, edge_weight: Tensor | None) -> Degrees:
    """Numbers of edges at every node, or the sums of their weights: what parts shall remember."""
    into = weighted_degree(graph, edge_weight)
    return Degrees(into, weighted_degree(graph.reverse(), edge_weight))


def _sums_at(graph: Graph, nodes: Tensor, edge_weight: Tensor) -> Degrees:
    """Sums of the weights at some nodes, ``(k,)`` each, without a look at any other."""

    def add(lists: CSR) -> Tensor:
        entry, row = lists.take(nodes)
        zeros = edge_weight.new_zeros(nodes.numel())
        return zeros.index_add(0, row, edge_weight[lists.edge[entry]])

    return Degrees(add(graph.by_target), add(graph.by_source))


def forward_at(
    model: nn.Module,
    x: Tensor,
    graph: Graph,
    nodes: Tensor,
    *,
    edge_weight: Tensor | None = None,
    edge_attr: Tensor | None = None,
) -> Tensor:
    """The outputs of a network at some nodes, exactly those that the whole graph gives.

    The network sees the nodes and their halo alone. In training mode dropout, and batch norms,
    which see the halo too, are what differs.

    Args:
        model: a CSNN for node outputs, wrapped or not.
        x: ``(n, in_channels)``.
        graph: the whole graph.
        nodes: ``(k,)`` different nodes.
        edge_weight: ``(m,)``.
        edge_attr: ``(m, edge_channels)``.

    Returns:
        ``(k, out_channels)``.
    """
    around = surround(graph, nodes, halo_steps(model))
    part = graph.subgraph(around)
    if edge_weight is not None:
        part = part._replace(graph=part.graph.part_of(_sums_at(graph, around, edge_weight)))
    weight = None if edge_weight is None else edge_weight[part.edge]
    features = {}
    if edge_attr is not None:
        features["edge_attr"] = edge_means(graph, edge_attr).at(part.nodes)
    out = model(x[part.nodes], part.graph, edge_weight=weight, **features)
    return out[: nodes.numel()]
