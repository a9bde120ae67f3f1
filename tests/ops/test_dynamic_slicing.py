"""Stretches of an axis that begin where a run says: values for any cuts, minibatches in loops, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_runner import run_by_hand, whole
from strategies import layouts

import matnb as mn
from matnb.blocks.kernels.shaping.shaping import cut
from matnb.errors import DTypeError, IndexingError, LoopBodyError, OptionError, ShapeError
from matnb.expr.nodes import Expr, Index
from matnb.lazy.indexing.dynamic import windows_of
from matnb.ops import dynamic_slicing
from matnb.ops.reference import block_of
from matnb.plan.lower import lower
from matnb.program.check import check_plan
from matnb.program.plan import StoredArray, Workers
from matnb.program.writer import Slots

WORKERS = Workers((0, 1, 2), 1, 0)
X = np.random.default_rng(0).standard_normal((60, 7))
Y = np.random.default_rng(1).standard_normal(60)
S = sp.random_array((60, 9), density=0.3, format="csr", rng=2)


def unknown(number: int) -> mn.DistArray:
    """A whole number that only a run can tell."""
    return mn.full(1, number, np.int64).max()


def run_cut(root: Expr, sources: dict[Expr, Any], drawn: st.DataObject) -> np.ndarray:
    """Run the plan of an expression over arrays that lie as is drawn."""
    slots, stored, blocks = Slots(), {}, {}
    for number, (node, values) in enumerate(sources.items()):
        layout = drawn.draw(layouts(node.shape))
        names = tuple(f"{number}-{place}" for place in range(layout.grid.num_blocks))
        stored[node] = slots.of(StoredArray(layout, names))
        for slot, region in zip(stored[node].keys, layout.grid.regions(), strict=True):
            blocks[slot] = cut(block_of(values), tuple(slice(*part) for part in region))
    plan = lower([root], (), stored, WORKERS, slots)
    check_plan(plan)
    return whole(root, plan.outputs[root], run_by_hand(plan, blocks))


@settings(max_examples=80)
@given(drawn=st.data(), is_sparse=st.booleans(), is_large=st.booleans())
def test_a_stretch_of_any_cuts(drawn: st.DataObject, is_sparse: bool, is_large: bool) -> None:
    values = S if is_sparse else X
    axis = drawn.draw(st.integers(0, 1))
    size = drawn.draw(st.integers(0, values.shape[axis]))
    start = drawn.draw(st.integers(0, values.shape[axis] - size))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dynamic_slicing, "SMALL_BYTES", 0 if is_large else 10**9)
        x = mn.asarray(values)
        found = mn.dynamic_slice(x, unknown(start), size, axis)
        assert found.sparse == is_sparse
        key = (*(slice(None),) * axis, slice(start, start + size))
        dense = values.toarray() if is_sparse else values
        np.testing.assert_array_equal(run_cut(found.expression, {x.expression: values}, drawn), dense[key])


@settings(max_examples=80)
@given(drawn=st.data(), is_one=st.booleans(), is_sparse=st.booleans(), of_sparse=st.booleans())
def test_a_stretch_is_written_in_any_cuts(
    drawn: st.DataObject, is_one: bool, is_sparse: bool, of_sparse: bool
) -> None:
    own = S if is_sparse else X
    axis = drawn.draw(st.integers(0, 1))
    size = drawn.draw(st.integers(0, own.shape[axis]))
    start = drawn.draw(st.integers(0, own.shape[axis] - size))
    shape = [1 if is_one else length for length in own.shape]
    shape[axis] = size
    new = np.arange(float(np.prod(shape))).reshape(shape) % 3
    x, update = mn.asarray(own), mn.asarray(sp.csr_array(new) if of_sparse else new)
    found = mn.dynamic_update_slice(x, update, unknown(start), axis)
    assert found.sparse == is_sparse
    expected = own.toarray() if is_sparse else own.copy()
    expected[(*(slice(None),) * axis, slice(start, start + size))] = new
    sources = {x.expression: own, update.expression: sp.csr_array(new) if of_sparse else new}
    np.testing.assert_array_equal(run_cut(found.expression, sources, drawn), expected)


def test_what_begins_at_a_known_place_is_a_slice() -> None:
    assert isinstance(mn.dynamic_slice(mn.asarray(X), 3, 5).expression, Index)
    with pytest.raises(
        IndexingError, match="a slice of 5 from 58 on axis 0 of length 60: it begins at 0 to 55"
    ):
        mn.dynamic_slice(X, 58, 5)
    with pytest.raises(IndexingError, match="a slice of 7 from -1 on axis 0"):
        mn.dynamic_update_slice(X, X[:7], -1)


ON_EACH = pytest.mark.session(
    "interpreter", "dask: three workers", "gang: three workers", "two threads", "processes"
)


@ON_EACH
def test_minibatches_of_dense_and_sparse_arrays() -> None:
    data = mn.asarray(X, blocks=(4, 2)), [mn.asarray(Y, blocks=3), mn.asarray(S, blocks=(5, 1))]

    def step(w: Any, item: Any) -> Any:
        X, (y, S) = item
        assert S.sparse
        assert (X.shape, y.shape, S.shape) == ((12, 7), (12,), (12, 9))
        return 0.5 * w + X.T @ (X @ w - y) + (S.T @ y).sum()

    for reverse in (False, True):
        w, taken = mn.iterate(step, np.zeros(7), over=data, batch=12, reverse=reverse)
        expected = np.zeros(7)
        for number in range(5)[:: -1 if reverse else 1]:
            own = slice(12 * number, 12 * number + 12)
            residual = X[own] @ expected - Y[own]
            expected = 0.5 * expected + X[own].T @ residual + (S[own].T @ Y[own]).sum()
        np.testing.assert_allclose(w.compute(), expected, rtol=1e-9)
        assert int(taken) == 5
    assert int(mn.iterate(step, np.zeros(7), over=data, batch=12, max_iterations=2)[1]) == 2


@ON_EACH
@pytest.mark.filterwarnings("ignore::matnb.errors.LostWriteWarning")
def test_slices_in_the_body_of_a_loop() -> None:
    x = mn.asarray(X, blocks=(4, 2))

    def read(total: Any) -> Any:
        i = mn.iteration()
        parts = (
            x[i : i + 5],
            x[2 * i + 1 : 5 + 1 + i * 2],
            x[3 * i : 3 * (i + 2) - 1, ...],
            x[-i + 9 : 14 - i],
        )
        return total + sum(parts) + x[i : i + 5, None, 2] + x[7:12, i : i + 1]

    def write(z: Any) -> Any:
        i = mn.iteration()
        z[7 * i : 7 * i + 3] = x[i : i + 3] * 2
        z[i : i + 2, 1:3] += 1.0
        z[..., i : i + 2] = 0.25
        z[i + 20 : i + 24, i : i + 3][...] = 5.0  # of a copy, as everywhere
        z[i + 30 : i + 34, i : i + 3] = np.arange(4.0)[:, None]
        return z

    found = mn.iterate(read, np.zeros((5, 7)), max_iterations=4)[0].compute()
    total, z = np.zeros((5, 7)), np.zeros((60, 7))
    for i in range(4):
        total += X[i : i + 5] + X[2 * i + 1 : 2 * i + 6] + X[3 * i : 3 * i + 5] + X[9 - i : 14 - i]
        total += X[i : i + 5, None, 2] + X[7:12, i : i + 1]
        z[7 * i : 7 * i + 3] = X[i : i + 3] * 2
        z[i : i + 2, 1:3] += 1.0
        z[..., i : i + 2] = 0.25
        z[i + 30 : i + 34, i : i + 3] = np.arange(4.0)[:, None]
    np.testing.assert_allclose(found, total)
    np.testing.assert_array_equal(mn.iterate(write, mn.zeros((60, 7)), max_iterations=4)[0].compute(), z)


@ON_EACH
def test_what_was_read_stays_when_the_array_is_written_in_place() -> None:
    start = np.arange(40_000.0)

    def step(state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        x, total, k = state
        read = mn.dynamic_slice(x, k, 9000)
        return mn.dynamic_update_slice(x, read * 2 + 1, k), total + read, k + 1

    (x, total, _), _ = mn.iterate(step, (mn.asarray(start), mn.zeros(9000), mn.asarray(0)), max_iterations=7)
    expected, sums = start.copy(), np.zeros(9000)
    for k in range(7):
        read = expected[k : k + 9000].copy()
        expected[k : k + 9000] = read * 2 + 1
        sums += read
    np.testing.assert_array_equal(x.compute(), expected)
    np.testing.assert_array_equal(total.compute(), sums)


@ON_EACH
def test_a_slice_beyond_the_end_is_an_error_of_the_run() -> None:
    x = mn.asarray(X, blocks=4)

    def step(total: Any) -> Any:
        return total + x[20 * mn.iteration() : 20 * mn.iteration() + 15].sum()

    with pytest.raises(
        IndexingError, match="a slice of 15 from 60 on axis 0 of length 60: it begins at 0 to 45"
    ):
        mn.iterate(step, 0.0, max_iterations=4)[0].compute()


def test_lengths_that_change_are_refused_in_words_of_the_user() -> None:
    x = mn.asarray(X)
    for key in (
        lambda i: slice(i, None),
        lambda i: slice(None, i),
        lambda i: slice(i, 2 * i),
        lambda i: slice(i, i * i),
        lambda i: slice(i, i + 4, 2),
        lambda i: slice(0, 4, i),
    ):
        with pytest.raises(LoopBodyError, match=r"write x\[i:i \+ b\] with a number b") as caught:
            mn.iterate(lambda s: s + x[key(mn.iteration())].sum(), 0.0, max_iterations=2)  # noqa: B023
        assert "variable" not in str(caught.value)
    with pytest.raises(ShapeError, match="ends 2 before it begins"):
        mn.iterate(lambda s: s + x[mn.iteration() : mn.iteration() - 2].sum(), 0.0, max_iterations=2)
    with pytest.raises(IndexingError, match="index has dtype float64"):
        mn.iterate(lambda s: s + x[s : s + 2].sum(), 0.0, max_iterations=2)


def test_slices_whose_bounds_a_body_does_not_tell_are_as_everywhere() -> None:
    with mn.start(engine="interpret"):
        i = unknown(58)
        assert mn.asarray(X)[i : i + 5].shape == (2, 7)
    mn.stop()
    rest, windows = windows_of((..., 3), 2)
    assert rest == (..., 3)
    assert windows == []


def test_what_does_not_fit_is_refused() -> None:
    x, k = mn.asarray(X), unknown(1)
    for size, kind in ((61, ShapeError), (-1, ShapeError), (2.0, DTypeError), ("2", DTypeError)):
        with pytest.raises(kind):
            mn.dynamic_slice(x, k, size)
    with pytest.raises(DTypeError, match=r"an index has shape \(1,\)"):
        mn.dynamic_slice(x, mn.full(1, 2), 3)
    for update in (X[:61, :5], Y[:2], X[None]):
        with pytest.raises(ShapeError, match="an update of shape"):
            mn.dynamic_update_slice(x, update, k)
    with pytest.raises(
        ShapeError, match=r"over= of length 60 in batches of 7: 4 would be left over; .* x\[:56\]"
    ):
        mn.iterate(lambda s, b: s, 0.0, over=x, batch=7)
    with pytest.raises(OptionError, match="batch=7 without over="):
        mn.iterate(lambda s: s, 0.0, batch=7, max_iterations=2)
    for batch in (0, -1, 2.0, True):
        with pytest.raises(OptionError, match="give an integer of 1 or more"):
            mn.iterate(lambda s, b: s, 0.0, over=x, batch=batch)
