"""A recipe: which model on which data, trained how. Imports no PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from coopsheaf.checks import did_you_mean
from coopsheaf.config import ConfigError, config_hash, from_mapping, override, to_mapping
from coopsheaf.models.registry import ABSENT, MODELS, find_model
from coopsheaf.train.batches import BatchConfig
from coopsheaf.train.config import AUTO, TrainConfig

CHANGED = ", changed"  # at the end of a recipe's name
DEFAULT = "default"  # the name of a recipe for data without published settings


@dataclass(frozen=True)
class DataConfig:
    """Which data, and what is done to it before a model sees it.

    What is not set is the dataset's own default.

    Args:
        name: a name of the registry; empty for the user's own graph.
        direction: ``"stored"``, ``"reversed"``, ``"undirected"`` or ``"rows"``, which is reversed
            and each edge once.
        self_loops: ``"keep"``, ``"remove"``, ``"add"``, or ``"double"``, which gives those that
            there are twice the weight.
        features: ``"raw"``, ``"row-normalized"`` or ``"standardized"``.
        relations: ``"poincare"``, ``"mds"`` or ``"struc2vec"``: the edges of Geom-GCN's file of
            relations, which a few datasets have.
        pe: ``"rwse"`` or ``"lappe"``: places of nodes, of many graphs.
        bonds: ``"codes"`` or ``"one-hot"``: codes of bonds as features of edges, of molecules.
    """

    name: str = ""
    direction: str | None = None
    self_loops: str | None = None
    features: str | None = None
    relations: str | None = None
    pe: str | None = None
    bonds: str | None = None


@dataclass(frozen=True)
class Recipe:
    """Everything that determines a run, its split aside."""

    model_name: str
    model: Any
    data: DataConfig = field(default_factory=DataConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    name: str = ""
    source: str = ""
    batch: BatchConfig = field(default_factory=BatchConfig)

    def __post_init__(self) -> None:
        find_model(self.model_name)

    @property
    def version(self) -> int:
        """The version of what the model computes."""
        return MODELS[self.model_name].version

    def set(self, *assignments: str) -> Recipe:
        """Override fields: ``section.field=value``, as a user types them.

        Name and source then say so: changed settings are not those that the source vouches for.
        """
        sections = ("model", "data", "train", "batch")
        changed, kept = self, {}
        for assignment in assignments:
            path, equals, text = assignment.partition("=")
            section = path.partition(".")[0]
            if not equals or section not in sections or "." not in path:
                raise ConfigError(
                    f"--set {assignment}: must look like section.field=value, with a section of "
                    f"{', '.join(sections)}{self._meant(path)}"
                )
            changed, kept[path] = override(changed, path, text), assignment
        if not self.name or changed.hash() == self.hash():  # the seed, or what it was
            return changed
        joint = ", " if self.name.endswith(CHANGED) else "; with "
        source = self.source + joint + ", ".join(kept.values())
        return replace(changed, name=self.name.removesuffix(CHANGED) + CHANGED, source=source)

    def _meant(self, name: str) -> str:
        """Of a setting without its section: where it is."""
        paths = find_settings(name.rpartition(".")[2], self.model)
        return f" (did you mean {' or '.join(paths)}?)" if paths else ""

    def to_mapping(self) -> dict[str, Any]:
        """The sections as plain values; :func:`recipe_from_mapping` reads them back."""
        batch = to_mapping(self.batch)
        return {
            "recipe": {"name": self.name, "source": self.source},
            "model": {"name": self.model_name, **to_mapping(self.model)},
            "data": to_mapping(self.data),
            "train": to_mapping(self.train),
            **({"batch": batch} if batch else {}),
        }

    def hash(self) -> str:
        """Names the settings; seed, logger, the recipe's name and its source do not count."""
        others = ("seed", "logger")
        train = {key: value for key, value in to_mapping(self.train).items() if key not in others}
        # Without batches the hash is what it was before there were any.
        batch = [self.batch] if to_mapping(self.batch) else []
        return config_hash(self.model_name, self.model, self.data, train, *batch)


def recipe_from_mapping(values: Mapping[str, Any], where: str) -> Recipe:
    """Read a recipe; every unknown section or key is an error that names it."""
    sections = {"recipe", "model", "data", "train", "batch"}
    for key in values:
        if key not in sections:
            raise ConfigError(
                f"{where}: unknown section [{key}]; there are {', '.join(sorted(sections))}"
            )
        if not isinstance(values[key], Mapping):
            raise ConfigError(f"{where}: [{key}] must be a table of settings; got {values[key]!r}")
    head = dict(values.get("recipe", {}))
    for key in head:
        if key not in ("name", "source"):
            raise ConfigError(f"{where}: unknown setting 'recipe.{key}'; there are name, source")
        if not isinstance(head[key], str):
            raise ConfigError(f"{where}: recipe.{key} must be text; got {head[key]!r}")
    model = dict(values.get("model", {}))
    name = model.pop("name", None)
    if isinstance(name, str) and name in ABSENT and name not in MODELS:
        raise ConfigError(f"{where}: there is no model {name!r} here: {ABSENT[name]}")
    if not isinstance(name, str) or name not in MODELS:
        hint = did_you_mean(name, MODELS)
        raise ConfigError(
            f"{where}: model.name must be one of {', '.join(MODELS)}; got {name!r}{hint}"
        )
    return Recipe(
        name,
        from_mapping(MODELS[name].settings, model, f"{where}: [model]"),
        from_mapping(DataConfig, values.get("data", {}), f"{where}: [data]"),
        from_mapping(TrainConfig, values.get("train", {}), f"{where}: [train]"),
        batch=from_mapping(BatchConfig, values.get("batch", {}), f"{where}: [batch]"),
        **head,
    )


def find_settings(name: str, model: Any = None) -> list[str]:
    """The ``section.field`` of everything that is called ``name``, as a user might type it.

    Args:
        name: of a setting, with ``_`` or ``-``.
        model: settings of a model, to look there as well.
    """
    kinds = {"model": model, "data": DataConfig, "train": TrainConfig, "batch": BatchConfig}
    wanted = name.replace("-", "_").lower()
    return [
        f"{section}.{item.name}"
        for section, kind in kinds.items()
        if kind is not None
        for item in fields(kind)
        if item.name == wanted
    ]


def default_recipe(model_name: str, dataset: str = "") -> Recipe:
    """A model's default settings, for data without a recipe of its own."""
    info = find_model(model_name)
    config = info.settings()
    # Chosen for a first try on a few thousand nodes; wide networks still take minutes.
    known = {item.name for item in fields(config)}
    gentle = {"dropout": 0.2, "num_layers": 2}
    config = replace(config, **{key: value for key, value in gentle.items() if key in known})
    # A dataset that others measure has a protocol, every epoch; one's own data has none.
    every: int | str = 1 if dataset else AUTO
    train = TrainConfig(
        lr=info.default_lr, weight_decay=1e-5, epochs=300, patience=50, eval_every=every
    )
    source = "default of coopsheaf; not tuned"
    return Recipe(model_name, config, DataConfig(dataset), train, name=DEFAULT, source=source)
