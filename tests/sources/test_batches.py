"""Laws of sources: each row once a pass, in order, in equal batches; what is held out is never given."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from itertools import chain, pairwise

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings

import matnb as mn
from matnb.errors import DTypeError, OptionError, ShapeError
from matnb.sources import BatchSource

pytestmark = pytest.mark.session("interpreter")


def numbered(rows: int, is_sparse: bool = False) -> tuple[object, np.ndarray]:
    """Return rows that have their numbers, from 1 on, in the first column, and these as targets."""
    X = np.column_stack([np.arange(1.0, rows + 1), np.full(rows, 2.0)])
    return (sp.csr_array(X) if is_sparse else X), np.arange(1, rows + 1)


def dense(X: mn.DistArray) -> np.ndarray:
    return np.asarray(X.to_scipy().toarray() if X.sparse else X.compute())


def rows_of(source: BatchSource) -> list[list[int]]:
    """Return the numbers of the rows of each batch, once X and y were found to agree."""
    found = []
    for batch in source:
        numbers = dense(batch.X)[:, 0].astype(int).tolist()
        assert batch.y is None or batch.y.compute().tolist() == numbers
        found.append(numbers)
    return found


def flat(batches: list[list[int]]) -> list[int]:
    return [*chain.from_iterable(batches)]


@st.composite
def sources(draw: st.DrawFn) -> tuple[BatchSource, int]:
    """Return a source of some kind, and how many rows it has."""
    rows, size = draw(st.integers(1, 40)), draw(st.integers(1, 12))
    shuffle, seed = draw(st.booleans()), draw(st.integers(0, 3))
    X, y = numbered(rows, draw(st.booleans()))
    options = {"batch_size": size, "shuffle": shuffle, "seed": seed}
    if draw(st.booleans()):
        return mn.sources.memory(X, y if draw(st.booleans()) else None, **options), rows
    cuts = [0, *sorted(draw(st.lists(st.integers(0, rows), max_size=4))), rows]

    def call(k: int) -> tuple[object, np.ndarray]:
        return X[cuts[k] : cuts[k + 1]], y[cuts[k] : cuts[k + 1]]

    return mn.sources.calls(call, len(cuts) - 1, **options), rows


@settings(max_examples=60)
@given(sources())
def test_each_row_comes_once_a_pass_in_equal_batches(made: tuple[BatchSource, int]):
    source, rows = made
    batches = rows_of(source)
    assert sorted(flat(batches)) == list(range(1, rows + 1))
    if source.seed is None:
        assert flat(batches) == list(range(1, rows + 1))
    assert [len(one) for one in batches[:-1]] == [source.batch_size] * (len(batches) - 1)
    assert rows_of(source) == batches, "a pass is the same when it is gone through again"
    places = [(one.start, one.number, one.epoch) for one in source]
    assert places == [(k * source.batch_size, k, 0) for k in range(len(batches))]


@settings(max_examples=40)
@given(sources(), st.integers(2, 7))
def test_rows_held_out_are_never_in_training(made: tuple[BatchSource, int], every: int):
    source, rows = made
    training, held_out = source.holdout(every)
    kept, held = (sorted(flat(rows_of(one))) for one in (training, held_out))
    assert sorted(kept + held) == list(range(1, rows + 1))
    again = sorted(flat(rows_of(training.repeat(3))))
    assert again == sorted(3 * kept)
    if source.series.is_here:
        assert held == list(range(every, rows + 1, every))


@settings(max_examples=40)
@given(sources(), st.integers(0, 5), st.integers(1, 3))
def test_take_and_repeat(made: tuple[BatchSource, int], number: int, passes: int):
    source, _ = made
    batches = rows_of(source)
    assert rows_of(source.take(number)) == batches[:number]
    repeated = [*source.repeat(passes)]
    assert [one.epoch for one in repeated] == [k for k in range(passes) for _ in batches]
    if source.seed is None:
        assert rows_of(source.repeat(passes)) == batches * passes


def test_a_pass_is_shuffled_from_seed_and_pass_alone():
    X, y = numbered(200)
    source = mn.sources.memory(X, y, batch_size=9, shuffle=True, seed=5)
    first, second = (
        [dense(one.X)[:, 0].tolist() for one in source.repeat(2) if one.epoch == epoch] for epoch in (0, 1)
    )
    assert first != second
    assert [dense(one.X)[:, 0].tolist() for one in source.batches(epoch=1)] == second
    other = mn.sources.memory(X, y, batch_size=9, shuffle=True, seed=6)
    assert rows_of(other) != rows_of(source)
    assert rows_of(mn.sources.memory(X, y, batch_size=9)) != rows_of(source)


def test_map_is_applied_to_each_batch():
    X, y = numbered(5)
    source = mn.sources.memory(X, y, batch_size=2).map(lambda X, y: (X * y[:, None], y)).map(lambda X, y: X)
    found = [batch.X.compute()[:, 0].tolist() for batch in source]
    assert found == [[1, 4], [9, 16], [25]]
    assert source.first.y is None
    with pytest.raises(ShapeError, match=r"map: X of shape \(1, 2\) for a batch of 2 rows"):
        next(iter(source.map(lambda X: X[:1])))
    with pytest.raises(DTypeError, match="returns int"):
        next(iter(source.map(lambda X: 1)))


@pytest.mark.parametrize("in_loop", [False, True])
def test_map_takes_as_many_arguments_as_batches_have_arrays(in_loop: bool):
    X, y = numbered(5)

    def through(source: BatchSource) -> None:
        if in_loop:
            mn.iterate(lambda w, batch: w + batch.X.sum(axis=0), mn.zeros(2), over=source)
        else:
            next(iter(source))

    with pytest.raises(OptionError, match=r"takes \(X\), and batches have X and y: .* called as fn\(X, y\)"):
        through(mn.sources.memory(X, y, batch_size=2).map(lambda X: X))
    with pytest.raises(
        OptionError, match=r"takes \(X, y\), and batches have X and no y: .* called as fn\(X\)"
    ):
        through(mn.sources.memory(X, batch_size=2).map(lambda X, y: X))
    through(mn.sources.memory(X, y, batch_size=2).map(lambda X, *more: X))
    through(mn.sources.memory(X, batch_size=2).map(np.negative))


def test_map_does_not_hide_errors_of_the_function():
    X, y = numbered(5)
    with pytest.raises(TypeError, match="len"):
        next(iter(mn.sources.memory(X, y, batch_size=2).map(lambda X, y: (len(3), y))))


@settings(max_examples=40)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=3), st.booleans(), st.booleans(), st.integers(1, 4))
def test_joined_and_blended_give_each_row_once(rows: list[int], shuffle: bool, blend: bool, size: int):
    ends = np.cumsum([0, *rows]).tolist()
    X, y = numbered(ends[-1])
    parts = [
        mn.sources.memory(X[start:stop], y[start:stop], batch_size=size, shuffle=shuffle)
        for start, stop in pairwise(ends)
    ]
    source = mn.sources.blended(*parts, seed=3) if blend else mn.sources.joined(*parts)
    batches = rows_of(source)
    assert rows_of(source) == batches
    assert sorted(flat(batches)) == list(range(1, ends[-1] + 1))
    if not blend and not shuffle:
        assert flat(batches) == sorted(flat(batches))
    assert all(len(one) == size for one in batches[:-1])
    assert source.num_rows == ends[-1]


def test_sources_that_do_not_fit_together_are_numbered():
    X = np.ones((3, 2))
    source = mn.sources.joined(
        mn.sources.memory(X, np.ones(3), batch_size=2), mn.sources.memory(X, batch_size=2)
    )
    expected = (
        r"source 1 \(mn.sources.memory\) has 0 targets a row where source 0 \(mn.sources.memory\) has 1"
    )
    with pytest.raises(ShapeError, match=expected):
        flat(rows_of(source))


def test_what_is_blended_comes_by_its_shares():
    parts = [mn.sources.calls(lambda k, one=one: np.full((2, 1), one), 300) for one in (0, 1)]
    source = mn.sources.blended(*parts, shares=[3, 1]).take(200)
    share = np.mean([one.X.compute()[0, 0] for one in source])
    assert 0.15 < share < 0.35


def test_what_is_known_before_it_is_gone_through():
    X, y = numbered(21, is_sparse=True)
    source = mn.sources.memory(X, y, batch_size=4)
    assert (source.num_rows, source.num_batches, source.num_features, source.has_targets) == (21, 6, 2, True)
    assert (source.take(2).num_rows, source.holdout(4).training.num_rows) == (8, 16)
    calls = mn.sources.calls(lambda k: np.ones((2, 3)), 4)
    assert (calls.num_rows, calls.num_features, calls.has_targets, calls.batch_size) == (None, 3, False, 2)


def test_rows_held_out_are_counted_within_the_batches_taken():
    X, y = numbered(40)
    training, held_out = mn.sources.memory(X, y, batch_size=2).holdout(every=5)
    assert (held_out.num_rows, held_out.num_batches) == (8, 4)
    assert (held_out.take(1).num_rows, held_out.take(1).num_batches) == (2, 1)
    assert training.take(3).num_rows == len(flat(rows_of(training.take(3)))) == 6
    assert "without one row of 5" in repr(training)
    with pytest.raises(OptionError, match=r"after take\(2\): call holdout first"):
        mn.sources.memory(X, y, batch_size=2).take(2).holdout(3)


def test_calls_of_two_dtypes_are_refused():
    def call(k: int) -> tuple[np.ndarray, np.ndarray]:
        return np.ones((2, 1), np.float32 if k == 1 else np.float64), np.ones(2)

    with pytest.raises(DTypeError, match="call 1 has X of float32 where call 0 has float64"):
        list(read_by(call))


def read_by(call: Callable[[int], object], number: int = 9) -> BatchSource:
    return mn.sources.calls(call, number, batch_size=2)


def test_two_batches_are_read_ahead_and_no_more():
    called: list[int] = []
    reached = threading.Event()

    def call(k: int) -> np.ndarray:
        called.append(k)
        if k == 3:
            reached.set()
        return np.full((2, 1), k)

    batches = iter(read_by(call))
    next(batches)
    assert reached.wait(10), "two wait, and a third is made"
    assert called == [0, 1, 2, 3]
    batches.close()
    assert len(called) == 4


def threads() -> set[str]:
    return {one.name for one in threading.enumerate() if one.name == "matnb-source"}


@pytest.mark.parametrize("how", ["break", "raise", "end"])
def test_the_reading_thread_ends_with_the_loop(how: str):
    def consume() -> None:
        for batch in read_by(lambda k: np.ones((2, 1))):
            assert threads() or batch.number
            if how == "break" and batch.number == 2:
                break
            if how == "raise" and batch.number == 2:
                raise KeyError

    try:
        consume()
    except KeyError:
        assert how == "raise"
    assert not threads()


def test_an_error_comes_at_its_batch():
    def call(k: int) -> np.ndarray:
        if k == 3:
            raise ValueError("the fourth")
        return np.full((2, 1), k)

    seen: list[int] = []

    with pytest.raises(ValueError, match="the fourth") as error:
        seen.extend(batch.number for batch in read_by(call))
    assert error.value.__notes__ == ["in call 3 of call, of a source"]
    assert seen == [0, 1, 2]
    assert not threads()


def test_a_function_may_fill_one_array_again_and_again():
    room = np.empty((2, 1))

    def call(k: int) -> np.ndarray:
        room[:] = k
        return room

    assert [batch.X.compute()[0, 0] for batch in read_by(call, 5)] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda k: np.ones((2, 1 + k // 2)), ShapeError, "call 2 has 2 columns where call 0 has 1"),
        (lambda k: np.ones(2), ShapeError, r"call 0: X has shape \(2,\)"),
        (lambda k: (np.ones((2, 1)), np.ones(3)), ShapeError, r"call 0: y of shape \(3,\)"),
        (lambda k: (np.ones((2, 1)), None if k else np.ones(2)), ShapeError, "call 1 has 0 targets a row"),
        (lambda k: np.array([["a"], ["b"]]), DTypeError, "call 0: X has dtype <U1"),
        (lambda k: np.array([[1], [np.nan if k == 2 else 1]]), OptionError, "call 2: row 1, column 0, of X"),
        (lambda k: sp.csr_array([[0.0], [np.inf]]), OptionError, "call 0: row 1, column 0, of X is infinite"),
        (lambda k: (np.ones((2, 1)), np.array([np.nan, 1])), OptionError, "call 0: row 0 of y is NaN"),
        (lambda k: sp.csr_array((2, 1)) if k else np.ones((2, 1)), DTypeError, "call 1 is sparse where"),
        (lambda k: mn.ones((2, 1)), OptionError, "call 0 returns a DistArray"),
    ],
)  # fmt: skip
def test_what_is_no_batch_is_refused(call: Callable[[int], object], error: type[Exception], match: str):
    with pytest.raises(error, match=match):
        list(read_by(call))


def bad_arguments() -> Iterator[tuple[Callable[[], object], type[Exception]]]:
    X, y = numbered(4)
    source = mn.sources.memory(X, y, batch_size=2)
    yield lambda: mn.sources.memory(X, y, batch_size=0), OptionError
    yield lambda: mn.sources.memory(X, y, batch_size=1.5), DTypeError
    yield lambda: mn.sources.memory(X, y[:3], batch_size=2), ShapeError
    yield lambda: mn.sources.memory(X[:, 0], batch_size=2), ShapeError
    yield lambda: mn.sources.memory(X * np.nan, batch_size=2), OptionError
    yield lambda: mn.sources.memory(X, batch_size=2, shuffle=True, seed=-1), OptionError
    yield lambda: mn.sources.calls(lambda k: X, 0), OptionError
    yield lambda: source.holdout(1), OptionError
    yield lambda: source.holdout(3).training.holdout(2), OptionError
    yield lambda: source.take(2).holdout(3), OptionError
    yield lambda: source.repeat(0), OptionError
    yield lambda: mn.sources.joined(), OptionError
    yield lambda: mn.sources.joined(source, source.take(1)), OptionError
    yield lambda: mn.sources.joined(source, X), DTypeError
    yield lambda: mn.sources.blended(source, shares=[1, 2]), OptionError
    yield lambda: mn.sources.blended(source, shares=[0]), OptionError
    yield lambda: source.take(0).first, ShapeError


def test_bad_arguments_are_refused():
    for call, error in bad_arguments():
        with pytest.raises(error):
            call()
