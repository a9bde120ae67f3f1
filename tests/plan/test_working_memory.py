"""What kernels take while they run is counted before: a plan's tasks, run one by one, take no more."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import matnb as mn
from matnb.backend.tasks.executor import execute
from matnb.blocks.formats import Dense
from matnb.blocks.grid import Grid
from matnb.blocks.layout import Layout
from matnb.expr.nodes import Data, Expr
from matnb.ops.uniques import Distinct
from matnb.plan.lower import lower
from matnb.program.plan import Plan, Slot, StoredArray, Task, Workers
from matnb.program.writer import PlanWriter

N = 240_000
WORKERS = Workers((0, 1, 2), 1, 10**9)
CUTS = (0, N // 6, N // 3, N // 2, N)
X = Data(b"numbers", (N,), np.dtype(np.float64), False)
PLACES = Data(b"places", (N,), np.dtype(np.int64), False)
x, places = mn.DistArray(X), mn.DistArray(PLACES)
LAYOUT = Layout(Grid((CUTS,)), (0, 1, 2, 0))
SIZES = tuple(8 * (stop - start) for start, stop in pairwise(CUTS))
STORED = {
    X: StoredArray(LAYOUT, ("x0", "x1", "x2", "x3"), (), SIZES),
    PLACES: StoredArray(LAYOUT, ("p0", "p1", "p2", "p3"), (), SIZES),
}
OTHER = np.arange(1000.0)
CASES: dict[str, Callable[[], Any]] = {
    "sort": lambda: np.sort(x),
    "argsort": lambda: np.argsort(x),
    "distinct": lambda: mn.DistArray(Distinct(X, CUTS, True, True, True)),
    "median": lambda: np.median(x),
    "search": lambda: np.searchsorted(x, x),
    "members": lambda: np.isin(x, x),
    "picked": lambda: x[places],
    "scattered": lambda: mn.scatter_reduce(x, places, N),
    "extreme": lambda: np.nanargmax(x.reshape(-1, 6), axis=0),
    "kron": lambda: np.kron(OTHER[:5], x),
    "repeated": lambda: np.repeat(x, 3),
    "binned": lambda: np.histogram(x, bins=50, weights=x)[0],
    "scanned": lambda: np.cumsum(x),
}


@pytest.mark.parametrize("name", CASES)
def test_tasks_take_what_the_plan_says_at_most(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: dict[Slot, int] = {}
    put = PlanWriter._put

    def noted(writer: PlanWriter, *arguments: Any) -> None:
        put(writer, *arguments)
        sizes.update(writer._sizes)

    monkeypatch.setattr(PlanWriter, "_put", noted)
    root: Expr = CASES[name]().expression
    plan = lower([root], [], STORED, WORKERS)
    rng = np.random.default_rng(0)
    given = {X: rng.standard_normal(N), PLACES: rng.integers(0, N, N)}
    _run(plan, given)  # compiles what is to be compiled
    for task, peak in _run(plan, given):
        bound = sizes[task.key] + task.working_bytes
        assert peak <= 1.02 * bound + 30_000, f"{task.key} ({task.kind}) took {peak} bytes of {bound}"


def _run(plan: Plan, given: dict[Data, np.ndarray]) -> list[tuple[Task, int]]:
    # The values of tasks, one after the other, and the most that each took on top of its inputs.
    values: dict[Slot, Any] = {
        key: Dense(given[node][start:stop])
        for node, array in plan.reused.items()
        for key, (start, stop) in zip(array.keys, pairwise(CUTS), strict=True)
    }
    peaks = []
    for task in plan.tasks:
        registers = [values[key] for key in task.inputs]
        tracemalloc.start(1)
        for step in task.steps:
            registers.append(execute(step.operator, [registers[place] for place in step.arguments]))
        peaks.append((task, tracemalloc.get_traced_memory()[1]))
        tracemalloc.stop()
        values[task.key] = registers[-1]
    return peaks
