"""Products under a mask: only what the mask lets through is computed, or kept."""

from __future__ import annotations

import numpy as np

from matnb.blocks.formats import Block, Csr, Dense, Empty, NumericArray, SparseBlock, is_sparse
from matnb.blocks.kernels import masked_product_loops as masked_loops
from matnb.blocks.kernels import sampled_product_loops as sampled_loops
from matnb.blocks.kernels.casting import cast
from matnb.blocks.kernels.compiled import given
from matnb.blocks.kernels.operands import check_loop_dtype, known_operands, pattern_of_loop
from matnb.blocks.kernels.patterns import as_csr, pattern_of, rows_of, settled
from matnb.blocks.kernels.products import multiply
from matnb.blocks.kernels.reductions import accumulator_dtype, reduce_block
from matnb.blocks.kernels.shaping import transpose
from matnb.blocks.kernels.sparse_product_loops import MIN_PLUS, PAIR, PLUS_TIMES, TRUTH
from matnb.blocks.kernels.sparse_products import bits, operand_of_loop, room_for, shrink
from matnb.blocks.semiring import Semiring
from matnb.errors import OptionError, ShapeError

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
    shape = _product_shape(left, right)
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
        masked_loops.count_pairs(
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


def _product_shape(left: Block, right: Block) -> tuple[int, ...]:
    one, other = left.shape, right.shape
    if not one or not other or one[-1] != other[-2 if len(other) > 1 else 0]:
        raise ShapeError(
            f"no product of shapes {one} and {other}: the last axis of the first must meet the second's rows"
        )
    batch = np.broadcast_shapes(one[:-2], other[:-2])
    return (*batch, *one[-2:-1], *(other[-1:] if len(other) > 1 else ()))


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
    code, identity = _code(left, right, semiring, dtype)
    wide = identity.dtype
    sums = np.full(at.nnz, identity)
    if is_sparse(left) and is_sparse(right):
        met = np.zeros(at.nnz, np.uint8)
        one, other = as_csr(left), as_csr(right)  # type: ignore[arg-type]  # both were just asked
        in_column = np.zeros(other.shape[1], np.uint32)
        work = masked_loops.count_work(
            *pattern_of_loop(one), *pattern_of_loop(other), *pattern_of_loop(at), in_column
        )
        by_columns = prefers_columns(int(work[0]), int(work[1]), other.nnz)
        if by_columns:
            other = _turned(other)
        loop = masked_loops.product_by_columns if by_columns else masked_loops.product_by_slots
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
            sampled_loops.sampled_dense(code, X, turned, *pattern_of_loop(at), sums)
        case Dense(values), _:
            turned_block = _turned(as_csr(right))  # type: ignore[arg-type]  # it is not Dense
            X = _elements(values, code, wide)
            sampled_loops.sampled_dense_csr(
                code, X, *operand_of_loop(turned_block, code, wide), *pattern_of_loop(at), sums
            )
        case _, Dense(values):
            X = _elements(values, code, wide)
            one = as_csr(left)
            sampled_loops.sampled_csr_dense(
                code, *operand_of_loop(one, code, wide), X, *pattern_of_loop(at), sums
            )
    return sums, None


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
    one, other = as_csr(left), as_csr(right)  # type: ignore[arg-type]  # both are sparse
    shape = (left.shape[0], right.shape[1])
    if isinstance(mask, Dense):
        dense_mask = _true_elements(mask, complement, structural).view(np.uint8)
        hidden = as_csr(Empty(shape, _TRUTH))
    else:
        dense_mask = np.zeros((0, shape[1]), np.uint8)
        hidden = _true_pattern(as_csr(mask), structural)
    code, identity = _code(left, right, semiring, dtype)
    room = room_for(one, other)
    row = np.full(shape[1] + 1, identity)
    pointers, columns = np.zeros(shape[0] + 1, np.int32), np.empty(room, np.int32)
    out = np.empty(room, row.dtype)
    operands = (*operand_of_loop(one, code, row.dtype), *operand_of_loop(other, code, row.dtype))
    count = masked_loops.product_where(
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
    return semiring.multiply == "pair" or (semiring.multiply == "times" and patterns)
