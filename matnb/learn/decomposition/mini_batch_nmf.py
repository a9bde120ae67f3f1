"""Nonnegative matrix factorization by batches of rows, in memory or from a source."""

from __future__ import annotations

from typing import Any, Self

from matnb.errors import OptionError
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.learn.arguments import whole
from matnb.learn.decomposition.factor_batches import FactorsByBatches
from matnb.learn.decomposition.multiplicative import divergence
from matnb.sources import BatchSource


class MiniBatchNMF(FactorsByBatches):
    """Nonnegative matrix factorization from batches of rows.

    Lefevre, Bach, Fevotte 2011, "Online algorithms for nonnegative matrix factorization with the
    Itakura-Saito divergence", algorithm 1, as in ``sklearn.decomposition.MiniBatchNMF``, without ``verbose``;
    random numbers differ from scikit-learn's.

    Parameters
    ----------
    n_components, init, beta_loss, random_state, alpha_W, alpha_H, l1_ratio
        As in :class:`NMF`; numbers of rows are those of each batch.
    batch_size
        Rows per batch, in order; the last of a pass may have fewer.
    tol
        Stop when H changes by at most this fraction of its norm; with fixed H, when W does; 0 to disable.
    max_no_improvement
        Stop after this many batches without a smaller moving average of the cost; None to disable.
    max_iter
        Maximum number of passes over X.
    forget_factor
        Weight of a batch one pass later, from 0 to 1.
    fresh_restarts, fresh_restarts_max_iter
        Whether to restart W for each batch, with at most this many updates, instead of continuing from the
        last pass. Required for a source.
    transform_max_iter
        Maximum number of updates in ``transform``; None for ``max_iter``.

    Attributes
    ----------
    components_ : DistArray
        H, k x features, with the dtype of X.
    reconstruction_err_ : DistArray
        The square root of twice the divergence, a scalar; not for a source or after ``partial_fit``.
    n_components_, n_features_in_, n_iter_, n_steps_ : int
        k, number of features, passes started, and batches.

    Examples
    --------
    >>> import numpy as np, matnb as mn
    >>> X = np.random.default_rng(0).random((200, 2)) @ [[1.0, 0.0, 2.0], [0.0, 3.0, 1.0]]
    >>> nmf = mn.learn.MiniBatchNMF(n_components=2, batch_size=50, random_state=0)
    >>> W = nmf.fit_transform(X)
    >>> bool(abs(nmf.inverse_transform(W) - X).mean() < 0.1)
    True
    """

    reconstruction_err_: DistArray

    _takes_nonnegative = True

    def __init__(
        self,
        n_components: int | str | None = "auto",
        *,
        init: str | None = None,
        batch_size: int = 1024,
        beta_loss: str = "frobenius",
        tol: float = 1e-4,
        max_no_improvement: int | None = 10,
        max_iter: int = 200,
        alpha_W: float = 0.0,
        alpha_H: float | str = "same",
        l1_ratio: float = 0.0,
        forget_factor: float = 0.7,
        fresh_restarts: bool = False,
        fresh_restarts_max_iter: int = 30,
        transform_max_iter: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.init = init
        self.batch_size = batch_size
        self.beta_loss = beta_loss
        self.tol = tol
        self.max_no_improvement = max_no_improvement
        self.max_iter = max_iter
        self.alpha_W = alpha_W
        self.alpha_H = alpha_H
        self.l1_ratio = l1_ratio
        self.forget_factor = forget_factor
        self.fresh_restarts = fresh_restarts
        self.fresh_restarts_max_iter = fresh_restarts_max_iter
        self.transform_max_iter = transform_max_iter
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike = None, **params: object) -> Self:
        """Learn H.

        Parameters
        ----------
        X
            n x p nonnegative numbers, sparse or dense; or a source from ``mn.sources``, whose own batches are
            used.
        y
            Ignored; present for compatibility with scikit-learn.
        params
            Initial ``W`` and ``H`` for ``init="custom"``; only ``H`` for a source.
        """
        if isinstance(X, BatchSource):
            return self._fit_source(X, **params)
        self.fit_transform(X, y, **params)
        return self

    def fit_transform(  # type: ignore[override]  # scikit-learn's arguments
        self, X: ArrayLike, y: ArrayLike = None, W: object = None, H: object = None
    ) -> DistArray:
        """Fit H to rows in memory, and return W, n x k; see ``fit``."""
        if isinstance(X, BatchSource):
            raise OptionError(f"{self._name}.fit_transform of a source: call fit, and transform its batches")
        rows, most = self._rows(X), self._most()
        size = self._size(rows)
        found, (factors, gained) = self._over_rows(rows, *self._start(rows, W, H), size)
        if self.fresh_restarts:
            found = self._solved(rows, factors.V, most)
        error = divergence(rows, found, factors.V, self._is_frobenius())
        fading, count = self._fading_of(size, rows.shape[0]), -(-rows.shape[0] // size)
        self._keep(factors, fading, gained, count, reconstruction_err=error, _W=found)
        return self.__dict__.pop("_W_")

    def transform(self, X: ArrayLike) -> DistArray:
        """Return W, m x k, for other rows, with fixed H."""
        self._check_fitted("transform")
        H = self.components_
        rows = self._rows(X, self.n_features_in_).astype(H.dtype)
        return self._solved(rows, H.T, self._most()).persist()

    def _most(self) -> int:
        most = self.max_iter if self.transform_max_iter is None else self.transform_max_iter
        return whole(most, "transform_max_iter", self._name)
