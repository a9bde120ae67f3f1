"""Plain Python loops in a cell run as one loop, with the bits of iterate, unless an older state is wanted."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import scipy.sparse as sp
from cells import fail, run
from IPython.core.interactiveshell import InteractiveShell

import matnb as mn
from matnb.errors import KernelError
from matnb.events import Event, LoopFinished, RunFinished
from matnb.lazy.array import DistArray
from matnb.magics.cell import compile_cell, run_cell
from matnb.ops.interpret import interpret
from matnb.session.session import Session

N = 600
MATRIX = sp.random(N, N, 0.05, random_state=3, format="csr")
STEP = "A.T @ (x * share) + (lost * 0.85 + 0.15) / 600"


class Cells:
    """Runs cells on a session and keeps its events."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.events: list[Event] = []
        self.unsubscribe = session.subscribe(self.events.append)

    def run(self, source: str, seed: float = 1.0) -> dict[str, DistArray]:
        """Run a cell over ranks that begin with a seed, and return its names."""
        self.events.clear()
        degrees = np.maximum(np.diff(MATRIX.indptr), 1)
        space = {
            "np": np,
            "mn": mn,
            "A": mn.asarray(MATRIX, blocks=3),
            "share": mn.asarray(0.85 / degrees),
            "empty": mn.asarray((degrees == 1).astype(float)),
            "x": mn.asarray(np.full(N, seed / N)),
        }
        done = run_cell(compile_cell(source, "<cell>"), space)
        self.session.run(done.program.roots, done.record)
        return space

    @property
    def loops(self) -> list[int]:
        """The iterations of the loops that were run."""
        return [event.iterations for event in self.events if isinstance(event, LoopFinished)]


@pytest.fixture(scope="module", params=["gang", "dask"])
def cells(request: pytest.FixtureRequest) -> Iterator[Cells]:
    with mn.start(workers=2, threads=1, engine=request.param) as session:
        found = Cells(session)
        yield found
        found.unsubscribe()
    mn.stop()


PLAIN = f"for _ in range(8):\n    lost = (x * empty).sum()\n    x = {STEP}\n"


def test_a_plain_loop_is_one_loop_with_the_bits_of_iterate(cells: Cells) -> None:
    space = cells.run(PLAIN)
    assert cells.loops == [8]
    ranks, lost = space["x"].compute(), space["lost"].compute()
    assert cells.loops == [8]  # what names are on is there
    np.testing.assert_allclose(ranks, interpret(space["x"].expression), rtol=1e-12)
    iterated = cells.run(
        "start = x\ndef step(x):\n    lost = (x * empty).sum()\n"
        f"    return {STEP}\n"
        "x, _ = mn.iterate(step, start, max_iterations=8)\n"
        "last, _ = mn.iterate(step, start, max_iterations=7)\n"
        "lost = (last * empty).sum()"
    )
    assert ranks.tobytes() == iterated["x"].compute().tobytes()
    assert lost == iterated["lost"].compute()


def test_a_value_asked_after_the_loop_runs_it_as_one(cells: Cells) -> None:
    cells.run(f"{PLAIN}total = float(x.sum())\ny = x * total", seed=1.5)
    assert cells.loops == [8]


def test_states_that_are_held_are_made_one_by_one(cells: Cells) -> None:
    space = cells.run(f"held = []\n{PLAIN}    held.append(x)", seed=2.0)
    assert cells.loops == []
    assert len({one.expression for one in space["held"]}) == 8  # type: ignore[attr-defined]  # a list


def test_a_value_asked_in_every_iteration_costs_the_same_in_each(cells: Cells) -> None:
    counted = (
        "record = recorded()\nwaiting = []\nfor _ in range(12):\n"
        f"    lost = (x * empty).sum()\n    new = {STEP}\n    d = float(abs(new - x).sum())\n    x = new\n"
        "    waiting.append(len(record.unread) + len(record.written) - record.num_seen)\n"
    )
    source = f"from matnb.lazy.recording import active_recording as recorded\n{counted}"
    space = cells.run(source, seed=2.5)
    assert cells.loops == []
    assert max(space["waiting"]) == 0  # type: ignore[type-var]  # numbers
    tasks = [event.num_tasks for event in cells.events if isinstance(event, RunFinished)]
    assert len(set(tasks[2:12])) == 1


CELL = """%%distmat{}
A = mn.asarray(np.eye(40) * 2, blocks=2)
x = mn.ones(40)
for _ in range(9):
    y = A @ x
    x = {}
x{}
"""


def test_a_cell_tells_of_the_loop(shell: InteractiveShell) -> None:
    *_, summary = run(shell, CELL.format("", "y / y.sum()", ""))
    assert summary.splitlines()[1].startswith("loop: 9 iterations of a program of ")
    before = shell.user_ns["x"].expression
    run(shell, CELL.format("", "y / y.sum()", ""))
    assert shell.user_ns["x"].expression is before


def test_a_cell_left_lazy_is_explained_as_a_loop_and_run_as_one(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    run(shell, CELL.format(" --lazy", "y / y.max()", ";"))
    capsys.readouterr()
    run(shell, "%distmat explain x")
    assert "each iteration" in capsys.readouterr().out
    assert mn.current_session().status().num_arrays == 0
    np.testing.assert_allclose(shell.user_ns["x"].compute(), np.ones(40))


def test_an_error_in_a_rolled_loop_points_at_its_line(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    failing = "mn.replicated(lambda y: y if y[0] < 60 else 1 / 0, y)"
    error, text = fail(shell, capsys, CELL.format("", failing, ""))
    assert isinstance(error, KernelError)
    assert "line 6" in text.splitlines()[0]


def test_older_states_that_are_stored_keep_no_lazy_cell_from_a_loop(shell: InteractiveShell) -> None:
    again = "v = mn.ones(600)\nfor k in range(9):\n    v = A @ v / 2"
    run(shell, "A = mn.asarray(np.eye(600))\n")
    run(shell, f"%%distmat\nstates = []\n{again}\n    states.append(v)\nv")
    run(shell, f"%%distmat --lazy\n{again.replace('9', '30')}")
    assert mn.visualize(shell.user_ns["v"], stage="recorded").text.count(" @ ") == 1
    np.testing.assert_array_equal(shell.user_ns["v"].compute(), np.full(600, 2.0**-30))
