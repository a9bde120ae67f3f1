"""Running values along segments by ufuncs and operators of one's own, against one value after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from drawn_segments import Segments, drawn_segments
from hypothesis import given, settings
from hypothesis import strategies as st

import matnb as mn
from matnb.errors import DTypeError, KernelError, LoopBodyError, OptionError, ShapeError, UnsupportedError

pytestmark = pytest.mark.session("interpreter", "three workers")


def count_large(total: Any, element: Any) -> Any:
    return total + (element > 2)


def affine(one: Any, other: Any) -> Any:
    # Maps modulo 257, y -> a y + b, as the number 257 a + b; one is applied first. Not commutative.
    (a, b), (c, d) = (one // 257, one % 257), (other // 257, other % 257)
    return (a * c % 257) * 257 + (b * c + d) % 257


LAWS: list[tuple[Callable[..., Any], Any, Any]] = [
    (count_large, np.int64(0), np.add),
    (affine, np.int64(257), None),
    (np.gcd, np.int64(0), None),
    (np.bitwise_or, None, None),
    (np.add, np.int64(0), None),
    (np.subtract, np.int64(0), np.add),
]


@given(drawn_segments(("int64",)), st.sampled_from(LAWS), st.booleans(), st.booleans(), st.booleans())
@settings(max_examples=30, deadline=None)
def test_each_segment_is_scanned_alone(
    drawn: Segments, law: Any, exclusive: bool, reverse: bool, check: bool
) -> None:
    operator, identity, update = law
    found = drawn.nested().scan(
        operator, identity=identity, update=update, exclusive=exclusive, reverse=reverse, check=check
    )
    expected = []
    for part in drawn.parts:
        states = [np.int64(0) if identity is None else identity]
        for element in part[::-1] if reverse else part:
            states.append(operator(states[-1], element))
        chosen = states[:-1] if exclusive else states[1:]
        expected.append([int(one) for one in (chosen[::-1] if reverse else chosen)])
    assert found.dtype == np.int64
    assert found.tolist() == expected


@pytest.mark.parametrize(
    ("monoid", "ufunc"),
    [
        ("plus", np.add),
        ("times", np.multiply),
        ("min", np.minimum),
        ("max", np.maximum),
        ("lor", np.logical_or),
        ("land", np.logical_and),
    ],
)
def test_a_ufunc_of_a_monoid_is_the_monoid(monoid: str, ufunc: np.ufunc) -> None:
    N: Any = mn.nested.from_lists([[3, 0, 2], [], [5]])
    deep = mn.nested.unflatten(N, [2, 1])
    for given_as in (ufunc, ufunc.__name__, getattr(mn, ufunc.__name__)):
        assert N.scan(given_as).values.expression is N.scan(monoid).values.expression
        assert N.reduce(given_as).expression is N.reduce(monoid).expression
        assert deep.scan(given_as).tolist() == deep.scan(monoid).tolist()
        target = [0, 0, 0, 1], [0, 0, 1, 0]
        assert N.combine(target, given_as).tolist() == N.combine(target, monoid).tolist()


def test_positions_stay_and_gaps_begin_no_segment() -> None:
    rows = mn.nested.from_rows(sp.csr_array([[0, 2, 0, 6], [0, 0, 0, 0], [0, 0, 9, 6]]))
    found = rows.scan(np.gcd)
    assert found.tolist() == [[2, 2], [], [9, 3]]
    assert found.positions.compute().tolist() == [1, 3, 2, 3]


def test_deeper_arrays_and_loops() -> None:
    N = mn.nested.from_lists([[1.0, 4.0], [], [3.0, 1.0, 5.0]])
    deep = mn.nested.unflatten(N, [1, 2])
    counted = deep.scan(count_large, identity=np.int64(0), update=np.add)
    assert counted.tolist() == [[[0, 1]], [[], [1, 1, 2]]]

    def step(x: Any) -> Any:
        return N.with_values(x).scan(np.hypot).values

    found, _ = mn.iterate(step, N.values, max_iterations=1)
    np.testing.assert_allclose(found.compute(), np.sqrt([1, 17, 9, 10, 35]))
    with pytest.raises(LoopBodyError, match="check it before the loop"):
        mn.iterate(lambda x: N.with_values(x).scan(np.hypot, check=True).values, N.values, max_iterations=1)


REFUSED: list[tuple[Callable[[Any], object], type[Exception], str]] = [
    (lambda N: N.scan(np.subtract), OptionError, "subtract is none of the monoids plus, .*: give identity="),
    (lambda N: N.scan(max), OptionError, "max is none of the monoids"),
    (lambda N: N.scan(np.subtract, identity=0), UnsupportedError, "depends on the order"),
    (lambda N: N.scan("add up"), OptionError, "monoid='add up'; "),
    (lambda N: N.scan(3), OptionError, "monoid=3; "),
    (
        lambda N: N.scan("max", identity=0),
        OptionError,
        "'max' with identity= or update=: a monoid has its own",
    ),
    (lambda N: N.scan(np.gcd, stable=True), OptionError, "stable=True with gcd: it is for monoids"),
    (lambda N: N.scan(count_large, identity=0.0), DTypeError, "elements are int64 .* give update="),
    (lambda N: N.scan(np.gcd, identity=4, check=True), OptionError, "does not keep what follows"),
    (lambda N: N.scan(np.gcd, identity=np.zeros(3, int)), ShapeError, r"identity has shape \(3,\)"),
    (lambda N: N.scan(lambda u, a: u - a, identity=0, check=True), OptionError, "is not associative"),
    (lambda N: N.reduce(np.hypot), OptionError, r"hypot is none .*N\.scan\(operator, identity=\)"),
    (lambda N: N.combine(([0] * 6, [0] * 6), np.hypot), OptionError, "combine: hypot is none of the monoids"),
]


@pytest.mark.parametrize(("call", "error", "words"), REFUSED)
def test_what_is_no_operator(call: Callable[[Any], object], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call(mn.nested.from_lists([[3, 1, 2], [], [4, 4, 7]]))


def test_an_operator_that_fails_on_a_worker() -> None:
    def fails_later(total: Any, element: Any) -> Any:
        if np.any(total > 1.5):
            raise ValueError("three")
        return total + element

    found = mn.nested.from_lists([[1.0] * 9, [1.0] * 9]).scan(fails_later, identity=0.0)
    with pytest.raises(KernelError, match="three"):
        found.values.compute()
