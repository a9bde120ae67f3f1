"""What the options of edge lists do, against NetworkX and small cases worked out by hand."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import read_whole

import matnb as mn
from matnb.errors import FileContentWarning, FileFormatError, MissingFileError, OptionError
from matnb.io.source import open_source
from matnb.ops.creation import read_here

pytestmark = pytest.mark.usefixtures("small_pieces")
LISTED = "# a comment\n7 3 2\n3,7,5\n3\t3 1\n\n% another\n7 3 4  # late\n90 7 8\n"  # ids 3, 7, 90


def read(path, pieces: int = 3, **options) -> list[list[float]]:
    return read_whole(open_source(path, **options), pieces)[1].tolist()


@pytest.mark.parametrize(
    ("duplicates", "directed", "undirected"),
    [
        ("sum", (5, 6), 11),
        ("first", (5, 2), 2),
        ("merge", (5, 2), 2),
        ("last", (5, 4), 4),
        (None, (5, 4), 4),
        ("min", (5, 2), 2),
        ("max", (5, 4), 5),
    ],
)
def test_duplicates(write_file, duplicates: str | None, directed: tuple[int, int], undirected: int):
    path = write_file("a.txt", LISTED)
    up, down = directed
    assert read(path, duplicates=duplicates) == [[1, up, 0], [down, 0, 0], [0, 8, 0]]
    both = read(path, duplicates=duplicates, directed=False)
    assert both == [[1, undirected, 0], [undirected, 0, 8], [0, 8, 0]]


def test_weights(write_file):
    path = write_file("a.txt", LISTED)
    found, block = read_here(open_source(path, weights=False), 3)
    assert found.pattern
    assert block.values is None
    assert read(path, weights=False) == [[1, 1, 0], [1, 0, 0], [0, 1, 0]]
    assert read(path, weights=False, duplicates="sum") == [[1, 1, 0], [2, 0, 0], [0, 1, 0]]
    found, _ = read_here(open_source(path, weights=False, duplicates="sum"))
    assert not found.pattern
    four = write_file("b.txt", "1 2 0.5 2008\n2 1 0.25 2009\n")
    assert read(four, weights=True) == [[0, 0.5], [0.25, 0]]
    with pytest.raises(FileFormatError, match="4 columns"):
        open_source(four)
    with pytest.raises(FileFormatError, match="2 columns where an edge needs 3"):
        open_source(write_file("c.txt", "1 2\n"), weights=True)


def test_lines_with_and_without_weights(write_file):
    path = write_file("a.txt", "1 2\n2 3 0.5\n\n3 4\n4 5 7\n")
    for pieces in (1, 3):
        assert np.argwhere(np.array(read(path, pieces, weights=False))).tolist() == [
            [0, 1],
            [1, 2],
            [2, 3],
            [3, 4],
        ]
    with pytest.raises(FileFormatError, match="weights=False reads the edges without them"):
        read(path)
    with pytest.raises(FileFormatError, match=r"line 4: 2 columns .* weights=False reads"):
        read(path, skip=1)
    with pytest.raises(FileFormatError, match="line 3: 1 columns where"):
        read(write_file("b.txt", "1 2\n2 3 1\n4\n"), weights=False)


def test_names_of_columns_are_told_from_names_of_vertices(write_file):
    path = write_file("a.txt", "# of\nsrc,dst,w\n1,2,3\n2,3,4\n")
    with pytest.raises(
        FileFormatError, match=r"'src' is not a whole number: if it is .*, skip=2 leaves that line out"
    ):
        read(path)
    assert read(path, skip=2) == [[0, 3, 0], [0, 0, 4], [0, 0, 0]]
    with pytest.raises(FileFormatError, match="a list of names is read by"):
        read(write_file("b.txt", "alice bob\nbob carol\n"))


@pytest.fixture
def interpreter() -> Iterator[None]:
    with mn.start(engine="interpret"):
        yield
    mn.stop()


NAMED = {
    "spaces": "alice bob\nbob carol\n",
    "commas": "alice,bob\nbob,carol\n",
    "commas and spaces": "alice, bob\nbob, carol\n",
    "tabs": "alice\tbob\nbob\tcarol\n",
    "names with spaces": "alice,bob\nbob,carol of\n",
    "weights": "alice bob 2\nbob carol 3\n",
    "weights behind commas": "alice,bob,2\nbob,carol,3\n",
    "attributes": "alice bob {'weight': 2}\nbob carol {}\n",
    "quotes": '"alice","bob"\n"bob","carol"\n',
    "a number first": "alice 2\n2 carol\n",
}


@pytest.mark.parametrize("name", NAMED)
def test_the_way_of_a_list_of_names_reads_it(name, write_file, interpreter):
    path = write_file("a.txt", NAMED[name])
    with pytest.raises(FileFormatError, match="a list of names is read by") as told:
        read(path, weights=False)
    (way,) = re.findall(r"is read by (.+?); kind=", str(told.value))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        A = eval(way, {"mn": mn, "nx": nx, "pd": pd, "path": path})
    assert A.shape == (3, 3)
    assert A.labels[0] == "alice"
    assert str(A.labels[2]).startswith("carol")


def test_edges_with_attributes_are_told(write_file, interpreter):
    graph = nx.DiGraph([(3, 1), (1, 2), (2, 3)])
    graph[1][2]["weight"] = 4.0
    path = write_file("a.txt", "\n".join(nx.generate_edgelist(graph)) + "\n")
    with pytest.raises(FileFormatError, match=r"line 1: has attributes as a dict.* weights=False") as told:
        read(path)
    (way,) = re.findall(r"mn\.asarray\(.+\)\)", str(told.value))
    A = eval(way, {"mn": mn, "nx": nx, "path": path})
    assert (A.toarray() == nx.to_numpy_array(graph)).all()
    assert (np.array(read(path, weights=False)) > 0).sum() == 3


@pytest.mark.parametrize("text", ["# a\n", "%alice,bob\n"])
def test_a_graph_without_vertices_is_warned_of(text, write_file, interpreter):
    with pytest.warns(FileContentWarning, match="no vertices; comments="):
        assert mn.load(write_file("a.txt", text)).shape == (0, 0)
    with pytest.warns(FileContentWarning, match="no vertices: nx.read_edgelist"):
        assert mn.asarray(nx.DiGraph()).shape == (0, 0)


def test_self_loops(write_file):
    path = write_file("a.txt", "3 3\n3 5\n9 9\n")
    assert read(path) == [[1, 1, 0], [0, 0, 0], [0, 0, 1]]
    assert read_here(open_source(path, directed=False))[0].nnz == 4
    # as in the list without them: a vertex that has no other edge is not there
    assert read(path, self_loops="drop") == [[0, 1], [0, 0]]


def test_ids_as_numbers(write_file):
    path = write_file("a.txt", "0 2\n2 4\n")
    source = open_source(path, relabel=False)
    assert np.argwhere(read_whole(source)[1]).tolist() == [[0, 2], [2, 4]]
    assert not read_here(source)[0].has_labels
    assert read_here(open_source(path, relabel=False, num_vertices=9))[0].shape == (9, 9)
    with pytest.raises(FileFormatError, match=r"line 2: vertex 4 is not in 0 to 3"):
        read_here(open_source(path, relabel=False, num_vertices=4))
    with pytest.raises(FileFormatError, match="relabel=True"):
        read_here(open_source(write_file("b.txt", f"0 {10**15}\n"), relabel=False))


def test_large_and_scattered_ids(write_file):
    ids = [5, 2**31 - 1, 2**31, 10**15, 2**63 - 1]
    text = "".join(f"{one}\t{two}\n" for one in ids for two in ids if one < two)
    source = open_source(write_file("a.txt", text))
    found, matrix = read_whole(source, 4, 2)
    assert found.has_labels
    assert np.array_equal(matrix, np.triu(np.ones((5, 5)), 1))
    context = source.merge([source.summary(source.parse(piece)) for piece in source.pieces(4)])
    assert source.labels(context, 1, 5).values.tolist() == ids[1:]


def test_vertices_without_an_edge(write_file):
    write_file("a.v", "2\n5\n11\n")
    path = write_file("a.e", "5 11 0.5\n")
    assert read(path) == [[0, 0, 0], [0, 0, 0.5], [0, 0, 0]]
    listed = write_file("nodes.txt", "# ids\n1\n\n")
    assert read(path, vertices=listed) == [[0, 0, 0], [0, 0, 0.5], [0, 0, 0]]
    assert len(read(write_file("b.e", "5 11 0.5\n"))) == 2
    assert len(read(path, relabel=False)) == 12
    with pytest.raises(MissingFileError, match="nowhere"):
        open_source(path, vertices=listed.with_name("nowhere"))
    with pytest.raises(FileFormatError, match=r"nodes.txt, line 2: 'x'"):
        read_here(open_source(path, vertices=write_file("nodes.txt", "1\nx\n")))


def test_characters_that_begin_a_comment(write_file):
    path = write_file("a.txt", "; vertices 2\n0 1 ; the first\n1 0;late\n! 0 0\n")
    assert read(path, comments=";!") == [[0, 1], [1, 0]]
    with pytest.raises(FileFormatError, match=r"line 4.*!"):
        read(path, comments=";")
    assert read(write_file("b.txt", "0 1\n"), comments="") == [[0, 1], [0, 0]]
    with pytest.raises(FileFormatError, match="#"):
        read(write_file("c.txt", "0 1\n# 1 0\n"), comments="")
    ids = {open_source(path, comments=one).identity() for one in (";!", "!;", ";!%")}
    assert len(ids) == 3


@pytest.mark.parametrize("bad", [b"#", "#1", "- ", ",", "//x", "\N{DEGREE SIGN}", 7], ids=repr)
def test_characters_that_numbers_have_begin_no_comment(write_file, bad: object):
    with pytest.raises(OptionError, match="comments="):
        open_source(write_file("a.txt", "0 1\n"), comments=bad)


def test_no_edge(write_file):
    found, block = read_here(open_source(write_file("a.txt", "# nothing\n")))
    assert found.shape == block.shape == (0, 0)


EDGES = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(1, 9)), min_size=1, max_size=25)


@given(EDGES, st.booleans(), st.booleans(), st.sampled_from([" ", "\t", ",", " , ", "  "]))
def test_as_networkx(tmp_path_factory, edges, directed: bool, weighted: bool, separator: str):
    path = tmp_path_factory.mktemp("edges") / "a.txt"
    rows = [edge[: 3 if weighted else 2] for edge in edges]
    path.write_text("".join(separator.join(map(str, row)) + "\n" for row in rows))
    plain = [" ".join(map(str, row)).encode() for row in rows]
    graph = (nx.read_weighted_edgelist if weighted else nx.read_edgelist)(
        plain, nodetype=int, create_using=nx.DiGraph if directed else nx.Graph
    )
    wanted = nx.to_numpy_array(graph, sorted(graph), weight="weight" if weighted else None)
    assert read(path, 4, directed=directed) == wanted.tolist()


@pytest.mark.parametrize("name", ["year", "weight", "w"])
def test_a_header_says_which_column_becomes_the_weights(tmp_path, name: str) -> None:
    path = tmp_path / "cites.csv"
    path.write_text(f"citing,cited,{name}\n5,7,1999\n7,9,2001\n")
    said = f"skip=1 leaves that line out.*; the third column, '{name}', becomes weights then: weights=False"
    with pytest.raises(FileFormatError, match=said):
        open_source(path, kind="edges")
    with pytest.raises(FileFormatError) as error:
        open_source(path, kind="edges", weights=False)
    assert "weights" not in str(error.value)
    assert read(path, kind="edges", skip=1, weights=False) == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
    path.write_text("citing,cited\n5,7\n7,9\n")
    with pytest.raises(FileFormatError) as error:
        open_source(path, kind="edges")
    assert "weights" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "is_list"),
    [
        ("0 1 1.0\n1 2 2.0\n", True),
        ("0,1\n1,2\n", True),
        ("0.5,1,2\n1,2,3\n", False),
        ("0,1,2,3\n1,2,3,4\n", False),
    ],
)
def test_a_table_that_may_be_a_list_of_edges_names_their_kind(tmp_path, text: str, is_list: bool) -> None:
    path = tmp_path / "email.csv"
    path.write_text(text)
    with pytest.warns(FileContentWarning, match="header=None reads it as a row") as told:
        open_source(path)
    assert ('kind="edges"' in str(told[0].message)) is is_list
