"""What ``x[mask]`` is: a handle on the elements that booleans pick, whose number is asked for when needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.mixins import NDArrayOperatorsMixin

from matnb.blocks.semiring import MONOIDS
from matnb.errors import ShapeError
from matnb.expr.nodes import Expr
from matnb.lazy import reductions, ufuncs
from matnb.lazy.array import DistArray, expression_of, wrap
from matnb.lazy.indexing.basic import replacing
from matnb.lazy.indexing.masks import Picked, filled

_IDENTITIES = {"sum": "plus", "prod": "times", "any": "lor", "all": "land", "min": "min", "max": "max"}
_REDUCTIONS = ("sum", "prod", "any", "all", "min", "max", "mean")
_ALONE = {getattr(np, name) for name in _REDUCTIONS}


class Selection(DistArray):
    """The elements of an array where booleans are true, recorded and not computed.

    How many they are stays open as long as nobody asks: while they meet numbers, what broadcasts to their
    rows, and selections by the same booleans; go back where they came from, as in ``x[mask] += 1``; and are
    reduced to numbers. Anything else asks, and from there on they are an array as any other.

    Examples
    --------
    >>> import matnb as mn
    >>> x = mn.arange(6.0)
    >>> x[x > 2] *= 10
    >>> x.compute()
    array([ 0.,  1.,  2., 30., 40., 50.])
    >>> float(x[x > 2].sum())
    120.0
    >>> x[x > 2][-1].compute()
    np.float64(50.0)
    """

    __slots__ = ("_alone", "place")
    __array_priority__ = 1001
    __hash__ = None  # type: ignore[assignment]  # compares elementwise

    def __init__(self, place: Picked) -> None:
        self.place: Picked | None = place
        self._alone: DistArray | None = None
        self._labels = None

    @property
    def _expression(self) -> Expr:
        if self._alone is None:
            assert self.place is not None, "either is there"
            self._alone = wrap(self.place.alone())
        return self._alone.expression

    @_expression.setter
    def _expression(self, node: Expr) -> None:
        self.place, self._alone = None, wrap(node)

    @property
    def dtype(self) -> np.dtype:
        """Type of the elements."""
        return self._expression.dtype if self.place is None else self.place.values.dtype

    @property
    def ndim(self) -> int:
        """Number of axes: one for all that the booleans stand for."""
        if self.place is None:
            return self._expression.ndim
        return self.place.values.ndim - self.place.mask.ndim + 1

    def copy(self, order: str = "C") -> DistArray:
        """Return another handle on the same elements."""
        return super().copy() if self.place is None else Selection(self.place)

    def astype(self, dtype: npt.DTypeLike, *arguments: Any, **options: Any) -> DistArray:
        """Return the elements converted to a dtype."""
        if self.place is None or arguments or options:
            return super().astype(dtype, *arguments, **options)
        return self._with(ufuncs.astype(self.place.values, dtype))

    def _alone_reduced(self, operation: str) -> DistArray:
        # Over all elements, where what is not picked changes nothing.
        place = self.place
        assert place is not None, "asked before"
        if operation == "mean":
            return self._mean(place)
        if operation in ("min", "max") and not self.size:
            raise ShapeError(f"{operation} of no elements: the booleans pick none")
        if operation in ("min", "max") and self.dtype.kind == "c":  # which no number is neutral to
            return wrap(reductions.reduce(self._expression, operation))
        if operation in ("any", "all"):
            place = Picked(ufuncs.astype(place.values, np.bool_), place.mask, place.axis)
        neutral = MONOIDS[_IDENTITIES[operation]].identity(place.values.dtype)
        return wrap(reductions.reduce(filled(place, neutral), operation))

    def _mean(self, place: Picked) -> DistArray:
        element = reductions.mean(place.values).dtype
        wide = np.dtype(np.float32) if element == np.float16 else element
        total = self._with(ufuncs.astype(place.values, wide))._alone_reduced("sum")
        row_size = place.values.size // max(place.mask.size, 1)
        (number,) = ufuncs.call(np.multiply, (reductions.count_nonzero(place.mask), row_size))
        (ratio,) = ufuncs.call(np.divide, (total.expression, number))
        return wrap(ufuncs.astype(ratio, element))

    def __array_function__(
        self,
        function: Callable[..., object],
        types: Sequence[type],
        args: Sequence[object],
        kwargs: Mapping[str, object],
    ) -> object:
        if function in _ALONE and len(args) == 1 and args[0] is self and not kwargs:
            return getattr(self, function.__name__)()
        return super().__array_function__(function, types, args, kwargs)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **options: object) -> object:
        out, dtype = options.get("out"), options.get("dtype")
        is_own = out is None or (isinstance(out, tuple) and len(out) == 1 and out[0] is inputs[0] is self)
        lazily = (
            method == "__call__"
            and is_own
            and not set(options) - {"out", "dtype"}
            and ufunc.signature is None
        )
        operands = [self._operand(one, ufunc) for one in inputs] if lazily else [None]
        if self.place is None or any(one is None for one in operands):
            return super().__array_ufunc__(ufunc, method, *inputs, **options)
        nodes = ufuncs.call(ufunc, operands, dtype)  # type: ignore[arg-type]  # checked there
        if out is not None:
            self.place, self._alone = self._with(replacing(self.place.values, nodes[0])).place, None
            return self
        made = tuple(self._with(node) for node in nodes)
        return made[0] if len(made) == 1 else made

    def _with(self, values: Expr) -> Selection:
        # The same elements of another array.
        assert self.place is not None, "asked before"
        return Selection(Picked(values, self.place.mask, self.place.axis))

    def _operand(self, value: object, ufunc: np.ufunc) -> Expr | ufuncs.Weak | None:
        # What a value is for all elements, picked or not; None where it meets the picked ones alone.
        place = self.place
        if place is None or ufuncs.is_weak(value):
            return value if place is not None else None  # type: ignore[return-value]  # a number
        if isinstance(value, Selection) and value.place is not None:
            other = value.place
            same = other.mask is place.mask and other.axis == place.axis
            if not same or other.values.ndim != place.values.ndim:
                return None
            node = other.values
        else:
            node = expression_of(value)
            if node.ndim > self.ndim or place.has_each(node):
                return None
            node = place.aligned(node)
        if ufunc is np.power and node.dtype.kind in "iu" and node.shape:
            # a negative power of whole numbers that are not picked is no error
            node = filled(Picked(node, place.mask, place.axis), node.dtype.type(1))
        return node

    def __repr__(self) -> str:
        if self.place is None or self._alone is not None:
            return super().__repr__()
        values, mask = self.place.values, self.place.mask
        return f"<elements of {values.shape} {values.dtype} that booleans of shape {mask.shape} pick>"


def _reduction(name: str) -> Callable[..., object]:
    usual = getattr(DistArray, name)

    @wraps(usual)
    def method(self: Selection, *arguments: object, **options: object) -> object:
        if self.place is None or arguments or options:
            return usual(self, *arguments, **options)
        return self._alone_reduced(name)

    return method


for _name in _REDUCTIONS:
    setattr(Selection, _name, _reduction(_name))
# The shorter ways that a handle's operators have would ask; NumPy's mixin calls the ufunc, which need not.
for _name, _operator in vars(NDArrayOperatorsMixin).items():
    if callable(_operator) and _name != "__hash__":
        setattr(Selection, _name, _operator)
