"""Elementwise functions and sums of double precision that run together in one pass over memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from matnb.blocks.formats import NumericArray
from matnb.blocks.kernels.compiled import given
from matnb.blocks.kernels.elementwise import tile_loops as loops
from matnb.blocks.kernels.elementwise.elementwise import Link, shapes_of_links
from matnb.blocks.kernels.numpy_structs import address_of, loop_address
from matnb.blocks.kernels.reductions.sum_loops import ROOM, Floats, push_run, sum_stack

FLOAT, TRUTH = np.dtype(np.float64), np.dtype(np.bool_)
LONG_ROW = 32  # elements; in shorter ones what a tile costs is more than what it does
_ONE_ROW, _NO_LENGTH = np.zeros((1, 1 + loops.NUM_INPUTS), np.int64), 2**62
_MOST_NODES = 128  # of a sum on the way


@dataclass(frozen=True)
class TileSum:
    """A sum over all elements, of which the first has the global place ``start``.

    Its share has ``num_nodes``; None for the value of the whole tree.
    """

    start: int
    num_nodes: int | None


@dataclass(frozen=True)
class Tiles:
    """A program of the machine for operands of certain forms.

    Attributes
    ----------
    shape, dtype
        Of the result.
    length
        How many elements each operand has that has more than one.
    code, num_first, num_buffers
        As ``run_tiles`` has them; how many values there are that are no inputs.
    numbers, number_places
        What stands for numbers in the code; operands of one element: where in them, and among the operands.
    input_places, truth_places
        Operands of double precision, and of truths, of all elements.
    last, direct
        The value that is wanted, and whether its function may write it where it goes.
    whole
        The same program as one loop, where it can be one.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    length: int
    code: loops.Integers
    num_first: int
    num_buffers: int
    numbers: NumericArray
    number_places: tuple[tuple[int, int], ...]
    input_places: tuple[int, ...]
    truth_places: tuple[int, ...]
    last: int
    direct: bool
    _ending: TileSum | None
    whole: loops.WholeLoop | None
    _joined: _JoinedCode | None  # the same program, where some of its functions are one loop

    @property
    def start(self) -> int:
        """Global place of the first element, where a sum is wanted."""
        return 0 if self._ending is None else self._ending.start

    @property
    def is_whole_sum(self) -> bool:
        """Whether it is the value of the whole tree."""
        return self._ending is not None and self._ending.num_nodes is None

    @property
    def is_sum(self) -> bool:
        """Whether the result is a sum, so that parts come one after the other."""
        return self._ending is not None

    def writes_into(self, out: NumericArray) -> bool:
        """Tell whether the machine can write the result into memory: contiguous, or in rows that are so."""
        return out.flags.c_contiguous or (self.dtype == FLOAT and _is_in_long_rows(out))

    def rows(
        self, operands: Sequence[NumericArray], out: NumericArray, num_elements: int
    ) -> tuple[loops.Integers, NumericArray] | None:
        """Return the program as a table for ``run_rows``, and the numbers that it reads.

        Parameters
        ----------
        operands, out
            As of ``begin``; all are double precision with the elements of a row one after the other.
        num_elements
            That were asked for of this program so far.

        Returns
        -------
        tuple or None
            Addresses, which hold as long as all these arrays; None as long as there is no ``WholeLoop``.
        """
        code = None if self.whole is None or self.is_sum else self.whole.code(num_elements)
        if code is None:
            return None
        numbers = self.numbers.copy()
        for number, place in self.number_places:
            numbers[number] = operands[place].item()
        table = rows_of_elements([operands[place] for place in self.input_places], out)
        table[:, 0], table[:, 1 + loops.NUM_INPUTS] = code[0, 0], address_of(numbers)
        return table, numbers

    def begin(self, operands: Sequence[NumericArray], out: NumericArray) -> Pass:
        """Return what writes the result, part by part, into memory that it ``writes_into``.

        It is of the result's shape and dtype, and may be that of an operand of this shape. Further memory: a
        few tiles a part.

        Parameters
        ----------
        operands
            Of the forms that the program was written for, without the product.
        """
        numbers = self.numbers
        if self.number_places:
            numbers = numbers.copy()
            for number, place in self.number_places:
                numbers[number] = operands[place].item()
        return Pass(self, operands, numbers, out)

    def compiled_code(self) -> tuple[loops.Integers, int]:
        """Return the code that a run takes, and its ``num_first``; it is compiled after enough runs."""
        code = None if self.whole is None else self.whole.code(self.length)
        if code is not None:
            return code, -1
        joined = None if self._joined is None else self._joined.code(self.length)
        return (self.code if joined is None else joined), self.num_first


