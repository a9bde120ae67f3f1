"""A repr shows values where they are, from the blocks that hold them: at once, or not at all."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import matnb as mn
from matnb.backend.engines import few_values
from matnb.blocks.kernels import calls
from matnb.lazy import evaluator
from matnb.session.overrides import choosing

RANDOM = np.random.default_rng(0)
VALUES = RANDOM.normal(size=(60, 50))
ENTRIES = sp.random_array((60, 50), density=0.05, format="csr", rng=1)

pytestmark = pytest.mark.session("two workers")


@pytest.fixture(scope="module")
def kept(session: mn.session.Session) -> tuple[mn.DistArray, mn.DistArray]:
    """Return a dense and a sparse array on the workers that no value here stands for."""
    return (mn.asarray(VALUES) * 2).persist(), (mn.asarray(ENTRIES) * 2).persist()


def told(array: mn.DistArray) -> str:
    """Return the values without the last line."""
    return repr(array).rpartition("\n")[0]


def first_entries(matrix: sp.csr_array, count: int) -> list[tuple[int, int, float]]:
    coo = matrix.tocoo()
    return list(zip(*(one[:count].tolist() for one in (*coo.coords, coo.data)), strict=True))


def read_entries(text: str) -> list[tuple[int, int, float]]:
    lines = [line for line in text.splitlines() if not line.startswith("...")]
    found = [line.strip("(").replace(")", ",").split(",") for line in lines]
    return [(int(row), int(column), float(value)) for row, column, value in found]


CUTS = st.lists(st.integers(1, 49), max_size=6, unique=True).map(sorted)


@given(CUTS, CUTS, st.integers(1, 4), st.sampled_from([0, 1000, 10**6]))
def test_corners_are_numpys_for_any_cuts(
    kept: tuple[mn.DistArray, mn.DistArray], rows: list[int], columns: list[int], edge: int, threshold: int
) -> None:
    cuts = [[0, *rows, 60], [0, *columns, 50]]
    with np.printoptions(edgeitems=edge, threshold=threshold, precision=17, floatmode="unique"):
        mn.repartition(kept[0], cuts=cuts)
        if threshold < 10**6:
            assert told(kept[0]) == np.array2string(VALUES * 2)
        mn.repartition(kept[1], cuts=cuts)
        assert read_entries(told(kept[1])) == first_entries(ENTRIES * 2, 2 * edge)


def test_what_a_user_gave_is_shown_without_a_run(session: mn.session.Session) -> None:
    assert told(mn.asarray(VALUES, blocks=3)) == np.array2string(VALUES)
    assert told(mn.asarray([1, 2])) == "[1 2]"
    assert read_entries(told(mn.asarray(ENTRIES)))[0][:2] == first_entries(ENTRIES, 1)[0][:2]
    none = mn.asarray(sp.csr_array((5, 6)))
    assert repr(none) == "DistArray 5 x 6 float64, sparse, 0 entries (0 %), 0 B, given"


def test_the_bundle_has_the_same_values_as_the_text(kept: tuple[mn.DistArray, mn.DistArray]) -> None:
    for array in kept:
        bundle = array._repr_mimebundle_()
        assert bundle["text/plain"] == repr(array)
        assert told(array).splitlines()[0] in bundle["text/html"]
        assert len(bundle["text/html"]) < 20_000


def test_statistics_are_shown_once_they_were_asked_for(session: mn.session.Session) -> None:
    x = (mn.asarray(np.array([[0.5, np.nan], [2.0, 1.0]]), blocks=2) * 1).persist()
    assert "min" not in repr(x)
    for value in (np.nanmin(x), np.isnan(x).sum()):
        value.compute()
    assert "1 NaN, 32 B" in repr(x)
    y = (mn.asarray(VALUES) * 3).persist()
    for value in (y.min(), y.mean(), y.max(), np.count_nonzero(np.isnan(y))):
        value.compute()
    least, mean, most = ((VALUES * 3).min(), (VALUES * 3).mean(), (VALUES * 3).max())
    assert f"min {least:.6g}, mean {mean:.6g}, max {most:.6g}, 0 NaN" in repr(y)


def test_a_repr_runs_nothing_and_starts_nothing(session: mn.session.Session) -> None:
    seen: list[object] = []
    stop = session.subscribe(seen.append)
    lazy = mn.ones((1000, 1000)) + 1
    assert "not computed" in repr(lazy)
    assert "about 8 MB" in repr(lazy)
    assert lazy.layout is None
    stop()
    assert seen == []


def test_a_repr_waits_for_no_lock(
    session: mn.session.Session, kept: tuple[mn.DistArray, mn.DistArray]
) -> None:
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with session._lock:
            held.set()
            done.wait(20)

    holder = threading.Thread(target=hold)
    holder.start()
    try:
        held.wait(20)
        begin = time.monotonic()
        texts = [repr(one) for one in kept]
        assert time.monotonic() - begin < 5
    finally:
        done.set()
        holder.join()
    assert all("\n" in text for text in texts)


def test_a_repr_raises_nothing(
    session: mn.session.Session, kept: tuple[mn.DistArray, mn.DistArray], monkeypatch: pytest.MonkeyPatch
) -> None:
    token = calls._calling.set(True)  # as in a function that a worker calls
    try:
        assert "\n" in repr(kept[0])
    finally:
        calls._calling.reset(token)
    monkeypatch.setattr(evaluator._evaluator, "facts", lambda *_, **__: 1 / 0, raising=False)
    assert repr(kept[0]).startswith("DistArray 60 x 50 float64, dense")


def test_arrays_of_many_axes_and_of_none(session: mn.session.Session) -> None:
    many = mn.ones((2,) * 12, blocks=2).persist()
    assert repr(many).endswith("values not shown: too many axes")
    assert repr((mn.asarray(3.25) * 2).persist()) == "6.5  (DistArray scalar float64)"
    cube = RANDOM.normal(size=(20, 8, 9))
    assert told((mn.asarray(cube, blocks=(3, 2, 2)) * 1).persist()) == np.array2string(cube)
    assert told((mn.zeros((0, 4)) + 1).persist()) == "[]"


def test_interpreted_values_are_shown(session: mn.session.Session) -> None:
    with choosing("interpret", None):
        x = mn.asarray(VALUES) * 5
        x.compute()
        assert told(x) == np.array2string(VALUES * 5)


@pytest.mark.cluster
def test_values_of_other_processes_come_in_one_message_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    with mn.start(workers=2, processes=True, threads=1) as session:
        x = (mn.asarray(VALUES, blocks=4) * 2).persist()
        A = (mn.asarray(ENTRIES, blocks=3) * 2).persist()
        asked: list[object] = []
        ask = session.values_there._answers.ask_shortly
        monkeypatch.setattr(
            session.values_there._answers, "ask_shortly", lambda *given: asked.append(given) or ask(*given)
        )
        assert told(x) == np.array2string(VALUES * 2)
        assert read_entries(told(A))[0][:2] == first_entries(ENTRIES, 1)[0][:2]
        assert len(asked) == 2
        monkeypatch.setattr(few_values, "few_values_here", _sleep)
        begin = time.monotonic()
        assert repr(x).endswith("values not shown: the workers are busy now")
        assert "values not shown" in x._repr_mimebundle_()["text/html"]
        assert time.monotonic() - begin < 1
        monkeypatch.undo()
        while not session.values_there._answers._unanswered.done():
            time.sleep(0.02)
        while not told(x) and time.monotonic() - begin < 60:
            time.sleep(0.1)  # what is asked for shortly may come too late on a busy machine
        assert told(x) == np.array2string(VALUES * 2)
        mn.repartition(x, cuts=list(range(61)))
        monkeypatch.setattr(few_values, "MOST_BLOCKS", 2)
        assert repr(x).endswith("values not shown: the workers are busy now")
    mn.stop()
    assert repr(x).endswith("not computed; call .compute()")


def _sleep(wanted: object, dask_worker: object) -> dict[object, object]:
    time.sleep(0.5)
    return {}
