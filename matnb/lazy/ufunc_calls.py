"""NumPy's ufuncs called with all their options, and their methods, on handles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from matnb.errors import DTypeError, OptionError, UnsupportedError
from matnb.expr.nodes import Broadcast, Expr, Index, broadcast_shapes
from matnb.lazy import folds, ufuncs
from matnb.lazy.array import DistArray, expression_of, operand_of, wrap
from matnb.lazy.indexing.basic import replacing
from matnb.lazy.reductions import where as choose
from matnb.lazy.registry import FUNCTIONS
from matnb.lazy.ufuncs import Operand, astype, literal, number_dtype

_CASTINGS = ("no", "equiv", "safe", "same_kind", "unsafe")
Options = dict[str, object]


def called(ufunc: np.ufunc, method: str, inputs: Sequence[object], options: Options) -> object:
    """Return what ``ufunc.method(*inputs, **options)`` is.

    ``where=`` without ``out=`` leaves 0 where it is false, which NumPy leaves open. ``at`` gives the handle a
    new version.

    Raises
    ------
    UnsupportedError
        For what is not recorded, with the nearest way.
    """
    match method:
        case "__call__":
            return _called(ufunc, inputs, options)
        case "reduce":
            return _reduced(ufunc, inputs, options)
        case "accumulate":
            return _accumulated(ufunc, inputs, options)
        case "outer":
            return _outer(ufunc, inputs, options)
        case "at":
            from matnb.lazy.ufunc_places import written_at  # which indexes handles

            written_at(ufunc, *inputs)
            return None
        case "reduceat":
            from matnb.lazy.ufunc_places import segments_reduced

            array, indices, *rest = inputs
            options.update(zip(("axis", "dtype", "out"), rest, strict=False))
            result = segments_reduced(ufunc, array, indices, **_named(options, "axis", "dtype"))  # type: ignore[arg-type]  # checked there
            return into(options.get("out"), (result,), casting="unsafe")
    raise UnsupportedError(f"np.{ufunc.__name__}.{method} is not recorded; compute() the array first")


def into(
    out: object, results: Sequence[Expr], where: Expr | None = None, casting: str = "same_kind"
) -> object:
    """Return handles on results, or give them to the handles of ``out=``, as one or as a tuple.

    Raises
    ------
    UnsupportedError
        When they are to go into something else.
    ShapeError, DTypeError
        When a result does not fit there.
    """
    targets = out if isinstance(out, tuple) else (out,) * len(results)
    if len(targets) != len(results):
        raise OptionError(f"out= has {len(targets)} arrays for {len(results)} results: give one a result")
    made: list[object] = []
    for target, node in zip(targets, results, strict=True):
        if target is None:
            made.append(wrap(node if where is None else _where_true(where, node)))
            continue
        if not isinstance(target, DistArray):
            kind = type(target).__name__
            raise UnsupportedError(
                f"out= of type {kind} is not recorded: give a DistArray, or fill it with array[...] = "
                "result.compute()"
            )
        old = target.expression
        if not np.can_cast(node.dtype, old.dtype, casting):  # type: ignore[arg-type]  # checked before
            raise DTypeError(
                f"a result of dtype {node.dtype} does not go into an array of dtype {old.dtype}; "
                f"convert that first: x.astype({node.dtype})"
            )
        node = astype(node, old.dtype)
        if node.shape != old.shape and _fits(node.shape, old.shape):
            node = Broadcast(node, old.shape)
        target._become(replacing(old, node, where))
        made.append(target)
    return made[0] if len(made) == 1 else tuple(made)


def _fits(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    if len(shape) > len(target):
        return False
    return broadcast_shapes(shape, target, name="out=") == target


def _where_true(where: Expr, node: Expr) -> Expr:
    # What NumPy leaves undefined is 0.
    return choose(where, node, literal(0, node.dtype))


def _mask(where: object) -> Expr | None:
    if where is True or where is None or where is np._NoValue:
        return None
    mask = expression_of(where)
    if mask.dtype.kind != "b":
        raise DTypeError(f"where= of dtype {mask.dtype}: give booleans, for example x != 0")
    return mask


def _called(ufunc: np.ufunc, inputs: Sequence[object], options: Options) -> object:
    if ufunc.signature is not None and ufunc in FUNCTIONS:
        return FUNCTIONS[ufunc](*inputs, **options)
    out, where = options.pop("out", None), _mask(options.pop("where", True))
    dtype, casting = options.pop("dtype", None), str(options.pop("casting", "same_kind"))
    signature = options.pop("signature", options.pop("sig", None))
    for order in ("order", "subok"):  # which say how memory is laid out, and of what class an array is
        options.pop(order, None)
    if options:
        raise UnsupportedError(f"np.{ufunc.__name__}({', '.join(options)}=) is not recorded: leave it out")
    if casting not in _CASTINGS:
        raise OptionError(f"casting={casting!r}; known: {', '.join(_CASTINGS)}")
    operands: list[Operand] = list(map(operand_of, inputs))
    if casting != "same_kind" or signature is not None:
        operands, dtype = _converted(ufunc, operands, dtype, casting, signature)
    result = ufuncs.call(ufunc, operands, dtype)  # type: ignore[arg-type]  # checked there
    # A scalar has no elements to change: `s += 1` makes another one, as with NumPy's scalars.
    is_scalar = (
        isinstance(out, tuple)
        and out[0] is inputs[0]
        and isinstance(out[0], DistArray)
        and not out[0].shape
        and where is None
    )
    return into(None if is_scalar else out, result, where, casting)


def _converted(
    ufunc: np.ufunc, operands: Sequence[Operand], dtype: object, casting: str, signature: object
) -> tuple[list[Operand], npt.DTypeLike | None]:
    # Operands in the dtypes of the loop that NumPy chooses by other rules of casting, or by a signature.
    kinds = tuple(one.dtype if isinstance(one, Expr) else type(one) for one in operands)
    count = ufunc.nin + ufunc.nout
    wanted: tuple[np.dtype | None, ...] = (None,) * count
    if isinstance(signature, str):
        given, _, results = signature.partition("->")
        wanted = tuple(map(np.dtype, given + results))
    elif isinstance(signature, tuple):
        wanted = tuple(None if one is None else np.dtype(one) for one in signature)
    elif dtype is not None:
        wanted = (*(None,) * ufunc.nin, *(number_dtype(dtype),) * ufunc.nout)  # type: ignore[arg-type]  # checked there
    if len(wanted) != count:
        raise OptionError(f"signature={signature!r}: np.{ufunc.__name__} has {ufunc.nin} inputs")
    try:
        found = ufunc.resolve_dtypes((*kinds, *(None,) * ufunc.nout), signature=wanted, casting=casting)  # type: ignore[arg-type]  # one of NumPy's
    except TypeError as error:
        raise DTypeError(f"np.{ufunc.__name__}: {error}") from None
    converted: list[Operand] = [
        astype(one, kind) if isinstance(one, Expr) else literal(one, kind)
        for one, kind in zip(operands, found, strict=False)
    ]
    return converted, None if ufunc.nout > 1 else _result_dtype(found[ufunc.nin])


def _result_dtype(found: np.dtype) -> npt.DTypeLike | None:
    return None if found.kind == "b" else found  # a comparison's operands tell its loop


def _named(options: Options, *names: str) -> Options:
    others = {name for name in options if name not in (*names, "out")}
    if others:
        raise UnsupportedError(f"a ufunc's method with {', '.join(others)}= is not recorded: leave it out")
    return {name: options[name] for name in names if options.get(name) is not None}


def _reduced(ufunc: np.ufunc, inputs: Sequence[object], options: Options) -> object:
    (array, *rest) = inputs
    options.update(zip(("axis", "dtype", "out", "keepdims", "initial", "where"), rest, strict=False))
    out, where = options.pop("out", None), _mask(options.pop("where", True))
    axis, keepdims = options.pop("axis", 0), bool(options.pop("keepdims", False))
    dtype, initial = options.pop("dtype", None), options.pop("initial", None)
    if options:
        raise UnsupportedError(
            f"np.{ufunc.__name__}.reduce({', '.join(options)}=) is not recorded: leave it out"
        )
    first = initial.expression if isinstance(initial, DistArray) else initial
    first = None if first is np._NoValue else first
    node = folds.folded(expression_of(array), ufunc, axis, keepdims, dtype, first, where)  # type: ignore[arg-type]  # checked there
    return into(out, (node,), casting="unsafe")  # as NumPy does here


def _accumulated(ufunc: np.ufunc, inputs: Sequence[object], options: Options) -> object:
    (array, *rest) = inputs
    options.update(zip(("axis", "dtype", "out"), rest, strict=False))
    out = options.pop("out", None)
    node = folds.scanned(expression_of(array), ufunc, **_named(options, "axis", "dtype"))  # type: ignore[arg-type]  # checked there
    return into(out, (node,), casting="unsafe")  # as NumPy does here


def _outer(ufunc: np.ufunc, inputs: Sequence[object], options: Options) -> object:
    if ufunc.nin != 2 or len(inputs) != 2:
        raise OptionError(f"np.{ufunc.__name__}.outer: outer is of functions of two arrays, and takes two")
    node, other = map(expression_of, inputs)  # also of Python's numbers, which are not weak here
    if other.ndim:
        node = Index(node, (*(slice(0, length, 1) for length in node.shape), *(None,) * other.ndim))
    return _called(ufunc, (DistArray(node), DistArray(other)), options)
