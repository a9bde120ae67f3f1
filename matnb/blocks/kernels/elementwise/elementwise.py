"""Ufuncs of NumPy and SciPy, ``where``, ``astype`` and parts of complex numbers, element by element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from inspect import unwrap
from typing import TypeAlias

import numpy as np

from matnb.blocks.formats import Block, Csr, Dense, NumericArray, SparseBlock, cast, to_numpy
from matnb.blocks.kernels.compiled import compiled, given, is_worth_compiling
from matnb.blocks.kernels.elementwise.digamma import digamma
from matnb.blocks.kernels.patterns import (
    as_csr,
    intersection,
    met,
    pattern_of,
    rows_of,
    same_pattern,
    settled,
    union,
    united,
    values_at,
)
from matnb.blocks.semiring import ANNIHILATORS
from matnb.blocks.variates import VARIATES
from matnb.errors import MatnbError, ShapeError, UnsupportedError


@dataclass(frozen=True)
class Link:
    """One function of a chain: what ``elementwise.apply`` takes, and where its operands are.

    Parameters
    ----------
    arguments
        Numbers of its operands: the operands of the chain come first, then the links in their order.
    drops_zeros
        Whether a sparse result stores no entry that is 0.
    """

    name: str
    input_dtypes: tuple[np.dtype, ...]
    dtype: np.dtype
    output: int
    sparse: bool
    arguments: tuple[int, ...]
    drops_zeros: bool = False


def shapes_of_links(
    links: Sequence[Link], operands: Sequence[tuple[int, ...]]
) -> list[tuple[int, ...]] | None:
    """Return the shapes of a chain's operands and of its links; None where they do not broadcast.

    What does not fit is said best by going link by link.
    """
    shapes = list(operands)
    try:
        for link in links:
            read = {shapes[place] for place in link.arguments if shapes[place]}
            shapes.append(np.broadcast_shapes(*read) if len(read) > 1 else next(iter(read), ()))
    except ValueError:
        return None
    return shapes


_WORDS: dict[int, np.dtype] = {
    1: np.dtype(np.uint8),
    4: np.dtype(np.uint32),
    8: np.dtype(np.uint64),
}
# Functions that take about as long as their operands take to read; others several times that.
CHEAP = {
    "add", "subtract", "multiply", "divide", "true_divide", "negative", "absolute", "fabs", "square", "sqrt",
    "maximum", "minimum", "less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "isnan",
    "isfinite", "logical_and", "logical_or", "logical_not", "logical_xor", "bitwise_and", "bitwise_or",
    "bitwise_xor", "invert", "sign", "conjugate", "where", "astype", "real", "imag",
}  # fmt: skip
_FEWEST = 1024  # of fewer elements NumPy chooses as soon


def select_into(
    condition: NumericArray, chosen: NumericArray, other: NumericArray, out: NumericArray
) -> bool:
    """Write ``where(condition, chosen, other)`` into given memory; False where that is left to NumPy.

    NumPy asks with a branch, and which elements of a frontier are chosen is past predicting: of a million it
    takes 4 ms where this takes 0.3.

    Parameters
    ----------
    condition
        Truths.
    chosen, other
        Of out's dtype, and its shape or one element.
    out
        May be the memory of ``chosen`` or ``other``.
    """
    word = _WORDS.get(out.dtype.itemsize)
    sides = (chosen, other)
    if word is None or out.size < _FEWEST or condition.dtype != np.bool_ or condition.shape != out.shape:
        return False
    if not all(one.dtype == out.dtype and (one.shape == out.shape or one.size == 1) for one in sides):
        return False
    if not all(one.flags.c_contiguous for one in (condition, *sides, out)):
        return False
    one, two = (given(side.reshape(-1).view(word)) for side in sides)
    selected = given(condition.reshape(-1).view(np.uint8)), one, two, out.reshape(-1).view(word)
    if not is_worth_compiling(_select, out.size, *selected):
        return False
    _select(*selected)
    return True


@compiled
def _select(condition: NumericArray, chosen: NumericArray, other: NumericArray, out: NumericArray) -> None:
    # A loop each, made of wide instructions, for arrays of as many elements and for those of one. Where out
    # is one of them, the loop says so by reading it: of arrays that may lie in each other it asks with a
    # branch (2**18 words of four bytes, a third of them chosen: 3.6 ms in place, 0.03 so).
    n, place = np.uint64(out.size), out.ctypes.data
    if chosen.size == out.size and chosen.ctypes.data == place:
        if other.size == out.size:
            for i in range(n):
                one, two = out[i], other[i]
                out[i] = one if condition[i] else two
        else:
            two = other[0]
            for i in range(n):
                one = out[i]
                out[i] = one if condition[i] else two
    elif other.size == out.size and other.ctypes.data == place:
        if chosen.size == out.size:
            for i in range(n):
                one, two = chosen[i], out[i]
                out[i] = one if condition[i] else two
        else:
            one = chosen[0]
            for i in range(n):
                two = out[i]
                out[i] = one if condition[i] else two
    elif chosen.size == out.size and other.size == out.size:
        for i in range(n):
            one, two = chosen[i], other[i]  # both read, so that there is no branch
            out[i] = one if condition[i] else two
    elif chosen.size == out.size:
        two = other[0]
        for i in range(n):
            one = chosen[i]
            out[i] = one if condition[i] else two
    elif other.size == out.size:
        one = chosen[0]
        for i in range(n):
            two = other[i]
            out[i] = one if condition[i] else two
    else:
        one, two = chosen[0], other[0]
        for i in range(n):
            out[i] = one if condition[i] else two


_PIECE = 2**15  # elements: a few temporaries of as many stay in a core's cache

Function = Callable[..., NumericArray | tuple[NumericArray, ...]]
_LoopChoice: TypeAlias = tuple[str, tuple[np.dtype, ...], np.dtype, int]  # name, input dtypes, dtype, output
_NAMED: dict[str, Function] = {**VARIATES, "psi": digamma}


def named(name: str) -> Callable[[Function], Function]:
    """Return the decorator that enters an elementwise function that is not a ufunc."""

    def enter(function: Function) -> Function:
        _NAMED[name] = function
        return function

    return enter


def apply(
    name: str,
    operands: Sequence[Block],
    input_dtypes: tuple[np.dtype, ...],
    dtype: np.dtype,
    output: int,
    sparse_result: bool,
) -> Block:
    """Apply an elementwise function to blocks that broadcast by NumPy's rules.

    Parameters
    ----------
    name
        A ufunc without core dimensions by its name in ``numpy`` or ``scipy.special``, or "where", "astype".
    operands
        In the function's order. An absent element of a sparse block is a 0.
    input_dtypes
        What each operand is cast to first: the dtypes of the ufunc's loop.
    dtype
        Of the result.
    output
        Which result of a function that has several.
    sparse_result
        Promises that absent stays absent, and gives a sparse result with the pattern of the sparse operand;
        of several, the entries that all annihilating operands store (see ``ANNIHILATORS``), or else that
        any stores. Stored zeros are kept. Without the promise the result is Dense.

    Returns
    -------
    Block
        With values of its own. A sparse result may share pointers and columns with an operand.
        Peak memory: the result, and every operand whose dtype is not the function's cast to it; a sparse
        operand of a Dense result dense; of two sparse operands what :mod:`merging` says; of other operands
        of a sparse result their values at its entries, a pattern for each two operands, and for a Dense one
        16 bytes an entry.

    Raises
    ------
    UnsupportedError
        For a name that is not elementwise.
    ShapeError
        When the shapes do not broadcast, or a sparse operand of a sparse result would have to be stretched.

    Notes
    -----
    Division by zero, overflow and invalid values give what NumPy gives, in silence: a warning on a worker
    would be seen by nobody, or by everybody who shares the process.
    """
    shape = operands[0].shape if operands else ()
    if any(one.shape != shape for one in operands):
        try:
            shape = np.broadcast_shapes(*(operand.shape for operand in operands))
        except ValueError:
            raise ShapeError(f"{name}: shapes {[one.shape for one in operands]} do not broadcast") from None
    if sparse_result:
        return _apply_sparse(name, operands, input_dtypes, dtype, output, shape)
    arrays = [to_numpy(operand) for operand in operands]
    return Dense(compute(name, arrays, input_dtypes, dtype, output))


def zero_preserving(
    name: str, input_dtypes: tuple[np.dtype, ...], scalars: Sequence[np.generic | None]
) -> bool:
    """Tell whether a function gives exactly 0 (or -0.0, or False) at 0, so that absent elements stay absent.

    Parameters
    ----------
    name, input_dtypes
        As of :func:`apply`. Of a function with several outputs all must be 0.
    scalars
        For each operand its only value, or None for an array, which is probed at 0.
    """
    arrays = [
        np.zeros(1, dtype) if scalar is None else cast(np.asarray(scalar).reshape(1), dtype)
        for scalar, dtype in zip(scalars, input_dtypes, strict=True)
    ]
    try:
        with np.errstate(all="ignore"):
            found = function_named(name)(*arrays)
    except (ArithmeticError, TypeError, ValueError, MatnbError):
        return False  # it will be refused, or fail, where it is computed
    outputs = found if isinstance(found, tuple) else (found,)
    return all(bool(np.all(one == 0)) for one in outputs)


@named("astype")
def _astype(values: NumericArray) -> NumericArray:
    return values


@named("where")
def _where(condition: NumericArray, chosen: NumericArray, other: NumericArray) -> NumericArray:
    if chosen.dtype == other.dtype and condition.ndim >= max(chosen.ndim, other.ndim):
        out = np.empty(condition.shape, chosen.dtype)
        if select_into(condition, chosen, other, out):
            return out
    return np.where(condition, chosen, other)


@named("real")
def _real(values: NumericArray) -> NumericArray:
    return np.array(values.real, order="C")  # of its own: the part is a view of every other number


@named("imag")
def _imag(values: NumericArray) -> NumericArray:
    return np.array(values.imag, order="C")


@named("complex_of")
def _complex_of(real: NumericArray, imag: NumericArray) -> NumericArray:
    # Not real + 1j * imag, which would give other signs of zero, and NaN beside an infinity.
    out = np.empty(np.broadcast_shapes(real.shape, imag.shape), np.result_type(real.dtype, np.complex64))
    out.real, out.imag = real, imag
    return out


@named("i0")
def _i0(values: NumericArray) -> NumericArray:
    # In pieces: NumPy makes five temporaries of as many elements.
    flat = values.reshape(-1)
    out = np.empty(flat.size, np.i0(flat[:0]).dtype)  # type: ignore[arg-type]  # real numbers, as recorded
    for begin in range(0, flat.size, _PIECE):
        some = slice(begin, begin + _PIECE)
        out[some] = np.i0(flat[some])  # type: ignore[arg-type]  # see above
    return out.reshape(values.shape)


def function_named(name: str) -> Function:
    """Return an elementwise function; an UnsupportedError if there is none of the name."""
    if name in _NAMED:
        return _NAMED[name]
    ufunc = ufunc_named(name)
    if ufunc is None:
        raise UnsupportedError(
            f"no elementwise function {name!r}; known: {', '.join(_NAMED)} and the ufuncs of NumPy and "
            "scipy.special"
        )
    return ufunc


def ufunc_named(name: str) -> np.ufunc | None:
    """Return the ufunc of a name, without core dimensions: NumPy's, or else that of ``scipy.special``."""
    ufunc = getattr(np, name, None)
    if ufunc is None:
        from scipy import special  # a sixth of a second of every import else

        # With SCIPY_ARRAY_API it is a function around it; None stays None.
        ufunc = unwrap(getattr(special, name, None))  # type: ignore[arg-type]
    return ufunc if isinstance(ufunc, np.ufunc) and ufunc.signature is None else None


