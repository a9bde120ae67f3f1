"""What diagonals and triangles are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from matnb.ops.nodes.diagonals import Diagonal, DiagonalMatrix, Triangle
from matnb.ops.reference.registry import Value, dense, means


@means(Diagonal)
def diagonal(node: Diagonal, operands: Sequence[Value]) -> Value:
    """Return the elements of a diagonal."""
    return dense(operands[0]).diagonal(node.offset, node.rows, node.columns)


@means(DiagonalMatrix)
def diagonal_matrix(node: DiagonalMatrix, operands: Sequence[Value]) -> Value:
    """Return the matrix of a diagonal."""
    made = np.diag(dense(operands[0]), node.offset)
    return sp.csr_array(made) if node.sparse else made


@means(Triangle)
def triangle(node: Triangle, operands: Sequence[Value]) -> Value:
    """Return what is on one side of a diagonal."""
    (value,) = operands
    if node.sparse:
        return sp.csr_array((sp.triu if node.upper else sp.tril)(value, node.offset))
    return (np.triu if node.upper else np.tril)(dense(value), node.offset)
