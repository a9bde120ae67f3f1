"""Products over every semiring, of every pair of formats: against loops of Python, and against GraphBLAS."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from matnb.blocks.formats import Block, Dense, csr_block, to_numpy, to_scipy
from matnb.blocks.kernels.products.products import multiply
from matnb.blocks.kernels.products.sampled_products import masked_multiply, masked_row_sums
from matnb.blocks.kernels.products.transposed_products import multiply_transposed
from matnb.blocks.semiring import SEMIRINGS, Semiring, semiring, semiring_named
from matnb.errors import DTypeError, OptionError

NAMES = sorted(SEMIRINGS)
ADDS: dict[str, Any] = {
    "plus": np.add, "times": np.multiply, "min": np.minimum, "max": np.maximum,
    "lor": np.logical_or, "land": np.logical_and,
}  # fmt: skip
MULTIPLIES: dict[str, Any] = {
    "plus": np.add, "times": np.multiply, "min": np.minimum, "max": np.maximum,
    "land": np.logical_and, "lor": np.logical_or,
}  # fmt: skip
DTYPES = ("float64", "float32", "int64", "int32")


def sparse(rng: np.random.Generator, shape: tuple[int, int], dtype: str) -> sp.csr_array:
    """Return a matrix with stored zeros, an empty row and small values, negative ones too."""
    there = rng.random(shape) < 0.4
    there[2] = False
    rows, columns = np.nonzero(there)
    return sp.csr_array((rng.integers(-3, 4, len(rows)).astype(dtype), (rows, columns)), shape=shape)


def by_hand(left: Any, right: Any, known: Semiring, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Return the product of two matrices of which absent entries are known, and where pairs met."""
    (A, in_A), (B, in_B) = (
        (one.toarray(), pattern(one)) if sp.issparse(one) else (one, np.ones(one.shape, bool))
        for one in (left, right)
    )
    if known.is_of_truths:
        A, B = A != 0, B != 0
    out = np.full((A.shape[0], B.shape[1]), known.add.identity(dtype))
    met = np.zeros(out.shape, bool)
    for i, j in np.ndindex(out.shape):
        for k in range(A.shape[1]):
            if in_A[i, k] and in_B[k, j]:
                made = value(known.multiply, A[i, k], B[k, j])
                out[i, j] = ADDS[known.add.name](out[i, j], made)
                met[i, j] = True
    return out, met


def value(name: str, one: Any, other: Any) -> Any:
    """Return what one pair gives."""
    match name:
        case "first":
            return one
        case "second":
            return other
        case "pair":
            return 1
    return MULTIPLIES[name](one, other)


def pattern(matrix: sp.csr_array) -> np.ndarray:
    """Return where a matrix stores entries."""
    return (
        sp.csr_array((np.ones(matrix.nnz), matrix.indices, matrix.indptr), shape=matrix.shape).toarray() > 0
    )


def block(value: Any) -> Block:
    """Return a block of a matrix."""
    return csr_block(value) if sp.issparse(value) else Dense(value)


def check_sparse(found: Any, wanted: np.ndarray, met: np.ndarray) -> None:
    """Compare a sparse block with what it stores, and where."""
    np.testing.assert_array_equal(pattern(to_scipy(found)), met)
    np.testing.assert_array_equal(to_numpy(found)[met], wanted[met])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_every_pair_of_formats_gives_what_loops_of_python_do(name: str, dtype: str) -> None:
    rng, known = np.random.default_rng(0), SEMIRINGS[name]
    A, B = sparse(rng, (6, 7), dtype), sparse(rng, (7, 5), dtype)
    X, Y = rng.integers(-3, 4, (6, 7)).astype(dtype), rng.integers(-3, 4, (7, 5)).astype(dtype)
    element = known.result_dtype(A.dtype, B.dtype)
    for left in (A, X):
        for right in (B, Y):
            wanted, met = by_hand(left, right, known, element)
            found = multiply(block(left), block(right), known, element)
            assert found.dtype == element
            if isinstance(found, Dense):
                np.testing.assert_array_equal(found.values, wanted)
                turned = block(sp.csr_array(left.T) if sp.issparse(left) else np.ascontiguousarray(left.T))
                np.testing.assert_array_equal(
                    multiply_transposed(turned, block(right), known, element).values, wanted
                )
            else:
                check_sparse(found, wanted, met)


