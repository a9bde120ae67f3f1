"""What is written comes back bit by bit, through matnb and through NumPy and SciPy, whole or not at all."""

from __future__ import annotations

import builtins
import errno
import io
import os
import shutil
import stat
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from reading import read_grid, read_whole

from matnb.blocks.formats import Block, Csr, Dense, Empty, block_from, csr_block
from matnb.blocks.grid import Grid, region_shape, regular
from matnb.errors import MatnbError, MissingFileError, OptionError, ShapeError, WriteError
from matnb.io.source import open_source
from matnb.io.write import Fetch, write
from matnb.ops.creation import read_blocks

RANDOM = np.random.default_rng(0)
GRID = Grid(((0, 7, 8, 30), (0, 11, 20)))


def blocks_of(array: np.ndarray, grid: Grid, pattern: bool = False, sparse: bool = False) -> Fetch:
    regions = list(grid.regions())

    def fetch(number: int) -> Block:
        part = array[tuple(slice(*span) for span in regions[number])].copy()
        return csr_block(sp.csr_array(part), pattern) if sparse else block_from(part)

    return fetch


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".mtx"])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "u1", "?", "c16"])
@pytest.mark.parametrize("shape", [(), (5,), (0,), (30, 20), (0, 3), (4, 5, 6)], ids=str)
@pytest.mark.parametrize("cuts", [(3, 3, 3), (1, 2, 1), (3, 1, 1)], ids=str)
def test_dense(tmp_path, suffix: str, dtype: str, shape: tuple[int, ...], cuts: tuple[int, ...]):
    array = np.array((RANDOM.random(shape) - 0.5) * 10.0 ** RANDOM.integers(-9, 9, shape)).astype(dtype)
    grid, path = regular(shape, cuts[: len(shape)]), tmp_path / f"a{suffix}"
    fetch = blocks_of(array, grid)
    if suffix == ".mtx" and len(shape) != 2:
        with pytest.raises(ShapeError):
            write(path, grid, array.dtype, False, fetch)
        assert os.listdir(tmp_path) == []
        return
    write(path, grid, array.dtype, False, fetch)
    found, read = read_whole(open_source(path), 2, 2)
    assert np.array_equal(read.astype(dtype), array)
    if suffix == ".mtx":
        assert found.dtype == {"f": np.float64, "c": np.complex128, "u": np.uint64}.get(dtype[0], np.int64)
        if array.size:
            assert np.array_equal(scipy.io.mmread(path).astype(dtype), array)
    else:
        assert (found.shape, found.dtype) == (shape, array.dtype)
    if suffix == ".npy":
        assert np.array_equal(np.load(path), array)


@pytest.mark.parametrize("suffix", [".npz", ".mtx"])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "?", "c16"])
@pytest.mark.parametrize("pattern", [False, True])
def test_sparse(tmp_path, suffix: str, dtype: str, pattern: bool):
    array = (RANDOM.random((30, 20)) - 0.5) * 10.0 ** RANDOM.integers(-30, 30, (30, 20))
    array = np.where(RANDOM.random((30, 20)) < 0.3, 1.0 if pattern else array, 0)
    with np.errstate(all="ignore"):
        array = array.astype(dtype)
    array[:7] = 0  # empty blocks
    path = tmp_path / f"a{suffix}"
    write(path, GRID, array.dtype, True, blocks_of(array, GRID, pattern, sparse=True))
    first = path.read_bytes()
    write(path, GRID, array.dtype, True, blocks_of(array, GRID, pattern, sparse=True))
    assert path.read_bytes() == first
    for grid in (GRID, regular((30, 20), (4, 1))):
        found, read = read_grid(open_source(path), 3, grid)
        assert found.pattern is pattern
        assert found.nnz == np.count_nonzero(array)
        assert read.astype(dtype).tobytes() == array.tobytes()
    if suffix == ".mtx":
        assert np.array_equal(scipy.io.mmread(path).toarray().astype(dtype), array)
    else:
        source = open_source(path)
        assert source.grid.cuts == (GRID.cuts[0], (0, 20))
        in_scipy = sp.load_npz(path)
        assert (type(in_scipy), in_scipy.dtype) == (sp.csr_array, np.dtype(dtype))
        assert in_scipy.toarray().tobytes() == array.tobytes()
        _, blocks = read_blocks(source, 3, GRID)
        assert all(isinstance(block, Empty) or (block.values is None) is pattern for block in blocks)


@pytest.mark.parametrize("suffix", [".npz", ".mtx"])
def test_blocks_with_values_after_blocks_without(tmp_path, suffix: str):
    one = Csr((2, 2), np.array([0, 1, 2], np.int32), np.array([0, 1], np.int32), None, np.dtype(float))
    two = Csr((2, 2), one.pointers, one.columns, np.array([0.0, 3.0]), np.dtype(float))
    path = tmp_path / f"a{suffix}"
    write(path, Grid(((0, 2, 4), (0, 2))), np.dtype(float), True, lambda number: (one, two)[number])
    found, read = read_whole(open_source(path), 2)
    assert read.tolist() == [[1, 0], [0, 1], [0, 0], [0, 3]]
    assert (found.pattern, found.nnz) == (False, 4)


