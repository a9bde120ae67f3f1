"""NumPy's elementwise functions that are not ufuncs, and the ufuncs under matnb's names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from matnb.blocks.kernels.elementwise.elementwise import ufunc_named
from matnb.errors import DTypeError, OptionError, UnsupportedError
from matnb.expr.nodes import Elementwise, Expr
from matnb.lazy import reductions, ufuncs
from matnb.lazy.array import DistArray, handle_of, wrap
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import asarray, check_device, eye
from matnb.lazy.handles import expression_of, operand_of
from matnb.lazy.labels import keeps_labels
from matnb.lazy.registry import implements, recorded

_NUMBERS = (bool, int, float, complex, np.generic)


class Ufunc:
    """A ufunc that gives DistArrays of lists and NumPy arrays, too; of numbers alone it gives NumPy's.

    Examples
    --------
    >>> import matnb as mn
    >>> mn.add(2, [1.0, 2.0]).compute()
    array([3., 4.])
    >>> mn.maximum.reduce([3, 1, 2]).compute()
    np.int64(3)
    """

    def __init__(self, ufunc: np.ufunc) -> None:
        self.__wrapped__ = ufunc
        self.__name__ = ufunc.__name__
        home = "numpy" if hasattr(np, ufunc.__name__) else "scipy.special"
        self.__doc__ = f"``{home}.{ufunc.__name__}``."

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Return the results, elementwise."""
        return self.__wrapped__(*_handled(args, options), **options)

    def __getattr__(self, name: str) -> Any:
        # reduce, accumulate, outer, reduceat; and nin, nout, identity, types ... as they are, and `at`, which
        # changes the array that it is given
        found = getattr(self.__wrapped__, name)
        if name not in ("reduce", "accumulate", "outer", "reduceat"):
            return found
        return lambda *args, **options: found(*_handled(args, options), **options)

    def __reduce__(self) -> tuple[object, ...]:
        return named, (self.__name__,)

    def __repr__(self) -> str:
        return f"<matnb ufunc {self.__name__!r}>"


def named(name: str) -> Ufunc:
    """Return a ufunc by NumPy's or SciPy's name of it: the same one for every name that it has."""
    ufunc = getattr(np, name, None) or ufunc_named(name)
    assert ufunc is not None, "the caller has looked"
    if ufunc not in _ufuncs:
        _ufuncs[ufunc] = Ufunc(ufunc)
    return _ufuncs[ufunc]


_ufuncs: dict[np.ufunc, Ufunc] = {}


def _handled(args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, ...]:
    # One handle among the arguments is enough for NumPy to find its way here; into an array of its own NumPy
    # writes itself.
    if options.get("out") is not None:
        return args
    for one in (*args, *options.values()):
        if not isinstance(one, np.ndarray | np.generic) and hasattr(type(one), "__array_ufunc__"):
            return args
    for place, one in enumerate(args):
        if not isinstance(one, _NUMBERS) and one is not None:
            return (*args[:place], DistArray(expression_of(one)), *args[place + 1 :])
    return args


def _given(node: Expr, out: object) -> DistArray:
    # What a function returns, in the handle that a user gave for it if there is one.
    if out is None or out is np._NoValue:
        return wrap(node)
    target = out[0] if isinstance(out, tuple) else out
    if not isinstance(target, DistArray):
        raise UnsupportedError(f"out= of type {type(target).__name__}: give a DistArray, or compute()")
    recorded(np.copyto)(target, wrap(node))
    return target


@overload
def where(condition: ArrayLike, /) -> tuple[DistArray, ...]: ...
@overload
def where(condition: ArrayLike, one: object, other: object, /) -> DistArray: ...
@implements(np.where)
@keeps_labels
def where(
    condition: ArrayLike, one: object = np._NoValue, other: object = np._NoValue, /
) -> DistArray | tuple[DistArray, ...]:
    """``numpy.where``; with one argument ``numpy.nonzero``."""
    if one is np._NoValue:
        return recorded(np.nonzero)(condition)
    if other is np._NoValue:
        raise OptionError("np.where: give one argument, or three: np.where(condition, x, y)")
    first, second = ufuncs.chosen(list(map(operand_of, (one, other))))
    return wrap(reductions.where(expression_of(condition), first, second))


_TRUE = ("where", "subok")  # of a ufunc's options, where they say what is so anyway


