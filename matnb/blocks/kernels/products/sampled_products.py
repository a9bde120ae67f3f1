"""Products under a mask: only what the mask lets through is computed, or kept."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import Block, Csr, Dense, Empty, NumericArray, SparseBlock, cast, is_sparse
from matnb.blocks.kernels.compiled import UnsignedArray, compiled, given, prefetch
from matnb.blocks.kernels.operands import check_loop_dtype, known_operands, pattern_of_loop, result_shape
from matnb.blocks.kernels.patterns import as_csr, pattern_of, rows_of, settled, values_at
from matnb.blocks.kernels.products.products import check_shapes, multiply
from matnb.blocks.kernels.products.semiring_loops import (
    codes_of,
    dense_product_at,
    dtypes_of,
    factors,
    identity_of,
    sparse_factors,
    sparse_product_at,
)
from matnb.blocks.kernels.products.sparse_product_loops import (
    MIN_PLUS,
    PAIR,
    PLUS_TIMES,
    TRUTH,
    Words,
    add_and_mark_row,
    add_row,
    greatest,
    is_less,
    is_listed,
    least,
    list_columns,
    row_span,
    take_columns,
)
from matnb.blocks.kernels.products.sparse_products import bits, operand_of_loop, room_for, shrink
from matnb.blocks.kernels.reductions.reductions import accumulator_dtype, reduce_block
from matnb.blocks.kernels.shaping.selecting import entries_kept
from matnb.blocks.kernels.shaping.shaping import transpose
from matnb.blocks.semiring import Semiring
from matnb.errors import OptionError, ShapeError

Marks = npt.NDArray[np.uint8]

_GATHERED = np.uint64(256)  # entries whose places are kept at a time, in the first level of cache


@compiled
def product_by_slots(
    code: int,
    pointers_a: UnsignedArray,
    columns_a: UnsignedArray,
    values_a: NumericArray,
    pointers_b: UnsignedArray,
    columns_b: UnsignedArray,
    values_b: NumericArray,
    pointers_m: UnsignedArray,
    columns_m: UnsignedArray,
    slots: UnsignedArray,
    sums: NumericArray,
    met: Marks,
) -> None:
    """Add the pairs of A @ B at the entries of a mask to ``sums``; ``met`` tells where there was a pair.

    ``slots`` is 0 for every column, before and after: within a row, where the mask's entry is, from 1 on.
    """
    # First the places of what the mask lets through are gathered, without a branch, then they are added:
    # 0.65 ns a pair, where a test of each takes 1.2 and adding the rest to a slot of its own 2.7.
    total = np.empty(1, sums.dtype)
    kept_places, kept_slots = np.empty(_GATHERED, np.uint32), np.empty(_GATHERED, np.uint32)
    for i in range(pointers_a.size - 1):
        start, stop = pointers_m[i], pointers_m[i + 1]
        if start == stop:
            continue
        for entry in range(start, stop):
            slots[columns_m[entry]] = entry + np.uint64(1)
        for a in range(pointers_a[i], pointers_a[i + 1]):
            k = columns_a[a]
            begin, end = np.uint64(pointers_b[k]), np.uint64(pointers_b[k + np.uint32(1)])
            while begin < end:
                until = min(end, begin + _GATHERED - np.uint64(1))
                kept = np.uint64(0)
                for b in range(begin, until):
                    slot = slots[columns_b[b]]
                    kept_places[kept] = b
                    kept_slots[kept] = slot
                    kept += np.uint64(slot != 0)
                begin = until
                if code == PLUS_TIMES:
                    value = values_a[a]
                    for one in range(kept):
                        slot = kept_slots[one] - np.uint32(1)
                        sums[slot] += value * values_b[kept_places[one]]
                        met[slot] = 1
                elif code == MIN_PLUS:
                    value = values_a[a]
                    for one in range(kept):
                        slot = kept_slots[one] - np.uint32(1)
                        total[0] = value + values_b[kept_places[one]]
                        if is_less(total[0], sums[slot]) or total[0] != total[0]:
                            sums[slot] = total[0]
                        met[slot] = 1
                elif code == PAIR:
                    for one in range(kept):
                        slot = kept_slots[one] - np.uint32(1)
                        sums[slot] += 1
                        met[slot] = 1
                else:
                    truth = values_a[a]
                    for one in range(kept):
                        slot = kept_slots[one] - np.uint32(1)
                        sums[slot] = greatest(sums[slot], least(truth, values_b[kept_places[one]]))
                        met[slot] = 1
        for entry in range(start, stop):
            slots[columns_m[entry]] = 0


@compiled
def product_by_columns(
    code: int,
    pointers_a: UnsignedArray,
    columns_a: UnsignedArray,
    values_a: NumericArray,
    pointers_t: UnsignedArray,
    columns_t: UnsignedArray,
    values_t: NumericArray,
    pointers_m: UnsignedArray,
    columns_m: UnsignedArray,
    slots: UnsignedArray,
    sums: NumericArray,
    met: Marks,
) -> None:
    """Do as ``product_by_slots``, given B transposed: each entry of the mask by a row of A and a column of B.

    ``slots`` is 0 for every column of A: within a row, where A's entry is, from 1 on.
    """
    total = np.empty(1, sums.dtype)
    for i in range(pointers_a.size - 1):
        if pointers_m[i] == pointers_m[i + 1] or pointers_a[i] == pointers_a[i + 1]:
            continue
        for a in range(pointers_a[i], pointers_a[i + 1]):
            slots[columns_a[a]] = a + np.uint64(1)
        for entry in range(pointers_m[i], pointers_m[i + 1]):
            j = columns_m[entry]
            for t in range(pointers_t[j], pointers_t[j + np.uint32(1)]):
                slot = slots[columns_t[t]]
                if slot == 0:
                    continue
                met[entry] = 1
                if code == PLUS_TIMES:
                    sums[entry] += values_a[slot - np.uint32(1)] * values_t[t]
                elif code == MIN_PLUS:
                    total[0] = values_a[slot - np.uint32(1)] + values_t[t]
                    if is_less(total[0], sums[entry]) or total[0] != total[0]:
                        sums[entry] = total[0]
                elif code == PAIR:
                    sums[entry] += 1
                else:
                    sums[entry] = greatest(sums[entry], least(values_a[slot - np.uint32(1)], values_t[t]))
        for a in range(pointers_a[i], pointers_a[i + 1]):
            slots[columns_a[a]] = 0


@compiled
def product_where(
    code: int,
    pointers_a: UnsignedArray,
    columns_a: UnsignedArray,
    values_a: NumericArray,
    pointers_b: UnsignedArray,
    columns_b: UnsignedArray,
    values_b: NumericArray,
    pointers_m: UnsignedArray,
    columns_m: UnsignedArray,
    dense_mask: Marks,
    allowed: Marks,
    seen: Words,
    row: NumericArray,
    pointers: UnsignedArray,
    columns: UnsignedArray,
    out: NumericArray,
) -> np.int64:
    """Write pointers, columns and values of A @ B where a mask allows it; return how many entries there are.

    ``allowed`` is 1 for every column; the entries of the mask M are not allowed. Unless it has no rows,
    ``dense_mask`` tells what is allowed instead. ``row`` and ``seen`` are as for ``product``.
    """
    count, identity = np.uint64(0), row[:1].copy()
    for i in range(pointers_a.size - 1):
        start, stop = pointers_a[i], pointers_a[i + 1]
        pairs, low, high = row_span(start, stop, columns_a, pointers_b, columns_b)
        if pairs == 0:
            pointers[i + 1] = count
            continue
        if is_listed(pairs, low, high):
            end = list_columns(start, stop, columns_a, pointers_b, columns_b, pairs, seen, columns, count)
            add_row(code, start, stop, columns_a, values_a, pointers_b, columns_b, values_b, row)
        else:
            add_and_mark_row(
                code, start, stop, columns_a, values_a, pointers_b, columns_b, values_b, row, seen
            )
            end = take_columns(low, high, seen, columns, count)
        if dense_mask.shape[0] > 0:
            for column in range(allowed.size):  # an assignment of all takes seconds longer to compile
                allowed[column] = dense_mask[i, column]
        else:
            for entry in range(pointers_m[i], pointers_m[i + 1]):
                allowed[columns_m[entry]] = 0
        first = count
        for place in range(first, end):
            column = columns[place]
            columns[count] = column
            out[count] = row[column]
            row[column] = identity[0]
            count += np.uint64(allowed[column])
        if dense_mask.shape[0] == 0:
            for entry in range(pointers_m[i], pointers_m[i + 1]):
                allowed[columns_m[entry]] = 1
        pointers[i + 1] = count
    return np.int64(count)


@compiled
def count_pairs(
    pointers_a: UnsignedArray,
    columns_a: UnsignedArray,
    pointers_b: UnsignedArray,
    columns_b: UnsignedArray,
    pointers_m: UnsignedArray,
    columns_m: UnsignedArray,
    marks: Marks,
    counts: npt.NDArray[np.int64],
) -> None:
    """Write how many pairs of each row of A @ B meet at entries of a mask; ``marks`` is 0 everywhere."""
    for i in range(pointers_a.size - 1):
        if pointers_m[i] == pointers_m[i + 1]:
            continue
        for entry in range(pointers_m[i], pointers_m[i + 1]):
            marks[columns_m[entry]] = 1
        total = np.uint64(0)
        for a in range(pointers_a[i], pointers_a[i + 1]):
            k = columns_a[a]
            count = np.uint32(0)
            for b in range(pointers_b[k], pointers_b[k + np.uint32(1)]):
                count += marks[columns_b[b]]
            total += count
        counts[i] = total
        for entry in range(pointers_m[i], pointers_m[i + 1]):
            marks[columns_m[entry]] = 0


@compiled
def count_work(
    pointers_a: UnsignedArray,
    columns_a: UnsignedArray,
    pointers_b: UnsignedArray,
    columns_b: UnsignedArray,
    pointers_m: UnsignedArray,
    columns_m: UnsignedArray,
    in_column: UnsignedArray,
) -> tuple[np.uint64, np.uint64]:
    """Return how many entries of B are looked at for A @ B under a mask: by slots, and by columns.

    ``in_column`` is 0 for every column of B, and left with how many entries each has.
    """
    pairs, looked_at = np.uint64(0), np.uint64(0)
    for i in range(pointers_a.size - 1):
        if pointers_m[i] == pointers_m[i + 1]:
            continue
        for a in range(pointers_a[i], pointers_a[i + 1]):
            k = columns_a[a]
            pairs += np.uint64(pointers_b[k + np.uint32(1)] - pointers_b[k])
    for column in columns_b:
        in_column[column] += np.uint32(1)
    for column in columns_m:
        looked_at += np.uint64(in_column[column])
    return pairs, looked_at


# Rows of the turned operand are asked for this many entries before they are used: R-MAT 2^18, rank 32, takes
# 60 ms instead of 100 (4 ahead: 79, 8: 69, 32: 73).
_AHEAD = np.uint64(16)
_CACHE_LINE_BYTES = np.uint64(64)


@compiled
def sampled_dense(
    code: int,
    X: NumericArray,
    turned: NumericArray,
    pointers_m: UnsignedArray,
    columns_m: UnsignedArray,
    sums: NumericArray,
) -> None:
    """Write X @ Y, with Y given transposed, at the entries of a mask, where ``sums`` holds the identity.

    Products are added in eight lanes, and these at the end: what an entry is depends on its operands alone.
    """
    length, last = np.uint64(X.shape[1]), np.uint64(columns_m.size - 1)
    whole = length // np.uint64(8)
    line = _CACHE_LINE_BYTES // np.uint64(sums.itemsize)
    total = np.zeros(1, sums.dtype)
    zero = total[0]
    for i in range(pointers_m.size - 1):
        x = X[i]
        for entry in range(pointers_m[i], pointers_m[i + 1]):
            y = turned[columns_m[entry]]
            if code == PLUS_TIMES:
                following = np.uint64(columns_m[min(entry + _AHEAD, last)]) * length
                for place in range(following, following + length, line):
                    prefetch(turned, np.uint64(place))
                s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = zero
                for eight in range(whole):
                    k = eight * np.uint64(8)
                    s0 += x[k] * y[k]
                    s1 += x[k + np.uint64(1)] * y[k + np.uint64(1)]
                    s2 += x[k + np.uint64(2)] * y[k + np.uint64(2)]
                    s3 += x[k + np.uint64(3)] * y[k + np.uint64(3)]
                    s4 += x[k + np.uint64(4)] * y[k + np.uint64(4)]
                    s5 += x[k + np.uint64(5)] * y[k + np.uint64(5)]
                    s6 += x[k + np.uint64(6)] * y[k + np.uint64(6)]
                    s7 += x[k + np.uint64(7)] * y[k + np.uint64(7)]
                total[0] = ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7))
                for one in range(whole * np.uint64(8), length):
                    total[0] += x[one] * y[one]
                sums[entry] = total[0]
            elif code == MIN_PLUS:
                for one in range(length):
                    total[0] = x[one] + y[one]
                    if is_less(total[0], sums[entry]) or total[0] != total[0]:
                        sums[entry] = total[0]
            elif code == PAIR:
                sums[entry] = length
            else:
                for one in range(length):
                    sums[entry] = greatest(sums[entry], least(x[one], y[one]))


@compiled
def sampled_csr_dense(
    code: int,
    pointers_a: UnsignedArray,
    columns_a: UnsignedArray,
    values_a: NumericArray,
    X: NumericArray,
    pointers_m: UnsignedArray,
    columns_m: UnsignedArray,
    sums: NumericArray,
) -> None:
    """Add the pairs of A @ X, A sparse, to ``sums`` at the entries of a mask."""
    total = np.empty(1, sums.dtype)
    for i in range(pointers_a.size - 1):
        start, stop = pointers_m[i], pointers_m[i + 1]
        if start == stop:
            continue
        for a in range(pointers_a[i], pointers_a[i + 1]):
            if code == PAIR:
                for entry in range(start, stop):
                    sums[entry] += 1
                continue
            value, x = values_a[a], X[columns_a[a]]
            if code == PLUS_TIMES:
                for entry in range(start, stop):
                    sums[entry] += value * x[columns_m[entry]]
            elif code == MIN_PLUS:
                for entry in range(start, stop):
                    total[0] = value + x[columns_m[entry]]
                    if is_less(total[0], sums[entry]) or total[0] != total[0]:
                        sums[entry] = total[0]
            else:
                for entry in range(start, stop):
                    sums[entry] = greatest(sums[entry], least(value, x[columns_m[entry]]))


@compiled
def sampled_dense_csr(
    code: int,
    X: NumericArray,
    pointers_t: UnsignedArray,
    columns_t: UnsignedArray,
    values_t: NumericArray,
    pointers_m: UnsignedArray,
    columns_m: UnsignedArray,
    sums: NumericArray,
) -> None:
    """Add the pairs of X @ A, given A sparse and transposed, to ``sums`` at the entries of a mask."""
    total = np.empty(1, sums.dtype)
    for i in range(pointers_m.size - 1):
        x = X[i]
        for entry in range(pointers_m[i], pointers_m[i + 1]):
            j = columns_m[entry]
            first, end = pointers_t[j], pointers_t[j + np.uint32(1)]
            if code == PLUS_TIMES:
                for t in range(first, end):
                    sums[entry] += x[columns_t[t]] * values_t[t]
            elif code == MIN_PLUS:
                for t in range(first, end):
                    total[0] = x[columns_t[t]] + values_t[t]
                    if is_less(total[0], sums[entry]) or total[0] != total[0]:
                        sums[entry] = total[0]
            elif code == PAIR:
                sums[entry] += end - first
            else:
                for t in range(first, end):
                    sums[entry] = greatest(sums[entry], least(x[columns_t[t]], values_t[t]))


_TRUTH = np.dtype(np.bool_)
_LEAST_SUMS = ("float64", "float32", "int64", "int32")


def masked_multiply(
    left: Block,
    right: Block,
    mask: Block,
    semiring: Semiring,
    dtype: np.dtype,
    *,
    complement: bool = False,
    structural: bool = False,
    scaled: np.dtype | None = None,
) -> Block:
    """Multiply two blocks where a mask is true.

    Parameters
    ----------
    left, right, semiring, dtype
        As for ``products.multiply``.
    mask
        Of the product's shape. True where it stores an entry that is not 0, or in a Dense block where an
        element is not 0.
    complement
        Turn the mask round.
    structural
        Every stored entry of the mask is true, whatever its value.
    scaled
        Cast the product to this dtype and multiply it by the mask's entries: ``S * (U @ V)`` is the product
        of U and V, structurally masked by S and scaled. Only with a sparse, structural mask, not turned.

    Returns
    -------
    Block
        Two sparse blocks give a sparse one: the entries of their product where the mask is true. With a Dense
        block among them, and a sparse mask that is not turned, the result stores the mask's true entries: the
        semiring's identity where no pair met. Otherwise it is Dense, with the identity where the mask is not
        true. Shares no memory with inputs.

    Raises
    ------
    ShapeError
        When shapes do not fit.
    DTypeError
        For a product of extended precision.
    OptionError
        When it is to be scaled by a mask that is not sparse, not structural, or turned.
    """
    check_shapes(left, right)
    shape = result_shape(left, right)
    if mask.shape != shape:
        raise ShapeError(f"a mask of shape {mask.shape} for a product of shape {shape}: they must agree")
    if scaled is not None and (isinstance(mask, Dense) or complement or not structural):
        raise OptionError("a product scaled by its mask: the mask must be sparse, structural and not turned")
    both_sparse = is_sparse(left) and is_sparse(right)
    check_loop_dtype(dtype)
    left, right, semiring = known_operands(left, right, semiring, dtype)
    with np.errstate(all="ignore"):
        if isinstance(mask, Dense) or complement:
            if both_sparse:
                return _sparse_where(left, right, mask, semiring, dtype, complement, structural)
            wanted = _true_elements(mask, complement, structural)
            return _dense_where(left, right, wanted, semiring, dtype)
        mask = as_csr(mask)
        at = _true_pattern(mask, structural)
        values, met = _at_entries(left, right, at, semiring, dtype)
        values = cast(values, dtype)
        if scaled is not None:
            values = cast(values, scaled)
            if mask.values is not None:
                values = np.asarray(np.multiply(values, cast(mask.values, scaled)))
        return _stored(at, values, met)


def masked_row_sums(
    left: Block,
    right: Block,
    mask: SparseBlock,
    semiring: Semiring,
    dtype: np.dtype,
    scaled: np.dtype | None,
    sum_dtype: np.dtype,
) -> Dense:
    """Return the sum along each row of what ``masked_multiply`` with a structural mask would store.

    Where every pair that meets adds 1 (three patterns, or ``plus_pair`` and nothing to scale by), pairs are
    counted and no entry is stored: the memory is a byte for every column and 8 for every row. Elsewhere it is
    that of ``masked_multiply``.

    Parameters
    ----------
    left, right, mask, semiring, dtype, scaled
        As for ``masked_multiply``; the mask is sparse.
    sum_dtype
        Of the whole sum, of which this is a part.

    Returns
    -------
    Dense
        Of shape (rows, 1) and the dtype in which sums of ``sum_dtype`` are accumulated.
    """
    wide = accumulator_dtype("sum", sum_dtype)
    if not _counts_pairs(left, right, mask, semiring, dtype, scaled, wide):
        product = masked_multiply(left, right, mask, semiring, dtype, structural=True, scaled=scaled)
        return reduce_block("sum", product, (1,), sum_dtype)
    counts = np.zeros(mask.shape[0], np.int64)
    if isinstance(left, Csr) and isinstance(right, Csr) and isinstance(mask, Csr):
        count_pairs(
            *pattern_of_loop(left),
            *pattern_of_loop(right),
            *pattern_of_loop(mask),
            np.zeros(mask.shape[1], np.uint8),
            counts,
        )
    return Dense(cast(counts, wide).reshape(-1, 1))


def prefers_columns(pairs: int, looked_at: int, right_nnz: int) -> bool:
    """Tell whether two sparse blocks are multiplied entry by entry of the mask, right turned to columns.

    Parameters
    ----------
    pairs
        That meet in rows where the mask has entries: all are looked at in the other form, by slots.
    looked_at
        Stored entries of the columns that the mask's entries ask for, each as often as it is asked for.
    right_nnz
        Stored entries of the right block.
    """
    # Measured on one thread, A @ A under A and 1 % of A, R-MAT 2^14 and 2^16: by slots 0.55 to 0.65 ns a
    # pair; by columns 0.85 to 1.0 ns an entry that is looked at, and 10 to 17 to turn round one of the right.
    return 0.95 * looked_at + 14.0 * right_nnz < 0.6 * pairs


def prefers_entries(num_true: int, size: int) -> bool:
    """Tell whether a Dense product is computed only at the true elements of a Dense mask, not as a whole."""
    # Measured on one thread, 3000 x 3000, rank 32: both take as long when one in 14 elements is true.
    return 14 * num_true < size


def _true_pattern(mask: Csr, structural: bool) -> Csr:
    if structural or mask.values is None or bool(np.all(mask.values)):
        return pattern_of(mask, _TRUTH)
    return as_csr(_stored(pattern_of(mask, _TRUTH), None, mask.values != 0))


def _true_elements(mask: Block, complement: bool, structural: bool) -> NumericArray:
    if isinstance(mask, Dense):
        wanted = mask.values != 0
    else:
        at = _true_pattern(as_csr(mask), structural)
        wanted = np.zeros(mask.shape, _TRUTH)
        wanted[rows_of(at), at.columns] = True
    return np.asarray(~wanted if complement else wanted)


def _stored(at: Csr, values: NumericArray | None, kept: NumericArray | None) -> SparseBlock:
    """Return a block of the pattern's entries, or of those that are kept; the pattern is copied."""
    dtype = _TRUTH if values is None else values.dtype
    if kept is None or bool(kept.all()):
        return settled(Csr(at.shape, at.pointers.copy(), at.columns.copy(), values, dtype))
    before = np.zeros(at.nnz + 1, np.int32)
    np.cumsum(kept, out=before[1:])
    inside = None if values is None else values[kept]
    return settled(Csr(at.shape, before[at.pointers], at.columns[kept], inside, dtype))


