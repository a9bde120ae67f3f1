"""Matrix Market against scipy.io.mmread where the published files have no example."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from reading import read_whole

from matnb.blocks.formats import Csr, Empty
from matnb.io.source import open_source
from matnb.ops.creation import read_blocks, read_here

pytestmark = pytest.mark.usefixtures("small_chunks")
RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric"])
@pytest.mark.parametrize("field", ["real", "integer"])
@pytest.mark.parametrize("layout", ["coordinate", "array"])
def test_as_scipy(tmp_path, layout: str, field: str, symmetry: str):
    matrix = RANDOM.integers(-9, 9, (11, 11)) * (RANDOM.random((11, 11)) < 0.6)
    if field == "real":
        matrix = matrix * np.pi
    if symmetry != "general":
        matrix = np.tril(matrix, -1) + np.tril(matrix, -1).T * (1 if symmetry == "symmetric" else -1)
    path = tmp_path / "a.mtx"
    whole = sp.coo_array(matrix) if layout == "coordinate" else matrix
    scipy.io.mmwrite(path, whole, symmetry=symmetry, precision=17)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    (tmp_path / "a.mtx.gz").write_bytes(gzip.compress(path.read_bytes()))
    wanted = scipy.io.mmread(path)
    wanted = wanted.toarray() if layout == "coordinate" else wanted
    for name in ("a.mtx", "a.mtx.gz"):
        for pieces, counts in ((1, 1), (4, 3)):
            found, read = read_whole(open_source(tmp_path / name), pieces, counts)
            assert found.dtype == (np.float64 if field == "real" else np.int64)
            assert found.sparse is (layout == "coordinate")
            assert np.array_equal(read, wanted)


@pytest.mark.parametrize("field", ["real", "integer", "pattern"])
def test_duplicates_are_summed_and_zeros_kept(write_file, field: str):
    value = "" if field == "pattern" else " {}"
    lines = [f"{row} {column}" + value.format(number) + "\n" for number, (row, column) in
             enumerate([(1, 1), (3, 2), (1, 1), (2, 3), (3, 2), (3, 2)])]  # fmt: skip
    path = write_file("a.mtx", f"%%MatrixMarket matrix coordinate {field} general\n3 3 6\n" + "".join(lines))
    found, block = read_here(open_source(path), 3)
    assert isinstance(block, Csr)
    assert np.array_equal(read_whole(open_source(path), 3)[1], scipy.io.mmread(path).toarray())
    assert block.nnz == 3
    assert found.nnz == 6


def test_a_pattern_has_no_values(write_file):
    path = write_file("a.mtx", "%%MatrixMarket matrix coordinate pattern symmetric\n4 4 2\n2 1\n4 4\n")
    found, blocks = read_blocks(open_source(path), 2)
    assert found.pattern
    assert found.nnz == 3
    assert isinstance(blocks[0], Csr)
    assert blocks[0].values is None
    assert blocks[0].columns.dtype == blocks[0].pointers.dtype == np.int32


def test_the_words_of_the_header_in_any_case(write_file):
    path = write_file(
        "a.mtx", "%%MatrixMarket MATRIX Coordinate Real GENERAL\n\n% comment\n\n 2  2 1 \n\n2 2 1e3\n\n"
    )
    assert read_whole(open_source(path))[1].tolist() == [[0, 0], [0, 1000]]


def test_no_entry_and_no_row(write_file):
    for rows, columns in ((3, 2), (0, 2), (0, 0)):
        path = write_file("a.mtx", f"%%MatrixMarket matrix coordinate real general\n{rows} {columns} 0\n")
        found, block = read_here(open_source(path), 2)
        assert found.shape == block.shape == (rows, columns)
        assert isinstance(block, Empty)


def test_a_hypersparse_block_is_empty_without_allocating(write_file):
    path = write_file(
        "a.mtx", f"%%MatrixMarket matrix coordinate real general\n{2**31 - 1} {2**31 - 1} 1\n5 7 1.5\n"
    )
    source = open_source(path)
    parsed = source.parse(source.pieces(1)[0])
    context = source.merge([source.summary(parsed)])
    region = ((10, 2**31 - 1), (0, 2**31 - 1))
    assert isinstance(source.assemble([source.part(parsed, context, region)], context, region), Empty)
