"""Errors that a worker finds are told at the cell's lines that wrote what failed."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from cells import fail, run

import matnb as mn
from matnb.backend.tasks.worker import TaskFailure
from matnb.blocks.kernels.elementwise.elementwise import Link
from matnb.errors import KernelError, TooLargeError
from matnb.lazy.recording import Recording
from matnb.plan.lower import lower
from matnb.program.plan import Workers
from matnb.session.failures import cell_error

POWER = "power failed on a worker with ValueError: Integers to negative integer powers are not allowed."
LOOP = """
def step(state):
    y = state[0] - state[1]
    z = {body}
    return z % 3 + 1, state[1] + 3
(x, _), _ = mn.iterate(step, (mn.asarray(np.ones({shape}, {dtype})), mn.asarray(0)), max_iterations=4)
x"""
CELLS = {
    "singular": (
        "A = mn.ones((3, 3))\nx = mn.replicated(np.linalg.solve, A, mn.ones(3))\ny = x + 1\ny",
        [2], "solve raised LinAlgError: Singular matrix"),
    "own function": (
        "def f(x):\n    z = x[9]\n    return z\ny = mn.replicated(f, mn.ones(5) * 3, like=1.0)\ny * 2",
        [4, 2], "f raised IndexError: index 9 is out of bounds"),
    "own memory": (
        "def f(x):\n    return np.empty(2**58)\ny = mn.replicated(f, mn.ones(5), like=1.0)\ny",
        [3, 2], "f raised MemoryError: Unable to allocate"),
    "fused": ("k = mn.arange(9) - 2\nu = k + 1\np = (k * 2) ** k\nq = np.abs(p + u)\nq", [3], POWER),
    "reduced": ("k = mn.arange(9) - 2\nlow = k.min()\np = (\n    2 ** k).std() + low\np", [4], POWER),
    "grouped": (
        "k = mn.arange(9) - 2\np = 2 ** k\na, b, c = p.sum(), p.max(), p.mean()\na + b + c", [2], POWER),
    "rewritten": ("k = mn.arange(4) - 2\np = ((k + 0) * 1) ** (k.T.T)\nq = -(-p)\nq[1:]", [2], POWER),
    "asked for": ("k = mn.arange(9) - 2\np = 2 ** k\nif float(p.sum()) > 0:\n    print()", [2], POWER),
    "written to": ("x = mn.arange(9)\nx[x > 3] -= 9\nx[::2] = 2 ** x[::2]\nx", [3], POWER),
    "out of range": (
        "x, i = mn.arange(9), mn.arange(4) * 3\nx[i] = 7\nx", [2], "index 9 is out of bounds for axis 0"),
    "checked": (
        "A = mn.eye(3) * -2.5\nd = mn.graph.sssp(A, 0)\nd + 1", [2], "weight is -2.5; weights must be 0"),
    "loop": (LOOP.format(body="2 ** y", shape="(4,)", dtype="int"), [4], POWER),
    "loop, own": (
        LOOP.format(body="mn.replicated(np.linalg.inv, y)", shape="(2, 2)", dtype="float"),
        [4], "inv raised LinAlgError: Singular matrix"),
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def stopped() -> object:
    yield
    mn.stop()


@pytest.mark.parametrize("engine", ["gang", "dask"])
def test_a_cell_is_told_its_line_and_what_failed(shell, capsys, engine):
    mn.start(workers=2, threads=1, engine=engine)
    for name, (text, lines, message) in CELLS.items():
        if engine == "dask" and not name.startswith("loop"):
            continue
        cell = f"%%distmat\n{text}"
        error, shown = fail(shell, capsys, cell)
        assert isinstance(error, mn.MatnbError), (name, shown)
        # the magic's own line is the first
        places = [line + 1 for line in lines]
        assert error.lines == (places[0],), (name, shown)
        arrows = [row for row in shown.splitlines() if row.startswith("---->")]
        written = cell.splitlines()
        assert arrows == [f"----> {line} {written[line - 1]}" for line in places], shown
        assert message in shown, (name, shown)
        assert "Traceback" not in shown
        assert len(shown.splitlines()) <= 10, shown


def test_a_value_asked_for_later_fails_at_the_line_of_the_earlier_cell(shell, capsys):
    run(shell, "%%distmat --lazy\nk = mn.arange(9) - 2\np = 2 ** k\nspread = p.std()")
    place = f"Cell In[{shell.execution_count - 1}], line 3"
    for later in ("float(spread)", "%%distmat\nt = p * 2\nt"):
        error, shown = fail(shell, capsys, later)
        assert error.lines == (3,)
        assert shown.splitlines()[:3] == [f"KernelValueError in {place}", "----> 3 p = 2 ** k", ""]
        assert "recorded on line 3 of an earlier cell: power(" in shown


def test_memory_that_a_kernel_does_not_get(shell, capsys):
    run(shell, "%distmat start --workers 1 --threads 1 --processes")
    limited = """%%distmat
