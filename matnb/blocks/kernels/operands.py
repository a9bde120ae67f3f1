"""What a loop over a sparse block is given: its arrays, and the dtype that the loop computes in."""

from __future__ import annotations

import numpy as np

from matnb.blocks.formats import Block, Csr, Dense, NumericArray, cast, is_sparse
from matnb.blocks.kernels.compiled import UnsignedArray, given, unsigned
from matnb.blocks.kernels.reductions.reductions import accumulator_dtype
from matnb.blocks.semiring import LOR, LOR_LAND, MIN, MIN_PLUS, PLUS, PLUS_TIMES, Semiring
from matnb.errors import DTypeError

_SUMS = {
    "float64": np.float64, "float32": np.float32, "float16": np.float64,
    "complex64": np.complex128, "complex128": np.complex128, "int32": np.int32,
}  # fmt: skip


def check_loop_dtype(dtype: np.dtype) -> None:
    """Refuse a result of extended precision, which no compiled loop has.

    Raises
    ------
    DTypeError
        Naming the dtype.
    """
    if dtype.kind in "fc" and dtype.itemsize > (8 if dtype.kind == "f" else 16):
        raise DTypeError(f"a sparse product of dtype {dtype}: convert to double precision with astype first")


def loop_semiring(semiring: Semiring, dtype: np.dtype) -> Semiring:
    """Return the semiring that a loop runs for a result of this dtype: booleans are added as truths."""
    return LOR_LAND if semiring is PLUS_TIMES and dtype.kind == "b" else semiring


def loop_dtype(semiring: Semiring, dtype: np.dtype) -> np.dtype:
    """Return the dtype that a loop computes in, from which a cast gives the result in ``dtype``.

    A loop is compiled anew for each, so rare ones are computed in another: whole numbers that wrap at 64 bits
    are right in fewer bits too, and half precision, which Numba lacks, in double.
    """
    if semiring.multiply == "land":
        return np.dtype(np.bool_)
    if semiring.add.name == "min":  # what wraps must wrap before it is compared
        return np.dtype(np.float64) if dtype == np.float16 else dtype
    return np.dtype(_SUMS.get(dtype.name, np.int64))


def sums_dtype(semiring: Semiring, dtype: np.dtype) -> np.dtype:
    """Return the dtype in which a loop that computes in ``dtype`` keeps its sums: the longest of its kind."""
    if semiring.add.name != "plus":
        return dtype
    return np.dtype(np.int64) if dtype.kind == "i" else accumulator_dtype("sum", dtype)


def pattern_of_loop(block: Csr) -> tuple[UnsignedArray, UnsignedArray]:
    """Return pointers and columns as a loop takes them."""
    return unsigned(block.pointers), unsigned(block.columns)


def entries_of_loop(block: Csr, dtype: np.dtype) -> tuple[NumericArray, np.uint64]:
    """Return the entries as ``dtype`` and how far apart they are: 0 where a single one stands for all."""
    values, apart = own_entries(block)
    return given(cast(values, dtype)), apart


def own_entries(block: Csr) -> tuple[NumericArray, np.uint64]:
    """Return the entries in their own dtype and how far apart they are, as ``entries_of_loop`` does."""
    if block.values is None:
        return given(np.ones(1, block.dtype)), np.uint64(0)
    if block.values.strides == (0,):
        return given(block.values[:1]), np.uint64(0)
    return given(block.values), np.uint64(1)


def result_shape(left: Block, right: Block) -> tuple[int, ...]:
    """Return the shape of a product, as ``numpy.matmul`` has it."""
    a, b = left.shape, right.shape
    return (*np.broadcast_shapes(a[:-2], b[:-2]), *a[-2:-1], *(b[-1:] if len(b) > 1 else ()))


def known_operands(
    left: Block, right: Block, semiring: Semiring, dtype: np.dtype
) -> tuple[Block, Block, Semiring]:
    """Return operands of the same product over a semiring that loops know.

    Where the value of one operand is kept, the other's counts only by where it is, so it can be what changes
    nothing: a + 0 is a, and (a and true) is a. Absent elements of a dense vector that meets a sparse matrix
    become the identity of ``dtype``, which the loops of min_plus leave out.
    """
    first, second = left, right
    meets_sparse = is_sparse(left) != is_sparse(right)
    if semiring.add is MIN and meets_sparse:
        first, second = (
            Dense(_present(one.values, dtype)) if isinstance(one, Dense) and one.values.ndim == 1 else one
            for one in (left, right)
        )
    if semiring.is_general:
        return left, right, semiring
    match semiring.multiply:
        case "pair" if semiring.add is LOR:
            return _truths(first), _truths(second), LOR_LAND
        case "first":
            second = _neutral(second, semiring, dtype, meets_sparse)
        case "second":
            first = _neutral(first, semiring, dtype, meets_sparse)
        case _:
            return first, second, semiring
    return first, second, {"min": MIN_PLUS, "plus": PLUS_TIMES}.get(semiring.add.name, LOR_LAND)


def _truths(block: Block) -> Block:
    # True for each entry, whatever its value.
    truth = np.dtype(np.bool_)
    match block:
        case Csr(shape, pointers, columns):
            return Csr(shape, pointers, columns, None, truth)
        case Dense(values):
            return Dense(np.broadcast_to(np.ones(1, truth), values.shape))
    return block


def _present(x: NumericArray, dtype: np.dtype) -> NumericArray:
    # A vector as ``dtype`` whose absent elements stay absent: an int32's largest is not an int64's.
    if x.dtype == dtype:
        return x
    values = cast(x, dtype, copy=True)
    values[x == MIN.identity(x.dtype)] = MIN.identity(dtype)
    return values


def _neutral(block: Block, semiring: Semiring, dtype: np.dtype, meets_sparse: bool) -> Block:
    if semiring.add is PLUS:
        one = np.ones(1, dtype)
        if isinstance(block, Csr):
            return Csr(block.shape, block.pointers, block.columns, None, dtype)
        return Dense(np.broadcast_to(one, block.shape)) if isinstance(block, Dense) else block
    # -0.0, since 0.0 would cost a -0.0 its sign.
    is_least = semiring.add is MIN
    nothing = cast(np.array([-0.0 if is_least else 1.0]), dtype if is_least else np.dtype(np.bool_))
    match block:
        case Csr(shape, pointers, columns, _, _):
            values = np.broadcast_to(nothing, columns.shape) if is_least else None
            return Csr(shape, pointers, columns, values, nothing.dtype)
        case Dense(values) if meets_sparse and values.ndim == 1:
            if not is_least:
                return block
            absent = MIN.identity(dtype)
            return Dense(np.where(values == absent, absent, nothing))
        case Dense(values):
            return Dense(np.broadcast_to(nothing, values.shape))
    return block
