"""Nonnegative matrix factorization."""

from __future__ import annotations

from typing import Any, Self

from matnb.errors import warn
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.learn.arguments import nonnegative, one_of, real, rows_from, whole
from matnb.learn.decomposition.multiplicative import alternated, cleaned, divergence, penalties, updated
from matnb.learn.decomposition.nonnegative import Factors, NonnegativeFactors, even_rows


class NMF(NonnegativeFactors):
    """Nonnegative matrix factorization X = W H, as ``sklearn.decomposition.NMF``.

    By multiplicative updates (Lee and Seung 2001, "Algorithms for non-negative matrix factorization"). A
    sparse X is never made dense. With the Kullback-Leibler loss results are bit-identical however X is split;
    with the Frobenius loss they involve BLAS products, whose rounding can vary.

    Parameters
    ----------
    n_components
        k; "auto" takes it from ``init="custom"``, else the number of features, as does None.
    init
        "random", "nndsvd", "nndsvda", "nndsvdar", "custom"; None is "nndsvda", or "random" if k exceeds
        min(n, p). The updates leave zeros at 0, of which "nndsvd" has many. Random numbers differ from
        scikit-learn's.
    solver, beta_loss
        Only "mu"; "frobenius" or "kullback-leibler".
    tol
        Stop when ten updates reduce the error by less than this fraction of the initial error. 0: always run
        ``max_iter``.
    max_iter, random_state
        Maximum number of updates; seed of random numbers.
    alpha_W, alpha_H
        Regularization of W, scaled by the number of features, and of H, scaled by the number of rows; "same"
        for that of W.
    l1_ratio
        Weight of the L1 penalty; the rest is L2.

    Attributes
    ----------
    components_ : DistArray
        H, k x features.
    reconstruction_err_ : DistArray
        The square root of twice the divergence, a scalar.
    n_components_, n_features_in_, n_iter_ : int
        k, number of features, number of updates.

    Examples
    --------
    >>> import numpy as np, matnb as mn
    >>> X = np.array([[1.0, 1.0], [2.0, 1.0], [3.0, 1.2], [4.0, 1.0], [5.0, 0.8], [6.0, 1.0]])
    >>> nmf = mn.learn.NMF(n_components=2, init="random", random_state=0, max_iter=1000)
    >>> W = nmf.fit_transform(X)
    >>> bool(abs(nmf.inverse_transform(W) - X).max() < 0.2)
    True
    """

    components_: DistArray
    reconstruction_err_: DistArray
    n_iter_: int

    _takes_nonnegative = True

    def __init__(
        self,
        n_components: int | str | None = "auto",
        *,
        init: str | None = None,
        solver: str = "mu",
        beta_loss: str = "frobenius",
        tol: float = 1e-4,
        max_iter: int = 200,
        random_state: Any = None,
        alpha_W: float = 0.0,
        alpha_H: float | str = "same",
        l1_ratio: float = 0.0,
    ) -> None:
        self.n_components = n_components
        self.init = init
        self.solver = solver
        self.beta_loss = beta_loss
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.alpha_W = alpha_W
        self.alpha_H = alpha_H
        self.l1_ratio = l1_ratio

    def fit(self, X: ArrayLike, y: ArrayLike = None, **params: object) -> Self:
        """Fit H to n x p nonnegative numbers; ``W`` and ``H`` are initial values for ``init="custom"``."""
        self.fit_transform(X, y, **params)
        return self

    def fit_transform(  # type: ignore[override]  # scikit-learn's arguments
        self, X: ArrayLike, y: ArrayLike = None, W: object = None, H: object = None
    ) -> DistArray:
        """Fit H, and return W, n x k; see ``fit``."""
        rows = nonnegative(rows_from(X, "NMF"), "NMF", "X")
        start = self._start(rows, W, H)
        if self.init == "nndsvd":
            warn(
                "NMF: init='nndsvd' begins with zeros, which the multiplicative updates (solver='mu') never "
                "change, so that the error stays larger; init='nndsvda' and init='nndsvdar' have none"
            )
        (found, V), n = self._factors(rows, start, both=True)
        error = divergence(rows, found, V, self.beta_loss == "frobenius")
        p, k = start[1].shape
        learned = {"n_components": k, "n_features_in": p, "n_iter": n, "_W": found}
        self._learn(components=V.T, reconstruction_err=error, **learned)
        self.n_iter_ = int(self.n_iter_)
        return self.__dict__.pop("_W_")

    def transform(self, X: ArrayLike) -> DistArray:
        """Return W, m x k, for other rows, with fixed H."""
        self._check_fitted("transform")
        V = self.components_.T
        rows = nonnegative(rows_from(X, "NMF", V.shape[0]), "NMF", "X").astype(V.dtype)
        (found, _), _ = self._factors(rows, (even_rows(rows, V.shape[1]), V), both=False)
        return found.persist()

    def _factors(self, X: DistArray, start: Factors, both: bool) -> tuple[Factors, DistArray | int]:
        one_of(self.solver, "solver", "NMF", ("mu",))
        is_frobenius = self._is_frobenius()
        limits = whole(self.max_iter, "max_iter", "NMF"), real(self.tol, "tol", "NMF")
        of_W, of_H = penalties(self, X.shape, "NMF")

        def step(factors: Factors) -> Factors:
            W, V = factors
            W = updated(X, W, V, is_frobenius, of_W)
            return W, cleaned(updated(X.T, V, W, is_frobenius, of_H), is_frobenius) if both else V

        return alternated(step, lambda one: divergence(X, *one, is_frobenius), start, limits, "NMF")
