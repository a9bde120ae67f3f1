"""Each solver gives the same on any threads, workers, processes and cuts, and interpreted."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
import scipy.sparse as sp
from any_cuts import PARAMS, Arrays, Library, check_same, cut, expected_of, library

import matnb as mn

N = 29
RIGHT = np.arange(N) % 7 - 2.0
BLOCK = np.random.default_rng(2).standard_normal((N, 2))


def shifted(A: mn.DistArray) -> mn.DistArray:
    return mn.linalg.minres(A, RIGHT, shift=1.5, rtol=1e-10).x


SYMMETRIC: dict[str, Callable[[mn.DistArray], object]] = {
    "bicgstab": lambda A: mn.linalg.bicgstab(A, RIGHT, rtol=1e-10),
    "cg": lambda A: mn.linalg.cg(A, RIGHT, rtol=1e-10, M=1 / mn.diag(A)),
    "eigsh": lambda A: mn.linalg.eigsh(A, k=3, which="LA").values,
    "expm_multiply": lambda A: mn.linalg.expm_multiply(A * -0.1, RIGHT),
    "gmres": lambda A: mn.linalg.gmres(A, RIGHT, rtol=1e-10, restart=5),
    "lobpcg": lambda A: mn.linalg.lobpcg(A, BLOCK, maxiter=100).values,
    "lsmr": lambda A: mn.linalg.lsmr(A, RIGHT, atol=1e-12, btol=1e-12, maxiter=200)[0],
    "lsqr": lambda A: mn.linalg.lsqr(A, RIGHT, atol=1e-12, btol=1e-12, iter_lim=200)[0],
    "minres": lambda A: mn.linalg.minres(A, RIGHT, rtol=1e-10),
    "minres, shifted": shifted,
    "svds": lambda A: mn.linalg.svds(A, k=3).s,
    "svds, randomized": lambda A: mn.linalg.svds(A, k=3, solver="randomized", seed=4),
}
# Products of dense vectors are BLAS's, whose last bits follow how rows are cut: iterations whose coefficients
# are such products agree as far as they converge. Those that multiply sparse arrays alone, with norms, which
# are reductions, have the same bits.
TOLERANCE = 1e-7
SAME_BITS = {"expm_multiply", "lsmr", "lsqr"}
CUTS = {"int64": (0, 1, 11, 12, N), "float32": (0, 7, 8, 20, N)}


def matrices() -> dict[str, sp.csr_array]:
    """Return symmetric, positive definite matrices of two dtypes."""
    rng = np.random.default_rng(3)
    drawn = sp.random_array((N, N), density=0.1, rng=rng, format="csr")
    drawn.data = rng.integers(1, 4, drawn.nnz).astype(float)
    both = drawn + drawn.T
    whole = sp.csr_array(both + sp.diags_array(both.sum(axis=1) + 1 + np.arange(N) % 5))
    return {"int64": whole.astype(np.int64), "float32": (whole / 3).tocsr().astype(np.float32)}


@pytest.fixture(scope="module")
def expected() -> dict[tuple[str, str], Arrays]:
    return expected_of(SYMMETRIC, matrices())


@pytest.fixture(scope="module", params=PARAMS, autouse=True)
def session(request: pytest.FixtureRequest, expected: object) -> Iterator[Library]:
    with library(request.param) as started:
        yield started


@pytest.mark.parametrize("elements", ["int64", "float32"])
@pytest.mark.parametrize("name", SYMMETRIC)
def test_an_algorithm_gives_the_same(
    session: Library, expected: dict[tuple[str, str], Arrays], name: str, elements: str
) -> None:
    A = cut(matrices()[elements], CUTS[elements])
    is_near = session.kind == "interpreter" or name not in SAME_BITS
    check_same(session.values(SYMMETRIC[name](A)), expected[name, elements], TOLERANCE if is_near else None)
