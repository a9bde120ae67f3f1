"""Nesting in nesting: segments whose elements are segments, by offsets of offsets, to any depth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from matnb.errors import OptionError, ShapeError
from matnb.lazy.array import DistArray
from matnb.lazy.creation import arange
from matnb.lazy.evaluator import evaluator
from matnb.lazy.tree import register_container
from matnb.nested.array import NestedArray
from matnb.nested.cutting import nested
from matnb.nested.numpy_calls import NumpyCalls
from matnb.nested.outgoing import to_arrow, to_awkward
from matnb.nested.showing import strategy_lines
from matnb.nested.structure import Structure, check_same, structure_from_offsets
from matnb.pictures.quantities import plural_text

AnyNested: TypeAlias = "NestedArray | DeepNestedArray"


def _along(name: str, *, is_reduction: bool = False) -> Callable[..., Any]:
    # A method of the innermost segments; what it leaves of each is divided by the other levels.
    def method(self: DeepNestedArray, *arguments: Any, **options: Any) -> Any:
        if is_reduction:
            axis = arguments[0] if arguments else options.pop("axis", -1)
            if axis not in (-1, self.depth):
                raise OptionError(
                    f"axis={axis!r}: a nested array is reduced along its innermost segments, axis=-1; "
                    "N.segments() joins those of each segment around them"
                )
            arguments = ()
        return self._around(getattr(self._inner, name)(*arguments, **options))

    of_one_level = getattr(NestedArray, name)
    method.__name__, method.__qualname__ = name, f"DeepNestedArray.{name}"
    method.__doc__ = (
        f"As :meth:`NestedArray.{name}`, for each innermost segment.\n\n        {of_one_level.__doc__}"
    )
    return method


class DeepNestedArray(NumpyCalls, NDArrayOperatorsMixin):
    """Segments of segments, such as the words of the sentences of each document.

    Made by :func:`matnb.nested.unflatten` of a nested array. What works along an axis works along the
    innermost segments: a reduction leaves a nested array of one level less, and all others keep every level.
    :meth:`flatten` leaves out the outermost level, :meth:`segments` the innermost one.

    Examples
    --------
    >>> import matnb as mn
    >>> words = mn.nested.unflatten([3.0, 1.0, 2.0, 5.0], [2, 0, 1, 1])
    >>> N = mn.nested.unflatten(words, [3, 1])
    >>> N.tolist()
    [[[3.0, 1.0], [], [2.0]], [[5.0]]]
    >>> N.sum().tolist()
    [[4.0, 0.0, 2.0], [5.0]]
    >>> N.segments().tolist()
    [[3.0, 1.0, 2.0], [5.0]]
    """

    __slots__ = ("_inner", "_outer")
    __array_priority__ = 2000
    __matnb_leads__ = True
    _is_nested = True

    def __init__(self, outer: NestedArray, inner: AnyNested) -> None:
        # The outer level is a nested array with a value for each segment of the inner one, whatever value.
        self._outer, self._inner = outer, inner

    # What it is.

    @property
    def _names(self) -> bytes:
        return self._outer._names + self._inner._names

    def _offsets_of_levels(self) -> list[DistArray]:
        return [self.offsets, *self._inner._offsets_of_levels()]

    @property
    def depth(self) -> int:
        """How many levels of segments there are, at least 2."""
        return 1 + (self._inner.depth if isinstance(self._inner, DeepNestedArray) else 1)

    @property
    def num_segments(self) -> int:
        """How many outermost segments there are."""
        return self._outer.num_segments

    @property
    def num_values(self) -> int:
        """How many values all segments have together."""
        return self._inner.num_values

    @property
    def counts(self) -> DistArray:
        """How many segments each outermost segment has: int64 of shape (s,)."""
        return self._outer.counts

    @property
    def offsets(self) -> DistArray:
        """Where each outermost segment begins among the segments in it, and the end: int64, (s + 1,)."""
        return self._outer.offsets

    @property
    def values(self) -> DistArray:
        """The values of all segments one after the other, of shape (n,)."""
        return self._inner.values

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the values."""
        return self._inner.dtype

    def __len__(self) -> int:
        return self.num_segments

    def __repr__(self) -> str:
        return f"DeepNestedArray: {plural_text(self.num_segments, 'segment')} of {self._inner!r}"

    def explain(self, stage: str | None = None, measured: bool = False) -> str:
        """Return how each level is cut and why, the outermost first, then how the values are computed.

        Parameters
        ----------
        stage, measured
            As of :meth:`NestedArray.explain`.

        Examples
        --------
        >>> import matnb as mn
        >>> N = mn.nested.unflatten(mn.nested.from_lists([[1, 2], [], [3]]), [2, 1])
        >>> print("\\n".join(N.explain().splitlines()[:4]))
        2 segments, whose values are 3 segments:
          segmented: 3 values are one block
        3 segments of 3 values:
        segmented: 3 values are one block
        """
        inner = self._inner.explain(stage, measured)
        if stage is not None:
            return inner
        own = strategy_lines(self._outer._structure, self._outer.strategy, measured)
        lines = [f"{self.num_segments:,} segments, whose values are {self._inner.num_segments:,} segments:"]
        lines += [f"  {one}" for one in own]
        if isinstance(self._inner, NestedArray):
            lines.append(f"{self._inner.num_segments:,} segments of {self.num_values:,} values:")
        return "\n".join([*lines, inner])

    def __getitem__(self, key: Any) -> AnyNested:
        """Return the segments in one of the outermost, ``N[3]``, or an array of some of the outermost.

        Keys and errors are those of :meth:`NestedArray.__getitem__` at the outermost level, so ``N[3, 2]`` is
        a segment in a segment. Booleans of fewer levels, such as ``N[N.sum() > 1]``, select segments in each,
        and those of as many levels, ``N[N > 0]``, values.

        Examples
        --------
        >>> import matnb as mn
        >>> N = mn.nested.unflatten(mn.nested.from_lists([[1, 2], [], [3]]), [2, 1])
        >>> N[0].tolist(), N[0, 0].tolist(), N[::-1].tolist()
        ([[1, 2], []], [1, 2], [[[3]], [[1, 2], []]])
        """
        if isinstance(key, DeepNestedArray):
            check_same(self._outer._structure, key._outer._structure, "N[mask]")
            return DeepNestedArray(self._outer, self._inner[key._inner])
        taken = self._outer.with_values(arange(self._inner.num_segments))[key]
        if isinstance(taken, NestedArray):
            return DeepNestedArray(taken, self._inner[taken.values])
        return self._inner[taken]

    def tolist(self) -> list[Any]:
        """Return lists of lists of Python numbers; what they take is bounded as for ``compute()``."""
        inner = self._inner.tolist()
        offsets: np.ndarray = np.asarray(self.offsets)
        return [inner[begin:end] for begin, end in pairwise(offsets)]

    def to_arrow(self) -> Any:
        """Compute it and return a ``pyarrow.LargeListArray`` of lists, as :meth:`NestedArray.to_arrow`."""
        return to_arrow(self)

    def to_awkward(self) -> Any:
        """Compute it and return an ``ak.Array`` of lists of lists."""
        return to_awkward(self)

    # Levels.

    def flatten(self) -> AnyNested:
        """Return the segments of all outermost segments one after the other: without the outermost level."""
        return self._inner

    def transpose(self) -> DeepNestedArray:
        """Return an array whose segment k has what is at place k of each outermost segment.

        The two outermost levels change roles, as by ``np.swapaxes(x, 0, 1)``; the segments in them stay as
        they are. ``N.T``, for which NumPy reverses all axes, there is of one level alone.

        Examples
        --------
        >>> import matnb as mn
        >>> N = mn.nested.unflatten(mn.nested.from_lists([[1, 2], [], [3]]), [2, 1])
        >>> N.transpose().tolist()
        [[[1, 2], [3]], [[]]]
        """
        order = self._outer.with_values(arange(self._inner.num_segments)).transpose()
        return DeepNestedArray(order, self._inner[order.values])

    def segments(self) -> AnyNested:
        """Return a level up: the innermost segments of each segment joined to one, which leaves out a level.

        Where each of these begins is found on the workers; values stay.

        Examples
        --------
        >>> import matnb as mn
        >>> N = mn.nested.unflatten(mn.nested.from_lists([[1, 2], [], [3]]), [2, 1])
        >>> N.segments().sum().compute()
        array([3, 3])
        """
        if isinstance(self._inner, DeepNestedArray):
            return DeepNestedArray(self._outer, self._inner.segments())
        offsets: DistArray = self._inner.offsets[self.offsets]
        structure = structure_from_offsets(offsets, "segments")
        return nested(NestedArray, self.values, structure, "auto", "segments", self._inner._positions)

    def with_values(self, values: object) -> DeepNestedArray:
        """Return other values in the same segments; this works inside loops, too.

        Raises
        ------
        ShapeError
            For another number of values.
        """
        return DeepNestedArray(self._outer, self._inner.with_values(values))

    def astype(self, dtype: Any) -> DeepNestedArray:
        """Return the same segments with values of another dtype."""
        return DeepNestedArray(self._outer, self._inner.astype(dtype))

    def _around(self, found: Any) -> Any:
        # Values or segments, one for each inner segment, in the outer ones.
        if isinstance(found, DistArray):
            return self._outer.with_values(found)
        if isinstance(found, tuple):
            parts = map(self._around, found)
            return type(found)(*parts) if hasattr(found, "_fields") else tuple(parts)
        return DeepNestedArray(self._outer, found)

    # Along the innermost segments.

    sum = _along("sum", is_reduction=True)
    prod = _along("prod", is_reduction=True)
    min = _along("min", is_reduction=True)
    max = _along("max", is_reduction=True)
    any = _along("any", is_reduction=True)
    all = _along("all", is_reduction=True)
    argmin = _along("argmin", is_reduction=True)
    argmax = _along("argmax", is_reduction=True)
    mean = _along("mean", is_reduction=True)
    var = _along("var", is_reduction=True)
    std = _along("std", is_reduction=True)
    count = _along("count", is_reduction=True)
    reduce = _along("reduce")
    scan = _along("scan")
    cumsum = _along("cumsum")
    cumprod = _along("cumprod")
    sort = _along("sort")
    argsort = _along("argsort")
    rank = _along("rank")
    unique = _along("unique")
    topk = _along("topk")
    gather = _along("gather")

    # Functions of elements.

    def _elementwise(self, call: Callable[..., object], inputs: Sequence[object], what: str) -> Any:
        # What a function makes of values that stand beside each other.
        return self._around(call(*(self._beside(one, what) for one in inputs)))

    def _beside(self, other: object, what: str) -> Any:
        # What meets the inner segments: of a value for each outer segment, one for each inner segment. One of
        # fewer levels has a value for each of the innermost segments, or of those around them.
        if not isinstance(other, DeepNestedArray):
            return self._outer._beside(other, what)
        check_same(self._outer._structure, other._outer._structure, what)
        return other._inner


