"""Walks over expressions: each once, operands first; rewriting from the leaves up until nothing changes."""

from __future__ import annotations

import cProfile
import pstats

import numpy as np

from matnb.expr.nodes import Data, Elementwise, Expr, MatMul, Transpose
from matnb.expr.traverse import ExprGraph, consumers, rewrite, topological
from matnb.lazy.ufuncs import call, literal

FLOAT = np.dtype(np.float64)
A = Data(b"a", (3, 3), FLOAT, False)
B = Data(b"b", (3, 3), FLOAT, False)


def add(left: Expr, right: Expr) -> Expr:
    return call(np.add, (left, right))[0]


def test_operands_come_before_their_users_and_all_once():
    shared = add(A, B)
    root = MatMul(shared, add(shared, A))
    order = topological([root, shared, root])
    assert order == [A, B, shared, add(shared, A), root]


def test_what_is_known_is_not_looked_below():
    shared = add(A, B)
    root = MatMul(shared, A)
    assert topological([root], {shared}) == [shared, A, root]
    assert topological([root], {root}) == [root]
    assert topological([]) == []


def test_consumers_are_listed_in_order_and_as_often_as_they_use():
    double, product = add(A, A), MatMul(A, B)
    order = topological([double, product])
    users = consumers(order)
    assert users == {A: [double, double, product], B: [product], double: [], product: []}
    top = add(product, B)
    users = consumers(topological([top], {product}), {product})
    assert users == {product: [top], B: [top], top: []}


def test_rewriting_goes_from_the_leaves_up_until_nothing_changes():
    seen = []

    def rule(node: Expr) -> Expr | None:
        seen.append(node)
        match node:
            case Transpose(Transpose(inner)):
                return inner
            case Elementwise("add", (left, right)) if left is right:
                return call(np.multiply, (left, literal(2.0)))[0]
        return None

    flipped = Transpose(Transpose(Transpose(A, (1, 0)), (1, 0)), (1, 0))
    roots = {"x": add(flipped, Transpose(A, (1, 0))), "y": B}
    after = rewrite(ExprGraph(roots), rule).roots
    assert after == {"x": call(np.multiply, (Transpose(A, (1, 0)), literal(2.0)))[0], "y": B}
    assert list(after) == ["x", "y"]
    assert rewrite(ExprGraph(after), rule).roots == after
    assert roots["x"] is add(flipped, Transpose(A, (1, 0)))


def test_what_is_known_is_not_rewritten():
    def to_b(node: Expr) -> Expr | None:
        return B if node is A else None

    kept = add(A, literal(1.0))
    after = rewrite(ExprGraph({"x": MatMul(kept, A), "y": kept}, {kept}), to_b).roots
    assert after == {"x": MatMul(kept, B), "y": kept}


def test_rules_do_not_look_through_what_is_known():
    def flip(node: Expr) -> Expr | None:
        match node:
            case Transpose(Transpose(inner)):
                return inner
        return None

    kept = Transpose(A, (1, 0))
    roots = {"x": Transpose(kept, (1, 0))}
    assert rewrite(ExprGraph(roots), flip).roots == {"x": A}
    assert rewrite(ExprGraph(roots, {kept}), flip).roots == roots  # A may be gone


def test_long_chains_are_rewritten_in_steps_that_follow_their_length():
    def rule(node: Expr) -> Expr | None:
        match node:
            case Elementwise("add", (left, right)) if right is B:
                return add(left, A)
        return None

    num_calls = []
    for length in (500, 1000):
        node: Expr = A
        for _ in range(length):
            node = add(node, B)
        profile = cProfile.Profile()
        after = profile.runcall(rewrite, ExprGraph({"x": node}), rule).roots["x"]
        num_calls.append(pstats.Stats(profile).total_calls)
        assert B not in topological([after])
        assert len(topological([after])) == length + 1
    assert num_calls[1] < 2.2 * num_calls[0]
