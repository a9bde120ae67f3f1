"""Nodes of control: loops, branches, and the bodies they run; a body is closed and names what it is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar
from weakref import WeakKeyDictionary

import numpy as np

from matnb.errors import DTypeError, ShapeError
from matnb.expr.digest import digest_of
from matnb.expr.nodes import Expr, Literal, Shape

MAX_STATES = 4  # of a loop, named in its line
_COUNT = np.dtype(np.int64)


@dataclass(frozen=True, eq=False, repr=False)
class Variable(Expr):
    """An array that a body is given, by its place among the body's variables.

    ``scope`` is the number of the recording while the body is written, so that no body takes another's
    variable for its own; it is 0 once the body is closed.
    """

    place: int
    lengths: Shape
    element: np.dtype
    is_sparse: bool
    scope: int = 0

    def __post_init__(self) -> None:
        self.settle(self.lengths, self.element, self.is_sparse)
        if self.scope:
            self.__dict__["free"] = frozenset([self.scope])

    def _text(self, operands: Sequence[str]) -> str:
        return f"variable {self.place}"


@dataclass(frozen=True, eq=False)
class Body:
    """Expressions over closed variables.

    Attributes
    ----------
    results
        What the body gives.
    until
        Of a loop: the scalar that ends it, also over the results; or None.
    """

    results: tuple[Expr, ...]
    until: Expr | None = None

    @property
    def digest(self) -> bytes:
        """Sixteen bytes that name it by what it computes."""
        ends = b"" if self.until is None else self.until.digest
        return digest_of(tuple(result.digest for result in self.results), ends)

    @property
    def roots(self) -> tuple[Expr, ...]:
        """All expressions of the body."""
        return self.results if self.until is None else (*self.results, self.until)


@dataclass(frozen=True, eq=False, repr=False)
class Loop(Expr):
    """A body repeated on its own results; the node itself stands for the number of iterations taken.

    ``inputs`` are the initial state, ``num_state`` arrays; then the most iterations there may be, a whole
    number; then what else the body is given. The body's variables are the state, the number of the
    iteration, from 0, and what is given. It ends after an iteration whose ``until`` is true.
    """

    inputs: tuple[Expr, ...]
    body: Body
    num_state: int

    def __post_init__(self) -> None:
        for state, result in zip(self.state, self.body.results, strict=True):
            _check_alike(state, result)
        self.settle((), _COUNT, False, *self.inputs)

    @property
    def state(self) -> tuple[Expr, ...]:
        """The initial state."""
        return self.inputs[: self.num_state]

    @property
    def limit(self) -> Expr:
        """Maximum number of iterations."""
        return self.inputs[self.num_state]

    @property
    def given(self) -> tuple[Expr, ...]:
        """What the body is given, apart from the state and the number of the iteration."""
        return self.inputs[self.num_state + 1 :]

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables of the body, in their order."""
        arrays = (*self.state, None, *self.given)
        return tuple(
            Variable(place, (), _COUNT, False)
            if one is None
            else Variable(place, one.shape, one.dtype, one.sparse)
            for place, one in enumerate(arrays)
        )

    def form_text(self) -> str:
        """Return what it is."""
        return "a loop"

    def _text(self, operands: Sequence[str]) -> str:
        begins = [*operands[: min(self.num_state, MAX_STATES)]]
        if self.num_state > MAX_STATES:
            begins.append(f"{self.num_state - MAX_STATES:,} more")
        text = f"loop from {', '.join(begins)}" if begins else "loop"
        limit = operands[self.num_state]
        if isinstance(self.limit, Literal):
            if self.limit.value == np.iinfo(np.int64).max:
                return text
            limit = str(self.limit.value)
        return f"{text}, at most {limit} times"


@dataclass(frozen=True, eq=False, repr=False)
class Cond(Expr):
    """One of two bodies, by a scalar; the node itself stands for whether it was the first.

    ``inputs`` are the scalar, then what both bodies are given: their variables.
    """

    inputs: tuple[Expr, ...]
    then: Body
    otherwise: Body

    def __post_init__(self) -> None:
        for first, second in zip(self.then.results, self.otherwise.results, strict=True):
            _check_alike(first, second)
        self.settle((), np.dtype(np.bool_), False, *self.inputs)

    @property
    def given(self) -> tuple[Expr, ...]:
        """What the bodies are given."""
        return self.inputs[1:]

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables of the bodies, in their order."""
        return tuple(
            Variable(place, one.shape, one.dtype, one.sparse) for place, one in enumerate(self.given)
        )

    def form_text(self) -> str:
        """Return what it is."""
        return "a branch"

    def _text(self, operands: Sequence[str]) -> str:
        return f"branch on {operands[0]}"


@dataclass(frozen=True, eq=False, repr=False)
class Final(Expr):
    """One of the arrays that a loop or a branch gives."""

    plain: ClassVar[bool] = True
    control: Expr
    place: int

    def __post_init__(self) -> None:
        made = results_of(self.control)[self.place]
        self.settle(made.shape, made.dtype, made.sparse, self.control)

    def _text(self, operands: Sequence[str]) -> str:
        return f"result {self.place} of {operands[0]}"


def results_of(control: Expr) -> tuple[Expr, ...]:
    """Return the expressions of what a loop or branch gives, as one of its bodies has them."""
    match control:
        case Loop():
            return control.body.results
        case Cond():
            return control.then.results
    raise TypeError("only loops and branches give several arrays")


def _check_alike(one: Expr, other: Expr) -> None:
    if one.shape != other.shape:
        raise ShapeError(f"an array of shape {one.shape} would become one of shape {other.shape}")
    if one.dtype != other.dtype or one.sparse != other.sparse:
        kinds = [f"{node.dtype}{' sparse' if node.sparse else ''}" for node in (one, other)]
        raise DTypeError(f"an array of {kinds[0]} would become one of {kinds[1]}")


# Loops that are iterative algorithms. Beside the nodes, whose digests say what is computed and nothing else.

_algorithms: WeakKeyDictionary[Expr, tuple[str, str]] = WeakKeyDictionary()


def name_algorithm(loop: Expr, algorithm: str, remedy: str) -> None:
    """Name the algorithm that a loop is, and what to do where it ends before its condition is true."""
    _algorithms[loop] = algorithm, remedy


def keep_algorithms(new: Mapping[Expr, Expr]) -> None:
    """Name loops as those are named that they stand for."""
    for written, node in new.items():
        if node is not written and written in _algorithms:
            _algorithms[node] = _algorithms[written]


def unconverged_text(loop: Expr, num_iterations: int) -> str:
    """Return what a user is told of a loop whose condition did not end it; nothing if it has no name."""
    if loop not in _algorithms or not num_iterations:
        return ""
    algorithm, remedy = _algorithms[loop]
    counted = "1 iteration" if num_iterations == 1 else f"{num_iterations:,} iterations"
    return f"{algorithm} has not converged after {counted}; the result is that of the last one: {remedy}"
