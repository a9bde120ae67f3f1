"""What the format number of a METIS file changes, by the graph of the METIS manual (figure 2)."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from reading import read_whole

from matnb.io.source import open_source
from matnb.ops.creation import read_here

pytestmark = pytest.mark.usefixtures("small_chunks")

# the seven vertices and eleven edges of the manual, with its weights
WEIGHTS = {(1, 5): 1, (1, 3): 2, (1, 2): 1, (2, 3): 2, (2, 4): 1, (3, 4): 2, (3, 5): 3, (4, 6): 2, (4, 7): 5,
           (5, 6): 2, (6, 7): 6}  # fmt: skip
VERTEX_WEIGHTS = [4, 2, 5, 3, 1, 6, 2]


def metis(code: str, num_weights: int, sized: bool, weighted: bool) -> str:
    lines = [f"7 11 {code}".strip()]
    for vertex in range(1, 8):
        words = [9] * sized + VERTEX_WEIGHTS[vertex - 1 : vertex] * num_weights
        for (one, two), weight in WEIGHTS.items():
            if vertex in (one, two):
                words += [one + two - vertex, weight][: 1 + weighted]
        lines.append(" ".join(map(str, words)))
    return "\n".join(["% a comment", *lines[:3], "% another", *lines[3:]]) + "\n"


@pytest.mark.parametrize(
    ("code", "num_weights", "sized", "weighted"),
    [
        ("", 0, False, False),
        ("0", 0, False, False),
        ("1", 0, False, True),
        ("001", 0, False, True),
        ("10", 1, False, False),
        ("11", 1, False, True),
        ("011 3", 3, False, True),
        ("100", 0, True, False),
        ("101", 0, True, True),
        ("110 2", 2, True, False),
        ("111", 1, True, True),
    ],
)
def test_formats(write_file, code: str, num_weights: int, sized: bool, weighted: bool):
    wanted = np.zeros((7, 7))
    for (one, two), weight in WEIGHTS.items():
        wanted[one - 1, two - 1] = wanted[two - 1, one - 1] = weight if weighted else 1
    text = metis(code, num_weights, sized, weighted)
    write_file("a.graph.gz", gzip.compress(text.encode()))
    for path in (write_file("a.graph", text), write_file("b.graph", text.replace("\n", " \r\n"))):
        for name in (path, path.with_name("a.graph.gz")):
            for pieces, counts in ((1, 1), (5, 3)):
                found, matrix = read_whole(open_source(name), pieces, counts)
                assert np.array_equal(matrix, wanted)
                assert (found.pattern, found.nnz) == (not weighted, 22)


@pytest.mark.parametrize("ending", ["", "\n", "\n\n", "\n\n\n"])
def test_a_blank_line_is_a_vertex_and_more_at_the_end_are_nothing(write_file, ending: str):
    path = write_file("a.graph", "5 1\n\n4\n\n2\n" + ending)
    if ending == "":
        path.write_text("5 1\n\n4\n\n2\n\n")
    found, matrix = read_whole(open_source(path), 4) if ending else read_whole(open_source(path))
    assert found.shape == (5, 5)
    assert np.argwhere(matrix).tolist() == [[1, 3], [3, 1]]


def test_real_weights(write_file):
    path = write_file("a.graph", "2 1 1\n2 0.1\n1 0.1\n")
    assert read_whole(open_source(path))[1].tolist() == [[0, 0.1], [0.1, 0]]


def test_no_edge(write_file):
    found, block = read_here(open_source(write_file("a.graph", "3 0\n\n\n\n")))
    assert found.shape == block.shape == (3, 3)
    assert block.nnz == 0
