"""Bad files through ``mn.load`` on two worker processes: one error each, soon, and nothing of them stays."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from bad_files import BAD
from distributed import Scheduler
from waiting import wait_until

import matnb as mn
from matnb.errors import FileFormatError
from matnb.events import Event, TasksFinished
from matnb.session import Session

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with mn.start(workers=2, threads=1, processes=True) as started:
        started.persist([mn.ones(3).expression])  # something good that has to outlive every bad file
        yield started
    mn.stop()


def held_keys(session: Session) -> set[str]:
    def tasks(dask_scheduler: Scheduler) -> set[str]:
        return set(map(str, dask_scheduler.tasks))

    return session.cluster.client.run_on_scheduler(tasks)


@pytest.mark.parametrize(
    ("name", "content", "line", "reason"), BAD, ids=[f"{name}-{reason}" for name, _, _, reason in BAD]
)
def test_bad_file(
    session: Session, tmp_path: Path, name: str, content: bytes | str, line: int | None, reason: str
):
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    before, num_arrays = held_keys(session), session.status().num_arrays
    begin = time.perf_counter()
    with pytest.raises(FileFormatError) as caught:
        mn.load(path)
    assert time.perf_counter() - begin < 10  # nobody waited for a time limit
    assert str(caught.value).startswith(f"{path}, line {line}: " if line else f"{path}: ")
    assert reason in caught.value.reason
    assert caught.value.line == line
    wait_until(lambda: held_keys(session) <= before)
    assert session.status().num_arrays == num_arrays


@pytest.mark.parametrize("last", ["9 x\n", "9\n"])
def test_a_bad_last_line_that_another_worker_reads(session: Session, tmp_path: Path, last: str):
    path = tmp_path / "edges.txt"
    path.write_text("1234567 7654321\n" * 30_000 + last)
    before, num_arrays = held_keys(session), session.status().num_arrays
    begin = time.perf_counter()
    with pytest.raises(FileFormatError, match=r"edges\.txt, line 30001: "):
        mn.load(path)
    assert time.perf_counter() - begin < 10  # nobody waited for a time limit
    wait_until(lambda: held_keys(session) <= before)
    assert session.status().num_arrays == num_arrays


def test_text_is_read_by_every_worker(session: Session, tmp_path: Path):
    path = tmp_path / "edges.txt"
    path.write_text("".join(f"{number} {number + 1}\n" for number in range(20_000)))
    seen: list[Event] = []
    end = session.subscribe(seen.append)
    try:
        graph = mn.load(path)
    finally:
        end()
    readers = [
        task.worker
        for event in seen
        if isinstance(event, TasksFinished)
        for task in event.tasks
        if task.kind == "parse"
    ]
    assert sorted(readers) == [0, 1]
    assert graph.nnz == 20_000
