"""Plans run by threads of workers in this process: the same values, nothing known to Dask, ended at once."""

from __future__ import annotations

import _signal
import _thread
import gc
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import matnb as mn
from matnb.backend.cluster.cancellation import CancelScope
from matnb.backend.kept import LocalBlock
from matnb.backend.tasks import worker
from matnb.errors import CellCancelled, KernelError
from matnb.session.overrides import choosing


@pytest.fixture(params=["1 x 2", "2 x 1", "3 x 2"])
def session(request: pytest.FixtureRequest) -> Iterator[mn.Session]:
    workers, threads = map(int, request.param.split(" x "))
    with mn.start(workers=workers, threads=threads) as started:
        yield started


def known_to_dask(session: mn.Session) -> list[str]:
    return list(session.cluster.client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.tasks)))


def test_no_run_is_a_task_of_dasks_unless_that_is_wanted(session: mn.Session) -> None:
    x = mn.asarray(np.arange(1000.0), blocks=6)
    y = (x * 2).persist()
    assert float(y.sum()) == 999_000.0
    assert known_to_dask(session) == []
    with choosing(engine="dask"):
        z = (y + 1).persist()
        assert float(z.sum()) == 1_000_000.0
    assert len(known_to_dask(session)) >= 1
    assert float((y + z).sum()) == 1_999_000.0


def test_a_block_goes_with_the_last_handle(session: mn.Session) -> None:
    x = (mn.asarray(np.arange(100_000.0), blocks=4) + 1).persist()
    mn.memo.clear()
    kept = [one for one in gc.get_objects() if isinstance(one, LocalBlock) and one.block.nbytes == 200_000]
    assert len(kept) >= 4
    del kept, x
    session.status()
    gc.collect()
    mn.memo.clear()
    session.status()
    left = [one for one in gc.get_objects() if isinstance(one, LocalBlock) and one.block.nbytes == 200_000]
    assert left == []


STEPS = st.lists(
    st.tuples(st.sampled_from(["map", "product", "sum", "loop", "flip"]), st.booleans()),
    min_size=2,
    max_size=6,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS, seed=st.integers(0, 2**32 - 1))
