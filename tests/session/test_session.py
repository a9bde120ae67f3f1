"""What a session keeps, refuses and counts."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import threading
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from watching import runs, tasks_on_scheduler
from ways import WAYS, going

import matnb as mn
from matnb.errors import KernelError, MatnbError, OptionError, TooLargeError
from matnb.expr import client_data


@pytest.fixture(params=WAYS)
def session(request: pytest.FixtureRequest) -> Iterator[mn.session.Session]:
    with going(request.param) as options, mn.start(workers=1, threads=2, **options) as session:
        yield session
    mn.stop()


def test_starts_by_itself_and_stops() -> None:
    assert mn.active_session() is None
    assert float(mn.ones(3).sum()) == 3
    assert mn.active_session() is not None
    mn.stop()
    assert mn.active_session() is None
    mn.stop()


def test_a_result_is_the_persons_own(session: mn.session.Session) -> None:
    x = mn.asarray(np.arange(5.0)) * 2
    first = x.compute()
    first[:] = 99
    np.testing.assert_array_equal(x.compute(), np.arange(5.0) * 2)
    assert (x + 0).compute().flags.writeable


def test_given_data_is_copied(session: mn.session.Session) -> None:
    mine = np.arange(1000.0)
    x = mn.asarray(mine)
    mine[:] = 0
    assert float(x.sum()) == 499500
    matrix = sp.eye_array(50, format="csr")
    a = mn.asarray(matrix)
    matrix.data[:] = 7
    assert float(a.sum()) == 50


def test_a_loop_computes_each_state_once(session: mn.session.Session) -> None:
    seen = runs(session)
    x = mn.asarray(np.ones(20_000), blocks=2)
    for _ in range(8):
        x = x * 0.5 + 1
        float(x.sum())
    counts = [run.num_tasks for run in seen]
    assert max(counts) == counts[0], counts
    assert counts[-1] <= 8
    assert len(session.status().description) > 0
    assert session.status().num_arrays <= 3


def test_a_long_loop_leaves_no_history_on_the_scheduler(session: mn.session.Session) -> None:
    x = mn.asarray(np.ones(3000), blocks=2)
    total = 0.0
    for _ in range(120):
        x = x * 0.5 + 1
        total = float(x.sum())
    assert total == pytest.approx(3000 * 2)
    assert tasks_on_scheduler(session) < 300


def test_a_transpose_is_made_when_it_was_asked_for_often_enough_and_then_once(
    session: mn.session.Session,
) -> None:
    matrix = sp.random_array((3000, 3000), density=0.01, format="csr", rng=0)
    A, x = mn.asarray(matrix, blocks=2), np.ones(3000)
    kinds: list[str] = []
    session.subscribe(lambda event: kinds.extend(task.kind for task in getattr(event, "tasks", ())))
    expected = np.ones(3000)
    made = []
    for _ in range(40):
        x = A.T @ x
        expected = matrix.T @ expected
        np.testing.assert_allclose(x.compute(), expected)
        made.append(kinds.count("transpose"))
        x, expected = x / 30, expected / 30
    assert made[0] == 0
    assert made[-1] == 4
    assert 4 not in made[:10]


@pytest.mark.parametrize("way", WAYS)
def test_a_result_over_the_limit_is_refused_with_advice(way: str) -> None:
    with going(way) as options, mn.start(compute_limit="1MB", **options):
        with pytest.raises(TooLargeError, match=r"compute_limit|persist"):
            mn.zeros((1000, 1000)).compute()
        assert float(mn.zeros((1000, 1000)).sum()) == 0
    mn.stop()


@pytest.mark.parametrize("way", WAYS)
def test_a_plan_over_the_memory_is_refused_before_it_runs(way: str) -> None:
    with going(way) as options, mn.start(memory_limit="1GB", **options) as session:
        seen = runs(session)
        with pytest.raises(TooLargeError, match="memory_limit"):
            (mn.random.default_rng(0).random((30_000, 30_000)) @ mn.ones((30_000, 30_000))).persist()
        assert not seen
    mn.stop()


def test_a_new_session_recomputes_from_given_data() -> None:
    x = mn.asarray(np.arange(10_000.0)) + 1
    with mn.start():
        first = x.compute()
    with mn.start(workers=2):
        np.testing.assert_array_equal(x.compute(), first)
    mn.stop()


def test_unknown_options_say_what_is_allowed() -> None:
    with pytest.raises(OptionError, match="workers"):
        mn.start(workers=0)
    with pytest.raises(OptionError, match="memo"):
        mn.start(memo="much")
    with pytest.raises(OptionError, match="engine"):
        mn.start(engine="spark")


def test_a_worker_error_names_the_expression(
    session: mn.session.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    from matnb.backend.tasks import executor

    def broken(*_: object) -> None:
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr(executor.FusedPass, "run", broken)
    with pytest.raises(KernelError, match="ZeroDivisionError: on purpose") as caught:
        (mn.asarray(np.ones(50)) + 1).compute()
    assert any("add" in note for note in caught.value.__notes__)
    monkeypatch.undo()
    assert float((mn.asarray(np.ones(50)) + 1).sum()) == 100


def test_two_threads_share_a_session(session: mn.session.Session) -> None:
    results: dict[int, float] = {}

    def work(number: int) -> None:
        for step in range(10):
            results[number] = float((mn.asarray(np.full(100, number)) + step).sum())

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {number: 100.0 * (number + 9) for number in range(4)}


def test_shipped_data_stays_while_an_expression_needs_it(
    session: mn.session.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_data, "SHIP_BYTES", 1000)
    y = mn.asarray(np.ones(10_000)) * 2  # no name is left on the array itself
    # a number of this test alone: an equal expression may be kept by another test's error
    assert float(mn.full(3, 17.25).sum()) == 51.75
    assert session.status().num_arrays == 1
    assert float(y.sum()) == 20_000
    del y
    assert session.status().num_arrays == 0


def test_a_small_memo_keeps_nothing_and_loses_nothing(tmp_path: Path) -> None:
    with mn.start(memo="1KB") as session:
        seen = runs(session)
        matrix = sp.random_array((300, 300), density=0.2, format="csr", rng=0)
        A = mn.asarray(matrix) * 2
        assert abs(A.to_scipy() - matrix * 2).max() == 0
        assert len(seen) == 1
        mn.save(A, tmp_path / "a.npz")
        assert abs(mn.load(tmp_path / "a.npz").to_scipy() - matrix * 2).max() == 0
        kept = (A * 3).persist()
        float(mn.ones(10).sum())
        before = len(seen)
        assert kept.layout is not None
        kept.to_scipy()
        assert len(seen) == before
    mn.stop()


def test_several_values_come_from_one_run(session: mn.session.Session) -> None:
    seen = runs(session)
    x = mn.asarray(np.arange(50_000.0))
    shared = np.sqrt(x) + 1
    total, most = mn.compute(shared.sum(), shared.max())
    assert (total, most) == (pytest.approx((np.sqrt(np.arange(50_000.0)) + 1).sum()), np.sqrt(49_999) + 1)
    assert len([run for run in seen if run.num_tasks]) == 1


@pytest.mark.parametrize("way", WAYS)
def test_what_moves_is_counted(way: str) -> None:
    with going(way) as options, mn.start(workers=2, threads=1, **options) as session:
        seen = runs(session)
        A = mn.asarray(sp.random_array((4000, 4000), density=0.01, format="csr", rng=0), blocks=2).persist()
        x = mn.asarray(np.ones(4000), blocks=2).persist()
        (A @ x).persist()
        assert seen[-1].moved_bytes == 2 * 2000 * 8  # each worker gets the half that the other has
        assert 1 <= seen[-1].imbalance <= 2
        one = mn.asarray(np.ones(40_000), blocks=1)
        for factor in (2, 3):  # seconds of a first call, which reads machine code, do not count
            float((one * factor).sum())
        assert seen[-1].imbalance == 2  # the other worker did nothing
    mn.stop()


@pytest.mark.parametrize("blocks", [2, 5])
def test_projected_memory_covers_what_is_made(session: mn.session.Session, blocks: int) -> None:
    seen = runs(session)
    made: list[int] = []
    session.subscribe(lambda event: made.extend(task.output_bytes for task in getattr(event, "tasks", ())))
    rng = mn.random.default_rng(0)
    float(np.sqrt(rng.random((1000, 1000), blocks=blocks) + 1).sum())
    assert seen[-1].projected_bytes >= 2 * 8_000_000 // blocks  # two tasks at a time, each with its block
    x = (rng.random((1000, 1000), blocks=blocks) * 2).persist()
    assert seen[-1].projected_bytes >= x.facts().num_bytes


def test_no_run_takes_more_than_was_projected(session: mn.session.Session) -> None:
    rng = mn.random.default_rng(0)
    x, y, M = (one.persist() for one in (rng.random(400_000), rng.random(400_000), rng.random((600, 600))))
    seen = runs(session)

    def assigned(c: float) -> mn.DistArray:
        z = x * c
        z[::3], z[x > 0.5] = 1.5, c
        return z.persist()

    for made in (
        lambda c: mn.compute((x + c).min(), (x + c).mean(), (x + c).std()),
        lambda c: (np.sqrt(x * x + y) * c - abs(x - c) / (y + 1)).persist(),
        lambda c: mn.compute((x * c).astype(np.float32).std(), abs(x - y * c).max()),
        lambda c: mn.compute((M + c).std(axis=0), (M * c).T.sum(axis=1)),
        lambda c: ((M @ M) * c + M.T).persist(),
        assigned,
    ):
        made(2.5)  # what is compiled is not counted
        seen.clear()
        tracemalloc.start()
        result = made(3.5)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak <= max(run.projected_bytes for run in seen) + 300_000
        del result


def test_interpreting_keeps_to_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_data, "SHIP_BYTES", 1000)
    with mn.start(engine="interpret", compute_limit="1MB"):
        assert float((mn.asarray(np.ones(10_000)) * 2).sum()) == 20_000
        with pytest.raises(TooLargeError):
            mn.zeros((1000, 1000)).compute()
    mn.stop()


def test_an_error_in_a_chain_names_the_line_that_raised(session: mn.session.Session) -> None:
    from matnb.lazy.recording import recording

    code = compile("z = x ** n\nw = z + 1\nv = w * 2\n", "cell", "exec")
    names = {"x": mn.asarray([2, 3]), "n": mn.asarray([-1, 2])}
    with recording("cell") as record:
        exec(code, names)
    with pytest.raises(MatnbError) as caught:
        session.run({"v": names["v"].expression}, record)
    assert caught.value.lines == (1,)
    assert "power" in caught.value.expression


def test_small_values_are_shown_once_computed(session: mn.session.Session) -> None:
    x = mn.asarray(np.arange(2000.0))
    total = x.sum()
    assert total.facts().value == ""
    assert float(total) == 1_999_000
    assert total.facts().value == "1999000.0"
    assert f"{total:.1f}" == "1999000.0"
    assert round(total, 1) == 1_999_000.0
    seen = runs(session)
    total.compute()[...]
    assert not seen  # it is known here


def test_a_shape_beyond_all_plans_is_refused_quickly(session: mn.session.Session) -> None:
    begin = time.monotonic()
    with pytest.raises(TooLargeError, match="make the array smaller"):
        mn.zeros((10**10, 10**10)).sum().compute()
    assert time.monotonic() - begin < 2


def test_what_cannot_leave_the_workers_says_where_to_go(session: mn.session.Session) -> None:
    x = mn.ones(3)
    with pytest.raises(MatnbError, match=r"mn\.save"):
        pickle.dumps(x)
    assert copy.deepcopy(x).expression is x.expression
    with pytest.raises(AttributeError, match=r"x\.compute\(\)\.byteswap"):
        x.byteswap()
    with pytest.raises(MatnbError, match=r"np\.fft\.fft\(x\.compute"):
        np.fft.fft(x)


def _sum_in_child(number: int) -> float:
    return float((mn.asarray(np.ones(4)) * number).sum())


def test_a_forked_child_is_told_and_does_not_hang(session: mn.session.Session) -> None:
    float(mn.ones(3).sum())
    with multiprocessing.get_context("fork").Pool(1) as pool, pytest.raises(MatnbError, match="spawn"):
        pool.map_async(_sum_in_child, [1]).get(timeout=20)
    assert float(mn.ones(3).sum()) == 3


def test_a_scalar_is_not_changed_in_place(session: mn.session.Session) -> None:
    total = mn.asarray([1.0, 2.0]).sum()
    before = total
    total += 1
    assert (float(before), float(total)) == (3.0, 4.0)
    assert f"{total}" == "4.0"
    assert round(mn.asarray([2**53 + 1, 0]).sum()) == 2**53 + 1


def test_a_small_last_value_is_shown_though_it_was_stored_before(session: mn.session.Session) -> None:
    small = (mn.asarray(np.arange(3.0)) * 5).persist()
    assert small.facts().value == ""
    from matnb.lazy.recording import recording

    with recording("cell") as record:
        pass
    session.run({"_": small.expression}, record)
    assert small.facts().value == "[ 0.  5. 10.]"


@pytest.mark.parametrize("way", WAYS)
def test_work_in_small_blocks_fits_where_the_array_would_not(way: str) -> None:
    with going(way) as options, mn.start(memory_limit="500MB", memo="10MB", **options):
        assert float(mn.ones((100_000, 1000), blocks=200).sum()) == 1e8
        with pytest.raises(TooLargeError):
            mn.ones((100_000, 1000), blocks=200).persist()
    mn.stop()
