"""Products over semirings without loops of their own: a loop for each pair of formats, told what to do."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import Block, Csr, Dense, Empty, NumericArray, cast
from matnb.blocks.kernels.compiled import UnsignedArray, compiled, given, inlined
from matnb.blocks.kernels.operands import (
    check_loop_dtype,
    entries_of_loop,
    pattern_of_loop,
    result_shape,
    sums_dtype,
)
from matnb.blocks.kernels.products.sparse_product_loops import (
    Words,
    is_less,
    is_listed,
    list_columns,
    mark_row,
    row_span,
    take_columns,
)
from matnb.blocks.semiring import Semiring

Codes = npt.NDArray[np.int64]
Marks = npt.NDArray[np.uint8]
# Numbers that a loop compares as it runs, so that it is compiled once for a dtype and not for each semiring.
_PLUS, _TIMES, _MIN, _MAX, _FIRST, _SECOND, _PAIR = map(np.int64, range(7))
_ADDS = {"plus": _PLUS, "times": _TIMES, "min": _MIN, "max": _MAX, "lor": _MAX, "land": _MIN}
_MULTIPLIES = {
    "plus": _PLUS, "times": _TIMES, "min": _MIN, "max": _MAX, "first": _FIRST, "second": _SECOND,
    "pair": _PAIR, "land": _MIN, "lor": _MAX,
}  # fmt: skip
_OF_TRUTHS = {"plus": _MAX, "times": _MIN}
_TRUTH = np.dtype(np.bool_)
_Number: TypeAlias = Any  # Numba's: a type, which converts
Factor = tuple[UnsignedArray, UnsignedArray, NumericArray, np.uint64]


def codes_of(semiring: Semiring) -> Codes:
    """Return how a loop adds and multiplies; of truths, as zeros and ones, by their order."""
    multiply = _MULTIPLIES[semiring.multiply]
    if semiring.is_of_truths:
        multiply = _OF_TRUTHS.get(semiring.multiply, multiply)
    return np.array([_ADDS[semiring.add.name], multiply], np.int64)


def dtypes_of(semiring: Semiring, dtype: np.dtype) -> tuple[np.dtype, np.dtype]:
    """Return in which dtypes a loop multiplies and adds, so that a cast gives the result in ``dtype``.

    Halves, which Numba lacks, are doubles, and truths zeros and ones. Sums of floats are doubles.
    """
    check_loop_dtype(dtype)
    factor = np.dtype({"bool": "uint8", "float16": "float64"}.get(dtype.name, dtype))
    if semiring.add.name == "times" and factor.kind in "fc":
        return factor, np.result_type(factor, np.float64)
    return factor, factor if dtype == _TRUTH else sums_dtype(semiring, factor)


def identity_of(semiring: Semiring, dtype: np.dtype, wide: np.dtype) -> np.generic:
    """Return the identity of the addition in the dtype of a loop's sums."""
    number: np.generic = wide.type(semiring.add.identity(dtype))
    return number


def factors(block: Block, semiring: Semiring, place: int, dtype: np.dtype) -> Block:
    """Return an operand as a loop takes it: truths where these are added, ones where its value is not asked.

    A block without entries has no value, and stays as it is.

    Parameters
    ----------
    place
        0 of the left operand, 1 of the right one.
    dtype
        In which the loop multiplies.
    """
    is_not_asked = semiring.multiply in (("second", "first")[place], "pair")
    match block:
        case Empty():
            return block
        case Csr(shape, pointers, columns, values):
            if is_not_asked:
                return Csr(shape, pointers, columns, None, dtype)
            if not semiring.is_of_truths:
                return block
            truths = None if values is None else cast(values, _TRUTH)
            return Csr(shape, pointers, columns, truths, _TRUTH)
        case Dense(values):
            if is_not_asked:
                return Dense(np.broadcast_to(np.ones(1, dtype), values.shape))
            return Dense(cast(values, _TRUTH)) if semiring.is_of_truths else block


def sparse_factors(left: Csr, right: Csr, semiring: Semiring, dtype: np.dtype) -> tuple[Factor, Factor]:
    """Return two sparse operands as a loop takes them: pointers, columns, values, how far apart these are."""

    def factor(block: Csr, place: int) -> Factor:
        one = factors(block, semiring, place, dtype)
        assert isinstance(one, Csr)
        return (*pattern_of_loop(one), *entries_of_loop(one, dtype))

    return factor(left, 0), factor(right, 1)


def present(block: Block, semiring: Semiring, meets_sparse: bool) -> Marks:
    """Return for each element of a vector that meets a sparse block whether it is there; else nothing."""
    if not (semiring.leaves_out and meets_sparse and isinstance(block, Dense) and block.values.ndim == 1):
        return np.empty(0, np.uint8)
    there = block.values != semiring.add.identity(block.dtype)
    return np.asarray(there).view(np.uint8)


