"""SciPy's iterative solvers take a DistArray as a linear operator: vectors come here, matrices never do."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as sl
from fetched import counting

import matnb as mn
from matnb.errors import MatnbError, ShapeError

N, M = 60, 25
ONES, GUESS = np.ones(N), np.random.default_rng(2).random((N, 2))
Call = Callable[[object], object]

SQUARE: dict[str, Call] = {
    "matvec": lambda A: sl.aslinearoperator(A).matvec(ONES),
    "matvec of a column": lambda A: sl.aslinearoperator(A).matvec(ONES[:, None]),
    "matmat": lambda A: sl.aslinearoperator(A).matmat(np.arange(3.0 * N).reshape(N, 3)),
    "eigsh": lambda A: sl.eigsh(A, k=2, v0=ONES, return_eigenvectors=False),
    "eigs": lambda A: np.sort_complex(sl.eigs(A, k=2, v0=ONES, return_eigenvectors=False)),
    "lobpcg": lambda A: sl.lobpcg(
        A.matmat if isinstance(A, mn.DistArray) else A, GUESS.copy(), tol=1e-5, maxiter=99
    )[0],
    "cg": lambda A: sl.cg(A, ONES, rtol=1e-9)[0],
    "bicg": lambda A: sl.bicg(A, ONES, rtol=1e-9)[0],
    "gmres": lambda A: sl.gmres(A, ONES, rtol=1e-9)[0],
    "minres": lambda A: sl.minres(A, ONES, rtol=1e-9)[0],
}
ANY: dict[str, Call] = {
    "rmatvec": lambda A: sl.aslinearoperator(A).rmatvec(ONES),
    "rmatmat": lambda A: sl.aslinearoperator(A).rmatmat(np.arange(3.0 * N).reshape(N, 3)),
    "adjoint": lambda A: sl.aslinearoperator(A).H @ ONES,
    "svds": lambda A: sl.svds(A, k=2, v0=np.ones(M), return_singular_vectors=False),
    "lsqr": lambda A: sl.lsqr(A, ONES, atol=1e-10, btol=1e-10)[0],
    "lsmr": lambda A: sl.lsmr(A, ONES, atol=1e-10, btol=1e-10)[0],
}

REAL = ("minres", "lsqr", "lsmr", "lobpcg")  # for real matrices, or real right-hand sides

pytestmark = pytest.mark.session("interpreter")


def _matrix(columns: int, dtype: str) -> sp.csr_array:
    made = sp.random_array((N, columns), density=0.2, rng=np.random.default_rng(1)).tocsr()
    if columns == N:
        made = made + made.T + sp.eye_array(N) * 10
    if dtype == "complex128":  # Hermitian where it is square
        upper = sp.triu(made, 1) if columns == N else made
        made = made + 1j * (upper - upper.T if columns == N else upper)
    return (made * 10).astype(dtype) if dtype == "int64" else made.astype(dtype)


@pytest.mark.parametrize("name", [*SQUARE, *ANY])
def test_solvers_give_what_they_give_of_scipys_matrices(name: str) -> None:
    call = {**SQUARE, **ANY}[name]
    for dtype in ("float64", "float32", "int64", "complex128"):
        if dtype == "complex128" and name in REAL:
            continue
        theirs = _matrix(N if name in SQUARE else M, dtype)
        for given in (theirs, theirs.toarray()):
            mine = mn.asarray(given)
            with counting() as fetched:
                found = call(mine)
            tolerance = 2e-4 if dtype == "float32" else 1e-6
            np.testing.assert_allclose(found, call(given), rtol=tolerance, atol=tolerance)
            assert fetched.sizes
            assert fetched.largest <= 3 * 16 * N  # three complex vectors


def test_a_matrix_beyond_the_limit_is_multiplied_all_the_same() -> None:
    n = 2**15
    ring = sp.csr_array((np.full(n, 2.0), (np.arange(n), (np.arange(n) + 1) % n)), shape=(n, n))
    A = mn.asarray(ring + ring.T)
    largest = sl.eigsh(A, k=1, v0=np.ones(n), return_eigenvectors=False)
    np.testing.assert_allclose(largest, 4.0)


def test_what_is_no_matrix_is_no_operator() -> None:
    with pytest.raises(ShapeError, match="not a linear operator"):
        mn.ones(4).matvec(np.ones(4))
    with pytest.raises(MatnbError, match=r"\(4, 3\).*\(4,\)"):
        mn.ones((4, 3)).matvec(np.ones(4))
