"""What slides along an array is cut as the array is: windows are seen, not made, and bits follow no cuts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matnb as mn
from matnb.expr.traverse import topological
from matnb.lazy.functions import sliding
from matnb.ops.sliding import Windows
from matnb.plan.lower import lower
from matnb.program.plan import Workers

sliding_window_view = np.lib.stride_tricks.sliding_window_view
REDUCTIONS = ("sum", "prod", "min", "max", "any", "all", "mean", "std", "var")


TWO_WORKERS = pytest.mark.session("two workers")


def projected(array: mn.DistArray) -> int:
    """Return the most memory that computing an array is said to take."""
    return lower([array.expression], (), {}, Workers((0, 1), 1, 0)).projected_bytes


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_of_windows_take_memory_by_the_array_and_not_by_the_windows(name: str) -> None:
    x, length = mn.random.default_rng(0).random(200_000), 1000
    found = getattr(sliding_window_view(x, length), name)(axis=-1)
    assert not any(isinstance(one, Windows) for one in topological([found.expression]))
    made_bytes = x.size * 8 * length
    assert projected(found) < 20 * x.size * 8 < made_bytes / 40
    assert (
        projected(sliding_window_view(x, length) + 1) > made_bytes
    )  # which is refused where it does not fit


@TWO_WORKERS
@settings(max_examples=20)
@given(
    st.integers(1, 40),
    st.integers(1, 40),
    st.sampled_from(["float64", "float32", "complex128", "int16", "bool"]),
    st.integers(1, 5),
    st.integers(8, 20),
)
def test_a_convolution_has_numpys_bits_however_its_arrays_are_cut(
    size: int, weights: int, dtype: str, blocks: int, most: int
) -> None:
    rng = np.random.default_rng(size * weights)
    a, v = ((10 * rng.normal(size=one)).astype(dtype) for one in (size, weights))
    cut, other = (mn.asarray(one, blocks=min(blocks, one.size)) for one in (a, v))
    calls = [(name, mode) for name in ("convolve", "correlate") for mode in ("full", "same", "valid")]
    found = mn.compute(*(getattr(np, name)(cut, other, mode) for name, mode in calls))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sliding, "_MOST_WEIGHTS", most)
        pieces = mn.compute(*(getattr(np, name)(cut, other, mode) for name, mode in calls))
    for (name, mode), one, several in zip(calls, found, pieces, strict=True):
        expected = getattr(np, name)(a, v, mode)
        assert (one.shape, one.dtype) == (expected.shape, expected.dtype)
        assert one.tobytes() == expected.tobytes(), (name, mode)
        np.testing.assert_allclose(several, expected, 1e-4, 1e-4)


@TWO_WORKERS
@settings(max_examples=6)
@given(st.integers(2, 60), st.data())
def test_reductions_of_windows_have_the_same_bits_for_any_cuts(size: int, data: st.DataObject) -> None:
    x = np.random.default_rng(size).normal(size=(size, 3))
    length = data.draw(st.integers(1, size))
    cuts = (1, 2, min(7, size))
    seen = [sliding_window_view(mn.asarray(x, blocks=blocks), length, axis=0) for blocks in cuts]
    found = mn.compute(*(getattr(one, name)(axis=-1) for name in REDUCTIONS for one in seen))
    for place, name in enumerate(REDUCTIONS):
        results = found[place * len(cuts) : (place + 1) * len(cuts)]
        assert len({one.tobytes() for one in results}) == 1, name
        expected = getattr(sliding_window_view(x, length, axis=0), name)(axis=-1)
        np.testing.assert_allclose(results[0], expected, 1e-12, 1e-12)
