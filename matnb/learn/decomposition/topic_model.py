"""What topics that were learned say of documents: the topics of each, and how likely the documents are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.learn.arguments import nonnegative, real, rows_from, whole
from matnb.learn.decomposition.topics import Priors, bound, documents_topics, exp_expectation
from matnb.learn.estimator import Transformer


class TopicModel(Transformer):
    """Documents by their topics."""

    n_components: int
    doc_topic_prior: float | None
    topic_word_prior: float | None
    total_samples: float
    mean_change_tol: float
    max_doc_update_iter: int

    components_: DistArray
    exp_dirichlet_component_: DistArray
    doc_topic_prior_: float
    topic_word_prior_: float
    n_features_in_: int

    if TYPE_CHECKING:

        def fit(self, X: object, y: object = None) -> Self:  # noqa: D102  each model has its own
            ...

    def fit_transform(self, X: ArrayLike, y: ArrayLike = None, *, normalize: bool = True) -> DistArray:  # type: ignore[override]  # as scikit-learn's
        """Learn topics, and return those of each document: ``fit(X).transform(X)``."""
        return self.fit(X, y).transform(X, normalize=normalize)

    def transform(self, X: ArrayLike, *, normalize: bool = True) -> DistArray:
        """Return the topics of each document, n x topics.

        Parameters
        ----------
        X
            n x words, counts.
        normalize
            Their shares, which add up to 1; or else the Dirichlet parameters.

        Raises
        ------
        ShapeError, DTypeError, OptionError
            As of ``fit``, and for another number of words.
        """
        gamma = self._topics(self._known(X, "transform"), self.exp_dirichlet_component_, self._fitted())
        shares: DistArray = gamma / gamma.sum(axis=1, keepdims=True)
        return shares if normalize else gamma

    def score(self, X: ArrayLike, y: ArrayLike = None) -> float:
        """Return the variational bound of the logarithm of the likelihood of documents.

        Parameters
        ----------
        X
            n x words, counts.
        y
            Ignored; present for compatibility with scikit-learn.
        """
        counts = self._known(X, "score")
        gamma = self._topics(counts, self.exp_dirichlet_component_, self._fitted())
        return float(bound(counts, gamma, self.components_, self._fitted(), 1.0))

    def perplexity(self, X: ArrayLike, sub_sampling: bool = False) -> float:
        """Return the exponential of minus the bound for each word of documents.

        Parameters
        ----------
        X
            n x words, counts.
        sub_sampling
            The documents stand for ``total_samples`` of them.
        """
        counts = self._known(X, "perplexity")
        total = real(self.total_samples, "total_samples", self._name, above=True)
        documents = total / counts.shape[0] if sub_sampling else 1.0
        return float(self._perplexity(counts, self.components_, self._fitted(), documents))

    @property
    def _name(self) -> str:
        return type(self).__name__

    def _fitted(self) -> Priors:
        return Priors(self.doc_topic_prior_, self.topic_word_prior_)

    def _known(self, X: object, called: str) -> DistArray:
        self._check_fitted(called)
        return self._counts(X, self.n_features_in_)

    def _counts(self, X: object, num_words: int | None = None) -> DistArray:
        return nonnegative(rows_from(X, self._name, num_words), self._name, "X")

    def _priors(self) -> Priors:
        usual = 1 / whole(self.n_components, "n_components", self._name)
        topics = usual if self.doc_topic_prior is None else self.doc_topic_prior
        words = usual if self.topic_word_prior is None else self.topic_word_prior
        return Priors(
            real(topics, "doc_topic_prior", self._name, above=True),
            real(words, "topic_word_prior", self._name, above=True),
        )

    def _topics(self, X: DistArray, beta: DistArray, priors: Priors) -> DistArray:
        most = whole(self.max_doc_update_iter, "max_doc_update_iter", self._name, least=0)
        tolerance = real(self.mean_change_tol, "mean_change_tol", self._name)
        return documents_topics(X, beta, priors.topics, most, tolerance)

    def _perplexity(self, X: DistArray, components: DistArray, priors: Priors, documents: float = 1.0) -> Any:
        gamma = self._topics(X, exp_expectation(components), priors)
        return np.exp(-bound(X, gamma, components, priors, documents) / (documents * X.sum()))
