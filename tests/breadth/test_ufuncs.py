"""Every ufunc on every dtype, all of a dtype in one run."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import matnb as mn
from breadth.case import Case
from breadth.elementwise_cases import numbers, operands_of, ufuncs
from breadth.test_cases import compare

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32", "float64", "longdouble", "complex64", "complex128", "clongdouble")
DTYPES = ("bool", *INTEGERS, *FLOATS)
ANY = Case("", lambda xp: None, (), tolerance=1e-12)


pytestmark = pytest.mark.session("two threads")


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_ufunc_on_every_dtype(dtype: str) -> None:
    rng = np.random.default_rng(DTYPES.index(dtype))
    names, theirs, mine = [], [], []
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a cast of numbers that do not fit
        for name, ufunc in ufuncs().items():
            operands = operands_of(ufunc, dtype)
            if operands is None:
                with pytest.raises(mn.errors.DTypeError, match=name):
                    getattr(mn, name)(*(mn.zeros(3, dtype) for _ in range(ufunc.nin)))
                continue
            arrays = [numbers(one, 7, 5)(rng) for one in operands]
            expected, found = ufunc(*arrays), getattr(mn, name)(*arrays)
            for one, other in zip(*((r if ufunc.nout > 1 else (r,)) for r in (expected, found)), strict=True):
                assert other.dtype == one.dtype, name
                names.append(name), theirs.append(one), mine.append(other)
    values = mn.compute(*mine)
    for name, one, value in zip(names, theirs, values, strict=True):
        compare(value, one, ANY, f"{name} of {dtype}")