def compute(
    name: str,
    arrays: Sequence[NumericArray],
    input_dtypes: tuple[np.dtype, ...],
    dtype: np.dtype,
    output: int,
) -> NumericArray:
    """Return what :func:`apply` computes, of arrays."""
    with np.errstate(all="ignore"):
        found = function_named(name)(
            *(cast(array, one) for array, one in zip(arrays, input_dtypes, strict=True))
        )
    chosen = np.asarray(found[output] if isinstance(found, tuple) else found)
    return cast(chosen, dtype, copy=name == "astype")  # every other function makes a new array


def _apply_sparse(
    name: str,
    operands: Sequence[Block],
    input_dtypes: tuple[np.dtype, ...],
    dtype: np.dtype,
    output: int,
    shape: tuple[int, ...],
) -> Block:
    sparse = [as_csr(operand) for operand in operands if not isinstance(operand, Dense)]
    if not sparse or any(one.shape != shape for one in sparse):
        raise ShapeError(
            f"{name}: no sparse result of shape {shape} from shapes {[one.shape for one in operands]}: "
            "a sparse operand must have that shape"
        )
    meet = [
        as_csr(operand)
        for place, operand in enumerate(operands)
        if not isinstance(operand, Dense) and place in ANNIHILATORS.get(name, ())
    ]
    alike = all(same_pattern(sparse[0], one) for one in sparse[1:])
    function = (name, input_dtypes, dtype, output)
    value = None
    if alike or len(meet) == len(sparse):  # so that every operand stores every entry of the result
        value = _single_value(function, operands)
    if len(sparse) == 2 and not alike and len(meet) != 1 and value is None:
        merged = _merged(function, operands, (sparse[0], sparse[1]), both=bool(meet))
        if merged is not None:
            return settled(merged)
    common = sparse[0] if alike else reduce(intersection, meet) if meet else reduce(union, sparse)
    pattern = pattern_of(common, dtype)
    if value is not None:
        values = None if value == dtype.type(1) else np.full(pattern.nnz, value, dtype)
        return settled(Csr(pattern.shape, pattern.pointers, pattern.columns, values, dtype))
    arrays = [
        _dense_at(pattern, operand) if isinstance(operand, Dense) else _sparse_at(pattern, operand)
        for operand in operands
    ]
    computed = compute(name, arrays, input_dtypes, dtype, output)
    return settled(Csr(pattern.shape, pattern.pointers, pattern.columns, computed, dtype))