class Pass:
    """One run of a program over its operands; parts of sums run one after the other, others side by side.

    Attributes
    ----------
    room
        How many buffers it takes, and how many elements each has.
    is_whole
        Whether the program is one loop.
    """

    def __init__(
        self,
        tiles: Tiles,
        operands: Sequence[NumericArray],
        numbers: NumericArray,
        out: NumericArray,
    ) -> None:
        self._tiles, self._numbers, self._out = tiles, numbers, out
        self._code, self._num_first = tiles.compiled_code()
        self.is_whole = self._num_first < 0
        self.room = 0 if self.is_whole else tiles.num_buffers, loops.TILE
        self._kept = operands  # whose addresses follow
        inputs = [operands[place] for place in tiles.input_places]
        self._inputs = [address_of(one) for one in inputs]
        has_rows = not tiles.is_sum and tiles.dtype == FLOAT
        self._rows, self._row_length = _rows_of(inputs, out if has_rows else None)
        self._truths = np.zeros(loops.NUM_TRUTHS, np.int64)
        for number, place in enumerate(tiles.truth_places):
            self._truths[number] = address_of(operands[place])
        self._target = 0 if tiles.is_sum else address_of(out)
        self._top = 0
        if tiles.is_sum:
            self._stack, self._group = np.empty(_MOST_NODES), np.empty(ROOM)

    def run(
        self,
        begin: int,
        end: int,
        buffers: NumericArray,
        product: NumericArray | None = None,
        room: NumericArray | None = None,
    ) -> None:
        """Run the part from one place to another.

        Parameters
        ----------
        begin, end
            Where sums are wanted, each part but the last ends at a multiple of 64 of the global places.
        buffers
            Of double precision, as ``room`` says.
        product
            Its elements alone, where there is one.
        room
            For as many elements, where sums are wanted.
        """
        loops.run_tiles(*self.arguments(begin, end, buffers, product, room))
        if room is not None:
            self._add(begin, end, given(room))

    def arguments(
        self,
        begin: int,
        end: int,
        buffers: NumericArray,
        product: NumericArray | None,
        room: NumericArray | None,
    ) -> tuple[Any, ...]:
        """Return what the machine's loop takes for the part."""
        tiles, program = self._tiles, self.program(buffers)
        places, steps = program[4:6]
        if product is not None:
            places[0], steps[0] = address_of(product) - begin * loops.ITEM, loops.ITEM
        target = self._target if room is None else address_of(room) - begin * loops.ITEM
        # Loops that write where they read are not made of wide instructions.
        if tiles.direct and self._num_first >= 0 and target not in self._inputs:
            places[tiles.last], steps[tiles.last] = target, loops.ITEM
        return (*program, begin, end, target, tiles.dtype == TRUTH)

    def program(self, buffers: NumericArray) -> loops.TileProgram:
        """Return what the machine's loop takes, where no product is an operand."""
        tiles = self._tiles
        places = np.arange(buffers.shape[0] + loops.NUM_INPUTS)
        places *= loops.TILE * loops.ITEM
        places += address_of(buffers)
        steps = np.zeros(places.size, np.int64)
        for number, address in enumerate(self._inputs):
            places[~number], steps[~number] = address, loops.ITEM
        return (
            self._code, self._num_first, self._numbers, buffers, places, steps, self._truths,
            self._rows, self._row_length, tiles.last,
        )  # fmt: skip

    def _add(self, begin: int, end: int, values: NumericArray) -> None:
        # The nodes of a sum's part, and its end.
        tiles = self._tiles
        self._top = _pushed(tiles, (begin, end), values, self._stack, self._top, self._group)
        if end == tiles.length:
            _write_sum(tiles, self._stack, self._top, self._out)


def _pushed(
    tiles: Tiles,
    part: tuple[int, int],
    values: NumericArray,
    stack: Floats,
    top: int,
    group: Floats,
) -> int:
    begin, end = tiles.start + part[0], tiles.start + part[1]
    return push_run(values, -begin, begin, end, tiles.start, tiles.is_whole_sum, stack, top, group)


