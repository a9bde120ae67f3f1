"""How something is computed, in a notebook: a picture, and buttons for what each pass left."""

from __future__ import annotations

from typing import Any

from matnb.pictures.facts import GraphFacts
from matnb.pictures.graph import graph_svg
from matnb.pictures.picture import Picture
from matnb.widgets.browsing import Browsing

_MOST_BYTES = 40_000


def plan_view(picture: Picture, shell: Any | None = None) -> Browsing:
    """Show a picture in the output of the cell that runs.

    It lets a user go from what was recorded to what the passes made of it and to the plan without a widget.
    Where passes changed something, buttons below it show what each left, until the next cell runs.

    Parameters
    ----------
    picture
        Made by :func:`matnb.visualize`.
    shell
        IPython's, that of this process by default.

    Returns
    -------
    Browsing
        Its ``close()`` takes the buttons away.
    """
    # What one pass alone left is what all of them did.
    is_more = sum(name not in picture.shown for name, _ in picture.stages) > 1
    return Browsing(picture.bundle(), (lambda: buttons(picture)) if is_more else None, shell)


def buttons(picture: Picture) -> Any:
    """Return a widget that shows one stage of all at a time, when a button is pressed."""
    import ipywidgets as widgets

    stages = dict(picture.stages)
    choice = widgets.ToggleButtons(
        options=list(stages),
        value=None,  # the picture above it shows one
        tooltips=[facts.title for facts in stages.values()],
        style={"button_width": "auto"},
    )
    drawing = widgets.HTML()

    def show(change: dict[str, Any]) -> None:
        facts = stages.get(change["new"])
        drawing.value = "" if facts is None else _drawn(facts)

    choice.observe(show, names="value")
    return widgets.VBox([choice, drawing])


def _drawn(facts: GraphFacts) -> str:
    drawing = graph_svg(facts, most_bytes=_MOST_BYTES)
    return f'<div style="overflow-x:auto;width:0;min-width:100%">{drawing}</div>'
