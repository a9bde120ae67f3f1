"""Dense products as statistics and learning have them, against BLAS, SciPy and scikit-learn.

Weighted Gram matrices, products with a residual, products of a sparse matrix with itself that come out full,
one large dense product, the nearest of two thousand centers, one step of Newton's method for logistic
regression, and whole fits of it by Newton's method and by L-BFGS, written as a user writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from harness.comparison import Bench, Claim, Contender
from harness.inputs import THREADS
from harness.sessions import public
from harness.threads import Limit, blas_threads, by_threads
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import pairwise_distances_argmin
from sklearn.neighbors import NearestNeighbors

import matnb as mn

ROWS, COLUMNS, SMALL_ROWS, SMALL_COLUMNS = 1_000_000, 50, 2_000, 10
USERS, ITEMS, SMALL_USERS, SMALL_ITEMS, DENSITY = 20_000, 1_000, 400, 50, 0.05
SIDES, SMALL_SIDES = (8_000, 2_000), (200, 100)
POINTS, CENTERS, FEATURES, NEIGHBORS = 50_000, 2_000, 32, 10
SMALL_POINTS, SMALL_CENTERS = 1_000, 50
TARGET = 1.0  # of the seconds of the best peer
TOLERANCE = 1e-7  # sums are taken in other orders
FIT = 1e-6  # of coefficients or gradients, where fits end

Given = tuple[np.ndarray, ...]


class Contest:
    """One expression on matnb's arrays, the same on NumPy's with one thread and with two, and other peers.

    Parameters
    ----------
    fixed
        Arrays, dense or sparse, that are the same in all rounds; matnb has them stored.
    drawn
        Makes those of a round.
    """

    def __init__(
        self, bench: Bench, fixed: Sequence[Any], drawn: Callable[[np.random.Generator], Given]
    ) -> None:
        self._bench, self._fixed, self._drawn = bench, fixed, drawn
        self._stored = [mn.asarray(one).persist() for one in fixed]

    def _round(self, number: int) -> Given:
        return self._drawn(np.random.default_rng(number))

    def peer(
        self,
        name: str,
        work: Callable[..., Any],
        limit: Limit = blas_threads,
        judged: bool = True,
        tolerance: float = TOLERANCE,
    ) -> list[Contender]:
        """Return a peer on the same arrays, with one thread and with two."""
        one = Contender(
            name,
            lambda given: work(*self._fixed, *given),
            self._round,
            judged=judged,
            tolerance=tolerance,
        )
        return by_threads(one, limit)

    def compare(
        self,
        name: str,
        text: str,
        work: Callable[..., mn.DistArray],
        peers: Sequence[Contender],
        target: float | None = TARGET,
    ) -> None:
        """Time the expression; matnb's results come into this process where others' are, too."""
        ours, call = public(
            lambda given: work(*self._stored, *given).compute(),
            lambda number: [mn.asarray(one).persist() for one in self._round(number)],
        )
        self._bench.compare(Claim(name, text, target), [ours, *peers], call.notes)


def weighted_gram(X: Any, d: Any) -> Any:
    """Return what Newton's method and weighted least squares need."""
    return X.T @ (d[:, None] * X)


def compare_tall(bench: Bench) -> None:
    rows, columns = bench.sized(ROWS, SMALL_ROWS), bench.sized(COLUMNS, SMALL_COLUMNS)
    X = np.random.default_rng(1).normal(size=(rows, columns))
    contest = Contest(bench, [X], lambda rng: (rng.random(rows),))
    shape = f"X {rows:,} x {columns}, stored"
    works: dict[str, Callable[[Any, Any], Any]] = {
        "X.T @ (d[:, None] * X)": weighted_gram,
        "X.T @ r": lambda X, r: X.T @ r,
    }
    for name, work in works.items():
        contest.compare(name, f"{name}, {shape}", work, contest.peer("NumPy", work))
    newton_step(bench, X)


