"""What an edge list had in it is shown after each load; a first line that counts what follows warns."""

from __future__ import annotations

import warnings
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matnb as mn
from matnb.errors import FileContentWarning, FileFormatError, OptionError
from matnb.io import lines
from matnb.io.source import SourceFacts, open_source
from matnb.lazy.recording import recording
from matnb.ops.creation import read_here

EDGES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=30)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for files."""
    return tmp_path_factory.mktemp("edges")


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut small files too."""
    monkeypatch.setattr(lines, "SMALLEST_PIECE", 1)


def text_of(edges: list[tuple[int, int]], head: str = "") -> str:
    return head + "".join(f"{one} {other}\n" for one, other in edges)


def told(path: Path, **options: object) -> tuple[SourceFacts, str]:
    found, block = read_here(open_source(path, **options), 3)
    assert found.edges is not None
    return found, found.edges.told(block.nnz)


@given(EDGES, st.booleans(), st.booleans())
def test_counts_are_those_of_networkx(
    folder: Path, edges: list[tuple[int, int]], directed: bool, relabel: bool
) -> None:
    path = folder / "a.txt"
    path.write_text(text_of(edges))
    graph = (nx.DiGraph if directed else nx.Graph)(edges)
    num_vertices = len(graph) if relabel else max(map(max, edges)) + 1
    merged = len(edges) - graph.number_of_edges()
    loops = sum(one == other for one, other in edges)
    _, text = told(path, directed=directed, relabel=relabel)
    counted = f"{num_vertices} vertices, {graph.number_of_edges()} edges, {merged} merged"
    assert text == f"{counted}, {loops} loop{'s' * (loops != 1)}"


@settings(max_examples=40)
@given(EDGES, st.integers(0, 5), st.booleans(), st.sampled_from([2, 3]))
def test_a_line_that_counts_what_follows_is_noticed(
    folder: Path, edges: list[tuple[int, int]], more: int, relabel: bool, columns: int
) -> None:
    path = folder / "b.txt"
    graph = nx.DiGraph(edges)
    num_vertices = (len(graph) if relabel else max(graph)) + more
    sizes = (num_vertices,) * (columns - 1) + (len(edges),)
    head = " ".join(map(str, sizes)) + "\n"
    body = "".join(f"{one} {other}{' 1' * (columns - 2)}\n" for one, other in edges)
    path.write_text(f"# c\n{head}{body}")
    assert told(path, relabel=relabel)[0].edges.sizes == sizes
    found, _ = told(path, relabel=relabel, skip=2)
    assert found.edges.sizes in ((), tuple(edges[0]) + (1,) * (columns - 2))
    assert found.edges.num_listed == len(edges)
    for wrong in (-1, 1):  # another count is that of nothing
        other = (*sizes[:-1], max(0, len(edges) + wrong))
        path.write_text(" ".join(map(str, other)) + f"\n{body}")
        assert told(path, relabel=relabel)[0].edges.sizes == ()


@pytest.mark.parametrize("edges", ["0 1\n1 2\n", "1 2\n2 3\n3 1\n", "5 2\n", "0 2\n0 1\n1 2\n"])
def test_edges_are_no_counts(folder: Path, edges: str) -> None:
    path = folder / "c.txt"
    path.write_text(edges)
    assert told(path)[0].edges.sizes == ()


@pytest.mark.session("two workers")
def test_it_is_told(folder: Path) -> None:
    path = folder / "d.txt"
    path.write_text("4 5\n1 2\n2 3\n2 3\n3 3\n4 1\n")
    with pytest.warns(FileContentWarning, match=r"d\.txt'?: its first line, 4 5, contains .* skip=1"):
        mn.load(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graph = mn.load(path, skip=1)
    np.testing.assert_array_equal(graph.labels.compute(), [1, 2, 3, 4])
    assert graph.nnz == 4
    with recording("cell") as record:
        mn.load(path, skip=1, directed=False)
    assert [note.partition(": ")[2] for note in record.notes] == ["4 vertices, 4 edges, 1 merged, 1 loop"]
    counts = [file.counts for file in mn.stamp().files if file.path == str(path)]
    assert counts == ["4 vertices, 4 edges, 1 merged, 1 loop"]
    assert counts[0] in mn.stamp().text


def test_lines_are_skipped(folder: Path) -> None:
    path = folder / "e.csv"
    path.write_text("made by a machine\n\na,b\n1,2\n3,4\n")
    found, block = read_here(open_source(path, skip=2))
    assert found.names == ("a", "b")
    np.testing.assert_array_equal(block.values, [[1, 2], [3, 4]])
    found, block = read_here(open_source(path, skip=3, header=False), 2)
    np.testing.assert_array_equal(block.values, [[1, 2], [3, 4]])
    assert open_source(path, skip=2).identity() != open_source(path, skip=3, header=False).identity()
    for wrong in (-1, 1.0, True, "x"):
        with pytest.raises(OptionError, match="skip="):
            open_source(path, skip=wrong)


def test_a_header_before_weighted_edges_is_named(folder: Path) -> None:
    path = folder / "weighted.e"
    path.write_text("4 3\n0 1 1\n1 2 1\n2 3 1\n")
    with pytest.raises(FileFormatError, match=r"line 2: 3 columns .* skip=1"):
        read_here(open_source(path))
    found, _ = read_here(open_source(path, skip=1))
    assert found.shape == (4, 4)
    with pytest.raises(FileFormatError, match="4 lines, and skip=9"):
        open_source(path, skip=9)


@pytest.mark.parametrize("wrong", [5, None, b"a.e"])
def test_what_is_no_path_is_refused(wrong: object) -> None:
    with pytest.raises(OptionError, match="is not a file: give a path"):
        open_source(wrong)
