"""``%%distmat --nowait``: names at once, results in the background and in order; only ``cancel`` ends it."""

from __future__ import annotations

import asyncio
import re
import threading
import time

import numpy as np
import pytest
from cells import fail, run
from waiting import wait_until

import matnb as mn
from matnb.errors import CellCancelled, SingularError

ENDLESS = "x, n = mn.iterate(lambda x: A @ x, mn.ones(50), max_iterations=10**8)\nx"
SETUP = "A = mn.asarray(np.full((50, 50), 0.02), blocks=2)"


@pytest.fixture
def static_shell(shell):
    """Return the shell as it is where nobody watches."""
    return shell


@pytest.fixture
def shell(shell):
    """Return the shell as a user has it, for whom nothing is waited for."""
    run(shell, "%config DistMat.display = 'live'")
    return shell


@pytest.fixture
def endless(shell):
    run(shell, SETUP)
    run(shell, f"%%distmat --nowait --out endless\n{ENDLESS}")
    handle = shell.user_ns["endless"]
    wait_until(lambda: handle.state == "running")
    return handle


def background() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "matnb-later"]


def test_names_are_there_at_once_and_their_values_are_waited_for(shell, capsys):
    assert run(shell, "%%distmat --nowait\nx = mn.arange(2000.0) * 3\ns = x.sum()\ns") == []
    shown = capsys.readouterr().out
    assert ": 1 result, s" in shown
    handle = shell.user_ns["_"]
    assert handle.result(10) is shell.user_ns["s"]
    assert handle.done
    assert handle.state == "done"
    assert shell.user_ns["s"].facts().stored
    assert handle.report.finished.num_tasks > 0
    run(shell, "%%distmat --nowait\nlater = x + 1")
    assert float(shell.user_ns["later"].sum()) == 3 * np.arange(2000.0).sum() + 2000
    wait_until(lambda: background() == [])


def test_two_cells_run_in_the_order_in_which_they_came(shell, endless):
    run(shell, "%%distmat --nowait --out second\ny = mn.ones(7) + 1\ny.sum()")
    second = shell.user_ns["second"]
    time.sleep(0.3)
    assert (endless.state, second.state) == ("running", "waiting")
    with pytest.raises(TimeoutError, match="it keeps running"):
        second.result(0.01)
    assert endless.cancel()
    assert float(second.result(10)) == 14
    assert endless.state == "cancelled"


def test_cancel_ends_it_within_two_seconds_and_the_session_works_on(shell, endless):
    begin = time.perf_counter()
    assert endless.cancel()
    with pytest.raises(CellCancelled):
        endless.result(10)
    assert time.perf_counter() - begin < 2
    assert not endless.cancel()
    assert float((mn.ones(9) + 1).sum()) == 18


def test_what_waits_is_taken_back_at_once(shell, endless):
    run(shell, "%%distmat --nowait --out second\nmn.ones(7) + 1")
    second = shell.user_ns["second"]
    assert second.cancel()
    assert second.done
    with pytest.raises(CellCancelled, match="cancelled before it was begun"):
        second.result()
    assert endless.state == "running"


def test_a_session_that_is_cancelled_cancels_what_runs_in_the_background(shell, endless):
    assert mn.current_session().cancel()
    with pytest.raises(CellCancelled):
        endless.result(10)


def test_an_interrupt_of_who_waits_does_not_end_it(shell, endless):
    import signal

    timer = threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        endless.result(20)
    timer.join()
    assert endless.state == "running"
    endless.cancel()


def test_an_error_comes_out_at_the_result_with_the_cells_line(shell, capsys):
    run(
        shell,
        "%%distmat --nowait --out job\nz = mn.asarray(np.array([[1.0, 2], [2, 4]]))\nw = np.linalg.inv(z)",
    )
    number = shell.execution_count - 1
    error, text = fail(shell, capsys, "job.result()")
    assert isinstance(error, SingularError)
    assert text.startswith(f"SingularError in Cell In[{number}], line 3\n----> 3 w = np.linalg.inv(z)\n")
    job = shell.user_ns["job"]
    assert job.state == "failed"
    assert "failed after" in repr(job)
    assert "Singular matrix" in repr(job)


def test_an_error_while_it_is_recorded_is_the_cells_own(shell, capsys):
    error, text = fail(shell, capsys, "%%distmat --nowait\nmn.ones(3) + mn.ones(4)")
    assert "line 2" in text
    assert not isinstance(error, SingularError)


