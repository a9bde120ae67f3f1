"""Draws small programs that run alike on NumPy arrays and on DistArrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

import matnb as mn
from matnb.expr.nodes import Data, Expr, Literal, Regrid
from matnb.expr.traverse import topological

DTYPES = [np.dtype(name) for name in ("float64", "float32", "int64", "int32", "bool")]
UNARY = ["negative", "absolute", "square", "sign", "sqrt", "exp", "floor", "isfinite", "logical_not", "rint"]
BINARY = [
    "add",
    "subtract",
    "multiply",
    "maximum",
    "minimum",
    "less",
    "equal",
    "logical_and",
    "hypot",
    "arctan2",
]
REDUCTIONS = ["sum", "prod", "min", "max", "any", "all", "mean", "std", "count_nonzero"]


@dataclass
class Pair:
    """One value of a program in both worlds, and how it came about."""

    mine: object
    theirs: np.ndarray
    text: str


@st.composite
def lengths(draw: st.DrawFn, ndim: int) -> tuple[int, ...]:
    return tuple(draw(st.sampled_from([0, 1, 1, 2, 3, 5, 6])) for _ in range(ndim))


@st.composite
def arrays(draw: st.DrawFn, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Small whole numbers, so that sums are exact in any order."""
    seed = draw(st.integers(0, 2**31))
    values = np.random.default_rng(seed).integers(-3, 4, shape)
    return values.astype(dtype)


@st.composite
def cuts(draw: st.DrawFn, shape: tuple[int, ...]) -> list[list[int] | int | None] | None:
    if not shape or draw(st.booleans()):
        return None
    spec: list[list[int] | int | None] = []
    for length in shape:
        inner = draw(st.sets(st.integers(1, length - 1), max_size=3)) if length > 1 else set()
        spec.append(draw(st.sampled_from([None, 2, [0, *sorted(inner), length]])))
    return spec


@st.composite
def inputs(draw: st.DrawFn, make: Callable[..., object], shape: tuple[int, ...] | None = None) -> Pair:
    if shape is None:
        shape = draw(lengths(draw(st.integers(0, 3))))
    dtype = draw(st.sampled_from(DTYPES))
    spec = draw(cuts(shape))
    kinds = {1: ["given", "created"], 2: ["given", "given", "sparse", "sparse", "created", "pattern"]}
    kind = draw(st.sampled_from(kinds.get(len(shape), ["given"])))
    if kind == "created" and len(shape) == 2:
        k = draw(st.integers(-2, 2))
        mine = mn.eye(*shape, k=k, dtype=dtype, blocks=spec)
        return Pair(mine, np.eye(*shape, k=k, dtype=dtype), f"eye {dtype} {shape} {k} cut {spec}")
    if kind == "created":
        (number,) = shape
        element = np.dtype(np.int64) if dtype.kind == "b" else dtype
        mine = mn.arange(number, dtype=element, blocks=spec)
        return Pair(mine, np.arange(number, dtype=element), f"arange {number} {element} cut {spec}")
    values = draw(arrays(shape, dtype))
    if kind == "pattern":
        mine = (make(sp.csr_array(values), blocks=spec) != 0).astype(dtype)
        return Pair(mine, (values != 0).astype(dtype), f"pattern {dtype} {shape} cut {spec}")
    if kind == "sparse":
        mask = np.random.default_rng(draw(st.integers(0, 2**31))).random(shape) < 0.4
        values = np.where(mask, values, 0).astype(dtype)
        given = sp.csr_array(values)
        if draw(st.booleans()):  # stored zeros are entries too
            rows, columns = np.nonzero(mask)
            given = sp.csr_array((values[rows, columns], (rows, columns)), shape=shape)
        return Pair(make(given, blocks=spec), values, f"sparse {dtype} {shape} cut {spec}")
    return Pair(make(values, blocks=spec), values, f"dense {dtype} {shape} cut {spec}")


def _apply(function: Callable[..., object], *pairs: Pair, text: str) -> Pair:
    with np.errstate(all="ignore"):
        theirs = np.asarray(function(*(pair.theirs for pair in pairs)))
    mine = function(*(pair.mine for pair in pairs))
    return Pair(mine, theirs, f"{text}({'; '.join(pair.text for pair in pairs)})")


def _is_sparse(pair: Pair) -> bool:
    return bool(getattr(pair.mine, "sparse", False))


def _masked(draw: st.DrawFn, left: Pair, right: Pair, mask: Pair) -> Pair:
    chosen = mask.theirs != 0
    kept = mask.mine
    if draw(st.booleans()):
        chosen, kept = ~chosen, np.logical_not(kept)
    with np.errstate(all="ignore"):
        theirs = np.where(
            chosen, left.theirs @ right.theirs, np.zeros((), (left.theirs @ right.theirs).dtype)
        )
    mine = mn.matmul(left.mine, right.mine, mask=kept)
    return Pair(mine, theirs, f"masked({left.text}; {right.text}; {mask.text})")


