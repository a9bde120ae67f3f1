"""NumPy's functions of elements that are no ufuncs, on nested arrays: as on the values, and as Awkward's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from drawn_segments import Segments, drawn_segments
from hypothesis import given, settings

import matnb as mn
from matnb.errors import OptionError, ShapeError

OF_ONE: list[Callable[[Any], Any]] = [
    lambda x: np.round(x, 1),
    lambda x: np.around(x, decimals=0),
    lambda x: np.clip(x, 2, 5),
    lambda x: np.clip(x, a_min=None, a_max=3),
    lambda x: np.clip(x, min=1),
    lambda x: np.nan_to_num(x, nan=7),
    lambda x: np.isin(x, [1, 4]),
    lambda x: np.isin(element=x, test_elements=[1, 4], invert=True),
    lambda x: np.isclose(x, 3.0, equal_nan=True),
    lambda x: np.where(x > 3, x, 0),
    lambda x: np.where(x > 3, 1, -x),
    lambda x: np.real(x),
    lambda x: np.angle(x, deg=True),
    lambda x: np.isreal(x),
    lambda x: np.fix(x),
    lambda x: np.sinc(x),
]
LISTS = [[3.25, -1.0], [], [2.0], [5.0, 4.0]]


pytestmark = pytest.mark.session("interpreter", "two threads")


@given(drawn_segments(("float64", "int64", "int32")))
@settings(max_examples=8)
def test_they_are_numpys_on_the_values(drawn: Segments) -> None:
    nested = drawn.nested()
    for number, function in enumerate(OF_ONE):
        found, wanted = function(nested), function(drawn.values)
        assert found.dtype == wanted.dtype, number
        np.testing.assert_array_equal(found.values.compute(), wanted, err_msg=str(number))
        assert found.counts.compute().tolist() == drawn.counts.tolist()


@given(drawn_segments(("float64", "int64")))
@settings(max_examples=8)
def test_a_value_for_each_segment_stands_beside_its_values(drawn: Segments) -> None:
    nested, counts = drawn.nested(), drawn.counts
    per_value = np.repeat(counts, counts)
    beside = mn.asarray(counts) if counts.size else counts
    assert np.array_equal(np.clip(nested, 1, beside).values, np.clip(drawn.values, 1, per_value), True)
    near = np.isclose(drawn.values, 3.0, 0.0, per_value)
    assert np.array_equal(np.isclose(nested, 3.0, rtol=0.0, atol=beside).values, near)
    assert np.array_equal(nested.clip(max=nested).values, drawn.values, equal_nan=True)
    found: Any = np.where(counts > 3, nested, -1)
    assert np.array_equal(found.values, np.where(per_value > 3, drawn.values, -1), equal_nan=True)


def test_deeper_arrays_and_awkward() -> None:
    ak = pytest.importorskip("awkward")
    nested = mn.nested.from_lists(LISTS)
    pairs = [(nested, ak.Array(LISTS))]
    pairs.append((mn.nested.unflatten(nested, [3, 1]), ak.unflatten(pairs[0][1], [3, 1])))
    for one, of_ak in pairs:
        found: Any = np.where(one > 2, one, 0)
        assert found.tolist() == ak.where(of_ak > 2, of_ak, 0).tolist()
        found = np.where(one.sum() > 3, one, -one)
        assert found.tolist() == ak.where(ak.sum(of_ak, axis=-1) > 3, of_ak, -of_ak).tolist()
        assert np.round(one, 1).tolist() == one.round(1).tolist() == ak.round(of_ak, 1).tolist()
        assert np.isclose(one, 5).tolist() == ak.isclose(of_ak, 5).tolist()
        assert one.clip(0, 4).tolist() == np.minimum(np.maximum(of_ak, 0), 4).tolist()
        whole, part = np.divmod(one, 2)
        assert (whole * 2 + part).tolist() == of_ak.tolist()


def test_arrays_with_positions_meet_as_in_arithmetic() -> None:
    A, B = (
        sp.csr_array([[0, 2.0, 1], [0, 0, 0], [4, 0, 0]]),
        sp.csr_array([[1.0, 2, 0], [0, 0, 0], [4, 0, 7]]),
    )
    one, other = mn.nested.from_rows(A), mn.nested.from_rows(B)
    found: Any = np.where(one > other, one, other)
    wanted = A.maximum(B).tocsr()
    assert found.values.compute().tolist() == wanted.data.tolist()
    assert found.positions.compute().tolist() == wanted.indices.tolist()
    assert np.clip(one, 1.5, None).positions.compute().tolist() == A.indices.tolist()


def test_other_segments_are_refused() -> None:
    nested = mn.nested.from_lists(LISTS)
    with pytest.raises(ShapeError, match="where: 4 and 2 segments"):
        np.where(nested > 0, nested[:2], 0)
    with pytest.raises(ShapeError, match="clip: segment 0 has length 2 in one and 0 in the other"):
        np.clip(nested, 0, nested[::-1][[1, 0, 2, 3]][[2, 0, 1, 3]])
    with pytest.raises(ShapeError, match=r"where: .*\(3,\) beside 4 segments"):
        np.where(nested > 0, nested, np.ones(3))
    with pytest.raises(OptionError, match="one argument, or three"):
        np.where(nested > 0, nested)
