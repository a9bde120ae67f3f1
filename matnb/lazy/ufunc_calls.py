"""NumPy's ufuncs called with all their options, and their methods, on handles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt

from matnb.blocks.creation import Arange
from matnb.errors import DTypeError, IndexingError, OptionError, ShapeError, UnsupportedError, suggestion
from matnb.expr.nodes import Broadcast, Create, Expr, Index, Literal, broadcast_shapes
from matnb.lazy import reductions, ufuncs
from matnb.lazy.evaluator import asked
from matnb.lazy.handles import Handle, expression_of, noted, operand_of
from matnb.lazy.indexing.basic import basic, replacing
from matnb.lazy.indexing.fancy import check_places, put_back, turned, turned_back, vectors
from matnb.lazy.indexing.getitem import with_expressions
from matnb.lazy.indexing.keys import normalize_key, one_axis, parts_of, with_new_axes
from matnb.lazy.reductions import associative, element_of
from matnb.lazy.reductions import where as choose
from matnb.lazy.registry import FUNCTIONS, recorded
from matnb.lazy.shapes import reshaped, sliced
from matnb.lazy.ufuncs import Operand, astype, call, literal, number_dtype
from matnb.lazy.values import Values
from matnb.ops.grouping import Scatter
from matnb.ops.joining import Concatenate

_CASTINGS = ("no", "equiv", "safe", "same_kind", "unsafe")
Options = dict[str, object]
_UNLIKE_BITS = (str, bytes, np.datetime64, np.timedelta64, date, timedelta)  # compared, and never & or |


def called(ufunc: np.ufunc, method: str, inputs: Sequence[object], options: Options) -> list[object]:
    """Return what ``ufunc.method(*inputs, **options)`` is: expressions, and what ``out=`` gives as it is.

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
            written_at(ufunc, *inputs)
            return [None]
        case "reduceat":
            array, indices, *rest = inputs
            options.update(zip(("axis", "dtype", "out"), rest, strict=False))
            result = segments_reduced(ufunc, array, indices, **_named(options, "axis", "dtype"))  # type: ignore[arg-type]  # checked there
            return into(options.get("out"), (result,), casting="unsafe")
    raise UnsupportedError(
        f"np.{ufunc.__name__}.{method} is not supported; call compute() on the array first"
    )


def into(
    out: object, results: Sequence[Expr], where: Expr | None = None, casting: str = "same_kind"
) -> list[object]:
    """Return results, or give them to the arrays of ``out=`` and return these.

    Into arrays of NumPy's they are computed, within ``compute_limit``.

    Raises
    ------
    UnsupportedError
        When they are to go into something else.
    ShapeError, DTypeError
        When a result does not fit there.
    """
    targets = out if isinstance(out, tuple) else (out,) * len(results)
    if len(targets) != len(results):
        raise OptionError(f"out= has {len(targets)} arrays for {len(results)} results: give one for each")
    made: list[object] = []
    for target, node in zip(targets, results, strict=True):
        if target is None:
            made.append(node if where is None else _where_true(where, node))
            continue
        if isinstance(target, np.ndarray):  # as `w += x` says of an array of NumPy's
            chosen: object = True if where is None else np.asarray(Values(noted(where)))
            np.copyto(target, np.asarray(Values(noted(node))), casting, where=chosen)  # type: ignore[arg-type]  # checked
            made.append(target)
            continue
        if not isinstance(target, Handle):
            raise UnsupportedError(f"out= of type {type(target).__name__}: give an array")
        old = target.expression
        if not np.can_cast(node.dtype, old.dtype, casting):  # type: ignore[arg-type]  # checked before
            raise DTypeError(
                f"a result of dtype {node.dtype} cannot be stored in an array of dtype {old.dtype}; "
                f'write x = x.astype("{node.dtype}") before'
            )
        node = astype(node, old.dtype)
        if node.shape != old.shape and _fits(node.shape, old.shape):
            node = Broadcast(node, old.shape)
        target._become(replacing(old, node, where))
        made.append(target)
    return made


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


