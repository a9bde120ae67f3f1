"""NumPy's .npy and SciPy's .npz files of every kind, against what NumPy and SciPy load."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from reading import read_whole

from matnb.io.source import open_source
from matnb.ops.creation import read_here

pytestmark = pytest.mark.usefixtures("small_pieces")
RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("shape", [(), (5,), (0,), (3, 0), (30, 20), (4, 5, 6)], ids=str)
@pytest.mark.parametrize("dtype", ["<f8", ">f8", "<i4", ">u2", "?", "<c16", "<f2", "u1"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy(tmp_path, shape: tuple[int, ...], dtype: str, order: str):
    array = np.asarray(np.array(RANDOM.random(shape) * 100).astype(dtype), order=order)
    np.save(tmp_path / "a.npy", array)
    for pieces, counts in ((1, 1), (3, 2)):
        found, read = read_whole(open_source(tmp_path / "a.npy"), pieces, counts)
        assert (found.shape, found.dtype) == (shape, np.dtype(dtype).newbyteorder("="))
        assert np.array_equal(read, array)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_versions_of_npy(tmp_path, version: tuple[int, int]):
    with open(tmp_path / "a.npy", "wb") as stream:
        np.lib.format.write_array(stream, np.arange(3), version)
    assert read_whole(open_source(tmp_path / "a.npy"))[1].tolist() == [0, 1, 2]


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "bsr", "dia"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.bool_, np.complex64])
@pytest.mark.parametrize("compressed", [True, False])
def test_scipy_npz(tmp_path, format: str, dtype: type, compressed: bool):
    matrix = sp.csr_array((RANDOM.random((30, 20)) - 0.5) * (RANDOM.random((30, 20)) < 0.3)).astype(dtype)
    matrix = matrix.tobsr((5, 4)) if format == "bsr" else matrix.asformat(format)
    sp.save_npz(tmp_path / "a.npz", matrix, compressed)
    wanted = sp.load_npz(tmp_path / "a.npz")
    source = open_source(tmp_path / "a.npz")
    for counts in (1, 3):
        found, read = read_whole(source, 3, counts)
        assert (found.shape, found.dtype, found.sparse) == (matrix.shape, np.dtype(dtype), True)
        assert np.array_equal(read, wanted.toarray())
    assert source.estimated_entries() >= wanted.nnz


def test_duplicates_are_summed_and_zeros_kept(tmp_path):
    matrix = sp.coo_array(
        (np.array([1.0, 0.0, 2.0]), (np.array([2, 0, 2]), np.array([1, 0, 1]))), shape=(3, 3)
    )
    sp.save_npz(tmp_path / "a.npz", matrix)
    _, block = read_here(open_source(tmp_path / "a.npz"))
    assert block.nnz == 2
    assert read_whole(open_source(tmp_path / "a.npz"))[1].tolist() == [[0, 0, 0], [0, 0, 0], [0, 3, 0]]


def test_no_entry(tmp_path):
    for format in ("csr", "csc", "coo", "bsr", "dia"):
        sp.save_npz(tmp_path / "a.npz", sp.coo_array((4, 3)).asformat(format))
        found, block = read_here(open_source(tmp_path / "a.npz"))
        assert found.shape == block.shape == (4, 3)
        assert block.nnz == 0