def test_it_is_awaited(shell, endless):
    run(shell, "%%distmat --nowait --out second\ny = mn.ones(7) + 1\ny.sum()")
    second = shell.user_ns["second"]

    async def scenario():
        asyncio.get_running_loop().call_later(0.2, endless.cancel)
        ticks = asyncio.create_task(asyncio.sleep(0.1))
        value = await second
        assert ticks.done(), "others run meanwhile"
        assert await second is value
        with pytest.raises(CellCancelled):
            await endless
        return value

    assert float(asyncio.run(scenario())) == 14


def test_who_no_longer_awaits_does_not_end_it(shell, endless):
    async def scenario():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(_awaited(endless), 0.1)

    asyncio.run(scenario())
    assert endless.state == "running"
    endless.cancel()


async def _awaited(handle):
    return await handle


def test_stop_cancels_everything_and_leaves_no_thread(shell, endless):
    run(shell, "%%distmat --nowait --out second\nmn.ones(7) + 1")
    mn.stop()
    assert endless.done
    assert shell.user_ns["second"].state == "cancelled"
    assert background() == []


def test_a_session_that_has_ended_takes_no_more(shell):
    session = mn.start(workers=1, threads=1)
    run(shell, "%%distmat --nowait --out first\nx = mn.ones(3) + 1")
    shell.user_ns["first"].result(10)
    session.close()
    run(shell, "%%distmat --nowait --out again\nx = mn.ones(3) + 2")
    shell.user_ns["again"].result(10)
    np.testing.assert_array_equal(shell.user_ns["x"].compute(), [3, 3, 3])


def test_options_of_a_cell_hold_in_the_background(shell):
    run(
        shell,
        "%%distmat --nowait --engine dask --out job\n"
        "x, n = mn.iterate(lambda x: x + 1, mn.ones(3), max_iterations=3)",
    )
    report = shell.user_ns["job"]
    report.result(20)
    assert [loop.engine for loop in report.report.loops] == ["dask"]


def test_plain_loops_of_the_cell_become_loops(shell):
    run(shell, SETUP)
    run(shell, "%%distmat --nowait --out job\nx = mn.ones(50)\nfor _ in range(30):\n    x = A @ x\nx")
    job = shell.user_ns["job"]
    value = job.result(20)
    assert [loop.iterations for loop in job.report.loops] == [30]
    np.testing.assert_allclose(value.compute(), 1.0)


def test_it_is_shown_as_text_and_html_that_do_not_follow_the_time_when_static(shell, endless):
    magics = shell.magics_manager.registry["DistMatMagics"]
    shell.run_line_magic("config", "DistMat.display = 'static'")
    static = magics.values.bundle(endless)
    endless.cancel()
    with pytest.raises(CellCancelled):
        endless.result(10)
    assert magics.values.bundle(endless) == static
    shell.run_line_magic("config", "DistMat.display = 'live'")
    assert magics.values.bundle(endless)["text/plain"].startswith("cancelled after ")
    assert "<script" not in static["text/html"]


def test_fifty_cells_leave_no_thread(shell):
    for number in range(50):
        run(shell, f"%%distmat --nowait --out job\nx = mn.ones(3) + {number}")
    shell.user_ns["job"].result(30)
    wait_until(lambda: background() == [])


def test_cells_before_and_behind_work_side_by_side_with_right_results(shell):
    run(shell, "A = mn.asarray(np.random.default_rng(0).random((200, 200)), blocks=3)\nM = A.compute()")
    jobs = []
    for number in range(25):
        run(
            shell,
            f"%%distmat --nowait --out job\nv = mn.ones(200) * {number + 1}\n"
            "for _ in range(5):\n    v = A @ v / 100\n(v * v).sum()",
        )
        jobs.append(shell.user_ns["job"])
        run(shell, f"%%distmat --out here\nfloat((A + {number}).sum())")
        assert shell.user_ns["here"] == pytest.approx((shell.user_ns["M"] + number).sum())
    v = np.ones(200)
    for _ in range(5):
        v = shell.user_ns["M"] @ v / 100
    for number, job in enumerate(jobs):
        assert float(job.result(30)) == pytest.approx(((number + 1) * v) @ ((number + 1) * v))


def test_the_handle_says_how_far_its_loop_is(shell, endless):
    wait_until(lambda: " each, " in repr(endless))
    said = repr(endless)
    assert said.startswith("running in the background: 2 results, ")
    assert re.search(r"; loop: [\d,]+ of 100,000,000 iterations, \S+ \S+ each, ", said)
    assert " left; cancel() ends it" in said
    told = []
    assert endless.follow(lambda: told.append(repr(endless)))
    wait_until(lambda: len(told) >= 2)
    assert told[0] != told[1]
    endless.cancel()
    wait_until(lambda: endless.done)
    assert " left; " not in repr(endless)
    assert len(told) < 10
