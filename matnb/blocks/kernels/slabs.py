"""QR decompositions of slabs of rows of a tall matrix, by parts that fit the second cache."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matnb.blocks.formats import Block, Dense, NumericArray, to_numpy

_LEAF_BYTES = 128 * 1024  # of rows decomposed at a time: below, triangles take much of the work
_LEAST_HEIGHT = 4  # of such rows, in widths: their triangles are a quarter of them, or less


def triangle_of_slab(values: Sequence[Block], dtype: np.dtype) -> Dense:
    """Return R of the QR decomposition of blocks side by side, which have more rows than columns."""
    return Dense(slab_triangle(_slab(values, dtype)))


def basis_of_slab(values: Sequence[Block], dtype: np.dtype) -> Dense:
    """Return Q of the QR decomposition of the first block, multiplied with the last one."""
    *given, after = values
    return Dense(slab_basis(_slab(given, dtype), to_numpy(after)))


def _slab(values: Sequence[Block], dtype: np.dtype) -> NumericArray:
    given = [to_numpy(one) for one in values]
    if len(given) == 1:
        return given[0].astype(dtype, copy=False)
    return np.concatenate(given, axis=1, dtype=dtype)


def slab_triangle(slab: NumericArray) -> NumericArray:
    """Return R of a slab: of the R's of its leaves, one below the other."""
    first, last = _leaves(slab)
    own: NumericArray = np.linalg.qr(last, mode="r")
    if not len(first):
        return own
    above = np.linalg.qr(first, mode="r").reshape(-1, slab.shape[1])
    found: NumericArray = np.linalg.qr(np.concatenate((above, own)), mode="r")
    return found


def slab_basis(slab: NumericArray, after: NumericArray) -> NumericArray:
    """Return Q of a slab, whose R is that of :func:`slab_triangle`, multiplied with a matrix."""
    first, last = _leaves(slab)
    width = slab.shape[1]
    Q, R = np.linalg.qr(last)
    if not len(first):
        return Q @ after
    above, triangles = np.linalg.qr(first)
    inner = np.linalg.qr(np.concatenate((triangles.reshape(-1, width), R)))[0] @ after
    found = np.empty((len(slab), after.shape[1]), inner.dtype)
    end = len(slab) - len(last)
    np.matmul(
        above,
        inner[:-width].reshape(len(first), width, -1),
        out=found[:end].reshape(len(first), -1, after.shape[1]),
    )
    np.matmul(Q, inner[-width:], out=found[end:])
    return found


def _leaves(slab: NumericArray) -> tuple[NumericArray, NumericArray]:
    # As many rows each as their length alone has it, and the last ones with what remains.
    rows, width = slab.shape
    height = max(_LEAST_HEIGHT * width, _LEAF_BYTES // (width * slab.itemsize))
    end = max(0, rows // height - 1) * height
    return slab[:end].reshape(-1, height, width), slab[end:]
