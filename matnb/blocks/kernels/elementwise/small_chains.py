"""Elementwise functions and reductions of small dense arrays, analyzed once and run again and again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np

from matnb.blocks.formats import Dense, NumericArray, cast
from matnb.blocks.kernels.compiled import given, is_worth_compiling
from matnb.blocks.kernels.elementwise.elementwise import Link, function_named, shapes_of_links
from matnb.blocks.kernels.elementwise.one_pass import Share
from matnb.blocks.kernels.reductions.reductions import reduce_block
from matnb.blocks.kernels.reductions.sum_loops import sum_contiguous
from matnb.blocks.sums import num_nodes, share_of, sums_as_tree

# Elements: of a chain of three functions on more, one pass takes less than three calls of NumPy do.
MOST_SMALL = 1 << 12
Form: TypeAlias = tuple[tuple[int, ...], np.dtype, tuple[int, ...]]  # shape, dtype and strides
# A function that is called with the values of some places, the last of them where the result goes.
_Call: TypeAlias = tuple[Callable[..., object], tuple[int, ...]]
_TRUTH = np.dtype(np.bool_)
# What reduces truths, and numbers where there are any, as they are.
_OF_TRUTHS = {"any": np.logical_or, "all": np.logical_and}
_EXTREMES = {"min": np.minimum, "max": np.maximum}
_ONCE = (np.dtype(np.float64), np.dtype(np.float32))  # summed as they are


def form_of_array(values: NumericArray) -> Form:
    """Return what a chain is analyzed for."""
    return values.shape, values.dtype, values.strides


class SmallChain:
    """Links over dense operands of certain forms, each a call of NumPy's into memory that is there.

    Values on the way are kept from run to run, so that one thread runs it at a time. What NumPy warns of is
    the caller's, who silences it once for many runs.

    Attributes
    ----------
    shape, dtype
        Of the last value.
    """

    def __init__(
        self, links: Sequence[Link], operands: Sequence[Form], shapes: Sequence[tuple[int, ...]]
    ) -> None:
        self.shape, self.dtype = shapes[-1], links[-1].dtype if links else operands[-1][1]
        self._num_operands = len(operands)
        self._room: list[NumericArray] = []
        self._calls: list[_Call] = []
        self._places = list(range(len(operands)))  # of each value, operands first
        self._dtypes = [dtype for _, dtype, _ in operands]
        for link, shape in zip(links, shapes[len(operands) :], strict=True):
            self._add(link, shape, shapes)
        self._forms = list(zip(shapes, self._dtypes, strict=True))

    def form(self, number: int) -> tuple[tuple[int, ...], np.dtype]:
        """Return the shape and dtype of a value, operands first."""
        return self._forms[number]

    def _add(self, link: Link, shape: tuple[int, ...], shapes: Sequence[tuple[int, ...]]) -> None:
        read = []
        for number, dtype in zip(link.arguments, link.input_dtypes, strict=True):
            place = self._places[number]
            if self._dtypes[number] != dtype:
                place = self._call(_cast_of(self._dtypes[number]), (place,), shapes[number], dtype)
            read.append(place)
        function = function_named(link.name)
        (made,) = (link.input_dtypes[0],) if link.name == "astype" else (_made_dtype(link),)
        if link.name == "astype":
            place = self._call(_cast_of(made), tuple(read), shape, link.dtype)
        elif isinstance(function, np.ufunc) and function.nout == 1:
            place = self._call(_into(function), tuple(read), shape, made)
            if made != link.dtype:
                place = self._call(_cast_of(made), (place,), shape, link.dtype)
        elif link.name == "where" and link.input_dtypes == (_TRUTH, link.dtype, link.dtype):
            place = self._call(_choose, tuple(read), shape, link.dtype)
        else:
            place = self._call(_filler(function, link.output), tuple(read), shape, link.dtype)
        self._places.append(place)
        self._dtypes.append(link.dtype)

    def _call(
        self, function: Callable[..., object], read: tuple[int, ...], shape: tuple[int, ...], dtype: np.dtype
    ) -> int:
        place = self._num_operands + len(self._room)
        self._room.append(np.empty(shape, dtype))
        self._calls.append((function, (*read, place)))
        return place

    def write(self, operands: Sequence[NumericArray], out: NumericArray) -> None:
        """Write the last value into memory of its shape and dtype, which may be an operand's."""
        values = [*operands, *self._room]
        # One that chooses writes before it has read all.
        is_made_there = out.flags.c_contiguous and self._calls[-1][0] is not _choose
        if is_made_there:
            values[-1] = out  # of the last call
        self._run(values)
        if not is_made_there:
            np.copyto(out, values[-1])

    def values(self, operands: Sequence[NumericArray]) -> list[NumericArray]:
        """Return all values, operands first, which hold until the next run."""
        values = [*operands, *self._room]
        self._run(values)
        return [values[place] for place in self._places]

    def _run(self, values: list[NumericArray]) -> None:
        for function, places in self._calls:
            function(*[values[place] for place in places])


