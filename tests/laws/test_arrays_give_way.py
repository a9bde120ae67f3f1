"""What can be made again gives way: handles whose runs fit one by one run in constant memory, and right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matnb as mn
from matnb.errors import TooLargeError
from matnb.events import RunFinished
from matnb.magics.summary import status_text
from matnb.session import Session

COUNT = 1_000_000  # elements of an array, 8 MB
LIMIT = 64_000_000

TWO_THREADS = pytest.mark.session("two threads", memory_limit=LIMIT)


def drawn(seed: int) -> mn.DistArray:
    """Return random numbers, the same for each seed."""
    return mn.random.default_rng(seed).random(COUNT, blocks=8)


@pytest.fixture(scope="module")
def values(session: Session) -> Callable[[int], np.ndarray]:
    """Return what ``drawn`` gives, found while there is room."""
    found = {seed: drawn(seed).compute() for seed in range(8)}
    mn.memo.clear()
    return found.__getitem__


@pytest.mark.parametrize(
    ("processes", "size"), [(False, 1), pytest.param(True, 10, marks=[pytest.mark.cluster, pytest.mark.slow])]
)
def test_handles_that_are_kept_fill_no_memory(processes: bool, size: int) -> None:
    limit = LIMIT * size
    with mn.start(workers=1, threads=2, memory_limit=limit, processes=processes) as session:
        kept, sums, told = [], [], []
        session.subscribe(
            lambda event: told.append(event.num_gave_way) if isinstance(event, RunFinished) else None
        )
        for seed in range(10):
            kept.append(mn.random.default_rng(seed).random(COUNT * size))
            sums.append(float(kept[-1].sum()))
            assert session.status().stored_bytes <= limit // 2
        assert sum(told) == session.status().num_gave_way >= 5
        assert "gave way" in status_text(session.status())
        for one in kept:
            is_gone = session.stored(one._expression) is None
            assert ("made again: 1 array that gave way" in (one + 1.0).explain()) is is_gone
        kept[0].persist()  # stays from now on
        assert [float((one * 1.0).sum()) for one in kept] == sums
        assert session.stored(kept[0]._expression) is not None
    mn.stop()


STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "sum of two": lambda x, y: x + y,
    "function": lambda x, y: np.sqrt(x) + 1.0,
    "running sum": lambda x, y: np.cumsum(x) / COUNT,
    "turned": lambda x, y: x[::-1],
    "greater": lambda x, y: np.maximum(x, y),
}


@TWO_THREADS
@settings(max_examples=4, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 30), st.integers(0, 30)), max_size=14),
    st.lists(st.integers(0, 30), max_size=6),
)
def test_handles_over_handles_have_their_values_after_they_gave_way(session, values, steps, asked) -> None:
    handles = [drawn(seed) for seed in range(3)]
    expected = [values(seed) for seed in range(3)]
    for name, left, right in steps:
        places = left % len(handles), right % len(handles)
        handles.append(STEPS[name](*(handles[place] for place in places)))
        expected.append(STEPS[name](*(expected[place] for place in places)))
        assert float(handles[-1][7]) == pytest.approx(float(expected[-1][7]))
        (handles[-1].max() - handles[-1].min()).compute()
        assert session.status().stored_bytes <= LIMIT // 2
    for place in asked:
        place %= len(handles)
        np.testing.assert_allclose(handles[place].compute(), expected[place])


@TWO_THREADS
def test_a_long_chain_of_handles_is_made_again_without_keeping_all_of_it(session) -> None:
    chain = [drawn(1)]
    for _ in range(12):
        chain.append(np.cumsum(chain[-1]) / COUNT)  # each needs the whole of the one before
        chain[-1][0].compute()
    others = [drawn(seed) for seed in range(10, 20)]
    sums = [float(one.sum()) for one in others]
    expected = chain[0].compute()
    for _ in range(12):
        expected = np.cumsum(expected) / COUNT
    np.testing.assert_allclose(chain[-1].compute(), expected)
    assert [float(one.sum()) for one in others] == sums


@TWO_THREADS
def test_loops_make_others_give_way_and_are_made_again(session) -> None:
    found = []
    for seed in range(8):
        x, _ = mn.iterate(lambda y: y * 0.5 + 1.0, drawn(seed), max_iterations=3)
        found.append((x, float(x.sum())))
    assert session.status().stored_bytes <= LIMIT // 2
    for x, total in found:
        assert float((x + 0.0).sum()) == total


@TWO_THREADS
def test_what_is_refused_makes_nothing_give_way(session) -> None:
    held = [drawn(seed) for seed in range(3)]
    for one in held:
        one.compute()
    before = session.status().num_gave_way
    stored = [session.stored(one._expression) for one in held]
    with pytest.raises(TooLargeError, match="needs about"):
        mn.sort(mn.random.default_rng(5).random(20 * COUNT)).persist()
    assert session.status().num_gave_way == before
    assert [session.stored(one._expression) for one in held] == stored


@TWO_THREADS
def test_what_a_function_gave_that_may_give_something_else_stays(session) -> None:
    rng = np.random.default_rng()
    varying = mn.map_blocks(lambda block: rng.random(block.shape), drawn(0), dtype="float64")
    first = varying.compute()
    for seed in range(20, 30):
        float(drawn(seed).sum())
    np.testing.assert_array_equal(varying.compute(), first)


@pytest.mark.slow
@pytest.mark.cluster
def test_what_was_given_gives_way_where_a_copy_of_it_takes_no_memory() -> None:
    with mn.start(workers=1, threads=1, processes=True, memory_limit="500MB") as session:
        given = [np.full(9_000_000, float(number)) for number in range(7)]  # 72 MB each: sent at once
        held = [mn.asarray(one) for one in given]
        assert [float(one.sum()) for one in held] == [float(one.sum()) for one in given]
        assert session.status().stored_bytes <= 500e6
        assert [float(one[-1]) for one in held] == [float(one[-1]) for one in given]
    mn.stop()
