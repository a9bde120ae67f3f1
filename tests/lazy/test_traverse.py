"""Walks over expressions: each once, operands first; rewriting from the leaves up until nothing changes."""

from __future__ import annotations

import time

import numpy as np

from matnb.lazy.expr import Data, Elementwise, Expr, MatMul, Transpose
from matnb.lazy.traverse import consumers, rewrite, topological
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
    after = rewrite(roots, rule)
    assert after == {"x": call(np.multiply, (Transpose(A, (1, 0)), literal(2.0)))[0], "y": B}
    assert list(after) == ["x", "y"]
    assert rewrite(after, rule) == after
    assert roots["x"] is add(flipped, Transpose(A, (1, 0)))


def test_what_is_known_is_not_rewritten():
    def to_b(node: Expr) -> Expr | None:
        return B if node is A else None

    kept = add(A, literal(1.0))
    after = rewrite({"x": MatMul(kept, A), "y": kept}, to_b, {kept})
    assert after == {"x": MatMul(kept, B), "y": kept}


def test_rules_do_not_look_through_what_is_known():
    def flip(node: Expr) -> Expr | None:
        match node:
            case Transpose(Transpose(inner)):
                return inner
        return None

    kept = Transpose(A, (1, 0))
    roots = {"x": Transpose(kept, (1, 0))}
    assert rewrite(roots, flip) == {"x": A}
    assert rewrite(roots, flip, {kept}) == roots  # A may be gone


def test_long_chains_are_rewritten_in_time_that_follows_their_length():
    def rule(node: Expr) -> Expr | None:
        match node:
            case Elementwise("add", (left, right)) if right is B:
                return add(left, A)
        return None

    node: Expr = A
    for _ in range(3000):
        node = add(node, B)
    begin = time.perf_counter()
    after = rewrite({"x": node}, rule)["x"]
    assert time.perf_counter() - begin < 3.0
    assert B not in topological([after])
    assert len(topological([after])) == 3001
