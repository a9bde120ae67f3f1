"""Searches in breadth: what they give, how they begin, levels, and the vertices before on their paths."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import overload

import numpy as np
import numpy.typing as npt

from matnb.graph.arguments import vertices_of
from matnb.graph.other_names import of_vertices
from matnb.lazy.array import DistArray
from matnb.lazy.fields import has_fields
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.linear import matmul
from matnb.lazy.loop import iterate, iteration
from matnb.tables.results import shows

Vectors = tuple[DistArray, DistArray]
Along = Callable[[DistArray, str, DistArray], DistArray]  # what arrives, of what, by which addition, where


@shows("vertices", levels="distances")
@partial(has_fields, ways=of_vertices("levels"))
class BreadthFirst(Sequence[DistArray]):
    """Result of :func:`bfs`: ``levels`` and ``parents``, each recorded when it is first used."""

    _fields = ("levels", "parents")

    def __init__(self, levels: Callable[[], DistArray], parents: Callable[[], DistArray]) -> None:
        self._levels, self._parents = levels, parents

    @cached_property
    def levels(self) -> DistArray:
        """The number of edges of a shortest path."""
        return self._levels()

    @cached_property
    def parents(self) -> DistArray:
        """The vertex before on such a path."""
        return self._parents()

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


def levels_of(at_source: DistArray, along: Along) -> DistArray:
    """Return how many edges lead to each vertex from where a search begins; -1 where there is no path."""

    def next_level(state: Vectors) -> Vectors:
        frontier, levels = state
        # q'[j] = or of q[i] over the edges (i, j), where j has no level yet
        frontier = along(frontier, "lor", levels < 0)
        return frontier, where(frontier, (iteration() + 1).astype(np.int32), levels)

    start = at_source, where(at_source, np.int32(0), np.int32(-1))
    (_, levels), _ = iterate(
        next_level, start, until=lambda old, new: ~new[0].any(), max_iterations=at_source.shape[0]
    )
    return levels


def parents_along(edges: DistArray, source: int) -> DistArray:
    """Return the vertex before on a path of the fewest edges from a vertex, as :func:`bfs` has its parents.

    Parameters
    ----------
    edges
        Sparse n x n.
    source
        A vertex.
    """
    return parents_of(*searched(edges, source))


def parents_of(at_source: DistArray, numbers: DistArray, along: Along) -> DistArray:
    """Return the parents of the searches that :func:`searched` begins."""
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


def searched(matrix: DistArray, source: int | npt.NDArray[np.int64]) -> tuple[DistArray, DistArray, Along]:
    """Return where a search begins, the vertices' numbers, and how it goes along the edges.

    Of one row these are vectors, of several matrices with a column for each.
    """
    n = matrix.shape[0]
    vertices = vertices_of(n)
    if isinstance(source, int):
        at_source = vertices == source
        return at_source, vertices, lambda x, add, mask: matmul(x, matrix, f"{add}_first", mask)
    return vertices[:, None] == source, vertices[:, None], by_columns(matrix)


def by_columns(matrix: DistArray) -> Along:
    """Return how searches go along the edges that have a column each."""
    return lambda x, add, mask: matmul(matrix.T, x, f"{add}_second", mask)
