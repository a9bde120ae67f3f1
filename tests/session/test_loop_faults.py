"""What a loop survives: interrupts, killed members, bodies that raise, other sessions, long runs."""

from __future__ import annotations

import gc
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp
from watching import tasks_on_scheduler

import matnb as mn
from matnb.backend.engines.engine_gang import GangEngine, GangUnavailable
from matnb.errors import CellCancelled, ClusterError, KernelError, TooLargeError
from matnb.events import Event, LoopAdvanced, LoopFinished, WorkersLost

N = 20_000


def matrix() -> sp.csr_array:
    rng = np.random.default_rng(0)
    rows = np.repeat(np.arange(N), 100)
    return sp.csr_array((rng.random(rows.size), (rows, rng.integers(0, N, rows.size))), shape=(N, N))


def slow_loop(iterations: int) -> mn.DistArray:
    """Return what a loop of some milliseconds an iteration gives."""
    a = mn.asarray(matrix(), blocks=4)
    x, _ = mn.iterate(lambda x: (a @ x) * 0.01 + 1, mn.ones(N), max_iterations=iterations)
    return x


def answer(iterations: int) -> np.ndarray:
    A, x = matrix(), np.ones(N)
    for _ in range(iterations):
        x = (A @ x) * 0.01 + 1
    return x


@pytest.mark.parametrize("processes", [False, pytest.param(True, marks=pytest.mark.cluster)])
def test_an_interrupt_ends_a_loop(processes: bool) -> None:
    options = {"workers": 2, "threads": 1} if processes else {"workers": 1, "threads": 2}
    with mn.start(processes=processes, **options) as session:
        float(slow_loop(2).sum())
        work = slow_loop(10**6)
        gc.collect()  # else the signal may land in a destructor, which swallows it
        timer = threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        begin = time.monotonic()
        with pytest.raises(CellCancelled, match=r"iterations? of a loop, whose state is not kept"):
            work.compute()
        assert time.monotonic() - begin < 1.5 + 2
        timer.join()
        end = time.monotonic() + 5
        while tasks_on_scheduler(session) > 12 and time.monotonic() < end:
            time.sleep(0.1)
        assert tasks_on_scheduler(session) <= 12
        np.testing.assert_allclose(slow_loop(3).compute(), answer(3))
    mn.stop()


def test_an_interrupt_that_comes_between_two_tasks_of_a_loop_tells_of_the_loop() -> None:
    def interrupts(event: Event) -> None:
        if isinstance(event, LoopAdvanced) and event.iterations >= 3:
            signal.raise_signal(signal.SIGINT)  # a listener is called on the driver, while no task runs

    with mn.start(processes=False, workers=1, threads=2, engine="dask") as session:
        ends = session.subscribe(interrupts)
        with pytest.raises(CellCancelled) as caught:
            slow_loop(10).compute()
        ends()
        told = re.fullmatch(r"interrupted, after at least (\d+) iterations of a loop, .*", str(caught.value))
        assert told is not None
        assert int(told[1]) >= 3
        np.testing.assert_allclose(slow_loop(3).compute(), answer(3))


@pytest.mark.slow
@pytest.mark.cluster
def test_a_loop_goes_on_when_a_member_is_killed() -> None:
    def slept(a: np.ndarray) -> np.ndarray:
        time.sleep(0.02)
        return a + 1

    count = 350  # of at least seven seconds, and a checkpoint after each two
    with mn.start(workers=2, threads=1, processes=True) as session:
        events: list[Event] = []
        session.subscribe(events.append)
        float(slow_loop(2).sum())
        pid = next(iter(session.cluster.client.run(os.getpid).values()))
        a = mn.asarray(matrix(), blocks=4)
        (x, steps), _ = mn.iterate(
            lambda s: ((a @ s[0]) * 0.01 + 1, mn.replicated(slept, s[1])),
            (mn.ones(N), mn.zeros(())),
            max_iterations=count,
        )
        timer = threading.Timer(4.0, os.kill, (pid, signal.SIGKILL))
        timer.start()
        value = x.compute()
        timer.join()
        place = next(k for k, one in enumerate(events) if isinstance(one, WorkersLost))
        finished = [one for one in events if isinstance(one, LoopFinished)][-1]
        assert (finished.iterations, finished.engine) == (count, "gang")
        after = [one.iterations for one in events[place:] if isinstance(one, LoopAdvanced)]
        assert after[0] > 10  # from the checkpoint, not from the start
        np.testing.assert_allclose(value, answer(count))
        assert float(steps) == count
    mn.stop()


