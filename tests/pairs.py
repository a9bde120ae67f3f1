"""Products of two blocks written anew, one pair of stored entries after the other, in NumPy's scalars."""

from __future__ import annotations

import itertools

import numpy as np
from block_checks import array_of, mask_of

# What two entries that meet give, and how such values are added.
MULTIPLY = {
    "plus_times": lambda a, b: a * b,
    "min_plus": lambda a, b: a + b,
    "plus_pair": lambda a, b: 1,
    "lor_land": lambda a, b: bool(a) and bool(b),
}
ADD = {"plus_times": np.add, "min_plus": np.minimum, "plus_pair": np.add, "lor_land": np.logical_or}


def expected_product(left, right, semiring, dtype):
    """Return values and where any pair met, of two matrices."""
    a, b = array_of(left), array_of(right)
    if semiring.name in ("plus_times", "min_plus"):
        a, b = a.astype(dtype), b.astype(dtype)
    met = np.zeros((a.shape[0], b.shape[1]), bool)
    values = np.full(met.shape, semiring.add.identity(dtype), dtype)
    both = itertools.product(range(a.shape[0]), range(a.shape[1]), range(b.shape[1]))
    mask_a, mask_b = mask_of(left), mask_of(right)
    with np.errstate(all="ignore"):
        for i, k, j in both:
            if mask_a[i, k] and mask_b[k, j]:
                met[i, j] = True
                pair = MULTIPLY[semiring.name](a[i, k], b[k, j])
                values[i, j] = ADD[semiring.name](values[i, j], np.asarray(pair).astype(dtype))
    return values, met
