"""A handle's operators, by a shorter way than NumPy's where operands are the usual ones; its reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from numpy.lib.mixins import NDArrayOperatorsMixin

from matnb.expr.nodes import Expr
from matnb.lazy import reductions
from matnb.lazy.reductions import Axis
from matnb.lazy.registry import recorded
from matnb.lazy.ufuncs import WEAK, call

if TYPE_CHECKING:
    from matnb.lazy.array import DistArray

Operator = Callable[..., Any]


class Recorder(Protocol):
    """What operators need of a handle."""

    _expression: Expr

    def _recorded(self, node: Expr) -> DistArray:
        """Note what an operator gives, and return a handle on it."""

    def _changed_to(self, node: Expr) -> DistArray:
        """Return what an operator in place leaves: this handle with a new version, or another handle."""


def _named(name: str, operator: Operator) -> Operator:
    operator.__name__, operator.__qualname__ = name, f"Operators.{name}"
    return operator


def _usual(name: str) -> Callable[[Recorder, object], object]:
    # NumPy's way to the handle, by the ufunc.
    usual: Callable[[Recorder, object], object] = getattr(NDArrayOperatorsMixin, name)
    if name not in ("__mul__", "__rmul__", "__imul__"):
        return usual

    def operator(self: Recorder, other: Any) -> object:
        # SciPy's matrices (not its arrays) and NumPy's mean the matrix product by `*`, from either side.
        if isinstance(other, sp.spmatrix | np.matrix) and self._expression.ndim:
            return getattr(self, name.replace("mul", "matmul"))(other)
        return usual(self, other)

    return operator


def _forward(ufunc: np.ufunc, name: str) -> Operator:
    usual = _usual(name)

    def operator(self: Recorder, other: Any) -> object:
        if type(other) is type(self):
            return self._recorded(call(ufunc, (self._expression, other._expression))[0])
        if type(other) in WEAK:
            return self._recorded(call(ufunc, (self._expression, other))[0])
        return usual(self, other)

    return _named(name, operator)


def _reflected(ufunc: np.ufunc, name: str) -> Operator:
    usual = _usual(name)

    def operator(self: Recorder, other: Any) -> object:
        if type(other) in WEAK:
            return self._recorded(call(ufunc, (other, self._expression))[0])
        return usual(self, other)

    return _named(name, operator)


def _in_place(ufunc: np.ufunc, name: str) -> Operator:
    usual = _usual(name)

    def operator(self: Recorder, other: Any) -> object:
        if type(other) is type(self):
            return self._changed_to(call(ufunc, (self._expression, other._expression))[0])
        if type(other) in WEAK:
            return self._changed_to(call(ufunc, (self._expression, other))[0])
        return usual(self, other)

    return _named(name, operator)


def _unary(ufunc: np.ufunc, name: str) -> Operator:
    def operator(self: Recorder) -> object:
        return self._recorded(call(ufunc, (self._expression,))[0])

    return _named(name, operator)


def _power() -> Operator:
    # NumPy's operator squares where the exponent is 2. Booleans tell it from a power: int8, not int64.
    usual = _forward(np.power, "__pow__")

    def operator(self: Recorder, other: Any) -> object:
        if type(other) is int and other == 2 and self._expression.dtype.kind == "b":
            return self._recorded(call(np.square, (self._expression,))[0])
        return usual(self, other)

    return _named("__pow__", operator)


class Operators(NDArrayOperatorsMixin):
    """The operators and reductions of handles.

    NumPy's mixin calls the ufunc, which finds its way back to the handle. Between handles, and with Python
    numbers, the operators go there at once; anything else takes NumPy's way.
    """

    __slots__ = ()

    # operators

    __add__ = _forward(np.add, "__add__")
    __radd__ = _reflected(np.add, "__radd__")
    __iadd__ = _in_place(np.add, "__iadd__")
    __sub__ = _forward(np.subtract, "__sub__")
    __rsub__ = _reflected(np.subtract, "__rsub__")
    __isub__ = _in_place(np.subtract, "__isub__")
    __mul__ = _forward(np.multiply, "__mul__")
    __rmul__ = _reflected(np.multiply, "__rmul__")
    __imul__ = _in_place(np.multiply, "__imul__")
    __truediv__ = _forward(np.true_divide, "__truediv__")
    __rtruediv__ = _reflected(np.true_divide, "__rtruediv__")
    __itruediv__ = _in_place(np.true_divide, "__itruediv__")
    __floordiv__ = _forward(np.floor_divide, "__floordiv__")
    __rfloordiv__ = _reflected(np.floor_divide, "__rfloordiv__")
    __ifloordiv__ = _in_place(np.floor_divide, "__ifloordiv__")
    __mod__ = _forward(np.remainder, "__mod__")
    __rmod__ = _reflected(np.remainder, "__rmod__")
    __imod__ = _in_place(np.remainder, "__imod__")
    __pow__ = _power()
    __rpow__ = _reflected(np.power, "__rpow__")
    __ipow__ = _in_place(np.power, "__ipow__")
    __matmul__ = _forward(np.matmul, "__matmul__")
    __rmatmul__ = _reflected(np.matmul, "__rmatmul__")
    __imatmul__ = _in_place(np.matmul, "__imatmul__")
    __and__ = _forward(np.bitwise_and, "__and__")
    __rand__ = _reflected(np.bitwise_and, "__rand__")
    __iand__ = _in_place(np.bitwise_and, "__iand__")
    __or__ = _forward(np.bitwise_or, "__or__")
    __ror__ = _reflected(np.bitwise_or, "__ror__")
    __ior__ = _in_place(np.bitwise_or, "__ior__")
    __xor__ = _forward(np.bitwise_xor, "__xor__")
    __rxor__ = _reflected(np.bitwise_xor, "__rxor__")
    __ixor__ = _in_place(np.bitwise_xor, "__ixor__")
    __lt__ = _forward(np.less, "__lt__")
    __le__ = _forward(np.less_equal, "__le__")
    __gt__ = _forward(np.greater, "__gt__")
    __ge__ = _forward(np.greater_equal, "__ge__")
    __eq__ = _forward(np.equal, "__eq__")
    __ne__ = _forward(np.not_equal, "__ne__")
    __neg__ = _unary(np.negative, "__neg__")
    __pos__ = _unary(np.positive, "__pos__")
    __abs__ = _unary(np.absolute, "__abs__")
    __invert__ = _unary(np.invert, "__invert__")

    # reductions: each with NumPy's parameters; the usual ones take the shorter way

    def sum(
        self: Recorder,
        axis: Axis = None,
        dtype: npt.DTypeLike | None = None,
        out: DistArray | None = None,
        keepdims: bool = False,
        initial: object = None,
        where: object = True,
    ) -> DistArray:
        """Return the sum over axes."""
        if out is None and initial is None and where is True:
            return self._recorded(reductions.reduce(self._expression, "sum", axis, keepdims, dtype))
        return recorded(np.sum)(self, axis, dtype, out, keepdims, initial, where)

    def prod(
        self: Recorder,
        axis: Axis = None,
        dtype: npt.DTypeLike | None = None,
        out: DistArray | None = None,
        keepdims: bool = False,
        initial: object = None,
        where: object = True,
    ) -> DistArray:
        """Return the product over axes."""
        if out is None and initial is None and where is True:
            return self._recorded(reductions.reduce(self._expression, "prod", axis, keepdims, dtype))
        return recorded(np.prod)(self, axis, dtype, out, keepdims, initial, where)

    def min(
        self: Recorder,
        axis: Axis = None,
        out: DistArray | None = None,
        keepdims: bool = False,
        initial: object = None,
        where: object = True,
    ) -> DistArray:
        """Return the smallest element over axes; NaN where there is one."""
        if out is None and initial is None and where is True:
            return self._recorded(reductions.reduce(self._expression, "min", axis, keepdims))
        return recorded(np.min)(self, axis, out, keepdims, initial, where)

    def max(
        self: Recorder,
        axis: Axis = None,
        out: DistArray | None = None,
        keepdims: bool = False,
        initial: object = None,
        where: object = True,
    ) -> DistArray:
        """Return the largest element over axes; NaN where there is one."""
        if out is None and initial is None and where is True:
            return self._recorded(reductions.reduce(self._expression, "max", axis, keepdims))
        return recorded(np.max)(self, axis, out, keepdims, initial, where)

    def any(
        self: Recorder,
        axis: Axis = None,
        out: DistArray | None = None,
        keepdims: bool = False,
        *,
        where: object = True,
    ) -> DistArray:
        """Tell whether any element over axes is not zero."""
        if out is None and where is True:
            return self._recorded(reductions.reduce(self._expression, "any", axis, keepdims))
        return recorded(np.any)(self, axis, out, keepdims, where=where)

    def all(
        self: Recorder,
        axis: Axis = None,
        out: DistArray | None = None,
        keepdims: bool = False,
        *,
        where: object = True,
    ) -> DistArray:
        """Tell whether every element over axes is not zero."""
        if out is None and where is True:
            return self._recorded(reductions.reduce(self._expression, "all", axis, keepdims))
        return recorded(np.all)(self, axis, out, keepdims, where=where)

    def mean(
        self: Recorder,
        axis: Axis = None,
        dtype: npt.DTypeLike | None = None,
        out: DistArray | None = None,
        keepdims: bool = False,
        *,
        where: object = True,
    ) -> DistArray:
        """Return the arithmetic mean over axes, absent zeros included."""
        if out is None and where is True:
            return self._recorded(reductions.mean(self._expression, axis, keepdims, dtype))
        return recorded(np.mean)(self, axis, dtype, out, keepdims, where=where)

    def var(
        self: Recorder,
        axis: Axis = None,
        dtype: npt.DTypeLike | None = None,
        out: DistArray | None = None,
        ddof: float = 0,
        keepdims: bool = False,
        *,
        where: object = True,
        mean: object = None,
        correction: float | None = None,
    ) -> DistArray:
        """Return the variance over axes, with ``number - ddof`` in the denominator."""
        if out is None and where is True and mean is None and correction is None:
            return self._recorded(reductions.var(self._expression, axis, keepdims, ddof, dtype))
        options = {"where": where, "mean": mean, "correction": correction}
        return recorded(np.var)(self, axis, dtype, out, ddof, keepdims, **options)

    def std(
        self: Recorder,
        axis: Axis = None,
        dtype: npt.DTypeLike | None = None,
        out: DistArray | None = None,
        ddof: float = 0,
        keepdims: bool = False,
        *,
        where: object = True,
        mean: object = None,
        correction: float | None = None,
    ) -> DistArray:
        """Return the standard deviation over axes: the root of the variance."""
        if out is None and where is True and mean is None and correction is None:
            return self._recorded(reductions.std(self._expression, axis, keepdims, ddof, dtype))
        options = {"where": where, "mean": mean, "correction": correction}
        return recorded(np.std)(self, axis, dtype, out, ddof, keepdims, **options)
