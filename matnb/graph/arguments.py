"""What the algorithms on graphs are given, looked at before anything is recorded."""

from __future__ import annotations

import operator
from functools import partial
from typing import cast

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from matnb.blocks.foreign import is_graph
from matnb.errors import DTypeError, IndexingError, OptionError, ShapeError
from matnb.lazy.array import DistArray
from matnb.lazy.creation import arange, asarray, full, zeros
from matnb.lazy.functions.diagonals import tril
from matnb.lazy.functions.linear import matmul
from matnb.lazy.functions.mapping import replicated
from matnb.lazy.functions.shaping import concatenate


def graph_from(A: object, algorithm: str) -> DistArray:
    """Return the matrix of a graph, a sparse one or a NetworkX graph's, as a DistArray.

    Raises
    ------
    DTypeError
        For a matrix that is not sparse, which does not say which of its zeros are edges.
    ShapeError
        For one that is not square.
    """
    if not isinstance(A, DistArray) and not sp.issparse(A) and not is_graph(A):
        given = "a dense array" if hasattr(A, "shape") else type(A).__name__
        raise DTypeError(
            f"{algorithm} of {given}: a graph is a sparse matrix; use mn.load, or mn.asarray(A, "
            "format='sparse'), which makes every nonzero element an edge"
        )
    matrix = asarray(A)
    if not matrix.sparse:
        raise DTypeError(
            f"{algorithm} of a dense DistArray of shape {matrix.shape}: a graph is a sparse matrix; "
            "mn.asarray(A.compute(), format='sparse') makes every nonzero element an edge"
        )
    if matrix.shape[0] != matrix.shape[1]:
        raise ShapeError(
            f"{algorithm} of shape {matrix.shape}: a graph is a square matrix, with a row and a column for "
            "every vertex"
        )
    return matrix


def vertex_from(vertex: object, num_vertices: int, algorithm: str) -> int:
    """Return the number of a vertex.

    Raises
    ------
    DTypeError
        For anything other than a whole number.
    IndexingError
        For a vertex that the graph does not have.
    """
    try:
        number = operator.index(vertex)  # type: ignore[arg-type]  # what it cannot take raises
    except TypeError:
        raise DTypeError(f"{algorithm} from vertex {vertex!r}: a vertex is an integer") from None
    if not 0 <= number < num_vertices:
        raise IndexingError(
            f"{algorithm} from vertex {number} of a graph with {num_vertices} vertices: give 0 to "
            f"{num_vertices - 1}"
            if num_vertices
            else f"{algorithm} from vertex {number} of a graph without vertices"
        )
    return number


def both_ways(matrix: DistArray, symmetric: bool, dtype: npt.DTypeLike = np.float64) -> DistArray:
    """Return the edges as ones, in both directions and without those from a vertex to itself.

    Parameters
    ----------
    matrix
        Sparse n x n; a stored entry is an edge.
    symmetric
        True when every edge is known to be there in both directions.
    dtype
        Of the ones.
    """
    edges = matrix.pattern(dtype)
    if symmetric:
        vertices = vertices_of(matrix.shape[0])
        return edges.select(vertices[:, None] != vertices)
    lower = tril(np.maximum(edges, edges.T), -1)
    return lower + lower.T


def in_batches(vertices: npt.NDArray[np.int64] | DistArray, batch: int, algorithm: str) -> DistArray:
    """Return vertices in rows of ``batch``; the last one is filled up with -1, from where no path begins.

    Raises
    ------
    OptionError
        For a batch below 1.
    """
    if batch < 1:
        raise OptionError(f"{algorithm}: batch={batch}; give 1 or more")
    batch = max(1, min(batch, len(vertices)))
    count = -(-len(vertices) // batch)
    rest = full(count * batch - len(vertices), -1, np.int64)
    return concatenate([asarray(vertices), rest]).reshape(count, batch)


def checked(value: float, matrix: DistArray, algorithm: str, rule: str = "0 or more") -> DistArray:
    """Return a number, which cannot be had without a look at the weights of edges.

    Raises
    ------
    DTypeError
        For complex weights.
    OptionError
        When it is computed, for a weight that is not "0 or more", "above 0" or, of "numbers", NaN.
    """
    if matrix.dtype.kind == "c":
        raise DTypeError(f"{algorithm}: weights of dtype {matrix.dtype} have no order; give real weights")
    if matrix.dtype.kind not in "if" or not matrix.shape[0]:
        return asarray(value)
    least = matrix.min()
    if rule == "above 0":  # of what is stored
        least = matmul(matrix.astype(np.float64), zeros(matrix.shape[0]), "min_plus").min()
    call = partial(_checked, value=value, algorithm=algorithm, rule=rule)
    return cast(DistArray, replicated(call, least, like=value))


def _checked(least: np.floating | np.integer, value: float, algorithm: str, rule: str) -> float:
    if not {"0 or more": least >= 0, "above 0": least > 0, "numbers": least == least}[rule]:
        raise OptionError(f"{algorithm}: a weight is {float(least)}; weights must be {rule}")
    return value


def check_tolerance(tolerance: float, algorithm: str) -> None:
    """Refuse a tolerance that nothing reaches.

    Raises
    ------
    OptionError
        When it is not above 0.
    """
    if not tolerance > 0:
        raise OptionError(f"{algorithm}: tolerance={tolerance}; give a number above 0")


def vertices_of(num_vertices: int) -> DistArray:
    """Return the numbers of all vertices, in the shortest dtype that has room for them."""
    return arange(num_vertices, dtype=np.int32 if num_vertices <= np.iinfo(np.int32).max else np.int64)
