"""How loops and branches run: their programs, what these are given, and what they need."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from matnb.expr.control import Cond, Final, Loop
from matnb.expr.nodes import Elementwise, Expr
from matnb.expr.traverse import topological
from matnb.plan.attributing import works_of
from matnb.plan.hoisting import names_read
from matnb.plan.reproducibility import bits_follow_cuts
from matnb.plan.writing import ProgramWriter
from matnb.program.plan import Stage, Stored, Workers
from matnb.program.program import Program, batches

_MOST_INSIDE = 16  # expressions of an initial state that the program makes itself
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
        Of all bodies, for a person, and for errors.
    given
        For each register that is filled before, which block of which stored array it holds.
    peaks
        For each worker the memory that the program needs on top of what is used now.
    states, are_sparse
        Of a loop the arrays of its state, while it runs, and whether each is sparse.
    origins
        For what passes made in its bodies, the expressions that were written.
    works
        For tasks of the outermost loop's body, by their keys, which block of a stored input each works on:
        its digest as hexadecimal digits, and the block's number.
    bits_follow_cuts
        Whether other cuts may change last bits: then they may not depend on measured times.
    """

    program: Program
    outputs: Mapping[Expr, Stored]
    stages: tuple[Stage, ...]
    given: Mapping[str, tuple[Expr, int]]
    peaks: Mapping[int, int]
    states: tuple[Stored, ...]
    origins: Mapping[Expr, tuple[Expr, ...]]
    works: Mapping[str, tuple[str, int]]
    bits_follow_cuts: bool
    are_sparse: tuple[bool, ...]

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
    stored: Mapping[Expr, Stored],
    workers: Workers,
    wanted: Collection[Expr],
    begins: Sequence[Stored] | None = None,
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
    """
    writer = ProgramWriter(workers)
    known = dict(stored)
    if begins is not None:
        known.update(zip(node.variables, begins, strict=False))
    actions, made = writer.control(node, known, node.digest.hex(), begins is not None)
    outputs = {one: array for one, array in made.items() if one in wanted}
    results = tuple(dict.fromkeys(key for array in outputs.values() for key in array.keys))
    places = {key: (one, number) for one, array in known.items() for number, key in enumerate(array.keys)}
    read = names_read(actions).union(results)
    given = {name: places[name] for name in places if name in read}
    owners = {name: known[one].layout.owners[number] for name, (one, number) in given.items()}
    program = Program(
        tuple(actions), owners, {**owners, **writer.owners}, frozenset(writer.everywhere), results
    )
    states = tuple(
        made[Final(node, place)] for place in range(node.num_state if isinstance(node, Loop) else 0)
    )
    inputs = {one: stored[one] for one in node.inputs if one in stored}
    stages = tuple(writer.stages)
    return ControlPlan(
        program,
        outputs,
        stages,
        given,
        writer.peaks(),
        states,
        writer.origins,
        works_of(program, inputs, states, stages),
        bits_follow_cuts(stages, (task for batch in batches(actions) for task in batch.tasks)),
        tuple(one.sparse for one in node.state) if isinstance(node, Loop) else (),
    )
