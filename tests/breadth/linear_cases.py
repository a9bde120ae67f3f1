"""Products of vectors, matrices and stacks, by names of axes too; linear algebra of small matrices."""

from __future__ import annotations

import numpy as np
import scipy.linalg
import scipy.sparse as sp

import matnb as mn
from breadth.case import Case, Maker, floats, odd, truths, whole

# Sums of products of quarters are exact in any order; other results are those of LAPACK.
EXACT, ROUNDED = 1e-12, 1e-8


def normal(*shape: int) -> Maker:
    """Return what makes matrices far from singular where they are square."""
    return lambda rng: rng.normal(size=shape) + 4 * np.eye(*shape[-2:])


def definite(*shape: int) -> Maker:
    """Return what makes symmetric positive definite matrices."""

    def make(rng: np.random.Generator) -> np.ndarray:
        A = rng.normal(size=shape)
        return A @ A.swapaxes(-1, -2) + np.eye(shape[-1])

    return make


def complex_numbers(*shape: int) -> Maker:
    """Return what makes whole complex numbers."""
    return lambda rng: rng.integers(-3, 4, shape) + 1j * rng.integers(-3, 4, shape)


def single(*shape: int) -> Maker:
    """Return what makes single precision."""
    return lambda rng: rng.integers(-8, 9, shape).astype("f4") / 4


