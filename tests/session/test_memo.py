"""What a session remembers: values, results of cells without a handle, and what lets go of them."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from waiting import wait_until
from watching import runs, tasks_on_scheduler
from ways import WAYS, going

import matnb as mn
from matnb.backend import kept
from matnb.config import Config
from matnb.events import LoopFinished, RunFinished
from matnb.lazy.recording import recording
from matnb.session.planning import Planner

N = 50_000


@pytest.fixture(scope="module", params=WAYS)
def shared(request: pytest.FixtureRequest) -> Iterator[mn.session.Session]:
    with going(request.param) as options, mn.start(workers=1, threads=2, **options) as session:
        yield session
    mn.stop()


@pytest.fixture
def session(shared: mn.session.Session) -> Iterator[mn.session.Session]:
    yield shared
    mn.memo.clear()


class Tasks:
    """Counts tasks since it was asked last."""

    def __init__(self, session: mn.session.Session) -> None:
        self._num = 0
        session.subscribe(self._add)

    def _add(self, event: object) -> None:
        if isinstance(event, RunFinished | LoopFinished):
            self._num += event.num_tasks

    def __call__(self) -> int:
        num, self._num = self._num, 0
        return num


def run_cell(session: mn.session.Session, **roots: mn.DistArray) -> RunFinished:
    with recording("cell") as record:
        pass
    return session.run({name: one.expression for name, one in roots.items()}, record).finished


def bytes_on_workers(session: mn.session.Session) -> int:
    def held(dask_worker: object) -> int:
        return sum(getattr(one, "nbytes", 0) for one in dict(dask_worker.data).values())  # type: ignore[attr-defined]

    here = sum(getattr(one.block, "nbytes", 0) for one in list(kept._local_blocks.values()))
    return here + sum(session.cluster.client.run(held).values())


def test_a_cell_that_is_run_again_runs_nothing(session: mn.session.Session) -> None:
    tasks = Tasks(session)

    def cell(factor: float) -> int:
        x = mn.asarray(np.arange(float(N)), blocks=2)
        y = np.sqrt(x) * factor
        run_cell(session, y=y, total=y.sum(), parts=mn.asarray(sp.eye_array(900, format="csr")) * factor)
        return tasks()

    assert cell(2.0) > 0
    gc.collect()
    assert cell(2.0) == 0
    assert cell(3.0) > 0
    gc.collect()
    assert (cell(2.0), cell(3.0)) == (0, 0)


def test_what_was_computed_is_found_under_an_equal_expression(session: mn.session.Session) -> None:
    tasks = Tasks(session)
    a, b = mn.arange(float(N)), mn.asarray(np.ones(N))
    mn.compute(a + b)
    assert tasks() > 0
    gc.collect()
    run_cell(session, c=b + a)
    np.testing.assert_array_equal((b + a).compute(), np.arange(N) + 1.0)
    assert tasks() == 0
    mn.memo.clear()

    def largest(one: mn.DistArray, other: mn.DistArray) -> float:
        return float((one + other).max())  # without a handle on the way, which a line of a test may keep

    tasks_of = [(largest(a, b), tasks()), (largest(b, a), tasks())]
    assert [value for value, _ in tasks_of] == [N, N]
    assert tasks_of[0][1] > 0
    assert tasks_of[1][1] == 0
    assert (b - a).compute()[0] == 1
    assert (a - b).compute()[0] == -1


def test_a_small_value_is_known_and_saves_what_led_to_it(session: mn.session.Session) -> None:
    tasks = Tasks(session)
    x = mn.asarray(np.arange(float(N)), blocks=4)
    assert float((x * 3).sum()) == 3 * N * (N - 1) / 2
    tasks()
    assert float((x * 3).sum()) == 3 * N * (N - 1) / 2
    assert tasks() == 0
    assert float((x * 3).sum() + 1) == 3 * N * (N - 1) / 2 + 1
    assert tasks() == 1
    floor = np.maximum(mn.asarray(sp.eye_array(50, format="csr")), (x * 3).sum() * 0)
    assert not floor.sparse  # as it was recorded, though what is known now leaves zeros as they are
    np.testing.assert_array_equal(floor.compute(), np.eye(50))
    persisted = (x * 3).sum().persist()
    assert persisted.layout is not None


def test_an_array_that_is_there_is_read_though_its_value_is_known(session: mn.session.Session) -> None:
    seen = runs(session)
    total = (mn.arange(float(N)) * 7).sum().persist()
    float(total)
    float(total * 2)
    assert (seen[-1].num_stored, seen[-1].num_tasks) == (1, 1)


def test_states_of_a_loop_go_with_their_handles_and_its_results_stay(session: mn.session.Session) -> None:
    x = mn.asarray(np.ones(N), blocks=2)
    for _ in range(6):
        x = x * 0.5 + 1
        float(x.sum())
    del x
    gc.collect()
    assert session.status().num_arrays == 0
    run_cell(session, y=mn.arange(float(N)) * 2)
    gc.collect()
    assert session.status().num_remembered == session.status().num_arrays == 1
    assert session.status().remembered_bytes == 8 * N


@pytest.mark.parametrize("held", ["count", "state", "nothing"])
def test_a_loop_is_remembered_by_parts(session: mn.session.Session, held: str) -> None:
    tasks, start = Tasks(session), {"count": 1.25, "state": 1.5, "nothing": 1.75}[held]

    def two_loops() -> tuple[mn.DistArray, ...]:
        x, n = mn.iterate(lambda x: x / 2, mn.full(400, start), max_iterations=3)
        y, m = mn.iterate(lambda y: y + 1, x, until=lambda old, new: new.max() > 3, max_iterations=9)
        return x, n, y, m

    x, n, y, m = two_loops()
    mn.compute(*{"count": (n, m), "state": (y,), "nothing": (y, m)}[held])
    del x, y
    gc.collect()
    tasks()
    if held == "count":
        assert (int(n), int(m)) == (3, 3)
        mn.memo.clear()
    *_, y, m = two_loops()
    assert float(y.max()) == start / 8 + 3
    assert int(m) == 3
    assert held == "count" or tasks() <= 3  # at most the maximum


def test_the_result_follows_the_file(session: mn.session.Session, tmp_path: Path) -> None:
    for factor in (1.0, 5.0):
        np.save(tmp_path / "x.npy", np.full(1000, factor))
        x = mn.load(tmp_path / "x.npy")
        assert float((x * 2).sum()) == 2000 * factor
        np.testing.assert_array_equal((x + 1).compute(), np.full(1000, factor + 1))
        del x


def test_it_is_listed_with_its_uses_and_cleared(session: mn.session.Session) -> None:
    x = mn.asarray(np.arange(float(N)))
    kept = (x * 11).persist()
    (x * 13).compute()
    for _ in range(3):
        float((x * 13).max())
        (x * 13).compute()
    by_text = {(one.expression.split("(")[0], one.where, one.has_handle): one for one in mn.memo.entries()}
    array, value = by_text["multiply", "workers", False], by_text["max", "value", False]
    assert (array.shape, array.dtype, array.num_bytes, array.hits) == ((N,), "float64", 8 * N, 4)
    assert (value.shape, value.num_bytes, value.hits) == ((), 8, 2)
    assert array.seconds > 0
    assert by_text["multiply", "workers", True].num_bytes == 8 * N
    lines = repr(mn.memo).splitlines()
    assert lines[0].split()[:6] == ["result", "shape", "dtype", "bytes", "hits", "where"]
    assert lines[-1].startswith(f"{len(mn.memo.entries())} entries, ")
    assert mn.memo._repr_html_().count("<tr") == len(lines) - 1
    mn.memo.clear()
    assert {(one.where, one.has_handle) for one in mn.memo.entries()} == {("workers", True)}
    assert kept.layout is not None


def test_memory_is_released_when_handles_and_the_memo_let_go(session: mn.session.Session) -> None:
    mn.memo.clear()
    wait_until(lambda: bytes_on_workers(session) < 10**6)
    x = mn.arange(float(10 * N)) + 1
    run_cell(session, x=x, y=x * 2)
    wait_until(lambda: bytes_on_workers(session) >= 160 * N)
    del x
    gc.collect()
    assert session.status().num_remembered == 2
    assert bytes_on_workers(session) >= 160 * N
    mn.memo.clear()
    wait_until(lambda: bytes_on_workers(session) < 10**6)


def test_a_constant_with_a_handle_is_no_array(session: mn.session.Session) -> None:
    one = mn.asarray(1.0)
    assert float(mn.arange(float(N)).sum() + one) == N * (N - 1) / 2 + 1
    assert session.status().num_arrays == 0


def test_who_looks_or_clears_takes_nothing_from_a_run(session: mn.session.Session) -> None:
    x = (mn.random.default_rng(7).random(N) + 1).persist()
    total, expected = (x * 3.5).sum(), (x.compute() * 3.5).sum()
    del x
    gc.collect()
    looked: list[object] = []
    end = session.subscribe(
        lambda event: looked.append((mn.memo.clear(), mn.memo.entries(), session.status()))
    )
    assert float(total) == pytest.approx(expected)
    end()
    assert looked


def test_running_a_cell_again_and_again_grows_nothing(session: mn.session.Session) -> None:
    x = mn.asarray(np.arange(4000.0), blocks=2)
    sizes = []
    for turn in range(200):
        y = x * 2 + 1
        run_cell(session, y=y, total=y.sum())
        if turn in (20, 199):
            sizes.append((tasks_on_scheduler(session), len(mn.memo.entries()), len(session.memo._values)))
    assert sizes[1][1:] == sizes[0][1:]
    assert sizes[1][0] <= sizes[0][0] + 4  # some are being forgotten


def test_what_has_no_handle_goes_first() -> None:
    with mn.start(memo="1300kB") as session:
        kept = (mn.arange(float(N)) * 2).persist()
        held = mn.arange(float(N)) * 3
        held.compute()
        for factor in range(4, 8):
            (mn.arange(float(N)) * factor).compute()
        assert held.layout is not None
        assert kept.layout is not None
        assert session.status().stored_bytes <= 1_300_000
        mn.memo.clear()
        assert session.status().num_arrays == 2
    with mn.start(memory_limit="100MB", memo="1GB") as session:
        for factor in (2, 3, 4):
            run_cell(session, x=mn.arange(3e6) * factor)
        assert session.status().num_remembered >= 1
        assert session.status().stored_bytes <= 10**8
        mn.memo.clear()
        assert session.status().num_arrays == 0
    mn.stop()


def test_it_can_be_off() -> None:
    with mn.start(memo="off") as session:
        tasks = Tasks(session)
        counts = []
        for _ in range(2):
            x = mn.asarray(np.arange(float(N)), blocks=2)
            run_cell(session, y=x * 2, total=(x * 2).sum())
            counts.append(tasks())
            assert session.status().num_remembered == 0
            del x
            gc.collect()
        assert counts[1] == counts[0] > 0
        assert session.status().num_arrays == 0
        assert mn.memo.entries() == ()
        assert "stays lazy" not in repr(session.status())
        total = mn.arange(float(N)).sum()
        float(total)
        tasks()
        float(total)
        assert tasks() == 0  # its handle is there
    mn.stop()


@pytest.mark.parametrize(
    ("limits", "budget"), [((40, 60), 50), ((400, 400), 90), ((40, 0), 90), ((0, 0), 90), ((), 90)]
)
def test_its_budget_is_at_most_half_of_what_workers_with_a_limit_have(
    limits: tuple[int, ...], budget: int
) -> None:
    workers = {number: SimpleNamespace(memory_limit_bytes=limit) for number, limit in enumerate(limits)}
    cluster: Any = SimpleNamespace(workers=workers, alive=lambda: [*workers])
    store: Any = None  # which has no part in it
    assert Planner(Config(memo_bytes=90), cluster, store).memo_bytes == budget
