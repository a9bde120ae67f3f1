"""Whether a result is sparse follows from whether the arguments are, and not from the numbers beside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn

X = np.array([[0.0, 2, 0, 1], [1, 0, 0, 0], [0, 0, 0, 3], [2, 0, 1, 0]])
# A function with a parameter, and numbers for it, the first of which asks for nothing or next to nothing.
CALLS: dict[str, tuple[Callable[[Any, int], Any], tuple[int, ...]]] = {
    "matrix_power": (lambda x, n: np.linalg.matrix_power(x, n), (0, 1, 2, 3, 8)),
    "multiply": (lambda x, n: x * n, (0, 1, 2)),
    "power": (lambda x, n: x**n, (1, 2, 3)),
    "diff": (lambda x, n: np.diff(x, n=n), (0, 1, 3)),
    "roll": (lambda x, n: np.roll(x, n, axis=0), (0, 1, 5)),
    "rot90": (lambda x, n: np.rot90(x, n), (0, 1, 2, 3, 4)),
    "repeat": (lambda x, n: np.repeat(x, n, axis=0), (0, 1, 2)),
    "tile": (lambda x, n: np.tile(x, (n, 1)), (0, 1, 2)),
    "tril": (lambda x, n: np.tril(x, n), (-9, -4, 0, 9)),
    "triu": (lambda x, n: np.triu(x, n), (9, 4, 0, -9)),
    "pad": (lambda x, n: np.pad(x, n), (0, 1, 2)),
    "a slice": (lambda x, n: x[:n], (0, 1, 4)),
    "take": (lambda x, n: np.take(x, np.arange(n), axis=0), (0, 1, 4)),
    "delete": (lambda x, n: np.delete(x, np.arange(n), axis=0), (0, 1, 4)),
    "an empty product": (lambda x, n: x[:, :n] @ x[:n], (0, 1, 4)),
    "concatenate": (lambda x, n: np.concatenate([x] * n), (1, 2, 3)),
    "clip": (lambda x, n: np.clip(x, -n, n), (0, 1, 9)),
    "round": (lambda x, n: np.round(x, n), (0, 1, -1)),
    "imag": (lambda x, n: (x * (1 if n == 0 else 1j)).imag, (0, 1)),
    "iscomplex": (lambda x, n: np.iscomplex(x * (1 if n == 0 else 1j)), (0, 1)),
}

pytestmark = pytest.mark.session("interpreter")


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", ["float64", "int64", "complex128"])
def test_the_format_of_a_result_follows_that_of_the_argument(name: str, dtype: str) -> None:
    call, numbers = CALLS[name]
    if dtype == "complex128" and name in ("clip", "imag", "iscomplex"):
        return
    values = X.astype(dtype)
    for number in numbers:
        expected = call(values, number)
        for given in (values, sp.csr_array(values)):
            found = call(mn.asarray(given, blocks=2), number)
            assert found.sparse is sp.issparse(given), f"{name} {number}"
            assert found.dtype == expected.dtype
            made = found.compute()
            np.testing.assert_array_equal(made.todense() if found.sparse else made, expected)


def test_stacks_of_matrices_have_dense_powers() -> None:
    stack = np.stack([X, 2 * X])
    for power in (0, 1, 2):
        found = np.linalg.matrix_power(mn.asarray(stack), power)
        assert not found.sparse
        np.testing.assert_array_equal(found.compute(), np.linalg.matrix_power(stack, power))
    assert not np.linalg.matrix_power(mn.asarray(sp.csr_array(X + 5 * np.eye(4))), -1).sparse
