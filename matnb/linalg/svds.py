"""Some singular values of a matrix: Lanczos' bidiagonalization with thick restarts, and a drawn subspace."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from matnb.errors import OptionError
from matnb.lazy.array import DistArray
from matnb.lazy.creation import asarray, zeros
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.linear import norm, outer, qr, svd
from matnb.lazy.functions.mapping import replicated
from matnb.lazy.loop import converging, iterate, iteration
from matnb.lazy.random import Generator, default_rng
from matnb.linalg.eigsh import num_kept_of
from matnb.linalg.operators import matrix_from
from matnb.linalg.orthogonal import against, following

Floats = npt.NDArray[np.float64]
Apply = Callable[[DistArray], DistArray]
_MORE_DRAWN = 10  # vectors than are wanted: Halko, Martinsson and Tropp's choice


class SingularTriplets(NamedTuple):
    """What :func:`svds` gives: ``u`` m x k, ``s`` of shape (k,), ``vh`` k x n, as SciPy."""

    u: DistArray
    s: DistArray
    vh: DistArray


class _Bases(NamedTuple):
    # A right' = left' seen, and A' left' = right' seen' + rest next e', e the last unit vector.
    left: DistArray
    right: DistArray
    seen: DistArray
    next: DistArray
    rest: DistArray


class _Bidiagonalization(NamedTuple):
    bases: _Bases
    num_kept: DistArray
    values: DistArray
    residual: DistArray


def svds(
    A: object,
    k: int = 6,
    which: str = "LM",
    tol: float = 1e-10,
    center: bool = False,
    solver: str = "lanczos",
    max_iterations: int | None = None,
    seed: int = 0,
) -> SingularTriplets:
    """Return the k largest singular values of a matrix, and their vectors.

    By Lanczos' bidiagonalization with thick restarts (Baglama and Reichel 2005, "Augmented Implicitly
    Restarted Lanczos Bidiagonalization Methods"), on two bases of ``max(2 k + 8, 20)`` vectors; or from a
    drawn subspace (Halko, Martinsson and Tropp 2011, "Finding Structure with Randomness").

    Parameters
    ----------
    A
        m x n, sparse or dense, real.
    k
        How many, 1 to the smaller of m and n.
    which
        "LM": the largest. Of the smallest no method here is sure.
    tol
        Of solver "lanczos": it ends when ``|A' u - s v|`` is at most this times the largest singular value,
        for each triplet; below 1e-14 is not reached, and taken for that.
    center
        Take its mean from each column, which is never written: principal components of a sparse matrix.
    solver
        "lanczos", accurate to the tolerance; or "randomized", whose work is known beforehand, and which is
        good where singular values fall off.
    max_iterations
        Of solver "lanczos": the most restarts, 300 when left out; where they do not suffice the triplets are
        as good as they have become. Of solver "randomized": how often the ``k + 10`` vectors drawn are
        multiplied with A and its transpose, 4 when left out.
    seed
        Of the draws: the result follows from it alone.

    Returns
    -------
    SingularTriplets
        ``u``, ``s`` ascending, ``vh``, all float64, so that ``u * s @ vh`` is near A; in SciPy's order, which
        is not that of ``numpy.linalg.svd``. Signs are such that of each row of ``vh`` the element that is
        largest in magnitude is positive.

    Raises
    ------
    ShapeError, DTypeError
        For what is no real matrix.
    OptionError
        For a k outside 1 to the smaller of m and n, an unknown ``which`` or solver.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> u, s, vh = mn.linalg.svds(sp.diags_array([5.0, 1.0, 4.0, 3.0]).tocsr(), k=2)
    >>> s.compute().round(6)
    array([4., 5.])
    """
    matrix = matrix_from("svds", "A", A)
    if not 1 <= k <= min(matrix.shape):
        raise OptionError(f"svds: k={k} of a matrix of shape {matrix.shape}; give 1 to {min(matrix.shape)}")
    if which != "LM":
        raise OptionError(f"svds: which={which!r}; known: 'LM'")
    mean = matrix.mean(axis=0) if center else None
    if solver == "lanczos":
        return _lanczos(
            matrix,
            mean,
            k,
            max(tol, 1e-14),
            300 if max_iterations is None else max_iterations,
            default_rng(seed),
        )
    if solver == "randomized":
        size = min(k + _MORE_DRAWN, *matrix.shape)
        drawn = default_rng(seed).standard_normal((matrix.shape[1], size))
        return _randomized(matrix, mean, k, drawn, 4 if max_iterations is None else max_iterations)
    raise OptionError(f"svds: solver={solver!r}; known: 'lanczos', 'randomized'")


def _products(matrix: DistArray, mean: DistArray | None) -> tuple[Apply, Apply]:
    # With the matrix and with its transpose: of vectors, and of matrices by their columns.
    if mean is None:
        return lambda x: matrix @ x, lambda x: matrix.T @ x
    return lambda x: matrix @ x - mean @ x, lambda x: matrix.T @ x - _times(mean, x.sum(axis=0))


def _times(mean: DistArray, totals: DistArray) -> DistArray:
    return outer(mean, totals) if totals.ndim else mean * totals


def _lanczos(
    matrix: DistArray, mean: DistArray | None, k: int, tol: float, max_iterations: int, rng: Generator
) -> SingularTriplets:
    m, n = matrix.shape
    size = min(m, n, max(2 * k + 8, 20))
    products = _products(matrix, mean)

    def restart(state: _Bidiagonalization) -> _Bidiagonalization:
        bases = _extended(state.bases, products, state.num_kept, rng)
        values, X, Y, kept, num_kept, residual = replicated(
            partial(_triplets, k=k, tol=tol), bases.seen, bases.rest
        )
        new = _Bases(X.T @ bases.left, Y.T @ bases.right, kept, bases.next, bases.rest)
        return _Bidiagonalization(new, num_kept, values, residual)

    first = rng.standard_normal(n)
    bases = _Bases(zeros((size, m)), zeros((size, n)), zeros((size, size)), first / norm(first), asarray(0.0))
    found = iterate(
        restart,
        _Bidiagonalization(bases, asarray(0), zeros(k), asarray(np.inf)),
        until=lambda old, new: new.residual <= tol,
        max_iterations=max_iterations,
    )
    final, _ = converging("svds", found, "give a larger max_iterations, tol or k")
    return _with_signs(final.bases.left[:k].T, final.values, final.bases.right[:k])


def _extended(bases: _Bases, products: tuple[Apply, Apply], begin: DistArray, rng: Generator) -> _Bases:
    forward, backward = products

    def add_vectors(state: _Bases) -> _Bases:
        left, right, seen, v, _ = state
        j = begin + iteration()
        right[j] = v
        u, size, along = against(left, forward(v))
        u = following(left, u, size, norm(along), rng)
        left[j] = u
        seen[:, j] = along
        seen[j, j] = size
        w, rest, back = against(right, backward(u))
        return _Bases(left, right, seen, following(right, w, rest, norm(back), rng), rest)

    made, _ = iterate(add_vectors, bases, max_iterations=bases.seen.shape[0] - begin)
    return made


def _triplets(
    seen: Floats, rest: Floats, k: int, tol: float
) -> tuple[Floats, Floats, Floats, Floats, int, Floats]:
    # The triplets of A as seen give those of A up to |A' u - s v| = rest |last of x|.
    m = len(seen)
    X, values, Yt = np.linalg.svd(seen)
    residuals = np.abs(rest * X[-1, :k]) / max(values[0], np.finfo(float).tiny)
    num_kept = num_kept_of(k, m, int(np.count_nonzero(residuals <= tol)))
    dropped = np.arange(m) >= num_kept
    kept = np.diag(np.where(dropped, 0, values))
    return values[:k], np.where(dropped, 0, X), np.where(dropped, 0, Yt.T), kept, num_kept, residuals.max()


def _randomized(
    matrix: DistArray, mean: DistArray | None, k: int, drawn: DistArray, power_iterations: int
) -> SingularTriplets:
    forward, backward = _products(matrix, mean)

    def step(Q: DistArray) -> DistArray:
        return qr(forward(qr(backward(Q))[0]))[0]

    Q, _ = iterate(step, qr(forward(drawn))[0], max_iterations=power_iterations)
    u, s, vh = svd(backward(Q).T, full_matrices=False)
    return _with_signs(Q @ u[:, :k], s[:k], vh[:k])


def _with_signs(u: DistArray, s: DistArray, vh: DistArray) -> SingularTriplets:
    # And in SciPy's order.
    signs = where(vh.max(axis=1) < -vh.min(axis=1), -1.0, 1.0)
    return SingularTriplets((u * signs)[:, ::-1], s[::-1], (vh * signs[:, None])[::-1])
