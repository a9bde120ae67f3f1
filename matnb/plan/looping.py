"""Plans loops and branches: their programs, inputs, and memory."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from matnb.blocks.formats import sparse_bytes
from matnb.blocks.grid import Grid, region_shape, regular_cuts, whole
from matnb.blocks.layout import Layout
from matnb.expr.control import Body, Cond, Final, Loop
from matnb.expr.nodes import Broadcast, Create, Elementwise, Expr, Literal, Regrid, Transpose
from matnb.expr.traverse import Either, topological
from matnb.ops.maps import Draw
from matnb.passes import traced
from matnb.plan.attributing import works_of
from matnb.plan.estimate import estimate_entries
from matnb.plan.hoisting import hoisted, slots_read
from matnb.plan.lower import lower
from matnb.plan.reproducibility import depends_on_layout
from matnb.plan.transposes import wished
from matnb.plan.work import LoopWork, loop_work
from matnb.program.kinds import MOVE
from matnb.program.memory import estimate_bytes
from matnb.program.operators import Join
from matnb.program.place import default_layout
from matnb.program.plan import Plan, PlanWork, Slot, Stage, StoredArray, Task, Workers
from matnb.program.program import Action, Batch, Branch, Iterate, Program, Registers, batches
from matnb.program.regions import region_size
from matnb.program.writer import PlanWriter, Slots, TaskWriter

_MOST_INSIDE = 16  # expressions of an initial state that the program makes itself
# Of what a loop is given and its state. Below, one thread takes less for all blocks than several do with the
# tasks of each: 200 iterations of conjugate gradients on 40,000 unknowns 72 ms of processors for 121.
SMALL_LOOP_BYTES = 4 * 2**20
_MANY_ITERATIONS = 16
_NUM_COPIES = 6  # of a state, where a loop is kept: two and one being made, of two workers


@dataclass(frozen=True)
class ControlPlan:
    """How a loop or a branch runs.

    Attributes
    ----------
    program
        For the engine.
    outputs
        The arrays it gives, those that were wanted.
    stages
        Of all bodies, for a user, and for errors.
    inputs
        The stored arrays that it is given, in its registers.
    given
        For each register that is filled before, which block of which stored array it holds.
    peaks
        For each worker the memory that the program needs on top of what is used now.
    least_peaks
        What it needs where sparse states do not grow. Guesses of how they do are no ground to refuse a loop:
        what it holds is counted while it runs, and what a product will store before it is made.
    states, are_sparse
        Of a loop the arrays of its state, while it runs, and whether each is sparse.
    origins
        For what passes made in its bodies, the expressions that were written.
    works
        For tasks of the outermost loop's body, by their slots, which block of a stored input each works on:
        its digest as hexadecimal digits, and the block's number.
    depends_on_layout
        Whether other cuts may change last bits: then they may not depend on measured times.
    work
        How much an iteration is, and what is done before.
    numbers
        The slots of numbers in a loop's initial state that are given: other runs of the plan may have others.
    sizes
        About how many bytes each value has, by slot.
    stage_works
        How much work each stage is, by the number of its array.
    """

    program: Program
    outputs: Mapping[Expr, StoredArray]
    stages: tuple[Stage, ...]
    inputs: Mapping[Expr, StoredArray]
    given: Mapping[Slot, tuple[Expr, int]]
    peaks: Mapping[int, int]
    states: tuple[StoredArray, ...]
    origins: Mapping[Expr, tuple[Expr, ...]]
    works: Mapping[Slot, tuple[str, int]]
    depends_on_layout: bool
    are_sparse: tuple[bool, ...]
    least_peaks: Mapping[int, int]
    work: LoopWork = field(default_factory=LoopWork)
    numbers: Mapping[Slot, Literal] = field(default_factory=dict)
    sizes: Mapping[Slot, int] = field(default_factory=dict)
    stage_works: Mapping[int, PlanWork] = field(default_factory=dict)

    @property
    def peaks_with_copies(self) -> dict[int, int]:
        """Return the peaks when each worker keeps copies of its state and of its neighbor's."""
        held: dict[int, int] = {}
        for array in self.states:
            for owner, size in zip(array.layout.owners, array.block_bytes, strict=False):
                held[owner] = held.get(owner, 0) + size
        most = max(held.values(), default=0)
        return {owner: peak + _NUM_COPIES * most for owner, peak in self.peaks.items()}

    @property
    def num_tasks(self) -> int:
        """Tasks of the program, each counted once."""
        return sum(len(batch.tasks) for batch in batches(self.program.actions))

    def tasks(self) -> Iterator[Task]:
        """Yield the tasks of the program, those of all bodies."""
        return (task for batch in batches(self.program.actions) for task in batch.tasks)


