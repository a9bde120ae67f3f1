"""A user's function on arrays or blocks: what names it, how it is called, and results packed as bytes."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from math import prod
from types import CodeType
from typing import Protocol

import numpy as np
import scipy.sparse as sp

from matnb.blocks.formats import Block, Dense, Empty, NumericArray, cast, csr_block, to_numpy, to_scipy
from matnb.errors import DTypeError, OptionError, ShapeError, kernel_error

_calling: ContextVar[bool] = ContextVar("matnb_calling", default=False)
Output = tuple[tuple[int, ...], np.dtype]  # shape and dtype of one result
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
        The function, by value where its module is not one that workers import.
    code
        What it does, which names it; ``pickled`` also says in which file and line it was written.
    """

    name: str
    pickled: bytes
    code: bytes

    @property
    def digest(self) -> bytes:
        """Sixteen bytes that name it by what it does."""
        parts = (self.name.encode(), self.code)
        return blake2b(b"".join(b"%d:" % len(part) + part for part in parts), digest_size=16).digest()


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
    values = results_of(result, function.name)
    if len(values) != len(outputs):
        raise ShapeError(_changed(function, f"{len(values)} results", f"{len(outputs)}"))
    buffer = np.zeros(packed_bytes(outputs), np.uint8)
    for value, part in zip(values, unpacked(buffer, outputs), strict=True):
        if value.shape != part.shape:
            raise ShapeError(_changed(function, f"a result of shape {value.shape}", f"{part.shape}"))
        if not np.can_cast(value.dtype, part.dtype, "same_kind"):
            raise DTypeError(_changed(function, f"a result of dtype {value.dtype}", f"{part.dtype}"))
        part[...] = cast(value, part.dtype)
    return Dense(buffer)


def call_on_block(
    values: Sequence[Block],
    function: Function,
    shape: tuple[int, ...],
    dtype: np.dtype,
    is_sparse: bool,
    along: int | None,
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
        arguments = [
            np.array(one.values) if isinstance(one, Dense) else to_scipy(one).copy() for one in values
        ]
        result = called(function, lambda callee: callee(*arguments))
    else:
        result = called(
            function, lambda callee: np.apply_along_axis(_on_lanes(callee), along, to_numpy(values[0]))
        )
    if sp.issparse(result):
        matrix: sp.csr_array = result.tocsr()  # type: ignore[attr-defined]  # sparse here
        _check_result(function, matrix.shape, matrix.dtype, shape, dtype)
        block = csr_block(matrix.astype(dtype, copy=False))
        return block if is_sparse else Dense(to_numpy(block))
    value = results_of((result,), function.name)[0]  # a list is one array here
    _check_result(function, value.shape, value.dtype, shape, dtype)
    found = cast(value, dtype)
    return csr_block(sp.csr_array(found)) if is_sparse else Dense(found)


def _on_lanes(callee: Callee) -> Callable[[NumericArray], object]:
    # Lanes of their own, as they are views of a block that is read-only.
    return lambda lane: callee(np.array(lane))


def _check_result(
    function: Function,
    shape: tuple[int, ...],
    dtype: np.dtype,
    expected: tuple[int, ...],
    expected_dtype: np.dtype,
) -> None:
    if shape != expected:
        raise ShapeError(
            f"{function.name} gave a result of shape {shape} for a block where one of shape {expected} "
            "belongs; say with shape= what the whole result has"
        )
    if not np.can_cast(dtype, expected_dtype, "same_kind"):
        raise DTypeError(
            f"{function.name} gave a result of dtype {dtype} where {expected_dtype} belongs; say with dtype= "
            "what the result has"
        )


def called(function: Function, use: Callable[[Callee], object]) -> object:
    """Return what some use of a user's function gives, whose errors are reported as its own."""
    token, callee = _calling.set(True), None
    try:
        callee = _loaded(function)
        return use(callee)
    except OptionError:  # of a check that an algorithm of ours makes of values
        raise
    except BaseException as error:  # a user's function raises what it likes, SystemExit too
        failed = kernel_error(error, f"{function.name} raised {type(error).__name__}: {error}")
        failed.raised_at = _line_of(callee, error)
        failed.add_note("".join(traceback.format_exception(error)).rstrip())
        raise failed from None
    finally:
        _calling.reset(token)


def _line_of(callee: Callee | None, error: BaseException) -> tuple[str, int] | None:
    # Where in the function's file it went wrong, also inside other functions of that file.
    code = getattr(getattr(callee, "pyfunc", callee), "__code__", None)
    if not isinstance(code, CodeType):
        return None
    frames = [one for one in traceback.extract_tb(error.__traceback__) if one.filename == code.co_filename]
    return (code.co_filename, frames[-1].lineno or 0) if frames else None


def _changed(function: Function, given: str, recorded: str) -> str:
    return (
        f"{function.name} gave {given}, and {recorded} when it was recorded; "
        "give examples of the results with like="
    )


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
    return Dense(unpacked(block.values, outputs)[place])


def unpacked(buffer: NumericArray, outputs: Sequence[Output]) -> list[NumericArray]:
    """Return packed results as arrays that share their memory."""
    found, start = [], 0
    for shape, dtype in outputs:
        stop = start + prod(shape) * dtype.itemsize
        found.append(buffer[start:stop].view(dtype).reshape(shape))
        start += _room((shape, dtype))
    return found
