"""Communities of a graph: label propagation, and modularity."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from matnb.errors import DTypeError, OptionError, ShapeError
from matnb.graph.arguments import check_real, checked_sums, graph_from, loops_again
from matnb.graph.vertex_labels import named_by_vertices
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import arange, asarray, eye
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.grouping import scatter_reduce
from matnb.lazy.loop import iterate


@named_by_vertices
def label_propagation(A: ArrayLike, max_iterations: int = 10, symmetric: bool = False) -> DistArray:
    """Return community labels found by label propagation.

    Each vertex starts with its own label, and in each round takes the most frequent label among its
    neighbors, the smallest on ties: "CDLP" of LDBC Graphalytics (Iosup et al. 2016), a deterministic form of
    Raghavan, Albert and Kumara 2007, "Near linear time algorithm to detect community structures".

    Parameters
    ----------
    A
        Sparse n x n matrix; a stored ``A[i, j]`` is an edge from i to j, whatever its value. The two ends are
        neighbors; if both directions are stored, each counts.
    max_iterations
        Maximum number of rounds; it stops earlier when no label changes.
    symmetric
        True if every edge is known to be stored in both directions; each edge then counts once.

    Returns
    -------
    DistArray
        int64 of shape (n,).

    Raises
    ------
    DTypeError, ShapeError
        For anything other than a sparse square matrix.
    OptionError
        For a negative number of rounds.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> A = sp.csr_array([[0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0]])
    >>> mn.graph.label_propagation(A).compute()
    array([0, 0, 0, 3])
    """
    edges = graph_from(A, "label_propagation").pattern(np.float64)
    n = edges.shape[0]
    if n == 0:
        return arange(0)
    neighbors = edges if symmetric else edges + edges.T

    def step(labels: DistArray) -> DistArray:
        counts = neighbors @ eye(n)[labels]
        return where(counts.max(axis=1) > 0, counts.argmax(axis=1), labels)

    labels, _ = iterate(
        step, arange(n), until=lambda old, new: (old == new).all(), max_iterations=max_iterations
    )
    return labels


def modularity(
    A: ArrayLike,
    labels: npt.ArrayLike | DistArray,
    resolution: float = 1.0,
    directed: bool | None = None,
) -> DistArray:
    """Return the modularity of communities: the share of weight within them, beyond what chance would give.

    Newman and Girvan 2004, for directed graphs Leicht and Newman 2008, "Community Structure in Directed
    Networks": the sum over i and j of one community of ``A[i, j] / m - resolution out[i] in[j] / m**2``, m
    the sum of all weights. Of an undirected graph a self-loop counts twice, as in NetworkX.

    Parameters
    ----------
    A
        Sparse n x n matrix; ``A[i, j]`` is the nonnegative weight of the edge from i to j. For an undirected
        graph both directions are stored.
    labels
        n whole numbers, 0 to n - 1: the community of each vertex.
    resolution
        Values above 1 favor smaller communities (Reichardt and Bornholdt 2006).
    directed
        False for an undirected graph, as in :func:`degree`.

    Returns
    -------
    DistArray
        float64 scalar; NaN for a graph without edges.

    Raises
    ------
    DTypeError, ShapeError
        For anything other than a sparse square matrix, or labels that are not n whole numbers.
    OptionError
        For a negative resolution; when computed, for a weight that is negative, NaN or infinite.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> pairs = sp.csr_array([[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]])
    >>> float(mn.graph.modularity(pairs, [0, 0, 2, 2]))
    0.5
    """
    weights = graph_from(A, "modularity", by_weight=True)
    check_real(weights, "modularity")
    matrix = weights.astype(np.float64)
    n = matrix.shape[0]
    given = asarray(labels)
    if given.dtype.kind not in "iu":
        raise DTypeError(f"modularity: labels have dtype {given.dtype}; give integers")
    if given.shape != (n,):
        raise ShapeError(
            f"modularity: labels have shape {given.shape}; give one label for each of the {n} vertices"
        )
    check_resolution(resolution, "modularity")
    matrix = matrix * checked_sums(matrix.sum().reshape(1), weights, "modularity")
    return modularity_of(matrix, loops_again(A, matrix, directed), given, resolution)


def modularity_of(matrix: DistArray, loops: DistArray, labels: DistArray, resolution: float) -> DistArray:
    """Return what :func:`modularity` does, of a matrix of float64 and labels that were looked at.

    Parameters
    ----------
    loops
        By which the diagonal of the matrix is larger in what is measured; shape (n,).
    """
    n, m = matrix.shape[0], matrix.sum() + loops.sum()
    within = (matrix * (labels[:, None] == labels)).sum() + loops.sum()
    out = scatter_reduce(matrix.sum(axis=1) + loops, labels, n)
    into = scatter_reduce(matrix.sum(axis=0) + loops, labels, n)
    value: DistArray = within / m - resolution * ((out / m) * (into / m)).sum()
    return value


def check_resolution(resolution: float, algorithm: str) -> None:
    """Refuse a negative resolution.

    Raises
    ------
    OptionError
        For one.
    """
    if not 0 <= resolution < np.inf:
        raise OptionError(f"{algorithm}: resolution={resolution}; give 0 or more, but not inf")
