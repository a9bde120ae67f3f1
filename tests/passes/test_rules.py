"""What each rule makes of an expression, by hand before and after, and what it must leave as it is."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

import matnb as mn
from matnb.expr.nodes import Broadcast, Data, Elementwise, Index, Regrid, Transpose
from matnb.expr.traverse import ExprGraph
from matnb.lazy.ufuncs import astype, literal
from matnb.passes import Pass, optimize, traced
from matnb.passes.chains import order_chains
from matnb.passes.identities import drop_identities, identity
from matnb.passes.narrowing import narrow
from matnb.passes.order import order_operands, ordered
from matnb.passes.transposes import move_transposes

A3 = Data(b"a", (2, 3, 4), np.dtype(float), False)


def array(name: str, shape: tuple[int, ...], dtype: object = float, sparse: bool = False) -> mn.DistArray:
    return mn.DistArray(Data(name.encode(), shape, np.dtype(dtype), sparse))


X, Y = array("x", (6, 4)), array("y", (6, 4))
V, W = array("v", (40,)), array("w", (40,))
K, J, U = array("i", (6, 4), int), array("j", (6, 4), int), array("u", (6, 4), "u1")
P, Q = array("p", (6, 4), bool), array("q", (6, 4), bool)
C = array("c", (6, 4), complex)
S, R, T = (array(name, (40, 40), float, True) for name in "srt")
SI, SB = array("si", (6, 4), int, True), array("sb", (6, 4), bool, True)
A, B, M = array("A", (40, 40)), array("B", (40, 40)), array("M", (40, 3))

Made = mn.DistArray
Table = list[tuple[Made, Made | None]]  # None: it stays


def check(run: Pass, before: Made, after: Made | None) -> None:
    roots = {"x": before.expression}
    found = run(ExprGraph(roots)).roots
    assert found["x"] is (before if after is None else after).expression
    assert run(ExprGraph(found)).roots == found


def by(*tables: Table) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return pytest.mark.parametrize(("before", "after"), [pair for table in tables for pair in table])


# order: which operand comes first follows from digests, so both ways are written and compared


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (X + Y, Y + X),
        (X * Y, Y * X),
        (X * 2, 2 * X),
        (C + np.sin(C) * 2, np.sin(C) * 2 + C),
        (K & J, J & K),
        (K ^ J, J ^ K),
        (np.logical_or(X, Y), np.logical_or(Y, X)),
        (X == Y, Y == X),
        (X != Y, Y != X),
        (np.hypot(X, Y), np.hypot(Y, X)),
        (np.maximum(K, J), np.maximum(J, K)),
        (np.minimum(P, Q), np.minimum(Q, P)),
        (X < Y, Y > X),
        (X >= Y, Y <= X),
        (np.less(0, X), X > 0),
        (S * V, V * S),
        ((X + Y) * (Y + X) - K, (Y + X) * (X + Y) - K),
        ((Y + X).sum(), (X + Y).sum()),
    ],
)
def test_what_commutes_has_one_order(one: Made, other: Made):
    for known in ((), {X.expression, K.expression}):
        (a,), (b,) = (
            order_operands(ExprGraph({"x": each.expression}, known)).roots.values() for each in (one, other)
        )
        assert a is b
        assert optimize({"x": one.expression}) == optimize({"x": other.expression})


def test_constants_come_last():
    assert ordered((2.0 * X).expression) is (X * 2.0).expression
    assert ordered((X * 2.0).expression) is None
    assert ordered(np.less(0, X).expression) is (X > 0).expression


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.maximum(X, Y), np.maximum(Y, X)),  # of 0.0 and -0.0 it gives the first
        (np.minimum(X, Y), np.minimum(Y, X)),
        (C * np.conjugate(C), np.conjugate(C) * C),
        (X - Y, Y - X),
        (X**Y, Y**X),
        (X / Y, Y / X),
        (A @ B, B @ A),
        (np.arctan2(X, Y), np.arctan2(Y, X)),
    ],
)
def test_what_does_not_commute_keeps_its_order(one: Made, other: Made):
    assert ordered(one.expression) is ordered(other.expression) is None
    assert optimize({"x": one.expression})["x"] is not optimize({"x": other.expression})["x"]


def test_stored_operands_do_not_change_the_order():
    names = [array(f"operand {k}", (6, 4)) for k in range(12)]
    for x, y in itertools.pairwise(names):
        total = (np.exp(x) + np.exp(y)).expression
        plain = order_operands(ExprGraph({"x": total})).roots
        assert order_operands(ExprGraph({"x": total}, {total.operands[0]})).roots == plain
        assert optimize({"x": total}, {total.operands[0], y.expression}) == plain


# identities


def full(shape: tuple[int, ...], value: object, dtype: object) -> Made:
    return mn.full(shape, value, dtype=dtype)


@by(
    [(X * 1, X), (1 * X, X), (X * mn.ones((6, 4)), X), (K * 1, K), (S * 1, S), (P * True, P)],
    [(X * mn.ones((2, 6, 4)), None)],
    [(X * 1.0000001, None), (C * 1, None), (K * 1.0, None), (X * mn.ones((6, 1)), X)],
    [(mn.ones((6, 4)) * V[:4], None)],
    [(X / 1, X), (1 / X, None), (K / 1, None), (X // 1, None)],
    [(X + 0, None), (X + 0.0, None), (X + -0.0, X), (-0.0 + X, X), (K + 0, K), (U + 0, U), (S + 0, None)],
    [(SI + 0, SI)],
    [(X - 0, X), (X - 0.0, X), (X - -0.0, None), (0 - X, None), (K - 0, K), (S - 0, S)],
    [(K - K, full((6, 4), 0, int)), (X - X, None), (SI - SI, None), (K[0, 0] - K[0, 0], mn.asarray(0))],
    [(K * 0, full((6, 4), 0, int)), (X * 0, None), (SI * 0, None), (0 * U, full((6, 4), 0, "u1"))],
    [(X**1, X), (X**2, None), (X**1.0, X), (1**X, None), (S**1, S), (C**1, None)],
    [(np.negative(-X), X), (np.negative(-S), S), (np.invert(~K), K), (np.invert(~SI), None)],
    [(np.logical_not(np.logical_not(P)), P)],
    [(np.logical_not(np.logical_not(K)), None), (+X, X), (abs(abs(X)), abs(X)), (abs(abs(C)), abs(C))],
    [(np.floor(np.floor(X)), np.floor(X)), (np.ceil(np.floor(X)), None), (np.sign(np.sign(C)), None)],
    [(K ^ K, full((6, 4), 0, int)), (SI ^ SI, None), (K & K, K), (SI & SI, SI), (K | K, K), (K & J, None)],
    [(np.maximum(X, X), X), (np.maximum(X, Y), None), (np.fmin(S, S), S), (np.logical_and(P, P), P)],
    [(np.logical_or(X, X), None), (np.logical_xor(X, X), full((6, 4), False, bool))],
    [(np.where(P, X, X), X), (np.where(P, X, Y), None), (np.where(SB, SI, SI), None)],
    [(np.where(P, X[0], X[0]), None)],
    [(np.where(mn.ones((6, 4), dtype=bool), X, Y), X), (np.where(mn.asarray(False), X, Y), Y)],
    [(np.where(mn.asarray(True), X, K), X)],
    [(np.where(mn.asarray(True), V[:4], X), None), (np.where(mn.asarray(True), K, X), None)],
    [(X.astype(complex).astype(complex), None), (P.astype(int).astype(bool), P)],
    [(U.astype(int).astype(float), U.astype(float))],
    [(K.astype(float).astype(int), None), (X.astype("f4").astype(float), None)],
    [(SI.astype("i4").astype(int), None)],
)  # fmt: skip
def test_what_changes_nothing_is_dropped(before: Made, after: Made | None):
    check(drop_identities, before, after)


@by(
    [(mn.asarray(2.0) * 3, mn.asarray(6.0)), (mn.ones(9) * 2, mn.full(9, 2.0))],
    [(mn.asarray([1, 2]) + 1, mn.asarray([2, 3]))],
    [(mn.ones((3, 4))[1:, 0], mn.full(2, 1.0)), (mn.zeros((3, 4)).T, mn.zeros((4, 3)))],
    [(np.sqrt(mn.full(9, 2.0)), mn.full(9, np.sqrt(2)))],
    # as NumPy: the power of a number is a root, that of an array is not
    [(mn.full(9, -0.0) ** 0.5, mn.full(9, -0.0)), (mn.full(9, -0.0) ** mn.full(9, 0.5), mn.full(9, 0.0))],
    [(np.broadcast_to(mn.asarray(2.0), (9, 9)), mn.full((9, 9), 2.0))],
    [(mn.asarray([1, 2, 3])[::-1], mn.asarray([3, 2, 1]))],
    [(mn.asarray(2) ** mn.asarray(-1), None), (mn.asarray([1.0, 2.0]) + mn.ones((99, 2)), None)],
    [(mn.arange(5) * 2, None)],
    [(mn.asarray(1) // mn.asarray(0), mn.asarray(0))],
    [(mn.asarray(1.0) / 0, mn.asarray(np.inf))],
    [((mn.asarray(2) - 1) * X * (K[0, 0] - K[0, 0] + 1), X)],
)  # fmt: skip
def test_constants_are_worked_out(before: Made, after: Made | None):
    check(drop_identities, before, after)


def test_a_constant_found_makes_nothing_sparse_that_was_dense():
    # S + 0 would keep absent elements absent, but it was recorded before the 0 was known.
    dense = (S + (mn.asarray(1.0) - 1)).expression
    assert not dense.sparse
    assert drop_identities(ExprGraph({"x": dense})).roots["x"] is dense


def test_transposes_stretches_slices_and_cuts_of_no_effect():
    s = Data(b"s", (3, 4), np.dtype(float), True)
    full_key = (slice(0, 3, 1), slice(0, 4, 1))
    assert identity(Transpose(A3, (0, 1, 2))) is A3
    assert identity(Transpose(Transpose(A3, (1, 2, 0)), (0, 2, 1))) is Transpose(A3, (1, 0, 2))
    assert identity(Transpose(A3, (1, 0, 2))) is None
    assert identity(Broadcast(A3, (2, 3, 4))) is A3
    assert identity(Broadcast(s, (3, 4))) is None  # it makes a sparse array dense
    assert identity(Index(s, full_key)) is s
    assert identity(Index(s, (slice(2, None, -1), slice(0, 4, 1)))) is None
    assert identity(Index(s, (*full_key, None))) is None
    assert identity(Index(literal(2.0), ())) is literal(2.0)
    halves, thirds = ((0, 2, 3), (0, 4)), ((0, 1, 2, 3), (0, 4))
    assert identity(Regrid(Regrid(s, halves), thirds)) is Regrid(s, thirds)
    assert identity(Regrid(s, halves)) is None
    assert astype(A3, float) is A3


def test_products_with_the_identity_over_pairs_and_conversions_are_patterns():
    ones = SI.pattern(int).expression
    for eye in (mn.eye(40), mn.eye(40, dtype=bool)):
        assert identity(mul(S, eye, "plus_pair").expression) is S.pattern(int).expression
        assert identity(mul(eye, S, "plus_pair").expression) is S.pattern(int).expression
    for kept in (mn.eye(40, 41), mn.eye(40, k=1), S):
        assert identity(mul(S, kept, "plus_pair").expression) is None
    assert identity(mul(A, mn.eye(40), "plus_pair").expression) is None
    assert identity(mul(S, mn.eye(40), "min_plus").expression) is None
    assert identity(S.pattern().astype(float).expression) is S.pattern(float).expression
    assert identity(S.pattern().pattern(int).expression) is S.pattern(int).expression
    assert identity(S.astype(int).pattern().expression) is S.pattern().expression
    assert identity(ones) is None


# transposes


@by(
    [(X.T.T, X), ((X.T + Y.T), (X + Y).T), (np.exp(X.T).T, np.exp(X)), ((X.T * 2 + Y.T).T, X * 2 + Y)],
    [(np.exp(X).T, np.exp(X.T)), ((X + Y).T, None), ((X * 2 + Y).T, None)],
    [((X.T + 1).T + Y, X + 1 + Y), (X.T + X.T, None), (np.exp(A).T @ V, None)],
    [((A.T + B.T) @ V, (A + B).T @ V)],
    [(np.exp(S.T), None), ((V + A).T, None), (S * (A @ np.exp(M @ M.T).T), None)],
    [(X.T.any(), X.any()), (X.T.any(axis=0), X.any(axis=1)), (X.T.sum(axis=0), X.sum(axis=1))],
    [(X.T.sum(), None)],
    [(K.T.sum(), K.sum()), (K.T.max(axis=1), K.max(axis=0)), (X.T.max(), None), (X.T.min(axis=0), None)],
    [(K.T.sum(axis=0, keepdims=True), K.sum(axis=1, keepdims=True).T)],
    [((S.T @ R.T).T, R @ S), ((S.T @ R).T, R.T @ S), ((S @ R.T).T, R @ S.T), ((S @ R).T, None)],
    [((A.T @ B.T).T, None)],
    [(A.T @ V, None), (A.T @ B.T, None), ((S.T * 2) @ R, None)],
    [(mn.matmul(S.T, R.T, semiring="min_first").T, mn.matmul(R, S, semiring="min_second"))],
)  # fmt: skip
def test_transposes_move_where_fewer_are_made(before: Made, after: Made | None):
    check(move_transposes, before, after)


def test_transposes_stay_where_they_are_needed_or_known():
    turned = np.exp(X.T)
    roots = {"x": turned.T.expression, "y": turned.expression}
    assert move_transposes(ExprGraph(roots)).roots == roots
    both = (X.T + Y.T).expression
    assert move_transposes(ExprGraph({"x": both}, {X.T.expression})).roots == {"x": both}
    hidden = np.exp(X.T).T.expression
    kept = move_transposes(ExprGraph({"x": hidden}, {X.T.expression})).roots["x"]
    assert kept is np.exp(X.T.T).expression.with_operands(Transpose(X.T.expression, (1, 0)))


# narrowing


def put(x: Made, key: object, value: object) -> Made:
    new = x.copy()
    new[key] = value
    return new


@by(
    [((V + W)[3], V[3] + W[3]), (np.exp(V)[5:9], np.exp(V[5:9])), ((V + W)[1:], None)],
    [(np.exp(V)[1:], np.exp(V[1:]))],
    [((X + Y)[0] * 2, (X[0] + Y[0]) * 2), ((A + V)[2:4, 3], A[2:4, 3] + V[3]), (X.T[2], X[:, 2])],
    [(X.T[1:3, :2], X[:2, 1:3].T)],
    [(np.broadcast_to(V, (40, 40))[2], V)],
    [(np.broadcast_to(V, (40, 40))[1:3, 4], np.broadcast_to(V[4], (2,)))],
    [(V[5:30][2:9], V[7:14]), (V[::-1][3], V[36]), (V[4:30:2][::-1], V[28:2:-2]), (V[2:9][None, 1:3], None)],
    [((S * V)[3:5, 2:4], S[3:5, 2:4] * V[2:4]), ((S * V)[3, 2:4], None), (np.exp(S)[3], np.exp(S[3]))],
    [(put(V, 3, 1.0)[3], mn.asarray(1.0)), (put(V, 3, 1.0)[4:9], V[4:9])],
    [(put(V, slice(2, 6), W[:4])[2:6], W[:4])],
    [(put(V, slice(2, 6), W[:4])[3:8], None), (put(put(V, 3, 1.0), 3, W[5]), put(V, 3, W[5]))],
    [(put(put(V, 3, 1.0), 4, 2.0), None)],
    [(put(put(V, 3, 1.0), 4, W[5])[3] + put(V, 3, 1.0)[7], mn.asarray(1.0) + V[7])],
    [((A @ B)[2], None), (mn.ones((9, 9))[2], mn.ones(9)), (V.sum(keepdims=True)[0], None)],
)  # fmt: skip
def test_only_what_is_read_is_computed(before: Made, after: Made | None):
    check(narrow, before, after)


def test_what_is_read_as_a_whole_is_not_narrowed():
    whole = np.exp(V)
    for others in (whole, whole.sum(), whole + 1):
        roots = {"x": whole[3].expression, "y": others.expression}
        assert narrow(ExprGraph(roots)).roots == roots
    roots = {"x": whole[3].expression}
    assert narrow(ExprGraph(roots, {whole.expression})).roots == roots
    many = {f"x{k}": np.exp(V)[k].expression for k in range(9)}
    assert narrow(ExprGraph(many)).roots == many  # one array, and nine slices of it
    few = {f"x{k}": np.exp(V)[k].expression for k in range(8)}
    assert narrow(ExprGraph(few)).roots == {f"x{k}": np.exp(V[k]).expression for k in range(8)}


# chains


def mul(x: Made, y: Made, semiring: str) -> Made:
    return mn.matmul(x, y, semiring=semiring)


LONG, WIDE = array("long", (40, 2)), array("wide", (2, 40))
N8, N4 = array("n8", (40, 40), "i8"), array("n4", (40, 40), "i4")


@by(
    [(A @ B @ V, A @ (B @ V)), (V @ (A @ B), V @ A @ B), (A @ (B @ V), None), (A @ B @ A, None)],
    [(S @ R @ V, S @ (R @ V))],
    [(A @ B @ LONG, A @ (B @ LONG)), (LONG @ WIDE @ LONG @ WIDE, LONG @ ((WIDE @ LONG) @ WIDE))],
    [(WIDE @ A @ B, None)],
    [((LONG @ WIDE) @ A, LONG @ (WIDE @ A))],
    [(LONG @ (WIDE @ A) @ LONG, LONG @ (WIDE @ (A @ LONG)))],
    [(mul(mul(A, B, "min_plus"), V, "min_plus"), mul(A, mul(B, V, "min_plus"), "min_plus"))],
    [(mul(mul(S, R, "plus_pair"), V, "plus_pair"), None)],
    [(mul(mul(S, R, "lor_land"), V, "lor_land"), mul(S, mul(R, V, "lor_land"), "lor_land"))],
    [(mul(mul(S, R, "min_first"), V, "min_first"), None)],
    [(mul(mul(S, R, "lor_land"), V, "plus_times"), None), ((A @ B) * S, None)],
    [((A @ B @ LONG @ WIDE) * S, None)],
    [(N8 @ N8 @ N8[0], N8 @ (N8 @ N8[0])), (N4 @ N4 @ N8[0], None)],
    [(mul(mul(N8, N8, "min_plus"), N8[0], "min_plus"), None)],
    [(mn.matmul(A @ B @ LONG, WIDE, mask=S), None), ((A @ B + 1) @ V, None), (V @ A @ B @ V, None)],
    [(A.T @ A @ V, A.T @ (A @ V)), ((A @ B) @ (A @ B) @ V, (A @ B) @ ((A @ B) @ V))],
)  # fmt: skip
def test_chains_are_made_in_a_cheap_order(before: Made, after: Made | None):
    check(order_chains, before, after)


def test_products_that_are_needed_are_not_taken_apart():
    inner = A @ B
    roots = {"x": (inner @ V).expression, "y": inner.expression}
    assert order_chains(ExprGraph(roots)).roots == roots
    alone = {"x": (inner @ V).expression}
    assert order_chains(ExprGraph(alone, {inner.expression})).roots == alone
    shared = {"x": (inner @ V + inner @ W).expression}
    assert order_chains(ExprGraph(shared)).roots == shared


def test_very_long_chains_are_left():
    x = A
    for _ in range(60):
        x = x @ B
    assert order_chains(ExprGraph({"x": (x @ LONG).expression})).roots == {"x": (x @ LONG).expression}


# where it was written


@pytest.mark.parametrize(
    ("before", "made", "sources"),
    [
        (A @ B @ V, B @ V, [A @ B @ V]),
        (np.exp(V)[3] * 1, np.exp(V[3]), [np.exp(V)]),
        (np.sqrt(np.exp(V) + W)[3], np.exp(V[3]), [np.exp(V)]),
        ((X.T - Y.T), X - Y, [X.T - Y.T]),
        (X.T.any(axis=0), X.any(axis=1), [X.T.any(axis=0)]),
    ],
)
def test_what_a_pass_makes_stands_for_what_was_recorded(before: Made, made: Made, sources: list[Made]):
    after, origins = traced({"x": before.expression})
    assert set(origins[made.expression]) == {one.expression for one in sources}
    assert before.expression not in origins
    assert after["x"] in origins


def test_both_ways_to_write_it_are_where_it_was_written():
    one, other = np.exp(X) + np.exp(Y), np.exp(Y) + np.exp(X)
    after, origins = traced({"x": one.expression, "y": other.expression})
    assert after["x"] is after["y"]
    assert after["x"] in (one.expression, other.expression)
    assert origins == {}


def test_elementwise_rules_are_for_their_dtypes():
    # a loop that converts first: int8 sums in float64
    wide = Elementwise("add", (U.expression, literal(0.0)), (np.dtype(float),) * 2, np.dtype(float))
    assert identity(wide) is None
