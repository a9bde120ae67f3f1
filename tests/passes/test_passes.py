"""Every listed pass keeps meaning, shapes, dtypes, formats and names: a law over drawn expressions."""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Callable, MutableMapping
from contextlib import suppress

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import matnb as mn
from matnb.blocks.formats import Dense
from matnb.errors import MatnbError
from matnb.expr.client_data import keep_copy
from matnb.expr.nodes import Data, Expr, Literal, Transpose
from matnb.expr.traverse import ExprGraph, Rewritten, topological
from matnb.ops.interpret import interpret
from matnb.ops.reference import Value
from matnb.passes import PASSES, PassEntry, optimize, stages, traced

FLOAT = np.dtype(np.float64)
A = Data(b"a", (2, 3, 4), FLOAT, False)
S = Data(b"s", (3, 4), FLOAT, True)
SPECIAL = np.array([0.0, -0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5])
WHOLE = np.array([0, 1, -1, 2])
SHAPES = [(3, 3), (3, 3), (3, 1), (1, 3), (3,), ()]
KINDS = {"float": FLOAT, "narrow": np.dtype(np.float32), "int": np.dtype(np.int64), "bool": np.dtype(bool)}
COMPARED = ["less", "greater", "equal", "less_equal"]
PER_KIND = {
    "f": ["add", "subtract", "multiply", "maximum", "hypot", *COMPARED],
    "i": ["add", "subtract", "multiply", "minimum", "bitwise_xor", "bitwise_and", *COMPARED],
    "b": ["add", "multiply", "logical_and", "bitwise_xor", "bitwise_or", "maximum", *COMPARED],
}
UNARY = {
    "f": ["negative", "absolute", "positive", "floor", "sign", "isnan"],
    "i": ["negative", "absolute", "invert", "positive", "logical_not"],
    "b": ["logical_not", "invert"],
}
STEPS = [
    *("binary", "binary", "unary", "turn", "turn", "index", "index", *("trap",) * 6),
    *("put", "where", "astype", "reduce", "product", "product"),
]
# What rules must tell apart from what they are for.
TRAPS: list[Callable[[mn.DistArray, mn.DistArray], mn.DistArray]] = [
    lambda x, y: x + 0.0,
    lambda x, y: x + -0.0,
    lambda x, y: x - 0,
    lambda x, y: x * 1,
    lambda x, y: x * 0,
    lambda x, y: x - x,
    lambda x, y: x**1,
    lambda x, y: np.maximum(x, y),
    lambda x, y: np.less(2, x),
    lambda x, y: (x * y)[0],
    lambda x, y: (x + y)[1:2],
    lambda x, y: x.T.sum(axis=0),
    lambda x, y: x.T.max(),
    lambda x, y: x.T + y.T,
    lambda x, y: np.where(x == y, x, x),
]
NUMBERS = {"f": [0.0, -0.0, 1.0, 2.0, 1], "i": [0, 1, 2], "b": [True, False]}


def leaf(draw: st.DrawFn, exact: bool) -> mn.DistArray:
    shape, dtype = (
        draw(st.sampled_from(SHAPES)),
        KINDS[draw(st.sampled_from(["float", "float", "float", "int", "narrow", "bool"]))],
    )
    rng = np.random.default_rng(draw(st.integers(0, 9)))
    pool = WHOLE if exact or dtype.kind != "f" else SPECIAL
    values = rng.choice(pool, shape).astype(dtype)
    match draw(st.sampled_from(["given", "given", "sparse", "ones", "spread"])):
        case "sparse" if len(shape) == 2:
            rows, columns = np.nonzero(rng.random(shape) < 0.5)  # zeros are stored, too
            return mn.asarray(sp.csr_array((values[rows, columns], (rows, columns)), shape=shape))
        case "ones":
            return mn.ones(shape, dtype=dtype)
        case "spread" if len(shape) < 2:
            return np.broadcast_to(given_array(values), (3, 3))
    return given_array(values)


def given_array(values: np.ndarray) -> mn.DistArray:
    """Return an array that is not so small as to be a constant."""
    node = Data(repr((values.tobytes(), values.dtype)).encode(), values.shape, values.dtype, False)
    keep_copy(node, Dense(values))
    return mn.DistArray(node)


