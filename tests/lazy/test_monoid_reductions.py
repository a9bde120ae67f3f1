"""Reductions by a monoid: of sparse arrays over stored entries alone, of dense ones over all elements."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn
from matnb.blocks.semiring import MONOIDS
from matnb.errors import OptionError

ENGINES = {"interpret": {"engine": "interpret"}, "threads": {"workers": 1, "threads": 2}}


@pytest.mark.parametrize("engine", ENGINES)
def test_absent_elements_take_no_part(engine: str) -> None:
    rng = np.random.default_rng(3)
    stored = rng.random((30, 20)) < 0.1
    stored[4], stored[:, 7] = False, False  # nothing is stored there
    elements = np.where(stored, rng.integers(-3, 4, (30, 20)), 0)  # stored zeros among them
    rows, columns = np.nonzero(stored)
    asked, wanted = [], []
    with mn.start(**ENGINES[engine]):
        for number, axis in enumerate((None, 0, 1, ())):
            for dtype in ("float64", "int32", "bool"):
                data = elements[rows, columns].astype(dtype)
                matrix = mn.asarray(sp.csr_array((data, (rows, columns)), (30, 20)), blocks=[3, 2])
                for name, monoid in MONOIDS.items():
                    is_truth = name in ("lor", "land")
                    whole = elements.astype(bool if is_truth else dtype)
                    whole = np.where(stored, whole, monoid.identity(whole.dtype))
                    keepdims = number % 2 == 0
                    asked.append(mn.reduce(matrix, name, axis, keepdims))
                    wanted.append(getattr(np, monoid.ufunc).reduce(whole, axis=axis, keepdims=keepdims))
        for found, expected in zip(mn.compute(*asked), wanted, strict=True):
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)
    mn.stop()


def test_of_dense_arrays_and_of_nothing() -> None:
    dense = np.arange(6.0).reshape(2, 3) - 2
    with mn.start(engine="interpret"):
        assert mn.reduce(dense, "min", axis=0).compute().tolist() == [-2, -1, 0]
        assert mn.reduce(np.zeros((0, 2)), "min", axis=0).compute().tolist() == [np.inf, np.inf]
        with pytest.raises(OptionError, match="no monoid 'sum'; there are 'plus'"):
            mn.reduce(dense, "sum")
    mn.stop()
