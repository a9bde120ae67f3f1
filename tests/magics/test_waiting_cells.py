"""A ``%%distmat`` cell that waits for work in the background says so, and what an interrupt leaves."""

from __future__ import annotations

import signal
import threading

import pytest
from cells import fail, run
from waiting import wait_until

from matnb.errors import CellCancelled

ENDLESS = "x, n = mn.iterate(lambda x: x * 0.5 + 1, mn.ones(50), max_iterations=10**8)\nx"


@pytest.fixture
def busy(shell):
    run(shell, "%config DistMat.display = 'live'\nmn.start(workers=1, threads=1)")
    run(shell, f"%%distmat --nowait --out job\n{ENDLESS}")
    job = shell.user_ns["job"]
    wait_until(lambda: job.state == "running")
    return job


def test_its_progress_line_says_what_for_until_the_waiting_ends(shell, busy, monkeypatch):
    monkeypatch.setattr(shell, "kernel", object(), raising=False)  # a terminal has a line of its own
    threading.Timer(1.0, busy.cancel).start()
    texts = run(shell, "%%distmat\ny = mn.ones(5) + 1\ny.sum()")
    words = (
        f"cells compute in turn: waits for x, n, which cell {busy.cell} computes in the background; "
        "its handle's .cancel() ends that"
    )
    assert texts == [words, ""]
    assert busy.state == "cancelled"


def test_an_interrupt_of_it_leaves_the_background_work(shell, busy, capsys):
    timer = threading.Timer(0.8, lambda: signal.raise_signal(signal.SIGINT))
    timer.start()
    error, text = fail(shell, capsys, "%%distmat\ny = mn.ones(5) + 1\ny.sum()")
    timer.join()
    assert isinstance(error, CellCancelled)
    assert text == (
        "CellCancelled: interrupted while waiting for the background work of x, n; nothing was cancelled; "
        "cancel() of its handle ends it\n"
    )
    assert busy.state == "running"
    busy.cancel()


def test_the_help_says_that_cells_that_compute_wait(shell, capsys):
    run(shell, "%%distmat --help\n1")
    assert "cells that compute wait until it has ended" in " ".join(capsys.readouterr().out.split())
