"""Factors without negative elements: where they begin, and what their estimators have in common."""

from __future__ import annotations

from typing import Any

import numpy as np

from matnb.errors import DTypeError, OptionError, ShapeError
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import asarray, zeros
from matnb.lazy.functions.elementwise import where
from matnb.lazy.random import default_rng
from matnb.learn.arguments import checked, one_of, seed_from, whole
from matnb.learn.estimator import Transformer
from matnb.linalg.svds import svds

Factors = tuple[DistArray, DistArray]
STARTS = ("random", "nndsvd", "nndsvda", "nndsvdar", "custom")
_LEAST = 1e-6  # what is below is 0 of a start from singular vectors


def even_rows(X: DistArray, k: int) -> DistArray:
    """Return a W, n x k, of one number, whose product with an even H has the mean of X."""
    return np.sqrt(X.mean() / k).astype(X.dtype) + zeros((X.shape[0], k), X.dtype)


def start_of(X: DistArray, k: int, init: str | None, random_state: object, estimator: str) -> Factors:
    """Return first factors W, n x k, and H turned round, p x k, of the dtype of X, by scikit-learn's init.

    From singular vectors: Boutsidis and Gallopoulos 2008, "SVD based initialization: a head start for
    nonnegative matrix factorization".
    """
    smaller = min(X.shape)
    if init is None:
        init = "nndsvda" if k <= smaller else "random"
    one_of(init, "init", estimator, STARTS)
    seed = seed_from(random_state, estimator)
    mean = X.mean()
    if init == "random":
        rng = default_rng(seed)
        H, W = (abs(rng.standard_normal((length, k), dtype=X.dtype)) for length in X.shape[::-1])
        scale = np.sqrt(mean / k).astype(X.dtype)
        return scale * W, scale * H
    if k > smaller:
        raise OptionError(
            f"{estimator}: init={init!r} with {k} components of X of shape {X.shape}; give 'random'"
        )
    W, H = _from_singular_vectors(X, k, seed)
    if init == "nndsvd":
        return W, H
    fill = [mean, mean]
    if init == "nndsvdar":
        rng = default_rng(seed)
        fill = [abs(mean * rng.standard_normal(one.shape)) / 100 for one in (W, H)]
    W, H = (where(one == 0, other, one).astype(X.dtype) for one, other in zip((W, H), fill, strict=True))
    return W, H


def _from_singular_vectors(X: DistArray, k: int, seed: int) -> tuple[DistArray, DistArray]:
    # Of each pair of singular vectors the positive or the negative parts, those of the larger product.
    found = svds(X, k, seed=seed)
    u, s, v = found.u[:, ::-1], found.s[::-1], found.vh[::-1].T
    sides = [(np.maximum(one, 0), np.maximum(-one, 0)) for one in (u, v)]
    norms = [[np.sqrt((part * part).sum(axis=0)) for part in side] for side in sides]
    positive, negative = (norms[0][place] * norms[1][place] for place in (0, 1))
    # The first pair is of one sign, whichever it has.
    is_positive = positive > negative
    sizes = np.sqrt(s * where(is_positive, positive, negative))

    def chosen(side: tuple[Any, ...], lengths: list[DistArray]) -> DistArray:
        part, length = (where(is_positive, one, other) for one, other in (side, lengths))
        scaled = part * (sizes / where(length > 0, length, 1))
        return where(scaled < _LEAST, 0, scaled).astype(X.dtype)

    return chosen(sides[0], norms[0]), chosen(sides[1], norms[1])


def given_factor(
    value: object, shape: tuple[int, int], dtype: np.dtype, name: str, estimator: str
) -> DistArray:
    """Return a factor that a user begins with.

    Raises
    ------
    ShapeError, DTypeError, OptionError
        For another shape or dtype, negative elements, and nothing but zeros.
    """
    if value is None:
        raise OptionError(f"{estimator}: init='custom' without {name}; give it beside X")
    given = asarray(value)
    if given.shape != shape:
        raise ShapeError(f"{estimator}: {name} of shape {given.shape}; give one of {shape}")
    if given.dtype != dtype:
        raise DTypeError(f"{estimator}: {name} of {given.dtype} for X of {dtype}; give the same dtype")
    checked(given, estimator, name)
    if float(given.min()) < 0 or not float(given.max()) > 0:
        raise OptionError(f"{estimator}: {name} has a negative element, or is 0; give numbers of 0 or more")
    return given


class NonnegativeFactors(Transformer):
    """What :class:`NMF` and :class:`MiniBatchNMF` have in common."""

    n_components: int | str | None
    init: str | None
    beta_loss: str
    random_state: Any
    components_: DistArray

    def inverse_transform(self, X: ArrayLike) -> DistArray:
        """Return ``W H`` for a W, m x k."""
        self._check_fitted("inverse_transform")
        return asarray(X) @ self.components_

    @property
    def _name(self) -> str:
        return type(self).__name__

    def _is_frobenius(self) -> bool:
        losses = ("frobenius", "kullback-leibler")
        return one_of(self.beta_loss, "beta_loss", self._name, losses) == "frobenius"

    def _start(self, X: DistArray, W: object, H: object, has_rows: bool = True) -> Factors:
        # W and H turned round; W only where it is wanted for rows that stay.
        n, p = X.shape
        k = self.n_components
        if k in ("auto", None):
            is_given = self.init == "custom" and k == "auto" and H is not None
            k = asarray(H).shape[0] if is_given else p
        k = whole(k, "n_components", self._name)
        if self.init != "custom":
            return start_of(X, k, self.init, self.random_state, self._name)
        V = given_factor(H, (k, p), X.dtype, "H", self._name).T
        return given_factor(W, (n, k), X.dtype, "W", self._name) if has_rows else even_rows(X, k), V
