"""What the load monitor shows follows from the events, whatever their order and their threads."""

from __future__ import annotations

import gc
import threading
import time
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matnb.events import (
    BlocksMoved,
    CellRecorded,
    Event,
    LoopAdvanced,
    LoopFinished,
    Rebalanced,
    RunFinished,
    RunStarted,
    RunStopped,
    TasksFinished,
    TaskTimed,
    WorkerSample,
    WorkersBusy,
    WorkersLost,
    WorkersSampled,
)
from matnb.widgets.monitor_rows import MonitorFacts, WorkerFacts
from matnb.widgets.monitor_state import Feed


class Simulated:
    """A feed with a clock of its own."""

    def __init__(self, window_seconds: float = 60.0) -> None:
        self.now = 100.0
        self.feed = Feed(lambda: self.now, window_seconds)

    def hear(self, *events: Event) -> None:
        for event in events:
            self.feed.hear(event)

    def worker(self, number: int = 0) -> WorkerFacts:
        (found,) = [one for one in self.feed.facts().workers if one.number == number]
        return found


@pytest.fixture
def simulated() -> Simulated:
    return Simulated()


def sample(worker: int, memory: int = 0, received: int = 0, sent: int = 0, threads: int = 1) -> WorkerSample:
    return WorkerSample(worker, memory, 2 * 10**9, 3, 1, received, sent, threads)


def busy(worker: int, seconds: float, **by_kind: float) -> WorkersBusy:
    return WorkersBusy(worker, seconds, tuple(by_kind.items()))


def test_the_busy_share_is_kernel_seconds_over_thread_seconds(simulated: Simulated):
    simulated.hear(WorkersSampled((sample(0, threads=2),)))
    for _ in range(40):
        simulated.now += 0.25
        simulated.hear(busy(0, 0.25, product=0.2, map=0.05))
    found = simulated.worker()
    assert found.busy == pytest.approx({"product": 0.4, "map": 0.1}, abs=1e-3)
    assert found.history == pytest.approx([0.5] * 10, abs=1e-3)
    simulated.now += 10
    assert simulated.worker().busy == {}
    assert simulated.worker().history[:10] == pytest.approx([0.5] * 10, abs=1e-3)
    assert simulated.worker().history[-3:] == (0.0, 0.0, 0.0)


def test_seconds_that_come_late_are_shown_where_they_were_spent(simulated: Simulated):
    simulated.now += 8.0
    simulated.hear(busy(0, 4.0, map=2.0))
    assert simulated.worker().history == pytest.approx([0, 0, 0, 0, 0.5, 0.5, 0.5, 0.5], abs=1e-3)
    assert simulated.feed.facts().step_seconds == 1.0


def test_a_long_while_is_shown_as_far_as_it_is_remembered(simulated: Simulated):
    simulated.now += 500.0
    simulated.hear(busy(0, 499.0, map=249.5))
    assert simulated.worker().history == pytest.approx([0.5] * 60, abs=1e-3)
    assert simulated.worker().busy == pytest.approx({"map": 0.5}, abs=1e-3)


def test_no_share_is_over_one_and_the_window_is_bounded(simulated: Simulated):
    for _ in range(300):
        simulated.now += 0.5
        simulated.hear(busy(0, 0.5, product=3.0, map=1.0))
    found = simulated.worker()
    assert len(found.history) == 60
    assert set(found.history) == {1.0}
    assert found.busy == pytest.approx({"product": 0.75, "map": 0.25}, abs=1e-3)


def test_kernel_seconds_are_never_counted_twice(simulated: Simulated):
    simulated.now += 4.0
    task = TaskTimed("a-0", "product", 0, 2.0, 1, 1, 8)
    simulated.hear(busy(0, 4.0, product=2.0), TasksFinished("1", 0, (task,)))
    assert simulated.worker().history == pytest.approx([0.5] * 4, abs=1e-3)


def test_imbalance_is_the_busiest_over_the_mean(simulated: Simulated):
    for _ in range(4):
        simulated.now += 1.0
        simulated.hear(busy(0, 1.0, map=0.9), busy(1, 1.0, map=0.3), busy(2, 1.0, map=0.0))
    assert simulated.feed.facts().imbalance == pytest.approx([0.9 / 0.4] * 4, abs=1e-2)
    simulated.now += 5.0
    assert simulated.feed.facts().imbalance[-2:] == (1.0, 1.0)
    simulated.hear(WorkersLost("1", (2,)))
    assert simulated.feed.facts().imbalance[:4] == pytest.approx([0.9 / 0.6] * 4, abs=1e-2)


