"""NumPy's objects that make arrays of an index: ``r_``, ``c_``, ``mgrid`` and ``ogrid``."""

from __future__ import annotations

import numpy as np

from matnb.errors import UnsupportedError
from matnb.lazy.array import DistArray
from matnb.lazy.creation import arange, asarray, linspace
from matnb.lazy.functions.creating import meshgrid
from matnb.lazy.registry import recorded


class Joined:
    """``numpy.r_``: slices, numbers and arrays one after the other.

    Examples
    --------
    >>> import matnb as mn
    >>> mn.r_[0:3, 10, [7, 8]].compute()
    array([ 0,  1,  2, 10,  7,  8])
    """

    def __getitem__(self, key: object) -> DistArray:
        found = recorded(np.concatenate)([recorded(np.atleast_1d)(one) for one in _arrays(key)])
        assert isinstance(found, DistArray)
        return found


class Columns:
    """``numpy.c_``: slices, numbers and arrays side by side as columns."""

    def __getitem__(self, key: object) -> DistArray:
        found = recorded(np.column_stack)([recorded(np.atleast_1d)(one) for one in _arrays(key)])
        assert isinstance(found, DistArray)
        return found


class OpenGrid:
    """``numpy.ogrid``: the axes of a grid, which stretch where they meet."""

    def __getitem__(self, key: object) -> DistArray | tuple[DistArray, ...]:
        if isinstance(key, slice):
            return _along(key)
        return meshgrid(*_axes(key), sparse=True, indexing="ij")


class FullGrid:
    """``numpy.mgrid``: the places of a grid's points, an axis after the other."""

    def __getitem__(self, key: object) -> DistArray:
        if isinstance(key, slice):
            return _along(key)
        found = recorded(np.stack)(meshgrid(*_axes(key), indexing="ij"))
        assert isinstance(found, DistArray)
        return found


def _axes(key: object) -> list[DistArray]:
    axes = [_along(one) for one in key if isinstance(one, slice)] if isinstance(key, tuple) else []
    if not axes or len(axes) != len(key):  # type: ignore[arg-type]  # a tuple
        raise UnsupportedError(f"a grid of {key!r}: give slices, as in mgrid[0:3, 0:1:5j]")
    kind = np.result_type(*(one.dtype for one in axes))
    return [one.astype(kind) for one in axes]


def _arrays(key: object) -> list[DistArray]:
    parts = key if isinstance(key, tuple) else (key,)
    if any(isinstance(one, str) for one in parts):
        raise UnsupportedError("r_ and c_ with a text: use np.concatenate, np.stack or np.column_stack")
    return [_along(one) if isinstance(one, slice) else asarray(one) for one in parts]


def _along(part: slice) -> DistArray:
    # An imaginary step is a count of numbers, both ends included.
    start = 0 if part.start is None else part.start
    step = 1 if part.step is None else part.step
    if isinstance(step, complex):
        made = linspace(start, part.stop, int(abs(step)))
        assert isinstance(made, DistArray)
        return made
    return arange(start, part.stop, step)
