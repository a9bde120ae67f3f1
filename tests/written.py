"""Constants of tasks that tests write by hand."""

from __future__ import annotations

import numpy as np

from matnb.blocks.formats import Dense
from matnb.program.operators import Constant


def written(values: np.ndarray | Dense) -> Constant:
    """Return values as a constant of a task; a plan makes them of literals alone."""
    array = np.asarray(values.values if isinstance(values, Dense) else values)
    return Constant(array.tobytes(), array.shape, array.dtype)