def test_bytes_a_second_are_those_of_the_last_seconds(simulated: Simulated):
    for step in range(1, 41):
        simulated.now += 0.25
        simulated.hear(WorkersSampled((sample(0, 10**9, received=step**2 * 1000, sent=step * 500),)))
    found = simulated.worker()
    assert (found.memory_bytes, found.limit_bytes) == (10**9, 2 * 10**9)
    assert (found.num_queued, found.num_running) == (3, 1)
    # Of what stays the last news may be older than the end: nothing runs or waits any more.
    last = simulated.feed.last_facts(None, is_closed=False).workers[0]
    assert (last.num_queued, last.num_running, last.memory_bytes) == (0, 0, 10**9)
    assert found.sent_bytes == pytest.approx(2000)
    assert found.received_bytes == pytest.approx((40**2 - 32**2) * 1000 / 2)
    simulated.now += 15
    assert simulated.worker().sent_bytes == 0.0


def test_lost_and_silent_workers_are_told_of_and_forgotten_later(simulated: Simulated):
    simulated.hear(WorkersSampled(tuple(sample(number) for number in range(3))))
    simulated.hear(WorkersLost("4", (1,)))
    assert [one.is_lost for one in simulated.feed.facts().workers] == [False, True, False]
    for _ in range(60):
        simulated.now += 0.25
        simulated.hear(WorkersSampled((sample(0), sample(3))))
    shown = {one.number: one.is_lost for one in simulated.feed.facts().workers}
    assert shown == {0: False, 1: True, 2: True, 3: False}  # the third left without a word
    simulated.now += 61
    simulated.hear(WorkersSampled((sample(0), sample(3))))
    assert [one.number for one in simulated.feed.facts().workers] == [0, 3]


def test_a_loop_tells_its_rate_and_what_is_left(simulated: Simulated):
    assert simulated.feed.facts() == MonitorFacts()
    simulated.hear(RunStarted("2", 10, 100), LoopAdvanced("2", 0, 0.0, 100.0))
    facts = simulated.feed.facts()
    assert (facts.iteration, facts.most_iterations, facts.seconds_left) == (0, 100.0, inf)
    simulated.hear(LoopAdvanced("2", 40, 0.5, 100.0))
    facts = simulated.feed.facts()
    assert (facts.iteration, facts.iteration_seconds, facts.seconds_left) == (40, 0.5, 30.0)
    simulated.now += 3.0
    simulated.hear(LoopAdvanced("2", 40, 0.5, 100.0))  # told again while the next one takes long
    assert simulated.feed.facts().seconds_left == pytest.approx(27.0)
    assert simulated.feed.facts().is_running
    recut = Rebalanced("A", "auto", "", True, False, 2.0, 1.1, 40, 0.1, 100)
    kept = Rebalanced("A", "auto", "", False, False, 1.0, 1.0, 50, 0.0, 0)
    simulated.hear(recut, kept, recut)
    assert simulated.feed.facts().num_repartitions == 2
    simulated.hear(LoopFinished("2", "gang", "", 100, 10, 2, 0, (), 0, 1.0))
    facts = simulated.feed.facts()
    assert (facts.iteration, facts.is_running, facts.seconds_left) == (-1, False, inf)


def test_what_a_condition_ends_has_no_time_left(simulated: Simulated):
    simulated.hear(LoopAdvanced("2", 40, 0.5, 100.0, has_until=True))
    assert simulated.feed.facts().seconds_left == inf
    simulated.hear(LoopAdvanced("2", 41, 0.5))
    assert simulated.feed.facts().seconds_left == inf


def test_a_run_that_fails_runs_no_more(simulated: Simulated):
    simulated.hear(RunStarted("1", 10, 100))
    assert simulated.feed.facts().is_running
    simulated.hear(RunStopped("1"))
    assert not simulated.feed.facts().is_running


NUMBERS = st.integers(0, 30)
SECONDS = st.sampled_from([0.0, 0.05, 0.25, 3.0, 25.0, 90.0, 500.0]) | st.floats(0, 200)
COUNTS = st.integers(0, 10**12)
BY_KIND = st.lists(st.tuples(st.text(max_size=8), st.floats(0, 100)), max_size=4).map(tuple)
SAMPLES = st.builds(WorkerSample, NUMBERS, COUNTS, COUNTS, COUNTS, COUNTS, COUNTS, COUNTS, st.integers(0, 64))
EVENTS = st.one_of(
    st.builds(WorkersBusy, NUMBERS, SECONDS, BY_KIND),
    st.builds(WorkersSampled, st.lists(SAMPLES, max_size=4).map(tuple)),
    st.builds(WorkersLost, st.just("1"), st.lists(NUMBERS, max_size=3).map(tuple)),
    st.builds(LoopAdvanced, st.just("1"), st.integers(0, 10**6), SECONDS, st.floats(0), st.booleans()),
    st.builds(RunStarted, st.just("1"), NUMBERS, COUNTS),
    st.just(RunStopped("1")),
    st.just(RunFinished("1", 0, 0, 0, 0, 0, 0, 0, 1.0, 0.0)),
    st.just(LoopFinished("1", "gang", "", 3, 1, 1, 0, (), 0, 1.0)),
    st.just(BlocksMoved("A", 1, 1, 0.0)),
    st.just(CellRecorded(1, 1)),
)


