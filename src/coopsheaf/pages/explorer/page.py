"""The page as one file: markup, style, scripts and data, and nothing from anywhere else."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from functools import lru_cache
from importlib.resources import files
from typing import Any

from coopsheaf.pages.explorer.packing import to_script

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
    "details",
    "panels",
    "search",
    "controls",
    "state",
    "scene",
    "drawing",
    "legend",
    "main",
)
_HERE = "coopsheaf.pages.explorer"


def render(content: dict[str, Any]) -> str:
    """The page of what :func:`~coopsheaf.pages.explorer.content.compose` returned.

    Its security policy names the one script and the one style by their hashes and forbids the
    rest, all connections included: text from the user's data can neither run nor load anything.
    """
    style, script = _style(), _script()
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    parts = {
        "policy": policy,
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


def _hash(text: str) -> str:
    """As a content security policy names an inline script or style."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"
