"""Graphs as HTML: one of several at a time, each with its boxes as a table, in a bounded size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from matnb.pictures.escaping import escaped
from matnb.pictures.facts import GraphFacts
from matnb.pictures.graph import graph_rows, graph_svg
from matnb.pictures.quantities import plural_text
from matnb.pictures.views import STYLE, View, table_html, views_html

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
