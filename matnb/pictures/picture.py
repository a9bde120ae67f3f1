"""A picture of a computation: shown in a notebook, printed as a tree, or saved to a file."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from os import PathLike, fspath
from pathlib import Path

from matnb.errors import OptionError
from matnb.pictures.graph import GraphFacts, graph_svg, graph_text


@dataclass(frozen=True)
class Picture:
    """What is computed from what. Made by :func:`matnb.visualize`.

    Examples
    --------
    >>> import matnb as mn
    >>> x = mn.zeros(3)
    >>> print(mn.visualize(x + x, stage="recorded"))
    what was recorded
    e1  add(e0, e0)  (3,) float64, about 24 B, = value
    └─ e0  full  (3,) float64, about 24 B, used 2 times
    """

    facts: GraphFacts

    @property
    def text(self) -> str:
        """Trees, results first."""
        return graph_text(self.facts)

    @property
    def svg(self) -> str:
        """An SVG document for a light or a dark background; hovering over a box tells more of it."""
        return graph_svg(self.facts, is_alone=True)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the picture to a file.

        Parameters
        ----------
        path
            Ends in ``.svg``, or in ``.txt`` for the tree.

        Raises
        ------
        OptionError
            For another ending.
        """
        kinds = {".svg": lambda: self.svg, ".txt": lambda: self.text}
        ending = Path(path).suffix.lower()
        if ending not in kinds:
            raise OptionError(f"a picture is saved as .svg or .txt, not as {fspath(path)!r}")
        Path(path).write_text(f"{kinds[ending]()}\n", encoding="utf-8")

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        title = f'<div style="font-size:12px;opacity:.8;margin:0 0 4px">{escape(self.facts.title)}</div>'
        # A wide one is scrolled: made smaller, nobody could read it.
        drawing = f'<div style="overflow-x:auto">{graph_svg(self.facts)}</div>'
        return {"text/plain": self.text, "text/html": f"<div>{title}{drawing}</div>"}
