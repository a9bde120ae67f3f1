"""How arrays are put in other shapes: cut into runs of elements, and nothing moved where cuts allow it."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import matnb as mn
from matnb.ops.reshaping import run_grid


@given(
    st.lists(st.integers(1, 7), min_size=1, max_size=4),
    st.lists(st.floats(0, 1), max_size=5),
)
def test_blocks_of_a_grid_of_runs_are_runs(lengths: list[int], places: list[float]) -> None:
    size = prod(lengths)
    bounds = sorted({0, size, *(int(place * size) for place in places)})
    grid = run_grid(tuple(lengths), bounds)
    numbers = np.arange(size).reshape(lengths)
    runs = [numbers[tuple(slice(*part) for part in region)].ravel() for region in grid.regions()]
    np.testing.assert_array_equal(np.concatenate(runs), np.arange(size))
    assert len(runs) <= 8 * len(bounds)


def test_bounds_that_fit_the_shape_are_its_cuts() -> None:
    assert run_grid((10, 6), (0, 18, 60)).cuts == ((0, 3, 10), (0, 6))
    assert run_grid((60,), (0, 18, 60)).cuts == ((0, 18, 60),)
    assert run_grid((2, 30), (0, 15, 30, 45, 60)).cuts == ((0, 1, 2), (0, 15, 30))
    # Near to it where it cannot be cut so.
    assert run_grid((10, 6), (0, 20, 60)).cuts == ((0, 3, 10), (0, 6))


THREE_WORKERS = pytest.mark.session("three workers")


@THREE_WORKERS
def test_rows_become_a_vector_without_moving() -> None:
    x = mn.asarray(np.arange(60000.0).reshape(300, 200), blocks=[[0, 50, 220, 300], None]).persist()
    for other in (x.reshape(-1), x.reshape(600, 100), x.reshape(300, 1, 200), mn.stack([x])):
        assert "moves 0 B" in other.explain(stage="plan")
    assert x.reshape(-1).persist().layout.grid.cuts == ((0, 10000, 44000, 60000),)
    # What is not cut by rows is cut so first; of the rest only what goes over a cut moves.
    moved = x.reshape(75, 800)
    np.testing.assert_array_equal(moved.compute(), np.arange(60000.0).reshape(75, 800))


@THREE_WORKERS
def test_blocks_that_are_joined_are_not_copied() -> None:
    x = mn.asarray(np.ones((400, 500)), blocks=4).persist()
    y = mn.concatenate([x, x]).persist()
    assert y.layout.grid.counts == (8, 1)
    assert "slice" not in y.explain(stage="plan")


@THREE_WORKERS
@pytest.mark.parametrize(
    "call",
    [
        lambda x: mn.concatenate([x, x], axis=1),
        lambda x: mn.reshape(x, (20, 6)),
        lambda x: mn.reshape(x, (1, -1)),
        lambda x: mn.flip(x, 1),
        lambda x: mn.roll(x, 3, axis=0),
        lambda x: mn.roll(x, 5),
        lambda x: mn.rot90(x),
        lambda x: mn.tile(x, (2, 40)),
        lambda x: mn.repeat(x, 3, axis=1),
        lambda x: mn.repeat(x, np.arange(10), axis=0),
        lambda x: mn.tril(x),
        lambda x: mn.pad(x, 1),
        lambda x: mn.pad(x, 4),
        lambda x: mn.pad(x, 4, "reflect"),
        lambda x: mn.vsplit(x, 2)[1],
        lambda x: mn.delete(x, slice(None, None, 2), axis=1),
        lambda x: mn.block([[x, x], [x, x]]),
        lambda x: mn.diag(mn.diagonal(x)),
    ],
)
def test_what_stays_sparse(call: object) -> None:
    x = mn.asarray(sp.random_array((10, 12), density=0.2, format="csr", rng=3), blocks=[3, 2])
    assert call(x).sparse
    assert call(x).compute().nnz <= 80 * x.nnz


@THREE_WORKERS
def test_shapes_change_inside_loops() -> None:
    def step(x: mn.DistArray) -> mn.DistArray:
        table = x.reshape(20, 30)
        return (mn.roll(table, 1, axis=0) + mn.flip(table, 1) + mn.tril(table)).ravel() / 3

    start = np.linspace(0, 1, 600)
    expected = start
    for _ in range(4):
        table = expected.reshape(20, 30)
        expected = (np.roll(table, 1, axis=0) + np.flip(table, 1) + np.tril(table)).ravel() / 3
    found, _ = mn.iterate(step, mn.asarray(start), max_iterations=4)
    np.testing.assert_allclose(found.compute(), expected, rtol=1e-12)


def test_what_would_change_an_array_in_place_names_the_way() -> None:
    x = mn.arange(6.0)
    with pytest.raises(mn.errors.UnsupportedError, match="reshape"):
        x.shape = (2, 3)
    with pytest.raises(mn.errors.UnsupportedError, match="resize"):
        x.resize(2, 3)
    with pytest.raises(AttributeError, match="ravel"):
        _ = x.flat
