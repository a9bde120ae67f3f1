"""Nearest neighbors and assignments to centers as a user writes them, against scikit-learn.

Distances are functions of a product of which each row is searched: ``mn.topk`` of them, or their ``argmin``.
The most memory that matnb needs for each is printed beside what an array of all distances would take.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from harness.comparison import Bench, Claim, Contender
from harness.inputs import THREADS
from harness.sessions import public
from harness.threads import blas_threads, by_threads
from sklearn.metrics import pairwise_distances_argmin_min
from sklearn.neighbors import NearestNeighbors

import matnb as mn

POINTS, SMALL_POINTS, FEATURES, NEIGHBORS = 20_000, 1_500, 32, 20
SAMPLES, SMALL_SAMPLES, CENTERS, SMALL_CENTERS = 200_000, 5_000, 500, 60
TARGET = 1.0  # of the seconds of the best peer
TOLERANCE = 1e-6  # squares of small distances, which are differences of large numbers


def squared_distances(X: Any, C: Any) -> Any:
    """Return the squared distance of each row of one matrix to each of another."""
    return (X * X).sum(axis=1)[:, None] - 2.0 * (X @ C.T) + (C * C).sum(axis=1)


def neighbors(X: Any) -> list[Any]:
    """Return squared distances to the nearest rows, and these, the row itself first."""
    return list(mn.compute(*mn.topk(squared_distances(X, X), NEIGHBORS, largest=False)))


def neighbors_of_scikit(X: np.ndarray) -> list[np.ndarray]:
    """Return what ``neighbors`` does."""
    found, places = NearestNeighbors(n_neighbors=NEIGHBORS, algorithm="brute").fit(X).kneighbors(X)
    return [found * found, places]


def assignment(X: Any, C: Any) -> list[Any]:
    """Return the nearest center of each row, and the squared distance to it, as a step of k-means does."""
    return list(mn.compute(*nearest(squared_distances(X, C))))


def nearest(distances: Any) -> list[Any]:
    """Return where the least of each row is, and what: no name is left on the distances, which would stay."""
    return [distances.argmin(axis=1), distances.min(axis=1)]


def assignment_of_scikit(X: np.ndarray, C: np.ndarray) -> list[np.ndarray]:
    """Return what ``assignment`` does."""
    places, found = pairwise_distances_argmin_min(X, C, metric="sqeuclidean")
    return [places, found]


def compare(
    bench: Bench,
    claim: Claim,
    drawn: Callable[[int], tuple[np.ndarray, ...]],
    ours: Callable[..., list[Any]],
    peer: Callable[..., list[np.ndarray]],
) -> None:
    """Time matnb on stored arrays, and scikit-learn with one thread and with two."""
    matnb, call = public(
        lambda given: ours(*given),
        lambda number: [mn.asarray(one).persist() for one in drawn(number)],
        settled,
    )
    scikit = Contender("scikit-learn", lambda given: peer(*given), drawn, settled, tolerance=TOLERANCE)
    bench.compare(claim, [matnb, *by_threads(scikit, blas_threads)], call.notes)


def settled(found: list[Any]) -> np.ndarray:
    """Return places and distances beside each other, distances to the row itself as 0."""
    both = [np.asarray(one, dtype=float) for one in found]
    return np.concatenate([np.where(np.abs(one) < TOLERANCE, 0.0, one).ravel() for one in both])


def tell_memory(points: int) -> None:
    """Print what one run needs at most."""
    X = mn.asarray(np.random.default_rng(0).normal(size=(points, FEATURES))).persist()
    said = str(mn.topk(squared_distances(X, X), NEIGHBORS, largest=False).places.explain(stage="plan"))
    print(said.splitlines()[-1].strip(), f"; all distances are {points * points * 8 / 1e9:,.1f} GB")


def main() -> None:
    bench = Bench(__doc__)
    points = bench.sized(POINTS, SMALL_POINTS)
    samples, centers = bench.sized(SAMPLES, SMALL_SAMPLES), bench.sized(CENTERS, SMALL_CENTERS)

    def rows(number: int) -> tuple[np.ndarray, ...]:
        return (np.random.default_rng(number).normal(size=(points, FEATURES)),)

    def rows_and_centers(number: int) -> tuple[np.ndarray, ...]:
        rng = np.random.default_rng(number)
        return rng.normal(size=(samples, FEATURES)), rng.normal(size=(centers, FEATURES))

    with mn.start(threads=THREADS):
        tell_memory(points)
        compare(
            bench,
            Claim(
                "the twenty nearest of all rows",
                f"topk of squared distances among {points:,} x {FEATURES} doubles, stored",
                TARGET,
            ),
            rows,
            neighbors,
            neighbors_of_scikit,
        )
        compare(
            bench,
            Claim(
                "the nearest center and its distance",
                f"argmin and min of squared distances of {samples:,} x {FEATURES} doubles to "
                f"{centers:,} centers, stored",
                TARGET,
            ),
            rows_and_centers,
            assignment,
            assignment_of_scikit,
        )


if __name__ == "__main__":
    main()
