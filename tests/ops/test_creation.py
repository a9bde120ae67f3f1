"""Arrays from outside: blocks with memory of their own, and what travels when a source is read in pieces."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from plan_runner import run_by_hand

import matnb as mn
from matnb.blocks.formats import Dense
from matnb.blocks.grid import Grid
from matnb.ops.creation import pieces_of
from matnb.plan.lower import lower
from matnb.program.plan import Workers
from matnb.simulation.clock import Cluster


@pytest.mark.parametrize(
    ("cuts", "lie_together"), [(((0, 3, 7), (0, 4)), True), (((0, 3, 7), (0, 2, 4)), False)]
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_blocks_of_an_array_are_copies(
    cuts: tuple[tuple[int, ...], ...], lie_together: bool, order: str
) -> None:
    array = np.asarray(np.arange(28.0).reshape(7, 4), order=order)  # type: ignore[call-overload]
    regions = list(Grid(cuts).regions())
    pieces = pieces_of(Dense(array), regions)
    for piece, region in zip(pieces, regions, strict=True):
        assert isinstance(piece, Dense)
        assert not np.shares_memory(piece.values, array)
        assert piece.values.flags.c_contiguous
        np.testing.assert_array_equal(piece.values, array[tuple(slice(*one) for one in region)])
    places = [piece.values.ctypes.data for piece in pieces if isinstance(piece, Dense)]
    assert (places[1] - places[0] == 3 * 4 * 8) is lie_together


def test_some_rows_alone_keep_nothing_else() -> None:
    array = np.arange(28.0).reshape(7, 4)
    pieces = pieces_of(Dense(array), [((0, 2), (0, 4)), ((2, 3), (0, 4))])
    for piece in pieces:
        assert isinstance(piece, Dense)
        root = piece.values if piece.values.base is None else piece.values.base
        assert isinstance(root, np.ndarray)
        assert root.nbytes <= 2 * 4 * 8


@pytest.fixture(autouse=True)
def _no_session_is_left() -> Iterator[None]:
    yield
    mn.stop()


def test_a_source_travels_once_and_not_as_often_as_it_has_pieces(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((1600, 100)))
    for array in (mn.load(tmp_path / "x.npy"), mn.random.rmat(14)):
        plan = lower([array.expression], [], {}, Cluster(nodes=8).laid_over())
        (stage,) = plan.stages
        facts = 64 * 8 * 2
        assert stage.estimated_bytes * 7 / 8 <= plan.moved_bytes <= stage.estimated_bytes + facts


def test_parts_of_a_block_are_counted_as_what_they_are_together(tmp_path: Path) -> None:
    array = np.arange(160_000.0).reshape(1600, 100)
    np.save(tmp_path / "x.npy", array)
    plan = lower([mn.load(tmp_path / "x.npy").expression], [], {}, Cluster(nodes=4).laid_over())
    values = run_by_hand(plan)
    parts = [task.key for task in plan.tasks if task.kind.name == "part"]
    held = sum(sys.getsizeof(values[key].values) for key in parts if values[key] is not None)  # type: ignore[attr-defined]
    assert array.nbytes <= held < 1.1 * array.nbytes
    assert array.nbytes <= sum(plan.sizes[key] for key in parts) < 1.1 * array.nbytes
    blocks = [values[key] for key in next(iter(plan.outputs.values())).keys]
    np.testing.assert_array_equal(np.concatenate([one.values for one in blocks]), array)


def test_threads_beside_each_other_are_counted_with_what_their_kernels_take(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((1600, 100)))
    array, block = mn.load(tmp_path / "x.npy").expression, 800 * 100 * 8
    assert lower([array], [], {}, Workers((0,), 2, 0)).projected_bytes >= 5 * block
    two = lower([array], [], {}, Workers((0, 1), 1, 0))
    assert max(two.peaks.values()) <= 2 * block + 1000
