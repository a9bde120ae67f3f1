"""Loops whose cuts follow the times, as it happens: a busy core, workers that come and go, one heavy row."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from distributed import LocalCluster

import matnb as mn
from matnb.events import Event, LoopAdvanced, LoopFinished, Rebalanced, WorkersLost

POLICIES = ["off", "auto", "entries", "presto"]
N = 2**15


def skewed() -> sp.csr_array:
    """Return a matrix most of whose entries are in its first rows."""
    rng = np.random.default_rng(3)
    rows = np.minimum((N * rng.random(600_000) ** 4).astype(int), N - 1)
    columns = rng.integers(0, N, rows.size)
    return sp.csr_array((rng.random(rows.size), (rows, columns)), shape=(N, N))


def looped(a: mn.DistArray, iterations: int = 250) -> list[bytes]:
    """Return the bits of a loop of products, elementwise operations and sums."""
    n = a.shape[0]
    start = mn.random.default_rng(1).random(n), mn.random.default_rng(2).random((n, 3)), 0.0

    def step(state: tuple) -> tuple:
        x, X, total = state
        y = a @ x
        y = y / np.sqrt((y * y).sum())
        return y * 0.9 + x * 0.1, (a @ X) * 0.01 + X * 0.5, total + abs(y - x).sum() * (mn.iteration() + 1)

    (x, X, total), count = mn.iterate(step, start, max_iterations=iterations)
    return [np.asarray(one.compute()).tobytes() for one in (x, X, total, count)]


def equal_rows(n: int, parts: int = 8) -> list[object]:
    return [np.linspace(0, n, parts + 1).astype(int).tolist(), None]


def acted() -> list[object]:
    return [one.decision for one in mn.history() if one.decision.acts]


def unbalanced(iterations: int = 250) -> list[bytes]:
    """Return the bits of the loop with one block on one worker."""
    with mn.start(workers=1, threads=1, rebalance="off"):
        found = looped(mn.asarray(skewed(), blocks=1), iterations)
    mn.stop()
    return found


@pytest.fixture(scope="module")
def bits() -> list[bytes]:
    return unbalanced()


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "iterations"), [("gang", 250), ("dask", 40)])
def test_the_bits_do_not_follow_the_balancing(engine: str, iterations: int, tmp_path: Path) -> None:
    bits = unbalanced(iterations)
    for policy in POLICIES:
        with mn.start(workers=2, threads=1, rebalance=policy, engine=engine):
            assert looped(mn.asarray(skewed(), blocks=equal_rows(N)), iterations) == bits, policy
            # Task by task an iteration takes so long that even cuts may not be worth it.
            assert bool(acted()) == (policy != "off") or (
                engine == "dask" and policy in ("auto", "entries")
            ), policy
            mn.history().save(tmp_path / f"{policy}.json")
        mn.stop()


@pytest.mark.parametrize("policy", ["auto", pytest.param("presto", marks=pytest.mark.slow)])
def test_the_bits_of_a_replay(bits: list[bytes], policy: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    with mn.start(workers=2, threads=1, rebalance=policy):
        looped(mn.asarray(skewed(), blocks=equal_rows(N)))
        decided = acted()
        mn.history().save(path)
    mn.stop()
    with mn.start(workers=2, threads=1, rebalance=str(path)):
        assert looped(mn.asarray(skewed(), blocks=equal_rows(N))) == bits
        again = acted()
    mn.stop()
    assert again
    assert [(one.iteration, one.after) for one in again] == [(one.iteration, one.after) for one in decided]
    assert {one.policy for one in again} == {"replay"}


@pytest.mark.slow
@pytest.mark.parametrize("place", [0, 500])
def test_a_row_with_half_of_all_entries_is_shared(place: int) -> None:
    # None of four workers can have an even share as long as one has the row.
    m, n = 1024, 2**21
    rng = np.random.default_rng(place)
    rows = np.append(np.full(n, place), np.repeat(np.arange(m), n // m))
    columns = np.append(np.arange(n), np.tile(np.arange(n // m) * 3, m))
    A = sp.csr_array((rng.random(rows.size), (rows, columns)), shape=(m, n))
    start, found = rng.random(n), {}
    for policy in ("off", "entries", "auto"):
        with mn.start(workers=4, threads=1, rebalance=policy):
            a = mn.asarray(A, blocks=equal_rows(m))
            x, _ = mn.iterate(lambda x, a=a: x * 0.5 + (a @ x).sum() * 1e-9, start, max_iterations=250)
            found[policy] = x.compute().tobytes()
            decided = acted()
            cuts = a.layout.grid.cuts[0]
        mn.stop()
        if policy != "off":
            assert decided[0].strategy == "uniform"
            assert (place, place + 1) in decided[0].after.ranges()
        if policy == "entries":
            assert {place, place + 1} <= set(cuts)
        assert found[policy] == found["off"]


class Burner:
    """A process that keeps one core busy while it is let."""

    def __init__(self, core: int) -> None:
        code = f"import os\nos.sched_setaffinity(0, {{{core}}})\nwhile True: pass"
        self._process = subprocess.Popen([sys.executable, "-c", code])
        self.stop()

    def go_on(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


@contextmanager
def burner(core: int) -> Iterator[Burner]:
    made = Burner(core)
    try:
        yield made
    finally:
        made.close()


def share_of(owner: int, cuts: object) -> float:
    """Return a worker's part of the rows."""
    ranges = zip(cuts.ranges(), cuts.owners, strict=True)
    return sum(high - low for (low, high), one in ranges if one == owner) / cuts.cuts[-1]


