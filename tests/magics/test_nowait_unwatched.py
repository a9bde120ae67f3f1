"""``%%distmat --nowait`` where nobody watches: the cell waits, raises nothing, and an error is not lost."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from cells import fail, run
from waiting import wait_until

from matnb.errors import CellCancelled, SingularError
from matnb.session import background
from matnb.session.background import unasked

SLOW = "x, n = mn.iterate(lambda x: x * 0.5 + 1, mn.ones(50), max_iterations=3000)\nx"
SINGULAR = "z = mn.asarray(np.array([[1.0, 2], [2, 4]]))\nw = np.linalg.inv(z)"


@pytest.fixture(autouse=True)
def _none_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "_failed", [])


def test_the_cell_ends_when_its_work_has_ended(shell):
    run(shell, f"%%distmat --nowait --out job\n{SLOW}")
    job = shell.user_ns["job"]
    assert (job.done, job.state) == (True, "done")
    np.testing.assert_allclose(job.result(0).compute(), 2)
    assert unasked() is None


def test_what_the_cell_shows_is_how_the_work_ended(shell, capsys):
    run(shell, f"%%distmat --nowait\n{SLOW}")
    assert capsys.readouterr().out.strip().endswith("done: 2 results, x, n")
    run(shell, f"%%distmat --nowait\n{SINGULAR}\nw")
    assert "failed: 1 result, w; SingularError: " in capsys.readouterr().out


def test_a_live_cell_does_not_wait(shell):
    run(shell, "%config DistMat.display = 'live'")
    run(shell, f"%%distmat --nowait --out job\n{SLOW.replace('3000', '10**8')}")
    assert not shell.user_ns["job"].done
    shell.user_ns["job"].cancel()


def test_an_error_is_not_the_cells_and_is_kept_until_somebody_asks(shell, capsys):
    run(shell, f"%%distmat --nowait --out job\n{SINGULAR}")
    job = shell.user_ns["job"]
    number = shell.execution_count - 1
    assert job.state == "failed"
    assert unasked() is job
    assert job.cell == number
    shell.user_ns.pop("job")
    run(shell, f"%%distmat --nowait --out second\n{SINGULAR}")
    error, text = fail(shell, capsys, "from matnb.cli.execution import raise_unasked\nraise_unasked()")
    assert isinstance(error, SingularError)
    assert text.startswith(f"SingularError in Cell In[{number}], line 3\n")
    assert unasked() is shell.user_ns["second"]
    run(shell, "try:\n    second.result()\nexcept np.linalg.LinAlgError:\n    pass")
    assert unasked() is None


def test_what_was_awaited_was_asked_for(shell):
    run(shell, f"%%distmat --nowait --out job\n{SINGULAR}")
    run(shell, "try:\n    await job\nexcept np.linalg.LinAlgError as error:\n    told = str(error)")
    assert "Singular" in shell.user_ns["told"]
    assert unasked() is None


def test_what_was_cancelled_failed_not(shell):
    run(shell, "session = mn.current_session()")
    session = shell.user_ns["session"]
    timer = threading.Timer(0.7, lambda: session._background._running.cancel())
    timer.start()
    run(shell, f"%%distmat --nowait --out job\n{SLOW.replace('3000', '10**8')}")
    timer.join()
    assert shell.user_ns["job"].state == "cancelled"
    assert unasked() is None


def test_an_interrupt_ends_the_waiting_alone(shell, capsys):
    import signal

    timer = threading.Timer(1.0, lambda: signal.raise_signal(signal.SIGINT))
    timer.start()
    error, text = fail(shell, capsys, f"%%distmat --nowait --out job\n{SLOW.replace('3000', '10**8')}")
    timer.join()
    assert isinstance(error, CellCancelled)
    assert text == (
        "CellCancelled: interrupted while waiting for the background work of x, n; nothing was "
        "cancelled; cancel() of its handle ends it\n"
    )
    job = shell.user_ns["job"]
    assert job.state == "running"
    assert job.cancel()
    wait_until(lambda: job.done)
