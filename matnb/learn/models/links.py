"""Links of targets to scores: what each makes of a score, and between which bounds its targets are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from matnb.lazy import special
from matnb.lazy.array import DistArray
from matnb.lazy.creation import ones
from matnb.lazy.functions.shaping import concatenate

_LOG_ROOT = 0.5 * np.log(2 * np.pi)


class LinkFunctions(NamedTuple):
    """Of ``eta = X @ w``: the mean of y, the loss, its slope and curvature in eta; bounds of y."""

    mean: Callable[[Any], Any]
    loss: Callable[[Any, Any], Any]
    slope: Callable[[Any, Any], Any]
    curvature: Callable[[Any, Any], Any]
    least: float = -np.inf
    most: float = np.inf


def _distance(eta: Any) -> Any:
    # exp(-|eta|), at most 1: the one exponential of a logit, which its loss and its slope have in common.
    return np.exp(-abs(eta))


def softplus(eta: Any) -> Any:
    """Return log(1 + exp(eta)) as max(eta, 0) + log(1 + exp(-|eta|)), which does not overflow.

    ``np.logaddexp`` is the same to rounding, but a loop without vectors.
    """
    return np.maximum(eta, 0) + np.log1p(_distance(eta))


def logistic(eta: Any) -> Any:
    """Return 1 / (1 + exp(-eta)), with the exponential of :func:`softplus`."""
    e = _distance(eta)
    return np.where(eta >= 0, 1.0, e) / (1 + e)


def _probit_slope(eta: Any, y: Any) -> Any:
    # The density over the distribution function, whose quotient is finite though both go to 0.
    log_density = -0.5 * eta * eta - _LOG_ROOT
    return (1 - y) * np.exp(log_density - special.log_ndtr(-eta)) - y * np.exp(
        log_density - special.log_ndtr(eta)
    )


def _probit_curvature(eta: Any, y: Any) -> Any:
    log_density = -0.5 * eta * eta - _LOG_ROOT
    below = np.exp(log_density - special.log_ndtr(eta))
    above = np.exp(log_density - special.log_ndtr(-eta))
    return y * below * (eta + below) + (1 - y) * above * (above - eta)


def _logit_curvature(eta: Any, y: Any) -> Any:
    mean = logistic(eta)
    return mean * (1 - mean)


LINKS = {
    "identity": LinkFunctions(lambda eta: eta, lambda eta, y: 0.5 * (eta - y) ** 2, lambda eta, y: eta - y,
        lambda eta, y: ones(eta.shape)),
    "logit": LinkFunctions(
        logistic,
        lambda eta, y: softplus(eta) - y * eta,
        lambda eta, y: logistic(eta) - y,
        _logit_curvature,
        0,
        1,
    ),
    "log": LinkFunctions(np.exp, lambda eta, y: np.exp(eta) - y * eta, lambda eta, y: np.exp(eta) - y,
        lambda eta, y: np.exp(eta), 0),
    "probit": LinkFunctions(
        lambda eta: special.ndtr(eta),
        lambda eta, y: -y * special.log_ndtr(eta) - (1 - y) * special.log_ndtr(-eta),
        _probit_slope,
        _probit_curvature,
        0,
        1,
    ),
    # Of all targets together: eta's rows, not its elements.
    "softmax": LinkFunctions(
        lambda eta: special.softmax(eta, axis=1),
        lambda eta, y: y * (special.logsumexp(eta, axis=1, keepdims=True) - eta),
        lambda eta, y: special.softmax(eta, axis=1) * y.sum(axis=1, keepdims=True) - y,
        lambda eta, y: None,
        0,
    ),
}  # fmt: skip


def hessian_of(X: DistArray, curvature: DistArray, mask: DistArray | None, has_intercept: bool) -> DistArray:
    """Return the second derivatives of a loss by weights, and then an intercept, from those by each score."""
    inner, side = X.T @ (curvature[:, None] * X), X.T @ curvature
    if mask is not None:
        inner, side = inner * (mask[:, None] * mask), side * mask
    if not has_intercept:
        return inner
    last = concatenate([side, curvature.sum()[None]])
    return concatenate([concatenate([inner, side[:, None]], axis=1), last[None]])