def starts_inside(node: Expr) -> bool:
    """Tell whether an initial state is made by the program itself, in the cuts that it needs.

    A few functions of constants are: another run before the loop takes longer than they do.
    """
    order = topological([node])
    return len(order) <= _MOST_INSIDE and all(
        one.is_cheap or (isinstance(one, Elementwise) and not one.sparse) for one in order
    )


def plan_control(
    node: Loop | Cond,
    stored: Mapping[Expr, StoredArray],
    workers: Workers,
    wanted: Collection[Expr],
    begins: Sequence[StoredArray] | None = None,
    grows: bool = True,
) -> ControlPlan:
    """Return the plan of a loop or a branch.

    Parameters
    ----------
    node
        Whose inputs are stored, but for constants.
    stored
        Arrays that are on the workers.
    workers
        What it is laid out over.
    wanted
        Which of the node and its results are kept.
    begins
        The state in which a loop goes on, instead of its initial one.
    grows
        Whether sparse states are taken to grow as they do in the first iteration.
    """
    slots = Slots(repeats=True)
    known = {one: slots.of(array) for one, array in stored.items()}
    writer = ProgramWriter(workers, slots, grows)
    actions, made = writer.control(node, dict(known), begins)
    known.update(zip(node.variables, map(slots.of, begins or ()), strict=False))
    outputs = {one: array for one, array in made.items() if one in wanted}
    results = tuple(dict.fromkeys(key for array in outputs.values() for key in array.keys))
    places = {key: (one, number) for one, array in known.items() for number, key in enumerate(array.keys)}
    read = slots_read(actions).union(results)
    given = {slot: places[slot] for slot in places if slot in read}
    owners = {slot: slots.owners[slot] for slot in given}
    program = Program(
        tuple(actions), owners, {**owners, **writer.owners}, frozenset(writer.everywhere), results
    )
    states = tuple(
        made[Final(node, place)] for place in range(node.num_state if isinstance(node, Loop) else 0)
    )
    inputs = {one: known[one] for one in node.inputs if one in known}
    stages = tuple(writer.stages)
    peaks: Mapping[int, int] = writer.peaks()
    least_peaks = peaks
    if writer.has_grown:
        least_peaks = plan_control(node, stored, workers, wanted, begins, grows=False).peaks
    return ControlPlan(
        program,
        outputs,
        stages,
        inputs,
        given,
        peaks,
        states,
        writer.origins,
        works_of(program, inputs, states, stages),
        depends_on_layout(stages, (task for batch in batches(actions) for task in batch.tasks)),
        tuple(one.sparse for one in node.state) if isinstance(node, Loop) else (),
        least_peaks,
        loop_work(actions, writer.works),
        sizes=writer.sizes,
        stage_works=writer.stage_works,
    )


# Writes the program of a loop or a branch: its bodies are lowered once, over registers.

_ROUNDS = 2  # a body is lowered so often at most until its results are cut as its state is


