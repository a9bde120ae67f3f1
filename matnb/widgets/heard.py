"""What was heard of a session, as the facts of a picture: of now, or of what ran last and how it ended."""

from __future__ import annotations

import time
from dataclasses import replace

from matnb.pictures.monitor_facts import MonitorFacts, WorkerFacts
from matnb.session import Session
from matnb.widgets.course import Course
from matnb.widgets.feed import Feed


class Heard:
    """Holds what takes a session's events, and gives facts.

    Attributes
    ----------
    feed
        Of now.
    course
        Of what ran last.
    """

    def __init__(self) -> None:
        self.feed, self.course = Feed(), Course()
        self._last: MonitorFacts | None = None  # that were shown while something ran

    def begin(self) -> None:
        """Forget what ran before."""
        self.course.begin()
        self._last = None

    def now(self, goes_on: bool = False) -> MonitorFacts:
        """Return what is so now, and remember it if something runs.

        Parameters
        ----------
        goes_on
            Whether it counts as running between two runs.
        """
        facts = self.feed.facts()
        is_running = facts.is_running or (goes_on and not facts.has_stopped)
        facts = replace(facts, is_running=is_running, at=time.strftime("%H:%M:%S"))
        if is_running:
            self._last = facts
        return facts

    def facts(self, session: Session | None, is_closed: bool) -> MonitorFacts:
        """Return what a picture shows that stays.

        Parameters
        ----------
        session
            The one that is heard of, if there is one: before it has told anything its workers are known.
        is_closed
            Whether nothing more will be heard.
        """
        facts, course = self.feed.facts(), self.course
        if not facts.workers and session is not None and not session.ended:
            facts = replace(facts, workers=tuple(map(WorkerFacts, session.cluster.alive())))
        if facts.is_running and not is_closed:
            return replace(facts, at=time.strftime("%H:%M:%S"))
        if facts.is_running:
            return replace(facts, is_running=False, is_past=True, outcome="closed while running")
        # What was seen last while something ran tells more than idle workers.
        last = facts if self._last is None else self._last
        lost = {one.number for one in facts.workers if one.is_lost}
        return replace(
            last,
            workers=tuple(replace(one, is_lost=one.is_lost or one.number in lost) for one in last.workers),
            iteration=course.iteration,
            most_iterations=course.most_iterations,
            iteration_seconds=course.iteration_seconds,
            num_recuts=facts.num_recuts,
            is_running=False,
            has_run=facts.has_run,
            is_past=self._last is not None,
            has_stopped=facts.has_stopped,
            at="",
            outcome=course.outcome,
            imbalance_of_all=course.imbalance(one.number for one in facts.workers),
        )
