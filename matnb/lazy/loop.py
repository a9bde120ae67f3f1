"""Loops as a user writes them: the step is called once, recorded, and closed to a body."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar, overload

import numpy as np

from matnb.errors import DTypeError, OptionError, ShapeError
from matnb.expr.closure_conversion import closed
from matnb.expr.control import Body, Final, Loop, Variable
from matnb.expr.nodes import Broadcast, Expr, Literal
from matnb.lazy import ufuncs
from matnb.lazy.array import DistArray, expression_of, wrap
from matnb.lazy.branch import converted, scalar
from matnb.lazy.creation import zeros
from matnb.lazy.pytree import Nesting, put_together, taken_apart
from matnb.lazy.recording import keep_lines
from matnb.lazy.scopes import loop_numbers, new_scope, recording_body

State = TypeVar("State")
Kept = TypeVar("Kept")
_COUNT = np.dtype(np.int64)
_ENDLESS = np.iinfo(np.int64).max
_PROMOTIONS = 4  # a state's dtype and format settle in two or three recordings


class _Unsettled(Exception):  # noqa: N818  not an error: the body is recorded again
    """A step gives arrays of other dtypes or formats than its state has."""

    def __init__(self, states: Sequence[Expr]) -> None:
        super().__init__()
        self.states = tuple(states)


def iteration() -> DistArray:
    """Return the number of the iteration, from 0, of the innermost loop: a 0-d int64 array.

    Raises
    ------
    OptionError
        Outside of a loop's body.

    Examples
    --------
    >>> import matnb as mn
    >>> x, n = mn.iterate(lambda x: x + mn.iteration(), mn.zeros(2), max_iterations=4)
    >>> x.compute()
    array([6., 6.])
    """
    numbers = loop_numbers()
    if not numbers:
        raise OptionError("mn.iteration() outside of a loop: call it in the step of mn.iterate")
    return DistArray(numbers[-1])


@overload
def iterate(
    step: Callable[..., State],
    state: State,
    *,
    until: Callable[[State, State], object] | None = ...,
    max_iterations: object = ...,
    collect: None = ...,
    over: object = ...,
    reverse: bool = ...,
) -> tuple[State, DistArray]: ...


@overload
def iterate(
    step: Callable[..., State],
    state: State,
    *,
    until: Callable[[State, State], object] | None = ...,
    max_iterations: object = ...,
    collect: Callable[[State], Kept],
    over: object = ...,
    reverse: bool = ...,
) -> tuple[State, DistArray, Kept]: ...


def iterate(
    step: Callable[..., State],
    state: State,
    *,
    until: Callable[[State, State], object] | None = None,
    max_iterations: object = None,
    collect: Callable[[State], Kept] | None = None,
    over: object = None,
    reverse: bool = False,
) -> tuple[State, DistArray] | tuple[State, DistArray, Kept]:
    """Repeat a step on its own result, as one expression: recorded once, run many times.

    ``step`` is called once, with arrays that stand for the state of any iteration. (Twice or more, where the
    first step widens a dtype or fills a sparse array: it is recorded again with a state that is so.) So what
    it prints is not printed each iteration, and Python's ``if`` and ``while`` on values are refused: use
    ``until``, :func:`matnb.cond` or ``np.where``. What does not change from one iteration to the next is
    computed once, before the first. Nothing runs until a value is asked for; then the workers take all
    iterations among themselves. Where each step has to be looked at, or one may change a shape, write a
    loop of Python's instead, and ask for a value in it.

    Parameters
    ----------
    step
        ``step(state)``, or ``step(state, item)`` with ``over``, returns the next state: the same nesting and
        shapes. Patterns of sparse arrays may change. A dtype that the first step widens is wide from the
        start.
    state
        Where to begin: an array, or tuples, lists and dicts of arrays in any nesting.
    until
        ``until(old, new)`` returns one truth value; the loop ends after the iteration where it is true.
    max_iterations
        The most iterations: a whole number, or a 0-d integer DistArray.
    collect
        ``collect(new)`` returns what to keep of every iteration, in any nesting of dense arrays.
    over
        Arrays of one length in any nesting: iteration k is given ``item``, their k-th elements or rows.
    reverse
        Go through ``over`` from its end.

    Returns
    -------
    tuple
        The final state; the number of iterations taken, a 0-d int64 array; and with ``collect`` what was
        kept, stacked along a new first axis, zero for iterations that were not taken.

    Raises
    ------
    ShapeError
        When a step changes the nesting or a shape, or ``until`` gives more than one value.
    DTypeError
        When a dtype never settles, or ``collect`` is given sparse arrays.
    LoopBodyError
        When ``step``, ``until`` or ``collect`` ask for a value.
    OptionError
        When nothing would end the loop, or ``collect`` has no bound on the number of rows.

    Examples
    --------
    >>> import numpy as np
    >>> import matnb as mn
    >>> x, n = mn.iterate(
    ...     lambda x: (x + 2 / x) / 2, mn.ones(1), until=lambda old, new: np.abs(new - old).max() < 1e-9
    ... )
    >>> x.compute(), int(n)
    (array([1.41421356]), 5)

    Going through an array, and keeping something of every step:

    >>> total, _, sums = mn.iterate(
    ...     lambda total, item: total + item, 0.0, over=mn.arange(1.0, 5.0), collect=lambda total: total
    ... )
    >>> float(total), sums.compute()
    (10.0, array([ 1.,  3.,  6., 10.]))

    References
    ----------
    The control set follows ``jax.lax``'s scan, while_loop and cond: Bradbury et al., JAX, 2018.
    """
    leaves, nesting = taken_apart(state)
    states = [expression_of(leaf) for leaf in leaves]
    items, item_nesting, length = _scanned(over)
    limit = _limit(max_iterations, length, until is not None)
    for _ in range(_PROMOTIONS):
        recorder = _LoopRecorder(nesting, states, limit, items, item_nesting, reverse)
        try:
            return recorder.record(step, until, collect)  # type: ignore[return-value]  # nested as the state
        except _Unsettled as found:
            states = list(found.states)
    kinds = ", ".join(str(one.dtype) for one in states)
    raise DTypeError(f"the dtypes of the state ({kinds}) change with every step; convert them with astype")


class _LoopRecorder:
    """Records the body of one loop for states of certain dtypes and formats."""

    def __init__(
        self,
        nesting: Nesting,
        states: Sequence[Expr],
        limit: Expr,
        items: Sequence[Expr],
        item_nesting: Nesting | None,
        reverse: bool,
    ) -> None:
        self._nesting, self._states, self._limit = nesting, tuple(states), limit
        self._items, self._item_nesting, self._reverse = items, item_nesting, reverse

    def record(
        self,
        step: Callable[..., object],
        until: Callable[..., object] | None,
        collect: Callable[..., object] | None,
    ) -> tuple[object, ...]:
        """Return what ``iterate`` does."""
        number = new_scope()
        # The number of the iteration comes after all arrays of the state, whose count is known at the end.
        counter = Variable(-1, (), _COUNT, False, number)
        variables = [
            Variable(place, one.shape, one.dtype, one.sparse, number)
            for place, one in enumerate(self._states)
        ]
        with recording_body(counter):
            old = self._nested(variables)
            new = step(old) if self._item_nesting is None else step(old, self._item(counter))
            results = self._checked(new)
            self._settle(results)
            # Handles of their own: assigning to elements of one gives it another version.
            ends = None
            if until is not None:
                ends = scalar(until(self._nested(variables), self._nested(results)), "what until returns")
            kept, kept_nesting, starts = self._collected(collect, results, counter, len(variables))
        return self._loop([*results, *kept], ends, starts, counter, kept_nesting)

    def _nested(self, nodes: Sequence[Expr]) -> object:
        return put_together(self._nesting, [DistArray(one) for one in nodes])

    def _item(self, counter: Expr) -> object:
        assert self._item_nesting is not None
        place = DistArray(counter)
        if self._reverse:
            place = self._items[0].shape[0] - 1 - place
        return put_together(self._item_nesting, [DistArray(one)[place] for one in self._items])

    def _checked(self, new: object) -> list[Expr]:
        leaves, nesting = taken_apart(new, self._nesting)
        if new is None:
            raise DTypeError("the step returns None: let it return the next state")
        if nesting != self._nesting:
            raise ShapeError(f"the step returns {nesting}, but the state is {self._nesting}")
        results = [expression_of(leaf) for leaf in leaves]
        for path, before, after in zip(nesting.paths("state"), self._states, results, strict=True):
            if before.shape != after.shape:
                raise ShapeError(
                    f"{path} has shape {before.shape} and the step gives shape {after.shape}: "
                    "shapes stay the same from one iteration to the next"
                )
        return results

    def _settle(self, results: list[Expr]) -> None:
        # What a step widens is wide from the start, and what it fills is dense.
        wider = list(self._states)
        for place, (before, after) in enumerate(zip(self._states, results, strict=True)):
            dtype = np.result_type(before.dtype, after.dtype)
            if dtype != before.dtype:
                wider[place] = ufuncs.astype(before, dtype)
            if before.sparse and not after.sparse:
                wider[place] = Broadcast(wider[place], before.shape)
            results[place] = converted(after, dtype, before.sparse)
        if any(one is not before for one, before in zip(wider, self._states, strict=True)):
            raise _Unsettled(wider)

    def _collected(
        self, collect: Callable[..., object] | None, results: Sequence[Expr], counter: Expr, num_state: int
    ) -> tuple[list[Expr], Nesting | None, list[Expr]]:
        if collect is None:
            return [], None, []
        count = _constant(self._limit)
        if count is None or count == _ENDLESS:
            raise OptionError("collect= needs max_iterations= as a number, or over=: it keeps that many rows")
        leaves, nesting = taken_apart(collect(self._nested(results)))
        kept, starts = [], []
        for place, (path, leaf) in enumerate(zip(nesting.paths("collect"), leaves, strict=True)):
            value = expression_of(leaf)
            if value.sparse:
                raise DTypeError(f"{path} is sparse: collect keeps dense arrays")
            start = zeros((count, *value.shape), value.dtype).expression
            rows = DistArray(Variable(num_state + place, start.shape, start.dtype, False, _scope_of(counter)))
            rows[DistArray(counter)] = DistArray(value)
            kept.append(rows.expression)
            starts.append(start)
        return kept, nesting, starts

    def _loop(
        self,
        results: Sequence[Expr],
        ends: Expr | None,
        starts: Sequence[Expr],
        counter: Variable,
        kept_nesting: Nesting | None,
    ) -> tuple[object, ...]:
        roots = [*results] if ends is None else [*results, ends]
        scope, num_results = counter.scope, len(results)

        def own(node: Expr) -> Variable | None:
            if not isinstance(node, Variable):
                return None
            return Variable(
                num_results if node.place < 0 else node.place, node.shape, node.dtype, node.sparse
            )

        made, given, became = closed(roots, lambda node: scope in node.free, own, num_results + 1)
        keep_lines(became)
        body = Body(made[: len(results)], None if ends is None else made[-1])
        node = Loop((*self._states, *starts, self._limit, *given), body, len(results))
        count = wrap(node)
        finals = [DistArray(Final(node, place)) for place in range(len(results))]
        num_state = len(self._states)
        final = put_together(self._nesting, finals[:num_state])
        if kept_nesting is None:
            return final, count
        return final, count, put_together(kept_nesting, finals[num_state:])


def _scope_of(counter: Expr) -> int:
    (number,) = counter.free
    return number


def _scanned(over: object) -> tuple[list[Expr], Nesting | None, int | None]:
    if over is None:
        return [], None, None
    leaves, nesting = taken_apart(over)
    items = [expression_of(leaf) for leaf in leaves]
    if not items or any(not one.shape for one in items):
        raise ShapeError("over= needs arrays of at least one axis, whose first is gone through")
    lengths = {one.shape[0] for one in items}
    if len(lengths) != 1:
        raise ShapeError(
            f"over= has arrays of lengths {sorted(lengths)} along the first axis: give one length"
        )
    return items, nesting, lengths.pop()


def _limit(given: object, length: int | None, ends: bool) -> Expr:
    if given is None:
        if length is None and not ends:
            raise OptionError("nothing ends this loop: give until=, max_iterations= or over=")
        return ufuncs.literal(_ENDLESS if length is None else length, _COUNT)
    if isinstance(given, np.ndarray) and not given.shape:
        given = given[()]
    if isinstance(given, bool) or not isinstance(given, DistArray | int | np.integer):
        raise OptionError(f"max_iterations={given!r}: give a whole number, or a 0-d integer DistArray")
    if isinstance(given, DistArray):
        if given.shape or given.dtype.kind not in "iu":
            raise OptionError(f"max_iterations= of shape {given.shape} {given.dtype}: give a 0-d integer")
        limit = given.astype(_COUNT)
        return expression_of(limit if length is None else np.minimum(limit, length))
    if given < 0:
        raise OptionError(f"max_iterations={given}: it cannot be negative")
    return ufuncs.literal(min(int(given), _ENDLESS if length is None else length), _COUNT)


def _constant(limit: Expr) -> int | None:
    return int(limit.value) if isinstance(limit, Literal) else None