def _write_sum(tiles: Tiles, stack: Floats, top: int, out: NumericArray) -> None:
    if tiles.is_whole_sum:
        out[0] = sum_stack(stack, top)
    else:
        out[:top] = stack[:top]


class BoundPass:
    """A program that is run in one part again and again, over other arrays of its forms each time.

    It keeps no array: what changes from run to run are addresses, and the operands of one element.
    """

    def __init__(self, tiles: Tiles) -> None:
        self._tiles, self._numbers = tiles, tiles.numbers.copy()
        self._tile_offsets = np.arange(tiles.num_buffers) * (loops.TILE * loops.ITEM)
        self._places = np.zeros(tiles.num_buffers + loops.NUM_INPUTS, np.int64)
        self._steps = np.zeros(self._places.size, np.int64)
        self._steps[self._places.size - len(tiles.input_places) :] = loops.ITEM
        self._truths = np.zeros(loops.NUM_TRUTHS, np.int64)
        self._buffers_at = 0
        self._has_rows = not tiles.is_sum and tiles.dtype == FLOAT
        if tiles.is_sum:
            self._stack, self._group = np.empty(_MOST_NODES), np.empty(ROOM)

    def run(
        self,
        operands: Sequence[NumericArray],
        out: NumericArray,
        buffers: NumericArray,
        product: NumericArray | None = None,
        room: NumericArray | None = None,
    ) -> None:
        """Run it.

        Parameters
        ----------
        operands, out
            As of ``Tiles.begin``.
        buffers
            As many as the program has.
        product, room
            As of ``Pass.run``.
        """
        tiles, places = self._tiles, self._places
        for number, place in tiles.number_places:
            self._numbers[number] = operands[place].item()
        inputs = [operands[place] for place in tiles.input_places]
        addresses = [address_of(one) for one in inputs]
        for number, address in enumerate(addresses):
            places[~number] = address
        for number, place in enumerate(tiles.truth_places):
            self._truths[number] = address_of(operands[place])
        code, num_first = tiles.compiled_code()
        target = address_of(out if room is None else room)
        self._place_tiles(address_of(buffers), num_first >= 0 and target not in addresses, target)
        if product is not None:
            places[0], self._steps[0] = address_of(product), loops.ITEM
        rows, row_length = _rows_of(inputs, out if self._has_rows else None)
        loops.run_tiles(
            code, num_first, self._numbers, buffers, places, self._steps, self._truths, rows, row_length,
            tiles.last, 0, tiles.length, target, tiles.dtype == TRUTH,
        )  # fmt: skip
        if room is not None:
            top = _pushed(tiles, (0, tiles.length), given(room), self._stack, 0, self._group)
            _write_sum(tiles, self._stack, top, out)

    def _place_tiles(self, buffers_at: int, is_direct: bool, target: int) -> None:
        tiles, places = self._tiles, self._places
        if buffers_at != self._buffers_at:
            np.add(self._tile_offsets, buffers_at, out=places[: tiles.num_buffers])
            self._buffers_at = buffers_at
        if tiles.direct:
            there = (
                (target, loops.ITEM) if is_direct else (buffers_at + int(self._tile_offsets[tiles.last]), 0)
            )
            places[tiles.last], self._steps[tiles.last] = there


_LONGEST_ROW = 1 << 14  # elements: threads take whole rows


def rows_of_elements(inputs: Sequence[NumericArray], out: NumericArray) -> loops.Integers:
    """Return a table for ``run_rows`` that copies the first input, of arrays of one shape.

    The elements of each row are one after the other in memory.
    """
    width = out.shape[-1]
    starts = np.arange(0, max(width, 1), _LONGEST_ROW)
    places = [*range(1, 1 + len(inputs)), 2 + loops.NUM_INPUTS]
    table = np.zeros((prod(out.shape[:-1]) * starts.size, loops.ROW_WORDS), np.int64)
    for place, array in zip(places, (*inputs, out), strict=True):
        at = np.array([address_of(array)])
        for length, step in zip(array.shape[:-1], array.strides[:-1], strict=True):
            at = (at[:, None] + np.arange(length) * step).ravel()
        table[:, place] = (at[:, None] + starts * loops.ITEM).ravel()
    table.reshape(-1, starts.size, loops.ROW_WORDS)[:, :, -1] = np.minimum(width - starts, _LONGEST_ROW)
    return table