@implements(np.clip)
@keeps_labels
def clip(
    a: ArrayLike,
    min: object = np._NoValue,
    max: object = np._NoValue,
    out: object = None,
    *,
    a_min: object = np._NoValue,
    a_max: object = np._NoValue,
    dtype: npt.DTypeLike | None = None,
    casting: str = "same_kind",
    **rest: object,
) -> DistArray:
    """``numpy.clip``: ``minimum(maximum(x, min), max)``; pandas' words are ``lower`` and ``upper``."""
    min, max = rest.pop("lower", min), rest.pop("upper", max)
    for bound, again, name in ((min, a_min, "min"), (max, a_max, "max")):
        if bound is not np._NoValue and again is not np._NoValue:
            raise OptionError(f"np.clip: {name} and a_{name} are the same bound: give one of them")
    low = a_min if min is np._NoValue else min
    high = a_max if max is np._NoValue else max
    if any(one is not None and (one is not True or name not in _TRUE) for name, one in rest.items()):
        raise UnsupportedError(
            f"np.clip({', '.join(rest)}=) is not supported: leave it out; instead of where=mask, use "
            "np.where(mask, np.clip(x, low, high), x)"
        )
    node = expression_of(a)
    if node.dtype.kind in "iu":  # a bound outside the range bounds nothing
        limits = np.iinfo(node.dtype)
        low = None if type(low) is int and low <= limits.min else low
        high = None if type(high) is int and high >= limits.max else high
    bounds = {
        ufunc: operand_of(bound)
        for ufunc, bound in ((np.maximum, low), (np.minimum, high))
        if bound is not None and bound is not np._NoValue
    }
    if not bounds and node.dtype.kind == "b":
        ufuncs.call(np.positive, (node,))  # which refuses, as NumPy does
    # One dtype for all three: an integer bound beyond the array's range may stand beside a float.
    others = (one.dtype if isinstance(one, Expr) else one for one in bounds.values())
    node = ufuncs.astype(node, np.result_type(node.dtype, *others))
    for ufunc, bound in bounds.items():
        (node,) = ufuncs.call(ufunc, (node, bound))
    if dtype is not None:
        node = ufuncs.astype(node, dtype, casting)
    return _given(node, out)


@implements(np.astype)
@keeps_labels
def astype(
    x: ArrayLike, dtype: npt.DTypeLike, /, *, copy: bool = True, device: str | None = None
) -> DistArray:
    """``numpy.astype``."""
    check_device(device)
    return wrap(ufuncs.astype(expression_of(x), dtype))


@implements(np.round, np.around)
@keeps_labels
def rounded(a: ArrayLike, decimals: int = 0, out: object = None) -> DistArray:
    """``numpy.round``: to the given number of decimals, halves to even."""
    node = expression_of(a)
    if node.dtype.kind in "iu":
        if decimals >= 0:
            return _given(node, out)
        return _given(ufuncs.astype(_to_decimals(ufuncs.astype(node, float), decimals), node.dtype), out)
    if node.dtype.kind == "b" and decimals != 0:
        raise DTypeError(f"round(decimals={decimals}) is not defined for dtype bool; convert it with astype")
    if node.dtype.kind == "c":
        parts = (_to_decimals(_part(name, node), decimals) for name in ("real", "imag"))
        return _given(_complex_of(node.dtype, *parts), out)
    return _given(_to_decimals(node, decimals), out)


def _to_decimals(node: Expr, decimals: int) -> Expr:
    # As NumPy rounds: the multiple of a power of ten, which may not be the nearest double to the decimal.
    if decimals == 0:
        return ufuncs.call(np.rint, (node,))[0]
    there, back = (np.multiply, np.divide) if decimals > 0 else (np.divide, np.multiply)
    power = 10.0 ** abs(decimals)
    (whole,) = ufuncs.call(np.rint, ufuncs.call(there, (node, power)))
    return ufuncs.call(back, (whole, power))[0]


@implements(np.fix)
@keeps_labels
def fix(x: ArrayLike, out: object = None) -> DistArray:
    """``numpy.fix``: towards zero."""
    return _given(ufuncs.call(np.trunc, (expression_of(x),))[0], out)


def _part(name: str, node: Expr) -> Expr:
    return Elementwise(name, (node,), (node.dtype,), np.empty(0, node.dtype).real.dtype)


@implements(np.real)
@keeps_labels
def real(val: object) -> DistArray:
    """``numpy.real``: the array itself where it is real."""
    node = expression_of(val)
    return wrap(_part("real", node) if node.dtype.kind == "c" else node)


