"""What an iteration is for the rows of a stored array, counted by hand."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn
from matnb.expr.control import Loop
from matnb.plan.looping import ControlPlan, plan_control, starts_inside
from matnb.plan.row_work import RowWork, row_works
from matnb.program.place import default_layout
from matnb.program.plan import StoredArray, Workers
from matnb.program.program import EXPECTED

WORKERS = Workers((0, 1), 1, 10**9)
N = 40_000
ROW = 8  # bytes of a row of a vector


def worked(step: object, state: object) -> RowWork:
    """Return what an iteration is for the one sparse array that it reads."""
    node = mn.iterate(step, state, max_iterations=3)[1].expression
    assert isinstance(node, Loop)
    stored = {one: on_workers(one, k) for k, one in enumerate(node.inputs) if not starts_inside(one)}
    plan = plan_control(node, stored, WORKERS, [node])
    assert isinstance(plan, ControlPlan)
    (sparse,) = (one for one in stored if one.sparse)
    return row_works(plan)[sparse.digest.hex()]


def on_workers(node: mn.lazy.expr.Expr, number: int) -> StoredArray:
    layout = default_layout(node, 10**7, WORKERS)
    sizes = tuple(8 * int(np.prod([b - a for a, b in region])) for region in layout.grid.regions())
    return StoredArray(layout, tuple(f"in{number}-{k}" for k in range(len(sizes))), sizes, sizes)


@pytest.fixture
def A() -> mn.DistArray:
    rows, columns = np.random.default_rng(0).integers(0, N, (2, 8 * N))
    return mn.asarray(sp.csr_array((np.ones(8 * N), (rows, columns)), shape=(N, N)))


def test_a_product_and_what_is_done_with_its_rows(A: mn.DistArray) -> None:
    found = worked(lambda x: 0.85 * (A @ x) + 0.15 / N, mn.ones(N))
    assert found == RowWork(1.0, ROW, 0.0)


def test_columns_are_more_work_for_entries_and_rows(A: mn.DistArray) -> None:
    found = worked(lambda x: A @ x + x, mn.ones((N, 8)))
    assert found == RowWork(4.5, 2 * 8 * ROW, 0.0)


def test_what_waits_for_all_workers_is_a_phase_of_its_own(A: mn.DistArray) -> None:
    def step(x: mn.DistArray) -> mn.DistArray:
        y = A @ x
        return y / np.sqrt((y * y).sum())

    found = worked(step, mn.ones(N))
    assert found.passes == 1
    assert found.row_bytes == 2 * ROW  # y is made, and read for the sum
    assert found.apart_bytes == 2 * ROW


@pytest.mark.parametrize(("limit", "expected"), [(5, 5), (50, 50), (None, EXPECTED)])
def test_a_loop_inside_counts_as_often_as_it_is_expected_to_run(
    A: mn.DistArray, limit: int | None, expected: int
) -> None:
    def step(x: mn.DistArray) -> mn.DistArray:
        most = mn.iteration() + 3 if limit is None else limit
        inner, _ = mn.iterate(lambda z: A @ z, x, max_iterations=most)
        return inner * 2

    found = worked(step, mn.ones(N))
    assert found.passes == expected
    assert found.row_bytes == expected * ROW
    assert found.apart_bytes == 2 * ROW


def test_a_condition_ends_a_loop_inside_sooner(A: mn.DistArray) -> None:
    def step(x: mn.DistArray) -> mn.DistArray:
        return mn.iterate(lambda z: A @ z, x, until=lambda old, new: new.sum() < 1, max_iterations=50)[0]

    assert worked(step, mn.ones(N)).passes == EXPECTED


def test_columns_of_sparse_results_are_no_columns_of_a_product(A: mn.DistArray) -> None:
    U = mn.asarray(np.random.default_rng(1).random((N, 3)))
    assert worked(lambda x: (A * x[:, None]) @ x, mn.ones(N)).passes == 1
    assert worked(lambda V: (A * (V @ U.T)) @ V, mn.ones((N, 3))).passes <= 3
    found = worked(lambda s: (A @ s[0], s[1] * 2), (mn.ones(N), A))
    assert (found.passes, found.row_bytes, found.apart_bytes) == (1, ROW, 0)


def test_of_two_ways_the_shorter_one_counts(A: mn.DistArray) -> None:
    V = mn.asarray(np.random.default_rng(1).random((N, 3)))

    def step(x: mn.DistArray) -> mn.DistArray:
        y = A @ x
        return mn.cond(y.sum() > 0, lambda: y / 2, lambda: V @ (V.T @ (A @ (A @ y))))

    assert worked(step, mn.ones(N)).passes == 1


def test_lanczos_waits_for_more_rows_than_entries(A: mn.DistArray) -> None:
    def step(state: tuple[mn.DistArray, mn.DistArray]) -> tuple[mn.DistArray, mn.DistArray]:
        V, v = state
        w = A @ v
        w -= V @ (V.T @ w)
        w -= V @ (V.T @ w)
        return V, w

    V = mn.asarray(np.random.default_rng(1).random((N, 20)))
    found = worked(step, (V, mn.ones(N)))
    assert found.passes == 1
    # With the entries: w is made, V and w are read for the first product of the two.
    assert found.row_bytes == ROW * (1 + 20 + 1)
    # V, w and the new w; V and w; V, w and the new w.
    assert found.apart_bytes == ROW * (22 + 21 + 22)
