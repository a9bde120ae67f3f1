"""What learners of principal components have in common: what they project on, and the way back."""

from __future__ import annotations

import numpy as np

from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import asarray, eye
from matnb.lazy.functions.decompositions import inv, slogdet
from matnb.lazy.functions.elementwise import where
from matnb.learn.arguments import rows_from
from matnb.learn.estimator import Transformer


class PrincipalComponents(Transformer):
    """Rows as coordinates along some components of their mean's neighborhood."""

    whiten: bool
    components_: DistArray
    explained_variance_: DistArray
    mean_: DistArray
    noise_variance_: float
    n_features_in_: int

    def transform(self, X: ArrayLike) -> DistArray:
        """Return the coordinates of rows along the components: n x k.

        Parameters
        ----------
        X
            n x p, sparse or dense.
        """
        rows = self._rows(X, "transform")
        found = rows @ self.components_.T - self.mean_ @ self.components_.T
        return found / self._deviations() if self.whiten else found

    def inverse_transform(self, X: ArrayLike) -> DistArray:
        """Return the approximate rows with the given coordinates, n x p.

        Parameters
        ----------
        X
            n x k, dense.
        """
        self._check_fitted("inverse_transform")
        coordinates = rows_from(X, type(self).__name__, self.components_.shape[0])
        scaled = coordinates * self._deviations() if self.whiten else coordinates
        return scaled @ self.components_ + self.mean_

    def get_covariance(self) -> DistArray:
        """Return the covariance, p x p, of the model: what components explain, and noise (Tipping 1999)."""
        self._check_fitted("get_covariance")
        above = self.explained_variance_ - self.noise_variance_
        components = self.components_
        found = (components.T * where(above > 0, above, 0.0)) @ components
        return found + self.noise_variance_ * eye(found.shape[0])

    def get_precision(self) -> DistArray:
        """Return the inverse of the covariance."""
        return inv(self.get_covariance())

    def score_samples(self, X: ArrayLike) -> DistArray:
        """Return the logarithm of each row's likelihood under the model: n numbers.

        Parameters
        ----------
        X
            n x p, dense.
        """
        centered = self._rows(X, "score_samples") - self.mean_
        covariance = self.get_covariance()
        distances = (centered * (centered @ inv(covariance))).sum(axis=1)
        return -0.5 * (distances + self.n_features_in_ * np.log(2.0 * np.pi) + slogdet(covariance).logabsdet)

    def score(self, X: ArrayLike, y: ArrayLike = None) -> float:
        """Return the mean of :meth:`score_samples`.

        Parameters
        ----------
        X
            n x p, dense.
        y
            Ignored; present for compatibility with scikit-learn.
        """
        return float(self.score_samples(X).mean())

    def _deviations(self) -> DistArray:
        least = np.finfo(self.explained_variance_.dtype).eps
        return asarray(np.maximum(np.sqrt(self.explained_variance_), least))

    def _rows(self, X: object, called: str) -> DistArray:
        self._check_fitted(called)
        return rows_from(X, type(self).__name__, self.n_features_in_)