def burned(limit: int = 100, begin: int = 12, end: int = 45) -> tuple[str, list[tuple[int, float]]]:
    """Run a loop while a core is kept busy from one iteration to another.

    Returns
    -------
    tuple
        What went wrong, or nothing; and after which iterations the first worker had which part of the rows.
    """
    n, per_row = 20_000, 400
    rng = np.random.default_rng(0)
    rows = np.repeat(np.arange(n), per_row)
    columns = np.clip(rows + rng.integers(-500, 500, rows.size), 0, n - 1)
    A = sp.csr_array((rng.random(rows.size), (rows, columns)), shape=(n, n))
    cores = sorted(os.sched_getaffinity(0))
    told: dict[str, int] = {}

    def pin(core: int) -> None:
        for thread in os.listdir("/proc/self/task"):
            os.sched_setaffinity(int(thread), {core})

    with (
        mn.start(workers=2, threads=1, processes=True, rebalance="auto") as session,
        burner(cores[0]) as other,
    ):
        client = session.cluster.client
        for number, worker in enumerate(session.cluster.workers):
            client.run(pin, cores[number], workers=[worker.address])
        a = mn.asarray(A, blocks=equal_rows(n, 4))
        # Iterations are long: what a core of a shared machine does in 0.1 s differs by half.
        wide = mn.asarray(np.ones((n, 200)))

        def loop(iterations: int) -> mn.DistArray:
            X, _ = mn.iterate(lambda X: (a @ X) * (1 / per_row) + 1, wide, max_iterations=iterations)
            return X

        loop(3).persist()

        def listen(event: Event) -> None:
            if isinstance(event, LoopAdvanced):
                if "began" not in told and event.iterations >= begin:
                    told["began"] = event.iterations
                    other.go_on()
                if "ended" not in told and event.iterations >= end:
                    told["ended"] = event.iterations
                    other.stop()

        session.subscribe(listen)
        loop(limit).persist()
        shares = [
            (one.decision.iteration, share_of(0, one.decision.after))
            for one in mn.history()
            if one.decision.acts
        ]
    mn.stop()
    began, ended = told["began"], told["ended"]
    during = [(at, share) for at, share in shares if began < at <= ended]
    after = [(at, share) for at, share in shares if at > ended]
    # Half of the other's work is a third of all.
    if not during or during[0][0] > began + 5 or not 0.27 < during[0][1] < 0.42:
        return f"with the burner from iteration {began} on", shares
    if not after or after[0][0] > ended + 20 or not 0.43 < after[-1][1] < 0.57:
        return f"without it from iteration {ended} on", shares
    return "", shares