@st.composite
def expressions(draw: st.DrawFn, exact: bool = False) -> dict[str, Expr]:
    """Draw expressions of up to twenty operations, some of them roots."""
    made = [leaf(draw, exact) for _ in range(3)]
    for _ in range(draw(st.integers(2, 20))):
        with suppress(MatnbError):  # shapes or dtypes that do not go together
            made.append(step(draw, made, exact))
    if draw(st.booleans()):
        return {f"r{place}": one.expression for place, one in enumerate(made)}
    picked = draw(st.sets(st.integers(0, len(made) - 1), max_size=3)) | {len(made) - 1}
    return {f"r{place}": made[place].expression for place in sorted(picked)}


def step(draw: st.DrawFn, made: list[mn.DistArray], exact: bool) -> mn.DistArray:
    recent = made[-5:]
    x, y = draw(st.sampled_from(recent)), draw(st.sampled_from(recent))
    kind = x.dtype.kind
    match draw(st.sampled_from(STEPS)):
        case "binary":
            if x.dtype == y.dtype:
                return getattr(np, draw(st.sampled_from(PER_KIND[kind])))(x, y)
        case "unary":
            return getattr(np, draw(st.sampled_from(UNARY[kind])))(x)
        case "trap":
            return draw(st.sampled_from(TRAPS))(x, y)
        case "turn":
            return x.T
        case "index" if x.ndim and x.shape[0] > 1:
            keys = [0, slice(1, 2), slice(None, None, -1), slice(0, 2)]
            return x[
                tuple(
                    draw(st.sampled_from([*keys, slice(None)])) for _ in range(draw(st.integers(1, x.ndim)))
                )
            ]
        case "put" if x.ndim and not x.sparse and x.shape[0] > 1:
            new = x.copy()
            new[draw(st.sampled_from([0, slice(0, 1), slice(1, 2)]))] = draw(
                st.sampled_from(NUMBERS[kind][:1])
            )
            return new
        case "where" if x.dtype == y.dtype:
            return np.where(draw(st.sampled_from([x, y, mn.asarray(True)])) != 0, x, y)
        case "astype" if not (kind == "f" and not exact):
            return x.astype(draw(st.sampled_from([np.float64, np.float32, np.int64])))
        case "reduce" if x.ndim and 0 not in x.shape:
            name = draw(st.sampled_from(["sum", "max", "any", "min"]))
            axis = draw(st.sampled_from([None, *range(x.ndim)])) if kind != "f" or exact else 0
            return getattr(np, name)(x, axis=axis, keepdims=draw(st.booleans()))
        case "product" if exact and x.ndim and y.ndim and x.shape[-1] == y.shape[max(0, y.ndim - 2)]:
            if x.dtype == y.dtype:
                return mn.matmul(x, y)
    return x


def bits(node: Expr, values: MutableMapping[Expr, Value]) -> tuple[object, ...]:
    """All that a value is: its elements, one NaN as the other, and if it is sparse its pattern."""
    found = interpret(node, values)
    stored = found.data if sp.issparse(found) else np.asarray(found)
    stored = np.where(np.isnan(stored), np.nan, stored) if stored.dtype.kind == "f" else stored
    if not sp.issparse(found):
        return found.dtype, found.shape, stored.tobytes()
    found.sort_indices()
    return found.dtype, found.shape, stored.tobytes(), tuple(found.indices), tuple(found.indptr)


def run(passes: list[PassEntry], roots: dict[str, Expr]) -> dict[str, Expr]:
    for listed in passes:
        roots = listed.run(ExprGraph(roots)).roots
    return roots


def check(before: dict[str, Expr], after: dict[str, Expr], values: MutableMapping[Expr, Value]) -> None:
    assert list(after) == list(before)
    for name, root in before.items():
        new = after[name]
        assert (new.shape, new.dtype, new.sparse) == (root.shape, root.dtype, root.sparse)
        assert bits(new, values) == bits(root, values), (root, new)


