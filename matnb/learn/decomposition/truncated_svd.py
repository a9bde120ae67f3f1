"""Rows as coordinates along the largest singular vectors: latent semantic analysis."""

from __future__ import annotations

from typing import Self

from matnb.errors import OptionError
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.learn.arguments import one_of, real, rows_from, seed_from, whole
from matnb.learn.decomposition.spectra import TOLERANCE, with_signs
from matnb.learn.estimator import Transformer
from matnb.linalg.svds import svds


class TruncatedSVD(Transformer):
    """Truncated SVD: the coordinates of rows along the top singular vectors of X, without centering.

    Deerwester et al. 1990, "Indexing by latent semantic analysis". Arguments and attributes are
    scikit-learn's, without ``n_oversamples`` and ``power_iteration_normalizer``.

    Parameters
    ----------
    n_components
        Number of components.
    algorithm
        "randomized" (Halko, Martinsson and Tropp 2011), or "arpack": Lanczos bidiagonalization.
    n_iter
        Number of power iterations of "randomized".
    random_state
        A seed.
    tol
        Tolerance of "arpack"; 0 means 1e-12.

    Attributes
    ----------
    components_
        k x p with orthonormal rows; the element of largest magnitude in each row is positive.
    explained_variance_, explained_variance_ratio_
        The variance of the coordinates, and the same divided by the variance of X, both of shape (k,).
    singular_values_
        Of shape (k,), descending.
    n_features_in_
        p.

    Raises
    ------
    ShapeError, OptionError
        For an X that is not a matrix or has NaN, and more components than X has rows or columns.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> X = sp.diags_array([5.0, 1.0, 4.0, 3.0]).tocsr()
    >>> model = mn.learn.TruncatedSVD(2, algorithm="arpack", random_state=0).fit(X)
    >>> model.singular_values_.compute().round(6)
    array([5., 4.])
    """

    components_: DistArray
    n_features_in_: int

    def __init__(
        self,
        n_components: int = 2,
        *,
        algorithm: str = "randomized",
        n_iter: int = 5,
        random_state: object = None,
        tol: float = 0.0,
    ) -> None:
        self.n_components = n_components
        self.algorithm = algorithm
        self.n_iter = n_iter
        self.random_state = random_state
        self.tol = tol

    def fit(self, X: ArrayLike, y: ArrayLike = None) -> Self:
        """Fit the components.

        Parameters
        ----------
        X
            n x p, sparse or dense; a sparse one stays sparse.
        y
            Ignored; present for compatibility with scikit-learn.
        """
        rows, name = rows_from(X, "TruncatedSVD"), "TruncatedSVD"
        algorithm = one_of(self.algorithm, "algorithm", name, ("arpack", "randomized"))
        k, seed = whole(self.n_components, "n_components", name), seed_from(self.random_state, name)
        if k > min(rows.shape):
            raise OptionError(
                f"{name}: n_components={k} of X of shape {rows.shape}; give its shorter side at most"
            )
        if algorithm == "arpack":
            tol = real(self.tol, "tol", name) or TOLERANCE
            _, s, vh = svds(rows, k, tol=tol, seed=seed)
        else:
            rounds = whole(self.n_iter, "n_iter", name, least=0)
            _, s, vh = svds(rows, k, solver="randomized", max_iterations=rounds, seed=seed)
        components = with_signs(vh[::-1]).astype(rows.dtype)
        variances = (rows @ components.T).var(axis=0)
        return self._learn(
            components=components,
            explained_variance=variances,
            explained_variance_ratio=variances / rows.var(axis=0).sum(),
            singular_values=s[::-1].astype(rows.dtype),
            n_features_in=rows.shape[1],
        )

    def transform(self, X: ArrayLike) -> DistArray:
        """Return the coordinates of rows along the components: n x k.

        Parameters
        ----------
        X
            n x p, sparse or dense.
        """
        self._check_fitted("transform")
        return rows_from(X, "TruncatedSVD", self.n_features_in_) @ self.components_.T

    def inverse_transform(self, X: ArrayLike) -> DistArray:
        """Return the approximate rows with the given coordinates, n x p.

        Parameters
        ----------
        X
            n x k, dense.
        """
        self._check_fitted("inverse_transform")
        return rows_from(X, "TruncatedSVD", self.components_.shape[0]) @ self.components_