@pytest.mark.parametrize(
    "options",
    [
        {"workers": 1, "threads": 2},
        {"workers": 3, "threads": 1},
        pytest.param({"workers": 2, "threads": 1, "processes": True}, marks=pytest.mark.cluster),
    ],
)
def test_a_body_that_raises_on_one_worker(options: dict) -> None:
    def refuse(x: np.ndarray) -> np.ndarray:
        if x.sum() > 40:
            raise RuntimeError("that is too much")
        return x

    with mn.start(**options):
        a = mn.asarray(np.arange(60_000.0), blocks=4)

        def step(state: tuple) -> tuple:
            x, small = state
            return x + a, mn.replicated(refuse, small + 1)

        (x, _), _ = mn.iterate(step, (mn.zeros(60_000), mn.zeros(5)), max_iterations=100)
        begin = time.monotonic()
        with pytest.raises(KernelError, match="that is too much"):
            x.compute()
        assert time.monotonic() - begin < 5
        assert float(mn.ones(10).sum()) == 10
    mn.stop()


def test_ten_thousand_iterations() -> None:
    with mn.start(workers=1, threads=2):
        x, n = mn.iterate(lambda x: x * 0.5 + 1, mn.zeros(10), max_iterations=10_000)
        np.testing.assert_array_equal(x.compute(), np.full(10, 2.0))
        assert int(n) == 10_000
    mn.stop()


def test_a_thousand_leaves() -> None:
    with mn.start(workers=2, threads=1):
        leaves = {str(k): mn.full(2, k, dtype=float) for k in range(1000)}
        found, _ = mn.iterate(
            lambda state: {key: value + 1 for key, value in state.items()}, leaves, max_iterations=3
        )
        totals = mn.compute(*found.values())
        np.testing.assert_array_equal([one[0] for one in totals], np.arange(1000) + 3.0)
    mn.stop()


@pytest.mark.parametrize("workers", [1, 4])
def test_empty_and_lonely_blocks(workers: int) -> None:
    with mn.start(workers=workers, threads=1):
        A = mn.asarray(sp.csr_array((4, 4)), blocks=[[0, 1, 1 + 2, 4], None])
        x, _ = mn.iterate(lambda x: A @ x + 1, mn.ones(4), max_iterations=3)
        np.testing.assert_array_equal(x.compute(), np.ones(4))
        nothing, _ = mn.iterate(lambda x: x * 2, mn.zeros((0, 3)), max_iterations=3)
        assert nothing.compute().shape == (0, 3)
        one = mn.asarray(np.eye(5), blocks=1)  # one block on however many workers
        y, _ = mn.iterate(lambda y: one @ y * 2, mn.ones(5), max_iterations=4)
        np.testing.assert_array_equal(y.compute(), np.full(5, 16.0))
    mn.stop()


