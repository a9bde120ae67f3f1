"""Iterative algorithms that end before they converge say so, once, where their value is asked for."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn
from matnb.errors import ConvergenceWarning

N = 40
GRAPH = sp.random_array((N, N), density=0.1, rng=np.random.default_rng(1), format="csr")
DEFINITE = sp.diags_array([-np.ones(N - 1), 2.01 * np.ones(N), -np.ones(N - 1)], offsets=[-1, 0, 1]).tocsr()
B = np.arange(N) % 5 + 1.0
START = np.random.default_rng(2).standard_normal((N, 2))

# By how many iterations each may take: what it gives.
ALGORITHMS: dict[str, Callable[[int], object]] = {
    "bicgstab": lambda most: mn.linalg.bicgstab(DEFINITE, B, maxiter=most),
    "cg": lambda most: mn.linalg.cg(DEFINITE, B, maxiter=most),
    "eigenvector_centrality": lambda most: mn.graph.eigenvector_centrality(GRAPH, max_iterations=most),
    "eigsh": lambda most: mn.linalg.eigsh(DEFINITE, k=2, max_iterations=most),
    "gmres": lambda most: mn.linalg.gmres(DEFINITE, B, restart=3, maxiter=most),
    "hits": lambda most: mn.graph.hits(GRAPH, max_iterations=most),
    "katz": lambda most: mn.graph.katz(GRAPH, max_iterations=most),
    "lobpcg": lambda most: mn.linalg.lobpcg(DEFINITE, START, maxiter=most),
    "lsmr": lambda most: mn.linalg.lsmr(DEFINITE, B, maxiter=most),
    "lsqr": lambda most: mn.linalg.lsqr(DEFINITE, B, iter_lim=most),
    "markov_clustering": lambda most: mn.graph.markov_clustering(GRAPH, max_iterations=most),
    "minres": lambda most: mn.linalg.minres(DEFINITE, B, maxiter=most),
    "pagerank": lambda most: mn.graph.pagerank(GRAPH, max_iterations=most),
    "svds": lambda most: mn.linalg.svds(DEFINITE, k=2, max_iterations=most),
}


pytestmark = pytest.mark.session(
    "interpreter", "dask: two workers", "gang: two threads", "gang: three workers", "gang: processes"
)


def said_by(work: Callable[[], object]) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        work()
    return caught


@pytest.mark.parametrize("name", ALGORITHMS)
def test_an_algorithm_says_once_that_it_has_not_converged(name: str) -> None:
    results = list(ALGORITHMS[name](1))  # type: ignore[call-overload]  # named tuples
    (said,) = said_by(lambda: mn.compute(*results))
    assert said.category is ConvergenceWarning
    assert issubclass(ConvergenceWarning, UserWarning)
    assert str(said.message).startswith(f"{name} has not converged after 1 iteration; ")
    assert "give " in str(said.message)
    assert said.filename == __file__
    assert said_by(lambda: mn.compute(*results)) == []  # it is the same value


@pytest.mark.parametrize("name", ["cg", "hits", "pagerank"])
def test_one_that_converges_says_nothing(name: str) -> None:
    assert said_by(lambda: mn.compute(*ALGORITHMS[name](2000))) == []  # type: ignore[misc]  # named tuples


def test_one_that_converges_in_its_last_iteration_says_nothing() -> None:
    taken = int(mn.graph.hits(GRAPH, tolerance=1e-4).iterations)
    assert taken > 2
    assert said_by(lambda: mn.graph.hits(GRAPH, 1e-4, max_iterations=taken).hubs.compute()) == []
    (said,) = said_by(lambda: mn.graph.hits(GRAPH, 1e-4, max_iterations=taken - 1).hubs.compute())
    assert f"after {taken - 1} iterations" in str(said.message)


def test_the_best_so_far_is_there_where_warnings_are_errors() -> None:
    x, info = mn.linalg.cg(DEFINITE, B, maxiter=3)
    with pytest.raises(ConvergenceWarning, match=r"^cg has not converged after 3 iterations; .* maxiter"):
        x.compute()
    found, count = sp.linalg.cg(DEFINITE, B, maxiter=3)
    np.testing.assert_allclose(x.compute(), found, rtol=1e-12)
    assert int(info) == count == 3


def test_what_another_thread_computed_is_said_on_the_main_one() -> None:
    x = mn.linalg.cg(DEFINITE, B, maxiter=4).x

    def wait() -> None:
        thread = threading.Thread(target=x.compute)
        thread.start()
        thread.join()

    assert said_by(wait) == []
    (said,) = said_by(lambda: float(mn.asarray(1.0) + mn.asarray(B).sum()))
    assert "cg has not converged after 4" in str(said.message)


def test_loops_of_a_user_and_loops_inside_of_loops_say_nothing() -> None:
    def step(x: mn.DistArray) -> mn.DistArray:
        return x + mn.linalg.cg(DEFINITE, x, maxiter=2).x

    x, _ = mn.iterate(step, mn.asarray(B), until=lambda old, new: new[0] < 0, max_iterations=3)
    assert said_by(x.compute) == []
