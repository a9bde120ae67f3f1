"""Results as files: what is written comes back, and nothing else is taken for it."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from matnb.blocks.formats import Block, Csr, Dense, Empty, csr_block, to_numpy
from matnb.blocks.grid import Grid, regular
from matnb.config import data_folder_from_environment
from matnb.errors import FileFormatError, OptionError
from matnb.io.results import About, ResultFolder, opened_result, write_result

KEYS = data_folder_from_environment()
DIGEST, KEY = bytes(range(16)), bytes(range(32))
HEAD = struct.Struct("<8sIQQ16s")
DENSE = About(DIGEST, regular((6, 4), (3, 1)), np.dtype("f8"), False, "sum", 1.5)
SPARSE = About(DIGEST, Grid(((0, 3, 6), (0, 5))), np.dtype("f4"), True)


def dense(number: int) -> Block:
    return Dense(np.arange(8.0).reshape(2, 4) + number)


def sparse(number: int) -> Block:
    return csr_block(sp.random_array((3, 5), density=0.5, format="csr", rng=number, dtype=np.float32))


def write(path: Path, about: About = DENSE, blocks: Callable[[int], Block] = dense) -> bytes:
    with open(path, "w+b") as stream:
        write_result(stream, about, blocks, KEY)
    return path.read_bytes()


def read(path: Path, digest: bytes = DIGEST) -> list[Block]:
    with opened_result(str(path), digest, KEY) as result:
        return [result.block(number) for number in range(result.about.grid.num_blocks)]


@pytest.mark.parametrize(
    ("about", "blocks"),
    [
        (DENSE, dense),
        (SPARSE, sparse),
        (SPARSE, lambda number: Empty((3, 5), np.dtype("f4")) if number else sparse(0)),
        (SPARSE, lambda number: csr_block(sp.csr_array(np.eye(3, 5, number)), pattern=True)),
        (About(DIGEST, Grid(()), np.dtype("c16"), False), lambda _: Dense(np.array(1 - 2j))),
        (About(DIGEST, Grid(((0, 0),)), np.dtype("?"), False), lambda _: Dense(np.zeros(0, bool))),
        (About(DIGEST, Grid(((0, 3),)), np.dtype("f2"), False), lambda _: Dense(np.ones(6, "f2")[::2])),
    ],
)
def test_what_is_written_comes_back(tmp_path: Path, about: About, blocks: Callable[[int], Block]) -> None:
    write(tmp_path / "a", about, blocks)
    with opened_result(str(tmp_path / "a"), DIGEST, KEY) as result:
        assert result.about == about
        for number in range(about.grid.num_blocks):
            found, expected = result.block(number), blocks(number)
            assert type(found) is type(expected)
            assert found.dtype == about.dtype
            assert (found.nnz, result.sizes()[number]) == (expected.nnz, expected.nbytes)
            np.testing.assert_array_equal(to_numpy(found), to_numpy(expected))
            if isinstance(found, Csr):
                assert (found.values is None) == (expected.values is None)


@pytest.mark.parametrize(("about", "blocks"), [(DENSE, dense), (SPARSE, sparse)])
def test_no_byte_may_change_and_none_be_missing(
    tmp_path: Path, about: About, blocks: Callable[[int], Block]
) -> None:
    whole, path = write(tmp_path / "a", about, blocks), tmp_path / "b"
    for place in (*range(HEAD.size), *range(HEAD.size, len(whole), 9)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x41]) + whole[place + 1 :])
        with pytest.raises(FileFormatError):
            read(path)
    for length in (0, 7, HEAD.size, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(FileFormatError):
            read(path)
    path.write_bytes(whole + b"\0")
    with pytest.raises(FileFormatError, match="bytes"):
        read(path)
    path.write_bytes(whole)
    with pytest.raises(FileFormatError, match="another expression"):
        read(path, DIGEST[::-1])


def keyed(table: bytes, key: bytes = KEY) -> bytes:
    return blake2b(table, digest_size=16, key=key, person=b"matnb table").digest()


def forged(whole: bytes, change: Callable[[dict[str, object]], object]) -> bytes:
    """Return a file with another table and the right checksums."""
    mark, version, begin, length, _ = HEAD.unpack(whole[: HEAD.size])
    table = json.loads(whole[begin : begin + length])
    change(table)
    written = json.dumps(table).encode()
    head = HEAD.pack(mark, version, begin, len(written), keyed(written))
    return head + whole[HEAD.size : begin] + written


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": "O"}, {"dtype": "f4"}, {"dtype": ["f8"]}, {"sparse": 1}, {"sparse": True}, {"cuts": None},
        {"cuts": [[0, 10**15], [0, 10**15]]}, {"cuts": [[0, 2, 4, 6], [0, 2**62]]},
        {"cuts": [[0, 6], [0, 4]]}, {"cuts": [[0, 4, 2, 6], [0, 4]]}, {"blocks": []},
        {"blocks": [["dense", 2**60, "00"]] * 3},
        {"blocks": [["dense", -8, "00"]] * 3}, {"blocks": [["csr", 8, "00"]] * 3}, {"blocks": 3},
        {"seconds": "x"}, {"digest": "00"},
    ],
)  # fmt: skip
def test_a_table_that_makes_no_sense_is_refused_before_anything_is_made(
    tmp_path: Path, change: dict[str, object]
) -> None:
    path = tmp_path / "a"
    path.write_bytes(forged(write(path), lambda table: table.update(change)))
    with pytest.raises(FileFormatError):
        read(path)


def test_indices_that_would_lead_kernels_astray_are_refused(tmp_path: Path) -> None:
    about = About(DIGEST, Grid(((0, 2), (0, 3))), np.dtype("f8"), True)
    values = np.ones(2)
    for pointers, columns in (
        ([0, 1, 2], [0, 3]), ([0, 1, 2], [-1, 0]), ([0, 2, 1], [0, 1]), ([1, 1, 2], [0, 1]),
        ([0, 2, 2], [1, 1]), ([0, 1, 3], [0, 1]),
    ):  # fmt: skip
        bad = Csr((2, 3), np.array(pointers, np.int32), np.array(columns, np.int32), values, about.dtype)
        write(tmp_path / "a", about, lambda _, bad=bad: bad)
        with pytest.raises(FileFormatError, match="do not fit"):
            read(tmp_path / "a")
    truths = About(DIGEST, Grid(((0, 2),)), np.dtype("?"), False)
    write(tmp_path / "a", truths, lambda _: Dense(np.array([1, 7], np.uint8).view(bool)))
    with pytest.raises(FileFormatError, match="truth"):
        read(tmp_path / "a")


def named(number: int) -> About:
    return About(bytes([number]) * 16, Grid(((0, 1000),)), np.dtype("f8"), False)


def test_a_folder_keeps_to_its_bytes_and_lets_the_oldest_go(tmp_path: Path) -> None:
    folder = ResultFolder(tmp_path / "new" / "folder", 3 * 8500, KEYS)
    for number in range(3):
        folder.write(named(number), lambda _: Dense(np.zeros(1000)))
        os.utime(tmp_path / "new" / "folder" / named(number).digest.hex(), (number, number))
    assert folder.read(named(0).digest, lambda result: result.num_bytes) == 8000  # used now
    assert folder.read(named(1).digest, lambda result: result.num_bytes, is_use=False) == 8000
    folder.write(named(3), lambda _: Dense(np.zeros(1000)))
    assert [named(number).digest in folder for number in range(4)] == [True, False, True, True]
    other = ResultFolder(folder.path, 10**6, KEYS)
    other.refresh()
    assert set(other) == set(folder)
    other.clear()
    folder.refresh()
    assert not list(folder)
    assert os.listdir(folder.path) == []


def test_a_write_that_fails_leaves_nothing_and_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = ResultFolder(tmp_path, 10**6, KEYS)

    def interrupted(_: int) -> Block:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        folder.write(named(0), interrupted)
    assert os.listdir(tmp_path) == []

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("matnb.io.results.write_result", full)
    with pytest.warns(UserWarning, match="no longer written to .* No space left"):
        folder.write(named(0), dense)
    folder.write(named(1), dense)
    assert os.listdir(tmp_path) == []


def test_what_cannot_be_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "inside"):
        with pytest.raises(OptionError, match="memo_dir="):
            ResultFolder(path, 10**6, KEYS)


def test_foreign_files_are_told_of_once_and_left_alone(tmp_path: Path) -> None:
    folder = ResultFolder(tmp_path, 10**6, KEYS)
    elsewhere = tmp_path / "elsewhere"
    write(elsewhere, named(0), lambda _: Dense(np.zeros(1000)))
    paths = [tmp_path / named(number).digest.hex() for number in range(4)]
    paths[0].symlink_to(elsewhere)
    paths[1].mkdir()
    os.mkfifo(paths[2])
    paths[3].write_text("import os")
    folder.refresh()
    for number, reason in enumerate(("", "not a plain file", "not a plain file", "not written by matnb")):
        assert named(number).digest in folder
        with pytest.warns(UserWarning, match=f"is not used.*{reason}"):
            assert folder.read(named(number).digest, lambda result: result.block(0)) is None
        assert named(number).digest not in folder
        folder.write(named(number), lambda _: Dense(np.zeros(1000)))
    assert paths[0].is_symlink()
    assert paths[1].is_dir()
    assert paths[2].is_fifo()
    assert folder.read(named(3).digest, lambda result: result.num_bytes) == 8000  # ours, and damaged
