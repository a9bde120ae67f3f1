"""Files through the whole way: read on the workers of one and of four, saved, read again."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import numpy as np
import psutil
import pytest
import scipy.io
import scipy.sparse as sp

import matnb as mn
from matnb.errors import FileFormatError, MatnbError, OptionError


@pytest.fixture(scope="module", params=[1, 4])
def workers(request: pytest.FixtureRequest) -> Iterator[int]:
    with mn.start(workers=request.param, threads=2):
        yield request.param
    mn.stop()


def same(mine: sp.csr_array, theirs: sp.csr_array) -> None:
    assert mine.shape == theirs.shape
    assert mine.dtype == theirs.dtype
    theirs.sum_duplicates()
    theirs.sort_indices()
    np.testing.assert_array_equal(mine.indptr, theirs.indptr)
    np.testing.assert_array_equal(mine.indices, theirs.indices)
    np.testing.assert_array_equal(mine.data, theirs.data)


def adjacency(graph: nx.Graph, weight: str | None = None) -> sp.csr_array:
    return sp.csr_array(nx.to_scipy_sparse_array(graph, sorted(graph), weight=weight, dtype=float))


def test_every_matrix_market_file(workers: int, test_data: Path) -> None:
    for folder in ("lagraph", "cugraph", "nwgraph", "propack"):
        for path in sorted((test_data / folder).glob("*.mtx")):
            theirs = scipy.io.mmread(path)
            for blocks in (None, 3):
                mine = mn.load(path, blocks=blocks)
                if sp.issparse(theirs):
                    same(mine.to_scipy(), sp.csr_array(theirs))
                else:
                    np.testing.assert_array_equal(mine.compute(), theirs)


@pytest.mark.parametrize("blocks", [None, 1, 5, [2, 3]])
def test_edge_lists(workers: int, test_data: Path, blocks: object) -> None:
    for name, kind in (
        ("networkit/wiki-Vote.txt", nx.DiGraph),
        ("snap_ca-GrQc/ca-GrQc.txt", nx.DiGraph),
        ("snap_p2p-Gnutella08/p2p-Gnutella08.txt", nx.DiGraph),
    ):
        graph = nx.read_edgelist(test_data / name, create_using=kind, nodetype=int)
        mine = mn.load(test_data / name, blocks=blocks)
        same(mine.to_scipy(), adjacency(graph))
        labels = np.arange(mine.shape[0]) if mine.labels is None else mine.labels.compute()
        np.testing.assert_array_equal(labels, sorted(graph))


def test_counts_of_the_published_answers(workers: int, test_data: Path) -> None:
    stats = json.loads((test_data / "answers.json").read_text())["graph_stats"]
    for name, path in (
        ("networkit/wiki-Vote.txt", "networkit/wiki-Vote.txt"),
        ("ca-GrQc", "snap_ca-GrQc/ca-GrQc.txt"),
        ("p2p-Gnutella08", "snap_p2p-Gnutella08/p2p-Gnutella08.txt"),
    ):
        mine = mn.load(test_data / path)
        assert (mine.shape[0], mine.nnz) == (stats[name]["n"], stats[name]["nnz_dir"])
    for name in ("celegans_metabolic", "jazz", "lesmis", "power", "hep-th", "airfoil1", "karate"):
        mine = mn.load(test_data / "networkit" / f"{name}.graph", blocks=4)
        if f"networkit/{name}" in stats or name in stats:
            expected = stats.get(f"networkit/{name}", stats.get(name))
            assert (mine.shape[0], mine.nnz) == (expected["n"], expected["nnz_dir"])
        assert int((mine != mine.T).sum()) == 0


def test_ldbc_edges_with_weights(workers: int, test_data: Path) -> None:
    path = test_data / "ldbc" / "example-directed.e"
    graph = nx.read_weighted_edgelist(path, create_using=nx.DiGraph, nodetype=int)
    same(mn.load(path).to_scipy(), adjacency(graph, "weight"))
    undirected = test_data / "ldbc" / "example-undirected.e"
    graph = nx.read_weighted_edgelist(undirected, create_using=nx.Graph, nodetype=int)
    same(mn.load(undirected, directed=False).to_scipy(), adjacency(graph, "weight"))


def test_named_columns(workers: int, test_data: Path) -> None:
    answers = json.loads((test_data / "answers.json").read_text())["nyc_2020-01_1000"]
    names = [name for name, value in answers.items() if isinstance(value, dict) and "mean" in value]
    table = mn.load(test_data / "nyc_yellow_2020-01_1000" / "yellow_tripdata_2020-01.csv", columns=names)
    assert isinstance(table, mn.Table)
    assert tuple(table) == tuple(names)
    for name in names:
        column = table[name]
        present = np.isfinite(column)
        assert int(present.sum()) == answers[name]["n"]
        total = float(np.where(present, column, 0).sum())
        assert total == pytest.approx(answers[name]["sum"], rel=1e-9)


@pytest.mark.parametrize("suffix", [".npz", ".mtx"])
@pytest.mark.parametrize("blocks", [1, [3, 2]])
def test_saved_sparse_arrays_come_back(workers: int, tmp_path: Path, suffix: str, blocks: object) -> None:
    matrix = sp.random_array((40, 30), density=0.1, format="csr", rng=1)
    path = tmp_path / f"a{suffix}"
    mn.save(mn.asarray(matrix, blocks=blocks), path)
    same(mn.load(path, blocks=[2, 2]).to_scipy(), matrix)
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("suffix", [".npz", ".npy"])
def test_saved_dense_arrays_come_back(workers: int, tmp_path: Path, suffix: str) -> None:
    values = np.random.default_rng(0).random((7, 5, 3)).astype(np.float32)
    path = tmp_path / f"a{suffix}"
    mn.save(mn.asarray(values, blocks=[2, 1, 3]) * 2, path)
    np.testing.assert_array_equal(mn.load(path, blocks=3).compute(), values * 2)


def test_a_bad_file_leaves_nothing(workers: int, tmp_path: Path) -> None:
    path = tmp_path / "bad.mtx"
    path.write_text("%%MatrixMarket matrix coordinate real general\n3 3 2\n1 1 1.0\n2 x 1.0\n")
    session = mn.current_session()
    before = session.status().num_arrays
    with pytest.raises(FileFormatError, match=r"bad\.mtx, line 4"):
        mn.load(path)
    assert session.status().num_arrays == before
    with pytest.raises(MatnbError, match=r"nothing\.mtx"):
        mn.load(tmp_path / "nothing.mtx")


def test_a_graph_does_not_depend_on_workers(workers: int) -> None:
    mine = mn.random.rmat(8, seed=3, blocks=workers).to_scipy()
    again = mn.random.rmat(8, seed=3, blocks=[3, 2]).to_scipy()
    same(mine, again)
    assert mine.shape == (256, 256)


@pytest.mark.cluster
def test_the_driver_stays_small_while_workers_read(tmp_path: Path) -> None:
    path = tmp_path / "large.mtx"
    count, n = 1_500_000, 20_000
    rng = np.random.default_rng(0)
    rows, columns = rng.integers(1, n + 1, (2, count))
    with path.open("w") as stream:
        stream.write(f"%%MatrixMarket matrix coordinate pattern general\n{n} {n} {count}\n")
        stream.writelines(f"{row} {column}\n" for row, column in zip(rows, columns, strict=True))
    with mn.start(workers=2, threads=1, processes=True):
        process = psutil.Process()
        before = process.memory_info().rss
        matrix = mn.load(path)
        grown = process.memory_info().rss - before
        assert matrix.nnz <= count
        assert grown < path.stat().st_size / 2, f"the driver grew by {grown} bytes"
    mn.stop()


def test_the_interpreter_reads_too(test_data: Path) -> None:
    path = test_data / "networkit" / "wiki-Vote.txt"
    with mn.start(engine="interpret"):
        mine = mn.load(path)
        degrees = mine.sum(axis=1).compute()
        labels = mine.labels.compute()
    mn.stop()
    graph = nx.read_edgelist(path, create_using=nx.DiGraph, nodetype=int)
    assert dict(zip(labels.tolist(), degrees.tolist(), strict=True)) == dict(graph.out_degree)


@pytest.mark.parametrize(("wish", "transposes"), [("keep", [1, 1]), ("none", [0, 0]), ("auto", [0, 0])])
def test_a_wish_about_the_transpose(workers: int, wish: str, transposes: list[int], tmp_path: Path) -> None:
    matrix = sp.random_array((500, 400), density=0.05, format="csr", rng=0)
    sp.save_npz(tmp_path / "a.npz", matrix)
    A = mn.load(tmp_path / "a.npz", transpose=wish, blocks=3)
    runs: list[set[str]] = []
    unsubscribe = mn.current_session().subscribe(
        lambda event: runs.append({task.kind for task in getattr(event, "tasks", ())})
    )
    counts = []
    for number in range(2):
        x = np.arange(500.0) + number
        np.testing.assert_allclose((A.T @ x).compute(), matrix.T @ x)
        counts.append(int(any("transpose" in kinds for kinds in runs)))
    unsubscribe()
    assert counts == transposes
    with pytest.raises(OptionError, match=r"'sometimes'.*'keep'"):
        mn.load(tmp_path / "a.npz", transpose="sometimes")
