"""NumPy's functions on DistArray, each against NumPy's own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse as sp
from breadth.test_cases import CASES
from results import check

import matnb as mn
from matnb.errors import ShapeError, UnsupportedError
from matnb.lazy.registry import FUNCTIONS

A = np.array([[1.0, -2.0, 3.0], [0.0, 5.0, -6.0]])
TALL = np.arange(24.0).reshape(2, 3, 4)
CALLS: list[tuple[Callable[..., object], Callable[..., object], np.ndarray]] = [
    (np.where, lambda x: np.where(x > 0, x, 2), A),
    (np.where, lambda x: np.where(x > 0, 1, x.astype(np.float32)), A),
    (np.where, lambda x: np.where(x > 0, 1, 2.5), A),
    (np.where, lambda x: np.where(x, np.arange(3), x), A),
    (np.clip, lambda x: np.clip(x, -1, 2), A),
    (np.clip, lambda x: np.clip(x, None, np.array([1.0, 2.0, 3.0])), A),
    (np.clip, lambda x: np.clip(x, min=0), A),
    (np.clip, lambda x: np.clip(x, -1, None), A.astype(np.float32)),
    (np.astype, lambda x: np.astype(x, np.int32), A),
    (np.real, np.real, A),
    (np.dot, lambda x: np.dot(x, x.T), A),
    (np.dot, lambda x: np.dot(x, 3), A),
    (np.dot, lambda x: np.dot(x[0], x[1]), A),
    (np.linalg.norm, np.linalg.norm, A),
    (np.linalg.norm, lambda x: np.linalg.norm(x, "fro"), A),
    (np.linalg.norm, lambda x: np.linalg.norm(x, 1), A),
    (np.linalg.norm, lambda x: np.linalg.norm(x, np.inf, keepdims=True), A),
    (np.linalg.norm, lambda x: np.linalg.norm(x, axis=0), A),
    (np.linalg.norm, lambda x: np.linalg.norm(x, 1, axis=1, keepdims=True), A),
    (np.linalg.norm, lambda x: np.linalg.norm(x[0], 1), A),
    (np.linalg.norm, lambda x: np.linalg.norm(x[0], 2), A),
    (np.linalg.norm, lambda x: np.linalg.norm(x[1], np.inf), A),
    (np.linalg.norm, lambda x: np.linalg.norm(x, axis=(0, 2)), TALL),
    (np.linalg.norm, lambda x: np.linalg.norm(x + 1j), A),
    (np.linalg.norm, np.linalg.norm, A.astype(int)),
    (np.sum, lambda x: np.sum(x, axis=1, keepdims=True), A),
    (np.sum, lambda x: np.sum(x, axis=(0, -1), dtype=np.float32), TALL),
    (np.sum, np.sum, A > 0),
    (np.prod, lambda x: np.prod(x, 0), A),
    (np.prod, np.prod, A.astype(np.int8)),
    (np.min, lambda x: np.min(x, axis=0), A),
    (np.amin, np.amin, A),
    (np.max, lambda x: np.max(x, axis=-1, keepdims=True), A),
    (np.amax, np.amax, A),
    (np.any, lambda x: np.any(x, axis=0), A),
    (np.all, lambda x: np.all(x, axis=0), A),
    (np.mean, lambda x: np.mean(x, axis=0), A),
    (np.mean, np.mean, A > 0),
    (np.var, lambda x: np.var(x, axis=1, ddof=1), A),
    (np.var, lambda x: np.var(x + 1j * x), A),
    (np.std, lambda x: np.std(x, 0, keepdims=True), A),
    (np.count_nonzero, lambda x: np.count_nonzero(x, axis=1), A),
    (np.transpose, np.transpose, TALL),
    (np.transpose, lambda x: np.transpose(x, (1, -1, 0)), TALL),
    (np.permute_dims, lambda x: np.permute_dims(x, (2, 0, 1)), TALL),
    (np.matrix_transpose, np.matrix_transpose, TALL),
    (np.swapaxes, lambda x: np.swapaxes(x, 0, -1), TALL),
    (np.broadcast_to, lambda x: np.broadcast_to(x, (4, 2, 3)), A),
    (np.expand_dims, lambda x: np.expand_dims(x, 1), A),
    (np.expand_dims, lambda x: np.expand_dims(x, (0, -1)), A),
    (np.squeeze, np.squeeze, A[None, :, None]),
    (np.squeeze, lambda x: np.squeeze(x, -2), A[None, :, None]),
    (np.full_like, lambda x: np.full_like(x, 7), A),
    (np.full_like, lambda x: np.full_like(x, 2.5, dtype=np.float32, shape=(2, 2)), A),
    (np.zeros_like, np.zeros_like, A > 0),
    (np.empty_like, lambda x: np.empty_like(x) * 0, A),
    (np.ones_like, lambda x: np.ones_like(x, dtype=int), A),
]


@pytest.mark.parametrize(("function", "call", "given"), CALLS)
@pytest.mark.parametrize("sparse", [False, True])
def test_functions_mean_what_numpys_mean(
    function: Callable[..., object], call: Callable[..., object], given: np.ndarray, sparse: bool
):
    if sparse and given.ndim != 2:
        return
    check(call(mn.asarray(given, format="sparse" if sparse else None)), call(given))


@pytest.mark.parametrize(("function", "expected"), [(np.shape, (2, 3)), (np.ndim, 2), (np.size, 6)])
def test_functions_that_give_plain_numbers(function: Callable[..., object], expected: object):
    assert function(mn.asarray(A)) == function(A) == expected
    assert np.size(mn.asarray(A), 1) == 3


@pytest.mark.parametrize(
    ("function", "nearest"),
    [
        (np.linalg.eig, "linalg.eigh"),
        (np.linalg.eigvals, "linalg.eigvalsh"),
    ],
)
def test_functions_that_cannot_be_recorded_say_what_is_nearest(function: Callable[..., object], nearest: str):
    with pytest.raises(UnsupportedError, match=nearest):
        function(mn.eye(3))


def test_every_registered_function_is_compared():
    refused = {np.linalg.eig, np.linalg.eigvals}
    ours = {mn.GroupBy.nested, mn.save}  # the room of nested arrays gives what they do: tests/nested
    ours |= {np.polyfit, np.unwrap}  # tests/linalg/test_curves.py
    ours |= {np.save, np.savez, np.savez_compressed, np.savetxt}  # tests/laws/test_ways_out.py
    here = {function for function, _, _ in CALLS} | {np.shape, np.ndim, np.size} | refused | ours
    # Those of tests/breadth have names as a user writes them behind "np.".
    named = {case.name for case in CASES}
    written = {f"{one.__module__}.{one.__name__}".removeprefix("numpy.") for one in set(FUNCTIONS) - here}
    assert not written - named


@pytest.mark.usefixtures("interpreter")
def test_blocks_of_none_are_those_of_scipy() -> None:
    A, B = sp.eye_array(2, 3).tocsr(), 2 * sp.eye_array(4, 1).tocsr()
    rows = [[A, None, A], [None, B, None]]
    found = mn.block([[None if one is None else mn.asarray(one) for one in row] for row in rows])
    expected = sp.block_array(rows)
    assert found.sparse
    assert found.nnz == expected.nnz
    np.testing.assert_array_equal(found.toarray(), expected.toarray())
    for wrong in ([[A, None], [A]], [[A, None], [A, None]], [[A, None], [None, np.ones(3)]]):
        with pytest.raises(ShapeError, match="block: "):
            mn.block(wrong)


@pytest.mark.usefixtures("interpreter")
def test_elements_are_taken_by_their_numbers_and_ranges() -> None:
    x = np.arange(6.0).reshape(2, 3)
    y = mn.asarray(x)
    assert (y.item(4), y.item(1, 2), y[0].item(-1)) == (x.item(4), x.item(1, 2), x[0].item(-1))
    assert y[range(1, 2)].tolist() == x[range(1, 2)].tolist()
    assert mn.arange(9)[range(1, 9, 3)].tolist() == [1, 4, 7]


@pytest.mark.usefixtures("interpreter")
@pytest.mark.parametrize("empty", [np.zeros(0), np.zeros((3, 0))])
def test_quantiles_of_no_values_are_refused(empty: np.ndarray) -> None:
    with pytest.raises(ShapeError, match="no values to order"):
        np.percentile(mn.asarray(empty), 50, axis=-1)
    assert np.quantile(mn.asarray(np.zeros((0, 3))), 0.5, axis=1).shape == (0,)
