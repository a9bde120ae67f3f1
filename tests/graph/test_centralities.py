"""Degrees, closeness, eigenvector, Katz and hubs against NetworkX and SciPy."""

from __future__ import annotations

from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from networkx_arrays import in_order
from scipy.sparse.csgraph import laplacian

import matnb as mn
from matnb.errors import ConvergenceWarning

pytestmark = pytest.mark.session("two workers")


def test_degrees(graph: sp.csr_array, peer: nx.DiGraph) -> None:
    for direction, wanted in (("out", peer.out_degree), ("in", peer.in_degree), ("both", peer.degree)):
        found = mn.graph.degree(graph, direction)
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found.compute(), in_order(dict(wanted())))
        weighted = mn.graph.degree(graph, direction, weighted=True)
        np.testing.assert_array_equal(weighted.compute(), in_order(dict(wanted(weight="weight"))))


def test_degree_centrality(graph: sp.csr_array, peer: nx.DiGraph) -> None:
    for direction, wanted in (
        ("out", nx.out_degree_centrality),
        ("in", nx.in_degree_centrality),
        ("both", nx.degree_centrality),
    ):
        found = mn.graph.degree_centrality(graph, direction).compute()
        np.testing.assert_allclose(found, in_order(wanted(peer)))


@pytest.mark.parametrize("normed", [False, True])
@pytest.mark.parametrize("use_out_degree", [False, True])
def test_laplacian(graph: sp.csr_array, normed: bool, use_out_degree: bool) -> None:
    found = mn.graph.laplacian(graph, normed=normed, use_out_degree=use_out_degree)
    assert found.sparse
    wanted = laplacian(graph.toarray(), normed=normed, use_out_degree=use_out_degree)
    np.testing.assert_allclose(found.to_scipy().toarray(), wanted, atol=1e-14)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("wf_improved", [False, True])