def dense_product(left: Block, right: Block, semiring: Semiring, dtype: np.dtype) -> Dense:
    """Return the product of two blocks of which one is Dense at least; with the identity where nothing met.

    Each row of it is added in the order of the left operand's entries, and follows from that row alone. Peak
    memory: operands that have another dtype or order, and sums that are wider than the result.
    """
    codes, (factor, wide) = codes_of(semiring), dtypes_of(semiring, dtype)
    shape = result_shape(left, right)
    identity = identity_of(semiring, dtype, wide)
    one, other = factors(left, semiring, 0, factor), factors(right, semiring, 1, factor)
    match one, other:
        case Csr(), Dense(values):
            out = np.full((left.shape[0], values.shape[1] if values.ndim == 2 else 1), identity)
            X = given(cast(values, factor).reshape(len(values), -1))
            there = given(present(right, semiring, True))
            _sparse_dense(codes, *pattern_of_loop(one), *entries_of_loop(one, factor), X, there, out)
        case Dense(values), Csr():
            out = np.full((len(values) if values.ndim == 2 else 1, right.shape[1]), identity)
            X = given(cast(values, factor).reshape(-1, values.shape[-1]))
            there = given(present(left, semiring, True))
            _dense_sparse(codes, X, there, *pattern_of_loop(other), *entries_of_loop(other, factor), out)
        case Dense(values), Dense(others):
            A = cast(values if values.ndim > 1 else values[np.newaxis], factor)
            B = cast(others if others.ndim > 1 else others[:, np.newaxis], factor)
            batch = np.broadcast_shapes(A.shape[:-2], B.shape[:-2])
            A, B = (
                np.broadcast_to(each, (*batch, *each.shape[-2:])).reshape(math.prod(batch), *each.shape[-2:])
                for each in (A, B)
            )
            out = np.full((len(A), A.shape[1], B.shape[2]), identity)
            _dense_dense(codes, given(A), given(B), out)
        case _:  # one has no entry, so nothing meets
            out = np.full(shape, identity)
    return Dense(cast(out.reshape(shape), dtype))


@inlined
def _multiplied(code: np.int64, one: float, other: float) -> float:
    if code == _PLUS:
        return one + other
    if code == _TIMES:
        return one * other
    if code == _MIN:
        return one if is_less(one, other) or one != one else other
    if code == _MAX:
        return one if is_less(other, one) or one != one else other
    return other if code == _SECOND else one  # of pairs, both are 1


@inlined
def _added(code: np.int64, total: float, value: float) -> float:
    if code == _PLUS:
        return total + value
    if code == _TIMES:
        return total * value
    if code == _MIN:
        return value if is_less(value, total) or value != value else total
    return value if is_less(total, value) or value != value else total


# Numba computes narrow integers in 64 bits, and only what is made their type again wraps as NumPy's do.


@compiled
def _sparse_dense(
    codes: Codes,
    pointers: UnsignedArray,
    columns: UnsignedArray,
    values: NumericArray,
    apart: np.uint64,
    X: NumericArray,
    there: Marks,
    out: NumericArray,
) -> None:
    add, multiply = codes[0], codes[1]
    narrow: _Number = X.dtype.type
    wide: _Number = out.dtype.type
    for i in range(np.uint64(pointers.size - 1)):
        total = out[i]
        for place in range(np.uint64(pointers[i]), np.uint64(pointers[i + np.uint64(1)])):
            k = columns[place]
            if there.size and not there[k]:
                continue
            value, x = values[place * apart], X[k]
            for j in range(x.size):
                total[j] = _added(add, total[j], wide(narrow(_multiplied(multiply, value, x[j]))))


@compiled
def _dense_sparse(
    codes: Codes,
    X: NumericArray,
    there: Marks,
    pointers: UnsignedArray,
    columns: UnsignedArray,
    values: NumericArray,
    apart: np.uint64,
    out: NumericArray,
) -> None:
    add, multiply = codes[0], codes[1]
    narrow: _Number = X.dtype.type
    wide: _Number = out.dtype.type
    for i in range(X.shape[0]):
        total = out[i]
        for k in range(np.uint64(X.shape[1])):
            if there.size and not there[k]:
                continue
            x = X[i, k]
            for place in range(np.uint64(pointers[k]), np.uint64(pointers[k + np.uint64(1)])):
                j = columns[place]
                value = narrow(_multiplied(multiply, x, values[place * apart]))
                total[j] = _added(add, total[j], wide(value))


@compiled
def _dense_dense(codes: Codes, A: NumericArray, B: NumericArray, out: NumericArray) -> None:
    add, multiply = codes[0], codes[1]
    narrow: _Number = A.dtype.type
    wide: _Number = out.dtype.type
    for n in range(A.shape[0]):
        for i in range(A.shape[1]):
            total = out[n, i]
            for k in range(A.shape[2]):
                x, row = A[n, i, k], B[n, k]
                for j in range(row.size):
                    total[j] = _added(add, total[j], wide(narrow(_multiplied(multiply, x, row[j]))))


