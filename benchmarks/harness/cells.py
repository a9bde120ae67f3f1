"""What cells of benchmarks do: twenty operations that end in a number, and a loop that asks in each turn."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import matnb as mn
from matnb.lazy.recording import recording

TURNS = 50
Operations = Callable[[Any, Any], Any]


def twenty_operations(a: Any, b: Any, meet: Callable[[Any, Any], Any] = operator.matmul) -> Any:
    """Twenty operations ending in one number."""
    c = a + b
    d = c * a
    e = d - b
    f = e / (a + 2.0)
    g = meet(f, b)
    h = g.sum(axis=0)
    i = h * h
    j = np.sqrt(i + 1.0)
    k = abs(d) + e
    m = k.max(axis=1)
    n = m + j
    p = n * 0.5
    q = p - p.mean()
    return (q * q).sum() + c.sum()


def twenty_without_product(a: Any, b: Any) -> Any:
    """Twenty elementwise operations and reductions ending in one number."""
    return twenty_operations(a, b, lambda f, _: f * f)


def asking_loop(x: Any, value: Callable[[Any], float] = float) -> float:
    """Ask for a number in each turn of a loop, as a convergence test does."""
    state, total = x, 0.0
    for _ in range(TURNS):
        new = np.sqrt(state * 0.5 + x)
        total += value(abs(new - state).sum())
        state = new
    return total


def run_warm_cell(given: Sequence[mn.DistArray], operations: Operations = twenty_operations) -> float:
    """Do what a %%distmat cell does with arrays that are there."""
    with recording("benchmark") as record:
        result = operations(*given)
    mn.current_session().run({"result": result.expression}, record)
    return float(result)