@pytest.mark.parametrize("name", NAMES)
def test_masks_let_the_same_elements_through(name: str) -> None:
    rng, known = np.random.default_rng(1), SEMIRINGS[name]
    A, B, M = sparse(rng, (6, 7), "float64"), sparse(rng, (7, 5), "float64"), sparse(rng, (6, 5), "bool")
    X, Y = (rng.integers(-3, 4, shape).astype(float) for shape in ((6, 7), (7, 5)))
    element = known.result_dtype(A.dtype, B.dtype)
    for left in (A, X):
        for right in (B, Y):
            wanted, met = by_hand(left, right, known, element)
            both = sp.issparse(left) and sp.issparse(right)
            there = (pattern(M) & M.toarray()) & (met if both else True)
            check_sparse(masked_multiply(block(left), block(right), block(M), known, element), wanted, there)
            for mask in (M, M.toarray()):
                chosen = M.toarray()
                for complement in (False, True) if isinstance(mask, np.ndarray) else (True,):
                    found = masked_multiply(
                        block(left), block(right), block(mask), known, element, complement=complement
                    )
                    if both:
                        check_sparse(found, wanted, met & (chosen ^ complement))
                    else:
                        kept = np.where(chosen ^ complement, wanted, known.add.identity(element))
                        np.testing.assert_array_equal(to_numpy(found), kept)
            sums = masked_row_sums(
                block(left), block(right), csr_block(M), known, element, None, np.dtype(float)
            )
            there = pattern(M) & (met if both else True)
            np.testing.assert_array_equal(sums.values[:, 0], np.where(there, wanted, 0).sum(axis=1))


IN_GRAPHBLAS = """
    plus_first plus_second plus_min any_pair max_plus max_times max_min min_times min_max max_first max_second
    plus_times min_plus min_first min_second plus_pair
"""


@pytest.mark.parametrize("name", IN_GRAPHBLAS.split())
def test_sparse_products_are_those_of_graphblas(name: str) -> None:
    gb = pytest.importorskip("graphblas")
    rng = np.random.default_rng(2)
    A, B = sparse(rng, (40, 30), "float64"), sparse(rng, (30, 50), "float64")
    wanted = getattr(gb.semiring, name)(gb.io.from_scipy_sparse(A) @ gb.io.from_scipy_sparse(B)).new()
    known = SEMIRINGS[name]
    found = multiply(csr_block(A), csr_block(B), known, known.result_dtype(A.dtype, B.dtype))
    rows, columns, values = wanted.to_coo()
    matrix = to_scipy(found).tocoo()  # type: ignore[arg-type]  # sparse
    np.testing.assert_array_equal(matrix.row, rows)
    np.testing.assert_array_equal(matrix.col, columns)
    np.testing.assert_array_equal(matrix.data, values)


@pytest.mark.parametrize("name", ["max_plus", "max_first", "max_second"])
def test_a_least_whole_number_is_absent_from_a_vector(name: str) -> None:
    A = csr_block(sp.csr_array(np.array([[-1, -2], [0, -3]])))
    least = np.iinfo(np.int64).min
    x = Dense(np.array([least, 4]))
    found = multiply(A, x, SEMIRINGS[name], np.dtype(np.int64))
    assert to_numpy(found).tolist() == {"max_plus": [2, 1], "max_first": [-2, -3], "max_second": [4, 4]}[name]
    nothing = multiply(A, Dense(np.full(2, least)), SEMIRINGS[name], np.dtype(np.int64))
    assert to_numpy(nothing).tolist() == [least, least]


def test_sums_of_narrow_floats_are_wide_and_whole_numbers_wrap_before_they_are_compared() -> None:
    ones = csr_block(sp.csr_array(np.full((1, 3), 1e8, "float32")))
    x = Dense(np.array([1e8, 1, -1e8], "float32"))
    assert to_numpy(multiply(ones, x, SEMIRINGS["plus_min"], np.dtype("float32"))).tolist() == [1.0]
    bytes_ = Dense(np.array([[100, 100]], np.int8))
    found = multiply(bytes_, Dense(np.array([100, 1], np.int8)), SEMIRINGS["max_plus"], np.dtype(np.int8))
    assert to_numpy(found).tolist() == [101]


def test_nan_is_the_least_and_the_largest() -> None:
    A = csr_block(sp.csr_array(np.array([[1.0, np.nan, 3.0]])))
    for name in ("max_min", "min_max", "max_first", "plus_min"):
        found = multiply(A, Dense(np.array([2.0, 2.0, 2.0])), SEMIRINGS[name], np.dtype(float))
        assert np.isnan(to_numpy(found)[0])


def test_a_semiring_is_named_by_its_addition_and_multiplication() -> None:
    assert semiring("max", "min") is semiring_named("max_min")
    assert semiring("any", "pair").name == "any_pair"
    for add, multiply_by, words in (
        ("most", "min", "no monoid 'most'; there are 'plus', 'times', 'min', 'max', 'lor', 'land', 'any'"),
        ("max", "minus", "no multiplication 'minus'; did you mean 'min'"),
        ("any", "first", "the same for 'pair' only"),
        ("plus", "land", "'land' gives booleans"),
    ):
        with pytest.raises(OptionError, match=words):
            semiring(add, multiply_by)
    with pytest.raises(DTypeError, match="needs real numbers"):
        semiring("plus", "min").result_dtype(np.dtype(complex), np.dtype(float))
