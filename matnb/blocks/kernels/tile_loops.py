"""The compiled machine that runs a short program of products, functions and sums tile by tile."""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]  # it has no types
from numba.core import types
from numba.core.base import BaseContext
from numba.core.typing import Signature
from numba.extending import intrinsic

from matnb.blocks.formats import NumericArray
from matnb.blocks.kernels.compiled import UnsignedArray, compiled
from matnb.blocks.kernels.sum_loops import push_run, sum_stack
from matnb.blocks.kernels.vector_loops import plus_times, plus_times_ones

# Several tiles of so many elements stay in the first cache, and what a tile costs besides is little of it.
# A multiple of a leaf of a sum, so that no leaf is in two tiles.
TILE = 1024
NUM_INPUTS, NUM_TRUTHS = 6, 2
FIRST_NUMBER = 1 + NUM_TRUTHS
_MOST_NODES = 128  # of a sum on the way
_LEVELS = 27  # of a row's sum on the way, as products have it
_ITEM = 8  # bytes of an element

(ADD, SUBTRACT, MULTIPLY, DIVIDE, MAXIMUM, MINIMUM, LESS, LESS_EQUAL, EQUAL, NOT_EQUAL,
 NEGATIVE, ABSOLUTE, SQRT, WHERE) = range(14)  # fmt: skip
NO_PRODUCT, OF_ONES, OF_VALUES = range(3)  # what fills buffer 0
TO_ARRAY, TO_TRUTHS, TO_SHARE, TO_SUM = range(4)  # where the last value goes


@intrinsic  # type: ignore[untyped-decorator]  # numba has no types
def _pointer(context: object, address: types.Integer) -> tuple[Signature, Callable[..., ir.Value]]:
    # Arrays that are handed around are counted, by instructions that no other processor may interrupt: that
    # took longer than what is done with a tile. Memory at an address is counted by nobody.
    def generate(
        context: BaseContext, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]
    ) -> ir.Value:
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return types.CPointer(types.float64)(address), generate  # type: ignore[attr-defined]  # it has


@compiled
def _fill_tile(function: int, first: int, second: int, third: int, target: int, width: int) -> None:
    # Operands are addresses. Truths are ones and zeros. Where operands of maximum and minimum are equal, they
    # are the second one, as processors have it and NumPy with them: zeros have signs.
    a, b = numba.carray(_pointer(first), width), numba.carray(_pointer(second), width)
    c, out = numba.carray(_pointer(third), width), numba.carray(_pointer(target), width)
    n = np.uint64(width)
    if function == ADD:
        for i in range(n):
            out[i] = a[i] + b[i]
    elif function == SUBTRACT:
        for i in range(n):
            out[i] = a[i] - b[i]
    elif function == MULTIPLY:
        for i in range(n):
            out[i] = a[i] * b[i]
    elif function == DIVIDE:
        for i in range(n):
            out[i] = np.divide(a[i], b[i])
    elif function == MAXIMUM:
        for i in range(n):
            out[i] = a[i] if a[i] > b[i] or a[i] != a[i] else b[i]
    elif function == MINIMUM:
        for i in range(n):
            out[i] = a[i] if a[i] < b[i] or a[i] != a[i] else b[i]
    elif function == LESS:
        for i in range(n):
            out[i] = 1.0 if a[i] < b[i] else 0.0
    elif function == LESS_EQUAL:
        for i in range(n):
            out[i] = 1.0 if a[i] <= b[i] else 0.0
    elif function == EQUAL:
        for i in range(n):
            out[i] = 1.0 if a[i] == b[i] else 0.0
    elif function == NOT_EQUAL:
        for i in range(n):
            out[i] = 1.0 if a[i] != b[i] else 0.0
    elif function == NEGATIVE:
        for i in range(n):
            out[i] = -a[i]
    elif function == ABSOLUTE:
        for i in range(n):
            out[i] = abs(a[i])
    elif function == SQRT:
        for i in range(n):
            out[i] = np.sqrt(a[i])
    elif function == WHERE:
        for i in range(n):
            chosen, other = b[i], c[i]  # both read, so that there is no branch
            out[i] = chosen if a[i] != 0.0 else other


