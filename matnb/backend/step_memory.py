"""Where a step's value is made, in fresh memory or in a pool's, and what it needs on the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from matnb.blocks.formats import NumericArray, uninitialized

Take: TypeAlias = Callable[[tuple[int, ...], np.dtype], NumericArray]  # an array in C order with any elements
Give: TypeAlias = Callable[[NumericArray], None]  # gets such an array back


class StepMemory(NamedTuple):
    """Where a step's value is made, and what it needs on the way.

    Attributes
    ----------
    take
        Gives an array in C order, of a shape and dtype, with any elements, that nobody else writes.
    give
        Gets those of them back that are not part of the value.
    out
        Memory for a Dense value of this shape and dtype, or None: in C order, or, for functions of elements
        that write their part of a larger array, in rows with gaps between them. Without it the value lies in
        an array from ``take``, or is small, or is a view of one of the values read. Where arrays are not
        pooled, it is used where that costs nothing.
    is_pooled
        Whether arrays are used again, so that steps are run in memory that is there. Values are then in C
        order, and a view that is so is no copy; in fresh memory a value that is part of another is a copy,
        so that the other can go, and blocks that lie one after the other are put together as they are.
    """

    take: Take
    give: Give
    out: NumericArray | None
    is_pooled: bool

    def target(self, shape: tuple[int, ...], dtype: np.dtype) -> NumericArray:
        """Return the memory for a Dense value."""
        out = self.out
        fits = out is not None and out.shape == shape and out.dtype == dtype
        return out if out is not None and fits else self.take(shape, dtype)


def _let_go(array: NumericArray) -> None:
    """Do nothing: fresh memory goes with its last reader."""


FRESH = StepMemory(uninitialized, _let_go, None, False)
