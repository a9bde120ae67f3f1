"""How reductions are laid out: which axes in which round, and the sizes that a plan states."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from plan_runner import run_by_hand

import matnb as mn
from matnb.ops.reducing import Round, rounds_of
from matnb.plan.lower import lower
from matnb.program.operators import Finish, FusedKernel
from matnb.program.plan import Workers
from matnb.program.writer import PlanWriter

ONE = Workers((0,), 2, 0)
X = np.random.default_rng(0).standard_normal((40, 30))


def rounds(array: object, axis: object, counts: tuple[int, ...], operation: str = "sum") -> tuple[Round, ...]:
    node = getattr(mn.asarray(array), operation)(axis=axis).expression
    return rounds_of(node, counts)


def test_a_cut_axis_of_a_sum_is_a_round_from_the_last_to_the_first():
    assert rounds(X, None, (1, 1)) == (Round((0, 1), (), None),)
    assert rounds(X, None, (4, 1)) == (Round((0, 1), (0,), 0),)
    assert rounds(X, None, (1, 4)) == (Round((1,), (1,), 1), Round((0,), (), None))
    assert rounds(X, None, (4, 4)) == (Round((1,), (1,), 1), Round((0,), (0,), 0))
    assert rounds(X, 0, (4, 4)) == (Round((0,), (0,), 0),)
    cube = np.zeros((4, 4, 4))
    assert rounds(cube, None, (2, 1, 2)) == (Round((2,), (2,), 2), Round((0, 1), (0,), 0))


def test_what_is_exact_in_any_order_is_one_round():
    assert rounds(X, None, (4, 4), "max") == (Round((0, 1), (0, 1), None),)
    assert rounds(X.astype(int), None, (4, 4)) == (Round((0, 1), (0, 1), None),)


def test_columns_of_sparse_blocks_are_added_block_by_block():
    sparse = sp.csr_array(X)
    assert rounds(sparse, 0, (4, 1)) == (Round((0,), (0,), None),)
    assert rounds(sparse, 1, (1, 4)) == (Round((1,), (1,), None),)
    assert rounds(sparse, None, (4, 1)) == (Round((0, 1), (0,), 0),)
    assert rounds(sparse, None, (4, 4)) == (Round((1,), (1,), None), Round((0,), (0,), 0))


@pytest.mark.parametrize("blocks", [None, 3, [3, 2], [1, 4], [[0, 1, 40], [0, 29, 30]]])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_a_plan_states_the_sizes_of_shares_and_sums(blocks, axis, monkeypatch):
    sizes: dict[int, int] = {}
    put = PlanWriter._put

    def noted(writer: PlanWriter, *arguments: Any) -> None:
        put(writer, *arguments)
        sizes.update(writer._sizes)

    monkeypatch.setattr(PlanWriter, "_put", noted)
    for array in (X, X.astype(np.float32)):
        total = mn.asarray(array, blocks=blocks).sum(axis=axis).expression
        plan = lower([total], (), {}, ONE)
        made = run_by_hand(plan)
        for task in plan.tasks:
            if not task.steps:
                continue
            last = task.steps[-1].operator
            if isinstance(last, FusedKernel) and last.ending is None:
                assert sizes[task.key] == made[task.key].nbytes
            elif isinstance(last, FusedKernel | Finish):
                assert made[task.key].nbytes <= sizes[task.key] <= 2 * made[task.key].nbytes
