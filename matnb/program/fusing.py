"""The elementwise steps of a task, and reductions of them, put together to chains that run tile by tile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from matnb.blocks.kernels.elementwise import Link
from matnb.program.operators import Apply, Chain, Partial, PartialAll
from matnb.program.plan import Step


@dataclass(frozen=True)
class ChainedStep:
    """A step, and the numbers of the steps that it stands for; its value is that of the last of them."""

    step: Step
    members: tuple[int, ...]


def chained(steps: Sequence[Step], num_inputs: int) -> tuple[ChainedStep, ...]:
    """Return steps with the same last value, in which elementwise functions are chains as long as can be.

    A function joins the chain of its readers where all of them are in one, so that nothing is done twice. A
    chain may end in reductions.

    Parameters
    ----------
    steps
        Their arguments number the task's inputs first, then the steps.
    num_inputs
        Of the task.
    """
    readers: list[list[int]] = [[] for _ in steps]
    for number, step in enumerate(steps):
        for place in step.arguments:
            if place >= num_inputs:
                readers[place - num_inputs].append(number)
    ends = list(range(len(steps)))  # the last step of each step's chain
    for number in reversed(range(len(steps))):
        found = {ends[reader] for reader in readers[number]}
        if isinstance(steps[number].operator, Apply) and len(found) == 1:
            (end,) = found
            if isinstance(steps[end].operator, Apply | PartialAll):
                ends[number] = end
    places = {place: place for place in range(num_inputs)}
    result: list[ChainedStep] = []
    for end in sorted(set(ends)):
        members = tuple(number for number in range(end + 1) if ends[number] == end)
        step = _alone(steps[end]) if len(members) == 1 else _chain(steps, members, num_inputs)
        arguments = tuple(places[place] for place in step.arguments)
        result.append(ChainedStep(Step(step.operator, arguments), members))
        places[num_inputs + end] = num_inputs + len(result) - 1
    return tuple(result)


def taken_apart(steps: Sequence[Step], num_inputs: int) -> tuple[Step, ...]:
    """Return steps with the same last value, in which a chain that ends in one reduction is two steps."""
    result: list[Step] = []
    places = {place: place for place in range(num_inputs)}
    for number, step in enumerate(steps):
        arguments = tuple(places[place] for place in step.arguments)
        match step.operator:
            case PartialAll(links, (share,), _):
                if links:
                    result.append(Step(Chain(links), arguments))
                    arguments = (num_inputs + len(result) - 1,)
                result.append(_alone(Step(PartialAll((), (share,), ()), arguments)))
            case operator:
                result.append(Step(operator, arguments))
        places[num_inputs + number] = num_inputs + len(result) - 1
    return tuple(result)


def _alone(step: Step) -> Step:
    match step.operator:
        case PartialAll(_, (share,), _):
            return Step(
                Partial(share.operation, share.axes, share.dtype, share.along, share.start), step.arguments
            )
    return step


def _chain(steps: Sequence[Step], members: Sequence[int], num_inputs: int) -> Step:
    inside = {num_inputs + number for number in members}
    read = [place for number in members for place in steps[number].arguments if place not in inside]
    outside = list(dict.fromkeys(read))
    numbers = {place: number for number, place in enumerate(outside)}
    links: list[Link] = []
    for member in members:
        operator = steps[member].operator
        if isinstance(operator, PartialAll):
            places = [numbers[steps[member].arguments[share.place]] for share in operator.shares]
            shares = tuple(
                replace(share, place=place) for share, place in zip(operator.shares, places, strict=True)
            )
            return Step(PartialAll(tuple(links), shares, operator.outputs), tuple(outside))
        assert isinstance(operator, Apply)
        arguments = tuple(numbers[place] for place in steps[member].arguments)
        links.append(
            Link(
                operator.name,
                operator.input_dtypes,
                operator.dtype,
                operator.output,
                operator.sparse,
                arguments,
            )
        )
        numbers[num_inputs + member] = len(outside) + len(links) - 1
    return Step(Chain(tuple(links)), tuple(outside))
