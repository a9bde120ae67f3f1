"""A user's function on arrays or blocks: what names it, how it is called, and results packed as bytes."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import accumulate
from math import prod
from pathlib import Path
from types import CodeType
from typing import Protocol

import numpy as np
import scipy.sparse as sp

from matnb.blocks.formats import Block, Csr, Dense, Empty, NumericArray, cast, csr_block, to_numpy, to_scipy
from matnb.blocks.grid import Region
from matnb.blocks.semiring import MONOIDS
from matnb.errors import DTypeError, MatnbError, OptionError, ShapeError, kernel_error

_calling: ContextVar[bool] = ContextVar("matnb_calling", default=False)
Output = tuple[tuple[int, ...], np.dtype]  # shape and dtype of one result
MadeArray = tuple[tuple[int, ...], np.dtype, bool]  # shape and dtype of a block, and whether it is sparse
_SHAPE_AND_DTYPE = "say with shape= and dtype= what it gives"
_ALIGNMENT = 64  # of each packed result: a cache line, and enough for every dtype


def is_calling() -> bool:
    """Tell whether this thread runs a user's function for a worker, which waits for it."""
    return _calling.get()


class Callee(Protocol):
    """What a user gives to be called."""

    def __call__(self, *arrays: object) -> object:
        """Return an array, a number, or a tuple of them."""


@dataclass(frozen=True)
class Function:
    """A user's function as it travels.

    Attributes
    ----------
    name
        For a user.
    pickled
        The function, by value unless its module is an installed one, which workers import.
    code
        What it does and reads, which names it; ``pickled`` also says in which file and line it was written.
    takes_place
        Whether it takes the place of its block: as ``place=``, or as ``part=`` from ``foreach``.
    not_followed
        What it reads that cannot be followed, so that nothing it gives is remembered; empty as a rule.
    """

    name: str
    pickled: bytes
    code: bytes
    takes_place: bool = False
    not_followed: str = ""

    @property
    def digest(self) -> bytes:
        """Sixteen bytes that name it by what it does."""
        parts = (self.name.encode(), self.code)
        return blake2b(b"".join(b"%d:" % len(part) + part for part in parts), digest_size=16).digest()


@dataclass(frozen=True)
class SplitPart:
    """One of the parts of an array for which :func:`matnb.foreach` calls a function.

    Attributes
    ----------
    index, count
        Its number, from 0, and how many parts there are.
    region
        Slices such that ``A[region]`` is the part.
    owner
        The number of the worker that has it; None where a function is called, as results must not depend on
        where that is.
    """

    index: int
    count: int
    region: tuple[slice, ...]
    owner: int | None = None


@dataclass(frozen=True)
class WithArguments:
    """A user's function with its arguments other than the array."""

    pyfunc: Callable[..., object]  # the name under which NumPy's vectorized functions have theirs
    arguments: tuple[object, ...]
    named: tuple[tuple[str, object], ...]

    def __call__(self, *arrays: object) -> object:
        """Return what the function gives."""
        return self.pyfunc(*arrays, *self.arguments, **dict(self.named))


@lru_cache(maxsize=64)
def _loaded(function: Function) -> Callee:
    # By all that names it: a module that was loaded anew gives another function under the same name.
    found: Callee = pickle.loads(function.pickled)
    return found


def code_of_file(filename: str, kind: type[CodeType], parts: tuple[object, ...]) -> CodeType:
    """Return code as it travelled, with the name of the file in which it was written."""
    return kind(*parts).replace(co_filename=filename)  # type: ignore[arg-type]  # as they were taken apart


def packed_bytes(outputs: Sequence[Output]) -> int:
    """Return the bytes that results take when they are packed."""
    return sum(_room(output) for output in outputs)