def _code(left: Block, right: Block, semiring: Semiring, dtype: np.dtype) -> tuple[int, np.generic]:
    """Return how a loop adds pairs, and the identity in the dtype it computes in."""
    if semiring.multiply == "pair":
        return PAIR, np.int64(0)
    if semiring.multiply == "land" or (semiring.multiply == "times" and dtype.kind == "b"):
        return TRUTH, np.uint8(0)
    if semiring.add.name == "min":
        return MIN_PLUS, semiring.add.identity(dtype)
    zero = {"f": np.float64, "c": np.complex128}.get(dtype.kind, np.int64)(0)
    if dtype == np.int32:
        zero = np.int32(0)
    patterns = isinstance(left, Csr) and isinstance(right, Csr) and left.values is right.values is None
    return (PAIR if patterns else PLUS_TIMES), zero


def _has_loop(code: int, dtype: np.dtype) -> bool:
    return code != MIN_PLUS or dtype.name in _LEAST_SUMS


def _elements(values: NumericArray, code: int, dtype: np.dtype) -> NumericArray:
    return given(cast(values != 0 if code == TRUTH else values, dtype))


def _at_entries(
    left: Block, right: Block, at: Csr, semiring: Semiring, dtype: np.dtype
) -> tuple[NumericArray, NumericArray | None]:
    """Return the product at the entries of a pattern, and where pairs met, or None if all are stored.

    Memory at its peak, inputs apart: 9 bytes an entry of the pattern; 4 for every column (or for every row of
    the right block, when that is turned round: a copy of it); operands cast where they have another dtype.
    """
    if semiring.is_general:
        return _general_at(left, right, at, semiring, dtype)
    code, identity = _code(left, right, semiring, dtype)
    wide = identity.dtype
    sums = np.full(at.nnz, identity)
    if is_sparse(left) and is_sparse(right):
        met = np.zeros(at.nnz, np.uint8)
        one, other = as_csr(left), as_csr(right)
        in_column = np.zeros(other.shape[1], np.uint32)
        work = count_work(*pattern_of_loop(one), *pattern_of_loop(other), *pattern_of_loop(at), in_column)
        by_columns = prefers_columns(int(work[0]), int(work[1]), other.nnz)
        if by_columns:
            other = _turned(other)
        loop = product_by_columns if by_columns else product_by_slots
        slots = np.zeros(one.shape[1] if by_columns else at.shape[1], np.uint32)
        operands = (*operand_of_loop(one, code, wide), *operand_of_loop(other, code, wide))
        loop(code, *operands, *pattern_of_loop(at), slots, sums, met)
        return sums, met.view(_TRUTH)
    if not _has_loop(code, dtype) or len(left.shape) != 2 or len(right.shape) != 2:
        product = multiply(left, right, semiring, dtype)
        assert isinstance(product, Dense)
        return product.values[rows_of(at), at.columns], None
    match left, right:
        case Dense(values), Dense(others):
            X, turned = _elements(values, code, wide), _elements(others.T, code, wide)
            sampled_dense(code, X, turned, *pattern_of_loop(at), sums)
        case Dense(values), _:
            turned_block = _turned(as_csr(right))
            X = _elements(values, code, wide)
            sampled_dense_csr(code, X, *operand_of_loop(turned_block, code, wide), *pattern_of_loop(at), sums)
        case _, Dense(values):
            X = _elements(values, code, wide)
            one = as_csr(left)
            sampled_csr_dense(code, *operand_of_loop(one, code, wide), X, *pattern_of_loop(at), sums)
    return sums, None


