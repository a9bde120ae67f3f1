"""Whatever fails in the load monitor, what runs goes on, and its user is told once; sessions may end."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Iterator

import numpy as np
import pytest
from notebook_shell import Person, Recorded, num_drawing
from waiting import wait_until
from watched_kernel import VIEW

import matnb as mn
from matnb.widgets import monitor as monitors
from matnb.widgets import monitor_state
from matnb.widgets.monitor import close_monitor
from matnb.widgets.monitor_state import Feed

SIZE = 500


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the monitor look soon and often, and end it with the session."""
    monkeypatch.setattr(monitors, "FIRST_SECONDS", 0.02)
    monkeypatch.setattr(monitors, "BETWEEN_SECONDS", 0.01)
    monkeypatch.setattr(monitors, "LINGER_SECONDS", 0.05)
    monkeypatch.setattr(monitors, "CLOSE_SECONDS", 0.0)
    monkeypatch.setattr(monitors, "_SPARED", 0.0)
    yield
    close_monitor()
    mn.stop()


def looped(count: int) -> np.ndarray:
    a = mn.asarray(np.full((SIZE, SIZE), 1 / SIZE), blocks=2)
    x, _ = mn.iterate(lambda x: (a @ x) * 0.5 + 1.0, mn.ones(SIZE), max_iterations=count)
    return x.compute()


def raises(*_: object, **__: object) -> None:
    raise LookupError("<b>broken</b>")


def raises_later(monkeypatch: pytest.MonkeyPatch, owner: object, name: str, num_calls: int) -> None:
    """Let a function fail from a call on."""
    real, calls = getattr(owner, name), iter(range(num_calls))

    def wrapped(*arguments: object, **options: object) -> object:
        return raises() if next(calls, None) is None else real(*arguments, **options)

    monkeypatch.setattr(owner, name, wrapped)


@pytest.fixture(scope="module")
def wanted() -> bytes:
    """Return the bits of the loop that nobody looks at."""
    with mn.start(workers=2, threads=1):
        found = looped(800).tobytes()
    mn.stop()
    return found


@pytest.mark.parametrize("num_calls", [0, 2])
@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (monitors, "monitor_html"),
        (Recorded, "publish_msg"),
        (Feed, "hear"),
        (Feed, "facts"),
        (monitor_state, "reduce"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_a_run_is_right_and_one_warning_comes_at_the_cells_end(
    person: Person, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str],
    owner: object, name: str, num_calls: int, wanted: bytes,
) -> None:  # fmt: skip
    mn.start(workers=2, threads=1)
    found = mn.monitor(buttons=name == "publish_msg")  # which widgets alone send
    raises_later(monkeypatch, owner, name, num_calls)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert looped(800).tobytes() == wanted
        wait_until(lambda: found._failed is not None)
        assert seen == []
        person.end_cell()
        person.begin_cell()
        assert float(mn.ones(7).sum()) == 7.0
        person.end_cell()
    assert [str(one.message) for one in seen] == [
        "the load monitor stopped: LookupError: <b>broken</b>; mn.monitor() shows it again"
    ]
    assert capfd.readouterr() == ("", "")
    wait_until(lambda: not num_drawing())
    assert VIEW not in str(person.outputs)
    assert "the load monitor stopped: LookupError" in person.pictures[0]["text/plain"]
    monkeypatch.undo()


def test_a_picture_that_fails_at_the_cells_end_is_told_of_too(
    person: Person, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(monitors, "FIRST_SECONDS", 60.0)  # no widget, and nothing is drawn before
    mn.start(workers=1, threads=1)
    mn.monitor()
    monkeypatch.setattr(monitors, "monitor_html", raises)
    looped(3)
    with pytest.warns(UserWarning, match="LookupError") as seen:
        person.end_cell()
    assert len(seen) == 1
    assert "the load monitor stopped: LookupError" in person.pictures[0]["text/plain"]
    assert capfd.readouterr() == ("", "")


def test_what_failed_is_shown_again(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    mn.start(workers=1, threads=1)
    mn.monitor()
    with monkeypatch.context() as patch:
        patch.setattr(Feed, "hear", raises)
        looped(3)
        with pytest.warns(UserWarning, match="LookupError"):
            person.shell.events.trigger("post_run_cell", None)
    person.begin_cell()
    assert mn.monitor()._failed is None
    looped(4)
    person.end_cell()
    assert "1 worker, " in person.pictures[1]["text/plain"]


# sessions that end


def test_a_session_that_stops_is_told_of_and_the_next_one_is_followed(person: Person) -> None:
    session = mn.start(workers=3, threads=1)
    found = mn.monitor()
    looped(800)
    mn.stop()
    assert found._session is None
    assert session._listeners._all == ()
    person.end_cell()
    lines = person.pictures[0]["text/plain"].splitlines()
    assert re.match(r"at \S+ ended after iteration 800", lines[0])
    assert lines[0].endswith("the session was stopped")
    assert lines[1].startswith("3 workers, ")
    assert VIEW not in str(person.outputs)
    assert person.num_open == 0
    wait_until(lambda: not num_drawing())

    person.begin_cell()
    mn.start(workers=1, threads=1)
    looped(801)
    person.end_cell()
    text = person.pictures[0]["text/plain"]
    assert "stopped" not in text
    assert "1 worker, " in text  # none of those before
    assert len(person.pictures) == 1


def test_a_session_may_stop_while_it_is_looked_at(person: Person) -> None:
    found = mn.monitor()  # before any session
    text = person.pictures[0]["text/plain"]
    assert re.fullmatch(r"at \d\d:\d\d:\d\d: nothing has run yet\n0 workers, no repartition", text)
    for number in range(3):
        mn.start(workers=2, threads=1)
        looped(500 + number)
        wait_until(lambda: found.is_open)
        mn.stop()
        person.end_cell()
        assert "the session was stopped" in person.pictures[0]["text/plain"]
        person.begin_cell()
    wait_until(lambda: not num_drawing())
    assert person.num_open == 0


def test_a_cell_that_ends_while_a_picture_is_drawn_leaves_the_next_one_alone(person: Person) -> None:
    found = mn.monitor()
    mn.start(workers=1, threads=1)
    looped(500)
    wait_until(lambda: found.is_open)
    with found._drawing:
        time.sleep(0.2)  # the thread waits for this
        person.end_cell()
        person.begin_cell()
    wait_until(lambda: not num_drawing())
    assert not found.is_open


@pytest.mark.slow
def test_nothing_is_left_of_a_thousand_monitors(person: Person) -> None:
    session = mn.start(workers=1, threads=1)
    followers = len(mn.session.current._process.followers)
    hooks = {name: len(found) for name, found in person.shell.events.callbacks.items()}
    for number in range(1000):
        found = mn.monitor()
        if number % 100 == 0:
            looped(200 + number)
        found.close()
    assert session._listeners._all == ()
    assert len(mn.session.current._process.followers) == followers
    assert {name: len(found) for name, found in person.shell.events.callbacks.items()} == hooks
    assert person.num_open == 0
