"""Groups of stored arrays with the same cuts: what is known of each, and how they are laid out anew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

from matnb.backend.store import Entry, Store
from matnb.balance.decision import Decision, may_pay
from matnb.balance.load import BlockLoads, LoadModel, Sample
from matnb.balance.policy import ENTRY_SECONDS, FIXED_COSTS, ROW_SECONDS, ByEntries, Policy, counted_seconds
from matnb.balance.situation import Costs, Profile, Situation
from matnb.blocks.layout import Cuts
from matnb.errors import OptionError
from matnb.expr.nodes import Expr
from matnb.expr.stable_order import place_of
from matnb.lazy.handles import live_expressions
from matnb.pictures.escaping import shortened
from matnb.pictures.quantities import axes_text
from matnb.plan.explain import told_alone
from matnb.plan.row_work import RowWork
from matnb.program.plan import Workers
from matnb.session.naming import called

LEAST_BYTES = 10**6  # of a sparse array; below, an iteration is over before anything could be gained
_INDEX_BYTES = 4
_GAIN_ITERATIONS = 3  # that are measured before a repartition's gain is noted
_LEAST_COST_SECONDS, _MOST_COST_SECONDS = 0.002, 2.0
_LEAST_RATE, _MOST_RATE = 10.0**7, 10.0**11  # bytes a second
RELEASE = "release the results of that function first"
_LONGEST_NAME = 40  # characters of an array that no variable names


class LearnedCosts:
    """What changing a layout costs, learned from what it took."""

    def __init__(self) -> None:
        self._learned = FIXED_COSTS
        self._least_seconds = 0.0

    @property
    def now(self) -> Costs:
        """What is expected of the next change."""
        fixed = min(max(self._learned.fixed_seconds, self._least_seconds), _MOST_COST_SECONDS)
        return replace(self._learned, fixed_seconds=fixed)

    def at_least(self, seconds: float) -> None:
        """Take what a part of every change took when it was last done."""
        self._least_seconds = seconds

    def learn(self, seconds: float, moved_bytes: float) -> None:
        """Learn from the seconds that moving some bytes took, halfway from the old estimate to them."""
        fixed, rate = self._learned.fixed_seconds, self._learned.bytes_per_second
        if moved_bytes < fixed * rate:
            fixed += (seconds - moved_bytes / rate - fixed) / 2
            fixed = min(max(fixed, _LEAST_COST_SECONDS), _MOST_COST_SECONDS)
        else:
            found = moved_bytes / max(seconds - fixed, seconds / 10)
            rate = min(max((rate * found) ** 0.5, _LEAST_RATE), _MOST_RATE)
        self._learned = Costs(fixed, rate)


@dataclass
class PendingGain:
    """A repartition whose gain is to be measured.

    Attributes
    ----------
    number
        Of the decision in the history.
    before_seconds
        What an iteration took by the clock before; 0.0 where none was measured.
    cost_seconds
        What changing the layout took, as far as it is known.
    moved_bytes, weighed_bytes
        That went to another worker; the same, and a part of what was copied on its worker.
    paused_at
        When the last iteration before it ended, by the clock; None before a loop, or where it is not known.
    """

    number: int
    decision: Decision
    before_seconds: float
    cost_seconds: float
    moved_bytes: int
    weighed_bytes: float
    paused_at: float | None


@dataclass(eq=False)
class GroupState:
    """What is known of one group; it is kept as long as its main array is used.

    Attributes
    ----------
    policy
        Decides for it.
    by_counts
        Decides where measured times may not.
    profile
        Where its entries are, once that was looked at.
    profiled
        How it was cut then.
    loads
        The times of its blocks, under ``cuts``.
    num_runs, last_by_parts
        Runs other than loops that read it, and which of them was the last whose bits could follow the cuts.
    pending
        The repartition before, until it is known what it gained.
    was_repartitioned
        Whether it ever was.
    hindered
        Why it cannot be repartitioned as it is cut now: then loops do not pause for it again and again.
    tied
        Why the loop that was prepared last keeps its cuts, whatever was decided; empty where it does not.
    units, units_from
        What an entry and a row take, and over how many iterations that was measured.
    """

    policy: Policy
    by_counts: ByEntries = field(default_factory=ByEntries)
    profile: Profile | None = None
    profiled: Cuts | None = None
    loads: BlockLoads | None = None
    cuts: Cuts | None = None
    num_runs: int = 0
    last_by_parts: int = 0
    pending: PendingGain | None = None
    was_repartitioned: bool = False
    hindered: str = ""
    tied: str = ""
    units: tuple[float, float] = (ENTRY_SECONDS, ROW_SECONDS)
    units_from: int = 0

    @property
    def num_measured(self) -> int:
        """Iterations of loops, or other runs, that were measured."""
        return max(self.num_runs, 0 if self.loads is None else self.loads.num_iterations)

    def leave_loop(self) -> None:
        """Leave open what a repartition gained whose loop is over: another one has other times."""
        if self.pending is not None and (self.pending.before_seconds or self.pending.paused_at is not None):
            self.pending = None

    @property
    def can_tell_gain(self) -> bool:
        """Whether enough was measured after the last repartition."""
        loads = self.loads
        return loads is not None and loads.num_iterations >= _GAIN_ITERATIONS and bool(loads.block_seconds())

    @property
    def since_last(self) -> int:
        """Iterations measured since the last repartition; -1 for never."""
        if not self.was_repartitioned:
            return -1
        return 0 if self.loads is None else self.loads.num_iterations


@dataclass(frozen=True)
class Question:
    """When a policy is asked about a group, and by what it may decide.

    Attributes
    ----------
    by_time
        Whether measured times may decide; where none are known of these blocks nothing else does that was
        measured.
    iteration, num_remaining, iteration_seconds
        As a :class:`~matnb.balance.situation.Situation` has them.
    in_loop
        Whether rows may be shared by all workers.
    work
        Gives the work of an iteration by its plan, and so what entries and rows take; called where no times
        are known.
    """

    by_time: bool
    iteration: int
    num_remaining: float
    iteration_seconds: float = 0.0
    in_loop: bool = True
    work: Callable[[], RowWork] = RowWork


@dataclass(frozen=True, eq=False)
class Group:
    """Arrays with the same cuts and owners of their rows, and no other cuts.

    Attributes
    ----------
    name
        For a user: "A", or "A, x".
    main
        The sparse array with the most bytes, whose entries decide.
    arrays
        All of them, the main one first.
    state
        What is known of it; the same as long as its main array is used.
    """

    name: str
    main: Expr
    arrays: Mapping[Expr, Entry]
    state: GroupState

    @property
    def entry(self) -> Entry:
        """The main array, as it is stored."""
        return self.arrays[self.main]

    @property
    def cuts(self) -> Cuts:
        """How the rows of all of them are cut, and who owns each part."""
        return self.entry.stored.layout.rows

    @property
    def row_bytes(self) -> float:
        """What a row takes over all arrays, without entries."""
        num_rows = max(1, self.main.shape[0])
        once = once_each(self.arrays)
        dense = sum(self.arrays[node].num_bytes for node in once if not node.sparse)
        return dense / num_rows + _INDEX_BYTES * sum(node.sparse for node in once)

    @property
    def entry_bytes(self) -> float:
        """What an entry of the main array takes, with those of the others at the same rows."""
        once = [node for node in once_each(self.arrays) if node.sparse]
        sparse = sum(self.arrays[node].num_bytes for node in once)
        pointers = _INDEX_BYTES * self.main.shape[0] * len(once)
        return max(0, sparse - pointers) / max(1, sum(self.entry.stored.block_nnz))

    def coarse_profile(self) -> Profile:
        """Return where the entries are as far as the counts of the blocks say."""
        counts = np.cumsum((0, *self.entry.stored.block_nnz), dtype=np.int64)
        return Profile(np.array(self.cuts.cuts, np.int64), counts)

    def begin(self, model: LoadModel) -> None:
        """Follow the blocks as they are cut now: at first, in another loop, or after a repartition."""
        state = self.state
        if state.loads is None:
            state.loads = BlockLoads(state.profile or self.coarse_profile())
        state.units, state.units_from = self._unit_seconds(model), 0
        state.loads.begin(self.cuts, *state.units, model.fit().speeds)
        state.cuts = self.cuts

    def refine(self, profile: Profile) -> None:
        """Take a finer profile; the times that are known stay known."""
        self.state.profile, self.state.profiled = profile, self.cuts
        if self.state.loads is not None:
            self.state.loads.profile = profile

    def measured(
        self,
        owner: int,
        iteration: int,
        num_iterations: int,
        seconds: Mapping[int, float],
        other_seconds: float,
        model: LoadModel,
    ) -> None:
        """Take what a worker needed for its blocks, the sum over some iterations."""
        if self.state.loads is None or self.state.cuts != self.cuts:
            self.begin(model)
        assert self.state.loads is not None
        self.state.loads.add(owner, iteration, num_iterations, seconds, other_seconds)
        ranges, counts = self.cuts.ranges(), self.entry.stored.block_nnz
        kind = self.main.digest.hex()
        model.add(
            Sample(
                kind,
                owner,
                ranges[number][1] - ranges[number][0],
                counts[number],
                value / num_iterations,
                num_iterations,
            )
            for number, value in seconds.items()
            if value > 0
        )

    def block_seconds(self) -> tuple[float, ...]:
        """Return what each block takes in one iteration; empty where that is not known."""
        if self.state.loads is None or self.state.cuts != self.cuts:
            return ()
        return self.state.loads.block_seconds()

    def situation(self, asked: Question, workers: Workers, model: LoadModel, costs: Costs) -> Situation:
        """Return what a policy sees."""
        state = self.state
        seconds = self.block_seconds() if asked.by_time else ()
        loads = state.loads if seconds else None
        since_last = state.since_last
        if not asked.iteration:
            since_last = max(since_last, state.num_measured or -1)
        if seconds:
            units = (*state.units, 0.0)
        else:
            done = asked.work()
            units = counted_seconds(done.passes, done.row_bytes, done.apart_bytes)
        entry_seconds, row_seconds, apart_row_seconds = units
        usual = dict.fromkeys(workers.numbers, 1.0)
        found = Situation(
            name=self.name,
            cuts=self.cuts,
            profile=state.profile or self.coarse_profile(),
            row_bytes=self.row_bytes,
            entry_bytes=self.entry_bytes,
            block_seconds=seconds,
            error=0.0 if loads is None else loads.error(workers.threads),
            speeds=usual if loads is None else loads.speeds(workers.numbers),
            threads=workers.threads,
            entry_seconds=entry_seconds,
            row_seconds=row_seconds,
            apart_row_seconds=apart_row_seconds,
            iteration=asked.iteration,
            num_remaining=asked.num_remaining,
            iteration_seconds=asked.iteration_seconds if seconds else 0.0,
            costs=costs if seconds else FIXED_COSTS,
            other_seconds={} if loads is None else loads.other_seconds(),
            since_last=since_last if asked.by_time else -1,
            can_split_rows=asked.in_loop or workers.threads > 1,
        )
        # What a row and an entry take matters to other cuts alone. A fit takes as long as some kernels, so it
        # is made where those may pay, and anew when twice as many iterations were measured.
        count = 0 if loads is None else loads.num_iterations
        if not seconds or count < max(1, 2 * state.units_from) or not may_pay(found):
            return found
        state.units, state.units_from = self._unit_seconds(model), count
        return replace(found, entry_seconds=state.units[0], row_seconds=state.units[1])

    def _unit_seconds(self, model: LoadModel) -> tuple[float, float]:
        # What an entry and a row of the main array take in an iteration, as far as it is known.
        cost = model.fit().kinds.get(self.main.digest.hex())
        if cost is None or cost.entry_seconds <= 0:
            return ENTRY_SECONDS, ROW_SECONDS
        return cost.entry_seconds, cost.row_seconds


def tie_of(node: Expr) -> tuple[str, tuple[Expr, ...]] | None:
    """Return why arrays keep their cuts while an expression lives, and which; None where none do."""
    tie = (node.made_by or node).tie
    return None if tie is None else (f"the cuts stay: {tie[0]}", tie[1])


def has_rows_cut(entry: Entry) -> bool:
    """Return whether an array has rows, no other axis of it is cut, and its blocks' sizes are known."""
    layout = entry.stored.layout
    return has_sizes(entry) and layout.cuts_rows_alone and layout.grid.shape[0] > 0


