"""Every published file of the test data against SciPy, NetworkX, the csv module and a short METIS parser."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from reading import read_whole

from matnb.io.source import open_source
from matnb.ops.creation import read_here

PIECES_AND_BLOCKS = [(1, 1), (3, 2), (7, 5)]
pytestmark = pytest.mark.usefixtures("small_pieces")

MATRICES = {
    "lagraph": "A A2 LFAT5 LFAT5_hypersparse LFAT5_two bcsstk13 cover cryg2500 jagmesh7 karate "
    "ldbc-cdlp-directed-example ldbc-cdlp-undirected-example ldbc-directed-example "
    "ldbc-directed-example-unweighted ldbc-undirected-example ldbc-undirected-example-unweighted "
    "ldbc-wcc-example lp_afiro msf1 msf2 msf3 olm1000 pushpull sample sample2 sources_7 test_BF test_FW_1000 "
    "test_FW_2003 test_FW_2500 tree-example west0067 zenios",
    "cugraph": "dolphins polbooks",
    "nwgraph": "Erdos991 GD98_c delaunay_n10 sherman4",
    "propack": "illc1850",
}
EDGE_LISTS = [
    *(
        f"cugraph/{name}.csv"
        for name in ["karate", "dolphins", "polbooks", "email-Eu-core", "ref_ktruss_polbooks"]
    ),
    *(
        f"ldbc/{name}.e"
        for name in [
            "example-directed",
            "example-undirected",
            "test-bfs-directed",
            "test-cdlp-directed",
            "test-lcc-directed",
            "test-pr-directed",
            "test-sssp-directed",
            "test-wcc-directed",
        ]
    ),
    "networkit/wiki-Vote.txt",
    "snap_ca-GrQc/ca-GrQc.txt",
    "snap_p2p-Gnutella08/p2p-Gnutella08.txt",
]
METIS = ["airfoil1", "celegans_metabolic", "hep-th", "jazz", "karate", "lesmis", "power"]
TABLES = [
    "nyc_yellow_2019-01_7500/yellow_tripdata_7500_lines_sample_2019-01.csv",
    "nyc_yellow_2020-01_1000/yellow_tripdata_2020-01.csv",
    "nyc_yellow_gx_2020-01/yellow_tripdata_sample_2020-01.csv",
    *(f"glm/{name}.csv" for name in ["longley", "randhie", "spector", "star98"]),
    "ml-latest-small/ratings.csv",
    "kmeans/iris.csv",
]


@pytest.mark.parametrize(
    "name", [f"{folder}/{name}.mtx" for folder in MATRICES for name in MATRICES[folder].split()]
)
def test_matrix_market_as_scipy(test_data: Path, name: str):
    wanted = scipy.io.mmread(test_data / name).tocsr()
    for pieces, counts in PIECES_AND_BLOCKS:
        found, matrix = read_whole(open_source(test_data / name), pieces, counts)
        assert (found.shape, found.dtype, found.nnz) == (wanted.shape, wanted.dtype, wanted.nnz)
        assert np.array_equal(matrix, wanted.toarray())


def test_all_matrix_market_files_are_tested(test_data: Path):
    listed = {f"{folder}/{name}.mtx" for folder in MATRICES for name in MATRICES[folder].split()}
    assert listed == {str(path.relative_to(test_data)) for path in test_data.glob("*/*.mtx")}


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("name", EDGE_LISTS)
def test_edge_lists_as_networkx(test_data: Path, name: str, directed: bool):
    path = test_data / name
    lines = [line for line in path.read_bytes().splitlines() if not line.startswith((b"#", b"http"))]
    weighted = len(lines[0].split()) == 3
    read = nx.read_weighted_edgelist if weighted else nx.read_edgelist
    graph = read(lines, nodetype=int, create_using=nx.DiGraph if directed else nx.Graph)
    if path.suffix == ".e":
        graph.add_nodes_from(map(int, path.with_suffix(".v").read_text().split()))
    ids = sorted(graph)
    wanted = nx.to_scipy_sparse_array(
        graph, ids, weight="weight" if weighted else None, dtype=float, format="csr"
    )
    for pieces, counts in PIECES_AND_BLOCKS:
        source = open_source(path, kind="edges", directed=directed)
        found, matrix = read_whole(source, pieces, counts)
        assert found.shape == wanted.shape
        assert found.pattern is not weighted
        assert abs(sp.csr_array(matrix) - wanted).max() == 0
        context = source.merge([source.summary(source.parse(piece)) for piece in source.pieces(pieces)])
        assert source.labels(context, 0, len(ids)).values.tolist() == ids
        assert found.has_labels is (ids != list(range(len(ids))))


def metis_matrix(path: Path) -> np.ndarray:
    lines = [line.split() for line in path.read_text().splitlines() if not line.startswith("%")]
    num_vertices, step = int(lines[0][0]), 2 if lines[0][2:] == ["1"] else 1
    matrix = np.zeros((num_vertices, num_vertices))
    for row, line in enumerate(lines[1 : num_vertices + 1]):
        for place in range(0, len(line), step):
            matrix[row, int(line[place]) - 1] = float(line[place + 1]) if step == 2 else 1
    return matrix


@pytest.mark.parametrize("name", METIS)
def test_metis_as_a_short_parser(test_data: Path, name: str):
    path = test_data / f"networkit/{name}.graph"
    wanted = metis_matrix(path)
    for pieces, counts in PIECES_AND_BLOCKS:
        found, matrix = read_whole(open_source(path), pieces, counts)
        assert np.array_equal(matrix, wanted)
        assert found.pattern is (name != "lesmis")


@pytest.mark.parametrize("name", TABLES)
def test_tables_as_the_csv_module(test_data: Path, name: str):
    options = {"delimiter": " "} if "spector" in name else {}
    with open(test_data / name, newline="") as stream:
        header, *rows = csv.reader(stream, **options)
    columns = [place for place in range(len(header)) if is_numeric([row[place] for row in rows])]
    wanted = np.array([[float(row[place]) if row[place] else np.nan for place in columns] for row in rows])
    picked = [header[place] for place in columns]
    for pieces, counts in PIECES_AND_BLOCKS:
        found, matrix = read_whole(open_source(test_data / name, columns=picked, **options), pieces, counts)
        assert found.names == tuple(picked)
        assert np.array_equal(matrix, wanted, equal_nan=True)


def is_numeric(texts: list[str]) -> bool:
    try:
        [float(text) for text in texts if text]
    except ValueError:
        return False
    return True


@pytest.mark.parametrize(
    ("name", "key"), [(TABLES[1], "nyc_2020-01_1000"), (TABLES[2], "nyc_gx_2020-01")], ids=["1000", "10000"]
)
def test_columns_have_the_known_sums(test_data: Path, name: str, key: str):
    answers = json.loads((test_data / "answers.json").read_text())[key]
    columns = {column: one for column, one in answers.items() if isinstance(one, dict) and "sum" in one}
    assert len(columns) == 15
    found, matrix = read_whole(open_source(test_data / name, columns=list(columns)), 3)
    assert found.shape == (answers["rows"], 15)
    for column, values in zip(columns.values(), matrix.T, strict=True):
        assert np.count_nonzero(~np.isnan(values)) == column["n"]
        assert np.nansum(values) == pytest.approx(column["sum"], rel=1e-12)
        assert (np.nanmin(values), np.nanmax(values)) == (column["min"], column["max"])


GRAPHS = {
    **{f"lagraph/{name}": f"lagraph/{name}.mtx" for name in
       ["karate", "jagmesh7", "bcsstk13", "A", "west0067", "zenios", "LFAT5", "pushpull", "cryg2500"]},
    **{f"{name}.mtx": f"{name}.mtx" for name in
       ["cugraph/dolphins", "cugraph/polbooks", "nwgraph/Erdos991", "nwgraph/GD98_c",
        "nwgraph/delaunay_n10", "nwgraph/sherman4"]},
    **{f"networkit/{name}": f"networkit/{name}.graph" for name in METIS if name != "karate"},
    "networkit/wiki-Vote.txt": "networkit/wiki-Vote.txt",
    "ca-GrQc": "snap_ca-GrQc/ca-GrQc.txt",
    "p2p-Gnutella08": "snap_p2p-Gnutella08/p2p-Gnutella08.txt",
    "cugraph/email-Eu-core": "cugraph/email-Eu-core.csv",
}  # fmt: skip


def test_graphs_have_the_known_counts(test_data: Path):
    answers = json.loads((test_data / "answers.json").read_text())["graph_stats"]
    assert set(GRAPHS) == set(answers)
    for key, name in GRAPHS.items():
        kind = "edges" if name.endswith(".csv") else None
        found, matrix = read_whole(open_source(test_data / name, kind=kind), 3, 2)
        stored = matrix != 0 if found.pattern else stored_pattern(test_data / name, kind)
        loops = int(np.count_nonzero(stored.diagonal()))
        either = stored | stored.T
        np.fill_diagonal(either, False)
        counts = (found.shape[0], int(stored.sum()), loops, int(either.sum()) // 2, int(either.sum(1).max()))
        one = answers[key]
        assert counts == (one["n"], one["nnz_dir"], one["selfloops"], one["und_edges"], one["max_deg"]), key


def stored_pattern(path: Path, kind: str | None) -> np.ndarray:
    # entries of value 0 are stored too
    _, block = read_here(open_source(path, kind=kind))
    return sp.csr_array(
        (np.ones(block.nnz, bool), block.columns, block.pointers), shape=block.shape
    ).toarray()
