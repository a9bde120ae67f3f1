"""Assignment to elements makes new versions with NumPy's values: steps, booleans, places, functions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from results import value

import matnb as mn
from matnb.errors import DTypeError, IndexingError, NotScalarError, ShapeError, UnsupportedError
from matnb.lazy.array import Selection
from matnb.lazy.evaluator import looking_only

pytestmark = pytest.mark.session("interpreter")  # what booleans pick is counted
SHAPES = [(6,), (4, 3), (1, 5), (2, 3, 2), (0, 2)]


def same(array: mn.DistArray, expected: np.ndarray, text: str = "") -> None:
    found = value(array)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype), text
    assert found.tobytes() == expected.tobytes(), f"{text}: {found} is not {expected}"


@st.composite
def slices(draw: st.DrawFn, length: int) -> slice:
    bound = st.none() | st.integers(-length - 2, length + 2)
    return slice(draw(bound), draw(bound), draw(st.sampled_from([None, 1, 2, 3, -1, -2, -3])))


@st.composite
def keys(draw: st.DrawFn, shape: tuple[int, ...]) -> object:
    """A slice of any step, a number, booleans, or places, for one array and its NumPy twin."""
    seed = np.random.default_rng(draw(st.integers(0, 2**16)))
    kind = draw(st.sampled_from(["slices", "mask", "rows", "places", "masked axis"]))
    if kind == "mask":
        return seed.random(shape) < 0.5
    if kind == "rows":
        return seed.random(shape[: draw(st.integers(1, len(shape)))]) < 0.5
    if kind == "places":
        length = shape[0]
        return seed.integers(-length, length, draw(st.integers(0, 5))) if length else np.empty(0, int)
    parts: list[object] = []
    for length in shape[: draw(st.integers(1, len(shape)))]:
        is_number = length and draw(st.integers(0, 3)) == 0
        parts.append(draw(st.integers(-length, length - 1)) if is_number else draw(slices(length)))
    if kind == "masked axis":
        parts[-1] = seed.random(shape[len(parts) - 1]) < 0.5
    return tuple(parts)


def as_ours(key: object, as_handle: bool) -> object:
    if isinstance(key, tuple):
        return tuple(as_ours(part, as_handle) for part in key)
    return mn.asarray(key) if as_handle and isinstance(key, np.ndarray) else key


@given(st.data())
def test_assignment_has_the_bits_of_numpys(drawn: st.DataObject):
    shape = drawn.draw(st.sampled_from(SHAPES))
    values = np.random.default_rng(1).normal(size=shape)
    values[values > 1] = np.nan
    key = drawn.draw(keys(shape))
    expected, x = values.copy(), mn.asarray(values)
    before, seen = x + 0, x[::-2]
    target = expected[key].shape
    lengths = tuple(1 if drawn.draw(st.booleans()) else n for n in target[drawn.draw(st.integers(0, 2)) :])
    new = drawn.draw(
        st.sampled_from([7, -0.0, np.arange(np.prod(lengths, dtype=int)).reshape(lengths) - 5.0])
    )
    as_handle = drawn.draw(st.booleans())
    text = f"{shape}[{key}] = {new}"
    x[as_ours(key, as_handle)] = new
    expected[key] = new
    same(x, expected, text)
    same(before, values + 0)
    same(seen, values[::-2])


@given(st.data())
def test_known_booleans_of_the_first_axis_take_a_value_each(drawn: st.DataObject):
    shape = drawn.draw(st.sampled_from([(6,), (4, 3)]))
    mask = np.array(drawn.draw(st.lists(st.booleans(), min_size=shape[0], max_size=shape[0])))
    expected = np.arange(np.prod(shape)).reshape(shape)
    x = mn.asarray(expected)
    new = -np.arange(expected[mask].size).reshape(expected[mask].shape)
    old = x.copy()
    for key in (mask, mask.tolist()):
        same(old[key], expected[mask])
        x[key] = new
        x[key] += 3
    expected[mask] = new + 3
    same(x, expected, f"{mask}")
    with pytest.raises(IndexingError, match=r"booleans of shape \(2,\) for axes of lengths \(\d,\)"):
        x[np.array([True, False])] = np.arange(2)


def changes() -> dict[str, Callable[[object, object], object]]:
    """Ways to change an array, by what they are called; each with a mask of its shape."""

    def by(change: Callable[[object, object], object]) -> Callable[[object, object], object]:
        return change

    def masked(x: object, mask: object) -> None:
        x[mask] += 1.5  # type: ignore[index]  # an array
        x[mask] = np.sqrt(x[mask] * x[mask]) - 2  # type: ignore[index]  # an array

    def rows(x: object, mask: object) -> None:
        x[mask[:, 0]] *= np.arange(3.0)  # type: ignore[index]  # an array
        x[:, mask[0]] -= 5  # type: ignore[index]  # an array
        x[mask[:, 1], 1] = 8  # type: ignore[index]  # an array

    def steps(x: object, mask: object) -> None:
        x[3:0:-1, 1] = np.arange(3.0)  # type: ignore[index]  # an array
        x[::2] += x[::-2]  # type: ignore[index]  # an array
        x[::-1, ::-2] = x[:, ::2] * 2  # type: ignore[index]  # an array

    def places(x: object, mask: object) -> None:
        x[[3, 1, 1]] = np.arange(9.0).reshape(3, 3)  # type: ignore[index]  # an array
        x[np.array([-1, 0, 0])] += 1  # type: ignore[index]  # an array
        x[np.array([2]), ...] = x[0:1]  # type: ignore[index]  # an array

    def fill(x: object, mask: object) -> None:
        x.fill(3)  # type: ignore[attr-defined]  # an array

    def whole(x: object, mask: object) -> None:
        np.add(x, 1, out=x)
        np.multiply(x, x, out=x, where=mask)
        np.negative(x, out=x, where=mask[0])  # type: ignore[index]  # an array

    return {
        "masked": masked, "rows": rows, "steps": steps, "places": places, "fill": fill, "out": whole,
        "copyto": lambda x, mask: np.copyto(x, np.arange(3.0), where=mask),
        "copyto everything": lambda x, mask: np.copyto(x, 7),
        "copyto unsafe": lambda x, mask: np.copyto(x, np.array([[1], [2], [3], [4]], "i1"), casting="unsafe"),
        "putmask": lambda x, mask: np.putmask(x, mask, x * 2),
        "place": lambda x, mask: np.place(x, mask, [5]),
        "absolute": by(lambda x, mask: np.absolute(x, out=x)),
    }  # fmt: skip


@pytest.mark.parametrize("name", changes())
def test_changes_are_numpys(name: str):
    values = np.random.default_rng(3).normal(size=(4, 3))
    mask = values > 0.1
    x, view = mn.asarray(values), mn.asarray(values)
    part, total = view[1:], view.sum()
    changes()[name](x, mn.asarray(mask))
    changes()[name](view, mn.asarray(mask))
    expected = values.copy()
    changes()[name](expected, mask)
    same(x, expected)
    assert view.expression is x.expression
    same(part, values[1:])  # unlike NumPy's view
    np.testing.assert_allclose(value(total), values.sum())


def test_booleans_of_several_axes_behind_others_take_a_value_for_these():
    expected, mask = np.arange(12.0).reshape(2, 3, 2), np.arange(6).reshape(3, 2) % 2 > 0
    x, new = mn.asarray(expected), np.array([[-1.0], [-2.0]])
    x[:, mn.asarray(mask)] = new
    expected[:, mask] = new
    same(x, expected)


def test_selections_are_reduced_and_meet_each_other():
    values = np.arange(12.0).reshape(4, 3)
    x = mn.asarray(values)
    mask, kept = x > 4, values > 4
    for name in ("sum", "prod", "any", "all", "mean"):
        np.testing.assert_allclose(
            value(getattr(x[mask], name)()), getattr(values[kept], name)(), err_msg=name
        )
        assert value(getattr(np, name)(x[mask])) == value(getattr(x[mask], name)()), name
    assert np.isnan(value(x[x > 99].mean()))
    np.testing.assert_allclose(value(x[x[:, 0] > 4].mean()), values[values[:, 0] > 4].mean())
    x[mask] = x[mask] + (2 * x)[mask]
    values[kept] *= 3
    same(x, values)
    whole = mn.asarray(np.array([2, -1, 3]))
    whole[whole > 0] = 2 ** whole[whole > 0]  # the negative power is not asked for
    same(whole, np.array([4, -1, 8]))
    with looking_only():
        assert "booleans of shape (4, 3) pick" in repr(x[mask])


def test_sparse_arrays_stay_sparse_whatever_is_assigned():
    dense = np.array([[0.0, 1, 5], [np.nan, 0, 0], [9, 0, 2]])
    A = mn.asarray(sp.csr_array(dense))
    A[A > 1] = 7
    dense[dense > 1] = 7
    keep = np.eye(3) > 0
    A[keep] = 0
    dense[keep] = 0
    A[A > 6] *= 2
    dense[dense > 6] *= 2
    A[mn.asarray([True, False, False])] = 0
    dense[0] = 0
    new = np.arange(3.0)
    for key, one in (
        (keep, 1.0),
        ((slice(1), keep[0]), 8),
        (keep, new),
        ([0, 1], 0),
        ((slice(None), 2), 0),
        ((2, 1), 4.0),
        (([2, 0, 2], [0, 1, 0]), new + 5),
        (1, new),
        ((slice(None, None, -2), [0, 2]), new[1:]),
    ):
        handles = tuple(map(mn.asarray, key)) if isinstance(key, tuple) and key[0] == [2, 0, 2] else key
        A[mn.asarray(key) if isinstance(key, np.ndarray) else handles] = one
        dense[key] = one
        assert A.sparse, key
        same(A, dense, str(key))
    assert A.nnz == np.count_nonzero(dense)  # what was written over with zeros is not an entry


def test_selections_are_arrays_wherever_their_number_is_asked_for():
    values = np.arange(12.0).reshape(4, 3)
    x, kept = mn.asarray(values), values > 4
    chosen, plain = x[x > 4], values[kept]
    assert len(chosen) == len(plain)
    assert [float(one) for one in chosen] == plain.tolist()
    for use in (
        lambda a: a[1:-1:2],
        lambda a: a + np.arange(7.0),
        lambda a: a[a > 7] * 2,
        lambda a: a.sum(axis=0, keepdims=True),
        lambda a: np.stack([a, a]) if isinstance(a, np.ndarray) else np.concatenate([a[None], a[None]]),
        lambda a: a.std(),
        lambda a: np.add.reduce(a),
        lambda a: a.reshape(7, 1) @ np.ones((1, 2)),
    ):
        np.testing.assert_allclose(value(use(chosen)), use(plain))
    again = chosen
    chosen[0] = -1
    chosen *= 2
    plain[0] = -1
    plain *= 2
    same(chosen, plain)
    assert again is chosen
    same(x, values)  # what is picked is a copy


def test_refusals_say_what_to_do_instead():
    x, A, mask = mn.arange(6), mn.asarray(np.ones((3, 4))), np.ones(6, bool)
    known = mn.asarray(mask)
    before = x.expression, A.expression
    refused: list[tuple[mn.DistArray, object, object, type[Exception], str]] = [
        (x, known, 0.5j, DTypeError, "0.5j cannot be stored in"),
        (x, known, 2**63, DTypeError, "does not fit dtype int64"),
        (x, known, np.arange(5), ShapeError, "the 6 elements"),
        (x, known, mn.arange(6)[mn.arange(6) > 2], ShapeError, "the 6 elements"),
        (x, (known, mn.arange(6)), 1, IndexingError, "too many indices: 2 for an array with 1 axes"),
        (x, known, np.ones((1, 1), int), DTypeError, "give one axis"),
        (x, known[:5], 1, IndexingError, r"booleans of shape \(5,\) for axes of lengths \(6,\)"),
        (x, (known, 0), 1, IndexingError, "too many indices: 2 for an array with 1 axes"),
        (A, mn.asarray(mask[:3]), np.ones(3), ShapeError, r"\(3,\)"),
        (A, mn.arange(3), np.ones(3), ShapeError, r"\(3,\)"),
        (A, slice(None, None, 2), np.ones(3), ShapeError, r"\(3,\)"),
    ]
    for array, key, new, error, text in refused:
        with pytest.raises(error, match=text):
            array[key] = new
    assert (x.expression, A.expression) == before
    chosen = x[known]
    assert isinstance(chosen, Selection)
    for error, text, use in (
        (ShapeError, "do not broadcast", lambda: chosen + x[x > 1]),
        (NotScalarError, "ambiguous", lambda: bool(chosen)),
        (IndexError, "index 6 is out of bounds for axis 0 of length 6", lambda: x.__setitem__([0, 6], 1)),
        (IndexError, "index -7 is out of bounds for axis 0 of length 6", lambda: x[np.repeat([5, -7], 99)]),
        (DTypeError, "give booleans", lambda: np.add(x, 1, out=x, where=x)),
        (UnsupportedError, "into a ndarray", lambda: np.copyto(np.ones(6), x)),
        (DTypeError, "casting='safe'", lambda: np.copyto(x, np.ones(6), casting="safe")),
    ):
        with pytest.raises(error, match=text):
            use()
    x[mn.arange(4, 7)] = 1
    with pytest.raises(IndexError, match="index 6 is out of bounds for axis 0 of length 6"):
        value(x)


def _in_place(w: np.ndarray, x: object) -> None:
    w += x
    w[..., 1:] *= x[1:]  # type: ignore[index]  # an array
    np.subtract(w, x, out=w, where=x > 1.5)  # type: ignore[operator]  # an array
    w /= x.sum()  # type: ignore[attr-defined]  # an array


@pytest.mark.parametrize("shape", [(3,), (2, 3)])
def test_numpys_arrays_are_changed_by_ours_as_by_numpys(shape: tuple[int, ...]):
    values = np.array([1.0, 2.0, 3.0])
    found, expected = np.ones(shape), np.ones(shape)
    _in_place(found, mn.asarray(values))
    _in_place(expected, values)
    np.testing.assert_array_equal(found, expected)
    assert np.sqrt(mn.asarray(values), out=found) is found
    for bad in (np.zeros(3, int), np.zeros(2)):
        before = bad.copy()
        with pytest.raises((TypeError, ShapeError, ValueError)):
            bad += mn.asarray(values)
        np.testing.assert_array_equal(bad, before)