def _rows_of(inputs: Sequence[NumericArray], out: NumericArray | None) -> tuple[loops.Integers, int]:
    # As ``run_tiles`` has them; all is one row where there are no gaps. Sums and truths have none.
    arrays = [*inputs] if out is None else [*inputs, out]
    if all(one.flags.c_contiguous for one in arrays):
        return _ONE_ROW, _NO_LENGTH
    assert all(one.strides[-1] == loops.ITEM for one in arrays), "a program is run on what it was written for"
    strides = tuple(one.strides for one in inputs)
    return _row_table(arrays[0].shape, strides, None if out is None else out.strides)


@lru_cache(maxsize=256)
def _row_table(
    shape: tuple[int, ...], inputs: tuple[tuple[int, ...], ...], out: tuple[int, ...] | None
) -> tuple[loops.Integers, int]:
    *lengths, length = shape
    in_order = np.arange(prod(lengths)).reshape(lengths) * (length * loops.ITEM)
    rows = np.zeros((in_order.size, 1 + loops.NUM_INPUTS), np.int64)
    for column, strides in enumerate((out, *inputs)):
        if strides is not None:
            at = np.zeros(lengths, np.int64)
            for axis, step in enumerate(strides[:-1]):
                at += (np.arange(lengths[axis]) * step).reshape(-1, *(1,) * (len(lengths) - axis - 1))
            rows[:, -column] = (at - in_order).ravel()
    return rows, length


_SAVED = 6  # passes over a tile: a loop of 7 functions is worth its compiler at ``_WORTH_COMPILING``


