"""Rows placed by the smoothest functions on a graph of those that are near to each other."""

from __future__ import annotations

import warnings
from typing import Self

import numpy as np

from matnb.errors import OptionError, ShapeError
from matnb.graph.components import connected_components
from matnb.lazy.array import DistArray
from matnb.lazy.creation import asarray, coo_array
from matnb.lazy.functions.diagonals import tril, triu
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.indexing import nonzero
from matnb.learn.arguments import one_of, rows_from, seed_from, whole
from matnb.learn.estimator import Estimator
from matnb.learn.neighbors import NearestNeighbors
from matnb.learn.spectra import with_signs
from matnb.linalg.eigsh import eigsh

_TOLERANCE = 1e-12  # of eigenvectors
_SYMMETRIC = 1e-10  # up to which differences are rounding, as scikit-learn has it


class SpectralEmbedding(Estimator):
    """Rows as coordinates on the eigenvectors of a graph's normalized Laplacian.

    Belkin and Niyogi 2003, "Laplacian eigenmaps for dimensionality reduction and data representation". The
    meaning of arguments and attributes is scikit-learn's, of which ``gamma`` and the affinity "rbf" that it
    belongs to, ``eigen_solver``, ``eigen_tol`` and ``n_jobs`` are left out.

    Parameters
    ----------
    n_components
        How many coordinates.
    affinity
        "nearest_neighbors": the graph of those of each row, both ways; "precomputed": X is the graph, n x n,
        symmetric, sparse or dense.
    random_state
        A seed for the first vector.
    n_neighbors
        Of "nearest_neighbors", the row itself among them; a tenth of the rows when left out.

    Attributes
    ----------
    embedding_
        n x k: the eigenvectors D^(-1/2) v of the smallest eigenvalues but the first, ascending; of each the
        element that is largest in magnitude is positive.
    affinity_matrix_
        The graph, n x n.
    n_neighbors_, n_features_in_
        Neighbors looked for, None without; columns of X.

    Raises
    ------
    ShapeError, OptionError
        For an X that is not a matrix or has NaN, a graph that is not square or has negative weights, and more
        coordinates than rows less one.

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

    def fit(self, X: object, y: object = None) -> Self:
        """Place rows.

        Parameters
        ----------
        X
            n x p, sparse or dense; or a graph, n x n.
        y
            Nothing; there as in scikit-learn.
        """
        rows, name = rows_from(X, "SpectralEmbedding").astype(np.float64), "SpectralEmbedding"
        one_of(self.affinity, "affinity", name, ("nearest_neighbors", "precomputed"))
        k = whole(self.n_components, "n_components", name, most=rows.shape[0] - 1)
        seed, count = seed_from(self.random_state, name), None
        if self.affinity == "precomputed":
            graph = _symmetric(rows)
        else:
            count = max(len(rows) // 10, 1) if self.n_neighbors is None else self.n_neighbors
            search = NearestNeighbors(n_neighbors=count).fit(rows)
            near = search.kneighbors_graph(rows)
            graph = 0.5 * (near + near.T)
        graph.persist()
        if int(connected_components(_edges_of(graph))[0]) > 1:
            said = f"{name}: the graph is not connected, so coordinates may tell its parts alone"
            warnings.warn(said, stacklevel=2)
        return self._learn(
            embedding=_embedded(graph, k, seed),
            affinity_matrix=graph,
            n_neighbors=count,
            n_features_in=rows.shape[1],
        )

    def fit_transform(self, X: object, y: object = None) -> DistArray:
        """Place rows, and return where: n x k."""
        return self.fit(X, y).embedding_


def _symmetric(graph: DistArray) -> DistArray:
    name = "SpectralEmbedding"
    if graph.shape[0] != graph.shape[1]:
        raise ShapeError(f"{name}: a graph of shape {graph.shape}; affinity='precomputed' takes a square one")
    if float(graph.min()) < 0:
        raise OptionError(f"{name}: the graph has the weight {float(graph.min())}; give none below 0")
    if float(np.abs(graph - graph.T).max()) > _SYMMETRIC:
        warnings.warn(f"{name}: the graph is not symmetric; the mean of both ways is taken", stacklevel=3)
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
