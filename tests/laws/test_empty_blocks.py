"""A block without entries takes no part: every kernel and every product gives what dense arrays give."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from breadth.case import Case
from breadth.test_cases import compare
from breadth.test_sparse_like_dense import COLUMNS, GROUPS, ROWS, Like

import matnb as mn
from matnb.blocks.formats import Block, Csr, Dense, Empty, csr_block, is_sparse, to_numpy
from matnb.blocks.kernels.products.products import multiply
from matnb.blocks.kernels.products.sampled_products import masked_multiply, masked_row_sums
from matnb.blocks.kernels.products.transposed_products import multiply_transposed
from matnb.blocks.semiring import SEMIRINGS
from matnb.lazy.handles import expression_of
from matnb.ops.interpret import interpret

NAMES = sorted(SEMIRINGS)
DTYPES = ("float64", *(pytest.param(one, marks=pytest.mark.slow) for one in ("float32", "int32", "bool")))
TRUTH = np.dtype(np.bool_)
N = 4

TWO_THREADS = pytest.mark.session("two threads")


# Kernels: no pair meets, so a sparse product has no entry, and a dense one the identity everywhere.


def sparse_block(rng: np.random.Generator, shape: tuple[int, int], dtype: str) -> Block:
    there = rng.random(shape) < 0.6
    there[0, 0] = True
    return csr_block(sp.csr_array(np.where(there, rng.integers(1, 4, shape), 0).astype(dtype)))


def dense_block(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Block:
    return Dense(rng.integers(-3, 4, shape).astype(dtype))


def transposed(block: Block) -> Block:
    if isinstance(block, Empty):
        return Empty(block.shape[::-1], block.dtype)
    turned = np.ascontiguousarray(to_numpy(block).T)
    return Dense(turned) if isinstance(block, Dense) else csr_block(sp.csr_array(turned))


def products_without_a_pair(dtype: str) -> Iterator[tuple[Block, Block]]:
    rng = np.random.default_rng(0)
    left, right = Empty((4, 5), np.dtype(dtype)), Empty((5, 3), np.dtype(dtype))
    for other in (right, sparse_block(rng, (5, 3), dtype), dense_block(rng, (5, 3), dtype)):
        yield left, other
    yield left, dense_block(rng, (5,), dtype)
    yield sparse_block(rng, (4, 5), dtype), right
    yield dense_block(rng, (4, 5), dtype), right
    yield dense_block(rng, (5,), dtype), right


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_no_kernel_of_products_makes_an_entry_of_it(name: str, dtype: str) -> None:
    known = SEMIRINGS[name]
    try:
        element = known.result_dtype(np.dtype(dtype), np.dtype(dtype))
    except mn.MatnbError:
        return
    rng, identity = np.random.default_rng(1), None
    masks: list[Block] = [sparse_block(rng, (4, 3), "bool"), Empty((4, 3), TRUTH)]
    masks.append(Dense(rng.random((4, 3)) < 0.5))
    for left, right in products_without_a_pair(dtype):
        both = is_sparse(left) and is_sparse(right)
        product = multiply(left, right, known, element)
        assert product.dtype == element
        identity = known.add.identity(element)
        if both:
            assert product.nnz == 0
        else:
            assert isinstance(product, Dense)
            np.testing.assert_array_equal(product.values, identity)
        if not both and len(left.shape) == 2:
            found = multiply_transposed(transposed(left), right, known, element)
            np.testing.assert_array_equal(found.values, identity)
        if len(product.shape) != 2:
            continue
        for mask, complement in itertools.product(masks, (False, True)):
            kept = masked_multiply(left, right, mask, known, element, complement=complement)
            if both:
                assert kept.nnz == 0
            elif isinstance(mask, Dense) or complement:
                np.testing.assert_array_equal(to_numpy(kept), identity)
            else:
                chosen = to_numpy(mask) != 0
                assert kept.nnz == chosen.sum()
                np.testing.assert_array_equal(to_numpy(kept)[chosen], identity)
        for at in masks[:2]:
            assert not isinstance(at, Dense)
            sums = masked_row_sums(left, right, at, known, element, None, np.dtype(float))
            number = 0 if both else identity
            counts = np.diff(at.pointers) if isinstance(at, Csr) else np.zeros(4, int)
            np.testing.assert_array_equal(
                sums.values[:, 0], [np.full(count, number, float).sum() for count in counts]
            )


@pytest.mark.parametrize("name", NAMES)
def test_a_mask_without_entries_hides_all_and_turned_nothing(name: str) -> None:
    known, rng, mask = SEMIRINGS[name], np.random.default_rng(2), Empty((4, 3), TRUTH)
    element = known.result_dtype(np.dtype(float), np.dtype(float))
    makers = (sparse_block, dense_block)
    for first, second in itertools.product(makers, makers):
        left, right = first(rng, (4, 5), "float64"), second(rng, (5, 3), "float64")
        assert masked_multiply(left, right, mask, known, element).nnz == 0
        found = masked_multiply(left, right, mask, known, element, complement=True)
        np.testing.assert_array_equal(to_numpy(found), to_numpy(multiply(left, right, known, element)))


# Arrays of which most blocks have no entry.


def cut(matrix: np.ndarray, dtype: str = "float64") -> mn.DistArray:
    return mn.asarray(sp.csr_array(matrix.astype(dtype)), blocks=2)


def values(results: list[mn.DistArray]) -> list[np.ndarray]:
    return [one.todense() if hasattr(one, "todense") else np.asarray(one) for one in mn.compute(*results)]


def expected(result: mn.DistArray) -> np.ndarray:
    found: Any = interpret(expression_of(result))
    return found.toarray() if sp.issparse(found) else np.asarray(found)


def some_entries() -> Iterator[np.ndarray]:
    matrix = np.zeros((N, N))
    yield matrix.copy()
    matrix[0, 0] = 5.0
    yield matrix.copy()
    matrix[3, 0], matrix[2, 1] = -2.0, 0.5
    yield matrix


@TWO_THREADS
def test_products_over_every_semiring_are_the_interpreters(session: None) -> None:
    x, X = np.arange(1.0, N + 1), np.arange(1.0, 3 * N + 1).reshape(N, 3)
    mask = cut(np.eye(N), "bool")
    asked: dict[str, mn.DistArray] = {}
    for name, (place, matrix) in itertools.product(NAMES, enumerate(some_entries())):
        A, text = cut(matrix), f"{name} of matrix {place}"
        asked[f"A x {text}"] = mn.matmul(A, mn.asarray(x), semiring=name)
        asked[f"x A {text}"] = mn.matmul(mn.asarray(x), A, semiring=name)
        asked[f"A' x {text}"] = mn.matmul(A.T, mn.asarray(x), semiring=name)
        asked[f"A X {text}"] = mn.matmul(A, mn.asarray(X), semiring=name)
        asked[f"X' A {text}"] = mn.matmul(mn.asarray(X).T, A, semiring=name)
        asked[f"A A {text}"] = mn.matmul(A, A, semiring=name)
        asked[f"A A' under a mask {text}"] = mn.matmul(A, A.T, semiring=name, mask=mask)
        asked[f"A X under a mask {text}"] = mn.matmul(A, mn.asarray(X), semiring=name, mask=np.eye(N, 3) > 0)
    for text, found, result in zip(asked, values(list(asked.values())), asked.values(), strict=True):
        np.testing.assert_array_equal(found, expected(result), err_msg=text)


@TWO_THREADS
def test_a_row_that_nothing_meets_is_the_identity(session: None) -> None:
    A = mn.asarray(sp.csr_array(([5.0], ([0], [0])), shape=(4, 4)), blocks=2)
    x = mn.asarray([1.0, 2.0, 3.0, 4.0])
    assert mn.matmul(A, x, semiring="max_second").compute().tolist() == [1, -np.inf, -np.inf, -np.inf]
    assert mn.matmul(A, x, semiring="times_second").compute().tolist() == [1, 1, 1, 1]
    assert mn.matmul(A, x, semiring="lor_plus").compute().tolist() == [True, False, False, False]


FUSED: dict[str, Callable[[mn.DistArray, mn.DistArray, mn.DistArray], mn.DistArray]] = {
    "sampled": lambda S, U, V: S * (U @ V.T),
    "sampled, summed": lambda S, U, V: (S * (U @ V.T)).sum(axis=1),
    "sampled by columns, summed": lambda S, U, V: (S * (U @ V.T)).sum(axis=0),
    "quotients": lambda S, U, V: (S / np.maximum(U @ V.T + 0.5, 1e-9)) @ V,
    "triangles": lambda S, U, V: ((S @ S) * S).sum(),
    "gram": lambda S, U, V: S.T @ S,
    "weighted": lambda S, U, V: S.T @ (U[:, 0] * (S @ V[:, 0])),
    "chain": lambda S, U, V: (np.exp(S) * 2 - S).sum(axis=0),
    "extremes": lambda S, U, V: S.max(axis=1) - S.argmin(axis=1),
    "segments": lambda S, U, V: mn.bincount(mn.asarray([0, 1, 0, 2]), weights=S.sum(axis=1)),
    "rows and columns": lambda S, U, V: S[[3, 1]][:, [0, 2]],
    "assigned": lambda S, U, V: mn.where(S > 1, S, S.T),
    "joined": lambda S, U, V: mn.concatenate([S, S.T], axis=1) @ mn.ones(2 * N),
    "without zeros": lambda S, U, V: (S - S).eliminate_zeros() + S,
    "powers": lambda S, U, V: mn.linalg.matrix_power(S, 3),
    "diagonal": lambda S, U, V: mn.diagonal(S) @ V,
    "kron": lambda S, U, V: mn.kron(S, S).sum(axis=1),
}  # fmt: skip


@TWO_THREADS
@pytest.mark.parametrize("name", FUSED)
def test_what_is_fused_is_the_interpreters(session: None, name: str) -> None:
    rng = np.random.default_rng(3)
    U, V = (mn.asarray(rng.integers(1, 5, (N, 2)).astype(float), blocks=2) for _ in range(2))
    for matrix in some_entries():
        result = FUSED[name](cut(matrix), U, V)
        np.testing.assert_allclose(values([result])[0], expected(result), rtol=1e-14, err_msg=str(matrix))


def nearly_empty() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    one, other, none = (np.zeros((ROWS, COLUMNS)) for _ in range(3))
    one[0, 0] = 0.75
    other[-1, -1], other[-1, 0] = 0.5, 0.25
    yield one, other
    yield other, one
    yield none, one
    yield one, none
    yield none, none


@TWO_THREADS
@pytest.mark.parametrize("group", GROUPS)
def test_every_operation_is_numpys(session: None, group: str) -> None:
    for theirs in nearly_empty():
        mine = [
            mn.asarray(sp.csr_array(one), blocks=cuts)
            for one, cuts in zip(theirs, (([0, 4, ROWS], None), (3, 2)), strict=True)
        ]
        results = [(like, *called(like, theirs, mine)) for like in GROUPS[group]]
        alone = [place for place, (_, found, _) in enumerate(results) if type(found) is mn.DistArray]
        computed = values([results[place][1] for place in alone])
        known = {place: {"value": value} for place, value in zip(alone, computed, strict=True)}
        for place, (like, found, wanted) in enumerate(results):
            case = Case(like.name, like.call, (), tolerance=1e-12)
            compare(found, wanted, case, like.name, **known.get(place, {}))


def called(like: Like, theirs: tuple[np.ndarray, ...], mine: list[mn.DistArray]) -> tuple[Any, Any]:
    with np.errstate(all="ignore"):
        return like.call(mn, *mine), like.call(np, *theirs)
