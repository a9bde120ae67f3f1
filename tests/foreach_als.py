"""Alternating least squares as Presto's figure 7 has it: a loop over parts for each half of a round."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

import matnb as mn

Solve = Callable[[sp.csr_array, np.ndarray], np.ndarray]


def row_factors(ratings: sp.csr_array, others: np.ndarray, shrinkage: float = 0.1) -> np.ndarray:
    """Return the factors of the rows of some ratings: of each the regularized least squares."""
    found = np.zeros((ratings.shape[0], others.shape[1]))
    for row, (begin, end) in enumerate(zip(ratings.indptr[:-1], ratings.indptr[1:], strict=True)):
        if begin < end:
            used = others[ratings.indices[begin:end]]
            system = used.T @ used + shrinkage * (end - begin) * np.eye(others.shape[1])
            found[row] = np.linalg.solve(system, used.T @ ratings.data[begin:end])
    return found


def als(
    R: mn.DistArray, M: mn.DistArray, rounds: int, solve: Solve = row_factors
) -> tuple[mn.DistArray, mn.DistArray]:
    """Return factors of users, k x users, and of movies, k x movies, after some rounds.

    R holds the ratings, users x movies; M the first factors of the movies.
    """

    def of_users(rs: sp.csr_array, ms: np.ndarray) -> np.ndarray:
        return solve(rs, ms.T).T

    def of_movies(rs: sp.csr_array, us: np.ndarray) -> np.ndarray:
        return solve(rs.T.tocsr(), us.T).T

    def step(state: tuple[mn.DistArray, mn.DistArray]) -> tuple[mn.DistArray, mn.DistArray]:
        U, M = state
        # Rows of R belong to columns of U; columns of R to columns of M.
        mn.foreach(lambda rs, us, ms: of_users(rs, ms), mn.splits(R), mn.splits(U, by="columns"),
                   whole=[M], out=[U])  # fmt: skip
        mn.foreach(of_movies, mn.splits(R, by="columns"), whole=[U], out=[M])
        return U, M

    U = mn.zeros((M.shape[0], R.shape[0]))
    found: tuple[mn.DistArray, mn.DistArray] = mn.iterate(step, (U, M), max_iterations=rounds)[0]
    return found
