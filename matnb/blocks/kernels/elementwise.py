"""NumPy's ufuncs, ``where`` and ``astype`` on blocks, element by element."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from types import MappingProxyType

import numpy as np

from matnb.blocks.formats import Block, Csr, Dense, NumericArray, to_numpy
from matnb.blocks.kernels.casting import cast
from matnb.blocks.kernels.patterns import as_csr, intersection, pattern_of, rows_of, settled, union, values_at
from matnb.errors import MatnbError, ShapeError, UnsupportedError

_BOTH, _FIRST = frozenset({0, 1}), frozenset({0})

# Operands whose absent elements make the result absent whatever they meet, infinities and NaN included.
ANNIHILATORS: Mapping[str, frozenset[int]] = MappingProxyType(
    {
        "multiply": _BOTH,
        "logical_and": _BOTH,
        "bitwise_and": _BOTH,
        "divide": _FIRST,
        "true_divide": _FIRST,
        "floor_divide": _FIRST,
        "remainder": _FIRST,
        "fmod": _FIRST,
        "left_shift": _FIRST,
        "right_shift": _FIRST,
    }
)

Function = Callable[..., NumericArray | tuple[NumericArray, ...]]
_NAMED: dict[str, Function] = {}


def named(name: str) -> Callable[[Function], Function]:
    """Return the decorator that enters an elementwise function that is no ufunc."""

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
        A ufunc without core dimensions by its name in ``numpy``, or "where", "astype".
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
    try:
        shape = np.broadcast_shapes(*(operand.shape for operand in operands))
    except ValueError:
        raise ShapeError(f"{name}: shapes {[one.shape for one in operands]} do not broadcast") from None
    if sparse_result:
        return _apply_sparse(name, operands, input_dtypes, dtype, output, shape)
    arrays = [to_numpy(operand) for operand in operands]
    return Dense(_compute(name, arrays, input_dtypes, dtype, output))


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
            found = _function(name)(*arrays)
    except (ArithmeticError, TypeError, ValueError, MatnbError):
        return False  # it will be refused, or fail, where it is computed
    outputs = found if isinstance(found, tuple) else (found,)
    return all(bool(np.all(one == 0)) for one in outputs)


@named("astype")
def _astype(values: NumericArray) -> NumericArray:
    return values


@named("where")
def _where(condition: NumericArray, chosen: NumericArray, other: NumericArray) -> NumericArray:
    return np.where(condition, chosen, other)


def _function(name: str) -> Function:
    if name in _NAMED:
        return _NAMED[name]
    ufunc = getattr(np, name, None)
    if not isinstance(ufunc, np.ufunc) or ufunc.signature is not None:
        raise UnsupportedError(
            f"no elementwise function {name!r}; known: {', '.join(_NAMED)} and the ufuncs of NumPy"
        )
    return ufunc


def _compute(
    name: str,
    arrays: Sequence[NumericArray],
    input_dtypes: tuple[np.dtype, ...],
    dtype: np.dtype,
    output: int,
) -> NumericArray:
    with np.errstate(all="ignore"):
        found = _function(name)(*(cast(array, one) for array, one in zip(arrays, input_dtypes, strict=True)))
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
    sparse = [operand for operand in operands if not isinstance(operand, Dense)]
    if not sparse or any(one.shape != shape for one in sparse):
        raise ShapeError(
            f"{name}: no sparse result of shape {shape} from shapes {[one.shape for one in operands]}: "
            "a sparse operand must have that shape"
        )
    meet = [
        operand
        for place, operand in enumerate(operands)
        if not isinstance(operand, Dense) and place in ANNIHILATORS.get(name, ())
    ]
    common = reduce(intersection, map(as_csr, meet)) if meet else reduce(union, map(as_csr, sparse))
    pattern = pattern_of(common, dtype)
    if len(sparse) in (1, len(meet)):  # so that every operand stores every entry of the pattern
        value = _single_value(name, operands, input_dtypes, dtype, output)
        if value is not None:
            values = None if value == dtype.type(1) else np.full(pattern.nnz, value, dtype)
            return settled(Csr(pattern.shape, pattern.pointers, pattern.columns, values, dtype))
    arrays = [
        _dense_at(pattern, operand) if isinstance(operand, Dense) else values_at(pattern, operand)
        for operand in operands
    ]
    computed = _compute(name, arrays, input_dtypes, dtype, output)
    return settled(Csr(pattern.shape, pattern.pointers, pattern.columns, computed, dtype))


def _dense_at(pattern: Csr, block: Dense) -> NumericArray:
    if block.values.size == 1:
        return block.values.reshape(1)
    return np.broadcast_to(block.values, pattern.shape)[rows_of(pattern), pattern.columns]


def _single_value(
    name: str,
    operands: Sequence[Block],
    input_dtypes: tuple[np.dtype, ...],
    dtype: np.dtype,
    output: int,
) -> np.generic | None:
    # What every entry of the result is when all that meets there are ones of patterns and scalars.
    arrays = []
    for operand in operands:
        if isinstance(operand, Dense) and operand.values.size == 1:
            arrays.append(operand.values.reshape(1))
        elif isinstance(operand, Csr) and operand.values is None:
            arrays.append(np.ones(1, operand.dtype))
        else:
            return None
    value: np.generic = _compute(name, arrays, input_dtypes, dtype, output)[0]
    return value
