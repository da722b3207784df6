"""The layer of NSD on a sheaf that comes from the layer before and moves on."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from coopsheaf.models.arguments import arguments_of
from coopsheaf.sheaves.graph import Graph, as_graph, as_weighted_graph
from coopsheaf.sheaves.kernels.diagonal import inverse_sqrt
from coopsheaf.sheaves.kernels.stalks import identity_like
from coopsheaf.sheaves.operator import Operator
from coopsheaf.tensor_checks import check_edge_weight
from coopsheaf.zoo.joint.learners import InvariantLearner, MapMixing, pulls
from coopsheaf.zoo.nsd.conv import NSDConv, check_undirected_weight

# Arguments of NSD's layer that mean nothing where maps are not learned from both ends' features.
NOT_HERE = ("sparse_learner", "sparse_reading", "learn_weights", "add_lp", "add_hp", "learn_maps")


class CarriedConv(NSDConv):
    r"""A sheaf diffusion whose maps are those of the layer before, moved by the features.

    The Laplacian is that of :class:`~coopsheaf.zoo.nsd.NSDConv`; a subclass says what
    :meth:`move` makes of the maps. Before the first layer all of them are identities.

    Shapes:
        x ``(n, d, h)``; edge_index ``(2, m)`` or a :class:`~coopsheaf.Graph`, every edge both ways
        and no self-loop; edge_weight ``(m,)``, the same both ways. Returns ``(n, d, h)``.
    """

    def __init__(self, channels: int, stalk_dim: int, **options: Any) -> None:
        for name in ("sparse_learner", "learn_weights", "add_lp", "add_hp"):
            if options.get(name):
                raise ValueError(f"`{name}` must be False for {type(self).__name__}; got True")
        super().__init__(channels, stalk_dim, **options | {"learn_weights": False})
        self.map_learner = None  # nothing sees the features of both ends side by side

    def move(self, before: Tensor, x: Tensor, graph: Graph) -> Tensor:
        """The maps of this layer, as :meth:`maps` has them, from matrices ``(m, d, d)``."""
        raise NotImplementedError

    def maps(self, x: Tensor, edge_index: Tensor | Graph, before: Tensor | None = None) -> Tensor:
        """The maps at the target of every edge, from what this gave in the layer before.

        ``edge_maps.dense`` makes matrices ``(m, d, d)`` of them. ``None`` stands for identities.
        """
        self._check(x)
        graph = as_graph(edge_index, x.shape[0])
        if before is not None:
            return self.move(self.edge_maps.dense(before), x, graph)
        kind = torch.float32 if x.dtype in (torch.bfloat16, torch.float16) else x.dtype
        eye = torch.eye(self.stalk_dim, dtype=kind, device=x.device)
        return self.move(eye.repeat(graph.num_edges, 1, 1), x, graph)

    def laplacian(
        self,
        x: Tensor,
        edge_index: Tensor | Graph,
        edge_weight: Tensor | None = None,
        *,
        before: Tensor | None = None,
    ) -> Operator:
        """Δ of the maps that x gives rise to, from identities or from maps of a layer before."""
        return self.laplacian_of(self.maps(x, edge_index, before), x, edge_index, edge_weight)

    def laplacian_of(
        self,
        maps: Tensor,
        x: Tensor,
        edge_index: Tensor | Graph,
        edge_weight: Tensor | None = None,
    ) -> Operator:
        """Δ of a sheaf with these maps, as :meth:`maps` gave them."""
        graph, weight = as_weighted_graph(edge_index, x.shape[0], edge_weight)
        if weight is not None:
            weight = check_edge_weight(weight, graph.num_edges, "x", x)
            weight = check_undirected_weight(weight, graph)
        return self.edge_maps.laplacian(maps, graph, weight, self.normalization)


class JointConv(CarriedConv):
    r"""Joint diffusion: features diffuse on the sheaf, and the sheaf on the features.

    .. math::
        F_e &\leftarrow F_e - \sigma_F\bigl(b\,(F'_e y_i - F'_{\bar e} y_j)\, y_i^\top\bigr),
               \qquad e = j \to i,\quad F' = V_1 F V_2, \\
        y_i &= (x_i x_i^\top + I)^{-1/2} x_i

    and then NSD's diffusion with these maps. The maps of an edge are stacked,
    :math:`F^* = [F_e \; F_{\bar e}]^\top`; without weights and :math:`\sigma_F` the first line is
    :math:`F^* \leftarrow (I - b \Delta_X) F^*` with the normalised Laplacian :math:`\Delta_X` of
    a sheaf whose maps are the features: explicit steps down
    :math:`\tfrac12 \|F_e y_i - F_{\bar e} y_j\|^2`. Its spectrum is in [0, 2), so that this energy
    does not grow for b ≤ 1. In training no gradient flows through the normaliser, as its authors
    are said to have it; in evaluation derivatives are exact, for those who explain.

    Its paper was not at hand: this is a reading of a summary, which writes the step as
    :math:`F^* - \sigma((I - b \Delta_X) \dots F^* \dots)` and leaves the rest out. That the term
    inside is what descends the energy, where the weights stand and what σ_F is, was decided here.

    Args:
        channels: number h of channels.
        stalk_dim: dimension d of the stalks.
        map_step: b, positive.
        map_act: σ_F: ``"tanh"``, ``"elu"`` or ``"identity"``.
        options: ``normalization``, ``left_weights`` and ``right_weights`` of
            :class:`~coopsheaf.zoo.nsd.NSDConv`.

    Shapes:
        as those of :class:`CarriedConv`.
    """

    @arguments_of(NSDConv, without=("maps", *NOT_HERE))
    def __init__(
        self, channels: int, stalk_dim: int, *, map_step: float = 1.0, **options: Any
    ) -> None:
        if not map_step > 0:
            raise ValueError(f"`map_step` must be positive; got {map_step}")
        super().__init__(channels, stalk_dim, **options | {"maps": "general"})
        self.map_step, self.mixing = map_step, MapMixing(stalk_dim)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """As NSD's layer; V₁ and V₂ start as identities."""
        super().reset_parameters()
        mixing = getattr(self, "mixing", None)  # while the base is built there is none
        if mixing is not None:
            mixing.reset_parameters()

    def move(self, before: Tensor, x: Tensor, graph: Graph) -> Tensor:
        pull = pulls(self.mixing(before), whitened(x, still=self.training), graph)
        return before - self.map_act(self.map_step * pull)


