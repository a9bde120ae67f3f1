"""Reading and assigning by any index that NumPy takes: slices, numbers, lists, booleans, mixed."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import matnb as mn

SHAPES = [(3, 4, 2), (2, 3, 4), (5, 4), (5, 4), (1, 6), (7,), (0, 3), ()]


pytestmark = pytest.mark.session("interpreter", "two threads")


@st.composite
def keys(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[object, ...]:
    """An index, mostly one that fits."""
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    together = draw(st.sampled_from([(), (1,), (3,), (2, 2)]))
    used = len(shape) if draw(st.booleans()) else draw(st.integers(0, len(shape)))
    parts: list[object] = []
    axis = 0
    while axis < used:
        kind = draw(st.sampled_from(["slice", "number", "places", "places", "mask", "None", "True"]))
        length = shape[axis]
        if kind == "slice":
            bound = st.none() | st.integers(-length - 1, length + 1)
            parts.append(slice(draw(bound), draw(bound), draw(st.sampled_from([None, 1, 2, -1, -2]))))
        elif kind == "number":
            parts.append(draw(st.integers(-length, length - 1)) if length else slice(None))
        elif kind == "places":
            size = together if draw(st.booleans()) else (1,) * len(together)
            parts.append(rng.integers(-length, length, size) if length else np.empty(0, int))
        elif kind == "mask":
            number = draw(st.integers(1, used - axis))
            parts.append(rng.random(shape[axis : axis + number]) < 0.5)
            axis += number - 1
        elif kind == "None" and sum(part is None for part in parts) < 2:
            parts.append(None)
            continue
        elif kind == "True" and not any(part is True for part in parts):
            parts.append(True)
            continue
        else:
            parts.append(slice(None))
        axis += 1
    if draw(st.booleans()):
        place = draw(st.integers(0, len(parts)))
        parts.insert(place, ...)
    return tuple(parts)


def is_none(index: object) -> bool:
    """Return whether an index is an array of no booleans."""
    return isinstance(index, np.ndarray) and index.dtype == bool and not index.size


def ours(key: tuple[object, ...], as_handles: bool) -> tuple[object, ...]:
    return tuple(
        mn.asarray(part) if as_handles and isinstance(part, np.ndarray) and part.ndim else part
        for part in key
    )


def array_of(values: np.ndarray, way: str) -> mn.DistArray:
    if way == "sparse" and values.ndim == 2 and values.size:
        cuts = [0, 1, values.shape[0]] if values.shape[0] > 1 else None
        return mn.asarray(sp.csr_array(values), blocks=[cuts, None])
    if way == "plain":
        return mn.asarray(values)
    return mn.asarray(values, blocks=[[0, n // 2, n] if n > 1 else None for n in values.shape])


def dense(array: object) -> np.ndarray:
    found = array.compute() if hasattr(array, "compute") else array
    return found if isinstance(found, np.ndarray | np.generic) else found.todense()


@settings(max_examples=70)
@given(st.data())
def test_any_index_is_numpys(drawn: st.DataObject):
    shape = drawn.draw(st.sampled_from(SHAPES))
    values = np.random.default_rng(1).integers(-2, 4, shape).astype(float)
    key = drawn.draw(keys(shape))
    way = drawn.draw(st.sampled_from(["plain", "cut", "sparse"]))
    array, mine = array_of(values, way), ours(key, drawn.draw(st.booleans()))
    text = f"{shape}[{key}], {way}"
    try:
        expected = values[key]
    except IndexError:
        with pytest.raises(IndexError):
            dense(array[mine])
        return
    try:
        found = array[mine]
    except IndexError:
        if not any(is_none(one) for one in key):
            raise
        return  # NumPy takes no booleans at all for an axis of any length; here that is a mistake
    assert found.shape == np.shape(expected), text
    assert found.dtype == expected.dtype, text
    np.testing.assert_array_equal(dense(found), expected, err_msg=text)

    lengths = tuple(
        1 if drawn.draw(st.integers(0, 3)) == 0 else n for n in found.shape[drawn.draw(st.integers(0, 2)) :]
    )
    new = drawn.draw(
        st.sampled_from([3.0, 0.0, -1.0 - np.arange(np.prod(lengths, dtype=int)).reshape(lengths)])
    )
    before = array + 0
    changed = values.copy()
    try:
        changed[key] = new
    except ValueError:
        with pytest.raises(ValueError):  # noqa: PT011  of NumPy's kind, whatever it says
            array[mine] = new
        return
    array[mine] = new
    assert array.sparse == (way == "sparse" and len(shape) == 2 and values.size > 0), text
    np.testing.assert_array_equal(dense(array), changed, err_msg=f"{text} = {new}")
    np.testing.assert_array_equal(dense(before), values, err_msg=text)