@implements(np.imag)
@keeps_labels
def imag(val: object) -> DistArray:
    """``numpy.imag``: zeros where the array is real, of which a sparse array stores none."""
    node = expression_of(val)
    if node.dtype.kind == "c":
        return wrap(_part("imag", node))
    if node.sparse:
        rows, columns = node.shape
        return eye(rows, columns, k=columns, dtype=node.dtype)  # a diagonal outside of the matrix
    return handle_of(recorded(np.zeros_like)(DistArray(node)))


def _complex_of(dtype: np.dtype, real: Expr, imaginary: Expr) -> Expr:
    return Elementwise("complex_of", (real, imaginary), (real.dtype, imaginary.dtype), dtype)


@implements(np.angle)
@keeps_labels
def angle(z: object, deg: bool = False) -> DistArray:
    """``numpy.angle``: the argument of complex numbers, by default in radians."""
    node = expression_of(z)
    if node.dtype.kind == "c":
        (made,) = ufuncs.call(np.arctan2, (_part("imag", node), _part("real", node)))
    else:
        (made,) = ufuncs.call(np.arctan2, (0, node))
    return wrap(ufuncs.call(np.multiply, (made, 180 / np.pi))[0] if deg else made)


@implements(np.nan_to_num)
@keeps_labels
def nan_to_num(
    x: ArrayLike,
    copy: bool = True,
    nan: float = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
) -> DistArray:
    """``numpy.nan_to_num``; with ``copy=False`` the given DistArray is changed."""
    node = expression_of(x)
    if node.dtype.kind == "c":
        parts = (_finite(_part(name, node), nan, posinf, neginf) for name in ("real", "imag"))
        made = _complex_of(node.dtype, *parts)
    else:
        made = _finite(node, nan, posinf, neginf)
    return _given(made, x if not copy and isinstance(x, DistArray) else None)


def _finite(node: Expr, nan: float, posinf: float | None, neginf: float | None) -> Expr:
    if node.dtype.kind != "f":
        return node
    limits = np.finfo(node.dtype)
    chosen = (
        (ufuncs.call(np.isnan, (node,))[0], nan),
        (ufuncs.call(np.equal, (node, np.inf))[0], limits.max if posinf is None else posinf),
        (ufuncs.call(np.equal, (node, -np.inf))[0], limits.min if neginf is None else neginf),
    )
    made = node
    for mask, value in chosen:
        if not np.can_cast(np.asarray(value).dtype, node.dtype, "same_kind"):
            raise DTypeError(f"nan_to_num: {value!r} cannot be converted to dtype {node.dtype}")
        made = reductions.where(mask, ufuncs.literal(value, node.dtype), made)
    return made


@implements(np.isclose)
@keeps_labels
def isclose(
    a: ArrayLike, b: ArrayLike, rtol: object = 1e-05, atol: object = 1e-08, equal_nan: bool = False
) -> DistArray:
    """``numpy.isclose``."""
    x, y, relative, absolute = (
        one if type(one) in (int, float, complex) else DistArray(expression_of(one))
        for one in (a, b, rtol, atol)
    )
    if not isinstance(x, DistArray) and not isinstance(y, DistArray):
        x = DistArray(expression_of(x))
    if isinstance(y, DistArray):
        y = y.astype(np.result_type(y.dtype, 1.0))
    elif isinstance(y, int):
        y = float(y)  # which may not fit the integers it is compared with
    near = named("less_equal")(abs(x - y), absolute + relative * abs(y))  # type: ignore[operator, arg-type]  # handles, numbers
    found = handle_of(near & named("isfinite")(y) | (x == y))
    return handle_of(found | (named("isnan")(x) & named("isnan")(y))) if equal_nan else found


@implements(np.allclose)
def allclose(
    a: ArrayLike, b: ArrayLike, rtol: object = 1e-05, atol: object = 1e-08, equal_nan: bool = False
) -> DistArray:
    """``numpy.allclose``, as a lazy 0-d array: ``bool()`` computes it."""
    return isclose(a, b, rtol, atol, equal_nan).all()


@implements(np.array_equal)
def array_equal(a1: object, a2: object, equal_nan: bool = False) -> DistArray:
    """``numpy.array_equal``, as a lazy 0-d array: ``bool()`` computes it."""
    x, y = asarray(a1), asarray(a2)
    if x.shape != y.shape:
        return asarray(False)
    same = x == y
    if equal_nan and x.dtype.kind in "fc" and y.dtype.kind in "fc":
        same = same | (named("isnan")(x) & named("isnan")(y))
    return handle_of(same).all()


