"""Long random cells mean what NumPy means, through all passes and some, on every engine."""

from __future__ import annotations

import numpy as np
import pytest
from cell_programs import random_cell
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from test_engines import check
from test_loop_programs import with_state

import matnb as mn
from matnb import passes
from matnb.expr.traverse import ExprGraph
from matnb.ops.interpret import interpret

# Cells change parts by their names, which are copies: tests/lazy/test_lost_writes.py.
pytestmark = pytest.mark.filterwarnings("ignore::matnb.errors.LostWriteWarning")

RELAXED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
ON_EACH = pytest.mark.session("two threads", "three workers", "processes")
seeds, sizes = st.integers(0, 2**31), st.integers(1, 60)
# All passes in half of the runs, some of them in the others.
subsets = st.one_of(
    st.just(passes.PASSES),
    st.sets(st.sampled_from(range(len(passes.PASSES))), min_size=1).map(
        lambda places: tuple(passes.PASSES[place] for place in sorted(places))
    ),
)


def dense(value: object) -> np.ndarray:
    return value.toarray() if hasattr(value, "toarray") else np.asarray(value)


@settings(max_examples=60, suppress_health_check=RELAXED)
@given(seeds, sizes)
def test_the_interpreter_means_what_numpy_means(seed: int, size: int) -> None:
    cell = random_cell(seed, size)
    known: dict[object, object] = {}
    for pair in cell.pairs:
        value = dense(interpret(pair.mine.expression, known))
        assert value.dtype == pair.theirs.dtype, cell.text
        np.testing.assert_allclose(value, pair.theirs, rtol=1e-4, atol=1e-4, err_msg=cell.text)


@settings(max_examples=60, suppress_health_check=RELAXED)
@given(seeds, sizes, st.data())
def test_every_subset_of_the_passes_keeps_the_meaning(seed: int, size: int, data: st.DataObject) -> None:
    cell = random_cell(seed, size)
    roots = {f"x{place}": pair.mine.expression for place, pair in enumerate(cell.pairs)}
    chosen = data.draw(st.lists(st.sampled_from(range(len(passes.PASSES))), unique=True).map(sorted))
    for places in (range(len(passes.PASSES)), chosen):
        after = dict(roots)
        for place in places:
            after = passes.PASSES[place].run(ExprGraph(after)).roots
        known: dict[object, object] = {}
        for pair, node in zip(cell.pairs, after.values(), strict=True):
            value = dense(interpret(node, known))
            np.testing.assert_allclose(value, pair.theirs, rtol=1e-4, atol=1e-4, err_msg=cell.text)


@ON_EACH
@settings(max_examples=20, suppress_health_check=RELAXED)
@given(seeds, sizes, st.booleans(), subsets)
def test_cells_mean_what_numpy_means(
    seed: int, size: int, all_at_once: bool, chosen: tuple[passes.PassEntry, ...]
) -> None:
    cell = random_cell(seed, size)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passes, "PASSES", chosen)
        if all_at_once:
            mn.compute(*(pair.mine for pair in cell.pairs))
        for pair in reversed(cell.pairs):  # the last one alone first: passes see what nobody else needs
            check(pair.mine, pair.theirs, f"float32 {cell.text}")


@ON_EACH
@settings(max_examples=12, suppress_health_check=RELAXED)
@given(seeds, sizes, subsets)
@example(227490617, 46, passes.PASSES)  # blocks of no rows that are cut out of others
def test_cells_mean_the_same_inside_a_loop(
    seed: int, size: int, chosen: tuple[passes.PassEntry, ...]
) -> None:
    cell = random_cell(seed, size)
    pairs = [pair for pair in cell.pairs if not pair.mine.sparse][-5:]
    roots = [pair.mine.expression for pair in pairs]
    starts = [mn.zeros(root.shape, root.dtype) for root in roots]
    (_, *results), n = mn.iterate(
        lambda state: (state[0], *with_state(roots, state[0])), (mn.asarray(1.0), *starts), max_iterations=2
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passes, "PASSES", chosen)
        mn.compute(*results, n)
    for pair, result in zip(pairs, results, strict=True):
        check(result, pair.theirs, f"float32 {cell.text}")
