"""NumPy's functions that put arrays together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from matnb.errors import ShapeError, UnsupportedError
from matnb.lazy.array import DistArray, expression_of, wrap
from matnb.lazy.indexing import normalize_axes
from matnb.lazy.nodes.joining import Concatenate
from matnb.lazy.registry import implements
from matnb.lazy.ufuncs import astype, number_dtype


@implements(np.concatenate)
def concatenate(
    arrays: Sequence[object],
    /,
    axis: int | None = 0,
    out: None = None,
    *,
    dtype: npt.DTypeLike | None = None,
    casting: str = "same_kind",
) -> DistArray:
    """``numpy.concatenate``: sparse where all arrays are."""
    if out is not None:
        raise UnsupportedError("np.concatenate(out=) is not recorded; assign the result")
    if len(arrays) == 0:
        raise ShapeError("concatenate: give at least one array")
    nodes = [expression_of(one) for one in arrays]
    if any(not node.shape for node in nodes):
        raise ShapeError("concatenate: arrays without axes cannot be concatenated")
    if axis is None:
        nodes, axis = [expression_of(np.ravel(DistArray(node))) for node in nodes], 0
    (place,) = normalize_axes(axis, nodes[0].ndim)
    element = np.result_type(*(node.dtype for node in nodes)) if dtype is None else number_dtype(dtype)
    return wrap(Concatenate(tuple(astype(node, element) for node in nodes), place))
