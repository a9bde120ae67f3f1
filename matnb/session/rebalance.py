"""Decides about repartitions: asks policies about stored arrays, carries them out and records the gain."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from math import isfinite

from matnb.backend.store import Entry, Store
from matnb.balance.decision import Decision, Gain, changed, may_pay
from matnb.balance.load import LoadModel
from matnb.balance.partition import COPY_RATE, makespan
from matnb.balance.policy import Automatic, Foreseer, LearningPolicy
from matnb.balance.situation import Situation
from matnb.blocks.grid import Grid
from matnb.blocks.layout import Cuts, Layout, spread
from matnb.errors import OptionError, TooLargeError
from matnb.events import Event, TaskTimed
from matnb.expr.nodes import Expr
from matnb.pictures.quantities import axes_text
from matnb.plan.looping import ControlPlan
from matnb.plan.reproducibility import depends_on_layout
from matnb.plan.row_work import RowWork, row_works
from matnb.program.plan import Plan, Workers
from matnb.session.groups import (
    RELEASE,
    Group,
    Groups,
    GroupState,
    LearnedCosts,
    PendingGain,
    Question,
    has_rows_cut,
    tie_of,
)  # fmt: skip
from matnb.session.loop_parts import LoopWatch, Span
from matnb.session.planning import Planner
from matnb.session.repartitioner import Repartition, Repartitioner
from matnb.session.settings import RebalanceSetting, rebalancing_from
from matnb.session.stored_layouts import StoredLayouts, rebalanced

_PATIENCE_SECONDS = 5.0  # for workers that were there at a pause, but not yet to be used
_MANY = 10**6  # runs that are expected where a user asks for a repartition


class Balancer:
    """Decides for stored arrays whether they are repartitioned, and does it.

    Parameters
    ----------
    rebalance
        As :func:`matnb.session.settings.rebalancing_from` takes it.

    Attributes
    ----------
    groups, layouts
        Which arrays lie alike, and how they get other layouts.
    decider
        Asks policies, and remembers what they decided.
    """

    def __init__(
        self,
        rebalance: object,
        store: Store,
        planner: Planner,
        repartitioner: Repartitioner,
        emit: Callable[[Event], None],
    ) -> None:
        self._store, self._planner = store, planner
        setting = rebalancing_from(rebalance)
        self.groups = Groups(store, setting.policy)
        self.layouts = StoredLayouts(store, planner, repartitioner, self.groups, emit)
        self.decider = Decider(setting, planner, repartitioner, self.layouts, emit)

    def set(self, rebalance: object) -> None:
        """Let something else decide from now on; what was measured stays known."""
        self.decider.setting = rebalancing_from(rebalance)
        self.groups.let_decide(self.decider.setting.policy)

    # before something runs

    def aligned(self, entries: Mapping[Expr, Entry], plan: ControlPlan) -> dict[Expr, Entry]:
        """Lay out what a loop reads as it is to lie, before anything is decided, and return all of it.

        Where its bits may follow the cuts, arrays that were cut by times get cuts from counts. Errors as of
        :meth:`prepare`.
        """
        found = dict(entries)
        found = _with(found, self.layouts.aligned(entries))
        return _with(found, self.decider.back_to_counts(found)) if plan.depends_on_layout else found

    def prepare(
        self,
        entries: Mapping[Expr, Entry],
        plan: ControlPlan,
        span: Span,
    ) -> dict[Expr, Entry]:
        """Repartition stored arrays before a loop reads them, where it pays, and return all of them.

        Parameters
        ----------
        entries, plan
            What it reads, and how it would run over these: measured times may decide where its bits do not
            follow the cuts, else only counts, which repeat.
        span
            Of its iterations.

        Raises
        ------
        OwnersLost
            When a worker was lost; nothing is half done.
        CellCancelled
            On an interrupt; nothing is half done.
        """
        found, by_time = dict(entries), not plan.depends_on_layout
        if self.decider.setting.is_off or self._planner.workers().slots == 1:
            return found
        remaining = replace(span, has_until=span.has_until or not isfinite(span.limit)).num_remaining(0)
        works, tie = _asked_once(plan), _tie_in(plan)
        for group in self.groups.of(found):
            group.state.hindered, group.state.tied = "", tie
            asked = Question(by_time, 0, remaining, work=partial(_work_of, group, works))
            decision = self.decider.ask_before(group, asked)
            if decision.acts and tie:
                decision = replace(decision, acts=False, after=decision.before, reason=tie)
            found = _with(found, self.decider.enacted(group, decision, by_time))
        return found

    def before_run(self, plan: Plan) -> bool:
        """Repartition stored arrays that an ordinary run is about to read, by the times of earlier runs.

        Where its last bits may follow the cuts, arrays that were cut by times get cuts from counts instead.
        Returns whether it has to be planned anew; errors as of :meth:`prepare`.
        """
        reused = {node: entry for node in plan.reused if (entry := self._store.entry(node)) is not None}
        groups = self.groups.of({node: entry for node, entry in reused.items() if node.sparse})
        asked = [] if self.decider.setting.is_off else list(filter(self._is_asked, groups))
        if not (asked or any(self.layouts.counted(entry) for entry in reused.values())):
            return False
        slots = {slot for task in plan.tasks for slot in task.inputs}
        read = {node: entry for node, entry in reused.items() if not slots.isdisjoint(plan.reused[node].keys)}
        if depends_on_layout(plan.stages, plan.tasks):
            return bool(self.decider.back_to_counts(read))
        by_time = self.decider.setting.name == "auto"
        new: dict[Entry, Entry] = {}
        for group in asked:
            if read.keys().isdisjoint(group.arrays):
                continue
            self.decider.refine(group, by_time)
            num_runs, since = group.state.num_runs, float(group.state.num_runs - group.state.last_by_parts)
            decision = self.decider.ask(group, Question(by_time, num_runs, since, in_loop=False))
            new.update(self.decider.enacted(group, decision, by_time))
        return bool(new)

    def _is_asked(self, group: Group) -> bool:
        # Between runs: whether any since the last that takes cuts from times back have read it.
        return group.state.num_runs > group.state.last_by_parts and self._planner.workers().slots > 1

    def note_run(self, plan: Plan, timed: Sequence[TaskTimed]) -> None:
        """Take what an ordinary run's tasks took, of those that work on blocks of stored sparse arrays."""
        if not self.decider.setting.reads_times:
            return
        arrays = {
            node: entry
            for node in plan.reused
            if node.sparse and (entry := self._store.entry(node)) is not None
        }
        groups = self.groups.of(arrays) if arrays else []
        if not groups or self._planner.workers().slots == 1:
            return
        working = [task for task in plan.tasks if not task.kind.lays_out]
        if not working:
            return
        by_parts = depends_on_layout(plan.stages, plan.tasks)
        seconds = {one.key: one for one in timed if not one.compiled}
        for group in groups:
            state = group.state
            state.num_runs += 1
            if by_parts:
                state.last_by_parts = state.num_runs
                continue  # nor do such runs decide
            number_of = {slot: number for number, slot in enumerate(plan.reused[group.main].keys)}
            own: dict[int, dict[int, float]] = {}
            for task in working:
                read = [number_of[slot] for slot in task.inputs if slot in number_of]
                if len(read) == 1 and task.key in seconds:
                    one = seconds[task.key]
                    blocks = own.setdefault(one.worker, {})
                    blocks[read[0]] = blocks.get(read[0], 0.0) + one.seconds
            if sum(map(len, own.values())) == group.cuts.num_blocks:
                for owner, blocks in own.items():
                    group.measured(owner, state.num_runs, 1, blocks, 0.0, self.decider.model)
                self.decider.tell_gain(state, 0.0)

    def ask_now(self) -> tuple[Decision, ...]:
        """Repartition the stored sparse arrays that measured times show badly cut; return the decisions."""
        self._planner.drop_dead()
        entries = {node: entry for entry, node in self._store.named().items()}
        decisions = []
        for group in self.groups.of(entries):
            self.decider.refine(group, by_time=True)
            asked = Question(True, group.state.num_measured, float(_MANY))
            decision = replace(Automatic().decide(self.decider.situation(group, asked)), policy="asked")
            self.decider.enacted(group, decision, by_time=True)
            decisions.append(decision)
        return tuple(decisions)

    # what a user asks for

    def repartition(self, node: Expr, parts: tuple[int, ...] | Grid | None) -> None:
        """Repartition a stored array, and with it the arrays that are kept aligned with it.

        Parameters
        ----------
        parts
            Where, or how many along each axis, of equal work by times, else entries; None: a part a thread.

        Raises
        ------
        OptionError
            Where it is aligned with arrays that cannot be cut so, or one of them has to keep its cuts.
        """
        self._planner.retain([node])  # arrays without a handle bind no others
        partners = self.groups.partners(node)
        axes = tuple(range(node.ndim)) if partners is None else partners.axes
        if parts is None:
            parts = self.layouts.counts_along(node, axes if 0 not in axes else (0,))
        entry = self._store.entry(node)
        assert entry is not None, "it was just computed"
        grid = parts if isinstance(parts, Grid) else None
        counts = parts.counts if isinstance(parts, Grid) else parts
        beyond = [axis for axis, count in enumerate(counts) if count > 1 and axis not in axes]
        if beyond:
            others = ", ".join(map(self.groups.name, self.groups.beside(node)))
            raise OptionError(
                f"repartition: {self.groups.name(node)} is aligned on {axes_text(axes)} with {others} and "
                f"cannot be cut along {axes_text(beyond)}: give one part there"
            )
        if max(counts[1:], default=1) > 1 or 0 not in axes or not has_rows_cut(entry):
            layout = self.layouts.evenly(node, counts, entry) if grid is None else self.layouts.spread(grid)
            self._lay_out(node, layout, axes)
            return
        group = self.groups.made(node, {node: entry, **self.groups.beside(node)})
        if grid is None and node.sparse and node.ndim == 2:
            self.decider.refine(group, by_time=True, always=True)
        situation = self.decider.situation(group, Question(grid is None, group.state.num_runs, 0.0))
        after = self.layouts.rows_in(situation, counts[0]) if grid is None else self.layouts.rows_at(grid)
        if grid is not None and after.cuts == group.cuts.cuts and situation.has_owners:
            after = group.cuts
        reason = "a user wants these parts"
        decision = changed(situation, "asked", reason, after, "segmented")
        self.decider.enacted(group, decision, by_time=grid is None, must=True)

    def _lay_out(self, node: Expr, layout: Layout, axes: Sequence[int]) -> None:
        # Gives an array another layout, and with it those that are to lie as it does.
        arrays = {one: entry.stored for one, entry in self.groups.beside(node).items()}
        layouts = {node: layout, **{one: layout.along(axes, one.shape) for one in arrays}}
        entries = [entry for one in layouts if (entry := self._store.entry(one)) is not None]
        if reason := self.layouts.held(entries):
            raise OptionError(
                f"repartition: {self.groups.name(node)} cannot be cut anew: {reason}; {RELEASE}"
            )
        self.layouts.forget_times(entries)
        parts = " x ".join(map(str, layout.grid.counts))
        self.layouts.lay_out(layouts, "asked", f"a user wants these parts: {parts} blocks")

    # while a loop runs

    def watch(self, entries: Mapping[Expr, Entry], plan: ControlPlan, span: Span) -> LoopWatch | None:
        """Return what follows a loop from an iteration on, until it ends or pauses; None for nothing.

        Where times may not decide it only looks for workers that come.

        Parameters
        ----------
        entries, plan
            What it reads, and how it runs.
        span
            Of its iterations.
        """
        groups = self.groups.of(entries)
        if self.decider.setting.is_off or not groups:
            return None
        workers = self._planner.workers()
        read = {digest for digest, _ in plan.works.values()}
        by_time = self.decider.setting.reads_times and not plan.depends_on_layout and workers.slots > 1
        watched = [
            group for group in groups if by_time and any(node.digest.hex() in read for node in group.arrays)
        ]
        for group in watched:
            if not span.first:
                group.state.leave_loop()
            if group.state.cuts != group.cuts or not span.first:
                group.begin(self.decider.model)
        works = _asked_once(plan)
        return LoopWatch(self.decider, watched, plan.works, works, workers.numbers, span)

    def repartition_paused(self, watch: LoopWatch, entries: Mapping[Expr, Entry]) -> dict[Expr, Entry]:
        """Do what a watch decided, now that its loop has paused, and return all arrays that it reads.

        Errors as of :meth:`prepare`.
        """
        self.decider.be_patient()
        found, have_come = dict(entries), not set(self._planner.workers().numbers).issubset(watch.workers)
        for group in self.groups.of(found):
            by_time = group.main in watch.mains
            if not (by_time or have_come) or group.state.tied:
                continue
            self.decider.refine(group, by_time)
            decision = self.decider.ask(group, _asked_in(watch, group, by_time))
            found = _with(found, self.decider.enacted(group, decision, by_time, watch))
        return found

    def undo(self, entries: Mapping[Expr, Entry], reason: str) -> dict[Expr, Entry]:
        """Take a repartition that was just done back, and return all arrays; errors as of :meth:`prepare`."""
        found = dict(entries)
        for group in self.groups.of(found):
            found = _with(found, self.decider.undone(group, reason))
        return found


