"""What a user's subscripts of ``einsum`` say: a number for each axis of each array, and of the result."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Sequence
from string import ascii_letters, ascii_lowercase, ascii_uppercase
from typing import NamedTuple

from matnb.errors import DTypeError, ShapeError
from matnb.expr.nodes import Expr

Names = tuple[int, ...]
_LETTERS = ascii_letters
_NUMBERED = ascii_uppercase + ascii_lowercase  # in the order of letters, so that implicit results sort alike


class Subscripts(NamedTuple):
    """The names of axes, as numbers from 0: of each operand, and of the result."""

    operands: tuple[Names, ...]
    output: Names


def parsed(subscripts: str, nodes: Sequence[Expr]) -> Subscripts:
    """Return what subscripts such as "ij,jk->ik" say of some arrays; "..." stands for all other axes.

    Raises
    ------
    ShapeError
        When they do not fit the arrays, or are none.
    """
    text = "".join(subscripts.split())
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(nodes):
        raise ShapeError(f"einsum: {subscripts!r} names {len(terms)} arrays, but {len(nodes)} were given")
    for term in [*terms, right]:
        wrong = set(term.replace("...", "", 1)) - set(_LETTERS)
        if wrong:
            raise ShapeError(
                f"einsum: {''.join(sorted(wrong))!r} in {subscripts!r}: use letters and '...' only"
            )
    # Axes under an ellipsis are counted from the last one, as in broadcasting.
    numbers: dict[str | int, int] = {}
    named, most = [], 0
    for term, node in zip(terms, nodes, strict=True):
        before, dots, after = term.partition("...")
        rest = node.ndim - len(before) - len(after)
        if rest < 0 or (rest > 0 and not dots):
            raise ShapeError(
                f"einsum: {term!r} in {subscripts!r} does not fit an array with {node.ndim} axes"
            )
        most = max(most, rest)
        named.append([*before, *range(-rest, 0), *after])
    if arrow:
        before, dots, after = right.partition("...")
        if most and not dots:
            raise ShapeError(f"einsum: the result of {subscripts!r} has no '...': write it there, too")
        output: list[str | int] = [*before, *(range(-most, 0) if dots else ()), *after]
    else:
        counts = Counter(term for term in left if term in _LETTERS)
        output = [*range(-most, 0), *sorted(one for one, count in counts.items() if count == 1)]
    for own in named:
        for one in own:
            numbers.setdefault(one, len(numbers))
    for one in output:
        if one not in numbers:
            raise ShapeError(f"einsum: {one!r} of the result does not occur in the inputs of {subscripts!r}")
        if output.count(one) > 1:
            raise ShapeError(f"einsum: {one!r} occurs twice in the result of {subscripts!r}")
    return Subscripts(
        tuple(tuple(numbers[one] for one in own) for own in named), tuple(numbers[one] for one in output)
    )


def written(interleaved: Sequence[object]) -> tuple[str, list[object]]:
    """Return the subscripts and arrays of calls such as ``einsum(a, [0, 1], b, [1, 2], [0, 2])``.

    Raises
    ------
    DTypeError
        When a list of axes holds anything but whole numbers from 0 to 51 and an ellipsis.
    """
    arrays = list(interleaved[: len(interleaved) // 2 * 2 : 2])
    terms = [_written(one) for one in interleaved[1::2]]
    text = ",".join(terms)
    return (f"{text}->{_written(interleaved[-1])}" if len(interleaved) % 2 else text), arrays


def _written(axes: object) -> str:
    letters = []
    for one in axes if isinstance(axes, list | tuple) else [axes]:
        if one is Ellipsis:
            letters.append("...")
            continue
        try:
            letters.append(_NUMBERED[range(len(_NUMBERED))[operator.index(one)]])  # type: ignore[arg-type]  # refused below
        except (TypeError, IndexError):
            raise DTypeError(f"einsum: axis {one!r}: give integers from 0 to 51, or ...") from None
    return "".join(letters)


def spelled(operands: Sequence[Names], output: Names) -> str:
    """Return subscripts as text, with a letter for each number.

    Raises
    ------
    ShapeError
        When there are more than 52 names.
    """
    if max((one for own in operands for one in own), default=0) >= len(_LETTERS):
        raise ShapeError(f"einsum of arrays whose axes have more than {len(_LETTERS)} names")
    read = ",".join("".join(_LETTERS[one] for one in own) for own in operands)
    return f"{read}->{''.join(_LETTERS[one] for one in output)}"
