"""A user's functions on rows and slabs: the same bits for any cuts, and errors that say where they arose."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_runner import run_by_hand, whole
from results import value
from strategies import layouts

import matnb as mn
from matnb.blocks.kernels.shaping.shaping import cut
from matnb.errors import OptionError, ShapeError, TooLargeError
from matnb.expr.nodes import Expr
from matnb.ops import mapping
from matnb.ops.interpret import interpret
from matnb.ops.reference import block_of
from matnb.plan.lower import lower
from matnb.program.check import check_plan
from matnb.program.plan import StoredArray, Workers
from matnb.program.writer import Slots

WORKERS = Workers((0, 1, 2), 1, 0)
RNG = np.random.default_rng(0)
X, Y, W = RNG.standard_normal((130, 4)), RNG.standard_normal(130), RNG.standard_normal(4)
S = sp.random_array((130, 6), density=0.3, format="csr", rng=1)


def run_cut(root: Expr, sources: dict[Expr, Any], cuts: dict[Expr, Any]) -> np.ndarray:
    """Run the plan of an expression over arrays that lie as they are cut."""
    slots, stored, blocks = Slots(), {}, {}
    for number, (node, values) in enumerate(sources.items()):
        layout = cuts[node]
        names = tuple(f"{number}-{place}" for place in range(layout.grid.num_blocks))
        stored[node] = slots.of(StoredArray(layout, names))
        for slot, region in zip(stored[node].keys, layout.grid.regions(), strict=True):
            blocks[slot] = cut(block_of(values), tuple(slice(*part) for part in region))
    plan = lower([root], (), stored, WORKERS, slots)
    check_plan(plan)
    return whole(root, plan.outputs[root], run_by_hand(plan, blocks))


def gram(X: np.ndarray, S: sp.csr_array, y: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return X.T @ X, S.T @ (X @ w - y)


def sums(one: tuple[Any, Any], two: tuple[Any, Any]) -> tuple[Any, Any]:
    return one[0] + two[0], one[1] + two[1]


@settings(max_examples=40)
@given(drawn=st.data(), slab_bytes=st.sampled_from([100, 700, 3000, 10**6]))
def test_what_slabs_give_has_the_same_bits_for_any_cuts(drawn: st.DataObject, slab_bytes: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mapping, "_SLAB_BYTES", slab_bytes)
        arrays = [mn.asarray(one) for one in (X, S, Y)]
        results = mn.reduce_blocks(gram, *arrays, combine=sums, replicate=W)
        node = results[0].expression.operands[0]
        sources = dict(zip((one.expression for one in arrays), (X, S, Y), strict=True))
        cuts = {one: drawn.draw(layouts(one.shape)) for one in sources}
        expected = interpret(node)
        np.testing.assert_array_equal(run_cut(node, sources, cuts), expected)
        for found, theirs in zip(results, gram(X, S, Y, W), strict=True):
            np.testing.assert_allclose(value(found), theirs, atol=1e-12)


@settings(max_examples=25)
@given(drawn=st.data(), slab_bytes=st.sampled_from([100, 300, 1000, 3000]))
def test_neighbors_are_combined_first_the_earlier_on_the_left(drawn: st.DataObject, slab_bytes: int) -> None:
    def ends(X: np.ndarray, *, place: tuple[slice, ...]) -> np.ndarray:
        return X.sum(axis=0) + place[0].start

    def turned(one: np.ndarray, two: np.ndarray) -> np.ndarray:
        return one * 0.75 - two

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mapping, "_SLAB_BYTES", slab_bytes)
        x = mn.asarray(X)
        found = mn.reduce_blocks(ends, x, combine=turned).expression
        slabs = found.operands[0].slabs()
        results = [ends(X[start:stop], place=(slice(start, stop),)) for start, stop in slabs]
        while len(results) > 1:
            pairs = [results[place : place + 2] for place in range(0, len(results), 2)]
            results = [turned(*pair) if len(pair) > 1 else pair[0] for pair in pairs]
        layout = drawn.draw(layouts(X.shape))
        made = run_cut(found, {x.expression: X}, {x.expression: layout})
        np.testing.assert_array_equal(made, results[0])


def test_slabs_follow_from_lengths_and_dtypes_alone() -> None:
    def slabs(*arrays: Any) -> list[tuple[int, int]]:
        found = mn.reduce_blocks(len, *map(mn.asarray, arrays), combine=int.__add__, shape=(), dtype=int)
        return found.expression.operands[0].slabs()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mapping, "_SLAB_BYTES", 40 * 32)
        patch.setattr(mapping, "_MOST_SLABS", 5)
        assert slabs(X) == [(0, 32), (32, 64), (64, 96), (96, 128), (128, 130)]
        assert slabs(X.astype("f4")) == [(0, 64), (64, 128), (128, 130)]
        assert slabs(S) == [(0, 130)]  # how many entries it has is not asked
        assert slabs(X[:0]) == [(0, 0)]
        assert len(slabs(np.ones((1000, 4)))) == 5


@settings(max_examples=25)
@given(drawn=st.data())
def test_rows_of_arrays_of_other_axes_meet(drawn: st.DataObject) -> None:
    def fn(X: np.ndarray, S: sp.csr_array, y: np.ndarray, w: np.ndarray, *, place: Any) -> np.ndarray:
        assert place[1] == slice(0, 4)
        return np.column_stack([X @ w + S.sum(axis=1) * y, np.arange(130)[place[0]]])

    arrays = [mn.asarray(one) for one in (X, S, Y)]
    found = mn.map_blocks(fn, *arrays, align="rows", replicate=W, pure=True).expression
    sources = dict(zip((one.expression for one in arrays), (X, S, Y), strict=True))
    cuts = {one: drawn.draw(layouts(one.shape)) for one in sources}
    expected = np.column_stack([X @ W + S.sum(axis=1) * Y, np.arange(130)])
    np.testing.assert_allclose(run_cut(found, sources, cuts), expected)


def test_the_place_of_a_block_with_cuts_on_every_axis() -> None:
    x = mn.asarray(X, blocks=(3, 2))

    def fn(block: np.ndarray, *, place: tuple[slice, ...]) -> np.ndarray:
        return block * 0 + np.arange(520.0).reshape(130, 4)[place]

    with mn.start(workers=1, threads=2):
        np.testing.assert_array_equal(mn.map_blocks(fn, x).compute(), np.arange(520.0).reshape(130, 4))
    mn.stop()


def triangle(X: np.ndarray) -> np.ndarray:
    return np.linalg.qr(np.vstack([X, np.zeros((4, 4))]), mode="r")


def triangles(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    return np.linalg.qr(np.vstack([one, two]), mode="r")


def test_a_tall_qr_by_its_slabs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapping, "_SLAB_BYTES", 1000)
    R = value(mn.reduce_blocks(triangle, mn.asarray(X), combine=triangles))
    np.testing.assert_allclose(np.abs(R), np.abs(np.linalg.qr(X, mode="r")), atol=1e-12)


ON_EACH = pytest.mark.session("interpreter", "dask: three workers", "gang: three workers", "processes")


@ON_EACH
def test_gradient_descent_in_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapping, "_SLAB_BYTES", 1000)
    x, y = mn.asarray(X, blocks=4), mn.asarray(Y, blocks=3)

    def step(w: mn.DistArray) -> mn.DistArray:
        gradient = mn.reduce_blocks(
            lambda X, y, w: X.T @ (X @ w - y), x, y, combine=np.add, replicate=w, shape=(4,), dtype=float
        )
        rows = mn.map_blocks(lambda X, w: X * w, x, align="rows", replicate=w, pure=True)
        return w - 0.001 * gradient + 0 * rows.sum(axis=0)

    expected = W
    for _ in range(3):
        expected = expected - 0.001 * (X.T @ (X @ expected - Y))
    np.testing.assert_allclose(mn.iterate(step, W, max_iterations=3)[0].compute(), expected)


def short(block: np.ndarray) -> np.ndarray:
    return block[:1]


SHORT_LINE = short.__code__.co_firstlineno


@ON_EACH
def test_a_broken_promise_is_told_with_place_worker_and_line(kind: str) -> None:
    x = mn.asarray(X, blocks=2)
    for call, where in (
        (lambda: mn.map_blocks(short, x, shape=(130, 4), dtype=float), r"the block \[\d+:\d+, 0:4\]"),
        (
            lambda: mn.reduce_blocks(short, x, combine=np.add, shape=(4, 4), dtype=float),
            r"the rows 0:130",
        ),
    ):
        said = rf"short \(test_mapping.py, line {SHORT_LINE}\) gave a result of shape \(1, 4\) for {where}"
        with pytest.raises(ShapeError, match=said) as caught:
            call().compute()
        assert caught.value.raised_at == (__file__, SHORT_LINE)
        notes = getattr(caught.value, "__notes__", [])
        assert kind == "interpreter" or any(re.fullmatch(r"on worker \d", note) for note in notes)


def test_a_broken_promise_in_a_loop_names_the_worker() -> None:
    x = mn.asarray(X, blocks=2)
    with mn.start(workers=2, threads=1):
        rows, _ = mn.iterate(
            lambda x: mn.map_blocks(short, x, shape=(130, 4), dtype=float), x, max_iterations=2
        )
        with pytest.raises(ShapeError, match=r"short .* gave a result of shape \(1, 4\)") as caught:
            rows.compute()
        assert any(re.fullmatch(r"on worker \d", note) for note in caught.value.__notes__)
    mn.stop()


def test_what_does_not_go_together_is_refused() -> None:
    x, y = mn.asarray(X), mn.asarray(Y[:5])
    with pytest.raises(
        ShapeError, match=r"map_blocks: arrays have shapes \(130, 4\), \(5,\): .* same length"
    ):
        mn.map_blocks(np.add, x, y, align="rows")
    with pytest.raises(ShapeError, match=r"reduce_blocks: arrays have shapes \(130, 4\), \(\)"):
        mn.reduce_blocks(np.add, x, 3.0, combine=np.add)
    with pytest.raises(OptionError, match="choose 'broadcast' or 'rows'"):
        mn.map_blocks(np.add, x, align="columns")
    with pytest.raises(OptionError, match="reduce_blocks: give an array after the function"):
        mn.reduce_blocks(np.add, combine=np.add)
    with pytest.raises(TooLargeError, match=r"map_blocks\(replicate=\) of shape \(9000000,\)"):
        mn.map_blocks(np.add, x, replicate=mn.zeros(9_000_000))
    with pytest.raises(TooLargeError, match="reduce_blocks: results of"):
        mn.reduce_blocks(np.negative, x, combine=np.add, shape=(9_000_000,), dtype=float)
    with pytest.raises(OptionError, match="gave shapes"):
        mn.reduce_blocks(triangle, x, combine=lambda one, two: one[0])
    with pytest.raises(OptionError, match="give a dtype for each, or one"):
        mn.reduce_blocks(gram, x, combine=sums, shape=((4, 4), (6,)), dtype=(float, float, int))