def _asked_in(watch: LoopWatch, group: Group, by_time: bool = True) -> Question:
    # What a policy is asked about a group while its loop runs.
    return Question(
        by_time,
        watch.iteration,
        watch.num_remaining,
        watch.iteration_seconds(group.state),
        work=partial(_work_of, group, watch.row_works),
    )


def _asked_once(plan: ControlPlan) -> Callable[[], Mapping[str, RowWork]]:
    # Gives the work of an iteration; a plan of many blocks is gone through when that is asked, and then once.
    return cache(partial(row_works, plan))


def _work_of(group: Group, works: Callable[[], Mapping[str, RowWork]]) -> RowWork:
    # They are under the heaviest array of the group that the loop reads.
    known = works()
    digests = (node.digest.hex() for node in group.arrays)
    return next((known[one] for one in digests if one in known), RowWork())


def _tie_in(plan: ControlPlan) -> str:
    # Why a loop's arrays keep their cuts: its body calls a function that is tied to them.
    ties = (tie_of(stage.expression) for stage in plan.stages)
    return next((tie[0] for tie in ties if tie is not None), "")


def _with(entries: Mapping[Expr, Entry], new: Mapping[Entry, Entry]) -> dict[Expr, Entry]:
    return {node: new.get(entry, entry) for node, entry in entries.items()}


