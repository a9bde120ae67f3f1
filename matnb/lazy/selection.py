"""What ``x[mask]`` is: a handle on the elements that booleans pick, without knowing how many they are."""

from __future__ import annotations

from typing import NoReturn

import numpy as np
import numpy.typing as npt
from numpy.lib.mixins import NDArrayOperatorsMixin

from matnb.blocks.formats import to_numpy
from matnb.blocks.semiring import MONOIDS
from matnb.errors import NotScalarError, ShapeError, UnsupportedError
from matnb.lazy import reductions, ufuncs
from matnb.lazy.array import DistArray, expression_of, wrap
from matnb.lazy.evaluator import evaluator
from matnb.lazy.expr import Expr
from matnb.lazy.masks import Picked, filled
from matnb.lazy.places import replacing

_IDENTITIES = {"sum": "plus", "prod": "times", "any": "lor", "all": "land", "min": "min", "max": "max"}


class Selection(Picked, NDArrayOperatorsMixin):
    """The elements of an array where booleans are true, recorded and not computed.

    It takes elementwise functions with numbers, with what broadcasts to its rows, and with selections by the
    same booleans; goes back where it came from, as in ``x[mask] += 1``; and is reduced to numbers. ``len``
    and ``compute`` run what they need.

    Examples
    --------
    >>> import matnb as mn
    >>> x = mn.arange(6.0)
    >>> x[x > 2] *= 10
    >>> x.compute()
    array([ 0.,  1.,  2., 30., 40., 50.])
    >>> float(x[x > 2].sum())
    120.0
    """

    __array_priority__ = 1001
    __hash__ = None  # type: ignore[assignment]  # compares elementwise

    @property
    def dtype(self) -> np.dtype:
        """Type of the elements."""
        return self.values.dtype

    @property
    def ndim(self) -> int:
        """Number of axes: one for all that the booleans stand for."""
        return self.values.ndim - self.mask.ndim + 1

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes; how many elements are picked is computed."""
        lengths, behind = self.values.shape, self.axis + self.mask.ndim
        return (*lengths[: self.axis], int(self._count()), *lengths[behind:])

    @property
    def size(self) -> int:
        """Number of elements, which is computed."""
        return int(np.prod(self.shape))

    def __len__(self) -> int:
        return self.shape[0]

    def astype(self, dtype: npt.DTypeLike) -> Selection:
        """Return the elements converted to a dtype."""
        return Selection(ufuncs.astype(self.values, dtype), self.mask, self.axis)

    def sum(self, axis: None = None, out: None = None) -> DistArray:
        """Return the sum of all picked elements."""
        return self._reduced("sum", axis, out)

    def prod(self, axis: None = None, out: None = None) -> DistArray:
        """Return the product of all picked elements."""
        return self._reduced("prod", axis, out)

    def any(self, axis: None = None, out: None = None) -> DistArray:
        """Tell whether any picked element is not zero."""
        return self._reduced("any", axis, out)

    def all(self, axis: None = None, out: None = None) -> DistArray:
        """Tell whether every picked element is not zero."""
        return self._reduced("all", axis, out)

    def mean(self, axis: None = None, dtype: None = None, out: None = None) -> DistArray:
        """Return the arithmetic mean of all picked elements; NaN where there is none."""
        element = reductions.mean(self.values).dtype
        wide = np.dtype(np.float32) if element == np.float16 else element
        if dtype is not None:
            raise UnsupportedError("mean(dtype=) of elements that booleans pick: use astype(dtype).mean()")
        total = self.astype(wide).sum(axis, out)
        row_size = self.values.size // max(self.mask.size, 1)
        number = wrap(ufuncs.call(np.multiply, (self._count().expression, row_size))[0])
        (ratio,) = ufuncs.call(np.divide, (total.expression, number.expression))
        return wrap(ufuncs.astype(ratio, element))

    def min(self, axis: None = None, out: None = None) -> DistArray:
        """Return the smallest picked element; whether there is one is computed at once."""
        return self._extreme("min", axis, out)

    def max(self, axis: None = None, out: None = None) -> DistArray:
        """Return the largest picked element; whether there is one is computed at once."""
        return self._extreme("max", axis, out)

    def compute(self) -> np.ndarray:
        """Compute the elements and return them as NumPy's array."""
        if self.values.sparse:
            raise UnsupportedError(
                "the elements that booleans pick from a sparse array: compute() both, and index"
            )
        values = to_numpy(evaluator().value(self.values))
        mask = to_numpy(evaluator().value(self.mask))
        key = (*(slice(None),) * self.axis, mask)
        return np.asarray(values[key])  # type: ignore[index]  # slices and booleans

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        values = self.compute()
        return values if dtype is None else values.astype(dtype, copy=False)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **options: object) -> object:
        out, dtype = options.pop("out", None), options.pop("dtype", None)
        if method != "__call__" or options or ufunc.signature is not None:
            raise UnsupportedError(
                f"np.{ufunc.__name__} of elements that booleans pick is not recorded in this form: use "
                "np.where(mask, new, old), or compute() first"
            )
        operands = [self._operand(one, ufunc) for one in inputs]
        nodes = ufuncs.call(ufunc, operands, dtype)  # type: ignore[arg-type]  # checked there
        if out is not None:
            if not (isinstance(out, tuple) and len(out) == 1 and out[0] is inputs[0] is self):
                raise UnsupportedError("out= with elements that booleans pick: assign with x[mask] = ...")
            nodes = (replacing(self.values, nodes[0]),)
        made = tuple(Selection(node, self.mask, self.axis) for node in nodes)
        return made[0] if len(made) == 1 else made

    def _operand(self, value: object, ufunc: np.ufunc) -> object:
        if ufuncs.is_weak(value):
            return value
        if not isinstance(value, Selection):
            node = self.aligned(expression_of(value))
        elif value.mask is not self.mask or (value.values.ndim, value.axis) != (self.values.ndim, self.axis):
            raise UnsupportedError("elements that different booleans pick meet: use np.where(mask, new, old)")
        else:
            node = value.values
        if ufunc is np.power and node.dtype.kind in "iu" and node.shape:
            # a negative power of whole numbers that are not picked is no error
            node = filled(Picked(node, self.mask, self.axis), node.dtype.type(1))
        return node

    def _count(self) -> DistArray:
        return wrap(reductions.count_nonzero(self.mask))

    def _filled(self, operation: str) -> Expr:
        if operation in ("any", "all"):
            return filled(self.astype(np.bool_), MONOIDS[_IDENTITIES[operation]].identity(np.dtype(np.bool_)))
        return filled(self, MONOIDS[_IDENTITIES[operation]].identity(self.dtype))

    def _reduced(self, operation: str, axis: None, out: None) -> DistArray:
        # NumPy's functions, as in np.sum(x[mask]), give each of these by name.
        if out is not None:
            raise UnsupportedError(f"{operation}(out=) of elements that booleans pick: use what it returns")
        if axis is not None:
            raise UnsupportedError(
                f"{operation} over an axis of elements that booleans pick: use np.where(mask, x, 0) and axis="
            )
        return wrap(reductions.reduce(self._filled(operation), operation))

    def _extreme(self, operation: str, axis: None, out: None) -> DistArray:
        if not self.size:
            raise ShapeError(f"{operation} of no elements: the booleans pick none")
        return self._reduced(operation, axis, out)

    def __bool__(self) -> bool:
        raise NotScalarError("the truth of elements that booleans pick is ambiguous; use .any() or .all()")

    def __getitem__(self, key: object) -> NoReturn:
        raise UnsupportedError(
            "an index into elements that booleans pick is not recorded: compute() them first"
        )

    def __setitem__(self, key: object, value: object) -> NoReturn:
        raise UnsupportedError("assign to the array itself, where both hold: x[mask & other] = value")

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"elements that booleans pick have no {name!r}: use np.where(mask, x, other), or compute() first"
        )

    def __repr__(self) -> str:
        return f"<elements of {self.values.shape} {self.dtype} that booleans of shape {self.mask.shape} pick>"