class _JoinedCode:
    # The code of a program with loops in it, whose lines are given, without where these loops are.
    def __init__(self, code: loops.Integers, loops_of_lines: Sequence[tuple[int, loops.WholeLoop]]) -> None:
        self._lines, self._loops = code, loops_of_lines
        self._code: loops.Integers | None = None

    def code(self, num_elements: int) -> loops.Integers | None:
        """Return the code that so many elements want; None as long as one of the loops is not compiled."""
        if self._code is None:
            found = [loop.code(num_elements * loop.num_saved // _SAVED) for _, loop in self._loops]
            if all(one is not None for one in found):
                code = self._lines.copy()
                for (line, _), one in zip(self._loops, found, strict=True):
                    code[line, 0] = 0 if one is None else one[0, 0]
                self._code = given(code)
        return self._code


_OutputForm: TypeAlias = tuple[int, tuple[int, ...]]  # a function of the machine, and which operands it reads

# NumPy leaves to the processor which of two zeros is the larger one.
_SECOND_OF_EQUAL = bool(np.signbit(np.maximum(0.0, -0.0))) and not np.signbit(np.minimum(-0.0, 0.0))
_EXTREMES: Mapping[str, _OutputForm] = (
    {"maximum": (loops.MAXIMUM, (0, 1)), "minimum": (loops.MINIMUM, (0, 1))} if _SECOND_OF_EQUAL else {}
)
_OF_FLOATS: Mapping[str, _OutputForm] = MappingProxyType(
    {
        "add": (loops.ADD, (0, 1)),
        "subtract": (loops.SUBTRACT, (0, 1)),
        "multiply": (loops.MULTIPLY, (0, 1)),
        "divide": (loops.DIVIDE, (0, 1)),
        "true_divide": (loops.DIVIDE, (0, 1)),
        "negative": (loops.NEGATIVE, (0,)),
        "absolute": (loops.ABSOLUTE, (0,)),
        "fabs": (loops.ABSOLUTE, (0,)),
        "square": (loops.MULTIPLY, (0, 0)),
        "sqrt": (loops.SQRT, (0,)),
        **_EXTREMES,
    }
)
_ARITHMETIC: Mapping[int, str] = MappingProxyType(
    {loops.ADD: "add", loops.SUBTRACT: "subtract", loops.MULTIPLY: "multiply", loops.DIVIDE: "divide"}
)
_COMPARISONS: Mapping[str, _OutputForm] = MappingProxyType(
    {
        "less": (loops.LESS, (0, 1)),
        "less_equal": (loops.LESS_EQUAL, (0, 1)),
        "greater": (loops.LESS, (1, 0)),
        "greater_equal": (loops.LESS_EQUAL, (1, 0)),
        "equal": (loops.EQUAL, (0, 1)),
        "not_equal": (loops.NOT_EQUAL, (0, 1)),
        "isnan": (loops.NOT_EQUAL, (0, 0)),
    }
)
_OF_TRUTHS: Mapping[str, _OutputForm] = MappingProxyType(  # which are ones and zeros
    {
        "logical_and": (loops.MULTIPLY, (0, 1)),
        "bitwise_and": (loops.MULTIPLY, (0, 1)),
        "logical_or": (loops.MAXIMUM, (0, 1)),
        "bitwise_or": (loops.MAXIMUM, (0, 1)),
        "logical_xor": (loops.NOT_EQUAL, (0, 1)),
        "bitwise_xor": (loops.NOT_EQUAL, (0, 1)),
    }
)


class OperandForm(NamedTuple):
    """What is known of an operand before its elements are.

    ``in_rows`` tells that the elements of each row, if not of all of them, are one after the other in memory.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    in_rows: bool


def form_of(values: NumericArray) -> OperandForm:
    """Return the form of an array."""
    return OperandForm(values.shape, values.dtype, values.flags.c_contiguous or _is_in_long_rows(values))


def _is_in_long_rows(values: NumericArray) -> bool:
    has_rows = values.ndim > 1 and values.dtype == FLOAT and values.strides[-1] == values.itemsize
    return has_rows and values.shape[-1] >= LONG_ROW


@lru_cache(maxsize=256)
def write_tiles(
    links: tuple[Link, ...],
    operands: tuple[OperandForm | None, ...],
    num_rows: int,
    ending: TileSum | None,
) -> Tiles | None:
    """Return the program of elementwise functions, or None where the machine does not give their bits.

    The last ones are remembered: a task that runs once has been written before where a cell runs again.

    Parameters
    ----------
    links
        The functions; without any the value is the only operand.
    operands
        Their forms; None for the product of a sparse matrix with a vector, which comes part by part.
    num_rows
        Of the product.
    ending
        The sum that is wanted of the last value, or None for the value itself.
    """
    shapes = shapes_of_links(links, [(num_rows,) if form is None else form.shape for form in operands])
    if shapes is None:
        return None
    shape = shapes[-1]
    if any(one != shape and prod(one) != 1 for one in shapes) or (ending is not None and len(shape) != 1):
        return None
    writer = _Writer(prod(shape))
    for place, form in enumerate(operands):
        if not writer.read(place, form):
            return None
    if not all(writer.apply(link) for link in links):
        return None
    return writer.program(shape, ending)


@lru_cache(maxsize=256)
def _whole_loop(lines: tuple[loops.Line, ...], last: int, numbers: tuple[int, ...]) -> loops.WholeLoop:
    return loops.WholeLoop(lines, last, numbers)


@dataclass(frozen=True)
class _Row:
    # One function; operands and value by their numbers: inputs are ~n, everything else as it was made.
    function: int
    value: int
    operands: tuple[int, ...]
    plain: int | None  # one of the machine's own that does the same
    loop: loops.WholeLoop | None = None  # of several functions


class _Writer:
    """Writes links as functions of the machine.

    Parameters
    ----------
    length
        How many elements there are.
    """

    def __init__(self, length: int) -> None:
        self._length = length
        self._values: list[tuple[int, bool]] = []  # of operands and links: number, whether it is a truth
        self._rows: list[_Row] = []
        self._numbers: list[float] = []
        self._number_values: list[int] = []
        self.number_places: list[tuple[int, int]] = []
        self._inputs: list[int] = []
        self._truths: list[int] = []
        self._constant: set[int] = set()  # values that are of numbers alone
        self._num_values = loops.FIRST_NUMBER
        self._operand = 0  # among those that are not a product
        self._has_product = False

    def read(self, place: int, form: OperandForm | None) -> bool:
        """Take the next operand; False where it is none for the machine."""
        if form is None:
            self._values.append((0, False))
            self._has_product = True
            return True
        operand, self._operand = self._operand, self._operand + 1
        is_truth = form.dtype == TRUTH
        if prod(form.shape) == 1:
            if form.dtype.kind not in "biuf" or form.dtype.itemsize > 8:
                return False
            self.number_places.append((len(self._numbers), operand))
            self._values.append((self._number(0.0), is_truth))
            return True
        if not form.in_rows or prod(form.shape) != self._length:
            return False
        if form.dtype == FLOAT and len(self._inputs) < loops.NUM_INPUTS:
            self._values.append((~len(self._inputs), False))
            self._inputs.append(operand)
            return True
        if is_truth and len(self._truths) < loops.NUM_TRUTHS:
            self._truths.append(operand)
            self._values.append((len(self._truths), True))
            return True
        return False

    def apply(self, link: Link) -> bool:
        """Write a function; False where it is none of the machine."""
        if link.sparse or link.dtype not in (FLOAT, TRUTH) or not set(link.input_dtypes) <= {FLOAT, TRUTH}:
            return False
        read = [self._values[place] for place in link.arguments]
        operands = [
            value if dtype == FLOAT or is_truth else self._truth_of(value)
            for (value, is_truth), dtype in zip(read, link.input_dtypes, strict=True)
        ]
        of_truths = all(dtype == TRUTH for dtype in link.input_dtypes)
        of_floats = all(dtype == FLOAT for dtype in link.input_dtypes)
        gives_truth = False
        if link.name in _OF_FLOATS and of_floats:
            value = self._write(_OF_FLOATS[link.name], operands)
        elif link.name in _COMPARISONS and of_floats:
            value, gives_truth = self._write(_COMPARISONS[link.name], operands), True
        elif link.name in _OF_TRUTHS and (of_truths or (of_floats and link.name.startswith("logical"))):
            truths = operands if of_truths else [self._truth_of(operand) for operand in operands]
            value, gives_truth = self._write(_OF_TRUTHS[link.name], truths), True
        elif link.name == "logical_not" or (link.name == "invert" and of_truths):
            value, gives_truth = self._do(loops.EQUAL, (operands[0], self._number(0.0))), True
        elif link.name == "reciprocal" and of_floats:
            value = self._do(loops.DIVIDE, (self._number(1.0), operands[0]))
        elif of_floats and link.dtype == FLOAT and (address := loop_address(link.name)):
            value = self._do(address if len(operands) == 1 else -address, tuple(operands))
        elif link.name == "where" and link.input_dtypes[0] == TRUTH:
            gives_truth = link.input_dtypes[1] == link.input_dtypes[2] == TRUTH
            value = self._do(loops.WHERE, tuple(operands))
        elif link.name in ("astype", "positive"):
            value, gives_truth = operands[0], of_truths
        else:
            return False
        if link.dtype == TRUTH and not gives_truth:
            value = self._truth_of(value)
        self._values.append((value, link.dtype == TRUTH))
        return True

    def program(self, shape: tuple[int, ...], ending: TileSum | None) -> Tiles | None:
        """Return the program that gives the last value."""
        last, is_truth = self._values[-1]
        if ending is not None and is_truth:
            return None
        first = [row for row in self._rows if row.value in self._constant]
        rest = [row for row in self._rows if row.value not in self._constant]
        whole = self._whole()
        joined = self._joined(rest, last) if whole is None else None
        # The value that is wanted has one buffer, whichever code makes it.
        final = len(self._constant) + loops.FIRST_NUMBER
        buffers, num_buffers = self._buffers(rest, last, final)
        code = given(self._code([*first, *rest], buffers))
        fused = None
        if joined is not None:
            found, more = self._buffers(joined, last, final)
            num_buffers = max(num_buffers, more)
            lines = [(len(first) + line, row.loop) for line, row in enumerate(joined) if row.loop is not None]
            fused = _JoinedCode(self._code([*first, *joined], found), lines)
        made = TRUTH if is_truth else FLOAT
        direct = not is_truth and bool(rest) and rest[-1].value == last
        if ending is not None:
            shape = (1 if ending.num_nodes is None else ending.num_nodes,)
        return Tiles(
            shape, made, self._length, code, len(first), num_buffers, np.array(self._numbers),
            tuple(self.number_places), tuple(self._inputs), tuple(self._truths),
            last if last < 0 else buffers[last], direct, ending, whole, fused,
        )  # fmt: skip

    def _code(self, rows: Sequence[_Row], buffers: Mapping[int, int]) -> loops.Integers:
        code = np.zeros((len(rows), loops.LINE_WORDS), np.int64)
        for number, row in enumerate(rows):
            operands = [one if one < 0 else buffers[one] for one in row.operands]
            numbers = sum(place + 1 for place, one in enumerate(row.operands[:2]) if one in self._constant)
            operands += operands[:1] * (loops.NUM_INPUTS - len(operands))
            flag = numbers if row.loop is None else loops.SEVERAL
            code[number] = row.function, buffers[row.value], *operands[:3], flag, *operands[3:]
        return code

    def _joined(self, rows: Sequence[_Row], last: int) -> list[_Row] | None:
        # Plain functions whose values only such functions read, and at last one of them, become one loop.
        # None where there are none. What reads a value of the loop reads its last one, so that the order of
        # last ones is an order of all.
        readers: dict[int, set[int]] = {}
        for number, row in enumerate(rows):
            for operand in row.operands:
                readers.setdefault(operand, set()).add(number)
        ends: dict[int, int] = {}  # by row, the last one of those that it is joined with
        for number in reversed(range(len(rows))):
            row = rows[number]
            if row.plain is not None:
                found = {ends.get(one, -1) for one in readers.get(row.value, ())}
                is_inner = row.value != last and len(found) == 1 and -1 not in found
                ends[number] = found.pop() if is_inner else number
        made: list[_Row] = []
        for number, row in enumerate(rows):
            inside = [rows[one] for one, end in sorted(ends.items()) if end == number]
            if len(inside) > 1:
                loop = self._loop_of(inside, row)
                if loop is None:
                    return None
                made.append(loop)
            elif ends.get(number, number) == number:
                made.append(row)
        return made if len(made) < len(rows) else None

    def _loop_of(self, inside: Sequence[_Row], row: _Row) -> _Row | None:
        own = {one.value for one in inside} | set(self._number_values)
        read = dict.fromkeys(operand for one in inside for operand in one.operands if operand not in own)
        if len(read) > loops.NUM_INPUTS:
            return None
        names = {operand: ~place for place, operand in enumerate(read)}
        lines = tuple(
            (one.plain, one.value, tuple(names.get(operand, operand) for operand in one.operands))
            for one in inside
            if one.plain is not None
        )
        loop = _whole_loop(lines, row.value, tuple(self._number_values))
        return _Row(0, row.value, tuple(read), None, loop)

    def _whole(self) -> loops.WholeLoop | None:
        # Where all functions are the machine's own, and all operands are double precision.
        last, is_truth = self._values[-1]
        if self._has_product or self._truths or is_truth or any(row.plain is None for row in self._rows):
            return None
        lines = tuple((row.plain, row.value, row.operands) for row in self._rows if row.plain is not None)
        return _whole_loop(lines, last, tuple(self._number_values))

    def _number(self, value: float) -> int:
        number = self._new()
        self._constant.add(number)
        self._numbers.append(value)
        self._number_values.append(number)
        return number

    def _new(self) -> int:
        self._num_values += 1
        return self._num_values - 1

    def _truth_of(self, value: int) -> int:
        return self._do(loops.NOT_EQUAL, (value, self._number(0.0)))

    def _write(self, written: _OutputForm, operands: Sequence[int]) -> int:
        function, places = written
        return self._do(function, tuple(operands[place] for place in places))

    def _do(self, function: int, operands: tuple[int, ...]) -> int:
        plain = function if 0 <= function <= loops.WHERE else None
        if function in _ARITHMETIC and not self._constant.isdisjoint(operands):
            # NumPy's loop takes a number as one, which leaves the first cache to other tiles.
            address = loop_address(_ARITHMETIC[function])
            function = function if address is None else -address
        value = self._new()
        self._rows.append(_Row(function, value, operands, plain))
        if all(operand in self._constant for operand in operands):
            self._constant.add(value)
        return value

    def _buffers(self, rows: Sequence[_Row], last: int, final: int) -> tuple[dict[int, int], int]:
        # The buffer of each value, and how many there are: those of numbers and what is made of them stay,
        # others are taken again after the last reader. None is read and written by the same function, since
        # such loops are not made of wide instructions; that of the last value is its own, the ``final``.
        buffers = {number: number for number in range(loops.FIRST_NUMBER)}
        for value in (*self._number_values, *sorted(self._constant - set(self._number_values))):
            buffers[value] = len(buffers)
        count = final + 1
        buffers.setdefault(last, final)
        readers = {operand: number for number, row in enumerate(rows) for operand in row.operands}
        free: list[int] = []
        for number, row in enumerate(rows):
            if row.value not in buffers:
                if free:
                    buffers[row.value] = free.pop()
                else:
                    buffers[row.value] = count
                    count += 1
            kept = {*range(loops.FIRST_NUMBER), *self._constant, last}
            ended = {one for one in row.operands if one >= 0 and readers[one] == number}
            free += [buffers[one] for one in sorted(ended - kept)]
        return buffers, count
