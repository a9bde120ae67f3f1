"""Loops and branches as a user writes them: what they run is called once, recorded, and closed to bodies."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar, cast, overload, runtime_checkable

import numpy as np

from matnb.blocks.formats import to_numpy
from matnb.errors import DTypeError, LoopBodyError, OptionError, ShapeError
from matnb.expr.client_data import owned
from matnb.expr.closure_conversion import closed
from matnb.expr.control import Body, Cond, Final, Loop, Variable, name_algorithm
from matnb.expr.nodes import Broadcast, Expr, Literal
from matnb.lazy import ufuncs
from matnb.lazy.array import DistArray, handle_of, wrap
from matnb.lazy.batch_turns import BatchTurns
from matnb.lazy.creation import zeros
from matnb.lazy.evaluator import evaluator
from matnb.lazy.handles import expression_of, live_expressions
from matnb.lazy.indexing.dynamic import sliced
from matnb.lazy.recording import keep_lines, recording_apart
from matnb.lazy.tree import TreeDef, flatten, unflatten

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Scope:
    """A body that is being recorded, and the number of its loop's iteration, if it has one."""

    iteration: Expr | None


_scopes: ContextVar[tuple[Scope, ...]] = ContextVar("matnb_scopes", default=())


def new_scope() -> int:
    """Return a number that no other recording in this process has."""
    return next(_numbers)


def loop_numbers() -> tuple[Expr, ...]:
    """Return the iteration numbers of the loops whose bodies are being recorded, the outermost first."""
    return tuple(scope.iteration for scope in _scopes.get() if scope.iteration is not None)


@contextmanager
def recording_body(iteration: Expr | None) -> Iterator[None]:
    """Record a body; ``iteration`` is the number of its loop's iteration, None for a branch."""
    token = _scopes.set((*_scopes.get(), Scope(iteration)))
    try:
        yield
    finally:
        _scopes.reset(token)


State = TypeVar("State")


def cond(predicate: object, then: Callable[[], State], otherwise: Callable[[], State]) -> State:
    """Return the result of one of two functions, chosen by a scalar; only that one is computed.

    Parameters
    ----------
    predicate
        An array with one element; if true, ``then`` is chosen.
    then, otherwise
        Functions without arguments, each called once to record its result; both must return the same nesting
        and shapes. If dtypes differ, the result has the wider one. They may use arrays from the enclosing
        scope.

    Raises
    ------
    ShapeError
        If their results differ in nesting or shapes, or the predicate has more than one element.
    LoopBodyError
        If one of them asks for a value.

    Examples
    --------
    >>> import matnb as mn
    >>> x = mn.arange(3.0)
    >>> mn.cond(x.sum() > 2, lambda: x * 2, lambda: x).compute()
    array([0., 2., 4.])
    """
    decides = scalar(predicate, "the predicate of mn.cond")
    known = live_expressions()
    with recording_body(None):
        first, tree = flatten(then())
    with recording_body(None):
        second, other = flatten(otherwise(), tree)
    if tree != other:
        unlike = tree.difference(other) if str(tree) == str(other) else None
        hint = (
            "" if unlike is None else f": {'; '.join(filter(None, (f'other {unlike.parts}', unlike.advice)))}"
        )
        raise ShapeError(f"mn.cond gives {tree} on one side and {other} on the other{hint}")
    firsts, seconds = [], []
    for path, one, two in zip(
        tree.paths("result"), map(expression_of, first), map(expression_of, second), strict=True
    ):
        if one.shape != two.shape:
            raise ShapeError(
                f"{path} of mn.cond has shape {one.shape} on one side and {two.shape} on the other"
            )
        dtype, sparse = np.result_type(one.dtype, two.dtype), one.sparse and two.sparse
        firsts.append(converted(one, dtype, sparse))
        seconds.append(converted(two, dtype, sparse))

    def inside(node: Expr) -> bool:
        return bool(node.operands) and node not in known

    def close(roots: Sequence[Expr], given: Sequence[Expr]) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
        made, given, became = closed(roots, inside, lambda node: None, 0, given)
        keep_lines(became)
        return made, tuple(given)

    _, given = close(firsts, ())
    others, given = close(seconds, given)
    node = wrap(Cond((decides, *given), Body(close(firsts, given)[0]), Body(others))).expression
    results = [DistArray(Final(node, place)) for place in range(len(firsts))]
    return cast("State", unflatten(tree, results))