LAW = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@LAW
@given(roots=expressions())
def test_each_pass_keeps_the_bits_of_all_but_products(roots: dict[str, Expr]):
    values: dict[Expr, Value] = {}
    before = dict(roots)
    for listed in PASSES:
        after = listed.run(ExprGraph(roots)).roots
        check(roots, after, values)
        assert listed.run(ExprGraph(after)).roots == after, listed.name
    assert roots == before


@LAW
@given(roots=expressions(exact=True), chosen=st.sets(st.integers(0, len(PASSES) - 1)))
def test_passes_after_each_other_keep_what_is_meant(roots: dict[str, Expr], chosen: set[int]):
    values: dict[Expr, Value] = {}
    for passes in ([PASSES[place] for place in sorted(chosen)], list(PASSES)):
        after = run(passes, roots)
        for name, root in roots.items():
            one, other = interpret(root, values), interpret(after[name], values)
            if sp.issparse(one):
                assert bits(root, values)[3:] == bits(after[name], values)[3:]
                one, other = one.toarray(), other.toarray()
            # whole numbers, until they are too large to be exact
            exact = one.dtype.kind != "f" or np.abs(np.nan_to_num(one)).max(initial=0) < 2.0**20
            np.testing.assert_array_equal(one, other) if exact else np.testing.assert_allclose(
                one, other, 1e-6
            )


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(roots=expressions(exact=True), data=st.data())
def test_passes_leave_alone_what_is_known(roots: dict[str, Expr], data: st.DataObject):
    order = topological(roots.values())
    known = {order[place] for place in data.draw(st.sets(st.integers(0, len(order) - 1), max_size=3))}
    gone = set(order) - set(topological(roots.values(), known))
    gone -= {one for one in gone if isinstance(one, Literal)}  # a pass may need such a number elsewhere
    for listed in PASSES:
        after = listed.run(ExprGraph(roots, known)).roots
        assert all(after[name] is root for name, root in roots.items() if root in known)
        # What only known values were made from may be gone.
        assert not gone & set(topological(after.values(), known)), listed.name
    values: dict[Expr, Value] = {}
    for root in known:
        interpret(root, values)
    after, origins = traced(roots, known)
    there = {node: values[node] for node in known}
    for name, root in roots.items():
        assert bits(after[name], dict(there))[:2] == bits(root, values)[:2]
    recorded = set(topological(roots.values(), known))
    made = set(topological(after.values(), known)) - recorded
    assert made <= set(origins), "an expression that stands for none"
    assert all(found and set(found) <= recorded for found in origins.values())


def test_all_passes_run_in_their_order():
    roots = {"x": Transpose(Transpose(A, (1, 2, 0)), (2, 0, 1))}
    assert [name for name, _ in stages(roots)] == [listed.name for listed in PASSES]
    assert stages(roots)[-1][1] == optimize(roots) == traced(roots)[0] == {"x": A}
    assert all(listed.reason for listed in PASSES)


def test_a_pass_that_changes_a_dtype_is_caught(monkeypatch: pytest.MonkeyPatch):
    wrong = PassEntry(
        "wrong", lambda graph: Rewritten(ExprGraph(dict.fromkeys(graph.roots, S)), {}), "to be caught"
    )
    monkeypatch.setattr("matnb.passes.PASSES", (wrong,))
    with pytest.raises(AssertionError, match="wrong"):
        optimize({"x": A})


@pytest.mark.parametrize(
    "grow", [lambda x, k: x + float(k), lambda x, k: A_ROW + x, lambda x, k: np.sqrt(x).T]
)
def test_long_chains_pass_in_steps_that_follow_their_length(
    grow: Callable[[mn.DistArray, int], mn.DistArray],
):
    calls = []
    for length in (200, 400):
        x = mn.DistArray(Data(b"row", (1, 4), FLOAT, False))
        for k in range(length):
            x = grow(x, k)
        calls.append(num_calls(lambda x=x: traced({"x": x.expression})))
    assert calls[1] < 2.3 * calls[0]


A_ROW = mn.DistArray(Data(b"a row", (1, 4), FLOAT, False))


def num_calls(work: Callable[[], object]) -> int:
    """Python calls that something makes: time that no other process can lengthen."""
    profile = cProfile.Profile()
    profile.runcall(work)
    return pstats.Stats(profile).total_calls
