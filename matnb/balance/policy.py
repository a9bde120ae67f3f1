"""Policies: each decides whether a group of arrays is to be repartitioned, and gives its reason."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from matnb.balance.contiguous import Work, parts_within
from matnb.balance.decision import Decision, Gain, certain_error, changed, kept, least_makespan
from matnb.balance.partition import cuts_for, loads_of, makespan_of
from matnb.balance.situation import Costs, Floats, Profile, Situation, Strategy
from matnb.balance.trace import Trace
from matnb.blocks.layout import Cuts, spread
from matnb.errors import OptionError, suggestion
from matnb.io.source import ROW_ENTRIES
from matnb.pictures.imbalance import imbalance
from matnb.pictures.quantities import bytes_text, plural_text, seconds_text

LEAST_GAIN = 0.08  # of an iteration's kernel seconds: two workers' imbalance is 1.09
LEAST_GAIN_ENTRIES = 0.1  # the same where entries stand for seconds, which they tell so well only
MARGIN = 1.5  # by which the seconds saved must exceed those it takes
NUM_MEASURED = 2  # iterations since the last time
MOST_REPARTITIONS, OFTEN = 6, 80  # so many in so many iterations: what is measured does not last
MOST_CAUTION = 4.0
CALM = 16  # iterations after the last repartition that halve it
ENTRY_SECONDS = 2e-9  # of a product, until some were measured
ROW_SECONDS = ROW_ENTRIES * ENTRY_SECONDS
_BYTE_SECONDS = ENTRY_SECONDS / 20  # of dense rows that are read and written, beside random reads of a vector
# Until measured: looking where entries are, planning, moving, beginning anew, each some tens of milliseconds.
FIXED_COSTS = Costs(0.1, 1e9)


class Policy(Protocol):
    """Decides whether a group of arrays is to be repartitioned; an object may be kept for each group."""

    name: str

    def decide(self, situation: Situation) -> Decision:
        """Return what to do, with its reason."""


@runtime_checkable
class LearningPolicy(Policy, Protocol):
    """A policy that wants to know what its decisions gained."""

    def brought(self, decision: Decision, gain: Gain) -> None:
        """Take what was measured after a decision was acted upon."""


@runtime_checkable
class Foreseer(Policy, Protocol):
    """A policy that knows beforehand when it will act in a loop, which then pauses exactly there."""

    def next_iteration(self, situation: Situation) -> float:
        """Return after how many iterations of the loop it wants to be asked next.

        Parameters
        ----------
        situation
            As the loop begins, or goes on after a pause.

        Returns
        -------
        float
            A whole number above ``situation.iteration``; infinity for never again in this loop.
        """


class Automatic:
    """Repartitions when that saves more in the remaining iterations than it costs, beyond measurement error.

    After a repartition that gained less than half of what was predicted it asks for twice as much, up to
    four times; after one that gained it, and after every sixteen iterations without one, for half of that
    again: what is measured for so long can be relied on. Where six repartitions in eighty iterations were
    not the last, it waits.
    """

    name = "auto"

    def __init__(self) -> None:
        self._caution = 1.0
        self._repartitions: deque[int] = deque(maxlen=MOST_REPARTITIONS)  # after which iterations

    def decide(self, situation: Situation) -> Decision:
        """Return what to do; workers that came or went count before all else."""
        if not situation.speeds:
            return kept(situation, self.name, "no workers: nothing can be laid out")
        if situation.cuts.num_blocks == 0 or situation.profile.length == 0:
            return kept(situation, self.name, "no rows: nothing to cut")
        gone = set(situation.cuts.owners) - set(situation.speeds)
        newcomers = set(situation.speeds) - set(situation.cuts.owners)
        loads = loads_of(situation, situation.cuts)
        refused = None if gone else self._refused_at_once(situation, loads)
        if refused and not newcomers:
            return kept(situation, self.name, refused, loads)
        cuts, strategy, _ = cuts_for(situation)
        if gone:
            reason = f"workers lost: {len(gone)} of the {len(set(situation.cuts.owners))} that held blocks"
            return changed(situation, "workers", reason, cuts, strategy)
        if newcomers & set(cuts.owners):
            return self._spread(situation, cuts, strategy, len(newcomers))
        if refused:
            return kept(situation, self.name, refused, loads)
        return self._weighed(situation, cuts, strategy, imbalance(loads))

    def brought(self, decision: Decision, gain: Gain) -> None:
        """Grow cautious where a repartition gained less than half of what was predicted."""
        if self._repartitions and decision.iteration < self._repartitions[-1]:
            self._repartitions.clear()
        self._repartitions.append(decision.iteration)
        saving = gain.saving_seconds
        if math.isnan(saving) and gain.loads and not decision.in_entries:
            saving = max(decision.loads_before.values()) - max(gain.loads.values())
        if decision.policy == "workers" or math.isnan(saving):
            return
        if saving < decision.saving_seconds / 2:
            self._caution = min(MOST_CAUTION, 2 * self._caution)
        else:
            self._caution = max(1.0, self._caution / 2)

    def _cautious(self, situation: Situation) -> float:
        return max(1.0, self._caution * 0.5 ** (max(0, situation.since_last) // CALM))

    def _refused_at_once(self, situation: Situation, loads: Mapping[int, float]) -> str | None:
        """Return why nothing is to be done where that is plain without looking for other cuts."""
        if not situation.num_remaining > 0:
            return "at the end: no iterations remain"
        measured = situation.since_last if situation.since_last >= 0 else situation.iteration
        wanted = math.ceil(NUM_MEASURED * self._cautious(situation))
        if situation.block_seconds and measured < wanted:
            return f"too early: {plural_text(measured, 'iteration')} measured, {wanted} needed"
        first = self._repartitions[0] if len(self._repartitions) == MOST_REPARTITIONS else math.inf
        if 0 <= situation.iteration - first < OFTEN:
            times = f"{MOST_REPARTITIONS} repartitions since iteration {first}"
            return f"too often: the gain of {times} did not last"
        now = makespan_of(situation, situation.cuts)
        then, cost_seconds = least_makespan(situation, loads), situation.costs.seconds(0)
        return self._small(situation, now, then, cost_seconds, imbalance(loads))

    def _small(
        self, situation: Situation, now: float, then: float, cost_seconds: float, uneven: float
    ) -> str | None:
        """Return why bringing an iteration's seconds of kernels from ``now`` to ``then`` is not worth it."""
        share = 1 - then / now if now > 0 else 0.0
        least = LEAST_GAIN if situation.block_seconds else LEAST_GAIN_ENTRIES
        outweighs = situation.apart_row_seconds > 0 and uneven > 1 + least
        if share < least * self._cautious(situation):
            because = ", since all workers also wait for the one with the most rows" if outweighs else ""
            return (
                f"balanced: the slowest worker takes {uneven:.2f} times the mean; new cuts would save "
                f"{max(0.0, share):.0%} of an iteration at most, too little to move for{because}"
            )
        noise = certain_error(situation, now - then, cost_seconds)
        if share < noise:
            return (
                f"left as is: the estimated saving ({share:.0%} of an iteration) is within measurement error "
                f"({noise:.0%})"
            )
        return None

    def _spread(self, situation: Situation, cuts: Cuts, strategy: Strategy, num_newcomers: int) -> Decision:
        verb = "has" if num_newcomers == 1 else "have"
        reason = f"workers joined: {plural_text(num_newcomers, 'worker')} {verb} no block yet"
        decision = changed(situation, "workers", reason, cuts, strategy)
        refused = _unpaid(decision, 1.0)
        return replace(decision, acts=False, reason=refused) if refused else decision

    def _weighed(self, situation: Situation, cuts: Cuts, strategy: Strategy, uneven: float) -> Decision:
        now, then = makespan_of(situation, situation.cuts), makespan_of(situation, cuts)
        share = 1 - then / now if now > 0 else 0.0
        reason = (
            f"uneven: the slowest worker takes {uneven:.2f} times the mean; new cuts save {share:.0%} of an "
            "iteration"
        )
        decision = changed(situation, self.name, reason, cuts, strategy)
        refused = self._small(situation, now, then, decision.cost_seconds, uneven)
        refused = refused or _unpaid(decision, MARGIN * self._cautious(situation))
        return replace(decision, acts=False, reason=refused) if refused else decision


