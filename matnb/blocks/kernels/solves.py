"""Small systems: linear algebra of stacks of matrices, and least squares of each row of a sparse block."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import Block, Dense, NumericArray, cast, entries_as, to_numpy
from matnb.blocks.kernels.calls import Output
from matnb.blocks.kernels.compiled import UnsignedArray, compiled, given, unsigned
from matnb.blocks.kernels.patterns import as_csr
from matnb.blocks.stacks import Options, decomposed
from matnb.errors import SingularError

Index: TypeAlias = int | np.uint64
DoubleArray = npt.NDArray[np.float64]
_DOUBLE = np.dtype(np.float64)
_LANES = 8  # lengths of inner loops are multiples of it, so that nothing is left over for a slow end


def stack_bytes(outputs: Sequence[Output]) -> int:
    """Return the bytes that several results of one matrix take side by side."""
    return sum(prod(shape) * dtype.itemsize for shape, dtype in outputs)


def decompose(
    values: Sequence[Block], name: str, options: Options, outputs: Sequence[Output], start: int
) -> Dense:
    """Return what NumPy's linear algebra gives of each matrix of a block of a stack.

    Parameters
    ----------
    outputs
        Shapes and dtypes of the results of one matrix. Several are packed side by side: a row of bytes each.
    start
        Which matrix of the whole stack the block's first one is.

    Raises
    ------
    SingularError
        As of :func:`matnb.blocks.stacks.decomposed`.
    """
    found = decomposed(name, [to_numpy(one) for one in values], options, start)
    if len(outputs) == 1:
        return Dense(np.ascontiguousarray(cast(found[0], outputs[0][1])))
    buffer = np.empty((found[0].shape[0], stack_bytes(outputs)), np.uint8)
    for place, one in enumerate(found):
        part = _part_of(buffer, outputs, place)
        part[...] = one.reshape(part.shape)
    return Dense(buffer)


def stack_part(values: Sequence[Dense], outputs: Sequence[Output], place: int) -> Dense:
    """Return one of the results that :func:`decompose` packed, in memory of its own."""
    (block,) = values
    part = np.ascontiguousarray(_part_of(block.values, outputs, place))
    return Dense(part.reshape(len(part), *outputs[place][0]))


def _part_of(buffer: NumericArray, outputs: Sequence[Output], place: int) -> NumericArray:
    start = stack_bytes(outputs[:place])
    shape, dtype = outputs[place]
    part: NumericArray = buffer[:, start : start + prod(shape) * dtype.itemsize].view(dtype)
    return part


def solve_rows(
    values: Sequence[Block], regularization: float, weighted: bool, dtype: np.dtype, start: int
) -> Dense:
    """Return what :func:`segment_solves` does, of a dtype; errors count rows from ``start``."""
    block, factors = values
    return Dense(cast(segment_solves(block, to_numpy(factors), regularization, weighted, start), dtype))


def segment_solves(
    block: Block, factors: NumericArray, regularization: float, weighted: bool, start: int = 0
) -> NumericArray:
    """Solve ``(V_S' V_S + c I) x = V_S' r`` for each row, S the columns it stores and r its entries.

    Cholesky in float64. What a row gives depends on that row's entries alone. Peak memory: the result, the
    factors and entries where they are not float64 in C order, and ``k * k + 10 * k`` elements, k rounded up
    to a multiple of 8.

    Parameters
    ----------
    block
        Sparse: ratings, say; a stored zero is one.
    factors
        V, a row of k elements for each column of the block.
    regularization, weighted
        c, or if ``weighted`` what is multiplied with the number of entries of the row to give c, as Zhou et
        al. (2008, "Large-scale parallel collaborative filtering for the Netflix prize") have it.
    start
        Which row of the whole matrix the first one is, for the error.

    Returns
    -------
    NumericArray
        float64, a row of k elements for each row of the block: zeros for a row without entries.

    Raises
    ------
    SingularError
        When the regularization is too small for a row: its system is not positive definite.
    """
    assert not isinstance(block, Dense), "the node takes sparse arrays alone"
    csr = as_csr(block)
    solutions = np.zeros((csr.shape[0], factors.shape[1]), _DOUBLE)
    failed = _solve(
        unsigned(csr.pointers),
        unsigned(csr.columns),
        given(entries_as(csr, _DOUBLE)),
        given(cast(factors, _DOUBLE)),
        float(regularization),
        weighted,
        solutions,
    )
    if failed >= 0:
        count = csr.pointers[failed + 1] - csr.pointers[failed]
        raise SingularError(
            f"segment_solves: row {start + failed}: the system of its {count} entries and "
            f"{factors.shape[1]} unknowns is not positive definite with regularization {regularization}: "
            "give a larger one, and finite factors"
        )
    return solutions


@compiled
def _solve(
    pointers: UnsignedArray,
    columns: UnsignedArray,
    values: DoubleArray,
    factors: DoubleArray,
    regularization: float,
    weighted: bool,
    solutions: DoubleArray,
) -> int | np.int64:
    one, four, lanes = np.uint64(1), np.uint64(4), np.uint64(_LANES)
    size = np.uint64(factors.shape[1])
    width = (size + lanes - one) // lanes * lanes
    gram, some = np.zeros((width, width)), np.zeros((lanes, width))
    right, line = np.empty(width), np.empty(width)
    for row in range(np.uint64(pointers.size - 1)):
        start, end = np.uint64(pointers[row]), np.uint64(pointers[row + one])
        if start == end:
            continue
        gram[:] = 0
        right[:] = 0
        for first in range(start, end, lanes):
            count = min(lanes, end - first)
            for m in range(count):
                column, value = np.uint64(columns[first + m]), values[first + m]
                for q in range(size):
                    some[m, q] = factors[column, q]
                    right[q] += value * factors[column, q]
            for m in range(count, lanes):
                for q in range(size):
                    some[m, q] = 0
            for p in range(size):
                _add_eight(gram, p, some, p - p % lanes, width)
        shift = regularization * (end - start) if weighted else regularization
        for p in range(size):
            gram[p, p] += shift
        # The upper factor row by row, in place; the lower substitution beside it.
        for p in range(size):
            begin, whole = p - p % lanes, p - p % four
            for q in range(begin, width):
                line[q] = gram[p, q]
            for t in range(np.uint64(0), whole, four):
                _take_four(line, gram, t, p, begin, width)
            for t in range(whole, p):
                for q in range(begin, width):
                    line[q] -= gram[t, p] * gram[t, q]
            rest = right[p]
            for t in range(p):
                rest -= gram[t, p] * right[t]
            if not 0 < line[p] < np.inf:
                return np.int64(row)
            inverse = 1 / np.sqrt(line[p])
            for q in range(begin, width):
                gram[p, q] = line[q] * inverse
            right[p] = rest * inverse
        for step in range(size):
            last = size - one - step
            rest = right[last]
            for t in range(last + one, size):
                rest -= gram[last, t] * solutions[row, t]
            solutions[row, last] = rest / gram[last, last]
    return -1


@compiled
def _add_eight(gram: DoubleArray, p: Index, rows: DoubleArray, begin: Index, end: Index) -> None:
    # Of eight rows at a time, so that each element of the sum is read and written once for them.
    a, b, c, d = rows[0, p], rows[1, p], rows[2, p], rows[3, p]
    e, f, g, h = rows[4, p], rows[5, p], rows[6, p], rows[7, p]
    for q in range(begin, end):
        low = (a * rows[0, q] + b * rows[1, q]) + (c * rows[2, q] + d * rows[3, q])
        high = (e * rows[4, q] + f * rows[5, q]) + (g * rows[6, q] + h * rows[7, q])
        gram[p, q] += low + high


@compiled
def _take_four(line: DoubleArray, factor: DoubleArray, t: Index, p: Index, begin: Index, end: Index) -> None:
    u, v, w = t + np.uint64(1), t + np.uint64(2), t + np.uint64(3)
    a, b, c, d = factor[t, p], factor[u, p], factor[v, p], factor[w, p]
    for q in range(begin, end):
        line[q] -= (a * factor[t, q] + b * factor[u, q]) + (c * factor[v, q] + d * factor[w, q])