def newton_step(bench: Bench, X: np.ndarray) -> None:
    """Time one step of Newton's method for logistic regression, from drawn coefficients."""
    rows, columns = X.shape
    y = (np.random.default_rng(2).random(rows) < 0.5).astype(float)

    def step(X: Any, y: Any, w: Any) -> Any:
        p = 1.0 / (1.0 + np.exp(-(X @ w)))
        gradient = X.T @ (p - y) + w
        hessian = weighted_gram(X, p * (1.0 - p)) + np.eye(columns)
        return w - np.linalg.solve(hessian, gradient)

    contest = Contest(bench, [X, y], lambda rng: (rng.normal(size=columns) / columns,))
    contest.compare(
        "a step of Newton's method, logistic",
        f"from drawn coefficients, X {rows:,} x {columns}, stored",
        step,
        contest.peer("NumPy", step),
    )


def compare_fits(bench: Bench) -> None:
    """Time fits of a logistic regression, penalized as scikit-learn does it, to labels of each round."""
    rows, columns = bench.sized(ROWS, SMALL_ROWS), bench.sized(COLUMNS, SMALL_COLUMNS)
    X = np.random.default_rng(7).normal(size=(rows, columns))
    slopes = np.random.default_rng(8).normal(size=columns) / columns

    def labels(rng: np.random.Generator) -> Given:
        return ((rng.random(rows) < 1.0 / (1.0 + np.exp(-(X @ slopes)))).astype(float),)

    contest = Contest(bench, [X], labels)
    shape = f"from zeros, X {rows:,} x {columns}, stored, labels drawn in each round"

    def newton(X: mn.DistArray, y: mn.DistArray) -> mn.DistArray:
        def step(w: mn.DistArray) -> mn.DistArray:
            p = 1.0 / (1.0 + np.exp(-(X @ w)))
            hessian = weighted_gram(X, p * (1.0 - p)) + np.eye(columns)
            return w - np.linalg.solve(hessian, X.T @ (p - y) + w)

        def ends(before: mn.DistArray, after: mn.DistArray) -> mn.DistArray:
            return abs(after - before).max() < FIT

        return mn.iterate(step, mn.zeros(columns), until=ends, max_iterations=20)[0]

    def lbfgs(X: mn.DistArray, y: mn.DistArray) -> mn.DistArray:
        def loss_and_gradient(w: np.ndarray) -> tuple[float, np.ndarray]:
            margins = X @ w
            losses = np.logaddexp(0.0, margins) - y * margins
            residuals = 1.0 / (1.0 + np.exp(-margins)) - y
            loss, gradient = mn.compute(losses.sum(), X.T @ residuals)
            return (float(loss) + 0.5 * w @ w) / rows, (gradient + w) / rows

        options = {"gtol": FIT, "ftol": 64 * np.finfo(float).eps, "maxiter": 100}
        start = np.zeros(columns)
        return mn.asarray(minimize(loss_and_gradient, start, method="L-BFGS-B", jac=True, options=options).x)

    for name, solver, work in (
        ("Newton's method, logistic", "newton-cholesky", newton),
        ("L-BFGS, logistic", "lbfgs", lbfgs),
    ):

        def fit(X: np.ndarray, y: np.ndarray, solver: str = solver) -> np.ndarray:
            model = LogisticRegression(solver=solver, fit_intercept=False, tol=FIT)
            return model.fit(X, y).coef_[0]

        peers = contest.peer(f"scikit-learn, {solver}", fit, tolerance=1e-3)
        contest.compare(name, f"{name}, {shape}", work, peers)