class ByEntries:
    """As :class:`Automatic`, but only before the first run, and by counts alone, nothing that is measured."""

    name = "entries"

    def __init__(self) -> None:
        self._automatic = Automatic()

    def decide(self, situation: Situation) -> Decision:
        """Return what to do; after the first run only workers that came or went are a reason."""
        counted = replace(
            situation,
            block_seconds=(),
            error=0.0,
            speeds=dict.fromkeys(sorted(situation.speeds), 1.0),
            entry_seconds=ENTRY_SECONDS if situation.block_seconds else situation.entry_seconds,
            row_seconds=ROW_SECONDS if situation.block_seconds else situation.row_seconds,
            apart_row_seconds=0.0 if situation.block_seconds else situation.apart_row_seconds,
            iteration_seconds=0.0,
            other_seconds={},
            costs=FIXED_COSTS,
        )
        decision = self._automatic.decide(counted)
        if decision.policy == "workers":
            return decision
        if situation.iteration > 0:
            return kept(situation, self.name, "entries: counts decide only before the first run")
        return replace(decision, policy=self.name)


def counted_seconds(passes: float, row_bytes: float, apart_bytes: float) -> tuple[float, float, float]:
    """Return what an entry takes in an iteration, a row with it, and a row in phases of its own.

    That is as long as none was measured.

    Parameters
    ----------
    passes
        How often the entries are worked on, a product with a vector being one.
    row_bytes, apart_bytes
        Of dense arrays that are read and written for each row, in the phases in which entries are worked on,
        and in others.
    """
    return (
        ENTRY_SECONDS * passes,
        ROW_SECONDS * passes + _BYTE_SECONDS * row_bytes,
        _BYTE_SECONDS * apart_bytes,
    )


