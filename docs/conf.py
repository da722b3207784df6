"""How the documentation is built: ``make docs``."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_extensions"), str(HERE.parent / "src")]

from coopsheaf import __version__  # noqa: E402

WRITTEN = HERE / "_written"  # what tutorials write, see _extensions/executed.py
WRITTEN.mkdir(exist_ok=True)

project = "coopsheaf"
author = "The coopsheaf authors"
copyright = author
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "mathml",
    "executed",
    "references",
]
exclude_patterns = ["_build", WRITTEN.name]

# Markdown: headings can be linked to, as on a code-hosting site.
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]

# Docstrings: sections "Args:", "Shapes:", "Returns:"; packages list what they export.
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_custom_sections = [("Shapes", "returns_style")]
napoleon_use_rtype = False
autodoc_member_order = "alphabetical"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True}
autosummary_generate = False
add_module_names = False
python_use_unqualified_type_names = True
maximum_signature_line_length = 80
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = "coopsheaf"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = [WRITTEN.name]
html_math_renderer = "mathml"
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
pygments_style = "friendly"
pygments_dark_style = "monokai"
