"""What does not take a graph says what does: plots, files, solvers, and graphs of other vertices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from matplotlib.figure import Figure

import matnb as mn
from matnb.errors import OptionError, ShapeError

pytestmark = pytest.mark.session("one thread")


@pytest.fixture
def graph() -> nx.DiGraph:
    return nx.DiGraph([("a", "b"), ("b", "c"), ("c", "a"), ("a", "c")])


def test_the_plot_of_a_graph_is_its_pattern(graph: nx.DiGraph) -> None:
    A = mn.asarray(graph)
    drawn, pattern = (draw(A, ax=Figure().subplots()) for draw in (mn.plot, mn.spy))
    assert not drawn.lines
    for one, other in zip(drawn.images, pattern.images, strict=True):
        np.testing.assert_array_equal(one.get_array(), other.get_array())
    assert len(mn.plot(A[:, :2], ax=Figure().subplots()).lines) == 2
    assert len(mn.plot(A.toarray(), ax=Figure().subplots()).lines) == 3


@pytest.mark.parametrize("suffix", ["graphml", "gexf", "gml"])
def test_files_of_graphs_are_written_by_networkx(graph: nx.DiGraph, suffix: str, tmp_path: Path) -> None:
    path, A = tmp_path / f"a.{suffix}", mn.asarray(graph)
    with pytest.raises(OptionError) as error:
        mn.save(A, path)
    code = str(error.value).rpartition("; ")[2].removesuffix(" writes a graph")
    names: dict[str, Any] = {"nx": nx, "mn": mn, "A": A, "path": path}
    eval(code, names)
    assert set(getattr(nx, f"read_{suffix}")(path).edges) == set(graph.edges)


def test_tables_of_edges_are_lists_of_edges(graph: nx.DiGraph, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"a graph with its ids as \.edges"):
        mn.save(mn.asarray(graph), tmp_path / "a.csv")
    with pytest.raises(OptionError) as error:
        mn.save(mn.ones((2, 3)), tmp_path / "a.csv")
    assert "graph" not in str(error.value)


def test_the_least_of_a_laplacian_are_sa(graph: nx.DiGraph) -> None:
    L = mn.graph.laplacian(mn.asarray(graph.to_undirected()))
    with pytest.raises(OptionError, match=r"Laplacian.* which='SA'"):
        mn.linalg.eigsh(L, k=1, which="SM")
    assert np.asarray(mn.linalg.eigsh(L, k=1, which="SA")[0]) == pytest.approx(0, abs=1e-6)
    with pytest.raises(OptionError) as error:
        mn.linalg.eigsh(L, k=1, which="XY")
    assert "Laplacian" not in str(error.value)


def test_snapshots_of_several_sizes_are_loaded_with_the_same_vertices(tmp_path: Path) -> None:
    paths = [tmp_path / "x.txt", tmp_path / "y.txt"]
    for path, text in zip(paths, ("0 1\n1 2\n", "0 1\n1 2\n2 3\n"), strict=True):
        path.write_text(text)
    said = r"different vertices are loaded with relabel=False, num_vertices=n, the same n for all"
    X, Y = map(mn.load, paths)
    combined: tuple[Any, ...] = (np.subtract, np.maximum, np.multiply, np.not_equal, np.matmul)
    for one in combined:
        with pytest.raises(ShapeError, match=said):
            one(Y, X)
    X, Y = (mn.load(path, relabel=False, num_vertices=4) for path in paths)
    assert np.argwhere((Y - X).toarray()).tolist() == [[2, 3]]
    for other in (np.ones((3, 3)), mn.ones((3, 3)), mn.asarray(X.to_scipy()[:3, :2])):
        with pytest.raises(ShapeError) as error:
            Y - other
        assert "relabel" not in str(error.value)
