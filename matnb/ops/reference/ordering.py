"""What it means to put elements in order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matnb.ops.nodes.ordering import ArgSort, Sort
from matnb.ops.reference.registry import Value, dense, means


@means(Sort)
def sort(node: Sort, operands: Sequence[Value]) -> Value:
    """Return the elements in ascending order."""
    return np.sort(dense(operands[0]), axis=node.axis)


@means(ArgSort)
def arg_sort(node: ArgSort, operands: Sequence[Value]) -> Value:
    """Return the places of the elements in ascending order."""
    return np.argsort(dense(operands[0]), axis=node.axis, kind="stable")