class Off:
    """Never repartitions."""

    name = "off"

    def decide(self, situation: Situation) -> Decision:
        """Return that nothing is to be done."""
        return kept(situation, self.name, "off: repartitioning is turned off")


def _unpaid(decision: Decision, margin: float) -> str | None:
    saved = decision.saving_seconds * decision.num_remaining
    if saved > margin * decision.cost_seconds:
        return None
    return (
        f"would not pay: moving {bytes_text(decision.moved_bytes)} costs "
        f"{seconds_text(decision.cost_seconds)} and would save {seconds_text(max(0.0, saved))} in the "
        f"{decision.num_remaining:.6g} iterations left"
    )


def policy_named(name: str) -> Policy:
    """Return a new policy: "auto", "entries", "presto" or "off".

    Raises
    ------
    OptionError
        When there is none of that name.
    """
    known: dict[str, Callable[[], Policy]] = {
        "auto": Automatic,
        "entries": ByEntries,
        "presto": Presto,
        "off": Off,
    }
    if name not in known:
        raise OptionError(f"no policy {name!r}; {suggestion(name, known)}")
    return known[name]()


# Presto's own rule, to compare with: blocks of many elements are split, those of few are merged.

Flags = npt.NDArray[np.bool_]
MOST_BLOCKS_PER_SLOT = 64  # the rule has no end of its own where the median falls with every split


class Presto:
    """Splits blocks in two whose elements or seconds exceed a multiple of the median, and merges light ones.

    After Venkataraman et al. 2013, "Presto: Distributed machine learning and graph processing with sparse
    matrices", section 5.3. What moving costs does not matter. Owners get equal numbers of adjacent blocks.

    Parameters
    ----------
    threshold
        A block is heavy from this multiple of the median on, and light up to the median over it.
    """

    name = "presto"

    def __init__(self, threshold: float = 2.0) -> None:
        self.threshold = threshold

    def decide(self, situation: Situation) -> Decision:
        """Return what to do."""
        workers = sorted(situation.speeds)
        if not workers or situation.cuts.num_blocks == 0 or situation.profile.length == 0:
            return kept(situation, self.name, "no workers or no rows: nothing to cut")
        sizes = np.diff(situation.profile.before(situation.cuts.cuts))
        slots = len(workers) * max(1, situation.threads)
        heavy, light = self._marked(situation, sizes, slots)
        gone = set(situation.cuts.owners) - set(workers)
        if gone or len(set(situation.cuts.owners)) < min(len(workers), situation.cuts.num_blocks):
            policy, reason = "workers", f"workers changed: there are {len(workers)} now"
        elif situation.iteration == 0:
            return kept(situation, self.name, "too early: no iteration has finished")
        elif not situation.num_remaining > 0:
            return kept(situation, self.name, "at the end: no iterations remain")
        else:
            policy = self.name
            reason = (
                f"heavy blocks: {int(heavy.sum())} of {situation.cuts.num_blocks} take at least "
                f"{self.threshold:g} times the median; {int(light.sum())} at most the median over "
                f"{self.threshold:g}"
            )
        cuts = situation.cuts
        limit = self.threshold * float(np.median(sizes))
        merged = limit  # elements of the block to the right, if it is light
        for block in range(cuts.num_blocks - 1, -1, -1):
            if heavy[block]:
                cuts = split(cuts, situation.profile, block, 2)
            if light[block] and merged + sizes[block] < limit and cuts.num_blocks > slots:
                cuts = merge(cuts, block)
                merged += sizes[block]
            else:
                merged = sizes[block] if light[block] else limit
        after = Cuts(cuts.cuts, spread(cuts.num_blocks, workers))
        if after == situation.cuts:
            return kept(situation, self.name, f"even: no block takes {self.threshold:g} times the median")
        return changed(situation, policy, reason, after, "segmented")

    def _marked(self, situation: Situation, sizes: Floats, slots: int) -> tuple[Flags, Flags]:
        rows = np.diff(situation.cuts.cuts)
        heavy = sizes >= self.threshold * max(float(np.median(sizes)), 1.0)
        light = sizes <= float(np.median(sizes)) / self.threshold
        if situation.block_seconds:
            seconds = np.asarray(situation.block_seconds)
            usual = float(np.median(seconds))
            heavy |= (seconds >= self.threshold * usual) & (usual > 0)
            light &= seconds <= usual / self.threshold
        heavy &= rows > 1
        if situation.cuts.num_blocks + int(heavy.sum()) > MOST_BLOCKS_PER_SLOT * slots:
            heavy[:] = False
        return heavy, light & ~heavy


