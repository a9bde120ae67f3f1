"""Dense systems above the limit of one worker by halves and panels, against NumPy and SciPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy.linalg

import matnb as mn
from matnb.errors import OptionError, ShapeError, SingularError
from matnb.lazy.functions import decompositions

pytestmark = pytest.mark.session("two workers")

RNG = np.random.default_rng(0)
N = 101
A = RNG.standard_normal((N, N))
DEFINITE = A @ A.T + N * np.eye(N)
B = RNG.standard_normal((N, 3))
HERMITIAN = (A + 1j * A.T[::-1]) @ (A + 1j * A.T[::-1]).conj().T + N * np.eye(N)


@pytest.fixture(autouse=True)
def small_panels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have several levels of halves, and several panels."""
    monkeypatch.setattr(decompositions, "SHIP_BYTES", 20_000)
    monkeypatch.setattr(decompositions, "_PANEL", 12)


@pytest.mark.parametrize("blocks", [None, (5, 3), ([0, 1, 50, 101], None)])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("matrix", [DEFINITE, HERMITIAN, DEFINITE.astype("f4"), np.eye(N, dtype=int) * 4])
def test_cholesky(matrix: np.ndarray, upper: bool, blocks: object) -> None:
    # One triangle alone is read.
    half = np.triu(matrix) if upper else np.tril(matrix)
    found = np.linalg.cholesky(mn.asarray(half, blocks=blocks), upper=upper).compute()
    theirs = np.linalg.cholesky(half, upper=upper)
    assert found.dtype == theirs.dtype
    precision = 1e-4 if matrix.dtype == np.float32 else 1e-11
    np.testing.assert_allclose(found, theirs, rtol=precision, atol=precision)


@pytest.mark.parametrize("at", [0, 11, 12, 60, 100])
def test_what_is_not_positive_definite_names_the_leading_minor(at: int) -> None:
    matrix = DEFINITE.copy()
    matrix[at, at] = -1.0
    with pytest.raises(SingularError, match=f"leading minor of order {at + 1} is not positive definite"):
        np.linalg.cholesky(mn.asarray(matrix)).compute()


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("trans", [0, 1, "C"])
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("matrix", [DEFINITE / N, HERMITIAN / N])
def test_triangular_systems(matrix: np.ndarray, lower: bool, trans: int | str, unit: bool) -> None:
    for b in (B, B[:, 0], B[:, :0]):
        found = mn.linalg.solve_triangular(
            mn.asarray(matrix, blocks=(3, 1)), b, trans, lower, unit_diagonal=unit
        ).compute()
        theirs = scipy.linalg.solve_triangular(matrix, b, trans, lower, unit_diagonal=unit)
        np.testing.assert_allclose(found, theirs, rtol=1e-9, atol=1e-9 * np.abs(theirs).max(initial=1))


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("at", [0, 50, 100])
def test_a_zero_on_the_diagonal_names_its_column(lower: bool, at: int) -> None:
    matrix = DEFINITE.copy()
    matrix[at, at] = 0
    with pytest.raises(SingularError, match=f"singular: 0 on the diagonal in column {at}"):
        mn.linalg.solve_triangular(mn.asarray(matrix), B, lower=lower).compute()


@pytest.mark.parametrize("blocks", [None, (5, 3)])
@pytest.mark.parametrize(
    "matrix",
    [
        A,
        A * 10.0 ** -np.linspace(0, 40, N),
        A[::-1] * 10.0 ** -np.linspace(0, 9, N),
        A + 1j * A.T,
        (9 * A).astype(int),
        A.astype("f4"),
    ],
)
def test_solve(matrix: np.ndarray, blocks: object) -> None:
    for b in (B, B[:, 0]):
        found = np.linalg.solve(mn.asarray(matrix, blocks=blocks), mn.asarray(b)).compute()
        assert found.shape == b.shape
        precision = 1e-4 if matrix.dtype == np.float32 else 1e-12
        # Backward stable: what is left is rounding beside the matrix and the solution.
        size = np.abs(matrix).max() * np.abs(found).max() * N
        assert np.abs(matrix @ found - b).max() <= precision * size


@pytest.mark.parametrize("at", [5, 12, 77])
def test_a_singular_matrix_names_the_column(at: int) -> None:
    matrix = A.copy()
    matrix[:, at] = matrix[:, :at].sum(axis=1)
    with pytest.raises(SingularError, match=f"singular: column {at} depends on those before it"):
        np.linalg.solve(mn.asarray(matrix), mn.asarray(B)).compute()


@pytest.mark.parametrize(
    ("call", "kind", "told"),
    [
        (lambda: np.linalg.cholesky(mn.asarray(A[:, :90])), ShapeError, r"\(101, 90\)"),
        (lambda: np.linalg.solve(mn.asarray(A), mn.asarray(B[:7])), ShapeError, "one row for each column"),
        (lambda: mn.linalg.solve_triangular(A[:, :4], B), ShapeError, "square"),
        (lambda: mn.linalg.solve_triangular(A, B[:4]), ShapeError, "one row for each column"),
        (lambda: mn.linalg.solve_triangular(A, B, trans=3), OptionError, "choose 0, 1 or 2"),
    ],
)
def test_bad_input(call: Callable[[], object], kind: type[Exception], told: str) -> None:
    with pytest.raises(kind, match=told):
        call()
