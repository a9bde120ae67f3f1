"""NumPy's reductions on DistArray."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from matnb.errors import UnsupportedError
from matnb.lazy import reductions
from matnb.lazy.array import DistArray, expression_of, wrap
from matnb.lazy.reductions import Axis
from matnb.lazy.registry import implements

_ABSENT = (None, np._NoValue)  # what NumPy passes for a parameter that was left out


def _check_rest(name: str, rest: dict[str, object]) -> None:
    for option, value in rest.items():
        if not any(value is absent for absent in _ABSENT) and value is not True:
            raise UnsupportedError(f"np.{name}({option}=) is not recorded for DistArray")


def _given(value: object, otherwise: bool = False) -> bool:
    return otherwise if any(value is absent for absent in _ABSENT) else bool(value)


@implements(np.sum)
def total(
    a: object, axis: Axis = None, dtype: npt.DTypeLike | None = None, keepdims: object = None, **rest: object
) -> DistArray:
    """``numpy.sum``."""
    _check_rest("sum", rest)
    return wrap(reductions.reduce(expression_of(a), "sum", axis, _given(keepdims), dtype))


@implements(np.prod)
def product(
    a: object, axis: Axis = None, dtype: npt.DTypeLike | None = None, keepdims: object = None, **rest: object
) -> DistArray:
    """``numpy.prod``."""
    _check_rest("prod", rest)
    return wrap(reductions.reduce(expression_of(a), "prod", axis, _given(keepdims), dtype))


def _register(operation: str, *functions: object) -> None:
    def reduced(a: object, axis: Axis = None, keepdims: object = None, **rest: object) -> DistArray:
        _check_rest(operation, rest)
        return wrap(reductions.reduce(expression_of(a), operation, axis, _given(keepdims)))

    implements(*functions)(reduced)  # type: ignore[arg-type]  # NumPy's functions are callables


_register("min", np.min, np.amin)
_register("max", np.max, np.amax)
_register("any", np.any)
_register("all", np.all)


@implements(np.mean)
def mean(
    a: object, axis: Axis = None, dtype: npt.DTypeLike | None = None, keepdims: object = None, **rest: object
) -> DistArray:
    """``numpy.mean``."""
    _check_rest("mean", rest)
    return wrap(reductions.mean(expression_of(a), axis, _given(keepdims), dtype))


@implements(np.var)
def var(
    a: object,
    axis: Axis = None,
    dtype: npt.DTypeLike | None = None,
    ddof: float = 0,
    keepdims: object = None,
    **rest: object,
) -> DistArray:
    """``numpy.var``."""
    _check_rest("var", rest)
    return wrap(reductions.var(expression_of(a), axis, _given(keepdims), ddof, dtype))


@implements(np.std)
def std(
    a: object,
    axis: Axis = None,
    dtype: npt.DTypeLike | None = None,
    ddof: float = 0,
    keepdims: object = None,
    **rest: object,
) -> DistArray:
    """``numpy.std``."""
    _check_rest("std", rest)
    return wrap(reductions.std(expression_of(a), axis, _given(keepdims), ddof, dtype))


@implements(np.count_nonzero)
def count_nonzero(a: object, axis: Axis = None, keepdims: bool = False) -> DistArray:
    """``numpy.count_nonzero``."""
    return wrap(reductions.count_nonzero(expression_of(a), axis, keepdims))
