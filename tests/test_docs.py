"""The documentation: every public name is in the reference, no link in it is dead, and its code parses."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from counts import PROJECT
from IPython.core.inputtransformer2 import TransformerManager

import matnb as mn

DOCS = PROJECT / "docs"
PAGES = sorted({*DOCS.glob("*.md"), *DOCS.glob("guides/*.md"), *DOCS.glob("api/*.md")})
MADE = ("gallery", "generated")  # folders that a build writes
_LISTED = re.compile(r"currentmodule:: (\S+)\n\n\.\. autosummary::\n(?:   :.*\n)+\n((?:   \w+\n)+)")
_LINK = re.compile(r"\]\(([^)\s]+)\)|^:link: (\S+)$|\{image\} (\S+)", re.MULTILINE)
_CODE = re.compile(r"```(?:\{code-cell\} ipython3|python)\n(.*?)```", re.DOTALL)
_ROLE = re.compile(r"\{py:\w+\}`~?(matnb[\w.]*)`")
ROOMS = {"matnb.lazy.random": mn.random, "matnb": mn, "matnb.graph": mn.graph, "matnb.linalg": mn.linalg,
         "matnb.learn": mn.learn, "matnb.nested": mn.nested, "matnb.sources": mn.sources}  # fmt: skip


def listed() -> dict[str, set[str]]:
    """Return the names in the lists of the reference, by module."""
    found: dict[str, set[str]] = {name: set() for name in ROOMS}
    for page in DOCS.glob("api/*.md"):
        for module, names in _LISTED.findall(page.read_text(encoding="utf-8")):
            found.setdefault(module, set()).update(names.split())
    return found


def public(name: str) -> set[str]:
    """Return the public names of a room, without NumPy's and without other rooms."""
    names = set(dir(mn.random)) if name == "matnb.lazy.random" else set(ROOMS[name].__all__)
    if name == "matnb":
        # Rooms and errors have pages of their own.
        names -= {
            *mn._from_numpy,
            "errors",
            "graph",
            "learn",
            "linalg",
            "nested",
            "random",
            "sources",
            "special",
        }
        names -= {"CellCancelled", "MatnbError"}
    return names - {"models"}


@pytest.mark.parametrize("room", ROOMS)
def test_the_reference_has_every_public_name_and_no_other(room: str):
    assert listed()[room] == public(room)


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_no_link_between_pages_is_dead(page: Path):
    for found in _LINK.finditer(page.read_text(encoding="utf-8")):
        target = next(filter(None, found.groups())).partition("#")[0]
        if not target or "://" in target:
            continue
        path = (page.parent / target).resolve()
        if MADE[0] in path.relative_to(DOCS).parts and path.stem != "index":
            path = PROJECT / "example_notebooks" / path.name
        elif any(folder in path.parts for folder in MADE):
            continue
        assert path.is_file() or path.with_suffix(".md").is_file(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_what_a_page_names_exists_and_its_code_parses(page: Path):
    text = page.read_text(encoding="utf-8")
    for name in _ROLE.findall(text):
        thing = mn
        for part in name.split(".")[1:]:
            thing = getattr(thing, part)
    for code in _CODE.findall(text):
        lines = [line for line in code.splitlines() if not line.startswith((":tags:", "%%"))]
        ast.parse(TransformerManager().transform_cell("\n".join(lines)))
        for name in re.findall(r"\bmn((?:\.\w+)+)\(", code):
            thing = mn
            for part in name.split(".")[1:]:
                thing = getattr(thing, part)


def test_links_to_other_libraries_are_made_for_names_that_are_there():
    code = (
        "from references import counterpart, page_of\n"
        "assert page_of('numpy.linalg.norm') == "
        "'https://numpy.org/doc/stable/reference/generated/numpy.linalg.norm.html'\n"
        "assert page_of('numpy.linalg.gone') is None and page_of('networkx.pagerank') is None\n"
        "assert counterpart('matnb.learn.KMeans') == 'sklearn.cluster.KMeans'\n"
        "assert counterpart('matnb.linalg.eigsh') == 'scipy.sparse.linalg.eigsh'\n"
        "assert counterpart('matnb.learn.ALS') is None and counterpart('matnb.graph.pagerank') is None\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=DOCS, timeout=60)


def test_a_card_of_the_gallery_has_whole_sentences():
    code = (
        "from gallery import shortened\n"
        "assert shortened('One. Two is long. Three.', 17) == 'One. Two is long.'\n"
        "assert shortened('A first that is too long. Two.', 5) == 'A first that is too long.'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=DOCS, timeout=60)
