"""One page that shows what a trained network does on its graph: :func:`explore`.

The page is a single HTML file that needs neither network nor server. Its parts, from the data up:

* :mod:`~coopsheaf.pages.explorer.adjacency`, :mod:`~coopsheaf.pages.explorer.grid`,
  :mod:`~coopsheaf.pages.explorer.force` and :mod:`~coopsheaf.pages.explorer.layout` find
  positions;
* :mod:`~coopsheaf.pages.explorer.neighbourhood` chooses what is shown of a large graph;
* :mod:`~coopsheaf.pages.explorer.reading` asks the network, and
  :mod:`~coopsheaf.pages.explorer.reasons` why it says what it says of some nodes;
* :mod:`~coopsheaf.pages.explorer.content` writes it down as plain values and arrays;
* :mod:`~coopsheaf.pages.explorer.page` makes the file, of ``page.html``, ``style.css`` and the
  scripts in ``script/``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coopsheaf.lazy import attach

if TYPE_CHECKING:
    from coopsheaf.pages.explorer.build import Exploration as Exploration
    from coopsheaf.pages.explorer.build import explore as explore

__getattr__, __dir__, __all__ = attach(__name__)
