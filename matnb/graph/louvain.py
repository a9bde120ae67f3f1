"""Communities of high modularity: Louvain's method."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from matnb.errors import OptionError
from matnb.graph.arguments import check_real, checked_sums, graph_from, loops_again
from matnb.graph.communities import check_resolution, modularity_of
from matnb.graph.other_names import OF_GROUPS
from matnb.graph.vertex_labels import named_by_vertices
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import arange, asarray, eye, zeros
from matnb.lazy.fields import has_fields
from matnb.lazy.functions.diagonals import diag, tril, triu
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.grouping import scatter_reduce
from matnb.lazy.loop import iterate
from matnb.lazy.random import default_rng
from matnb.tables.results import shows

Level = tuple[DistArray, DistArray, DistArray]  # a graph of communities, each vertex's, their modularity
# Communities now, the best ones, their modularity, and for how many rounds nothing was gained.
MoveState = tuple[DistArray, DistArray, DistArray, DistArray]
_MOST_ROUNDS, _QUIET_ROUNDS = 1000, 4


@shows("vertices", labels="sizes", modularity="number")
@partial(has_fields, ways=OF_GROUPS)
class Communities(NamedTuple):
    """Result of :func:`louvain`."""

    labels: DistArray
    modularity: DistArray


@named_by_vertices
def louvain(
    A: ArrayLike, resolution: float = 1.0, threshold: float = 1e-7, symmetric: bool = False, seed: int = 0
) -> Communities:
    """Return communities of high modularity, by the Louvain method.

    Blondel, Guillaume, Lambiotte and Lefebvre 2008, "Fast unfolding of communities in large networks":
    each vertex moves to the neighboring community that increases modularity most, then communities are merged
    into single vertices, until modularity stops increasing. Vertices move in parallel, as in Lu, Halappanavar
    and Kalyanaraman 2015, "Parallel Heuristics for Scalable Community Detection"; a random half of them in
    each round, so that two vertices do not swap communities forever.

    Parameters
    ----------
    A
        Sparse n x n matrix; ``A[i, j]`` is the nonnegative weight of the edge from i to j. Weights of both
        directions are added; a self-loop of an undirected graph counts twice, as in :func:`degree`.
    resolution
        Values above 1 favor smaller communities.
    threshold
        A level ends when modularity has not grown by more than this in four rounds; levels continue while one
        gains more than this.
    symmetric
        True if A is known to be symmetric, which saves making it so.
    seed
        Seed of the random draws; the same seed gives the same result.

    Returns
    -------
    Communities
        ``labels``, int64 of shape (n,): the smallest vertex of each vertex's community; ``modularity``,
        float64: that of these labels in ``A + A.T``. For the modularity of a directed graph give the labels
        to :func:`modularity`.

    Raises
    ------
    DTypeError, ShapeError
        For anything other than a sparse square matrix.
    OptionError
        For a negative resolution or threshold; when computed, for a weight that is negative or NaN.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> pairs = sp.csr_array([[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]])
    >>> labels, value = mn.graph.louvain(pairs)
    >>> float(value)
    0.5
    """
    given = graph_from(A, "louvain", by_weight=True)
    check_real(given, "louvain")
    matrix = given.astype(np.float64)
    check_resolution(resolution, "louvain")
    if not threshold >= 0:
        raise OptionError(f"louvain: threshold={threshold}; give 0 or more")
    n = matrix.shape[0]
    if n == 0:
        return Communities(arange(0), asarray(np.nan))
    matrix = matrix * checked_sums(matrix.sum().reshape(1), given, "louvain")
    matrix = matrix + diag(loops_again(A, matrix, False if symmetric else None)).eliminate_zeros()
    if not symmetric:
        matrix = matrix + matrix.T
    rng = default_rng(seed)
    vertices = arange(n)

    def move(level: DistArray, labels: DistArray) -> DistArray:
        # What a vertex gains in a neighbor's community beside in its own: the weight of its edges there, less
        # what chance would put there.
        degrees = level.sum(axis=1)
        totals = scatter_reduce(degrees, labels, n)
        by_chance = resolution * degrees / matrix.sum()
        weights = (tril(level, -1) + triu(level, 1)) @ eye(n)[labels]
        stays = labels[:, None] == vertices
        own = (weights * stays).sum(axis=1) - by_chance * (totals[labels] - degrees)
        gains = weights - by_chance[:, None] * totals - own[:, None]
        better = weights.pattern(np.float64) * where(stays, 0.0, np.maximum(gains, 0.0))
        wanted = better.argmax(axis=1)
        # Of two communities of one vertex each that would change places the one of the larger number moves.
        sizes = scatter_reduce(vertices * 0 + 1, labels, n)
        changes_places = (sizes[labels] == 1) & (sizes[wanted] == 1) & (wanted > labels)
        moves = (better.max(axis=1) > 0) & ~changes_places & (rng.random(n) < 0.5)
        return where(moves, wanted, labels)

    def no_gain(old: Level, new: Level) -> DistArray:
        return ~(new[2] - old[2] > threshold)  # true of NaN too, the modularity without edges

    def next_level(state: Level) -> Level:
        level, labels, value = state

        def step(moved: MoveState) -> MoveState:
            current, best, highest, quiet = moved
            current = move(level, current)
            reached = modularity_of(level, zeros(n), current, resolution)
            better = reached > highest
            quiet = where(reached > highest + threshold, 0, quiet + 1)
            return current, where(better, current, best), where(better, reached, highest), quiet

        (_, best, value, _), _ = iterate(
            step,
            (vertices, vertices, value, asarray(0)),
            until=lambda old, new: new[3] >= _QUIET_ROUNDS,
            max_iterations=_MOST_ROUNDS,
        )
        joined = eye(n)[best]
        return joined.T @ level @ joined, best[labels], value

    start = matrix, vertices, modularity_of(matrix, zeros(n), vertices, resolution)
    (_, labels, value), _ = iterate(next_level, start, until=no_gain, max_iterations=_MOST_ROUNDS)
    return Communities(scatter_reduce(vertices, labels, n, monoid="min")[labels], value)
