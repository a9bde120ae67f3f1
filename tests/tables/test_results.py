"""What is seen of results: names, the largest, how many iterations; nothing is computed that takes long."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn
from matnb.errors import DTypeError
from matnb.lazy.evaluator import looking_only

RNG = np.random.default_rng(0)
EDGES = sp.random_array((40, 40), density=0.1, rng=RNG, data_sampler=lambda size: np.ones(size)).tocsr()
BOTH = (EDGES + EDGES.T).tocsr()

pytestmark = pytest.mark.session("two workers")


def computed(result: Any) -> Any:
    for field in result:
        if isinstance(field, mn.DistArray):
            field.persist()
    return result


def part(text: str, title: str) -> dict[str, float]:
    """Return the rows below a title."""
    lines = text.splitlines()
    rows = {}
    for line in lines[lines.index(title) + 1 :]:
        if not line.startswith("  "):
            break
        name, _, number = line.strip().rpartition(" ")
        rows[name.strip()] = float(number.replace(",", ""))
    return rows


def test_a_ranking_shows_the_largest_and_what_converged() -> None:
    ranking = computed(mn.graph.pagerank(EDGES))
    text = repr(ranking)
    ranks, taken = np.asarray(ranking.ranks), int(ranking.iterations)
    assert text.splitlines()[0] == f"Ranking of 40 vertices; converged after {taken} iterations"
    wanted = {f"row {place}": ranks[place] for place in np.argsort(-ranks, kind="stable")[:5]}
    assert part(text, "largest ranks") == pytest.approx(wanted, rel=1e-5)
    with pytest.warns(mn.errors.ConvergenceWarning):
        ended = computed(mn.graph.pagerank(EDGES, max_iterations=2))
    assert "stopped at its limit of 2 iterations" in repr(ended)
    assert "; 3 iterations" in repr(computed(mn.graph.pagerank(EDGES, tolerance=None, max_iterations=3)))


def test_vertices_are_called_by_their_names(tmp_path: Path) -> None:
    path = tmp_path / "edges.txt"
    path.write_text("".join(f"{a + 100} {b + 100}\n" for a, b in zip(*EDGES.nonzero(), strict=True)))
    graph = mn.load(path)
    ids = np.asarray(graph.labels)
    ranking = computed(mn.graph.pagerank(graph))
    order = np.argsort(-np.asarray(ranking.ranks), kind="stable")[:5]
    assert list(part(repr(ranking), "largest ranks")) == [str(ids[place]) for place in order]

    letters = nx.DiGraph([("<b>", "hub"), ("leaf", "hub"), ("hub", "<b>")])
    html = computed(mn.graph.pagerank(letters, tolerance=1e-4))._repr_mimebundle_()["text/html"]
    assert "hub" in html
    assert "&lt;b&gt;" in html
    assert "<b>" not in html

    pairs = mn.table({"a": ["x", "y", "z"], "b": ["y", "z", "x"]}).pivot("a", "b")
    assert set(part(repr(computed(mn.graph.connected_components(pairs))), "largest groups of labels")) == {
        "0 (vertex x)"
    }


def test_groups_and_distances_are_counted() -> None:
    found = computed(mn.graph.connected_components(EDGES))
    sizes = np.unique(np.asarray(found.labels), return_counts=True)[1]
    assert f"; {len(sizes)} group" in repr(found)
    assert list(part(repr(found), "largest groups of labels").values()) == sorted(sizes, reverse=True)[:5]
    assert "modularity 0." in repr(computed(mn.graph.louvain(BOTH)))

    levels = nx.single_source_shortest_path_length(nx.DiGraph(EDGES), 0)
    search = mn.graph.bfs(EDGES, 0)
    assert "made when it is used first" in repr(search)
    assert "levels" not in vars(search)
    text = repr(computed(search))
    assert f"{len(levels)} of 40 reached; the farthest at {max(levels.values())}" in text
    wanted = np.bincount([*levels.values()])
    assert list(part(text, "levels").values()) == wanted.tolist()

    weighted = computed(mn.graph.sssp(BOTH * 1.5, 0, predecessors=True))
    assert (
        sum(part(repr(weighted), "distances").values()) == np.isfinite(np.asarray(weighted.distances)).sum()
    )


def test_solvers_say_how_they_ended() -> None:
    matrix = sp.diags_array(np.arange(1.0, 9)).tocsr()
    assert repr(computed(mn.linalg.cg(matrix, np.ones(8)))).startswith("Solution; converged\n")
    assert "converged" in repr(computed(mn.linalg.lsqr(matrix, np.ones(8))))
    pairs = computed(mn.linalg.eigsh(matrix, k=2))
    assert part(repr(pairs), "values") == pytest.approx({"values[0]": 7, "values[1]": 8})


RESULTS = {
    "pagerank": lambda: mn.graph.pagerank(EDGES),
    "hits": lambda: mn.graph.hits(EDGES),
    "louvain": lambda: mn.graph.louvain(BOTH),
    "markov": lambda: mn.graph.markov_clustering(BOTH),
    "components": lambda: mn.graph.strongly_connected_components(EDGES),
    "sssp": lambda: mn.graph.sssp(BOTH, 0, predecessors=True),
    "bfs": lambda: mn.graph.bfs(EDGES, [0, 1]),
    "svds": lambda: mn.linalg.svds(EDGES, k=2),
    "lsmr": lambda: mn.linalg.lsmr(np.eye(4), np.ones(4)),
    "topk": lambda: mn.nested.from_lists([[1.0, 2.0], [3.0]]).topk(1),
    "keys": lambda: mn.nested.from_keys([1, 2, 1], [1.0, 2.0, 3.0]),
    "of no vertex": lambda: mn.graph.pagerank(sp.csr_array((0, 0))),
    "of one": lambda: mn.graph.hits(sp.csr_array(np.ones((1, 1)))),
}


@pytest.mark.parametrize("name", RESULTS)
def test_each_is_seen_before_and_after_it_is_computed(name: str) -> None:
    result = RESULTS[name]()
    arrays = [one for one in result if isinstance(one, mn.DistArray)] if isinstance(result, tuple) else []
    stored = [one.facts().stored for one in arrays]
    with looking_only():  # else what is cheap is computed to be shown
        before = result._repr_mimebundle_()
    assert [one.facts().stored for one in arrays] == stored
    after = computed(result)._repr_mimebundle_()
    for one in (before, after):
        assert one["text/plain"].startswith(type(result).__name__)
    assert "not computed, since" not in after["text/plain"]
    assert "DistArray" not in after["text/plain"].splitlines()[0]
    for html in (before["text/html"], after["text/html"]):
        ElementTree.fromstring(html.replace("&nbsp;", " "))
    assert len(after["text/html"]) < 60_000


def test_the_field_that_is_meant_is_named() -> None:
    found = mn.graph.connected_components(EDGES)
    with pytest.raises(DTypeError, match=r"as in result.labels == \.\.\."):
        mn.asarray(EDGES)[found == 3]
    with pytest.raises(DTypeError, match=r"as in result.labels$"):
        np.bincount(found)
    with pytest.raises(DTypeError, match=r"as in result.labels$"):
        plt.Figure().subplots().plot(found)


def test_the_numbers_of_a_small_graph_are_shown_and_kept() -> None:
    ranking = mn.graph.pagerank(EDGES, damping=0.83)
    wanted = nx.pagerank(nx.from_scipy_sparse_array(EDGES, create_using=nx.DiGraph), alpha=0.83, tol=1e-12)
    first = sorted(wanted, key=wanted.__getitem__, reverse=True)[:5]
    text = repr(ranking)
    assert part(text, "largest ranks") == pytest.approx(
        {f"row {one}": wanted[one] for one in first}, rel=1e-4
    )
    assert "converged after" in text
    assert "not computed" not in text
    assert ranking.ranks.layout is not None
    values = repr(mn.linalg.eigsh(BOTH, k=3, which="LA"))
    largest = np.linalg.eigvalsh(BOTH.toarray())[-3:]
    assert [*part(values, "values").values()] == pytest.approx(largest, rel=1e-5)


def test_what_a_function_of_the_users_takes_is_not_known() -> None:
    scaled = mn.asarray(EDGES) * mn.replicated(lambda least: least + 1.25, mn.asarray(EDGES).max(), like=1.0)
    assert "a loop runs for them: result.ranks.compute() does it" in repr(mn.graph.pagerank(scaled))


def test_html_does_not_compute_what_it_says_is_not_computed() -> None:
    ring = mn.asarray(sp.csr_array(np.roll(np.eye(37), 1, axis=1)))
    weight = mn.replicated(
        lambda largest: largest + 1, ring.max(), like=1.0
    )  # how long this takes nobody knows
    found = mn.graph.connected_components(ring * weight)
    bundle = found._repr_mimebundle_()
    assert "not computed" in bundle["text/plain"]
    assert "not computed" in bundle["text/html"]
    assert ">1</pre>" not in bundle["text/html"]
    assert found.number.layout is None
