"""Fuses the steps of a task: a product, elementwise functions and their reductions are one pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from matnb.blocks.kernels.calls import Output
from matnb.blocks.kernels.elementwise.elementwise import Link
from matnb.blocks.kernels.elementwise.one_pass import Share
from matnb.program.operators import Finish, FusedKernel, Multiply
from matnb.program.plan import Step

_FLOAT = np.dtype(np.float64)


@dataclass(frozen=True)
class FusedStep:
    """A step, and the numbers of the steps that it stands for; its value is that of the last of them."""

    step: Step
    members: tuple[int, ...]


def fused(steps: Sequence[Step], num_inputs: int) -> tuple[FusedStep, ...]:
    """Return steps with the same last value, in which those that can run in one pass over memory are one.

    A function joins the step of its readers where all of them are in one, so that nothing is done twice. The
    sum of a vector in double precision is finished there too, and of products in parts the only one that such
    a step reads is made there. What nobody reads is left out.

    Parameters
    ----------
    steps
        Their arguments number the task's inputs first, then the steps.
    num_inputs
        Of the task.
    """
    members: dict[int, list[int]] = {}  # of each pass, from the last to the first, by the last
    products: dict[int, list[int]] = {}  # that may be made in a pass
    ends: dict[int, int] = {}  # the last step of the pass that each step is in
    for number, readers in _readers(steps, num_inputs).items():
        found = {ends[reader] for reader in readers}
        end = found.pop() if len(found) == 1 else number
        read_by = [steps[reader] for reader in readers]
        if end != number and _is_in_parts(steps[number], read_by) and _sums_at_most(steps, members[end]):
            products.setdefault(end, []).append(number)
            end = number
        elif not _joins(steps[number], read_by):
            end = number
        ends[number] = end
        members.setdefault(end, []).append(number)
    for end, some in products.items():
        if len(some) == 1:
            members[end] += members.pop(some[0])
    places = {place: place for place in range(num_inputs)}
    result: list[FusedStep] = []
    for end in sorted(members):
        own = tuple(sorted(members[end]))
        step = steps[end] if len(own) == 1 else _together(steps, own, num_inputs)
        arguments = tuple(places[place] for place in step.arguments)
        result.append(FusedStep(Step(step.operator, arguments), own))
        places[num_inputs + end] = num_inputs + len(result) - 1
    return tuple(result)


def _readers(steps: Sequence[Step], num_inputs: int) -> dict[int, list[int]]:
    # The readers of each step that has some, and of the last one, from the last to the first.
    found: dict[int, list[int]] = {len(steps) - 1: []} if steps else {}
    for number in reversed(range(len(steps))):
        for place in steps[number].arguments if number in found else ():
            if place >= num_inputs:
                found.setdefault(place - num_inputs, []).append(number)
    return dict(sorted(found.items(), reverse=True))


def _joins(step: Step, readers: Sequence[Step]) -> bool:
    match step.operator:
        case FusedKernel(_, ()):
            return all(isinstance(reader.operator, FusedKernel) for reader in readers)
        case FusedKernel(_, (share,)):
            return is_sum(share) and all(map(_finishes, readers))
    return False


def _finishes(step: Step) -> bool:
    match step.operator:
        case Finish(_, _, _, dtype, None, _):
            return dtype == _FLOAT and len(step.arguments) == 1
    return False


def _is_in_parts(step: Step, readers: Sequence[Step]) -> bool:
    # whether a step is a product that can be made and used a few rows at a time
    match step.operator:
        case Multiply(in_parts=True):
            return all(isinstance(reader.operator, FusedKernel) for reader in readers)
    return False


def _sums_at_most(steps: Sequence[Step], members: Sequence[int]) -> bool:
    # whether no other reduction than one sum is made in a pass
    passes = [steps[number].operator for number in members]
    shares = [share for one in passes if isinstance(one, FusedKernel) for share in one.shares]
    return len(shares) <= 1 and all(map(is_sum, shares))


def is_sum(share: Share) -> bool:
    """Tell whether a reduction is a sum in double precision over a first axis."""
    return share.operation == "sum" and share.axes == (0,) and share.dtype == _FLOAT


def _together(steps: Sequence[Step], members: Sequence[int], num_inputs: int) -> Step:
    products = [number for number in members if isinstance(steps[number].operator, Multiply)]
    others = [number for number in members if number not in products]
    inside = {num_inputs + number for number in members}
    read = [place for number in others for place in steps[number].arguments if place not in inside]
    outside = tuple(dict.fromkeys(read))
    operands = (*(num_inputs + number for number in products), *outside)
    numbers = {place: number for number, place in enumerate(operands)}
    factors = tuple(place for number in products for place in steps[number].arguments)
    links: list[Link] = []
    shares: tuple[Share, ...] = ()
    outputs: tuple[Output, ...] = ()
    product = ending = None
    for member in members:
        operator = steps[member].operator
        if isinstance(operator, Multiply):
            product = operator
            continue
        if isinstance(operator, Finish):
            ending = operator
            continue
        assert isinstance(operator, FusedKernel), "nothing else is part of a pass"
        values = [numbers[place] for place in steps[member].arguments]
        for link in operator.links:
            arguments = tuple(values[one] for one in link.arguments)
            links.append(replace(link, arguments=arguments))
            values.append(len(operands) + len(links) - 1)
        shares = tuple(replace(share, place=values[share.place]) for share in operator.shares)
        outputs = operator.outputs
        numbers[num_inputs + member] = values[-1]
    return Step(FusedKernel(tuple(links), shares, outputs, product, ending), (*factors, *outside))