def test_closeness(graph: sp.csr_array, peer: nx.DiGraph, weighted: bool, wf_improved: bool) -> None:
    found = mn.graph.closeness(graph, weighted=weighted, wf_improved=wf_improved, batch=7)
    distance = "weight" if weighted else None
    wanted = nx.closeness_centrality(peer, distance=distance, wf_improved=wf_improved)
    np.testing.assert_allclose(found.compute(), in_order(wanted), rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_harmonic(graph: sp.csr_array, peer: nx.DiGraph, weighted: bool) -> None:
    positive = graph.copy()
    positive.data += 1  # NetworkX divides by a distance of 0
    for _, _, attributes in peer.edges(data=True):
        attributes["weight"] += 1
    found = mn.graph.harmonic(positive, weighted=weighted, batch=11)
    wanted = nx.harmonic_centrality(peer, distance="weight" if weighted else None)
    np.testing.assert_allclose(found.compute(), in_order(wanted), rtol=1e-12)


def test_a_symmetric_matrix_is_not_transposed(both_ways: sp.csr_array) -> None:
    for centrality in (mn.graph.closeness, mn.graph.harmonic):
        known = centrality(both_ways, symmetric=True).compute()
        np.testing.assert_array_equal(known, centrality(both_ways).compute())


def connected(seed: int = 3) -> tuple[sp.csr_array, nx.DiGraph]:
    drawn = sp.random_array((50, 50), density=0.1, rng=np.random.default_rng(seed), format="csr")
    ring = sp.csr_array((np.ones(50), (np.arange(50), (np.arange(50) + 1) % 50)), shape=(50, 50))
    A = sp.csr_array(drawn + ring)
    return A, nx.from_scipy_sparse_array(A, create_using=nx.DiGraph)


def test_eigenvector_centrality() -> None:
    A, peer = connected()
    found = mn.graph.eigenvector_centrality(A, tolerance=1e-10, max_iterations=1000)
    wanted = nx.eigenvector_centrality(peer, tol=1e-10, max_iter=1000, weight="weight")
    np.testing.assert_allclose(found.values.compute(), in_order(wanted), atol=1e-8)
    assert 1 < int(found.iterations) < 1000
    few = mn.graph.eigenvector_centrality(A, tolerance=1e-10, max_iterations=3)
    with pytest.warns(ConvergenceWarning, match=r"^eigenvector_centrality .* 3 iterations"):
        assert int(few.iterations) == 3


@pytest.mark.parametrize("normalized", [False, True])
def test_katz(normalized: bool) -> None:
    A, peer = connected()
    beta = np.linspace(0.5, 1.5, 50)
    found = mn.graph.katz(A, alpha=0.05, beta=beta, normalized=normalized, tolerance=1e-12)
    wanted = nx.katz_centrality(
        peer, 0.05, dict(enumerate(beta)), tol=1e-12, normalized=normalized, weight="weight"
    )
    np.testing.assert_allclose(found.values.compute(), in_order(wanted), rtol=1e-9)


def test_hits() -> None:
    A, peer = connected()
    hubs, authorities, _ = mn.graph.hits(A, tolerance=1e-12, max_iterations=2000)
    wanted_hubs, wanted_authorities = nx.hits(peer, tol=1e-12, max_iter=2000)
    np.testing.assert_allclose(hubs.compute(), in_order(wanted_hubs), atol=1e-9)
    np.testing.assert_allclose(authorities.compute(), in_order(wanted_authorities), atol=1e-9)


def test_refusals() -> None:
    A = sp.csr_array(np.eye(3))
    with pytest.raises(mn.errors.OptionError, match="direction='up'; there are 'out', 'in', 'both'"):
        mn.graph.degree(A, "up")
    for centrality in (mn.graph.eigenvector_centrality, mn.graph.katz, mn.graph.hits):
        with pytest.raises(mn.errors.OptionError, match="tolerance=0"):
            centrality(A, tolerance=0)
    with pytest.raises(mn.errors.ShapeError, match=r"katz: beta of shape \(2,\) for 3 vertices"):
        mn.graph.katz(A, beta=[1, 2])
    for centrality in (mn.graph.closeness, mn.graph.harmonic):
        with pytest.raises(mn.errors.OptionError, match="batch=0"):
            centrality(A, batch=0)
        with pytest.raises(mn.errors.OptionError, match=r"a weight is -1\.0"):
            centrality(sp.csr_array([[0, -1.0], [0, 0]]), weighted=True).compute()


@pytest.mark.parametrize("bad", [-1.0, np.nan])
def test_weights_that_are_none(bad: float) -> None:
    A = sp.csr_array(([1.0, bad], ([0, 1], [1, 0])), shape=(2, 2))
    for name, result in (
        ("hits", mn.graph.hits(A).hubs),
        ("pagerank", mn.graph.pagerank(A).ranks),
        ("eigenvector_centrality", mn.graph.eigenvector_centrality(A).values),
        ("modularity", mn.graph.modularity(A, [0, 1])),
    ):
        with pytest.raises(
            mn.errors.OptionError, match=f"{name}: a weight is {bad}; weights must be 0 or more"
        ):
            result.compute()


def test_katz_takes_negative_weights_but_no_nan() -> None:
    A = sp.csr_array([[0.0, -1.0], [1.0, 0.0]])
    assert np.isfinite(mn.graph.katz(A).values.compute()).all()
    A.data[0] = np.nan
    with pytest.raises(mn.errors.OptionError, match="katz: a weight is nan; weights must be finite numbers"):
        mn.graph.katz(A).values.compute()


def test_complex_weights_are_refused() -> None:
    A = sp.csr_array(np.array([[0, 1j], [1.0, 0]]))
    by_weight: list[Callable[[object], object]] = [
        mn.graph.pagerank, mn.graph.hits, mn.graph.eigenvector_centrality, mn.graph.louvain,
        mn.graph.markov_clustering, lambda A: mn.graph.modularity(A, [0, 1]),
    ]  # fmt: skip
    for function in by_weight:
        with pytest.raises(mn.errors.DTypeError, match="weights of dtype complex128 have no order"):
            function(A)
