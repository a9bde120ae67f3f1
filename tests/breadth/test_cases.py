"""Every call of ``*_cases`` against NumPy: values, shapes, dtypes, kinds of errors; and that none gathers."""

from __future__ import annotations

import importlib
import math
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn
from breadth.case import Case
from matnb.backend.tasks import executor
from matnb.blocks.formats import SPARSE_DTYPES

FAMILIES = sorted(
    path.stem for path in Path(__file__).parent.glob("*_cases.py") if not path.stem.startswith("test_")
)
CASES: list[Case] = [
    case for family in FAMILIES for case in importlib.import_module(f"breadth.{family}").CASES
]
BATCH = 24  # cases whose results are computed together
BATCHES = [
    pytest.param(cases[begin : begin + BATCH], id=f"{family.removesuffix('_cases')}-{begin // BATCH}")
    for family in FAMILIES
    for cases in [importlib.import_module(f"breadth.{family}").CASES]
    for begin in range(0, len(cases), BATCH)
]
LARGE = [pytest.param(case, id=f"{case.name}-{number}") for number, case in enumerate(CASES) if case.large]
FREE_BYTES = 64 * 1024  # what a driver may ask for to learn a length
SMALL_BYTES = 300 * 1024  # an array up to here is one block anyway


ON_EACH = pytest.mark.session(
    "interpreter", pytest.param("two threads", marks=pytest.mark.slow), "three workers"
)


@dataclass(frozen=True)
class Asked:
    """What a call gave, not computed yet, and what NumPy's gave."""

    case: Case
    mine: Any
    theirs: Any
    text: str


@ON_EACH
@pytest.mark.parametrize("cases", BATCHES)
def test_means_what_numpy_means(kind: str, cases: list[Case]) -> None:
    asked: list[Asked] = []
    failures: list[str] = []
    for case in cases:
        rng = np.random.default_rng(len(case.name) * 1000 + cases.index(case))
        # Arrays of one block are computed on workers by the engine with threads, among the slow tests.
        for way in ("cut", "sparse") if kind == "three workers" else ("plain", "cut", "sparse"):
            arrays = [make(rng) for make in case.makers]
            mine = [given(array, way, case, rng) for array in arrays]
            if way == "sparse" and not any(one.sparse for one in mine):
                continue
            text = f"{case.name} (case {cases.index(case)} of the batch), {way}"
            try:
                asked += called(case, arrays, mine, text)
            except Exception:  # any failure is told, with all the others
                failures.append(f"{text}:\n{traceback.format_exc(limit=-4)}")
    values = computed([one.mine for one in asked])
    for one, value in zip(asked, values, strict=True):
        try:
            compare(one.mine, one.theirs, one.case, one.text, value)
        except Exception:  # see above
            failures.append(f"{one.text}:\n{traceback.format_exc(limit=-4)}")
    if failures:
        pytest.fail("\n\n".join(failures), pytrace=False)


def called(case: Case, arrays: list[np.ndarray], mine: list[mn.DistArray], text: str) -> list[Asked]:
    """Return what a call gave on both sides; nothing where both refuse."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's of means of nothing
        warnings.simplefilter("ignore", UserWarning)  # NumPy's of where= without out=
        try:
            theirs = case.call(np, *arrays)
        except Exception as error:
            refusal = error
        else:
            return [Asked(case, case.call(mn, *mine), theirs, text)]
    found: mn.MatnbError | None = None
    try:
        compute(case.call(mn, *mine))
    except mn.MatnbError as error:
        found = error
    assert found is not None, f"nothing is refused where NumPy has {refusal!r}"
    kinds = tuple(kind for kind in (ValueError, TypeError, IndexError) if isinstance(refusal, kind))
    assert not kinds or isinstance(found, kinds), f"{found!r} where NumPy has {refusal!r}"
    return []


def computed(results: list[Any]) -> list[Any]:
    """Return the values of what calls gave, from one run where it is possible."""
    handles = [one for result in results for one in _handles(result)]
    try:
        found = iter(mn.compute(*handles))
    except Exception:  # which it is shows where each is computed alone
        return [_UNKNOWN] * len(results)
    return [_filled(result, found) for result in results]


_UNKNOWN = object()  # the value of what is computed when it is compared


def _handles(result: Any) -> Iterator[mn.DistArray]:
    if isinstance(result, tuple | list):
        for one in result:
            yield from _handles(one)
    elif type(result) is mn.DistArray:
        yield result


def _filled(result: Any, found: Iterator[Any]) -> Any:
    # A result with NumPy's arrays for its handles.
    if isinstance(result, tuple | list):
        return tuple(_filled(one, found) for one in result)
    return _plain(next(found)) if type(result) is mn.DistArray else _UNKNOWN


def _plain(value: Any) -> Any:
    return value if isinstance(value, np.ndarray | np.generic) else value.todense()


def given(array: np.ndarray, way: str, case: Case, rng: np.random.Generator) -> mn.DistArray:
    """Return an array as a handle: as it is, cut anywhere and not contiguous, or sparse and cut."""
    if way == "plain" or not array.ndim:
        return mn.asarray(array)
    cuts = [
        [0, *sorted({int(one) for one in rng.integers(1, length, 2)}), length] if length > 1 else None
        for length in array.shape
    ]
    if way == "sparse" and case.sparse and array.ndim == 2 and array.dtype in SPARSE_DTYPES:
        return mn.asarray(sp.csr_array(array), blocks=cuts)
    return mn.asarray(np.asfortranarray(array), blocks=cuts if array.ndim else None)


def compute(value: Any) -> Any:
    """Return NumPy's array or scalar of what a call gave."""
    if isinstance(value, tuple | list):
        return tuple(compute(one) for one in value)
    if not hasattr(value, "compute"):
        return value
    return _plain(value.compute())


