"""Cuts of both axes: no axis alone can be cut better, and never worse than equal parts."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matnb.balance.contiguous import heaviest_block, rectilinear_cuts
from matnb.blocks.grid import Grid, regular_cuts
from matnb.errors import ShapeError


def every_cuts(length, count):
    return [(0, *inner, length) for inner in itertools.combinations(range(1, length), count - 1)]


@st.composite
def matrices(draw, longest=6):
    shape = draw(st.tuples(st.integers(1, longest), st.integers(1, longest)))
    cells = draw(st.lists(st.integers(0, 20), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]))
    return np.asarray(cells, np.float64).reshape(shape)


@given(matrices(), st.tuples(st.integers(1, 3), st.integers(1, 3)))
def test_neither_axis_alone_can_be_cut_better(weights, counts):
    rows, columns = rectilinear_cuts(weights, counts)
    grid = Grid((rows, columns))
    assert grid.shape == weights.shape
    assert grid.counts == (min(counts[0], len(weights)), min(counts[1], weights.shape[1]))
    found = heaviest_block(weights, (rows, columns))
    assert found == max(
        weights[start:stop, left:right].sum() for (start, stop), (left, right) in grid.regions()
    )
    equal = tuple(regular_cuts(length, count) for length, count in zip(weights.shape, counts, strict=True))
    assert found <= heaviest_block(weights, equal)
    others = [(one, columns) for one in every_cuts(len(weights), grid.counts[0])]
    others += [(rows, one) for one in every_cuts(weights.shape[1], grid.counts[1])]
    assert found <= min(heaviest_block(weights, one) for one in others) * (1 + 1e-5) + 1e-9


def test_two_axes_come_near_to_the_best_of_all_cuts():
    generator = np.random.default_rng(5)
    ratios = []
    for _ in range(30):
        weights = np.outer(generator.pareto(1.5, 7), generator.pareto(1.5, 7))
        best = min(
            heaviest_block(weights, both) for both in itertools.product(every_cuts(7, 3), every_cuts(7, 3))
        )
        ratios.append(heaviest_block(weights, rectilinear_cuts(weights, (3, 3))) / best)
    assert min(ratios) >= 1 - 1e-9
    assert np.mean(ratios) < 1.1


@pytest.mark.parametrize(
    ("cells", "heaviest"),
    [
        ([[5, 2, 0, 1], [0, 1, 0, 2], [2, 1, 0, 3], [4, 4, 3, 0]], 10),  # from parts of equal weight
        ([[10, 1, 0, 2], [0, 0, 0, 0], [1, 5, 6, 0], [3, 0, 1, 4]], 11),  # from equal parts
        ([[8, 9, 3, 0], [1, 0, 0, 0], [3, 1, 0, 0], [1, 2, 6, 7]], 15),  # in more than a round
    ],
)
def test_two_axes_are_cut_from_two_beginnings_until_nothing_improves(cells, heaviest):
    weights = np.asarray(cells, np.float64)
    halves = every_cuts(4, 2)
    assert min(heaviest_block(weights, both) for both in itertools.product(halves, halves)) == heaviest
    assert heaviest_block(weights, rectilinear_cuts(weights, (2, 2))) == heaviest


def test_two_axes_of_skewed_entries_are_much_better_than_equal_parts():
    generator = np.random.default_rng(1)
    rows, columns = (generator.random((2, 20_000)) ** 3 * 128).astype(int)
    weights = np.zeros((128, 128))
    np.add.at(weights, (rows, columns), 1.0)
    mean = weights.sum() / 16
    assert heaviest_block(weights, (regular_cuts(128, 4), regular_cuts(128, 4))) > 4 * mean
    assert heaviest_block(weights, rectilinear_cuts(weights, (4, 4))) < 1.5 * mean


def test_weights_of_no_cells_and_wrong_counts():
    assert rectilinear_cuts(np.zeros((0, 3)), (2, 2)) == ((0, 0), (0, 1, 3))
    with pytest.raises(ShapeError, match="parts from 1 on"):
        rectilinear_cuts(np.zeros((3, 3)), (0, 2))
    with pytest.raises(ShapeError, match="1 axes"):
        rectilinear_cuts(np.zeros(3), (1, 1))
