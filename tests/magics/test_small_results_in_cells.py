"""What a plain cell ends with is shown with its values if it is cheap; a lazy cell computes none."""

from __future__ import annotations

import pytest
from cells import run
from IPython.core.interactiveshell import InteractiveShell

WAY = "run it in a %%distmat cell or call .compute()"


def test_a_plain_cell_shows_values(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    run(shell, "mn.start(workers=1, threads=1);\nx = mn.arange(4.0) * 2.25\nx")
    assert "[0.   2.25 4.5  6.75]" in capsys.readouterr().out
    run(shell, "x[1]")
    assert "2.25  (DistArray scalar float64)" in capsys.readouterr().out
    run(shell, "[x.sum(), x[x > 3]]")
    out = capsys.readouterr().out
    assert "13.5  (DistArray scalar float64)" in out
    assert "[4.5  6.75]" in out
    assert "[0.   2.25 4.5  6.75]" in shell.display_formatter.format(shell.user_ns["x"])[0]["text/html"]
    run(shell, "mn.ones((3000, 3000)) + 1")
    assert WAY in capsys.readouterr().out


def test_a_cell_that_records_only_computes_nothing_to_show_it(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    run(shell, "mn.start(workers=1, threads=1);")
    run(shell, "%%distmat --lazy\nx = mn.arange(4.0) * 2.25\nx")
    assert WAY in capsys.readouterr().out
    run(shell, "x")  # the cell is over
    assert "[0.   2.25 4.5  6.75]" in capsys.readouterr().out


def test_what_is_printed_while_a_cell_is_recorded_computes_no_array(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    run(shell, "%%distmat\nx = mn.arange(4.0) * 2.25\nprint(repr(x))\nprint(f'{x.sum():.1f}')\nNone")
    out = capsys.readouterr().out
    assert WAY in out
    assert "13.5" in out
