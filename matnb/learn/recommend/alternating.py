"""The least squares of ratings that alternate between factors of users and of items, and what they lessen."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matnb.lazy.array import DistArray
from matnb.lazy.creation import zeros
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.shaping import concatenate
from matnb.lazy.functions.stacks import segment_solves
from matnb.lazy.loop import iterate
from matnb.lazy.random import default_rng

CG_STEPS = 3  # from where the last half round ended few are enough
_SPREAD = 0.1  # of first factors, which are to differ


class AlternatingSquares(NamedTuple):
    """What the factors X of rows are to make least, given the factors Y of columns and ratings R.

    Without a confidence ``sum of (r_ui - x_u . y_i)^2 over the entries + c (sum of n_u |x_u|^2 + sum of
    n_i |y_i|^2)``, n the numbers of entries; with one, a, ``sum of (1 + a r_ui) (p_ui - x_u . y_i)^2 over all
    u and i + c (sum of |x_u|^2 + sum of |y_i|^2)``, p 1 where r is above 0, else 0.
    """

    regularization: float
    confidence: float | None
    solver: str
    num_steps: int = CG_STEPS

    def start(self, R: DistArray, k: int, seed: int) -> DistArray:
        """Return first factors of the columns: 0 for those without entries.

        The first of explicit ratings is their mean, as Zhou et al. have it.
        """
        counts = num_entries(R.T)
        Y = _SPREAD * default_rng(seed).standard_normal((R.shape[1], k), dtype=R.dtype)
        if self.confidence is None:
            means = R.sum(axis=0) / where(counts > 0, counts, 1)
            Y = concatenate([means[:, None].astype(R.dtype), Y[:, 1:]], axis=1)
        return where(counts[:, None] > 0, Y, np.array(0, R.dtype))

    def factors(self, R: DistArray, Y: DistArray, X: DistArray) -> DistArray:
        """Return the best factors of the rows, or by ``num_steps`` of "cg" some that are better than X."""
        if self.solver == "cg":
            return self._nearer(R, Y, X)
        c, a = self.regularization, self.confidence
        return segment_solves(R, Y, c, weighted=a is None, confidence=a)

    def _nearer(self, R: DistArray, Y: DistArray, X: DistArray) -> DistArray:
        # A_u x_u = b_u for all rows u at once: conjugate gradients whose coefficients are a row's own.
        c, a = self.regularization, self.confidence
        if a is None:
            # A_u = sum of y_i y_i' over the entries + c n_u I, b = R Y
            weights, b = R.pattern(R.dtype), R @ Y
            shift = (c * num_entries(R)[:, None]).astype(R.dtype)
        else:
            # A_u = Y' Y + sum of a r_ui y_i y_i' + c I, b = (P + a R) Y
            weights, b, shift = a * R, (np.sign(R) + a * R) @ Y, c
        gram = Y.T @ Y

        def product(D: DistArray) -> DistArray:
            of_entries = (weights * (D @ Y.T)) @ Y + shift * D
            return of_entries if a is None else of_entries + D @ gram

        def step(state: tuple[DistArray, ...]) -> tuple[DistArray, ...]:
            X, left, D, size = state
            AD = product(D)
            far = _ratio(size, (D * AD).sum(axis=1))[:, None]
            left = left - far * AD
            new = (left * left).sum(axis=1)
            return X + far * D, left, left + _ratio(new, size)[:, None] * D, new

        left = b - product(X)
        begun: tuple[DistArray, ...] = (X, left, left, (left * left).sum(axis=1))
        return iterate(step, begun, max_iterations=self.num_steps)[0][0]

    def loss(self, R: DistArray, X: DistArray, Y: DistArray) -> DistArray:
        """Return the sum, without axes."""
        c, a = self.regularization, self.confidence
        squares, others = (X * X).sum(axis=1), (Y * Y).sum(axis=1)
        found = R.pattern(R.dtype) * (X @ Y.T)
        if a is None:
            shrunk = (num_entries(R) * squares).sum() + (num_entries(R.T) * others).sum()
            return ((R - found) ** 2).sum() + c * shrunk
        # Over all pairs (x . y)^2 sum up to the sum of X' X times Y' Y; the entries differ from that.
        missed = np.sign(R) - found
        entries = (missed**2 - found**2 + a * R * missed**2).sum()
        return entries + ((X.T @ X) * (Y.T @ Y)).sum() + c * (squares.sum() + others.sum())


def num_entries(R: DistArray) -> DistArray:
    """Return the numbers of entries of the rows, float64."""
    return R.pattern(np.float64).sum(axis=1)


def no_factors(R: DistArray, k: int) -> DistArray:
    """Return factors 0 for the rows."""
    return zeros((R.shape[0], k), dtype=R.dtype)


def _ratio(a: DistArray, b: DistArray) -> DistArray:
    # 0 where there is nothing left to do
    return where(b > 0, a / where(b > 0, b, 1), 0).astype(a.dtype)