def limit(x):
    import psutil, resource
    room = psutil.Process().memory_info().vms + 300 * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (room, resource.getrlimit(resource.RLIMIT_AS)[1]))
    return x
mn.replicated(limit, 1.0, like=1.0)"""
    run(shell, limited)
    # 650 MB, which the worker may have by its memory_limit
    error, shown = fail(shell, capsys, "%%distmat\nx = mn.arange(9000.0)\ny = x[:, None] * x\ny")
    assert isinstance(error, TooLargeError)
    assert "a worker ran out of memory: Unable to allocate" in shown
    assert "cut into more blocks, or use less" in shown
    assert error.lines == (3,)


def test_passes_that_rewrote_leave_the_lines(shell):
    k = mn.arange(4) - 2
    written, made = (2**k).expression, (k**2).expression
    record = Recording("cell")
    record.lines[written] = [7]
    plan = lower([made], [], {}, Workers((0,), 1, 0))
    failed = TaskFailure(
        plan.outputs[made].keys[0],
        ValueError("no"),
        "trace",
        Link("power", made.input_dtypes, made.dtype, 0, False, (0, 1)),
    )
    assert cell_error(failed, plan.stages, plan.tasks, record).lines == ()
    error = cell_error(failed, plan.stages, plan.tasks, record, {made: (written,)})
    assert error.lines == (7,)
    assert error.expression.startswith("power(")
    whole = (mn.DistArray(made) + 1).expression
    record.lines[whole] = [9]  # the cell wrote a sum, of which the power is a step
    assert cell_error(failed, plan.stages, plan.tasks, record).lines == (9,)
    assert isinstance(error, KernelError)


def test_a_file_that_changes_between_two_cells_changes_the_result(shell, tmp_path):
    path = Path(tmp_path / "x.mtx")
    head = "%%MatrixMarket matrix coordinate real general\n2 2 1\n"
    cell = f"%%distmat\nA = mn.load({str(path)!r})\nt = A.sum() * 2\nt"
    for number, seconds in ((3, 1000), (4, 2000), (55, 2000), (4, 2000)):
        path.write_text(f"{head}1 2 {number}\n")
        os.utime(path, (seconds, seconds))
        run(shell, cell)
        assert float(shell.user_ns["t"]) == 2 * number
    np.testing.assert_array_equal(shell.user_ns["A"].to_scipy().todense(), [[0, 4], [0, 0]])


def test_a_plan_that_cannot_fit_is_refused_at_its_largest_line(shell, capsys):
    mn.start(workers=1, threads=1, memory_limit="100MB")
    error, shown = fail(
        shell,
        capsys,
        "%%distmat\ny = mn.random.default_rng(0).random((9000, 2))\nz = -(y @ y.T)\n(z + z.T).sum()",
    )
    assert isinstance(error, TooLargeError)
    assert error.lines[0] == 3, shown
    assert "100 MB" in shown
