"""Equations as MathML, which browsers draw themselves: no script, no fonts, no network."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx


def visit_math(translator: Any, node: nodes.math) -> None:
    translator.body.append(convert(node.astext()))
    raise nodes.SkipNode


def visit_displaymath(translator: Any, node: nodes.math_block) -> None:
    latex = node.astext()
    if "&" in latex or r"\\" in latex:
        latex = rf"\begin{{aligned}} {latex} \end{{aligned}}"
    translator.body.append(f'<div class="math">{convert(latex, display="block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_displaymath, None))
    return {"parallel_read_safe": True}
