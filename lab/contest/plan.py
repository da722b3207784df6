"""What is searched: leagues of contestants, budgets, spaces and draws. Imports no PyTorch.

Everything here is settled before anything runs. A trial of a contestant is a number k. The settings
that networks share (rate, decay, dropouts, width, depth, norm) are drawn from one space with a
generator that knows k and nothing of the contestant, so that trial k is the same for all that have
them; the few that a network has for itself are drawn with a generator of its own. A budget takes
the first trials: a smaller one is a part of a larger one.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache

from coopsheaf.models.registry import find_model
from coopsheaf.train.recipe import Recipe, default_recipe
from coopsheaf.train.recipes import load_recipe, recipe_names

SEED = 2026
PUBLISHED = -1  # the trial that is no trial: the packaged recipe, which is in no search
MOST_TRIALS, BLOCK = 20, 12

Value = bool | int | float | str
Values = tuple[Value, ...]
# The one space of what networks share; a setting that a network does not have is not set.
SHARED: dict[str, Values] = {
    "train.lr": (3e-3, 1e-2, 3e-2),
    "train.weight_decay": (0.0, 1e-5, 5e-4, 5e-3),
    "model.dropout": (0.0, 0.2, 0.5, 0.7),
    "model.input_dropout": (0.0, 0.2, 0.5),
    "width": (16, 32, 64),
    "model.num_layers": (1, 2, 3, 4),
    "model.norm": ("none", "layer", "batch"),
}
# No two trials agree in these, which every network has.
APART = ("train.lr", "train.weight_decay", "width", "model.num_layers")
# The same for all: nothing of it is searched.
PROTOCOL = ("train.optimizer=adam", "train.epochs=300", "train.patience=60")
DIRECTED = ("chameleon-directed", "squirrel-directed")
# Pages of these files link to themselves, which several networks refuse: nobody gets those links.
DATA = dict.fromkeys(DIRECTED, ("data.self_loops=remove",))


@dataclass(frozen=True)
class Contestant:
    """A network with what is settled of it, and what it has to choose from beside the shared space.

    Args:
        name: what it is called here.
        model: its name in the registry.
        own: its own settings, and what else takes the place of a shared one.
        fixed: what is set, as a user types it.
        csnn: whether it is CSNN or one of its options; controls without learned maps or without
            directions are rivals.
        without: what is drawn of its own settings and its network does not have.
    """

    name: str
    model: str
    own: Mapping[str, Values] = field(default_factory=dict)
    fixed: tuple[str, ...] = ()
    csnn: bool = False
    without: tuple[str, ...] = ()

    def settings(self, trial: int) -> tuple[str, ...]:
        """The settings of a trial, as a user types them; the same for every data set."""
        has = {item.name for item in fields(find_model(self.model).settings())}
        drawn = {**shared_draws()[trial], **self._own(trial)}
        width = int(drawn.pop("width"))
        stalk = int(drawn.get("model.stalk_dim", 1)) if self._is_sheaf else 1
        drawn["model.hidden_channels"] = max(1, width // stalk)
        if drawn["model.norm"] == "none" and self._needs_norm:
            del drawn["model.norm"]
        kept = {k: v for k, v in drawn.items() if _section(k) != "model" or _name(k) in has}
        return (*PROTOCOL, *(f"{key}={_spell(value)}" for key, value in kept.items()), *self.fixed)

    @property
    def choices(self) -> dict[str, Values]:
        """What it chooses from, of its own settings."""
        return {key: values for key, values in self.own.items() if key not in self.without}

    def recipe(self, trial: int, dataset: str) -> Recipe:
        """The recipe of a trial on a data set."""
        of = load_recipe(f"{self.model}/{dataset}") if trial == PUBLISHED else None
        return (of or default_recipe(self.model, dataset)).set(*self.assignments(trial, dataset))

    def assignments(self, trial: int, dataset: str) -> tuple[str, ...]:
        """All that is set in the recipe of a trial, as a user types it."""
        own = self.fixed if trial == PUBLISHED else self.settings(trial)
        return (*DATA.get(dataset, ()), *own)

    def has_published(self, dataset: str) -> bool:
        return not self.fixed and f"{self.model}/{dataset}" in _published()

    def _own(self, trial: int) -> dict[str, Value]:
        rng = random.Random(f"{SEED}/own/{self.name}/{trial}")
        return {key: rng.choice(values) for key, values in self.own.items()}

    @property
    def _is_sheaf(self) -> bool:
        """Whether a node has stalk_dim · hidden_channels numbers; of BuNN it has the latter."""
        return "model.stalk_dim" in self.own and self.model != "bunn"

    @property
    def _needs_norm(self) -> bool:
        """Whether a network cannot do without; then no norm is its own default."""
        return getattr(find_model(self.model).settings(), "norm", None) is not None


@dataclass(frozen=True)
class Budget:
    """How much is searched on a data set, by everybody.

    Args:
        trials: the first so many.
        search: splits whose mean validation score chooses.
        final: splits of the chosen trial.
        takes_over: data whose chosen trials are taken; nothing is searched then.
    """

    trials: int
    search: tuple[int, ...]
    final: tuple[int, ...]
    takes_over: str = ""


@dataclass(frozen=True)
class League:
    """Who competes on which data.

    Args:
        name: of the folder of its records.
        about: a line.
        contestants: by name.
        budgets: by data set.
        published: whether packaged recipes are run beside the search.
    """

    name: str
    about: str
    contestants: Mapping[str, Contestant]
    budgets: Mapping[str, Budget]
    published: bool = False


@cache
def shared_draws() -> tuple[Mapping[str, Value], ...]:
    """The shared settings of every trial, in the order of trials.

    In every block of twelve each value of a setting comes equally often, in a drawn order: a dozen
    trials see the whole range of everything.
    """
    rng = random.Random(f"{SEED}/shared")
    draws: list[dict[str, Value]] = []
    while len(draws) < MOST_TRIALS:
        block = _block(rng)
        places = {tuple(draw[key] for key in APART) for draw in (*draws, *block)}
        if len(places) == len(draws) + len(block):
            draws += block
    return tuple(draws[:MOST_TRIALS])


def _block(rng: random.Random) -> list[dict[str, Value]]:
    columns = {key: list(values) * (BLOCK // len(values)) for key, values in SHARED.items()}
    for column in columns.values():
        rng.shuffle(column)
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


@cache
def _published() -> frozenset[str]:
    return frozenset(recipe_names())


def _section(key: str) -> str:
    return key.partition(".")[0]


def _name(key: str) -> str:
    return key.partition(".")[2]


def _spell(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


_STALK: dict[str, Values] = {"model.stalk_dim": (2, 3, 4)}
_DECAY: dict[str, Values] = {"train.map_weight_decay": ("none", 1e-3, 1e-2)}
_ENDS: dict[str, Values] = {"model.add_lp": (False, True)}
_MAPS: dict[str, Values] = {"model.maps": ("diagonal", "orthogonal", "general")}
_START: dict[str, Values] = {"model.map_start": ("random", "equal")}
_NSD = {**_STALK, **_DECAY, **_ENDS}
_CSNN = {**_STALK, **_DECAY, **_START}

CSNN = (
    Contestant("csnn", "csnn", _CSNN, csnn=True),
    Contestant("csnn-messages", "csnn", _CSNN, ("model.semantics=messages",), csnn=True),
    Contestant("csnn-released", "csnn", _CSNN, ("model.semantics=released",), csnn=True),
    Contestant("csnn-identity", "csnn-identity", _STALK),
    Contestant(
        "csnn-rows",
        "csnn",
        _CSNN,
        ("model.semantics=messages", "model.structure=rows"),
        csnn=True,
    ),
    Contestant(
        "csnn-block",
        "csnn",
        _CSNN,
        ("model.semantics=messages", "model.block=prenorm"),
        csnn=True,
    ),
)
PLAIN = (
    Contestant("mlp", "mlp"),
    Contestant("gcn", "gcn"),
    Contestant("sage", "sage"),
    Contestant("gat-sep", "gat-sep"),
    Contestant("gt-sep", "gt-sep"),
)
NSD = (
    Contestant("nsd-diag", "nsd-diag", _NSD),
    Contestant("nsd-orthogonal", "nsd-orthogonal", _NSD),
    Contestant("nsd-general", "nsd-general", _NSD),
)
OTHERS = (
    Contestant("bunn", "bunn", {"model.num_bundles": (2, 4, 8), "model.tau": (0.5, 1.0, 2.0)}),
    Contestant(
        "cognn", "cognn", {"model.environment": ("mean", "sum"), "model.skip": (False, True)}
    ),
    Contestant("linkx", "linkx"),
    Contestant(
        "gcnii",
        "gcnii",
        {
            "model.num_layers": (2, 4, 8, 16),
            "model.alpha": (0.1, 0.3, 0.5),
            "model.theta": (0.5, 1.0, 1.5),
        },
    ),
    Contestant("acm-gcn", "acm-gcn"),
    Contestant("h2gcn", "h2gcn"),
)
FAMILY = (
    Contestant("conn-nsd", "conn-nsd", {**_STALK, **_ENDS}),
    Contestant(
        "nlsd",
        "nlsd",
        {**_NSD, "model.phi": ("mlp", "bounded-confidence")},
        without=tuple(_ENDS),
    ),
    Contestant("quiver-nsd", "quiver-nsd", {**_NSD, **_MAPS}),
    Contestant("dsnn", "dsnn", {**_NSD, "model.q": (0.05, 0.15, 0.25)}),
    Contestant("polynsd", "polynsd", {**_NSD, "model.num_hops": (2, 5, 10)}),
    Contestant("dnsd", "dnsd", {**_STALK, "model.operator": ("adjacency", "laplacian")}),
    Contestant("nsp", "nsp", _NSD),
    Contestant("onda", "onda", {**_NSD, "model.num_steps": (2, 4)}),
    Contestant(
        "onda-directional", "onda-directional", {**_STALK, **_DECAY, "model.num_steps": (2, 4)}
    ),
    Contestant(
        "sheaf-attention",
        "sheaf-attention",
        {**_NSD, "model.residual": (False, True)},
        without=tuple(_ENDS),
    ),
    Contestant("copresheaf", "copresheaf", {"model.maps": ("fc", "spd", "diagonal")}),
    Contestant("jdsnn", "jdsnn", {**_STALK, **_DECAY, "model.map_step": (0.25, 0.5, 1.0)}),
    Contestant("risnn", "risnn", {**_STALK, **_DECAY, **_MAPS}),
    Contestant("isn", "isn", {**_STALK, **_ENDS}),
)
# Nothing of their maps is learned: they are drawn, or learners stay as they were drawn.
CONTROLS = (
    Contestant("csnn-random", "csnn-random", _STALK),
    Contestant("nsd-random", "nsd-random", {**_STALK, **_ENDS}),
    Contestant("conn-nsd-edge-random", "conn-nsd-edge-random", {**_STALK, **_ENDS}),
    Contestant("conn-nsd-node-random", "conn-nsd-node-random", {**_STALK, **_ENDS}),
)
_BOTH_WAYS = Contestant("csnn-both-ways", "csnn", _CSNN, ("data.direction=undirected",))

_ALL, _THREE, _FIVE = tuple(range(10)), (0, 1, 2), tuple(range(5))
_WHOLE, _SOME = Budget(20, _ALL, _ALL), Budget(12, _THREE, _ALL)
WEB = ("texas", "wisconsin", "cornell", "cornell-corrected")
WIKIPEDIA = ("film", "chameleon", "squirrel")
COMMUNITIES = tuple(f"directed-communities-{percent}" for percent in (0, 25, 50, 75, 100))


def _league(name: str, about: str, *groups: tuple[Contestant, ...], **options: object) -> League:
    contestants = {one.name: one for group in groups for one in group}
    return League(name, about, contestants, **options)  # type: ignore[arg-type]


LEAGUES: dict[str, League] = {
    league.name: league
    for league in (
        _league(
            "heterophily",
            "CSNN, its options, and its rivals on heterophilic graphs",
            CSNN,
            PLAIN,
            NSD,
            OTHERS,
            budgets={
                **dict.fromkeys(WEB, _WHOLE),
                "reed98": Budget(20, _FIVE, _FIVE),
                **dict.fromkeys(WIKIPEDIA, _SOME),
                "amherst41": Budget(12, _THREE, _FIVE),
                "johns-hopkins55": Budget(12, _THREE, _FIVE),
                "cornell5": Budget(12, _THREE, _FIVE, takes_over="johns-hopkins55"),
                "minesweeper": Budget(4, (0,), _THREE),
                "tolokers": Budget(4, (0,), _THREE),
            },
        ),
        _league(
            "sheaves",
            "CSNN, the family of sheaf networks, controls, and two networks without a sheaf",
            CSNN[:4],
            FAMILY,
            CONTROLS,
            NSD,
            PLAIN[:2],
            budgets=dict.fromkeys((*WEB, *WIKIPEDIA, *DIRECTED), _SOME),
            published=True,
        ),
        _league(
            "directions",
            "communities whose arcs tell the class by direction, by homophily, or by some of both",
            (CSNN[0], CSNN[1], CSNN[3], _BOTH_WAYS),
            tuple(one for one in FAMILY if one.name in ("dsnn", "quiver-nsd")),
            (NSD[1], *PLAIN[:2]),
            budgets=dict.fromkeys(COMMUNITIES, _SOME),
        ),
    )
}