def split(cuts: Cuts, profile: Profile, block: int, count: int) -> Cuts:
    """Return the cuts with a block in ``count`` parts of about as many entries; fewer where it lacks rows.

    The parts stay with the block's owner.
    """
    work = Work(profile.places, profile.entries.astype(np.float64))
    inner = parts_within(work, cuts.cuts[block], cuts.cuts[block + 1], count)[1:-1]
    owners = (cuts.owners[block],) * len(inner)
    return Cuts(
        (*cuts.cuts[: block + 1], *inner, *cuts.cuts[block + 1 :]),
        (*cuts.owners[:block], *owners, *cuts.owners[block:]),
    )


def merge(cuts: Cuts, block: int) -> Cuts:
    """Return the cuts with a block and the one after it made one, which the first one's owner gets."""
    return Cuts(
        (*cuts.cuts[: block + 1], *cuts.cuts[block + 2 :]),
        (*cuts.owners[: block + 1], *cuts.owners[block + 2 :]),
    )


# The decisions of a trace once more.

_MOST_TOLD = 2
_NOT_REPEATED = (
    "aligned",
    "asked",
    "bits",
)  # by whom decisions were made that are made again without the trace
_MOST_NAMED = 6  # groups of the trace, to a user whose own is none of them
_SO_ALREADY = "already cut as the trace says"


class Replay:
    """A policy that repeats the decisions of a trace, in order, at their iterations, for the same names.

    A trace that knows of one group only may be repeated for a group of another name: the first that asks and
    has as many rows, until one of its own name asks. The object has a memory, so one serves all arrays of a
    session. Where workers have other numbers than in the trace, they stand for those in order.

    Parameters
    ----------
    trace
        Of which the decisions that were acted upon count, but for those a user asked for, who asks again,
        and those for the sake of bits.
    """

    name = "replay"

    def __init__(self, trace: Trace) -> None:
        self._waiting: dict[str, _RepeatedDecisions] = {}
        for one in trace.passed:
            if one.decision.axis or one.decision.policy == "aligned":
                continue  # no policy decides about these arrays
            waiting = self._waiting.setdefault(one.decision.name, _RepeatedDecisions(one.decision.name))
            waiting.lengths.add(one.decision.after.cuts[-1])
            if one.decision.acts and one.decision.policy not in _NOT_REPEATED:
                waiting.all.append(one.decision)

    def decide(self, situation: Situation) -> Decision:
        """Return the next decision of the trace when its iteration has come, else one to keep the cuts.

        A decision is told again until the cuts are as it says, at most twice: who asks while a loop runs asks
        again when it has paused.
        """
        waiting = self._about(situation)
        if waiting is None:
            return kept(situation, self.name, self._not_known(situation))
        waiting.serve(situation.name)
        if waiting.is_done(situation):
            waiting.take()
        waiting.note(situation.iteration)
        reason = "the trace has ended: all its decisions were repeated"
        while waiting.decisions:
            decision = waiting.decisions[0]
            if not waiting.has_come(situation.iteration):
                if waiting.num_told:  # nobody acted upon it in its loop
                    waiting.take()
                    continue
                reason = (
                    f"not yet: the trace repartitions {waiting.name} after iteration {decision.iteration}"
                )
                break
            repeated = _repeated(decision, situation)
            if isinstance(repeated, Decision):
                waiting.num_told += 1
                return repeated
            waiting.take()
            reason = repeated
            if repeated != _SO_ALREADY:
                break
        return kept(situation, self.name, reason)

    def next_iteration(self, situation: Situation) -> float:
        """Return after how many iterations of the loop it wants to be asked next; infinity for never."""
        waiting = self._about(situation)
        return math.inf if waiting is None else waiting.next_after(situation.name, situation.iteration)

    def _about(self, situation: Situation) -> _RepeatedDecisions | None:
        if situation.name not in self._waiting and len(self._waiting) == 1:
            (only,) = self._waiting.values()
            is_free = not only.served and situation.cuts.cuts[-1] in only.lengths
            return only if is_free or only.served == situation.name else None
        return self._waiting.get(situation.name)

    def _not_known(self, situation: Situation) -> str:
        if not self._waiting:
            return "not in the trace: it has no decisions"
        if len(self._waiting) == 1:
            (only,) = self._waiting.values()
            if not only.served:
                rows = " or ".join(f"{length:,}" for length in sorted(only.lengths)[:_MOST_NAMED])
                return (
                    f'not in the trace: it knows the group "{only.name}" of {rows} rows only, and '
                    f'"{situation.name}" has {situation.cuts.cuts[-1]:,}'
                )
        known = ", ".join(
            f'"{one.name}"' if one.served in ("", one.name) else f'"{one.name}" (here "{one.served}")'
            for one in [*self._waiting.values()][:_MOST_NAMED]
        )
        more = ", ..." if len(self._waiting) > _MOST_NAMED else ""
        return f'not in the trace: it knows groups {known}{more}, and none is called "{situation.name}"'


