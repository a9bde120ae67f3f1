"""Principal components: the directions in which rows vary most."""

from __future__ import annotations

from typing import Self

import numpy as np

from matnb.errors import OptionError, TooLargeError
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.learn.arguments import real, rows_from, seed_from, whole
from matnb.learn.decomposition.components import PrincipalComponents
from matnb.learn.decomposition.spectra import (
    TOLERANCE,
    SolverOptions,
    num_components,
    solver_of,
    spectrum,
    with_signs,
)


class PCA(PrincipalComponents):
    """Principal component analysis: the directions in which rows vary most.

    Pearson 1901; with noise as in Tipping and Bishop 1999, "Mixtures of probabilistic principal component
    analyzers". Arguments and attributes are scikit-learn's, without ``copy``, ``n_oversamples``,
    ``power_iteration_normalizer`` and ``n_components="mle"``.

    Parameters
    ----------
    n_components
        Number of components; or, between 0 and 1, the share of the variance that they must explain; by
        default all.
    whiten
        Whether to scale coordinates to unit variance.
    svd_solver
        "full": SVD of the centered rows, in chunks if there are many. "covariance_eigh": eigenvectors of the
        p x p covariance matrix. "arpack": Lanczos bidiagonalization, and "randomized" (Halko et al. 2011),
        neither of which stores the centered rows. "auto": scikit-learn's choice, and "arpack" for sparse X.
    tol
        Tolerance of "arpack"; 0 means 1e-12.
    iterated_power
        Number of power iterations of "randomized"; "auto": 7 for few components, else 4.
    random_state
        A seed for "arpack" and "randomized".

    Attributes
    ----------
    components_
        k x p with orthonormal rows; the element of largest magnitude in each row is positive.
    explained_variance_, explained_variance_ratio_, singular_values_
        Of shape (k,), descending.
    mean_
        Of shape (p,).
    noise_variance_, n_components_, n_samples_, n_features_in_
        The mean variance of the omitted components, a float; k, n and p.

    Raises
    ------
    ShapeError, OptionError
        For an X that is not a matrix or has NaN, a single row, a number of components outside 1 to min(n, p),
        a share with a solver that does not find all components, and a "full" SVD of sparse X.

    Examples
    --------
    >>> import numpy as np, matnb as mn
    >>> X = np.array([[-1.0, -1.0], [-2.0, -1.0], [-3.0, -2.0], [1.0, 1.0], [2.0, 1.0], [3.0, 2.0]])
    >>> pca = mn.learn.PCA(n_components=2).fit(X)
    >>> pca.explained_variance_ratio_.compute().round(4), pca.singular_values_.compute().round(4)
    (array([0.9924, 0.0076]), array([6.3006, 0.5498]))
    """

    def __init__(
        self,
        n_components: object = None,
        *,
        whiten: bool = False,
        svd_solver: str = "auto",
        tol: float = 0.0,
        iterated_power: object = "auto",
        random_state: object = None,
    ) -> None:
        self.n_components = n_components
        self.whiten = whiten
        self.svd_solver = svd_solver
        self.tol = tol
        self.iterated_power = iterated_power
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike = None) -> Self:
        """Fit the components.

        Parameters
        ----------
        X
            n x p, sparse or dense; a sparse one stays sparse.
        y
            Ignored; present for compatibility with scikit-learn.
        """
        rows = rows_from(X, "PCA")
        n, p = rows.shape
        if n < 2:
            raise OptionError("PCA: X has one row; give at least two")
        solver = solver_of(rows, self.svd_solver, self.n_components)
        k = num_components(rows, solver, self.n_components)
        mean = rows.mean(axis=0)
        options = SolverOptions(
            real(self.tol, "tol", "PCA") or TOLERANCE,
            self._rounds(rows, k),
            seed_from(self.random_state, "PCA"),
        )
        try:
            found = spectrum(rows, mean, solver, k, options)
        except TooLargeError:
            raise TooLargeError(
                f"PCA(svd_solver={solver!r}) of X of shape {rows.shape}: one worker decomposes up to 64 MB; "
                "find some components, as with n_components=10, svd_solver='randomized'"
            ) from None
        variances = found.values**2 / (n - 1)
        is_whole = solver in ("full", "covariance_eigh")
        total = variances.sum() if is_whole else rows.var(axis=0, ddof=1).sum()
        if 0 < k < 1:
            k = int(np.searchsorted(np.cumsum(np.asarray(variances / total)), k, side="right")) + 1
        k, left_out = int(k), min(n, p) - int(k)
        noise = (total - variances[:k].sum()) / left_out if left_out else 0.0
        noise = variances[k:].mean() if is_whole and left_out else noise
        return self._learn(
            components=with_signs(found.vectors[:k]).astype(rows.dtype),
            explained_variance=variances[:k].astype(rows.dtype),
            explained_variance_ratio=(variances[:k] / total).astype(rows.dtype),
            singular_values=found.values[:k].astype(rows.dtype),
            mean=mean,
            noise_variance=float(noise),
            n_components=k,
            n_samples=n,
            n_features_in=p,
        )

    def _rounds(self, X: DistArray, k: float) -> int:
        if self.iterated_power == "auto":
            return 7 if k < 0.1 * min(X.shape) else 4
        return whole(self.iterated_power, "iterated_power", "PCA", least=0)
