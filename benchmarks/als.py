"""Alternating least squares of ratings, explicit and implicit, against loops by hand, dask and implicit."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any

import dask
import implicit.als
import numba
import numpy as np
import scipy.sparse as sp
from harness.comparison import Bench, Claim, Contender
from harness.inputs import THREADS, equal_entry_cuts, side_by_side
from harness.sessions import public
from harness.threads import blas_threads

import matnb as mn
from matnb.learn.recommend.alternating import AlternatingSquares

RANK, ROUNDS, REGULARIZATION, ALPHA, PARTS = 20, 5, 0.1, 2.0, 32
Solved = Callable[[sp.csr_array, np.ndarray, bool], np.ndarray]


def ratings(users: int, items: int, entries: int) -> sp.csr_array:
    """Return ratings 0.5 to 5, of which some users and items have many and most have few."""
    rng = np.random.default_rng(1)
    drawn = entries + entries // 4
    user = (users * rng.random(drawn) ** 1.5).astype(np.int64)
    item = (items * rng.random(drawn) ** 2).astype(np.int64)
    chosen = rng.permutation(np.unique(user * items + item))[:entries]
    stars = rng.integers(1, 11, len(chosen)) / 2
    return sp.csr_array(sp.coo_array((stars, (chosen // items, chosen % items)), shape=(users, items)))


@dataclass(frozen=True, eq=False)
class Problem:
    """Ratings by users and by items, and whether they are counts."""

    R: sp.csr_array
    turned: sp.csr_array
    is_implicit: bool

    @cached_property
    def confidences(self) -> sp.csr_matrix:
        """The confidence of each rating, as the library implicit takes it."""
        return sp.csr_matrix((1 + ALPHA * self.R.data, self.R.indices, self.R.indptr), self.R.shape)

    @cache  # noqa: B019  one problem a script
    def start(self, number: int) -> np.ndarray:
        """Return the first factors of the items, as matnb draws them in a round."""
        squares = AlternatingSquares(REGULARIZATION, ALPHA if self.is_implicit else None, "cholesky")
        return squares.start(mn.asarray(self.R), RANK, number).compute()

    def rounds(self, solved: Solved, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Return factors after all rounds, each half made by a function."""
        U, V = np.zeros((self.R.shape[0], RANK)), self.start(number)
        for _ in range(ROUNDS):
            U = solved(self.R, V, self.is_implicit)
            V = solved(self.turned, U, self.is_implicit)
        return U, V

    def objective(self, factors: tuple[np.ndarray, np.ndarray]) -> float:
        """Return what is made least."""
        (U, V), R = factors, self.R
        row = np.repeat(np.arange(R.shape[0]), np.diff(R.indptr))
        found = np.concatenate([
            np.einsum("ij,ij->i", U[row[part]], V[R.indices[part]])
            for part in np.array_split(np.arange(R.nnz), 8)
        ])  # fmt: skip
        squares, others = (U**2).sum(axis=1), (V**2).sum(axis=1)
        if self.is_implicit:
            far = ((1 + ALPHA * R.data) * (1 - found) ** 2 - found**2).sum() + ((U.T @ U) * (V.T @ V)).sum()
            return float(far + REGULARIZATION * (squares.sum() + others.sum()))
        shrunk = np.diff(R.indptr) @ squares + np.diff(self.turned.indptr) @ others
        return float(((R.data - found) ** 2).sum() + REGULARIZATION * shrunk)


@numba.njit(nogil=True)
def by_hand(pointers, columns, values, Y, gram, is_implicit, X, begin, end):  # type: ignore[no-untyped-def]
    """Solve the systems of some rows: sums over entries, Cholesky, two substitutions."""
    k = Y.shape[1]
    A = np.empty((k, k))
    b = np.empty(k)
    for row in range(begin, end):
        first, last = pointers[row], pointers[row + 1]
        if first == last:
            continue
        b[:] = 0
        for p in range(k):
            for q in range(p + 1):
                A[p, q] = gram[p, q] if is_implicit else 0.0
        for place in range(first, last):
            y, r = Y[columns[place]], values[place]
            weight = ALPHA * r if is_implicit else 1.0
            right = 1 + ALPHA * r if is_implicit else r
            for p in range(k):
                b[p] += right * y[p]
                scaled = weight * y[p]
                for q in range(p + 1):
                    A[p, q] += scaled * y[q]
        shift = REGULARIZATION if is_implicit else REGULARIZATION * (last - first)
        for p in range(k):
            A[p, p] += shift
            for q in range(p + 1):
                total = A[p, q]
                for t in range(q):
                    total -= A[p, t] * A[q, t]
                A[p, q] = np.sqrt(total) if p == q else total / A[q, q]
            for t in range(p):
                b[p] -= A[p, t] * b[t]
            b[p] /= A[p, p]
        for p in range(k - 1, -1, -1):
            for t in range(p + 1, k):
                b[p] -= A[t, p] * X[row, t]
            X[row, p] = b[p] / A[p, p]