@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2, reason="needs two cores to pin"
)
def test_a_worker_beside_a_burner_is_given_half_the_others_work_for_the_while() -> None:
    tries = []
    for _ in range(4):  # others may be at work here, too
        wrong, shares = burned()
        if not wrong:
            return
        tries.append(f"{wrong}: {shares}")
    pytest.fail("\n".join(tries))


class Changes:
    """Adds a worker while a loop runs, kills one when the blocks have spread, and ends the loop after that.

    Parameters
    ----------
    end
        The file that ends the loop once it is there.
    """

    def __init__(self, cluster: LocalCluster, pids: list[int], end: Path) -> None:
        self._cluster, self._pids, self._end = cluster, pids, end
        self.events: list[Event] = []
        self.scaling: threading.Thread | None = None
        self.spread_at = self.lost_at = sys.maxsize

    def __call__(self, event: Event) -> None:
        self.events.append(event)
        match event:
            case Rebalanced(policy="workers", acted=True, iteration=at) if at > 0 and self._pids:
                self.spread_at = at
            case WorkersLost():
                self.lost_at = max(one.iterations for one in self.events if isinstance(one, LoopAdvanced))
            case LoopAdvanced(_, iterations, _):
                self._advanced(iterations)

    def _advanced(self, iterations: int) -> None:
        if iterations >= 30 and self.scaling is None:
            self.scaling = threading.Thread(target=self._cluster.scale, args=(3,))
            self.scaling.start()
        if iterations > self.spread_at + 20 and self._pids:
            os.kill(self._pids.pop(), signal.SIGKILL)
            self._pids.clear()
        if iterations > self.lost_at + 20:
            self._end.touch()


@pytest.mark.slow
@pytest.mark.cluster
def test_workers_come_and_are_killed_while_a_loop_runs(tmp_path: Path) -> None:
    end, wide = tmp_path / "end", 48

    def is_over(total: np.ndarray) -> np.ndarray:
        return np.array(float(end.exists())) + 0 * total

    def product(a: mn.DistArray, X: mn.DistArray) -> mn.DistArray:
        return (a @ X) * 0.01 + 1

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        mn.connect(cluster) as session,
    ):
        changes = Changes(cluster, list(session.cluster.client.run(os.getpid).values()), end)
        session.subscribe(changes)
        a = mn.asarray(skewed(), blocks=equal_rows(N))
        (X, _), count = mn.iterate(
            lambda state: (product(a, state[0]), mn.replicated(is_over, state[1])),
            (mn.ones((N, wide)), mn.zeros(())),
            until=lambda old, new: new[1] > 0.5,
            max_iterations=4000,
        )
        value, num_done = X.compute(), int(count)
        assert changes.scaling is not None
        changes.scaling.join()
        assert any(isinstance(one, WorkersLost) for one in changes.events)
        assert end.exists()
        finished = next(one for one in changes.events if isinstance(one, LoopFinished))
        assert (finished.iterations, finished.engine) == (num_done, "gang")
        alive = set(session.cluster.alive())
        assert len(set(a.layout.owners)) >= 2
        assert set(a.layout.owners) <= alive
        assert max(a.layout.owners) >= 2  # the one that came has some
    mn.stop()
    with mn.start(workers=1, threads=2, rebalance="off"):
        a = mn.asarray(skewed())
        X, _ = mn.iterate(lambda X: product(a, X), mn.ones((N, wide)), max_iterations=num_done)
        assert X.compute().tobytes() == value.tobytes()
    mn.stop()
