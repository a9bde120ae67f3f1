"""Reductions of a sparse product inside a loop, where product and reduction run in one task."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn

MATRIX = sp.csr_array(np.array([[0, 1.0, 0], [0, 0, -2.0], [3.0, 0, 0]]))
REDUCTIONS: dict[str, Callable[[object], object]] = {
    "max": np.max,
    "min": np.min,
    "sum": np.sum,
    "mean": np.mean,
    "std": np.std,
    "var": np.var,
    "prod": np.prod,
    "any": np.any,
    "all": np.all,
    "nansum": np.nansum,
    "count_nonzero": np.count_nonzero,
    "norm": np.linalg.norm,
    "argmax": np.argmax,
    "max of a chain": lambda y: np.max(2 * y + 1),
    "max of magnitudes": lambda y: np.max(abs(y)),
}


pytestmark = pytest.mark.session("gang: two workers", "dask: two workers", memo="off")


@pytest.mark.usefixtures("session")
@pytest.mark.parametrize("side", ["A", "A.T", "A, two columns"])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_a_reduction_of_a_product(name: str, side: str) -> None:
    if name == "norm" and side == "A, two columns":
        pytest.skip("a norm of two columns is another one")
    reduced, A = REDUCTIONS[name], mn.asarray(MATRIX, blocks=2)
    start = np.array([1.0, 2.0, 0.5]) if side != "A, two columns" else np.array([[1, 2.0], [3, 1], [0.5, 4]])
    left, expected = (A.T, MATRIX.T) if side == "A.T" else (A, MATRIX)
    found, _ = mn.iterate(lambda x: x * 0 + reduced(left @ x), mn.asarray(start), max_iterations=1)
    np.testing.assert_allclose(
        found.compute(), np.broadcast_to(reduced(expected @ start), start.shape), rtol=1e-12
    )


@pytest.mark.usefixtures("session")
def test_a_condition_on_the_largest_element_ends_a_loop_when_it_holds() -> None:
    A = mn.asarray(MATRIX)
    _, taken = mn.iterate(
        lambda x: A @ x * 0.5, mn.ones(3), until=lambda old, new: (A @ new).max() < 0.1, max_iterations=50
    )
    x, expected = np.ones(3), 0
    while True:
        x, expected = MATRIX @ x * 0.5, expected + 1
        if (MATRIX @ x).max() < 0.1:
            break
    assert int(taken) == expected
