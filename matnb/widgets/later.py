"""A line about work in the background, which changes by itself when that begins and when it ends."""

from __future__ import annotations

from contextlib import suppress
from contextvars import copy_context
from dataclasses import replace
from typing import Any

from matnb.pictures.later import later_html, later_text
from matnb.session.background import Later
from matnb.widgets.output_area import Bundle, Shown


def later_view(later: Later, shell: Any | None = None) -> Shown:
    """Show how far some work is in the output of the cell that runs, from then on until it has ended.

    The line holds no widget, so a notebook that is saved keeps what it said last.

    Parameters
    ----------
    later
        What ``%%distmat --nowait`` gave.
    shell
        IPython's, that of this process by default.
    """
    shown = Shown(lambda: _bundle(later), shell=shell)
    context = copy_context()  # in it the kernel knows which cell this belongs to

    def changed() -> None:
        with suppress(Exception):  # a thread prints nothing; a kernel that is going shows nothing any more
            context.copy().run(shown.update, _bundle(later))

    later.follow(changed)
    changed()  # it may have ended before it was followed
    return shown


def _bundle(later: Later) -> Bundle:
    # For how long it has been running would soon be wrong: the line does not change with the time.
    facts = later.facts()
    if not later.done:
        facts = replace(facts, seconds=None)
    return {"text/plain": later_text(facts), "text/html": later_html(facts)}