def _general_at(
    left: Block, right: Block, at: Csr, semiring: Semiring, dtype: np.dtype
) -> tuple[NumericArray, NumericArray | None]:
    codes, (factor, wide) = codes_of(semiring), dtypes_of(semiring, dtype)
    sums = np.full(at.nnz, identity_of(semiring, dtype, wide))
    if is_sparse(left) and is_sparse(right):
        one, other = as_csr(left), as_csr(right)
        met, slots = np.zeros(at.nnz, np.uint8), np.zeros(at.shape[1], np.uint32)
        A, B = sparse_factors(one, other, semiring, factor)
        sparse_product_at(codes, *A, *B, *pattern_of_loop(at), slots, sums, met)
        return sums, met.view(_TRUTH)
    one_side, other_side = factors(left, semiring, 0, factor), factors(right, semiring, 1, factor)
    if isinstance(one_side, Dense) and isinstance(other_side, Dense) and len(at.shape) == 2:
        X, turned = (given(cast(each, factor)) for each in (one_side.values, other_side.values.T))
        dense_product_at(codes, X, turned, *pattern_of_loop(at), sums)
        return sums, None
    product = multiply(left, right, semiring, dtype)
    assert isinstance(product, Dense)
    return product.values[rows_of(at), at.columns], None


def _turned(block: Csr) -> Csr:
    turned = transpose(block, (1, 0))
    assert not isinstance(turned, Dense)
    return as_csr(turned)


