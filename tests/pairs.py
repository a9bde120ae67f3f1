"""Products of two blocks written anew, one pair of stored entries after the other, in NumPy's scalars."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from block_checks import array_of, mask_of
from strategies import SEMIRINGS_WITH_LOOPS

from matnb.errors import DTypeError

# What two entries that meet give, and how such values are added.
MULTIPLY = {
    "plus_times": lambda a, b: a * b,
    "min_plus": lambda a, b: a + b,
    "plus_pair": lambda a, b: 1,
    "lor_land": lambda a, b: bool(a) and bool(b),
    "min_first": lambda a, b: a,
    "min_second": lambda a, b: b,
    "lor_first": lambda a, b: bool(a),
    "lor_second": lambda a, b: bool(b),
}
ADD = {"plus": np.add, "min": np.minimum, "lor": np.logical_or}
# Kernels are compiled for each, which takes long; those that only choose a side are like the others.
EVERY_SEMIRING = [
    pytest.param(name, marks=pytest.mark.slow) if name.endswith(("_first", "_second")) else name
    for name in sorted(SEMIRINGS_WITH_LOOPS)
]


def is_defined(semiring, left, right):
    """Tell whether a semiring is defined for the dtypes of two blocks."""
    try:
        semiring.result_dtype(left.dtype, right.dtype)
    except DTypeError:
        return False
    return True


def expected_product(left, right, semiring, dtype, present=None):
    """Return values and where any pair met, of two matrices; ``present`` tells where the left has some."""
    a, b = array_of(left), array_of(right)
    if semiring.name in ("plus_times", "min_plus"):
        a, b = a.astype(dtype), b.astype(dtype)
    met = np.zeros((a.shape[0], b.shape[1]), bool)
    values = np.full(met.shape, semiring.add.identity(dtype), dtype)
    both = itertools.product(range(a.shape[0]), range(a.shape[1]), range(b.shape[1]))
    mask_a, mask_b = mask_of(left) if present is None else present, mask_of(right)
    with np.errstate(all="ignore"):
        for i, k, j in both:
            if mask_a[i, k] and mask_b[k, j]:
                met[i, j] = True
                pair = MULTIPLY[semiring.name](a[i, k], b[k, j])
                values[i, j] = ADD[semiring.add.name](values[i, j], np.asarray(pair).astype(dtype))
    return values, met
