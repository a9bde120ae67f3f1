"""NumPy's functions along an axis: running sums and products, differences and gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from matnb.blocks.creation import Full
from matnb.blocks.kernels.calls import results_of
from matnb.errors import DTypeError, LoopBodyError, OptionError, ShapeError
from matnb.expr.control import Variable
from matnb.expr.nodes import Broadcast, Create, Expr
from matnb.lazy import reductions
from matnb.lazy.array import DistArray, handle_of, wrap
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.functions.mapping import map_blocks
from matnb.lazy.functions.ordering import dense_of
from matnb.lazy.functions.reductions import dtype_into, is_given, result
from matnb.lazy.functions.shaping import joined, laned
from matnb.lazy.handles import expression_of
from matnb.lazy.indexing.keys import flipped, normalize_axes, one_axis
from matnb.lazy.portable import portable
from matnb.lazy.registry import implements
from matnb.lazy.shapes import flattened
from matnb.lazy.ufuncs import astype, call, literal
from matnb.ops.joining import Concatenate
from matnb.ops.scanning import AssociativeScan, Differences, Recurrence


def _register_running(ufunc: np.ufunc, function: object, nan_as: int | None = None) -> None:
    def running(
        a: ArrayLike, axis: int | None = None, dtype: npt.DTypeLike | None = None, out: object = None
    ) -> DistArray:
        node = expression_of(a)
        if nan_as is not None:
            node = reductions.without_nan(node, nan_as)
        return result(_along(node, ufunc, axis, dtype_into(node, dtype, out)), out)

    implements(function)(running)


def associative_scan(
    fn: Callable[..., object], xs: object, axis: int = 0, reverse: bool = False
) -> DistArray | tuple[DistArray, ...]:
    """Return the inclusive scan of elements with an associative function, as ``jax.lax.associative_scan``.

    Parameters
    ----------
    fn
        ``fn(a, b)`` takes two arrays, or two tuples of arrays, and combines them elementwise along ``axis``,
        where ``a`` has the earlier elements; it returns arrays of the same shapes. It must be associative,
        since elements are grouped in any way.
    xs
        An array, or a tuple of arrays of equal length along ``axis``; their other axes may differ.
    axis
        The axis to scan along.
    reverse
        Go from the end of the axis.

    Returns
    -------
    DistArray or tuple of DistArray
        As ``xs``.

    Raises
    ------
    OptionError
        If ``fn`` fails on an example, or cannot be sent to workers.
    ShapeError
        For 0-d arrays or unequal lengths, or if ``fn`` changes the shapes.
    DTypeError
        If dtypes widen with each call.
    KernelError
        If ``fn`` raises on a worker, with its error and traceback.

    Notes
    -----
    Associative ufuncs, and linear recurrences of floats, ``(a, b), (c, d)`` to ``(a * c, c * b + d)``, are
    recognized and run as compiled loops. Otherwise ``fn`` is called on tiles of blocks, which takes about two
    applications per element (Blelloch, "Prefix sums and their applications", 1990). Each array of a tuple is
    computed separately. The last bits of floats may depend on how arrays are split.

    Examples
    --------
    A recurrence, y[i] = 0.5 y[i - 1] + x[i]:

    >>> import matnb as mn
    >>> def follow(one, next):
    ...     (a, b), (c, d) = one, next
    ...     return a * c, c * b + d
    >>> x = mn.ones(4)
    >>> mn.associative_scan(follow, (mn.full(4, 0.5), x))[1].compute()
    array([1.   , 1.5  , 1.75 , 1.875])
    """
    is_alone = not isinstance(xs, tuple | list)
    nodes = [dense_of(expression_of(one)) for one in (xs if isinstance(xs, tuple | list) else (xs,))]
    if not nodes or not all(one.ndim for one in nodes):
        raise ShapeError("associative_scan: give arrays with at least one axis")
    place = one_axis(axis, nodes[0].ndim)
    if any(one.ndim <= place or one.shape[place] != nodes[0].shape[place] for one in nodes):
        shapes = ", ".join(str(one.shape) for one in nodes)
        raise ShapeError(f"associative_scan: arrays of shapes {shapes} differ along axis {place}")
    name = getattr(fn, "__name__", type(fn).__name__)
    kinds = _kept_dtypes(fn, name, nodes, is_alone)
    nodes = [astype(one, kind) for one, kind in zip(nodes, kinds, strict=True)]
    results = _known_scan(fn, nodes, is_alone, place, bool(reverse))
    if results is None:
        function = portable(fn, name, "associative_scan")
        results = [
            AssociativeScan(tuple(nodes), function, is_alone, output, place, bool(reverse))
            for output in range(len(nodes))
        ]
    return wrap(results[0]) if is_alone else tuple(map(wrap, results))


def _kept_dtypes(
    fn: Callable[..., object], name: str, nodes: Sequence[Expr], is_alone: bool
) -> tuple[np.dtype, ...]:
    # The dtypes that the function keeps, found by calling it on ones.
    kinds = tuple(one.dtype for one in nodes)
    for _ in range(3):
        ones = [
            np.ones([min(2, length) for length in one.shape], kind)
            for one, kind in zip(nodes, kinds, strict=True)
        ]
        found = _tried(fn, name, (ones[0], ones[0]) if is_alone else (tuple(ones), tuple(ones)))
        made = results_of((found,) if is_alone else found, name)
        shapes, wanted = [one.shape for one in made], [one.shape for one in ones]
        if shapes != wanted:
            raise ShapeError(
                f"associative_scan: {name} returns shapes {shapes} for {wanted}: it must keep the shapes"
            )
        wide = tuple(np.result_type(kind, one.dtype) for kind, one in zip(kinds, made, strict=True))
        if wide == kinds:
            return kinds
        kinds = wide
    raise DTypeError(f"associative_scan: the dtypes that {name} returns change with each call: {kinds}")


def _tried(fn: Callable[..., object], name: str, sides: tuple[object, object]) -> object:
    try:
        with np.errstate(all="ignore"):
            return fn(*sides)
    except Exception as error:  # a user's function raises what it likes
        raise OptionError(
            f"associative_scan: {name} raised {type(error).__name__} on arrays of ones: {error}; it is "
            "called as fn(a, b), of two arrays or of two tuples as xs is one"
        ) from error


def _known_scan(
    fn: Callable[..., object], nodes: Sequence[Expr], is_alone: bool, axis: int, is_reversed: bool
) -> list[Expr] | None:
    # A ufunc, or a linear recurrence, as it is recorded of arrays that stand for any; None for all else.
    given = [Variable(place, one.shape, one.dtype, False, -1) for place, one in enumerate((*nodes, *nodes))]
    handles = [wrap(one) for one in given]
    sides = handles if is_alone else [tuple(handles[: len(nodes)]), tuple(handles[len(nodes) :])]
    try:
        found: Any = fn(*sides)
        made = [expression_of(one) for one in ([found] if is_alone else found)]
    except Exception:  # what a user's function raises of arrays that have no values
        return None
    dtypes = {one.dtype for one in (*nodes, *made)}
    if is_alone:
        function = next((one for one in _SCANNED if made[0] in _either(one, *given)), None)
        if function is None or len(dtypes) > 1:
            return None
        return [_accumulated(function, nodes[0], axis, is_reversed)]
    if len(nodes) != 2 or len(made) != 2 or dtypes not in _OF_RECURRENCES or nodes[0].shape != nodes[1].shape:
        return None
    a, b, c, d = given
    totals = [total for product in _either(np.multiply, c, b) for total in _either(np.add, product, d)]
    if made[0] not in _either(np.multiply, a, c) or made[1] not in totals:
        return None
    factors, terms = nodes
    return [
        _accumulated(np.multiply, factors, axis, is_reversed),
        Recurrence(_one_number(factors), terms, axis, is_reversed),
    ]


def _either(ufunc: np.ufunc, one: Expr, other: Expr) -> list[Expr]:
    # What a ufunc makes of two arrays, given in either order.
    return [node for pair in ((one, other), (other, one)) for node in call(ufunc, pair)]


def _accumulated(ufunc: np.ufunc, node: Expr, axis: int, is_reversed: bool) -> Expr:
    if not is_reversed:
        return reductions.scanned(node, ufunc, axis, node.dtype)
    return flipped(reductions.scanned(flipped(node, (axis,)), ufunc, axis, node.dtype), (axis,))


def _one_number(factors: Expr) -> Expr:
    # Where all are the same.
    match factors:
        case Create(Full(_, content, dtype)):
            return literal(np.frombuffer(content, dtype)[0], dtype)
        case Broadcast(one) if not one.shape:
            return one
    return factors


_SCANNED = (np.add, np.multiply, np.minimum, np.maximum)
_OF_RECURRENCES = ({np.dtype(np.float64)}, {np.dtype(np.float32)})


def scan(
    x: ArrayLike,
    operator: Callable[..., object],
    identity: object,
    update: Callable[..., object] | None = None,
    *,
    axis: int = 0,
    exclusive: bool = False,
    check: bool = False,
) -> DistArray:
    """Return the running values that an operator makes of an identity and the elements along an axis.

    Elements may be of one dtype, T, and running values of another, U, such as counts of what elements are.
    Blocks are scanned at the same time, each from the identity, and meet what those before them come to.

    Parameters
    ----------
    x
        The elements.
    operator
        ``operator(u, a)`` takes running values and the elements that follow them, two arrays of one shape, of
        dtypes U and T, and returns the next running values, of U. A ufunc such as ``np.maximum`` is taken as
        ``ufunc.accumulate`` with the dtype of the identity.
    identity
        What running values begin with: a number, whose dtype is U, or an array of numbers of the shape of
        ``x`` without the axis. Python's own numbers take the dtype that they have beside ``x``.
    update
        ``update(u, v)`` takes running values, and those of elements behind them from the identity on, and
        returns those of all of them. If T and U are the same, the operator is taken by default.
    axis
        The axis to scan along.
    exclusive
        Return the running values before each element, the first the identity, not those up to each one.
    check
        Try the laws below on elements drawn from ``x``, which are computed now.

    Returns
    -------
    DistArray
        Of the shape of ``x`` and dtype U.

    Raises
    ------
    DTypeError
        If T and U differ and ``update`` is missing, or if a function gives what is not of U.
    ShapeError
        For an array without axes, an identity of another shape, or if a function changes the shapes.
    OptionError
        If a function fails on an example or cannot be sent to workers, if the identity changes itself, or if
        ``check`` finds a law broken.
    UnsupportedError
        For a ufunc in which grouping matters, without ``update``.
    LoopBodyError
        For ``check`` of elements that depend on the state of a loop.
    KernelError
        If a function raises on a worker, with its error and traceback.

    Notes
    -----
    This is the block-parallel scan of "Partition Balancing in Distributed Nested Data-Parallel Systems"
    (definition 2), less the identity in front. Three laws make it the same as a scan from one element to the
    next: ``update`` is associative, ``update(identity, u)`` is u, and ``operator(u, a)`` is
    ``update(u, operator(identity, a))``. By the last one elements are made running values of their own, which
    ``update`` then combines as :func:`matnb.associative_scan` does. The last bits of floats may depend on how
    arrays are split.

    Examples
    --------
    How many elements up to each one are above 2, a whole number:

    >>> import numpy as np
    >>> import matnb as mn
    >>> def count_large(total, element):
    ...     return total + (element > 2)
    >>> x = mn.asarray([3.0, 1.0, 4.0, 1.0, 5.0])
    >>> mn.scan(x, count_large, np.int64(0), update=np.add).compute()
    array([1, 1, 2, 2, 3])
    """
    node = dense_of(expression_of(x))
    if not node.ndim:
        raise ShapeError("scan: x has no axes; give an array with at least one")
    law = _checked_law(node, operator, identity, update, one_axis(axis, node.ndim), check)
    if law.is_ufunc:
        made = reductions.scanned(node, operator, law.axis, law.start.dtype)  # type: ignore[arg-type]  # a ufunc
    else:
        lifted = node if law.is_alone else law.lifted(node)
        known = _known_scan(law.update, [lifted], True, law.axis, False)
        function = None if known else portable(law.update, law.name, "scan")
        made = known[0] if known else AssociativeScan((lifted,), function, True, 0, law.axis, False)  # type: ignore[arg-type]  # a function
    return wrap(_from_identity(made, law.start, law.axis) if exclusive else made)


def scan_segments(
    values: ArrayLike,
    is_first: DistArray,
    operator: Callable[..., object],
    identity: object,
    update: Callable[..., object] | None = None,
    *,
    exclusive: bool = False,
    check: bool = False,
) -> DistArray:
    """Return :func:`scan` of each segment of a vector; one begins wherever ``is_first`` is true.

    Pairs of a flag, whether a segment begins, and a running value are scanned (Blelloch, "Prefix sums and
    their applications", 1990, section 1.5). Parameters and errors are those of :func:`scan`.
    """
    node = expression_of(values)
    law = _checked_law(node, operator, identity, update, 0, check)
    if not node.size:
        return wrap(astype(node, law.start.dtype))
    lifted = astype(node, law.start.dtype) if law.is_alone else law.lifted(node)
    pairs = (is_first, wrap(lifted))
    made = associative_scan(_WithinSegments(law.update, law.start.dtype), pairs)[1]
    if not exclusive:
        return made
    before = wrap(_from_identity(made.expression, law.start, 0))
    return handle_of(np.where(is_first, law.start[()], before))


@dataclass(frozen=True, eq=False)
class _WithinSegments:
    """What combines two pairs of a flag and a running value: where a segment begins, the second stays."""

    pyfunc: Callable[..., object]  # the name by which errors find a user's line
    dtype: np.dtype

    @property
    def __name__(self) -> str:
        return getattr(self.pyfunc, "__name__", type(self.pyfunc).__name__)

    def __call__(self, one: Any, other: Any) -> tuple[object, object]:
        """Return the pair of all."""
        (is_first, before), (begins, after) = one, other
        both: Any = self.pyfunc(before, after)
        return is_first | begins, np.where(begins, after, both).astype(self.dtype)


def _checked_law(
    node: Expr,
    operator: Callable[..., object],
    identity: object,
    update: Callable[..., object] | None,
    axis: int,
    check: bool,
) -> _ScanLaw:
    start = _identity_of(identity, node, axis)
    law = _ScanLaw(operator, operator if update is None else update, start, axis)
    if law.is_ufunc:
        reductions.associative(operator, "accumulate")  # type: ignore[arg-type]  # a ufunc
    elif law.is_alone and node.dtype != start.dtype:
        raise DTypeError(
            f"scan: elements are {node.dtype} and running values {start.dtype}: give update=, which combines "
            f"two running values, or an identity of dtype {node.dtype}"
        )
    law.check_identity()
    if check:
        law.check_on(_drawn_elements(node, axis))
    return law


def _identity_of(identity: object, node: Expr, axis: int) -> np.ndarray:
    # Of the shape of x with length 1 along the axis, or a number for all.
    if type(identity) in (bool, int, float, complex):
        return np.asarray(identity, np.result_type(node.dtype, identity))  # type: ignore[arg-type]  # a number
    found = np.asarray(identity)
    if found.dtype.kind not in "biufc":
        raise DTypeError(f"scan: the identity is a {type(identity).__name__}: give a number, or numbers")
    lane = (*node.shape[:axis], *node.shape[axis + 1 :])
    if found.shape not in ((), lane):
        raise ShapeError(
            f"scan: the identity has shape {found.shape}: give a number, or an array of shape {lane}, that "
            f"of x without axis {axis}"
        )
    return np.expand_dims(found, axis) if found.ndim else found


def _from_identity(scanned: Expr, start: np.ndarray, axis: int) -> Expr:
    if not scanned.shape[axis]:
        return scanned
    shape = (*scanned.shape[:axis], 1, *scanned.shape[axis + 1 :])
    first = expression_of(start) if start.ndim else Broadcast(literal(start[()], start.dtype), shape)
    return joined([first, _taken(wrap(scanned), axis, slice(None, -1)).expression], axis)


@dataclass(frozen=True, eq=False)
class _FromIdentity:
    """What an operator makes of an identity and elements; ``start`` is of length 1 along the axis, or 0-d."""

    pyfunc: Callable[..., object]  # the name by which errors find a user's line
    start: np.ndarray
    axis: int

    def __call__(self, block: np.ndarray, *, place: tuple[slice, ...]) -> object:
        """Return running values of their own for elements of a block."""
        part = tuple(slice(None) if k == self.axis else one for k, one in enumerate(place))
        start = self.start[part] if self.start.ndim else self.start
        return self.pyfunc(np.broadcast_to(start, block.shape), block)


@dataclass(frozen=True, eq=False)
class _ScanLaw:
    """The functions of a scan, tried on examples and on elements."""

    operator: Callable[..., object]
    update: Callable[..., object]
    start: np.ndarray
    axis: int

    @property
    def is_alone(self) -> bool:
        """Whether one function does both."""
        return self.update is self.operator

    @property
    def is_ufunc(self) -> bool:
        """Whether a ufunc does both."""
        return self.is_alone and isinstance(self.operator, np.ufunc)

    @property
    def name(self) -> str:
        """The name of the function that combines running values."""
        return getattr(self.update, "__name__", type(self.update).__name__)

    def _called(self, fn: Callable[..., object], left: np.ndarray, right: np.ndarray) -> np.ndarray:
        # What a function gives, of the shape and dtype that running values have.
        name = getattr(fn, "__name__", type(fn).__name__)
        try:
            with np.errstate(all="ignore"):
                made = results_of((fn(left, right),), name)[0]
        except DTypeError:
            raise
        except Exception as error:  # a user's function raises what it likes
            raise OptionError(
                f"scan: {name} raised {type(error).__name__} on arrays of shape {left.shape}: {error}; it is "
                "called with two arrays of one shape"
            ) from error
        if made.shape != right.shape:
            raise ShapeError(
                f"scan: {name} returns shape {made.shape} for arrays of shape {right.shape}: it must keep it"
            )
        dtype = self.start.dtype
        if not isinstance(fn, np.ufunc) and not np.can_cast(made.dtype, dtype, "same_kind"):
            raise DTypeError(
                f"scan: {name} returns {made.dtype}, and running values are {dtype} as the identity is: give "
                "one of the dtype that it returns"
            )
        return made.astype(dtype)

    def check_identity(self) -> None:
        """Refuse an identity that becomes another number beside itself, and functions that fail."""
        shape = tuple(2 if k == self.axis else n for k, n in enumerate(self.start.shape)) or (2,)
        starts = np.broadcast_to(self.start, shape)
        made = self._called(self.update, starts, starts)
        if not np.array_equal(made, starts, equal_nan=made.dtype.kind in "fc"):
            raise OptionError(
                f"scan: {_first(self.start)} is not an identity of {self.name}, which combines it with "
                f"itself to {_first(made)}"
            )

    def lifted(self, node: Expr) -> Expr:
        """Return the running values of each element alone."""
        each = _FromIdentity(self.operator, self.start, self.axis)
        small = tuple(min(2, length) for length in node.shape)
        whole = tuple(slice(0, length) for length in small)
        ones = np.ones(small, node.dtype)
        self._called(lambda _, block: each(block, place=whole), ones, ones)
        return map_blocks(each, wrap(node), shape=node.shape, dtype=self.start.dtype, pure=True).expression

    def check_on(self, elements: np.ndarray) -> None:
        """Refuse functions that break a law on elements, which lie along the axis."""
        starts = np.broadcast_to(self.start, elements.shape)
        sums = own = self._called(self.operator, starts, elements)
        other_name = getattr(self.operator, "__name__", type(self.operator).__name__)
        keeps = "does not keep what follows the identity, as it"
        for turn in range(2):  # of elements, then of what two of them make
            one, other = np.roll(own, 1 + turn, self.axis), np.roll(sums, 3 + turn, self.axis)
            pair, after = self._called(self.update, sums, one), self._called(self.update, one, other)
            first_pair = self._called(self.update, pair, other)
            last_pair = self._called(self.update, sums, after)
            self._compare("is not associative, as it", first_pair, last_pair)
            self._compare(keeps, self._called(self.update, starts, pair), pair)
            onward = self._called(self.operator, pair, elements)
            laws = f"does not go with {other_name}, as operator(u, a) and update(u, operator(identity, a))"
            self._compare(laws, onward, self._called(self.update, pair, own), "give")
            sums = pair
        if self.is_alone:
            self._compare(keeps, own, elements.astype(own.dtype))

    def _compare(self, what: str, one: np.ndarray, other: np.ndarray, gives: str = "gives") -> None:
        if one.dtype.kind in "fc":
            near = float(np.sqrt(np.finfo(one.dtype).eps))
            finite = np.abs(one[np.isfinite(one)])
            same = np.isclose(one, other, near, near * finite.max(initial=0), equal_nan=True)
        else:
            same = one == other
        if not same.all():
            at = np.unravel_index(np.argmin(same), same.shape)
            raise OptionError(
                f"scan: {self.name} {what} {gives} {one[at]} and {other[at]} on elements drawn from x; see "
                "the laws in the notes of mn.scan"
            )


def _first(values: np.ndarray) -> object:
    return values.reshape(-1)[0]


_NUM_DRAWN = 24  # elements along the axis on which laws are tried


def _drawn_elements(node: Expr, axis: int) -> np.ndarray:
    length = node.shape[axis]
    if not node.size:
        return np.empty((*node.shape[:axis], 0, *node.shape[axis + 1 :]), node.dtype)
    if node.free:
        raise LoopBodyError(
            "scan: check=True asks for elements that depend on the state of a loop; check it before the loop"
        )
    drawn = np.sort(np.random.default_rng(0).choice(length, min(length, _NUM_DRAWN), replace=False))
    return np.asarray(wrap(node)[(slice(None),) * axis + (drawn,)])


def _register_cumulative(ufunc: np.ufunc, function: object) -> None:
    def cumulative(
        x: ArrayLike,
        /,
        *,
        axis: int | None = None,
        dtype: npt.DTypeLike | None = None,
        out: object = None,
        include_initial: bool = False,
    ) -> DistArray:
        node = expression_of(x)
        if node.ndim > 1 and axis is None:
            raise ShapeError(f"a cumulative sum or product of an array of shape {node.shape} needs axis=")
        found = _along(node, ufunc, axis, dtype_into(node, dtype, out))
        if include_initial:
            place = one_axis(0 if axis is None else axis, found.ndim)
            shape = (*found.shape[:place], 1, *found.shape[place + 1 :])
            first = Broadcast(literal(int(ufunc.identity), found.dtype), shape)
            found = Concatenate((first, found), place)
        return result(found, out)

    implements(function)(cumulative)


def _along(node: Expr, ufunc: np.ufunc, axis: int | None, dtype: npt.DTypeLike | None) -> Expr:
    lanes, place = laned(node, axis)
    return reductions.scanned(lanes, ufunc, place, dtype)


_register_running(np.add, np.cumsum)
_register_running(np.multiply, np.cumprod)
_register_running(np.add, np.nancumsum, nan_as=0)
_register_running(np.multiply, np.nancumprod, nan_as=1)
_register_cumulative(np.add, np.cumulative_sum)
_register_cumulative(np.multiply, np.cumulative_prod)


@implements(np.diff)
def diff(
    a: ArrayLike, n: int = 1, axis: int = -1, prepend: object = np._NoValue, append: object = np._NoValue
) -> DistArray:
    """``numpy.diff``."""
    if n < 0:
        raise OptionError(f"diff: n={n} cannot be negative")
    array = handle_of(a)
    if n == 0:
        return array
    if not array.ndim:
        raise ShapeError("diff of an array without axes")
    place = one_axis(axis, array.ndim)
    ends = [_end(array, one, place) for one in (prepend, append)]
    if any(one is not None for one in ends):
        parts = [one for one in (ends[0], array, ends[1]) if one is not None]
        array = _joined(parts, place)
    subtract: Callable[..., DistArray] = np.not_equal if array.dtype.kind == "b" else np.subtract
    for _ in range(n):
        if array.size and array.shape[place] > 1 and not array.expression.sparse:
            array = wrap(Differences(array.expression, place))
        else:
            array = subtract(_taken(array, place, slice(1, None)), _taken(array, place, slice(None, -1)))
    return array


def _end(array: DistArray, value: object, axis: int) -> DistArray | None:
    if not is_given(value):
        return None
    end = handle_of(value)
    if end.ndim:
        return end
    shape = (*array.shape[:axis], 1, *array.shape[axis + 1 :])
    return wrap(Broadcast(end.expression, shape))


@implements(np.ediff1d)
def ediff1d(ary: ArrayLike, to_end: object = None, to_begin: object = None) -> DistArray:
    """``numpy.ediff1d``."""
    array = DistArray(flattened(expression_of(ary)))
    inner = diff(array) if array.dtype.kind != "b" else array[1:] - array[:-1]
    parts = []
    for one in (to_begin, inner, to_end):
        if one is None:
            continue
        part = DistArray(flattened(expression_of(one)))
        if not np.can_cast(part.dtype, array.dtype, "same_kind"):
            raise DTypeError(
                f"ediff1d: cannot cast {part.dtype} to the dtype of the differences, {array.dtype}"
            )
        parts.append(part.astype(array.dtype))
    return _joined(parts, 0) if len(parts) > 1 else inner


@implements(np.gradient)
def gradient(
    f: object, *varargs: object, axis: int | Sequence[int] | None = None, edge_order: int = 1
) -> DistArray | tuple[DistArray, ...]:
    """``numpy.gradient``: second-order differences inside, one-sided ones at the ends."""
    array = handle_of(f)
    if isinstance(axis, list):
        axis = tuple(axis)
    axes = normalize_axes(axis, array.ndim)  # type: ignore[arg-type]  # a number or a tuple by now
    if edge_order not in (1, 2):
        raise OptionError(f"gradient: edge_order={edge_order}; it is 1 or 2")
    spacings = _spacings(array, axes, varargs)
    if array.dtype.kind in "iu":  # NumPy refuses booleans
        array = array.astype(np.float64)
    for place in axes:
        if array.shape[place] < edge_order + 1:
            raise ShapeError(
                f"gradient: axis {place} has {array.shape[place]} elements, but at least "
                f"{edge_order + 1} are needed"
            )
    found = tuple(
        _gradient(array, place, spacing, edge_order) for place, spacing in zip(axes, spacings, strict=True)
    )
    return found[0] if len(found) == 1 else found


Spacing = float | DistArray  # between all neighbors, or between each two


def _spacings(array: DistArray, axes: Sequence[int], given: Sequence[object]) -> list[Spacing]:
    if not given:
        return [1.0] * len(axes)
    if len(given) == 1 and not handle_of(given[0]).ndim:
        given = tuple(given) * len(axes)
    if len(given) != len(axes):
        raise DTypeError(
            f"gradient: {len(given)} spacings for {len(axes)} axes: give one, or one for each axis"
        )
    spacings: list[Spacing] = []
    for place, one in zip(axes, given, strict=True):
        handle = handle_of(one)
        if not handle.ndim:
            spacings.append(handle)
            continue
        if handle.ndim != 1 or handle.shape[0] != array.shape[place]:
            raise ShapeError(
                f"gradient: coordinates of shape {handle.shape} for axis {place} of length "
                f"{array.shape[place]}"
            )
        if handle.dtype.kind == "b":
            raise DTypeError("gradient: coordinates have dtype bool: convert them with astype")
        if handle.dtype.kind in "iu":
            handle = handle.astype(np.float64)
        spacings.append(diff(handle))
    return spacings


def _gradient(f: DistArray, axis: int, spacing: Spacing, edge_order: int) -> DistArray:
    def at(*bounds: int | None) -> DistArray:
        return _taken(f, axis, slice(*bounds))

    kept = (slice(None), *(None,) * (f.ndim - axis - 1))
    first, last = slice(None, 1), slice(-1, None)
    if not isinstance(spacing, DistArray) or not spacing.ndim:
        inner = (at(2, None) - at(None, -2)) / (2.0 * spacing)
        steps = (spacing, spacing, spacing, spacing)
    else:
        before, after = spacing[:-1][kept], spacing[1:][kept]
        low = -after / (before * (before + after))
        middle = (after - before) / (before * after)
        high = before / (after * (before + after))
        inner = low * at(None, -2) + middle * at(1, -1) + high * at(2, None)
        places = (first, slice(1, 2), slice(-2, -1), last)
        steps = tuple(spacing[one][kept] for one in places)  # type: ignore[assignment]  # four of them
    if edge_order == 1:
        begin = (at(1, 2) - at(0, 1)) / steps[0]
        end = (at(-1, None) - at(-2, -1)) / steps[3]
    else:
        one, two = steps[0], steps[1]
        begin = (
            -(2.0 * one + two) / (one * (one + two)) * at(0, 1)
            + (one + two) / (one * two) * at(1, 2)
            - one / (two * (one + two)) * at(2, 3)
        )
        one, two = steps[2], steps[3]
        end = (
            two / (one * (one + two)) * at(-3, -2)
            - (two + one) / (one * two) * at(-2, -1)
            + (2.0 * two + one) / (two * (one + two)) * at(-1, None)
        )
    pieces = [begin, inner, end] if inner.shape[axis] else [begin, end]
    return _joined([piece.astype(f.dtype) for piece in pieces], axis)


def _taken(array: DistArray, axis: int, part: slice) -> DistArray:
    return array[(slice(None),) * axis + (part,)]


def _joined(parts: Sequence[DistArray], axis: int) -> DistArray:
    return wrap(joined([one.expression for one in parts], axis))