def test_arrays_made_by_threads_tasks_and_loops_read_each_other(
    session: mn.Session, steps: list[tuple[str, bool]], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    matrix = sp.random_array((40, 40), density=0.2, rng=rng, format="csr")
    values = rng.integers(-3, 4, (40, 5)).astype(float)
    A, X = mn.asarray(matrix, blocks=3), mn.asarray(values, blocks=(4, 2))
    for kind, as_tasks in steps:
        with choosing(engine="dask" if as_tasks else None):
            if kind == "map":
                X, values = X * 0.5 - 1, values * 0.5 - 1
            elif kind == "product":
                X, values = A @ X, matrix @ values
            elif kind == "sum":
                X, values = X - X.sum(axis=0), values - values.sum(axis=0)
            elif kind == "flip":
                X, values = X[::-1], values[::-1]
            else:
                X = mn.iterate(lambda state: state * 0.5 + 1, X, max_iterations=3)[0]
                for _ in range(3):
                    values = values * 0.5 + 1
            X.persist()
            np.testing.assert_allclose(X.compute(), values, rtol=1e-10, atol=1e-10)


def test_an_interrupt_keeps_whole_arrays_and_the_session_goes_on(session: mn.Session) -> None:
    def slow(values: np.ndarray) -> np.ndarray:
        time.sleep(0.2)
        return values

    x = mn.asarray(np.arange(40.0), blocks=20)
    done = (x + 1).persist()
    interrupt = threading.Timer(0.5, _thread.interrupt_main)
    interrupt.start()
    begin = time.monotonic()
    with pytest.raises(CellCancelled, match=r"cancelled \d+ of \d+ tasks"):
        mn.map_blocks(slow, done).compute()
    assert time.monotonic() - begin < 2
    interrupt.join()
    assert float((done + x).sum()) == 1600.0


def test_an_error_names_its_operation_and_leaves_the_session_as_it_was(session: mn.Session) -> None:
    def broken(values: np.ndarray) -> np.ndarray:
        if values.max() > 2:  # not as it is tried
            raise ValueError("told to")
        return values

    x = mn.asarray(np.arange(40.0), blocks=4)
    with pytest.raises(ValueError, match="told to"):
        mn.map_blocks(broken, x).compute()
    assert float((x + 0.5).sum()) == 800.0


def test_an_error_that_is_kept_keeps_no_block(session: mn.Session) -> None:
    def broken(values: np.ndarray) -> np.ndarray:
        if values.max() > 2:  # not as it is tried
            raise ValueError("told to")
        return values

    x = (mn.asarray(np.arange(40.0), blocks=4) + 1).persist()
    float(x.sum())
    session.status()
    gc.collect()
    before = {one.key for one in gc.get_objects() if isinstance(one, LocalBlock)}
    with pytest.raises(KernelError) as caught:
        mn.map_blocks(broken, x * 3 + 0.25).compute()
    session.status()
    gc.collect()
    after = {one.key for one in gc.get_objects() if isinstance(one, LocalBlock)}
    assert caught.value is not None
    assert after <= before
    del x
    mn.memo.clear()
    session.status()
    gc.collect()
    left = [one for one in gc.get_objects() if isinstance(one, LocalBlock)]
    assert left == []


def test_workers_of_other_processes_run_tasks_of_dasks() -> None:
    with mn.start(workers=1, threads=1, processes=True) as session:
        x = (mn.asarray(np.arange(1000.0), blocks=2) + 1).persist()
        assert len(known_to_dask(session)) >= 1
        assert float(x.sum()) == 500_500.0


# small runs on the thread that asks


@pytest.fixture
def ran_here(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each task ran on this thread."""
    run, here, found = worker.run_prepared, threading.get_ident(), []

    def noted(*arguments: object) -> object:
        found.append(threading.get_ident() == here)
        return run(*arguments)

    monkeypatch.setattr(worker, "run_prepared", noted)
    return found


def test_what_is_small_and_has_run_before_is_done_by_the_thread_that_asks(ran_here: list[bool]) -> None:
    with mn.start(workers=2, threads=1):
        x = mn.asarray(np.arange(1000.0), blocks=2).persist()
        ran_here.clear()
        for factor in (2.5, 3.5, 4.5):  # other numbers, the same plan
            assert float((x * factor).sum()) == factor * 499_500
    num_tasks = len(ran_here) // 3
    assert ran_here == [False] * num_tasks + [True] * 2 * num_tasks


def test_what_is_large_or_calls_a_function_of_the_users_is_not(ran_here: list[bool]) -> None:
    with mn.start(workers=2, threads=1):
        x, large = mn.asarray(np.arange(1000.0)).persist(), mn.asarray(np.arange(1e5)).persist()
        for factor in (2.5, 3.5, 4.5):
            assert float((large * factor).sum()) > 0
            assert mn.map_blocks(lambda block: block + 1, x * factor).compute()[0] == 1
    assert ran_here
    assert not any(ran_here)


def test_an_interrupt_waits_for_a_small_run_and_ends_it_then(monkeypatch: pytest.MonkeyPatch) -> None:
    run, done = worker.run_prepared, []

    def interrupted(*arguments: object) -> object:
        if threading.current_thread() is threading.main_thread():
            signal.raise_signal(signal.SIGINT)
            done.append(run(*arguments))
            return done[-1]
        return run(*arguments)

    with mn.start(workers=1, threads=2):
        x = mn.asarray(np.arange(1001.0)).persist()
        first = float((x * 2.5).sum())  # an assert would keep the product, and other runs are other plans
        assert first == 2.5 * 500_500
        monkeypatch.setattr(worker, "run_prepared", interrupted)
        with pytest.raises(CellCancelled):
            float((x * 3.5).sum())
        monkeypatch.setattr(worker, "run_prepared", run)
        assert len(done) == 1
        assert float((x * 4.5).sum()) == 4.5 * 500_500
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_an_interrupt_leaves_has_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    run = worker.run_prepared

    def interrupted(*arguments: object) -> object:
        made = run(*arguments)
        if threading.current_thread() is threading.main_thread():
            signal.raise_signal(signal.SIGINT)
        return made

    with mn.start(workers=1, threads=2) as session:
        x = mn.asarray(np.arange(1003.0)).persist()
        (x * 2.5).persist()
        y = x * 3.5
        monkeypatch.setattr(worker, "run_prepared", interrupted)
        with pytest.raises(CellCancelled):
            y.persist()
        monkeypatch.setattr(worker, "run_prepared", run)
        entry = session._store.entry(y.expression)
        assert entry is not None
        assert entry.stored.block_bytes == (8 * 1003,)


def test_an_interrupt_at_the_end_of_a_run_leaves_no_handler(monkeypatch: pytest.MonkeyPatch) -> None:
    stopping, put, ours = CancelScope(), _signal.signal, []

    def interrupted(number: int, handler: object) -> object:
        if ours and handler is ours[0]:  # as it is put back
            ours.clear()
            signal.raise_signal(signal.SIGINT)
        return put(number, handler)

    def heeded() -> None:
        with stopping.heeding():
            ours.append(signal.default_int_handler)
            monkeypatch.setattr(_signal, "signal", interrupted)

    with pytest.raises(CellCancelled):
        heeded()
    assert ours == []
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with stopping.heeding():
        stopping.check()


def test_functions_of_few_bytes_run_side_by_side(tmp_path: Path) -> None:
    def meets(x: np.ndarray, *, part: Any) -> np.ndarray:
        # Each part waits for the others, in vain if they were to come after it.
        folder = Path(tmp_path)
        (folder / f"{part.index}").touch()
        until = time.monotonic() + 5
        while len(list(folder.iterdir())) < part.count and time.monotonic() < until:
            time.sleep(0.01)
        return np.full(len(x), len(list(folder.iterdir())))

    with mn.start(workers=2, threads=2):
        x = mn.asarray(np.arange(8.0), blocks=4)
        met = mn.foreach(meets, mn.splits(x), like=np.zeros(8, int), reduce=())
        begin = time.monotonic()
        assert (np.asarray(met) == 4).all()
        assert time.monotonic() - begin < 5
    mn.stop()
