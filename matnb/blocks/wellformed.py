"""Whether the parts of a sparse array from outside fit together; kernels trust them to stay in memory."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import sparse

from matnb.errors import ShapeError

_Indices = npt.NDArray[np.integer]


def check_scipy(matrix: sp.sparray | sp.spmatrix) -> None:
    """Check a SciPy array that is compressed (CSR, CSC, BSR) or of coordinates; others hold nothing to trust.

    Raises
    ------
    ShapeError
        Saying which part is wrong.
    """
    rows, columns = matrix.shape  # type: ignore[union-attr]  # the stubs give it to each format only
    match matrix:
        case sp.csr_array() | sp.csr_matrix():
            check_compressed(matrix.indptr, matrix.indices, len(matrix.data), rows, columns)
        case sp.csc_array() | sp.csc_matrix():
            check_compressed(matrix.indptr, matrix.indices, len(matrix.data), columns, rows)
        case sp.bsr_array() | sp.bsr_matrix():
            tall, wide = matrix.blocksize
            check_compressed(matrix.indptr, matrix.indices, len(matrix.data), rows // tall, columns // wide)
        case sp.coo_array() | sp.coo_matrix():
            check_coordinates(matrix.coords, len(matrix.data), (rows, columns))


def check_sparse(array: sparse.SparseArray) -> None:
    """Check a two-dimensional array of the ``sparse`` package; errors as :func:`check_scipy`."""
    if isinstance(array, sparse.COO):
        check_coordinates(tuple(array.coords), len(array.data), array.shape)
    elif isinstance(array, sparse.GCXS):
        (major,) = array.compressed_axes
        lengths = array.shape[major], array.shape[1 - major]
        check_compressed(array.indptr, array.indices, len(array.data), *lengths)


def check_compressed(
    pointers: _Indices, indices: _Indices, num_entries: int, num_major: int, num_minor: int
) -> None:
    """Check the parts of a matrix that is stored row by row, or column by column.

    Entries behind those that the last pointer ends at are allowed, as SciPy allows them.
    """
    if len(pointers) != num_major + 1:
        raise _malformed(f"{len(pointers)} pointers where {num_major + 1} are needed")
    if len(indices) != num_entries:
        raise _malformed(f"{len(indices)} indices and {num_entries} entries")
    if pointers[0] != 0:
        raise _malformed(f"pointers start at {pointers[0]} instead of 0")
    falls = np.flatnonzero(pointers[1:] < pointers[:-1])
    if falls.size:
        place = int(falls[0])
        raise _malformed(
            f"pointer {place + 1} is {pointers[place + 1]}, less than {pointers[place]} before it"
        )
    if pointers[-1] > num_entries:
        raise _malformed(f"pointers end at {pointers[-1]} but there are {num_entries} entries")
    _check_range(indices[: int(pointers[-1])], num_minor)


def check_coordinates(coordinates: tuple[_Indices, ...], num_entries: int, shape: tuple[int, ...]) -> None:
    """Check the parts of an array that is stored as coordinates."""
    for indices, length in zip(coordinates, shape, strict=True):
        if len(indices) != num_entries:
            raise _malformed(f"{len(indices)} indices and {num_entries} entries")
        _check_range(indices, length)


def _check_range(indices: _Indices, length: int) -> None:
    if not indices.size:
        return
    for index in (indices.min(), indices.max()):
        if not 0 <= index < length:
            raise _malformed(f"an index of {index} along an axis of length {length}")


def _malformed(reason: str) -> ShapeError:
    return ShapeError(f"a malformed sparse array: {reason}; build it anew")
