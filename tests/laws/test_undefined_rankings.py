"""Rankings and communities: no answer where none is defined, and the same answer in any unit of weights."""

from __future__ import annotations

from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn
from matnb.errors import OptionError

pytestmark = pytest.mark.session("one thread")


def drawn(seed: int = 0, n: int = 20) -> sp.csr_array:
    """Return a strongly connected graph with weights from 0.5 to 1.5."""
    rng = np.random.default_rng(seed)
    there = rng.random((n, n)) < 0.2
    there[np.arange(n), (np.arange(n) + 1) % n] = True
    np.fill_diagonal(there, False)
    return sp.csr_array(np.where(there, 0.5 + rng.random((n, n)), 0.0))


def symmetric(seed: int = 0) -> sp.csr_array:
    graph = drawn(seed)
    return sp.csr_array(graph + graph.T)


RANKINGS: dict[str, Callable[[sp.csr_array], mn.DistArray]] = {
    "pagerank": lambda A: mn.graph.pagerank(A, tolerance=1e-12, max_iterations=500).ranks,
    "hits": lambda A: mn.graph.hits(A, tolerance=1e-12, max_iterations=2000).hubs,
    "hits, authorities": lambda A: mn.graph.hits(A, tolerance=1e-12, max_iterations=2000).authorities,
    "eigenvector_centrality": lambda A: mn.graph.eigenvector_centrality(A, 1e-12, 2000).values,
    "modularity": lambda A: mn.graph.modularity(A, np.arange(20) % 3),
    "louvain": lambda A: mn.graph.louvain(A).modularity,
    "markov_clustering": lambda A: mn.graph.markov_clustering(A).labels,
    "katz": lambda A: mn.graph.katz(A).values,
}
BY_UNIT = [name for name in RANKINGS if name != "katz"]  # whose alpha has the unit of weights


@pytest.mark.parametrize("name", RANKINGS)
@pytest.mark.parametrize("bad", [np.inf, np.nan, -np.inf])
def test_weights_that_are_none_are_refused(name: str, bad: float) -> None:
    graph = drawn()
    graph.data[3] = bad
    with pytest.raises(OptionError, match=f"{name.split(',')[0]}: a weight is {bad}|weights sum to inf"):
        RANKINGS[name](graph).compute()


@pytest.mark.parametrize("name", BY_UNIT)
@pytest.mark.parametrize("unit", [1e-250, 1e-6, 100.0, 1e250])
def test_the_unit_of_weights_does_not_count(name: str, unit: float) -> None:
    graph = symmetric()
    wanted = RANKINGS[name](graph).compute()
    np.testing.assert_allclose(RANKINGS[name](graph * unit).compute(), wanted, rtol=1e-6, atol=1e-9)


def test_sums_beyond_what_a_number_holds_are_refused_or_taken_in_another_unit() -> None:
    graph = symmetric() * 5e307
    for name in ("pagerank", "modularity", "louvain", "markov_clustering"):
        with pytest.raises(OptionError, match=f"{name}: .*weights.* sum to .* divide them by the largest"):
            RANKINGS[name](graph).compute()
    for name in ("hits", "hits, authorities", "eigenvector_centrality"):
        wanted = RANKINGS[name](symmetric()).compute()
        np.testing.assert_allclose(RANKINGS[name](graph).compute(), wanted, atol=1e-9)
    with pytest.raises(OptionError, match=r"pagerank: the weights of a vertex sum to 5.*e-310"):
        mn.graph.pagerank(sp.csr_array([[0, 5e-310], [1.0, 0]])).ranks.compute()


NO_SHARES = {
    "all 0": (0.0, 0.0, 0.0), "negative": (1.0, -1.0, 1.0), "NaN": (1.0, np.nan, 1.0),
    "inf": (1.0, np.inf, 1.0), "-inf": (1.0, -np.inf, 1.0), "of sum 0": (1.0, -1.0, 0.0),
}  # fmt: skip


@pytest.mark.parametrize("name", ["personalization", "start"])
@pytest.mark.parametrize("kind", NO_SHARES)
def test_numbers_that_are_no_shares_are_refused(name: str, kind: str) -> None:
    triangle, numbers = sp.csr_array(np.ones((3, 3)) - np.eye(3)), np.array(NO_SHARES[kind])
    with pytest.raises(OptionError, match=f"pagerank: {name} "):
        mn.graph.pagerank(triangle, **{name: numbers})
    lazily = mn.graph.pagerank(triangle, **{name: mn.asarray(numbers) * 1})
    with pytest.raises(OptionError, match=f"pagerank: {name} "):
        lazily.ranks.compute()


