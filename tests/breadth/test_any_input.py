"""Functions of NumPy on any input: lengths of 0 and 1, all dtypes, NaN, any cuts, sparse, not contiguous."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import matnb as mn
from breadth.case import Case
from breadth.test_cases import compare, compute
from matnb.blocks.formats import SPARSE_DTYPES

DTYPES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
]
REDUCTIONS = (
    *("sum", "prod", "min", "max", "any", "all", "mean", "var", "std", "count_nonzero", "ptp"),
    *("nansum", "nanprod", "nanmin", "nanmax", "nanmean", "nanvar", "nanstd", "median", "nanmedian"),
)
PLACES = ("argmin", "argmax", "nanargmin", "nanargmax")
ALONG = ("cumsum", "cumprod", "nancumsum", "diff", "sort", "flip")
WHOLE = (
    *(
        "ravel",
        "transpose",
        "squeeze",
        "tril",
        "triu",
        "trace",
        "diagonal",
        "nonzero",
        "flatnonzero",
        "argwhere",
    ),
    *("unique", "real", "imag", "conj", "isnan", "isfinite", "signbit", "atleast_2d", "fliplr", "rot90"),
)
PAIRS = (
    *("concatenate", "stack", "isin", "union1d", "intersect1d", "setdiff1d", "outer", "kron", "dot", "inner"),
    *(
        "where",
        "searchsorted",
        "array_equal",
        "matmul",
        "vdot",
        "copysign",
        "hypot",
        "maximum",
        "fmin",
        "power",
    ),
)
PRODUCTS = ("outer", "kron", "dot", "inner", "matmul", "vdot")
# Sums of halves of these dtypes depend on the order, and NumPy's own order is not promised.
ROUGH = {"float16": 2e-2, "float32": 1e-4, "complex64": 1e-4}


@pytest.fixture(scope="module", params=[1, 3])
def workers(request: pytest.FixtureRequest) -> Iterator[int]:
    with mn.start(workers=request.param, threads=1):
        yield request.param
    mn.stop()


@dataclass(frozen=True)
class Input:
    """An array, and a handle on it."""

    theirs: np.ndarray
    mine: mn.DistArray


@st.composite
def inputs(draw: st.DrawFn, ndim: int | None = None, dtype: str | None = None) -> Input:
    axes = draw(st.integers(0, 3)) if ndim is None else ndim
    shape = tuple(draw(st.sampled_from([0, 1, 1, 2, 3, 5])) for _ in range(axes))
    kind = np.dtype(dtype or draw(st.sampled_from(DTYPES)))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    # Not -1 as the largest of 64 bits, which is as a double what others are too for set operations.
    values = rng.integers(0 if kind.kind == "u" else -3, 4, shape).astype(kind)
    if kind.kind in "fc":
        odd = rng.random(shape)
        values = np.where(odd < 0.1, kind.type(np.nan), values).astype(kind)
        values = np.where((odd > 0.1) & (odd < 0.15), kind.type(-0.0), values).astype(kind)
        values = np.where(odd > 0.95, kind.type(np.inf), values).astype(kind)
    cuts: list[Any] = [
        draw(st.sampled_from([None, 2, [0, 1, length]])) if length > 1 else None for length in shape
    ]
    if axes == 2 and kind in SPARSE_DTYPES and draw(st.booleans()):
        values = values + kind.type(0)  # an absent zero has no sign
        return Input(values, mn.asarray(sp.csr_array(values), blocks=cuts))
    given = np.asfortranarray(values) if axes and draw(st.booleans()) else values
    return Input(values, mn.asarray(given, blocks=cuts if axes else None))


def check(call: Callable[..., Any], *arrays: Input, text: str) -> None:
    """Hold matnb to what NumPy gives, or to an error of the kind that NumPy raises."""
    rough = max((ROUGH.get(one.theirs.dtype.name, 0.0) for one in arrays), default=0.0)
    case = Case(text, call, (), tolerance=max(rough, 1e-9))
    shapes = ", ".join(f"{one.theirs.dtype}{one.theirs.shape}{' sparse' * one.mine.sparse}" for one in arrays)
    text = f"{text} of {shapes}"
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        refusals: tuple[type[Exception], ...] = ()
        try:
            theirs = call(np, *(one.theirs for one in arrays))
        except (ValueError, TypeError, IndexError) as error:
            refusals = tuple(kind for kind in (ValueError, TypeError, IndexError) if isinstance(error, kind))
            text = f"{text}, where NumPy has {error!r}"
        if refusals:
            with pytest.raises((ValueError, TypeError, IndexError)) as caught:
                compute(call(mn, *(one.mine for one in arrays)))
            assert isinstance(caught.value, refusals), f"{caught.value!r}: {text}"
            return
        compare(call(mn, *(one.mine for one in arrays)), theirs, case, text)


QUIET = settings(
    max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@QUIET
@given(data=st.data(), name=st.sampled_from(REDUCTIONS), keepdims=st.booleans())
def test_reductions(workers: int, data: st.DataObject, name: str, keepdims: bool) -> None:
    one = data.draw(inputs())
    axes = [None, *range(-one.theirs.ndim, one.theirs.ndim)]
    axis = data.draw(st.sampled_from(axes))
    # Of sums of NaN and infinities at several places NumPy itself may give either.
    check(
        lambda xp, x: getattr(xp, name)(x, axis=axis, keepdims=keepdims),
        one,
        text=f"{name}(axis={axis}, keepdims={keepdims})",
    )


@QUIET
@given(data=st.data(), name=st.sampled_from(PLACES + ALONG))
def test_along_an_axis(workers: int, data: st.DataObject, name: str) -> None:
    one = data.draw(inputs())
    axis = data.draw(st.sampled_from([*range(-one.theirs.ndim, one.theirs.ndim + 1)]))
    check(lambda xp, x: getattr(xp, name)(x, axis=axis), one, text=f"{name}(axis={axis})")


@QUIET
@given(data=st.data(), name=st.sampled_from(WHOLE))
def test_of_one_array(workers: int, data: st.DataObject, name: str) -> None:
    one = data.draw(inputs())
    assume(one.theirs.ndim or name not in ("tril", "triu"))  # NumPy fails inside of them
    check(lambda xp, x: getattr(xp, name)(x), one, text=name)


@QUIET
@given(data=st.data(), name=st.sampled_from(PAIRS))
def test_of_two_arrays(workers: int, data: st.DataObject, name: str) -> None:
    one = data.draw(inputs())
    other = data.draw(inputs(ndim=data.draw(st.sampled_from([one.theirs.ndim, 1]))))
    if name in PRODUCTS and (one.mine.sparse or other.mine.sparse):
        # What is absent stays so in a product, whatever it meets: 0 times inf is not NaN there.
        assume(np.isfinite(one.theirs).all() and np.isfinite(other.theirs).all())
    if name == "where":
        check(lambda xp, x, y: xp.where(x > 0, x, y), one, other, text="where")
        return
    if name in ("concatenate", "stack"):
        check(lambda xp, x, y: getattr(xp, name)([x, y]), one, other, text=name)
        return
    if name == "searchsorted":
        assume(one.theirs.ndim == 1 and one.theirs.dtype.kind != "c")
        check(lambda xp, x, y: xp.searchsorted(xp.sort(x), y), one, other, text=name)
        return
    check(lambda xp, x, y: getattr(xp, name)(x, y), one, other, text=name)
