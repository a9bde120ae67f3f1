"""Errors point at the cell line that wrote them, shortly; ``%tb`` gives all."""

from __future__ import annotations

import sys

import pytest
from cells import fail, run

from matnb.backend.tasks import executor
from matnb.errors import (
    CellCancelled,
    CellSyntaxError,
    KernelError,
    MissingFileError,
    ShapeError,
    UnsupportedError,
)


def test_a_wrong_shape_is_reported_at_the_line_that_wrote_it(shell, capsys):
    cell = "%%distmat\n\n# a comment\nx = mn.ones(3)\ny = mn.ones(4)\nz = x + y\nz"
    error, text = fail(shell, capsys, cell)
    assert isinstance(error, ShapeError)
    lines = text.splitlines()
    assert lines[0] == f"ShapeError in Cell In[{shell.execution_count - 1}], line 6"
    assert lines[1] == "----> 6 z = x + y"
    assert lines[3].startswith("ShapeError: ")
    assert "(3,)" in lines[3]
    assert "(4,)" in lines[3]
    assert "File" not in text
    assert len(lines) <= 8


def test_the_line_is_that_of_a_function_of_the_same_cell(shell, capsys):
    _, text = fail(shell, capsys, "%%distmat\ndef f(x):\n    return x + mn.ones(4)\nf(mn.ones(3))")
    assert "----> 3     return x + mn.ones(4)" in text


def test_tb_gives_the_whole_traceback(shell, capsys):
    fail(shell, capsys, "%%distmat\nmn.ones(3) + mn.ones(4)")
    shell.run_cell("%tb")
    text = capsys.readouterr().out
    assert "Traceback (most recent call last)" in text
    assert "ufuncs.py" in text


@pytest.mark.parametrize("magic", ["%%distmat\n", ""])
def test_ipython_keeps_what_it_has_shown_and_makes_no_whole_traceback_of_it(shell, capsys, magic):
    _, text = fail(shell, capsys, f"{magic}mn.ones(3) + mn.ones(4)")
    kept = shell.history_manager.exceptions[shell.execution_count - 1]
    assert "ufuncs.py" not in "".join(kept["traceback"])
    assert kept["traceback"] == text.splitlines()
    shell.run_cell("%tb")
    assert "ufuncs.py" in capsys.readouterr().out


def test_an_error_of_the_person_has_ipythons_form_from_the_cell_on(shell, capsys):
    error, text = fail(shell, capsys, "%%distmat\nx = mn.ones(3)\n1 / 0")
    assert isinstance(error, ZeroDivisionError)
    assert "----> 3 1 / 0" in text
    assert "distmat.py" not in text
    assert "run_cell_magic" not in text


def test_a_syntax_error_is_its_line_and_caret(shell, capsys):
    error, text = fail(shell, capsys, "%%distmat\nx = 1\ny = (2 +* 3)\n")
    assert isinstance(error, CellSyntaxError)
    assert isinstance(error.__cause__, SyntaxError)
    place, line, caret, message = text.strip("\n").splitlines()
    assert place.endswith(":3")
    assert line.strip() == "y = (2 +* 3)"
    assert caret.index("^") == line.index("*")
    assert message == "SyntaxError: invalid syntax"
    shell.run_cell("%tb")
    assert "cell.py" in capsys.readouterr().out
    assert "x" not in shell.user_ns


def test_an_interrupt_of_the_cells_own_code_is_one_line(shell, capsys):
    error, text = fail(shell, capsys, "%%distmat\nx = mn.ones(3)\nraise KeyboardInterrupt")
    assert isinstance(error, CellCancelled)
    assert text.strip() == "CellCancelled: interrupted; no task was running"


def test_an_interrupt_in_a_plain_cell_is_one_line_too(shell, capsys):
    cell = "from matnb.errors import CellCancelled\nraise CellCancelled('cancelled 3 of 4 tasks')"
    _, text = fail(shell, capsys, cell)
    assert text.strip() == "CellCancelled: cancelled 3 of 4 tasks"
    shell.run_cell("%tb")
    assert "----> 2 raise CellCancelled" in capsys.readouterr().out


def test_nothing_is_run_after_an_error(shell, capsys):
    fail(shell, capsys, "%%distmat\nx = mn.ones(3) + 1\nundefined_name")
    assert not shell.user_ns["x"].facts().stored