def _sparse_where(
    left: Block,
    right: Block,
    mask: Block,
    semiring: Semiring,
    dtype: np.dtype,
    complement: bool,
    structural: bool,
) -> SparseBlock:
    """Return the entries of a sparse product where a Dense or turned mask lets them through.

    Memory at its peak, inputs apart: that of the product without a mask, a byte for every column, and for a
    Dense mask a byte an element.
    """
    one, other = as_csr(left), as_csr(right)
    shape = (left.shape[0], right.shape[1])
    if isinstance(mask, Dense):
        dense_mask = _true_elements(mask, complement, structural).view(np.uint8)
        hidden = as_csr(Empty(shape, _TRUTH))
    else:
        dense_mask = np.zeros((0, shape[1]), np.uint8)
        hidden = _true_pattern(as_csr(mask), structural)
    if semiring.is_general:
        product = as_csr(multiply(left, right, semiring, dtype))
        if isinstance(mask, Dense):
            return entries_kept(product, dense_mask[rows_of(product), product.columns].view(_TRUTH))
        is_hidden = values_at(pattern_of(product, _TRUTH), hidden)
        return entries_kept(product, np.logical_not(is_hidden))
    code, identity = _code(left, right, semiring, dtype)
    room = room_for(one, other)
    row = np.full(shape[1] + 1, identity)
    pointers, columns = np.zeros(shape[0] + 1, np.int32), np.empty(room, np.int32)
    out = np.empty(room, row.dtype)
    operands = (*operand_of_loop(one, code, row.dtype), *operand_of_loop(other, code, row.dtype))
    count = product_where(
        code, *operands, *pattern_of_loop(hidden), given(dense_mask), np.ones(shape[1], np.uint8),
        bits(shape[1]), row, pointers.view(np.uint32), columns.view(np.uint32), out,
    )  # fmt: skip
    shrink(columns, count)
    shrink(out, count)
    return settled(Csr(shape, pointers, columns, cast(out, dtype), dtype))


