"""What a cell records: its operations, the lines that wrote them and what is merged."""

from __future__ import annotations

import threading

import numpy as np

import matnb as mn
from matnb.lazy.recording import Recording, active_recording, recording

CELL = "<cell>"


def run(text: str, **names: object) -> tuple[Recording, dict[str, mn.DistArray]]:
    """Run a cell's text under a recording."""
    space = {"np": np, "mn": mn, **names}
    with recording(CELL) as record:
        exec(compile(text, CELL, "exec"), space)
    return record, space


def test_lines_are_those_of_the_cell():
    record, found = run("x = mn.asarray([1.0, 2.0])\n\ny = (x + 1) * (\n    x - 1\n)\nz = np.sum(y)\n")
    lines = {type(node).__name__ + getattr(node, "name", ""): where for node, where in record.lines.items()}
    assert lines == {
        "Elementwiseadd": [3],
        "Elementwisesubtract": [4],
        "Elementwisemultiply": [3],
        "Reduce": [6],
    }
    assert record.lines[found["z"].expression] == [6]


def test_functions_defined_elsewhere_are_recorded_on_the_line_that_called_them():
    def elsewhere(x: mn.DistArray) -> mn.DistArray:
        return (x + 1) * 2

    record, found = run("x = mn.zeros(3)\ny = elsewhere(x)\n", elsewhere=elsewhere)
    assert record.lines[found["y"].expression] == [2]
    assert record.num_operations == 3  # the zeros too


def test_functions_defined_in_the_cell_are_recorded_on_their_own_lines():
    record, found = run("def f(x):\n    return x + 1\n\ny = f(f(mn.zeros(3)))\n")
    assert record.lines[found["y"].expression] == [2]


def test_what_is_written_again_is_merged():
    record, found = run("x = mn.zeros(3)\na = x + 1\nb = x + 1\nc = x + 1; d = x + 1\ne = 1 + x\n")
    assert record.num_operations == 6
    assert record.num_merged == 3
    assert found["a"].expression is found["d"].expression
    assert record.lines[found["a"].expression] == [2, 3, 4]
    assert record.lines[found["e"].expression] == [5]


def test_in_place_operations_are_recorded():
    record, found = run("x = mn.zeros(3)\nold = x.expression\nx += 1\n")
    assert found["x"].expression is not found["old"]
    assert record.lines[found["x"].expression] == [3]


def test_what_another_thread_writes_is_not_of_the_cell():
    with recording(CELL) as record:
        thread = threading.Thread(target=lambda: mn.zeros(3) + 1)
        thread.start()
        thread.join()
        assert active_recording() is record
    assert record.num_operations == 0


def test_recordings_nest_and_end():
    with recording("outer") as outer:
        with recording("inner") as inner:
            assert active_recording() is inner
        assert active_recording() is outer
        mn.zeros(3) + 1
    assert active_recording() is None
    assert (outer.num_operations, inner.num_operations) == (2, 0)
    assert all(lines == [] for lines in outer.lines.values())  # no frame of a file called outer