class InvariantConv(CarriedConv):
    r"""Maps learned from what does not change when the channels are rotated.

    .. math::
        F_e \leftarrow \operatorname{maps}\bigl(\sigma_F(\operatorname{MLP}(
              \tfrac1h\, x_e x_i^\top))\bigr), \qquad x_e = F_e x_i - F_{\bar e} x_j,
              \quad e = j \to i

    with the maps of the layer before in :math:`x_e`, and then NSD's diffusion with the new ones.
    X and XQ have the same maps for every orthogonal Q (h×h), and the learner has d² numbers to look
    at, however many channels there are.

    Its paper was not at hand: this is a reading of a summary, which has
    :math:`F \leftarrow \operatorname{MLP}(x_e x_i^\top)`. The mean over channels, the one hidden
    layer of d² units, σ_F and that the first maps are identities were decided here.

    Args:
        channels: number h of channels.
        stalk_dim: dimension d of the stalks.
        maps: ``"general"``, ``"orthogonal"``, ``"diagonal"``, or an object of
            :mod:`coopsheaf.zoo.nsd.edge_maps`.
        map_act: σ_F: ``"tanh"``, ``"elu"`` or ``"identity"``.
        options: ``normalization``, ``left_weights`` and ``right_weights`` of
            :class:`~coopsheaf.zoo.nsd.NSDConv`.

    Shapes:
        as those of :class:`CarriedConv`.
    """

    @arguments_of(NSDConv, without=NOT_HERE)
    def __init__(self, channels: int, stalk_dim: int, **options: Any) -> None:
        super().__init__(channels, stalk_dim, **{"maps": "general"} | options)
        numbers = self.edge_maps.num_parameters
        if numbers == 0:
            raise ValueError(f"`maps` must have something to learn; got {self.edge_maps}")
        self.invariant_learner = InvariantLearner(stalk_dim, numbers)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """As NSD's layer; the learner as its linear layers are drawn."""
        super().reset_parameters()
        learner = getattr(self, "invariant_learner", None)  # while the base is built: none
        if learner is not None:
            learner.reset_parameters()

    def move(self, before: Tensor, x: Tensor, graph: Graph) -> Tensor:
        numbers = self.invariant_learner(pulls(before, x, graph) / self.channels)
        return self.edge_maps.make(self.map_act(numbers))


def whitened(x: Tensor, *, still: bool = False) -> Tensor:
    r""":math:`(x_i x_i^\top + I)^{-1/2} x_i`, of norm below 1; ``still``: the root is constant."""
    seen = x.detach() if still else x
    gram = seen @ seen.mT  # (n, d, d)
    return inverse_sqrt(gram + identity_like(gram, x.shape[1])).to(x.dtype) @ x