def _dense_where(
    left: Block, right: Block, wanted: NumericArray, semiring: Semiring, dtype: np.dtype
) -> Dense:
    """Return a Dense product where it is wanted and the identity elsewhere; rows not wanted are not computed.

    Memory at its peak, inputs apart: the rows of ``left`` that are wanted, their product, and the result.
    """
    result = np.full(wanted.shape, semiring.add.identity(dtype), dtype)
    some = int(np.count_nonzero(wanted))
    if some == 0:
        return Dense(result)
    dense = isinstance(left, Dense) and isinstance(right, Dense)
    if dense and len(left.shape) == len(right.shape) == 2 and prefers_entries(some, wanted.size):
        at = _pattern_where(wanted)
        result[wanted] = cast(_at_entries(left, right, at, semiring, dtype)[0], dtype)
        return Dense(result)
    if len(left.shape) != 2:
        product = multiply(left, right, semiring, dtype)
        assert isinstance(product, Dense)
        np.copyto(result, product.values, where=wanted)
        return Dense(result)
    rows: NumericArray = wanted if wanted.ndim == 1 else np.asarray(wanted.any(axis=1))
    if rows.all():
        product = multiply(left, right, semiring, dtype)
    else:
        product = multiply(_rows_where(left, rows), right, semiring, dtype)
    assert isinstance(product, Dense)
    inside = result[rows]
    np.copyto(inside, product.values, where=wanted[rows])
    result[rows] = inside
    return Dense(result)


