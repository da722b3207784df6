"""What notebooks show of an object: one small table, and a curve. Imports nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

LONGEST = 200  # letters of a cell
WIDTH, HEIGHT = 240, 48  # of a curve, in pixels


def table_html(title: str, rows: Mapping[str, object], below: str = "") -> str:
    """A table of facts; every text in it is escaped, for it may come from a stranger's file.

    Args:
        title: above the table.
        rows: what each fact is called, and what it is.
        below: HTML to stand below, such as a curve.
    """
    cells = "".join(
        f"<tr><th style='text-align:left'>{_cell(name)}</th>"
        f"<td style='text-align:left'>{_cell(value)}</td></tr>"
        for name, value in rows.items()
    )
    return f"<div><strong>{_cell(title)}</strong><table>{cells}</table>{below}</div>"


def curve_html(name: str, values: Sequence[float]) -> str:
    """A small curve of finite numbers, lowest at the bottom; nothing of fewer than two."""
    points = [value for value in values if value == value and abs(value) < float("inf")]
    if len(points) < 2:
        return ""
    low, high = min(points), max(points)
    span = (high - low) or 1.0
    step = WIDTH / (len(points) - 1)
    line = " ".join(
        f"{i * step:.1f},{HEIGHT - 2 - (HEIGHT - 4) * (value - low) / span:.1f}"
        for i, value in enumerate(points)
    )
    return (
        f"<div>{_cell(name)}: {low:.4g} to {high:.4g}<br>"
        f"<svg width='{WIDTH}' height='{HEIGHT}' role='img' aria-label='{_cell(name)}'>"
        f"<polyline fill='none' stroke='currentColor' points='{line}'/></svg></div>"
    )


def dataset_html(data: Any, sizes: Mapping[str, object], parts: Sequence[int]) -> str:
    """A dataset: its name, so many of what, its task, and the sizes of train, val and test."""
    facts = {"task": data.task, "metric": data.metric, "classes": some(data.class_names)}
    counts = {"train, val, test": ", ".join(map(str, parts))}
    return table_html(data.name, {**sizes, **facts, **counts})


def some(names: Sequence[str], most: int = 8) -> str:
    """The first few of several names."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(str(name)[:LONGEST] for name in names[:most]) + more


def _cell(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    text = text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
    return escape(text, quote=True)
