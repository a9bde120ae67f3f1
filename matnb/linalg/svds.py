"""Some singular values of a matrix: Lanczos' bidiagonalization with thick restarts, and a drawn subspace."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from matnb.errors import OptionError, suggestion
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.fields import has_fields
from matnb.lazy.functions.decompositions import qr, svd
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.linear import outer
from matnb.lazy.loop import iterate
from matnb.lazy.random import default_rng
from matnb.linalg.operators import matrix_from
from matnb.linalg.triplets import largest_triplets
from matnb.tables.results import shows

Floats = npt.NDArray[np.float64]
Apply = Callable[[DistArray], DistArray]
_MORE_DRAWN = 10  # vectors than are wanted: Halko, Martinsson and Tropp's choice


@shows(s="spectrum")
@has_fields
class SingularTriplets(NamedTuple):
    """Result of :func:`svds`: ``u`` m x k, ``s`` of shape (k,), ``vh`` k x n, as in SciPy."""

    u: DistArray
    s: DistArray
    vh: DistArray


def svds(
    A: ArrayLike,
    k: int = 6,
    which: str = "LM",
    tol: float = 1e-10,
    center: bool = False,
    solver: str = "lanczos",
    max_iterations: int | None = None,
    seed: int = 0,
) -> SingularTriplets:
    """Return the k largest singular values of a matrix, with their singular vectors.

    By Lanczos bidiagonalization with thick restarts (Baglama and Reichel 2005, "Augmented Implicitly
    Restarted Lanczos Bidiagonalization Methods"), with two bases of ``max(2 k + 8, 20)`` vectors; or by
    random projection (Halko, Martinsson and Tropp 2011, "Finding Structure with Randomness"). Lanczos' method
    counts a multiple singular value as often as it is there, as :func:`eigsh` does.

    Parameters
    ----------
    A
        m x n, sparse or dense, real.
    k
        Number of singular values, 1 to min(m, n).
    which
        "LM", the largest. No method here finds the smallest reliably.
    tol
        For solver "lanczos": stop when ``|A' u - s v|`` is at most this times the largest singular value, for
        each triplet; values below 1e-14 are treated as 1e-14.
    center
        Subtract the mean from each column, without storing the centered matrix: principal components of a
        sparse matrix.
    solver
        "lanczos", accurate to the tolerance; or "randomized", which takes a fixed amount of work and is
        accurate if the singular values decay.
    max_iterations
        For "lanczos": maximum number of restarts, by default 300; if it is reached, the current
        approximations are returned. For "randomized": number of power iterations on the ``k + 10`` random
        vectors, by default 4.
    seed
        Seed of the random draws; the same seed gives the same result.

    Returns
    -------
    SingularTriplets
        ``u``, ``s`` ascending, ``vh``, all float64, so that ``u * s @ vh`` approximates A; in SciPy's order,
        the reverse of ``numpy.linalg.svd``. In each row of ``vh`` the element of largest magnitude is
        positive.

    Raises
    ------
    ShapeError, DTypeError
        For anything other than a real matrix.
    OptionError
        For a k outside 1 to min(m, n), an unknown ``which`` or solver; when computed by Lanczos'
        method, for values above 0 and below 1e-140, or above 1e140.

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
        raise OptionError(f"svds: which={which!r}; {suggestion(which, ['LM'])}")
    mean = matrix.mean(axis=0) if center else None
    if solver == "lanczos":
        products, rng = _products(matrix, mean), default_rng(seed)
        most = 300 if max_iterations is None else max_iterations
        # From the shorter side, so that a basis of all of it spans what A' makes of the other.
        is_wide = matrix.shape[0] < matrix.shape[1]
        shape, products = (matrix.shape[::-1], products[::-1]) if is_wide else (matrix.shape, products)
        u, s, vh, _ = largest_triplets(shape, products, k, max(tol, 1e-14), most, rng)
        return _with_signs(vh.T, s, u.T) if is_wide else _with_signs(u, s, vh)
    if solver == "randomized":
        size = min(k + _MORE_DRAWN, *matrix.shape)
        drawn = default_rng(seed).standard_normal((matrix.shape[1], size))
        return _randomized(matrix, mean, k, drawn, 4 if max_iterations is None else max_iterations)
    raise OptionError(f"svds: solver={solver!r}; {suggestion(solver, ['lanczos', 'randomized'])}")


def _products(matrix: DistArray, mean: DistArray | None) -> tuple[Apply, Apply]:
    # With the matrix and with its transpose: of vectors, and of matrices by their columns.
    if mean is None:
        return lambda x: matrix @ x, lambda x: matrix.T @ x
    return lambda x: matrix @ x - mean @ x, lambda x: matrix.T @ x - _times(mean, x.sum(axis=0))


def _times(mean: DistArray, totals: DistArray) -> DistArray:
    return outer(mean, totals) if totals.ndim else mean * totals


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