class ProgramWriter:
    """Writes the actions of a program.

    Attributes
    ----------
    owners
        The worker of each register that is not a task's.
    everywhere
        Registers that every worker has.
    stages
        Of all that was lowered.
    origins
        For what passes made in bodies, the expressions that were written.
    works
        By the slots of tasks the work of their stage, and how many tasks share it.
    sizes, stage_works
        Bytes of values by slot, and the work of stages by the numbers of their arrays.
    has_grown
        Whether a sparse state was taken to grow.
    """

    def __init__(self, workers: Workers, slots: Slots, grows: bool = True) -> None:
        self._workers, self._slots, self._grows = workers, slots, grows
        self.has_grown = False
        self.owners: dict[Slot, int] = {}
        self.everywhere: set[Slot] = set()
        self.stages: list[Stage] = []
        self.origins: dict[Expr, tuple[Expr, ...]] = {}
        self.works: dict[Slot, tuple[PlanWork, int]] = {}
        self.sizes: dict[Slot, int] = {}
        self.stage_works: dict[int, PlanWork] = {}
        self._held: dict[int, int] = {}
        self._most: dict[int, int] = {}
        self._lasting: dict[Slot, tuple[int, int]] = {}  # worker and bytes of what loops lay out once

    def peaks(self) -> dict[int, int]:
        """Return for each worker the memory that states and the largest batch need together."""
        found: dict[int, int] = {}
        for owner, size in (*self._held.items(), *self._most.items(), *self._lasting.values()):
            found[owner] = found.get(owner, 0) + size
        return found

    def control(
        self, node: Loop | Cond, stored: dict[Expr, StoredArray], begins: Sequence[StoredArray] | None = None
    ) -> tuple[list[Action], dict[Expr, StoredArray]]:
        """Return the actions of a loop or branch, and the arrays it gives; its inputs are in ``stored``.

        Where a loop goes on, it ``begins`` in a state that is on the workers.
        """
        if isinstance(node, Loop):
            return self._loop(node, stored, begins)
        return self._branch(node, stored)

    # loops

    def _loop(
        self, loop: Loop, stored: dict[Expr, StoredArray], begins: Sequence[StoredArray] | None
    ) -> tuple[list[Action], dict[Expr, StoredArray]]:
        present = [(one, stored[one]) for one in loop.inputs if one in stored]
        alignment = Alignment(present, self._workers, _is_small(loop, present))
        layouts = [alignment.layout(one) for one in loop.state]
        iteration, taken = self._everywhere(), self._everywhere()
        before, given, limit = self._before(loop, stored, alignment)
        needed = dict(self.owners), dict(self._held), dict(self._most), dict(self._lasting)
        for last in range(_ROUNDS):
            variables = self._variables(loop, layouts, given, iteration, stored)
            marked = len(self.stages)
            steady = loop.variables[loop.num_state + 1 :]
            body, inside = self._body(loop.body, variables, steady)
            results = [inside[result] for result in loop.body.results]
            # Where nothing in the loop suggests cuts, an array is cut as it comes out.
            wanted = [
                alignment.wished(one) or found.layout for one, found in zip(loop.state, results, strict=True)
            ]
            if wanted == layouts or last == _ROUNDS - 1:
                break
            del self.stages[marked:]
            self.owners, self._held = dict(needed[0]), dict(needed[1])
            self._most, self._lasting = dict(needed[2]), dict(needed[3])
            layouts = wanted
        states = [variables[one] for one in loop.variables[: loop.num_state]]
        for one in states:
            self._hold(one)
        body_results = list(zip(loop.body.results, results, layouts, strict=True))
        tasks, after = self._aligned(body_results)
        starts = self._starts(loop, layouts, stored, begins)
        until = None if loop.body.until is None else inside[loop.body.until].keys[0]
        repeat = Iterate(
            state=tuple(one.keys for one in states),
            most=int(loop.limit.value) if isinstance(loop.limit, Literal) else None,
            first=starts[1],
            after=after,
            limit=limit,
            until=until,
            iteration=iteration.keys[0],
            taken=taken.keys[0],
            body=(*body, *tasks),
        )
        made: dict[Expr, StoredArray] = {Final(loop, place): one for place, one in enumerate(states)}
        made[loop] = taken
        return [*before, *starts[0], *hoisted(repeat)], made

    def _before(
        self, loop: Loop, stored: Mapping[Expr, StoredArray], alignment: Alignment
    ) -> tuple[list[Action], list[StoredArray], Slot]:
        # What is given, laid out as the arrays it meets, and the register of the limit.
        missing = [one for one in (loop.limit, *loop.given) if one not in stored]
        actions, found = self._segment(missing, stored)
        known = {**stored, **found}
        wanted = []
        for one in loop.given:
            layout = alignment.merged(known[one].layout)
            if not one.sparse and one.shape and layout.grid.num_blocks > 1:
                layout = alignment.wished(one) or layout
            wanted.append((one, known[one], layout))
        tasks, names = self._aligned(wanted)
        given = [
            sized(one, layout, keys, array) for (one, array, layout), keys in zip(wanted, names, strict=True)
        ]
        for (_, array, layout), aligned in zip(wanted, given, strict=True):
            if array.layout != layout:
                self._hold(aligned)
        return [*actions, *tasks], given, known[loop.limit].keys[0]

    def _starts(
        self,
        loop: Loop,
        layouts: Sequence[Layout],
        stored: Mapping[Expr, StoredArray],
        begins: Sequence[StoredArray] | None,
    ) -> tuple[list[Action], tuple[Registers, ...]]:
        # Constants are made in the cuts that are wanted, anything else is laid out so. Slots of a state in
        # which a loop goes on come last, so that its body has those that it had before.
        state: list[Expr] = [
            one if one in stored else _cut_by(one, layout.grid.cuts)
            for one, layout in zip(loop.state, layouts, strict=True)
        ]
        if begins is not None:
            state = list(loop.variables[: loop.num_state])
            stored = {**stored, **dict(zip(state, map(self._slots.of, begins), strict=True))}
        missing = [one for one in state if one not in stored]
        actions, found = self._segment(missing, stored)
        known = {**stored, **found}
        wanted = [(one, known[one], layout) for one, layout in zip(state, layouts, strict=True)]
        tasks, names = self._aligned(wanted)
        return [*actions, *tasks], names

    def _variables(
        self,
        loop: Loop,
        layouts: Sequence[Layout],
        given: Sequence[StoredArray],
        iteration: StoredArray,
        stored: Mapping[Expr, StoredArray],
    ) -> dict[Expr, StoredArray]:
        arrays = []
        for one, layout in zip(loop.state, layouts, strict=True):
            begin = sized(one, layout, self._registers(layout), stored.get(one))
            arrays.append(replace(begin, is_guess=one.sparse))
        variables: dict[Expr, StoredArray] = dict(
            zip(loop.variables, (*arrays, iteration, *given), strict=True)
        )
        if self._grows and any(one.sparse for one in loop.state):
            grown = _grown(loop, variables, stored)
            self.has_grown |= bool(grown)
            variables |= grown
        return variables

    # branches

    def _branch(
        self, cond: Cond, stored: dict[Expr, StoredArray]
    ) -> tuple[list[Action], dict[Expr, StoredArray]]:
        actions, found = self._segment([one for one in cond.inputs if one not in stored], stored)
        known = {**stored, **found}
        variables: dict[Expr, StoredArray] = dict(
            zip(cond.variables, (known[one] for one in cond.given), strict=True)
        )
        then, inside = self._body(cond.then, variables)
        otherwise, other = self._body(cond.otherwise, variables)
        chosen = [inside[one] for one in cond.then.results]
        wanted = [
            (one, other[one], first.layout) for one, first in zip(cond.otherwise.results, chosen, strict=True)
        ]
        tasks, names = self._aligned(wanted)
        made: dict[Expr, StoredArray] = {}
        results: list[Slot] = []
        for place, first in enumerate(chosen):
            keys = self._registers(first.layout)
            sparse = cond.then.results[place].sparse
            made[Final(cond, place)] = replace(first, keys=keys, is_guess=sparse)  # the other may be chosen
            results += keys
        made[cond] = known[cond.inputs[0]]
        branch = Branch(
            predicate=known[cond.inputs[0]].keys[0],
            then=tuple(then),
            otherwise=(*otherwise, *tasks),
            results=tuple(results),
            from_then=tuple(key for first in chosen for key in first.keys),
            from_otherwise=tuple(key for keys in names for key in keys),
        )
        return [*actions, branch], made

    # straight-line parts

    def _body(
        self, body: Body, variables: Mapping[Expr, StoredArray], steady: Sequence[Expr] = ()
    ) -> tuple[list[Action], dict[Expr, StoredArray]]:
        # The actions of a body and where its roots are. Loops and branches inside stand between batches.
        named = {str(place): root for place, root in enumerate(body.roots)}
        after, origins = traced(named, variables)
        self.origins |= origins
        known = dict(variables)
        actions: list[Action] = []
        inner = [one for one in topological(after.values(), known) if isinstance(one, Loop | Cond)]
        for number, control in enumerate(inner):
            missing = [one for one in control.inputs if one not in known and not one.is_cheap]
            later = [*(one for each in inner[number + 1 :] for one in each.inputs), *after.values()]
            shared = _read_again(missing, later, known)
            done, found = self._segment(missing, known, steady, shared)
            known.update(found)
            for one in shared:
                if one in found:
                    self._hold(found[one])
            run, made = self.control(control, known)
            known.update(made)
            actions += [*done, *run]
        missing = [one for one in after.values() if one not in known]
        done, found = self._segment(missing, known, steady)
        known.update(found)
        return [*actions, *done], {root: known[after[name]] for name, root in named.items()}

    def _segment(
        self,
        roots: Sequence[Expr],
        stored: Mapping[Expr, StoredArray],
        steady: Sequence[Expr] = (),
        shared: Sequence[Expr] = (),
    ) -> tuple[list[Action], dict[Expr, StoredArray]]:
        # ``steady`` arrays are the same in each iteration; ``shared`` ones are kept where they are made.
        roots = tuple(dict.fromkeys(roots))
        if not roots:
            return [], {}
        # In a loop a stored transpose pays, unless the user does not want it.
        known = {node: stored[node] for node in topological(roots, stored) if node in stored}
        plan = lower(
            roots, tuple(shared), known, self._workers, self._slots,
            scatters=lambda node, _: wished(node.operand) != "keep", steady=frozenset(steady),
        )  # fmt: skip
        made = {node: plan.outputs[node] for node in (*roots, *shared) if node in plan.outputs}
        actions = self._batch(plan, [key for array in made.values() for key in array.keys])
        return actions, {node: sized(node, array.layout, array.keys) for node, array in made.items()}

    def _aligned(
        self, wanted: Sequence[tuple[Expr, StoredArray, Layout]]
    ) -> tuple[list[Action], tuple[Registers, ...]]:
        others = {node: array for node, array, layout in wanted if array.layout != layout}
        entries = estimate_entries(others, others)
        writer = PlanWriter(others, entries, {}, self._workers, self._slots)
        registers = tuple(
            write_aligned(node, layout, writer) if node in others else array.keys
            for node, array, layout in wanted
        )
        return self._batch(writer.plan(()), [key for keys in registers for key in keys]), registers

    def _batch(self, plan: Plan, results: Iterable[Slot]) -> list[Action]:
        self.stages += plan.stages
        for stage, work in zip(plan.stages, plan.work, strict=False):  # what is only laid out anew has none
            self.works |= dict.fromkeys(stage.tasks, (work, len(stage.tasks)))
            self.stage_works[stage.makes] = work
        self.sizes |= plan.sizes
        owners = {task.key: task.owner for task in plan.tasks}
        self._lasting |= {slot: (owners[slot], size) for slot, size in plan.lasting.items()}
        for owner, peak in plan.peaks.items():
            self._most[owner] = max(self._most.get(owner, 0), peak)
        kept = tuple(dict.fromkeys(key for key in results if key in owners))
        return [Batch(plan.tasks, kept)] if plan.tasks else []

    def _registers(self, layout: Layout) -> Registers:
        slots = tuple(map(self._slots.new, layout.owners))
        self.owners.update(zip(slots, layout.owners, strict=True))
        return slots

    def _everywhere(self) -> StoredArray:
        layout = Layout(whole(()), self._workers.numbers[:1])
        (slot,) = self._registers(layout)
        self.everywhere.add(slot)
        return StoredArray(layout, (slot,), (1,), (8,))

    def _hold(self, array: StoredArray) -> None:
        for owner, size in zip(array.layout.owners, array.block_bytes, strict=False):
            self._held[owner] = self._held.get(owner, 0) + size


