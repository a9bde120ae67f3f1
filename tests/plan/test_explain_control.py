"""Explanations of loops and branches: numbers that mean one thing, and stages by when they run."""

from __future__ import annotations

import re

import numpy as np
import pytest

import matnb as mn

N = 200

pytestmark = pytest.mark.session("two workers")


def parts(text: str) -> dict[str, list[str]]:
    """Return the lines below each title; titles stand at the margin."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line[0] != " ":
            found[line] = []
        else:
            found[list(found)[-1]].append(line)
    return found


def numbers(text: str, letter: str) -> list[int]:
    return [int(one) for one in re.findall(rf"^ +{letter}(\d+)  ", text, re.MULTILINE)]


def ranks(**options: object) -> mn.DistArray:
    A = mn.asarray(np.eye(N), blocks=3)
    inverse = 1 / A.sum(axis=1)
    x, _ = mn.iterate(lambda x: A @ (inverse * x), mn.ones(N), **options)
    return x


def test_a_loop_is_told_with_the_numbers_of_what_was_recorded() -> None:
    text = ranks(until=lambda old, new: abs(new - old).sum() < 1e-9, max_iterations=30).explain()
    told = parts(text)
    (loop,) = (line.split()[0] for line in told["recorded"] if "loop from" in line)
    (given,) = (line.split()[0] for line in told["recorded"] if "divide(" in line)
    assert any(f"{loop}  loop from e0, at most 30 times" in line for line in told["recorded"])
    body = told[f"each iteration of {loop}"]
    assert f"multiply({given}, state 0)" in body[0]
    assert body[1].endswith("= next state 0")
    assert body[-1].endswith("= until")
    listed = numbers("\n".join([*told["recorded"], *body]), "e")
    assert listed == list(range(len(listed)))


def test_stages_are_numbered_throughout_and_stand_where_they_run() -> None:
    text = (ranks(max_iterations=31) * 2).explain()
    told = parts(text)
    assert numbers(text, "s") == list(range(len(numbers(text, "s"))))
    (once,) = (lines for title, lines in told.items() if title.startswith("once before loop"))
    (each,) = (lines for title, lines in told.items() if title.startswith("each iteration of loop"))
    assert any("  map make  " in line for line in once)
    assert any("  product plus_times" in line for line in each)
    assert re.fullmatch(
        r"  \d+ tasks, registers used again in each iteration; needs at most about \S+ .?B more on 2 workers",
        each[-1],
    )
    assert re.search(r"  map multiply  .*, = value$", told["afterwards"][-2])


def test_what_is_inside_of_a_loop_is_told_too() -> None:
    def step(state: tuple[mn.DistArray, mn.DistArray]) -> tuple[mn.DistArray, mn.DistArray]:
        x, k = state
        y, _ = mn.iterate(lambda y: y * 2 + x, x, max_iterations=k)
        return mn.cond(y.sum() > 3, lambda: y / 5, lambda: y), k

    (x, _), _ = mn.iterate(step, (mn.ones(N), mn.asarray(3)), max_iterations=4)
    text = x.explain()
    told = parts(text)
    outer, inner = (re.findall(r"each iteration of (e\d+)", text))[:2]
    assert any(
        f"{inner}  loop from state 0, at most state 1 times" in line
        for line in told[f"each iteration of {outer}"]
    )
    assert told[f"each iteration of {outer}"][0].split()[:2] == ["state", "1"]
    assert any(f"state 0 of {outer}" in line for line in told[f"each iteration of {inner}"])
    (then,) = (lines for title, lines in told.items() if title.endswith(", where it is true"))
    assert "divide(" in then[-1]
    (otherwise,) = (lines for title, lines in told.items() if title.endswith(", else"))
    assert len(otherwise) == 1
    assert f"each iteration, in each iteration of loop {outer}" in told
    assert f"where it is true, in each iteration of loop {outer}" in told


def test_a_loop_without_a_bound_or_with_many_arrays_is_one_line() -> None:
    many = tuple(mn.ones(2) * place for place in range(9))
    (first, *_), _ = mn.iterate(lambda state: state[::-1], many, until=lambda old, new: new[0].sum() > 1)
    (line,) = (line for line in first.explain("recorded").splitlines() if "loop from" in line)
    assert re.search(r"loop from e\d+, e\d+, e\d+, e\d+, 5 more +a loop", line)


def test_a_branch_is_told_by_its_sides() -> None:
    x = mn.ones(N)
    told = parts(mn.cond(x.sum() > 1, lambda: x * 2, lambda: x * 3).explain())
    assert [title.split(", ")[1] for title in told if ", " in title] == ["where it is true", "else"]
    branch = next(iter(told["recorded"][-2:])).split()[0]
    assert {f"where it is true of branch {branch}", f"else of branch {branch}"} <= told.keys()


def test_what_has_run_needs_nothing() -> None:
    x = ranks(max_iterations=32).persist()
    told = parts(x.explain())["plan"]
    assert told == ["  nothing to run: the value is there; this is how it was made"]
