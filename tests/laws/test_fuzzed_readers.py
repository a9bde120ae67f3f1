"""Damaged files: readers give their array, SciPy's where it has one, or a MatnbError, and soon."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from bad_files import fake_npy
from conftest import PROJECT
from fuzzed_files import bases, fuzz

from matnb.errors import FileFormatError
from matnb.io.source import open_source
from matnb.ops.creation import read_here


def test_damaged_files_of_our_own(tmp_path: Path) -> None:
    counts = fuzz(800, 20, None, tmp_path)
    assert counts["read"] > 20
    assert counts["refused"] > 400


def test_damaged_published_files(test_data: Path, tmp_path: Path) -> None:
    assert len(bases(test_data)) > len(bases(None)) + 20
    assert fuzz(200, 21, test_data, tmp_path)["refused"] > 100


@pytest.mark.slow
def test_more_damaged_files(tmp_path: Path) -> None:
    data = Path(os.environ.get("MATNB_TEST_DATA", PROJECT.parent / "shared" / "data"))
    assert fuzz(5000, 22, data if data.is_dir() else None, tmp_path)["refused"] > 1000


@pytest.mark.parametrize(
    "header",
    [
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (3,",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (3,), ",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': " + b"(" * 9000,
        b"{'descr': '''<f8, 'fortran_order': False, 'shape': (3,), }",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (3,), 'more': 1}",
        b"{[]: '<f8', 'fortran_order': False, 'shape': (3,), }",
        b"{'descr': 'a8', 'fortran_order': False, 'shape': (3,), }",
        b"{'descr': '<f8', 'fortran_order': 3, 'shape': (3,), }",
        b"{'descr': '<S0', 'fortran_order': False, 'shape': (3,), }",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (" + b"1," * 65 + b"), }",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (0, 9223372036854775807), }",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (" + b"9" * 5000 + b",), }",
    ],
)
@pytest.mark.parametrize("version", [1, 2])
def test_npy_headers(tmp_path: Path, header: bytes, version: int) -> None:
    length = len(header).to_bytes(2 * version, "little")
    path = tmp_path / "a.npy"
    path.write_bytes(b"\x93NUMPY" + bytes([version, 0]) + length + header)
    with pytest.raises(FileFormatError) as caught:
        read_here(open_source(path))
    assert len(str(caught.value)) < 600


def test_npy_headers_that_others_write(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    for shape in ("(2L, 1L)", "( 2 ,1 )", "(2,)"):
        path.write_bytes(fake_npy(shape, data=bytes(16)))
        assert read_here(open_source(path))[0].shape[0] == 2
    text = b'{"shape": (2,), "fortran_order": False,\n "descr": "<f8"}'
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(16))
    assert read_here(open_source(path))[0].shape == (2,)


@pytest.mark.parametrize(
    "text", [b"a,b\r1,2\r3,4\r", b'a,b\r"c\r\n1,2\n', b'a,"b' + b"x" * 200_000 + b'"\n1,2\n']
)
def test_headers_of_tables(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(text)
    with pytest.raises(FileFormatError, match="line 1"):
        read_here(open_source(path))