@given(st.lists(st.tuples(SECONDS, EVENTS, st.booleans()), max_size=60), st.sampled_from([2.0, 60.0]))
def test_any_order_of_events_is_shown(steps: list[tuple[float, Event, bool]], window: float):
    simulated = Simulated(window)
    for passed, event, looks in steps:
        simulated.now += passed
        simulated.hear(event)
        if looks:
            simulated.feed.facts()
    facts = simulated.feed.facts()
    assert [one.number for one in facts.workers] == sorted({one.number for one in facts.workers})
    assert len({len(one.history) for one in facts.workers}) <= 1
    for one in facts.workers:
        assert sum(one.busy.values()) <= 1.001
        assert all(0 <= share <= 1 for share in (*one.busy.values(), *one.history))
        assert len(one.history) <= 60
        assert len(one.busy) <= 25
        assert one.received_bytes >= 0
        assert one.sent_bytes >= 0
    assert all(ratio >= 0.999 for ratio in facts.imbalance)
    assert facts.seconds_left >= 0


def test_ten_thousand_updates_take_no_more_memory(simulated: Simulated):
    def update(times: int) -> None:
        for step in range(times):
            simulated.now += 0.25
            simulated.hear(LoopAdvanced("1", step, 0.25, 1e6))
            for number in range(4):
                simulated.hear(busy(number, 0.25, product=0.2, map=0.01))
            simulated.hear(WorkersSampled(tuple(sample(number, step, step, step) for number in range(4))))
            if step % 50 == 0:
                simulated.feed.facts()

    def held() -> tuple[int, int]:
        simulated.feed.facts()
        gc.collect()
        loads = simulated.feed._history._loads
        rings = (loads._all, *loads._kinds.values())
        return len(gc.get_objects()), sum(ring.seconds.nbytes for ring in rings)

    update(600)
    num_objects, num_bytes = held()
    update(10_000)
    after = held()
    assert after[0] < num_objects + 200
    assert after[1] == num_bytes


def test_what_nobody_looks_at_takes_no_more_memory(simulated: Simulated):
    for step in range(50_000):
        simulated.now += 0.01
        simulated.hear(busy(step % 3, 0.03, map=0.02))
    assert len(simulated.feed._heard) <= 8193
    assert simulated.worker().history == pytest.approx([0.6667] * 60, abs=0.01)


def test_events_may_come_on_any_thread():
    feed, done = Feed(), threading.Event()
    recut = Rebalanced("A", "auto", "", True, False, 2.0, 1.1, 40, 0.1, 100)

    def tell() -> None:
        for _ in range(5000):
            feed.hear(recut)
            feed.hear(busy(0, 0.001, map=0.001))

    tellers = [threading.Thread(target=tell) for _ in range(4)]
    looker = threading.Thread(target=lambda: [feed.facts() for _ in iter(done.is_set, True)])
    for thread in (*tellers, looker):
        thread.start()
    for thread in tellers:
        thread.join()
    done.set()
    looker.join()
    assert feed.facts().num_repartitions == 20_000


@pytest.mark.parametrize("num_workers", [1, 2, 64, 1000])
def test_looking_is_quick_however_many_workers_there_are(simulated: Simulated, num_workers: int):
    every = max(0.25, num_workers / 400)
    seconds = []
    for step in range(280):
        simulated.now += 0.25
        due = [number for number in range(num_workers) if (step + number) % round(every / 0.25) == 0]
        simulated.hear(*(busy(one, every, product=every / 2, map=every / 4, gather=0.01) for one in due))
        simulated.hear(WorkersSampled(tuple(sample(one, step, step, step, 1) for one in due)))
        if step % 20 == 0 or step > 270:
            begin = time.thread_time()
            facts = simulated.feed.facts()
            seconds.append(time.thread_time() - begin)
    assert len(facts.workers) == num_workers
    assert all(len(one.history) == 60 for one in facts.workers)
    spread = [share for one in facts.workers for share in one.history[2:-4]]
    assert min(spread) > 0.7
    assert max(spread) < 0.85
    assert all(0.6 < sum(one.busy.values()) < 0.9 for one in facts.workers)
    assert min(seconds[-9:]) < 0.02
