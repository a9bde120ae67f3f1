"""A picture of a computation: shown in a notebook, printed as a tree, or saved to a file."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike

from matnb.pictures.facts import GraphFacts
from matnb.pictures.graph import graph_svg, graph_text
from matnb.pictures.graph_page import NamedGraph, graphs_html
from matnb.pictures.saving import save_as


@dataclass(frozen=True)
class Picture:
    """What is computed from what. Made by :func:`matnb.visualize`.

    Parameters
    ----------
    facts
        What is printed and saved: one stage.
    stages
        Every stage with its name, where a person may go from one to another.
    shown
        The names of those among them that are shown where there is no widget.
    said
        What became of the expressions from stage to stage, in a line.

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
    stages: tuple[NamedGraph, ...] = ()
    shown: tuple[str, ...] = ()
    said: str = ""

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
        WriteError
            Where the system does not let it be written.
        """
        save_as(path, {".svg": lambda: self.svg, ".txt": lambda: self.text}, "picture")

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    def bundle(self) -> dict[str, str]:
        """Return the picture as text and as HTML: of the stages that are shown one is seen at a time."""
        graphs = [one for one in self.stages if one[0] in self.shown] or [("", self.facts)]
        chosen = next((place for place, one in enumerate(graphs) if one[1] is self.facts), 0)
        return {"text/plain": self.text, "text/html": graphs_html(graphs, chosen, self.said)}

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return self.bundle()
