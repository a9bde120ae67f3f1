"""Every call of ``*_cases`` against NumPy: values, shapes, dtypes, kinds of errors; and that none gathers."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn
from breadth.case import Case
from matnb.backend import worker
from matnb.blocks.formats import SPARSE_DTYPES

FAMILIES = sorted(path.stem for path in Path(__file__).parent.glob("*_cases.py") if path.stem != "test_cases")
CASES: list[Case] = [
    case for family in FAMILIES for case in importlib.import_module(f"breadth.{family}").CASES
]
NAMED = [pytest.param(case, id=f"{case.name}-{number}") for number, case in enumerate(CASES)]
LARGE = [pytest.param(case, id=f"{case.name}-{number}") for number, case in enumerate(CASES) if case.large]
FREE_BYTES = 64 * 1024  # what a driver may ask for to learn a length
SMALL_BYTES = 300 * 1024  # an array up to here is one block anyway


@pytest.fixture(scope="module", params=["interpret", "threads", "workers"])
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    options: dict[str, Any] = {
        "interpret": {"engine": "interpret"},
        "threads": {"workers": 1, "threads": 2},
        "workers": {"workers": 3, "threads": 1},
    }[request.param]
    with mn.start(**options):
        yield request.param
    mn.stop()


@pytest.fixture(scope="module")
def three_workers() -> Iterator[mn.session.Session]:
    with mn.start(workers=3, threads=1) as session:
        yield session
    mn.stop()


@pytest.mark.parametrize("case", NAMED)
def test_means_what_numpy_means(engine: str, case: Case) -> None:
    rng = np.random.default_rng(len(case.name) * 1000 + CASES.index(case))
    for way in ("plain", "cut", "sparse"):
        arrays = [make(rng) for make in case.makers]
        mine = [given(array, way, case, rng) for array in arrays]
        if way == "sparse" and not any(one.sparse for one in mine):
            continue
        with np.errstate(all="ignore"):
            try:
                theirs = case.call(np, *arrays)
            except Exception as error:
                refusal = error
            else:
                compare(case.call(mn, *mine), theirs, case, f"{case.name}, {way}")
                continue
        with pytest.raises(mn.MatnbError) as caught:
            compute(case.call(mn, *mine))
        kinds = tuple(kind for kind in (ValueError, TypeError, IndexError) if isinstance(refusal, kind))
        assert not kinds or isinstance(caught.value, kinds), f"{caught.value!r} where NumPy has {refusal!r}"


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
    found = value.compute()
    return found if isinstance(found, np.ndarray | np.generic) else found.todense()


def compare(mine: Any, theirs: Any, case: Case, text: str) -> None:
    """Fail unless what a call gave is what NumPy gives."""
    if isinstance(theirs, tuple | list):
        assert len(mine) == len(theirs), text
        for one, other in zip(mine, theirs, strict=True):
            compare(one, other, case, text)
        return
    if not isinstance(theirs, np.ndarray | np.generic):
        assert mine == theirs, text
        return
    assert mine.shape == theirs.shape, text
    assert mine.dtype == theirs.dtype, text
    found = np.asarray(compute(mine))
    assert found.shape == theirs.shape, text
    assert found.dtype == theirs.dtype, text
    tolerance = 1e-4 if theirs.dtype in (np.float32, np.complex64) else case.tolerance
    if theirs.dtype == np.float16:
        tolerance = 2e-3
    np.testing.assert_allclose(found, theirs, rtol=tolerance, atol=tolerance, err_msg=text)
    if not case.tolerance and theirs.dtype.kind == "f" and not getattr(mine, "sparse", False):
        np.testing.assert_array_equal(np.signbit(found), np.signbit(theirs), err_msg=f"signs of {text}")


@pytest.mark.parametrize("case", LARGE)
def test_nothing_gathers(
    three_workers: mn.session.Session, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    arrays = [make(rng) for make in case.large]
    # Each in six blocks, along its longest axis.
    mine = [
        mn.asarray(one, blocks=[6 if axis == int(np.argmax(one.shape)) else 1 for axis in range(one.ndim)])
        for one in arrays
    ]
    mn.compute(*(one.sum() for one in mine))
    largest, fetched = 0, 0
    execute, value = worker.execute, type(three_workers).value

    def watched(operator: Any, values: Any) -> Any:
        nonlocal largest
        found = execute(operator, values)
        largest = max(largest, int(getattr(found, "nbytes", 0)))
        return found

    def counted(session: Any, node: Any) -> Any:
        nonlocal fetched
        found = value(session, node)
        fetched += found.nbytes
        return found

    monkeypatch.setattr(worker, "execute", watched)
    monkeypatch.setattr(type(three_workers), "value", counted)
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
