"""Iterative solvers against SciPy, and exact solutions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as sl

import matnb as mn
from matnb.errors import ConvergenceWarning

pytestmark = pytest.mark.session("two workers")

SOLVERS = [mn.linalg.cg, mn.linalg.minres, mn.linalg.gmres, mn.linalg.bicgstab]
GENERAL = [mn.linalg.gmres, mn.linalg.bicgstab]
N = 15


def laplace() -> sp.csr_array:
    second = sp.diags_array([-np.ones(N - 1), 2 * np.ones(N), -np.ones(N - 1)], offsets=[-1, 0, 1])
    eye = sp.eye_array(N)
    return sp.csr_array(sp.kron(second, eye) + sp.kron(eye, second))


@pytest.fixture
def b() -> np.ndarray:
    return np.random.default_rng(4).random(N * N)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("is_dense", [False, True])
def test_solutions(solver: Callable[..., mn.linalg.Solution], b: np.ndarray, is_dense: bool) -> None:
    A = laplace()
    x, info = solver(A.toarray() if is_dense else A, b, rtol=1e-10)
    np.testing.assert_allclose(x.compute(), sl.spsolve(A.tocsc(), b), atol=1e-7)
    assert int(info) == 0


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_function_and_preconditioners(solver: Callable[..., mn.linalg.Solution], b: np.ndarray) -> None:
    A = sp.csr_array(laplace() + sp.diags_array(np.linspace(0, 300, N * N)))
    wanted = sl.spsolve(A.tocsc(), b)
    matrix = mn.asarray(A)
    for M in (1 / A.diagonal(), sp.diags_array(1 / A.diagonal()).tocsr(), lambda r: r / A.diagonal()):
        x, info = solver(lambda x: matrix @ x, b, rtol=1e-10, M=M)
        np.testing.assert_allclose(x.compute(), wanted, atol=1e-8)
        assert int(info) == 0


def test_a_preconditioner_saves_iterations(b: np.ndarray) -> None:
    A = sp.csr_array(laplace() + sp.diags_array(np.linspace(0, 3000, N * N)))
    with pytest.warns(ConvergenceWarning, match=r"^cg .* 30 iterations"):
        plain = int(mn.linalg.cg(A, b, rtol=1e-8, maxiter=30).info)
    assert plain == 30  # not converged: the number of iterations
    assert int(mn.linalg.cg(A, b, rtol=1e-8, maxiter=30, M=1 / A.diagonal()).info) == 0


@pytest.mark.parametrize("solver", SOLVERS)
def test_where_nothing_is_to_be_done(solver: Callable[..., mn.linalg.Solution], b: np.ndarray) -> None:
    A = laplace()
    exact = sl.spsolve(A.tocsc(), b)
    x, info = solver(A, b, exact, rtol=1e-10)
    np.testing.assert_array_equal(x.compute(), exact)
    assert int(info) == 0
    x, info = solver(A, 0 * b)
    np.testing.assert_array_equal(x.compute(), 0)
    assert int(info) == 0
    x, info = solver(A, b, maxiter=2, rtol=1e-10)
    with pytest.warns(ConvergenceWarning, match=f"^{solver.__name__} .* 2 iterations"):
        assert int(info) == 2
    assert np.linalg.norm(b - A @ x.compute()) <= np.linalg.norm(b) * 2


@pytest.mark.parametrize("solver", GENERAL)
@pytest.mark.parametrize("seed", range(3))
def test_matrices_that_are_not_symmetric(
    solver: Callable[..., mn.linalg.Solution], b: np.ndarray, seed: int
) -> None:
    drawn = sp.random_array((N * N, N * N), density=0.01, rng=np.random.default_rng(seed))
    A = sp.csr_array(laplace() + drawn)
    x, info = solver(A, b, rtol=1e-10)
    assert int(info) == 0
    assert np.linalg.norm(b - A @ x.compute()) <= 1.01e-10 * np.linalg.norm(b)


def test_gmres_ends_in_the_middle_of_a_cycle(b: np.ndarray) -> None:
    A = sp.diags_array(np.repeat([1.0, 2.0, 5.0], N * N // 3)).tocsr()  # three steps are exact
    x, info = mn.linalg.gmres(A, b, rtol=1e-12, restart=20)
    np.testing.assert_allclose(x.compute(), b / A.diagonal(), rtol=1e-12)
    assert int(info) == 0


def test_minres_of_indefinite_matrices(b: np.ndarray) -> None:
    A = laplace()
    shifted = sp.csr_array(A - 3 * sp.eye_array(N * N))
    wanted = sl.spsolve(shifted.tocsc(), b)
    for found in (
        mn.linalg.minres(shifted, b, rtol=1e-11),
        mn.linalg.minres(A, b, shift=3.0, rtol=1e-11),
    ):
        np.testing.assert_allclose(found.x.compute(), wanted, atol=1e-6)
        assert int(found.info) == 0
    with pytest.raises(mn.errors.OptionError, match=r"cg: A is not positive definite.*minres"):
        mn.linalg.cg(shifted, b).x.compute()


@pytest.mark.parametrize("name", ["lsqr", "lsmr"])
@pytest.mark.parametrize("damp", [0.0, 0.5])
@pytest.mark.parametrize("shape", [(90, 40), (40, 90)])
def test_least_squares(name: str, damp: float, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(5)
    A = sp.random_array(shape, density=0.2, rng=rng, format="csr")
    b, x0 = rng.random(shape[0]), rng.random(shape[1])
    for start in (None, x0):
        found = getattr(mn.linalg, name)(A, b, damp=damp, atol=1e-11, btol=1e-11, x0=start)
        wanted = getattr(sl, name)(A, b, damp=damp, atol=1e-11, btol=1e-11, x0=start)
        np.testing.assert_allclose(found.x.compute(), wanted[0], atol=1e-7)
        assert abs(int(found.itn) - wanted[2]) <= 3
        assert float(found[3]) == pytest.approx(wanted[3], abs=1e-8)
    nothing = getattr(mn.linalg, name)(A, 0 * b)
    assert (int(nothing.istop), int(nothing.itn)) == (0, 0)
    few = getattr(mn.linalg, name)(A, b, damp, 1e-12, 1e-12, 2)
    with pytest.warns(ConvergenceWarning, match=f"^{name} .* 2 iterations"):
        assert (int(few.istop), int(few.itn)) == (7, 2)


@pytest.mark.parametrize("columns", [None, 3])
@pytest.mark.parametrize("scale", [0.0, 0.1, 30.0])
def test_exponentials(columns: int | None, scale: float) -> None:
    rng = np.random.default_rng(6)
    A = sp.random_array((60, 60), density=0.1, rng=rng, format="csr") * scale - sp.eye_array(60) * scale
    B = rng.random(60 if columns is None else (60, columns))
    found = mn.linalg.expm_multiply(sp.csr_array(A), B).compute()
    wanted = sl.expm_multiply(sp.csr_array(A), B)
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12 * abs(wanted).max())


def test_refusals() -> None:
    A, b = sp.csr_array(np.eye(3)), np.ones(3)
    for solver in SOLVERS:
        name = solver.__name__
        with pytest.raises(mn.errors.ShapeError, match=rf"{name}: A of shape \(2, 3\) for 3 unknowns"):
            solver(sp.csr_array((2, 3)), b)
        with pytest.raises(
            mn.errors.ShapeError, match=rf"{name}: x0 has shape \(2,\) and b has shape \(3,\)"
        ):
            solver(A, b, b[:2])
        with pytest.raises(mn.errors.DTypeError, match=f"{name}: b of dtype complex128"):
            solver(A, b * 1j)
        with pytest.raises(mn.errors.OptionError, match=f"{name}: rtol=-1"):
            solver(A, b, rtol=-1)
        with pytest.raises(mn.errors.OptionError, match=f"{name}: maxiter=-1"):
            solver(A, b, maxiter=-1)
    with pytest.raises(mn.errors.OptionError, match="gmres: restart=0"):
        mn.linalg.gmres(A, b, restart=0)
    for name in ("lsqr", "lsmr"):
        with pytest.raises(mn.errors.ShapeError, match=rf"{name}: b of shape \(2,\)"):
            getattr(mn.linalg, name)(A, b[:2])
        with pytest.raises(mn.errors.OptionError, match=f"{name}: damp=-1"):
            getattr(mn.linalg, name)(A, b, damp=-1)
    with pytest.raises(mn.errors.ShapeError, match=r"expm_multiply: B of shape \(2,\)"):
        mn.linalg.expm_multiply(A, b[:2])
