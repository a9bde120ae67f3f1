"""Random numbers of laws with parameters, such as gamma and Poisson, each from 64 bits of its own."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from matnb.blocks.formats import NumericArray
from matnb.blocks.kernels.compiled import compiled, given
from matnb.errors import OptionError

# The bits of an element begin a SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number
# generators", 2014), which gives what a rejection needs: a number follows from its own bits and parameters.


@compiled
def _uniform(state: NumericArray) -> float:
    # The middle of one of 2**52 equal parts of (0, 1): never 0 or 1, whose logarithms are taken.
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return (np.float64(z >> np.uint64(12)) + 0.5) * 2.0**-52


@compiled
def _normal(state: NumericArray) -> float:
    # Marsaglia's polar method, 1964; the second number is left.
    while True:
        x = 2.0 * _uniform(state) - 1.0
        y = 2.0 * _uniform(state) - 1.0
        square = x * x + y * y
        if 0.0 < square < 1.0:
            return x * math.sqrt(-2.0 * math.log(square) / square)


@compiled
def _log_gamma(state: NumericArray, shape: float) -> float:
    # Marsaglia, Tsang: "A simple method for generating gamma variables", 2000. Below a shape of 1 it is that
    # of shape + 1 times a power of a uniform number, which logarithms keep from becoming 0.
    if not shape > 0.0:
        return -np.inf if shape == 0.0 else np.nan
    less = 0.0
    if shape < 1.0:
        less = math.log(_uniform(state)) / shape
        shape += 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = _normal(state)
        v = 1.0 + c * x
        if v <= 0.0:
            continue
        v = v * v * v
        u = _uniform(state)
        if u < 1.0 - 0.0331 * x * x * x * x or math.log(u) < 0.5 * x * x + d * (1.0 - v + math.log(v)):
            return math.log(d * v) + less


@compiled
def _log_gammas(raw: NumericArray, shapes: NumericArray, out: NumericArray) -> None:
    state = np.empty(1, np.uint64)
    for i in range(raw.size):
        state[0] = raw[i]
        out[i] = _log_gamma(state, shapes[i])


@compiled
def _betas(raw: NumericArray, a: NumericArray, b: NumericArray, out: NumericArray) -> None:
    # G / (G + H) of two gamma numbers, by their logarithms: both may be too small for a float.
    state = np.empty(1, np.uint64)
    for i in range(raw.size):
        state[0] = raw[i]
        away = _log_gamma(state, b[i]) - _log_gamma(state, a[i])
        out[i] = 1.0 / (1.0 + math.exp(away)) if away < 700.0 else math.exp(-away)


@compiled
def _ts(raw: NumericArray, freedom: NumericArray, out: NumericArray) -> None:
    # A normal number over the root of a mean of squares, which is a gamma number over its mean.
    state = np.empty(1, np.uint64)
    for i in range(raw.size):
        state[0] = raw[i]
        half = 0.5 * freedom[i]
        x = _normal(state)
        out[i] = x if half == np.inf else x * math.exp(0.5 * (math.log(half) - _log_gamma(state, half)))


@compiled
def _stirling_tail(k: float) -> float:
    # log(k!) less Stirling's (k + 1/2) log(k + 1) - (k + 1) + log(2 pi) / 2: Hoermann, 1993.
    if k < 10.0:
        return math.lgamma(k + 1.0) - ((k + 0.5) * math.log(k + 1.0) - (k + 1.0) + 0.9189385332046728)
    square = (k + 1.0) * (k + 1.0)
    return (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / 1260.0 / square) / square) / (k + 1.0)


@compiled
def _poisson(state: NumericArray, mean: float) -> float:
    if mean < 10.0:  # as many uniform numbers as keep their product above exp(-mean)
        least, product, count = math.exp(-mean), _uniform(state), 0
        while product > least:
            product *= _uniform(state)
            count += 1
        return float(count)
    # PTRS of Hoermann: "The transformed rejection method for generating Poisson random variables", 1993.
    root = math.sqrt(mean)
    b = 0.931 + 2.53 * root
    a = -0.059 + 0.02483 * b
    inverse = 1.1239 + 1.1328 / (b - 3.4)
    inside = 0.9277 - 3.6224 / (b - 2.0)
    while True:
        u = _uniform(state) - 0.5
        v = _uniform(state)
        us = 0.5 - abs(u)
        k = math.floor((2.0 * a / us + b) * u + mean + 0.43)
        if us >= 0.07 and v <= inside:
            return k
        if k < 0.0 or (us < 0.013 and v > us):
            continue
        bound = (k + 1.0 - mean) + k * math.log1p((mean - k - 1.0) / (k + 1.0))
        bound -= 0.5 * math.log(k + 1.0) + 0.9189385332046728 + _stirling_tail(k)
        if math.log(v * inverse / (a / (us * us) + b)) <= bound:
            return k


@compiled
def _poissons(raw: NumericArray, means: NumericArray, out: NumericArray) -> int:
    # Returns the place of a mean that is none, or -1.
    state = np.empty(1, np.uint64)
    for i in range(raw.size):
        if not 0.0 <= means[i] < 9.2e18:
            return i
        state[0] = raw[i]
        out[i] = np.int64(_poisson(state, means[i]))
    return -1


@compiled
def _binomial(state: NumericArray, n: float, p: float) -> float:
    # The chance is at most a half.
    q = 1.0 - p
    if n * p < 10.0:  # by adding chances up, from 0 on, as far as ten deviations
        none = math.exp(n * math.log1p(-p))
        most = min(n, n * p + 10.0 * math.sqrt(n * p * q + 1.0))
        while True:
            k, chance, u = 0.0, none, _uniform(state)
            while u > chance and k <= most:
                u -= chance
                k += 1.0
                chance *= (n - k + 1.0) * p / (k * q)
            if k <= most:
                return k
    # BTRS of Hoermann: "The generation of binomial random variates", 1993.
    root = math.sqrt(n * p * q)
    b = 1.15 + 2.53 * root
    a = -0.0873 + 0.0248 * b + 0.01 * p
    inside = 0.92 - 4.2 / b
    alpha = (2.83 + 5.1 / b) * root
    odds = p / q
    m = math.floor((n + 1.0) * p)
    while True:
        u = _uniform(state) - 0.5
        v = _uniform(state)
        us = 0.5 - abs(u)
        k = math.floor((2.0 * a / us + b) * u + n * p + 0.5)
        if us >= 0.07 and v <= inside:
            return k
        if k < 0.0 or k > n:
            continue
        bound = (m + 0.5) * math.log((m + 1.0) / (odds * (n - m + 1.0)))
        bound += (n + 1.0) * math.log((n - m + 1.0) / (n - k + 1.0))
        bound += (k + 0.5) * math.log(odds * (n - k + 1.0) / (k + 1.0))
        bound += _stirling_tail(m) + _stirling_tail(n - m) - _stirling_tail(k) - _stirling_tail(n - k)
        if math.log(v * alpha / (a / (us * us) + b)) <= bound:
            return k


@compiled
def _binomials(raw: NumericArray, counts: NumericArray, chances: NumericArray, out: NumericArray) -> int:
    # Returns the place of parameters that are none, or -1.
    state = np.empty(1, np.uint64)
    for i in range(raw.size):
        n, p = counts[i], chances[i]
        if n < 0 or not 0.0 <= p <= 1.0:
            return i
        state[0] = raw[i]
        if p <= 0.5:
            out[i] = np.int64(_binomial(state, np.float64(n), p))
        else:
            out[i] = n - np.int64(_binomial(state, np.float64(n), 1.0 - p))
    return -1


def _called(
    loop: Callable[..., int | None], dtype: type[np.generic], arrays: tuple[NumericArray, ...]
) -> tuple[NumericArray, int | None]:
    # Elements of their own and parameters that stretch, one after the other.
    shape = np.broadcast_shapes(*(one.shape for one in arrays))
    flat = [given(np.ascontiguousarray(np.broadcast_to(one, shape)).reshape(-1)) for one in arrays]
    out = np.empty(flat[0].size, dtype)
    return out.reshape(shape), loop(*flat, out)


def log_gamma(raw: NumericArray, shape: NumericArray) -> NumericArray:
    """Return logarithms of gamma numbers of scale 1; -inf for a shape of 0, NaN for one below."""
    return _called(_log_gammas, np.float64, (raw, shape))[0]


def gamma(raw: NumericArray, shape: NumericArray) -> NumericArray:
    """Return gamma numbers of scale 1; NaN for a shape below 0."""
    found = log_gamma(raw, shape)
    return np.exp(found, out=found)


def beta(raw: NumericArray, a: NumericArray, b: NumericArray) -> NumericArray:
    """Return beta numbers; NaN where a parameter is not above 0."""
    found = _called(_betas, np.float64, (raw, a, b))[0]
    found[np.broadcast_to(~(np.greater(a, 0) & np.greater(b, 0)), found.shape)] = np.nan
    return found


def standard_t(raw: NumericArray, freedom: NumericArray) -> NumericArray:
    """Return numbers of Student's t; NaN where the degrees of freedom are not above 0."""
    freedom = np.where(np.greater(freedom, 0), freedom, np.nan)
    return _called(_ts, np.float64, (raw, freedom))[0]


