"""QR decompositions and least squares of tall matrices, from those of slabs of their rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from matnb.errors import TooLargeError
from matnb.expr.client_data import SHIP_BYTES
from matnb.expr.nodes import Expr, Shape
from matnb.lazy.array import DistArray, expression_of, wrap
from matnb.lazy.functions.mapping import replicated
from matnb.ops.tall import SlabBases, SlabTriangles, slab_cuts
from matnb.pictures.quantities import bytes_text

Numbers = npt.NDArray[np.inexact]


def inexact_of(*nodes: Expr) -> np.dtype:
    """Return the dtype in which ``numpy.linalg`` decomposes matrices of these."""
    found = np.result_type(*(one.dtype for one in nodes))
    return found if found.kind in "fc" else np.dtype(np.float64)


def is_tall(node: Expr) -> bool:
    """Whether a matrix is decomposed by slabs of rows: where there are several."""
    if node.ndim != 2 or not node.size or node.dtype in (np.float16, np.longdouble, np.clongdouble):
        return False
    return len(slab_cuts(*node.shape, inexact_of(node))) > 2


def check_width(name: str, *nodes: Expr) -> None:
    """Refuse tall matrices side by side of whose slabs, higher than wide, one is above the limit of a worker.

    Raises
    ------
    TooLargeError
        With what the slab takes.
    """
    triangles = SlabTriangles(nodes, inexact_of(*nodes))
    height = max(stop - start for start, stop in pairwise(triangles.cuts))
    num_bytes = height * triangles.width * triangles.dtype.itemsize
    if num_bytes > SHIP_BYTES:
        shapes = " and ".join(str(one.shape) for one in nodes)
        raise TooLargeError(
            f"{name} of shape {shapes}: {height:,} rows, decomposed at a time on one worker, take "
            f"{bytes_text(num_bytes)}, over {bytes_text(SHIP_BYTES)}: give fewer columns"
        )


def triangle_of(*nodes: Expr) -> DistArray:
    """Return R of the QR decomposition of tall matrices side by side: of the R's of their slabs, as a tree."""
    triangles = wrap(SlabTriangles(nodes, inexact_of(*nodes)))
    if is_tall(triangles.expression):
        return triangle_of(triangles.expression)
    size = triangles.shape[1]
    return _alone(_triangle, triangles, [(size, size)])[0]


def basis_and_triangle(node: Expr) -> tuple[DistArray, ...]:
    """Return Q and R of a tall matrix (Benson, Gleich and Demmel 2013, section III.B: direct TSQR)."""
    size = node.shape[1]
    return _by_slabs(node, np.linalg.qr, [(size, size)])


def singular_triplets(node: Expr) -> tuple[DistArray, ...]:
    """Return U, s and Vh of a tall matrix: of the triangles of its slabs, with their bases before U."""
    size = node.shape[1]
    return _by_slabs(node, _singular_triplets, [(size,), (size, size)])


def _by_slabs(
    node: Expr, function: Callable[[Numbers], tuple[Numbers, ...]], shapes: Sequence[Shape]
) -> tuple[DistArray, ...]:
    # What a function gives for the triangles, their bases multiplied with the first of it, as large as they.
    triangles = wrap(SlabTriangles((node,), inexact_of(node)))
    if is_tall(triangles.expression):
        after, *others = _by_slabs(triangles.expression, function, shapes)
    else:
        after, *others = _alone(function, triangles, [triangles.shape, *shapes])
    return wrap(SlabBases(node, after.expression)), *others


def _alone(function: Callable[..., object], small: DistArray, shapes: Sequence[Shape]) -> list[DistArray]:
    # Called once on one worker; singular values are real.
    real = np.empty((), small.dtype).real.dtype
    like = tuple(
        np.broadcast_to(np.empty((), small.dtype if len(shape) == 2 else real), shape) for shape in shapes
    )
    found = replicated(function, small, like=like)
    assert isinstance(found, tuple), "several results"
    return list(found)


def _triangle(matrix: Numbers) -> tuple[Numbers]:
    return (np.linalg.qr(matrix, mode="r"),)


def _singular_triplets(matrix: Numbers) -> tuple[Numbers, ...]:
    return tuple(np.linalg.svd(matrix, full_matrices=False))


def least_squares(a: Expr, b: Expr, rcond: float | None) -> tuple[DistArray, ...]:
    """Return what ``numpy.linalg.lstsq`` does, with b a matrix, and residuals where a has more rows than columns.

    Of a tall matrix from R of ``[a b]``, which has the same solutions, residuals and singular values; of a wide
    one, where Q R is its conjugate transpose, Q times the solution of ``R' y = b``.
    """
    element, (rows, columns) = inexact_of(a, b), a.shape
    bound = float(np.finfo(element).eps * max(rows, columns)) if rcond is None else rcond
    given, right = DistArray(a), DistArray(b)
    beside = SlabTriangles((a, b), element)
    turned = expression_of(given.T.conj())
    if a.size and len(beside.cuts) > 2:
        check_width("lstsq", a, b)
        triangle = triangle_of(a, b)
        given, right = triangle[:, :columns], triangle[:, columns:]
    elif is_tall(turned):
        check_width("lstsq", turned)
        Q, R = basis_and_triangle(turned)
        x, *others = _solved(R.T.conj(), right, bound, element, False)
        return Q @ x, *others
    return _solved(given, right, bound, element, rows > columns)


def _solved(
    a: DistArray, b: DistArray, rcond: float, element: np.dtype, is_over: bool
) -> tuple[DistArray, ...]:
    columns, count = a.shape[1], b.shape[1]
    real = np.empty((), element).real.dtype
    like = (
        np.broadcast_to(np.empty((), element), (columns, count)),
        np.empty(count if is_over else 0, real),
        np.int32(0),
        np.empty(min(a.shape), real),
    )
    found = replicated(partial(_least_squares, rcond=rcond), a, b, like=like)
    assert isinstance(found, tuple), "several results"
    return found


def _least_squares(a: Numbers, b: Numbers, rcond: float) -> tuple[object, ...]:
    x, residuals, rank, s = np.linalg.lstsq(a, b, rcond)
    if a.shape[0] > a.shape[1] and not residuals.size:
        residuals = (np.abs(b - a @ x) ** 2).sum(axis=0)
    return x, residuals, rank, s