@pytest.mark.parametrize("name", ["personalization", "start"])
@pytest.mark.parametrize(
    "numbers",
    [[1e308, 1e308, 0], [1e-310, 0, 1e-310], [2**62, 2**62, 2**62], [1, 0, 3], [True, False, False]],
)
def test_shares_are_those_of_any_unit(name: str, numbers: list[float]) -> None:
    graph = sp.csr_array([[0.0, 1, 0], [0, 0, 1], [1, 1, 0]])
    given, wanted = np.array(numbers), np.array(numbers, float) / max(numbers)
    found, known = (
        mn.graph.pagerank(graph, **{name: one}, tolerance=None, max_iterations=3).ranks.compute()
        for one in (given, wanted)
    )
    np.testing.assert_allclose(found, known, rtol=1e-12)
    assert found.sum() == pytest.approx(1)


@pytest.mark.parametrize("dtype", ["int64", "uint64", "int32", "int8", "bool"])
def test_sums_of_whole_weights_do_not_wrap(dtype: str) -> None:
    largest = True if dtype == "bool" else int(np.iinfo(dtype).max)
    there = drawn().astype(bool)
    graph = sp.csr_array((np.full(there.nnz, largest, dtype), there.indices, there.indptr), there.shape)
    ranks = mn.graph.pagerank(graph, tolerance=1e-12, max_iterations=500).ranks.compute()
    wanted = nx.pagerank(nx.from_scipy_sparse_array(there.astype(float), create_using=nx.DiGraph), tol=1e-13)
    np.testing.assert_allclose(ranks, [wanted[i] for i in range(20)], atol=1e-9)
    hubs = mn.graph.hits(graph, tolerance=1e-12, max_iterations=2000).hubs.compute()
    unweighted = mn.graph.hits(there.astype(float), tolerance=1e-12, max_iterations=2000).hubs.compute()
    np.testing.assert_allclose(hubs, unweighted, atol=1e-9)
    values = mn.graph.eigenvector_centrality(graph, 1e-12, 2000).values.compute()
    wanted = mn.graph.eigenvector_centrality(there.astype(float), 1e-12, 2000).values.compute()
    np.testing.assert_allclose(values, wanted, atol=1e-9)


@pytest.mark.parametrize("graph", [sp.csr_array((4, 4)), sp.csr_array(([0.0], ([0], [1])), shape=(4, 4))])
def test_hubs_of_nothing_are_refused(graph: sp.csr_array) -> None:
    with pytest.raises(OptionError, match="hits of a graph in which no edge has a weight above 0"):
        mn.graph.hits(graph).hubs.compute()


def test_katz_and_communities_refuse_what_is_no_number() -> None:
    graph = drawn()
    with pytest.raises(OptionError, match="katz: alpha=nan"):
        mn.graph.katz(graph, alpha=np.nan)
    for beta in (np.inf, [np.nan] * 20):
        with pytest.raises(OptionError, match="katz: beta has the magnitude"):
            mn.graph.katz(graph, beta=beta).values.compute()
    for options, words in (
        ({"loop_weight": np.nan}, "loop_weight=nan"),
        ({"loop_weight": -1.0}, "loop_weight=-1"),
        ({"inflation": np.inf}, "inflation=inf"),
    ):
        with pytest.raises(OptionError, match=words):
            mn.graph.markov_clustering(graph, **options)
    with pytest.raises(OptionError, match="resolution=inf"):
        mn.graph.modularity(graph, np.zeros(20, int), resolution=np.inf)
    isolated = mn.graph.markov_clustering(sp.csr_array((3, 3)), loop_weight=0).labels.compute()
    assert isolated.tolist() == [0, 1, 2]


@pytest.mark.parametrize("name", ["eigenvector_centrality", "hits"])
def test_weights_below_the_normal_numbers_are_refused(name: str) -> None:
    # Their unit would be above all numbers: the first step changed nothing, and the start was the answer.
    with pytest.raises(OptionError, match=f"{name}: the largest weight is .* in another unit"):
        getattr(mn.graph, name)(drawn() * 1e-320)[0].compute()
