"""The line in a terminal: written from half a second on, gone at the end, and nowhere but in a terminal."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import subprocess
import sys
import termios
import time

import numba
import numpy as np
import pytest

import matnb as mn
from matnb.backend.tasks import worker
from matnb.backend.tasks.worker import num_done
from matnb.blocks.kernels.compiled import compiled_so_far
from matnb.events import (
    BatchesFinished,
    BatchSpan,
    LoopAdvanced,
    LoopFinished,
    RunFinished,
    RunStarted,
    RunStopped,
    TaskTimed,
)
from matnb.pictures.summary import fitting_text, progress_text
from matnb.session import progress_line
from matnb.session.progress_line import TerminalLine
from matnb.widgets.monitor_rows import state_text
from matnb.widgets.monitor_state import Feed

SCRIPT = """
import time
import matnb as mn
def slowly(x):
    time.sleep(1.2)
    return x
print("begin")
mn.map_blocks(slowly, mn.ones(3), dtype=float).compute()
print("end")
"""
SPAN = BatchSpan(0, 3, 100, 980, 10, 100, 1000, 40.0, 0.4132, 0.4207)


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> TerminalLine:
    monkeypatch.setattr(progress_line, "_BETWEEN_SECONDS", 60.0)
    monkeypatch.setattr(progress_line, "_is_wanted", True)
    written: list[str] = []
    clock = [100.0]
    found = TerminalLine(io.StringIO(), lambda: clock[0])

    def write(text: str) -> None:
        written.append(text)
        found._bar = FakeBar(written)

    monkeypatch.setattr(found, "_write", write)
    found.written, found.now = written, clock  # type: ignore[attr-defined]
    return found


class FakeBar:
    """Notes that the line was taken away."""

    def __init__(self, written: list[str]) -> None:
        self._written = written

    def close(self) -> None:
        self._written.append("")


def at(line: TerminalLine, seconds: float) -> list[str]:
    line.now[0] = 100.0 + seconds  # type: ignore[attr-defined]
    line.draw()
    return line.written  # type: ignore[attr-defined, no-any-return]


def finished() -> RunFinished:
    return RunFinished("1", 0, 0, 0, 3, 0, 0, 0, 1.0, 0.1)


def test_a_run_is_told_from_half_a_second_on_and_goes(line: TerminalLine) -> None:
    line.hear(RunStarted("1", 3, 2000))
    assert at(line, 0.4) == []
    assert at(line, 0.6) == ["3 tasks, 2 kB projected, 600 ms so far"]
    line.hear(finished())
    assert at(line, 0.9)[1:] == [""]


def test_tasks_done_and_bytes_read_are_told_with_one_estimate(line, monkeypatch) -> None:
    done: list[int | None] = [None]
    monkeypatch.setattr(progress_line, "num_done", lambda: done[0])
    line.hear(RunStarted("1", 8, 2000, read_bytes=400_000_000))
    found = []
    for seconds, done[0] in ((1.0, None), (1.5, 0), (3.0, 3), (4.0, 2), (4.5, 9)):  # of another run, say
        found.append(at(line, seconds)[-1])
    assert found == [
        "8 tasks, 2 kB projected, 1 s so far",
        "0 of 8 tasks, 0 B of 400 MB read, 1.5 s so far",
        "3 of 8 tasks, 150 MB of 400 MB read, 3 s so far, 5 s left",
        "3 of 8 tasks, 150 MB of 400 MB read, 4 s so far, 6.67 s left",
        "8 of 8 tasks done, bringing the results together, 4.5 s so far",
    ]


def test_what_is_compiled_is_told_while_it_is(line, monkeypatch) -> None:
    told = [7, False]
    monkeypatch.setattr(progress_line, "num_done", lambda: 1)
    monkeypatch.setattr(progress_line, "compiled_so_far", lambda: tuple(told))
    line.hear(RunStarted("1", 3, 2000))
    told[:] = 9, True
    assert "1 of 3 tasks, 2 kB projected, compiling, first time only: loop 2, 1 s so far" in at(line, 1.0)
    told[:] = 9, False
    assert at(line, 2.0)[-1] == "1 of 3 tasks, 2 kB projected, 2 s so far, 4 s left"


def test_a_loop_that_calls_another_is_one_that_is_compiled() -> None:
    @numba.njit  # whose code is kept nowhere
    def inner(number):
        return number + 1

    @numba.njit  # whose code is kept nowhere
    def outer(number):
        return inner(number) * 2

    before, _ = compiled_so_far()
    assert outer.py_func(3) == 8  # compiles the inner one
    assert compiled_so_far() == (before + 1, False)
    assert outer(2.5) == 7.0  # both
    assert compiled_so_far() == (before + 2, False)


def num_done_here(block: np.ndarray) -> np.ndarray:
    done = num_done()
    return np.full(block.shape, -1.0 if done is None else done)


def test_tasks_are_counted_while_they_run() -> None:
    with mn.start(workers=1, threads=1, memo="off"):
        x = mn.asarray(np.arange(4.0), blocks=4)
        counts = np.sort(mn.map_blocks(num_done_here, x, dtype=float).compute())
    mn.stop()
    assert counts[0] >= 0
    assert np.all(np.diff(counts) > 0)
    assert num_done() is None


def test_what_another_run_left_is_not_counted() -> None:
    other = worker.RunId("another-session-", 10**9)
    worker._timed[other, 0] = [TaskTimed(0, "read", 0, 0.1, 1, 1, 8)]
    try:
        assert num_done() is None
        test_tasks_are_counted_while_they_run()
    finally:
        worker.forget(other)
        worker._forgotten.discard(other)


def test_loading_tells_how_much_there_is_to_read(tmp_path) -> None:
    path = tmp_path / "numbers.csv"
    path.write_text("a,b\n" + "1,2\n" * 100)
    with mn.start(workers=1, threads=1) as session:
        begun: list[RunStarted] = []
        session.subscribe(lambda event: begun.append(event) if isinstance(event, RunStarted) else None)
        mn.load(path)
    mn.stop()
    assert [one.read_bytes for one in begun if one.read_bytes] == [path.stat().st_size]


def test_all_who_show_a_run_say_the_same(line, monkeypatch) -> None:
    monkeypatch.setattr(progress_line, "num_done", lambda: 2)
    feed = Feed(clock=lambda: line.now[0])
    ended = LoopFinished("1", "gang", "", 5, 3, 1, 0, (), 0, 1.0)
    for event in (RunStarted("1", 3, 2000), LoopAdvanced("1", 4, 0.5, 10.0), RunStarted("2", 4, 0)):
        for hear in (line.hear, feed.hear):
            if event.run == "2":
                hear(ended)
            hear(event)
        text = at(line, line.now[0] - 100.0 + 1.25)[-1]
        shown = state_text(feed.facts())
        assert text.rpartition(", ")[2] == shown.rpartition(", ")[2]
        assert text.endswith("left")
        assert isinstance(event, LoopAdvanced) or text == shown


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_it_goes_on_an_error_and_an_interrupt(line: TerminalLine, is_cancelled: bool) -> None:
    line.hear(RunStarted("1", 3, 2000))
    line.hear(LoopAdvanced("1", 5, 0.1))
    assert at(line, 1.0) == ["loop: 5 iterations, 100 ms each, 1 s so far"]
    line.hear(RunStopped("1", is_cancelled))
    assert at(line, 2.0)[1:] == [""]


def test_between_the_loops_of_a_learner_it_stays(line: TerminalLine) -> None:
    line.hear(RunStarted("1", 3, 2000))
    line.hear(LoopAdvanced("1", 20, 0.1, batches=SPAN))
    assert at(line, 0.1)[0].startswith("batch 120 of 980, pass 1 of 3")
    line.hear(LoopFinished("1", "gang", "", 5, 3, 1, 0, (), 0, 1.0))
    assert "" not in at(line, 0.2)
    line.hear(BatchesFinished())
    assert at(line, 0.3)[-1] == ""


def test_it_is_shown_to_those_who_want_it(line: TerminalLine, monkeypatch: pytest.MonkeyPatch) -> None:
    progress_line.progress(False)
    line.hear(RunStarted("1", 3, 2000))
    assert at(line, 1.0) == []
    monkeypatch.setattr(progress_line, "_is_wanted", None)
    monkeypatch.setenv("MATNB_PROGRESS", "0")
    assert at(line, 1.0) == []
    monkeypatch.delenv("MATNB_PROGRESS")
    assert at(line, 1.0) != []


def test_a_learners_line() -> None:
    loop = LoopAdvanced("1", 20, 0.01, 880.0, flops=32_000_000, accessed_bytes=10, batches=SPAN)
    words = "batch 120 of 980, pass 1 of 3, 120 rows/s, 3.2 GFLOP/s, loss .4132 (held-out .4207)"
    assert progress_text(0, loop, 9.0, 50.0) == f"{words}, 3 min 55 s left"
    assert fitting_text("a, b, c, 3 s left", 12) == "a, 3 s left"
    unknown = LoopAdvanced("1", 2, 0.0, batches=BatchSpan(0, 1, 0, None, 5, 0, 0, 40.0))
    assert progress_text(0, unknown, 9.0, 50.0) == "batch 2, 1 rows/s"


def test_a_loop_of_known_length_tells_what_is_left() -> None:
    loop = LoopAdvanced("1", 20, 0.1, 100.0, flops=10**8, accessed_bytes=10**6)
    assert progress_text(0, loop, 2.0, 0.0) == (
        "loop: 20 of 100 iterations, 100 ms each, 1 GFLOP/s, 10 MB/s, 2 s so far, 8 s left"
    )


def output_of(is_terminal: bool, **variables: str) -> str:
    """Return what a script writes to standard error and output, in a terminal or not."""
    given = {**os.environ, **variables}
    if not is_terminal:
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT], capture_output=True, env=given, timeout=60, check=True
        )
        return (done.stdout + done.stderr).decode()
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    running = subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=theirs, stderr=theirs, env=given)
    os.close(theirs)
    found, end = b"", time.monotonic() + 60
    while time.monotonic() < end:
        try:
            part = os.read(ours, 65536)
        except OSError:  # its end, as Linux tells it
            break
        found += part
    os.close(ours)
    assert running.wait(10) == 0
    return found.decode()


def test_a_script_in_a_terminal_shows_one_line_that_goes() -> None:
    written = output_of(True)
    assert "projected, " in written
    shown, _, after = written.partition("end")
    assert shown.rpartition("\r")[2] == ""  # what is printed next begins its line
    assert shown.rstrip("\r").rpartition("\r")[2].strip() == ""  # and the line was wiped
    assert shown.count("\n") == 1  # after "begin"
    assert after == "\r\n"


@pytest.mark.parametrize(("is_terminal", "wish"), [(False, "1"), (True, "0")])
def test_nothing_is_written_elsewhere_or_where_it_is_not_wanted(is_terminal: bool, wish: str) -> None:
    assert output_of(is_terminal, MATNB_PROGRESS=wish).replace("\r", "") == "begin\nend\n"
