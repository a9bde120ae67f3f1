"""What is taken out of a loop's body, and what stays inside."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

import matnb as mn
from matnb.expr.control import Loop, Variable
from matnb.expr.nodes import Data, Elementwise, Expr, Literal, Load, MatMul, Reduce, Transpose
from matnb.expr.traverse import topological
from matnb.lazy.recording import recording


def loop_of(step: object, state: object, **options: object) -> Loop:
    _, count = mn.iterate(step, state, max_iterations=3, **options)
    assert isinstance(count.expression, Loop)
    return count.expression


def kinds(loop: Loop) -> set[type[Expr]]:
    return {type(node) for node in topological(loop.body.roots)}


def test_a_body_is_closed() -> None:
    a = mn.asarray(np.arange(600.0))
    loop = loop_of(lambda x: x * a + np.sqrt(a).sum(), mn.ones(600))
    variables = {node for node in topological(loop.body.roots) if isinstance(node, Variable)}
    assert variables <= set(loop.variables)
    assert not any(node.free for node in topological(loop.body.roots))
    assert not kinds(loop) & {Data, Load, Reduce}
    assert [node.shape for node in loop.given] == [(600,), ()]


def test_equal_loops_are_one() -> None:
    a = mn.arange(5.0)
    assert loop_of(lambda x: x * 2 + a, mn.ones(5)) is loop_of(lambda y: y * 2 + a, mn.ones(5))
    assert loop_of(lambda x: x * 2 + a, mn.ones(5)) is not loop_of(lambda x: x * 3 + a, mn.ones(5))


def test_constants_stay_inside() -> None:
    loop = loop_of(lambda x: x * 2 + mn.ones(5), mn.zeros(5))
    assert loop.given == ()
    assert Literal in kinds(loop)


def test_a_sparse_transpose_is_made_once_and_a_dense_one_by_the_product() -> None:
    A = mn.asarray(sp.random(30, 30, 0.2, random_state=0, format="csr"))
    assert Transpose not in kinds(loop_of(lambda x: A.T @ x, mn.ones(30)))
    B = mn.asarray(np.ones((30, 30)))
    assert Transpose in kinds(loop_of(lambda x: B.T @ x, mn.ones(30)))


def test_a_product_that_is_only_sampled_is_not_made() -> None:
    S = mn.asarray(sp.random(30, 30, 0.2, random_state=0, format="csr"))
    U, V = mn.asarray(np.ones((30, 4))), mn.asarray(np.ones((4, 30)))
    loop = loop_of(lambda s: s * (U @ V) + s, S)
    assert MatMul in kinds(loop)
    assert {node.shape for node in loop.given} == {(30, 4), (4, 30)}
    loop = loop_of(lambda x: (U @ V) @ x, mn.ones(30))
    assert [node.shape for node in loop.given] == [(30, 30)]


def test_what_would_only_grow_stays_inside() -> None:
    a = mn.asarray(np.arange(600.0))
    loop = loop_of(lambda x: x + a[:, None] * a[None, :], mn.zeros((600, 600)))
    assert Elementwise in kinds(loop)
    assert all(node.size <= 600 for node in loop.given)


def test_the_outer_state_is_given_to_the_inner_loop() -> None:
    inner = []

    def step(x: mn.DistArray) -> mn.DistArray:
        y, count = mn.iterate(lambda y: y * 2 + np.exp(x), x, max_iterations=2)
        inner.append(count.expression)
        return y

    outer = loop_of(step, mn.ones(4))
    (loop,) = (node for node in topological(outer.body.roots) if isinstance(node, Loop))
    assert [type(node) for node in loop.given] == [Elementwise]  # exp(x), once for each outer iteration
    assert inner[0].free
    assert not loop.free


def test_lines_of_the_cell_follow_into_the_body() -> None:
    step = "def step(x):\n    y = x * 2\n    return y + 1\n"
    code = f"{step}result = mn.iterate(step, mn.zeros(3), max_iterations=2)"
    names: dict[str, object] = {"mn": mn}
    with recording("a cell") as record:
        exec(compile(code, "a cell", "exec"), names)
    loop = names["result"][1].expression
    add = loop.body.results[0]
    multiply = add.operands[0]
    assert record.lines[multiply] == [2]
    assert record.lines[add] == [3]
