"""The security policy of a page: its own style and script, by their hashes, and nothing else."""

from __future__ import annotations

import base64
import hashlib


def page_policy(style: str, script: str, *, images: bool = False) -> str:
    """A policy that allows one inline style and one inline script.

    Whatever text from the user's data stands on the page can neither run nor load anything.

    Args:
        style, script: exactly what stands between the tags.
        images: also pictures that are written into the page.
    """
    pictures = "img-src data:; " if images else ""
    return (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; "
        f"{pictures}base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    """As a policy names an inline script or style."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
