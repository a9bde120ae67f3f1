"""Groups, bins and a user's functions where no call against NumPy shows them: loops, memory, errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import matnb as mn
from matnb.backend.tasks import executor
from matnb.errors import IndexingError, KernelError, LoopBodyError, OptionError, ShapeError, TooLargeError
from matnb.lazy.functions import grouping as grouping_functions

pytestmark = pytest.mark.session("two workers")


def counting(path: Path) -> Any:
    """Return a function that leaves a line in a file whenever it is called."""

    def called(block: np.ndarray) -> np.ndarray:
        with path.open("a") as file:  # by the function `open` it would read what cannot be followed
            file.write("called\n")
        return block + 1

    return called


def num_calls(path: Path) -> int:
    return len(path.read_text().splitlines()) if path.exists() else 0


def test_a_function_is_called_again_unless_it_is_pure(tmp_path: Path) -> None:
    fn, path = counting(tmp_path / "calls"), tmp_path / "calls"
    x = mn.asarray(np.arange(1000.0), blocks=2)
    for turn in range(1, 3):
        y = mn.map_blocks(fn, x, shape=x.shape, dtype=x.dtype)
        np.testing.assert_array_equal(y.compute(), np.arange(1000.0) + 1)
        np.testing.assert_array_equal((y + 1).compute(), np.arange(1000.0) + 2)  # while the handle lives
        assert num_calls(path) == 2 * turn
    for _ in range(2):
        y = mn.map_blocks(fn, x, shape=x.shape, dtype=x.dtype, pure=True)
        y.compute()
        del y
    assert num_calls(path) == 6


def test_what_is_made_anew_is_not_remembered() -> None:
    mn.memo.clear()
    x = mn.asarray(np.arange(1000.0), blocks=2)
    for pure, kept in ((False, 0), (True, 1)):
        y = mn.map_blocks(np.negative, x, pure=pure) * 2
        y.compute()
        del y
        assert len([one for one in mn.memo.entries() if not one.has_handle]) == kept
    mn.memo.clear()


def test_an_error_of_a_function_is_told_as_its_own() -> None:
    def half(block: np.ndarray) -> np.ndarray:
        if block.max() > 1:
            raise LookupError("no half of this")
        return block / 2

    x = mn.arange(1000.0)
    with pytest.raises(KernelError, match="half raised LookupError: no half of this") as caught:
        mn.map_blocks(half, x).compute()
    assert caught.value.raised_at is not None
    assert caught.value.raised_at[0] == __file__
    with pytest.raises(KernelError, match="<lambda> raised LookupError"):
        mn.apply_along_axis(lambda lane, _: half(lane), 0, x.reshape(4, 250), 1).compute()
    np.testing.assert_array_equal(mn.map_blocks(half, x[:2]).compute(), [0.0, 0.5])  # and goes on


@pytest.mark.parametrize(
    ("fn", "options", "message"),
    [
        (3, {}, "3 is not a function"),
        (lambda block: block.sum(), {}, r"gave shape \(\) for a block of shape \(2,\)"),
        (lambda block: block.sum(axis=3), {}, "raised AxisError on ones"),
        (lambda block: block, {"shape": (4,)}, r"a result of shape \(4,\) from an array of shape \(10,\)"),
    ],
)
def test_a_function_that_gives_no_rows_is_refused(fn: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises((OptionError, ShapeError), match=message):
        mn.map_blocks(fn, mn.arange(10.0), **options)


def test_a_function_that_cannot_travel_is_refused() -> None:
    x = mn.arange(10.0)
    with pytest.raises(OptionError, match="cannot be sent to a worker"):
        mn.map_blocks(lambda block: block + x, x, shape=x.shape, dtype=x.dtype)


def test_a_result_of_another_shape_than_declared_is_refused() -> None:
    x = mn.arange(10.0)
    told = r"\(test_grouping.py, line \d+\) gave .* \(1,\) for the block \[0:10\] where .* \(10,\) belongs"
    with pytest.raises(ShapeError, match=told) as caught:
        mn.map_blocks(lambda block: block[:1], x, shape=(10,), dtype=float).compute()
    assert caught.value.raised_at is not None
    assert caught.value.raised_at[0] == __file__
    assert "on worker 0" in caught.value.__notes__


def test_a_long_lane_is_refused() -> None:
    with pytest.raises(TooLargeError, match="a lane of 20,000,000 elements"):
        np.apply_along_axis(np.sum, 0, mn.zeros(20_000_000))


def test_labels_group_inside_a_loop() -> None:
    rng = np.random.default_rng(0)
    keys, values = rng.integers(0, 7, 500), rng.random(500)
    labels = mn.asarray(keys)

    def step(v: mn.DistArray) -> mn.DistArray:
        means = mn.groupby(labels, num_groups=9).mean(v)
        return v - np.nan_to_num(means)[labels]

    found, _ = mn.iterate(step, mn.asarray(values), max_iterations=3)
    expected = values - (np.bincount(keys, values) / np.bincount(keys))[keys]
    np.testing.assert_allclose(np.asarray(found), expected, atol=1e-12)
    groups = mn.groupby(mn.asarray(values.round(1)))  # made before, and used inside
    found, _ = mn.iterate(lambda v: v + groups.sum(v).sum(), mn.asarray(values), max_iterations=2)
    assert np.isclose(float(found[0]), values[0] + values.sum() * 502)
    with pytest.raises(LoopBodyError, match="the number of groups depends on data"):
        mn.iterate(lambda v: v + mn.groupby(v).sum(v).sum(), mn.asarray(values), max_iterations=2)


def test_a_key_beyond_the_groups_is_an_error() -> None:
    with pytest.raises(IndexingError, match="label 9 at position 2"):
        mn.groupby(mn.asarray([0, 1, 9]), num_groups=3).count().compute()


def test_groups_tell_what_they_are() -> None:
    groups = mn.groupby((mn.asarray([3.5, 1, 3.5]), [True, False, True]))
    assert repr(groups) == "GroupBy: 3 rows in 2 groups by keys of float64, bool"
    assert len(groups) == groups.num_groups == 2
    with pytest.raises(ShapeError, match=r"values have shape \(2,\) for 3 keys"):
        groups.sum([1, 2])


@pytest.mark.parametrize("most_merged", [100, 1 << 20])
def test_many_groups_over_several_blocks(most_merged: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouping_functions, "_MOST_MERGED", most_merged)  # keys that one worker compares
    mn.memo.clear()
    rng = np.random.default_rng(1)
    keys = rng.permutation(80_000) * 2**45  # far apart
    keys[1::3] = keys[::3][: len(keys[1::3])]
    values = rng.random(keys.size)
    distinct, places = np.unique(keys, return_inverse=True)
    groups = mn.groupby(mn.asarray(keys, blocks=5))
    assert isinstance(groups.keys, mn.DistArray)
    np.testing.assert_array_equal(groups.keys.compute(), distinct)
    np.testing.assert_array_equal(groups.count().compute(), np.bincount(places))
    np.testing.assert_allclose(groups.sum(values).compute(), np.bincount(places, values), rtol=1e-12)


def test_values_of_many_labels_go_where_they_are_combined(monkeypatch: pytest.MonkeyPatch) -> None:
    runner_of, largest = executor.runner_of, 0

    def watched(operator: Any, share: Any) -> Any:
        run = runner_of(operator, share)

        def noted(values: Any, memory: Any) -> Any:
            nonlocal largest
            found = run(values, memory)
            largest = max(largest, int(getattr(found, "nbytes", 0)))
            return found

        return noted

    monkeypatch.setattr(executor, "runner_of", watched)
    rng = np.random.default_rng(3)
    labels, values = rng.integers(0, 200_000, 6000), rng.random(6000)
    found = mn.scatter_reduce(mn.asarray(values, blocks=3), mn.asarray(labels, blocks=3), 200_000).persist()
    assert largest <= 200_000 * 8 / 2  # a worker's part of the result
    np.testing.assert_allclose(found.compute(), np.bincount(labels, values, 200_000), rtol=1e-12)
    labels[4000] = 200_001
    with pytest.raises(IndexingError, match="label 200001 at position 4000: labels go from 0 to 199999"):
        mn.scatter_reduce(values, mn.asarray(labels, blocks=3), 200_000).compute()


@pytest.mark.parametrize("bins", [10, np.linspace(0.1, 0.9, 38)])
def test_every_value_is_in_the_bin_that_numpy_puts_it_in(bins: Any) -> None:
    # Values on the edges themselves, and next to them.
    edges = np.linspace(0, 1, 11) if isinstance(bins, int) else bins
    values = np.concatenate([edges, np.nextafter(edges, 2), np.nextafter(edges, -2), np.linspace(0, 1, 4001)])
    for dtype in (np.float64, np.float32):
        one = values.astype(dtype)
        found = mn.histogram(mn.asarray(one, blocks=3), bins, (0, 1))[0]
        np.testing.assert_array_equal(found.compute(), np.histogram(one, bins, (0, 1))[0])


def test_a_histogram_is_made_inside_a_loop() -> None:
    values = np.random.default_rng(2).random(300)
    found, _ = mn.iterate(
        lambda counts: counts + mn.histogram(mn.asarray(values) * counts.max(), 5)[0],
        mn.asarray(np.ones(5, np.int64)),
        max_iterations=2,
    )
    assert found.compute().sum() == 605