@compiled
def run_tiles(
    code: NumericArray,
    num_first: int,
    num_buffers: int,
    numbers: NumericArray,
    inputs: tuple[NumericArray, ...],
    truths: tuple[NumericArray, ...],
    product: int,
    pointers: UnsignedArray,
    columns: UnsignedArray,
    entries: NumericArray,
    x: NumericArray,
    ending: int,
    last: int,
    direct: bool,
    start: int,
    length: int,
    out: NumericArray,
    out_truths: NumericArray,
) -> None:
    """Run a program for each tile of a range.

    A value is named by a number: a buffer of a tile's length, or ``~n`` for the n-th input. Buffer 0 holds
    the product's rows, those behind it the tile of each of ``truths``, then one for each of ``numbers``, then
    what functions make. Tuples are always of the same lengths, filled up with arrays of no element, since
    the machine is compiled for each length.

    Parameters
    ----------
    code, num_first
        Rows of a function, its value and three operands; the first ones are of numbers alone, and run once.
    num_buffers
        How many there are.
    numbers, inputs, truths
        Operands of one element, and of all elements.
    product, pointers, columns, entries, x
        Whether buffer 0 holds rows of a sparse matrix times a vector.
    ending, last
        Where the value named ``last`` goes.
    direct
        Whether the last function may write to ``out``, where elements go: no other one fills its buffer.
    start, length
        Global place of the first element, for sums, and how many there are.
    out, out_truths
        Where elements, truths, the share of a sum, or the sum are written.
    """
    tiles = np.empty((num_buffers, TILE))
    stack, group, levels = np.empty(_MOST_NODES), np.empty(8), np.empty(_LEVELS)
    # Where each value is, and how far the next tile's elements are from one tile's; inputs from the end on.
    places, steps = np.empty(num_buffers + NUM_INPUTS, np.int64), np.zeros(num_buffers + NUM_INPUTS, np.int64)
    for number in range(num_buffers):
        places[number] = _place(tiles[number])
    places[-1], places[-2], places[-3] = _place(inputs[0]), _place(inputs[1]), _place(inputs[2])
    places[-4], places[-5], places[-6] = _place(inputs[3]), _place(inputs[4]), _place(inputs[5])
    steps[-NUM_INPUTS:] = _ITEM
    for number in range(numbers.size):
        tiles[FIRST_NUMBER + number] = numbers[number]
    for row in range(num_first):
        a, b, c = places[code[row, 2]], places[code[row, 3]], places[code[row, 4]]
        _fill_tile(code[row, 0], a, b, c, places[code[row, 1]], TILE)
    if ending == TO_ARRAY:
        for number in range(NUM_INPUTS):  # loops that write where they read are not made of wide instructions
            direct = direct and places[~number] != _place(out)
    if direct:
        places[last], steps[last] = _place(out), _ITEM
    top = begin = 0
    while begin < length:
        end = min(length, ((start + begin) // TILE + 1) * TILE - start)
        width = end - begin
        if product != NO_PRODUCT:
            ends, rows = pointers[begin : end + 1], tiles[0, :width]
            if product == OF_ONES:
                plus_times_ones(ends, columns, x, None, levels, rows)
            else:
                plus_times(ends, columns, entries, x, None, levels, rows)
        if truths[0].size:
            _to_numbers(truths[0][begin:end], tiles[1])
        if truths[1].size:
            _to_numbers(truths[1][begin:end], tiles[2])
        for row in range(num_first, code.shape[0]):
            _fill_tile(
                code[row, 0],
                places[code[row, 2]] + begin * steps[code[row, 2]],
                places[code[row, 3]] + begin * steps[code[row, 3]],
                places[code[row, 4]] + begin * steps[code[row, 4]],
                places[code[row, 1]] + begin * steps[code[row, 1]],
                width,
            )
        made = numba.carray(_pointer(places[last] + begin * steps[last]), width)
        if ending == TO_TRUTHS:
            _to_truths(made, out_truths[begin:end])
        elif ending != TO_ARRAY:
            at = start + begin
            top = push_run(made, -at, at, start + end, start, ending == TO_SUM, stack, top, group)
        elif not direct:
            _copy(made, out[begin:end])
        begin = end
    if ending == TO_SUM:
        out[0] = sum_stack(stack, top)
    elif ending == TO_SHARE:
        for node in range(top):
            out[node] = stack[node]


@compiled
def _place(array: NumericArray) -> int:
    place: int = array.ctypes.data
    return place


@compiled
def _copy(values: NumericArray, out: NumericArray) -> None:
    for i in range(np.uint64(out.size)):
        out[i] = values[i]


@compiled
def _to_numbers(truths: NumericArray, out: NumericArray) -> None:
    for i in range(np.uint64(truths.size)):
        out[i] = 1.0 if truths[i] else 0.0


@compiled
def _to_truths(values: NumericArray, out: NumericArray) -> None:
    for i in range(np.uint64(out.size)):
        out[i] = values[i] != 0.0
