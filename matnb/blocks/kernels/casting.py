"""How elements change their dtype: by the rules of ``ndarray.astype``, in silence."""

from __future__ import annotations

import numpy as np

from matnb.blocks.formats import Csr, NumericArray


def cast(values: NumericArray, dtype: np.dtype, copy: bool = False) -> NumericArray:
    """Return the values as ``dtype``: the same array where it is that already, unless ``copy``.

    What NumPy warns of (a lost imaginary part, an overflow, NaN to integer) happens without a warning.
    """
    if values.dtype.kind == "c" and dtype.kind not in "cb":
        values = values.real  # what astype does too, but there with a warning that errstate does not govern
    with np.errstate(all="ignore"):
        return values.astype(dtype, copy=copy)


def entries_as(block: Csr, dtype: np.dtype) -> NumericArray:
    """Return the entries of a block as ``dtype``: its own where they are that already, ones of a pattern."""
    return np.ones(block.nnz, dtype) if block.values is None else cast(block.values, dtype)