def _pattern_where(wanted: NumericArray) -> Csr:
    pointers = np.zeros(wanted.shape[0] + 1, np.int32)
    np.cumsum(np.count_nonzero(wanted, axis=1), out=pointers[1:])
    columns = np.nonzero(wanted)[1].astype(np.int32)
    return Csr((wanted.shape[0], wanted.shape[1]), pointers, columns, None, _TRUTH)


def _rows_where(block: Block, rows: NumericArray) -> Block:
    if isinstance(block, Dense):
        return Dense(block.values[rows])
    csr = as_csr(block)
    counts = np.diff(csr.pointers)
    kept = np.repeat(rows, counts)
    pointers = np.zeros(int(np.count_nonzero(rows)) + 1, np.int32)
    np.cumsum(counts[rows], out=pointers[1:])
    values = None if csr.values is None else csr.values[kept]
    return settled(Csr((pointers.size - 1, csr.shape[1]), pointers, csr.columns[kept], values, csr.dtype))


def _counts_pairs(
    left: Block,
    right: Block,
    mask: SparseBlock,
    semiring: Semiring,
    dtype: np.dtype,
    scaled: np.dtype | None,
    wide: np.dtype,
) -> bool:
    # Exact in each dtype on the way: an entry counts at most 2^31 - 1 pairs, the length of a row.
    if not (is_sparse(left) and is_sparse(right)):
        return False
    exact = ("float64", "int64", "int32")
    if dtype.name not in exact or wide.name not in exact or (scaled or dtype).name not in exact:
        return False
    if scaled is not None and isinstance(mask, Csr) and mask.values is not None:
        return False
    patterns = all(not isinstance(block, Csr) or block.values is None for block in (left, right))
    return semiring.name == "plus_pair" or (semiring.name == "plus_times" and patterns)