def has_sizes(entry: Entry) -> bool:
    """Return whether the sizes of an array's blocks are known: not where an interrupted run left it."""
    return len(entry.stored.block_bytes) == len(entry.stored.keys)


@dataclass(frozen=True, eq=False)
class Partners:
    """Arrays that a user wants to lie alike: see :func:`matnb.align`.

    Attributes
    ----------
    nodes
        As long as anything needs them.
    wished
        The axes that were named.
    """

    nodes: WeakSet[Expr]
    wished: frozenset[int]

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes along which they may be cut: of those named, the ones on which all are as long."""
        return _common(self.nodes, self.wished)


def _common(nodes: Iterable[Expr], axes: Iterable[int]) -> tuple[int, ...]:
    # Where all other axes stay whole, arrays that are cut alike along these lie alike on any others, too.
    lengths = {axis: {node.shape[axis : axis + 1] for node in nodes} for axis in axes}
    return tuple(sorted(axis for axis, found in lengths.items() if len(found) == 1 and () not in found))


class Groups:
    """Finds groups, with what is known of each, and knows which arrays a user wants to lie alike.

    Parameters
    ----------
    store
        Where arrays that are to lie alike are looked up.
    policy
        Gives the policy of a group.
    """

    def __init__(self, store: Store, policy: Callable[[], Policy]) -> None:
        self._store, self._policy = store, policy
        self._states: WeakKeyDictionary[Expr, GroupState] = WeakKeyDictionary()
        self._texts: WeakKeyDictionary[Expr, str] = WeakKeyDictionary()
        self._num_alike: Counter[str] = Counter()
        self._declared: list[Partners] = []

    def let_decide(self, policy: Callable[[], Policy]) -> None:
        """Give every group another policy from now on; what was measured stays known."""
        self._policy = policy
        for state in self._states.values():
            state.policy = policy()

    def joined(self, nodes: Sequence[Expr], axes: Collection[int]) -> Partners:
        """Return what arrays are partners of, once they are to lie alike along some axes; nothing changes.

        Raises
        ------
        OptionError
            Where that and what was declared before cannot both hold.
        """
        new, wished = WeakSet(nodes), frozenset(axes)
        before = [one for one in self.declared if one.nodes & new]
        for one in before:
            wished |= one.wished
        together = Partners(WeakSet([*new, *(node for one in before for node in one.nodes)]), wished)
        if together.axes:
            return together
        old = next(one for one in before if one.axes != tuple(sorted(axes)))
        shared = min(old.nodes & new, key=place_of)
        there, asked = (self._names(ones, shared) for ones in (old.nodes, nodes))
        raise OptionError(
            f"align: {self.name(shared)} is aligned on {axes_text(old.axes)} with {there} and cannot be "
            f"aligned on {axes_text(sorted(axes))} with {asked} too, since no axis is as long in all of "
            "them: align each array along one axis only"
        )

    def _names(self, nodes: Iterable[Expr], without: Expr) -> str:
        return ", ".join(self.name(one) for one in sorted(nodes, key=place_of) if one is not without)

    def declare(self, partners: Partners) -> None:
        """Let arrays lie alike from now on, as :meth:`joined` has them."""
        apart = [one for one in self.declared if not one.nodes & partners.nodes]
        self._declared = [*apart, partners]

    @property
    def declared(self) -> list[Partners]:
        """Which arrays are to lie alike, of those that are still needed."""
        return [one for one in self._declared if len(one.nodes) > 1]

    def partners(self, node: Expr) -> Partners | None:
        """Return those of an array, whatever name it has; None where it has none."""
        if not self._declared:
            return None
        entry = self._store.entry(node)
        for one in self.declared:
            if node in one.nodes or (entry and any(self._store.entry(each) is entry for each in one.nodes)):
                return one
        return None

    def beside(self, node: Expr) -> dict[Expr, Entry]:
        """Return the stored arrays that are to lie as one does, without itself."""
        found = self.partners(node)
        others = sorted((one for one in found.nodes if one is not node), key=place_of) if found else ()
        return {one: entry for one in others if (entry := self._store.entry(one)) is not None}

    def held(self, entries: Iterable[Entry]) -> str:
        """Return why some arrays keep their cuts: a result of a function tied to their parts lives."""
        asked = set(entries)
        for result in live_expressions():
            tie = tie_of(result)
            if tie is not None and any(self._store.entry(one) in asked for one in (result, *tie[1])):
                return tie[0]
        return ""

    def of(self, entries: Mapping[Expr, Entry]) -> list[Group]:
        """Return the groups among stored arrays, with what is to lie as they do; the largest first."""
        alike: dict[Cuts, dict[Expr, Entry]] = {}
        for node, entry in entries.items():
            partners = self.partners(node)
            if has_rows_cut(entry) and (partners is None or 0 in partners.axes):
                alike.setdefault(entry.stored.layout.rows, {})[node] = entry
        groups = []
        for arrays in alike.values():
            sparse = {node: entry for node, entry in arrays.items() if node.sparse and node.ndim == 2}
            main = max(sparse, key=lambda node: (sparse[node].num_bytes, place_of(node)), default=None)
            if main is None or sparse[main].num_bytes < LEAST_BYTES:
                continue
            rest = dict(arrays)
            for node in arrays:
                for one, entry in self.beside(node).items():
                    rest.setdefault(one, entry)
            groups.append(self.made(main, rest))
        return sorted(groups, key=lambda group: -group.entry.num_bytes)

    def made(self, main: Expr, arrays: Mapping[Expr, Entry]) -> Group:
        """Return the group of those arrays that lie as the main one does."""
        cuts = arrays[main].stored.layout.rows
        alike = {
            node: arrays[node]
            for node in (main, *(one for one in arrays if one is not main))
            if has_rows_cut(arrays[node]) and arrays[node].stored.layout.rows == cuts
        }
        return Group(", ".join(map(self.name, once_each(alike))), main, alike, self._state(main))

    def _state(self, main: Expr) -> GroupState:
        if main not in self._states:
            self._states[main] = GroupState(self._policy())
        return self._states[main]

    def name(self, node: Expr) -> str:
        """Return what an array is called for a user: variable, line of code, or else how it is made.

        Of several that are made alike, the second and those after it are numbered.
        """
        if name := shortened(called(node), _LONGEST_NAME):
            return name
        if node not in self._texts:
            text = shortened(told_alone(node), _LONGEST_NAME)
            self._num_alike[text] += 1
            number = self._num_alike[text]
            self._texts[node] = text if number == 1 else f"{text} ({number})"
        return self._texts[node]


def once_each(arrays: Mapping[Expr, Entry]) -> list[Expr]:
    """Return one expression for each array, which may have several."""
    first: dict[Entry, Expr] = {}
    for node, entry in arrays.items():
        first.setdefault(entry, node)
    return list(first.values())
