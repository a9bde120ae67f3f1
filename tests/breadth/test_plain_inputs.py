"""Every call of ``*_cases`` on NumPy's own arrays: matnb's functions take what NumPy's do."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import matnb as mn
from breadth.test_cases import CASES, compare

pytestmark = pytest.mark.session("interpreter")


@pytest.mark.parametrize("family", sorted({case.call.__globals__["__name__"] for case in CASES}))
def test_functions_take_numpys_arrays(family: str) -> None:
    rng = np.random.default_rng(0)
    for case in CASES:
        if case.call.__globals__["__name__"] != family:
            continue
        arrays = [make(rng) for make in case.makers]
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                theirs = case.call(np, *(one.copy() for one in arrays))
            except Exception:  # what is refused is compared elsewhere
                continue
            try:
                mine = case.call(mn, *arrays)
            except mn.errors.UnsupportedError as error:
                if "ndarray" not in str(error):  # which nothing is written into
                    raise
                continue
            compare(mine, theirs, case, case.name)
