"""Executes the steps of a task: one table from operators to functions, with fresh or pooled memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from math import prod
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from matnb.backend.tasks.small_passes import MOST_BOUND, SeveralSums, SmallPass, TaskRows, several_sums
from matnb.backend.tasks.step_memory import FRESH, StepMemory, TakenArrays, claim_functions, claim_product
from matnb.blocks.creation import Random, drawn_anew
from matnb.blocks.formats import Block, Csr, Dense, NumericArray, cast, to_numpy
from matnb.blocks.grid import Region, window_start
from matnb.blocks.kernels.calls import call
from matnb.blocks.kernels.compiled import given, is_ready, is_worth_compiling
from matnb.blocks.kernels.elementwise.chains import apply_chain, chain_into
from matnb.blocks.kernels.elementwise.elementwise import Link
from matnb.blocks.kernels.elementwise.one_pass import packed, reduce_chain
from matnb.blocks.kernels.elementwise.tile_loops import LIKE_ARGUMENTS, TILE, run_tiles
from matnb.blocks.kernels.elementwise.tiles import (
    FLOAT,
    BoundPass,
    OperandForm,
    Tiles,
    TileSum,
    form_of,
    write_tiles,
)
from matnb.blocks.kernels.operands import check_loop_dtype
from matnb.blocks.kernels.pairwise import add_in_pairs
from matnb.blocks.kernels.products.dense_products import multiply_into
from matnb.blocks.kernels.products.frontier import push, put_together, sums_marked_rows, write_marked_sums
from matnb.blocks.kernels.products.products import accumulate, multiply
from matnb.blocks.kernels.products.row_parts import RowParts, WholeRows, product_fits
from matnb.blocks.kernels.products.sampled_products import masked_multiply, masked_row_sums
from matnb.blocks.kernels.products.transposed_products import multiply_transposed
from matnb.blocks.kernels.reductions.labels import scatter
from matnb.blocks.kernels.reductions.reductions import accumulator_dtype, combine, finish, reduce_block
from matnb.blocks.kernels.shaping.indexing import (
    gather,
    join_window,
    local_place,
    put_each,
    put_into,
    put_window,
    take_window,
)
from matnb.blocks.kernels.shaping.shaping import adjoining, broadcast, cut, join, root_of, take, transpose
from matnb.blocks.semiring import MONOIDS, semiring_named
from matnb.blocks.sums import num_nodes
from matnb.program import operators as op
from matnb.program.fusing import is_sum
from matnb.program.plan import Step

Values: TypeAlias = Sequence[Any]  # of an operator's registers
Sharing: TypeAlias = Callable[
    [Callable[[int], None], int], None
]  # runs parts, by their numbers, and returns then
_TRUTH = np.dtype(np.bool_)
# Elements that are taken at a time where threads share them, and for a sum. Work on a product in entries,
# where threads share it and where one does it alone: 2**19 are 1 to 2 ms, and shorter parts cost more to
# share than they save. Each part goes through all of a long vector again: one thread takes 1.1 times as long
# for parts of 2**19 as for those of 2**24.
_PART, _SUMMED = 2**17, 2**15
_SHARED_WORK, _WORK_ALONE = 2**19, 2**24
_WORTH_COMPILING = 2**18  # elements: below, what the tile machine saves is little beside its first call


Runner: TypeAlias = Callable[[Values, StepMemory], Any]


def in_turn(run: Callable[[int], None], count: int) -> None:
    """Run parts of a task, by their numbers, one after the other."""
    for part in range(count):
        run(part)


def execute(operator: op.Operator, values: Values, memory: StepMemory = FRESH) -> Any:
    """Run one operator on the values of its registers."""
    return runner_of(operator, None)(values, memory)


# The table. Each function runs an operator on values; a Dense result goes where the memory says if it can.


def _make(operator: op.Make, values: Values, memory: StepMemory) -> Block:
    creation = operator.creation
    if isinstance(creation, Random) and values:
        creation = drawn_anew(creation, [int(one.values) for one in values])
    return creation.make(operator.region)


def _constant(operator: op.Constant, values: Values, memory: StepMemory) -> Block:
    return operator.block


def _cut(operator: op.Cut) -> Runner:
    slices = _slices(operator.bounds)

    def run(values: Values, memory: StepMemory) -> Block:
        block = values[0]
        is_plain = type(block) is Dense and block.values.ndim == len(slices) > 0
        return Dense(block.values[slices]) if is_plain else cut(block, slices)

    return run


def _take(operator: op.Take, values: Values, memory: StepMemory) -> Block:
    key = tuple(slice(*part) if isinstance(part, tuple) else part for part in operator.key)
    if memory.is_pooled and isinstance(values[0], Dense):
        return _in_order(values[0].values[(*key, ...)], memory)
    return take(values[0], key)


def _flip(operator: op.Flip, values: Values, memory: StepMemory) -> Block:
    if memory.is_pooled and isinstance(values[0], Dense):
        return _in_order(values[0].values.transpose(operator.axes), memory)
    return transpose(values[0], operator.axes)


def _in_order(view: NumericArray, memory: StepMemory) -> Block:
    # Loops read memory in C order, so a view that is in it already needs no copy.
    if memory.out is None and view.flags.c_contiguous:
        return Dense(view)
    target = memory.target(view.shape, view.dtype)
    np.copyto(target, view)
    return Dense(target)


def _stretch(operator: op.Stretch, values: Values, memory: StepMemory) -> Block:
    return broadcast(values[0], operator.shape, memory.target)


def _join(operator: op.Join, values: Values, memory: StepMemory) -> Block:
    parts = list(zip(operator.offsets, values, strict=True))
    lying = None if operator.sparse or memory.is_pooled else adjoining(parts, operator.shape, operator.dtype)
    if lying is not None:
        return Dense(lying)
    return join(parts, operator.shape, operator.dtype, operator.sparse, memory.target)


def _fill(operator: op.Fill) -> Runner:
    parts = [_slices(bounds) for bounds in operator.bounds]

    def run(values: Values, memory: StepMemory) -> Block:
        target = memory.target(operator.shape, operator.dtype)
        for part, value in zip(parts, values, strict=True):
            place = target[part]
            if not _within(value.values, place):  # or it was written there
                place[...] = value.values
        return Dense(target)

    return run


def _slices(bounds: Region) -> tuple[slice, ...]:
    return tuple(slice(*part) for part in bounds)


def _multiply(operator: op.Multiply, values: Values, memory: StepMemory) -> Block:
    (left, right), dtype = values, operator.dtype
    semiring = semiring_named(operator.semiring)
    if operator.transposed:
        return multiply_transposed(left, right, semiring, dtype, memory.target)
    fits = isinstance(left, Csr) and isinstance(right, Dense) and 1 <= right.values.ndim <= 2
    if not fits or left.shape[1] != right.shape[0]:
        if memory.claim is not None and isinstance(left, Csr) and isinstance(right, Csr):
            claim_product(left, right, dtype, memory.claim)
        return multiply(left, right, semiring, dtype)
    check_loop_dtype(dtype)
    target = memory.target((left.shape[0], *right.shape[1:]), dtype)
    with np.errstate(all="ignore"):
        multiply_into(left, right, semiring, target)
    return Dense(target)


def _multiply_masked(
    operator: op.MaskedMultiply, values: Values, memory: StepMemory, share: Sharing = in_turn
) -> Block:
    left, right, mask = _turned(values) if operator.turned else values
    semiring, dtype = semiring_named(operator.semiring), operator.dtype
    if sums_marked_rows(left, right, mask, semiring, dtype):
        wanted, target = cast(mask.values, _TRUTH), memory.target(mask.shape, dtype)
        if operator.complement:
            wanted = np.logical_not(wanted)
        write_marked_sums(left, right, wanted, target, share)
        return Dense(target)
    return masked_multiply(
        left, right, mask, semiring, dtype,
        complement=operator.complement, structural=operator.scaled is not None, scaled=operator.scaled,
    )  # fmt: skip


def _sum_masked(operator: op.MaskedSum, values: Values, memory: StepMemory) -> Block:
    left, right, mask = _turned(values) if operator.turned else values
    semiring = semiring_named(operator.semiring)
    return masked_row_sums(left, right, mask, semiring, operator.dtype, operator.scaled, operator.total)


def _turned(values: Values) -> tuple[Any, Any, Any]:
    left, right, mask = values
    return left, Dense(right.values.T), mask


def _push(operator: op.Push, values: Values, memory: StepMemory) -> Block:
    pieces = [one.values for one in values[1 + operator.masked :]]
    wanted = cast(values[1].values, _TRUTH) if operator.masked else None
    if wanted is not None and operator.complement:
        wanted = np.logical_not(wanted)
    return push(values[0], pieces, wanted, semiring_named(operator.semiring), operator.dtype, memory.target)


def _put_together(operator: op.PutTogether, values: Values, memory: StepMemory) -> Block:
    monoid = MONOIDS[operator.monoid]
    if memory.is_pooled and memory.out is None and len(values) == 1:
        part: Block = values[0]
        is_all = isinstance(part, Dense) and operator.bounds == ((0, part.shape[0]),)
        if is_all and part.dtype == operator.dtype:
            return part
    return put_together(values, operator.bounds, monoid, operator.dtype, operator.whole, memory.target)


def _accumulate(operator: op.Accumulate, values: Values, memory: StepMemory) -> Block:
    monoid, dtype = MONOIDS[operator.monoid], operator.dtype
    alike = all(isinstance(part, Dense) and part.shape == values[0].shape for part in values)
    if not alike or len(values) < 2:
        return accumulate(values, monoid, dtype)
    wide, target = accumulator_dtype("sum", dtype), memory.target(values[0].shape, dtype)
    with np.errstate(all="ignore"):
        add_in_pairs([part.values for part in values], getattr(np, monoid.ufunc), wide, target)
    return Dense(target)


def _finish(operator: op.Finish, values: Values, memory: StepMemory) -> Block:
    operation, along = operator.operation, operator.along
    is_shared = along is not None or len(values) > 1
    whole = combine(operation, values, along, operator.ranges) if is_shared else values[0]
    return finish(whole, operator.axes, operator.keepdims, operator.dtype, operation)


def _put_at(operator: op.PutAt, values: Values, memory: StepMemory) -> Block:
    block, value, *numbers = values
    place = local_place(operator.key, operator.region, operator.shape, numbers)
    out = memory.out if place is None else memory.target(block.shape, block.dtype)
    return put_into(block, place, value, out)


def _put_each_at(operator: op.PutEachAt, values: Values, memory: StepMemory) -> Block:
    block, places, value = values
    out = memory.target(block.shape, block.dtype)
    return put_each(block, places, value, operator.start, operator.length, out)


def _gather(operator: op.GatherAt, values: Values, memory: StepMemory) -> Block:
    operand, index = values
    return gather(operand, index, memory.target((*index.shape, *operand.shape[1:]), operand.dtype))


def _take_window(operator: op.TakeWindow, values: Values, memory: StepMemory) -> Block:
    index, *blocks = values
    start = window_start(int(to_numpy(index)[()]), operator.size, operator.length, operator.axis)
    window = (start + operator.part[0], start + operator.part[1])
    place = memory.target if operator.is_whole else np.empty
    may_share = memory.is_pooled and memory.out is None
    return take_window(blocks, operator.starts, operator.axis, window, place, may_share)


def _join_window(operator: op.JoinWindow, values: Values, memory: StepMemory) -> Block:
    shape, dtype = operator.shape, operator.dtype
    return join_window(values, operator.axis, shape, dtype, operator.sparse, memory.target)


def _put_window(operator: op.PutWindow, values: Values, memory: StepMemory) -> Block:
    block, value, index = values
    (low, high), size = operator.rows, operator.size
    start = window_start(int(to_numpy(index)[()]), size, operator.length, operator.axis)
    is_beside = start + size <= low or high <= start
    out = memory.out if is_beside else memory.target(block.shape, block.dtype)
    return put_window(block, value, operator.axis, low, (start, start + size), out)


def _scatter(operator: op.ScatterBy, values: Values, memory: StepMemory) -> Block:
    block, labels, *before = values
    monoid = MONOIDS[operator.monoid]
    return scatter(block, labels, operator.length, monoid, operator.dtype, operator.start, *before)


def _call(operator: op.Call, values: Values, memory: StepMemory) -> Block:
    return call(operator.function, values, operator.outputs)


def _run_kernel(operator: op.Run, values: Values, memory: StepMemory) -> Any:
    return operator.kernel(values, *operator.parameters)


_PREPARED: Mapping[type, Callable[..., Runner]] = MappingProxyType({op.Cut: _cut, op.Fill: _fill})
_FUNCTIONS: Mapping[type, Callable[..., Any]] = MappingProxyType(
    {
        op.Make: _make,
        op.Constant: _constant,
        op.Take: _take,
        op.Flip: _flip,
        op.Stretch: _stretch,
        op.Join: _join,
        op.Multiply: _multiply,
        op.MaskedMultiply: _multiply_masked,
        op.MaskedSum: _sum_masked,
        op.Push: _push,
        op.PutTogether: _put_together,
        op.Accumulate: _accumulate,
        op.Finish: _finish,
        op.PutAt: _put_at,
        op.PutEachAt: _put_each_at,
        op.GatherAt: _gather,
        op.TakeWindow: _take_window,
        op.JoinWindow: _join_window,
        op.PutWindow: _put_window,
        op.ScatterBy: _scatter,
        op.Call: _call,
        op.Run: _run_kernel,
    }
)


def runner_of(operator: op.Operator, share: Sharing | None) -> Runner:
    """Return what runs an operator on values again and again; ``share`` as of a PreparedTask."""
    if isinstance(operator, op.FusedKernel):
        return FusedPass(operator, share).run
    if isinstance(operator, op.Multiply) and operator.in_parts and share is not None:
        return _RowProduct(operator).run
    if isinstance(operator, op.MaskedMultiply) and share is not None:
        return partial(_multiply_masked, operator, share=share)
    if type(operator) in _PREPARED:
        return _PREPARED[type(operator)](operator)
    return partial(_FUNCTIONS[type(operator)], operator)


class _RowProduct:
    """A product of a sparse block, looked at once, with a vector of double precision."""

    def __init__(self, operator: op.Multiply) -> None:
        self._operator = operator
        self._whole: WholeRows | None = None

    def forget(self) -> None:
        """Let go of the block."""
        self._whole = None

    def run(self, values: Values, memory: StepMemory) -> Block:
        """Return the value."""
        matrix, x = values
        if not product_fits(matrix, x):
            return _multiply(self._operator, values, memory)
        if self._whole is None or matrix is not self._whole.matrix:
            self._whole = WholeRows(matrix)
        target = memory.target(matrix.shape[:1], FLOAT)
        self._whole.multiply_into(x.values, target)
        return Dense(target)


class FusedPass:
    """A product, functions and their sum in one pass where the tile machine knows them, else one by one.

    Parameters
    ----------
    operator
        What is run.
    share
        Has other threads run parts; None where it is run once, and by one thread.
    """

    def __init__(self, operator: op.FusedKernel, share: Sharing | None) -> None:
        self._operator, self._share = operator, share
        self._forms: object = None
        self._tiles: Tiles | None = None
        self._rows: RowParts | None = None
        self._apart: PreparedTask | None = None
        self._small = SmallPass(operator)
        self._bound: BoundPass | None = None
        self._sums: SeveralSums | None = None

    def forget(self) -> None:
        """Let go of the blocks that were looked at."""
        self._rows = None
        self._small.forget()
        if self._apart is not None:
            self._apart.forget()

    def run(self, values: Values, memory: StepMemory) -> Any:
        """Return the value, with the bits of the product, the functions and the sum one after the other."""
        if self._share is not None and len(self._operator.shares) < 2:
            small = self._small.run(values, memory)
            if small is not None:
                ending = self._operator.ending
                return small if ending is None else _finish(ending, [small], memory)
        if not self._may_be_one_pass(values):
            return self._run_apart(values, memory)
        forms: list[object] = []
        for value in values:
            if type(value) is Dense:
                forms.append(form_of(value.values))
            else:
                forms.append((value.shape, type(value), value.nnz and value.values is None))
        if forms != self._forms:
            self._forms, self._tiles = forms, self._written(values)
            self._bound = None if self._tiles is None else BoundPass(self._tiles)
            self._sums = None if self._share is None else several_sums(self._operator, values)
        if self._sums is not None:
            return self._shared(self._sums.run(values, memory), memory)
        if self._tiles is None:
            return self._run_apart(values, memory)
        if memory.is_pooled and 0 < self._tiles.length < MOST_BOUND:
            found = self._run_bound(self._tiles, values, memory)
            if found is not None:
                return found
        return self._run_parts(self._tiles, values, memory)

    def _may_be_one_pass(self, values: Values) -> bool:
        # A sum alone has a loop of its own, and so has a function for one thread.
        product, links, shares = self._operator.product, self._operator.links, self._operator.shares
        if product is None and not links:
            return False
        if self._share is None and product is None and len(links) == 1 and not shares:
            return False
        if is_ready(run_tiles) or (size := _num_elements(values, product is not None)) >= _WORTH_COMPILING:
            return True
        return self._share is not None and is_worth_compiling(run_tiles, size, *LIKE_ARGUMENTS)

    def _written(self, values: Values) -> Tiles | None:
        operator, operands, num_rows = self._operator, values, 0
        forms: list[OperandForm | None] = []
        if operator.product is not None:
            matrix, x, *operands = values
            if not product_fits(matrix, x):
                return None
            num_rows = matrix.shape[0]
            forms.append(None)
        if not all(isinstance(one, Dense) for one in operands):
            return None
        forms += [form_of(one.values) for one in operands]
        ending = None
        if operator.shares:
            (share, *others), last = operator.shares, len(forms) + len(operator.links) - 1
            if others or not is_sum(share) or share.place != last:
                return None
            sizes = [num_rows if form is None else prod(form.shape) for form in forms]
            length = 0 if 0 in sizes else max(sizes)
            start = 0 if share.along is None else share.start
            ending = TileSum(start, None if share.along is None else num_nodes(start, start + length))
        return write_tiles(operator.links, tuple(forms), num_rows, ending)

    def _run_bound(self, tiles: Tiles, values: Values, memory: StepMemory) -> Block | None:
        # The value where one part is all, else None.
        if self._bound is None or (memory.out is not None and not memory.out.flags.c_contiguous):
            return None
        operands, product, room, ending = values, None, None, self._operator.ending
        taken = [buffers := memory.take((tiles.num_buffers, TILE), FLOAT)]
        if self._operator.product is not None:
            matrix, vector, *operands = values
            if self._rows is None or matrix is not self._rows.matrix:
                self._rows = RowParts(matrix, tiles.start, _WORK_ALONE if tiles.is_sum else _SHARED_WORK)
            if len(self._rows.bounds) > 2:  # several parts
                memory.give(buffers)
                return None
            taken.append(product := memory.take((tiles.length,), FLOAT))
            self._rows.multiply_into(vector.values, product)
        if tiles.is_sum:
            taken.append(room := memory.take((tiles.length,), FLOAT))
        keepdims = ending is None or ending.keepdims
        target = memory.target(tiles.shape, tiles.dtype) if keepdims else np.empty(1)
        self._bound.run([one.values for one in operands], target, buffers, product, room)
        for array in taken:
            memory.give(array)
        return Dense(target if keepdims else target.reshape(()))

    def _run_parts(self, tiles: Tiles, values: Values, memory: StepMemory) -> Block:
        is_alone = tiles.is_sum or self._share is None
        ending, operands, rows, x = self._operator.ending, values, None, None
        bounds = [0, tiles.length] if is_alone else _cuts(0, tiles.length, _PART, 0)
        if self._operator.product is not None:
            matrix, vector, *operands = values
            if self._rows is None or matrix is not self._rows.matrix:
                self._rows = RowParts(matrix, tiles.start, _WORK_ALONE if is_alone else _SHARED_WORK)
            rows, x, bounds = self._rows, given(vector.values), self._rows.bounds
        keepdims = ending is None or ending.keepdims
        target = memory.target(tiles.shape, tiles.dtype) if keepdims else np.empty(1)
        made = target if tiles.writes_into(target) else memory.take(tiles.shape, tiles.dtype)
        parts = tiles.begin([one.values for one in operands], made)
        most = max(end - begin for begin, end in pairwise(bounds))

        def run(part: int) -> None:
            # What is taken is as long for all parts. What is summed is so while it is in the near cache.
            begin, end = bounds[part : part + 2]
            taken = [buffers := memory.take(parts.room, FLOAT)]
            own = product = room = None
            if rows is not None and x is not None:
                taken.append(product := memory.take((most,), FLOAT))
                rows.multiply_part_into(part, x, product[: end - begin])
            if tiles.is_sum:
                taken.append(room := memory.take((min(most, 2 * _SUMMED),), FLOAT))
            inner = _cuts(begin, end, _SUMMED, tiles.start) if tiles.is_sum else [begin, end]
            for first, last in pairwise(inner):
                if product is not None:
                    own = product[first - begin : last - begin]
                parts.run(first, last, buffers, own, None if room is None else room[: last - first])
            for array in taken:
                memory.give(array)

        share = in_turn if is_alone or self._share is None else self._share
        share(run, len(bounds) - 1)
        if made is not target:
            np.copyto(target, made)
            memory.give(made)
        return Dense(target if keepdims else target.reshape(()))

    def _run_apart(self, values: Values, memory: StepMemory) -> Any:
        operator = self._operator
        links, shares, ending = operator.links, operator.shares, operator.ending
        if operator.product is not None:
            if self._apart is None:
                self._apart = PreparedTask(_steps_apart(operator, len(values)), len(values), self._share)
            return self._apart.run(values, memory)
        if memory.claim is not None and any(link.sparse for link in links):
            claim_functions(links, values, memory.claim)
        if not shares:
            return _apply(links, values, memory)
        if len(shares) == 1 and not links:
            (one,) = shares
            block = values[one.place]
            value = reduce_block(one.operation, block, one.axes, one.dtype, one.along, one.start)
        else:
            return self._shared(reduce_chain(links, shares, values, memory.take, memory.give), memory)
        return value if ending is None else _finish(ending, [value], memory)

    def _shared(self, found: Sequence[Dense], memory: StepMemory) -> Any:
        # The shares of reductions as the task's value.
        value = packed(found, self._operator.outputs) if len(found) > 1 else found[0]
        ending = self._operator.ending
        return value if ending is None else _finish(ending, [value], memory)


def _steps_apart(operator: op.FusedKernel, num_values: int) -> list[Step]:
    # the product, then what is made of it
    assert operator.product is not None
    rest = replace(operator, product=None)
    return [Step(operator.product, (0, 1)), Step(rest, (num_values, *range(2, num_values)))]


def _apply(links: Sequence[Link], values: Values, memory: StepMemory) -> Block:
    is_dense = all(isinstance(value, Dense) for value in values) and not any(link.sparse for link in links)
    if not is_dense or (memory.out is None and not memory.is_pooled):
        return apply_chain(links, values)
    arrays = [value.values for value in values]
    shapes = [array.shape for array in arrays]
    try:
        for link in links:
            shapes.append(np.broadcast_shapes(*(shapes[place] for place in link.arguments)))
    except ValueError:
        return apply_chain(links, values)  # which says so
    target = memory.target(shapes[-1], links[-1].dtype)
    if not chain_into(links, arrays, target, memory.take, memory.give):
        found = apply_chain(links, values)
        assert isinstance(found, Dense)
        np.copyto(target, found.values)
    return Dense(target)


def _num_elements(values: Values, is_product: bool) -> int:
    # of what is made
    if is_product:
        return int(values[0].shape[0])
    return max((prod(value.shape) for value in values if isinstance(value, Dense)), default=0)


def _cuts(begin: int, end: int, size: int, start: int) -> list[int]:
    # Parts of about a size, which begin where leaves do of a sum whose first element's global place is given.
    if end - begin < 2 * size:
        return [begin, end]
    return [begin, *range(begin + size - (start + begin) % size, end - size // 2, size), end]


# The steps of a task.


@dataclass(frozen=True)
class _Unit:
    """A step ready to run, the register that it fills, and those that nobody reads after it."""

    step: Step
    place: int
    run: Runner
    ended: tuple[int, ...]


class PreparedTask:
    """The steps of one task, analyzed once and run as often as wanted; one thread runs them at a time.

    Parameters
    ----------
    steps
        Their arguments number the inputs first, then the steps.
    num_inputs
        Of the task.
    share
        Has other threads run parts of steps; None where the task is run once.

    Attributes
    ----------
    may_overwrite
        For each input whether its memory may be given as ``out``, if it has the result's shape and dtype and
        nobody else reads it afterwards.
    running
        What was running when the last run raised: of functions that run together, and the product that they
        read, the one that raised.
    """

    def __init__(self, steps: Sequence[Step], num_inputs: int, share: Sharing | None = None) -> None:
        self.running: op.Operator | Link | None = None
        self._steps, self._num_inputs = steps, num_inputs
        self._last = num_inputs + len(steps) - 1
        self._room: list[Any] = [None] * len(steps)
        last = {place: number for number, step in enumerate(steps) for place in step.arguments}
        units: list[_Unit] = []
        self._passes: list[FusedPass | _RowProduct] = []
        for number, step in enumerate(steps):
            if isinstance(step.operator, op.Constant):
                self._room[number] = step.operator.block
                continue
            ended = tuple(p for p in set(step.arguments) if p >= num_inputs and last[p] == number)
            run = runner_of(step.operator, share)
            units.append(_Unit(step, num_inputs + number, run, ended))
            if isinstance(owner := getattr(run, "__self__", None), FusedPass | _RowProduct):
                self._passes.append(owner)
        self._units = units
        self._only = units[0] if len(units) == 1 and units[0].place == self._last else None
        self._within = _written_within(steps, num_inputs)
        self._share = share
        self._rows = TaskRows(steps, num_inputs) if share is not None and TaskRows.fits(steps) else None

    @property
    def may_overwrite(self) -> tuple[bool, ...]:
        """See above."""
        # Elements are written where they were read just before: by functions, and by sums of products.
        if not self._steps:
            return (False,) * self._num_inputs
        final = self._steps[-1]
        arguments = final.arguments
        free: tuple[int, ...] = ()
        match final.operator:
            case op.FusedKernel(links, (), product=product) if not any(link.sparse for link in links):
                factors = () if product is None else arguments[:2]
                free = tuple(place for place in arguments[len(factors) :] if place not in factors)
            case op.PutAt() | op.PutEachAt() | op.PutWindow():  # the rest stays as it is
                free = arguments[:1] if arguments[0] not in arguments[1:] else ()
            case op.Accumulate(_, dtype):
                # the first two are read before anything is written
                free = arguments[:2] if accumulator_dtype("sum", dtype) == dtype else ()
                free = tuple(place for place in free if place not in arguments[2:])
        elsewhere = {place for step in self._steps[:-1] for place in step.arguments}
        return tuple(place in free and place not in elsewhere for place in range(self._num_inputs))

    def forget(self) -> None:
        """Let go of what was read; what follows from the steps and from forms alone is kept."""
        self.running = None
        for one in self._passes:
            one.forget()
        if self._rows is not None:
            self._rows.forget()

    def run(self, values: Values, memory: StepMemory) -> Any:
        """Return the value of the last step, which has the same bits in any memory.

        With ``share``, what NumPy warns of is the caller's.

        Parameters
        ----------
        values
            Of the task's inputs.
        memory
            Where the value is made; ``out`` may be the memory of an input that may be overwritten.
        """
        registers = [*values, *self._room]
        if self._only is not None:
            return self._run_one(self._only, registers, memory)
        if self._rows is not None and memory.is_pooled:
            found = self._rows.run(values, memory, self._share)
            if found is not None:
                return _settled(found, memory.out)
        taken = TakenArrays(memory) if memory.is_pooled and len(self._units) > 1 else None
        final = memory if taken is None else taken.memory.into(memory.out)
        between = final if memory.out is None else final.into(None)
        filled, whole = self._steps[-1].operator if self._within else None, None
        if isinstance(filled, op.Fill):
            whole = final.target(filled.shape, filled.dtype)
            final = final.into(whole)
        for unit in self._units:
            self.running = unit.step.operator
            operands = [registers[place] for place in unit.step.arguments]
            is_last = unit.place == self._last
            its = final if is_last else between
            if whole is not None and unit.place in self._within:
                its = between.into(whole[self._within[unit.place]])
            try:
                registers[unit.place] = unit.run(operands, its)
            except Exception:
                self.running = _failing_part(unit.step.operator, operands)
                raise
            if unit.ended:
                gone = [registers[place] for place in unit.ended]
                for place in unit.ended:
                    registers[place] = None
                if taken is not None:
                    taken.give_back(gone, registers)
        value = registers[self._last]
        if memory.is_pooled:
            value = _settled(value, memory.out)
        if taken is not None and memory.out is not None and isinstance(value, Dense):
            taken.give_all()  # nothing that was taken is a part of the value
        return value

    def _run_one(self, unit: _Unit, registers: Values, memory: StepMemory) -> Any:
        # What most tasks do, without what several steps need.
        self.running = unit.step.operator
        operands = [registers[place] for place in unit.step.arguments]
        try:
            value = unit.run(operands, memory)
        except Exception:
            self.running = _failing_part(unit.step.operator, operands)
            raise
        return _settled(value, memory.out) if memory.is_pooled else value


def _written_within(steps: Sequence[Step], num_inputs: int) -> dict[int, tuple[slice, ...]]:
    # Functions that write their part of the last step's value where it goes, by place, and where that is.
    match steps:
        case [*_, Step(op.Fill(bounds), parts)]:
            pass
        case _:
            return {}
    read = Counter(place for step in steps for place in step.arguments)
    found = {}
    for part, place in zip(bounds, parts, strict=True):
        made = steps[place - num_inputs].operator if place >= num_inputs else None
        if isinstance(made, op.FusedKernel) and not made.shares and made.product is None and read[place] == 1:
            found[place] = _slices(part)
    return found


def _settled(value: Any, out: NumericArray | None) -> Any:
    # what is Dense lies where it is wanted
    if out is None or not isinstance(value, Dense) or value.values is out:
        return value
    if not _within(value.values, out):
        np.copyto(out, value.values)
    return Dense(out)


def _within(values: NumericArray, out: NumericArray) -> bool:
    # whether the values are the elements of ``out``, seen through a view
    return (
        root_of(values) is root_of(out)
        and values.__array_interface__["data"] == out.__array_interface__["data"]
        and values.strides == out.strides
    )


def _failing_part(operator: op.Operator, values: Values) -> op.Operator | Link:
    # The product or the function of a pass that raises, found by making one after the other.
    if not isinstance(operator, op.FusedKernel):
        return operator
    part: op.Operator | Link = operator
    found = list(values)
    try:
        if operator.product is not None:
            part = operator.product
            found = [execute(part, values[:2]), *values[2:]]
        for link in operator.links:
            part = link
            operands = tuple(range(len(link.arguments)))
            alone = (replace(link, arguments=operands),)
            found.append(apply_chain(alone, [found[place] for place in link.arguments]))
    except Exception:  # what it raised is reported already
        return part
    return operator