def solved_rows(ratings: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Return the regularized least squares of each row, of what is not zero in it."""
    found = np.zeros((len(ratings), factors.shape[1]))
    for row, own in enumerate(ratings):
        used = factors[own != 0]
        if len(used):
            found[row] = np.linalg.solve(used.T @ used + 0.5 * np.eye(used.shape[1]), used.T @ own[own != 0])
    return found


def _fixed_signs(Q: mn.DistArray, R: mn.DistArray) -> tuple[mn.DistArray, mn.DistArray]:
    # Signs that make R's diagonal positive.
    signs = np.sign(np.diagonal(R))
    return Q * signs, R * signs[:, None]


def stored(array: mn.DistArray) -> mn.DistArray:
    """Return an array as a sparse one that stores what is not zero."""
    array = mn.asarray(array)
    everywhere = mn.asarray(sp.csr_array(np.ones(array.shape)))
    return array if array.sparse else (everywhere * array).eliminate_zeros()


def _einsum(subscripts: str, *makers: Maker, large: tuple[Maker, ...] = (), **more: object) -> Case:
    return Case(
        "einsum", lambda xp, *x: xp.einsum(subscripts, *x, **more), makers, tolerance=EXACT, large=large
    )


def _called(
    name: str, *makers: Maker, large: tuple[Maker, ...] = (), tolerance: float = EXACT, **more: object
) -> Case:
    def call(xp: object, *x: object) -> object:
        found = xp
        for part in name.split("."):
            found = getattr(found, part)
        return found(*x, **more)  # type: ignore[operator]  # a function by now

    return Case(name, call, makers, tolerance=tolerance, large=large)


def _norm(ord: object, axis: object, *shape: int, keepdims: bool = False) -> Case:
    return Case(
        "linalg.norm",
        lambda xp, x: xp.linalg.norm(x, ord, axis, keepdims),
        (floats(*shape),),
        tolerance=ROUNDED,
    )


CASES = [
    _called("dot", floats(7), floats(7)),
    Case("dot", lambda xp, x: xp.dot(x, x, out=xp.zeros((3, 3))), (floats(3, 3),), tolerance=EXACT),
    Case("dot", lambda xp, x: xp.dot(x, x, out=xp.zeros((2, 3, 3))), (floats(3, 3),)),
    Case("outer", lambda xp, x: xp.outer(x, x, out=xp.zeros((4, 4))), (floats(4),), tolerance=0),
    Case("einsum", lambda xp, x: xp.einsum("ij->j", x, out=xp.zeros(3)), (floats(4, 3),), tolerance=EXACT),
    Case(
        "linalg.multi_dot",
        lambda xp, x: xp.linalg.multi_dot([x, x, x], out=xp.zeros((3, 3))),
        (floats(3, 3),),
        tolerance=EXACT,
    ),
    _called("dot", floats(7, 4), whole(4, 5)),
    _called("dot", floats(3, 2, 4), floats(5, 4, 2), large=(floats(40, 60, 50), floats(7, 50, 4))),
    _called("dot", floats(3, 4), floats(2, 4, 5)),
    _called("dot", whole(3, 4), whole(5)),
    _called("dot", truths(3, 4), truths(4, 2)),
    _called("dot", floats(3, 4), floats()),
    _called("vdot", complex_numbers(3, 4), complex_numbers(3, 4)),
    _called("vdot", floats(3, 4), whole(2, 6), large=(floats(200, 1000), floats(1000, 200))),
    _called("vdot", whole(9, dtype="int8"), whole(9, dtype="int8")),
    _called("vdot", floats(3), floats(4)),
    _called("vecdot", complex_numbers(3, 4), complex_numbers(2, 1, 4)),
    Case("vecdot", lambda xp, x, y: xp.vecdot(x, y, axis=0), (floats(4, 3), floats(4, 3))),
    Case("vecdot", lambda xp, x, y: xp.vecdot(x, y, axis=0), (floats(4, 3), floats(4))),
    Case("vecdot", lambda xp, x, y: xp.vecdot(x, y, keepdims=True), (floats(4, 3), floats(3))),
    _called("linalg.vecdot", floats(4, 3), floats(4, 3), axis=0, large=(floats(400, 300), floats(400, 300))),
    _called("inner", floats(3, 4), floats(2, 5, 4), large=(floats(3000, 40), floats(5, 40))),
    _called("inner", floats(4), floats(4)),
    _called("inner", floats(3, 4), floats(3, 5)),
    _called("outer", floats(6), whole(5), large=(floats(700), floats(300))),
    _called("outer", floats(2, 3), single(4)),
    _called("linalg.outer", floats(6), floats(0)),
    _called("linalg.outer", floats(2, 3), floats(4)),
    _called("kron", floats(4, 3), floats(2, 5), large=(floats(60, 50), floats(10, 9))),
    _called("kron", whole(3, 2), floats(4, 1)),
    _called("kron", floats(3), floats(2, 2)),
    _called("kron", floats(2, 3, 2), floats(1, 2, 3)),
    _called("kron", truths(4, 3), truths(3, 3)),
    _called("kron", floats(0, 3), floats(2, 2)),
    _called("kron", floats(3, 2), floats()),
    Case("kron", lambda xp, x: xp.kron(np.eye(3), x), (floats(5, 4),), large=(floats(600, 70),)),
    _called("tensordot", floats(3, 4, 5), floats(4, 5, 2), large=(floats(50, 40, 60), floats(40, 60, 7))),
    _called("tensordot", floats(3, 4, 5), floats(5, 3, 2), axes=([0, 2], [1, 0])),
    _called("tensordot", floats(3, 4), floats(4, 2), axes=1),
    _called("linalg.tensordot", floats(3, 4), floats(4, 2), axes=1),
    _called("tensordot", floats(3, 4), floats(2), axes=0),
    _called("tensordot", floats(3, 4), floats(4, 3), axes=(0, -1)),
    _called("tensordot", floats(3, 4), floats(5, 3)),
    _called("tensordot", floats(3, 4), floats(5, 3), axes=3),
    _called("matmul", floats(3, 4), floats(4, 5), large=(floats(500, 300), floats(300, 60))),
    _called("linalg.matmul", floats(2, 3, 4), floats(4, 5)),
    Case("matmul", lambda xp, x, y: np.matmul(x, y, dtype=np.float64), (whole(3, 4), whole(4, 2))),
    Case("matmul", lambda xp, x, y: x @ y, (floats(3, 4), floats(3, 4))),
    Case("matmul", lambda xp, x, y: x @ y, (floats(40, 30), floats(30, 20)), large=(floats(400, 400),) * 2),
    Case("matmul", lambda xp, x, y: x.T @ y, (floats(30, 40), floats(30, 20)), large=(floats(400, 400),) * 2),
    Case(
        "matmul",
        lambda xp, x, d: (x.T @ (d[:, None] * x), x.T @ d),
        (floats(30, 4), floats(30)),
        large=(floats(30000, 16), floats(30000)),
    ),
    _called("matvec", floats(2, 3, 4), floats(4)),
    _called("matvec", floats(3, 4), floats(5, 4), large=(floats(400, 300), floats(3, 300))),
    _called("vecmat", complex_numbers(2, 3), complex_numbers(3, 4)),
    _called("vecmat", floats(3), floats(4, 3)),
    *(_called("linalg.matrix_power", floats(4, 4), n=power) for power in (0, 1, 5)),
    _called("linalg.matrix_power", normal(4, 4), n=-3, tolerance=ROUNDED),
    _called("linalg.matrix_power", floats(3, 4), n=2),
    _called("linalg.matrix_power", whole(2, 3, 3), n=3),
    Case(
        "linalg.multi_dot",
        lambda xp, *x: xp.linalg.multi_dot(x),
        (floats(3, 9), floats(9, 2), floats(2, 7), floats(7)),
    ),
    Case("linalg.multi_dot", lambda xp, *x: xp.linalg.multi_dot(x), (floats(3, 9),)),
    _called("cross", odd(5, 3), odd(5, 3), large=(floats(50000, 3), floats(50000, 3))),
    _called("cross", floats(3, 5), whole(3), axisa=0, axisc=0),
    _called("linalg.cross", floats(3, 4, 2), floats(3, 4, 2), axis=0),
    _called("linalg.cross", floats(4, 5), floats(4, 5)),
    _einsum("ij,jk->ik", floats(5, 4), floats(4, 3)),
    _einsum("ij,kj", floats(5, 4), floats(3, 4)),
    _einsum("ij,jk->ki", floats(5, 4), floats(4, 3)),
    _einsum("ij,j->i", floats(5, 4), whole(4)),
    _einsum("ij,j->ij", floats(5, 4), floats(4)),
    _einsum("ij,i->ji", floats(5, 4), floats(5)),
    _einsum("ij,ij->i", floats(5, 4), floats(5, 4)),
    _einsum("ij,ij->", floats(5, 4), floats(5, 4)),
    _einsum("i,j->ij", floats(5), floats(4), large=(floats(700), floats(300))),
    _einsum("i,i", floats(9), floats(9)),
    _einsum("ij->ji", odd(5, 4)),
    _einsum("ij", odd(5, 4)),
    _einsum("ba", odd(5, 4)),
    _einsum("ij->j", floats(5, 4)),
    _einsum("ij->", whole(5, 4, dtype="int8")),
    _einsum("ii->i", odd(5, 5), large=(floats(400, 400),)),
    _einsum("ii", floats(5, 5)),
    _einsum("ii->", truths(5, 5)),
    _einsum("iji->ji", floats(3, 4, 3)),
    _einsum("ii,ij->j", floats(4, 4), floats(4, 3)),
    _einsum("...ij,...jk->...ik", floats(2, 3, 4), floats(4, 5)),
    _einsum("...j,j...->...", floats(2, 3, 4), floats(4, 3)),
    _einsum("i...->...", floats(3, 4, 2)),
    _einsum("ij,jk,kl->il", floats(3, 4), floats(4, 5), floats(5, 2)),
    _einsum(
        "ijk,jr,kr->ir",
        floats(6, 5, 4),
        floats(5, 3),
        floats(4, 3),
        large=(floats(60, 50, 40), floats(50, 8), floats(40, 8)),
    ),
    _einsum(
        "ijk,ir,kr->jr",
        floats(6, 5, 4),
        floats(6, 3),
        floats(4, 3),
        large=(floats(60, 50, 40), floats(60, 8), floats(40, 8)),
    ),
    _einsum("ijk,ir,jr->kr", floats(6, 5, 4), floats(6, 3), floats(5, 3)),
    _einsum("ijk,jr,kr->ir", single(6, 5, 4), single(5, 3), single(4, 3)),
    _einsum("bij,bjk->bik", floats(4, 3, 5), floats(4, 5, 2), large=(floats(40, 60, 50), floats(40, 50, 60))),
    _einsum("bij,bj->ib", floats(4, 3, 5), floats(4, 5)),
    _einsum("aij,jik->ak", floats(4, 3, 5), floats(5, 3, 2), large=(floats(40, 60, 50), floats(50, 60, 41))),
    _einsum("ij,kl->ijkl", floats(3, 2), floats(2, 4)),
    _einsum("ij,ik->jk", floats(9, 2), floats(9, 3), large=(floats(3, 400), floats(3, 300))),
    _einsum("ij,jk,ik->i", floats(4, 3), floats(3, 5), floats(4, 5)),
    _einsum("ij,j,i->", truths(4, 3), truths(3), truths(4)),
    _einsum("ij,jk->ik", whole(4, 3, dtype="int32"), whole(3, 5, dtype="int32"), dtype="float64"),
    _einsum("i,i,i->i", odd(5), odd(5), odd(5)),
    _einsum("ij,kj->ik", floats(1, 4), floats(3, 1)),
    _einsum("ijk,kl->ijl", whole(3, 0, 2), floats(2, 4)),
    _einsum("ij,jk->ik", floats(3, 0), floats(0, 4)),
    _einsum("ij,jk->ik", floats(3, 4), floats(5, 4)),
    _einsum("ii->i", floats(3, 4)),
    _einsum("ij,jk->iz", floats(3, 4), floats(4, 4)),
    _einsum("ij,jk->ii", floats(3, 4), floats(4, 4)),
    _einsum("ijk->i", floats(3, 4)),
    _einsum("ij,jk", floats(3, 4)),
    _einsum("ij,jk,kl->il", floats(3, 4), floats(4, 5), floats(5, 2), optimize="optimal"),
    _einsum(
        "ij,jk,kl->il", floats(3, 4), floats(4, 5), floats(5, 2), optimize=["einsum_path", (0, 1), (0, 1)]
    ),
    _einsum("ij->j", floats(3, 4), dtype="int32"),
    Case("einsum", lambda xp, x, y: xp.einsum(x, [0, 1], y, [1, 2], [2, 0]), (floats(3, 4), floats(4, 2))),
    Case("einsum", lambda xp, x: xp.einsum(x, [30, 2]), (floats(3, 4),)),
    Case("einsum", lambda xp, x, y: xp.einsum(x, [..., 1], y, [1]), (floats(3, 4), floats(4))),
    Case(
        "einsum_path",
        lambda xp, *x: xp.einsum_path("ij,jk,kl->il", *x)[0],
        (floats(3, 4), floats(4, 5), floats(5, 2)),
    ),
    *(_norm(ord, None, 6) for ord in (None, 1, 2, 3, 0, -1, 0.5, np.inf, -np.inf)),
    *(_norm(ord, None, 5, 4) for ord in (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)),
    *(_norm(ord, 1, 5, 4) for ord in (None, 1, 3, np.inf)),
    *(_norm(ord, (2, 0), 3, 2, 4) for ord in (None, "nuc", 1, -np.inf, 2)),
    _norm(1, (0, 1), 3, 4, keepdims=True),
    _norm("nuc", (0, 2), 3, 2, 4, keepdims=True),
    _norm(None, None, 3, 2, 4, keepdims=True),
    _norm(1, None, 3, 2, 4),
    _norm("fro", None, 3),
    _norm(5, None, 3, 3),
    _norm("bad", None, 3, 3),
    _norm(None, (0, 0), 3, 3),
    _norm(None, 2, 3, 3),
    _called("linalg.norm", whole(4, 3), ord=1),
    _called("linalg.norm", complex_numbers(4, 3)),
    _called("linalg.norm", floats(4, 3), large=(floats(400, 300),)),
    _called("linalg.vector_norm", floats(3, 4, 2), axis=(0, 2), ord=3, tolerance=ROUNDED),
    _called("linalg.vector_norm", floats(3, 4), keepdims=True),
    _called("linalg.matrix_norm", floats(2, 3, 4), ord=np.inf),
    _called("linalg.matrix_norm", floats(2, 3, 4), keepdims=True),
    _called("linalg.matrix_norm", floats(3)),
    _called("linalg.matrix_transpose", floats(2, 3, 4)),
    _called("linalg.diagonal", floats(2, 3, 4)),
    _called("linalg.trace", floats(2, 3, 4), offset=1),
    _called("linalg.det", normal(2, 3, 3), tolerance=ROUNDED),
    _called("linalg.det", whole(3, 4)),
    _called("linalg.slogdet", normal(3, 3), tolerance=ROUNDED),
    _called("linalg.inv", normal(4, 4), tolerance=ROUNDED),
    _called("linalg.inv", single(4, 3)),
    _called("linalg.solve", normal(4, 4), floats(4), tolerance=ROUNDED),
    _called("linalg.solve", normal(2, 4, 4), floats(4, 3), tolerance=ROUNDED),
    _called("linalg.solve", normal(4, 4), floats(3), tolerance=ROUNDED),
    _called("linalg.cholesky", definite(4, 4), tolerance=ROUNDED),
    _called("linalg.cholesky", definite(2, 3, 3), upper=True, tolerance=ROUNDED),
    _called(
        "linalg.solve",
        normal(6, 4, 4),
        floats(6, 4, 3),
        tolerance=ROUNDED,
        large=(normal(9000, 4, 4), floats(9000, 4, 3)),
    ),
    _called("linalg.solve", normal(1, 4, 4), floats(6, 4, 3), tolerance=ROUNDED),
    _called("linalg.solve", normal(6, 4, 4), floats(4), tolerance=ROUNDED),
    _called("linalg.solve", normal(2, 3, 4, 4), floats(3, 4, 3), tolerance=ROUNDED),
    _called("linalg.solve", floats(3, 4, 4), floats(5, 4, 3)),
    _called("linalg.inv", normal(6, 4, 4), tolerance=ROUNDED),
    _called("linalg.inv", whole(6, 2, 2, low=1, high=2)),
    _called("linalg.det", normal(6, 4, 4), tolerance=ROUNDED),
    _called("linalg.slogdet", normal(6, 4, 4), tolerance=ROUNDED),
    _called("linalg.cholesky", definite(6, 3, 3), tolerance=ROUNDED),
    _called("linalg.cholesky", whole(6, 3, 3, low=-5, high=-1)),
    _called("linalg.eigh", definite(6, 4, 4), tolerance=ROUNDED, large=(definite(9000, 4, 4),)),
    _called("linalg.eigvalsh", definite(6, 4, 4), tolerance=ROUNDED),
    _called("linalg.qr", normal(6, 5, 3), tolerance=ROUNDED),
    _called("linalg.qr", normal(0, 5, 3), tolerance=ROUNDED),
    _called("linalg.qr", normal(6, 3, 5), mode="r", tolerance=ROUNDED),
    _called("linalg.svd", normal(6, 4, 3), tolerance=ROUNDED),
    _called("linalg.svdvals", normal(6, 4, 3), tolerance=ROUNDED),
    Case(
        "linalg.segment_solves",
        lambda xp, r, v: solved_rows(r, v) if xp is np else xp.linalg.segment_solves(stored(r), v, 0.5),
        (floats(9, 5), floats(5, 3)),
        tolerance=ROUNDED,
        large=(floats(9000, 20), floats(20, 4)),
    ),
    _called("linalg.qr", normal(5, 3), tolerance=ROUNDED),
    _called("linalg.qr", normal(3, 5), mode="complete", tolerance=ROUNDED),
    _called("linalg.qr", normal(5, 3), mode="r", tolerance=ROUNDED),
    _called("linalg.qr", normal(5, 3), mode="whole"),
    Case(
        "linalg.qr",
        lambda xp, x: _fixed_signs(*xp.linalg.qr(x)),
        (normal(5, 3),),
        tolerance=ROUNDED,
        large=(floats(600_000, 6),),
    ),
    Case(
        "linalg.lstsq",
        lambda xp, a, b: tuple(xp.linalg.lstsq(a, b)),
        (normal(9, 3), floats(9, 2)),
        tolerance=ROUNDED,
        large=(floats(600_000, 5), floats(600_000)),
    ),
    Case(
        "linalg.lstsq",
        lambda xp, a, b: tuple(xp.linalg.lstsq(a, b, rcond=1e-12)),
        (normal(3, 9), floats(3)),
        tolerance=ROUNDED,
    ),
    _called("linalg.lstsq", normal(3, 9), floats(4)),
    Case(
        "linalg.solve_triangular",
        lambda xp, a, b: (
            scipy.linalg.solve_triangular(a, b, trans=1)
            if xp is np
            else xp.linalg.solve_triangular(a, b, trans=1)
        ),
        (normal(5, 5), floats(5, 2)),
        tolerance=ROUNDED,
    ),
    _called("linalg.eigh", definite(4, 4), tolerance=ROUNDED),
    _called("linalg.eigvalsh", definite(2, 4, 4), UPLO="U", tolerance=ROUNDED),
    _called("linalg.svd", normal(4, 3), tolerance=ROUNDED),
    _called("linalg.svd", normal(2, 3, 5), full_matrices=False, tolerance=ROUNDED),
    _called("linalg.svdvals", normal(4, 3), tolerance=ROUNDED),
    _called("linalg.pinv", normal(5, 3), tolerance=ROUNDED),
    _called("linalg.pinv", normal(5, 3), rtol=0.5, tolerance=ROUNDED),
    Case(
        "linalg.pinv",
        lambda xp, x, bound: xp.linalg.pinv(x, rtol=bound),
        (normal(3, 4, 4), lambda rng: np.array([0.1, 0.3, 0.6])),
        tolerance=ROUNDED,
    ),
    _called("linalg.pinv", normal(3, 4, 4), rcond=[0.1, 0.3, 0.6], tolerance=ROUNDED),
    _called("linalg.matrix_rank", normal(3, 4, 4), tol=np.array([0.1, 1.0, 2.0])),
    _called("linalg.matrix_rank", floats(5, 4)),
    _called("linalg.matrix_rank", floats(5)),
    _called("linalg.svd", floats(3)),
]
