"""What it means to put elements in order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matnb.lazy.meanings.registry import Value, dense, means
from matnb.lazy.nodes.ordering import ArgSort, Sort


@means(Sort)
def sort(node: Sort, operands: Sequence[Value]) -> Value:
    """Return the elements in ascending order."""
    return np.sort(dense(operands[0]), axis=node.axis)


@means(ArgSort)
def arg_sort(node: ArgSort, operands: Sequence[Value]) -> Value:
    """Return the places of the elements in ascending order."""
    return np.argsort(dense(operands[0]), axis=node.axis, kind="stable")
