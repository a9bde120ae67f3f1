"""A long loop's progress is one line, updated in place, that goes when the cell ends."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from functools import partialmethod
from types import SimpleNamespace

import numpy as np
import pytest
from cells import run
from IPython.core.interactiveshell import InteractiveShell

from matnb.events import (
    BatchesFinished,
    LoopAdvanced,
    LoopFinished,
    RunFinished,
    RunStarted,
    RunStopped,
    SessionAwaited,
)
from matnb.magics.cell import Progress
from matnb.session import progress_line


class Watched:
    """What a Progress shows, at times that a test sets."""

    def __init__(self, is_live: bool = True) -> None:
        self.now = 100.0
        self.shown: list[tuple[str, bool]] = []
        self.ids: set[str] = set()
        self.listeners: list[object] = []
        shell = SimpleNamespace(display_pub=SimpleNamespace(publish=self._publish))
        self.progress = Progress(shell, is_live, lambda: self.now)  # type: ignore[arg-type]

    def _publish(self, data: dict[str, str], transient: dict[str, str], update: bool) -> None:
        assert bool(data["text/html"]) is bool(data["text/plain"])
        self.shown.append((data["text/plain"], update))
        self.ids.add(transient["display_id"])

    def subscribe(self, listener: object) -> object:
        self.listeners.append(listener)
        return lambda: self.listeners.remove(listener)

    def at(self, seconds: float, iterations: int, each: float = 0.01) -> None:
        self.now = 100.0 + seconds
        self.progress.hear(LoopAdvanced("1", iterations, each))


def finished() -> LoopFinished:
    return LoopFinished("1", "gang", "", 5, 3, 1, 0, (), 0, 1.0)


def test_a_short_loop_shows_nothing() -> None:
    watched = Watched()
    watched.at(0.1, 0)
    watched.at(0.4, 50)
    watched.progress.close()
    assert watched.shown == []


def test_a_long_loop_is_one_line_that_goes() -> None:
    watched = Watched()
    watched.at(0.6, 0, 0.0)
    watched.at(0.7, 10)
    watched.at(0.9, 1234)
    watched.progress.close()
    watched.progress.close()
    assert watched.shown == [
        ("loop: 0 iterations, 600 ms so far", False),
        ("loop: 1,234 iterations, 10 ms each, 900 ms so far", True),
        ("", True),
    ]
    assert len(watched.ids) == 1


def test_it_is_updated_four_times_a_second_at_most() -> None:
    watched = Watched()
    for hundredth in range(300):
        watched.at(hundredth / 100, hundredth)
    assert 9 <= len(watched.shown) <= 11


def test_a_second_loop_is_told_by_its_number() -> None:
    watched = Watched()
    watched.progress.hear(finished())
    watched.progress.hear(RunStarted("2", 3, 0))
    watched.at(1, 1)
    assert watched.shown == [("loop 2: 1 iteration, 10 ms each, 1 s so far", False)]
    watched.progress.close()


def test_the_line_goes_when_all_batches_are_done_and_comes_back_in_its_place() -> None:
    watched = Watched()
    watched.at(1, 1)
    watched.progress.hear(BatchesFinished())
    watched.at(2, 2)
    assert [update for _, update in watched.shown] == [False, True, True]
    assert watched.shown[1][0] == ""
    assert len(watched.ids) == 1


def test_what_is_closed_follows_no_session_any_more() -> None:
    watched = Watched()
    watched.progress.close()
    watched.progress.follow(watched)  # type: ignore[arg-type]
    assert watched.listeners == []


def test_a_run_that_is_no_loop_is_shown_until_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_line, "num_done", lambda: 2)
    watched = Watched()
    monkeypatch.setattr(watched.progress, "_watch", lambda: None)  # the thread calls draw() now and then
    watched.progress.hear(RunStarted("1", 8, 2000))
    for seconds in (0.3, 1.0):
        watched.now = 100.0 + seconds
        watched.progress.draw()
    assert watched.shown == [("2 of 8 tasks, 2 kB projected, 1 s so far, 3 s left", False)]
    watched.progress.hear(RunStopped("1"))
    watched.progress.draw()
    assert watched.shown[1:] == [("", True)]
    watched.progress.hear(RunStarted("2", 8, 2000))
    watched.now += 1.0
    watched.progress.close()
    watched.progress.draw()
    assert watched.shown[2:] == []


def ran(watched: Watched, seconds: float) -> None:
    watched.progress.hear(RunStarted("1", 8, 2000))
    watched.now += seconds
    watched.progress.hear(RunFinished("1", 0, 0, 0, 0, 0, 0, 0, 1.0, seconds))


def test_many_short_runs_are_one_line_while_they_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched()
    monkeypatch.setattr(watched.progress, "_watch", lambda: None)
    for _ in range(9):
        ran(watched, 0.1)
        watched.progress.draw()
    assert watched.shown == []
    ran(watched, 0.1)
    watched.progress.draw()
    ran(watched, 0.1)  # which takes no line away
    watched.progress.draw()
    assert watched.shown == [("10 short runs, 1 s so far", False), ("11 short runs, 1.1 s so far", True)]
    watched.now += 2.0
    watched.progress.draw()
    watched.progress.draw()
    assert watched.shown[2:] == [("", True)]  # what runs now is not ours
    for _ in range(10):
        ran(watched, 0.04)  # after a pause they are counted anew
    watched.progress.draw()
    assert watched.shown[3:] == []
    watched.at(3.6, 7)
    watched.progress.draw()
    assert watched.shown[3:] == [("loop: 7 iterations, 10 ms each, 3.6 s so far", True)]
    watched.progress.close()
    assert watched.shown[4:] == [("", True)]


def test_what_a_kernel_that_is_gone_has_left_vanishes() -> None:
    html: list[str] = []
    shell = SimpleNamespace(
        display_pub=SimpleNamespace(publish=lambda data, **_: html.append(data["text/html"]))
    )
    now = 100.0
    progress = Progress(shell, True, lambda: now)  # type: ignore[arg-type]
    progress.hear(SessionAwaited(("x",), 3))  # which is said once
    now = 101.0
    progress.hear(LoopAdvanced("1", 5, 0.1))
    progress.close()
    assert ["animation" in one for one in html] == [False, True, False]


DRAWN = threading.Event()


def wait_until_drawn(block: np.ndarray) -> np.ndarray:
    if block.size == 3:  # and not the two by which its result's shape is found, before anything runs
        assert DRAWN.wait(30)
    return block


@pytest.mark.parametrize("magic", ["", "%%distmat\n"])
def test_what_draws_is_a_thread_of_the_cells_own(shell: InteractiveShell, monkeypatch, magic: str) -> None:
    names: list[str] = []

    def draw(progress: Progress) -> None:
        names.append(threading.current_thread().name)
        DRAWN.set()

    DRAWN.clear()
    monkeypatch.setattr(Progress, "draw", draw)
    monkeypatch.setattr(Progress, "__init__", partialmethod(made_live, Progress.__init__))
    shell.user_ns["wait"] = wait_until_drawn
    run(shell, f"{magic}mn.map_blocks(wait, mn.ones(3), dtype=float).compute()")
    assert set(names) == {"matnb-progress"}


def made_live(progress: Progress, init: Callable[..., None], shell: object, is_live: bool) -> None:
    init(progress, shell, True)


def test_another_threads_loop_is_not_shown() -> None:
    watched = Watched()
    other = threading.Thread(target=watched.at, args=(1, 5))
    other.start()
    other.join()
    assert watched.shown == []


@pytest.mark.parametrize("is_live", [True, False])
def test_it_follows_a_session_until_it_is_closed_and_only_live(is_live: bool) -> None:
    watched = Watched(is_live)
    with watched.progress as progress:
        progress.follow(None)
        progress.follow(watched)  # type: ignore[arg-type]
        progress.follow(watched)  # type: ignore[arg-type]
        assert len(watched.listeners) == is_live
    assert watched.listeners == []


LEARNS = """
def step(x):
    time.sleep(0.05)
    return x
