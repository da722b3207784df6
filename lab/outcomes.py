"""What came of every number that is far from the print, cell by cell. Imports no PyTorch.

An outcome names the run that explains the distance, or a fact in the sources of whoever made the
row, or it says that there is no explanation and what was tried. No number stands here: they are in
the tables of runs, and tests hold them against what is said.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    """The outcome for one model on one data set.

    Args:
        text: the reason, or what was tried.
        run: the run that explains it, by what it has set otherwise than the recipe, or by the name
            of the network that made the row.
        fact: the text is a fact in the authors' sources.
    """

    text: str
    run: str = ""
    fact: bool = False

    @property
    def is_explained(self) -> bool:
        return self.fact or self.run != ""

    def __str__(self) -> str:
        return f"{'explained' if self.is_explained else 'not explained'}: {self.text}"


_STAR = Outcome("the print is the better of two forms, and is the other one", "gcnii-star")
_WIDTH = Outcome(
    "the print is of width 64 or 192; with 192 it is there", "model.hidden_channels=192"
)
_EPS = Outcome("a row of unknown origin and ε; with a larger one it is there", "model.eps=0.9")
_NSD = Outcome(
    "no settings are published for film; those for wisconsin, which validation prefers to what a "
    "search found on texas, leave this distance; film itself was not searched"
)
_CSNN = Outcome(
    "no settings are published; features, order, direction, selection and searches of several "
    "spaces were tried"
)

_DEPTH = "the print is the best of six depths, and is not of two layers"

OUTCOMES: dict[str, dict[str, Outcome]] = {
    "gcnii": {"texas": _STAR, "wisconsin": _STAR},
    "mixhop": {
        "texas": _WIDTH,
        "wisconsin": _WIDTH,
        "cornell": _WIDTH,
        "film": Outcome(
            "the other width is no nearer on the splits that were run; a constant rate is, which "
            "the row is not of"
        ),
    },
    "fagcn": {"texas": _EPS, "wisconsin": _EPS, "cornell": _EPS},
    "pairnorm": {
        "texas": Outcome(_DEPTH, "model.num_layers=8"),
        "wisconsin": Outcome(_DEPTH, "model.num_layers=4"),
        "cornell": Outcome(
            "the print is the best of six depths; of those that were run validation hardly tells "
            "4 and 8 layers apart and chooses 4, still below the print, where 8 are at it"
        ),
        "film": Outcome("deeper ones are further away, on validation as on test"),
    },
    "h2gcn": {
        "wisconsin": Outcome(
            "one of 16 configurations; validation hardly tells those that were run apart and "
            "chooses one that is below the print, where those of one round are at it"
        )
    },
    "glognn": {
        "wisconsin": Outcome(
            "three runs stop at the first epoch at which the authors' rule can fire, before they "
            "have learned; with twice the window none does. With other seeds they stop soon after",
            "train.patience=400",
        )
    },
    "acm-gcn": {
        "texas": Outcome(
            "its settings are not released; features as they are, the other rates, weight decays "
            "and dropouts of the scripts for its relatives were tried, and what validation "
            "prefers of them is no nearer"
        )
    },
    "sage-plain": {
        "film": Outcome(
            "their features are as they are, which alone is most of the distance; without dropout "
            "and weight decay, as there, it is at the print on the splits that were run, by Adam "
            "as by plain descent",
            fact=True,
        )
    },
    "nsd-orthogonal": {"film": _NSD},
    "nsd-general": {"film": _NSD},
    "csnn": {"wisconsin": _CSNN, "cornell-corrected": _CSNN, "film": _CSNN},
}


def outcome_of(model: str, dataset: str) -> str:
    """The outcome in words; empty if there is none."""
    outcome = OUTCOMES.get(model, {}).get(dataset)
    return "" if outcome is None else str(outcome)
