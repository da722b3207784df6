"""How the sheaf networks are related: one row of facts for each. Imports no PyTorch.

The facts stand beside each network, in its :class:`~coopsheaf.models.ModelInfo`, and are claims:
the tests look at the operator of every network and compare.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coopsheaf.models.info import ModelInfo

WHEN = {
    "yes": "on every graph that the network takes",
    "undirected": "where every edge is there both ways, and not otherwise",
    "no": "not even there",
}


@dataclass(frozen=True)
class Kinship:
    r"""What makes one sheaf network differ from another.

    A layer applies a linear operator :math:`A` to the features, with maps that may depend on them;
    with those maps held still the operator has these properties. What belongs to default settings
    is said of them.

    Args:
        place: where maps live: ``"nodes"``, ``"ends of edges"`` or ``"arcs"``.
        maps: what they are, and whether they are learned.
        operator: A, as an equation.
        step: what a layer makes of X and A.
        normal: whether :math:`A A^\top = A^\top A`: ``"yes"``, ``"undirected"`` or ``"no"``;
            ``None`` if A is not linear.
        psd: whether A is symmetric and has no negative eigenvalue, likewise.
        hops: how far a layer reaches, or the name of the setting that says it.
        cost: multiplications per directed edge and layer, with c = d·h.
    """

    place: str
    maps: str
    operator: str
    step: str
    normal: str | None
    psd: str | None
    hops: int | str
    cost: str

    def __post_init__(self) -> None:
        for name in ("normal", "psd"):
            value = getattr(self, name)
            if value is not None and value not in WHEN:
                raise ValueError(
                    f"`{name}` must be one of {', '.join(WHEN)} or None; got {value!r}"
                )
        for item in fields(self):
            if "|" in str(getattr(self, item.name)):  # it would end a cell of a table
                raise ValueError(
                    f"`{item.name}` must not hold '|'; got {getattr(self, item.name)!r}"
                )

    def count_hops(self, settings: Any) -> int:
        """How far a layer of a network with these settings reaches."""
        return self.hops if isinstance(self.hops, int) else int(getattr(settings, self.hops))


def sheaf_systems(models: Mapping[str, ModelInfo] | None = None) -> dict[str, ModelInfo]:
    """The models that say how they are related, in the order of the registry."""
    if models is None:
        from coopsheaf.models.registry import MODELS

        models = MODELS
    return {name: info for name, info in models.items() if info.kinship is not None}
