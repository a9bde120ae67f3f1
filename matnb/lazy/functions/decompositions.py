"""``numpy.linalg`` of small matrices and stacks of them: each call whole, on one worker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from matnb.errors import DTypeError, OptionError, ShapeError, TooLargeError, UnsupportedError
from matnb.expr.client_data import SHIP_BYTES
from matnb.expr.nodes import Expr, broadcast_shapes
from matnb.lazy.array import DistArray, expression_of, wrap
from matnb.lazy.functions.access import replicated
from matnb.lazy.registry import implements
from matnb.lazy.ufuncs import astype
from matnb.pictures.quantities import bytes_text

_NEAREST = "mn.linalg.eigsh finds some eigenpairs of a large symmetric matrix; X.T @ X of a tall X is small"
Shape = tuple[int, ...]


class EigenDecomposition(NamedTuple):
    """The eigenvalues, in increasing order, and the eigenvectors, one a column."""

    eigenvalues: DistArray
    eigenvectors: DistArray


class QRDecomposition(NamedTuple):
    """An array with orthonormal columns, and an upper triangular one."""

    Q: DistArray
    R: DistArray


class SignAndLogarithm(NamedTuple):
    """The sign of a determinant, and the logarithm of its size."""

    sign: DistArray
    logabsdet: DistArray


class SingularValues(NamedTuple):
    """Left singular vectors, singular values in decreasing order, and right singular vectors, one a row."""

    U: DistArray
    S: DistArray
    Vh: DistArray


def _matrices(name: str, *given: object, square: bool = False) -> list[Expr]:
    nodes = [expression_of(one) for one in given]
    for node in nodes:
        if node.dtype in (np.float16, np.longdouble, np.clongdouble):
            raise DTypeError(f"{name} of dtype {node.dtype}: convert with astype to float32 or float64 first")
        num_bytes = node.size * node.dtype.itemsize
        if num_bytes > SHIP_BYTES:
            raise TooLargeError(
                f"{name} of shape {node.shape}, {bytes_text(num_bytes)}: it is made on one worker, of up to "
                f"{bytes_text(SHIP_BYTES)}; {_NEAREST}"
            )
    first = nodes[0]
    if first.ndim < 2:
        raise ShapeError(f"{name} of shape {first.shape}: give a matrix, or a stack of them")
    if square and first.shape[-1] != first.shape[-2]:
        raise ShapeError(f"{name} of shape {first.shape}: the last two axes must be equally long")
    return nodes


def _called(
    function: Callable[..., Any],
    nodes: Sequence[Expr],
    shapes: Sequence[Shape],
    bounds: Sequence[Expr] = (),
    **options: object,
) -> tuple[DistArray, ...]:
    # What NumPy's function gives, of these shapes; matrices of one row and numbers as bounds tell its dtypes.
    matrices = (np.ones((1, 1), one.dtype) for one in nodes)
    examples = function(*matrices, *(np.ones((), one.dtype) for one in bounds), **options)
    several = examples if isinstance(examples, tuple) else (examples,)
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
def det(a: object, /) -> DistArray:
    """``numpy.linalg.det``, of up to 64 MB."""
    nodes = _matrices("det", a, square=True)
    return _called(np.linalg.det, nodes, [nodes[0].shape[:-2]])[0]


@implements(np.linalg.slogdet)
def slogdet(a: object, /) -> SignAndLogarithm:
    """``numpy.linalg.slogdet``, of up to 64 MB."""
    nodes = _matrices("slogdet", a, square=True)
    return SignAndLogarithm(*_called(np.linalg.slogdet, nodes, [nodes[0].shape[:-2]] * 2))


@implements(np.linalg.inv)
def inv(a: object, /) -> DistArray:
    """``numpy.linalg.inv``, of up to 64 MB."""
    nodes = _matrices("inv", a, square=True)
    return _called(np.linalg.inv, nodes, [nodes[0].shape])[0]


@implements(np.linalg.solve)
def solve(a: object, b: object, /) -> DistArray:
    """``numpy.linalg.solve``, of up to 64 MB."""
    left, right = _matrices("solve", a, b, square=True)
    columns = right.shape if right.ndim == 1 else right.shape[-2:]
    if not columns or columns[0] != left.shape[-1]:
        raise ShapeError(
            f"solve: shapes {left.shape} and {right.shape}: one row on the right for each column"
        )
    batch = broadcast_shapes(left.shape[:-2], right.shape[: right.ndim - len(columns)], name="solve")
    return _called(np.linalg.solve, [left, right], [(*batch, *columns)])[0]


@implements(np.linalg.cholesky)
def cholesky(a: object, /, *, upper: bool = False) -> DistArray:
    """``numpy.linalg.cholesky``, of up to 64 MB."""
    nodes = _matrices("cholesky", a, square=True)
    return _called(np.linalg.cholesky, nodes, [nodes[0].shape], upper=bool(upper))[0]


@implements(np.linalg.qr)
def qr(a: object, /, mode: str = "reduced") -> QRDecomposition | DistArray:
    """``numpy.linalg.qr`` with mode "reduced", "complete" or "r", of up to 64 MB."""
    nodes = _matrices("qr", a)
    *batch, m, n = nodes[0].shape
    if mode not in ("reduced", "complete", "r"):
        raise OptionError(f"qr(mode={mode!r}): choose 'reduced', 'complete' or 'r'")
    inner = m if mode == "complete" else min(m, n)
    upper = (*batch, inner, n)
    if mode == "r":
        return _called(np.linalg.qr, nodes, [upper], mode=mode)[0]
    return QRDecomposition(*_called(np.linalg.qr, nodes, [(*batch, m, inner), upper], mode=mode))


@implements(np.linalg.eigh)
def eigh(a: object, /, UPLO: str = "L") -> EigenDecomposition:
    """``numpy.linalg.eigh``, of up to 64 MB."""
    nodes = _matrices("eigh", a, square=True)
    shapes = [nodes[0].shape[:-1], nodes[0].shape]
    return EigenDecomposition(*_called(np.linalg.eigh, nodes, shapes, UPLO=_triangle(UPLO)))


@implements(np.linalg.eigvalsh)
def eigvalsh(a: object, /, UPLO: str = "L") -> DistArray:
    """``numpy.linalg.eigvalsh``, of up to 64 MB."""
    nodes = _matrices("eigvalsh", a, square=True)
    return _called(np.linalg.eigvalsh, nodes, [nodes[0].shape[:-1]], UPLO=_triangle(UPLO))[0]


def _triangle(name: str) -> str:
    if not isinstance(name, str) or name.upper() not in ("L", "U"):
        raise OptionError(f"UPLO={name!r}: choose 'L' or 'U', the triangle that is read")
    return name.upper()


@implements(np.linalg.svd)
def svd(
    a: object, /, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> SingularValues | DistArray:
    """``numpy.linalg.svd``, of up to 64 MB."""
    if not compute_uv:
        return svdvals(a)
    nodes = _matrices("svd", a, square=bool(hermitian))
    *batch, m, n = nodes[0].shape
    short = min(m, n)
    left, right = ((m, m), (n, n)) if full_matrices else ((m, short), (short, n))
    shapes = [(*batch, *left), (*batch, short), (*batch, *right)]
    options = {"full_matrices": bool(full_matrices), "hermitian": bool(hermitian)}
    return SingularValues(*_called(np.linalg.svd, nodes, shapes, (), **options))


@implements(np.linalg.svdvals)
def svdvals(x: object, /) -> DistArray:
    """``numpy.linalg.svdvals``, of up to 64 MB."""
    nodes = _matrices("svdvals", x)
    *batch, m, n = nodes[0].shape
    return _called(np.linalg.svdvals, nodes, [(*batch, min(m, n))])[0]


@implements(np.linalg.pinv)
def pinv(a: object, /, rcond: object = None, hermitian: bool = False, *, rtol: object = None) -> DistArray:
    """``numpy.linalg.pinv``, of up to 64 MB; ``rcond`` and ``rtol`` are numbers, or one for each matrix."""
    (node,) = _matrices("pinv", a)
    option, bounds = _bound("pinv", rcond=rcond, rtol=rtol)
    *batch, m, n = (*_batch(node, bounds, "pinv"), *node.shape[-2:])
    call = partial(_bounded, np.linalg.pinv, option, bool(hermitian))
    if tuple(batch) != node.shape[:-2]:
        raise ShapeError(f"pinv({option}=) of shape {bounds[0].shape} for matrices of shape {node.shape}")
    return _called(call, [node], [(*batch, n, m)], bounds)[0]


@implements(np.linalg.matrix_rank)
def matrix_rank(
    A: object, /, tol: object = None, hermitian: bool = False, *, rtol: object = None
) -> DistArray:
    """``numpy.linalg.matrix_rank``, of up to 64 MB; ``tol`` and ``rtol`` are numbers, or one a matrix."""
    node = expression_of(A)
    if node.ndim < 2:
        return wrap(astype(expression_of(np.any(DistArray(node) != 0)), np.int64))
    (node,) = _matrices("matrix_rank", A)
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


@implements(np.linalg.eig, np.linalg.eigvals)
def eig(a: object, /) -> DistArray:
    """Refuse ``numpy.linalg.eig`` and ``eigvals``, whose dtype depends on the values."""
    raise UnsupportedError(
        "np.linalg.eig of a DistArray: whether the result is complex depends on the values; use "
        "mn.linalg.eigh of a symmetric matrix, or np.linalg.eig(x.compute())"
    )


@implements(np.linalg.lstsq)
def lstsq(a: object, b: object, rcond: object = None) -> DistArray:
    """Refuse ``numpy.linalg.lstsq``, whose residuals' length depends on the values."""
    raise UnsupportedError(
        "np.linalg.lstsq of a DistArray: the length of its residuals depends on the values; use "
        "mn.linalg.solve(X.T @ X, X.T @ y), or mn.linalg.pinv(X) @ y where columns depend on each other"
    )
