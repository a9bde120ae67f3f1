"""``mn.repartition`` and ``mn.align``: other cuts, the same values, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn
from matnb.errors import LoopBodyError, OptionError, ShapeError
from matnb.io.source import ROW_ENTRIES

rng = np.random.default_rng(4)
NUM_ROWS = 500
A = sp.random(NUM_ROWS, 40, 0.3, "csr", random_state=2)
A.data[A.indptr[100] :] *= rng.random(A.nnz - A.indptr[100]) < 0.2
A.eliminate_zeros()
A = sp.csr_array(A)
X = rng.random(NUM_ROWS)


pytestmark = pytest.mark.session("two workers")


@pytest.mark.parametrize("n", [1, 2, 5, 7])
def test_a_sparse_array_is_cut_into_parts_of_about_equal_work(session: mn.session.Session, n: int) -> None:
    a = mn.asarray(A, blocks=3)
    assert mn.repartition(a, n) is a
    counts = session.stored(a.expression).block_nnz
    assert len(counts) == n
    # Before measuring a row is as much as ROW_ENTRIES entries; the heaviest has 41.
    work = np.array(counts) + ROW_ENTRIES * np.diff(a.layout.grid.cuts[0])
    assert work.max() <= (A.nnz + ROW_ENTRIES * NUM_ROWS) / n + ROW_ENTRIES + 41
    assert list(a.layout.owners) == sorted(a.layout.owners)
    assert (a.compute() != A).nnz == 0


def test_an_array_is_cut_into_as_many_parts_as_kernels_run_where_nothing_is_said() -> None:
    assert mn.repartition(mn.asarray(A, blocks=5)).layout.grid.counts == (2, 1)


def test_dense_arrays_are_cut_evenly() -> None:
    x = mn.repartition(mn.asarray(X), 4)
    assert x.layout.grid.cuts == ((0, 125, 250, 375, 500),)
    np.testing.assert_array_equal(x.compute(), X)
    few = mn.repartition(mn.asarray(X[:3]), 10)
    assert few.layout.grid.num_blocks == 3


def test_an_array_is_cut_where_a_person_says() -> None:
    a = mn.repartition(mn.asarray(A), cuts=[0, 10, 300, NUM_ROWS])
    assert a.layout.grid.cuts == ((0, 10, 300, NUM_ROWS), (0, 40))
    mn.repartition(a, cuts=[[0, 10, NUM_ROWS], 2])
    assert a.layout.grid.cuts == ((0, 10, NUM_ROWS), (0, 20, 40))
    assert (a.compute() != A).nnz == 0
    np.testing.assert_array_equal((a @ mn.ones(40)).compute(), (mn.asarray(A) @ mn.ones(40)).compute())


def test_both_axes_are_cut_so_that_the_heaviest_block_is_light(session: mn.session.Session) -> None:
    a = mn.repartition(mn.asarray(A), (3, 2))
    assert a.layout.grid.counts == (3, 2)
    regular = mn.asarray(A, blocks=[3, 2]).persist()
    counts, before = session.stored(a.expression).block_nnz, session.stored(regular.expression).block_nnz
    assert sum(counts) == A.nnz
    assert max(counts) < max(before)
    assert max(counts) < 1.2 * A.nnz / 6
    assert (a.compute() != A).nnz == 0


def test_a_lazy_array_is_computed_and_its_expression_stays() -> None:
    x = mn.asarray(X) * 2
    node = x.expression
    mn.repartition(x, 3)
    assert x.expression is node
    assert x.layout.grid.num_blocks == 3
    np.testing.assert_array_equal(x.compute(), X * 2)


def test_aligned_arrays_lie_alike_now_and_after_every_change() -> None:
    a, x = mn.asarray(A, blocks=4).persist(), mn.asarray(X, blocks=2).persist()
    later = mn.asarray(X, blocks=3) + 1
    mn.align(a, x, later)
    assert x.layout.grid.cuts[0] == a.layout.grid.cuts[0]
    assert x.layout.owners == a.layout.owners
    assert later.layout is None
    later.persist()
    mn.repartition(a, 7)
    for one in (x, later):
        assert one.layout.grid.cuts[0] == a.layout.grid.cuts[0]
        assert one.layout.owners == a.layout.owners
    np.testing.assert_array_equal(x.compute(), X)
    np.testing.assert_array_equal(later.compute(), X + 1)


def test_what_does_not_fit_is_refused() -> None:
    a = mn.asarray(A)
    for n in (0, -1, True, 1.5, (2, 0)):
        with pytest.raises(OptionError, match="n="):
            mn.repartition(a, n)
    with pytest.raises(OptionError, match="not a DistArray"):
        mn.repartition(A, 2)
    with pytest.raises(OptionError, match="not both"):
        mn.repartition(a, 2, cuts=[0, NUM_ROWS])
    with pytest.raises(ShapeError, match="names 2 axes"):
        mn.repartition(mn.asarray(X), (2, 2))
    with pytest.raises(ShapeError, match="no rows"):
        mn.repartition(mn.asarray(3.0), 2)
    with pytest.raises(ShapeError, match="end at its length"):
        mn.repartition(a, cuts=[0, 7])
    with pytest.raises(ShapeError, match="same number of rows"):
        mn.align(a, mn.ones(3))
    with pytest.raises(OptionError, match="at least two"):
        mn.align(a)
    with pytest.raises(OptionError, match="not a DistArray"):
        mn.align(a, X)


def test_an_array_of_a_loops_body_has_no_blocks_to_cut() -> None:
    def cut(x: mn.DistArray) -> mn.DistArray:
        return mn.repartition(x + 1, 2)

    def aligned(x: mn.DistArray) -> mn.DistArray:
        mn.align(x, mn.asarray(X))
        return x + 1

    for step, called in ((cut, "repartition"), (aligned, "align")):
        with pytest.raises(LoopBodyError, match=f"^{called}: .* body of a loop"):
            mn.iterate(step, mn.asarray(X), max_iterations=3)
