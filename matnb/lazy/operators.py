"""A handle's operators, by a shorter way than NumPy's where operands are the usual ones; its reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from numpy.lib.mixins import NDArrayOperatorsMixin

from matnb.expr.nodes import Expr
from matnb.lazy import reductions
from matnb.lazy.reductions import Axis
from matnb.lazy.registry import recorded
from matnb.lazy.ufuncs import WEAK, call

_BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.true_divide,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "pow": np.power,
    "matmul": np.matmul,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
_COMPARISONS = {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}
_UNARY = {"neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert}


class Operators(NDArrayOperatorsMixin):
    """The operators and reductions of handles.

    NumPy's mixin calls the ufunc, which finds its way back to the handle. Between handles, and with Python
    numbers, the operators go there at once; anything else takes NumPy's way.
    """

    __slots__ = ()

    _expression: Expr

    def _recorded(self, node: Expr) -> Self:
        # Notes what an operator gives, and returns a handle on it.
        raise NotImplementedError

    def _changed_to(self, node: Expr) -> Self:
        # What an operator in place leaves: this handle with a new version, or another handle.
        raise NotImplementedError

    # reductions: each with NumPy's parameters; the usual ones take the shorter way

    def sum(
        self,
        axis: Axis = None,
        dtype: npt.DTypeLike | None = None,
        out: Self | None = None,
        keepdims: bool = False,
        initial: object = None,
        where: object = True,
    ) -> Self:
        """Return the sum over axes."""
        if out is None and initial is None and where is True:
            return self._recorded(reductions.reduce(self._expression, "sum", axis, keepdims, dtype))
        return recorded(np.sum)(self, axis, dtype, out, keepdims, initial, where)  # type: ignore[return-value]  # a handle

    def prod(
        self,
        axis: Axis = None,
        dtype: npt.DTypeLike | None = None,
        out: Self | None = None,
        keepdims: bool = False,
        initial: object = None,
        where: object = True,
    ) -> Self:
        """Return the product over axes."""
        if out is None and initial is None and where is True:
            return self._recorded(reductions.reduce(self._expression, "prod", axis, keepdims, dtype))
        return recorded(np.prod)(self, axis, dtype, out, keepdims, initial, where)  # type: ignore[return-value]  # a handle

    def min(
        self,
        axis: Axis = None,
        out: Self | None = None,
        keepdims: bool = False,
        initial: object = None,
        where: object = True,
    ) -> Self:
        """Return the smallest element over axes; NaN where there is one."""
        if out is None and initial is None and where is True:
            return self._recorded(reductions.reduce(self._expression, "min", axis, keepdims))
        return recorded(np.min)(self, axis, out, keepdims, initial, where)  # type: ignore[return-value]  # a handle

    def max(
        self,
        axis: Axis = None,
        out: Self | None = None,
        keepdims: bool = False,
        initial: object = None,
        where: object = True,
    ) -> Self:
        """Return the largest element over axes; NaN where there is one."""
        if out is None and initial is None and where is True:
            return self._recorded(reductions.reduce(self._expression, "max", axis, keepdims))
        return recorded(np.max)(self, axis, out, keepdims, initial, where)  # type: ignore[return-value]  # a handle

    def any(
        self, axis: Axis = None, out: Self | None = None, keepdims: bool = False, *, where: object = True
    ) -> Self:
        """Tell whether any element over axes is not zero."""
        if out is None and where is True:
            return self._recorded(reductions.reduce(self._expression, "any", axis, keepdims))
        return recorded(np.any)(self, axis, out, keepdims, where=where)  # type: ignore[return-value]  # a handle

    def all(
        self, axis: Axis = None, out: Self | None = None, keepdims: bool = False, *, where: object = True
    ) -> Self:
        """Tell whether every element over axes is not zero."""
        if out is None and where is True:
            return self._recorded(reductions.reduce(self._expression, "all", axis, keepdims))
        return recorded(np.all)(self, axis, out, keepdims, where=where)  # type: ignore[return-value]  # a handle

    def mean(
        self,
        axis: Axis = None,
        dtype: npt.DTypeLike | None = None,
        out: Self | None = None,
        keepdims: bool = False,
        *,
        where: object = True,
    ) -> Self:
        """Return the arithmetic mean over axes, absent zeros included."""
        if out is None and where is True:
            return self._recorded(reductions.mean(self._expression, axis, keepdims, dtype))
        return recorded(np.mean)(self, axis, dtype, out, keepdims, where=where)  # type: ignore[return-value]  # a handle

    def var(
        self,
        axis: Axis = None,
        dtype: npt.DTypeLike | None = None,
        out: Self | None = None,
        ddof: float = 0,
        keepdims: bool = False,
        *,
        where: object = True,
        mean: object = None,
        correction: float | None = None,
    ) -> Self:
        """Return the variance over axes, with ``number - ddof`` in the denominator."""
        if out is None and where is True and mean is None and correction is None:
            return self._recorded(reductions.var(self._expression, axis, keepdims, ddof, dtype))
        options = {"where": where, "mean": mean, "correction": correction}
        return recorded(np.var)(self, axis, dtype, out, ddof, keepdims, **options)  # type: ignore[return-value]  # a handle

    def std(
        self,
        axis: Axis = None,
        dtype: npt.DTypeLike | None = None,
        out: Self | None = None,
        ddof: float = 0,
        keepdims: bool = False,
        *,
        where: object = True,
        mean: object = None,
        correction: float | None = None,
    ) -> Self:
        """Return the standard deviation over axes: the root of the variance."""
        if out is None and where is True and mean is None and correction is None:
            return self._recorded(reductions.std(self._expression, axis, keepdims, ddof, dtype))
        options = {"where": where, "mean": mean, "correction": correction}
        return recorded(np.std)(self, axis, dtype, out, ddof, keepdims, **options)  # type: ignore[return-value]  # a handle


def _binary(ufunc: np.ufunc, usual: Callable[[Operators, object], object]) -> Callable[..., object]:
    def operator(self: Operators, other: object) -> object:
        if type(other) is type(self):
            return self._recorded(call(ufunc, (self._expression, other._expression))[0])
        if type(other) in WEAK:
            return self._recorded(call(ufunc, (self._expression, other))[0])  # type: ignore[arg-type]  # a number
        return usual(self, other)

    return operator


def _reflected(ufunc: np.ufunc, usual: Callable[[Operators, object], object]) -> Callable[..., object]:
    def operator(self: Operators, other: object) -> object:
        if type(other) in WEAK:
            return self._recorded(call(ufunc, (other, self._expression))[0])  # type: ignore[arg-type]  # a number
        return usual(self, other)

    return operator


def _in_place(ufunc: np.ufunc, usual: Callable[[Operators, object], object]) -> Callable[..., object]:
    def operator(self: Operators, other: object) -> object:
        if type(other) is type(self):
            return self._changed_to(call(ufunc, (self._expression, other._expression))[0])
        if type(other) in WEAK:
            return self._changed_to(call(ufunc, (self._expression, other))[0])  # type: ignore[arg-type]  # a number
        return usual(self, other)

    return operator


def _unary(ufunc: np.ufunc) -> Callable[..., object]:
    def operator(self: Operators) -> object:
        return self._recorded(call(ufunc, (self._expression,))[0])

    return operator


def _install(name: str, operator: Callable[..., object]) -> None:
    operator.__name__, operator.__qualname__ = name, f"{Operators.__name__}.{name}"
    setattr(Operators, name, operator)


def _usual(name: str) -> Callable[[Operators, object], object]:
    # NumPy's way to the handle, by the ufunc.
    usual: Callable[[Operators, object], object] = getattr(NDArrayOperatorsMixin, name)
    if name not in ("__mul__", "__rmul__", "__imul__"):
        return usual

    def operator(self: Operators, other: object) -> object:
        # SciPy's matrices (not its arrays) and NumPy's mean the matrix product by `*`, from either side.
        if isinstance(other, sp.spmatrix | np.matrix) and self._expression.ndim:
            return getattr(self, name.replace("mul", "matmul"))(other)
        return usual(self, other)

    return operator


for _name, _ufunc in {**_BINARY, **_COMPARISONS}.items():
    _install(f"__{_name}__", _binary(_ufunc, _usual(f"__{_name}__")))
for _name, _ufunc in _BINARY.items():
    _install(f"__r{_name}__", _reflected(_ufunc, _usual(f"__r{_name}__")))
    _install(f"__i{_name}__", _in_place(_ufunc, _usual(f"__i{_name}__")))
for _name, _ufunc in _UNARY.items():
    _install(f"__{_name}__", _unary(_ufunc))


def _power(usual: Callable[[Operators, object], object]) -> Callable[..., object]:
    # NumPy's operator squares where the exponent is 2. Booleans tell it from a power: int8, not int64.
    def operator(self: Operators, other: object) -> object:
        if type(other) is int and other == 2 and self._expression.dtype.kind == "b":
            return self._recorded(call(np.square, (self._expression,))[0])
        return usual(self, other)

    return operator


_install("__pow__", _power(Operators.__pow__))
