"""What reading tables decided, kept so that later tables are read the same way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from coopsheaf.data.errors import DataError
from coopsheaf.data.messages import show
from coopsheaf.data.tables.columns.encoding import FeatureEncoder
from coopsheaf.data.tables.options import DUPLICATES, SELF_LOOPS, TABLE_TASKS
from coopsheaf.data.tables.targets.reader import TargetReader

_TEXTS = ("id", "source", "edge_target", "weight", "time", "graph")
_CHOICES = {"self_loops": SELF_LOOPS, "duplicates": DUPLICATES, "task": TABLE_TASKS}


@dataclass(frozen=True)
class TableSchema:
    """Roles by name and fitted encoders.

    Args:
        encoder: the columns of features.
        targets: the columns of targets; ``None`` where edges are predicted.
        task: of the dataset.
        id: column of node ids.
        source, edge_target: columns of the ends of edges.
        weight, time, graph: columns with these roles, if there are any.
        edge_encoder: the columns of edge features, if there are any.
        parts: the columns that say the split.
        undirected, self_loops, duplicates: what is done to the edges.
    """

    encoder: FeatureEncoder
    targets: TargetReader | None
    task: str
    id: str
    source: str
    edge_target: str
    weight: str | None = None
    time: str | None = None
    graph: str | None = None
    edge_encoder: FeatureEncoder | None = None
    parts: tuple[str, ...] = ()
    undirected: bool = False
    self_loops: str = "keep"
    duplicates: str = "keep"

    @property
    def edge_features(self) -> tuple[str, ...]:
        return () if self.edge_encoder is None else self.edge_encoder.names

    def to_json(self) -> dict[str, Any]:
        """Plain values without the encoder of features, which a run keeps beside them."""
        values: dict[str, Any] = {name: getattr(self, name) for name in (*_TEXTS, *_CHOICES)}
        return values | {
            "undirected": self.undirected,
            "parts": list(self.parts),
            "targets": None if self.targets is None else self.targets.to_json(),
            "edge_encoder": None if self.edge_encoder is None else self.edge_encoder.to_json(),
        }

    @classmethod
    def from_json(cls, stored: object, encoder: object) -> TableSchema:
        """Restore what :meth:`to_json` returned; every field is checked."""
        values = _checked(stored)
        targets, edges = values["targets"], values["edge_encoder"]
        reader = None if targets is None else TargetReader.from_json(targets)
        if values["task"] != ("link" if reader is None else reader.task):
            raise DataError(f"stored tables must have the targets of their task, {values['task']}")
        return cls(
            encoder=FeatureEncoder.from_json(encoder),
            targets=reader,
            edge_encoder=None if edges is None else FeatureEncoder.from_json(edges),
            parts=tuple(values["parts"]),
            undirected=values["undirected"],
            **{name: values[name] for name in (*_TEXTS, *_CHOICES)},
        )


def _checked(stored: object) -> Mapping[str, Any]:
    if not isinstance(stored, Mapping):
        raise DataError(f"stored tables must be an object of settings; got {show(str(stored), 80)}")
    fits = {name: name in stored and _is_text(stored[name], optional=True) for name in _TEXTS}
    for name in ("id", "source", "edge_target"):
        fits[name] = _is_text(stored.get(name))
    for name, choices in _CHOICES.items():
        fits[name] = isinstance(stored.get(name), str) and stored[name] in choices
    parts = stored.get("parts")
    fits["parts"] = isinstance(parts, list) and all(map(_is_text, parts))
    fits["undirected"] = isinstance(stored.get("undirected"), bool)
    for name in ("targets", "edge_encoder"):
        fits[name] = name in stored and (stored[name] is None or isinstance(stored[name], dict))
    for name, right in fits.items():
        if not right:
            raise DataError(
                f"stored tables must say how columns were used; {name} cannot be "
                f"{show(str(stored.get(name)), 80)}"
            )
    return stored


def _is_text(value: object, *, optional: bool = False) -> bool:
    return isinstance(value, str) or (optional and value is None)
