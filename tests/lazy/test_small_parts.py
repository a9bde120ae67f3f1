"""Loops that assign or compute small parts of an array one by one are told of it; loops over time are not."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable

import numpy as np
import pytest

import matnb as mn

TIMES = np.arange(4.0)
FIELD = np.random.default_rng(0).standard_normal((4, 40, 80))


pytestmark = pytest.mark.session("interpreter")


def elements(f: mn.DistArray) -> None:
    u = mn.zeros((20, 20))
    for i in range(20):
        for j in range(20):
            u[i, j] = i + j


def two_lines(f: mn.DistArray) -> None:
    u = mn.zeros((40, 40))
    for i in range(150):
        u[i % 40, 3] = i
        u[3, i % 40] = i


def rows(f: mn.DistArray) -> None:
    u = mn.zeros((300, 20))
    for i in range(300):
        u[i] = i


def columns_of_a_field(f: mn.DistArray) -> None:
    for n in range(220):
        f[:, n % 40, n // 40] -= np.polyval([1.0, 2.0], TIMES)


def computed_columns(f: mn.DistArray) -> None:
    slopes = np.empty((40, 80))
    for n in range(220):
        slopes[n % 40, n // 40] = np.polyfit(TIMES, f[:, n % 40, n // 40], 1)[0]


def computed_elements(f: mn.DistArray) -> None:
    for n in range(220):
        float(f[n % 4, 7 * n % 40, 5 * n % 80] ** 2)


def point_source(f: mn.DistArray) -> None:
    u = mn.zeros((20, 20))
    for k in range(300):
        u = u + 0.1
        u[10, 10] += np.sin(0.1 * k)


def edges(f: mn.DistArray) -> None:
    u = mn.zeros((20, 20))
    for _ in range(150):
        u[1:-1, 1:-1] = u[:-2, 1:-1] + 1
        u[0], u[-1], u[:, 0], u[:, -1] = 0, 1, 2, 3


def frames(f: mn.DistArray) -> None:
    kept = mn.zeros((300, 100, 100))
    for k in range(300):
        kept[k] = k


def watched_run(f: mn.DistArray) -> None:
    force = mn.asarray(np.arange(10_000.0))
    for k in range(210):
        f = f * 0.5 + force[k]
        float(f[0, 1, 2]), float(f.max())


def the_same_part(f: mn.DistArray) -> None:
    for k in range(210):
        float((f[0, 1] * k).sum())


@pytest.mark.parametrize("loop", [elements, two_lines, rows, columns_of_a_field])
def test_small_parts_that_are_assigned_one_by_one_are_told_once(loop: Callable[[mn.DistArray], None]) -> None:
    with pytest.warns(UserWarning, match="200 elements or small parts of an array were assigned") as told:
        loop(mn.asarray(FIELD))
    assert len(told) == 1
    assert told[0].filename == __file__


@pytest.mark.parametrize("loop", [computed_columns, computed_elements])
def test_small_parts_that_are_computed_one_by_one_are_told_once(loop: Callable[[mn.DistArray], None]) -> None:
    with pytest.warns(UserWarning, match=re.escape("np.asarray(f)")) as told:
        loop(mn.asarray(FIELD).persist())
    assert len(told) == 1
    assert told[0].filename == __file__


@pytest.mark.parametrize("loop", [point_source, edges, frames, watched_run, the_same_part])
def test_loops_over_time_are_silent(loop: Callable[[mn.DistArray], None]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loop(mn.asarray(FIELD))


def test_what_the_warning_says_to_write_is_right() -> None:
    f = mn.asarray(FIELD)
    slopes = np.polyfit(TIMES, f.reshape(len(TIMES), -1), 1)[0].reshape(40, 80)
    expected = [[np.polyfit(TIMES, FIELD[:, i, j], 1)[0] for j in range(80)] for i in range(40)]
    np.testing.assert_allclose(slopes, expected)
