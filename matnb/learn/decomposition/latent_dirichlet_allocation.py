"""Topics of documents: latent Dirichlet allocation by variational Bayes, in batch or online."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from matnb.lazy.array_like import ArrayLike
from matnb.lazy.loop import cond, iterate, iteration
from matnb.learn.arguments import one_of, real, whole
from matnb.learn.decomposition.topic_batches import TopicsByBatches
from matnb.sources import BatchSource


class LatentDirichletAllocation(TopicsByBatches):
    """Topic model of documents: topics are distributions over words, documents are mixtures of topics.

    Blei, Ng, Jordan 2003, "Latent Dirichlet Allocation", by variational Bayes over whole passes, or batch by
    batch: Hoffman, Bach, Blei 2010, "Online Learning for Latent Dirichlet Allocation", algorithm 2. As
    scikit-learn's, except that the inference of a document's topics starts from 1, as in the paper, rather
    than from random numbers.

    Parameters
    ----------
    n_components
        The number of topics.
    doc_topic_prior, topic_word_prior
        Priors of the topics of a document, alpha, and of the words of a topic, eta, above 0; by default ``1 /
        n_components``.
    learning_method
        "batch": each pass learns from all documents at once; "online": from ``batch_size`` at a time.
    learning_decay, learning_offset
        Batch t, from 1, has weight ``(learning_offset + t) ** -learning_decay``; the paper's tau and kappa.
    max_iter
        Passes over all documents of ``fit``.
    batch_size
        Documents per batch; the last may have fewer.
    evaluate_every
        Number of passes between evaluations of the perplexity in ``fit``; 0 or less for never.
    total_samples
        Total number of documents, for ``partial_fit``.
    perp_tol
        ``fit`` stops when the perplexity changes by less than this.
    mean_change_tol, max_doc_update_iter
        Inference of a document's topics stops when their mean change is less than this, or after this many
        iterations.
    random_state
        Seed of the initial topics.

    Attributes
    ----------
    components_
        topics x words, the Dirichlet parameters of each topic, of the dtype of X (float64 or float32).
    exp_dirichlet_component_
        topics x words, the exponentials of the expected logarithms of the topics.
    n_batch_iter_, n_iter_
        The number of the next batch, and of the passes taken.
    bound_
        The perplexity of the documents that were fitted.
    doc_topic_prior_, topic_word_prior_, n_features_in_
        The priors, and the number of words.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> X = sp.csr_array([[3, 2, 0, 0], [2, 4, 0, 0], [0, 0, 5, 2], [0, 0, 1, 3]])
    >>> model = mn.learn.LatentDirichletAllocation(n_components=2, random_state=0).fit(X)
    >>> shares = model.transform(X).compute().round(1)
    """

    _takes_nonnegative = True

    def __init__(
        self,
        n_components: int = 10,
        *,
        doc_topic_prior: float | None = None,
        topic_word_prior: float | None = None,
        learning_method: str = "batch",
        learning_decay: float = 0.7,
        learning_offset: float = 10.0,
        max_iter: int = 10,
        batch_size: int = 128,
        evaluate_every: int = -1,
        total_samples: float = 1e6,
        perp_tol: float = 1e-1,
        mean_change_tol: float = 1e-3,
        max_doc_update_iter: int = 100,
        random_state: object = None,
    ) -> None:
        self.n_components = n_components
        self.doc_topic_prior = doc_topic_prior
        self.topic_word_prior = topic_word_prior
        self.learning_method = learning_method
        self.learning_decay = learning_decay
        self.learning_offset = learning_offset
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.evaluate_every = evaluate_every
        self.total_samples = total_samples
        self.perp_tol = perp_tol
        self.mean_change_tol = mean_change_tol
        self.max_doc_update_iter = max_doc_update_iter
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike = None) -> Self:
        """Learn topics in ``max_iter`` passes over documents.

        Parameters
        ----------
        X
            n x words, sparse or dense: the count of each word in each document. Or a source of
            ``mn.sources``, whose batches are those of online learning, whatever ``batch_size`` is.
        y
            Ignored; present for compatibility with scikit-learn.

        Raises
        ------
        ShapeError, DTypeError
            For anything other than a matrix of real numbers.
        OptionError
            For a count that is negative, NaN or infinite, for arguments outside their bounds, and for a
            source with ``learning_method="batch"`` or evaluation of the perplexity.
        """
        one_of(self.learning_method, "learning_method", self._name, ("batch", "online"))
        if isinstance(X, BatchSource):
            return self._fit_source(X)
        counts, priors = self._counts(X), self._priors()
        every = whole(self.evaluate_every, "evaluate_every", self._name, least=-(2**62))
        tolerance = real(self.perp_tol, "perp_tol", self._name)

        def one_pass(state: tuple[Any, ...]) -> tuple[Any, ...]:
            components, number, before, _ = state
            new = self._updated((components, number), counts, counts.shape[0], priors)
            if every <= 0:
                return (*new, before, False)
            looks = (iteration() + 1) % every == 0
            found = cond(looks, lambda: self._perplexity(counts, new[0], priors), lambda: before)
            return (*new, found, looks & (abs(found - before) < tolerance))

        (components, number, _, ends), taken = iterate(
            one_pass,
            (*self._start(counts), np.inf, False),
            until=lambda _, new: new[3],
            max_iterations=whole(self.max_iter, "max_iter", self._name, least=0),
        )
        perplexity = self._perplexity(counts, components, priors)
        return self._keep((components, number), priors, n_iter=taken - ends, bound=perplexity)
