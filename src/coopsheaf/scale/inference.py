"""The outputs of a CSNN on a whole graph, in bounded memory and exactly.

A layer is a sequence of steps of two kinds: what every node does by itself, and sums over the edges
into a node. Both are computed for one chunk of nodes after the other, so that only three arrays of
the size of the features, ``(n, d, h)``, are ever whole (the features of a layer, what its nodes
send, what the first of its two Laplacians gives), and the maps, ``(n, d, d)``. There is no halo
and no edge is summed over twice, whatever the shape of the graph.

What a node does by itself is done by the network's own methods; the order of the steps and the sums
are written down here for a second time. So it is only done to the very classes that it was written
for (:mod:`coopsheaf.scale.as_built`): anything else is called as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor, nn

from coopsheaf.checks import check_int
from coopsheaf.models.csnn import CSNN
from coopsheaf.nn.csnn_conv import CSNNConv
from coopsheaf.nn.edge_features import EdgeFeatures
from coopsheaf.scale.as_built import goes_in_chunks
from coopsheaf.scale.chunks import sum_rows
from coopsheaf.scale.learner_stages import learn_in_chunks
from coopsheaf.scale.scratch import Scratch, open_scratch
from coopsheaf.scale.wrapped import unwrap
from coopsheaf.sheaves.diffusion import split_passes
from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.kernels.stalks import stalk_product, subtract_stalk_product
from coopsheaf.sheaves.laplacian import NodeMapOperator
from coopsheaf.tensor_checks import check_edge_weight
from coopsheaf.train.batches import CHUNK


@torch.no_grad()
def infer(
    model: nn.Module,
    x: Tensor,
    graph: Graph,
    *,
    edge_weight: Tensor | None = None,
    edge_attr: EdgeFeatures | None = None,
    chunk: int = CHUNK,
    scratch: str | Path | None = None,
) -> Tensor:
    """The outputs of a network at all nodes, as in evaluation, ``(n, out_channels)``.

    A CSNN is computed chunk by chunk; its learners too, norms over the whole graph included, but
    for a learner of the user's own, which is called on the whole graph. Any other network is called
    on the whole graph: also a subclass of CSNN or of its layer, and a CSNN with hooks, replaced
    methods, an edge mask or modules of the user's own inside.

    Args:
        model: a network for node outputs, wrapped or not.
        x: ``(n, in_channels)``, of any dtype; may be a mapped file.
        graph: the whole graph.
        edge_weight: ``(m,)``.
        edge_attr: ``(m, edge_channels)``, or their means at the nodes.
        chunk: nodes at a time.
        scratch: a folder with room for 3·n·d·h numbers; then the three arrays are files, and memory
            holds what the system finds useful. If not given they are in memory, unless they would
            take more than a quarter of the machine's: then in the folder for temporary files.
    """
    check_int("chunk", chunk, minimum=1)
    network, finish = unwrap(model)
    training = model.training
    model.eval()
    try:
        if isinstance(network, CSNN):
            _check_network(network)
        if not goes_in_chunks(network):
            like = next(network.parameters(), x)
            features = {} if edge_attr is None else {"edge_attr": edge_attr}
            x = x.to(like.device, like.dtype)
            return model(x, graph, edge_weight=edge_weight, **features)
        weight = next(network.encoder.parameters())
        width = 3 * network.stalk_dim * network.hidden_channels + 2 * network.edge_channels
        size = graph.num_nodes * width * weight.element_size()
        with open_scratch(scratch, size, weight.device) as space:
            return finish(_infer(network, x, graph, edge_weight, edge_attr, chunk, space))
    finally:
        model.train(training)


def _check_network(network: CSNN) -> None:
    if network.pool is not None:
        raise ValueError("`model` must give outputs for nodes; it pools them")
    if network.pe_channels:
        raise ValueError("`model` must do without positional encodings; it has `pe_channels`")


def _infer(
    network: CSNN,
    x: Tensor,
    graph: Graph,
    edge_weight: Tensor | None,
    edge_attr: EdgeFeatures | None,
    chunk: int,
    scratch: Scratch,
) -> Tensor:
    n, d, h = graph.num_nodes, network.stalk_dim, network.hidden_channels
    if x.shape != (n, network.in_channels):
        raise ValueError(f"`x` must have shape ({n}, {network.in_channels}); got {tuple(x.shape)}")
    weight = next(network.encoder.parameters())
    dtype, device = weight.dtype, weight.device
    # The learners see the features and, beside them, what they are told of the edges.
    seen = scratch.make((n, d * h + 2 * network.edge_channels), dtype, device)
    features = seen[:, : d * h].unflatten(1, (d, h))
    sent, middle = (scratch.make((n, d, h), dtype, device) for _ in range(2))
    edge_attr = network.check_edge_attr(edge_attr, graph, features)
    beside = network.beside(graph, edge_attr=edge_attr)
    if beside is not None:
        seen[:, d * h :] = beside
    if edge_weight is not None:
        edge_weight = check_edge_weight(edge_weight, graph.num_edges, "model", features)
    for rows in scratch.chunks(n, chunk):
        features[rows] = network.encode(x[rows].to(device, dtype))
    for conv, epsilon, norm in zip(network.convs, network.epsilons, network.norms, strict=True):
        assert isinstance(conv, CSNNConv)
        source, target = (
            learn_in_chunks(learner, seen, graph, chunk, scratch)
            for learner in (conv.source_learner, conv.target_learner)
        )
        first, second = split_passes(conv.diffusion(graph, source, target, edge_weight))
        for rows in scratch.chunks(n, chunk):
            sent[rows] = stalk_product(first.right[rows], conv.mix(features[rows]))
        for rows, heard in _hear(first, sent, scratch.chunks(n, chunk)):
            own = first.diagonal[rows, None, None] * conv.mix(features[rows])
            middle[rows] = subtract_stalk_product(own, first.left[rows].mT, heard)
        if second is not None:
            for rows in scratch.chunks(n, chunk):
                sent[rows] = stalk_product(second.right[rows], middle[rows])
            for rows, heard in _hear(second, sent, scratch.chunks(n, chunk)):
                own = second.diagonal[rows, None, None] * middle[rows]
                middle[rows] = subtract_stalk_product(own, second.left[rows].mT, heard)
        for rows in scratch.chunks(n, chunk):
            new = network.update(features[rows], middle[rows], epsilon)
            features[rows] = norm(new.flatten(1)).view_as(new)
        del source, target, first, second  # before those of the next layer are made
    return torch.cat(
        [network.readout(features[rows].flatten(1)) for rows in scratch.chunks(n, chunk)]
    )


def _hear(
    operator: NodeMapOperator, sent: Tensor, pieces: Iterator[slice]
) -> Iterator[tuple[slice, Tensor]]:
    """What each chunk of nodes hears, ``(rows, d, h)``."""
    lists, weight = operator.graph.by_target, operator.edge_weight
    for rows in pieces:
        yield rows, sum_rows(sent.flatten(1), lists, rows, weight).unflatten(1, sent.shape[1:])
