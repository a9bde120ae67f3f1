"""Links from the reference to NumPy, SciPy, scikit-learn and Dask, made without their inventories."""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from docutils.nodes import Element, reference
    from sphinx.addnodes import pending_xref
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

# Each of these sites has a page for every public function and class, under its full name.
PAGES = {
    "numpy": "https://numpy.org/doc/stable/reference/generated/{name}.html",
    "scipy": "https://docs.scipy.org/doc/scipy/reference/generated/{name}.html",
    "sklearn": "https://scikit-learn.org/stable/modules/generated/{name}.html",
    "dask": "https://docs.dask.org/en/stable/generated/{name}.html",
}
# Rooms of matnb, and where others have the same names.
COUNTERPARTS = {
    "matnb.linalg": ("scipy.sparse.linalg", "scipy.linalg", "numpy.linalg"),
    "matnb.learn": ("sklearn.cluster", "sklearn.decomposition", "sklearn.linear_model", "sklearn.manifold",
                    "sklearn.neighbors"),
    "matnb": ("numpy",),
}  # fmt: skip


@cache
def page_of(name: str) -> str | None:
    """Return the address of the page about a public name of another library, or None.

    Parameters
    ----------
    name
        Its full name, such as "numpy.linalg.norm".
    """
    library = name.partition(".")[0]
    if library not in PAGES:
        return None
    return PAGES[library].format(name=name) if _there(name) else None


def _there(name: str) -> bool:
    # The name is looked up, so that no link leads to a page that cannot be.
    module, *attributes = name.split(".")
    found = importlib.import_module(module)
    for place, attribute in enumerate(attributes, start=2):
        if not hasattr(found, attribute):
            try:
                importlib.import_module(".".join(name.split(".")[:place]))
            except ImportError:
                return False
        found = getattr(found, attribute)
    return callable(found) or bool(attributes)


def counterpart(name: str) -> str | None:
    """Return the full name of what another library has under the same name, or None."""
    for room, libraries in COUNTERPARTS.items():
        head, _, last = name.rpartition(".")
        if head == room:
            return next((f"{one}.{last}" for one in libraries if page_of(f"{one}.{last}")), None)
    return None


def setup(app: Sphinx) -> dict[str, bool]:
    """Have unknown references looked up, and docstrings name their counterparts."""
    app.connect("missing-reference", _resolve)
    app.connect("autodoc-process-docstring", _name_counterpart, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _resolve(app: Sphinx, env: BuildEnvironment, node: pending_xref, text: Element) -> reference | None:
    from docutils.nodes import reference

    address = page_of(str(node.get("reftarget", ""))) if node.get("refdomain") == "py" else None
    return reference("", "", text, internal=False, refuri=address) if address else None


def _name_counterpart(
    app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    if what in ("function", "class") and (other := counterpart(name)):
        role = "class" if what == "class" else "func"
        lines += ["", f".. seealso:: :py:{role}:`{other}`"]
