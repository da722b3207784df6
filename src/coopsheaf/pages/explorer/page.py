"""The page as one file: markup, style, scripts and data, and nothing from anywhere else."""

from __future__ import annotations

import html
import re
from functools import lru_cache
from importlib.resources import files
from typing import Any

from coopsheaf.pages.explorer.packing import to_script
from coopsheaf.pages.policy import page_policy

# In the order in which they need each other.
SCRIPTS = (
    "data",
    "dom",
    "colours",
    "camera",
    "shaders",
    "webgl",
    "canvas",
    "pick",
    "charts",
    "columns",
    "details",
    "panels",
    "search",
    "controls",
    "state",
    "scene",
    "labels",
    "opening",
    "drawing",
    "legend",
    "main",
)
_HERE = "coopsheaf.pages.explorer"


def render(content: dict[str, Any]) -> str:
    """The page of what :func:`~coopsheaf.pages.explorer.content.compose` returned."""
    style, script = _style(), _script()
    parts = {
        "policy": page_policy(style, script, images=True),
        "title": html.escape(f"{content['title']} · coopsheaf"),
        "style": style,
        "data": to_script(content),
        "script": script,
    }
    # In one pass: nothing that is put in is looked at again.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _read("page.html"))


@lru_cache(maxsize=1)
def _style() -> str:
    return "\n" + _read("style.css")


@lru_cache(maxsize=1)
def _script() -> str:
    """All scripts in one scope of their own."""
    body = "\n".join(_read(f"script/{name}.js") for name in SCRIPTS)
    return f'\n(() => {{\n"use strict";\n{body}\n}})();\n'


def _read(name: str) -> str:
    return (files(_HERE) / name).read_text(encoding="utf-8")