def test_no_entry(tmp_path):
    for suffix in (".npz", ".mtx"):
        path = tmp_path / f"a{suffix}"
        write(path, Grid(((0, 2), (0, 3))), np.dtype("i8"), True, lambda _: Empty((2, 3), np.dtype("i8")))
        found, read = read_whole(open_source(path))
        assert (found.dtype, found.nnz, read.tolist()) == (np.dtype("i8"), 0, [[0, 0, 0], [0, 0, 0]])


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".mtx"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_interrupt_leaves_what_was_there(tmp_path, suffix: str, error: type[BaseException]):
    path = tmp_path / f"a{suffix}"
    path.write_text("before")

    def fetch(number: int) -> Block:
        if number == 3:
            raise error
        return Dense(np.ones(region_shape(list(GRID.regions())[number])))

    with pytest.raises(error):
        write(path, GRID, np.dtype(float), False, fetch)
    assert os.listdir(tmp_path) == [path.name]
    assert path.read_text() == "before"


class FullDisk(io.FileIO):
    """A file that takes no more than a few bytes."""

    def write(self, data):
        if self.tell() > 100:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(bytes(data)[:200])


@pytest.mark.parametrize(
    ("suffix", "sparse"),
    [(".npy", False), (".npz", False), (".npz", True), (".mtx", False), (".mtx", True)],
)
@pytest.mark.parametrize("before", [None, "before"])
def test_a_full_disk_leaves_what_was_there(tmp_path, monkeypatch, suffix: str, sparse: bool, before):
    path = tmp_path / f"a{suffix}"
    if before:
        path.write_text(before)
    array = np.ones(GRID.shape)
    monkeypatch.setattr(builtins, "open", lambda name, mode: io.BufferedRandom(FullDisk(name, "x+")))
    with pytest.raises(WriteError) as caught:
        write(path, GRID, array.dtype, sparse, blocks_of(array, GRID, sparse=sparse))
    monkeypatch.undo()
    assert isinstance(caught.value, MatnbError)
    assert isinstance(caught.value, OSError)
    assert caught.value.errno == errno.ENOSPC
    kept = "; the file of that name is as it was" if before else ""
    reason = f"cannot be written: {os.strerror(errno.ENOSPC)}: make room there, or save elsewhere{kept}"
    assert str(caught.value) == f"{path}: {reason}"
    assert os.listdir(tmp_path) == ([path.name] if before else [])
    if before:
        assert path.read_text() == before


def test_an_error_of_a_block_is_no_error_of_writing(tmp_path):
    def fetch(number: int) -> Block:
        raise MissingFileError("b.mtx: not there")

    with pytest.raises(MissingFileError, match=r"b.mtx"):
        write(tmp_path / "a.npy", GRID, np.dtype(float), False, fetch)


FILL = """
import os, sys
import numpy as np
from matnb.blocks.formats import Dense
from matnb.blocks.grid import regular
from matnb.errors import WriteError
from matnb.io.write import write
grid = regular((400, 1000), (4, 2))
for suffix in (".npy", ".npz", ".mtx"):
    path = os.path.join(sys.argv[1], "a" + suffix)
    open(path, "x").close()
    try:
        write(path, grid, np.dtype(float), False, lambda _: Dense(np.ones((100, 500))))
    except WriteError:
        print(suffix, sorted(os.listdir(sys.argv[1])))
    os.unlink(path)
"""


def test_a_file_system_that_is_full(tmp_path):
    # In a process and a mount namespace of its own: a memory map of a full disk would end the process.
    if shutil.which("unshare") is None:
        pytest.skip("no unshare, to mount a small file system")
    small = tmp_path / "small"
    small.mkdir()
    enter = ["unshare", "--mount", "--map-root-user", "sh", "-c"]
    mount = 'mount -t tmpfs -o size=1m none "$0"'
    if subprocess.run([*enter, mount, small], capture_output=True).returncode:
        pytest.skip("mounting is not permitted")
    command = [*enter, f'{mount} && exec "$@"', small, sys.executable, "-c", FILL, small]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{one} ['a{one}']" for one in (".npy", ".npz", ".mtx")]


def test_one_block_is_held_at_a_time(tmp_path):
    # each block is dropped before the next is asked for
    held: list[weakref.ref[Dense]] = []

    class Watched(Dense):
        pass

    def fetch(number: int) -> Block:
        assert all(one() is None for one in held[:-1])
        block = Watched(np.full((10, 4), float(number)))
        held.append(weakref.ref(block))
        return block

    for suffix in (".npy", ".npz", ".mtx"):
        held.clear()
        write(tmp_path / f"a{suffix}", regular((60, 4), (6, 1)), np.dtype(float), False, fetch)


def test_the_file_has_ordinary_rights(tmp_path):
    plain = tmp_path / "plain"
    plain.touch()
    write(tmp_path / "a.npy", regular((2,), (1,)), np.dtype(float), False, lambda _: Dense(np.ones(2)))
    assert stat.S_IMODE((tmp_path / "a.npy").stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


def test_refusals(tmp_path: Path):
    grid = regular((2, 2), (1, 1))

    def refuse(path: Path, sparse: bool = False) -> None:
        write(path, grid, np.dtype(float), sparse, lambda _: Dense(np.ones((2, 2))))

    with pytest.raises(OptionError, match=r"suffix '.xls'; there are '.npy', '.mtx', '.npz', '.txt'"):
        refuse(tmp_path / "a.xls")
    with pytest.raises(OptionError, match="dense arrays"):
        refuse(tmp_path / "a.npy", sparse=True)
    with pytest.raises(MissingFileError, match="no folder"):
        refuse(tmp_path / "nowhere" / "a.npy")
    (tmp_path / "b.npy").mkdir()
    with pytest.raises(OptionError, match="directory"):
        refuse(tmp_path / "b.npy")
    assert os.listdir(tmp_path) == ["b.npy"]
