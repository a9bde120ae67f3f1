"""NumPy's elementwise functions that are no ufuncs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from matnb.errors import UnsupportedError
from matnb.lazy import reductions, ufuncs
from matnb.lazy.array import DistArray, expression_of, wrap
from matnb.lazy.expr import Expr
from matnb.lazy.registry import implements
from matnb.lazy.ufuncs import Weak


def _weakly(value: object, meets: Expr) -> Expr:
    # A Python number takes on the dtype of the array it meets, as in an operator.
    if type(value) in (int, float, complex):
        number: Weak = value  # type: ignore[assignment]  # its type was just compared
        return ufuncs.literal(number, np.result_type(meets.dtype, number))
    return expression_of(value)


@implements(np.where)
def where(condition: object, *chosen: object) -> DistArray:
    """``numpy.where`` with three arguments."""
    if len(chosen) != 2:
        raise UnsupportedError(
            "np.where(condition) alone is not recorded; give what to choose: np.where(c, x, y)"
        )
    one, other = chosen
    if type(one) in (int, float, complex) and type(other) in (int, float, complex):
        first, second = expression_of(one), expression_of(other)
    elif type(one) in (int, float, complex):
        second = expression_of(other)
        first = _weakly(one, second)
    else:
        first = expression_of(one)
        second = _weakly(other, first)
    return wrap(reductions.where(expression_of(condition), first, second))


@implements(np.clip)
def clip(a: object, a_min: object = None, a_max: object = None, **rest: object) -> DistArray:
    """``numpy.clip``: the smaller of the greater bound and the larger of element and lesser bound."""
    low, high = rest.pop("min", a_min), rest.pop("max", a_max)
    if any(value is not None for value in rest.values()):
        raise UnsupportedError(f"np.clip({', '.join(rest)}=) is not recorded for DistArray")
    node = expression_of(a)
    if low is not None and low is not np._NoValue:
        (node,) = ufuncs.call(np.maximum, (node, _weakly(low, node)))
    if high is not None and high is not np._NoValue:
        (node,) = ufuncs.call(np.minimum, (node, _weakly(high, node)))
    return wrap(node)


@implements(np.astype)
def astype(x: DistArray, dtype: npt.DTypeLike, /, *, copy: bool = True, device: None = None) -> DistArray:
    """``numpy.astype``."""
    return x.astype(dtype)


@implements(np.real)
def real(val: DistArray) -> DistArray:
    """``numpy.real``: the array itself where it is real."""
    if val.dtype.kind == "c":
        raise UnsupportedError("np.real of a complex DistArray is not recorded; compute first")
    return val
