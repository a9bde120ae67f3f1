"""Cells with loops: what their summary says, and where their errors point."""

from __future__ import annotations

import linecache
import re

import pytest
from cells import fail, run

from matnb.errors import ConvergenceWarning, IndexingError, KernelError, LoopBodyError, MatnbError, ShapeError
from matnb.magics import cell

LOOP = """%%distmat
A = mn.asarray(np.eye(40), blocks=2)
x, num_steps = mn.iterate(lambda x: A @ x + 1, mn.ones(40), max_iterations={})
x
"""


def test_the_summary_tells_of_the_loop_and_its_plan(shell):
    *_, summary = run(shell, LOOP.format(7))
    head, loop = summary.splitlines()
    assert re.fullmatch(r"\d+ tasks(, \d+ results? reused)?", head)
    assert re.fullmatch(r"loop: 7 iterations of a program of \d+ tasks, by 1 worker", loop)
    html = shell.display_pub.outputs[-1]["data"]["text/html"]
    assert "each iteration" in html
    assert "product plus_times" in html


def test_a_loop_run_task_by_task_says_why(shell):
    run(shell, 'mn.start(engine="dask")')
    *_, summary = run(shell, LOOP.format(8))
    assert summary.endswith(' tasks, task by task (engine="dask")')


SOLVED = """%%distmat{}
A = mn.asarray(np.diag(np.arange(1.0, 41.0)), blocks=2)
b = mn.ones(40)

x, info = mn.linalg.cg(A, b, maxiter={})
"""


@pytest.mark.parametrize("engine", ["gang", "dask", "interpret"])
def test_under_its_cell_an_algorithm_says_that_it_has_not_converged(shell, engine):
    run(shell, f'mn.start(engine="{engine}")')
    with pytest.warns(ConvergenceWarning, match="^cg has not converged after 3 iterations") as caught:
        run(shell, SOLVED.format("", 3))
    (said,) = caught
    if engine != "interpret":
        assert said.lineno == 5
        assert linecache.getline(said.filename, 5).startswith("x, info = mn.linalg.cg(")
    run(shell, SOLVED.format("", 100))  # where warnings are errors


def test_of_the_background_it_is_said_with_the_next_value(shell):
    run(shell, SOLVED.format(" --nowait --out handle", 4))
    shell.user_ns["handle"].wait()
    with pytest.warns(ConvergenceWarning, match="cg has not converged after 4 iterations"):
        run(shell, "x.compute()")
    run(shell, "(x + 1).compute()")


def test_live_a_long_loop_shows_its_progress_and_its_seconds(shell, monkeypatch):
    monkeypatch.setattr(shell, "kernel", object(), raising=False)  # a terminal has a line of its own
    monkeypatch.setattr(cell, "FIRST_SECONDS", 0.0)
    monkeypatch.setattr("matnb.magics.summary.QUIET_SECONDS", 0.0)
    shell.run_line_magic("config", "DistMat.display = 'live'")
    texts = run(shell, LOOP.format(9))
    assert texts[0].startswith("loop: 0 of 9 iterations, ")
    assert "" in texts
    assert re.search(r"by 1 worker, \S+ .?s, \S+ .?s each$", texts[-1])


def test_static_no_progress_is_shown(shell, monkeypatch):
    monkeypatch.setattr(cell, "FIRST_SECONDS", 0.0)
    assert not any(text.startswith("loop: 0 ") for text in run(shell, LOOP.format(10)))


@pytest.mark.slow
def test_seconds_and_memory_of_a_loop_count(shell):
    run(shell, LOOP.format(20_000))
    measured = shell.display_pub.outputs[-1]["metadata"]["matnb"]
    assert measured["seconds"] > 0.05


@pytest.mark.parametrize("engine", ["gang", "dask"])
def test_the_status_names_the_engine(shell, capsys, engine):
    run(shell, f'mn.start(engine="{engine}")')
    capsys.readouterr()
    shell.run_cell("%distmat status").raise_error()
    assert f"; engine {engine}\n" in capsys.readouterr().out


BODIES = {
    "if on a value": ("    if x.sum() > 0:\n        x = x + 1\n    return x", 3, LoopBodyError, "until="),
    "shapes in the step": ("    y = x * 2\n    return y + mn.ones(3)", 4, ShapeError, "(3,)"),
    "an index found at run time": (
        "    y = x * 2\n    y[mn.iteration()] = 3.0\n    return y", 4, IndexingError, "index 4"
    ),
    "a function that raises": (
        "    def twice(a):\n        return a * 2 if a[0] < 2 else 1 / 0\n    return mn.replicated(twice, x)",
        5,
        KernelError,
        "twice raised ZeroDivisionError: division by zero",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("body", "line", "kind", "words"), BODIES.values(), ids=BODIES)
def test_an_error_in_a_step_points_at_its_line(
    shell, capsys, body: str, line: int, kind: type[MatnbError], words: str
):
    cell = f"%%distmat\ndef step(x):\n{body}\nx, _ = mn.iterate(step, mn.ones(4), max_iterations=9)\nx\n"
    error, text = fail(shell, capsys, cell)
    assert isinstance(error, kind)
    shown = text.splitlines()
    assert shown[0].endswith(f", line {line}")
    assert shown[1] == f"----> {line} {cell.splitlines()[line - 1]}"
    assert words in text
    assert len(shown) <= 9  # with where a function raised that was called
