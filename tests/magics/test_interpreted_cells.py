"""``%%distmat --engine interpret`` shows its value, and says who computed it where a plan is asked for."""

from __future__ import annotations

from cells import run

BY = "computed by the interpreter: NumPy and SciPy in this process, without workers and so without a plan"


def test_the_value_is_there_to_compare_with(shell, capsys):
    run(shell, "%%distmat --engine interpret\ny = mn.ones(3) + mn.arange(3)\ny")
    assert "[1. 2. 3.]" in capsys.readouterr().out
    assert not shell.user_ns["y"].facts().stored


def test_explain_names_the_interpreter_in_place_of_a_plan(shell, capsys):
    run(shell, "%%distmat --engine interpret --explain\ny = mn.ones(3) + mn.arange(3)\ny")
    shown = capsys.readouterr().out
    assert shown.rstrip().endswith(BY)
    assert "recorded" in shown
    assert "\nplan" not in shown
    run(shell, "%%distmat --explain\nz = mn.ones(3) + mn.arange(3)\nz")
    assert BY not in capsys.readouterr().out


def test_a_session_that_interprets_says_it_too(shell, capsys):
    run(shell, "mn.start(engine='interpret')\nx = mn.ones(3) + 1")
    capsys.readouterr()
    run(shell, "%distmat explain x --stage plan")
    assert capsys.readouterr().out == f"{BY}\n"
