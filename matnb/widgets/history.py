"""The history of balancing in a notebook: a picture, and a slider over all decisions where they are many."""

from __future__ import annotations

from typing import Any

from matnb.pictures.escaping import escaped
from matnb.pictures.facts import HistoryFacts
from matnb.pictures.history import told
from matnb.pictures.history_page import decision_html, decision_names, num_left_out
from matnb.pictures.quantities import count_text
from matnb.session.history_view import HistoryView
from matnb.widgets import output_area
from matnb.widgets.browsing import Browsing
from matnb.widgets.output_area import shows_measured

_STEP_MILLISECONDS = 400


def history_view(view: HistoryView, shell: Any | None = None) -> Browsing:
    """Show a history in the output of the cell that runs.

    The picture lets a user go from decision to decision without a widget. Where there are more decisions
    than it holds, a slider below it goes through all of them, by hand or by itself, until the next cell runs.

    Parameters
    ----------
    view
        Made by ``mn.history()``.
    shell
        IPython's, that of this process by default.

    Returns
    -------
    Browsing
        Its ``close()`` takes the slider away.
    """
    shell = output_area.current_shell() if shell is None else shell
    measured = shows_measured(shell)
    facts = view.facts(measured)
    is_more = measured and num_left_out(facts) > 0
    return Browsing(view.bundle(measured), (lambda: slider(facts)) if is_more else None, shell)


def slider(facts: HistoryFacts) -> Any:
    """Return a widget that shows one decision of all at a time; it begins with the newest re-cut."""
    import ipywidgets as widgets

    every = told(facts)
    names, last = decision_names(every), len(every) - 1
    begin = max((place for place, one in enumerate(every) if one.acts), default=last)
    play = widgets.Play(
        value=begin, min=0, max=last, interval=_STEP_MILLISECONDS, tooltip="Go through all decisions"
    )
    # The number on it would count from 0; which it is, is told beside it.
    place = widgets.IntSlider(
        value=begin,
        min=0,
        max=last,
        readout=False,
        description="decision",
        style={"description_width": "initial"},
        layout=widgets.Layout(width="300px"),
    )
    widgets.link((play, "value"), (place, "value"))  # in Python: one in the page is a widget of its own
    which, picture = widgets.HTML(), widgets.HTML()

    def show(number: int) -> None:
        words = f"{count_text(number + 1)} of {count_text(last + 1)}: {names[number]}"
        which.value = f'<span style="font-size:12px;overflow-wrap:anywhere">{escaped(words)}</span>'
        drawing = decision_html(every, number, facts.measured)
        # As wide as there is room, not as what is scrolled in it.
        picture.value = f'<div style="line-height:normal;width:0;min-width:100%">{drawing}</div>'

    def moved(change: dict[str, Any]) -> None:
        show(change["new"])

    show(begin)
    place.observe(moved, names="value")
    row = widgets.HBox([play, place, which], layout=widgets.Layout(flex_flow="row wrap"))
    return widgets.VBox([row, picture])
