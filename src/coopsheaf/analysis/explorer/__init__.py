"""One page that shows what a trained network does on its graph: :func:`explore`.

The page is a single HTML file that needs neither network nor server. Its parts, from the data up:

* :mod:`~coopsheaf.analysis.explorer.adjacency`, :mod:`~coopsheaf.analysis.explorer.grid`,
  :mod:`~coopsheaf.analysis.explorer.force` and :mod:`~coopsheaf.analysis.explorer.layout` find
  positions;
* :mod:`~coopsheaf.analysis.explorer.neighbourhood` chooses what is shown of a large graph;
* :mod:`~coopsheaf.analysis.explorer.reading` asks the network;
* :mod:`~coopsheaf.analysis.explorer.content` writes it down as plain values and arrays;
* :mod:`~coopsheaf.analysis.explorer.page` makes the file, of ``page.html``, ``style.css`` and the
  scripts in ``script/``.
"""

from coopsheaf.analysis.explorer.build import Exploration, explore

__all__ = ["Exploration", "explore"]
