"""Every function over nasty values gives one answer however the array is cut, and it is NumPy's.

The functions are those that ``standard_names`` lists, tried with one array and with two: a new one is swept
from the start.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from standard_names import DAILY, STANDARD

import matnb as mn
from matnb.blocks.formats import SPARSE_DTYPES

FLOATS = np.array([0.0, -0.0, 1, -1, 0.5, 2, 3, np.inf, -np.inf, np.nan, 5e-324, 1e300, -1e300])
DTYPES = ("float64", "complex128", "float32", "int64", "int8", "uint8", "bool")
SHAPES = ((7,), (5, 4), (0,), (1,))
CUTS = (1, 2, 3, None)  # blocks of an axis; None for one an element
SECTIONS = (
    "Elementwise functions", "Linear algebra functions", "Manipulation functions", "Searching functions",
    "Set functions", "Sorting functions", "Statistical functions", "Utility functions", "Reductions",
    "Scans and differences", "Choosing", "Order and sets", "Counting", "Shapes", "Matrices", "Elementwise",
)  # fmt: skip
# Left out: what NumPy leaves open, or takes more of than matnb's stricter signature, or overruns memory with.
UNCOMPARED = {
    "partition", "argpartition", "unique_values",  # their order is open
    "clip with 2", "clip of two", "einsum with 2",  # matnb takes what NumPy wants another argument for
    "bincount", "bincount of two", "bincount with 2",  # NumPy writes outside its memory for 2**63 - 1
    "histogram_bin_edges of two",  # edges that are a handle are checked where they are used
}  # fmt: skip
# Of nothing NumPy takes indices of any dtype, one NaN or an IndexError for no quantiles, and a histogram
# without bins.
UNCOMPARED_OF_NOTHING = {
    "take of two", "quantile of two", "percentile of two", "nanquantile of two", "nanpercentile of two",
    "histogram of two",
}  # fmt: skip
# Sums of products: NumPy's BLAS adds the four parts of complex products in an order of its own, and of
# infinities and NaN among them only that they are not finite follows from the operands.
PRODUCTS = {
    "matmul", "dot", "vdot", "vecdot", "inner", "outer", "kron", "tensordot", "einsum", "cov", "corrcoef",
    "cross", "trapezoid", "average", "multi_dot", "matrix_power", "linalg.norm", "linalg.matmul",
    "linalg.vecdot", "linalg.tensordot", "linalg.outer", "linalg.cross", "multiply.reduceat", "multiply.at",
    "vander", "polyval", "gradient", "interp", "nanvar", "nanstd", "var", "std", "convolve", "correlate",
}  # fmt: skip
# Where values of 1e300 and more cancel, what is left is rounding, which follows the order of additions.
CANCELLING = {"cov", "corrcoef", "cumsum", "nancumsum", "cumulative_sum", "trapezoid"}
SETS = {"unique", "unique_all", "unique_counts", "unique_inverse", "unique_values", "union1d", "intersect1d",
        "setdiff1d", "setxor1d"}  # fmt: skip


@dataclass(frozen=True)
class Call:
    """A call on arrays, NumPy's or handles, and whether it is one of the products."""

    name: str
    call: Callable[..., Any]


def named() -> Iterator[Call]:
    """Give each listed function with one array, along an axis, with two arrays, and with an array and 2."""
    sections = {**STANDARD, **DAILY}
    for name in sorted({name for section in SECTIONS for name in sections[section].split()}):

        def function(xp: Any, name: str = name) -> Any:
            for part in name.split("."):
                xp = getattr(xp, part)
            return xp

        stable = {"kind": "stable"} if name == "argsort" else {}
        calls = (
            Call(name, lambda xp, x, y, f=function, s=stable: f(xp)(x, **s)),
            Call(f"{name} along", lambda xp, x, y, f=function, s=stable: f(xp)(x, axis=0, **s)),
            Call(f"{name} of two", lambda xp, x, y, f=function: f(xp)(x, y)),
            Call(f"{name} with 2", lambda xp, x, y, f=function: f(xp)(x, 2)),
        )
        yield from (one for one in calls if not {name, one.name} & UNCOMPARED)