def _room(output: Output) -> int:
    shape, dtype = output
    return -(-prod(shape) * dtype.itemsize // _ALIGNMENT) * _ALIGNMENT


def call(function: Function, blocks: Sequence[Block], outputs: Sequence[Output]) -> Dense:
    """Call a function on copies of blocks, and return its results packed in a block of bytes.

    Parameters
    ----------
    outputs
        The shapes and dtypes that the results must have; short dtypes become longer ones of the same kind.

    Raises
    ------
    KernelError
        When it raises, naming it and with its own error and trace.
    ShapeError, DTypeError
        When a result is not what it must be.
    """
    result = called(function, lambda callee: callee(*(np.array(to_numpy(block))[()] for block in blocks)))
    return pack_results(function, result, outputs)


def pack_results(function: Function, result: object, outputs: Sequence[Output], where: str = "") -> Dense:
    """Return results of a function packed in a block of bytes.

    Parameters
    ----------
    where
        Of what they are results, for messages; what changes them is then ``shape=`` and ``dtype=``.

    Raises
    ------
    ShapeError, DTypeError
        When a result is not what it must be.
    """
    values = results_of(result, function.name)
    if len(values) != len(outputs):
        raise _broken(ShapeError, function, f"{len(values)} results", f"{len(outputs)}", where)
    buffer = np.zeros(packed_bytes(outputs), np.uint8)
    for value, part in zip(values, unpacked(buffer, outputs), strict=True):
        if value.shape != part.shape:
            given, wanted = f"a result of shape {value.shape}", f"{part.shape}"
            raise _broken(ShapeError, function, given, wanted, where)
        if not np.can_cast(value.dtype, part.dtype, "same_kind"):
            given, wanted = f"a result of dtype {value.dtype}", f"{part.dtype}"
            raise _broken(DTypeError, function, given, wanted, where)
        part[...] = cast(value, part.dtype)
    return Dense(buffer)


def truths_of(function: Function, arrays: Sequence[NumericArray]) -> NumericArray:
    """Call a function on arrays of one length, which become its own, and return its booleans, one for each.

    Raises
    ------
    KernelError
        When it raises, naming it and with its own error and trace.
    ShapeError, DTypeError
        When it gives anything but a boolean for each element.
    """
    result = called(function, lambda callee: callee(*arrays))
    (found,) = results_of((result,), function.name)
    if found.dtype.kind != "b":
        raise DTypeError(f"{function.name} gave a result of dtype {found.dtype} where booleans belong")
    if found.shape not in ((), arrays[0].shape):
        raise ShapeError(
            f"{function.name} gave booleans of shape {found.shape} for {len(arrays[0])} entries: one for each"
        )
    return np.array(np.broadcast_to(found, arrays[0].shape))


def call_on_block(
    values: Sequence[Block],
    function: Function,
    shape: tuple[int, ...],
    dtype: np.dtype,
    is_sparse: bool,
    along: int | None,
    num_whole: int,
    region: Region,
) -> Block:
    """Call a function on copies of blocks, or on lanes of one, and return its result as a block.

    Sparse blocks are SciPy's CSR arrays to it. Where the result has no element it is not called.

    Parameters
    ----------
    shape, dtype, is_sparse
        What the result must be; short dtypes become longer ones of the same kind.
    along
        The axis along which it is called on each lane, as ``numpy.apply_along_axis`` does; None for the whole
        block.
    num_whole, region
        How many of the values, the last ones, are whole arrays, and what part of its array the first is of.

    Raises
    ------
    KernelError
        When it raises, naming it and with its own error and trace.
    ShapeError, DTypeError
        When the result is not what it must be.
    """
    if 0 in shape:
        return Empty(shape, dtype) if is_sparse and len(shape) == 2 else Dense(np.zeros(shape, dtype))
    if along is None:
        result = _called_at(function, values, num_whole, region)
    else:
        result = called(
            function, lambda callee: np.apply_along_axis(_on_lanes(callee), along, to_numpy(values[0]))
        )
    where = "" if along is not None else f"the block {_place_text(region)}"
    return _block_of_result(function, result, (shape, dtype, is_sparse), where)


def _block_of_result(
    function: Function, result: object, made: MadeArray, where: str, advice: str = _SHAPE_AND_DTYPE
) -> Block:
    _, dtype, is_sparse = made
    if sp.issparse(result):
        matrix: sp.csr_array = result.tocsr()  # type: ignore[attr-defined]  # sparse here
        _check_result(function, matrix.shape, matrix.dtype, made, where, advice)
        block = csr_block(matrix.astype(dtype, copy=False))
        return block if is_sparse else Dense(to_numpy(block))
    on = f"{function.name} on {where}" if where else function.name
    value = results_of((result,), on)[0]  # a list is one array here
    _check_result(function, value.shape, value.dtype, made, where, advice)
    found = cast(value, dtype)
    return csr_block(sp.csr_array(found)) if is_sparse else Dense(found)


def call_on_slab(
    values: Sequence[Block],
    function: Function,
    outputs: Sequence[Output],
    num_whole: int,
    region: Region,
) -> Dense:
    """Call a function on copies of blocks, and return its results packed in a block of bytes.

    Parameters and errors are those of :func:`call_on_block` and :func:`call`.
    """
    result = _called_at(function, values, num_whole, region)
    return pack_results(function, result, outputs, f"the rows {region[0][0]}:{region[0][1]}")


def combine_results(
    values: Sequence[Dense], function: Function, outputs: Sequence[Output], is_tuple: bool
) -> Dense:
    """Call a function on the packed results of earlier and of later rows, and return its results packed.

    Parameters
    ----------
    is_tuple
        Whether results are given, and expected, in a tuple.

    Raises
    ------
    KernelError
        When it raises, naming it and with its own error and trace.
    ShapeError, DTypeError
        When a result is not what it must be.
    """
    sides = [tuple(part.copy()[()] for part in unpacked(one.values, outputs)) for one in values]
    given = sides if is_tuple else [side[0] for side in sides]
    return pack_results(function, called(function, lambda callee: callee(*given)), outputs, "two results")


def _called_at(function: Function, values: Sequence[Block], num_whole: int, region: Region) -> object:
    # On copies of blocks, on whole arrays as they lie, and where the function asks for it on its place.
    num_cut = len(values) - num_whole
    arguments = [_argument(one, is_own=number < num_cut) for number, one in enumerate(values)]
    options = {"place": tuple(slice(*part) for part in region)} if function.takes_place else {}
    return called(function, lambda callee: callee(*arguments, **options))


def _argument(block: Block, is_own: bool) -> NumericArray | sp.csr_array:
    if not isinstance(block, Dense):
        return to_scipy(block).copy()
    if is_own:
        return np.array(block.values)
    view = block.values.view()
    view.flags.writeable = False
    return view


def _place_text(region: Region) -> str:
    return f"[{', '.join(f'{start}:{stop}' for start, stop in region)}]"


def _on_lanes(callee: Callee) -> Callable[[NumericArray], object]:
    # Lanes of their own, as they are views of a block that is read-only.
    return lambda lane: callee(np.array(lane))


def _check_result(
    function: Function, shape: tuple[int, ...], dtype: np.dtype, made: MadeArray, where: str, advice: str
) -> None:
    expected, expected_dtype, _ = made
    if shape != expected:
        given, wanted = f"a result of shape {shape}", f"one of shape {expected}"
        raise _broken(ShapeError, function, given, wanted, where, advice)
    if not np.can_cast(dtype, expected_dtype, "same_kind"):
        raise _broken(DTypeError, function, f"a result of dtype {dtype}", f"{expected_dtype}", where, advice)


def _broken(
    kind: type[ShapeError | DTypeError],
    function: Function,
    given: str,
    wanted: str,
    where: str,
    advice: str = _SHAPE_AND_DTYPE,
) -> MatnbError:
    # The error of a function that did not keep what it was recorded with, which names the line it begins on.
    if where:
        text = f"gave {given} for {where} where {wanted} belongs; {advice}"
    else:
        text = f"gave {given}, and {wanted} when it was recorded; give examples of the results with like="
    code = _code_of(_loaded(function))
    begins = None if code is None else (code.co_filename, code.co_firstlineno)
    place = "" if begins is None else f" ({Path(begins[0]).name}, line {begins[1]})"
    error = kind(f"{function.name}{place} {text}")
    error.raised_at = begins
    return error


def called(function: Function, use: Callable[[Callee], object], where: str = "") -> object:
    """Return what some use of a user's function gives, whose errors are reported as its own.

    ``where`` names what it is called on, for messages.
    """
    token, callee = _calling.set(True), None
    try:
        callee = _loaded(function)
        return use(callee)
    except OptionError:  # of a check that an algorithm of ours makes of values
        raise
    except BaseException as error:  # a user's function raises what it likes, SystemExit too
        on = f" on {where}" if where else ""
        advice = f"; {text}" if (text := read_only_advice(error)) else ""
        failed = kernel_error(error, f"{function.name} raised {type(error).__name__}{on}: {error}{advice}")
        failed.raised_at = _line_of(callee, error)
        failed.add_note("".join(traceback.format_exception(error)).rstrip())
        raise failed from None
    finally:
        _calling.reset(token)


def read_only_advice(error: BaseException) -> str:
    """Return what to do where a function wrote into what it was given; empty for other errors."""
    is_so = isinstance(error, ValueError) and "read-only" in str(error)
    return "what it is given is read-only: change a copy, as in x = x.copy()" if is_so else ""


def _line_of(callee: Callee | None, error: BaseException) -> tuple[str, int] | None:
    # Where in the function's file it went wrong, also inside other functions of that file.
    code = _code_of(callee)
    if code is None:
        return None
    frames = [one for one in traceback.extract_tb(error.__traceback__) if one.filename == code.co_filename]
    return (code.co_filename, frames[-1].lineno or 0) if frames else None


def _code_of(callee: Callee | None) -> CodeType | None:
    code = getattr(getattr(callee, "pyfunc", callee), "__code__", None)
    return code if isinstance(code, CodeType) else None


def results_of(result: object, name: str) -> list[NumericArray]:
    """Return what a function gave as arrays: of numbers, or refused.

    Raises
    ------
    DTypeError
        For what holds neither numbers nor booleans.
    """
    given = result if isinstance(result, tuple | list) else (result,)
    values = []
    for one in given:
        try:
            value = np.asarray(one)
        except ValueError:  # lists of unequal lengths
            value = np.asarray(None)
        if value.dtype.kind not in "biufc":
            raise DTypeError(
                f"{name} gave a {type(one).__name__}: it must return an array, a number, or a tuple of them"
            )
        values.append(value.astype(value.dtype.newbyteorder("="), copy=False))
    return values


def unpack(values: Sequence[Dense], outputs: Sequence[Output], place: int) -> Dense:
    """Return one of packed results, sharing their memory."""
    (block,) = values
    (shape, dtype), (start, stop) = outputs[place], _places(tuple(outputs))[place]
    return Dense(block.values[start:stop].view(dtype).reshape(shape))


def unpacked(buffer: NumericArray, outputs: Sequence[Output]) -> list[NumericArray]:
    """Return packed results as arrays that share their memory."""
    return [
        buffer[start:stop].view(dtype).reshape(shape)
        for (shape, dtype), (start, stop) in zip(outputs, _places(tuple(outputs)), strict=True)
    ]


@lru_cache(1 << 10)  # a loop asks for the same ones in each iteration
def _places(outputs: tuple[Output, ...]) -> list[tuple[int, int]]:
    # where each begins and ends, in bytes
    starts = [0, *accumulate(map(_room, outputs))]
    return [
        (start, start + prod(shape) * dtype.itemsize)
        for start, (shape, dtype) in zip(starts, outputs, strict=False)
    ]


# Functions called for the parts of arrays: blocks of several arrays, and values, packed together.

_PARTS_GIVE = "a part gives a block for each array of out= and like=, then values to combine"


def call_on_part(
    values: Sequence[Block],
    function: Function,
    arrays: Sequence[MadeArray],
    outputs: Sequence[Output],
    place: tuple[int, int],
    region: Region,
) -> Dense:
    """Call a function on blocks as they lie, read-only, and return its results packed in a block of bytes.

    Parameters
    ----------
    arrays, outputs
        The blocks and then the values that it must give; short dtypes become longer ones of the same kind.
    place, region
        The number of the part and of all parts, and what part of its array the first block is.

    Raises
    ------
    KernelError
        When it raises, naming the part and with its own error and trace.
    ShapeError, DTypeError
        When the results are not what they must be.
    """
    index, count = place
    where = f"part {index} of {count}, {_place_text(region)}"
    part = SplitPart(index, count, tuple(slice(*one) for one in region))
    options = {"part": part} if function.takes_place else {}
    arguments = [_read_only(one) for one in values]
    result = called(function, lambda callee: callee(*arguments, **options), where)
    found = result if isinstance(result, tuple) else (result,)
    if len(found) != len(arrays) + len(outputs):
        wanted = f"{len(arrays) + len(outputs)}"
        raise _broken(ShapeError, function, f"{len(found)} results", wanted, where, _PARTS_GIVE)
    blocks = [
        _block_of_result(function, one, made, where, _PARTS_GIVE)
        for one, made in zip(found, arrays, strict=False)
    ]
    given = results_of(tuple(found[len(arrays) :]), f"{function.name} on {where}")
    return _packed_part(function, blocks, given, arrays, outputs, where)


def _read_only(block: Block) -> NumericArray | sp.csr_array:
    if isinstance(block, Dense):
        return _argument(block, is_own=False)
    matrix = to_scipy(block)
    for name in ("data", "indices", "indptr"):
        view = getattr(matrix, name).view()
        view.flags.writeable = False
        setattr(matrix, name, view)
    return matrix


def _packed_part(
    function: Function,
    blocks: Sequence[Block],
    given: Sequence[NumericArray],
    arrays: Sequence[MadeArray],
    outputs: Sequence[Output],
    where: str,
) -> Dense:
    counts = [block.nnz for block, (_, _, is_sparse) in zip(blocks, arrays, strict=True) if is_sparse]
    places, starts = _places_in_part(arrays, outputs, counts)
    buffer = np.zeros(packed_bytes(places), np.uint8)
    room = unpacked(buffer, places)
    room[0][...] = counts
    for block, start in zip(blocks, starts, strict=False):
        match block:
            case Dense(values):
                room[start][...] = values
            case Csr():
                room[start][...] = block.pointers
                room[start + 1][...] = block.columns
                room[start + 2][...] = block.entries
    for value, (shape, dtype), out in zip(given, outputs, room[starts[-1] :], strict=True):
        _check_result(function, value.shape, dtype, (shape, dtype, False), where, _PARTS_GIVE)
        if dtype.kind != "b":
            _check_result(function, shape, value.dtype, (shape, dtype, False), where, _PARTS_GIVE)
        out[...] = cast(value, dtype)
    return Dense(buffer)


def _places_in_part(
    arrays: Sequence[MadeArray], outputs: Sequence[Output], counts: Sequence[int]
) -> tuple[list[Output], list[int]]:
    # What is packed: numbers of entries of sparse blocks, blocks, values; and where each block, and the
    # values, begin among these.
    index, left = np.dtype(np.int32), list(counts)
    places: list[Output] = [((len(counts),), np.dtype(np.int64))]
    starts = []
    for shape, dtype, is_sparse in arrays:
        starts.append(len(places))
        if is_sparse:
            nnz = left.pop(0)
            places += [((shape[0] + 1,), index), ((nnz,), index), ((nnz,), dtype)]
        else:
            places.append((shape, dtype))
    return [*places, *outputs], [*starts, len(places)]


def _taken_from_part(
    packed: Dense, arrays: Sequence[MadeArray], outputs: Sequence[Output]
) -> tuple[list[NumericArray], list[int]]:
    num_sparse = sum(is_sparse for _, _, is_sparse in arrays)
    counts = packed.values[: 8 * num_sparse].view(np.int64).tolist()
    places, starts = _places_in_part(arrays, outputs, counts)
    return unpacked(packed.values, places), starts


def array_of_part(
    values: Sequence[Dense], arrays: Sequence[MadeArray], outputs: Sequence[Output], place: int
) -> Block:
    """Return one of the blocks that :func:`call_on_part` has packed, sharing their memory."""
    room, starts = _taken_from_part(values[0], arrays, outputs)
    (shape, dtype, is_sparse), start = arrays[place], starts[place]
    if not is_sparse:
        return Dense(room[start])
    pointers, columns, entries = room[start : start + 3]
    if not len(columns):
        return Empty((shape[0], shape[1]), dtype)
    return Csr((shape[0], shape[1]), pointers, columns, entries, dtype)  # type: ignore[arg-type]  # int32


def value_of_part(
    values: Sequence[Dense], arrays: Sequence[MadeArray], outputs: Sequence[Output], place: int
) -> Dense:
    """Return a copy of one of the values that :func:`call_on_part` has packed."""
    room, starts = _taken_from_part(values[0], arrays, outputs)
    return Dense(room[starts[-1] + place].copy())


def combine_values(values: Sequence[Dense], monoid: str) -> Dense:
    """Return the values of one or two parts, or of neighboring runs of parts, combined by a monoid."""
    found = values[0].values
    for one in values[1:]:
        found = np.asarray(getattr(np, MONOIDS[monoid].ufunc)(found, one.values)).astype(found.dtype)
    return Dense(found)
