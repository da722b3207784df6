"""References that lead somewhere: to files of the repository, and to names by any of their paths.

* A relative link to a file outside of ``docs/`` works in a checkout; on the site it leads to the
  repository. One to a file that is not there is a warning.
* ``:class:`~coopsheaf.Graph``` finds the class wherever it is described. A name of ours that does
  not exist is a warning; one that is no part of the reference, and other people's, are plain text.
* Fields of named tuples, which have no docstring of their own, are left out.
* A page that would fetch anything from another host is a warning.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

log = logging.getLogger(__name__)
REPOSITORY = "https://github.com/coopsheaf/coopsheaf/blob/main/"
_OUTSIDE = re.compile(r"\]\(((?:\.\./)+[^)#\s]+)(#[^)\s]*)?\)")
_FETCHES = re.compile(
    r"""<(?:script|link|img|iframe|source)[^>]*\s(?:src|href)=["'](https?://[^"']+)"""
)


def link_to_repository(app: Sphinx, name: str, source: list[str]) -> None:
    """Links out of ``docs/`` become links to the repository."""
    root, here = Path(app.srcdir).parent, Path(app.env.doc2path(name)).parent

    def change(found: re.Match[str]) -> str:
        target = (here / found[1]).resolve()
        if target.is_relative_to(app.srcdir):
            return found[0]
        if not target.exists():
            log.warning("link to %s, which is not there", found[1], location=name)
        return f"]({REPOSITORY}{target.relative_to(root).as_posix()}{found[2] or ''})"

    source[0] = _OUTSIDE.sub(change, source[0])


def find_description(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.TextElement
) -> nodes.Element | None:
    """What a Python name means, by the place where it is defined."""
    target = node.get("reftarget", "")
    if node.get("refdomain") != "py":
        return None
    own = [_home(prefix + target) for prefix in ("", f"{node.get('py:module')}.")]
    domain: Any = env.domains["py"]
    for home in filter(None, own):
        last = home.rpartition(".")[2]
        for name in domain.objects:
            if name.rpartition(".")[2] == last and _home(name) == home:
                kind = "mod" if node["reftype"] == "mod" else "obj"
                where = (env, node["refdoc"], app.builder)
                return domain.resolve_xref(*where, kind, name, node, content)
    if target.startswith("coopsheaf") and not any(own):
        log.warning("there is no %s", target, location=node)
    return None


def _home(name: str) -> str | None:
    """``coopsheaf.Graph`` is ``coopsheaf.sheaves.graph.Graph``."""
    parts = name.split(".")
    if parts[0] != "coopsheaf":
        return None
    for length in range(len(parts), 0, -1):
        try:
            value: Any = import_module(".".join(parts[:length]))
        except ImportError:
            continue
        try:
            for part in parts[length:]:
                value = getattr(value, part)
        except AttributeError:
            return None
        module, qualname = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
        return f"{module}.{qualname}" if module and qualname else name
    return None


def skip_fields(
    app: Sphinx, what: str, name: str, member: Any, skip: bool, options: Any
) -> bool | None:
    """The fields of a named tuple are said in its signature; they have no words of their own."""
    doc = getattr(member, "__doc__", None) or ""
    return True if doc.startswith("Alias for field number") else None


def check_self_contained(app: Sphinx, error: Exception | None) -> None:
    """Nothing may be fetched from elsewhere when a page is opened."""
    if error is not None or app.builder.format != "html":
        return
    for page in Path(app.outdir).rglob("*.html"):
        for address in _FETCHES.findall(page.read_text("utf-8")):
            log.warning("%s would fetch %s", page.relative_to(app.outdir), address)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("source-read", link_to_repository, priority=400)
    app.connect("missing-reference", find_description)
    app.connect("autodoc-skip-member", skip_fields)
    app.connect("build-finished", check_self_contained)
    return {"parallel_read_safe": True}
