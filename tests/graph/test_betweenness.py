"""Betweenness against NetworkX and published values."""

from __future__ import annotations

import json
import random
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn

pytestmark = pytest.mark.session("two workers")


def in_order(values: dict[int, float]) -> np.ndarray:
    return np.array([values[vertex] for vertex in range(len(values))])


@pytest.mark.parametrize(("normalized", "batch"), [(True, 100), (False, 17)])
def test_all_sources(graph: sp.csr_array, peer: nx.DiGraph, normalized: bool, batch: int) -> None:
    found = mn.graph.betweenness(graph, normalized=normalized, batch=batch)
    wanted = in_order(nx.betweenness_centrality(peer, normalized=normalized))
    np.testing.assert_allclose(found.compute(), wanted, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("normalized", [True, False])
def test_undirected(both_ways: sp.csr_array, peer: nx.DiGraph, normalized: bool) -> None:
    found = mn.graph.betweenness(both_ways, normalized=normalized, directed=False)
    wanted = in_order(nx.betweenness_centrality(peer.to_undirected(), normalized=normalized))
    np.testing.assert_allclose(found.compute(), wanted, rtol=1e-12, atol=1e-15)


def test_listed_sources_are_summed(graph: sp.csr_array, peer: nx.DiGraph) -> None:
    n = len(peer)
    sources = [0, n - 1, n // 2]
    found = mn.graph.betweenness(graph, sources=sources, normalized=False, batch=2)
    per_source = [nx.betweenness_centrality_subset(peer, [one], range(n)) for one in sources]
    np.testing.assert_allclose(found.compute(), sum(map(in_order, per_source)), rtol=1e-12, atol=1e-15)


class Drawing(random.Random):
    """Draws the vertices for NetworkX that matnb draws."""

    def sample(self, population: object, k: int) -> list[int]:
        return np.random.default_rng(3).choice(len(population), k, replace=False).tolist()


@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("share", [0.3, 1.0])
def test_drawn_sources(graph: sp.csr_array, peer: nx.DiGraph, normalized: bool, share: float) -> None:
    n = len(peer)
    k = max(1, int(share * n))
    found = mn.graph.betweenness(graph, sources=k, normalized=normalized, seed=3).compute()
    wanted = in_order(nx.betweenness_centrality(peer, k, normalized=normalized, seed=Drawing()))
    wanted = np.nan_to_num(wanted)  # of a single source NetworkX says nothing about itself, and we 0
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", ["karate", "west0067"])
def test_lagraph(test_data: Path, name: str) -> None:
    stored = json.loads((test_data / "lagraph" / "expected_vectors.json").read_text())
    A = mn.load(test_data / "lagraph" / f"{name}.mtx")
    found = mn.graph.betweenness(A, sources=stored[f"{name}_sources"], normalized=False)
    np.testing.assert_allclose(found.compute(), stored[f"{name}_bc"], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("cugraph/dolphins", "cugraph/dolphins.mtx"),
        ("cugraph/polbooks", "cugraph/polbooks.mtx"),
    ],
)
def test_stored_vectors(test_data: Path, name: str, path: str) -> None:
    stored = json.loads((test_data / "answers.json").read_text())["graph_vectors_networkx"][name]
    found = mn.graph.betweenness(mn.load(test_data / path), normalized=False, directed=False)
    np.testing.assert_allclose(found.compute(), stored["bc_unnormalised"], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("sources", [0, 4, -1])
def test_as_many_sources_as_there_are(sources: int) -> None:
    with pytest.raises(mn.errors.OptionError, match="give 1 to 3"):
        mn.graph.betweenness(sp.csr_array(np.eye(3)), sources=sources)


def test_a_batch_holds_a_source() -> None:
    with pytest.raises(mn.errors.OptionError, match="batch=0"):
        mn.graph.betweenness(sp.csr_array(np.eye(3)), batch=0)