def compare(mine: Any, theirs: Any, case: Case, text: str, value: Any = _UNKNOWN) -> None:
    """Fail unless what a call gave is what NumPy gives; ``value`` is what was computed, if it is known."""
    if isinstance(theirs, tuple | list):
        assert len(mine) == len(theirs), text
        values = [_UNKNOWN] * len(theirs) if value is _UNKNOWN else value
        for one, other, known in zip(mine, theirs, values, strict=True):
            compare(one, other, case, text, known)
        return
    if not isinstance(theirs, np.ndarray | np.generic):
        assert mine == theirs, text
        return
    assert mine.shape == theirs.shape, text
    assert mine.dtype == theirs.dtype, text
    found = np.asarray(compute(mine) if value is _UNKNOWN else value)
    assert found.shape == theirs.shape, text
    assert found.dtype == theirs.dtype, text
    tolerance = 1e-4 if theirs.dtype in (np.float32, np.complex64) else case.tolerance
    if theirs.dtype == np.float16:
        tolerance = 2e-3
    np.testing.assert_allclose(found, theirs, rtol=tolerance, atol=tolerance, err_msg=text)
    if not case.tolerance and theirs.dtype.kind == "f" and not getattr(mine, "sparse", False):
        np.testing.assert_array_equal(np.signbit(found), np.signbit(theirs), err_msg=f"signs of {text}")


@pytest.mark.session("three workers")
@pytest.mark.parametrize("case", LARGE)
def test_nothing_gathers(session: mn.session.Session, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    arrays = [make(rng) for make in case.large]
    # Each in six blocks, along its longest axis.
    mine = [
        mn.asarray(one, blocks=[6 if axis == int(np.argmax(one.shape)) else 1 for axis in range(one.ndim)])
        for one in arrays
    ]
    mn.compute(*(one.sum() for one in mine))
    largest, fetched = 0, 0
    runner_of, value = executor.runner_of, type(session).value

    def watched(operator: Any, share: Any) -> Any:
        run = runner_of(operator, share)

        def noted(values: Any, memory: Any) -> Any:
            nonlocal largest
            found = run(values, memory)
            largest = max(largest, int(getattr(found, "nbytes", 0)))
            return found

        return noted

    def counted(of: Any, node: Any) -> Any:
        nonlocal fetched
        found = value(of, node)
        fetched += found.nbytes
        return found

    monkeypatch.setattr(executor, "runner_of", watched)
    monkeypatch.setattr(type(session), "value", counted)
    results = case.call(mn, *mine)
    results = list(results) if isinstance(results, tuple | list) else [results]
    for one in results:
        if isinstance(one, mn.DistArray):
            one.persist()
    sizes = [one.nbytes for one in arrays] + [
        math.prod(one.shape) * one.dtype.itemsize for one in results if isinstance(one, mn.DistArray)
    ]
    assert largest, "nothing ran"
    assert fetched <= FREE_BYTES, f"{fetched} bytes reach the driver"
    assert largest <= max(0.55 * max(sizes), SMALL_BYTES), (
        f"a block of {largest} bytes where the largest array has {max(sizes)}"
    )
