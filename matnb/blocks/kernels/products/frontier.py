"""Products with a graph of dense vectors that are mostly absent: pushed along its rows, or pulled by them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from matnb.blocks.formats import Block, Csr, Dense, Empty, IndexArray, NumericArray, SparseBlock, cast
from matnb.blocks.kernels.by_numpy import QUICK, product_with_rows
from matnb.blocks.kernels.compiled import UnsignedArray, given, is_worth_compiling, unsigned
from matnb.blocks.kernels.operands import check_loop_dtype, known_operands, loop_dtype, own_entries
from matnb.blocks.kernels.products import frontier_loops as loops
from matnb.blocks.kernels.products.products import accumulate
from matnb.blocks.kernels.shaping.shaping import Memory, cut
from matnb.blocks.semiring import MAX, PLUS, Monoid, Semiring
from matnb.errors import ShapeError, UnsupportedError

_TRUTH = np.dtype(np.bool_)
_FEW_COLUMNS = 1 << 13
_PART_WORK, _ROW_WORK = 2**18, 4  # entries: what threads share takes half a millisecond
_LEVELS = 27  # of a binary tree over leaves of 64 entries, of which a block has at most 2**31


def push(
    A: SparseBlock,
    pieces: Sequence[NumericArray],
    wanted: NumericArray | None,
    semiring: Semiring,
    dtype: np.dtype,
    memory: Memory = np.empty,
) -> Block:
    """Multiply a dense vector with a matrix, reading only the rows where the vector has something.

    Parameters
    ----------
    A
        Of n rows and m columns.
    pieces
        The vector's n elements, in pieces one after the other. An element that is the identity of the
        semiring's addition is absent.
    wanted
        For each column whether the product is made there, or None for all.
    semiring
        One that adds by min or lor, or whole numbers, so that the order in which entries meet changes no bit.
    dtype
        Of the result.
    memory
        Where a Dense result of numbers is made; asked at most once.

    Returns
    -------
    Block
        The product: Dense, of shape (m,), with the identity where nothing met; or, if few entries were read,
        a sparse block of shape (1, m). Peak memory in addition: 4 bytes for every row that is read, and a bit
        for every column, or, with few entries, 60 bytes for each; pieces of another dtype are converted.

    Raises
    ------
    DTypeError
        For a result of extended precision.
    ShapeError
        When the pieces are not as long as A has rows, or ``wanted`` is not as long as it has columns.
    UnsupportedError
        For a semiring with another addition.
    """
    num_rows, width = A.shape
    if not semiring.pushes(dtype):
        raise UnsupportedError(f"nothing is pushed over {semiring.name!r}: its sums depend on their order")
    if sum(map(len, pieces)) != num_rows or (wanted is not None and wanted.shape != (width,)):
        lengths = [len(piece) for piece in pieces]
        raise ShapeError(f"pieces of {lengths} elements with a matrix of {num_rows} rows: give one for each")
    check_loop_dtype(dtype)
    if isinstance(A, Empty):
        return Empty((1, width), dtype)
    keeps_elements = semiring.multiply == "first"
    known = [known_operands(Dense(piece), A, semiring, dtype) for piece in pieces]
    _, block, semiring = known[0]
    assert isinstance(block, Csr)
    operand = loop_dtype(semiring, dtype)
    moved = [cast(one.values, operand) for one, _, _ in known if isinstance(one, Dense)]
    frontier = _Frontier(block, moved, semiring, operand)
    if not frontier.num_rows:
        return Empty((1, width), dtype)
    with np.errstate(all="ignore"):
        if max(frontier.num_rows, frontier.num_entries) <= most_sorted(width):
            return _sorted(frontier, wanted, dtype)
        if operand == _TRUTH:
            return Dense(cast(_marked(frontier, wanted), dtype))
        shape = (width,)
        out = memory(shape, dtype) if operand == dtype else np.empty(shape, operand)
        out.fill(frontier.identity[0])
        fill = _firsts if keeps_elements and frontier.rises else _least
        fill = _sums if semiring.add is PLUS else fill
        fill(frontier, wanted, out)
        return Dense(cast(out, dtype))


def most_sorted(width: int) -> int:
    """Return up to how many entries are sorted by column rather than written to a vector over the columns."""
    # To sort one takes about 80 ns, to clear and to read a column 1 to 2 (Xeon, 2.5 GHz). To sort at all
    # takes as long as to go through some thousand columns.
    return width // 64 if width > _FEW_COLUMNS else 0


def put_together(
    parts: Sequence[Block],
    bounds: Sequence[tuple[int, int]],
    monoid: Monoid,
    dtype: np.dtype,
    whole: bool,
    memory: Memory = np.empty,
) -> Block:
    """Combine what was pushed from several blocks of rows, over a range of the columns.

    Parameters
    ----------
    parts
        As :func:`push` and this function give them.
    bounds
        Where the range begins and ends in each part.
    monoid, dtype
        Of the addition and the result.
    whole
        Make a Dense block even of sparse parts alone; otherwise those give a sparse block of one row.
    memory
        Where a Dense block is made; asked at most once.
    """
    both = list(zip(parts, bounds, strict=True))
    dense = [part.values[start:stop] for part, (start, stop) in both if isinstance(part, Dense)]
    sparse = [cut(part, (slice(0, 1), slice(*place))) for part, place in both if not isinstance(part, Dense)]
    if not dense and not whole:
        return accumulate(sparse, monoid, dtype)
    combine = getattr(np, monoid.ufunc)
    start, stop = bounds[0]
    total = memory((stop - start,), dtype)
    if len(dense) > 1:
        combine(dense[0], dense[1], out=total)
        for values in dense[2:]:
            combine(total, values, out=total)
    elif dense:
        np.copyto(total, dense[0])
    else:
        total.fill(monoid.identity(dtype))
    for part in sparse:
        if isinstance(part, Csr):
            total[part.columns] = combine(total[part.columns], part.entries)
    return Dense(total)


@dataclass(frozen=True)
class _FrontierPiece:
    # A piece of the vector, which of its rows are read, and their pointers.
    start: int
    rows: UnsignedArray
    pointers: UnsignedArray
    x: NumericArray


class _Frontier:
    # A vector in pieces that is pushed along a matrix, looked at once.

    def __init__(
        self, block: Csr, pieces: Sequence[NumericArray], semiring: Semiring, dtype: np.dtype
    ) -> None:
        self.block = block
        self.semiring = semiring
        self.identity = given(np.full(1, semiring.add.identity(dtype), dtype))
        self.pieces: list[_FrontierPiece] = []
        self.num_rows = self.num_entries = 0
        self.rises = True
        least = np.full(1, MAX.identity(dtype), dtype)
        start = 0
        for values in pieces:
            pointers = unsigned(block.pointers[start : start + values.size + 1])
            x, rows = given(values), np.empty(values.size, np.uint32)
            count, entries, rises = loops.list_rows(pointers, x, self.identity, least, rows)
            if count:
                self.pieces.append(_FrontierPiece(start, rows[:count], pointers, x))
            self.num_rows += int(count)
            self.num_entries += int(entries)
            self.rises = self.rises and rises
            start += values.size


def _sorted(frontier: _Frontier, wanted: NumericArray | None, dtype: np.dtype) -> SparseBlock:
    block, semiring = frontier.block, frontier.semiring
    shape = (1, block.shape[1])
    rows = np.concatenate([one.rows.astype(np.int32) + np.int32(one.start) for one in frontier.pieces])
    x = np.concatenate([one.x[one.rows] for one in frontier.pieces])
    ends = np.cumsum(block.pointers[rows + 1] - block.pointers[rows], dtype=np.int32)
    pointers = np.concatenate([np.zeros(1, np.int32), ends])
    columns = _copied(block, rows, pointers, block.columns)
    values, apart = own_entries(block)
    if apart:
        values = _copied(block, rows, pointers, values)
    products = np.repeat(x, np.diff(pointers))
    met = np.ones(columns.size, _TRUTH) if wanted is None else wanted[columns] != 0
    if x.dtype == _TRUTH:
        met &= values != 0
        found = np.unique(columns[met])
        return _row(shape, found, None, dtype)
    meet = np.multiply if semiring.add is PLUS else np.add
    products = meet(cast(values, x.dtype), products)[met]
    columns = columns[met]
    order = np.argsort(columns, kind="stable")
    found, firsts = np.unique(columns[order], return_index=True)
    least = getattr(np, semiring.add.ufunc).reduceat(products[order], firsts) if found.size else products
    return _row(shape, found, cast(least, dtype), dtype)


def _row(
    shape: tuple[int, int], columns: IndexArray, values: NumericArray | None, dtype: np.dtype
) -> SparseBlock:
    if not columns.size:
        return Empty(shape, dtype)
    return Csr(shape, np.array([0, columns.size], np.int32), columns, values, dtype)


def _copied(block: Csr, rows: IndexArray, pointers: IndexArray, source: NumericArray) -> NumericArray:
    out = np.empty(int(pointers[-1]), source.dtype)
    loops.copy_rows(unsigned(rows), unsigned(block.pointers), unsigned(pointers), given(source), out)
    return out


def _bits(frontier: _Frontier, wanted: NumericArray | None) -> loops.Bits:
    if wanted is None:
        return np.full(-(-frontier.block.shape[1] // 8), 255, np.uint8)
    return np.packbits(wanted.astype(np.bool_, copy=False), bitorder="little")


def _marked(frontier: _Frontier, wanted: NumericArray | None) -> NumericArray:
    before = _bits(frontier, wanted)
    left = before.copy()
    entries = own_entries(frontier.block)
    columns = unsigned(frontier.block.columns)
    for one in frontier.pieces:
        loops.mark(given(one.rows), one.pointers, columns, *entries, left)
    found: NumericArray = np.unpackbits(before ^ left, count=frontier.block.shape[1], bitorder="little")
    return found.view(_TRUTH)


def _firsts(frontier: _Frontier, wanted: NumericArray | None, out: NumericArray) -> None:
    # Where x never falls along the rows, the first element that meets a column is the least.
    left, columns = _bits(frontier, wanted), unsigned(frontier.block.columns)
    for one in frontier.pieces:
        loops.keep_first(given(one.rows), one.pointers, columns, one.x, left, out)


def _least(frontier: _Frontier, wanted: NumericArray | None, out: NumericArray) -> None:
    chosen = None if wanted is None else given(cast(wanted, _TRUTH))
    entries, columns = own_entries(frontier.block), unsigned(frontier.block.columns)
    for one in frontier.pieces:
        loops.keep_least(given(one.rows), one.pointers, columns, *entries, one.x, chosen, out)


def _sums(frontier: _Frontier, wanted: NumericArray | None, out: NumericArray) -> None:
    entries, columns = own_entries(frontier.block), unsigned(frontier.block.columns)
    for one in frontier.pieces:
        loops.add_products(given(one.rows), one.pointers, columns, *entries, one.x, out)
    if wanted is not None:
        out[np.logical_not(wanted)] = 0


# Frontiers of several sources at once: a dense matrix, most of whose rows are 0, pulled along the rows of a
# pattern that are wanted.


def sums_marked_rows(left: Block, right: Block, mask: Block, semiring: Semiring, dtype: np.dtype) -> bool:
    """Tell whether a product under a mask is one of a pattern with a dense matrix of doubles."""
    if not isinstance(left, Csr) or left.values is not None or left.dtype.kind == "c":
        return False
    if not isinstance(right, Dense) or not isinstance(mask, Dense) or len(right.shape) != 2:
        return False
    return semiring.name == "plus_times" and dtype == right.dtype == np.float64


def write_marked_sums(
    left: Csr,
    right: Dense,
    wanted: NumericArray,
    out: NumericArray,
    share: Callable[[Callable[[int], None], int], None],
) -> None:
    """Write the elements of such a product that are wanted, and 0 elsewhere.

    They have the bits of the product of all rows. Peak memory in addition: a bit for each row of ``right``.

    Parameters
    ----------
    wanted
        Truths, of the shape of the product.
    out
        Doubles of that shape, in C order.
    share
        Runs parts, by their numbers, and returns then: each is some of the rows.

    Raises
    ------
    ShapeError
        When the shapes do not fit.
    """
    shape = (left.shape[0], right.shape[1])
    if left.shape[1] != right.shape[0] or not wanted.shape == out.shape == shape:
        raise ShapeError(
            f"no product of shapes {left.shape} and {right.shape} under a mask of shape {wanted.shape} into "
            f"{out.shape}"
        )
    X, bits = given(right.values), np.zeros(-(-right.shape[0] // 8), np.uint8)
    pointers, columns = unsigned(left.pointers), unsigned(left.columns)
    marked, truths = given(bits), given(wanted.view(np.uint8))
    words = given(truths.view(np.uint32)) if shape[1] % 4 == 0 else truths
    amount, room = left.nnz * shape[1] // QUICK, np.empty((_LEVELS, shape[1]))
    summed = pointers, columns, X, marked, truths, words, room, out
    if not is_worth_compiling(loops.sum_marked_rows, amount, *summed):
        out[...] = np.where(wanted, product_with_rows(pointers, columns, None, X, out.dtype), 0)
        return
    loops.mark_rows(X, bits)
    bounds = _bounds_of_parts(left)

    def run(part: int) -> None:
        begin, end = bounds[part : part + 2]
        levels, rows = np.empty((_LEVELS, shape[1])), slice(begin, end)
        own = pointers[begin : end + 1]
        loops.sum_marked_rows(own, columns, X, marked, truths[rows], words[rows], levels, out[rows])

    share(run, len(bounds) - 1)


def _bounds_of_parts(block: Csr) -> list[int]:
    # Parts of about as many entries, where a row counts as some.
    num_rows, pointers = block.shape[0], block.pointers

    def work_before(row: int) -> int:
        return int(pointers[row]) + _ROW_WORK * row

    count = max(1, work_before(num_rows) // _PART_WORK)
    wanted = (work_before(num_rows) * part // count for part in range(1, count))
    cuts = (bisect_left(range(num_rows), one, key=work_before) for one in wanted)
    return list(dict.fromkeys((0, *cuts, num_rows)))
