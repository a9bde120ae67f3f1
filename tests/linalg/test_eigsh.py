"""Eigenvalues of symmetric matrices against NumPy's and SciPy's."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as sla

import matnb as mn
from matnb.errors import ConvergenceWarning, TooLargeError, UnsupportedError
from matnb.linalg.lanczos import num_kept_of

pytestmark = pytest.mark.session("two workers")


def check(A: sp.csr_array | np.ndarray, k: int, which: str, **options: object) -> None:
    """Hold values against those of the dense matrix, and vectors against their definition."""
    dense = A.toarray() if sp.issparse(A) else A
    known = np.linalg.eigvalsh(dense)
    order = {"LA": -known, "SA": known, "LM": -abs(known)}[which]
    wanted = np.sort(known[np.argsort(order, kind="stable")[:k]])
    found = mn.linalg.eigsh(A, k, which, **options)
    values, vectors = found.values.compute(), found.vectors.compute()
    scale = max(abs(known).max(), 1e-300)
    np.testing.assert_allclose(values, wanted, rtol=0, atol=1e-10 * scale)
    assert abs(dense @ vectors - vectors * values).max() < 1e-8 * scale
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(k), atol=1e-10)


def symmetric(n: int, density: float, seed: int = 4) -> sp.csr_array:
    half = sp.random_array((n, n), density=density, rng=np.random.default_rng(seed))
    return sp.csr_array(half + half.T)


@pytest.mark.parametrize("which", ["LA", "SA", "LM"])
@pytest.mark.parametrize("k", [1, 6])
def test_sparse(k: int, which: str) -> None:
    check(symmetric(300, 0.03), k, which)


def test_dense() -> None:
    check(symmetric(80, 0.5).toarray(), 4, "LA")


@pytest.mark.parametrize(("n", "k"), [(1, 1), (2, 1), (5, 5), (12, 3), (20, 20), (21, 6)])
def test_small(n: int, k: int) -> None:
    check(symmetric(n, 1.0), k, "LM")


def test_diagonal() -> None:
    check(sp.diags_array(np.arange(1.0, 201.0)).tocsr(), 5, "SA")


def test_clustered() -> None:
    values = np.concatenate([np.linspace(0, 1, 150), 2 + 1e-4 * np.arange(6)])
    Q, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(156, 156)))
    check((Q * values) @ Q.T, 6, "LA")


@pytest.mark.parametrize("scale", [0.0, 1.0, 1e-200])
def test_a_multiple_of_the_identity_ends_every_search_at_once(scale: float) -> None:
    check(scale * sp.eye_array(50, format="csr"), 3, "LM")


def test_an_invariant_subspace_is_left() -> None:
    first = np.zeros(40)
    first[[0, 1]] = 1
    check(sp.diags_array(np.arange(40.0)).tocsr(), 4, "LA", v0=first)


@pytest.mark.parametrize("is_again", [True, False])
def test_a_vector_of_which_little_is_left_is_made_orthogonal_again(
    is_again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # After a restart A v has parts along the four vectors kept that the recurrence does not tell.
    module = sys.modules[num_kept_of.__module__]
    if not is_again:
        monkeypatch.setattr("matnb.linalg.orthogonal._TOO_LITTLE", 0.0)
    rng = np.random.default_rng(3)
    inner = np.diag(np.arange(60.0))
    inner[4, :4] = inner[:4, 4] = 1
    inner[4, 5:] = inner[5:, 4] = 1e-9 * rng.random(55)
    Q, _ = np.linalg.qr(rng.normal(size=(60, 60)))
    V = np.where(np.arange(5)[:, np.newaxis] < 4, Q.T[:5], 0)
    given = module.Basis(*map(mn.asarray, (V, np.diag([0.0, 1, 2, 3, 0]), Q[:, 4], np.array(1.0))))
    A = mn.asarray(Q @ inner @ Q.T)
    made = module.extended(given, lambda v: A @ v, mn.asarray(4), mn.random.default_rng(0))
    vectors, following = mn.compute(made.vectors, made.next)
    assert (abs(vectors @ following).max() < 1e-12) == is_again


@pytest.mark.parametrize(("k", "m", "converged", "kept"), [
    (10, 28, 0, 14), (10, 28, 6, 20), (10, 28, 10, 21), (1, 20, 0, 5), (5, 5, 5, 5), (20, 21, 0, 20),
])  # fmt: skip
def test_a_restart_keeps_more_as_pairs_converge(k: int, m: int, converged: int, kept: int) -> None:
    assert num_kept_of(k, m, converged) == kept


def test_a_path_has_known_eigenvalues() -> None:
    # of the Laplacian: 2 - 2 cos(pi j / n)
    n = 90
    degrees = np.r_[1, np.full(n - 2, 2.0), 1]
    path = sp.diags_array([degrees, -np.ones(n - 1), -np.ones(n - 1)], offsets=[0, 1, -1]).tocsr()
    values, _ = mn.linalg.eigsh(path, 4, "LA", tol=1e-8)
    wanted = 2 - 2 * np.cos(np.pi * np.arange(n - 4, n) / n)
    np.testing.assert_allclose(values.compute(), wanted, rtol=1e-10)


def test_illc1850(test_data: Path) -> None:
    # the eigenvalues of A'A are the squares of A's singular values, of which the largest is published
    A = mn.load(test_data / "propack" / "illc1850.mtx").to_scipy()
    values, _ = mn.linalg.eigsh(sp.csr_array(A.T @ A), 3)
    assert np.sqrt(values.compute()[-1]) == pytest.approx(2.12334264, rel=1e-8)


def test_bcsstk13(test_data: Path) -> None:
    A = mn.load(test_data / "lagraph" / "bcsstk13.mtx")
    values, _ = mn.linalg.eigsh(A, 6)
    wanted = sla.eigsh(A.to_scipy().astype(float), 6, return_eigenvectors=False)
    np.testing.assert_allclose(values.compute(), np.sort(wanted), rtol=1e-8)


def test_the_seed_decides() -> None:
    A = symmetric(100, 0.1)
    one, same, other = (mn.linalg.eigsh(A, 2, seed=seed).vectors.compute() for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()


def test_few_restarts_give_what_there_is() -> None:
    A = sp.diags_array(np.arange(1.0, 201.0)).tocsr()
    with pytest.warns(ConvergenceWarning, match=r"^eigsh .* [13] iterations?;"):
        few, more = (mn.linalg.eigsh(A, 2, "LA", max_iterations=most).values.compute() for most in (1, 3))
    assert 1e-6 < 200 - more[-1] < 200 - few[-1] < 20


@pytest.mark.parametrize(
    ("A", "options", "error", "message"),
    [
        (np.ones((2, 3)), {}, mn.errors.ShapeError, r"shape \(2, 3\): give a square"),
        (np.eye(3) * 1j, {"k": 1}, mn.errors.DTypeError, "complex128"),
        (np.eye(3), {"k": 4}, mn.errors.OptionError, "k=4 .* give 1 to 3"),
        (np.eye(3), {"k": 0}, mn.errors.OptionError, "k=0 .* give 1 to 3"),
        (
            np.eye(3),
            {"k": 1, "which": "SM"},
            mn.errors.OptionError,
            "which='SM'; without a solve there are 'LM', 'LA', 'SA'",
        ),
        (np.eye(3), {"k": 1, "v0": [1.0]}, mn.errors.ShapeError, r"v0 of shape \(1,\)"),
    ],
)
def test_what_it_refuses(
    A: np.ndarray, options: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        mn.linalg.eigsh(A, **options)


@pytest.mark.parametrize("call", [sla.eigsh, sla.eigs])
def test_solutions_that_scipy_would_find_by_products_are_refused(call: Callable[..., object]) -> None:
    A = mn.asarray(sp.diags_array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).tocsr())
    for sigma in (0, 1.5):
        with pytest.raises(UnsupportedError, match=r"A\.to_scipy\(\), k, sigma=sigma"):
            call(A, k=2, sigma=sigma)
        assert np.isfinite(call(A.to_scipy().tocsc(), k=2, sigma=sigma + 0.1)[0]).all()  # the way
    assert np.isclose(max(np.real(call(A, k=2)[0])), 6)


@pytest.mark.parametrize("call", [sp.csr_array, sp.tril, lambda A: sp.vstack([A, A])])
def test_large_arrays_that_scipy_takes_as_dense_are_told(call: Callable[..., object]) -> None:
    with pytest.warns(UserWarning, match=r"dense one of .*give it x\.to_scipy\(\)"):
        call(mn.asarray(sp.eye_array(400).tocsr()))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        call(mn.asarray(sp.eye_array(40).tocsr()))
        call(mn.asarray(sp.eye_array(400).tocsr()).to_scipy())


@pytest.mark.parametrize(
    "call",
    [
        lambda A: sp.block_diag([A, A]),
        sla.expm,
        lambda A: sla.expm_multiply(A, np.ones(A.shape[1])),
        lambda A: sla.expm_multiply(A, np.ones(A.shape[1]), start=0, stop=1, num=3),
    ],
)
def test_scipy_does_not_allocate_for_all_elements_of_a_large_sparse_array(
    call: Callable[[Any], Any],
) -> None:
    """It would before it asks for the first."""
    large = mn.asarray(sp.eye_array(6_000).tocsr())
    with pytest.raises(TooLargeError, match=r"dense one of 288 MB: give it x\.to_scipy\(\)"):
        call(large)
    assert call(large.to_scipy().tocsc()).shape  # the way
