"""Any pieces, chunks and blocks give the same array: a piece owns the lines that start in it."""

from __future__ import annotations

import gzip
import os
import pickle
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from reading import read_grid, read_whole

from matnb.blocks.grid import Grid
from matnb.errors import FileFormatError
from matnb.io import lines
from matnb.io.files import find_file
from matnb.io.rmat import Rmat
from matnb.io.source import Source, open_source
from matnb.ops.creation import read_blocks

WORDS = st.text("ab ,é", max_size=12)
NEWLINE = st.sampled_from(["\n", "\r\n"])


@given(
    st.lists(WORDS, max_size=12),
    NEWLINE,
    st.booleans(),
    st.integers(1, 9),
    st.integers(1, 40),
    st.integers(0, 20),
    st.booleans(),
)
def test_pieces_own_each_line_once(
    tmp_path_factory,
    words: list[str],
    newline: str,
    ended: bool,
    num_pieces: int,
    chunk: int,
    begin: int,
    zipped: bool,
):
    text = newline.join(words) + (newline if ended and words else "")
    data = b"h" * max(0, begin - 1) + (b"\n" if begin else b"") + text.encode()
    path = tmp_path_factory.mktemp("pieces") / ("a.txt.gz" if zipped else "a.txt")
    path.write_bytes(gzip.compress(data) if zipped else data)
    file = find_file(path)
    with patch.multiple(lines, SMALLEST_PIECE=1, CHUNK_BYTES=chunk):
        read = []
        for piece in lines.text_pieces(file, begin, num_pieces):
            for one in lines.read_chunks(file, piece, begin):
                read.append(one.text.bytes_at(lines.MARGIN, one.text.buffer.size))
                starts = [0, *(place + 1 for place, byte in enumerate(data) if byte == ord("\n"))]
                found = [place for place in starts if data.startswith(read[-1].rstrip(b"\n"), place)]
                if read[-1].strip() and len(found) == 1:
                    assert one.line_at(lines.MARGIN) == data.count(b"\n", 0, found[0]) + 1
    wanted = data[begin:]
    if wanted and not wanted.endswith(b"\n"):
        wanted += b"\n"
    assert b"".join(read) == wanted


EDGES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(-3, 3)), min_size=1, max_size=30)


@given(EDGES, st.integers(1, 12), st.integers(1, 60), st.integers(1, 4), st.data())
def test_reading_does_not_depend_on_pieces_chunks_and_blocks(
    tmp_path_factory,
    edges: list[tuple[int, int, int]],
    num_pieces: int,
    chunk: int,
    counts: int,
    data: st.DataObject,
):
    folder = tmp_path_factory.mktemp("pieces")
    duplicates = data.draw(st.sampled_from(["sum", "first", "last", "min", "max", "merge"]))
    directed = data.draw(st.booleans())
    symmetry = data.draw(st.sampled_from(["general", "symmetric", "skew-symmetric"]))
    listed = "".join(f"{u} {v} {w}\n" for u, v, w in edges)
    (folder / "a.txt").write_text(f"# comment\n{listed}")
    shifted = "".join(f"{u + 1} {v + 1} {w}\n" for u, v, w in edges)
    head = f"%%MatrixMarket matrix coordinate integer {symmetry}\n10 10 {len(edges)}\n"
    (folder / "a.mtx").write_text(head + shifted)
    for source in (
        open_source(folder / "a.txt", duplicates=duplicates, directed=directed),
        open_source(folder / "a.mtx"),
    ):
        once = read_whole(source)
        with patch.multiple(lines, SMALLEST_PIECE=1, CHUNK_BYTES=chunk):
            again = read_whole(source, num_pieces, counts)
        assert once[0] == again[0]
        assert np.array_equal(once[1], again[1])


@pytest.mark.usefixtures("small_chunks")
def test_sums_of_duplicates_do_not_depend_on_pieces(write_file):
    # three addends, so that another order would give another last bit
    values = np.random.default_rng(3).random(300) * 10.0 ** np.random.default_rng(4).integers(-9, 9, 300)
    text = "".join(
        f"{number % 5 + 1} {number % 4 + 1} {value:.17g}\n" for number, value in enumerate(values.tolist())
    )
    for symmetry in ("general", "symmetric"):
        head = f"%%MatrixMarket matrix coordinate real {symmetry}\n5 5 300\n"
        source = open_source(write_file("a.mtx", head + text))
        whole = {read_whole(source, pieces, counts)[1].tobytes() for pieces in (1, 2, 9) for counts in (1, 3)}
        assert len(whole) == 1


SOURCES = ["a.mtx", "a.txt", "a.graph", "a.csv", "a.npy", "a.npz"]