@implements(np.array_equiv)
def array_equiv(a1: object, a2: object) -> DistArray:
    """``numpy.array_equiv``: equal after broadcasting; lazy."""
    x, y = asarray(a1), asarray(a2)
    try:
        np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        return asarray(False)
    return handle_of(x == y).all()


@implements(np.isreal)
@keeps_labels
def isreal(x: ArrayLike) -> DistArray:
    """``numpy.isreal``: whether the imaginary part is 0."""
    return handle_of(imag(x) == 0)


@implements(np.iscomplex)
@keeps_labels
def iscomplex(x: ArrayLike) -> DistArray:
    """``numpy.iscomplex``: whether the imaginary part is not 0."""
    return handle_of(imag(x) != 0)


@implements(np.isrealobj)
def isrealobj(x: ArrayLike) -> bool:
    """``numpy.isrealobj``."""
    return expression_of(x).dtype.kind != "c"


@implements(np.iscomplexobj)
def iscomplexobj(x: ArrayLike) -> bool:
    """``numpy.iscomplexobj``."""
    return expression_of(x).dtype.kind == "c"


def _register_infinite(function: Callable[..., object], infinity: float) -> None:
    def is_infinite(x: ArrayLike, out: object = None) -> DistArray:
        node = expression_of(x)
        if node.dtype.kind == "c":
            raise DTypeError(
                f"{function.__name__} is not defined for dtype {node.dtype}: complex infinities have no sign"
            )
        return _given(ufuncs.call(np.equal, (node, infinity))[0], out)

    is_infinite.__doc__ = f"``numpy.{function.__name__}``."
    implements(function)(is_infinite)


_register_infinite(np.isposinf, np.inf)
_register_infinite(np.isneginf, -np.inf)


@implements(np.sinc)
@keeps_labels
def sinc(x: ArrayLike) -> DistArray:
    """``numpy.sinc``: sin(pi x) / (pi x), 1 at 0."""
    y = handle_of(asarray(x) * np.pi)
    least = np.finfo(y.dtype).eps if y.dtype.kind == "f" else 1e-20
    y = handle_of(where(y, y, float(least)))
    return handle_of(named("sin")(y) / y)


@implements(np.i0)
@keeps_labels
def i0(x: ArrayLike) -> DistArray:
    """``numpy.i0``: the modified Bessel function of the first kind and order 0."""
    node = expression_of(x)
    if node.dtype.kind == "c":
        raise DTypeError("i0 is not defined for complex numbers")
    if node.dtype.kind != "f":
        node = ufuncs.astype(node, float)
    return wrap(Elementwise("i0", (node,), (node.dtype,), node.dtype))


@implements(np.polyval)
def polyval(p: Sequence[object], x: ArrayLike) -> DistArray:
    """``numpy.polyval``: coefficients from the highest power down."""
    point = asarray(x)
    made = handle_of(recorded(np.zeros_like)(point))
    for coefficient in asarray(p):  # whose dtype is that of all, as numbers in a list are not weak
        made = handle_of(made * point + coefficient)
    return made


@implements(np.piecewise)
def piecewise(
    x: ArrayLike, condlist: object, funclist: Sequence[object], *args: object, **options: object
) -> DistArray:
    """``numpy.piecewise``: each function is applied to the elements for which its condition is true."""
    array = asarray(x)
    conditions = list(condlist) if isinstance(condlist, list | tuple) else [condlist]
    if conditions and (
        isinstance(conditions[0], bool | np.bool)
        or (
            conditions[0] is not condlist
            and array.ndim
            and not getattr(conditions[0], "shape", None)
            and not isinstance(conditions[0], list)
        )
    ):
        conditions = [conditions]
    masks = [asarray(one, bool) for one in conditions]
    if len(funclist) == len(masks) + 1:
        rest = ~masks[0]
        for one in masks[1:]:
            rest = rest & ~one
        masks.append(rest)
    elif len(funclist) != len(masks):
        raise OptionError(
            f"piecewise: {len(masks)} conditions and {len(funclist)} functions: give one function "
            "for each condition, or one more as the default"
        )
    made = handle_of(recorded(np.zeros_like)(array))
    for mask, function in zip(masks, funclist, strict=True):
        made[mask] = function(array[mask], *args, **options) if callable(function) else function
    return made
