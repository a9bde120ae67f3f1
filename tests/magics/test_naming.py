"""Arrays are called what a user calls them: the variable, the line of code, or else how they are made."""

from __future__ import annotations

import pytest
from cells import run
from IPython.core.interactiveshell import InteractiveShell

import matnb as mn

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
    run(ran, "%%distmat\n(degree - 1) / 2")
    ran.user_ns["degree"].explain()
    assert "= _" not in ran.user_ns["_"].explain()


def test_what_is_not_computed_is_told_with_the_names_of_its_operands(ran: InteractiveShell) -> None:
    assert "not computed: multiply(degree, 3.0);" in repr(ran.user_ns["degree"] * 3)


def test_a_line_stands_without_the_secrets_of_a_url(shell: InteractiveShell, tmp_path) -> None:
    (tmp_path / "t.csv").write_text("a\n1\n2\n")
    run(
        shell,
        f"%%distmat\nt = mn.load(r'{tmp_path}/t.csv'); x = t['a'] * 2; _u = 'https://me:secret@host/a?token=b'\nx",
    )
    assert "secret" not in repr(mn.memo)
    assert "secret" not in shell.user_ns["x"].explain()


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
    with mn.start(workers=2, threads=1):
        one = mn.random.rmat(scale=15, seed=1, blocks=4).persist()
        mn.repartition(one, n=2)
        mn.repartition(one, n=4)
        text = str(mn.history())
    assert "Rmat(scale=15" in text
    assert "array 1" not in text