@pytest.fixture(params=SOURCES)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / request.param
    match path.suffix:
        case ".mtx":
            path.write_text("%%MatrixMarket matrix coordinate real general\n3 3 2\n1 1 1\n2 3 4\n")
        case ".txt":
            path.write_text("10 20\n20 30\n")
        case ".graph":
            path.write_text("3 2\n2\n1 3\n2\n")
        case ".csv":
            path.write_text("a,b,c\n1,2,3\n4,5,6\n7,8,9\n")
        case ".npy":
            np.save(path, np.arange(9.0).reshape(3, 3))
        case ".npz":
            sp.save_npz(path, sp.csr_array(np.arange(9.0).reshape(3, 3)))
    return path


def everything(source: Source) -> bytes:
    grid = Grid(((0, 1, 3), (0, 2, 3)))
    return read_grid(source, 3, grid)[1].tobytes()


def test_sources_are_values(path: Path):
    one, two = open_source(path), open_source(path)
    assert one == two
    assert hash(one) == hash(two)
    assert one.identity() == two.identity()
    assert all(isinstance(word, str | int) for word in one.identity())
    assert str(path) in one.identity()
    assert len(repr(one)) < len(repr(str(path))) + 30
    assert one.estimated_entries() > 0
    sent = pickle.loads(pickle.dumps(one))
    assert sent == one
    assert everything(sent) == everything(one)
    assert open_source(f"file://{path}") == one
    before = path.read_bytes()
    path.write_bytes(before + (b" " if path.suffix not in (".npy", ".npz") else b""))
    if path.suffix not in (".npy", ".npz"):
        assert open_source(path).identity() != one.identity()


@pytest.mark.parametrize("anew", [False, True], ids=["in place", "replaced"])
def test_a_file_rewritten_in_its_size_and_time_is_another(write_file, anew: bool):
    path = write_file("a.txt", "1 2\n")
    old, before = open_source(path), path.stat()
    if anew:
        os.replace(write_file("b.txt", "3 4\n"), path)
    while path.stat().st_ctime_ns == before.st_ctime_ns or path.read_text() != "3 4\n":
        path.write_text("3 4\n")  # again until the clock of the file system has gone on
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    new = open_source(path)
    assert new != old
    assert new.identity() != old.identity()
    with pytest.raises(FileFormatError, match="has changed since it was opened: load it again"):
        old.file.open()  # of the same size and time, but with other content
    path.write_text("5 6 7\n")
    with pytest.raises(FileFormatError, match="has changed since it was opened: load it again"):
        old.file.open()


@pytest.mark.usefixtures("small_pieces")
def test_what_goes_between_workers_is_picklable(path: Path):
    for source in (open_source(path), Rmat(4)):
        parsed = [source.parse(pickle.loads(pickle.dumps(piece))) for piece in source.pieces(3)]
        context = source.merge([pickle.loads(pickle.dumps(source.summary(one))) for one in parsed])
        context = pickle.loads(pickle.dumps(context))
        region = ((0, 2), (1, 3))
        parts = [pickle.loads(pickle.dumps(source.part(one, context, region))) for one in parsed]
        assert source.assemble(parts, context, region).shape == (2, 2)
        labels = source.labels(context, 1, 3).values
        assert labels.dtype == np.int64
        assert labels.tolist() == ([20, 30] if path.suffix == ".txt" and source != Rmat(4) else [1, 2])


@pytest.mark.usefixtures("small_pieces")
def test_regions_without_an_element(path: Path):
    for source in (open_source(path), Rmat(4)):
        parsed = [source.parse(piece) for piece in source.pieces(3)]
        context = source.merge([source.summary(one) for one in parsed])
        for region in (((0, 0), (0, 3)), ((1, 2), (2, 2))):
            parts = [source.part(one, context, region) for one in parsed]
            block = source.assemble(parts, context, region)
            assert block.shape == (region[0][1] - region[0][0], region[1][1] - region[1][0])


def test_options_are_part_of_the_identity(write_file):
    edges, table = write_file("a.txt", "1 2 5\n2 3 6\n"), write_file("a.csv", "a;b,c;d\n1,2\n")
    vertices = write_file("a.v", "1\n2\n3\n4\n")
    options = [{}, {"relabel": False}, {"directed": False}, {"weights": False}, {"self_loops": "drop"},
               {"duplicates": "sum"}, {"relabel": False, "num_vertices": 9},
               {"vertices": vertices}]  # fmt: skip
    assert len({open_source(edges, **one).identity() for one in options}) == len(options)
    sources = [open_source(table), open_source(table, columns=["c;d"]), open_source(table, delimiter=";")]
    assert len({source.identity() for source in sources}) == 3


def test_pieces_share_the_work(write_file):
    source = open_source(write_file("a.txt", "1 2\n" * 100_000))
    pieces = source.pieces(4)
    assert [piece.stop - piece.start for piece in pieces] == [100_000] * 4
    assert len(source.pieces(1000)) == 400_000 // lines.SMALLEST_PIECE
    found, blocks = read_blocks(source, 4)
    assert (found.nnz, blocks[0].nnz) == (100_000, 1)
