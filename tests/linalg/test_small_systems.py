"""Stacks of matrices and least squares of sparse rows: bits for any cuts, errors that name places, loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn
from matnb.errors import DTypeError, OptionError, ShapeError, SingularError, TooLargeError
from matnb.lazy.functions import decompositions
from matnb.ops.interpret import interpret

pytestmark = pytest.mark.session("two workers")

RNG = np.random.default_rng(0)
STACK = RNG.standard_normal((3000, 5, 5)) + 5 * np.eye(5)
DEFINITE = STACK @ STACK.swapaxes(1, 2) + np.eye(5)
RIGHT = RNG.standard_normal((3000, 5, 2))
R = sp.random_array((400, 60), density=0.1, format="csr", rng=1)
V = RNG.standard_normal((60, 6))
CUTS = [None, 3, [0, 1, 7, 2999, 3000]]


ON_EACH = pytest.mark.session("two threads", "three workers", "processes")


def values(found: object) -> list[np.ndarray]:
    return [one.compute() for one in (found if isinstance(found, tuple) else (found,))]


@ON_EACH
@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize(
    "name", ["inv", "qr", "svd", "eigh", "cholesky", "det", "slogdet", "svdvals", "eigvalsh"]
)
def test_a_stack_has_numpys_bits_in_any_cuts(name: str, cuts: Any) -> None:
    given = DEFINITE if name in ("eigh", "cholesky", "eigvalsh") else STACK
    blocks = None if cuts is None else (cuts, None, None)
    found = values(getattr(np.linalg, name)(mn.asarray(given, blocks=blocks)))
    theirs = getattr(np.linalg, name)(given)
    for mine, own in zip(found, theirs if isinstance(theirs, tuple) else (theirs,), strict=True):
        assert mine.dtype == own.dtype
        np.testing.assert_array_equal(mine, own)


@ON_EACH
@pytest.mark.parametrize("cuts", CUTS)
def test_systems_of_a_stack(cuts: Any) -> None:
    blocks = None if cuts is None else (cuts, None, None)
    for left, right in ((STACK, RIGHT), (STACK[0], RIGHT), (STACK, np.ones(5)), (STACK[:1], RIGHT)):
        own_blocks = blocks if left.shape == STACK.shape else None
        found = np.linalg.solve(mn.asarray(left, blocks=own_blocks), mn.asarray(right)).compute()
        np.testing.assert_array_equal(found, np.linalg.solve(left, right))


def test_a_stack_above_the_limit_of_one_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decompositions, "SHIP_BYTES", 5 * 5 * 8)
    stack, large = mn.asarray(STACK), mn.asarray(np.eye(6))
    np.testing.assert_array_equal(interpret(np.linalg.inv(stack).expression), np.linalg.inv(STACK))
    with pytest.raises(TooLargeError, match=r"inv of shape \(6, 6\), 288 B: it is made on one worker"):
        np.linalg.inv(large)
    with pytest.raises(TooLargeError, match=r"pinv of shape \(3000, 5, 5\)"):
        np.linalg.pinv(stack)


@ON_EACH
@pytest.mark.parametrize(
    ("call", "given", "at", "told"),
    [
        (np.linalg.inv, STACK, 2345, r"inv: Singular matrix at \[2345\] of the stack"),
        (np.linalg.cholesky, DEFINITE, 0, r"cholesky: Matrix is not positive definite at \[0\] of the stack"),
        (lambda a: np.linalg.solve(a, np.ones(5)), STACK, 2999, r"solve: Singular matrix at \[2999\]"),
        (
            lambda a: np.linalg.inv(a.reshape((1500, 2, 5, 5))),
            STACK,
            2345,
            r"inv: Singular matrix at \[1172, 1\] of the stack",
        ),
    ],
)
def test_an_error_names_the_matrix(
    call: Callable[[Any], mn.DistArray], given: np.ndarray, at: int, told: str
) -> None:
    broken = given.copy()
    broken[at] = -1.0
    with pytest.raises(SingularError, match=told):
        call(mn.asarray(broken, blocks=(3, None, None))).compute()
    with pytest.raises(SingularError, match=told):
        interpret(call(mn.asarray(broken)).expression)


def solved(matrix: sp.csr_array, factors: np.ndarray, regularization: float, weighted: bool) -> np.ndarray:
    """Solve row by row."""
    found = np.zeros((matrix.shape[0], factors.shape[1]))
    for row in range(matrix.shape[0]):
        begin, end = matrix.indptr[row : row + 2]
        if begin < end:
            used = factors[matrix.indices[begin:end]]
            shift = regularization * (end - begin if weighted else 1)
            system = used.T @ used + shift * np.eye(factors.shape[1])
            found[row] = np.linalg.solve(system, used.T @ matrix.data[begin:end])
    return found


@ON_EACH
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_are_solved_with_the_same_bits_in_any_cuts(weighted: bool) -> None:
    found = [
        mn.linalg.segment_solves(mn.asarray(R, blocks=blocks), V, 0.5, weighted=weighted).compute()
        for blocks in (None, (7, 1), ([0, 1, 399, 400], 2))
    ]
    np.testing.assert_allclose(found[0], solved(R, V, 0.5, weighted), rtol=1e-9, atol=1e-9)
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


@ON_EACH
def test_rows_of_confidences_are_solved_with_the_same_bits_in_any_cuts() -> None:
    found = [
        mn.linalg.segment_solves(mn.asarray(R, blocks=blocks), V, 0.5, confidence=3.0)
        for blocks in (None, (7, 1), ([0, 1, 399, 400], 2))
    ]
    expected = interpret(found[0].expression)
    r = R.toarray()
    for row in (0, 57, 399):
        system = V.T @ np.diag(1 + 3 * r[row]) @ V + 0.5 * np.eye(6)
        np.testing.assert_allclose(
            expected[row], np.linalg.solve(system, V.T @ ((1 + 3 * r[row]) * (r[row] > 0))), rtol=1e-9
        )
    values = [one.compute() for one in found]
    np.testing.assert_allclose(values[0], expected, rtol=1e-9, atol=1e-12)
    for other in values[1:]:
        np.testing.assert_array_equal(other, values[0])


def test_the_dtype_is_that_of_the_operands() -> None:
    for of_matrix, of_factors, expected in (("f4", "f4", "f4"), ("i4", "f4", "f8"), ("i8", "i8", "f8")):
        matrix = sp.csr_array((100 * R).astype(of_matrix))
        found = mn.linalg.segment_solves(mn.asarray(matrix), (10 * V).astype(of_factors), 2)
        assert found.dtype == expected
        theirs = solved(matrix.astype(float), (10 * V).astype(of_factors).astype(float), 2, False)
        np.testing.assert_allclose(interpret(found.expression), theirs, rtol=1e-4, atol=1e-4)


@ON_EACH
def test_alternating_least_squares_in_a_loop() -> None:
    ratings = mn.asarray(R, blocks=(3, 1))

    def step(state: tuple[mn.DistArray, mn.DistArray]) -> tuple[mn.DistArray, mn.DistArray]:
        users = mn.linalg.segment_solves(ratings, state[1], 0.5)
        return users, mn.linalg.segment_solves(ratings.T, users, 0.5)

    (users, items), _ = mn.iterate(step, (mn.zeros((400, 6)), V), max_iterations=3)
    own_items, turned = V, sp.csr_array(R.T)
    for _ in range(3):
        own_users = solved(R, own_items, 0.5, False)
        own_items = solved(turned, own_users, 0.5, False)
    np.testing.assert_allclose(users.compute(), own_users, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(items.compute(), own_items, rtol=1e-8, atol=1e-8)


@ON_EACH
def test_a_stack_in_a_loop() -> None:
    stack = mn.asarray(DEFINITE / 60, blocks=(3, None, None))
    found, _ = mn.iterate(
        lambda x: np.linalg.solve(stack, x) + np.linalg.svd(stack)[0][:, :, :2], RIGHT, max_iterations=2
    )
    expected = RIGHT
    for _ in range(2):
        expected = np.linalg.solve(DEFINITE / 60, expected) + np.linalg.svd(DEFINITE / 60)[0][:, :, :2]
    np.testing.assert_array_equal(found.compute(), expected)


@ON_EACH
def test_an_error_names_the_row() -> None:
    few = sp.csr_array(np.eye(400, 60, -350))  # one entry in rows 350 to 399
    with pytest.raises(SingularError, match=r"segment_solves: row 3\d\d: the system of its 1 entries and 6"):
        mn.linalg.segment_solves(mn.asarray(few, blocks=(3, 1)), V, 0).compute()


def test_what_cannot_be_solved_is_refused() -> None:
    matrix = mn.asarray(R)
    with pytest.raises(DTypeError, match="segment_solves: the matrix is dense"):
        mn.linalg.segment_solves(V, V, 1)
    with pytest.raises(ShapeError, match=r"factors of shape \(59, 6\) for a matrix of shape \(400, 60\)"):
        mn.linalg.segment_solves(matrix, V[1:], 1)
    with pytest.raises(DTypeError, match="give real numbers"):
        mn.linalg.segment_solves(matrix, V * 1j, 1)
    for wrong in (-1, np.nan, np.inf, "1", matrix, True):
        with pytest.raises(OptionError, match="segment_solves: regularization"):
            mn.linalg.segment_solves(matrix, V, wrong)
    with pytest.raises(OptionError, match="segment_solves: confidence -1"):
        mn.linalg.segment_solves(matrix, V, 1, confidence=-1)
