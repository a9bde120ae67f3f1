"""A picture of a computation: shown in a notebook, printed as a tree, or saved to a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike

from matnb.pictures.escaping import escaped
from matnb.pictures.facts import GraphFacts
from matnb.pictures.graph import graph_rows, graph_svg, graph_text
from matnb.pictures.quantities import plural_text
from matnb.pictures.saving import save_as
from matnb.pictures.views import STYLE, View, table_html, views_html


@dataclass(frozen=True)
class Picture:
    """What is computed from what. Made by :func:`matnb.visualize`.

    Parameters
    ----------
    facts
        What is printed and saved: one stage.
    stages
        Every stage with its name, where a user may go from one to another.
    shown
        The names of those among them that are shown where there is no widget.
    said
        What became of the expressions from stage to stage, in a line.

    Examples
    --------
    >>> import matnb as mn
    >>> x = mn.full(3, 0.75)
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
            For an unknown file suffix.
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


# Graphs as HTML: one of several at a time, each with its boxes as a table, in a bounded size.

MOST_BYTES = 40_000
_AROUND = 2500  # bytes of what is around the pictures
_FOR_DRAWING = 0.68  # of what a graph may take; the rest is its table's
_HEAD = ("name", "what", "details", "made from", "marks")

NamedGraph = tuple[str, GraphFacts]


def graphs_html(graphs: Sequence[NamedGraph], chosen: int = 0, title: str = "") -> str:
    """Return graphs as HTML of at most 40 kB.

    Parameters
    ----------
    graphs
        With the name by which each is chosen.
    chosen
        The place of the one that is seen at first.
    title
        Of them all, where they are several.
    """
    left = MOST_BYTES - _AROUND
    others = sorted(set(range(len(graphs))) - {chosen}, key=lambda one: _num_nodes(graphs[one][1]))
    pages: dict[int, str] = {}
    for number, place in enumerate(others):  # what the small ones leave is for the larger ones
        share = (left - (MOST_BYTES - _AROUND) * 3 // 5) // (len(others) - number)
        pages[place] = _page(graphs[place][1], share)
        left -= len(pages[place].encode())
    pages[chosen] = _page(graphs[chosen][1], left)
    if len(graphs) == 1:
        return f"<div>{STYLE}{pages[chosen]}</div>"
    views = [View(name, pages[place], facts.title) for place, (name, facts) in enumerate(graphs)]
    return f"<div>{STYLE}{_small(title)}{views_html(views, chosen, 'stages')}</div>"


def _num_nodes(facts: GraphFacts) -> int:
    return sum(len(panel.nodes) for panel in facts.panels)


def _page(facts: GraphFacts, most_bytes: int) -> str:
    title = _small(facts.title)
    svg = graph_svg(facts, most_bytes=int(_FOR_DRAWING * most_bytes))
    # A wide one is scrolled: made smaller, nobody could read it.
    drawing = f'<div style="overflow-x:auto">{svg}</div>'
    empty = table_html(_HEAD, [])
    left = most_bytes - len((title + drawing + empty).encode())
    return f"{title}{drawing}{table_html(_HEAD, list(_fitting(graph_rows(facts), left)))}"


def _fitting(rows: Sequence[tuple[str, ...]], most_bytes: int) -> Iterator[tuple[str, ...]]:
    size, around = 200, len("<tr></tr>") + len(_HEAD) * len("<td></td>")
    for place, row in enumerate(rows):
        size += around + sum(len(escaped(word).encode()) for word in row)
        if size > most_bytes:
            yield ("", f"{plural_text(len(rows) - place, 'more row')} left out", "", "", "")
            return
        yield row


def _small(text: str) -> str:
    return f'<div style="font-size:12px;opacity:.8;margin:0 0 4px">{escaped(text)}</div>' if text else ""
