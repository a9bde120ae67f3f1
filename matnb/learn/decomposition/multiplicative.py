"""Multiplicative updates of factors without negative elements, and how far their product is from a matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from matnb.errors import OptionError
from matnb.lazy.array import DistArray
from matnb.lazy.creation import asarray, zeros
from matnb.lazy.functions.elementwise import where
from matnb.lazy.loop import iterate, warn_unless
from matnb.learn.arguments import real
from matnb.learn.decomposition.nonnegative import Factors

EPSILON = float(np.finfo(np.float32).eps)  # in place of a divisor that is 0 or nearly
_SMALLEST = float(np.finfo(np.float64).eps)
_BETWEEN = 10  # updates after which it is looked at how far they have come

State = tuple[Factors, DistArray, DistArray, DistArray]  # with the error, steps taken, and its end


class Penalty(NamedTuple):
    """What is added to a divergence for each element of a factor: of its size, and half of its square."""

    l1: float
    l2: float


def parts(X: DistArray, W: DistArray, V: DistArray, is_frobenius: bool, penalty: Penalty) -> Factors:
    """Return what makes W larger and what makes it smaller, for ``X = W V'``, n x k each.

    Lee and Seung 2001, "Algorithms for non-negative matrix factorization"; sparse X meets the products at its
    entries alone.
    """
    if is_frobenius:
        # X V  and  W V' V
        larger, smaller = X @ V, W @ (V.T @ V)
    else:
        # (X / (W V')) V  and the sums of V, as scikit-learn 1 for a component that is 0
        larger = (X / np.maximum(W @ V.T, EPSILON)) @ V
        sums = V.sum(axis=0)
        smaller = where(sums == 0, 1, sums)[None, :] + zeros(W.shape, W.dtype)
    smaller = smaller + penalty.l1 if penalty.l1 else smaller
    smaller = smaller + penalty.l2 * W if penalty.l2 else smaller
    return larger, where(smaller == 0, EPSILON, smaller).astype(W.dtype)


def updated(X: DistArray, W: DistArray, V: DistArray, is_frobenius: bool, penalty: Penalty) -> DistArray:
    """Return a W that is no worse."""
    larger, smaller = parts(X, W, V, is_frobenius, penalty)
    return W * (larger / smaller)


def cleaned(V: DistArray, is_frobenius: bool) -> DistArray:
    """Return V, of Kullback-Leibler without what has become too small, as scikit-learn has it."""
    return V if is_frobenius else where(V < _SMALLEST, 0, V).astype(V.dtype)


def loss(X: DistArray, W: DistArray, V: DistArray, is_frobenius: bool) -> DistArray:
    """Return the divergence of ``W V'`` from X, without axes: Frobenius' is half of the sum of squares."""
    if not is_frobenius:
        # sum of x log(x / (W V')) - x + W V', where x is 0 of the last alone
        counted = X * (X > EPSILON)
        logs = np.log(where(X > EPSILON, X, 1) / np.maximum(W @ V.T, EPSILON))
        return (counted * logs).sum() - counted.sum() + (W.sum(axis=0) * V.sum(axis=0)).sum()
    if not X.sparse:
        return ((X - W @ V.T) ** 2).sum() / 2
    # |X|^2 - 2 <X, W V'> + |W V'|^2, the last as the sum of W' W times V' V
    crossed = ((X @ V) * W).sum()
    return ((X * X).sum() - 2 * crossed + ((W.T @ W) * (V.T @ V)).sum()) / 2


def divergence(X: DistArray, W: DistArray, V: DistArray, is_frobenius: bool) -> DistArray:
    """Return the root of twice the divergence of ``W V'`` from X, without axes."""
    return np.sqrt(2 * np.maximum(loss(X, W, V, is_frobenius), 0))


def alternated(
    step: Callable[[Factors], Factors],
    error: Callable[[Factors], DistArray],
    start: Factors,
    limits: tuple[int, float],
    estimator: str,
) -> tuple[Factors, DistArray | int]:
    """Return factors and how many steps were taken: at most so many, or until ten do less than a tolerance.

    The tolerance is of the first error.
    """
    most, tol = limits
    if not tol:
        return iterate(step, start, max_iterations=most)[0], most
    first = error(start)
    begun: State = (start, first, asarray(np.int64(0)), asarray(False))

    def steps(state: State) -> State:
        factors, before, taken, _ = state
        factors, n = iterate(step, factors, max_iterations=np.minimum(_BETWEEN, most - taken))
        now = error(factors)
        return factors, now, taken + n, (before - now) / first < tol

    found = iterate(steps, begun, until=lambda old, new: new[3], max_iterations=-(-most // _BETWEEN))
    (factors, _, taken, is_settled), _ = found
    return factors, warn_unless(is_settled, estimator, taken, taken, "give a larger max_iter or tol")


def penalties(model: Any, shape: tuple[int, ...], estimator: str) -> tuple[Penalty, Penalty]:
    """Return those of W and of H, from a model's ``alpha_W``, ``alpha_H`` and ``l1_ratio``."""
    n, p = shape
    of_W = p * real(model.alpha_W, "alpha_W", estimator)
    of_H = n * real(model.alpha_W if model.alpha_H == "same" else model.alpha_H, "alpha_H", estimator)
    share = real(model.l1_ratio, "l1_ratio", estimator)
    if share > 1:
        raise OptionError(f"{estimator}: l1_ratio={share}; give 0 to 1")
    return Penalty(of_W * share, of_W * (1 - share)), Penalty(of_H * share, of_H * (1 - share))
