"""Topics that are learned from batches of documents, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from matnb.errors import OptionError
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import asarray
from matnb.lazy.loop import iterate
from matnb.lazy.random import default_rng
from matnb.learn.arguments import real, seed_from, whole
from matnb.learn.decomposition.topic_model import TopicModel
from matnb.learn.decomposition.topics import Priors, bound, exp_expectation, prior_bound, words_topics
from matnb.sources import BatchSource, Minibatch

State = tuple[Any, Any]  # components, and the number of the next batch


class TopicsByBatches(TopicModel):
    """Hoffman, Bach, Blei 2010, algorithm 2: each batch moves the topics by a step that gets shorter."""

    learning_method: str
    learning_decay: float
    learning_offset: float
    max_iter: int
    evaluate_every: int
    batch_size: int
    random_state: object
    n_batch_iter_: int
    n_iter_: int
    bound_: float

    def partial_fit(self, X: ArrayLike, y: ArrayLike = None) -> Self:
        """Learn from further documents in one pass, ``batch_size`` at a time; arguments as of ``fit``."""
        is_first = not hasattr(self, "components_")
        counts = self._counts(X, None if is_first else self.n_features_in_)
        priors = self._priors() if is_first else self._fitted()
        state = self._start(counts) if is_first else (self.components_, asarray(self.n_batch_iter_))
        total = real(self.total_samples, "total_samples", self._name, above=True)
        return self._keep(
            self._online(state, counts, total, priors), priors, n_iter=0 if is_first else self.n_iter_
        )

    def _start(self, X: DistArray) -> State:
        shape = whole(self.n_components, "n_components", self._name), X.shape[1]
        rng = default_rng(seed_from(self.random_state, self._name))
        return rng.gamma(100.0, 0.01, shape).astype(X.dtype), 1

    def _updated(self, state: State, X: DistArray, total: float, priors: Priors) -> State:
        # One pass over all documents.
        if self.learning_method == "online":
            return self._online(state, X, total, priors)
        return priors.words + self._words(state[0], X, priors), state[1] + 1

    def _words(self, components: DistArray, X: DistArray, priors: Priors) -> DistArray:
        beta = exp_expectation(components)
        return words_topics(X, beta, self._topics(X, beta, priors))

    def _step(self, total: float, priors: Priors) -> Callable[[State, DistArray], State]:
        decay = real(self.learning_decay, "learning_decay", self._name)
        offset = real(self.learning_offset, "learning_offset", self._name, least=1.0)

        def step(state: State, X: DistArray) -> State:
            components, number = state
            # rho = (tau + t)^-kappa
            rho = (asarray(offset + number) ** -decay).astype(X.dtype)
            found = priors.words + total / X.shape[0] * self._words(components, X, priors)
            return (1 - rho) * components + rho * found, number + 1

        return step

    def _online(self, state: State, X: DistArray, total: float, priors: Priors) -> State:
        step = self._step(total, priors)
        size = whole(self.batch_size, "batch_size", self._name)
        rows = X.shape[0] // size * size
        if rows:
            state, _ = iterate(step, state, over=X[:rows], batch=size)
        return step(state, X[rows:]) if rows < X.shape[0] else state

    def _fit_source(self, source: BatchSource) -> Self:
        if self.learning_method != "online" or self.evaluate_every > 0:
            raise OptionError(
                f"{self._name}: with a source only one batch is in memory; give learning_method='online' and "
                "evaluate_every=0"
            )
        priors, passes = self._priors(), whole(self.max_iter, "max_iter", self._name, least=0)
        first = self._counts(source.first.X)
        rows, batches = iterate(lambda rows, batch: rows + batch.X.shape[0], 0, over=source)
        step = self._step(float(rows), priors)

        def learn(state: tuple[Any, ...], batch: Minibatch) -> tuple[Any, ...]:
            X = batch.X.astype(first.dtype)
            return (*step(state[:2], X), np.minimum(state[2], X.min()))

        def judge(state: tuple[Any, ...], batch: Minibatch) -> tuple[Any, ...]:
            X = batch.X.astype(first.dtype)
            gamma = self._topics(X, exp_expectation(components), priors)
            return state[0] + bound(X, gamma, components, priors, 1.0), state[1] + X.sum()

        start = (*self._start(first), np.zeros((), first.dtype))
        (components, number, least), _ = iterate(learn, start, over=source, epochs=passes)
        if float(least) < 0:
            raise OptionError(f"{self._name}: {source!r} has the number {float(least):g}; give 0 or more")
        (total, words), _ = iterate(judge, (0.0, 0.0), over=source)
        # The topics' own part is in the bound of each batch.
        total = total - (batches - 1) * prior_bound(components, priors.words)
        return self._keep((components, number), priors, n_iter=passes, bound=np.exp(-total / words))

    def _keep(self, state: State, priors: Priors, **others: Any) -> Self:
        components, number = state
        self._learn(
            components=components,
            exp_dirichlet_component=exp_expectation(components),
            n_batch_iter=number,
            doc_topic_prior=priors.topics,
            topic_word_prior=priors.words,
            n_features_in=components.shape[1],
            **others,
        )
        self.n_batch_iter_, self.n_iter_ = int(self.n_batch_iter_), int(self.n_iter_)
        if "bound" in others:
            self.bound_ = float(self.bound_)
        return self
