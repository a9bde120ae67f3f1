"""Explanations: every root named, what is shared and stored marked, long listings cut in the middle."""

from __future__ import annotations

import numpy as np
import pytest

import matnb as mn
from matnb.lazy.expr import Data, Expr
from matnb.plan.explain import MAX_LINES, describe, explain_expressions, explain_plan, kind_of
from matnb.plan.lower import lower
from matnb.plan.plan import Workers

FLOAT = np.dtype(np.float64)
TWO = Workers((0, 1), 2, 0)
A = mn.DistArray(Data(b"a", (3, 4), FLOAT, False))
S = mn.DistArray(Data(b"s", (4, 4), FLOAT, True))


def text_of(array: mn.DistArray) -> str:
    return describe(array.expression, tuple("xyz"[: len(array.expression.operands)]))


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (mn.asarray(2.5), "constant 2.5"),
        (mn.asarray([1.0, 2.0]), "constant (2,)"),
        (A, "given array"),
        (mn.eye(4), "eye"),
        (A + A, "add(x, y)"),
        (A.astype(int), "astype(x, int64)"),
        (A @ S, "x @ y"),
        (mn.matmul(A, S, semiring="min_plus"), "matmul(x, y, min_plus)"),
        (A.T, "x.T"),
        (np.transpose(mn.zeros((2, 3, 4)), (1, 0, 2)), "transpose(x, (1, 0, 2))"),
        (A.sum(), "sum(x)"),
        (A.max(axis=1), "max(x, axis=1)"),
        (mn.zeros((2, 3, 4)).any(axis=(0, 2)), "any(x, axis=(0, 2))"),
        (A[1, ::2], "x[1, 0:3:2]"),
        (A[::-1, None], "x[2::-1, None, 0:4]"),
        (np.broadcast_to(A, (2, 3, 4)), "broadcast(x)"),
        (np.where(A, A, 1), "where(x, y, z)"),
        (mn.asarray(A, blocks=[3, 1]), "regrid(x) to 3 x 1 blocks"),
    ],
)
def test_an_expression_is_one_line(array: mn.DistArray, text: str):
    assert text_of(array) == text


def test_kind_tells_shape_dtype_and_format():
    assert kind_of(A.expression) == "(3, 4) float64"
    assert kind_of(S.expression) == "(4, 4) float64 sparse"


def test_expressions_are_listed_operands_first_and_marked():
    shared = A @ S
    roots: dict[str, Expr] = {
        "y": (shared * shared.sum()).expression,
        "z": shared.expression,
        "also": shared.expression,
    }
    lines = explain_expressions(roots).splitlines()
    assert [line.split()[0] for line in lines] == ["e0", "e1", "e2", "e3", "e4"]
    assert lines[2].split("  ")[-1] == "used 2 times; = z; = also"
    assert "multiply(e2, e3)" in lines[4]
    assert lines[4].endswith("= y")
    stored = explain_expressions(roots, {shared.expression}).splitlines()
    assert len(stored) == 3
    assert "stored on workers; = z; = also" in stored[0]


def test_a_plan_names_every_root_and_what_it_needs():
    x = mn.asarray(np.ones((1024, 128)), blocks=4)
    middle = x + 1
    y, z = middle.sum(axis=0), middle @ x.T
    plan = lower([y.expression, z.expression], [middle.expression], {}, TWO)
    text = explain_plan(plan, {y.expression: "y", z.expression: "z"})
    lines = text.splitlines()
    assert len(lines) == len(plan.stages) + 1
    assert sum(" = y:" in line for line in lines) == 1
    assert sum(" = z:" in line for line in lines) == 1
    kept = [line for line in lines if line.endswith(", kept")]
    assert len(kept) == 3
    assert any(
        "map [add]: (1024, 128) in 4x1 blocks on 2 workers, about 1.05 MB, kept" in line for line in lines
    )
    assert f"{len(plan.tasks)} tasks, 0 arrays read from the workers, 3 kept" in lines[-1]
    assert "more on 2 workers" in lines[-1]


def test_a_stored_array_is_read():
    x = mn.asarray(np.ones((1024, 128)), blocks=4)
    stored = lower([x.expression], (), {}, TWO).outputs
    plan = lower([(x + 1).expression], (), stored, TWO)
    assert "4 tasks, 1 array read from the workers, 1 kept; moves 0 B" in explain_plan(plan)


def test_long_listings_keep_both_ends():
    x = A
    for number in range(2 * MAX_LINES):
        x = x + float(number)
    lines = explain_expressions({"end": x.expression}).splitlines()
    assert len(lines) == MAX_LINES + 1
    assert lines[-1].endswith("= end")
    assert "more ..." in lines[MAX_LINES // 2]
    assert lines[0].split()[0] == "e0"
