"""Threads without a job do parts of others' jobs, and what goes wrong there is the job's."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from matnb.backend.tasks.thread_pool import Schedule, ThreadPool


def run_one(crew: ThreadPool, do: Callable[[int], None], num_jobs: int = 1) -> None:
    """Run jobs that wait for nothing."""
    schedule = Schedule([0] * num_jobs, [()] * num_jobs, [()] * num_jobs, [])
    crew.run(schedule, do, lambda slot: None, lambda: ())


@pytest.fixture
def crew():
    """Return three threads, the test's own among them."""
    crew = ThreadPool(3, lambda: None)
    yield crew
    crew.close()


def test_each_part_is_done_once_by_several_threads_before_the_job_ends(crew):
    meeting = threading.Barrier(3)
    done: list[int] = []
    ends: list[int] = []
    owner: list[threading.Thread] = []

    def part(number: int) -> None:
        if number < 3:  # which no thread can do alone
            meeting.wait(5)
        if threading.current_thread() is not owner[0]:  # who then waits
            time.sleep(0.01)
        done.append(number)

    def job(_: int) -> None:
        owner.append(threading.current_thread())
        crew.share(part, 20)
        ends.append(len(done))

    run_one(crew, job)
    assert sorted(done) == list(range(20))
    assert ends == [20]


def test_jobs_share_at_the_same_time(crew):
    done: list[tuple[int, int]] = []

    def job(number: int) -> None:
        crew.share(lambda part: done.append((number, part)), 7)

    for _ in range(50):
        done.clear()
        run_one(crew, job, 4)
        assert sorted(done) == [(job, part) for job in range(4) for part in range(7)]


@pytest.mark.parametrize("helps", [False, True])
def test_what_a_part_raises_the_job_raises_when_all_its_parts_have_ended(crew, helps):
    owner: list[threading.Thread] = []
    meeting = threading.Barrier(2)
    running: list[int] = []

    def part(number: int) -> None:
        running.append(number)
        if number < 2:
            meeting.wait(5)
        is_owner = threading.current_thread() is owner[0]
        running.remove(number)
        if is_owner != helps:
            raise ZeroDivisionError(number)

    def job(_: int) -> None:
        owner.append(threading.current_thread())
        try:
            crew.share(part, 100)
        finally:
            assert not running

    with pytest.raises(ZeroDivisionError):
        run_one(crew, job)


def test_one_thread_does_all_parts_itself():
    crew = ThreadPool(1, lambda: None)
    done: list[int] = []
    run_one(crew, lambda _: crew.share(done.append, 3))
    crew.close()
    assert done == [0, 1, 2]