@compiled
def sparse_product_over(
    codes: Codes,
    pointers_a: UnsignedArray,
    columns_a: UnsignedArray,
    values_a: NumericArray,
    apart_a: np.uint64,
    pointers_b: UnsignedArray,
    columns_b: UnsignedArray,
    values_b: NumericArray,
    apart_b: np.uint64,
    seen: Words,
    row: NumericArray,
    pointers: UnsignedArray,
    columns: UnsignedArray,
    out: NumericArray,
) -> np.int64:
    """Write pointers, columns and values of A @ B, both sparse; return how many entries it has.

    ``row`` holds the identity of the addition for every column, and ``seen`` has a bit for every column, 0.
    """
    add, multiply, count, identity = codes[0], codes[1], np.uint64(0), row[0]
    narrow: _Number = values_a.dtype.type
    wide: _Number = row.dtype.type
    for i in range(pointers_a.size - 1):
        start, stop = pointers_a[i], pointers_a[i + 1]
        pairs, low, high = row_span(start, stop, columns_a, pointers_b, columns_b)
        end = count
        if pairs > 0 and is_listed(pairs, low, high):
            end = list_columns(start, stop, columns_a, pointers_b, columns_b, pairs, seen, columns, count)
        elif pairs > 0:
            mark_row(start, stop, columns_a, pointers_b, columns_b, seen)
            end = take_columns(low, high, seen, columns, count)
        for a in range(np.uint64(start), np.uint64(stop)):
            k, value = np.uint64(columns_a[a]), values_a[a * apart_a]
            for b in range(np.uint64(pointers_b[k]), np.uint64(pointers_b[k + np.uint64(1)])):
                made = narrow(_multiplied(multiply, value, values_b[b * apart_b]))
                row[columns_b[b]] = _added(add, row[columns_b[b]], wide(made))
        for place in range(count, end):
            out[place] = row[columns[place]]
            row[columns[place]] = identity
        count = end
        pointers[i + 1] = end
    return np.int64(count)


@compiled
def sparse_product_at(
    codes: Codes,
    pointers_a: UnsignedArray,
    columns_a: UnsignedArray,
    values_a: NumericArray,
    apart_a: np.uint64,
    pointers_b: UnsignedArray,
    columns_b: UnsignedArray,
    values_b: NumericArray,
    apart_b: np.uint64,
    pointers_m: UnsignedArray,
    columns_m: UnsignedArray,
    slots: UnsignedArray,
    sums: NumericArray,
    met: Marks,
) -> None:
    """Add the pairs of A @ B at the entries of a mask to ``sums``; ``met`` tells where there was a pair.

    ``slots`` is 0 for every column, before and after: within a row, where the mask's entry is, from 1 on.
    """
    add, multiply, one = codes[0], codes[1], np.uint64(1)
    narrow: _Number = values_a.dtype.type
    wide: _Number = sums.dtype.type
    for i in range(np.uint64(pointers_m.size - 1)):
        start, stop = np.uint64(pointers_m[i]), np.uint64(pointers_m[i + one])
        for entry in range(start, stop):
            slots[columns_m[entry]] = entry + one
        for a in range(np.uint64(pointers_a[i]), np.uint64(pointers_a[i + one])):
            k, value = np.uint64(columns_a[a]), values_a[a * apart_a]
            for b in range(np.uint64(pointers_b[k]), np.uint64(pointers_b[k + one])):
                slot = np.uint64(slots[columns_b[b]])
                if slot != 0:
                    made = narrow(_multiplied(multiply, value, values_b[b * apart_b]))
                    sums[slot - one] = _added(add, sums[slot - one], wide(made))
                    met[slot - one] = 1
        for entry in range(start, stop):
            slots[columns_m[entry]] = 0


@compiled
def dense_product_at(
    codes: Codes,
    X: NumericArray,
    turned: NumericArray,
    pointers_m: UnsignedArray,
    columns_m: UnsignedArray,
    sums: NumericArray,
) -> None:
    """Add X @ Y, both dense and Y given transposed, to ``sums`` at the entries of a mask."""
    add, multiply = codes[0], codes[1]
    narrow: _Number = X.dtype.type
    wide: _Number = sums.dtype.type
    for i in range(np.uint64(pointers_m.size - 1)):
        x = X[i]
        for entry in range(np.uint64(pointers_m[i]), np.uint64(pointers_m[i + np.uint64(1)])):
            y, total = turned[columns_m[entry]], sums[entry]
            for k in range(x.size):
                total = _added(add, total, wide(narrow(_multiplied(multiply, x[k], y[k]))))
            sums[entry] = total
