"""``mn.history()``: what was decided about cuts, why, and what it gained, to look at and to save."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from os import PathLike
from typing import TYPE_CHECKING

from matnb.balance.decision import Gain, HistoryItem
from matnb.balance.history import History
from matnb.balance.trace import Trace
from matnb.blocks.layout import Cuts
from matnb.pictures.facts import DecisionFacts, GainFacts, HistoryFacts, StripFacts
from matnb.pictures.history import history_text
from matnb.pictures.history_page import history_html, history_svg
from matnb.pictures.plots import axes_or_current, draw_history
from matnb.pictures.saving import save_as
from matnb.session.current import active_session
from matnb.session.run_listeners import RunListeners

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class HistoryView:
    """Decisions about where arrays are cut, as they are now. Made by ``mn.history()``.

    Shows itself in a notebook: for each repartition the rows before and after, each block to scale in the
    color of its worker, darker where it takes longer; each worker's load; what was predicted and measured.

    Parameters
    ----------
    history
        Of a session, if there is one.
    setting
        What was chosen with ``rebalance=``.
    listeners
        Of a session, which may have sections of their own.

    Examples
    --------
    >>> print(HistoryView())
    rebalance=auto: no decision yet
    """

    def __init__(
        self, history: History | None = None, setting: str = "auto", listeners: RunListeners | None = None
    ) -> None:
        self.trace = Trace(()) if history is None else history.trace()
        self.setting = setting
        self._sections = {
            measured: () if listeners is None else listeners.sections(measured) for measured in (False, True)
        }

    @property
    def decisions(self) -> tuple[HistoryItem, ...]:
        """Every decision that was kept, the oldest first, with what it gained."""
        return self.trace.passed

    def facts(self, measured: bool = True) -> HistoryFacts:
        """Return what a picture is drawn from; without ``measured`` no more than repeats every time."""
        shown = tuple(map(decision_facts, self.decisions))
        return HistoryFacts(shown, self.setting, self.trace.num_dropped, measured, self._sections[measured])

    def save(self, path: str | PathLike[str]) -> None:
        """Write the decisions to a file.

        Parameters
        ----------
        path
            Ends in ``.json`` for a trace that ``mn.start(rebalance=path)`` repeats, ``.svg`` for a picture or
            ``.txt`` for a table of all of them.

        Raises
        ------
        OptionError
            For an unknown file suffix.
        WriteError
            Where the system does not let it be written.
        """
        kinds: dict[str, Callable[[], str]] = {
            ".json": self.trace.to_json,
            ".svg": lambda: history_svg(self.facts()),
            ".txt": lambda: history_text(self.facts(), limit=None),
        }
        save_as(path, kinds, "history")

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw each repartition: how uneven the loads were before it, as predicted, and as measured after it.

        Parameters
        ----------
        ax
            The axes to draw in; by default pyplot's current axes.

        Returns
        -------
        matplotlib.axes.Axes
            With three series of markers, a place for each repartition.
        """
        return draw_history(axes_or_current(ax), self.facts())

    def show(self) -> None:
        """Show the picture in a notebook, and print the table elsewhere, in the middle of a cell too."""
        ipython = sys.modules.get("IPython")
        if ipython is None or ipython.get_ipython() is None:
            sys.stdout.write(f"{self}\n")
        else:
            ipython.display.display(self)

    def __len__(self) -> int:
        return len(self.decisions)

    def __iter__(self) -> Iterator[HistoryItem]:
        return iter(self.decisions)

    def __str__(self) -> str:
        return history_text(self.facts())

    def __repr__(self) -> str:
        return history_text(self.facts())

    def bundle(self, measured: bool) -> dict[str, str]:
        """Return the history as text and as HTML; without ``measured`` the same every time."""
        facts = self.facts(measured)
        return {"text/plain": history_text(facts), "text/html": history_html(facts)}

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return self.bundle(measured=True)


def history() -> HistoryView:
    """Return the repartitioning decisions of the current session, and what each one gained.

    It also has how the values of nested arrays were cut, by which predicted costs, and what the first
    reduction of each took; that is not part of a trace.

    It displays itself in a notebook; ``save(path)`` writes a trace that ``mn.start(rebalance=path)`` repeats.
    It does not start a session.
    """
    session = active_session()
    if session is None:
        return HistoryView()
    return HistoryView(session.history, session.rebalance, session.listeners)


def decision_facts(one: HistoryItem) -> DecisionFacts:
    """Return what a picture of a decision is drawn from."""
    decision = one.decision
    return DecisionFacts(
        name=decision.name,
        policy=decision.policy,
        acts=decision.acts,
        reason=decision.reason,
        iteration=decision.iteration,
        strategy=decision.strategy,
        before=_strip(decision.before, decision.block_seconds, decision.loads_before, decision.axis),
        after=_strip(decision.after, (), decision.loads_after, decision.axis),
        by_entries=decision.in_entries,
        num_repeats=one.num_repeats,
        saving_seconds=decision.saving_seconds,
        num_remaining=decision.num_remaining,
        cost_seconds=decision.cost_seconds,
        moved_bytes=decision.moved_bytes,
        gained=None if one.gain is None else _gain(one.gain),
    )


def _strip(cuts: Cuts, block_loads: tuple[float, ...], loads: Mapping[int, float], axis: int) -> StripFacts:
    known = block_loads if len(block_loads) == cuts.num_blocks else ()
    return StripFacts(cuts.cuts, cuts.owners, known, tuple(sorted(loads.items())), axis)


def _gain(gain: Gain) -> GainFacts:
    return GainFacts(
        tuple(sorted(gain.loads.items())), gain.saving_seconds, gain.cost_seconds, gain.moved_bytes
    )