def compare_full(bench: Bench) -> None:
    users, items = bench.sized(USERS, SMALL_USERS), bench.sized(ITEMS, SMALL_ITEMS)
    R = sp.random_array((users, items), density=DENSITY, rng=np.random.default_rng(3), format="csr")
    shape = f"R {users:,} x {items:,}, {R.nnz:,} entries, stored; the result is full"
    works: dict[str, Callable[[Any, Any], Any]] = {
        "R.T @ R": lambda R, s: (s * R).T @ R,
        "R @ (R.T @ R)": lambda R, s: R @ ((s * R).T @ R),
    }

    A, dense = mn.asarray(R).persist(), R.toarray()

    def scale(number: int) -> float:
        return float(np.random.default_rng(number).random())

    for name, work in works.items():
        ours, call = public(lambda s, work=work: work(A, s).persist(), scale, full)
        blas = Contender("BLAS, R dense", lambda s, work=work: work(dense, s), scale, tolerance=TOLERANCE)
        scipy = Contender(
            "SciPy, sparse, 1 thread", lambda s, work=work: work(R, s), scale, full, False, TOLERANCE
        )
        bench.compare(
            Claim(name, f"{name}, {shape}", TARGET),
            [ours, *by_threads(blas, blas_threads), scipy],
            call.notes,
        )


def full(found: Any) -> np.ndarray:
    """Return a result of any format as NumPy's array."""
    here = found.compute() if isinstance(found, mn.DistArray) else found
    return here.toarray() if sp.issparse(here) else getattr(here, "todense", lambda: here)()


def compare_squares(bench: Bench) -> None:
    for full, small in zip(SIDES, SMALL_SIDES, strict=True):
        side = bench.sized(full, small)
        A = np.random.default_rng(4).random((side, side))
        contest = Contest(bench, [A], lambda rng, side=side: (rng.random((side, side)),))
        contest.compare(
            f"a dense product, {side}",
            f"A @ B, {side:,} x {side:,} doubles, stored",
            lambda A, B: A @ B,
            contest.peer("NumPy", lambda A, B: A @ B),
        )


def compare_nearest(bench: Bench) -> None:
    points, centers = bench.sized(POINTS, SMALL_POINTS), bench.sized(CENTERS, SMALL_CENTERS)
    X = np.random.default_rng(6).normal(size=(points, FEATURES))
    contest = Contest(bench, [X], lambda rng: (rng.normal(size=(centers, FEATURES)),))
    shape = f"{points:,} points, {centers:,} centers drawn in each round, {FEATURES} features"

    def distances(X: Any, C: Any) -> Any:
        # |x - c|^2 but for |x|^2, which is the same for all centers
        return (C * C).sum(axis=1) - 2.0 * (X @ C.T)

    def nearest(X: Any, C: Any) -> Any:
        return distances(X, C).argmin(axis=1)

    contest.compare(
        "the nearest of many centers",
        f"argmin of distances, as a step of k-means takes them; {shape}",
        nearest,
        [
            *contest.peer("scikit-learn", pairwise_distances_argmin),
            *contest.peer("NumPy", nearest, judged=False),
        ],
    )

    def smallest(X: Any, C: Any) -> Any:
        squares = np.partition(distances(X, C), NEIGHBORS - 1, axis=1)[:, :NEIGHBORS]
        return np.sort(squares, axis=1)

    def neighbors(X: np.ndarray, C: np.ndarray) -> np.ndarray:
        found, _ = NearestNeighbors(n_neighbors=NEIGHBORS, algorithm="brute").fit(C).kneighbors(X)
        return found**2 - (X * X).sum(axis=1)[:, None]

    contest.compare(
        "the ten nearest of many centers",
        f"distances to {NEIGHBORS} neighbors, sorted; {shape}",
        smallest,
        [*contest.peer("scikit-learn", neighbors), *contest.peer("NumPy", smallest, judged=False)],
    )


def main() -> None:
    bench = Bench(__doc__)
    with mn.start(threads=THREADS):
        compare_tall(bench)
        compare_fits(bench)
        compare_full(bench)
        compare_nearest(bench)
        compare_squares(bench)


if __name__ == "__main__":
    main()
