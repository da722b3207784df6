"""The user's columns: which features of a network belong to each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from coopsheaf.checks import check_int
from coopsheaf.data.messages import show, show_list

if TYPE_CHECKING:
    from coopsheaf.data.tables.columns.encoding import FeatureEncoder
    from coopsheaf.train.run import Run


@dataclass(frozen=True, eq=False)
class Columns:
    """How F features are shared out among k columns.

    A number of a table becomes one feature, a category as many as it has values, a date five or
    more: what is said of features is *folded* to the columns, which are what people know.

    Args:
        names: of the k columns.
        place: ``(F,)``, the number of the column that each feature belongs to.
        encoder: what made the features, if known: it can say what a cell was.
    """

    names: tuple[str, ...]
    place: Tensor
    encoder: FeatureEncoder | None = None

    def __post_init__(self) -> None:
        place, count = self.place, len(self.names)
        if place.dtype != torch.int64 or place.dim() != 1:
            raise ValueError(
                "`place` must be an int64 tensor of shape (F,), a column for each feature; "
                f"got {place.dtype} of shape {tuple(place.shape)}"
            )
        outside = place[(place < 0) | (place >= count)]
        if len(outside):
            raise ValueError(
                f"`place` must hold numbers of the {count} columns; got {int(outside[0])}"
            )

    @classmethod
    def of(cls, encoder: FeatureEncoder) -> Columns:
        """The columns that an encoder was fitted to."""
        if not encoder.columns:  # every node has the constant feature 1
            return cls(encoder.feature_names, torch.zeros(1, dtype=torch.int64))
        widths = torch.tensor([column.width for column in encoder.columns])
        return cls(encoder.names, torch.arange(len(widths)).repeat_interleave(widths), encoder)

    @classmethod
    def each(cls, num_features: int) -> Columns:
        """Every feature by itself: ``x[0]``, ``x[1]`` and so on."""
        check_int("num_features", num_features, minimum=0)
        names = tuple(f"x[{number}]" for number in range(num_features))
        return cls(names, torch.arange(num_features))

    @classmethod
    def of_run(cls, run: Run) -> Columns:
        """Those of the tables that a run was trained on; otherwise every feature by itself."""
        from coopsheaf.train.data import table_schema  # explanations need no run

        if run.info.get("tables") is None:
            return cls.each(run.info["in_channels"])
        return cls.of(table_schema(run).encoder)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def num_features(self) -> int:
        return len(self.place)

    def check(self, num_features: int) -> Columns:
        """These columns, if they are those of so many features."""
        if self.num_features != num_features:
            raise ValueError(
                f"`columns` must be those of the {num_features} features of `x`; got columns of "
                f"{self.num_features}"
            )
        return self

    def fold(self, values: Tensor) -> Tensor:
        """Sums over the features of each column: from ``(n, F)`` to ``(n, k)``."""
        total = values.new_zeros(len(values), len(self))
        return total.index_add(1, self.place.to(values.device), values)

    def features(self, column: int) -> Tensor:
        """The numbers of the features of a column, ``(w,)``."""
        return (self.place == column).nonzero().squeeze(1)

    def spell(self, column: int, row: Tensor) -> str:
        """What stands in a column of a node with the features ``row (F,)``; empty if not known.

        As the network sees it: what was a gap, an unknown category or a mean is that.
        """
        part = row[self.features(column).to(row.device)]
        if self.encoder is not None:
            return self.encoder.columns[column].spell(part.float().cpu().numpy())
        return f"{float(part[0]):.4g}" if len(part) == 1 else ""

    def find(self, names: Sequence[str]) -> list[int]:
        """The numbers of columns that are given by name."""
        known = {name: number for number, name in enumerate(self.names)}
        for name in names:
            if name not in known:
                raise ValueError(
                    f"`columns` must be names of columns, {show_list(self.names)}; got {show(name)}"
                )
        return [known[name] for name in names]
