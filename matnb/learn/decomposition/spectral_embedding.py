"""Rows placed by the smoothest functions on a graph of those that are near to each other."""

from __future__ import annotations

from typing import Self

import numpy as np

from matnb.errors import OptionError, ShapeError, warn
from matnb.graph.components import connected_components
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import asarray, coo_array
from matnb.lazy.functions.diagonals import tril, triu
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.indexing import nonzero
from matnb.lazy.labels import check_one_set
from matnb.learn.arguments import one_of, rows_from, seed_from, whole
from matnb.learn.decomposition.spectra import with_signs
from matnb.learn.estimator import Estimator
from matnb.learn.neighbors.nearest_neighbors import NearestNeighbors
from matnb.linalg.eigsh import eigsh

_TOLERANCE = 1e-12  # of eigenvectors
_SYMMETRIC = 1e-10  # up to which differences are rounding, as scikit-learn has it


class SpectralEmbedding(Estimator):
    """Spectral embedding of rows by the eigenvectors of a graph's normalized Laplacian.

    Belkin and Niyogi 2003, "Laplacian eigenmaps for dimensionality reduction and data representation".
    Arguments and attributes are scikit-learn's, without the affinity "rbf" and its ``gamma``,
    ``eigen_solver``, ``eigen_tol`` and ``n_jobs``.

    Parameters
    ----------
    n_components
        Number of coordinates.
    affinity
        "nearest_neighbors": the symmetrized graph of each row's nearest neighbors; "precomputed": X is the
        graph, n x n, symmetric, sparse or dense.
    random_state
        Seed of the start vector.
    n_neighbors
        Number of neighbors for "nearest_neighbors", including the row itself; by default a tenth of the rows.

    Attributes
    ----------
    embedding_
        n x k: the eigenvectors D^(-1/2) v of the smallest eigenvalues except the first, ascending; the
        element of largest magnitude in each is positive.
    affinity_matrix_
        The graph, n x n.
    n_neighbors_, n_features_in_
        Number of neighbors used, or None; columns of X.

    Raises
    ------
    ShapeError, OptionError
        For an X that is not a matrix or has NaN, a graph that is not square or has negative weights, and more
        than n - 1 coordinates.

    Examples
    --------
    >>> import numpy as np, matnb as mn
    >>> path = np.diag(np.ones(4), 1)
    >>> model = mn.learn.SpectralEmbedding(1, affinity="precomputed", random_state=0).fit(path + path.T)
    >>> abs(model.embedding_.compute()[:, 0]).round(3)
    array([0.5  , 0.354, 0.   , 0.354, 0.5  ])
    """

    affinity_matrix_: DistArray
    embedding_: DistArray

    def __init__(
        self,
        n_components: int = 2,
        *,
        affinity: str = "nearest_neighbors",
        random_state: object = None,
        n_neighbors: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.affinity = affinity
        self.random_state = random_state
        self.n_neighbors = n_neighbors

    def fit(self, X: ArrayLike, y: ArrayLike = None) -> Self:
        """Compute the embedding.

        Parameters
        ----------
        X
            n x p, sparse or dense; or a graph, n x n.
        y
            Ignored; present for compatibility with scikit-learn.
        """
        rows, name = rows_from(X, "SpectralEmbedding").astype(np.float64), "SpectralEmbedding"
        one_of(self.affinity, "affinity", name, ("nearest_neighbors", "precomputed"))
        k = whole(self.n_components, "n_components", name, most=rows.shape[0] - 1)
        seed, count = seed_from(self.random_state, name), None
        if self.affinity == "precomputed":
            check_one_set(X, name)
            graph = _symmetric(rows)
        else:
            count = max(len(rows) // 10, 1) if self.n_neighbors is None else self.n_neighbors
            search = NearestNeighbors(n_neighbors=count).fit(rows)
            near = search.kneighbors_graph(rows)
            graph = 0.5 * (near + near.T)
        graph.persist()
        if int(connected_components(_edges_of(graph))[0]) > 1:
            said = f"{name}: the graph is not connected, so coordinates may tell its parts alone"
            warn(said)
        return self._learn(
            embedding=_embedded(graph, k, seed),
            affinity_matrix=graph,
            n_neighbors=count,
            n_features_in=rows.shape[1],
        )

    def fit_transform(self, X: ArrayLike, y: ArrayLike = None) -> DistArray:
        """Compute the embedding and return it, n x k."""
        return self.fit(X, y).embedding_


def _symmetric(graph: DistArray) -> DistArray:
    name = "SpectralEmbedding"
    if graph.shape[0] != graph.shape[1]:
        raise ShapeError(f"{name}: a graph of shape {graph.shape}; affinity='precomputed' takes a square one")
    if float(graph.min()) < 0:
        raise OptionError(f"{name}: the graph has the weight {float(graph.min())}; give none below 0")
    if float(np.abs(graph - graph.T).max()) > _SYMMETRIC:
        warn(f"{name}: the graph is not symmetric; (A + A.T) / 2 is used")
        return 0.5 * (graph + graph.T)
    return graph


def _edges_of(graph: DistArray) -> DistArray:
    if graph.sparse:
        return graph
    starts, ends = nonzero(graph)
    return coo_array((1.0, (starts, ends)), shape=graph.shape)


def _embedded(graph: DistArray, k: int, seed: int) -> DistArray:
    # The eigenvectors of I - D^(-1/2) A D^(-1/2), A without its diagonal, of the smallest eigenvalues.
    others = tril(graph, -1) + triu(graph, 1)
    degrees = others.sum(axis=0)
    roots = asarray(np.sqrt(where(degrees > 0, degrees, 1.0)))
    found = eigsh(others / roots / roots[:, None], k + 1, which="LA", tol=_TOLERANCE, seed=seed)
    return with_signs((found.vectors[:, ::-1] / roots[:, None]).T)[1:].T
