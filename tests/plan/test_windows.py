"""Slices that the tasks which read them cut out: no array of their own, and NumPy's values for any cuts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan_runner import run_by_hand, whole
from strategies import layouts

import matnb as mn
from matnb.blocks.kernels.shaping import cut
from matnb.blocks.kernels.tiles import LONG_ROW
from matnb.expr.nodes import Expr
from matnb.ops.reference import block_of
from matnb.plan.lower import lower
from matnb.program.check import check_plan
from matnb.program.plan import Plan, Slot, Stored, Workers
from matnb.program.writer import Slots

WORKERS = Workers((0, 1, 2), 1, 0)


def planned(root: Expr, given: Expr, layout: object) -> tuple[Plan, Stored]:
    slots = Slots()
    source = slots.of(Stored(layout, tuple(f"g{number}" for number in range(layout.grid.num_blocks))))
    return lower([root], (), {given: source}, WORKERS, slots), source


def found(root: Expr, given: Expr, values: np.ndarray, layout: object) -> tuple[np.ndarray, Plan]:
    plan, source = planned(root, given, layout)
    check_plan(plan)
    blocks: dict[Slot, object] = {
        key: cut(block_of(values), tuple(slice(*part) for part in region))
        for key, region in zip(source.keys, layout.grid.regions(), strict=True)
    }
    made = run_by_hand(plan, blocks)
    return whole(root, plan.outputs[root], made), plan


@given(drawn=st.data(), num_axes=st.integers(1, 3), count=st.integers(1, 4))
def test_functions_of_windows_are_those_of_their_slices(
    drawn: st.DataObject, num_axes: int, count: int
) -> None:
    shape = tuple(drawn.draw(st.integers(3, 40)) for _ in range(num_axes))
    inner = tuple(drawn.draw(st.integers(1, length - 1)) for length in shape)
    values = np.random.default_rng(0).standard_normal(shape)
    x = mn.asarray(values)
    total, expected = mn.asarray(0.5), np.float64(0.5)
    for _ in range(count):
        starts = [drawn.draw(st.integers(0, own - part)) for own, part in zip(shape, inner, strict=True)]
        key = tuple(slice(start, start + part) for start, part in zip(starts, inner, strict=True))
        total, expected = total * 0.5 + abs(x[key]), expected * 0.5 + abs(values[key])
    result, plan = found(total.expression, x.expression, values, drawn.draw(layouts(shape)))
    np.testing.assert_array_equal(result, expected)
    if not x.expression.is_cheap and (num_axes == 1 or inner[-1] >= LONG_ROW):  # else there are better ways
        assert not [stage for stage in plan.stages if stage.kind == "slice"]


def test_a_stencil_is_one_stage() -> None:
    values = np.random.default_rng(1).random((80, 70))
    x = mn.asarray(values, blocks=4)
    around = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
    expected = values[:-2, 1:-1] + values[2:, 1:-1] + values[1:-1, :-2] + values[1:-1, 2:]
    plan = lower([around.expression], (), {}, WORKERS)
    made = run_by_hand(plan)
    np.testing.assert_array_equal(whole(around.expression, plan.outputs[around.expression], made), expected)
    assert [stage.kind for stage in plan.stages if stage.kind != "read"][-1:] == ["map"]
    assert not [stage for stage in plan.stages if stage.kind == "slice"]


@pytest.mark.parametrize("reader", ["kept", "summed", "sparse", "stepped"])
def test_slices_that_others_read_are_arrays(reader: str) -> None:
    x = mn.asarray(np.ones((12, 9)), blocks=3)
    part = x[1:-1, 2:] if reader != "stepped" else x[::2, 2:]
    roots, keep = [(part + 1.0).expression], []
    if reader == "kept":
        keep = [part.expression]
    elif reader == "summed":
        roots.append(part.sum(axis=0).expression)
    elif reader == "sparse":
        roots = [(mn.asarray(mn.eye(10, 7)) @ mn.ones((7, 1)) + part[:, :1]).expression, part.T.expression]
    plan = lower(roots, keep, {}, WORKERS)
    assert [stage for stage in plan.stages if stage.kind == "slice"]