def on_two_threads(pool: ThreadPoolExecutor, R: sp.csr_array, Y: np.ndarray, is_implicit: bool) -> np.ndarray:
    X, gram = np.zeros((R.shape[0], RANK)), Y.T @ Y
    given = (R.indptr, R.indices, R.data, Y, gram, is_implicit, X)
    side_by_side(
        pool, lambda part: by_hand(*given, *part), list(itertools.pairwise(equal_entry_cuts(R.indptr, PARTS)))
    )
    return X


def row_by_row(R: sp.csr_array, Y: np.ndarray, is_implicit: bool) -> np.ndarray:
    X = np.zeros((R.shape[0], RANK))
    shift, gram = REGULARIZATION * np.eye(RANK), Y.T @ Y
    for row in range(R.shape[0]):
        entries = slice(R.indptr[row], R.indptr[row + 1])
        r, used = R.data[entries], Y[R.indices[entries]]
        if not len(r):
            continue
        if is_implicit:
            X[row] = np.linalg.solve(gram + (used.T * (ALPHA * r)) @ used + shift, used.T @ (1 + ALPHA * r))
        else:
            X[row] = np.linalg.solve(used.T @ used + len(r) * shift, used.T @ r)
    return X


def by_dask(R: sp.csr_array, Y: np.ndarray, is_implicit: bool) -> np.ndarray:
    if is_implicit:
        raise NotImplementedError("each block would need the Gram matrix of all")
    parts = itertools.pairwise(equal_entry_cuts(R.indptr, PARTS))
    blocks = [dask.delayed(row_by_row)(R[a:b], Y, False) for a, b in parts]
    return np.concatenate(dask.compute(*blocks, scheduler="threads", num_workers=THREADS))


def by_implicit(problem: Problem, use_cg: bool, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the factors that the library implicit finds, which starts from factors of its own."""
    als = implicit.als.AlternatingLeastSquares(
        RANK, regularization=REGULARIZATION, alpha=1.0, dtype=np.float64, use_cg=use_cg,
        iterations=ROUNDS, num_threads=THREADS, random_state=number,
    )  # fmt: skip
    als.fit(problem.confidences, show_progress=False)
    return als.user_factors, als.item_factors


def compare(bench: Bench, problem: Problem, pool: ThreadPoolExecutor) -> None:
    R = mn.asarray(problem.R).persist()
    kind = "implicit" if problem.is_implicit else "explicit"

    def fit(number: int) -> tuple[mn.DistArray, mn.DistArray]:
        options = {"implicit": problem.is_implicit, "alpha": ALPHA, "random_state": number}
        als = mn.learn.ALS(RANK, REGULARIZATION, ROUNDS, **options).fit(R)
        return als.user_factors_, als.item_factors_

    def prepared(number: int) -> int:
        problem.start(number)
        return number

    objectives: dict[str, float] = {}

    def objective(name: str, factors: tuple[np.ndarray, np.ndarray]) -> float:
        return objectives.setdefault(name, problem.objective(factors))

    def value(factors: Any) -> float:
        return objective("matnb", (np.asarray(factors[0]), np.asarray(factors[1])))

    def notes() -> list[str]:
        ends = ", ".join(f"{name} {found:.6g}" for name, found in objectives.items())
        return [*call.notes(), f"objectives of the first round: {ends}"]

    def peer(name: str, solved: Solved, judged: bool = True) -> Contender:
        run = partial(problem.rounds, solved)
        return Contender(name, run, prepared, problem.objective, judged, tolerance=1e-6)

    ours, call = public(fit, prepared, value)
    peers = [
        peer(f"Numba by hand, {THREADS} threads", partial(on_two_threads, pool), False),
        peer("NumPy, row by row", row_by_row, False),
    ]
    if problem.is_implicit:
        # Other starts end near the same objective. It has threads of its own, and asks for one of BLAS.
        peers += [
            Contender(
                f"implicit, {solver}, {THREADS} threads", partial(by_implicit, problem, solver == "CG"),
                value=partial(objective, f"implicit, {solver}"),
                tolerance=0.1, within=partial(blas_threads, 1),
            )
            for solver in ("CG", "Cholesky")
        ]  # fmt: skip
    else:
        peers.append(peer(f"dask, blocks of rows, {THREADS} threads", by_dask))
    bench.compare(
        Claim(
            f"ALS, {kind}",
            f"ALS({RANK}).fit(R), {ROUNDS} rounds, {kind}, {R.shape[0]:,} users, {R.shape[1]:,} items, "
            f"{problem.R.nnz:,} ratings, stored",
            0.8 if problem.is_implicit else 0.35,
        ),
        [ours, *peers],
        notes,
    )


def main() -> None:
    bench = Bench(__doc__)
    with mn.start(threads=THREADS), ThreadPoolExecutor(THREADS) as pool:
        R = ratings(bench.sized(50_000, 2_000), bench.sized(20_000, 500), bench.sized(5_000_000, 50_000))
        turned = sp.csr_array(R.T)
        compare(bench, Problem(R, turned, False), pool)
        compare(bench, Problem(R, turned, True), pool)


if __name__ == "__main__":
    main()