@st.composite
def steps(draw: st.DrawFn, make: Callable[..., object], one: Pair) -> Pair:
    """One more operation on a value."""
    shape = one.theirs.shape
    kind = draw(
        st.sampled_from(
            [
                *("unary", "binary", "scalar", "reduce", "index", "transpose"),
                *("matmul", "sampled", "masked", "astype", "where", "cut"),
            ]
        )
    )
    is_bool = one.theirs.dtype.kind == "b"
    if kind == "unary":
        name = draw(st.sampled_from(UNARY))
        if is_bool and name in ("negative", "sign", "floor", "rint", "absolute", "square"):
            name = "logical_not"
        return _apply(getattr(np, name), one, text=name)
    if kind == "binary":
        name = draw(st.sampled_from(BINARY))
        if is_bool and name == "subtract":
            name = "add"
        other_shape = tuple(draw(st.sampled_from([length, length, 1])) for length in shape)
        other = draw(inputs(make, other_shape[draw(st.integers(0, len(shape))) :]))
        if name == "subtract" and other.theirs.dtype.kind == "b":
            name = "maximum"
        swapped = draw(st.booleans())
        return _apply(getattr(np, name), *((other, one) if swapped else (one, other)), text=name)
    if kind == "scalar":
        number = draw(st.sampled_from([2, -1, 0, 0.5, 1.5]))
        name = draw(st.sampled_from(["add", "multiply", "maximum", "greater"]))
        return _apply(lambda x: getattr(np, name)(x, number), one, text=f"{name} {number}")
    if kind == "reduce":
        name = draw(st.sampled_from(REDUCTIONS))
        axis = draw(st.sampled_from([None, *range(len(shape))]))
        over = shape if axis is None else (shape[axis],)
        if 0 in over and name in ("min", "max", "mean", "std"):
            name = "sum"
        keepdims = draw(st.booleans())
        return _apply(
            lambda x: getattr(np, name)(x, axis=axis, keepdims=keepdims),
            one,
            text=f"{name} {axis} {keepdims}",
        )
    if kind == "index":
        key = tuple(
            draw(
                st.one_of(st.slices(length), st.integers(-length, length - 1))
                if length
                else st.just(slice(None))
            )
            for length in shape[: draw(st.integers(0, len(shape)))]
        )
        if draw(st.booleans()):
            key = (*key, None)
        return _apply(lambda x: x[key], one, text=f"index {key}")
    if kind == "transpose":
        axes = tuple(draw(st.permutations(range(len(shape)))))
        return _apply(lambda x: np.transpose(x, axes), one, text=f"transpose {axes}")
    if kind in ("matmul", "sampled", "masked") and not np.isfinite(one.theirs).all():
        return one  # what meets an absent element is absent, which NumPy's NaN is not
    if kind == "matmul":
        if not shape or len(shape) > 2:
            return one
        other = draw(inputs(make, draw(st.sampled_from([(shape[-1],), (shape[-1], 3), (shape[-1], 1)]))))
        return _apply(np.matmul, one, other, text="matmul")
    if kind in ("sampled", "masked"):
        if len(shape) != 2:
            return one
        other = draw(inputs(make, (shape[1], draw(st.sampled_from([1, 3])))))
        left = draw(
            st.sampled_from([one, _apply(np.transpose, _apply(np.transpose, one, text="t"), text="t")])
        )
        mask = draw(inputs(make, (shape[0], other.theirs.shape[1])))
        if kind == "sampled":
            return _apply(lambda x, y, z: (x @ y) * z, left, other, mask, text="sampled")
        if np.result_type(left.theirs, other.theirs) not in DTYPES:
            return one  # float16 of a truth value's exp: refused where it is sparse
        return _masked(draw, left, other, mask)
    if kind == "astype":
        dtype = draw(st.sampled_from(DTYPES))
        if one.theirs.dtype.kind == "f" and dtype.kind != "f":
            return one  # what NaN and inf become as whole numbers is the platform's choice
        return _apply(lambda x: x.astype(dtype), one, text=f"astype {dtype}")
    if kind == "cut":
        spec = draw(cuts(shape))
        return Pair(make(one.mine, blocks=spec), one.theirs, f"cut {spec}({one.text})")
    other = draw(inputs(make, shape))
    return _apply(lambda x, y: np.where(x, y, 1), one, other, text="where")


@st.composite
def programs(draw: st.DrawFn, make: Callable[..., object]) -> list[Pair]:
    """A chain of operations; every value on the way is a result."""
    values = [draw(inputs(make))]
    for _ in range(draw(st.integers(1, 4))):
        values.append(draw(steps(make, values[-1])))
    return values


def with_state(roots: Sequence[Expr], one: mn.DistArray) -> list[mn.DistArray]:
    """Return the same program with every given array multiplied by the state, so that all runs inside."""
    new: dict[Expr, Expr] = {}
    for node in topological(roots):
        if isinstance(node, Data | Regrid | Literal) and node.shape:
            new[node] = (mn.DistArray(node) * one.astype(node.dtype)).expression
        else:
            new[node] = node.with_operands(*(new[operand] for operand in node.operands))
    return [mn.DistArray(new[root]) for root in roots]