@pytest.mark.slow
@pytest.mark.cluster
def test_two_sessions_loop_at_once_on_one_cluster() -> None:
    from distributed import Client, LocalCluster

    code = textwrap.dedent(
        """
        import sys
        import numpy as np
        import matnb as mn
        from matnb.events import LoopFinished
        if __name__ == "__main__":
            with mn.connect(sys.argv[1]) as session:
                loops = []
                session.subscribe(lambda one: loops.append(one) if isinstance(one, LoopFinished) else None)
                a = mn.asarray(np.arange(40_000.0), blocks=4)
                for k in range(10):
                    step = lambda x: x * 0.5 + a * a.sum() * 0 + k
                    x, _ = mn.iterate(step, mn.ones(40_000), max_iterations=50)
                    assert abs(float(x.sum()) - 80_000.0 * k) < 1e-3 * (k + 1), float(x.sum())
                print(sorted({one.engine for one in loops}), len(loops))
            mn.stop()
        """
    )
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster):
        started = [
            subprocess.Popen(
                [sys.executable, "-c", code, cluster.scheduler_address],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for _ in range(2)
        ]
        for one in started:
            out, error = one.communicate(timeout=100)
            assert one.returncode == 0, error
            assert out.strip().endswith("10"), out


def test_an_error_names_the_line_of_the_body() -> None:
    from matnb.lazy.recording import recording

    code = "\n".join(
        (
            "def step(x):",
            "    k = mn.iteration()",
            "    y = x * 2",
            "    return y + a[k + 3]",
            "x, n = mn.iterate(step, mn.zeros(2), max_iterations=9)",
        )
    )
    with mn.start(workers=1, threads=2) as session:
        names: dict[str, object] = {"mn": mn, "a": mn.asarray(np.arange(6.0))}
        with recording("a cell") as record:
            exec(compile(code, "a cell", "exec"), names)
            with pytest.raises(IndexError) as raised:
                session.run({"x": names["x"].expression}, record)
        assert raised.value.lines == (4,)
    mn.stop()


@pytest.mark.parametrize("engine", ["auto", "gang"])
def test_without_a_gang_the_driver_says_why(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **named: object) -> None:
        raise GangUnavailable("another session's loop is using the workers")

    monkeypatch.setattr(GangEngine, "run", refuse)
    with mn.start(engine=engine, workers=1, threads=2) as session:
        events: list[Event] = []
        session.subscribe(events.append)
        x, _ = mn.iterate(lambda x: x + 1, mn.zeros(3), max_iterations=3)
        if engine == "gang":
            with pytest.raises(
                ClusterError, match=r"as one long task on each worker .*: another session's loop"
            ):
                x.compute()
        else:
            np.testing.assert_array_equal(x.compute(), np.full(3, 3.0))
            (loop,) = (one for one in events if isinstance(one, LoopFinished))
            assert (loop.engine, loop.reason) == ("dask", "another session's loop is using the workers")
    mn.stop()


def test_a_sparse_state_that_stays_small_is_not_refused() -> None:
    # Of five entries in each row a guess makes a full matrix of 300 MB in four squares: it has 25,000 always.
    squares = sp.csr_array(sp.block_diag([np.full((5, 5), 0.2)] * 1000))
    with mn.start(workers=1, threads=2, memory_limit="64MB"):
        A = mn.asarray(squares)
        for step in (lambda x: x @ x, lambda x: x @ A):
            x, _ = mn.iterate(step, A, max_iterations=12)
            np.testing.assert_allclose(float(x.sum()), 5000)
        x, _ = mn.iterate(lambda x: x @ x, A, max_iterations=10**6, until=lambda old, new: True)
        np.testing.assert_allclose(float(x.sum()), 5000)
    mn.stop()


@pytest.mark.parametrize("engine", ["gang", "dask"])
def test_a_sparse_state_that_outgrows_the_memory(engine: str) -> None:
    rng = np.random.default_rng(0)
    rows, columns = rng.integers(0, 5000, (2, 15_000))
    A = sp.csr_array((np.ones(15_000), (rows, columns)), shape=(5000, 5000))
    with mn.start(engine=engine, workers=1, threads=2, memory_limit="64MB"):
        x, _ = mn.iterate(lambda x: x @ x, mn.asarray(A), max_iterations=12)
        begin = time.monotonic()
        with pytest.raises(TooLargeError, match=r"(have grown to|in a loop stores) .* left"):
            x.sum().compute()
        assert time.monotonic() - begin < 30
        assert float(mn.ones(10).sum()) == 10
    mn.stop()
