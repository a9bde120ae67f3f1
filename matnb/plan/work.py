"""The work of plans, from shapes and counts of entries alone: floating-point operations and bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from matnb.expr.nodes import Data, Elementwise, Expr, Literal, MaskedMatMul, MatMul, Reduce
from matnb.ops.contracting import Contract
from matnb.ops.quotient_products import QuotientProduct
from matnb.ops.tall_products import TallProducts
from matnb.program.kinds import Role
from matnb.program.memory import estimate_bytes
from matnb.program.plan import PlanWork, Slot, Stage
from matnb.program.program import Action, Iterate, weighted_tasks

_NO_WORK = PlanWork(0, 0)
_COPYING = ("astype", "positive", "where")  # functions that compute nothing


def works_of(stages: Iterable[Stage], entries: Mapping[Expr, int]) -> tuple[PlanWork, ...]:
    """Return the work of each stage of a plan.

    It is the same for any cuts: an expression counts once, however many blocks it has and however often it is
    made, and what cuts add, such as putting shares together, does not count.

    Parameters
    ----------
    stages
        Of the plan.
    entries
        How many elements each expression stores: a guess for sparse ones, and so is their work.
    """
    counted: set[Expr] = set()
    found = []
    for stage in stages:
        made = [one for one in dict.fromkeys(stage.inside) if one not in counted]
        counted.update(made)
        inside, flops, moved = set(made), 0, 0
        size = estimate_bytes(stage.expression, entries[stage.expression])
        for node in made:
            own = flops_of(node, entries)
            flops += own
            for one in node.operands:
                if one not in inside and not isinstance(one, Literal):
                    read = estimate_bytes(one, entries.get(one, one.size))
                    # Of what only picks elements, or moves them, those that are read are those it gives.
                    moved += read if own or isinstance(node, Elementwise) else min(read, size)
        if made and stage.kind.role is not Role.SENDS and not isinstance(stage.expression, Data | Literal):
            moved += size
        found.append(PlanWork(flops, moved))
    return tuple(found)


def flops_of(node: Expr, entries: Mapping[Expr, int]) -> int:
    """Return how many floating-point operations an expression is, without its operands.

    A product is two for each pair of elements that meet, as multiplications and additions are counted; a
    function of elements, ``exp`` or ``+``, one for each that is stored; a reduction one for each element
    that it reads. Others, such as sorting, choosing and solving, count as none.
    """

    def stored(one: Expr) -> int:
        return entries.get(one, one.size)

    match node:
        case MatMul(left, right):
            return 2 * _num_pairs(node, left, right, stored)
        case MaskedMatMul(left, right, mask, _, complement):
            pairs = _num_pairs(node, left, right, stored)
            if mask.sparse and not complement:
                pairs = min(pairs, pairs * stored(mask) // max(1, node.size))
            return 2 * pairs
        case QuotientProduct(S, inputs):
            return stored(S) * (2 * inputs[0].shape[1] + 2 * node.shape[1] + 3)
        case TallProducts(left):
            return 2 * left.size * node.shape[1]
        case Contract(inputs):
            return max(1, len(inputs)) * prod(node.lengths.values())
        case Elementwise(name):
            return 0 if name in _COPYING else stored(node)
        case Reduce(operation=operation, operand=operand):
            return 3 * stored(operand) if operation == "deviation" else stored(operand)
    return 0


def _num_pairs(node: Expr, left: Expr, right: Expr, stored: Callable[[Expr], int]) -> int:
    length = max(1, left.shape[-1])
    if not left.sparse and not right.sparse:
        return node.size * length
    return stored(left) * stored(right) // length


@dataclass(frozen=True)
class LoopWork:
    """How much work a loop or branch is.

    A loop inside counts as often as is written down, or else as ten iterations; of the two ways of a branch
    the one of fewer tasks counts.

    Attributes
    ----------
    before
        What is done once; all of it where there is no loop.
    iteration
        An iteration of the outermost loop.
    """

    before: PlanWork = _NO_WORK
    iteration: PlanWork = _NO_WORK

    def total(self, iterations: int) -> PlanWork:
        """Return the work of ``iterations`` iterations plus the one-off work."""
        return PlanWork(
            *(one + iterations * each for one, each in zip(self.before, self.iteration, strict=True))
        )


def loop_work(actions: Sequence[Action], works: Mapping[Slot, tuple[PlanWork, int]]) -> LoopWork:
    """Return how much work the program of a loop or branch is.

    Parameters
    ----------
    actions
        Of the program.
    works
        By the slots of tasks the work of their stage, and how many tasks share it.
    """
    loop = next((one for one in actions if isinstance(one, Iterate)), None)
    outside = [one for one in actions if one is not loop]
    return LoopWork(_sum(outside, works), _NO_WORK if loop is None else _sum(loop.body, works))


def _sum(actions: Iterable[Action], works: Mapping[Slot, tuple[PlanWork, int]]) -> PlanWork:
    flops = moved = 0.0
    for task, times in weighted_tasks(actions):
        work, count = works.get(task.key, (_NO_WORK, 1))
        flops += times * work.flops / count
        moved += times * work.accessed_bytes / count
    return PlanWork(round(flops), round(moved))
