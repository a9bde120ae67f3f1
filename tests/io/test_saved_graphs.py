"""Graphs that are saved and read back have their edges, weights and labels."""

from __future__ import annotations

import warnings
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn
from matnb.errors import DTypeError, FileContentWarning, ShapeError

pytestmark = pytest.mark.session("two workers")


def listed(path: Path, text: str) -> mn.DistArray:
    path.write_text(text)
    return mn.load(str(path))


@pytest.mark.parametrize("suffix", [".txt", ".edges", ".edgelist", ".npz"])
@pytest.mark.parametrize(
    "text", ["70 3\n3 900\n900 70\n", "70 3 0.1\n3 900 -2\n900 70 1e-300\n", "0 1\n1 2\n"]
)
def test_an_edge_list_comes_back_the_same(tmp_path: Path, suffix: str, text: str) -> None:
    A = listed(tmp_path / "given.txt", text)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mn.save(A, tmp_path / f"saved{suffix}")
        again = mn.load(str(tmp_path / f"saved{suffix}"))
    np.testing.assert_array_equal(again.toarray(), A.toarray())
    if A.labels is None:
        assert again.labels is None
    else:
        assert np.asarray(again.labels).tolist() == np.asarray(A.labels).tolist()
        assert np.asarray((again @ again.T).labels).tolist() == np.asarray(A.labels).tolist()
        assert again.T.labels is not None


def test_networkx_reads_the_list_that_is_written(tmp_path: Path) -> None:
    G = nx.gnp_random_graph(60, 0.1, seed=2, directed=True)
    nx.set_edge_attributes(G, {edge: place / 7 for place, edge in enumerate(G.edges)}, "weight")
    mn.save(mn.asarray(nx.to_scipy_sparse_array(G), blocks=[23, 31]), tmp_path / "a.txt")
    read = nx.read_weighted_edgelist(tmp_path / "a.txt", create_using=nx.DiGraph, nodetype=int)
    assert nx.utils.graphs_equal(read, G)
    mn.save(mn.asarray(nx.to_scipy_sparse_array(G)) > 0.5, tmp_path / "b.txt")
    wanted = {(u, v) for u, v, weight in G.edges(data="weight") if weight > 0.5}
    assert {*nx.read_edgelist(tmp_path / "b.txt", create_using=nx.DiGraph, nodetype=int).edges} == wanted


def test_names_are_kept_beside_what_scipy_reads(tmp_path: Path) -> None:
    G = nx.DiGraph([("b", "ä"), ("ä", "c c"), ("c c", "b")])
    A = mn.asarray(G)
    mn.save(A, tmp_path / "a.npz")
    again = mn.load(str(tmp_path / "a.npz"))
    assert np.asarray(again.labels).tolist() == [*G]
    assert nx.utils.graphs_equal(mn.graph.to_networkx(again), mn.graph.to_networkx(A))
    assert (sp.load_npz(tmp_path / "a.npz") != nx.to_scipy_sparse_array(G)).nnz == 0
    with pytest.warns(
        FileContentWarning, match=r"labels are not written: mn.save\(A, \"A.npz\"\) keeps them"
    ):
        mn.save(A, tmp_path / "a.mtx")
    with pytest.raises(DTypeError, match="names of vertices in an edge list"):
        mn.save(A, tmp_path / "a.txt")
    assert not (tmp_path / "a.txt").exists()


def test_what_no_edge_list_has_is_told(tmp_path: Path) -> None:
    with pytest.warns(FileContentWarning, match="2 of 4 vertices have no edge"):
        mn.save(sp.csr_array(([1.0], ([0], [2])), shape=(4, 4)), tmp_path / "a.txt")
    with pytest.raises(ShapeError, match="as an edge list"):
        mn.save(sp.csr_array((3, 4)), tmp_path / "a.txt")
    with pytest.raises(DTypeError, match="a dense array as an edge list"):
        mn.save(np.eye(3), tmp_path / "a.txt")


def test_labels_of_pivots_are_told_to_be_left_out(tmp_path: Path) -> None:
    P = mn.table({"a": ["x", "y"], "b": ["u", "v"]}).pivot("a", "b")
    with pytest.warns(FileContentWarning, match="not written: keep A.row_labels, A.column_labels beside it"):
        mn.save(P, tmp_path / "p.npz")
    assert P.row_labels.tolist() == ["x", "y"]
    assert P.column_labels.tolist() == ["u", "v"]
