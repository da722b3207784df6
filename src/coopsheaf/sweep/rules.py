"""Settings that do not matter beside others. Imports no PyTorch.

A sweep does not search them then, so that no two of its points are the same network trained the
same way. The tests train nothing to know: they compare parameters and outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from coopsheaf.train.recipe import Recipe


@dataclass(frozen=True)
class Rule:
    """A setting, and when it is idle.

    Args:
        field: ``section.field``.
        models: whose setting it is; empty for every model's.
        idle: says whether it does not matter, given all other settings.
        when: the same in words.
    """

    field: str
    models: tuple[str, ...]
    idle: Callable[[Recipe], bool]
    when: str

    def holds_for(self, model: str) -> bool:
        return not self.models or model in self.models


_CSNN = ("csnn", "csnn-random")
# One layer has nothing between its input and its output.
_STACKS = ("sage-graph-norm", "sage-node-norm", "sage-projected")

# A rule may look at settings that have no rule, and at those with a rule above it.
RULES = (
    Rule(
        "model.learner_layers",
        _CSNN,
        lambda recipe: recipe.model.learner == "mlp",
        "`learner` is mlp, which always has two",
    ),
    Rule(
        "model.learner_channels",
        _CSNN,
        lambda recipe: recipe.model.learner in _STACKS and recipe.model.learner_layers == 1,
        "`learner` is GraphSAGE of one layer",
    ),
    Rule(
        "model.action_channels",
        ("cognn",),
        lambda recipe: recipe.model.action_layers == 1,
        "`action_layers` is 1",
    ),
    Rule(
        "model.tau",
        ("cognn",),
        lambda recipe: recipe.model.temperature == "learned",
        "`temperature` is learned",
    ),
    Rule(
        "model.tau0",
        ("cognn",),
        lambda recipe: recipe.model.temperature == "fixed",
        "`temperature` is fixed",
    ),
    Rule(
        "model.evaluation_seed",
        ("cognn",),
        lambda recipe: recipe.model.evaluation != "seeded",
        "`evaluation` is not seeded",
    ),
    Rule("model.tau", ("bunn",), lambda recipe: recipe.model.heat == "mean", "`heat` is mean"),
    Rule(
        "model.heat_steps",
        ("bunn",),
        lambda recipe: recipe.model.heat != "taylor",
        "`heat` is not taylor",
    ),
    Rule(
        "model.normalization",
        ("bunn",),
        lambda recipe: recipe.model.heat != "taylor",
        "`heat` is not taylor",
    ),
    Rule(
        "model.num_eigenpairs",
        ("bunn",),
        lambda recipe: recipe.model.heat != "spectral",
        "`heat` is not spectral",
    ),
    Rule(
        "model.tau_init",
        ("bunn",),
        lambda recipe: recipe.model.heat != "spectral",
        "`heat` is not spectral",
    ),
    Rule(
        "train.warmup",
        (),
        lambda recipe: recipe.train.schedule != "cosine",
        "`schedule` is not cosine",
    ),
    *(
        Rule(
            f"train.{name}",
            (),
            lambda recipe: recipe.train.schedule != "plateau",
            "`schedule` is not plateau",
        )
        for name in ("plateau_patience", "plateau_floor")
    ),
    *(
        Rule(
            f"train.{name}",
            (),
            lambda recipe: recipe.train.schedule != "steps",
            "`schedule` is not steps",
        )
        for name in ("step_epochs", "step_fall")
    ),
)
