"""The compiled machine that runs a short program of functions and a sum tile by tile."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import binding, ir  # type: ignore[import-untyped]  # it has no types
from numba.core import cgutils, types
from numba.core.base import BaseContext
from numba.core.compiler_lock import global_compiler_lock
from numba.core.typing import Signature
from numba.extending import intrinsic

from matnb.blocks.formats import NumericArray
from matnb.blocks.kernels.compiled import compiled, inlined

Integers = npt.NDArray[np.int64]
# What ``run_tiles`` takes, from the code to the value that is wanted.
TileProgram: TypeAlias = tuple[
    Integers, int, NumericArray, NumericArray, Integers, Integers, Integers, Integers, int, int
]

# Several tiles of so many elements stay in the first cache, and the overhead of a tile is little of its work.
TILE = 1024
NUM_INPUTS, NUM_TRUTHS = 6, 2
FIRST_NUMBER = 1 + NUM_TRUTHS
ROW_WORDS = NUM_INPUTS + 4  # of a row of a table: see ``run_rows``
SEVERAL, LINE_WORDS = 4, NUM_INPUTS + 3  # see ``run_tiles``
ITEM = 8  # bytes of an element

(ADD, SUBTRACT, MULTIPLY, DIVIDE, MAXIMUM, MINIMUM, LESS, LESS_EQUAL, EQUAL, NOT_EQUAL,
 NEGATIVE, ABSOLUTE, SQRT, WHERE) = range(14)  # fmt: skip


_DOUBLE, _WORD = ir.DoubleType(), ir.IntType(64)
# Takes the addresses of inputs, of numbers and of the target, and how many elements there are.
_WHOLE = ir.FunctionType(ir.VoidType(), [_WORD] * (NUM_INPUTS + 3))


@intrinsic  # type: ignore[untyped-decorator]  # it has no types
def _pointer(context: object, address: types.Integer) -> tuple[Signature, Callable[..., ir.Value]]:
    # Arrays that are handed around are counted, by instructions that no other processor may interrupt: that
    # took longer than what is done with a tile. Memory at an address is counted by nobody.
    def generate(
        context: BaseContext, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]
    ) -> ir.Value:
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return types.CPointer(types.float64)(address), generate  # type: ignore[attr-defined]  # it has


@intrinsic  # type: ignore[untyped-decorator]  # it has no types
def _byte_pointer(context: object, address: types.Integer) -> tuple[Signature, Callable[..., ir.Value]]:
    # The same for truths.
    def generate(
        context: BaseContext, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]
    ) -> ir.Value:
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return types.CPointer(types.uint8)(address), generate  # type: ignore[attr-defined]


@intrinsic  # type: ignore[untyped-decorator]  # it has no types
def _call_numpy(
    context: object,
    address: types.Integer,
    first: types.Integer,
    second: types.Integer,
    third: types.Integer,
    width: types.Integer,
    first_step: types.Integer,
    second_step: types.Integer,
) -> tuple[Signature, Callable[..., ir.Value]]:
    # One of NumPy's loops: addresses and distances are of its operands and then of what it gives.
    def generate(
        context: BaseContext, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]
    ) -> ir.Value:
        word = ir.IntType(64)
        address, *places, width, first_step, second_step = arguments
        steps = [first_step, second_step, word(ITEM)]
        memory = []
        for values in (places, [width], steps):
            room = cgutils.alloca_once(builder, ir.ArrayType(word, len(values)))
            for number, value in enumerate(values):
                builder.store(value, cgutils.gep_inbounds(builder, room, 0, number))
            memory.append(builder.bitcast(room, word.as_pointer()))
        memory.append(word.as_pointer()(None))
        takes = ir.FunctionType(ir.VoidType(), [word.as_pointer()] * 4)
        builder.call(builder.inttoptr(address, takes.as_pointer()), memory)
        return context.get_dummy_value()

    return types.none(*(types.int64,) * 7), generate


@intrinsic  # type: ignore[untyped-decorator]  # it has no types
def _call_whole(
    context: object, address: types.Integer, arguments: types.Type
) -> tuple[Signature, Callable[..., ir.Value]]:
    # The machine code of a ``WholeLoop``.
    def generate(
        context: BaseContext, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]
    ) -> ir.Value:
        address, others = arguments
        builder.call(builder.inttoptr(address, _WHOLE.as_pointer()), cgutils.unpack_tuple(builder, others))
        return context.get_dummy_value()

    words = types.UniTuple(types.int64, NUM_INPUTS + 3)  # type: ignore[attr-defined]  # it has
    return types.none(types.int64, words), generate


@intrinsic  # type: ignore[untyped-decorator]  # it has no types
def _apart(context: object) -> tuple[Signature, Callable[..., ir.Value]]:
    # The loop that says so is called, not copied into its callers, where it would be optimized once more.
    def generate(
        context: BaseContext, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]
    ) -> ir.Value:
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.none(), generate


@compiled
def _fill_tile(
    function: int, first: int, second: int, third: int, target: int, width: int, numbers: int
) -> None:
    # Operands are addresses. Truths are ones and zeros. Where operands of maximum and minimum are equal, they
    # are the second one, as processors have it and NumPy with them: zeros have signs.
    # Any other function is where NumPy's loop is, of one operand, or below zero of two.
    a, b = numba.carray(_pointer(first), width), numba.carray(_pointer(second), width)
    c, out = numba.carray(_pointer(third), width), numba.carray(_pointer(target), width)
    _apart()
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
    elif function > 0:
        _call_numpy(function, first, target, target, width, ITEM, ITEM)
    else:
        # NumPy goes other ways where an operand is one number, which may give other bits.
        first_step, second_step = ITEM * (1 - (numbers & 1)), ITEM * (1 - (numbers >> 1))
        _call_numpy(-function, first, second, target, width, first_step, second_step)


@compiled
def run_tiles(
    code: Integers,
    num_first: int,
    numbers: NumericArray,
    tiles: NumericArray,
    places: Integers,
    steps: Integers,
    truths: Integers,
    rows: Integers,
    row_length: int,
    last: int,
    begin: int,
    end: int,
    target: int,
    to_truths: bool,
) -> None:
    """Run a program for each tile of a part of a range.

    A value is named by a number: a buffer of a tile's length, or ``~n`` for the n-th input. Number 0 is the
    product, those behind it the tile of each of ``truths``, then one for each of ``numbers``, then
    what functions make. Operands are addresses, so that there is one machine, and that is soon compiled.

    Parameters
    ----------
    code, num_first
        Rows of a function, its value, three operands, and which of the first two are numbers (1 and 2,
        added), or ``SEVERAL`` where the function is where a ``WholeLoop`` of some of them is, which has up to
        six operands; the first rows are of numbers alone, and run once. Or where a ``WholeLoop`` is, and -1.
    numbers
        Operands of one element.
    tiles
        Room for a tile of each value.
    places, steps
        Where each value would be at the begin of the range, and how far it is from one element to the next: 0
        for what is in a tile.
    truths
        Where the operands of truths are, 0 for none.
    rows, row_length
        For each row of so many elements how much further on it is of the target, and of each input, which are
        numbered from the end, than if all rows were one after the other. No tile has elements of two rows.
    last
        The value that goes to the target; it may be made there.
    begin, end
        The part, by places in the range.
    target, to_truths
        Where the range's elements, or truths, are written.
    """
    row, numbers_at = begin // row_length, np.int64(numbers.ctypes.data)
    while num_first < 0 and begin < end:
        stop = min(end, (row + 1) * row_length)
        further, inputs = rows[row], places.size - 1
        arguments = (
            places[inputs] + begin * ITEM + further[-1],
            places[inputs - 1] + begin * ITEM + further[-2],
            places[inputs - 2] + begin * ITEM + further[-3],
            places[inputs - 3] + begin * ITEM + further[-4],
            places[inputs - 4] + begin * ITEM + further[-5],
            places[inputs - 5] + begin * ITEM + further[-6],
            numbers_at,
            target + begin * ITEM + further[0],
            stop - begin,
        )
        _call_whole(code[0, 0], arguments)
        begin, row = stop, row + 1
    for number in range(numbers.size if begin < end else 0):
        tiles[FIRST_NUMBER + number] = numbers[number]
    first = 0
    while begin < end:
        width = min(end - begin, TILE, (row + 1) * row_length - begin)
        further = rows[row]
        for number in range(NUM_TRUTHS):
            if truths[number]:
                _to_numbers(truths[number] + begin, places[1 + number], width)
        for line in range(first, code.shape[0]):
            one = _address(code[line, 2], begin, places, steps, further)
            other = _address(code[line, 3], begin, places, steps, further)
            third = _address(code[line, 4], begin, places, steps, further)
            out = _address(code[line, 1], begin, places, steps, further)
            if code[line, 5] == SEVERAL:
                arguments = (
                    one,
                    other,
                    third,
                    _address(code[line, 6], begin, places, steps, further),
                    _address(code[line, 7], begin, places, steps, further),
                    _address(code[line, 8], begin, places, steps, further),
                    numbers_at,
                    out,
                    width,
                )
                _call_whole(code[line, 0], arguments)
            else:
                most = TILE if line < num_first else width
                _fill_tile(code[line, 0], one, other, third, out, most, code[line, 5])
        first = num_first
        made = _address(last, begin, places, steps, further)
        if to_truths:
            _to_truths(made, target + begin, width)
        elif made != target + begin * ITEM + further[0]:
            _copy(made, target + begin * ITEM + further[0], width)
        begin += width
        if begin == (row + 1) * row_length:
            row += 1


_TABLE = np.empty((0, 0), np.int64)
_TABLE.flags.writeable = False
# Of the dtypes of ``run_tiles``'s arguments, which are always the same.
LIKE_ARGUMENTS = (
    _TABLE, 0, np.empty(0), np.empty((0, 0)), *(np.empty(0, np.int64) for _ in range(3)),
    np.empty((0, 0), np.int64), 0, 0, 0, 0, 0, False,
)  # fmt: skip


@compiled
def run_rows(table: Integers, begin: int, end: int) -> None:
    """Run the ``WholeLoop`` of each row of a part of a table, or copy a row of elements.

    Parameters
    ----------
    table
        Where the code is, or 0 for a copy of the first input; the addresses of the inputs, of the numbers and
        of the target; how many elements there are.
    begin, end
        The part.
    """
    for row in range(begin, end):
        if table[row, 0]:
            arguments = (
                table[row, 1], table[row, 2], table[row, 3], table[row, 4], table[row, 5], table[row, 6],
                table[row, 7], table[row, 8], table[row, 9],
            )  # fmt: skip
            _call_whole(table[row, 0], arguments)
        else:
            _copy(table[row, 1], table[row, 8], table[row, 9])


@inlined
def _address(value: int, begin: int, places: Integers, steps: Integers, further: Integers) -> int:
    # What is no input and is no tile either is in the target.
    place: int = places[value] + begin * steps[value]
    return place + further[value] if value < 0 else place + further[0] if steps[value] else place


@compiled
def _copy(source: int, target: int, width: int) -> None:
    values, out = numba.carray(_pointer(source), width), numba.carray(_pointer(target), width)
    for i in range(np.uint64(width)):
        out[i] = values[i]


@compiled
def _to_numbers(source: int, target: int, width: int) -> None:
    truths, out = numba.carray(_byte_pointer(source), width), numba.carray(_pointer(target), width)
    for i in range(np.uint64(width)):
        out[i] = np.float64(truths[i])


@compiled
def _to_truths(source: int, target: int, width: int) -> None:
    values, out = numba.carray(_pointer(source), width), numba.carray(_byte_pointer(target), width)
    for i in range(np.uint64(width)):
        out[i] = values[i] != 0.0


Line = tuple[int, int, tuple[int, ...]]  # a function of the machine, its value, and its operands
_LANES = 8  # of a vector, whatever the machine has
# Elements; it takes 7 ms, and saves about 1.5 ns of an element for 7 functions, 0.2 ns for 3.
_WORTH_COMPILING, _FUNCTIONS = 1 << 22, 7


class WholeLoop:
    """A program of functions of the machine's own as one loop, which keeps in registers what lies between.

    It is compiled when so many elements were asked for that it pays. Nothing is rounded otherwise: each
    function is one instruction, and none is contracted with another.

    Parameters
    ----------
    lines, last
        The functions in their order, and the value that is wanted; values as in ``run_tiles``, but that each
        has a number of its own.
    numbers
        The values that are numbers.
    """

    def __init__(self, lines: tuple[Line, ...], last: int, numbers: tuple[int, ...]) -> None:
        self._lines, self._last, self._numbers = lines, last, numbers
        self._num_elements = 0
        self._patience = max(1.0, _FUNCTIONS / max(1, len(lines))) ** 2
        self._code: Integers | None = None
        self._engine: binding.ExecutionEngine | None = None  # the code goes with it

    @property
    def num_saved(self) -> int:
        """How many passes over a tile it saves."""
        return len(self._lines) - 1

    def code(self, num_elements: int) -> Integers | None:
        """Return the code for ``run_tiles`` that so many elements want; None as long as there is none."""
        self._num_elements += num_elements
        if self._code is None and self._num_elements >= _WORTH_COMPILING * self._patience:
            with global_compiler_lock:
                if self._code is None:
                    self._compile()
        return self._code

    def _compile(self) -> None:
        target = binding.Target.from_default_triple().create_target_machine(
            cpu=binding.get_host_cpu_name(), features=binding.get_host_cpu_features().flatten(), opt=2
        )
        self._engine = binding.create_mcjit_compiler(binding.parse_assembly(str(self._written())), target)
        self._engine.finalize_object()
        code = np.array([[self._engine.get_function_address("whole")]])
        code.flags.writeable = False
        self._code = code

    def _written(self) -> ir.Module:
        module = ir.Module()
        function = ir.Function(module, _WHOLE, "whole")
        *inputs, numbers, target, width = function.args
        builder = ir.IRBuilder(function.append_basic_block())
        given = builder.inttoptr(numbers, _DOUBLE.as_pointer())
        values = {one: builder.load(builder.gep(given, [_WORD(n)])) for n, one in enumerate(self._numbers)}
        stop = builder.and_(width, _WORD(-_LANES))
        for begin, end, lanes in ((_WORD(0), stop, _LANES), (stop, width, 1)):
            kind = ir.VectorType(_DOUBLE, lanes) if lanes > 1 else _DOUBLE
            found = {one: _stretched(builder, value, kind) for one, value in values.items()}
            before, body, after = builder.block, function.append_basic_block(), function.append_basic_block()
            builder.cbranch(builder.icmp_signed("<", begin, end), body, after)
            builder.position_at_end(body)
            place = builder.phi(_WORD)
            place.add_incoming(begin, before)
            behind = builder.mul(place, _WORD(ITEM))

            def pointer(address: ir.Value, behind: ir.Value = behind, kind: ir.Type = kind) -> ir.Value:
                return builder.inttoptr(builder.add(address, behind), kind.as_pointer())

            read = {one for _, _, operands in self._lines for one in operands if one < 0}
            for one in sorted(read | {self._last} if self._last < 0 else read):
                found[one] = builder.load(pointer(inputs[~one]), align=ITEM)
            for name, value, operands in self._lines:
                found[value] = _applied(builder, name, [found[one] for one in operands], kind)
            builder.store(found[self._last], pointer(target), align=ITEM)
            following = builder.add(place, _WORD(lanes))
            place.add_incoming(following, body)
            builder.cbranch(builder.icmp_signed("<", following, end), body, after)
            builder.position_at_end(after)
        builder.ret_void()
        return module


def _stretched(builder: ir.IRBuilder, value: ir.Value, kind: ir.Type) -> ir.Value:
    if kind == _DOUBLE:
        return value
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), value, ir.IntType(32)(0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(ir.IntType(32), kind.count), None))


def _constant_of(kind: ir.Type, value: float) -> ir.Value:
    return ir.Constant(kind, value if kind == _DOUBLE else [ir.Constant(_DOUBLE, value)] * kind.count)


def _applied(builder: ir.IRBuilder, function: int, operands: list[ir.Value], kind: ir.Type) -> ir.Value:
    # What ``_fill_tile`` does, of one vector.
    first, second = operands[0], operands[-1]

    def truth(condition: ir.Value) -> ir.Value:
        return builder.select(condition, _constant_of(kind, 1.0), _constant_of(kind, 0.0))

    def called(name: str) -> ir.Value:
        name = f"llvm.{name}.{'f64' if kind == _DOUBLE else f'v{kind.count}f64'}"
        known = builder.module.globals.get(name)
        known = known or ir.Function(builder.module, ir.FunctionType(kind, [kind]), name)
        return builder.call(known, [first])

    match function:
        case _ if function in _INSTRUCTIONS:
            return getattr(builder, _INSTRUCTIONS[function])(first, second)
        case _ if function in _ORDERS:
            return truth(builder.fcmp_ordered(_ORDERS[function], first, second))
        case _ if function == NOT_EQUAL:
            return truth(builder.fcmp_unordered("!=", first, second))
        case _ if function in (MAXIMUM, MINIMUM):
            is_first = builder.fcmp_ordered(">" if function == MAXIMUM else "<", first, second)
            is_first = builder.or_(is_first, builder.fcmp_unordered("uno", first, first))
            return builder.select(is_first, first, second)
        case _ if function == NEGATIVE:
            return builder.fneg(first)
        case _ if function in (ABSOLUTE, SQRT):
            return called("fabs" if function == ABSOLUTE else "sqrt")
    assert function == WHERE, "there are no others"
    is_true = builder.fcmp_unordered("!=", first, _constant_of(kind, 0.0))
    return builder.select(is_true, operands[1], second)


_INSTRUCTIONS = {ADD: "fadd", SUBTRACT: "fsub", MULTIPLY: "fmul", DIVIDE: "fdiv"}
_ORDERS = {LESS: "<", LESS_EQUAL: "<=", EQUAL: "=="}