def small_chain(links: Sequence[Link], operands: Sequence[Form]) -> SmallChain | None:
    """Return a chain for operands of these forms; None where another way has its bits, or is faster.

    Its bits are those of ``chains.apply_chain``.
    """
    shapes = shapes_of_links(links, [shape for shape, _, _ in operands])
    if shapes is None or any(link.sparse for link in links) or max(map(prod, shapes)) > MOST_SMALL:
        return None
    if not all(_lies_in_order(one) for one in operands):
        return None
    return SmallChain(links, operands, shapes)


def _lies_in_order(form: Form) -> bool:
    # Of memory in another order NumPy's loops may round otherwise where they step through it otherwise.
    shape, dtype, strides = form
    step = dtype.itemsize
    for length, stride in zip(reversed(shape), reversed(strides), strict=True):
        if length != 1 and stride != step:
            return False
        step *= length
    return True


def _made_dtype(link: Link) -> np.dtype:
    found: Any = function_named(link.name)(*(np.empty(0, dtype) for dtype in link.input_dtypes))
    return np.asarray(found[link.output] if isinstance(found, tuple) else found).dtype


def _into(ufunc: np.ufunc) -> Callable[..., object]:
    # A place for the result may be the last argument, but of extremes it is asked for by name.
    if ufunc not in (np.maximum, np.minimum):
        return ufunc
    return lambda first, second, out: ufunc(first, second, out=out)


def _choose(condition: NumericArray, chosen: NumericArray, other: NumericArray, out: NumericArray) -> None:
    np.copyto(out, other)
    np.copyto(out, chosen, where=condition)


def _cast_of(dtype: np.dtype) -> Callable[..., object]:
    return _fill_real if dtype.kind == "c" else _fill_cast


def _fill_cast(values: NumericArray, out: NumericArray) -> None:
    np.copyto(out, values, casting="unsafe")


def _fill_real(values: NumericArray, out: NumericArray) -> None:
    np.copyto(out, cast(values, out.dtype))


def _filler(function: Callable[..., Any], output: int) -> Callable[..., object]:
    def fill(*values: NumericArray) -> None:
        found = function(*values[:-1])
        chosen = np.asarray(found[output] if isinstance(found, tuple) else found)
        np.copyto(values[-1], cast(chosen, values[-1].dtype))

    return fill


class SmallShare:
    """A share of one small value, as ``reduce_block`` gives it, analyzed once.

    Parameters
    ----------
    share
        What is reduced.
    shape, dtype
        Of the value.
    """

    def __init__(self, share: Share, shape: tuple[int, ...], dtype: np.dtype) -> None:
        self._share = share
        is_sum = sums_as_tree(share.operation, share.dtype) and dtype in _ONCE and share.dtype.kind == "f"
        self._is_vector = is_sum and share.axes == (0,) and len(shape) == 1 and shape[0] > 0
        if self._is_vector:
            self._length, self._is_whole = shape[0], share.along is None
            self._start = 0 if self._is_whole else share.start
            self._count = 1 if self._is_whole else num_nodes(share.start, share.start + shape[0])

        self._ufunc: np.ufunc | None = None
        if share.along is None and share.axes and share.dtype == dtype and 0 not in shape:
            self._ufunc = (_OF_TRUTHS if dtype == _TRUTH else _EXTREMES).get(share.operation)

    def of(self, values: NumericArray) -> Dense:
        """Return the share."""
        if self._ufunc is not None:
            return Dense(np.asarray(self._ufunc.reduce(values, axis=self._share.axes, keepdims=True)))
        if self._is_vector:
            out = np.empty(self._count)
            runs = given(values), 1, self._length, self._start, self._count, self._is_whole, out
            if not is_worth_compiling(sum_contiguous, self._length, *runs):
                return Dense(share_of(values, (0,), None if self._is_whole else 0, self._start))
            sum_contiguous(*runs)
            return Dense(out)
        one = self._share
        return reduce_block(one.operation, Dense(values), one.axes, one.dtype, one.along, one.start)
