"""Of what is made from parameters no more is made than is read, with its bits, however it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matnb as mn
from matnb.errors import TooLargeError
from matnb.events import RunStarted
from matnb.lazy.recording import recording
from matnb.ops.interpret import interpret
from matnb.ops.reference import dense
from matnb.passes import optimize
from matnb.session import Session

LIMIT = 64_000_000
COUNT = 15_000_000  # elements of what is larger than a worker, 120 MB

SOURCES: dict[str, Callable[[], mn.DistArray]] = {
    "uniform": lambda: mn.random.default_rng(1).random((40, 1000)),
    "normal": lambda: mn.random.default_rng(2).normal(size=(40, 1000)),
    "integers of cuts": lambda: mn.random.default_rng(3).integers(-5, 99, (40, 1000), blocks=(3, 2)),
    "three axes": lambda: mn.random.default_rng(4).random((6, 50, 90), np.float32),
    "function": lambda: np.sqrt(mn.random.default_rng(5).random((40, 1000))) * 2.0,
    "variates": lambda: mn.random.default_rng(6).gamma(2.0, size=(7, 60)),
    "eye": lambda: mn.eye(40, 50, k=3),
    "eye in blocks": lambda: mn.eye(40, 50, blocks=(3, 1)),
    "arange": lambda: mn.arange(3.0, 9.0, 0.01),
    "arange of half precision": lambda: mn.arange(0, 100, 3, dtype="float32"),
    "linspace": lambda: mn.linspace(0.0, 1.0, 601),
    "full": lambda: mn.full((40, 30), -0.0),
}


@st.composite
def keys(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[slice | int, ...]:
    """Draw a basic index of each axis."""
    parts: list[slice | int] = []
    for length in shape:
        place = st.integers(-length, max(0, length - 1))
        cut = st.builds(slice, place, place, st.sampled_from((1, 1, 2, 7, -1, -3)))
        parts.append(draw(st.one_of(place, cut) if length else cut))
    return tuple(parts)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(sorted(SOURCES)), st.data())
def test_a_part_of_a_source_has_the_bits_that_it_has_there(name: str, data: st.DataObject) -> None:
    whole = SOURCES[name]()
    key = data.draw(keys(whole.shape))
    later = data.draw(st.one_of(st.none(), keys(whole[key].shape)))
    expected = dense(interpret(whole._expression, {}))[key]
    part = whole[key]
    if later is not None:  # a part of a part
        part, expected = part[later], expected[later]
    passed = optimize({"part": part._expression})["part"]
    found = dense(interpret(passed, {}))
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    assert found.tobytes() == np.ascontiguousarray(expected).tobytes()


TWO_THREADS = pytest.mark.session("two threads", memory_limit=LIMIT)


def projected(session: Session, call: Callable[[], Any]) -> int:
    """Return the most that a call's runs were projected to take, in bytes."""
    seen = [0]
    unsubscribe = session.subscribe(
        lambda event: seen.append(event.projected_bytes) if isinstance(event, RunStarted) else None
    )
    call()
    unsubscribe()
    return max(seen)


LARGE: dict[str, Callable[[], mn.DistArray]] = {
    "uniform": lambda: mn.random.default_rng(1).random((30_000, 1000)),
    "normal": lambda: mn.random.default_rng(1).normal(size=(30, 1_000_000)),
    "in blocks": lambda: mn.random.default_rng(1).random((30_000, 1000), blocks=(40, 1)),
    "function": lambda: np.sin(mn.random.default_rng(1).random((30_000, 1000))) + 1.0,
    "zeros": lambda: mn.zeros((30_000, 1000)) + mn.arange(1000.0),
}
PARTS = (np.s_[:100, :100], np.s_[7], np.s_[-3:, ::-2], np.s_[20:25, 3])


@TWO_THREADS
@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("part", PARTS, ids=str)
def test_a_part_of_a_large_source_takes_what_it_takes_alone(session, name, part) -> None:
    x = LARGE[name]()
    assert projected(session, lambda: float(x[part].sum())) < 20e6
    assert session.stored(x._expression) is None


@TWO_THREADS
def test_a_source_that_fits_is_made_once_its_parts_have_cost_as_much(session) -> None:
    x = mn.random.default_rng(3).random((1000, 1000), blocks=(8, 1))
    sums = [float(x[start : start + 400].sum()) for start in (0, 1, 2, 3)]
    assert session.stored(x._expression) is not None
    values = x.compute()
    np.testing.assert_allclose(sums, [values[start : start + 400].sum() for start in (0, 1, 2, 3)])
    y = mn.random.default_rng(4).random((1000, 1000))
    float(y[:10].sum())
    assert session.stored(y._expression) is None


def run_cell(session: Session, total: mn.DistArray) -> float:
    """Return what a cell ends with."""
    with recording("cell") as record:
        pass
    session.run({"total": total._expression}, record)
    found = session.small_value(total._expression)
    assert found is not None
    return float(found.values)


WAYS: dict[str, Callable[[Session, mn.DistArray], Any]] = {
    "float": lambda session, total: float(total),
    "compute": lambda session, total: total.compute(),
    "np.asarray": lambda session, total: np.asarray(total),
    "mn.compute": lambda session, total: mn.compute(total)[0],
    "item": lambda session, total: total.item(),
    "a cell's value": lambda session, total: run_cell(session, total),
    "a condition": lambda session, total: COUNT / 2 if total > 0 else 0.0,
    "a position": lambda session, total: float(total[()]),
}


@TWO_THREADS
@pytest.mark.parametrize("way", WAYS)
def test_all_ways_of_asking_for_a_value_stream(session, way) -> None:
    mn.memo.clear()
    big = mn.random.default_rng(7).random(COUNT)  # a name, whose array is larger than the worker
    found = WAYS[way](session, (big * 1.0).sum())
    assert float(found) == pytest.approx(COUNT / 2, rel=1e-3)


@TWO_THREADS
def test_what_fits_in_finer_blocks_says_so(session) -> None:
    coarse = mn.random.default_rng(7).random(COUNT, blocks=2)
    with pytest.raises(TooLargeError, match=r"in finer blocks it fits: give blocks=\d+ or more"):
        float(coarse.sum())
    with pytest.raises(TooLargeError) as refused:
        np.sort(mn.random.default_rng(7).random(COUNT)).compute()
    assert "finer" not in str(refused.value)
    float(mn.random.default_rng(7).random(COUNT, blocks=40).sum())


@TWO_THREADS
def test_of_what_nobody_reads_nothing_is_made(session) -> None:
    y = mn.random.default_rng(9).random((500, 500)).persist()

    def product() -> mn.DistArray:
        return mn.random.default_rng(8).random((6000, 500), blocks=(24, 1)) @ y

    whole = projected(session, lambda: product().compute())
    mn.memo.clear()
    assert projected(session, lambda: product()[:100].compute()) < whole / 4