def test_a_cell_after_an_error_works(shell, capsys):
    fail(shell, capsys, "%%distmat\nmn.ones(3) + mn.ones(4)")
    run(shell, "%%distmat\nx = mn.ones(3) + 1\nx")
    assert shell.user_ns["x"].compute().tolist() == [2, 2, 2]


def test_what_cannot_stand_in_a_cell_is_a_syntax_error(shell, capsys):
    _, text = fail(shell, capsys, "%%distmat\nreturn 1")
    assert text.strip("\n").splitlines()[1:] == [
        "    return 1",
        "    ^",
        "SyntaxError: 'return' outside function",
    ]


@pytest.mark.parametrize("line", ["await x", "async with x: pass", "y = [i async for i in x]"])
def test_awaiting_in_a_cell_says_where_to_do_it(shell, capsys, line):
    error, text = fail(shell, capsys, f"%%distmat\nx = 1\n{line}")
    assert isinstance(error, UnsupportedError)
    assert text.splitlines()[1:4] == [
        f"----> 3 {line}",
        "",
        "UnsupportedError: await is not supported here: await in a plain cell, and use the result here",
    ]


def test_awaiting_inside_a_function_is_the_functions_own(shell):
    run(shell, "%%distmat\nasync def f(x):\n    return await x\nmn.ones(2)")


def test_an_error_on_a_worker_is_reported_at_the_line_that_wrote_the_expression(shell, capsys, monkeypatch):
    def broken(*_):
        raise ZeroDivisionError("on purpose")

    run(shell, "%distmat start\na = mn.asarray(np.arange(500.0))")
    monkeypatch.setattr(executor.FusedPass, "run", broken)
    error, text = fail(shell, capsys, "%%distmat\nb = 2\nc = a + b\nd = 3\nc")
    assert isinstance(error, KernelError)
    assert error.lines == (3,)
    lines = text.splitlines()
    assert lines[0] == f"KernelError in Cell In[{shell.execution_count - 1}], line 3"
    assert lines[1] == "----> 3 c = a + b"
    assert "ZeroDivisionError: on purpose" in lines[3]
    assert len(lines) == 6
    shell.run_cell("%tb")
    assert "in broken" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("cell", "place"),
    [
        ("x = mn.ones(3)\nx + mn.ones(4)", "----> 2 x + mn.ones(4)"),
        ("np.add(mn.ones(3), mn.ones(4))", "----> 1 np.add(mn.ones(3), mn.ones(4))"),
        ("def f(x):\n    return x + mn.ones(4)\nf(mn.ones(3))", "----> 2     return x + mn.ones(4)"),
    ],
)
def test_in_a_plain_cell_an_error_of_matnb_is_short_and_tb_gives_all(shell, capsys, cell, place):
    error, text = fail(shell, capsys, cell)
    assert isinstance(error, ShapeError)
    lines = text.splitlines()
    assert lines[0].startswith(f"ShapeError in Cell In[{shell.execution_count - 1}], line ")
    assert lines[1:3] == [place, ""]
    assert lines[3] == f"ShapeError: {error}"
    assert len(lines) == 5
    shell.run_cell("%tb")
    whole = capsys.readouterr().out
    assert "Traceback (most recent call last)" in whole
    assert "ufuncs.py" in whole


def test_a_command_that_fails_is_short_too(shell, capsys):
    _, text = fail(shell, capsys, "%distmat start --workers 0")
    assert "distmat.py" not in text
    assert "OptionError: workers=0: give a whole number of at least 1" in text


def test_a_persons_own_file_between_the_cell_and_matnb_is_shown(shell, capsys, tmp_path, monkeypatch):
    (tmp_path / "between.py").write_text("import matnb as mn\ndef load():\n    return mn.load('gone.mtx')\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "between", raising=False)
    error, text = fail(shell, capsys, "import between\nbetween.load()")
    assert isinstance(error, MissingFileError)
    assert "between.py" in text
    assert "----> 2 between.load()" in text


def test_without_the_extension_ipython_shows_it_by_the_users_lines(shell, capsys):
    run(shell, "%unload_ext matnb")
    _, text = fail(shell, capsys, "mn.ones(3) + mn.ones(4)")
    assert "Traceback (most recent call last)" in text
    assert "----> 1 mn.ones(3) + mn.ones(4)" in text
    assert "ufuncs.py" not in text