def grouped(inner: AnyNested, structure: Structure, strategy: str, what: str) -> DeepNestedArray:
    """Return the segments of a nested array divided into segments themselves.

    Raises
    ------
    ShapeError
        Where these are for more or fewer segments.
    """
    if structure.num_values != inner.num_segments:
        raise ShapeError(
            f"{what} are for {plural_text(structure.num_values, 'segment')}, but there are "
            f"{inner.num_segments:,}"
        )
    evaluator().persist([inner.counts.expression])
    return DeepNestedArray(nested(NestedArray, inner.counts, structure, strategy, what), inner)


class _Segments:
    # The structure of a nested array in a loop: equal where values of one fit into the segments of the other.
    def __init__(self, like: AnyNested) -> None:
        self.like, self._names = like, like._names

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Segments) and self._names == other._names

    def __hash__(self) -> int:
        return hash(self._names)

    def __str__(self) -> str:
        return f"of {len(self.like):,} segments"


for _kind in (NestedArray, DeepNestedArray):
    register_container(
        _kind,
        lambda nested: ((nested.values,), _Segments(nested)),
        lambda segments, values: segments.like.with_values(*values),
        paths=lambda _: (".values",),
        fixes_shapes=True,
        parts="segments",
        advice="values of M in equal segments are taken over by N.with_values(M.values)",
    )
