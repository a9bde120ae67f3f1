"""What axes are refused, and with errors of NumPy's kinds: by every function that takes one."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np
import pytest

import matnb as mn
from matnb.errors import AxisError, DTypeError

# Functions of one axis; others of the kind are refused in the same place.
ONE_AXIS: dict[str, Callable[..., object]] = {
    "apply_along_axis": lambda xp, x, axis: xp.apply_along_axis(np.sum, axis, x),
    "append": lambda xp, x, axis: xp.append(x, x, axis=axis),
    "argpartition": lambda xp, x, axis: xp.argpartition(x, 0, axis=axis),
    "argsort": lambda xp, x, axis: xp.argsort(x, axis=axis),
    "array_split": lambda xp, x, axis: xp.array_split(x, 1, axis=axis),
    "compress": lambda xp, x, axis: xp.compress([True], x, axis=axis),
    "concatenate": lambda xp, x, axis: xp.concatenate([x, x], axis=axis),
    "cross": lambda xp, x, axis: xp.cross(x, x, axisc=axis),
    "delete": lambda xp, x, axis: xp.delete(x, 0, axis=axis),
    "diagonal": lambda xp, x, axis: xp.diagonal(x, 0, axis, 1),
    "diff": lambda xp, x, axis: xp.diff(x, axis=axis),
    "insert": lambda xp, x, axis: xp.insert(x, 0, 1.0, axis=axis),
    "repeat": lambda xp, x, axis: xp.repeat(x, 2, axis=axis),
    "rollaxis": lambda xp, x, axis: xp.rollaxis(x, axis),
    "sort": lambda xp, x, axis: xp.sort(x, axis=axis),
    "stack": lambda xp, x, axis: xp.stack([x, x], axis=axis),
    "swapaxes": lambda xp, x, axis: xp.swapaxes(x, axis, 0),
    "take": lambda xp, x, axis: xp.take(x, [0], axis=axis),
    "transpose": lambda _xp, x, axis: x.transpose(axis, 0, 1),
    "unique": lambda xp, x, axis: xp.unique(x[0, 0], axis=axis),
    "vecdot": lambda xp, x, axis: xp.vecdot(x, x, axis=axis),
}


@pytest.mark.parametrize("name", ONE_AXIS)
def test_axes_that_are_none(name: str) -> None:
    function, plain = ONE_AXIS[name], np.ones((2, 4, 3))
    array = mn.asarray(plain)
    for axis in (7, -9):
        with pytest.raises((np.exceptions.AxisError, IndexError)):
            function(np, plain, axis)
        with pytest.raises(AxisError, match=f"axis {axis} of an array of . axes: give -. to ."):
            function(mn, array, axis)
    for odd in (1.5, (0, 1)):
        with pytest.raises(TypeError):
            function(np, plain, odd)
        with pytest.raises(DTypeError, match="integer"):
            function(mn, array, odd)


def test_an_array_without_axes_has_none() -> None:
    for function in (np.sort, np.flip, np.max):
        with pytest.raises(AxisError, match="axis 1 is out of bounds for an array without axes"):
            function(mn.asarray(3.0), axis=1)


def test_no_axis_is_no_whole_number() -> None:
    array = mn.asarray(np.ones((2, 3)))
    calls: list[Callable[[], object]] = [
        lambda: mn.split(array, 2, axis=None),
        lambda: mn.stack([array], axis=None),
        lambda: mn.rollaxis(array, None),
        lambda: mn.trapezoid(array, axis=None),
    ]
    for call in calls:
        with pytest.raises(DTypeError, match="axis=None: give one integer"):
            call()


def test_an_axis_that_is_not_there_is_numpys_error_too():
    x = mn.ones((2, 3))
    with pytest.raises(np.exceptions.AxisError) as caught:
        x.sum(axis=2)
    assert isinstance(caught.value, AxisError)
    assert (caught.value.axis, caught.value.ndim) == (2, 2)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    assert str(caught.value).startswith("axis 2 of an array of 2 axes")
