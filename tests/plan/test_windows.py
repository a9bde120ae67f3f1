"""Slices that the tasks which read them cut out: no array of their own, and NumPy's values for any cuts."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan_runner import run_by_hand, whole
from strategies import layouts

import matnb as mn
from matnb.blocks.grid import Grid
from matnb.blocks.kernels.elementwise.tiles import LONG_ROW
from matnb.blocks.kernels.shaping.shaping import cut
from matnb.blocks.layout import Layout
from matnb.expr.nodes import Expr
from matnb.ops.reference import block_of
from matnb.plan.lower import lower
from matnb.program.check import check_plan
from matnb.program.operators import Fill
from matnb.program.plan import Plan, Slot, StoredArray, Workers
from matnb.program.writer import Slots

WORKERS = Workers((0, 1, 2), 1, 0)


def planned(root: Expr, given: Expr, layout: object) -> tuple[Plan, StoredArray]:
    slots = Slots()
    source = slots.of(StoredArray(layout, tuple(f"g{number}" for number in range(layout.grid.num_blocks))))
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
        assert not [stage for stage in plan.stages if stage.kind.name == "slice"]


def test_a_stencil_is_one_stage() -> None:
    values = np.random.default_rng(1).random((80, 70))
    x = mn.asarray(values, blocks=4)
    around = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
    expected = values[:-2, 1:-1] + values[2:, 1:-1] + values[1:-1, :-2] + values[1:-1, 2:]
    plan = lower([around.expression], (), {}, WORKERS)
    made = run_by_hand(plan)
    np.testing.assert_array_equal(whole(around.expression, plan.outputs[around.expression], made), expected)
    assert [stage.kind.name for stage in plan.stages if stage.kind.name != "read"][-1:] == ["map"]
    assert not [stage for stage in plan.stages if stage.kind.name == "slice"]


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
    assert [stage for stage in plan.stages if stage.kind.name == "slice"]


def padded(xp: Any, x: Any, key: tuple[slice, ...], widths: list[tuple[int, int]]) -> Any:
    return x * 2.0 - xp.pad(x[key] * 0.5 + 1.0, widths, constant_values=-0.0)


def assigned(x: Any, key: tuple[slice, ...], shifted: tuple[slice, ...]) -> Any:
    new = x.copy()
    new[key] = x[key] * 0.5 + abs(x[shifted])
    return new


@given(drawn=st.data(), num_axes=st.integers(1, 3), is_padded=st.booleans())
def test_what_is_around_a_rectangle_and_in_it_is_one_stage(
    drawn: st.DataObject, num_axes: int, is_padded: bool
) -> None:
    shape = tuple(drawn.draw(st.integers(4, 60)) for _ in range(num_axes))
    values = np.random.default_rng(0).standard_normal(shape)
    values.flat[::5] = -0.0
    x = mn.asarray(values)
    inner = [drawn.draw(st.integers(-(-length * 4 // 5), length)) for length in shape]
    starts = [drawn.draw(st.integers(0, own - part)) for own, part in zip(shape, inner, strict=True)]
    shifts = [drawn.draw(st.integers(0, own - part)) for own, part in zip(shape, inner, strict=True)]
    key, shifted = (
        tuple(slice(start, start + part) for start, part in zip(some, inner, strict=True))
        for some in (starts, shifts)
    )
    if is_padded:
        ends = zip(shape, starts, inner, strict=True)
        widths = [(start, own - start - part) for own, start, part in ends]
        root, expected = padded(mn, x, key, widths), padded(np, values, key, widths)
    else:
        root, expected = assigned(x, key, shifted), assigned(values, key, shifted)
    result, plan = found(root.expression, x.expression, values, drawn.draw(layouts(shape)))
    assert result.tobytes() == expected.tobytes()
    is_large = 2 * prod(inner) >= prod(shape) > prod(inner)
    if is_large and not is_padded and not x.expression.is_cheap and (num_axes == 1 or inner[-1] >= LONG_ROW):
        assert [stage.kind.name for stage in plan.stages] == ["map"]


@pytest.mark.parametrize("is_padded", [False, True])
def test_a_step_of_a_stencil_copies_no_block(is_padded: bool) -> None:
    values = np.random.default_rng(1).random((80, 70))
    x = mn.asarray(values, blocks=2)
    middle = (slice(1, -1), slice(1, -1))

    def step(u: Any) -> Any:
        if is_padded:
            return u + np.pad(u[2:, 1:-1] + u[:-2, 1:-1], 1)
        new = u.copy()
        new[middle] = u[middle] + 0.2 * (u[2:, 1:-1] + u[:-2, 1:-1] - 2.0 * u[middle])
        return new

    root = step(x)
    whole_grid = Grid(((0, 40, 80), (0, 70)))
    result, plan = found(root.expression, x.expression, values, Layout(whole_grid, (0, 0)))
    np.testing.assert_array_equal(result, step(values))
    assert len(plan.tasks) == 2
    assert [type(task.steps[-1].operator) for task in plan.tasks] == [Fill, Fill]


def test_a_rectangle_that_another_array_needs_is_an_array() -> None:
    values = np.random.default_rng(1).random((80, 70))
    x = mn.asarray(values)
    inner = x[1:-1, 1:-1] * 2.0
    new = x.copy()
    new[1:-1, 1:-1] = inner
    total = (inner @ mn.asarray(np.ones(68))).expression
    plan = lower([new.expression, total], (), {}, WORKERS)
    check_plan(plan)
    assert "put" in [stage.kind.name for stage in plan.stages]
    expected = values.copy()
    expected[1:-1, 1:-1] *= 2.0
    made = run_by_hand(plan)
    np.testing.assert_array_equal(whole(new.expression, plan.outputs[new.expression], made), expected)
