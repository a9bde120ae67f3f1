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


def test_what_is_printed_while_a_cell_runs_is_computed_if_it_is_cheap(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    run(shell, "mn.start(workers=1, threads=1);")
    cell = "x = mn.arange(4.0) * 2.25\nprint(x, (x[1:], [x]), f'{x.sum():.1f} {x + 1}')\nNone"
    run(shell, f"%%distmat\n{cell}")
    out = capsys.readouterr().out
    assert out.startswith("[0.   2.25 4.5  6.75] ([2.25 4.5  6.75]\nDistArray 3 float64")
    assert "13.5 [1.   3.25 5.5  7.75]" in out
    run(shell, "%%distmat\nX = mn.ones((3000, 3000)) + 1\nprint(X)\nNone")
    written = "about 72 MB, not computed; print(x.compute()) shows it"
    assert written in capsys.readouterr().out
    run(shell, "%%distmat\nX = mn.ones((3000, 3000)) + 2\nprint(X.compute())\nNone")
    assert "[[3. 3. 3. ... 3. 3. 3.]" in capsys.readouterr().out  # as it said
    run(shell, "%%distmat --lazy\nx = mn.arange(4.0) * 2.5\nprint(x)\nNone")
    assert capsys.readouterr().out.startswith("DistArray 4 float64, dense, about 32 B, not computed; print(")


def test_a_loop_that_prints_gives_the_values_of_one_that_does_not(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    run(shell, "mn.start(workers=1, threads=1);\nA = np.random.default_rng(0).random((5, 5))")
    loop = "for _ in range(9):\n    x = M @ x / 3\n    print(x)\nx = mn.asarray(x)\nx.tolist()"
    run(shell, f"%%distmat\nM = mn.asarray(A)\nx = mn.ones(5)\n{loop}")
    printed = capsys.readouterr().out.splitlines()[:9]
    run(shell, f"M = A\nx = np.ones(5)\n{loop}")
    assert printed == capsys.readouterr().out.splitlines()[:9]