def _called(ufunc: np.ufunc, inputs: Sequence[object], options: Options) -> list[object]:
    if ufunc.signature is not None and ufunc in FUNCTIONS:
        return [FUNCTIONS[ufunc](*inputs, **options)]
    out, where = options.pop("out", None), _mask(options.pop("where", True))
    dtype, casting = options.pop("dtype", None), str(options.pop("casting", "same_kind"))
    signature = options.pop("signature", options.pop("sig", None))
    for order in ("order", "subok"):  # which say how memory is laid out, and of what class an array is
        options.pop(order, None)
    if options:
        raise UnsupportedError(f"np.{ufunc.__name__}({', '.join(options)}=) is not supported: leave it out")
    if casting not in _CASTINGS:
        raise OptionError(f"casting={casting!r}; {suggestion(casting, _CASTINGS)}")
    if ufunc.__name__ in ufuncs.BEFORE_COMPARISONS and any(isinstance(one, _UNLIKE_BITS) for one in inputs):
        kinds = " and ".join(type(one).__name__ for one in inputs)
        raise DTypeError(f"{ufunc.__name__} of {kinds}{ufuncs.BRACKETS}")
    operands: list[Operand] = list(map(operand_of, inputs))
    if casting != "same_kind" or signature is not None:
        operands, dtype = _converted(ufunc, operands, dtype, casting, signature)
    result = ufuncs.call(ufunc, operands, dtype)  # type: ignore[arg-type]  # checked there
    # A scalar has no elements to change: `s += 1` makes another one, as with NumPy's scalars.
    is_scalar = (
        isinstance(out, tuple)
        and out[0] is inputs[0]
        and isinstance(out[0], Handle)
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
        raise UnsupportedError(f"the ufunc's method does not support {', '.join(others)}=: leave it out")
    return {name: options[name] for name in names if options.get(name) is not None}


def _reduced(ufunc: np.ufunc, inputs: Sequence[object], options: Options) -> list[object]:
    (array, *rest) = inputs
    options.update(zip(("axis", "dtype", "out", "keepdims", "initial", "where"), rest, strict=False))
    out, where = options.pop("out", None), _mask(options.pop("where", True))
    axis, keepdims = options.pop("axis", 0), bool(options.pop("keepdims", False))
    dtype, initial = options.pop("dtype", None), options.pop("initial", None)
    if options:
        raise UnsupportedError(
            f"np.{ufunc.__name__}.reduce({', '.join(options)}=) is not supported: leave it out"
        )
    first = initial.expression if isinstance(initial, Handle) else initial
    first = None if first is np._NoValue else first
    node = reductions.folded(expression_of(array), ufunc, axis, keepdims, dtype, first, where)  # type: ignore[arg-type]  # checked there
    return into(out, (node,), casting="unsafe")  # as NumPy does here


def _accumulated(ufunc: np.ufunc, inputs: Sequence[object], options: Options) -> list[object]:
    (array, *rest) = inputs
    options.update(zip(("axis", "dtype", "out"), rest, strict=False))
    out = options.pop("out", None)
    node = reductions.scanned(expression_of(array), ufunc, **_named(options, "axis", "dtype"))  # type: ignore[arg-type]  # checked there
    return into(out, (node,), casting="unsafe")  # as NumPy does here


def _outer(ufunc: np.ufunc, inputs: Sequence[object], options: Options) -> list[object]:
    if ufunc.nin != 2 or len(inputs) != 2:
        raise OptionError(
            f"np.{ufunc.__name__}.outer: only ufuncs with two inputs have outer, which takes two arrays"
        )
    node, other = map(expression_of, inputs)  # also of Python's numbers, which are not weak here
    node = with_new_axes(node, node.ndim, other.ndim)
    return _called(ufunc, (Handle(node), Handle(other)), options)


# A ufunc's ``at`` and ``reduceat``: at places that may repeat, and over runs of elements.

# What combines the values of one place before they meet what is there, and what then meets it.
_MONOIDS = {"add": "plus", "subtract": "plus", "multiply": "times", "divide": "times", "minimum": "min",
            "maximum": "max", "logical_or": "lor", "logical_and": "land"}  # fmt: skip
_LABELLED = ("add", "multiply", "minimum", "maximum", "logical_or", "logical_and")
_TRUTHS = ("logical_or", "logical_and", "logical_xor")  # of numbers of any dtype
_MOST_ASKED = 8192  # indices that are fetched from the workers
_FEW = 1000  # runs that are each worked out alone


def written_at(ufunc: np.ufunc, array: object, indices: object, *values: object) -> None:
    """Give a handle the version that ``ufunc.at`` makes of it: repeated places take part each time.

    Values of one place are combined before they meet the array, so sums of floats may round otherwise.

    Raises
    ------
    UnsupportedError
        For booleans beside places, and for places that may repeat of a ufunc whose order matters.
    """
    name = ufunc.__name__
    if not isinstance(array, Handle):
        kind = type(array).__name__
        raise UnsupportedError(f"np.{name}.at into a {kind} from DistArrays: compute() them first")
    if len(values) != ufunc.nin - 1:
        raise DTypeError(
            f"np.{name}.at of a ufunc with {ufunc.nin} inputs takes {ufunc.nin - 1} arrays of values"
        )
    node, key = array.expression, with_expressions(indices)
    operands = [expression_of(one) for one in values]  # a number has its own dtype here
    (met,) = call(ufunc, [literal(0, one.dtype) for one in (node, *operands)])
    if not may_repeat(key):
        handle: Any = array
        new = ufunc(handle[indices], *map(Handle, operands))
        handle[indices] = new if new.dtype == node.dtype else new.astype(node.dtype)
        return
    parts = parts_of(key, node.shape)
    region = basic(node, parts)
    lists = parts.lists_by_axis()
    check_places(lists, region.shape)
    axes, shape = tuple(lists), parts.broadcast()
    # NumPy puts the axes of the places where theirs are, if they are side by side.
    first = 0 if parts.is_first or axes != tuple(range(axes[0], axes[0] + len(axes))) else axes[0]
    behind = [length for axis, length in enumerate(region.shape) if axis not in lists]
    target = (*behind[:first], *shape, *behind[first:])
    for one in operands:
        if broadcast_shapes(one.shape, target, name=f"{name}.at") != target:
            raise ShapeError(f"values of shape {one.shape} do not fit indices of shape {target}")
    if 0 in target:
        return
    monoid = _monoid_of(ufunc, node.dtype, met.dtype)
    given = operands[0] if operands[0].shape == target else Broadcast(operands[0], target)
    given = turned(given, tuple(range(first, first + len(shape))))
    region = Broadcast(region, region.shape) if region.sparse else region
    written = _combined(ufunc, turned(region, axes), vectors(list(lists.values()), shape), given, monoid)
    array._become(put_back(node, parts, turned_back(written, axes)))


def may_repeat(key: object) -> bool:
    """Tell whether an index may name a place several times: it has arrays of whole numbers."""
    parts = key if isinstance(key, tuple) else (key,)
    arrays = [one for one in parts if isinstance(one, Expr) and one.ndim]
    kinds = {one.dtype.kind for one in arrays}
    if "b" in kinds and len(kinds) > 1:
        raise UnsupportedError(
            "ufunc.at with booleans and integer arrays in one index is not supported: give np.nonzero of the "
            "booleans"
        )
    return bool(arrays) and "b" not in kinds


def _monoid_of(ufunc: np.ufunc, own: np.dtype, met: np.dtype) -> str:
    # What combines the values of a place, so that the array meets them once.
    name = ufunc.__name__
    if name not in _MONOIDS:
        known = ", ".join(f"np.{one}" for one in _MONOIDS)
        raise UnsupportedError(
            f"np.{name}.at with indices that may repeat is supported for {known} only; where none "
            f"repeats, use x[i] = np.{name}(x[i], ...)"
        )
    monoid = _MONOIDS[name]
    if met.kind == "b":
        return {"plus": "lor", "times": "land"}.get(monoid, monoid)
    if monoid in ("min", "max") and met.kind == "c":
        raise UnsupportedError(f"np.{name}.at of complex numbers at indices that may repeat is not supported")
    wraps = own.kind in "iu" and met.kind in "iu" and monoid in ("plus", "times")
    if not wraps and not np.can_cast(met, own, "same_kind"):
        raise UnsupportedError(
            f"np.{name}.at rounds each of its results of dtype {met} to dtype {own}, one after the other, "
            "which is not supported: convert the values, or the array, with astype"
        )
    return monoid


def _combined(ufunc: np.ufunc, node: Expr, places: Sequence[Expr], given: Expr, monoid: str) -> Expr:
    # The array with what is given met at places of its first axes, which several lists name together.
    lengths, rest = node.shape[: len(places)], node.shape[len(places) :]
    count, total, width = places[0].size, math.prod(lengths), math.prod(rest)
    labels = _labels(places, lengths)
    wanted = (count, width) if rest else (count,)
    values = given if given.shape == wanted else reshaped(given, wanted)
    values = Broadcast(values, values.shape) if values.sparse else values
    if monoid == "times" and ufunc is np.multiply and node.dtype.kind in "fc":
        # What the values alone give may overflow where the product with the array does not.
        own = node if len(places) == 1 else reshaped(node, (total, *((width,) if rest else ())))
        own = own if own.ndim < 3 else reshaped(own, (total, width))
        every = Create(Arange(0, 1, total, labels.dtype))
        product = Concatenate((own, astype(values, node.dtype)), 0)
        whole: Expr = Scatter(product, Concatenate((every, labels), 0), total, monoid)
        return whole if whole.shape == node.shape else reshaped(whole, node.shape)
    found: Expr = Scatter(values, labels, total, monoid)
    touched: Expr = Scatter(Broadcast(literal(True), (count,)), labels, total, "lor")
    found = found if found.shape == node.shape else reshaped(found, node.shape)
    if rest or len(places) > 1:
        touched = reshaped(touched, (*lengths, *(1,) * len(rest)))
    (new,) = call(ufunc, (node, found))
    # What no place names stays as it is, negative zeros too.
    return choose(touched, astype(new, node.dtype), node)


def _labels(places: Sequence[Expr], lengths: Sequence[int]) -> Expr:
    # One number for the places of several lists; negative ones count from the end.
    labels: Expr | None = None
    for index, length in zip(places, lengths, strict=True):
        is_signed, index = index.dtype.kind == "i", astype(index, np.int64)
        if isinstance(index, Literal):
            index = literal(np.where(index.value < 0, index.value + length, index.value))
        elif is_signed:
            index = choose(call(np.less, (index, 0))[0], call(np.add, (index, length))[0], index)
        if len(lengths) > 1:
            # One outside must not become a place in the next line: no list names the place behind the last.
            (inside,) = call(
                np.logical_and, (*call(np.greater_equal, (index, 0)), *call(np.less, (index, length)))
            )
            index = choose(inside, index, literal(math.prod(lengths), np.int64))
        labels = index if labels is None else call(np.add, (call(np.multiply, (labels, length))[0], index))[0]
    assert labels is not None, "at least one list"
    return labels


def segments_reduced(
    ufunc: np.ufunc, array: object, indices: object, axis: int = 0, dtype: npt.DTypeLike | None = None
) -> Expr:
    """Return the expression of ``ufunc.reduceat``; the indices are known, in an array or a list.

    Raises
    ------
    IndexingError
        When an index is outside the axis.
    DTypeError
        When the ufunc has no loop for the dtypes.
    UnsupportedError
        For a ufunc in which grouping matters, and for many runs that overlap.
    """
    name = associative(ufunc, "reduceat")
    node = expression_of(array)
    if isinstance(indices, Handle):
        if indices.size > _MOST_ASKED:
            raise UnsupportedError(
                f"{name}.reduceat at {indices.size:,} indices that are in a DistArray: give them as a NumPy "
                "array, or number the runs and use mn.scatter_reduce"
            )
        indices = asked(indices.expression, f"where the runs of {name}.reduceat begin")
    starts = np.asarray(indices)
    starts = starts.astype(np.intp) if not starts.size else starts
    if not node.shape:
        raise DTypeError(f"{name}.reduceat of an array without axes")
    if starts.ndim != 1 or starts.dtype.kind not in "iu":
        raise IndexingError(
            f"reduceat: indices have shape {starts.shape} and dtype {starts.dtype}: give a 1-d array of "
            "integers"
        )
    place = one_axis(axis, node.ndim)
    length = node.shape[place]
    if starts.size and (starts.min() < 0 or starts.max() >= length):
        raise IndexingError(f"reduceat: an index is out of bounds for an axis of length {length}")
    element = element_of(ufunc, "reduceat", node.dtype, None if dtype is None else number_dtype(dtype))
    lines = turned(node, (place,))
    if name not in _TRUTHS:
        lines = astype(lines, element)
    return turned_back(astype(_runs(ufunc, lines, starts.astype(np.int64)), element), (place,))


def _runs(ufunc: np.ufunc, node: Expr, starts: np.ndarray) -> Expr:
    # Runs of which each begins behind the one before are labels that go up; any others are worked out alone.
    rest, length = node.shape[1:], node.shape[0]
    if node.sparse:
        node = Broadcast(node, node.shape)
    if not starts.size:
        return literal(np.zeros((0, *rest), node.dtype))
    ends = np.append(starts[1:], length)
    is_ordered = node.dtype.kind != "c" or ufunc not in (np.minimum, np.maximum)
    if (ends > starts).all() and ufunc.__name__ in _LABELLED and is_ordered:
        values = noted(sliced(node, 0, slice(int(starts[0]), None)))
        bounds = starts[1:] - starts[0]
        places = Handle(Create(Arange(0, 1, length - int(starts[0]), np.dtype(np.int64))))
        labels = recorded(np.searchsorted)(bounds, places, side="right").expression
        if len(rest) > 1:
            values = reshaped(values, (values.shape[0], math.prod(rest)))
        result: Expr = Scatter(values, labels, starts.size, _MONOIDS[ufunc.__name__])
        return result if result.shape == (starts.size, *rest) else reshaped(result, (starts.size, *rest))
    if starts.size > _FEW:
        raise UnsupportedError(
            f"np.{ufunc.__name__}.reduceat over {starts.size} slices is supported for increasing indices and "
            f"np.{', np.'.join(_LABELLED)}"
        )
    runs = map(slice, starts.tolist(), ends.tolist())
    return recorded(np.stack)([Handle(_run(ufunc, node, one)) for one in runs]).expression


def _run(ufunc: np.ufunc, node: Expr, run: slice) -> Expr:
    # A run of one element, or that ends before it begins, is its first element.
    if run.stop <= run.start + 1:
        return noted(Index(node, normalize_key(run.start, node.shape)))
    return noted(reductions.folded(noted(sliced(node, 0, run)), ufunc, 0, False, None, None, None))