def _merged(
    function: _LoopChoice, operands: Sequence[Block], sparse: tuple[Csr, Csr], both: bool
) -> Csr | None:
    # Values meet tile by tile, in cache. None where a Dense operand is not a scalar.
    name, input_dtypes, dtype, output = function
    if any(isinstance(operand, Dense) and operand.values.size > 1 for operand in operands):
        return None
    scalars = [operand.values.reshape(-1) if isinstance(operand, Dense) else None for operand in operands]
    places = [place for place, scalar in enumerate(scalars) if scalar is None]

    def combine(one: NumericArray, other: NumericArray, out: NumericArray) -> None:
        sides = iter((one, other))
        arrays = [next(sides) if scalar is None else scalar for scalar in scalars]
        out[:] = compute(name, arrays, input_dtypes, dtype, output)

    values = (
        _loop_values(sparse[0], input_dtypes[places[0]]),
        _loop_values(sparse[1], input_dtypes[places[1]]),
    )
    if both:
        return met(sparse, values, dtype, combine)
    absent = (values[0].dtype.type(0), values[1].dtype.type(0))
    return united(sparse, values, absent, dtype, combine)


def _loop_values(block: Csr, dtype: np.dtype) -> NumericArray:
    return np.ones(1, dtype) if block.values is None else cast(block.values, dtype)


def _sparse_at(pattern: Csr, block: SparseBlock) -> NumericArray:
    csr = as_csr(block)
    if csr.values is None and same_pattern(pattern, csr):
        return np.ones(1, block.dtype)
    return values_at(pattern, csr)


def _dense_at(pattern: Csr, block: Dense) -> NumericArray:
    if block.values.size == 1:
        return block.values.reshape(1)
    return np.broadcast_to(block.values, pattern.shape)[rows_of(pattern), pattern.columns]


def _single_value(function: _LoopChoice, operands: Sequence[Block]) -> np.generic | None:
    # What every entry of the result is when all that meets there are ones of patterns and scalars.
    name, input_dtypes, dtype, output = function
    arrays = []
    for operand in operands:
        if isinstance(operand, Dense) and operand.values.size == 1:
            arrays.append(operand.values.reshape(1))
        elif isinstance(operand, Csr) and operand.values is None:
            arrays.append(np.ones(1, operand.dtype))
        else:
            return None
    value: np.generic = compute(name, arrays, input_dtypes, dtype, output)[0]
    return value
