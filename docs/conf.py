"""How Sphinx builds the documentation: ``make docs``. No page is fetched, and a warning is an error."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pygments.lexers.python import PythonLexer
from pygments.token import Keyword

if TYPE_CHECKING:
    from sphinx.application import Sphinx

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from matnb.version import VERSION  # noqa: E402  found by the line above

# What runs while pages are built says the same every time, as in a report.
os.environ.update(
    MATNB_DISPLAY="static",
    MATNB_REBALANCE="entries",
    MATNB_COMPILE="off",
    MATNB_WORKERS="2",
    MATNB_THREADS="1",
    PYTHONHASHSEED="0",
    PYTHONPATH=os.pathsep.join([str(HERE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]),
)

project = "matnb"
author = "the matnb authors"
version = release = VERSION
html_title = "matnb"

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.intersphinx",
    "myst_nb",
    "sphinx_copybutton",
    "sphinx_design",
    "references",
    "generated",
]
exclude_patterns = ["site", "pictures"]
source_suffix = {".rst": "restructuredtext", ".md": "myst-nb", ".ipynb": "myst-nb"}

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "auto"
nb_execution_excludepatterns = ["gallery/*"]  # they come with their outputs
nb_execution_timeout = 120
nb_execution_raise_on_error = True
nb_merge_streams = True
nb_render_markdown_format = "myst"  # CommonMark has no tables

autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_member_order = "groupwise"
autodoc_typehints = "none"  # docstrings say in words what is taken
maximum_signature_line_length = 88
add_module_names = False
suppress_warnings = ["ref.python"]  # a plain word such as `labels` that is an attribute of several classes
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True  # attributes that a class also defines are described once
napoleon_use_admonition_for_examples = False

# Inventories, where somebody put them, give exact links; `references.py` makes the others by rule.
_SITES = {
    "python": "https://docs.python.org/3",
    "numpy": "https://numpy.org/doc/stable",
    "scipy": "https://docs.scipy.org/doc/scipy",
    "dask": "https://docs.dask.org/en/stable",
    "distributed": "https://distributed.dask.org/en/stable",
    "sklearn": "https://scikit-learn.org/stable",
}
intersphinx_mapping = {
    name: (site, str(inventory))
    for name, site in _SITES.items()
    if (inventory := HERE / "site" / "inventories" / f"{name}.inv").is_file()
}

templates_path = ["site/templates"]
html_theme = "furo"
html_static_path = ["site"]
html_css_files = ["matnb.css"]
html_copy_source = False
html_search_scorer = str(HERE / "site" / "scorer.js")
html_show_sourcelink = False
html_show_sphinx = False
html_show_copyright = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0a6aa6", "color-brand-content": "#0a6aa6"},
    "dark_css_variables": {"color-brand-primary": "#56a8d8", "color-brand-content": "#56a8d8"},
}
pygments_style = "friendly"
pygments_dark_style = "github-dark"


class CellLexer(PythonLexer):
    """Python with magics. IPython's own lexer leaves what follows ``%%distmat`` plain."""

    name = "Notebook cell"
    aliases: ClassVar[list[str]] = ["ipython3"]
    tokens: ClassVar[dict[str, list[object]]] = {
        **PythonLexer.tokens,
        "root": [(r"^%{1,2}\w.*\n?", Keyword), *PythonLexer.tokens["root"]],
    }


def setup(app: Sphinx) -> None:
    """Let Sphinx color notebook cells by the lexer above."""
    app.add_lexer("ipython3", CellLexer)
