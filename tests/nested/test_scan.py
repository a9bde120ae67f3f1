"""The block-parallel scan with a user's operator: definition 2 of the paper, one element after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matnb as mn
from matnb.expr.traverse import topological

pytestmark = pytest.mark.session("interpreter", "three workers")


def one_by_one(x: np.ndarray, operator: Any, identity: Any, axis: int = 0, exclusive: bool = False) -> Any:
    """Definition 2 with a single partition: S_0 = b_0, S_i = S_(i-1) operator a_(i-1)."""
    lanes = np.moveaxis(x, axis, 0)
    state = np.broadcast_to(np.asarray(identity), lanes.shape[1:]).copy()
    found = [state]
    for element in lanes:
        found.append(np.asarray(operator(found[-1], element)).astype(state.dtype))
    chosen = found[:-1] if exclusive else found[1:]
    return np.moveaxis(np.array(chosen, state.dtype).reshape(lanes.shape), 0, axis)


def count_large(total: Any, element: Any) -> Any:
    return total + (element > 0.5)


def longest_bits(bits: Any, element: Any) -> Any:
    return bits | (np.int64(1) << (element % 60))


def affine(one: Any, other: Any) -> Any:
    # Maps modulo 257, y -> a y + b, as the number 257 a + b; one is applied first. Not commutative.
    (a, b), (c, d) = (one // 257, one % 257), (other // 257, other % 257)
    return (a * c % 257) * 257 + (b * c + d) % 257


def bigger(one: Any, other: Any) -> Any:
    return np.where(one > other, one, other)


LAWS: list[tuple[Callable[..., Any], Any, Any, type]] = [
    (count_large, np.int64(0), np.add, np.float64),
    (longest_bits, np.int64(0), np.bitwise_or, np.int64),
    (affine, np.int64(257), None, np.int64),
    (bigger, np.int64(-(2**62)), None, np.int64),
    (np.subtract, np.int64(0), np.add, np.int64),
    (np.add, np.int64(0), None, np.int16),
    (np.minimum, np.inf, None, np.float64),
]


@settings(max_examples=60, deadline=None)
@given(
    law=st.sampled_from(LAWS),
    count=st.integers(0, 300),
    cuts=st.integers(1, 7),
    columns=st.sampled_from([0, 3]),
    is_last=st.booleans(),
    exclusive=st.booleans(),
    check=st.booleans(),
)
def test_definition_2(
    law: Any, count: int, cuts: int, columns: int, is_last: bool, exclusive: bool, check: bool
) -> None:
    operator, identity, update, dtype = law
    rng = np.random.default_rng(count)
    shape = (count, columns) if columns else (count,)
    x = rng.random(shape) if dtype is np.float64 else rng.integers(0, 257**2 - 1, shape).astype(dtype)
    if operator is np.add:
        x = rng.integers(-30000, 30000, shape).astype(dtype)
    axis = len(shape) - 1 if is_last else 0
    blocks: Any = (max(1, min(cuts, count)), 2) if columns else max(1, min(cuts, count))
    options = {"axis": axis, "exclusive": exclusive, "check": check}
    found = mn.scan(mn.asarray(x, blocks=blocks), operator, identity, update, **options)
    expected = one_by_one(x, operator, identity, axis, exclusive)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found.compute(), expected)


def test_an_identity_of_several_numbers() -> None:
    rng = np.random.default_rng(1)
    M = rng.integers(0, 5, (40, 3, 3))
    found = mn.scan(mn.asarray(M, blocks=(4, 1, 1)), lambda a, b: a @ b % 101, np.eye(3, dtype=np.int64))
    expected = one_by_one(M, lambda a, b: a @ b % 101, np.eye(3, dtype=np.int64))
    np.testing.assert_array_equal(found.compute(), expected)
    low = np.array([5, 0, -5])
    x = rng.integers(-9, 9, (30, 3))

    def at_least(top: Any, element: Any) -> Any:
        return np.maximum(top, element * 1.0)

    options: dict[str, Any] = {"exclusive": True}
    y = np.maximum(x, low)
    found = mn.scan(mn.asarray(y, blocks=(4, 2)), at_least, low * 1.0, np.maximum, **options)
    np.testing.assert_array_equal(found.compute(), one_by_one(y, at_least, low * 1.0, exclusive=True))


def test_what_is_known_is_a_scan_of_its_own() -> None:
    def kinds(array: Any) -> set[str]:
        return {type(node).__name__ for node in topological([array.expression])}

    x = mn.arange(100.0, blocks=4)
    assert "Scan" in kinds(mn.scan(x, np.maximum, -np.inf))
    assert "Scan" in kinds(mn.scan(x, count_large, np.int64(0), lambda a, b: b + a))
    assert "AssociativeScan" in kinds(mn.scan(x, bigger, -np.inf))
    # A number of Python's takes the dtype that it has beside x.
    assert mn.scan(x, np.add, 0).dtype == np.float64
    assert mn.scan(mn.arange(3), np.add, 0.0).dtype == np.float64
    assert mn.scan(mn.asarray(np.ones(3, np.int8)), np.add, 0).dtype == np.int8


def test_in_a_loop() -> None:
    x = np.random.default_rng(2).random(50)

    def step(state: Any) -> Any:
        return mn.scan(state, count_large, np.int64(0), np.add) / 50

    expected = x
    for _ in range(3):
        expected = one_by_one(expected, count_large, np.int64(0)) / 50
    found, _ = mn.iterate(step, mn.asarray(x, blocks=3), max_iterations=3)
    np.testing.assert_array_equal(found.compute(), expected)
    with pytest.raises(mn.errors.LoopBodyError, match="check it before the loop"):
        mn.iterate(lambda y: mn.scan(y, np.add, 0.0, check=True), mn.asarray(x), max_iterations=2)


X = np.random.default_rng(3).random(40)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"operator": lambda a, b: a - b, "identity": 0.0}, "OptionError", "not associative"),
        ({"operator": lambda a, b: (a + b) / 2, "identity": 0.0}, "OptionError", "not associative"),
        (
            {"operator": count_large, "identity": np.int64(0), "update": np.maximum},
            "OptionError",
            r"does not go with count_large, as operator\(u, a\)",
        ),
        ({"operator": np.minimum, "identity": 0.25}, "OptionError", "does not keep"),
    ],
)
def test_laws_are_checked_on_request(options: Any, error: str, words: str) -> None:
    x = mn.asarray(X)
    mn.scan(x, **options)
    with pytest.raises(getattr(mn.errors, error), match=words):
        mn.scan(x, **options, check=True)


def fails(one: Any, other: Any) -> Any:
    raise ValueError("too bad")


@pytest.mark.parametrize(
    ("x", "options", "error", "words"),
    [
        (1.0, {"operator": np.add, "identity": 0}, "ShapeError", "no axes"),
        (X, {"operator": np.add, "identity": "none"}, "DTypeError", "identity is a str"),
        (X, {"operator": np.add, "identity": np.zeros(3)}, "ShapeError", r"has shape \(3,\)"),
        (
            X,
            {"operator": np.add, "identity": 1.0},
            "OptionError",
            "1.0 is not an identity of add, which combines it with itself to 2.0",
        ),
        (X, {"operator": np.subtract, "identity": 0.0}, "UnsupportedError", "order of the operations"),
        (
            X,
            {"operator": count_large, "identity": np.int64(0)},
            "DTypeError",
            "elements are float64 .* update=",
        ),
        (X, {"operator": lambda a: a, "identity": 0.0}, "OptionError", "raised TypeError"),
        (X, {"operator": fails, "identity": 0.0}, "OptionError", "fails raised ValueError .*too bad"),
        (X, {"operator": lambda a, b: (a + b)[:1], "identity": 0.0}, "ShapeError", r"returns shape \(1,\)"),
        (
            X,
            {"operator": lambda a, b: a + b, "identity": np.int64(0), "update": np.add},
            "DTypeError",
            "returns float64, and running values are int64",
        ),
        (X, {"operator": bigger, "identity": -np.inf, "axis": 1}, "ShapeError", "axis"),
    ],
)
def test_bad_input(x: Any, options: Any, error: str, words: str) -> None:
    with pytest.raises(getattr(mn.errors, error), match=words):
        mn.scan(mn.asarray(x), **options)


def test_an_operator_that_fails_on_a_worker() -> None:
    def fails_later(total: Any, element: Any) -> Any:
        if len(total) > 2:
            raise ValueError("three")
        return total + element

    found = mn.scan(mn.arange(50.0, blocks=3), fails_later, np.float64(0), np.add)
    with pytest.raises(mn.errors.KernelError, match="three"):
        found.compute()