def poisson(raw: NumericArray, mean: NumericArray) -> NumericArray:
    """Return Poisson numbers, int64.

    Raises
    ------
    OptionError
        For a mean below 0, NaN, or that no int64 reaches.
    """
    found, wrong = _called(_poissons, np.int64, (raw, mean))
    if wrong != -1:
        value = np.broadcast_to(mean, found.shape).flat[wrong or 0]
        raise OptionError(f"poisson: lam={value} is not a mean: give numbers from 0 to 9.2e18")
    return found


def binomial(raw: NumericArray, count: NumericArray, chance: NumericArray) -> NumericArray:
    """Return binomial numbers, int64.

    Raises
    ------
    OptionError
        For a count below 0, or a chance outside [0, 1].
    """
    found, wrong = _called(_binomials, np.int64, (raw, count, chance))
    if wrong != -1:
        n, p = (np.broadcast_to(one, found.shape).flat[wrong or 0] for one in (count, chance))
        raise OptionError(f"binomial: n={n}, p={p}: give n of 0 or more, and p from 0 to 1")
    return found


VARIATES: dict[str, Callable[..., NumericArray]] = {
    "beta_variate": beta,
    "binomial_variate": binomial,
    "gamma_variate": gamma,
    "log_gamma_variate": log_gamma,
    "poisson_variate": poisson,
    "standard_t_variate": standard_t,
}
