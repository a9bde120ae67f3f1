"""A balancer that has loops pause as often as they can, and cuts what they read at random."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import matnb as mn
from matnb.backend.store import Entry
from matnb.blocks.grid import Grid
from matnb.blocks.layout import Layout
from matnb.expr.nodes import Expr
from matnb.session.loop_parts import Span
from matnb.session.run import whole


@dataclass
class Watched:
    """What a part of a loop told."""

    pauses: Callable[[int], bool]
    first: int
    plan: Any
    news: list[tuple[int, int, int, Mapping[str, float]]] = field(default_factory=list)
    progress: list[tuple[int, float]] = field(default_factory=list)
    num_finished: int = 0
    pause_at: int | None = None
    paused_at: list[int] = field(default_factory=list)

    def measured(self, owner: int, iteration: int, num_iterations: int, seconds: Mapping[str, float]) -> None:
        self.news.append((owner, iteration, num_iterations, seconds))

    def advanced(self, iteration: int, seconds: float) -> None:
        self.progress.append((iteration, seconds))

    def wants_pause(self) -> bool:
        done = max([self.first, *(iteration for iteration, _ in self.progress)])
        return self.pauses(done)

    def paused(self, iteration: int) -> None:
        self.paused_at.append(iteration)

    def finished(self) -> None:
        self.num_finished += 1


class Restless:
    """Stands in for a session's balancer.

    Parameters
    ----------
    session
        Whose loops it follows.
    pauses
        Told how many iterations are known to be done; by default always true.
    repartitions
        Whether arrays are cut anew at each pause.
    meanwhile
        Called between a pause and the new cuts.
    """

    def __init__(
        self,
        session: mn.session.Session,
        pauses: Callable[[int], bool] = lambda done: True,
        repartitions: bool = True,
        meanwhile: Callable[[int], None] = lambda number: None,
        seed: int = 0,
    ) -> None:
        self._session, self._pauses, self._repartitions, self._meanwhile = (
            session,
            pauses,
            repartitions,
            meanwhile,
        )
        self._random = random.Random(seed)
        self.watches: list[Watched] = []
        self.num_repartitions = self.num_prepared = 0
        session._runner._loops._balancer = self

    def aligned(self, entries: Mapping[Expr, Entry], plan: Any) -> dict[Expr, Entry]:
        return dict(entries)

    def prepare(self, entries: Mapping[Expr, Entry], plan: Any, span: Span) -> dict[Expr, Entry]:
        self.num_prepared += 1
        return self._anew(entries) if self._repartitions else dict(entries)

    def watch(self, entries: Mapping[Expr, Entry], plan: Any, span: Span) -> Watched:
        self.watches.append(Watched(self._pauses, span.first, plan))
        return self.watches[-1]

    def repartition_paused(self, watch: Watched, entries: Mapping[Expr, Entry]) -> dict[Expr, Entry]:
        self.num_repartitions += 1
        self._meanwhile(self.num_repartitions)
        return self._anew(entries) if self._repartitions else dict(entries)

    def _anew(self, entries: Mapping[Expr, Entry]) -> dict[Expr, Entry]:
        rows: dict[int, tuple[tuple[int, ...], tuple[int, ...]]] = {}
        found = {}
        for node, entry in entries.items():
            if not node.ndim or not node.shape[0]:
                found[node] = entry
                continue
            chosen = rows.setdefault(node.shape[0], self._chosen(node.shape[0]))
            new = self._laid_out(node, entry, *chosen)
            self._session._store.replace(entry, new)
            found[node] = new
        return found

    def _chosen(self, length: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        inside = self._random.sample(range(1, length), self._random.randint(0, min(4, length - 1)))
        cuts = (0, *sorted(inside), length)
        alive = self._session.cluster.alive()
        return cuts, tuple(sorted(self._random.choice(alive) for _ in cuts[1:]))

    def _laid_out(self, node: Expr, entry: Entry, cuts: tuple[int, ...], owners: tuple[int, ...]) -> Entry:
        blocks = self._session._engine.blocks
        value = whole(node, entry.stored.layout, blocks.gather(entry.futures, entry.stored.layout.owners))
        grid = Grid((cuts, *((0, length) for length in node.shape[1:])))
        stored, futures = blocks.ship_array(value, Layout(grid, owners))
        return Entry(stored, futures)
