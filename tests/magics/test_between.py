"""A cell is cancelled between two values that it asks for, with the magic and without it."""

from __future__ import annotations

import threading
import time

import pytest
from cells import fail, run

import matnb as mn
from matnb.errors import CellCancelled

LOOP = "for k in range(200):\n    float((mn.ones(5) + k % 3).sum())\n    time.sleep(0.05)"


@pytest.fixture
def loading(shell):
    """Have the magics loaded, and the modules of the cells."""
    run(shell, "import time")
    return shell


@pytest.mark.parametrize("magic", ["", "%%distmat\n"], ids=["plain", "with the magic"])
def test_cancel_reaches_a_loop_of_pythons_wherever_it_is(loading, capsys, magic):
    run(loading, "float(mn.ones(5).sum())")
    session, asked = mn.current_session(), []

    def ask() -> None:
        for _ in range(10):
            time.sleep(0.031)
            asked.append(session.cancel())

    time.sleep(0.2)
    asking = threading.Timer(0.4, ask)
    asking.start()
    begin = time.perf_counter()
    error, text = fail(loading, capsys, f"{magic}{LOOP}")
    assert time.perf_counter() - begin < 3
    asking.join()
    assert asked[0]
    assert isinstance(error, CellCancelled)
    assert text.startswith("CellCancelled: ")
    run(loading, "float(mn.ones(5).sum())")


def test_it_reaches_the_cell_that_started_the_session(loading, capsys):
    mn.stop()

    def ask() -> None:
        while mn.session.active_session() is None:
            time.sleep(0.01)
        time.sleep(0.5)
        assert mn.current_session().cancel()

    asking = threading.Thread(target=ask)
    asking.start()
    error, _ = fail(loading, capsys, LOOP)
    asking.join()
    assert isinstance(error, CellCancelled)


def test_a_wish_that_comes_last_ends_a_recorded_cell(loading, capsys):
    run(loading, "float(mn.ones(5).sum())")
    asking = threading.Timer(0.5, mn.current_session().cancel)
    asking.start()
    error, _ = fail(loading, capsys, "%%distmat --lazy\nx = mn.ones(5) + 1\ntime.sleep(1.5)")
    assert isinstance(error, CellCancelled)


def test_a_cell_that_cancels_means_others_and_leaves_nothing(loading):
    run(loading, "float(mn.ones(5).sum())\nsession = mn.current_session()\nfound = session.cancel()")
    assert loading.user_ns["found"] is False
    assert not mn.current_session().cancel()
    run(loading, "get_ipython().run_cell('float(mn.ones(5).sum())')\nfound = session.cancel()")
    assert loading.user_ns["found"] is False
    mn.unload_ipython_extension(loading)
    assert not mn.current_session().cancel()


ASK = """
import threading
asked = []
thread = threading.Thread(target=lambda: asked.append(mn.current_session().cancel()))
thread.start()
thread.join()
"""


def test_unloaded_in_a_cell_it_follows_neither_that_one_nor_the_next(loading):
    run(loading, "float(mn.ones(5).sum())")
    assert isinstance(loading.run_cell(f"{ASK}float(mn.ones(6).sum())").error_in_exec, CellCancelled)
    assert loading.user_ns["asked"] == [True]
    run(loading, f"mn.unload_ipython_extension(get_ipython())\n{ASK}")
    assert loading.user_ns["asked"] == [False]
    run(loading, ASK)
    assert loading.user_ns["asked"] == [False]
