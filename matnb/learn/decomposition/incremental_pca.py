"""Principal components from batches of rows."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import asarray
from matnb.lazy.evaluator import evaluator
from matnb.lazy.functions.decompositions import svd
from matnb.lazy.functions.shaping import concatenate
from matnb.lazy.loop import iterate
from matnb.learn.arguments import rows_from, whole
from matnb.learn.decomposition.components import PrincipalComponents
from matnb.learn.decomposition.spectra import with_signs
from matnb.learn.neighbors.distances import dense


class _Moments(NamedTuple):
    # Rows up to now: how many, their mean and variance, the first components, the noise.
    number: DistArray
    mean: DistArray
    variance: DistArray
    values: DistArray
    vectors: DistArray
    explained: DistArray
    noise: DistArray


class IncrementalPCA(PrincipalComponents):
    """Principal component analysis from batches of rows.

    Ross, Lim, Lin and Yang 2008, "Incremental learning for robust visual tracking": the current components,
    scaled by their singular values, stand for the rows seen so far. Arguments and attributes are
    scikit-learn's, without ``copy``.

    Parameters
    ----------
    n_components
        Number of components; by default the smaller side of the first batch.
    whiten
        Whether to scale coordinates to unit variance.
    batch_size
        Rows per batch in ``fit``; by default five times the number of columns.

    Attributes
    ----------
    components_, explained_variance_, explained_variance_ratio_, singular_values_, mean_, noise_variance_
        As in :class:`PCA`.
    var_
        The variance of each column, of shape (p,).
    n_components_, n_samples_seen_, batch_size_, n_features_in_
        k, rows that were seen, rows of a batch of ``fit``, p.

    Raises
    ------
    ShapeError, OptionError
        For an X that is not a matrix or has NaN, and more components than a batch has rows or columns.

    Examples
    --------
    >>> import numpy as np, matnb as mn
    >>> X = np.random.default_rng(0).normal(size=(100, 3)) * [5.0, 2.0, 1.0]
    >>> model = mn.learn.IncrementalPCA(n_components=1, batch_size=25).fit(X)
    >>> bool(abs(model.components_[0, 0]) > 0.99), model.n_samples_seen_
    (True, 100)
    """

    n_components_: int
    n_samples_seen_: int
    singular_values_: DistArray
    var_: DistArray

    def __init__(
        self, n_components: int | None = None, *, whiten: bool = False, batch_size: int | None = None
    ) -> None:
        self.n_components = n_components
        self.whiten = whiten
        self.batch_size = batch_size

    def fit(self, X: ArrayLike, y: ArrayLike = None) -> Self:
        """Fit the components to rows, n x p, sparse or dense, a batch at a time; y is ignored."""
        rows = rows_from(X, "IncrementalPCA")
        n, p = rows.shape
        size = 5 * p if self.batch_size is None else whole(self.batch_size, "batch_size", "IncrementalPCA")
        # As scikit-learn: rows that are left are a batch, unless they are fewer than components.
        num_whole = (n - (self.n_components or 0)) // size
        end = num_whole * size
        first = size if num_whole > 0 else n
        seen = _after(None, rows[:first], self._count(rows[:first]))
        if end > size:
            more = rows[size:end]
            seen, _ = iterate(lambda seen, X: _after(seen, X, len(seen.values)), seen, over=more, batch=size)
        if 0 < end < n:
            seen = _after(seen, rows[end:], len(seen.values))
        return self._told(seen, batch_size=size)

    def partial_fit(self, X: ArrayLike, y: ArrayLike = None) -> Self:
        """Learn from one more batch of rows, n x p, sparse or dense; y is ignored."""
        if not self.__sklearn_is_fitted__():
            rows = rows_from(X, "IncrementalPCA")
            return self._told(_after(None, rows, self._count(rows)))
        rows = rows_from(X, "IncrementalPCA", self.n_features_in_).astype(self.components_.dtype)
        number, noise = asarray(float(self.n_samples_seen_)), asarray(self.noise_variance_)
        spectrum = self.singular_values_, self.components_, self.explained_variance_
        before = _Moments(number, self.mean_, self.var_, *spectrum, noise)
        return self._told(_after(before, rows, self.n_components_))

    def _count(self, X: DistArray) -> int:
        k = min(X.shape) if self.n_components is None else self.n_components
        return whole(k, "n_components", "IncrementalPCA", most=min(X.shape))

    def _told(self, seen: _Moments, **options: int) -> Self:
        evaluator().persist([one.expression for one in seen])
        return self._learn(
            components=seen.vectors,
            singular_values=seen.values,
            explained_variance=seen.explained,
            explained_variance_ratio=seen.values**2 / (seen.variance.sum() * seen.number),
            mean=seen.mean,
            var=seen.variance,
            noise_variance=float(seen.noise),
            n_components=len(seen.values),
            n_samples_seen=int(seen.number),
            n_features_in=len(seen.mean),
            **options,
        )


def _after(seen: _Moments | None, batch: DistArray, k: int) -> _Moments:
    # The first components of those before, times their singular values, the batch, and how means differ.
    X = dense(batch)
    n, mean, variance = len(X), X.mean(axis=0), X.var(axis=0)
    stacked, total = X - mean, asarray(float(n))
    if seen is not None:
        total = seen.number + n
        shift, share = seen.mean - mean, seen.number * n / total
        between = (np.sqrt(share) * shift)[None].astype(X.dtype)
        stacked = concatenate([seen.values[:, None] * seen.vectors, stacked, between])
        variance = ((seen.variance * seen.number + variance * n + share * shift**2) / total).astype(X.dtype)
        mean = ((seen.mean * seen.number + mean * n) / total).astype(X.dtype)
    _, values, vectors = svd(stacked, full_matrices=False)
    explained = (values**2 / (total - 1)).astype(X.dtype)
    noise = asarray(X.dtype.type(0)) if k in X.shape else explained[k:].mean()
    return _Moments(total, mean, variance, values[:k], with_signs(vectors[:k]), explained[:k], noise)
