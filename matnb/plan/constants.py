"""Constants of plans that may have other values in other runs, and what else a plan has inside."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import fields, is_dataclass

import numpy as np

from matnb.blocks.formats import Dense
from matnb.expr.nodes import Expr, Literal
from matnb.plan.structural_key import StructuralKey
from matnb.program.operators import Constant, Make
from matnb.program.plan import Plan, Step

_NUMBERS = (float, complex, bytes, np.generic, np.ndarray)
_PLAIN = frozenset([int, bool, type(None)])
Value = tuple[str, tuple[int, ...], bytes]


class Unfit(Exception):  # noqa: N818  not an error: a plan is made anew
    """A plan cannot serve other runs of its form, or not this one."""


def value_of(node: Expr) -> Value:
    """Return dtype, shape and bytes of a constant."""
    assert isinstance(node, Literal)
    return node.element.str, node.lengths, node.content


def value_in(step: Step) -> Value | None:
    """Return the same of the constant that a step gives, or None."""
    match step.operator:
        case Constant(Dense(values)):
            return values.dtype.str, values.shape, values.tobytes()
    return None


def check_numbers(form: StructuralKey, order: Sequence[Expr], plan: Plan, stored: Container[Expr]) -> None:
    """Raise Unfit unless a form's numbers may have other values where its plan has them.

    They may where no pass looked at them, and the plan has them as they are.
    """
    if not form.numbers:
        return
    literals = {value_of(node) for node in order if isinstance(node, Literal)}
    sources = {node for node in order if not node.operands and node not in stored}
    if not {value_of(form.nodes[place]) for place in form.numbers} <= literals or not sources <= set(
        form.nodes
    ):
        raise Unfit
    in_plan = set()
    for step in (step for task in plan.tasks for step in task.steps):
        value = value_in(step)
        if value is not None:
            in_plan.add(value)
        elif not isinstance(step.operator, Make) and holds(step.operator, _NUMBERS, ()):
            raise Unfit
    if not in_plan <= literals:
        raise Unfit


def holds(value: object, kinds: tuple[type, ...], names: Collection[str]) -> bool:
    """Tell whether there are values of some kinds, or names, in what has fields."""
    stack = [value]  # chains may have thousands of links
    while stack:
        one = stack.pop()
        if type(one) in _PLAIN or isinstance(one, np.dtype):
            continue
        if isinstance(one, kinds) or (isinstance(one, str) and one in names):
            return True
        if isinstance(one, Mapping):
            stack.extend(one.keys())
            stack.extend(one.values())
        elif isinstance(one, tuple | list | set | frozenset):
            stack.extend(one)
        elif is_dataclass(one):
            stack.extend(getattr(one, field.name) for field in fields(one))
    return False
