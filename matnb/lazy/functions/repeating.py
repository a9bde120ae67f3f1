"""``numpy.repeat``: elements, or slices along an axis, several times one beside the other."""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from matnb.errors import DTypeError, OptionError, ShapeError
from matnb.expr.nodes import Literal
from matnb.lazy.array import DistArray, expression_of, wrap
from matnb.lazy.force import asked
from matnb.lazy.functions.reshaping import laned
from matnb.lazy.indexing.compress import parts_of
from matnb.lazy.registry import implements
from matnb.lazy.ufuncs import astype
from matnb.ops.reshaping import CountsOf, Repeat, RepeatEach


@implements(np.repeat)
def repeat(a: object, repeats: object, axis: int | None = None) -> DistArray:
    """``numpy.repeat``; where counts are an array, how many there are of each part is asked for."""
    node, place = laned(expression_of(a), axis)
    counts = expression_of(repeats)
    if counts.dtype == np.uint64:
        counts = astype(counts, np.int64)  # which the standard has, unlike NumPy
    if not np.can_cast(counts.dtype, np.int64, "safe") or counts.ndim > 1:
        raise DTypeError(
            f"repeat: counts of dtype {counts.dtype} and shape {counts.shape}; give whole numbers"
        )
    if counts.size == 1:
        known = counts.value if isinstance(counts, Literal) else asked(counts, "the length of np.repeat")
        count = int(known.item())
        if count < 0:
            raise OptionError(f"repeat: {count} times; counts cannot be negative")
        return wrap(Repeat(node, count, place))
    if counts.shape != (node.shape[place],):
        raise ShapeError(
            f"repeat: {counts.size} counts for an axis of {node.shape[place]}; give one for each"
        )
    before = parts_of(counts, counts)
    sums = asked(CountsOf(counts, before), "the length of np.repeat")
    if min(sums.tolist(), default=0) < 0:
        raise OptionError("repeat: counts cannot be negative")
    after = (0, *accumulate(sums.tolist()))
    return wrap(RepeatEach(node, counts, place, before, after))
