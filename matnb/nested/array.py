"""Nested arrays: values divided into segments of unequal length, with operations along each segment.

The operations are those of Blelloch, "Vector Models for Data-Parallel Computing" (MIT Press, 1990). How parts
of a segment in several blocks meet is that of "Partition Balancing in Distributed Nested Data-Parallel
Systems" (sections 3.2 and 3.3).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from matnb.balance.situation import Strategy
from matnb.blocks.kernels.reductions.labels import reduced_dtype
from matnb.blocks.semiring import PLUS, TIMES
from matnb.errors import DTypeError, OptionError, ShapeError
from matnb.lazy.array import DistArray, handle_of, wrap
from matnb.lazy.creation import full, zeros
from matnb.lazy.reductions import mean_dtype
from matnb.lazy.ufuncs import astype
from matnb.nested.indexing import indexed
from matnb.nested.numpy_calls import NumpyCalls
from matnb.nested.orders import ordered
from matnb.nested.outgoing import to_arrow, to_awkward
from matnb.nested.pictures import nested_html, nested_text
from matnb.nested.restructuring import combine, shuffle, transpose, united
from matnb.nested.scans import RunningValues, only_monoid
from matnb.nested.segments import SegmentPlaces, SegmentReduce
from matnb.nested.selecting import TopSegments, topk, unique
from matnb.nested.showing import explained, nested_facts
from matnb.nested.structure import Structure, as_vector, check_dtype, check_same, is_nested, spread
from matnb.pictures.facts import NestedFacts

_BY_MONOID = {"plus": "sum", "times": "prod", "min": "min", "max": "max", "lor": "any", "land": "all"}


class NestedArray(RunningValues, NumpyCalls, NDArrayOperatorsMixin):
    """Values divided into segments of unequal length, such as the neighbors of each vertex.

    Made by :func:`matnb.nested.unflatten` and its like. Operations along the last axis give a value for each
    segment; functions of elements keep the segments. Values are lazy; the lengths of segments are summarized
    when the array is made, since they decide how it is cut.

    Examples
    --------
    >>> import matnb as mn
    >>> N = mn.nested.unflatten(mn.asarray([3.0, 1.0, 2.0, 5.0]), [2, 0, 1, 1])
    >>> N.sum().compute()
    array([4., 0., 2., 5.])
    >>> N.sort().tolist()
    [[1.0, 3.0], [], [2.0], [5.0]]
    """

    __slots__ = ("_positions", "_strategy", "_structure", "_values")
    __array_priority__ = 2000
    __matnb_leads__ = True
    _is_nested = _is_one_level = True

    def __init__(
        self,
        values: DistArray,
        structure: Structure,
        strategy: Strategy = "uniform",
        positions: DistArray | None = None,
    ) -> None:
        check_dtype(values.dtype, "a nested array would")
        # Handles of its own: what is assigned to elements of another handle changes nothing here.
        self._values, self._structure, self._strategy = values.copy(), structure, strategy
        self._positions = None if positions is None else positions.copy()

    # What it is.

    @property
    def _names(self) -> bytes:
        # What names the segments, and the positions of values in them.
        positions = b"" if self._positions is None else self._positions.expression.digest
        return self._structure.offsets.expression.digest + positions

    def _offsets_of_levels(self) -> list[DistArray]:
        return [self.offsets]

    @property
    def values(self) -> DistArray:
        """The values of all segments one after the other, of shape (n,); assigning to them changes no N."""
        return self._values.copy()

    @property
    def offsets(self) -> DistArray:
        """Where each segment begins among the values, and where the last one ends: int64, (s + 1,)."""
        return self._structure.offsets.copy()

    @property
    def counts(self) -> DistArray:
        """The length of each segment: int64 of shape (s,)."""
        return self._structure.counts

    @property
    def positions(self) -> DistArray:
        """Where within its segment each value is: int64 of shape (n,), from 0 on.

        Of the rows of a sparse matrix, its columns; there are gaps then. In arithmetic two arrays with
        different positions meet where either has a value, and the other counts as 0; products and "and" keep
        only what both have.
        """
        if self._positions is not None:
            return self._positions.copy()
        if not self.num_values:
            return zeros(0, np.int64)
        own = self._structure
        return wrap(SegmentPlaces(self.offsets.expression, own.knots, own.cuts, own.ranks))

    @property
    def num_segments(self) -> int:
        """How many segments there are."""
        return self._structure.num_segments

    @property
    def num_values(self) -> int:
        """How many values all segments have together."""
        return self._structure.num_values

    @property
    def longest(self) -> int:
        """The length of the longest segment."""
        return self._structure.longest

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the values."""
        return self._values.dtype

    @property
    def strategy(self) -> Strategy:
        """How it is cut: "segmented", between segments, or "uniform", into equal shares of the values."""
        return self._strategy

    def __len__(self) -> int:
        return self.num_segments

    def explain(self, stage: str | None = None, measured: bool = False) -> str:
        """Return how it is cut and why, what both strategies should take, then how its values are computed.

        Parameters
        ----------
        stage, measured
            As of :meth:`matnb.DistArray.explain`; ``measured`` also gives what the first reduction took.

        Examples
        --------
        >>> import matnb as mn
        >>> print(mn.nested.from_lists([[1.0], [2.0, 3.0]]).explain().splitlines()[0])
        segmented: 3 values are one block
        """
        return explained(self._structure, self._values, self._strategy, stage, measured)

    def _facts(self) -> NestedFacts:
        return nested_facts(self._structure, self._values, self._strategy, self._positions is not None)

    def __repr__(self) -> str:
        return nested_text(self._facts())

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        facts = self._facts()
        return {"text/plain": nested_text(facts), "text/html": nested_html(facts)}

    def tolist(self) -> list[list[Any]]:
        """Return the segments as lists of Python numbers; what they take is bounded as for ``compute()``."""
        values: np.ndarray = np.asarray(self._values)
        offsets: np.ndarray = np.asarray(self.offsets)
        return [values[begin:end].tolist() for begin, end in pairwise(offsets)]

    def flatten(self) -> DistArray:
        """Return the values of all segments one after the other, as :attr:`values`."""
        return self.values

    def with_values(self, values: object) -> NestedArray:
        """Return other values in the same segments; this works inside loops, too.

        Raises
        ------
        ShapeError
            For another number of values.
        """
        found = as_vector(values, "values")
        if found.shape[0] != self.num_values:
            raise ShapeError(f"with_values: {found.shape[0]:,} values for segments of {self.num_values:,}")
        return self._like(found)

    def _like(self, values: DistArray) -> NestedArray:
        return NestedArray(values, self._structure, self._strategy, self._positions)

    def _spread(self, numbers: DistArray) -> DistArray:
        # A number of each segment for each of its values, cut as these are.
        return spread(self._structure, numbers, self._structure.cuts, self._structure.ranks)

    # Other segments, or the same values in another structure.

    def __getitem__(self, key: Any) -> Any:
        """Return a segment, ``N[3]``, one of its elements, ``N[3, 2]``, or a nested array of some segments.

        Parameters
        ----------
        key
            An integer for a segment; a segment and a place in it, both may count back from the end; of an
            array with ``positions`` a segment and a position. Or a slice of segments, one boolean a segment,
            or integers, which may repeat; arrays may be NumPy's or DistArrays. Nested booleans of the same
            segments, such as ``N > 0``, select values within each segment.

        Returns
        -------
        DistArray or NestedArray
            A segment has one axis and an element none. An element takes two offsets and one value from the
            workers.

        Raises
        ------
        IndexingError
            For a segment or element that there is not, with both numbers; a mask of another length; and for
            other than whole numbers and booleans.
        LoopBodyError
            For a key that depends on the state of a loop.

        Examples
        --------
        >>> import matnb as mn
        >>> N = mn.nested.from_lists([[1, 2], [], [3, 4, 5]])
        >>> int(N[2, 1]), N[-1].tolist(), N[[2, 0, 2]].count().tolist()
        (4, [3, 4, 5], [3, 2, 3])
        >>> N[N > 1].tolist()
        [[2], [], [3, 4, 5]]
        """
        return indexed(self, key)

    def combine(
        self,
        target: object,
        monoid: str | Callable[..., object] = "plus",
        *,
        counts: object = None,
        stable: bool = False,
    ) -> NestedArray:
        """Return values brought to new places, where those that meet are combined by a monoid.

        Parameters
        ----------
        target
            For each value the segment and the place in it that it goes to: a pair of arrays of integers, flat
            or nested as this one.
        monoid
            "plus", "times", "min", "max", "lor" or "land", or its ufunc. A place without a value gets its
            identity.
        counts
            The lengths of the new segments; by default they are counted, the largest place and one.
        stable
            Sort values by where they go, and combine those that meet as ``N.reduce`` does, in their order, so
            that the bits of float sums do not depend on how the array is cut. Otherwise values are added in
            order within each block, then block by block. Other results have the same bits in either case,
            but for the sign of a zero.

        Returns
        -------
        NestedArray
            Of the dtype of NumPy's reduction.

        Raises
        ------
        IndexingError
            For a place that a segment does not have, with the value that would go there; in a loop's body,
            where the target depends on its state, once it is computed.
        LoopBodyError
            Without ``counts``, or with ``stable``, for a target that depends on the state of a loop.
        ShapeError, DTypeError, OptionError
            For a target of other lengths or dtypes, and for another monoid.

        Examples
        --------
        >>> import matnb as mn
        >>> N = mn.nested.from_lists([[1, 2], [], [3, 4, 5]])
        >>> N.combine(([0, 0, 2, 0, 2], [1, 0, 0, 1, 0])).tolist()
        [[2, 5], [], [8]]
        """
        return combine(self, target, monoid, counts, stable)

    def shuffle(self, target: object, *, counts: object = None) -> NestedArray:
        """Return values brought to new places, one to each: a 1-to-1 :meth:`combine`, of the same dtype.

        Raises
        ------
        ShapeError
            Where two values would go to one place, or none to one, which it names.
        IndexingError, LoopBodyError, DTypeError, OptionError
            As :meth:`combine`.

        Examples
        --------
        >>> import matnb as mn
        >>> mn.nested.from_lists([[1, 2], [3]]).shuffle(([1, 0, 1], [1, 0, 0])).tolist()
        [[2], [3, 1]]
        """
        return shuffle(self, target, counts)

    @property
    def T(self) -> NestedArray:
        """Places as segments, and segments as places: :meth:`transpose`."""
        return self.transpose()

    def transpose(self, num_segments: int | None = None) -> NestedArray:
        """Return a nested array whose segment k has what is at place k of each segment that is long enough.

        They come in the order of segments. Of segments of one length it is NumPy's transpose. The lengths
        follow from the lengths here. Of an array with ``positions``, segment k has what is at position k,
        with the numbers of segments as its positions; that is counted.

        Parameters
        ----------
        num_segments
            How many segments to give; by default as many as the longest segment has places, or the largest
            position and one. Of the rows of a sparse matrix A, ``A.shape[1]`` gives all columns.

        Raises
        ------
        ShapeError
            For fewer segments than that.
        OptionError
            For a number of segments that is no integer.

        Examples
        --------
        >>> import matnb as mn
        >>> mn.nested.from_lists([[1, 2], [], [3, 4, 5]]).T.tolist()
        [[1, 3], [2, 4], [5]]
        """
        return transpose(self, num_segments)

    def to_arrow(self) -> Any:
        """Compute it and return a ``pyarrow.LargeListArray``, which shares the computed memory.

        Raises
        ------
        DTypeError
            For complex numbers, which Arrow does not have.
        TooLargeError
            For more than the session's ``compute_limit``.

        Examples
        --------
        >>> import matnb as mn
        >>> mn.nested.from_lists([[1, 2], []]).to_arrow().to_pylist()
        [[1, 2], []]
        """
        return to_arrow(self)

    def to_awkward(self) -> Any:
        """Compute it and return an ``ak.Array`` of lists, which shares the computed memory.

        Raises
        ------
        UnsupportedError
            If Awkward is not installed.
        TooLargeError
            For more than the session's ``compute_limit``.

        Examples
        --------
        >>> import matnb as mn
        >>> mn.nested.from_lists([[1, 2], []]).to_awkward().to_list()
        [[1, 2], []]
        """
        return to_awkward(self)

    def unique(self) -> NestedArray:
        """Return the distinct values of each segment, ascending, NaN once, as ``np.unique`` of each.

        Raises
        ------
        DTypeError
            For complex values.
        LoopBodyError
            For values that depend on the state of a loop.

        Examples
        --------
        >>> import matnb as mn
        >>> mn.nested.from_lists([[2, 1, 2], [], [5]]).unique().tolist()
        [[1, 2], [], [5]]
        """
        return unique(self)

    def topk(self, k: int, largest: bool = True) -> TopSegments:
        """Return the ``k`` largest values of each segment and their places, as :func:`matnb.nested.topk`.

        Examples
        --------
        >>> import matnb as mn
        >>> mn.nested.from_lists([[3, 1, 9], [], [4]]).topk(2).values.tolist()
        [[9, 3], [], [4]]
        """
        return topk(self, k, largest)

    # What is left of each segment.

    def _reduced(self, operation: str, dtype: np.dtype, values: DistArray | None = None) -> DistArray:
        node = (self._values if values is None else values).expression
        if not self.num_segments:
            return zeros(0, dtype)
        if not self.num_values:
            made = SegmentReduce(node, self.offsets.expression, self._structure.knots, operation, dtype)
            return full(self.num_segments, made.identity, dtype=dtype)
        if operation in ("sum", "prod"):
            node = astype(node, dtype)
        return wrap(SegmentReduce(node, self.offsets.expression, self._structure.knots, operation, dtype))

    def sum(self, axis: int = -1) -> DistArray:
        """Return the sum of each segment, of ``np.sum``'s dtype; 0 of an empty one.

        Sums of floats follow a binary tree over places within the segment, so that they have the same bits
        however the array is cut, and however many workers there are.
        """
        _check_axis(axis)
        return self._reduced("sum", reduced_dtype(PLUS, self.dtype))

    def prod(self, axis: int = -1) -> DistArray:
        """Return the product of each segment, of ``np.prod``'s dtype; 1 of an empty one."""
        _check_axis(axis)
        return self._reduced("prod", reduced_dtype(TIMES, self.dtype))

    def min(self, axis: int = -1) -> DistArray:
        """Return the least value of each segment, NaN if it has one; of an empty one the largest value."""
        _check_axis(axis)
        self._check_ordered("min")
        return self._reduced("min", self.dtype)

    def max(self, axis: int = -1) -> DistArray:
        """Return the largest value of each segment, NaN if it has one; of an empty one the least value."""
        _check_axis(axis)
        self._check_ordered("max")
        return self._reduced("max", self.dtype)

    def any(self, axis: int = -1) -> DistArray:
        """Return whether a value of each segment is not zero; of an empty one False."""
        _check_axis(axis)
        return self._reduced("any", np.dtype(np.bool_))

    def all(self, axis: int = -1) -> DistArray:
        """Return whether no value of each segment is zero; of an empty one True."""
        _check_axis(axis)
        return self._reduced("all", np.dtype(np.bool_))

    def argmin(self, axis: int = -1) -> DistArray:
        """Return where within each segment its least value is, the first of several or NaN; -1 if empty.

        Of the rows of a sparse matrix it is the column: what ``N[i, place]`` takes.
        """
        _check_axis(axis)
        return self._extreme("argmin")

    def argmax(self, axis: int = -1) -> DistArray:
        """Return where within each segment its largest value is, the first of several or NaN; -1 if empty.

        Of the rows of a sparse matrix it is the column: what ``N[i, place]`` takes. Only stored entries
        count, while SciPy's ``A.argmax(axis=1)`` counts the zeros beside them.
        """
        _check_axis(axis)
        return self._extreme("argmax")

    def _extreme(self, operation: str) -> DistArray:
        self._check_ordered(operation)
        found: Any = self._reduced(operation, np.dtype(np.int64))
        if self._positions is None or not self.num_values:
            return found  # type: ignore[no-any-return]  # operators of arrays give Any
        columns: Any = self._positions[np.maximum(self.offsets[:-1] + found, 0)]
        return np.where(found < 0, found, columns)  # type: ignore[no-any-return]  # operators of arrays give Any

    def count(self, axis: int = -1) -> DistArray:
        """Return the length of each segment, int64; of the rows of a sparse matrix their stored entries."""
        _check_axis(axis)
        return self.counts

    def mean(self, axis: int = -1) -> DistArray:
        """Return the mean of each segment, of ``np.mean``'s dtype; NaN of an empty one."""
        _check_axis(axis)
        dtype = mean_dtype(self.dtype)
        wide = np.result_type(dtype, np.float64)
        total: Any = self._reduced("sum", wide, self._values.astype(wide))
        counts: Any = self.counts
        return (total / counts).astype(dtype)  # type: ignore[no-any-return]  # operators of arrays give Any

    def var(self, axis: int = -1, *, ddof: float = 0) -> DistArray:
        """Return the variance of each segment, as ``np.var`` with ``ddof``; NaN of an empty one."""
        _check_axis(axis)
        real = np.empty(0, mean_dtype(self.dtype)).real.dtype
        squares: Any = self._deviation()
        divisor: Any = np.maximum(self.counts - ddof, 0)
        return (squares / divisor).astype(real)  # type: ignore[no-any-return]  # operators of arrays give Any

    def _deviation(self) -> DistArray:
        # The sum of squared distances from the mean; of complex values what is away from it is made first.
        if self.dtype.kind != "c":
            return self._reduced("deviation", np.dtype(np.float64))
        center: Any = self._reduced("sum", np.dtype(np.complex128)) / np.maximum(self.counts, 1)
        away: Any = np.abs(self._values - self._spread(center))
        return self._reduced("sum", np.dtype(np.float64), away * away)

    def std(self, axis: int = -1, *, ddof: float = 0) -> DistArray:
        """Return the standard deviation of each segment, the square root of :meth:`var`."""
        return handle_of(np.sqrt(self.var(axis, ddof=ddof)))

    def reduce(self, monoid: str | Callable[..., object]) -> DistArray:
        """Return the reduction of each segment by a monoid: "plus", "times", "min", "max", "lor" or "land".

        Or by its ufunc, such as ``np.add``.

        Raises
        ------
        OptionError
            For another name or function.
        """
        return getattr(self, _BY_MONOID[only_monoid(monoid, "reduce")])()  # type: ignore[no-any-return]  # operators of arrays give Any

    def _check_ordered(self, what: str) -> None:
        if self.dtype.kind == "c":
            raise DTypeError(f"{what} of complex segments: complex numbers have no order")

    def _turned(self) -> NestedArray:
        # The segments and the values in each from the last to the first.
        return NestedArray(handle_of(np.flip(self._values)), self._structure.turned(), self._strategy)

    # Orders.

    def sort(self) -> NestedArray:
        """Return each segment's values in ascending order, NaN last."""
        return NestedArray(self._ordered("sort", "values"), self._structure, self._strategy)

    def argsort(self) -> NestedArray:
        """Return the places within each segment of its values in ascending order, equal ones as they come.

        Of the rows of a sparse matrix they are columns: what ``N[i, place]`` takes.
        """
        return self._columns(self._places())

    def _places(self) -> NestedArray:
        return NestedArray(self._ordered("argsort", "places"), self._structure, self._strategy)

    def _columns(self, places: NestedArray) -> NestedArray:
        # Of places in each segment the positions there, where there are gaps.
        if self._positions is None or not places.num_values:
            return places
        flat: Any = places + self.offsets[:-1]
        return places.with_values(self._positions[flat.values])

    def rank(self) -> NestedArray:
        """Return each value's place in its segment's ascending order, from 0; equal ones as they come."""
        return self._like(self._ordered("rank", "ranks"))

    def _ordered(self, what: str, wanted: str) -> DistArray:
        self._check_ordered(what)
        if not self.num_values:
            return self._values if wanted == "values" else zeros(0, np.int64)
        return ordered(self._values, self._structure, wanted)

    # Functions of elements.

    def _elementwise(self, call: Callable[..., object], inputs: Sequence[object], what: str) -> Any:
        # What a function makes of values that stand beside each other.
        if any(is_nested(one) and not isinstance(one, NestedArray) for one in inputs):
            return NotImplemented  # one of more levels takes others with it
        arrays = [one for one in inputs if isinstance(one, NestedArray)]
        if len(arrays) > 1 and any(one._positions is not None for one in arrays):
            inputs = united(inputs, what)
        home = next(one for one in inputs if isinstance(one, NestedArray))
        found: Any = call(*(home._beside(one, what) for one in inputs))
        return tuple(map(home._like, found)) if isinstance(found, tuple) else home._like(found)

    def _beside(self, other: object, what: str) -> Any:
        # What meets the values one by one.
        if isinstance(other, NestedArray):
            check_same(self._structure, other._structure, what)
            return other._values
        if isinstance(other, int | float | complex | np.generic):
            return other
        if isinstance(other, list | tuple) and any(isinstance(one, list | tuple) for one in other):
            raise ShapeError(f"{what}: lists in a list: make them a nested array with mn.nested.from_lists")
        found = handle_of(other)
        if not found.ndim:
            return found
        if found.shape != (self.num_segments,):
            raise ShapeError(
                f"{what}: an array of shape {found.shape} beside {self.num_segments:,} segments: give a "
                "value for each segment, or N.gather(x) for a value for each place"
            )
        return self._spread(found)

    def astype(self, dtype: Any) -> NestedArray:
        """Return the same segments with values of another dtype.

        Raises
        ------
        DTypeError
            For what is no number of at most 64 bits, or complex of 128; and for float16.
        """
        return self._like(self._values.astype(dtype))

    def gather(self, x: object) -> NestedArray:
        """Return ``x[i]`` for each value at place i of its segment, in the same segments.

        Of the rows of a sparse matrix A, ``(N * N.gather(x)).sum()`` is ``A @ x``.

        Raises
        ------
        ShapeError
            For fewer values than the longest segment has.
        IndexingError
            When it runs, for a place beyond them, where there are gaps.
        """
        found = as_vector(x, "gather: values")
        if self._positions is None and found.shape[0] < self.longest:
            raise ShapeError(
                f"gather: {found.shape[0]:,} values, but the longest segment has {self.longest:,}"
            )
        return self._like(found[self.positions])


def _check_axis(axis: int) -> None:
    if axis not in (-1, 1):
        raise OptionError(f"axis={axis!r}: a nested array is reduced along its segments, axis=-1")
