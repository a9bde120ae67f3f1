"""Every bad file gives one error with file, line and reason, soon, and no memory near what it claims."""

from __future__ import annotations

import pickle
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
import scipy.io
from bad_files import BAD, GOOD, REAL

import matnb as mn
from matnb.errors import FileFormatError, MissingFileError, OptionError
from matnb.io.source import open_source
from matnb.ops.creation import read_here

_SOON = (
    5  # seconds of the processor, several times what is taken: a slip that makes work quadratic takes minutes
)


@pytest.fixture
def soon_and_small() -> Iterator[None]:
    """Fail a test that takes long to compute, or allocates much more than its file of at most 4 MB."""
    tracemalloc.start()
    begin = time.process_time()
    yield
    seconds, (_, peak_bytes) = time.process_time() - begin, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert seconds < _SOON
    assert peak_bytes < 40_000_000


@pytest.mark.usefixtures("small_pieces", "soon_and_small")
@pytest.mark.parametrize(
    ("name", "content", "line", "reason"), BAD, ids=[f"{name}-{reason}" for name, _, _, reason in BAD]
)
def test_bad_file(write_file, name: str, content: bytes | str, line: int | None, reason: str):
    path = write_file(name, content)
    for num_pieces in (1, 3):
        with pytest.raises(FileFormatError) as caught:
            read_here(open_source(path), num_pieces)
        error = pickle.loads(pickle.dumps(caught.value))
        assert str(error).startswith(f"{path}, line {line}: " if line else f"{path}: ")
        assert reason in error.reason
        assert error.line == line
        assert "\n" not in str(error)
        assert len(str(error)) < 600


@pytest.mark.parametrize("suffix", ["mtx", "mtx.gz", "npz", "npy", "csv", "graph", "e", "txt"])
def test_what_is_no_file(tmp_path: Path, suffix: str):
    folder = tmp_path / f"folder.{suffix}"
    folder.mkdir()
    with pytest.raises(FileFormatError, match="directory"):
        open_source(folder)
    with pytest.raises(MissingFileError, match=r"missing.*No such file"):
        open_source(tmp_path / f"missing.{suffix}")
    with pytest.raises(MissingFileError):
        open_source(f"\0.{suffix}")
    empty = tmp_path / f"empty.{suffix}"
    empty.touch()
    with pytest.raises(FileFormatError, match="zero bytes"):
        open_source(empty)


def test_a_file_that_changed_is_refused(write_file):
    source = open_source(write_file("a.mtx", GOOD))
    write_file("a.mtx", GOOD + "\n")
    with pytest.raises(FileFormatError, match="changed"):
        read_here(source)
    Path(source.file.path).unlink()
    with pytest.raises(MissingFileError, match="cannot be read here"):
        read_here(source)


def test_bad_options_name_what_there_is(write_file):
    path = write_file("a.mtx", GOOD)
    with pytest.raises(OptionError, match=r"no option 'header'.*there are none"):
        open_source(path, header=True)
    with pytest.raises(OptionError, match=r"no kind 'excel'.*'matrixmarket' \(.mtx"):
        open_source(path, kind="excel")
    with pytest.raises(OptionError, match=r"no reader for this suffix.*'csv'"):
        open_source(write_file("a.abc", "x"))
    with pytest.raises(
        OptionError, match=r"a\.xls: is not read here; mn\.table\(pandas\.read_excel\(path\)\)"
    ):
        open_source(write_file("a.xls", "x"))
    for name, start in (("a.nc", "x"), ("b.nc4", "x"), ("c.hdf5", "x")):
        with pytest.raises(OptionError, match=r"mn\.asarray\(h5py\.File\(path\)"):
            open_source(write_file(name, start))


def test_files_of_netcdf_3_are_scipys(tmp_path):
    for name in ("a.nc", "a.cdf"):
        path = tmp_path / name
        with scipy.io.netcdf_file(path, "w") as file:
            file.createDimension("time", 3)
            file.createVariable("sst", "f4", ("time",))[:] = [1, 2, 3]
        told = r'mn\.asarray\(scipy\.io\.netcdf_file\(path, mmap=False\)\.variables\["name"\]\[:\]\)'
        with pytest.raises(OptionError, match=told):
            mn.load(path)
        with mn.start(engine="interpret"):
            read = mn.asarray(scipy.io.netcdf_file(path, mmap=False).variables["sst"][:])
            assert read.tolist() == [1, 2, 3]


@pytest.mark.parametrize(("folder", "name"), [("a.zarr", "x"), ("b", ".zgroup"), ("c", "zarr.json")])
def test_folders_of_zarr_are_zarrs(tmp_path, folder, name):
    (tmp_path / folder).mkdir()
    (tmp_path / folder / name).write_text("{}")
    with pytest.raises(OptionError, match=r"mn\.asarray\(zarr\.open\(path\)"):
        mn.load(tmp_path / folder)


def test_options_of_readers_name_what_there_is(write_file):
    for option in ({"relabel": 1}, {"directed": "no"}, {"duplicates": "count"}, {"self_loops": "double"},
                   {"num_vertices": 3}, {"relabel": False, "num_vertices": -1},
                   {"weights": "third"}):  # fmt: skip
        with pytest.raises(OptionError):
            open_source(write_file("a.txt", "1 2\n"), **option)
    for option in ({"columns": ["c"]}, {"columns": "a"}, {"columns": []}, {"delimiter": "ab"}):
        with pytest.raises(OptionError):
            open_source(write_file("a.csv", "a,b\n1,2\n"), **option)
    with pytest.raises(OptionError, match="2 columns named 'a'"):
        open_source(write_file("a.csv", "a,a\n1,2\n"), columns=["a"])


@pytest.mark.parametrize(
    ("name", "head", "good", "bad"),
    [
        (
            "a.mtx",
            REAL + "general\n9999999 9999999 1750000\n",
            "1234567 7654321 0.12345678901234567\n",
            "1 1 x\n",
        ),
        ("a.txt", "", "1234567890\t9876543210\n", "1\n"),
        ("a.csv", "a,b,c\n", "0.12345678901234567,1e-5,17\n", "1,2\n"),
        ("a.graph", "9000000 6000000\n", "1234567 7654321 7654322 1765432\n", "x\n"),
    ],
)
def test_the_last_line_of_50_megabytes(write_file, name: str, head: str, good: str, bad: str):
    lines = 1_400_000 if name == "a.mtx" else 50_000_000 // len(good)
    path = write_file(name, head + good * lines + bad)
    begin = time.process_time()
    with pytest.raises(FileFormatError, match=f"line {head.count(chr(10)) + lines + 1}: "):
        read_here(open_source(path))
    assert time.process_time() - begin < _SOON
