"""Rows of a sparse block, over what a product has at its entries, times a matrix: no quotient is stored."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matnb.blocks.formats import Block, Dense, entries_as, to_numpy
from matnb.blocks.kernels.compiled import UnsignedArray, compiled, given, prefetch, unsigned
from matnb.blocks.kernels.patterns import as_csr
from matnb.blocks.kernels.vector_loops import LANES, Floats, add_four_quotients, add_quotient, in_vectors

_DOUBLE = np.dtype(np.float64)
_AHEAD = np.uint64(8)  # entries before it is used, a row is asked for
_CACHE_LINE = np.uint64(8)  # elements


def quotient_product(values: Sequence[Block], more: float, least: float) -> Dense:
    """Return ``(S / maximum(U @ V.T + more, least)) @ W``, all of double precision.

    What a row gives depends on that row's entries alone, and on their order.

    Parameters
    ----------
    values
        S, sparse; U, V and W; without W it is V.

    Returns
    -------
    Dense
        Peak memory: the result, twice where W has no multiple of 4 columns, and operands that are not in C
        order, or whose rows are no multiple of 4 elements.
    """
    block, left, *others = values
    assert not isinstance(block, Dense), "the pass makes it of sparse arrays alone"
    csr = as_csr(block)
    U, V, W = (in_vectors(to_numpy(one)) for one in (left, others[0], others[-1]))
    sums = np.zeros((csr.shape[0], W.shape[1]))
    _add_rows(
        unsigned(csr.pointers), unsigned(csr.columns), given(entries_as(csr, _DOUBLE)),
        U.reshape(-1), V.reshape(-1), V.shape[1], W.reshape(-1), W.shape[1], more, least, sums.reshape(-1),
    )  # fmt: skip
    width = others[-1].shape[1]
    return Dense(sums if width == sums.shape[1] else np.ascontiguousarray(sums[:, :width]))


@compiled
def _add_rows(
    pointers: UnsignedArray,
    columns: UnsignedArray,
    values: Floats,
    U: Floats,
    V: Floats,
    num_inner: int,
    W: Floats,
    num_columns: int,
    more: float,
    least: float,
    sums: Floats,
) -> None:
    length, width, four = np.uint64(num_inner), np.uint64(num_columns), np.uint64(LANES)
    last = np.uint64(columns.size - 1)
    for row in range(np.uint64(pointers.size - 1)):
        entry, end = np.uint64(pointers[row]), np.uint64(pointers[row + np.uint64(1)])
        while entry + four <= end:
            for one in range(entry, entry + four):
                following = np.uint64(columns[min(one + _AHEAD, last)]) * length
                for place in range(following, following + length, _CACHE_LINE):
                    prefetch(V, np.uint64(place))
            add_four_quotients(
                U, row * length, V, length, W, width, columns, values, entry, more, least, sums, row * width
            )
            entry += four
        while entry < end:
            add_quotient(
                U, row * length, V, length, W, width, columns, values, entry, more, least, sums, row * width
            )
            entry += np.uint64(1)
