"""Behind the line under a cell: live the plan as it ran with what was measured, else as it was made."""

from __future__ import annotations

import time
from xml.etree import ElementTree

import pytest
from cells import run

import matnb as mn
from matnb.magics import summary

CELL = """%%distmat
y = mn.asarray(np.random.default_rng(0).random((300, 60)), blocks=(4, 1))
for i in range(5):
    y = np.sqrt(y * y + 1.0 * i)
    if i == 2:
        o = y.sum(axis=0)
z = y.T @ y
w = (z * 2 + 1) @ mn.ones(60)
"""


@pytest.fixture
def live(shell, monkeypatch):
    monkeypatch.setattr(summary, "QUIET_SECONDS", 0.0)
    run(shell, "%config DistMat.display = 'live'")
    mn.start(workers=2, threads=1)
    return shell


def behind(shell) -> ElementTree.Element:
    (html,) = [output["data"]["text/html"] for output in shell.display_pub.outputs]
    return ElementTree.fromstring(html).find("details")


def told(details: ElementTree.Element) -> list[str]:
    return ["".join(row.itertext()) for row in details.iter("tr")]


def test_live_it_is_drawn_as_it_ran_with_seconds_and_the_names_of_the_results(live):
    run(live, CELL)
    details = behind(live)
    assert details.find("pre") is None
    assert len(list(details.iter("svg"))) == 1
    rows = told(details)
    assert [row for row in rows if "= o" in row and "reduce sum" in row]
    assert [row for row in rows if "= w" in row and "product plus_times" in row]
    assert sum("= w" in row for row in rows) == sum("= o" in row for row in rows) == 1
    assert all(" made, " in row for row in rows if "map " in row)
    assert "the plan as it ran" in "".join(details.itertext())


def test_it_is_small_and_takes_less_than_fifty_milliseconds(live):
    taken = []
    draw = summary.Picture.bundle

    def timed(picture):
        begin = time.thread_time()
        found = draw(picture)
        taken.append(time.thread_time() - begin)
        return found

    summary.Picture.bundle, number = timed, 0
    try:
        for number in range(3):
            run(live, CELL.replace("1.0", f"{number + 1}.5"))
            (html,) = [output["data"]["text/html"] for output in live.display_pub.outputs]
            assert len(html.encode()) < 40_000
    finally:
        summary.Picture.bundle = draw
    assert len(taken) == 3
    assert min(taken) < 0.05


def test_a_loop_is_drawn_with_its_iteration(live):
    run(live, "B = mn.asarray(np.full((60, 60), 0.01), blocks=(2, 1))")
    run(live, "%%distmat\nx = mn.iterate(lambda x: B @ x, mn.ones(60), max_iterations=5)[0]")
    assert "as it ran, each iteration" in "".join(behind(live).itertext())
    run(live, "%%distmat\nx = mn.ones(60)\nfor _ in range(40):\n    x = B @ x\nx;")
    assert live.display_pub.outputs == []
    run(live, "%%distmat\nx = mn.ones(60) * 2\nfor _ in range(40):\n    x = B @ x")
    assert "as it ran, each iteration" in "".join(behind(live).itertext())


def test_where_nothing_ran_it_is_the_plan_as_it_was_made(live):
    run(live, CELL)
    run(live, CELL)
    assert "nothing to run" in behind(live).find("pre").text


def test_of_many_tasks_the_plan_is_told_as_it_was_made(live, monkeypatch):
    monkeypatch.setattr(summary, "MOST_DRAWN", 3)
    run(live, CELL)
    assert behind(live).find("pre").text.startswith("     s0")
    assert not list(behind(live).iter("svg"))


def test_a_short_run_draws_nothing(live, monkeypatch):
    monkeypatch.setattr(summary, "QUIET_SECONDS", 1e9)
    monkeypatch.setattr(type(mn.current_session()), "picture", None)
    assert run(live, CELL) == []


def test_in_a_report_it_is_the_plan_as_it_was_made_and_nothing_is_drawn(shell, monkeypatch):
    mn.start(workers=2, threads=1)
    monkeypatch.setattr(summary, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(type(mn.current_session()), "picture", None)
    run(shell, CELL)
    assert "about" in behind(shell).find("pre").text
    assert " ms" not in "".join(behind(shell).itertext())
