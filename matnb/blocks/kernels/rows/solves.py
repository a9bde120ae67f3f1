"""Small systems: linear algebra of stacks of matrices, and least squares of each row of a sparse block."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import Block, Dense, NumericArray, cast, entries_as, to_numpy
from matnb.blocks.kernels.calls import Output
from matnb.blocks.kernels.compiled import UnsignedArray, compiled, given, prefetch, unsigned
from matnb.blocks.kernels.patterns import as_csr
from matnb.blocks.kernels.vector_loops import LANES, add_outer_eight, add_outer_four, in_vectors, take_row
from matnb.blocks.stacks import Options, decomposed
from matnb.errors import SingularError

Index: TypeAlias = int | np.uint64
DoubleArray = npt.NDArray[np.float64]
_DOUBLE = np.dtype(np.float64)
_EIGHT = 8  # lengths of inner loops are multiples of it, so that nothing is left over for a slow end
_ROWS_TAKEN = 32  # rows of factors that are added to a system at a time, while they are in the nearest cache
_AHEAD = np.uint64(8)  # entries before it is used, a row of factors is asked for
_CACHE_LINE = np.uint64(8)  # elements


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
    values: Sequence[Block],
    regularization: float,
    weighted: bool,
    confidence: float | None,
    dtype: np.dtype,
    start: int,
) -> Dense:
    """Return what :func:`segment_solves` does, of a dtype; errors count rows from ``start``."""
    block, factors, *grams = values
    gram = to_numpy(grams[0]) if grams else None
    found = segment_solves(block, to_numpy(factors), regularization, weighted, start, confidence, gram)
    return Dense(cast(found, dtype))


def segment_solves(
    block: Block,
    factors: NumericArray,
    regularization: float,
    weighted: bool,
    start: int = 0,
    confidence: float | None = None,
    gram: NumericArray | None = None,
) -> NumericArray:
    """Solve ``(V_S' V_S + c I) x = V_S' r`` for each row, S the columns it stores and r its entries.

    Cholesky in float64. What a row gives depends on that row's entries alone. Peak memory: the result, the
    factors and entries where they are not float64 in C order (factors also where k is no multiple of 4), and
    ``k * k + 34 * k`` elements, with a ``gram`` ``k * k`` more, k rounded up to a multiple of 8.

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
    confidence
        a, where ``(G + a V_S' diag(r) V_S + c I) x = V_S' (1 + a r)`` is solved instead, 0 for 1 + a r where
        r is 0: Hu, Koren and Volinsky (2008, "Collaborative filtering for implicit feedback datasets").
    gram
        G, k x k, which comes with a confidence: ``V' V``.

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
    size = factors.shape[1]
    solutions = np.zeros((csr.shape[0], size), _DOUBLE)
    begun = np.zeros((0, 0))
    if gram is not None:
        width = -(-size // _EIGHT) * _EIGHT
        begun = np.zeros((width, width))
        begun[:size, :size] = gram
    failed = _solve(
        unsigned(csr.pointers),
        unsigned(csr.columns),
        given(entries_as(csr, _DOUBLE)),
        in_vectors(factors),
        size,
        given(begun),
        float(regularization),
        weighted,
        -1.0 if confidence is None else float(confidence),
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
    num_unknowns: int,
    begun: DoubleArray,
    regularization: float,
    weighted: bool,
    confidence: float,
    solutions: DoubleArray,
) -> int | np.int64:
    one, four, eight = np.uint64(1), np.uint64(LANES), np.uint64(_EIGHT)
    size, wide = np.uint64(num_unknowns), np.uint64(factors.shape[1])
    width = (size + eight - one) // eight * eight
    gram, some = np.zeros((width, width)), np.empty(np.uint64(_ROWS_TAKEN) * width)
    right, line = np.empty(width), np.empty(width)
    rows, sums, first_sums = factors.reshape(-1), gram.reshape(-1), begun.reshape(-1)
    for row in range(np.uint64(pointers.size - 1)):
        start, end = np.uint64(pointers[row]), np.uint64(pointers[row + one])
        if start == end:
            continue
        if begun.size:
            for place in range(sums.size):  # an assignment of all takes seconds longer to compile
                sums[place] = first_sums[place]
        else:
            gram[:] = 0
        right[:] = 0
        for first in range(start, end, np.uint64(_ROWS_TAKEN)):
            count = min(np.uint64(_ROWS_TAKEN), end - first)
            for m in range(count):
                following = np.uint64(columns[min(first + m + _AHEAD, end - one)]) * wide
                for place in range(following, following + wide, _CACHE_LINE):
                    prefetch(rows, np.uint64(place))
                value, root = values[first + m], 1.0
                if confidence >= 0:  # a sum of squares of rows, each times the root of its weight
                    weight = confidence * value
                    root, value = np.sqrt(weight), (1 + weight if value > 0 else 0.0)
                take_row(
                    rows, np.uint64(columns[first + m]) * wide, wide // four, root, value,
                    some, m * width, right,
                )  # fmt: skip
            for down in range(np.uint64(0), wide, four):
                across = np.uint64(down)
                while across + eight <= wide:
                    add_outer_eight(some, count, width, down, across, sums)
                    across += eight
                if across < wide:
                    add_outer_four(some, count, width, down, across, sums)
        shift = regularization * (end - start) if weighted else regularization
        for p in range(size):
            gram[p, p] += shift
        # The upper factor row by row, in place; the lower substitution beside it.
        for p in range(size):
            begin, whole = p - p % eight, p - p % four
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
def _take_four(line: DoubleArray, factor: DoubleArray, t: Index, p: Index, begin: Index, end: Index) -> None:
    u, v, w = t + np.uint64(1), t + np.uint64(2), t + np.uint64(3)
    a, b, c, d = factor[t, p], factor[u, p], factor[v, p], factor[w, p]
    for q in range(begin, end):
        line[q] -= (a * factor[t, q] + b * factor[u, q]) + (c * factor[v, q] + d * factor[w, q])
