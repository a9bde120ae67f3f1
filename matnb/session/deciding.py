"""Asks a policy about a group of arrays, does what it decides, and notes what that brought."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from weakref import WeakKeyDictionary

from matnb.backend.store import Entry
from matnb.balance.decision import Decision, Gain
from matnb.balance.history import History
from matnb.balance.load import LoadModel
from matnb.balance.partition import COPY_RATE, makespan
from matnb.balance.policy import Learner
from matnb.balance.situation import Cuts, Situation
from matnb.balance.weighing import changed, may_pay
from matnb.blocks.layout import spread
from matnb.errors import TooLargeError
from matnb.events import Event, Rebalanced
from matnb.expr.nodes import Expr
from matnb.plan.row_work import RowWork
from matnb.program.plan import Workers
from matnb.session.followed import Followed, LearnedCosts, Pending
from matnb.session.groups import Group, cuts_of
from matnb.session.loop_watch import LoopWatch
from matnb.session.moves import Moves
from matnb.session.planning import Planner
from matnb.session.policies import Rebalancing
from matnb.session.recut import Recutter

_EVEN = 1.02  # the slowest thread's entries over the mean; from here on it is looked where entries are
_UNKNOWN = float("nan")
_BITS = "bits"  # who decides that cuts follow from counts again
_NO_WAY_BACK = (
    '"{0}" is cut as measured times had it, which the last bits of what runs next may follow, and there is '
    "no room to cut it by its entries again: {1}. mn.repartition(x, cuts=x.layout.grid.cuts) of each array x "
    "of these keeps the cuts."
)


class Decider:
    """Asks, enacts and remembers.

    Parameters
    ----------
    setting
        Gives policies.
    planner, recutter, moves
        Of the session.
    emit
        Called with every event.

    Attributes
    ----------
    history
        Of all decisions.
    model
        What an entry and a row take.
    """

    def __init__(
        self,
        setting: Rebalancing,
        planner: Planner,
        recutter: Recutter,
        moves: Moves,
        emit: Callable[[Event], None],
    ) -> None:
        self._setting, self._planner, self._recutter = setting, planner, recutter
        self._moves, self._emit = moves, emit
        self.history = History()
        self.model = LoadModel()
        self._costs, self._pause_costs = LearnedCosts(), LearnedCosts()
        self._known: WeakKeyDictionary[Expr, Followed] = WeakKeyDictionary()

    @property
    def setting(self) -> Rebalancing:
        """Gives policies; when it is set every group gets a new one, and what was measured stays known."""
        return self._setting

    @setting.setter
    def setting(self, setting: Rebalancing) -> None:
        self._setting = setting
        for known in self._known.values():
            known.policy = setting.policy()

    def known(self, main: Expr) -> Followed | None:
        """Return what is known of a group by its main array, if anything."""
        return self._known.get(main)

    def followed(self, group: Group) -> Followed:
        """Return what is known of a group from now on."""
        known = self._known.get(group.main)
        if known is None:
            known = self._known[group.main] = Followed(self._setting.policy())
        return known

    def situation_before(
        self, group: Group, known: Followed, by_time: bool, num_remaining: float, work: Callable[[], RowWork]
    ) -> Situation:
        """Return what a policy sees before a loop; where entries are is looked up if cutting may pay at all.

        Raises
        ------
        OwnersLost
            When a worker was lost.
        CellCancelled
            On an interrupt.
        """
        seen = partial(self.situation, group, known, by_time, 0, num_remaining, work=work)
        # What was seen under cuts that follow times must not decide, nor whether it is looked again.
        is_fresh = by_time or known.profile is None or known.profiled == group.cuts
        is_own = self._setting.name in ("auto", "entries")
        if not (is_own and is_fresh) or may_pay(seen()):
            self.refine(group, known, by_time)
        return seen()

    def refine(self, group: Group, known: Followed, by_time: bool, always: bool = False) -> None:
        """Look where the entries are, if it may matter: that takes a run.

        Where times may not decide it is looked in any case, and under these cuts: what was seen under others
        may have been seen because of times.

        Raises
        ------
        OwnersLost
            When a worker was lost.
        CellCancelled
            On an interrupt.
        """
        if self._setting.name == "replay" and not always:
            return
        if known.profile is not None and (by_time or known.profiled == group.cuts):
            return
        owners, workers = group.cuts.owners, self._planner.workers()
        loads = (group.entry.stored.block_nnz, known.block_seconds(group))
        if always or not by_time or max(_unevenness(one, owners, workers) for one in loads) > _EVEN:
            known.refine(group, self._recutter.profile(group.main, group.entry))

    def situation(
        self,
        group: Group,
        known: Followed,
        by_time: bool,
        iteration: int,
        num_remaining: float,
        iteration_seconds: float = 0.0,
        in_loop: bool = True,
        work: Callable[[], RowWork] = RowWork,
    ) -> Situation:
        """Return what a policy sees of a group; measured times only where they may decide."""
        return known.situation(
            group,
            self._planner.workers(),
            self.model,
            (self._pause_costs if in_loop and iteration else self._costs).now,
            by_time=by_time and self._setting.reads_times,
            iteration=iteration,
            num_remaining=num_remaining,
            iteration_seconds=iteration_seconds,
            in_loop=in_loop,
            work=work,
        )

    def ask(self, known: Followed, situation: Situation, by_time: bool) -> Decision:
        """Return what the policy decides; without times "auto" decides as "entries" does."""
        if not by_time and self._setting.name == "auto":
            return known.by_counts.decide(situation)
        return known.policy.decide(situation)

    def note_refusal(self, decision: Decision) -> None:
        """Note that it stays as it is; listeners are told unless that was so the last time."""
        last = self.history.last(decision.name)
        if self.history.add(decision) != (last and last.number):
            self._tell(decision, 0.0, 0)

    def enacted(
        self,
        group: Group,
        known: Followed,
        decision: Decision,
        by_time: bool,
        watch: LoopWatch | None = None,
        must: bool = False,
    ) -> Mapping[Entry, Entry]:
        """Do what was decided, and return what each entry became; errors as of a Recutter.

        Parameters
        ----------
        by_time
            Whether measured times may have decided.
        watch
            Of the loop that has paused for it.
        must
            Whether a person wants it so: then a lack of room is an error, else the decision is refused, and
            the cuts are not taken back, though they may follow from times.
        """
        if must and decision.after == group.cuts:
            self._moves.forget_times(group.arrays.values())
        if decision.acts and decision.after == group.cuts:
            decision = replace(decision, acts=False, reason="unchanged: these are the cuts")
            if watch is not None:
                known.hindered = decision.reason
        workers = self._planner.workers().numbers
        if decision.acts and (wrong := _wrong(decision.after, group.cuts, workers)):
            known.hindered = wrong
            decision = replace(decision, acts=False, after=decision.before, reason=wrong)
        if not decision.acts:
            self.note_refusal(decision)
            return {}
        counted = {} if must else self._counted(group, known, decision, by_time)
        try:
            done = self._moves.rows(group.name, group.arrays, decision.after, known.profile)
        except TooLargeError as error:
            if must:
                raise
            if decision.policy == _BITS:
                raise TooLargeError(_NO_WAY_BACK.format(group.name, error)) from None
            known.hindered = f"no room: {error}"
            self.note_refusal(replace(decision, acts=False, reason=known.hindered))
            return {}
        number = self.history.add(decision)
        self._tell(decision, done.seconds, done.moved_bytes)
        for node, cuts in counted.items():
            self._moves.follow_times(done.entries[node], cuts)
        pending = Pending(
            number,
            decision,
            0.0 if watch is None else watch.iteration_seconds(known),
            done.seconds,
            done.moved_bytes,
            done.moved_bytes + done.copied_bytes / COPY_RATE,
            None if watch is None else watch.last_advanced or None,
        )
        self.history.gained(number, Gain({}, _UNKNOWN, done.seconds, done.moved_bytes))
        if pending.paused_at is None:
            self._costs.learn(done.seconds, pending.weighed_bytes)
        known.pending = None if decision.policy == _BITS else pending
        known.was_recut, known.hindered = True, ""
        new = {group.arrays[node]: entry for node, entry in done.entries.items()}
        arrays = {node: new[entry] for node, entry in group.arrays.items()}
        known.begin(replace(group, arrays=arrays), self.model)
        return new

    def undone(self, group: Group, known: Followed, reason: str) -> Mapping[Entry, Entry]:
        """Undo the last re-cut of a group, if nothing was measured since; errors as of :meth:`enacted`."""
        pending, known.pending = known.pending, None
        if pending is None or pending.decision.after != group.cuts:
            return {}
        done = self._moves.rows(group.name, group.arrays, pending.decision.before, known.profile)
        for node, entry in group.arrays.items():
            if (counted := self._moves.counted(entry)) is not None:
                self._moves.follow_times(done.entries[node], counted)
        known.hindered = f"no room: {reason}"
        self.note_refusal(replace(pending.decision, acts=False, reason=known.hindered))
        new = {group.arrays[node]: entry for node, entry in done.entries.items()}
        known.begin(replace(group, arrays={one: new[old] for one, old in group.arrays.items()}), self.model)
        return new

    def back_to_counts(self, entries: Mapping[Expr, Entry]) -> dict[Entry, Entry]:
        """Give arrays whose cuts follow from measured times those that counts gave, for what depends on them.

        Where owners are gone the parts are spread over the workers there are. Returns what each entry became;
        errors as of :meth:`enacted`.
        """
        alike: dict[tuple[Cuts, Cuts], dict[Expr, Entry]] = {}
        for node, entry in entries.items():
            counted = self._moves.counted(entry)
            if counted is not None:
                alike.setdefault((cuts_of(entry), counted), {})[node] = entry
        workers = self._planner.workers().numbers
        new: dict[Entry, Entry] = {}
        for (_, counted), followers in alike.items():
            arrays = {node: entry for node, entry in followers.items() if entry not in new}
            if not arrays:
                continue
            group = self._moves.group(arrays)
            known = self.followed(group)
            owners = counted.owners
            if not set(workers).issuperset(owners):
                owners = spread(len(owners), workers)
            situation = self.situation(group, known, False, 0, 0.0)
            reason = "counted: bits of what runs next may follow the cuts, so times must not decide them"
            decision = changed(situation, _BITS, reason, Cuts(counted.cuts, owners), "segmented")
            new.update(self.enacted(group, known, decision, by_time=False))
        return new

    def any_by_time(self, entries: Iterable[Entry]) -> bool:
        """Tell whether any of some arrays is cut as measured times had it."""
        return any(self._moves.counted(entry) is not None for entry in entries)

    def _counted(
        self, group: Group, known: Followed, decision: Decision, by_time: bool
    ) -> Mapping[Expr, Cuts]:
        # The cuts from counts, of each array whose new ones may follow from anything that was measured.
        if decision.policy == _BITS:
            return {}
        before = {node: self._moves.counted(entry) for node, entry in group.arrays.items()}
        was_measured = by_time and self._setting.reads_times and known.num_measured > 0
        if not (was_measured or decision.block_seconds or any(before.values())):
            return {}
        return {node: cuts or decision.before for node, cuts in before.items()}

    def began(self, seconds: float) -> None:
        """Take how long a loop took to begin: no pause takes less, whatever it moves."""
        self._pause_costs.at_least(seconds)

    def went_on(self, watch: LoopWatch, known: Followed, now: float) -> None:
        """Take the first news of a loop after a re-cut: what the change took is known then."""
        pending = known.pending
        if pending is None or pending.paused_at is None or not watch.last_seconds:
            return
        begun = now - watch.last_seconds * (watch.iteration - watch.span.first)
        pending.cost_seconds = max(pending.cost_seconds, begun - pending.paused_at)
        pending.paused_at = None
        self._pause_costs.learn(pending.cost_seconds, pending.weighed_bytes)
        gain = Gain({}, _UNKNOWN, pending.cost_seconds, pending.moved_bytes)
        self.history.gained(pending.number, gain)

    def tell_gain(self, known: Followed, iteration_seconds: float) -> None:
        """Note what the last re-cut brought, once enough was measured after it.

        ``iteration_seconds``: what one takes by the clock, 0.0 where that is not known or was not before.
        """
        pending, loads = known.pending, known.loads
        if pending is None or loads is None or not known.can_tell_gain:
            return
        before = pending.before_seconds
        if before and not iteration_seconds:
            return
        saving = before - iteration_seconds if before else _UNKNOWN
        gain = Gain(loads.loads(), saving, pending.cost_seconds, pending.moved_bytes)
        self.history.gained(pending.number, gain)
        if isinstance(known.policy, Learner):
            known.policy.brought(pending.decision, gain)
        known.pending = None

    def _tell(self, decision: Decision, seconds: float, moved_bytes: int) -> None:
        self._emit(
            Rebalanced(
                name=decision.name,
                policy=decision.policy,
                reason=decision.reason,
                acted=decision.acts,
                by_entries=decision.in_entries,
                imbalance_before=decision.imbalance_before,
                imbalance_after=decision.imbalance_after,
                iteration=decision.iteration,
                seconds=seconds,
                moved_bytes=moved_bytes,
            )
        )


def _unevenness(loads: Sequence[float], owners: Sequence[int], workers: Workers) -> float:
    # The slowest thread's part of the blocks' loads over the mean of all.
    total = sum(loads)
    return makespan(loads, owners, workers.threads) * workers.slots / total if total > 0 else 1.0


def _wrong(cuts: Cuts, now: Cuts, workers: Sequence[int]) -> str:
    # Why arrays cannot be cut as a person's policy, or a trace, has it; empty where they can.
    ends = (cuts.cuts[0], cuts.cuts[-1]) if cuts.cuts else ()
    if ends != (0, now.cuts[-1]) or any(low >= high for low, high in cuts.ranges()):
        return f"no cuts: {list(cuts.cuts[:8])} do not ascend from 0 to {now.cuts[-1]}"
    if len(cuts.owners) != len(cuts.cuts) - 1 or not set(workers).issuperset(cuts.owners):
        return (
            f"no owners: {list(cuts.owners[:8])} for {len(cuts.cuts) - 1} blocks on workers {list(workers)}"
        )
    return ""
