"""What documents say of topics: their variational Dirichlet distributions, and the bound of a model."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matnb.lazy import special
from matnb.lazy.array import DistArray, handle_of
from matnb.lazy.creation import ones
from matnb.lazy.functions.linear import matmul
from matnb.lazy.loop import iterate


class Priors(NamedTuple):
    """Of the topics of a document, alpha, and of the words of a topic, eta."""

    topics: float
    words: float


_ROUND = 10  # iterations between two looks at which documents have settled
_LEAST = 1e-290  # of what is above this, a sum of products is exact to rounding


def log_expectation(parameters: DistArray) -> DistArray:
    """Return the expected logarithms of rows that are Dirichlet distributed: ``psi(a) - psi(sum a)``."""
    expectation: DistArray = special.psi(parameters) - special.psi(parameters.sum(axis=1, keepdims=True))
    return expectation


def exp_expectation(parameters: DistArray) -> DistArray:
    """Return the exponentials of the expected logarithms."""
    exponentials: DistArray = handle_of(np.exp(log_expectation(parameters)))
    return exponentials


def _shares(X: DistArray, theta: DistArray, beta: DistArray) -> DistArray:
    # Counts over what the topics of a document make of its words: only at entries of X.
    shares: DistArray = X / (theta @ beta + np.finfo(X.dtype).eps)
    return shares


def documents_topics(
    X: DistArray, beta: DistArray, prior: float, max_iterations: int, tolerance: float
) -> DistArray:
    """Return the Dirichlet parameters of each document's topics: the E-step.

    Hoffman, Bach, Blei 2010, algorithm 2, lines 4 to 7, for all documents at once, from 1 on. Each document
    is done for itself: it keeps what it has once that changes by less than a tolerance.

    Parameters
    ----------
    X
        n x words, counts.
    beta
        topics x words, the exponentials of the expected logarithms.
    prior
        Of the topics of a document.
    max_iterations
        For each document.
    tolerance
        The mean change over the topics of a document that settles it.

    Returns
    -------
    DistArray
        n x topics, of the dtype of X.
    """
    shape = X.shape[0], beta.shape[0]

    def turn(moving_X: DistArray, moving: DistArray, gamma: DistArray) -> tuple[DistArray, DistArray]:
        theta = exp_expectation(gamma)
        new: Any = prior + theta * (_shares(moving_X, theta, beta) @ beta.T)
        new = np.where(moving[:, None], new, gamma)
        return new, moving & (abs(new - gamma).mean(axis=1) >= tolerance)

    def turns(state: tuple[Any, ...], count: int) -> tuple[Any, ...]:
        gamma, moving = state
        # What has settled is left out of X, so that nothing is computed of it.
        moving_X = X.select(X.pattern() & moving[:, None]) if X.sparse else X
        found, _ = iterate(
            lambda inner: turn(moving_X, inner[1], inner[0]),
            (gamma, moving),
            until=lambda _, new: ~new[1].any(),
            max_iterations=count,
        )
        return found

    state: tuple[Any, ...] = (ones(shape, X.dtype), ones(shape[0], bool))
    state, _ = iterate(
        lambda state: turns(state, _ROUND),
        state,
        until=lambda _, new: ~new[1].any(),
        max_iterations=max_iterations // _ROUND,
    )
    return turns(state, max_iterations % _ROUND)[0] if max_iterations % _ROUND else state[0]


def words_topics(X: DistArray, beta: DistArray, gamma: DistArray) -> DistArray:
    """Return how many of each word belong to each topic, expected: topics x words."""
    theta = exp_expectation(gamma)
    expected: DistArray = beta * (_shares(X, theta, beta).T @ theta).T
    return expected


def bound(
    X: DistArray, gamma: DistArray, components: DistArray, priors: Priors, documents: float
) -> DistArray:
    """Return the variational bound of the logarithm of the likelihood of documents.

    Hoffman, Bach, Blei 2010, equation 4.

    Parameters
    ----------
    X
        n x words, counts.
    gamma
        n x topics, the Dirichlet parameters of each document.
    components
        topics x words, those of each topic.
    priors
        Of both Dirichlet distributions.
    documents
        For how many documents those of X stand, over their number.
    """
    log_theta: Any = log_expectation(gamma)
    log_beta: Any = log_expectation(components)
    likely = np.exp(log_theta) @ np.exp(log_beta)
    # Where every product is too small for a float, the largest stands for their sum.
    largest = -matmul(-log_theta, -log_beta, semiring="min_plus")
    logarithms = np.where(likely > _LEAST, np.log(np.maximum(likely, _LEAST)), largest)
    of_documents = (X * logarithms).sum() + prior_bound(gamma, priors.topics)
    whole: DistArray = documents * of_documents + prior_bound(components, priors.words)
    return whole


def prior_bound(parameters: DistArray, prior: float) -> Any:
    """Return what rows of Dirichlet parameters add to the bound: E[log p(rows | prior)] - E[log q(rows)]."""
    rows, length = parameters.shape
    differences = (prior - parameters) * log_expectation(parameters) + special.gammaln(parameters)
    constant = rows * (special.gammaln(prior * length) - length * special.gammaln(prior))
    return differences.sum() - special.gammaln(parameters.sum(axis=1)).sum() + constant
