"""One call of every operation that takes memory, at any size: what it reads, and what it makes of that."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

import matnb as mn

Maker = Callable[[int], Any]
NUM_BLOCKS = 4


@dataclass(frozen=True)
class MemoryCase:
    """A call whose memory is sampled.

    Attributes
    ----------
    name
        Of the operation, as ``docs/coverage.md`` has it where it is there.
    call
        Given what the makers made; returns arrays, which are kept.
    makers
        Give what is read, stored on the workers before the call, from the bytes that a vector of it takes.
    share
        The part of the usual bytes that each array has, where the operation makes more or takes long.
    """

    name: str
    call: Callable[..., Any]
    makers: tuple[Maker, ...] = ()
    share: float = 1.0


def followed(one: Any, following: Any) -> Any:
    """Return two steps of a linear recurrence as one."""
    return one[0] * following[0], following[0] * one[1] + following[1]


def greatest(one: Any, following: Any) -> Any:
    """Return the greater of two numbers, with what is beside it."""
    is_greater = following[0] > one[0]
    return tuple(np.where(is_greater, *pair) for pair in zip(following, one, strict=True))


def groups(x: mn.DistArray) -> mn.GroupBy:
    """Return floats grouped by a hundred keys."""
    return mn.groupby((x - np.floor(x)) * 100 // 1)


def vector(size: int) -> mn.DistArray:
    """Return floats in no order, none of them twice."""
    count = size // 8
    return (np.sin(mn.arange(float(count), blocks=NUM_BLOCKS) * 12.9898) * 43758.5453).persist()


def other(size: int) -> mn.DistArray:
    """Return other floats in no order."""
    count = size // 8
    return (np.sin(mn.arange(float(count), blocks=NUM_BLOCKS) * 78.233) * 12543.123).persist()


def matrix(size: int, columns: int = 64) -> mn.DistArray:
    """Return a long matrix, cut by rows."""
    return vector(size // (8 * columns) * 8 * columns).reshape((-1, columns)).persist()


def square(size: int) -> mn.DistArray:
    """Return a square matrix that is easily inverted, cut by rows."""
    length = math.isqrt(size // 8)
    return (
        mn.random.default_rng(3).random((length, length), blocks=(NUM_BLOCKS, 1)) + mn.eye(length)
    ).persist()


def stack(size: int) -> mn.DistArray:
    """Return symmetric matrices of eight rows that are easily inverted, one after the other."""
    found = matrix(size // 64 * 64, 64).reshape((-1, 8, 8))
    return (found + found.transpose((0, 2, 1)) * 0.25 + 1e5 * mn.eye(8)).persist()


def square_too(size: int) -> mn.DistArray:
    """Return another square matrix."""
    length = math.isqrt(size // 8)
    return mn.random.default_rng(4).random((length, length), blocks=(NUM_BLOCKS, 1)).persist()


def whole(size: int) -> mn.DistArray:
    """Return whole numbers below 1000."""
    count = size // 8
    return (mn.arange(count, blocks=NUM_BLOCKS) * 7919 % 1000).persist()


def whole_too(size: int) -> mn.DistArray:
    """Return other whole numbers below 60."""
    count = size // 8
    return (mn.arange(count, blocks=NUM_BLOCKS) * 104729 % 60).persist()


def places(size: int) -> mn.DistArray:
    """Return each place of a vector of so many bytes once, in no order."""
    count = size // 8
    return (mn.arange(count, blocks=NUM_BLOCKS) * 7919 % count).persist()


def truths(size: int) -> mn.DistArray:
    """Return as many booleans as a vector of so many bytes has elements."""
    return (whole(size) > 400).persist()


def complexes(size: int) -> mn.DistArray:
    """Return complex numbers."""
    return (vector(size // 2) * (1 + 1j)).persist()


def graph(size: int) -> mn.DistArray:
    """Return a sparse square matrix whose entries lie as those of a grown graph: few rows have many."""
    count = size // 12
    rng = np.random.default_rng(5)
    length = max(1, count // 8)
    rows = (length * rng.random(count) ** 3).astype(np.int32)
    columns = (length * rng.random(count) ** 3).astype(np.int32)
    made = sp.csr_array((rng.random(count), (rows, columns)), shape=(length, length))
    return mn.asarray(made, blocks=(NUM_BLOCKS, 1)).persist()


def power_law(size: int) -> mn.DistArray:
    """Return such a matrix of which a hundredth of the rows, and of the columns, has half of the entries."""
    count = size // 12
    rng = np.random.default_rng(6)
    length = max(1, count // 8)
    rows, columns = (length * rng.random((2, count)) ** 7).astype(np.int32)
    made = sp.csr_array((rng.random(count), (rows, columns)), shape=(length, length))
    return mn.asarray(made, blocks=(NUM_BLOCKS, 1)).persist()


def hubs(A: mn.DistArray, part: int = 64, times: int = 2) -> Any:
    """Return the places of the first rows, where a grown graph has most entries, several times each."""
    return np.arange(max(1, A.shape[0] // part)).repeat(times)


def few(*lengths: int) -> Maker:
    """Return what makes a small dense array of these lengths, whatever the size."""
    return lambda _size: (mn.arange(float(math.prod(lengths))) % 7 + 1).reshape(lengths).persist()


def plain(size: int) -> int:
    """Return how many floats take so many bytes: for calls that read nothing."""
    return size // 8


def rng() -> mn.random.Generator:
    """Return a generator."""
    return mn.random.default_rng(1)


def changed(change: Callable[..., Any]) -> Callable[..., Any]:
    """Return what changes a copy of the first array and returns it."""

    def call(x: mn.DistArray, *others: Any) -> mn.DistArray:
        x = x.copy()
        given = change(x, *others)
        return x if given is None else given

    return call


def each(names: str, *makers: Maker, owner: Any = mn) -> list[MemoryCase]:
    """Return a case for each function of the names that takes just the arrays."""
    return [MemoryCase(name, _attribute(owner, name), makers) for name in names.split()]


def _attribute(owner: Any, name: str) -> Callable[..., Any]:
    for part in name.split("."):
        owner = getattr(owner, part)
    return owner  # type: ignore[no-any-return]  # a function


def named(name: str, call: Callable[..., Any], *makers: Maker, share: float = 1.0) -> MemoryCase:
    """Return a case."""
    return MemoryCase(name, call, makers, share)


def step(x: mn.DistArray) -> mn.DistArray:
    """Return the next state of a loop."""
    return x * 0.5 + 1.0


def nested(x: mn.DistArray) -> mn.DistArray:
    """Return the next state of a loop that has a loop inside."""
    return mn.iterate(lambda y: np.sqrt(y) + 1.0, abs(x) * 0.5, max_iterations=2)[0]


UNARY = (
    "abs acos acosh asin asinh atan atanh ceil cos cosh exp expm1 floor isfinite isinf isnan log log10 log1p "
    "log2 negative positive reciprocal round sign signbit sin sinh sqrt square tan tanh trunc nan_to_num "
    "sinc i0 fix isposinf isneginf conj real imag angle logical_not"
)
BINARY = (
    "add atan2 copysign divide equal floor_divide greater greater_equal hypot less less_equal logaddexp "
    "logical_and logical_or logical_xor maximum minimum multiply nextafter not_equal pow remainder subtract "
    "isclose"
)
REDUCED = (
    "all any argmax argmin count_nonzero max min prod mean std sum var ptp nansum nanprod nanmean "
    "nanvar nanstd nanmin nanmax nanargmin nanargmax median nanmedian average trapezoid "
    "linalg.vector_norm linalg.norm"
)
SCANS = (
    "cumulative_sum cumulative_prod cumsum cumprod nancumsum nancumprod diff ediff1d gradient sort "
    "unique_values unique ravel flip squeeze atleast_1d atleast_2d atleast_3d broadcast_arrays "
    "argwhere flatnonzero nonzero array copy asarray empty_like zeros_like ones_like unique_all "
    "unique_counts unique_inverse from_dlpack histogram histogram_bin_edges argsort"
)

CASES = [
    *each(UNARY, vector),
    *each(BINARY, vector, other),
    *each("bitwise_invert", whole),
    *each("bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift", whole, whole_too),
    named("__getitem__", lambda x: x[::2], vector),
    named("x[idx]", lambda x, i: x[i], vector, places),
    named("x[mask]", lambda x, m: x[m], vector, truths),
    named("__setitem__", changed(lambda x: x.__setitem__(slice(None, None, 2), 1.0)), vector),
    named("x[idx] = v", changed(lambda x, i, y: x.__setitem__(i, y)), vector, places, other),
    named("x[mask] = v", changed(lambda x, m: x.__setitem__(m, 1.0)), vector, truths),
    named("T", lambda x: x.T + 0.0, matrix),
    named("mT", lambda x: x.mT + 0.0, matrix),
    *each("matrix_transpose linalg.matrix_transpose transpose", matrix),
    # creation
    named("arange", lambda n: mn.arange(float(n), blocks=NUM_BLOCKS), plain),
    named("linspace", lambda n: mn.linspace(0.0, 1.0, n, blocks=NUM_BLOCKS), plain),
    *(named(name, lambda n, name=name: getattr(mn, name)(n), plain) for name in ("zeros", "ones", "empty")),
    named("full", lambda n: mn.full(n, 3.0), plain),
    named("full_like", lambda x: mn.full_like(x, 3.0), vector),
    named("eye", lambda n: mn.eye(n // 2), plain),
    named("identity", lambda n: mn.identity(n // 2), plain),
    named("tri", lambda n: mn.tri(math.isqrt(n)), plain),
    named("logspace", lambda n: mn.logspace(0.0, 1.0, n), plain),
    named("geomspace", lambda n: mn.geomspace(1.0, 9.0, n), plain),
    named("fromfunction", lambda n: mn.fromfunction(lambda i: i * 2.0, (n,)), plain),
    named("indices", lambda n: mn.indices((n // 128, 64)), plain),
    named("vander", lambda x: mn.vander(x, 8), vector, share=0.125),
    named("meshgrid", lambda x, y: mn.meshgrid(x, y), lambda n: vector(8 * 64), lambda n: vector(n // 64)),
    named("random", lambda n: rng().random(n, blocks=NUM_BLOCKS), plain),
    named("uniform", lambda n: rng().uniform(2.0, 3.0, n, blocks=NUM_BLOCKS), plain),
    named("normal", lambda n: rng().normal(size=n, blocks=NUM_BLOCKS), plain),
    named("integers", lambda n: rng().integers(0, 99, n, blocks=NUM_BLOCKS), plain),
    named("random float32", lambda n: rng().random(n, np.float32, blocks=NUM_BLOCKS), plain),
    named("integers int8", lambda n: rng().integers(0, 99, n, np.int8, blocks=NUM_BLOCKS), plain),
    named("exponential", lambda n: rng().exponential(size=n, blocks=NUM_BLOCKS), plain),
    named("lognormal", lambda n: rng().lognormal(size=n, blocks=NUM_BLOCKS), plain),
    named("random, one block", lambda n: rng().random(n, blocks=1), plain),
    named("normal by columns", lambda n: rng().normal(size=(n // 1024, 1024), blocks=(1, 4)), plain),
    named("permutation", lambda n: rng().permutation(n), plain, share=0.5),
    named("choice", lambda x: rng().choice(x, len(x)), vector, share=0.5),
    named("rmat", lambda n: mn.random.rmat(max(4, int(math.log2(n / 16)))), plain),
    # manipulation
    *each(SCANS, vector),
    named("astype", lambda x: x.astype("float32"), vector),
    named("roll", lambda x: mn.roll(x, 5), vector),
    named("broadcast_to", lambda x: mn.broadcast_to(x, (8, len(x))) + 0.0, vector, share=0.125),
    *(
        named(name, lambda x, y, name=name: getattr(mn, name)([x, y]), vector, other)
        for name in ("concat", "concatenate", "stack", "vstack", "hstack", "dstack", "column_stack", "block")
    ),
    named("append", lambda x, y: mn.append(x, y), vector, other),
    named("insert", lambda x: mn.insert(x, 5, 1.0), vector),
    named("delete", lambda x: mn.delete(x, 5), vector),
    named("expand_dims", lambda x: mn.expand_dims(x, 0), vector),
    named("moveaxis", lambda x: mn.moveaxis(x, 0, 1), matrix),
    named("rollaxis", lambda x: mn.rollaxis(x, 1), matrix),
    named("swapaxes", lambda x: mn.swapaxes(x, 0, 1), matrix),
    named("permute_dims", lambda x: mn.permute_dims(x, (1, 0)), matrix),
    named("repeat", lambda x: mn.repeat(x, 2), vector, share=0.5),
    named("reshape", lambda x: mn.reshape(x, (64, -1)), matrix),
    named("tile", lambda x: mn.tile(x, 2), vector, share=0.5),
    *(
        named(name, lambda x, name=name: getattr(mn, name)(x), matrix)
        for name in ("fliplr", "flipud", "rot90")
    ),
    named("pad", lambda x: mn.pad(x, 5), vector),
    named("unstack", lambda x: mn.unstack(x, axis=1), lambda n: matrix(n, 8)),
    *(
        named(name, lambda x, name=name: getattr(mn, name)(x, 4), matrix)
        for name in ("split", "array_split", "vsplit", "hsplit")
    ),
    named("tril", lambda x: mn.tril(x), square),
    named("triu", lambda x: mn.triu(x), square),
    named("diag", lambda x: mn.diag(x), square),
    named("diag of a vector", lambda x: mn.diag(x), lambda n: vector(8 * math.isqrt(n // 8))),
    named("diagflat", lambda x: mn.diagflat(x), lambda n: vector(8 * math.isqrt(n // 8))),
    *each("diagonal trace linalg.diagonal linalg.trace", square),
    # choosing
    named("clip", lambda x: mn.clip(x, -0.5, 0.5), vector),
    named("where", lambda m, x, y: mn.where(m, x, y), truths, vector, other),
    named("take", lambda x, i: mn.take(x, i), vector, places),
    named(
        "dynamic_slice",
        lambda x, s: mn.dynamic_slice(x, s[0].astype("i8"), x.shape[0] // 2),
        matrix,
        few(4),
    ),
    named(
        "dynamic_update_slice",
        lambda x, y, s: mn.dynamic_update_slice(x, y, s[0].astype("i8")),
        matrix,
        lambda n: matrix(n // 2),
        few(4),
    ),
    named("take_along_axis", lambda x, i: mn.take_along_axis(x, i, 0), vector, places),
    named("compress", lambda m, x: mn.compress(m, x), truths, vector),
    named("extract", lambda m, x: mn.extract(m, x), truths, vector),
    named("choose", lambda i, x, y: mn.choose(i % 2, [x, y]), whole, vector, other),
    named("select", lambda m, x, y: mn.select([m], [x], y), truths, vector, other),
    named("piecewise", lambda x: mn.piecewise(x, [x < 0, x >= 0], [-1.0, 1.0]), vector),
    named("interp", lambda x: mn.interp(x, [-1.0, 0.0, 1.0], [2.0, 3.0, 5.0]), vector),
    # order, sets, counts
    named("partition", lambda x: mn.partition(x, 5), vector),
    named("argpartition", lambda x: mn.argpartition(x, 5), vector),
    named("topk", lambda x: mn.topk(x, 5), vector),
    named("topk of rows", lambda x: mn.topk(x, 5, largest=False), matrix),
    named("topk of a product", lambda x: mn.topk(x @ x[:3000].T, 5), matrix, share=0.3),
    named("argmin of a product", lambda x: (x @ x[:3000].T).argmin(axis=1), matrix, share=0.3),
    named("sort by rows", lambda x: mn.sort(x, axis=1), matrix),
    named("sort by columns", lambda x: mn.sort(x, axis=0), matrix),
    named("searchsorted", lambda x, y: mn.searchsorted(mn.sort(x), y), vector, other, share=0.5),
    *each("isin intersect1d union1d setdiff1d setxor1d", vector, other),
    named("digitize", lambda x: mn.digitize(x, [-1.0, 0.0, 1.0]), vector),
    named("bincount", lambda x: mn.bincount(x), whole),
    named("bincount of many", lambda x: mn.bincount(x), places),
    named("histogram2d", lambda x, y: mn.histogram2d(x, y), vector, other),
    named("histogramdd", lambda x: mn.histogramdd(x, 4), lambda n: matrix(n, 3)),
    *(
        named(name, lambda x, name=name: getattr(mn, name)(x, 0.5), vector)
        for name in ("quantile", "nanquantile")
    ),
    *(
        named(name, lambda x, name=name: getattr(mn, name)(x, 50), vector)
        for name in ("percentile", "nanpercentile")
    ),
    *each(REDUCED, vector),
    *(
        named(f"{name} by columns", lambda x, name=name: getattr(mn, name)(x, axis=0), matrix)
        for name in ("sum", "std", "max", "argmax", "prod", "median", "cumsum", "mean", "any")
    ),
    *(
        named(f"{name} by rows", lambda x, name=name: getattr(mn, name)(x, axis=1), matrix)
        for name in ("sum", "std", "max", "argmax", "median", "cumsum")
    ),
    *each("cov corrcoef", lambda n: matrix(n, 64).T),
    *each("allclose array_equal array_equiv", vector, other),
    *each("dot vdot inner vecdot linalg.vecdot", vector, other),
    named("linalg.matrix_norm", lambda x: mn.linalg.matrix_norm(x), matrix),
    # products
    *each("matmul linalg.matmul", square, square_too),
    named("matmul of a tall transpose", lambda x: x.T @ (x[:, :1] * x), matrix),
    named("matmul of one transpose, twice", lambda x: (x.T @ (x[:, :1] * x), x.T @ x[:, 0]), matrix),
    *(
        named(name, lambda x, y, name=name: _attribute(mn, name)(x, y, axes=1), square, square_too)
        for name in ("tensordot", "linalg.tensordot")
    ),
    named("einsum", lambda x, y: mn.einsum("ij,jk->ik", x, y), square, square_too),
    named("einsum of three", lambda x, y: mn.einsum("ij,ik->jk", x, y), matrix, matrix),
    *(
        named(
            name,
            lambda x, y, name=name: _attribute(mn, name)(x, y),
            lambda n: vector(8 * math.isqrt(n // 8)),
            lambda n: vector(8 * math.isqrt(n // 8)),
        )
        for name in ("outer", "linalg.outer")
    ),
    named("kron", lambda x, y: mn.kron(x, y), lambda n: matrix(n // 64), few(8, 8)),
    *each("cross linalg.cross", lambda n: matrix(n, 3), lambda n: matrix(n, 3)),
    named("A.T @ A", lambda x: x.T @ x, matrix),
    named("A @ x", lambda x, y: x @ y, matrix, few(64)),
    # linear algebra
    named("linalg.cholesky", lambda x: mn.linalg.cholesky(x @ x.T + mn.eye(len(x))), square, share=0.25),
    *(
        named(name, lambda x, name=name: _attribute(mn, name)(x + x.T), square, share=0.125)
        for name in ("linalg.eigh", "linalg.eigvalsh")
    ),
    *(
        named(name, lambda x, name=name: _attribute(mn, name)(x), square, share=0.25)
        for name in ("linalg.det", "linalg.slogdet", "linalg.inv")
    ),
    named("linalg.solve", lambda x, y: mn.linalg.solve(x, y), square, square_too, share=0.25),
    named(
        "linalg.solve of a stack",
        lambda x, y: mn.linalg.solve(x, y),
        stack,
        lambda n: matrix(n // 8, 8)[:, :, None],
    ),
    *(
        named(f"{name} of a stack", lambda x, name=name: _attribute(mn, name)(x), stack)
        for name in ("linalg.inv", "linalg.qr", "linalg.eigh", "linalg.svd")
    ),
    named(
        "linalg.segment_solves",
        lambda x, v: mn.linalg.segment_solves(x, v, 1e12),
        graph,
        lambda n: matrix(8 * 8 * max(1, n // 12 // 8), 8),
        share=0.25,
    ),
    named("linalg.matrix_power", lambda x: mn.linalg.matrix_power(x, 3), square, share=0.5),
    *(
        named(name, lambda x, name=name: _attribute(mn, name)(x), square, share=0.0625)
        for name in ("linalg.matrix_rank", "linalg.pinv", "linalg.svd", "linalg.svdvals", "linalg.qr")
    ),
    *(
        named(f"{name}, tall", lambda x, name=name: _attribute(mn, name)(x), matrix, share=0.5)
        for name in ("linalg.pinv", "linalg.svdvals", "linalg.qr")
    ),
    named("linalg.qr, tall, R alone", lambda x: mn.linalg.qr(x, mode="r"), matrix, share=0.5),
    named("linalg.lstsq", lambda x, y: mn.linalg.lstsq(x, y).x, matrix, lambda n: matrix(n)[:, 0]),
    named(
        "linalg.solve_triangular",
        lambda x, y: mn.linalg.solve_triangular(x, y, lower=True),
        square,
        square_too,
        share=0.25,
    ),
    named("linalg.svd, tall", lambda x: mn.linalg.svd(x, full_matrices=False), matrix, share=0.5),
    # assigning
    named("copyto", changed(lambda x, y: mn.copyto(x, y)), vector, other),
    named("put", changed(lambda x: mn.put(x, [1, 2], 5.0)), vector),
    named("put_along_axis", changed(lambda x, i: mn.put_along_axis(x, i, 1.0, 0)), vector, places),
    named("putmask", changed(lambda x, m: mn.putmask(x, m, [1.0])), vector, truths),
    named("place", changed(lambda x, m: mn.place(x, m, [1.0, 2.0])), vector, truths),
    named("fill_diagonal", changed(lambda x: mn.fill_diagonal(x, 1.0)), square),
    # functions of one's own
    named("apply_along_axis", lambda x: mn.apply_along_axis(np.cumsum, 1, x), lambda n: matrix(n, 4096)),
    named("apply_over_axes", lambda x: mn.apply_over_axes(np.sum, x, [0, 1]), matrix),
    named("map_blocks", lambda x: mn.map_blocks(np.cos, x), vector),
    named(
        "map_blocks by rows",
        lambda x, w: mn.map_blocks(lambda x, w: x * w, x, align="rows", replicate=w),
        matrix,
        few(64),
    ),
    named(
        "reduce_blocks",
        lambda x: mn.reduce_blocks(lambda x: x.T @ x, x, combine=np.add, shape=(64, 64), dtype=float),
        matrix,
    ),
    named("foreach", lambda x: mn.foreach(lambda x: (x * 2, x.sum()), mn.splits(x), like=x), vector),
    named("reduce", lambda x: mn.reduce(x, "max"), vector),
    named("groupby", lambda k, x: mn.groupby(k).sum(x), whole, vector),
    named("groupby of many", lambda k, x: mn.groupby(k).sum(x), places, vector, share=0.5),
    named("scatter_reduce", lambda x, i: mn.scatter_reduce(x, i, len(x)), vector, places),
    named("replicated", lambda x: mn.replicated(np.cumsum, x), vector, share=0.25),
    # sparse arrays
    named("sparse + sparse", lambda A: A + A.T, graph),
    named("sparse * sparse", lambda A: A * A.T, graph),
    named("sparse maximum", lambda A: mn.maximum(A, A.T), graph),
    named("sparse.T", lambda A: A.T, graph),
    named("sparse * 2", lambda A: A * 2.0, graph),
    named("sparse != 0", lambda A: (A != 0).astype(float), graph),
    named("sparse sqrt", lambda A: np.sqrt(A), graph),
    named("sparse @ x", lambda A: A @ mn.ones(A.shape[1]), graph),
    named("sparse.T @ x", lambda A: A.T @ mn.ones(A.shape[0]), graph),
    named("sparse @ X", lambda A: A @ mn.ones((A.shape[1], 16)), graph),
    named("sparse @ sparse", lambda A: A @ A, graph, share=0.03),
    named("sparse @ sparse, pattern", lambda A: (A != 0) @ (A != 0), graph, share=0.03),
    named("sparse.T @ sparse", lambda A: A.T @ A, graph, share=0.03),
    named("(A @ A) * A", lambda A: (A @ A) * A, graph, share=0.5),
    named("(A @ A) @ x", lambda A: (A @ A) @ mn.ones(A.shape[1]), graph, share=0.0625),
    named("sparse row sums", lambda A: A.sum(axis=1), graph),
    named("sparse column sums", lambda A: A.sum(axis=0), graph),
    named("sparse rows", lambda A: A[::2], graph),
    named("sparse columns", lambda A: A[:, ::2], graph),
    named("sparse x[idx]", lambda A: A[np.arange(A.shape[0] - 1, -1, -2)], graph),
    named("sparse rows, of hubs", lambda A: A[hubs(A)], graph),
    named("sparse columns, of hubs", lambda A: A[:, hubs(A)], graph),
    named("sparse corner", lambda A: A[: A.shape[0] // 20, : A.shape[1] // 20], graph),
    named("sparse take", lambda A: mn.take(A, hubs(A, 200, 4), axis=0), graph),
    named("sparse x[mask]", lambda A: A[mn.arange(A.shape[0]) < A.shape[0] // 20], graph),
    named("sparse repeat", lambda A: mn.repeat(A[: A.shape[0] // 50], 3, axis=0), graph),
    named("sparse repeat each", lambda A: mn.repeat(A[:500], np.arange(500) % 3 + 1, axis=0), graph),
    named("sparse tile", lambda A: mn.concatenate([A[: A.shape[0] // 50]] * 3, axis=1), graph),
    named("sparse roll", lambda A: mn.roll(A, 5, axis=0), graph),
    named("sparse block", lambda A: mn.block([[A[:500], A[:500]], [A[500:900], A[500:900]]]), graph),
    named("sparse dynamic_slice", lambda A: mn.dynamic_slice(A, mn.asarray(3), 500), graph),
    named("sparse kron, of hubs", lambda A: mn.kron(A[:200, :200], A[:16, :16]), graph, share=0.25),
    named("sparse @ sparse, of hubs", lambda A: A[:500] @ A[:, :200], graph, share=0.25),
    named("sparse nonzero", lambda A: mn.nonzero(A), graph),
    named("DistArray.eliminate_zeros", lambda A: (A * 0.0).eliminate_zeros(), graph),
    named("DistArray.prune", lambda A: A.prune(0.5), graph),
    named("DistArray.select", lambda A: A.select(A > 0.5), graph),
    named("DistArray.select by a function", lambda A: A.select(lambda i, j, v: (i < j) & (v > 0.5)), graph),
    named("coo_array", lambda v, n: mn.coo_array((v, (n, n)), shape=(1000, 1000)), vector, whole),
    named("S * exp(S)", lambda A: A * np.exp(A), graph),
    named("S / (U @ V.T)", lambda A: A / (mn.ones((A.shape[0], 8)) @ mn.ones((8, A.shape[1]))), graph),
    named("S * exp(T)", lambda A: A * np.exp(A.T), graph),
    named("max_min @ x", lambda A: mn.matmul(A, mn.ones(A.shape[1]), "max_min"), graph),
    named("max_min @ sparse", lambda A: mn.matmul(A, A, "max_min"), graph, share=0.03),
    named("DistArray.pattern", lambda A: A.pattern(np.float64) @ mn.ones(A.shape[1]), graph),
    named("sparse tril", lambda A: mn.tril(A), graph),
    named("sparse concatenate", lambda A: mn.concatenate([A, A]), graph),
    named("sparse kron", lambda A: mn.kron(A, mn.eye(4)), graph, share=0.25),
    named("sparse diag", lambda x: mn.diag(x) @ mn.eye(len(x)), vector),
    # loops
    named("loop", lambda x: mn.iterate(step, x, max_iterations=3)[0], vector),
    named(
        "loop of draws",
        lambda x: mn.iterate(lambda y: y + rng().random(len(x)), x, max_iterations=3)[0],
        vector,
    ),
    named("loop in a loop", lambda x: mn.iterate(nested, x, max_iterations=2)[0], vector),
    named("loop of products", lambda x: mn.iterate(lambda y: y @ x, x, max_iterations=2)[0], square),
    named("loop, sparse state", lambda A: mn.iterate(lambda B: B * A, A, max_iterations=2)[0], graph),
    named(
        "loop, sparse state grows",
        lambda A: mn.iterate(lambda B: B @ A, A, max_iterations=2)[0],
        graph,
        share=0.001,
    ),
    named("loop, sparse sums", lambda A: mn.iterate(lambda B: B + A.T, A, max_iterations=2)[0], graph),
    named("pagerank", lambda A: mn.graph.pagerank(A, max_iterations=4, tolerance=None).ranks, graph),
    # out of the workers
    named("compute", lambda x: x.compute(), vector),
    named("np.asarray", lambda x: np.asarray(x), vector),
    named("compute of sparse", lambda A: A.compute(), graph),
    named("to_scipy", lambda A: A.to_scipy(), graph),
    named("compute of a sum", lambda x: (x + 1.0).compute(), vector),
    # windows
    named("convolve", lambda x: mn.convolve(x, [1.0, 2.0, 3.0]), vector),
    named("correlate", lambda x: mn.correlate(x, [1.0, 2.0, 3.0]), vector),
    named("sliding_window_view", lambda x: mn.sliding_window_view(x, 3).sum(axis=1), vector),
    named("rolling", lambda x: mn.rolling(x, 100).mean(), vector),
    named("rolling deviations", lambda x: mn.rolling(x, 100).std(), vector),
    named("rolling along rows", lambda x: mn.rolling(x, 10).max(), matrix),
    # scans
    named("recurrence", lambda x, y: mn.associative_scan(followed, (x, y))[1], vector, other),
    named("associative_scan", lambda x, y: mn.associative_scan(greatest, (x, y))[1], vector, other),
    # special functions
    *(
        named(f"special.{name}", lambda x, name=name: getattr(mn.special, name)(abs(x)), vector, share=0.5)
        for name in (
            *("softmax", "log_softmax", "logsumexp", "expit", "logit", "log_expit", "entr", "psi", "gammaln"),
            *("erf", "erfinv"),
        )
    ),
    named("special.xlogy", lambda x, y: mn.special.xlogy(abs(x), abs(y)), vector, other),
    # random numbers of laws with parameters
    named("random gamma", lambda x: rng().gamma(2.0, 1.0, len(x)), vector),
    named("random poisson", lambda x: rng().poisson(abs(x)), vector),
    named("random binomial", lambda x: rng().binomial(9, 0.5, len(x)), vector),
    named("random beta", lambda x: rng().beta(2.0, 1.0, len(x)), vector),
    named("random standard_t", lambda x: rng().standard_t(3.0, len(x)), vector),
    named("random dirichlet", lambda x: rng().dirichlet(np.ones(8), len(x) // 8), vector),
    named(
        "random multinomial", lambda x: rng().multinomial(9, np.ones(8) / 8, len(x) // 8), vector, share=0.25
    ),
    # groups in order
    named("groupby cumsum", lambda x: groups(x).cumsum(x), vector),
    named("groupby cummax", lambda x: groups(x).cummax(x), vector),
    named("groupby median", lambda x: groups(x).median(x), vector),
    named("groupby rank", lambda x: groups(x).rank(x), vector, share=0.5),
    named("groupby argmax", lambda x: groups(x).argmax(x), vector),
]
