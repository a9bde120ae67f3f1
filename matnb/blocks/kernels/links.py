"""What a chain of elementwise functions is made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Link:
    """One function of a chain: what ``elementwise.apply`` takes, and where its operands are.

    Parameters
    ----------
    arguments
        Numbers of its operands: the operands of the chain come first, then the links in their order.
    """

    name: str
    input_dtypes: tuple[np.dtype, ...]
    dtype: np.dtype
    output: int
    sparse: bool
    arguments: tuple[int, ...]
