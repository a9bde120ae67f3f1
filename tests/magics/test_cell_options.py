"""What ``%%distmat`` does with its options: names for the value, the memo, the engine, the explanation."""

from __future__ import annotations

import re

import numpy as np
import pytest
from cells import counts, fail, run

import matnb as mn
from matnb.errors import OptionError


def run_counted(shell, text):
    """Run a cell and return its line, and how many operations ran in how many tasks."""
    (summary,) = run(shell, text)
    (found,) = re.findall(r"(\d+) operations? run in (\d+) task", counts(shell))
    return summary, int(found[0]), int(found[1])


def test_out_names_the_last_value_instead_of_showing_it(shell, capsys):
    (summary,) = run(shell, "%%distmat --out total\nx = mn.arange(5.0)\n(x + 1).sum()")
    assert capsys.readouterr().out == ""
    assert summary == "1 task"
    assert counts(shell).startswith("3 operations recorded; ")
    assert shell.user_ns["total"].facts().stored
    assert float(shell.user_ns["total"]) == 15
    assert "_" not in shell.user_ns or not isinstance(shell.user_ns["_"], mn.DistArray)


def test_out_names_what_is_no_array_too(shell):
    run(shell, "%%distmat --out pair\n1, mn.ones(2) + 1")
    one, two = shell.user_ns["pair"]
    assert one == 1
    assert two.facts().stored


def test_out_of_a_cell_without_a_value_is_refused_before_it_runs(shell, capsys):
    error, text = fail(shell, capsys, "%%distmat --out total\nran = True")
    assert isinstance(error, OptionError)
    assert text.startswith("OptionError: --out total: the cell's last line is not an expression")
    assert "ran" not in shell.user_ns


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--out 1x", "%%distmat: --out 1x: that is not a valid Python name"),
        ("--out class", "%%distmat: --out class: that is not a valid Python name"),
        ("--memo --no-memo", "%%distmat: argument --no-memo: not allowed with argument --memo"),
        ("--nowait --lazy", "%%distmat: --nowait cannot be combined with --lazy"),
        ("--nowait --explain", "%%distmat: --nowait cannot be combined with --explain"),
        ("--nowait --engine interpret", "%%distmat: --nowait cannot be combined with --engine interpret"),
    ],
)
def test_options_that_make_no_sense_are_refused_in_one_line(shell, capsys, line, said):
    _, text = fail(shell, capsys, f"%%distmat {line}\nran = 1")
    assert text.strip() == f"UsageError: {said}"
    assert "ran" not in shell.user_ns


CELL = "y = np.sqrt(x + 1)\nfound = y.sum()"


def test_without_the_memo_a_cell_computes_again_what_it_writes(shell):
    run(shell, "%%distmat\nx = mn.arange(3000.0) * 2")
    assert run_counted(shell, f"%%distmat\n{CELL}")[1] == 3
    assert run_counted(shell, f"%%distmat\n{CELL}")[1] == 0
    assert run_counted(shell, f"%%distmat --no-memo\n{CELL}")[1] == 3
    assert run_counted(shell, f"%%distmat --no-memo\n{CELL}")[2] > 0
    assert run_counted(shell, f"%%distmat\n{CELL}")[1] == 0
    np.testing.assert_allclose(float(shell.user_ns["found"]), np.sqrt(np.arange(3000.0) * 2 + 1).sum())


def test_without_the_memo_what_a_loop_makes_in_the_cell_is_still_used_in_it(shell):
    cell = "x = mn.full(4, 64.0)\ncount = 0\nwhile float(x.sum()) > 1:\n    x = x / 2\n    count += 1\nx"
    first = run_counted(shell, f"%%distmat --no-memo\n{cell}")
    again = run_counted(shell, f"%%distmat --no-memo\n{cell}")
    assert shell.user_ns["count"] == 8
    assert again == first
    assert first[1] == 18  # and not from the first turn on in each


def test_without_the_memo_nothing_of_a_cell_is_remembered(shell):
    run(shell, "%%distmat --no-memo\nnp.sqrt(mn.arange(3000.0)).sum();")
    assert mn.memo.entries() == ()


def test_with_the_memo_a_cell_remembers_though_the_session_does_not(shell):
    mn.start(workers=1, threads=1, memo="off")
    for line, number in (("--memo", 1), ("", 0)):
        run(shell, f"%%distmat {line}\nx = np.sqrt(mn.arange(3000.0) + {number})")
        run(shell, "del x")
        assert len([one for one in mn.memo.entries() if not one.has_handle]) == 1, line


def test_one_cell_is_run_by_another_engine(shell):
    run(shell, "def step(x):\n    return x * 0.5 + 1")
    loop = "%%distmat {}\nx, n = mn.iterate(step, mn.zeros({}), max_iterations=5)\nx"
    (gang,) = run(shell, loop.format("", 40))
    (dask,) = run(shell, loop.format("--engine dask", 41))
    (again,) = run(shell, loop.format("", 42))
    assert 'engine="dask"' in dask
    assert 'engine="dask"' not in gang + again
    np.testing.assert_array_equal(shell.user_ns["x"].compute(), np.full(42, 1.9375))


def test_a_cell_is_interpreted_over_what_only_the_workers_have(shell, tmp_path, monkeypatch):
    monkeypatch.setattr("matnb.lazy.creation.SHIP_BYTES", 0, raising=False)
    monkeypatch.setattr("matnb.expr.client_data.SHIP_BYTES", 1000)
    run(shell, "%%distmat\nbig = mn.asarray(np.arange(4000.0))\ntotal = big.sum()")
    (summary,) = run(shell, "%%distmat --engine interpret --out plain\nfloat((big * 2).sum())")
    assert summary == "0 tasks"
    assert shell.user_ns["plain"] == 2 * np.arange(4000.0).sum()
    assert not (shell.user_ns["big"] * 2).facts().stored


def test_a_cell_is_run_on_the_workers_though_the_session_interprets(shell):
    mn.start(workers=1, threads=1, engine="interpret")
    run(shell, "%%distmat\nx = mn.asarray(np.arange(400.0)) + 1")
    assert not shell.user_ns["x"].facts().stored
    run(shell, "%%distmat --engine dask\ny = x * 2\ntotal = y.sum()")
    assert shell.user_ns["total"].facts().stored
    assert float(shell.user_ns["total"]) == 2 * np.arange(1.0, 401).sum()


def test_an_engine_that_there_is_not_is_told_of_in_a_line_before_the_cell_runs(shell, capsys):
    error, text = fail(shell, capsys, "%%distmat --engine quick\nran = 1")
    assert isinstance(error, OptionError)
    assert text.startswith("OptionError: engine='quick': choose one of 'auto', 'dask', 'gang', 'interpret'\n")
    assert "ran" not in shell.user_ns


def test_explain_shows_how_the_results_were_computed_after_the_value(shell, capsys):
    run(shell, "%%distmat --explain\nx = mn.arange(6.0) + 1\nx.sum()")
    text = capsys.readouterr().out
    assert text.index("Out[") < text.index("recorded\n") < text.index("plan\n")
    assert "1 task" in text


def test_explain_of_a_lazy_cell_runs_nothing(shell, capsys):
    (summary,) = run(shell, "%%distmat --lazy --explain\nx = mn.arange(6.0) + 1\ns = x.sum()")
    assert "plan\n" in capsys.readouterr().out
    assert summary.endswith("nothing run")
    assert not shell.user_ns["s"].facts().stored
