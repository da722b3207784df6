"""Whether a network is the one that this package knows piece by piece.

Layer-wise inference and halos take a CSNN apart. Whoever has written another layer, put in modules
of their own or listens to what happens inside gets their network called as a whole instead, and is
told that its halo is not known where the layers themselves are others.
"""

from __future__ import annotations

from typing import TypeGuard

from torch import nn
from torch.nn.modules.module import _has_any_global_hook

from coopsheaf.models.csnn import CSNN
from coopsheaf.models.explained import EdgeMasks
from coopsheaf.nn.csnn_conv import CSNNConv
from coopsheaf.nn.learners import MapLearner
from coopsheaf.nn.linear import has_hooks

# Entry by entry or row by row: a chunk of nodes does not notice that others are missing.
_BY_NODE = (
    nn.Identity, nn.Linear, nn.LayerNorm, nn.BatchNorm1d, nn.ReLU, nn.GELU, nn.ELU, nn.SELU,
    nn.SiLU, nn.LeakyReLU, nn.Tanh, nn.Sigmoid, nn.Softplus, nn.Sequential,
)  # fmt: skip


def _pieces() -> tuple[object, ...]:
    """The methods that make up a forward pass."""
    return (
        *(CSNN.forward, CSNN.embed, CSNN.layer_outputs, CSNN.after_layers),
        *(CSNN.check_edge_attr, CSNN.beside, CSNN.encode, CSNN._layer, CSNN.update),
        CSNN._residual_layers,
        *(CSNNConv.forward, CSNNConv.maps, CSNNConv.mix, MapLearner.forward),
    )


_AS_WRITTEN = _pieces()


def is_plain_csnn(network: nn.Module) -> TypeGuard[CSNN]:
    """A CSNN with the layers that it was built with: no subclass of either."""
    return type(network) is CSNN and all(
        type(conv) is CSNNConv
        and type(conv.source_learner) is type(conv.target_learner) is MapLearner
        for conv in network.convs
    )


def goes_in_chunks(network: nn.Module) -> TypeGuard[CSNN]:
    """A plain CSNN whose parts look at one node at a time, and that nobody watches or explains."""
    if not is_plain_csnn(network):
        return False
    masks = network.edge_masks
    assert isinstance(masks, EdgeMasks)
    parts = [network.encoder, network.act, *network.norms, *network.readout.modules()]
    return (
        network.jump is None  # the last layer is all that is kept
        and network.block == "residual"
        and network.step == "euler"
        and network.rows is None  # which look at the whole graph
        and not masks.explain
        and all(type(part) in _BY_NODE for part in parts)
        and not (_has_any_global_hook() or any(_is_watched(part) for part in network.modules()))
        and _pieces() == _AS_WRITTEN
    )


def _is_watched(module: nn.Module) -> bool:
    """Whether somebody listens to a module, or has put a method of theirs into it."""
    if has_hooks(module):
        return True
    own = vars(module).items()
    # PyG itself does that to what it explains.
    return not isinstance(module, EdgeMasks) and any(
        callable(value) and hasattr(type(module), name) for name, value in own
    )
