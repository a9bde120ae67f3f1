"""Some singular values and eigenvalues against NumPy, SciPy and published values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn

pytestmark = pytest.mark.session("two workers")


def check(A: np.ndarray, found: mn.linalg.SingularTriplets, k: int, tolerance: float) -> None:
    u, s, vh = (one.compute() for one in found)
    wanted = np.linalg.svd(A, compute_uv=False)[:k][::-1]
    np.testing.assert_allclose(s, wanted, rtol=tolerance, atol=tolerance * wanted[-1])
    np.testing.assert_allclose(u.T @ u, np.eye(k), atol=1e-10)
    np.testing.assert_allclose(vh @ vh.T, np.eye(k), atol=1e-10)
    np.testing.assert_allclose(u.T @ A, s[:, None] * vh, atol=10 * tolerance * wanted[-1])
    largest = np.take_along_axis(vh, abs(vh).argmax(axis=1)[:, None], axis=1)
    assert (largest > 0).all()


@pytest.mark.parametrize("shape", [(80, 50), (50, 80), (30, 30)])
@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("is_dense", [False, True])
def test_lanczos(shape: tuple[int, int], center: bool, is_dense: bool) -> None:
    A = sp.random_array(shape, density=0.2, rng=np.random.default_rng(2), format="csr")
    dense = A.toarray()
    wanted = dense - dense.mean(axis=0) if center else dense
    given = dense if is_dense else A
    check(wanted, mn.linalg.svds(given, 5, center=center), 5, 1e-9)


@pytest.mark.parametrize("center", [False, True])
def test_a_drawn_subspace(center: bool) -> None:
    rng = np.random.default_rng(3)
    left, right = np.linalg.qr(rng.random((90, 40)))[0], np.linalg.qr(rng.random((60, 40)))[0]
    A = left * 2.0 ** -np.arange(40) @ right.T
    found = mn.linalg.svds(A, 5, center=center, solver="randomized", max_iterations=6)
    check(A - A.mean(axis=0) if center else A, found, 5, 1e-8)


def test_all_of_them_and_a_low_rank() -> None:
    A = np.random.default_rng(4).random((12, 9))
    check(A, mn.linalg.svds(A, 9), 9, 1e-9)
    low = np.outer(np.arange(1.0, 31), np.arange(1.0, 21))
    values = mn.linalg.svds(sp.csr_array(low), 3).s.compute()
    np.testing.assert_allclose(values, [0, 0, np.linalg.norm(low)], atol=1e-9 * values[-1])


def test_the_same_seed_gives_the_same() -> None:
    A = sp.random_array((200, 150), density=0.05, rng=np.random.default_rng(5), format="csr")
    for solver in ("lanczos", "randomized"):
        once, again = (mn.linalg.svds(A, 4, solver=solver, seed=7).u.compute() for _ in range(2))
        np.testing.assert_array_equal(once, again)


def test_propack(test_data: Path) -> None:
    (path,) = (test_data / "propack").glob("illc1850.mtx*")
    values = mn.linalg.svds(mn.load(path), 3).s.compute()
    assert values[-1] == pytest.approx(2.12334264, abs=1e-7)
    np.testing.assert_allclose(values, [2.070148692246092, 2.079293601886768, 2.123342642739719], rtol=1e-9)


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("preconditioned", [False, True])
def test_lobpcg(largest: bool, preconditioned: bool) -> None:
    n = 12
    second = sp.diags_array([-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1])
    A = sp.csr_array(sp.kron(second, sp.eye_array(n)) + sp.kron(sp.eye_array(n), second * 1.1))
    X = np.random.default_rng(6).random((n * n, 4))
    M = 1 / A.diagonal() if preconditioned else None
    values, vectors = mn.linalg.lobpcg(A, X, M=M, tol=1e-7, maxiter=300, largest=largest)
    wanted = np.linalg.eigvalsh(A.toarray())
    wanted = wanted[::-1][:4] if largest else wanted[:4]
    np.testing.assert_allclose(values.compute(), wanted, atol=1e-9)
    V = vectors.compute()
    np.testing.assert_allclose(V.T @ V, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(A @ V, V * wanted, atol=1e-6)


@pytest.mark.parametrize(
    ("which", "wanted"), [("LM", [2, 3, 4, 5]), ("LA", [4, 5, 6, 7]), ("SA", [0, 1, 2, 3])]
)
def test_eigenvalues_near_a_number(which: str, wanted: list[int]) -> None:
    values = np.arange(0.0, 60.0)
    Q = np.linalg.qr(np.random.default_rng(7).random((60, 60)))[0]
    A = Q * values @ Q.T
    matrix, sigma = mn.asarray(A), 3.6
    inverse = np.linalg.inv(A - sigma * np.eye(60))
    for solve in (inverse, lambda x: mn.linalg.minres(matrix, x, shift=sigma, rtol=1e-13).x):
        found, vectors = mn.linalg.eigsh(A, k=4, which=which, sigma=sigma, OPinv=solve, tol=1e-9)
        np.testing.assert_allclose(found.compute(), wanted, atol=1e-7)
        V = vectors.compute()
        np.testing.assert_allclose(A @ V, V * wanted, atol=1e-5)


def test_refusals() -> None:
    A = sp.csr_array(np.eye(6))
    with pytest.raises(mn.errors.OptionError, match=r"svds: k=7 of a matrix of shape \(6, 6\); give 1 to 6"):
        mn.linalg.svds(A, 7)
    with pytest.raises(mn.errors.OptionError, match="svds: which='SM'; there are 'LM'"):
        mn.linalg.svds(A, 1, which="SM")
    with pytest.raises(
        mn.errors.OptionError, match="svds: solver='arpack'; there are 'lanczos', 'randomized'"
    ):
        mn.linalg.svds(A, 1, solver="arpack")
    with pytest.raises(mn.errors.OptionError, match=r"sigma= needs OPinv=.* both or neither"):
        mn.linalg.eigsh(A, 1, sigma=1.0)
    with pytest.raises(mn.errors.OptionError, match="lobpcg: 3 vectors for a matrix of 6 rows; give 1 to 2"):
        mn.linalg.lobpcg(A, np.ones((6, 3)))


@pytest.mark.parametrize("shape", [(2, 3), (3, 30), (10, 50), (8, 9)])
def test_all_values_of_a_wide_matrix(shape: tuple[int, int]) -> None:
    A = np.random.default_rng(8).standard_normal(shape)
    check(A, mn.linalg.svds(A, shape[0]), shape[0], 1e-9)


def test_elements_that_are_no_numbers_are_named() -> None:
    bad = np.eye(12)
    bad[1, 2] = np.nan
    for name, call in (
        ("eigsh", lambda: mn.linalg.eigsh(bad, 2)[0]),
        ("svds", lambda: mn.linalg.svds(bad, 2)[1]),
        ("lobpcg", lambda: mn.linalg.lobpcg(bad, np.random.default_rng(0).random((12, 2)))[0]),
        ("gmres", lambda: mn.linalg.gmres(bad, np.ones(12)).x),
        ("expm_multiply", lambda: mn.linalg.expm_multiply(bad, np.ones(12))),
    ):
        with pytest.raises(mn.errors.OptionError, match=f"{name}: .*NaN or infinite"):
            call().compute()
    with pytest.raises(mn.errors.OptionError, match=r"1-norm 1e\+12, which takes 1.01e\+11 steps"):
        mn.linalg.expm_multiply(np.diag([1e12, -1e12]), np.ones(2)).compute()
    with pytest.raises(mn.errors.OptionError, match="the columns of X are linearly dependent"):
        mn.linalg.lobpcg(np.eye(12), np.ones((12, 2)))[0].compute()
