"""Jobs in order: rounds of which no job reads what another makes, on one thread where a batch is small."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from member_programs import FLOAT, Ranks, apply, state, task
from members import perform_all

from matnb.backend.gang import member
from matnb.backend.gang.jobs import MemberProgram
from matnb.backend.tasks.thread_pool import ThreadPool
from matnb.blocks.formats import Dense
from matnb.program.program import Batch, Program


@st.composite
def batches(draw: Callable[..., Any]) -> tuple[Program, list[tuple[str, ...]]]:
    """Tasks that read two of what is given and of what is made before them."""
    names, reads, tasks = ["x", "y"], [], []
    for number in range(draw(st.integers(1, 12))):
        both = tuple(draw(st.sampled_from(names)) for _ in range(2))
        tasks.append(task(f"t{number}", 0, both, (apply("add"), (0, 1))))
        reads.append(both)
        names.append(f"t{number}")
    results = tuple(draw(st.sets(st.sampled_from(names[2:]), min_size=1)))
    given = {"x": 0, "y": 0}
    return Program((Batch(tuple(tasks), results),), given, dict(given), frozenset(), results), reads


@given(batches())
@settings(deadline=None)
def test_rounds_keep_the_order_and_let_go_with_the_last_reader(drawn: tuple[Program, list]) -> None:
    program, reads = drawn
    part = MemberProgram(program, 0)
    (place,) = part.places
    rounds = part.batch(place).rounds
    assert [job.task.key for one in rounds for job in one.jobs] == [f"t{k}" for k in range(len(reads))]
    made_by = {job.task.key: number for number, one in enumerate(rounds) for job in one.jobs}
    last: dict[str, int] = {}
    for number, one in enumerate(rounds):
        for job in one.jobs:
            assert all(made_by.get(name, -1) < number for name in job.task.inputs)
            last.update(dict.fromkeys(job.task.inputs, number))
    for number, one in enumerate(rounds):
        dying = {name for name, when in last.items() if when == number} - set(program.results)
        assert set(one.gone) == dying
        for job in one.jobs:
            others = {name for other in one.jobs if other is not job for name in other.task.inputs}
            assert job.last_reads == dying.intersection(job.task.inputs) - others


@pytest.mark.parametrize("through", ["x", "z"])
def test_one_thread_in_order_and_several_give_the_same_bits(
    through: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranks = Ranks(9000, 5, (0,))
    program, held = ranks.program(9, None, through)
    found = []
    for small, large in ((2**23, 2**30), (2**23, 0), (-1, 0)):
        monkeypatch.setattr(member, "SMALL_BATCH_BYTES", small)
        monkeypatch.setattr(member, "LARGE_JOB_BYTES", large)
        for num_threads in (1, 3):
            done = perform_all(program, held, (0,), num_threads)
            found.append(state(done, ranks.blocks("x")).tobytes())
    assert len(set(found)) == 1


def test_small_work_begins_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []
    start = threading.Thread.start

    def counted(thread: threading.Thread) -> None:
        started.append(thread.name)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", counted)
    monkeypatch.setattr(ThreadPool, "run", None)
    ranks = Ranks(300, 1, (0,))
    program, held = ranks.program(9)
    found = perform_all(program, held, (0,), 3)
    assert not [name for name in started if name.startswith("matnb-member")]
    np.testing.assert_allclose(state(found, ranks.blocks("x")), ranks.expected(9)[0], rtol=1e-12)


def test_what_a_run_analyzed_is_kept_and_what_it_read_is_not() -> None:
    ranks = Ranks(300, 1, (0,))
    program, held = ranks.program(9)
    prepared: list[list[object]] = []
    for _ in range(2):
        perform_all(program, held, (0,), 2)
        part = program.by_member[0]
        assert isinstance(part, MemberProgram)
        prepared.append(list(part._prepared))
        assert all(job.prepared is None for job in part.jobs)
        passes = [one for each in part._prepared if each is not None for one in each._passes]
        assert passes
        assert all(getattr(one, "_rows", None) is None for one in passes)
        assert all(getattr(one, "_whole", None) is None for one in passes)
    assert all(one is other for one, other in zip(*prepared, strict=True))


def test_what_takes_long_is_shared_though_it_reads_little(monkeypatch: pytest.MonkeyPatch) -> None:
    shared: list[int] = []
    share = ThreadPool.share

    def counted(crew: ThreadPool, do: Callable[[int], None], count: int) -> None:
        shared.append(count)
        share(crew, do, count)

    monkeypatch.setattr(ThreadPool, "share", counted)
    held = {name: Dense(np.full(10_000, 2.0)) for name in ("x", "y")}  # 80 kB
    for name, expected in (("exp", [2]), ("negative", [])):
        tasks = tuple(task(f"{name}-{one}", 0, (one,), (apply(name, FLOAT), (0,))) for one in held)
        keys = tuple(one.key for one in tasks)
        given = dict.fromkeys(held, 0)
        program = Program((Batch(tasks, keys),), given, dict(given), frozenset(), keys)
        shared.clear()
        found = perform_all(program, held, (0,), 2)
        assert shared == expected
        for key in keys:
            np.testing.assert_array_equal(
                found[0].values[key].values, getattr(np, name)(np.full(10_000, 2.0))
            )
