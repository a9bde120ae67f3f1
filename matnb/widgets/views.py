"""What a cell shows in its output: plans and histories with a control below them, and lines that change."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from dataclasses import replace
from typing import Any

from matnb.pictures.escaping import escaped
from matnb.pictures.facts import GraphFacts, HistoryFacts
from matnb.pictures.graph import graph_svg
from matnb.pictures.history import told
from matnb.pictures.history_page import decision_html, decision_names, num_left_out
from matnb.pictures.picture import Picture
from matnb.pictures.quantities import count_text
from matnb.pictures.summary import later_html, later_text
from matnb.session.background import Later
from matnb.session.history_view import HistoryView
from matnb.tables.table import Table
from matnb.widgets import output_area
from matnb.widgets.output_area import Bundle, LiveDisplay, is_live, shows_measured


class PictureBrowser:
    """A picture in the output of a cell, with a control where a user is there to use it.

    The picture holds no widget, so a notebook that is saved keeps it. The control goes when the next cell
    runs, when another one is made, at :meth:`close` and at the kernel's exit. A terminal shows the picture's
    text; in a script nothing is shown.

    Parameters
    ----------
    bundle
        The picture by media type.
    make_control
        Makes the widget; None where the picture holds all there is.
    shell
        IPython's, that of this process by default.
    """

    def __init__(
        self, bundle: Bundle, make_control: Callable[[], Any] | None = None, shell: Any | None = None
    ) -> None:
        global _browsing
        if _browsing is not None:
            _browsing._take_away(is_patient=True)
        self._shell = output_area.current_shell() if shell is None else shell
        self._control: LiveDisplay | None = None
        if self._shell is None:
            return
        if getattr(self._shell, "kernel", None) is None:
            self._shell.display_pub.publish(dict(bundle))
            return
        LiveDisplay(lambda: bundle, shell=self._shell)
        if make_control is not None and is_live(self._shell):
            self._control = LiveDisplay(dict, make_control, shell=self._shell)
            self._shell.events.register("pre_run_cell", self._cell_began)
            _browsing = self

    @property
    def is_open(self) -> bool:
        """Whether there is a control."""
        return self._control is not None

    def close(self) -> None:
        """Take the control away; the picture stays. Harmless a second time."""
        self._take_away()

    def _take_away(self, is_patient: bool = False) -> None:
        global _browsing
        control, self._control = self._control, None
        if control is not None and self._shell is not None:
            self._shell.events.unregister("pre_run_cell", self._cell_began)
            control.freeze(is_patient=is_patient)
        if _browsing is self:
            _browsing = None

    def _cell_began(self, info: object = None) -> None:
        self._take_away(is_patient=True)


_browsing: PictureBrowser | None = None  # the one that has a control


# How something is computed, in a notebook: a picture, and buttons for what each pass left.

_MOST_BYTES = 40_000


def plan_view(picture: Picture, shell: Any | None = None) -> PictureBrowser:
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
    PictureBrowser
        Its ``close()`` takes the buttons away.
    """
    # What one pass alone left is what all of them did.
    is_more = sum(name not in picture.shown for name, _ in picture.stages) > 1
    return PictureBrowser(picture.bundle(), (lambda: buttons(picture)) if is_more else None, shell)


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


# The history of balancing in a notebook: a picture, and a slider over all decisions where they are many.

_STEP_MILLISECONDS = 400


def history_view(view: HistoryView, shell: Any | None = None) -> PictureBrowser:
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
    PictureBrowser
        Its ``close()`` takes the slider away.
    """
    shell = output_area.current_shell() if shell is None else shell
    measured = shows_measured(shell)
    facts = view.facts(measured)
    is_more = measured and num_left_out(facts) > 0
    return PictureBrowser(view.bundle(measured), (lambda: slider(facts)) if is_more else None, shell)


def slider(facts: HistoryFacts) -> Any:
    """Return a widget that shows one decision of all at a time; it begins with the newest repartition."""
    import ipywidgets as widgets

    every = told(facts)
    names, last = decision_names(every), len(every) - 1
    begin = max((place for place, one in enumerate(every) if one.acts), default=last)
    play = widgets.Play(
        value=begin, min=0, max=last, interval=_STEP_MILLISECONDS, tooltip="Go through all decisions"
    )
    # The number on it would count from 0; which it is stands beside it.
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


# A line about work in the background, which changes by itself when that begins and when it ends.


def later_view(later: Later, shell: Any | None = None) -> LiveDisplay:
    """Show how far some work is in the output of the cell that runs, from then on until it has ended.

    The line holds no widget, so a notebook that is saved keeps what it said last.

    Parameters
    ----------
    later
        What ``%%distmat --nowait`` gave.
    shell
        IPython's, that of this process by default.
    """
    shown = LiveDisplay(lambda: _bundle(later), shell=shell)
    context = copy_context()  # in it the kernel knows which cell this belongs to

    def changed() -> None:
        with suppress(Exception):  # a thread prints nothing; a kernel that is going shows nothing any more
            context.copy().run(shown.update, _bundle(later))

    later.follow(changed)
    changed()  # it may have ended before it was followed
    return shown


def _bundle(later: Later) -> Bundle:
    # For how long it has been running would soon be wrong: without a loop the line does not change with time.
    facts = later.facts()
    if not later.done and not facts.progress:
        facts = replace(facts, seconds=None)
    return {"text/plain": later_text(facts), "text/html": later_html(facts)}


# A table whose rows take a while: what is known of it at once, and the rows when they are there.


def table_view(table: Table, shell: Any | None = None) -> LiveDisplay:
    """Show a table in the output of the cell that runs; its rows replace the line that says they are coming.

    Parameters
    ----------
    table
        Of which no rows were looked at yet.
    shell
        IPython's, that of this process by default.
    """
    shown = LiveDisplay(table._without_rows, shell=shell)
    shown.update(table._repr_mimebundle_())
    return shown
