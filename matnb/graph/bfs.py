"""Breadth-first search: levels and parents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import overload

import numpy as np

from matnb.graph.arguments import graph_from, vertex_from, vertices_of
from matnb.lazy.array import DistArray
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.linear import matmul
from matnb.lazy.loop import iterate, iteration

Vectors = tuple[DistArray, DistArray]
Along = Callable[[DistArray, str, DistArray], DistArray]  # what arrives, of what, by which addition, where


class BreadthFirst(Sequence[DistArray]):
    """What :func:`bfs` gives: ``levels``, then ``parents``, each recorded when it is first asked for."""

    def __init__(self, levels: Callable[[], DistArray], parents: Callable[[], DistArray]) -> None:
        self._levels, self._parents = levels, parents

    @cached_property
    def levels(self) -> DistArray:
        """The number of edges of a shortest way."""
        return self._levels()

    @cached_property
    def parents(self) -> DistArray:
        """The vertex before on such a way."""
        return self._parents()

    def __repr__(self) -> str:
        """Return what it has, and compute nothing."""
        return "BreadthFirst(levels, parents): searches that are made when they are asked for"

    def __len__(self) -> int:
        """Return 2."""
        return 2

    def __iter__(self) -> Iterator[DistArray]:
        """Give both."""
        yield self.levels
        yield self.parents

    @overload
    def __getitem__(self, place: int) -> DistArray: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[DistArray, ...]: ...
    def __getitem__(self, place: int | slice) -> DistArray | tuple[DistArray, ...]:
        """Return one by its place."""
        if isinstance(place, slice):
            return tuple(self)[place]
        return self.levels if range(2)[place] == 0 else self.parents


def bfs(A: object, source: int | Sequence[int]) -> BreadthFirst:
    """Return how many edges lead from a vertex to each other one, and the last vertex on such a way.

    Each round takes the vertices found last to their neighbors, over the semirings of or and first, min and
    first, with the vertices not found yet as mask (Kepner and Gilbert 2011, "Graph Algorithms in the Language
    of Linear Algebra", chapter 3; Yang, Buluc and Owens 2018 on pushing and pulling).

    Parameters
    ----------
    A
        Sparse n x n matrix; a stored ``A[i, j]`` is an edge from i to j, whatever its value.
    source
        The vertex to begin at; or k of them, for as many searches, all of which are taken a level at once.

    Returns
    -------
    BreadthFirst
        ``levels``, int32 of shape (n,): the number of edges of a shortest way from the source, -1 where
        there is none. ``parents``, int32 of shape (n,), int64 from 2**31 vertices on: the vertex before on
        such a way, of several the one of the smallest number; the source itself at the source; -1 where there
        is none. Each is a search of its own, recorded when it is first asked for. From k sources both have
        shape (k, n).

    Raises
    ------
    DTypeError, ShapeError
        For what is no sparse square matrix.
    IndexingError
        For a source that is no vertex.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> A = sp.csr_array([[0, 1, 1, 0], [0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 0]])
    >>> levels, parents = mn.graph.bfs(A, 0)
    >>> levels.compute(), parents.compute()
    (array([0, 1, 1, 2], dtype=int32), array([0, 0, 0, 1], dtype=int32))
    """
    matrix = graph_from(A, "bfs")
    at_source, numbers, along = _searched(matrix, source)
    n = matrix.shape[0]

    def next_level(state: Vectors) -> Vectors:
        frontier, levels = state
        # q'[j] = or of q[i] over the edges (i, j), where j has no level yet
        frontier = along(frontier, "lor", levels < 0)
        return frontier, where(frontier, (iteration() + 1).astype(np.int32), levels)

    def all_levels() -> DistArray:
        start = at_source, where(at_source, np.int32(0), np.int32(-1))
        (_, levels), _ = iterate(next_level, start, until=lambda old, new: ~new[0].any(), max_iterations=n)
        return levels.T

    return BreadthFirst(all_levels, lambda: _parents(at_source, numbers, along).T)


def parents_along(edges: DistArray, source: int) -> DistArray:
    """Return the vertex before on a way of the fewest edges from a vertex, as :func:`bfs` has its parents.

    Parameters
    ----------
    edges
        Sparse n x n.
    source
        A vertex.
    """
    return _parents(*_searched(edges, source))


def _parents(at_source: DistArray, numbers: DistArray, along: Along) -> DistArray:
    none = int(np.iinfo(numbers.dtype).max)  # a vertex not in the frontier: what min has no part in

    def next_parents(state: Vectors) -> Vectors:
        frontier, parents = state
        # p[j] = min of i over the edges (i, j) from the frontier, where j has no parent yet
        found = along(frontier, "min", parents < 0)
        is_new = found < none
        return where(is_new, numbers, none), where(is_new, found, parents)

    start = where(at_source, numbers, none), where(at_source, numbers, -1)
    (_, parents), _ = iterate(
        next_parents,
        start,
        until=lambda old, new: (new[0] == none).all(),
        max_iterations=at_source.shape[0],
    )
    return parents


def _searched(matrix: DistArray, source: int | Sequence[int]) -> tuple[DistArray, DistArray, Along]:
    # Where a search begins, the vertices' numbers, and how it goes along the edges: of one source vectors, of
    # several matrices with a column for each.
    n = matrix.shape[0]
    vertices = vertices_of(n)
    if np.ndim(source) == 0:
        at_source = vertices == vertex_from(source, n, "bfs")
        return at_source, vertices, lambda x, add, mask: matmul(x, matrix, f"{add}_first", mask)
    begins = np.array([vertex_from(one, n, "bfs") for one in np.ravel(source).tolist()], np.int64)
    at_source = vertices[:, None] == begins
    return at_source, vertices[:, None], lambda x, add, mask: matmul(matrix.T, x, f"{add}_second", mask)
