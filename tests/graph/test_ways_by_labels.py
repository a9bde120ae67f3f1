"""What errors say instead of NetworkX's names does with the ids of a graph what NetworkX does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import matnb as mn
from matnb.errors import ArgumentError, DTypeError

pytestmark = pytest.mark.session("one thread")

EDGES = [(27, 3), (3, 12), (12, 27), (3, 1), (5, 12), (40, 41)]


@pytest.fixture(params=["file", "names", "rows"])
def graphs(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Any, nx.DiGraph]:
    """Return a graph whose ids are no rows, one of names, and one without labels."""
    if request.param == "file":
        path = tmp_path / "edges.txt"
        path.write_text("".join(f"{one} {other}\n" for one, other in EDGES))
        return mn.load(path), nx.DiGraph(EDGES)
    G: Any = nx.DiGraph(EDGES)
    G.add_node(99)
    if request.param == "names":
        G = nx.relabel_nodes(G, {vertex: f"vertex {vertex}" for vertex in G})
        return mn.asarray(G), G
    G = nx.relabel_nodes(G, {vertex: row for row, vertex in enumerate(G)})
    A = mn.asarray(nx.to_scipy_sparse_array(G))
    assert A.labels is None
    return A, G


def way(name: str, A: Any) -> str:
    """Return the code that an error says of a name, for what has labels or has none."""
    with pytest.raises(AttributeError) as error:
        getattr(mn.graph, name)
    labelled, _, plain = str(error.value).partition("; write ")[2].partition(", or ")
    return labelled if A.labels is not None else plain.removesuffix(" where A.labels is None")


def given(code: str, names: dict[str, Any]) -> Any:
    """Return the value of the last of some statements."""
    *before, last = code.split("; ")
    for one in before:
        exec(one, names)
    return eval(last, names)


def test_neighbors_and_edges_are_those_of_ids(graphs: tuple[Any, nx.DiGraph]) -> None:
    A, G = graphs
    one, other = next(iter(G.edges))
    names = {"np": np, "mn": mn, "A": A, "u": one, "v": other}
    for name in ("neighbors", "successors", "predecessors"):
        for vertex in G:
            found = np.asarray(given(way(name, A), {**names, "v": vertex})).tolist()
            assert sorted(found) == sorted(getattr(G, name)(vertex))
    edge = way("has_edge", A)
    assert given(edge, names)
    assert not given(edge, {**names, "u": other, "v": one})
    rows, columns = given(way("edges", A), names)
    edges = zip(np.asarray(rows).tolist(), np.asarray(columns).tolist(), strict=True)
    assert sorted(edges) == sorted(G.edges)
    assert sorted(np.asarray(given(way("nodes", A), names)).tolist()) == sorted(G)
    assert sorted(np.asarray(given(way("isolates", A), names)).tolist()) == list(nx.isolates(G))


def test_subgraphs_are_those_of_ids(graphs: tuple[Any, nx.DiGraph]) -> None:
    A, G = graphs
    ids = sorted(list(G)[1:4])
    names = {"np": np, "mn": mn, "A": A, "ids": ids, "rows": ids}
    for name in ("subgraph", "induced_subgraph"):
        found = mn.graph.to_networkx(given(way(name, A), names), directed=True)
        if A.labels is None:
            found = nx.relabel_nodes(found, dict(enumerate(ids)))
        assert nx.utils.edges_equal(found.edges, G.subgraph(ids).edges, directed=True)


def test_the_largest_component_is_that_of_networkx(graphs: tuple[Any, nx.DiGraph]) -> None:
    A, G = graphs
    with pytest.raises(AttributeError) as error:
        mn.graph.largest_component  # noqa: B018  asked for
    found = given(str(error.value).partition("; write ")[2], {"np": np, "mn": mn, "A": A})
    wanted = max(nx.weakly_connected_components(G), key=len)
    assert len(found) == len(wanted)
    if A.labels is not None:
        assert set(np.asarray(found.labels).tolist()) == wanted


def test_edges_are_added_and_removed_by_ids(graphs: tuple[Any, nx.DiGraph]) -> None:
    A, G = graphs
    one, other = next(iter(G.edges))
    A = A.copy()
    for name, u, v in (("remove_edge", one, other), ("add_edge", other, one)):
        with pytest.raises(AttributeError) as error:
            getattr(A, name)
        stated = str(error.value).partition("; write ")[2]
        put, _, row = stated.partition(" of rows: i = ")
        labelled, _, plain = row.partition(", or i = ")
        row = plain.removesuffix(" where A.labels is None") if A.labels is None else labelled
        names = {"np": np, "A": A, "i": eval(row, {"np": np, "A": A, "u": u})}
        names["j"] = eval(row, {"np": np, "A": A, "u": v})
        exec(put, names)
        getattr(G, name)(u, v)
    rows, columns = (np.asarray(one) for one in np.nonzero(A))
    if A.labels is not None:
        rows, columns = (np.asarray(A.labels)[one] for one in (rows, columns))
    assert sorted(zip(rows.tolist(), columns.tolist(), strict=True)) == sorted(G.edges)


SERIES = "pd.Series(result.ranks, index=A.labels)"


def test_the_largest_values_have_their_ids(graphs: tuple[Any, nx.DiGraph]) -> None:
    A, G = graphs
    result = mn.graph.pagerank(A)
    names = {"pd": pd, "result": result, "A": A}
    for name, way in (
        ("top", f"{SERIES}.nlargest(10)"),
        ("to_pandas", SERIES),
        ("items", f"{SERIES}.to_dict()"),
    ):
        with pytest.raises(AttributeError, match=re.escape(way)):
            getattr(result, name)
    ranks = nx.pagerank(G)
    assert eval(f"{SERIES}.to_dict()", names) == pytest.approx(ranks, abs=1e-5)
    first = eval(f"{SERIES}.nlargest(10)", names)
    assert first.tolist() == pytest.approx(sorted(ranks.values(), reverse=True)[:10], abs=1e-5)
    with pytest.raises(DTypeError) as error:
        mn.table(result)
    code = re.findall(r"as (mn\.table\(.*\)), or an", str(error.value))[0]
    made = eval(code, {"mn": mn, "result": result})
    assert list(made) == (["label"] if A.labels is not None else []) + ["ranks"]
    with pytest.raises(AttributeError, match=r"or pandas.Series\(x, index=x.labels\)"):
        result.ranks.to_pandas()
    with pytest.raises(AttributeError, match=r"np.bincount\(c\)"):
        mn.graph.louvain(A).largest  # noqa: B018  asked for
    with pytest.raises(AttributeError, match=r"index=A.labels\).nlargest\(10\)"):
        mn.graph.bfs(A, next(iter(G))).top(10)


@pytest.mark.parametrize("weights", ["weight", "weighted", "weights"])
def test_weights_are_left_out_by_the_pattern(weights: str) -> None:
    A = mn.asarray(nx.to_scipy_sparse_array(nx.DiGraph(EDGES)))
    for name in ("pagerank", "katz", "louvain", "hits", "laplacian"):
        with pytest.raises(ArgumentError, match=r"give A.pattern\(float\)"):
            getattr(mn.graph, name)(A, **{weights: None})
    with pytest.raises(ArgumentError, match=r"mn.graph.to_networkx\(A\), weight="):
        mn.graph.clustering(A, **{weights: True})


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ego", r"nx.ego_graph\(mn.graph.to_networkx\(A\), v\)"),
        ("girvan_newman", r"write mn.graph.louvain\(A\).labels, or"),
        ("normalized_laplacian", r"normed=True\), in which self-loops do not count"),
        ("spectral_embedding", 'which="SA"'),
    ],
)
def test_other_names_have_a_way(name: str, said: str) -> None:
    with pytest.raises(AttributeError, match=said):
        getattr(mn.graph, name)


def test_a_table_of_edges_becomes_a_graph() -> None:
    t = mn.table({"src": ["a", "b"], "dst": ["b", "c"]})
    with pytest.raises(AttributeError) as error:
        t.to_graph()
    A = eval(str(error.value).partition("; write ")[2], {"mn": mn, "nx": nx, "t": t})
    assert set(mn.graph.to_networkx(A).edges) == {("a", "b"), ("b", "c")}
