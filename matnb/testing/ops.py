"""The contract of an operation: what it means, and that its tasks make that from any cuts."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import scipy.sparse as sp

from matnb.backend.tasks.executor import execute
from matnb.blocks.formats import Block, Csr, Dense, Empty, freeze
from matnb.expr.client_data import held
from matnb.expr.nodes import Expr
from matnb.lazy.array import DistArray
from matnb.lazy.creation import asarray
from matnb.lazy.handles import expression_of
from matnb.lazy.loop import cond
from matnb.ops.creation import inline_blocks, piece_of
from matnb.ops.interpret import interpret
from matnb.passes import optimize
from matnb.plan.lower import lower
from matnb.program.check import check_plan
from matnb.program.plan import Plan, Slot, Task, Workers
from matnb.testing.expectations import array_of, cut_anywhere, expect, expect_same

Arrays = tuple[Any, ...]  # NumPy's, or SciPy's sparse ones
# Workers that are made up.
ONE = Workers((0,), 2, 0)
THREE = Workers((0, 1, 2), 1, 0)


class OpTests:
    """Tests of an operation; a subclass gives the three methods below, and pytest runs it.

    Nothing needs a cluster: plans are laid out over workers that are made up, and run in this process.

    Attributes
    ----------
    tolerance
        Relative and absolute; 0 where all bits have to be the same however arrays are cut.
    """

    tolerance: float = 0.0

    def record(self, *arrays: Any) -> DistArray:
        """Return what a user's call of the operation gives for DistArrays."""
        raise NotImplementedError(f"{type(self).__name__}: write record(self, *arrays), the call to test")

    def expected(self, *arrays: Any) -> Any:
        """Return the same for NumPy's arrays, or SciPy's sparse ones, made without matnb."""
        raise NotImplementedError(f"{type(self).__name__}: write expected(self, *arrays) with NumPy")

    def operands(self) -> Iterable[Arrays]:
        """Return the operands of several calls, each a tuple of arrays; small, and empty ones among them."""
        raise NotImplementedError(f"{type(self).__name__}: write operands(self), a list of tuples of arrays")

    def test_its_meaning_is_what_is_expected(self) -> None:
        """``@means`` gives the shape, dtype, format and elements that are expected."""
        for arrays, where in self._calls():
            node = expression_of(self.record(*map(asarray, arrays)))
            wanted = self.expected(*arrays)
            _expect_form(node, wanted, where)
            expect_same(interpret(node), wanted, self.tolerance, f"{where}: the meaning")

    def test_its_tasks_make_it_from_any_cuts(self) -> None:
        """Tasks on one worker and on three give what is expected, and a block of its form for each region."""
        for arrays, where in self._calls():
            wanted = self.expected(*arrays)
            for seed in range(4):
                node = expression_of(self.record(*cut_anywhere(arrays, seed)))
                for workers in (ONE, THREE):
                    place = f"{where}, cuts {seed}, {len(workers.numbers)} workers"
                    made = _made(node, _plan(node, workers), place)
                    expect_same(made, wanted, self.tolerance, place)

    def test_passes_keep_what_it_means(self) -> None:
        """All passes, those that are registered among them, leave every bit, and a second time nothing."""
        for arrays, where in self._calls():
            node = expression_of(self.record(*map(asarray, arrays)))
            after = optimize({"result": node})
            expect_same(interpret(after["result"]), interpret(node), 0.0, f"{where}: after all passes")
            again = optimize(after)["result"]
            expect(again is after["result"], f"{where}: passes change again what they gave, to {again!r}")

    def test_equal_calls_are_one_node(self) -> None:
        """The same call on the same operands is the same node, so that a result is computed once."""
        for arrays, where in self._calls():
            handles = cut_anywhere(arrays, 0)
            one, other = (expression_of(self.record(*handles)) for _ in range(2))
            expect(
                one is other, f"{where}: two equal calls are two nodes: do fields hold what is new each time?"
            )
            expect(
                one.with_operands(*one.operands) is one,
                f"{where}: {type(one).__name__}.with_operands gives another node for its own operands",
            )

    def test_it_may_be_in_a_branch(self) -> None:
        """In the body of a branch, where operands are variables, it means the same."""
        for arrays, where in self._calls():
            handles = cut_anywhere(arrays, 0)
            chosen = cond(asarray(True), lambda: self.record(*handles), lambda: self.record(*handles))  # noqa: B023  called at once
            wanted = self.expected(*arrays)
            expect_same(interpret(expression_of(chosen)), wanted, self.tolerance, f"{where}: in a branch")

    def test_its_tasks_travel(self) -> None:
        """Tasks can be sent to other processes, and are equal when they are written again."""
        for arrays, where in self._calls():
            node = expression_of(self.record(*cut_anywhere(arrays, 1)))
            plan, again = _plan(node, THREE), _plan(node, THREE)
            for task, other in zip(plan.tasks, again.tasks, strict=True):
                try:
                    sent = pickle.loads(pickle.dumps(task))
                except (pickle.PicklingError, AttributeError, TypeError) as error:
                    text = f"{where}: a task cannot be sent ({error}): let kernels be functions of a module"
                    raise AssertionError(text) from error
                expect(sent == task == other, f"{where}: a task is another one when written again, or sent")
                expect(hash(task.steps) == hash(other.steps), f"{where}: equal tasks have two hashes")

    def _calls(self) -> Iterator[tuple[Arrays, str]]:
        count = 0
        for count, arrays in enumerate(self.operands(), 1):
            form = ", ".join(f"{one.dtype}{list(one.shape)}" for one in arrays)
            yield arrays, f"{type(self).__name__}, operands {count} ({form})"
        expect(count, f"{type(self).__name__}.operands() gives no operands: return a list of tuples")


def _expect_form(node: Expr, wanted: Any, where: str) -> None:
    form = node.shape, node.dtype, node.sparse
    expected = wanted.shape, wanted.dtype, sp.issparse(wanted)
    expect(form == expected, f"{where}: settle() says {form} where {expected} is expected")


def _plan(node: Expr, workers: Workers) -> Plan:
    roots = list(optimize({"result": node}).values())
    plan = lower(roots, (), {}, workers)
    check_plan(plan, workers.numbers)
    return plan


def _made(node: Expr, plan: Plan, where: str) -> Any:
    # The whole array, each of whose blocks has the form that its region says.
    (array,) = plan.outputs.values()
    values = run_by_hand(plan)
    blocks = [values[key] for key in array.keys]
    return array_of(blocks, array.layout.grid, node.dtype, node.sparse, where)


def run_by_hand(plan: Plan, stored: Mapping[Slot, Block] | None = None) -> dict[Slot, Block]:
    """Run the steps of a plan in this process, one task after another."""
    values = dict(stored or {})
    values |= inline_blocks(plan)
    for one in plan.shipments:
        block = held(one.expression)
        assert block is not None, "whoever made the plan has the handles"
        values[one.key] = piece_of(block, one.region)
    return run_tasks(plan.tasks, values)


def run_tasks(tasks: Iterable[Task], given: Mapping[Slot, Block]) -> dict[Slot, Block]:
    """Run tasks, and return their values beside those given; blocks are read-only, as on workers."""
    values = dict(given)
    for task in tasks:
        registers = [values[key] for key in task.inputs]
        for step in task.steps:
            registers.append(execute(step.operator, [registers[place] for place in step.arguments]))
        value = registers[-1]
        values[task.key] = freeze(value) if isinstance(value, Dense | Csr | Empty) else value
    return values
