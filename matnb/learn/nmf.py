"""Nonnegative matrix factorization."""

from __future__ import annotations

from typing import Any, Self

from matnb.lazy.array import DistArray
from matnb.learn.arguments import nonnegative, one_of, real, rows_from, whole
from matnb.learn.multiplicative import alternated, cleaned, divergence, penalties, updated
from matnb.learn.nonnegative import Factors, NonnegativeFactors, even_rows


class NMF(NonnegativeFactors):
    """Factors W and H without negative elements whose product is near X, as ``sklearn.decomposition.NMF``.

    By multiplicative updates (Lee and Seung 2001, "Algorithms for non-negative matrix factorization"). A
    sparse X is never made dense. Kullback-Leibler's have the same bits however X is cut; Frobenius' hold
    products by BLAS.

    Parameters
    ----------
    n_components
        k; "auto": as ``init="custom"`` gives, else the number of features, as with None.
    init
        "random", "nndsvd", "nndsvda", "nndsvdar", "custom"; None is "nndsvda", or "random" where k is above
        both sides. Draws are not scikit-learn's.
    solver, beta_loss
        "mu" alone; "frobenius" or "kullback-leibler".
    tol
        It ends where ten updates lessen the error by less than this share of the first one. 0: after
        ``max_iter``.
    max_iter, random_state
        The most updates; the seed of what is drawn.
    alpha_W, alpha_H
        Regularization of W, times the number of features, and H, times the number of rows; "same" as W.
    l1_ratio
        The share of the sizes of elements in it; the rest is of their squares.

    Attributes
    ----------
    components_ : DistArray
        H, k x features.
    reconstruction_err_ : DistArray
        The root of twice the divergence, without axes.
    n_components_, n_features_in_, n_iter_ : int
        k, features, updates.

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

    def fit(self, X: object, y: object = None, **params: object) -> Self:
        """Learn H from n x p numbers of 0 or more; ``W`` and ``H`` begin with ``init="custom"``."""
        self.fit_transform(X, y, **params)
        return self

    def fit_transform(  # type: ignore[override]  # scikit-learn's arguments
        self, X: object, y: object = None, W: object = None, H: object = None
    ) -> DistArray:
        """Learn H, and return W, n x k; see ``fit``."""
        rows = nonnegative(rows_from(X, "NMF"), "NMF", "X")
        start = self._start(rows, W, H)
        (found, V), n = self._factors(rows, start, both=True)
        error = divergence(rows, found, V, self.beta_loss == "frobenius")
        p, k = start[1].shape
        learned = {"n_components": k, "n_features_in": p, "n_iter": n, "_W": found}
        self._learn(components=V.T, reconstruction_err=error, **learned)
        self.n_iter_ = int(self.n_iter_)
        return self.__dict__.pop("_W_")

    def transform(self, X: object) -> DistArray:
        """Return W, m x k, for other rows, by updates from even ones."""
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
