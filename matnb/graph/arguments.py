"""What the algorithms on graphs are given, looked at before anything is recorded."""

from __future__ import annotations

import operator
from functools import partial

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from matnb.blocks.foreign import is_graph
from matnb.errors import DTypeError, IndexingError, OptionError, ShapeError
from matnb.lazy.array import DistArray
from matnb.lazy.creation import arange, asarray
from matnb.lazy.functions.diagonals import tril
from matnb.lazy.functions.mapping import replicated


def graph_from(A: object, algorithm: str) -> DistArray:
    """Return the matrix of a graph, a sparse one or a NetworkX graph's, as a DistArray.

    Raises
    ------
    DTypeError
        For a matrix that is not sparse: which of its zeros are edges, nobody could tell.
    ShapeError
        For one that is not square.
    """
    if not isinstance(A, DistArray) and not sp.issparse(A) and not is_graph(A):
        given = "a dense array" if hasattr(A, "shape") else type(A).__name__
        raise DTypeError(
            f"{algorithm} of {given}: a graph is a sparse matrix; use mn.load, "
            "or mn.asarray(A, format='sparse') to make every element that is not 0 an edge"
        )
    matrix = asarray(A)
    if not matrix.sparse:
        raise DTypeError(
            f"{algorithm} of a dense DistArray of shape {matrix.shape}: a graph is a sparse matrix; "
            "mn.asarray(A.compute(), format='sparse') makes every element that is not 0 an edge"
        )
    if matrix.shape[0] != matrix.shape[1]:
        raise ShapeError(
            f"{algorithm} of shape {matrix.shape}: a graph has a row and a column for every vertex"
        )
    return matrix


def vertex_from(vertex: object, num_vertices: int, algorithm: str) -> int:
    """Return the number of a vertex.

    Raises
    ------
    DTypeError
        For what is no whole number.
    IndexingError
        For a vertex that the graph does not have.
    """
    try:
        number = operator.index(vertex)  # type: ignore[arg-type]  # what it cannot take raises
    except TypeError:
        raise DTypeError(f"{algorithm} from vertex {vertex!r}: vertices are whole numbers") from None
    if not 0 <= number < num_vertices:
        raise IndexingError(
            f"{algorithm} from vertex {number} of a graph of {num_vertices} vertices: "
            f"give 0 to {num_vertices - 1}"
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


def in_batches(vertices: npt.NDArray[np.int64], batch: int) -> npt.NDArray[np.int64]:
    """Return vertices in rows of equal length, ``batch`` or all of them; the last one is filled up with -1.

    From -1, a source that no vertex is, no path begins.
    """
    batch = max(1, min(batch, len(vertices)))
    batches = np.full((-(-len(vertices) // batch), batch), -1)
    batches.flat[: len(vertices)] = vertices
    return batches


def no_way(matrix: DistArray, algorithm: str) -> DistArray:
    """Return inf, the length of a path that is not there, which cannot be had without a look at the weights.

    Raises
    ------
    OptionError
        For a weight that is negative or NaN, when it is computed.
    """
    if matrix.dtype.kind not in "if":
        return asarray(np.inf)
    far: DistArray = replicated(partial(_no_way, algorithm=algorithm), matrix.min(), like=np.inf)  # type: ignore[assignment]
    return far


def _no_way(least: np.floating | np.integer, algorithm: str) -> float:
    if not least >= 0:
        raise OptionError(f"{algorithm}: a weight is {float(least)}; weights are 0 or more")
    return np.inf


def one_where_not_negative(matrix: DistArray, algorithm: str) -> DistArray:
    """Return 1, which cannot be had without a look at the weights: what is multiplied with it is checked.

    Raises
    ------
    OptionError
        For a weight that is negative or NaN, when it is computed.
    """
    return 1 + 1 / no_way(matrix, algorithm)


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
