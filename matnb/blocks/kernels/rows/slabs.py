"""QR decompositions of slabs of rows of a tall matrix, by parts that fit the second cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import Block, Dense, cast, to_numpy

Numbers = npt.NDArray[Any]
_LEAF_BYTES = 128 * 1024  # of rows decomposed at a time: below, triangles take much of the work
_LEAST_HEIGHT = 4  # of such rows, in widths: their triangles are a quarter of them, or less


def triangle_of_slab(values: Sequence[Block], dtype: np.dtype) -> Dense:
    """Return R of the QR decomposition of blocks side by side, which have more rows than columns."""
    return Dense(slab_triangle(_slab(values, dtype)))


def basis_of_slab(values: Sequence[Block], dtype: np.dtype) -> Dense:
    """Return Q of the QR decomposition of the first block, multiplied with the last one."""
    *given, after = values
    return Dense(slab_basis(_slab(given, dtype), cast(to_numpy(after), dtype)))


def _slab(values: Sequence[Block], dtype: np.dtype) -> Numbers:
    given = [cast(to_numpy(one), dtype) for one in values]
    return given[0] if len(given) == 1 else np.concatenate(given, axis=1)


def slab_triangle(slab: Numbers) -> Numbers:
    """Return R of a slab: of the R's of its leaves, one below the other."""
    first, last = _leaves(slab)
    own = _triangle(last)
    if not len(first):
        return own
    above = _triangle(first).reshape(-1, slab.shape[1])
    return _triangle(np.concatenate((above, own)))


def _triangle(matrices: Numbers) -> Numbers:
    return np.linalg.qr(matrices, mode="r")  # type: ignore[return-value]  # of this mode


def slab_basis(slab: Numbers, after: Numbers) -> Numbers:
    """Return Q of a slab, whose R is that of :func:`slab_triangle`, multiplied with a matrix."""
    first, last = _leaves(slab)
    width = slab.shape[1]
    Q, R = np.linalg.qr(last)
    if not len(first):
        own: Numbers = Q @ after
        return own
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


def _leaves(slab: Numbers) -> tuple[Numbers, Numbers]:
    # As many rows each as their length alone has it, and the last ones with what remains.
    rows, width = slab.shape
    height = max(_LEAST_HEIGHT * width, _LEAF_BYTES // (width * slab.itemsize))
    end = max(0, rows // height - 1) * height
    return slab[:end].reshape(-1, height, width), slab[end:]