model = mn.learn.Model(
    lambda X, y: {"w": np.zeros(3)},
    lambda parameters, X, y: mn.replicated(step, X.mean()),
    update=lambda parameters, X, y: {"w": parameters["w"] + X.mean(axis=0)},
)
learner = mn.learn.Learner(model).fit(np.ones((60, 3)), epochs=2, batch_size=2)
"""


@pytest.mark.parametrize("magic", ["", "%%distmat\n"], ids=["plain", "with the magic"])
def test_a_learner_has_one_line_in_each_kind_of_cell(shell: InteractiveShell, magic: str) -> None:
    shell.kernel = SimpleNamespace(_allow_stdin=True)
    run(shell, "import time\n%config DistMat.display = 'live'")
    shell.display_pub.outputs.clear()
    run(shell, magic + LEARNS)
    lines = [one for one in shell.display_pub.outputs if (one["transient"] or {}).get("display_id")]
    texts = [one["data"]["text/plain"] for one in lines]
    for number in (1, 2):
        words = rf"batch \d+ of 30, pass {number} of 2, \d+ rows/s, .*left"
        assert any(re.fullmatch(words, one) for one in texts), texts
    assert texts[-1] == ""
    assert len({one["transient"]["display_id"] for one in lines}) == 1
    assert [one["update"] for one in lines] == [False] + [True] * (len(lines) - 1)


def test_a_plain_cell_shows_nothing_where_counts_alone_are_shown(shell: InteractiveShell) -> None:
    shell.kernel = SimpleNamespace(_allow_stdin=True)
    run(shell, "import time")
    shell.display_pub.outputs.clear()
    run(shell, LEARNS)
    assert shell.display_pub.outputs == []
