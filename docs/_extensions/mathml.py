"""Equations as MathML, which browsers draw themselves: no script, no fonts, no network."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util import logging

log = logging.getLogger(__name__)


def to_mathml(node: nodes.Node, latex: str, display: str) -> str:
    """LaTeX as MathML; a command that the converter does not know is a warning."""
    mathml = convert(latex, display=display)
    if "\\" in mathml or "<mi>&</mi>" in mathml:
        log.warning("cannot be written as MathML: %s", latex, location=node)
    return mathml


def visit_math(translator: Any, node: nodes.math) -> None:
    translator.body.append(to_mathml(node, node.astext(), "inline"))
    raise nodes.SkipNode


def visit_displaymath(translator: Any, node: nodes.math_block) -> None:
    latex = node.astext()
    if "&" in latex or r"\\" in latex:
        latex = rf"\begin{{split}} {latex} \end{{split}}"
    translator.body.append(f'<div class="math">{to_mathml(node, latex, "block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_displaymath, None))
    return {"parallel_read_safe": True}
