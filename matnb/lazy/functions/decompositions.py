"""NumPy's decompositions and solutions: of small matrices and stacks, and of tall ones by slabs of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import get_lapack_funcs
from scipy.linalg import solve_triangular as solve_triangular_here

from matnb.errors import DTypeError, OptionError, ShapeError, SingularError, TooLargeError, UnsupportedError
from matnb.expr.client_data import SHIP_BYTES
from matnb.expr.nodes import Broadcast, Expr, Transpose, broadcast_shapes
from matnb.lazy.array import DistArray, wrap
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import eye, zeros
from matnb.lazy.functions.mapping import map_blocks, replicated
from matnb.lazy.functions.stacks import decomposed
from matnb.lazy.handles import expression_of
from matnb.lazy.registry import implements, recorded
from matnb.lazy.ufuncs import astype
from matnb.ops.tall import SlabBases, SlabTriangles, slab_cuts
from matnb.pictures.quantities import bytes_text

_NEAREST = {
    "solve": "mn.linalg.cg, minres and gmres solve large systems",
    "inv": "solve a system instead, as with mn.linalg.cg(A, b)",
    "lstsq": "mn.linalg.lsqr(X, y) takes large matrices, dense or sparse",
    "svd": "mn.linalg.svds(x, k=6) finds some singular values and vectors; X.T @ X of a tall X is small",
    "qr": "np.linalg.cholesky(X.T @ X, upper=True) is R of a tall X but for signs",
    "det": "scipy.sparse.linalg.splu(A.to_scipy().tocsc()) has a sparse one in its factors",
}  # fmt: skip
_NEAREST |= dict.fromkeys(("svdvals", "pinv", "matrix_rank"), _NEAREST["svd"]) | {"slogdet": _NEAREST["det"]}
_OF_EIGENPAIRS = "mn.linalg.eigsh(x, k=6) finds some eigenpairs of a large symmetric matrix"
Shape = tuple[int, ...]
Numbers = npt.NDArray[Any]


class EigenDecomposition(NamedTuple):
    """The eigenvalues, in increasing order, and the eigenvectors, one a column."""

    eigenvalues: DistArray
    eigenvectors: DistArray


class QRDecomposition(NamedTuple):
    """An array with orthonormal columns, and an upper triangular one."""

    Q: DistArray
    R: DistArray


class LeastSquaresFit(NamedTuple):
    """What solves a system best, sums of squares of what is left, the rank, and the singular values."""

    x: DistArray
    residuals: DistArray
    rank: DistArray
    s: DistArray


class SignAndLogarithm(NamedTuple):
    """The sign of a determinant, and the logarithm of its size."""

    sign: DistArray
    logabsdet: DistArray


class SingularValues(NamedTuple):
    """Left singular vectors, singular values in decreasing order, and right singular vectors, one a row."""

    U: DistArray
    S: DistArray
    Vh: DistArray


def _matrices(name: str, *given: object, square: bool = False, stacked: bool = True) -> list[Expr]:
    # What is given, where one matrix is small, or all of a stack of which each worker would need all.
    nodes = [expression_of(one) for one in given]
    for node in nodes:
        if node.dtype in (np.float16, np.longdouble, np.clongdouble):
            raise DTypeError(f"{name} of dtype {node.dtype}: convert with astype to float32 or float64 first")
        shape = node.shape[-2:] if stacked else node.shape
        num_bytes = prod(shape) * node.dtype.itemsize
        if num_bytes > SHIP_BYTES:
            raise TooLargeError(
                f"{name} of shape {shape}, {bytes_text(num_bytes)}: it is made on one worker, of up to "
                f"{bytes_text(SHIP_BYTES)}; {_NEAREST.get(name, _OF_EIGENPAIRS)}. NumPy's own takes "
                f"{'x.toarray()' if node.sparse else 'x.compute()'}"
            )
    first = nodes[0]
    if first.ndim < 2:
        raise ShapeError(f"{name} of shape {first.shape}: give a matrix, or a stack of them")
    if square and first.shape[-1] != first.shape[-2]:
        raise ShapeError(f"{name} of shape {first.shape}: the last two axes must have the same length")
    return nodes


def _called(
    function: Callable[..., Any],
    nodes: Sequence[Expr],
    shapes: Sequence[Shape],
    bounds: Sequence[Expr] = (),
    batch: Shape = (),
    **options: object,
) -> tuple[DistArray, ...]:
    # What NumPy's function gives, of these shapes; matrices of one row and numbers as bounds tell its dtypes.
    # A stack of such lengths is cut along its first axis; else it is one call.
    matrices = (np.ones((1, 1), one.dtype) for one in nodes)
    examples = function(*matrices, *(np.ones((), one.dtype) for one in bounds), **options)
    several = examples if isinstance(examples, tuple) else (examples,)
    if batch:
        outputs = [(shape, np.asarray(one).dtype) for one, shape in zip(several, shapes, strict=True)]
        return decomposed(function.__name__, nodes, batch, outputs, options)
    call = partial(function, **options)
    shown = function.args[0] if isinstance(function, partial) else function
    call.__name__ = shown.__name__  # type: ignore[attr-defined]  # for a user, in errors and plans
    like = tuple(
        np.broadcast_to(np.empty((), np.asarray(one).dtype), shape)
        for one, shape in zip(several, shapes, strict=True)
    )
    found = replicated(
        call, *map(DistArray, (*nodes, *bounds)), like=like if isinstance(examples, tuple) else like[0]
    )
    return found if isinstance(found, tuple) else (found,)


@implements(np.linalg.det)
def det(a: ArrayLike, /) -> DistArray:
    """``numpy.linalg.det``, of matrices of up to 64 MB; stacks are split along the first axis."""
    nodes = _matrices("det", a, square=True)
    batch = nodes[0].shape[:-2]
    return _called(np.linalg.det, nodes, [batch], batch=batch)[0]


@implements(np.linalg.slogdet)
def slogdet(a: ArrayLike, /) -> SignAndLogarithm:
    """``numpy.linalg.slogdet``, of matrices of up to 64 MB; stacks are split along the first axis."""
    nodes = _matrices("slogdet", a, square=True)
    batch = nodes[0].shape[:-2]
    return SignAndLogarithm(*_called(np.linalg.slogdet, nodes, [batch] * 2, batch=batch))


@implements(np.linalg.inv)
def inv(a: ArrayLike, /) -> DistArray:
    """``numpy.linalg.inv``, of matrices of up to 64 MB; stacks are split along the first axis."""
    nodes = _matrices("inv", a, square=True)
    return _called(np.linalg.inv, nodes, [nodes[0].shape], batch=nodes[0].shape[:-2])[0]


@implements(np.linalg.solve)
def solve(a: ArrayLike, b: ArrayLike, /) -> DistArray:
    """``numpy.linalg.solve``, of dense matrices of any size; stacks are split along the first axis.

    Above 64 MB it uses a QR decomposition by panels of columns, which is slower than NumPy's LU. For a
    positive definite matrix :func:`cholesky` and two calls of ``mn.linalg.solve_triangular`` take a twelfth
    of its operations. For a numerically singular matrix the error names the first column that depends on
    others.
    """
    given, columns = expression_of(a), expression_of(b)
    if _is_large(given) or (given.ndim == 2 and _is_large(columns)):
        return _solved_by_panels(given, columns)
    left, right = _matrices("solve", a, b, square=True)
    lengths = right.shape if right.ndim == 1 else right.shape[-2:]
    if not lengths or lengths[0] != left.shape[-1]:
        raise ShapeError(
            f"solve: shapes {left.shape} and {right.shape}: the right-hand side needs one row for "
            "each column of the matrix"
        )
    batch = broadcast_shapes(left.shape[:-2], right.shape[: right.ndim - len(lengths)], name="solve")
    return _called(np.linalg.solve, [left, right], [(*batch, *lengths)], batch=batch)[0]


@implements(np.linalg.cholesky)
def cholesky(a: ArrayLike, /, *, upper: bool = False) -> DistArray:
    """``numpy.linalg.cholesky`` for dense matrices of any size; stacks are split along the first axis.

    Above 64 MB it is computed recursively, by halves (Gustavson 1997, "Recursion leads to automatic variable
    blocking for dense linear-algebra algorithms"). If the matrix is not positive definite, the error names
    the leading minor.
    """
    if _is_large(given := expression_of(a)):
        if given.shape[0] != given.shape[1]:
            raise ShapeError(f"cholesky of shape {given.shape}: the last two axes must have the same length")
        matrix = wrap(astype(given, _inexact_of(given)))
        return _blocked_cholesky(matrix.T.conj()).T.conj() if upper else _blocked_cholesky(matrix)
    nodes = _matrices("cholesky", a, square=True)
    shape = nodes[0].shape
    return _called(np.linalg.cholesky, nodes, [shape], batch=shape[:-2], upper=bool(upper))[0]


@implements(np.linalg.qr)
def qr(a: ArrayLike, /, mode: str = "reduced") -> QRDecomposition | DistArray:
    """``numpy.linalg.qr`` with mode "reduced", "complete" or "r", of matrices of up to 64 MB, or stacks.

    Tall matrices may have any size; above 8 MB they are decomposed by chunks of rows (Benson, Gleich and
    Demmel 2013, "Direct QR factorizations for tall-and-skinny matrices in MapReduce architectures"). Q is
    orthonormal to rounding error, whatever the condition number, and the decomposition is backward stable.
    Chunks depend only on the shape, so results are bit-identical however the matrix is split. For a wide
    matrix the first columns are decomposed.
    """
    if mode not in ("reduced", "complete", "r"):
        raise OptionError(f"qr(mode={mode!r}): choose 'reduced', 'complete' or 'r'")
    node = expression_of(a)
    if mode != "complete" and _is_tall(node):
        _check_width("qr", node)
        return _triangle_of(node) if mode == "r" else QRDecomposition(*_basis_and_triangle(node))
    if node.ndim == 2 and node.shape[0] < node.shape[1] and _bytes_of(node) > SHIP_BYTES:
        return _wide_qr(DistArray(node), mode)
    nodes = _matrices("qr", a)
    *batch, m, n = nodes[0].shape
    lengths = tuple(batch)
    inner = m if mode == "complete" else min(m, n)
    upper = (*batch, inner, n)
    if mode == "r":
        return _called(np.linalg.qr, nodes, [upper], batch=lengths, mode=mode)[0]
    shapes = [(*batch, m, inner), upper]
    return QRDecomposition(*_called(np.linalg.qr, nodes, shapes, batch=lengths, mode=mode))


def _wide_qr(matrix: DistArray, mode: str) -> QRDecomposition | DistArray:
    # [B C] = Q [R Q'C], where B = Q R
    first, height = wrap(astype(matrix.expression, _inexact_of(matrix.expression))), matrix.shape[0]
    Q, R = qr(first[:, :height])
    triangle = _joined([R, Q.T.conj() @ first[:, height:]], 1)
    return triangle if mode == "r" else QRDecomposition(Q, triangle)


def _bytes_of(node: Expr) -> int:
    return node.size * node.dtype.itemsize


@implements(np.linalg.eigh)
def eigh(a: ArrayLike, /, UPLO: str = "L") -> EigenDecomposition:
    """``numpy.linalg.eigh``, of matrices of up to 64 MB; stacks are split along the first axis."""
    nodes = _matrices("eigh", a, square=True)
    shape = nodes[0].shape
    shapes, triangle = [shape[:-1], shape], _triangle(UPLO)
    return EigenDecomposition(*_called(np.linalg.eigh, nodes, shapes, batch=shape[:-2], UPLO=triangle))


@implements(np.linalg.eigvalsh)
def eigvalsh(a: ArrayLike, /, UPLO: str = "L") -> DistArray:
    """``numpy.linalg.eigvalsh``, of matrices of up to 64 MB; stacks are split along the first axis."""
    nodes = _matrices("eigvalsh", a, square=True)
    shape = nodes[0].shape
    return _called(np.linalg.eigvalsh, nodes, [shape[:-1]], batch=shape[:-2], UPLO=_triangle(UPLO))[0]


def _triangle(name: str) -> str:
    if not isinstance(name, str) or name.upper() not in ("L", "U"):
        raise OptionError(f"UPLO={name!r}: choose 'L' or 'U', the triangle that is read")
    return name.upper()


@implements(np.linalg.svd)
def svd(
    a: ArrayLike, /, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> SingularValues | DistArray:
    """``numpy.linalg.svd``, of matrices of up to 64 MB; stacks are split along the first axis.

    With ``full_matrices=False``, tall or wide matrices of any size; above 8 MB by chunks of rows, as
    :func:`qr`.
    """
    if not compute_uv:
        return svdvals(a)
    if not full_matrices and not hermitian:
        return _short_svd("svd", DistArray(expression_of(a)))
    nodes = _matrices("svd", a, square=bool(hermitian))
    return _svd_on_one_worker(nodes, bool(full_matrices), bool(hermitian))


def _short_svd(name: str, matrix: DistArray) -> SingularValues:
    # With full_matrices=False, for what a user called by this name.
    node = matrix.expression
    if _is_tall(node):
        _check_width(name, node)
        return SingularValues(*_singular_triplets(node))
    if _is_tall(turned := _turned(node)):
        _check_width(name, turned, given=node)
        V, S, Uh = _singular_triplets(turned)
        return SingularValues(Uh.T, S, V.T)
    return _svd_on_one_worker(_matrices(name, matrix), False, False)


def _svd_on_one_worker(nodes: Sequence[Expr], is_full: bool, hermitian: bool) -> SingularValues:
    *batch, m, n = nodes[0].shape
    short = min(m, n)
    left, right = ((m, m), (n, n)) if is_full else ((m, short), (short, n))
    shapes = [(*batch, *left), (*batch, short), (*batch, *right)]
    found = _called(
        np.linalg.svd, nodes, shapes, batch=tuple(batch), full_matrices=is_full, hermitian=hermitian
    )
    return SingularValues(*found)


@implements(np.linalg.svdvals)
def svdvals(x: ArrayLike, /) -> DistArray:
    """``numpy.linalg.svdvals``, of up to 64 MB, or tall or wide; stacks are split along the first axis."""
    for node in (given := expression_of(x), _turned(given)):
        if _is_tall(node):
            _check_width("svdvals", node, given=given)
            return svdvals(_triangle_of(node))
    nodes = _matrices("svdvals", x)
    *batch, m, n = nodes[0].shape
    return _called(np.linalg.svdvals, nodes, [(*batch, min(m, n))], batch=tuple(batch))[0]


@implements(np.linalg.pinv)
def pinv(a: ArrayLike, /, rcond: object = None, hermitian: bool = False, *, rtol: object = None) -> DistArray:
    """``numpy.linalg.pinv``, of up to 64 MB; ``rcond`` and ``rtol`` are numbers, or one for each matrix."""
    (node,) = _matrices("pinv", a, stacked=False)
    option, bounds = _bound("pinv", rcond=rcond, rtol=rtol)
    *batch, m, n = (*_batch(node, bounds, "pinv"), *node.shape[-2:])
    call = partial(_bounded, np.linalg.pinv, option, bool(hermitian))
    if tuple(batch) != node.shape[:-2]:
        raise ShapeError(f"pinv({option}=) of shape {bounds[0].shape} for matrices of shape {node.shape}")
    return _called(call, [node], [(*batch, n, m)], bounds)[0]


@implements(np.linalg.matrix_rank)
def matrix_rank(
    A: ArrayLike, /, tol: object = None, hermitian: bool = False, *, rtol: object = None
) -> DistArray:
    """``numpy.linalg.matrix_rank``, of up to 64 MB; ``tol`` and ``rtol`` are numbers, or one a matrix."""
    node = expression_of(A)
    if node.ndim < 2:
        return wrap(astype(expression_of(np.any(DistArray(node) != 0)), np.int64))
    (node,) = _matrices("matrix_rank", A, stacked=False)
    option, bounds = _bound("matrix_rank", tol=tol, rtol=rtol)
    call = partial(_bounded, np.linalg.matrix_rank, option, bool(hermitian))
    return _called(call, [node], [_batch(node, bounds, "matrix_rank")], bounds)[0]


def _bounded(
    function: Callable[..., Any], option: str, hermitian: bool, matrices: object, *bound: object
) -> Any:
    # What NumPy's function gives with a bound for singular values, if there is one.
    return function(matrices, hermitian=hermitian, **({option: bound[0]} if bound else {}))


def _batch(node: Expr, bounds: Sequence[Expr], name: str) -> Shape:
    return broadcast_shapes(node.shape[:-2], *(one.shape for one in bounds), name=name)


def _bound(name: str, **given: object) -> tuple[str, list[Expr]]:
    # Which of the options was given, and its value; none if none was.
    named = {
        option: value for option, value in given.items() if value is not None and value is not np._NoValue
    }
    if len(named) > 1:
        raise OptionError(f"{name}: give {' or '.join(named)}, not both")
    for option, value in named.items():
        bound = expression_of(value)
        if bound.dtype.kind not in "biuf":
            raise DTypeError(f"{name}({option}=) of dtype {bound.dtype}: give real numbers")
        return option, [bound]
    return "", []


@implements(np.linalg.eig)
def eig(a: ArrayLike, /) -> DistArray:
    """Raise an error: the dtype of ``numpy.linalg.eig`` depends on the values."""
    raise _by_values("eig", "eigh")


@implements(np.linalg.eigvals)
def eigvals(a: ArrayLike, /) -> DistArray:
    """Raise an error: the dtype of ``numpy.linalg.eigvals`` depends on the values."""
    raise _by_values("eigvals", "eigvalsh")


def _by_values(name: str, symmetric: str) -> UnsupportedError:
    return UnsupportedError(
        f"np.linalg.{name} of a DistArray: whether the result is complex depends on the values; write "
        f"mn.linalg.{symmetric}(x) if x is symmetric, else np.linalg.{name}(x.compute())"
    )


def _turned(node: Expr) -> Expr:
    return Transpose(node, (1, 0)) if node.ndim == 2 else node


@implements(np.linalg.lstsq)
def lstsq(a: ArrayLike, b: ArrayLike, rcond: object = None) -> LeastSquaresFit:
    """``numpy.linalg.lstsq`` of matrices of up to 64 MB, or tall or wide ones of any size, as :func:`qr`.

    There may be any number of right-hand sides: many of them are multiplied, where they are stored, with the
    singular vectors of the matrix. If columns are linearly dependent, it is the minimum-norm solution, by an
    SVD. Residuals are returned for every matrix with more rows than columns, even if it is rank-deficient,
    where NumPy returns none.
    """
    left, right = expression_of(a), expression_of(b)
    if left.ndim != 2 or right.ndim not in (1, 2) or left.shape[0] != right.shape[0]:
        raise ShapeError(
            f"lstsq: shapes {left.shape} and {right.shape}: give a matrix, and a right-hand side with as "
            "many rows"
        )
    if rcond is not None and (not isinstance(rcond, int | float | np.integer | np.floating)):
        raise OptionError(f"lstsq(rcond={rcond!r}): give a number, or None")
    for node in (left, right):
        if node.dtype in (np.float16, np.longdouble, np.clongdouble):
            raise DTypeError(f"lstsq of dtype {node.dtype}: convert with astype to float32 or float64 first")
    given = DistArray(right)[:, None] if right.ndim == 1 else DistArray(right)
    found = _least_squares(left, given.expression, None if rcond is None else float(rcond))
    return LeastSquaresFit(found[0][:, 0] if right.ndim == 1 else found[0], *found[1:])


# Tall matrices: R of slabs of rows, and of their R's, as a tree.


def _inexact_of(*nodes: Expr) -> np.dtype:
    """Return the dtype in which ``numpy.linalg`` decomposes matrices of these."""
    found = np.result_type(*(one.dtype for one in nodes))
    return found if found.kind in "fc" else np.dtype(np.float64)


def _is_tall(node: Expr) -> bool:
    """Whether a matrix is decomposed by slabs of rows: where there are several."""
    if node.ndim != 2 or not node.size or node.dtype in (np.float16, np.longdouble, np.clongdouble):
        return False
    return len(slab_cuts(node.shape, _inexact_of(node))) > 2


def _check_width(name: str, *nodes: Expr, given: Expr | None = None) -> None:
    """Refuse tall matrices side by side of whose slabs, higher than wide, one is above the limit of a worker.

    What was given, where a transpose of it is decomposed, is what the message names.

    Raises
    ------
    TooLargeError
        With what the slab takes.
    """
    triangles = SlabTriangles(nodes, _inexact_of(*nodes))
    height = max(stop - start for start, stop in pairwise(triangles.cuts))
    num_bytes = height * triangles.width * triangles.dtype.itemsize
    if num_bytes > SHIP_BYTES:
        shapes = " and ".join(str(one.shape) for one in ([given] if given else nodes))
        raise TooLargeError(
            f"{name} of shape {shapes}: the shorter axis has length {triangles.width:,}, of which one worker "
            f"decomposes blocks of {bytes_text(num_bytes)}, over {bytes_text(SHIP_BYTES)}; {_NEAREST[name]}"
        )


def _triangle_of(*nodes: Expr) -> DistArray:
    """Return R of tall matrices side by side: of the R's of their slabs, as a tree."""
    triangles = wrap(SlabTriangles(nodes, _inexact_of(*nodes)))
    if _is_tall(triangles.expression):
        return _triangle_of(triangles.expression)
    size = triangles.shape[1]
    return _alone(_triangle_here, triangles, [(size, size)])[0]


def _basis_and_triangle(node: Expr) -> tuple[DistArray, ...]:
    """Return Q and R of a tall matrix (Benson, Gleich and Demmel 2013, section III.B: direct TSQR)."""
    size = node.shape[1]
    return _by_slabs(node, np.linalg.qr, [(size, size)])


def _singular_triplets(node: Expr) -> tuple[DistArray, ...]:
    """Return U, s and Vh of a tall matrix: of the triangles of its slabs, with their bases before U."""
    size = node.shape[1]
    return _by_slabs(node, _svd_here, [(size,), (size, size)])


def _by_slabs(
    node: Expr, function: Callable[[Numbers], tuple[Numbers, ...]], shapes: Sequence[Shape]
) -> tuple[DistArray, ...]:
    # What a function gives for the triangles, their bases multiplied with the first of it, as large as they.
    triangles = wrap(SlabTriangles((node,), _inexact_of(node)))
    if _is_tall(triangles.expression):
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


def _triangle_here(matrix: Numbers) -> tuple[Numbers]:
    return (np.linalg.qr(matrix, mode="r"),)  # type: ignore[return-value]  # of this mode


def _svd_here(matrix: Numbers) -> tuple[Numbers, ...]:
    return tuple(np.linalg.svd(matrix, full_matrices=False))


def _least_squares(a: Expr, b: Expr, rcond: float | None) -> tuple[DistArray, ...]:
    """Return what ``numpy.linalg.lstsq`` does, b a matrix; residuals where a has more rows than columns.

    Of a tall matrix from R of ``[a b]``, which has the same solutions, residuals and singular values; of a
    wide one, where Q R is its conjugate transpose, Q times the solution of ``R' y = b``.
    """
    element, (rows, columns) = _inexact_of(a, b), a.shape
    bound = float(np.finfo(element).eps * max(rows, columns)) if rcond is None else rcond
    given, right = DistArray(a), DistArray(b)
    beside = SlabTriangles((a, b), element)
    turned = expression_of(given.T.conj())
    is_tall = a.size and len(beside.cuts) > 2
    if right.shape[1] > max(columns, _MANY) if is_tall else _bytes_of(b) > SHIP_BYTES:
        return _by_singular_vectors(given, right, bound, element)
    if is_tall:
        _check_width("lstsq", a, b)
        triangle = _triangle_of(a, b)
        given, right = triangle[:, :columns], triangle[:, columns:]
    elif _is_tall(turned):
        _check_width("lstsq", turned, given=a)
        Q, R = _basis_and_triangle(turned)
        x, *others = _solved(R.T.conj(), right, bound, element, False)
        return Q @ x, *others
    return _solved(given, right, bound, element, rows > columns)


_MANY = 64  # right-hand sides


def _by_singular_vectors(
    a: DistArray, b: DistArray, rcond: float, element: np.dtype
) -> tuple[DistArray, ...]:
    # a = U diag(s) V', x = V diag(1/s) U' b, where s is not 0 beside the largest: b is in products alone.
    left, right = wrap(astype(a.expression, element)), wrap(astype(b.expression, element))
    U, s, Vh = _short_svd("lstsq", left)
    least = (rcond if rcond >= 0 else np.finfo(element).eps) * s.max(initial=0)
    kept = s > least
    shares: Any = recorded(np.where)(kept, 1 / s, 0)
    x = Vh.T.conj() @ (shares[:, None] * (U.T.conj() @ right))
    rows, columns = a.shape
    rest = abs(right - left @ x)
    residuals = (rest * rest).sum(axis=0) if rows > columns else zeros(0, s.dtype)
    return x, residuals, kept.sum().astype(np.int32), s


def _solved(
    a: DistArray, b: DistArray, rcond: float, element: np.dtype, is_over: bool
) -> tuple[DistArray, ...]:
    _matrices("lstsq", a, stacked=False)
    columns, count = a.shape[1], b.shape[1]
    real = np.empty((), element).real.dtype
    like = (
        np.broadcast_to(np.empty((), element), (columns, count)),
        np.empty(count if is_over else 0, real),
        np.int32(0),
        np.empty(min(a.shape), real),
    )
    found = replicated(partial(_least_squares_here, rcond=rcond), a, b, like=like)
    assert isinstance(found, tuple), "several results"
    return found


def _least_squares_here(a: Numbers, b: Numbers, rcond: float) -> tuple[object, ...]:
    x, residuals, rank, s = np.linalg.lstsq(a, b, rcond)
    if a.shape[0] > a.shape[1] and not residuals.size:
        residuals = (np.abs(b - a @ x) ** 2).sum(axis=0)
    return x, residuals, rank, s


# Dense matrices above the limit, by halves or panels of columns: the rest are products.

_PANEL = 768  # columns that one worker decomposes or solves at a time


def _is_large(node: Expr) -> bool:
    return node.ndim == 2 and not node.sparse and _bytes_of(node) > SHIP_BYTES


def _blocked_cholesky(A: DistArray, start: int = 0) -> DistArray:
    # L of the lower half: [A B'; B C] = [L 0; X M] [L 0; X M]', X = B L'^-1, M M' = C - X X'
    n = A.shape[0]
    if n <= _PANEL:
        like = np.broadcast_to(np.empty((), A.dtype), (n, n))
        return _one(replicated(partial(_cholesky_here, start=start), A, like=like))
    half = -(-n // 2)
    L = _blocked_cholesky(A[:half, :half], start)
    X = _substituted(L, A[half:, :half].T.conj(), True, "cholesky", start).T.conj()
    M = _blocked_cholesky(A[half:, half:] - X @ X.T.conj(), start + half)
    return _joined([_joined([L, zeros((half, n - half), A.dtype)], 1), _joined([X, M], 1)], 0)


def _cholesky_here(matrix: Numbers, start: int) -> Numbers:
    try:
        return np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        factor: Any = get_lapack_funcs("potrf", (matrix,))
        _, order = factor(matrix, lower=True)
        raise SingularError(
            f"the leading minor of order {start + max(order, 1)} is not positive definite"
        ) from None


def _joined(parts: Sequence[DistArray], axis: int) -> DistArray:
    found: DistArray = recorded(np.concatenate)(parts, axis=axis)
    return found


def _one(found: DistArray | tuple[DistArray, ...]) -> DistArray:
    assert isinstance(found, DistArray), "one result"
    return found


def _substituted(T: DistArray, B: DistArray, lower: bool, name: str, start: int = 0) -> DistArray:
    # [L 0; X M] [y; z] = [b; c]: L y = b, M z = c - X y; of upper ones from below.
    n = T.shape[0]
    if n <= _PANEL:
        call = partial(_substituted_here, lower=lower, start=start)
        call.__name__ = name  # type: ignore[attr-defined]  # for a user, in errors and plans
        return _one(map_blocks(call, B.T, align="rows", replicate=T, shape=B.T.shape, dtype=B.dtype)).T
    half = -(-n // 2)
    first, second = slice(None, half), slice(half, None)
    if lower:
        y = _substituted(T[first, first], B[first], True, name, start)
        z = _substituted(T[second, second], B[second] - T[second, first] @ y, True, name, start + half)
    else:
        z = _substituted(T[second, second], B[second], False, name, start + half)
        y = _substituted(T[first, first], B[first] - T[first, second] @ z, False, name, start)
    return _joined([y, z], 0)


def _substituted_here(turned: Numbers, triangle: Numbers, lower: bool, start: int) -> Numbers:
    zero = np.flatnonzero(np.diagonal(triangle) == 0)
    if len(zero):
        raise SingularError(f"the matrix is singular: 0 on the diagonal in column {start + zero[0]}")
    found: Numbers = solve_triangular_here(triangle, turned.T, lower=lower, check_finite=False).T
    return found


def solve_triangular(
    a: ArrayLike, b: ArrayLike, trans: int | str = 0, lower: bool = False, unit_diagonal: bool = False
) -> DistArray:
    """Solve ``a x = b`` for a triangular matrix of any size, as ``scipy.linalg.solve_triangular``.

    Recursive: the two halves of the solution are computed one after the other, with a matrix product in
    between; triangles of up to 768 columns are solved by LAPACK, where the right-hand sides are stored.

    Parameters
    ----------
    a
        n x n and dense; only one triangle is read.
    b
        n numbers, or n x k.
    trans
        0 or "N"; 1 or "T" to solve with the transpose; 2 or "C" with the conjugate transpose.
    lower
        Whether to use the lower triangle of a instead of the upper one.
    unit_diagonal
        Whether to assume ones on the diagonal, which is then not read.

    Returns
    -------
    DistArray
        Of the shape of b; float64 for integers.

    Raises
    ------
    ShapeError, DTypeError, OptionError
        If a is not dense and square, b does not have n rows, or ``trans`` is unknown.
    SingularError
        If there is a zero on the diagonal; the message names its column.

    Examples
    --------
    >>> import matnb as mn
    >>> mn.linalg.solve_triangular([[2.0, 0.0], [1.0, 4.0]], [2.0, 9.0], lower=True).compute()
    array([1., 2.])
    """
    left, right = map(_dense_if_small, (a, b))
    _check_system("solve_triangular", left, right)
    if trans not in (0, 1, 2, "N", "T", "C"):
        raise OptionError(f"solve_triangular(trans={trans!r}): choose 0, 1 or 2, or 'N', 'T' or 'C'")
    element = _inexact_of(left, right)
    T, B = wrap(astype(left, element)), wrap(astype(right, element))
    if unit_diagonal:
        T = T - recorded(np.diag)(recorded(np.diagonal)(T)) + eye(left.shape[0], dtype=element)
    if trans in (1, "T", 2, "C"):
        T, lower = (T.T if trans in (1, "T") else T.T.conj()), not lower
    if not B.size:
        return B
    columns = B[:, None] if B.ndim == 1 else B
    found = _substituted(T, columns, bool(lower), "solve_triangular")
    return found[:, 0] if B.ndim == 1 else found


def _dense_if_small(value: object) -> Expr:
    node = expression_of(value)
    is_small = node.size * node.dtype.itemsize <= SHIP_BYTES
    return Broadcast(node, node.shape) if node.sparse and is_small else node


def _check_system(name: str, left: Expr, right: Expr) -> None:
    if left.ndim != 2 or left.shape[0] != left.shape[1] or right.ndim not in (1, 2):
        raise ShapeError(
            f"{name} of shapes {left.shape} and {right.shape}: give a square matrix, and one or more "
            "right-hand sides"
        )
    if left.shape[0] != right.shape[0]:
        raise ShapeError(
            f"{name}: shapes {left.shape} and {right.shape}: the right-hand side needs one row for "
            "each column of the matrix"
        )
    for node in (left, right):
        if node.sparse:
            raise DTypeError(f"{name} of a sparse array of shape {node.shape}: give a dense one")
        if node.dtype in (np.float16, np.longdouble, np.clongdouble):
            raise DTypeError(f"{name} of dtype {node.dtype}: convert with astype to float32 or float64 first")


def _solved_by_panels(left: Expr, right: Expr) -> DistArray:
    # A = Q R by panels of columns, each made orthogonal to those before twice, with its own QR between
    # (Barlow and Smoktunowicz 2013, "Reorthogonalized Block Classical Gram-Schmidt"). Q needs no pivots,
    # which in a factorization L U each column would look for in all rows, one after the other.
    _check_system("solve", left, right)
    element = _inexact_of(left, right)
    A, B = wrap(astype(left, element)), wrap(astype(right, element))
    columns = B[:, None] if B.ndim == 1 else B
    n = left.shape[0]
    Q, R = qr(A[:, :_PANEL])
    for start in range(_PANEL, n, _PANEL):
        W = A[:, start : start + _PANEL]
        along = Q.T.conj() @ W
        P, own = qr(W - Q @ along)
        more = Q.T.conj() @ P
        P, again = qr(P - Q @ more)
        below = zeros((own.shape[0], start), element)
        R = _joined([_joined([R, along + more @ own], 1), _joined([below, again @ own], 1)], 0)
        Q = _joined([Q, P], 1)
    sizes = abs(R)
    largest = (sizes * sizes).sum(axis=0) ** 0.5
    checked = _one(replicated(_regular, recorded(np.diagonal)(sizes), largest, like=np.float64(0)))
    found = _substituted(R, Q.T.conj() @ columns + wrap(astype(checked.expression, element)), False, "solve")
    return found[:, 0] if B.ndim == 1 else found


def _regular(rest: Numbers, sizes: Numbers) -> float:
    # Nothing, or refused: what is left of a column that depends on those before is rounding beside its size.
    small = np.flatnonzero(~(rest > len(rest) * float(np.finfo(rest.dtype.type).eps) * sizes))
    if len(small):
        raise SingularError(f"the matrix is singular: column {small[0]} depends on those before it")
    return 0.0
