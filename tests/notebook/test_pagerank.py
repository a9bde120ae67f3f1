"""01_pagerank gives NetworkX's ranks on real graphs, and the published answers about them."""

from __future__ import annotations

import gzip
import json
import re

import nbformat
import networkx as nx
import numpy as np
import pytest
import scipy.io
from kernels import PAGERANK, client_of, texts, with_parameters

pytestmark = pytest.mark.notebook

GRAPHS = {
    "wiki-Vote": "networkit/wiki-Vote.txt",
    "ca-GrQc": "snap_ca-GrQc",
    "p2p-Gnutella08": "snap_p2p-Gnutella08",
    "west0067": "lagraph/west0067.mtx",
    "karate": "networkit/karate.graph",
}


def path_of(test_data, name):
    path = test_data / GRAPHS[name]
    return path / f"{name}.txt" if path.is_dir() else path


def ranks_of(path, folder, **parameters):
    given = {"graph": None if path is None else str(path), **parameters}
    lines = "\n".join(f"{name} = {value!r}" for name, value in given.items())
    book = with_parameters(PAGERANK, lines, "np.savez('ranks.npz', rank=rank, names=names)")
    client_of(book, folder).execute()
    saved = np.load(folder / "ranks.npz")
    return dict(zip(saved["names"].tolist(), saved["rank"].tolist(), strict=True)), book


def markdowns(book):
    outputs = [output for cell in book.cells for output in cell.get("outputs", [])]
    found = [output.get("data", {}).get("text/markdown") for output in outputs]
    return [text for text in found if text is not None]


def expected(path):
    if path.suffix == ".mtx":
        graph = nx.from_scipy_sparse_array(scipy.io.mmread(path), create_using=nx.DiGraph)
    elif path.suffix == ".graph":
        lines = [line for line in path.read_text().splitlines() if not line.startswith("%")]
        graph = nx.DiGraph([(i, int(j) - 1) for i, line in enumerate(lines[1:]) for j in line.split()])
    else:
        graph = nx.read_edgelist(path, create_using=nx.DiGraph, nodetype=int, comments="#", data=False)
    return nx.pagerank(graph, weight=None, tol=1e-12, max_iter=1000)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "karate" else [pytest.mark.slow]) for name in GRAPHS]
)
def test_ranks_are_those_of_networkx(test_data, tmp_path, name):
    path = path_of(test_data, name)
    found, _ = ranks_of(path, tmp_path)
    wanted = expected(path)
    assert found.keys() == wanted.keys()
    assert sum(abs(found[vertex] - wanted[vertex]) for vertex in wanted) < 1e-6


def test_the_generated_graph_and_the_texts_of_its_summaries(tmp_path):
    found, book = ranks_of(None, tmp_path, top=3)
    assert len(found) == 2**14
    assert sum(found.values()) == pytest.approx(1)
    shown = texts(book)
    summaries = [text for text in shown if re.match(r"\d+ tasks?\b", text)]
    heads = [text.splitlines()[0] for text in summaries]
    assert len(heads) == 3
    assert all(re.fullmatch(r"\d+ tasks?(, \d+ results? reused)?", head) for head in heads)
    loops = [line for text in summaries for line in text.splitlines()[1:]]
    assert len(loops) == 1
    assert re.fullmatch(r"loop: \d+ iterations of a program of \d+ tasks, by 1 worker", loops[0])
    assert any("DistArray 16384 x 16384 float64, sparse" in text for text in shown)
    (compared,) = (text for text in markdowns(book) if "Python loop" in text)
    forms = [[word.strip() for word in line.split("|")[1:-1]] for line in compared.splitlines()[2:]]
    assert [form[0] for form in forms] == ["Python loop", "`mn.iterate`", "`mn.graph.pagerank`"]
    assert len({form[1] for form in forms}) == 1
    assert forms[0][2] == forms[1][2]
    assert [form[3] for form in forms] == ["none in 12 digits"] * 3
    (explained,) = (text for text in shown if text.startswith("recorded\n"))
    assert "each iteration of e" in explained
    assert "stored on workers" in explained
    (table,) = (text for text in markdowns(book) if "| PageRank |" in text)
    assert len(table.splitlines()) == 2 + 3
    best = max(found, key=found.get)
    assert f"| 1 | {best} | {found[best]:.6f} |" in table


def test_a_weighted_list_with_doubled_links_ranks_as_its_plain_graph(tmp_path):
    links = [(10, 20), (20, 30), (30, 10), (10, 30), (40, 10), (30, 50)]
    listed = tmp_path / "links.csv"
    listed.write_text("".join(f"{a},{b},{w}.5\n" for w, (a, b) in enumerate([*links, links[0], links[3]])))
    found, _ = ranks_of(listed, tmp_path, top=2)
    wanted = nx.pagerank(nx.DiGraph(links), weight=None, tol=1e-12)
    assert found == pytest.approx(wanted, abs=1e-7)


@pytest.mark.parametrize(
    "name",
    [
        "links.tsv.gz",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("links.CSV", "sparse.npz", "dense.npy")),
    ],
)
def test_files_are_read_by_their_suffix(tmp_path, name):
    links = [(0, 1), (1, 2), (2, 0), (0, 2), (3, 0)]
    matrix = np.zeros((4, 4))
    for weight, link in enumerate(links, start=2):
        matrix[link] = weight
    path = tmp_path / name
    match name:
        case "links.tsv.gz":
            path.write_bytes(gzip.compress("".join(f"{a}\t{b}\n" for a, b in links).encode()))
        case "links.CSV":
            path.write_text("".join(f"{a},{b},7.5\n" for a, b in links))
        case "sparse.npz":
            scipy.sparse.save_npz(path, scipy.sparse.csr_array(matrix))
        case "dense.npy":
            np.save(path, matrix)
    found, book = ranks_of(path, tmp_path)
    wanted = nx.pagerank(nx.DiGraph(links), weight=None, tol=1e-12)
    assert found == pytest.approx(wanted, abs=1e-7)
    assert markdowns(book)[0].startswith("4 pages, 5 links, 0 dangling pages.")


def test_a_matrix_that_is_no_graph_is_refused(tmp_path):
    scipy.io.mmwrite(tmp_path / "tall.mtx", scipy.sparse.eye_array(4, 3).tocoo())
    with pytest.raises(Exception, match="is 4 x 3; the links of a graph are a square matrix"):
        ranks_of(tmp_path / "tall.mtx", tmp_path)


def test_the_notebook_is_committed_without_outputs():
    book = nbformat.read(PAGERANK, as_version=4)
    assert all(
        not cell.outputs and cell.execution_count is None for cell in book.cells if cell.cell_type == "code"
    )
    assert [cell.id for cell in book.cells] == list(dict.fromkeys(cell.id for cell in book.cells))
    assert json.loads(PAGERANK.read_text())["nbformat_minor"] >= 5
