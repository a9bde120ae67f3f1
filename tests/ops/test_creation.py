"""A user's array is cut in blocks with memory of their own, and rows of it stay in one array."""

from __future__ import annotations

import numpy as np
import pytest

from matnb.blocks.formats import Dense
from matnb.blocks.grid import Grid
from matnb.ops.creation import pieces_of


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