def nasty(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Return an array of nasty values: of integers the extremes of their dtype."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return rng.random(shape) < 0.5
    if kind in "iu":
        bounds = np.iinfo(dtype)
        return rng.choice(np.array([0, 1, 2, 3, bounds.max, bounds.max - 1, bounds.min], dtype), shape)
    values = rng.choice(FLOATS, shape).astype(complex if kind == "c" else float)
    if kind == "c":
        values.imag = np.where(rng.random(shape) < 0.5, 0, rng.choice(FLOATS, shape))
    with np.errstate(all="ignore"):
        return values.astype(dtype)


def cut(array: np.ndarray, count: int | None, sparse: bool = False) -> mn.DistArray:
    blocks = [max(1, min(length, count or length)) for length in array.shape]
    return mn.asarray(sp.csr_array(array) if sparse else array, blocks=blocks or None)


def quiet(call: Callable[[], Any]) -> Any:
    """Return what a call gives, or its error."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call()
        except Exception as error:  # what is refused is compared as well
            return error


def moderate(values: np.ndarray) -> np.ndarray:
    """Return the values with ones for those that are finite and large."""
    with np.errstate(all="ignore"):
        return np.where(np.isfinite(values) & (abs(values.astype(complex)) > 1e6), 1, values).astype(
            values.dtype
        )


def flat(result: Any) -> list[Any]:
    return [one for part in result for one in flat(part)] if isinstance(result, tuple | list) else [result]


class Comparison:
    """Collects calls on both sides, computes all of matnb's in one run, and lists the differences."""

    def __init__(self) -> None:
        self._pairs: list[tuple[str, str, Any, Any]] = []
        self._is_complex = False

    def add(self, call: Call, arrays: list[np.ndarray], counts: tuple[int | None, ...], sparse: bool) -> None:
        if call.name.split()[0] in CANCELLING:
            arrays = [moderate(one) for one in arrays]
        expected = quiet(lambda: call.call(np, *(one.copy() for one in arrays)))
        if isinstance(expected, AttributeError | NotImplementedError):
            return
        if call.name in UNCOMPARED_OF_NOTHING and not arrays[0].size:
            return
        if call.name.endswith("of two") and isinstance(expected, TypeError) and arrays[1].size == 1:
            return  # an array of one element stands for a number in matnb
        self._is_complex |= any(one.dtype.kind == "c" for one in arrays)
        for count in counts:
            found = quiet(lambda count=count: call.call(mn, *(cut(one, count, sparse) for one in arrays)))
            text = f"{call.name} of {[one.tolist() for one in arrays]} {arrays[0].dtype} in {count} blocks"
            name = call.name.split()[0]
            self._pairs.append((name, text + " sparse" * sparse, found, expected))

    def differences(self) -> list[str]:
        handles = [one for _, _, found, _ in self._pairs for one in flat(found) if type(one) is mn.DistArray]
        values = quiet(lambda: mn.compute(*handles))
        if isinstance(values, Exception):
            values = [quiet(one.compute) for one in handles]
        known = dict(zip(map(id, handles), values, strict=True))
        failures = []
        for name, text, found, expected in self._pairs:
            results = [known.get(id(one), one) for one in flat(found)]
            failed = next((one for one in results if isinstance(one, Exception)), None)
            if isinstance(expected, Exception):
                if failed is None:
                    failures.append(f"{text}: {results} where NumPy has {expected!r}")
            elif failed is not None:
                # What is not there is refused in words of its own; a kernel must not fail on what it gets.
                if not isinstance(failed, mn.MatnbError) or isinstance(failed, mn.errors.KernelError):
                    failures.append(f"{text}: {failed!r} where NumPy has {expected}")
            elif len(results) != len(flat(expected)) or not all(
                same(name, one, other, self._is_complex)
                for one, other in zip(results, flat(expected), strict=True)
            ):
                failures.append(f"{text}: {results} where NumPy has {expected}")
        return failures


def all_same(name: str, mine: list[Any], theirs: list[Any], is_complex: bool) -> bool:
    pairs = zip(mine, theirs, strict=False)
    return len(mine) == len(theirs) and all(same(name, one, other, is_complex) for one, other in pairs)


def same(name: str, mine: Any, theirs: Any, is_complex: bool) -> bool:
    """Tell whether two results are the same, up to rounding and to what NumPy leaves open."""
    mine = np.asarray(mine.todense() if hasattr(mine, "todense") else mine)
    theirs = np.asarray(theirs)
    if mine.dtype != theirs.dtype or mine.shape != theirs.shape:
        return False
    if theirs.dtype.kind not in "fc":
        return bool(np.array_equal(mine, theirs))
    tolerance = {"float16": 4e-3, "float32": 1e-4, "complex64": 1e-4}.get(theirs.dtype.name, 1e-9)
    if (is_complex or theirs.dtype.kind == "c") and name in PRODUCTS:
        finite = np.isfinite(theirs)
        if not np.array_equal(np.isfinite(mine), finite):
            return False
        mine, theirs = mine[finite], theirs[finite]
    if theirs.dtype.kind == "c" and name in (*SETS, "nanmedian"):  # which NaN stands for several is open
        mine, theirs = (np.where(np.isnan(one), np.nan, one) for one in (mine, theirs))
    with np.errstate(all="ignore"):
        return all(
            np.allclose(one, other, rtol=tolerance, atol=1e-30, equal_nan=True)
            for one, other in ((mine.real, theirs.real), (mine.imag, theirs.imag))
        )


pytestmark = pytest.mark.session("interpreter", "two threads")


def swept(
    calls: list[Call], dtype: str, shape: tuple[int, ...], counts: tuple[int | None, ...], seed: int = 0
) -> list[str]:
    """Return how calls on nasty arrays differ from NumPy's."""
    rng = np.random.default_rng([seed, *shape])
    comparison = Comparison()
    arrays = [nasty(rng, shape, dtype) for _ in range(2)]
    for call in calls:
        comparison.add(call, arrays, counts, False)
        is_matrix = len(shape) == 2 and np.dtype(dtype) in SPARSE_DTYPES
        if is_matrix and call.name.split()[0] in ACROSS:
            comparison.add(call, arrays, counts, True)
    return comparison.differences()


# Whose results follow from an order of the elements, or from what some blocks make before others.
ACROSS = {
    "prod", "min", "max", "argmin", "argmax", "nanmin", "nanmax", "nanargmax", "cumprod", "median",
    "nanmedian", "sort", "argsort", "unique", "unique_inverse", "interp",
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_functions_across_blocks(kind: str, dtype: str) -> None:
    calls = [call for call in named() if call.name in ACROSS]
    failures = swept(calls, dtype, (7,), (2, None) if kind == "two threads" else (1,))
    assert not failures, "\n".join(failures)


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_listed_function(kind: str, dtype: str, shape: tuple[int, ...]) -> None:
    counts = CUTS[:1]
    if kind == "two threads":
        counts = CUTS if dtype in ("float64", "complex128") and shape == (7,) else (3,)
    failures = swept(list(named()), dtype, shape, counts, 1)
    assert not failures, "\n".join(failures)


def test_the_median_of_complex_numbers_is_nan_where_a_part_is() -> None:
    values = np.array([1 + 2j, complex(np.nan, 0), 0j, complex(0, np.inf), 1 - 2j])
    expected = quiet(lambda: np.nanmedian(values))
    for count in CUTS:
        assert np.isnan(quiet(np.median(cut(values, count)).compute))
        np.testing.assert_array_equal(quiet(np.nanmedian(cut(values, count)).compute), expected)


def test_interp_refuses_complex_places_and_ends_of_real_heights() -> None:
    x = cut(np.array([0.5, 1.5]), 2)
    for call in (
        lambda: np.interp(x + 1j, [0, 1], [2.0, 3.0]),
        lambda: np.interp(x, [0, 1j], [2.0, 3.0]),
        lambda: np.interp(x, [0, 1], [2.0, 3.0], left=np.array(1j)),
    ):
        with pytest.raises(TypeError):
            call()
    np.testing.assert_array_equal(np.interp(x, [0, 1], [2j, 3.0]), np.interp([0.5, 1.5], [0, 1], [2j, 3.0]))