def _grown(
    loop: Loop, variables: Mapping[Expr, StoredArray], stored: Mapping[Expr, StoredArray]
) -> dict[Expr, StoredArray]:
    # The sparse arrays of a state with the most entries that the first two iterations read, as far as
    # expressions tell. What later ones would read is a guess from guesses, each wrong by a factor.
    begins = estimate_entries(loop.state, stored)
    most: dict[Expr, int] = {
        variable: begins[one]
        for one, variable in zip(loop.state, loop.variables, strict=False)
        if variable.sparse
    }
    if not isinstance(loop.limit, Literal) or int(loop.limit.value) > 1:
        known = {**variables, **{one: _with_entries(variables[one], count) for one, count in most.items()}}
        found = estimate_entries(loop.body.results, known)
        results: dict[Expr, Expr] = dict(zip(loop.variables, loop.body.results, strict=False))
        most = {one: max(count, found[results[one]]) for one, count in most.items()}
    begun: dict[Expr, int] = {
        one: begins[state] for state, one in zip(loop.state, loop.variables, strict=False)
    }
    return {
        one: replace(_with_entries(variables[one], count, one), num_begun=begun[one])
        for one, count in most.items()
        if count > sum(variables[one].block_nnz)
    }


def _with_entries(array: StoredArray, entries: int, node: Expr | None = None) -> StoredArray:
    # The same array with so many entries in all, spread over its blocks as they are.
    count, total = len(array.keys), sum(array.block_nnz)
    if total:
        spread = tuple(-(-entries * one // total) for one in array.block_nnz)
    else:
        spread = (-(-entries // count),) * count
    if node is None:
        return replace(array, block_nnz=spread)
    regions = array.layout.grid.regions()
    sizes = (
        sparse_bytes(region_shape(region)[0], one, node.dtype)
        for region, one in zip(regions, spread, strict=True)
    )
    return replace(array, block_nnz=spread, block_bytes=tuple(sizes))


def _cut_by(node: Expr, cuts: tuple[tuple[int, ...], ...]) -> Expr:
    # Functions are cut as what they are of: a vector is then made where it is wanted.
    if isinstance(node, Elementwise):
        return node.with_operands(
            *(_cut_by(one, cuts) if one.shape == node.shape else one for one in node.operands)
        )
    return Regrid(node, cuts) if node.shape else node


def _read_again(first: Sequence[Expr], later: Sequence[Expr], known: Container[Expr]) -> list[Expr]:
    # What is made on the way to some expressions and is read on the way to later ones, too.
    reached = {one for one in topological(first, known) if one not in known and (one in first or _lasts(one))}
    order = topological(later, Either(known, reached))
    return [one for one in order if one in reached and one not in first]


def _lasts(node: Expr) -> bool:
    # Whether it is an array of its own wherever it is read, and no larger than what it is made from.
    if node.sparse or isinstance(node, Transpose | Elementwise | Broadcast | Create | Literal | Draw):
        return False
    return node.size <= max((one.size for one in node.operands), default=0)


# Which cuts a loop's arrays get, so that arrays that meet in it lie alike.


@dataclass(frozen=True)
class _Rows:
    """How an axis of some length is cut, and who owns its parts."""

    cuts: tuple[int, ...]
    owners: tuple[int, ...]


class Alignment:
    """The cuts that a loop's dense arrays take over from its heaviest array of the same length.

    Sparse arrays decide before dense ones, since what they are multiplied with should lie as their rows do.

    Parameters
    ----------
    arrays
        Those that are stored.
    is_small
        Whether a worker's threads would wait for each other longer than they work: then what is cut for them
        is one block a worker.
    """

    def __init__(
        self, arrays: Iterable[tuple[Expr, StoredArray]], workers: Workers, is_small: bool = False
    ) -> None:
        self._workers, self._is_small = workers, is_small
        self._rows: dict[int, _Rows] = {}
        for node, array in sorted(arrays, key=_weight, reverse=True):
            layout = self.merged(array.layout)
            counts = layout.grid.counts
            if node.shape and counts[0] > 1 and set(counts[1:]) <= {1}:
                self._rows.setdefault(node.shape[0], _Rows(layout.grid.cuts[0], layout.owners))

    def layout(self, node: Expr) -> Layout:
        """Return the layout of an array of the state: as others are cut on its longest axis, or default."""
        entries = node.shape[0] if node.sparse else node.size
        found = self.wished(node) or default_layout(node, estimate_bytes(node, entries), self._workers)
        return self.merged(found)

    def merged(self, layout: Layout) -> Layout:
        """Return a layout with one block a worker where the loop is small and rows are cut for threads."""
        numbers, counts, owners = self._workers.numbers, layout.grid.counts, layout.owners
        is_cut = len(numbers) < layout.grid.num_blocks == self._workers.slots
        if not (self._is_small and is_cut and counts[0] == layout.grid.num_blocks):
            return layout
        first = [0, *(place for place in range(1, len(owners)) if owners[place] != owners[place - 1])]
        rows = layout.grid.cuts[0]
        cuts = (*(rows[place] for place in first), rows[-1])
        return Layout(Grid((cuts, *layout.grid.cuts[1:])), tuple(owners[place] for place in first))

    def wished(self, node: Expr) -> Layout | None:
        """Return the layout that other arrays suggest for an array, or None."""
        for axis in sorted(range(node.ndim), key=lambda one: (-node.shape[one], one)):
            if node.shape[axis] in self._rows and not (node.sparse and axis):
                rows = self._rows[node.shape[axis]]
                cuts = tuple(
                    rows.cuts if one == axis else regular_cuts(length, 1)
                    for one, length in enumerate(node.shape)
                )
                return Layout(Grid(cuts), rows.owners)
        return None


def _is_small(loop: Loop, arrays: Iterable[tuple[Expr, StoredArray]]) -> bool:
    # Whether its iterations are short, and so many that laying arrays out anew pays.
    size = sum(sum(array.block_bytes) for _, array in arrays)
    size += sum(estimate_bytes(one, one.shape[0] if one.sparse else one.size) for one in loop.state)
    is_long = not isinstance(loop.limit, Literal) or int(loop.limit.value) >= _MANY_ITERATIONS
    return is_long and size <= SMALL_LOOP_BYTES


def _weight(one: tuple[Expr, StoredArray]) -> tuple[bool, int]:
    node, array = one
    return node.sparse, sum(array.block_bytes)


def write_aligned(node: Expr, layout: Layout, writer: PlanWriter) -> Registers:
    """Write the tasks that repartition an array, and return the slots of its blocks, each on its owner."""
    array = writer.registers[node]
    if array.layout == layout:
        return array.keys
    keys = []
    for region, owner in zip(layout.grid.regions(), layout.owners, strict=True):
        key = writer.block(node, region, owner)
        if writer.owner_of(key) != owner:
            task = TaskWriter()
            task.do(Join(((0,) * node.ndim,), region_shape(region), node.dtype, node.sparse), task.read(key))
            size, name = writer.bytes_of(node, region), ("moved", key, owner)
            key = writer.add(task, owner, MOVE, size, node, name)
        keys.append(key)
    return tuple(keys)


def sized(node: Expr, layout: Layout, keys: Sequence[Slot], like: StoredArray | None = None) -> StoredArray:
    """Return an array that will be there, with the counts of its blocks as far as they can be told before.

    ``like`` is an array of about as many entries, where it is sparse.
    """
    if not node.sparse:
        sizes = tuple(map(region_size, layout.grid.regions()))
        return StoredArray(layout, tuple(keys), sizes, tuple(size * node.dtype.itemsize for size in sizes))
    if like is not None and like.layout == layout:
        return replace(like, keys=tuple(keys))
    if like is None or not like.block_nnz:
        return StoredArray(layout, tuple(keys))
    count = len(keys)
    entries = sum(like.block_nnz) // count
    return StoredArray(
        layout, tuple(keys), (entries,) * count, (sum(like.block_bytes) // count,) * count, True
    )
