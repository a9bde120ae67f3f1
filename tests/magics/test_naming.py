"""Arrays are called what a user calls them: the variable, the line of code, or else how they are made."""

from __future__ import annotations

from pathlib import Path

import pytest
import scipy.sparse as sp
from cells import run
from IPython.core.interactiveshell import InteractiveShell

import matnb as mn
from matnb.lazy.evaluator import looking_only
from matnb.session import memo, naming

CELL = """%%distmat
A = mn.random.rmat(scale=9, seed=1).persist()
degree = A.sum(axis=1).persist()
(degree - 1) / 2
"""


def names(**options: object) -> set[str]:
    return {one.names[0] if one.names else one.expression for one in mn.memo.entries(**options)}


@pytest.fixture
def ran(shell: InteractiveShell) -> InteractiveShell:
    run(shell, CELL)
    return shell


def test_the_memo_has_variables_and_the_line_of_what_has_none(ran: InteractiveShell) -> None:
    assert names() == {"A", "degree", "(degree - 1) / 2"}
    text = repr(mn.memo)
    assert all(f"\n{name} " in text for name in ("A", "degree", "(degree - 1) / 2"))


def test_a_variable_that_is_gone_gives_way_to_the_line(ran: InteractiveShell) -> None:
    run(ran, "del degree")
    run(ran, "%%distmat\nA.sum(axis=1).max()")  # keeps what it reads
    assert "degree = A.sum(axis=1).persist()" in names() | {one.expression for one in mn.memo.entries()}


def test_a_plan_calls_what_is_there_by_its_name(ran: InteractiveShell) -> None:
    text = (ran.user_ns["degree"] * 3).explain()
    assert "degree " in text
    assert "(..." not in text


def test_a_plan_calls_the_last_value_by_its_line(ran: InteractiveShell, capsys) -> None:
    run(ran, "%%distmat\n(degree - 2) / 4")
    capsys.readouterr()
    run(ran, "%distmat explain")
    text = capsys.readouterr().out
    assert "= (degree - 2) / 4" in text
    assert "= _" not in text
    run(ran, "%%distmat\n(degree - 3) / 4")
    behind = ran.display_pub.outputs[-1]["data"]["text/html"]
    assert "= last value" in behind
    assert "= _" not in behind


def test_a_variable_that_has_another_array_names_that_one_alone(ran: InteractiveShell) -> None:
    run(ran, "held = [degree]")
    run(ran, "%%distmat\ndegree = A.sum(axis=0).persist()\ndegree")
    (before,) = ran.user_ns["held"]
    assert naming.variable_of(before.expression) == ""
    assert naming.variable_of(ran.user_ns["degree"].expression) == "degree"
    assert {"degree", "degree = A.sum(axis=1).persist()"} <= names()


def test_what_is_not_computed_is_told_with_the_names_of_its_operands(ran: InteractiveShell) -> None:
    with looking_only():
        assert "not computed: multiply(degree, 3.0);" in repr(ran.user_ns["degree"] * 3)
        assert "not computed;" in repr(ran.user_ns["degree"][2:][0])  # without "(5,) float64[0]"


def test_a_line_stands_without_the_secrets_of_a_url(shell: InteractiveShell) -> None:
    run(shell, "%%distmat\n(mn.arange(5.0) * 2).persist() if 'https://me:secret@host/a?token=b' else 0")
    (line,) = (one.expression for one in mn.memo.entries())
    assert "https://***@host/a?***" in line
    assert "secret" not in repr(mn.memo)
    assert "secret" not in shell.user_ns["_"].explain()


def test_files_of_results_have_no_lines_of_code(
    shell: InteractiveShell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memo, "worth_writing", lambda node: True)
    run(shell, f"mn.start(workers=1, threads=1, memo_dir={str(tmp_path)!r})")
    run(shell, "%%distmat\nfloat((mn.arange(9.0) * len('token')).sum())")
    assert "token" in repr(mn.memo)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert not any(b"token" in path.read_bytes() for path in files)


def test_what_went_with_a_stopped_session_is_told_once(ran: InteractiveShell) -> None:
    run(ran, "mn.stop()")
    (summary,) = run(ran, "%%distmat\n(degree * 2).sum()")
    assert summary.splitlines()[1] == (
        "a new session: degree went with the session that was stopped, and what is needed of that is "
        "computed again"
    )
    (summary,) = run(ran, "%%distmat\n(degree * 3).sum()")
    assert "a new session" not in summary


def test_in_a_script_arrays_that_are_made_alike_are_numbered() -> None:
    entries = [sp.random_array((20_000, 20_000), density=0.0004, rng=seed, format="csr") for seed in (0, 1)]
    with mn.start(workers=2, threads=1):
        arrays = [mn.asarray(one, blocks=(4, 1)).persist() for one in entries]
        for one in arrays:
            mn.repartition(one, n=2)
        first, second = (item.decision.name for item in mn.history().decisions)
    assert "array 1" not in first
    assert second == f"{first} (2)"