def scalar(value: object, what: str) -> Expr:
    """Return the expression of one truth value.

    Raises
    ------
    ShapeError
        When there are more, or none.
    """
    node = expression_of(value)
    if node.size != 1:
        raise ShapeError(f"{what} has shape {node.shape}: give one truth value, for example with .all()")
    if node.shape:
        node = DistArray(node)[(0,) * node.ndim].expression
    return ufuncs.astype(node, np.bool_)


def converted(node: Expr, dtype: np.dtype, sparse: bool) -> Expr:
    """Return an array in another dtype, and dense unless it may stay ``sparse``."""
    node = ufuncs.astype(node, dtype)
    return Broadcast(node, node.shape) if node.sparse and not sparse else node


Kept = TypeVar("Kept")
_COUNT = np.dtype(np.int64)
_ENDLESS = np.iinfo(np.int64).max
_FALSE: object = False
_UNTIL = "what until returns"
_PROMOTIONS = 4  # a state's dtype and format settle in two or three recordings


class _Unsettled(Exception):  # noqa: N818  not an error: the body is recorded again
    """A step gives arrays of other dtypes or formats than its state has."""

    def __init__(self, states: Sequence[Expr]) -> None:
        super().__init__()
        self.states = tuple(states)


def iteration() -> DistArray:
    """Return the iteration number of the innermost loop, from 0: a 0-d int64 array.

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
    batch: int | None = ...,
    epochs: int = ...,
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
    batch: int | None = ...,
    epochs: int = ...,
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
    batch: int | None = None,
    epochs: int = 1,
) -> tuple[State, DistArray] | tuple[State, DistArray, Kept]:
    """Apply a step repeatedly to its own result: a loop as one expression, recorded once and run many times.

    ``step`` is called once, with placeholder arrays for the state of any iteration. (It is called again if
    the first step widens a dtype or makes a sparse array dense, to record it with that state.) So a ``print``
    in it does not print in each iteration, and Python's ``if`` and ``while`` on array values raise an error:
    use ``until``, :func:`matnb.cond` or ``np.where``. Loop-invariant expressions are computed once, before
    the first iteration. Nothing runs until a value is needed; then the workers run all iterations without
    involving this process. To look at each step, or to change shapes, write an ordinary Python loop instead.

    Parameters
    ----------
    step
        ``step(state)``, or ``step(state, item)`` with ``over``, returns the next state, with the same nesting
        and shapes. Sparsity patterns may change. If the first step widens a dtype, the initial state is
        converted to it.
    state
        The initial state: an array, or nested tuples, lists and dicts of arrays. Nested arrays keep their
        segments, and get other values.
    until
        ``until(old, new)`` returns one boolean; the loop ends after the first iteration for which it is true.
    max_iterations
        Maximum number of iterations: an integer, or a 0-d integer DistArray.
    collect
        ``collect(new)`` returns what to keep from each iteration: dense arrays in any nesting.
    over
        Arrays of equal length in any nesting; in iteration k, ``item`` has their k-th elements or rows. Or a
        source from ``mn.sources``; ``item`` has the ``X`` and ``y`` of its k-th batch. A loop over a source
        runs immediately, one piece of the source at a time, with the state brought into this process after
        each, so that the source need not fit in memory. The step is recorded once per piece.
    reverse
        Go through ``over`` in reverse order.
    batch
        The number of consecutive elements or rows of ``over`` in each ``item``: iteration k gets those from
        ``k * batch`` on; batches of sparse arrays are sparse. ``batch`` must divide the length; ``x[:n //
        batch * batch]`` drops the remainder.
    epochs
        The number of passes over a source.

    Returns
    -------
    tuple
        The final state; the number of iterations taken, a 0-d int64 array; and with ``collect`` the collected
        arrays, stacked along a new first axis, zero for iterations that were not taken.

    Raises
    ------
    ShapeError
        If a step changes the nesting or a shape, ``until`` returns more than one value, or ``batch`` does not
        divide the length.
    DTypeError
        If a dtype changes with every step, or ``collect`` returns sparse arrays.
    LoopBodyError
        If ``step``, ``until`` or ``collect`` asks for a value.
    OptionError
        If nothing would end the loop, or ``collect`` is used without a bound on the number of iterations.

    Examples
    --------
    >>> import numpy as np
    >>> import matnb as mn
    >>> x, n = mn.iterate(
    ...     lambda x: (x + 2 / x) / 2, mn.ones(1), until=lambda old, new: np.abs(new - old).max() < 1e-9
    ... )
    >>> x.compute(), int(n)
    (array([1.41421356]), 5)

    Iterate over an array, and collect a value from each step:

    >>> total, _, sums = mn.iterate(
    ...     lambda total, item: total + item, 0.0, over=mn.arange(1.0, 5.0), collect=lambda total: total
    ... )
    >>> float(total), sums.compute()
    (10.0, array([ 1.,  3.,  6., 10.]))

    Minibatches:

    >>> X, y = mn.asarray([[1.0], [2.0], [3.0], [4.0]]), mn.asarray([2.0, 4.0, 6.0, 8.0])
    >>> def step(w, item):
    ...     X, y = item
    ...     return w - 0.1 * X.T @ (X @ w - y)
    >>> w, n = mn.iterate(step, mn.zeros(1), over=(X, y), batch=2)
    >>> w.compute().round(3), int(n)
    (array([3.5]), 2)

    The same, from a source that may be on disk:

    >>> w, n = mn.iterate(step, mn.zeros(1), over=mn.sources.memory(X, y, batch_size=2), epochs=2)
    >>> w.compute().round(3), int(n)
    (array([0.875]), 4)

    References
    ----------
    Modeled on ``jax.lax``'s scan, while_loop and cond: Bradbury et al., JAX, 2018.
    """
    if isinstance(over, BatchStream):
        if reverse or batch is not None:
            raise OptionError("reverse= and batch= are for arrays: a source has its order and batch_size")
        return _streamed(step, state, over, epochs, until, max_iterations, collect)
    if epochs != 1:
        raise OptionError(f"epochs={epochs!r} without a source: give over= a source of mn.sources")
    leaves, tree = flatten(state)
    states = [expression_of(leaf) for leaf in leaves]
    items, item_tree, length = _scanned(over, batch)
    size = None if batch is None else int(batch)
    limit = _limit(max_iterations, length, until is not None)
    for _ in range(_PROMOTIONS):
        recorder = _LoopRecorder(tree, states, limit, items, item_tree, reverse, size)
        try:
            return recorder.record(step, until, collect)  # type: ignore[return-value]  # nested as the state
        except _Unsettled as found:
            states = list(found.states)
    kinds = ", ".join(str(one.dtype) for one in states)
    raise DTypeError(
        f"the dtypes of the state ({kinds}) change with every iteration; convert them with astype"
    )


Nested = TypeVar("Nested")


class LoopPiece(NamedTuple):
    """What a loop goes through at once: arrays, rows of an item, what the step is given for one, the pass."""

    over: object
    batch: int
    given: Callable[[object], object]
    epoch: int = 0


@runtime_checkable
class BatchStream(Protocol):
    """What is gone through piece by piece, such as a source of batches."""

    @property
    def passes(self) -> int:
        """How many a user takes for one."""

    @property
    def known_batches(self) -> int | None:
        """Of a pass; None where only going through tells."""

    @property
    def waited_seconds(self) -> float:
        """How long was waited for data so far, in all loops over it."""

    def loop_pieces(self, epochs: int) -> Generator[LoopPiece]:
        """Yield the pieces of some passes in order."""


def _streamed(
    step: Callable[..., State],
    state: State,
    over: BatchStream,
    epochs: int,
    until: Callable[[State, State], object] | None,
    max_iterations: object,
    collect: Callable[[State], Kept] | None,
) -> tuple[State, DistArray] | tuple[State, DistArray, Kept]:
    # The state comes to this process after each piece: a handle on what a loop gave would hold that loop, and
    # with it the rows of every piece before.
    if _scopes.get():
        raise LoopBodyError(
            "a loop over a source runs at once, so it cannot be in the body of another loop or a branch"
        )
    if isinstance(epochs, bool) or not isinstance(epochs, int | np.integer) or epochs < 0:
        raise OptionError(f"epochs={epochs!r}: give an integer of 0 or more")
    most = int(DistArray(_limit(max_iterations, _ENDLESS, True)))
    count, ended = 0, False
    kept: list[Kept] = []
    turns = BatchTurns(int(epochs) * over.passes, over.known_batches, waited=lambda: over.waited_seconds)
    with closing(over.loop_pieces(int(epochs))) as pieces, turns:
        while count < most and not ended and (piece := next(pieces, None)) is not None:
            with recording_apart(), turns.loop(piece.batch, piece.epoch):
                state, ended, taken, more = _ran_over(piece, step, state, until, most - count, collect)
            turns.done(taken)
            count += taken
            kept += more
    total = DistArray(ufuncs.literal(count, _COUNT))
    return (state, total) if collect is None else (state, total, _stacked(kept))


def _ran_over(
    piece: LoopPiece,
    step: Callable[..., State],
    state: State,
    until: Callable[[State, State], object] | None,
    most: int,
    collect: Callable[[State], Kept] | None,
) -> tuple[State, bool, int, list[Kept]]:
    # The state, whether it ends the loop, how many batches were taken, and what was kept of them.
    def stepped(before: tuple[State, object], item: object) -> tuple[State, object]:
        new = step(before[0], piece.given(item))
        return new, _FALSE if until is None else DistArray(scalar(until(before[0], new), _UNTIL))

    ran = iterate(
        stepped,
        (state, _FALSE),
        until=None if until is None else lambda old, new: new[1],
        max_iterations=most,
        collect=(lambda new: ()) if collect is None else lambda new: collect(new[0]),
        over=piece.over,
        batch=piece.batch,
    )
    leaves, tree = flatten(ran)
    nodes = [expression_of(leaf) for leaf in leaves]
    evaluator().persist(nodes)
    blocks = [evaluator().value(node) for node in nodes]
    last = len(flatten(state)[0])  # after the state: whether it ended, and the count
    ended, count = (int(to_numpy(block)) for block in blocks[last : last + 2])
    arrays = [DistArray(owned(block)) for block in blocks]
    (final, _), _, *more = cast("tuple[tuple[State, object], object, Kept]", unflatten(tree, arrays))
    return final, bool(ended), count, [] if collect is None else [_first_of(one, count) for one in more]


def _first_of(kept: Nested, count: int) -> Nested:
    leaves, tree = flatten(kept)
    rows = [handle_of(leaf)[:count] for leaf in leaves]
    return cast("Nested", unflatten(tree, rows))


def _stacked(kept: Sequence[Kept]) -> Kept:
    if not kept:
        raise OptionError("collect= with a source that has no batches: there is nothing to collect")
    tree = flatten(kept[0])[1]
    leaves = zip(*(flatten(one)[0] for one in kept), strict=True)
    return cast("Kept", unflatten(tree, [np.concatenate(several) for several in leaves]))


def converging(
    algorithm: str,
    iterated: tuple[State, DistArray],
    remedy: str = "give a larger max_iterations or tolerance",
) -> tuple[State, DistArray]:
    """Return what ``iterate`` gave, as the iterations of an algorithm that are to end by ``until``.

    Where they have not when its value is computed, a :class:`matnb.errors.ConvergenceWarning` says so.

    Parameters
    ----------
    algorithm
        Its name, as users call it.
    iterated
        The state and the number of iterations.
    remedy
        What to do then, as an imperative.
    """
    name_algorithm(iterated[1].expression, algorithm, remedy)
    return iterated


def warn_unless(converged: DistArray, algorithm: str, state: State, taken: DistArray, remedy: str) -> State:
    """Return a state, where a warning says that it has not converged if a condition is false.

    Parameters
    ----------
    converged
        0-d bool, for what no ``until`` of the loop itself tells.
    algorithm, remedy
        As of :func:`converging`.
    state
        What the algorithm gave.
    taken
        0-d: its number of iterations.
    """
    # A loop that changes nothing, as often, and is never at its end.
    same, _ = converging(
        algorithm,
        iterate(lambda same: same, state, until=lambda *_: False, max_iterations=taken * ~converged),
        remedy,
    )
    return same


class _LoopRecorder:
    """Records the body of one loop for states of certain dtypes and formats."""

    def __init__(
        self,
        tree: TreeDef,
        states: Sequence[Expr],
        limit: Expr,
        items: Sequence[Expr],
        item_tree: TreeDef | None,
        reverse: bool,
        batch: int | None,
    ) -> None:
        self._tree, self._states, self._limit = tree, tuple(states), limit
        self._items, self._item_tree, self._reverse, self._batch = items, item_tree, reverse, batch

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
            new = step(old) if self._item_tree is None else step(old, self._item(counter))
            results = self._checked(new)
            self._settle(results)
            # Handles of their own: assigning to elements of one gives it another version.
            ends = None
            if until is not None:
                ends = scalar(until(self._nested(variables), self._nested(results)), _UNTIL)
            kept, kept_tree, starts = self._collected(collect, results, counter, len(variables))
        return self._loop([*results, *kept], ends, starts, counter, kept_tree)

    def _nested(self, nodes: Sequence[Expr]) -> object:
        return unflatten(self._tree, [DistArray(one) for one in nodes])

    def _item(self, counter: Expr) -> object:
        assert self._item_tree is not None
        place, batch = DistArray(counter), self._batch
        if self._reverse:
            place = self._items[0].shape[0] // (batch or 1) - 1 - place
        if batch is None:
            return unflatten(self._item_tree, [DistArray(one)[place] for one in self._items])
        start = (place * batch).expression
        parts = [wrap(sliced(one, start, batch, 0)) for one in self._items]
        return unflatten(self._item_tree, parts)

    def _checked(self, new: object) -> list[Expr]:
        leaves, tree = flatten(new, self._tree)
        if new is None:
            raise DTypeError("the step returns None: let it return the next state")
        if str(tree) == str(self._tree) and (unlike := tree.difference(self._tree)) is not None:
            same = f"the state's {unlike.parts}, which stay the same from one iteration to the next"
            what = f"the step returns {tree}, but not {same}"
            raise ShapeError(": ".join(filter(None, (what, unlike.advice))))
        if tree != self._tree:
            raise ShapeError(f"the step returns {tree}, but the state is {self._tree}")
        results = [expression_of(leaf) for leaf in leaves]
        for path, before, after in zip(tree.paths("state"), self._states, results, strict=True):
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
    ) -> tuple[list[Expr], TreeDef | None, list[Expr]]:
        if collect is None:
            return [], None, []
        count = _constant(self._limit)
        if count is None or count == _ENDLESS:
            raise OptionError("collect= needs max_iterations= as a number, or over=: it keeps that many rows")
        leaves, tree = flatten(collect(self._nested(results)))
        if fixed := tree.fixed:
            raise DTypeError(
                f"collect returns {fixed}: let it return {', '.join(fixed.paths('N'))}, whose rows are kept"
            )
        kept, starts = [], []
        for place, (path, leaf) in enumerate(zip(tree.paths("collect"), leaves, strict=True)):
            value = expression_of(leaf)
            if value.sparse:
                raise DTypeError(f"{path} is sparse: collect keeps dense arrays")
            start = zeros((count, *value.shape), value.dtype).expression
            rows = DistArray(Variable(num_state + place, start.shape, start.dtype, False, _scope_of(counter)))
            rows[DistArray(counter)] = DistArray(value)
            kept.append(rows.expression)
            starts.append(start)
        return kept, tree, starts

    def _loop(
        self,
        results: Sequence[Expr],
        ends: Expr | None,
        starts: Sequence[Expr],
        counter: Variable,
        kept_tree: TreeDef | None,
    ) -> tuple[object, ...]:
        roots = [*results] if ends is None else [*results, ends]
        scope, num_results = counter.scope, len(results)

        def own(node: Expr) -> Variable | None:
            if not isinstance(node, Variable):
                return None
            return Variable(
                num_results if node.place < 0 else node.place, node.shape, node.dtype, node.sparse
            )

        # What it goes through is no part of the body, so that one with other items has the same plan.
        items = [one for one in self._items if isinstance(one, Literal)]
        made, given, became = closed(roots, lambda node: scope in node.free, own, num_results + 1, items)
        keep_lines(became)
        body = Body(made[: len(results)], None if ends is None else made[-1])
        node = Loop((*self._states, *starts, self._limit, *given), body, len(results))
        count = wrap(node)
        finals = [DistArray(Final(node, place)) for place in range(len(results))]
        num_state = len(self._states)
        final = unflatten(self._tree, finals[:num_state])
        if kept_tree is None:
            return final, count
        return final, count, unflatten(kept_tree, finals[num_state:])


def _scope_of(counter: Expr) -> int:
    (number,) = counter.free
    return number


def _scanned(over: object, batch: object) -> tuple[list[Expr], TreeDef | None, int | None]:
    # The arrays that are gone through, their tree, and how many iterations that takes.
    if batch is not None and (
        not isinstance(batch, int | np.integer) or isinstance(batch, bool) or batch < 1
    ):
        raise OptionError(f"batch={batch!r}: give an integer of 1 or more")
    if over is None:
        if batch is not None:
            raise OptionError(f"batch={batch} without over=: give the arrays to split into batches")
        return [], None, None
    leaves, tree = flatten(over)
    if fixed := tree.fixed:
        raise DTypeError(
            f"over= has {fixed}: give {', '.join(fixed.paths('N'))}, or use N itself in the step"
        )
    items = [expression_of(leaf) for leaf in leaves]
    if not items or any(not one.shape for one in items):
        raise ShapeError("over= needs arrays with at least one axis; the loop runs over the first")
    lengths = {one.shape[0] for one in items}
    if len(lengths) != 1:
        raise ShapeError(
            f"over= has arrays of lengths {sorted(lengths)} along the first axis: the lengths must "
            "be the same"
        )
    length, size = lengths.pop(), 1 if batch is None else int(batch)
    if length % size:
        raise ShapeError(
            f"over= of length {length} in batches of {size}: {length % size} would be left over; "
            "give a batch that "
            f"divides the length, or leave them out: x[:{length - length % size}]"
        )
    return items, tree, length // size


def _limit(given: object, length: int | None, ends: bool) -> Expr:
    if given is None:
        if length is None and not ends:
            raise OptionError("this loop would never end: give until=, max_iterations= or over=")
        return ufuncs.literal(_ENDLESS if length is None else length, _COUNT)
    if isinstance(given, np.ndarray) and not given.shape:
        given = given[()]
    if isinstance(given, bool) or not isinstance(given, DistArray | int | np.integer):
        raise OptionError(f"max_iterations={given!r}: give an integer, or a 0-d integer DistArray")
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