@dataclass
class _RepeatedDecisions:
    """Decisions about one name that are still to be repeated.

    Iterations begin again with every loop. Decisions of a later loop, whose iterations do not go on from
    those before, wait for it.
    """

    name: str  # in the trace
    lengths: set[int] = field(default_factory=set)  # rows that it cuts
    all: list[Decision] = field(default_factory=list)
    served: str = ""  # the name of the group that asks for them
    decisions: deque[Decision] = field(default_factory=deque)  # that are left
    taken: int = -1  # the iteration of the decision repeated last, if it was in the loop that runs now
    num_told: int = 0  # how often the next one was told already

    def serve(self, name: str) -> None:
        if self.served != name:
            self.served, self.decisions = name, deque(self.all)
            self.taken, self.num_told = -1, 0

    def is_done(self, situation: Situation) -> bool:
        if not self.num_told:
            return False
        return self.num_told == _MOST_TOLD or isinstance(_repeated(self.decisions[0], situation), str)

    def note(self, iteration: int) -> None:
        if iteration < self.taken or iteration == 0:
            self.taken = -1

    def has_come(self, iteration: int) -> bool:
        wanted = self.decisions[0].iteration
        return wanted > self.taken and (iteration >= wanted if wanted else iteration == 0)

    def next_after(self, name: str, iteration: int) -> float:
        # What was told already is done by now, or was refused.
        is_served = self.served == name
        left = [*self.decisions][bool(self.num_told) :] if is_served else self.all
        taken = -1 if iteration == 0 or not is_served else self.taken
        if is_served and self.num_told:
            taken = max(taken, self.decisions[0].iteration)
        wanted = left[0].iteration if left else 0
        return max(wanted, iteration + 1) if wanted and wanted > taken else math.inf

    def take(self) -> None:
        self.taken = self.decisions.popleft().iteration
        self.num_told = 0


def _repeated(decision: Decision, situation: Situation) -> Decision | str:
    """Return a decision for the workers there are, or why it cannot be repeated."""
    length, wanted = situation.cuts.cuts[-1], decision.after.cuts[-1]
    if length != wanted:
        return f"does not fit: the trace cuts {wanted} rows, {situation.name} has {length}"
    then = sorted({*decision.loads_before, *decision.loads_after, *decision.after.owners})
    now = sorted(situation.speeds)
    used = sorted(set(decision.after.owners))
    if set(used) <= set(now):
        numbers = {owner: owner for owner in then}
    elif len(then) <= len(now):
        numbers = dict(zip(then, now, strict=False))
    elif len(used) <= len(now):
        numbers = dict(zip(used, now, strict=False))
    else:
        return f"too few workers: the trace lays out over {len(used)}, there are {len(now)} now"
    after = Cuts(decision.after.cuts, tuple(numbers[owner] for owner in decision.after.owners))
    if after == situation.cuts:
        return _SO_ALREADY
    return replace(
        decision,
        name=situation.name,
        policy=Replay.name,
        reason=f"replayed: {decision.reason.removeprefix('replayed: ')}",
        before=situation.cuts,
        after=after,
        loads_before={numbers.get(owner, owner): load for owner, load in decision.loads_before.items()},
        loads_after={numbers.get(owner, owner): load for owner, load in decision.loads_after.items()},
        iteration=situation.iteration,
    )