# Asks a policy about a group of arrays, does what it decides, and notes what that gained.

_EVEN = 1.02  # the slowest thread's entries over the mean; from here on it is looked where entries are
_UNKNOWN = float("nan")
_BITS = "bits"  # the policy by which cuts follow from counts again
_NO_WAY_BACK = (
    '"{0}" is cut as measured times had it, which the last bits of what runs next may follow, and there is '
    "no room to cut it by its entries again: {1}. mn.repartition(x, cuts=x.layout.grid.cuts) of each array x "
    "of these keeps the cuts."
)


class Decider:
    """Asks, enacts and remembers.

    Attributes
    ----------
    setting
        Gives the policies; another one may be set.
    history
        Of all decisions.
    model
        What an entry and a row take.
    """

    def __init__(
        self,
        setting: RebalanceSetting,
        planner: Planner,
        repartitioner: Repartitioner,
        layouts: StoredLayouts,
        emit: Callable[[Event], None],
    ) -> None:
        self.setting, self._planner, self._repartitioner = setting, planner, repartitioner
        self._layouts, self._emit = layouts, emit
        self.history = layouts.history
        self.model = LoadModel()
        self._costs, self._pause_costs = LearnedCosts(), LearnedCosts()
        self._patient_until = 0.0  # by the clock, before loops pause for newcomers again

    def ask_before(self, group: Group, asked: Question) -> Decision:
        """Return what the policy decides before a loop; where entries are is looked up if it may pay at all.

        Raises
        ------
        OwnersLost
            When a worker was lost.
        CellCancelled
            On an interrupt.
        """
        situation, by_time = self.situation(group, asked), asked.by_time
        # What was seen under cuts that follow times must not decide, nor whether it is looked again.
        is_fresh = by_time or group.state.profile is None or group.state.profiled == group.cuts
        is_own = self.setting.name in ("auto", "entries")
        if not (is_own and is_fresh and not may_pay(situation)) and self.refine(group, by_time):
            situation = self.situation(group, asked)
        return self._decision(group, situation, by_time)

    def ask(self, group: Group, asked: Question) -> Decision:
        """Return what the policy decides."""
        return self._decision(group, self.situation(group, asked), asked.by_time)

    def _decision(self, group: Group, situation: Situation, by_time: bool) -> Decision:
        # Without times "auto" decides as "entries" does.
        if not by_time and self.setting.name == "auto":
            return group.state.by_counts.decide(situation)
        return group.state.policy.decide(situation)

    def refine(self, group: Group, by_time: bool, always: bool = False) -> bool:
        """Look where the entries are, if it may matter: that takes a run. Return whether it was looked.

        Where times may not decide it is looked in any case, and under these cuts: what was seen under others
        may have been seen because of times.

        Raises
        ------
        OwnersLost
            When a worker was lost.
        CellCancelled
            On an interrupt.
        """
        if self.setting.name == "replay" and not always:
            return False
        if group.state.profile is not None and (by_time or group.state.profiled == group.cuts):
            return False
        owners, workers = group.cuts.owners, self._planner.workers()
        loads = (group.entry.stored.block_nnz, group.block_seconds())
        if by_time and not always and max(_unevenness(one, owners, workers) for one in loads) <= _EVEN:
            return False
        group.refine(self._repartitioner.profile(group.main, group.entry))
        return True

    def situation(self, group: Group, asked: Question) -> Situation:
        """Return what a policy sees of a group; measured times only where they may decide."""
        costs = self._pause_costs if asked.in_loop and asked.iteration else self._costs
        asked = replace(asked, by_time=asked.by_time and self.setting.reads_times)
        return group.situation(asked, self._planner.workers(), self.model, costs.now)

    def note_refusal(self, decision: Decision) -> None:
        """Note that it stays as it is; listeners get it unless that was so the last time."""
        last = self.history.last(decision.name)
        if self.history.add(decision) != (last and last.number):
            self._tell(decision, 0.0, 0)

    def enacted(
        self,
        group: Group,
        decision: Decision,
        by_time: bool,
        watch: LoopWatch | None = None,
        must: bool = False,
    ) -> Mapping[Entry, Entry]:
        """Do what was decided, and return what each entry became; errors as of a Repartitioner.

        Parameters
        ----------
        by_time
            Whether measured times may have decided.
        watch
            Of the loop that has paused for it.
        must
            Whether a user wants it so: then a lack of room is an error, else the decision is refused, and
            the cuts are not taken back, though they may follow from times.
        """
        if must and decision.after == group.cuts:
            self._layouts.forget_times(group.arrays.values())
        if decision.acts and decision.after == group.cuts:
            decision = replace(decision, acts=False, reason="unchanged: these are the cuts")
            if watch is not None:
                group.state.hindered = decision.reason
        if decision.acts and (reason := self._layouts.held(group.arrays.values())):
            if must:
                raise OptionError(f"repartition: {group.name} cannot be cut anew: {reason}; {RELEASE}")
            group.state.hindered = reason
            decision = replace(decision, acts=False, after=decision.before, reason=reason)
        workers = self._planner.workers().numbers
        if decision.acts and (wrong := _wrong(decision.after, group.cuts, workers)):
            group.state.hindered = wrong
            decision = replace(decision, acts=False, after=decision.before, reason=wrong)
        if not decision.acts:
            self.note_refusal(decision)
            return {}
        counted = {} if must else self._counted(group, decision, by_time)
        try:
            done = self._layouts.change_rows(group.name, group.arrays, decision.after, group.state.profile)
        except TooLargeError as error:
            if must:
                raise
            if decision.policy == _BITS:
                raise TooLargeError(_NO_WAY_BACK.format(group.name, error)) from None
            group.state.hindered = f"no room: {error}"
            self.note_refusal(replace(decision, acts=False, reason=group.state.hindered))
            return {}
        number = self.history.add(decision)
        self._tell(decision, done.seconds, done.moved_bytes)
        for node, cuts in counted.items():
            self._layouts.follow_times(done.entries[node], cuts)
        pending = PendingGain(
            number,
            decision,
            0.0 if watch is None else watch.iteration_seconds(group.state),
            done.seconds,
            done.moved_bytes,
            done.moved_bytes + done.copied_bytes / COPY_RATE,
            None if watch is None else watch.last_advanced or None,
        )
        self.history.gained(number, Gain({}, _UNKNOWN, done.seconds, done.moved_bytes))
        if pending.paused_at is None:
            self._costs.learn(done.seconds, pending.weighed_bytes)
        group.state.pending = None if decision.policy == _BITS else pending
        group.state.was_repartitioned, group.state.hindered = True, ""
        return self._begun(group, done)

    def undone(self, group: Group, reason: str) -> Mapping[Entry, Entry]:
        """Undo a group's last repartition, if nothing was measured since; errors as of :meth:`enacted`."""
        pending, group.state.pending = group.state.pending, None
        if pending is None or pending.decision.after != group.cuts:
            return {}
        done = self._layouts.change_rows(
            group.name, group.arrays, pending.decision.before, group.state.profile
        )
        for node, entry in group.arrays.items():
            if (counted := self._layouts.counted(entry)) is not None:
                self._layouts.follow_times(done.entries[node], counted)
        group.state.hindered = f"no room: {reason}"
        self.note_refusal(replace(pending.decision, acts=False, reason=group.state.hindered))
        return self._begun(group, done)

    def _begun(self, group: Group, done: Repartition) -> dict[Entry, Entry]:
        # What each entry became; the blocks are followed as they are cut from now on.
        replace(group, arrays=done.entries).begin(self.model)
        return {group.arrays[node]: entry for node, entry in done.entries.items()}

    def back_to_counts(self, entries: Mapping[Expr, Entry]) -> dict[Entry, Entry]:
        """Give arrays whose cuts follow from measured times those that counts gave, for what depends on them.

        Where owners are gone the parts are spread over the workers there are. Returns what each entry became;
        errors as of :meth:`enacted`.
        """
        alike: dict[tuple[Cuts, Cuts], dict[Expr, Entry]] = {}
        for node, entry in entries.items():
            counted = self._layouts.counted(entry)
            if counted is not None:
                alike.setdefault((entry.stored.layout.rows, counted), {})[node] = entry
        workers = self._planner.workers().numbers
        new: dict[Entry, Entry] = {}
        for (_, counted), followers in alike.items():
            arrays = {node: entry for node, entry in followers.items() if entry not in new}
            if not arrays:
                continue
            group = self._layouts.group(arrays)
            owners = counted.owners
            if not set(workers).issuperset(owners):
                owners = spread(len(owners), workers)
            situation = self.situation(group, Question(False, 0, 0.0))
            reason = "counted: bits of what runs next may follow the cuts, so times must not decide them"
            decision = changed(situation, _BITS, reason, Cuts(counted.cuts, owners), "segmented")
            new.update(self.enacted(group, decision, by_time=False))
        return new

    def _counted(self, group: Group, decision: Decision, by_time: bool) -> Mapping[Expr, Cuts]:
        # The cuts from counts, of each array whose new ones may follow from anything that was measured.
        if decision.policy == _BITS:
            return {}
        before = {node: self._layouts.counted(entry) for node, entry in group.arrays.items()}
        was_measured = by_time and self.setting.reads_times and group.state.num_measured > 0
        if not (was_measured or decision.block_seconds or any(before.values())):
            return {}
        return {node: cuts or decision.before for node, cuts in before.items()}

    # while a loop runs

    def reported(
        self,
        watch: LoopWatch,
        group: Group,
        owner: int,
        num_iterations: int,
        seconds: Mapping[int, float],
        other_seconds: float,
    ) -> None:
        """Take what one worker needed for its blocks in a loop, the sum over some iterations."""
        group.measured(owner, watch.iteration, num_iterations, seconds, other_seconds, self.model)
        situation = self.situation(group, _asked_in(watch, group))
        self.history.measured(situation, owner, num_iterations, seconds)
        self.tell_gain(group.state, watch.iteration_seconds(group.state))

    def decided(self, watch: LoopWatch, group: Group) -> Decision:
        """Ask the policy of a group while its loop runs; a refusal is noted."""
        decision = self.ask(group, _asked_in(watch, group))
        hindered = group.state.tied or self._layouts.held(group.arrays.values()) or group.state.hindered
        if decision.acts and hindered:
            decision = replace(decision, acts=False, reason=hindered)
        if not decision.acts:
            self.note_refusal(decision)
        return decision

    def next_iteration(self, watch: LoopWatch, group: Group) -> float | None:
        """Ask the policy after how many iterations it acts next; None where that follows from the news."""
        policy = group.state.policy
        if not isinstance(policy, Foreseer):
            return None
        return policy.next_iteration(self.situation(group, _asked_in(watch, group)))

    def have_come(self, workers: tuple[int, ...]) -> bool:
        """Tell whether workers are there that are none of these."""
        return self._planner.have_come(workers) and time.monotonic() >= self._patient_until

    def be_patient(self) -> None:
        """Let loops not pause for a while for newcomers that cannot be used yet."""
        if self._planner.have_come(self._planner.workers().numbers):
            self._patient_until = time.monotonic() + _PATIENCE_SECONDS

    def began(self, seconds: float) -> None:
        """Take how long a loop took to begin: no pause takes less, whatever it moves."""
        self._pause_costs.at_least(seconds)

    def went_on(self, watch: LoopWatch, group: Group, now: float) -> None:
        """Take the first news of a loop after a repartition: what the change took is known then."""
        pending = group.state.pending
        if pending is None or pending.paused_at is None or not watch.last_seconds:
            return
        begun = now - watch.last_seconds * (watch.iteration - watch.span.first)
        pending.cost_seconds = max(pending.cost_seconds, begun - pending.paused_at)
        pending.paused_at = None
        self._pause_costs.learn(pending.cost_seconds, pending.weighed_bytes)
        gain = Gain({}, _UNKNOWN, pending.cost_seconds, pending.moved_bytes)
        self.history.gained(pending.number, gain)

    def tell_gain(self, state: GroupState, iteration_seconds: float) -> None:
        """Note what the last repartition gained, once enough was measured after it.

        ``iteration_seconds``: what one takes by the clock, 0.0 where that is not known or was not before.
        """
        pending, loads = state.pending, state.loads
        if pending is None or loads is None or not state.can_tell_gain:
            return
        before = pending.before_seconds
        if before and not iteration_seconds:
            return
        saving = before - iteration_seconds if before else _UNKNOWN
        gain = Gain(loads.loads(), saving, pending.cost_seconds, pending.moved_bytes)
        self.history.gained(pending.number, gain)
        if isinstance(state.policy, LearningPolicy):
            state.policy.brought(pending.decision, gain)
        state.pending = None

    def _tell(self, decision: Decision, seconds: float, moved_bytes: int) -> None:
        self._emit(rebalanced(decision, seconds, moved_bytes))


def _unevenness(loads: Sequence[float], owners: Sequence[int], workers: Workers) -> float:
    # The slowest thread's part of the blocks' loads over the mean of all.
    total = sum(loads)
    return makespan(loads, owners, workers.threads) * workers.slots / total if total > 0 else 1.0


def _wrong(cuts: Cuts, now: Cuts, workers: Sequence[int]) -> str:
    # Why arrays cannot be cut as a user's policy, or a trace, has it; empty where they can.
    ends = (cuts.cuts[0], cuts.cuts[-1]) if cuts.cuts else ()
    if ends != (0, now.cuts[-1]) or any(low >= high for low, high in cuts.ranges()):
        return f"no cuts: {list(cuts.cuts[:8])} do not ascend from 0 to {now.cuts[-1]}"
    if len(cuts.owners) != len(cuts.cuts) - 1 or not set(workers).issuperset(cuts.owners):
        return (
            f"no owners: {list(cuts.owners[:8])} for {len(cuts.cuts) - 1} blocks on workers {list(workers)}"
        )
    return ""
