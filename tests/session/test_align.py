"""``mn.align(axis=)``: rows, columns and both lie alike, whatever changes their cuts and workers."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import scipy.sparse as sp
from distributed import LocalCluster
from fixed_policy import A as SKEWED
from fixed_policy import B, Stubborn, looped, sessions, small
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from waiting import wait_until

import matnb as mn
from matnb.blocks.grid import Grid
from matnb.blocks.layout import Cuts, Layout
from matnb.errors import AxisError, DTypeError, OptionError, ShapeError
from matnb.session.groups import Partners

__all__ = ["sessions", "small"]

rng = np.random.default_rng(8)
ROWS, COLUMNS = 60, 40
DENSE = rng.random((ROWS, COLUMNS))
OTHER = rng.random((ROWS, COLUMNS))
SHORT = rng.random((7, COLUMNS))
VECTOR = rng.random(ROWS)
# Most entries are in the first columns.
SPARSE = sp.csr_array(DENSE * (rng.random((ROWS, COLUMNS)) < np.linspace(1, 0.02, COLUMNS) ** 3))


@pytest.fixture
def session() -> Iterator[mn.session.Session]:
    with mn.start(workers=2, threads=2) as session:
        yield session
    mn.stop()


def cuts_of(array: mn.DistArray) -> tuple[tuple[int, ...], ...]:
    assert array.layout is not None
    return array.layout.grid.cuts


def lie_alike(axes: tuple[int, ...], *arrays: mn.DistArray) -> bool:
    """Tell whether arrays are cut along these axes alone, at the same places, with the same owners."""
    layouts = [one.layout for one in arrays]
    first = layouts[0]
    return all(
        one.cuts_only(axes)
        and [one.grid.cuts[axis] for axis in axes] == [first.grid.cuts[axis] for axis in axes]
        and one.owners == first.owners
        for one in layouts
    )


def same(array: mn.DistArray, expected: np.ndarray) -> None:
    found = array.compute()
    np.testing.assert_array_equal(found if isinstance(found, np.ndarray) else found.todense(), expected)


@pytest.mark.parametrize(
    ("axis", "axes", "given_arrays"),
    [
        (0, (0,), (DENSE, VECTOR)),
        (-2, (0,), (DENSE, OTHER)),
        (1, (1,), (DENSE, SHORT)),
        ((0, 1), (0, 1), (DENSE, OTHER)),
        ([1], (1,), (SPARSE, SHORT)),
    ],
)
@pytest.mark.usefixtures("session")
def test_arrays_lie_alike_now_when_they_are_computed_and_after_every_repartition(
    axis: int | tuple[int, ...], axes: tuple[int, ...], given_arrays: tuple[np.ndarray, np.ndarray]
) -> None:
    first, second = (mn.asarray(one, blocks=part) for one, part in zip(given_arrays, (3, 2), strict=True))
    later = second + 1
    first.persist(), second.persist()
    mn.align(first, second, later, axis=axis)
    assert lie_alike(axes, first, second)
    assert first.layout.grid.num_blocks > 1
    later.persist()
    assert lie_alike(axes, first, second, later)
    parts = [2 + (place == 1) if place in axes else 1 for place in range(first.ndim)]
    mn.repartition(first, parts)
    assert first.layout.grid.counts == tuple(parts)
    assert lie_alike(axes, first, second, later)
    parts = [1 + 3 * (place in axes) if place < 1 or axes == (1,) else 1 for place in range(second.ndim)]
    mn.repartition(later, [parts[place] if place in axes else 1 for place in range(second.ndim)])
    assert lie_alike(axes, first, second, later)
    mn.repartition(second)
    assert lie_alike(axes, first, second, later)
    dense = [one.toarray() if sp.issparse(one) else one for one in given_arrays]
    for array, expected in zip((first, second, later), (*dense, dense[1] + 1), strict=True):
        same(array, expected)


def positions(length: int) -> st.SearchStrategy[list[int]]:
    inner = st.sets(st.integers(1, length - 1), max_size=5)
    return inner.map(lambda found: [0, *sorted(found), length])


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=positions(ROWS), columns=positions(COLUMNS), which=st.sampled_from([(0,), (1,), (0, 1)]))
@pytest.mark.usefixtures("session")
def test_partners_follow_exact_cuts(rows: list[int], columns: list[int], which: tuple[int, ...]) -> None:
    values, others = rng.random((2, ROWS, COLUMNS))  # equal ones would be the arrays of the example before
    first, second = mn.asarray(values, blocks=2).persist(), mn.asarray(others, blocks=3).persist()
    mn.align(first, second, axis=which)
    wanted = [rows if 0 in which else None, columns if 1 in which else None]
    mn.repartition(second, cuts=wanted)
    assert cuts_of(first) == cuts_of(second)
    assert cuts_of(first) == (
        tuple(rows) if wanted[0] else (0, ROWS),
        tuple(columns) if wanted[1] else (0, COLUMNS),
    )
    assert lie_alike(which, first, second)
    same(first, values), same(second, others)


lengths = st.integers(1, 3)


@given(
    st.lists(st.lists(lengths, min_size=1, max_size=3), min_size=1, max_size=4), st.sets(st.integers(0, 2))
)
def test_the_axes_of_partners_are_those_on_which_all_are_as_long(
    shapes: list[list[int]], axes: set[int]
) -> None:
    nodes = [mn.zeros(tuple(shape)).expression for shape in shapes]
    found = Partners(set(nodes), frozenset(axes)).axes
    expected = [
        axis
        for axis in sorted(axes)
        if all(len(one) > axis for one in shapes) and len({one[axis] for one in shapes}) == 1
    ]
    assert found == tuple(expected)


@given(positions(12), positions(9), st.sampled_from([(0,), (1,), (0, 1)]), st.randoms())
def test_a_layout_is_carried_over_to_another_shape_along_its_cut_axes(rows, columns, axes, random) -> None:
    cuts = (tuple(rows) if 0 in axes else (0, 12), tuple(columns) if 1 in axes else (0, 9))
    grid = Grid(cuts)
    layout = Layout(grid, tuple(random.randrange(3) for _ in range(grid.num_blocks)))
    shape = (12 if 0 in axes else 5, 9 if 1 in axes else 4)
    found = layout.along(axes, shape)
    assert layout.cuts_only(axes)
    assert found.grid.shape == shape
    assert found.owners == layout.owners
    for axis in axes:
        assert found.grid.cuts[axis] == cuts[axis]
    for axis in (0, 1):
        strip = layout.cuts_along(axis)
        numbers = [grid.number((one, 0) if axis == 0 else (0, one)) for one in range(grid.counts[axis])]
        assert strip == Cuts(cuts[axis], tuple(layout.owners[one] for one in numbers))


@pytest.mark.usefixtures("session")
def test_calls_add_up_where_they_can() -> None:
    first, second = mn.asarray(DENSE, blocks=2).persist(), mn.asarray(OTHER, blocks=(2, 2)).persist()
    third, vector = (mn.asarray(OTHER, blocks=3) * 2).persist(), mn.asarray(VECTOR).persist()
    mn.align(first, second, axis=(0, 1))
    mn.align(third, second, axis=1)
    mn.repartition(third, (2, 3))
    assert lie_alike((0, 1), first, second, third)
    mn.align(vector, first)  # with whose partners it has rows alone in common
    assert lie_alike((0,), first, second, third, vector)
    with pytest.raises(
        OptionError, match=r"aligned on rows with .* cannot be cut along columns: give one part"
    ):
        mn.repartition(third, (2, 2))


@pytest.mark.usefixtures("session")
def test_rows_with_one_and_columns_with_another_cannot_both_hold() -> None:
    matrix, vector = mn.asarray(DENSE, blocks=3).persist(), mn.asarray(VECTOR).persist()
    short = mn.asarray(SHORT, blocks=3).persist()
    mn.align(matrix, vector)
    before = short.layout
    with pytest.raises(
        OptionError,
        match=r"^align: given array is aligned on rows with given array .2. and cannot be aligned on"
        r" columns with given array .3. too",
    ):
        mn.align(matrix, short, axis=1)
    assert short.layout == before
    mn.repartition(matrix, 5)
    assert lie_alike((0,), matrix, vector)
    assert short.layout == before
    del vector
    gc.collect()
    mn.align(matrix, short, axis=1)  # nothing needs the other partner any more
    assert lie_alike((1,), matrix, short)


@pytest.mark.usefixtures("session")
def test_what_cannot_be_is_refused_by_name() -> None:
    matrix, vector, short = map(mn.asarray, (DENSE, VECTOR, SHORT))
    with pytest.raises(ShapeError, match=r"shapes \(60, 40\), \(7, 40\) do not have the same number of rows"):
        mn.align(matrix, short)
    with pytest.raises(ShapeError, match="same number of columns"):
        mn.align(matrix, mn.ones((60, 3)), axis=(0, 1))
    with pytest.raises(AxisError, match="axis 1 of an array of 1 axes"):
        mn.align(matrix, vector, axis=1)
    with pytest.raises(AxisError, match="axis 2"):
        mn.align(matrix, short, axis=2)
    with pytest.raises(ShapeError, match="twice"):
        mn.align(matrix, matrix + 1, axis=(0, -2))
    with pytest.raises(DTypeError, match="axis='rows'"):
        mn.align(matrix, short, axis="rows")
    with pytest.raises(OptionError, match="names no axis"):
        mn.align(matrix, short, axis=())
    with pytest.raises(OptionError, match="another axis in each array"):
        mn.align(matrix, vector, axis=-1)
    with pytest.raises(OptionError, match="at least two"):
        mn.align(matrix, axis=1)


def test_columns_of_a_sparse_array_get_about_equal_entries(session: mn.session.Session) -> None:
    matrix, short = mn.asarray(SPARSE, blocks=3).persist(), mn.asarray(SHORT).persist()
    mn.align(matrix, short, axis=1)
    counts = session.stored(matrix.expression).block_nnz
    assert len(counts) == 4
    assert max(counts) < 1.5 * SPARSE.nnz / 4
    even = [SPARSE[:, start : start + 10].nnz for start in range(0, COLUMNS, 10)]
    assert max(even) > 2 * SPARSE.nnz / 4


def test_the_history_has_every_move_and_why(session: mn.session.Session) -> None:
    matrix, short = mn.asarray(SPARSE, blocks=3).persist(), mn.asarray(SHORT).persist()
    vector = mn.asarray(VECTOR, blocks=2).persist()
    start = len(mn.history())
    mn.align(matrix, short, axis=1)
    mn.repartition(matrix, (1, 3))
    mn.repartition(matrix, cuts=cuts_of(matrix))
    passed = [one.decision for one in mn.history()][start:]
    assert [(one.policy, one.acts, one.axis) for one in passed] == [
        ("aligned", True, 1),
        ("asked", True, 1),
        ("asked", False, 1),
    ]
    names = "given array, given array (2)"
    assert [one.name for one in passed] == [names] * 3
    assert passed[0].reason == "aligned: columns of these arrays are to lie alike"
    assert passed[1].reason == "a user wants these parts: 1 x 3 blocks"
    assert passed[0].after == passed[1].before
    assert passed[1].after.cuts == cuts_of(matrix)[1]
    assert sum(passed[1].loads_after.values()) == SPARSE.nnz + SHORT.size
    gains = [one.gain for one in mn.history()][start:]
    assert gains[0].moved_bytes == passed[0].moved_bytes > 0
    assert gains[2] is None
    text = str(mn.history())
    assert "aligned: columns of these arrays are to lie alike" in text
    assert "columns 0 to" in mn.history().bundle(measured=True)["text/html"]
    rows = mn.asarray(DENSE, blocks=4).persist()
    mn.align(rows, vector)
    last = list(mn.history())[-1].decision
    assert (last.policy, last.acts, last.axis) == ("aligned", True, 0)
    assert last.reason.startswith("aligned: rows lie as those of given array")
    assert last.after == rows.layout.rows
    trace = mn.history().trace
    assert type(trace).from_json(trace.to_json()).to_json() == trace.to_json()


@pytest.mark.usefixtures("session")
def test_parts_are_split_and_neighbors_merged() -> None:
    matrix = mn.asarray(DENSE, blocks=3).persist()
    before = cuts_of(matrix)[0]
    mn.repartition(matrix, 6)
    split = cuts_of(matrix)[0]
    assert set(before) < set(split)
    mn.repartition(matrix, 3)
    assert cuts_of(matrix)[0] == before
    mn.repartition(matrix, cuts=before[::3])
    assert cuts_of(matrix)[0] == (0, ROWS)
    merged = [one.decision for one in mn.history()][-3:]
    assert [(one.before.num_blocks, one.after.num_blocks) for one in merged] == [(3, 6), (6, 3), (3, 1)]
    columns = mn.asarray(DENSE, blocks=(1, 4)).persist()
    mn.repartition(columns, (1, 2))
    assert cuts_of(columns)[1] == (0, 20, 40)
    same(matrix, DENSE), same(columns, DENSE)


def total_of(block):
    return block.sum()


def tied_to(array: mn.DistArray) -> mn.DistArray:
    """Return a result of a function that is tied to the parts of an array."""
    return mn.foreach(total_of, mn.splits(array), safe=False)


@pytest.mark.usefixtures("session")
def test_arrays_that_are_held_keep_their_cuts_as_long_as_something_is_needed() -> None:
    matrix, vector = mn.asarray(DENSE, blocks=3).persist(), mn.asarray(VECTOR, blocks=2).persist()
    short = mn.asarray(SHORT, blocks=2).persist()
    before = matrix.layout
    result = tied_to(matrix)
    for parts in (5, (1, 2)):
        with pytest.raises(
            OptionError,
            match=r"^repartition: given array cannot be cut anew: the cuts stay: total_of is tied",
        ):
            mn.repartition(matrix, parts)
    with pytest.raises(OptionError, match=r"^align: given array.* cannot be moved: the cuts stay: total_of"):
        mn.align(matrix, short, axis=1)
    mn.align(vector, matrix)  # the other one moves
    assert matrix.layout == before
    assert lie_alike((0,), matrix, vector)
    with pytest.raises(OptionError, match="cannot be cut anew"):
        mn.repartition(vector, 5)
    del result
    gc.collect()
    mn.repartition(vector, 5)
    assert lie_alike((0,), matrix, vector)
    assert matrix.layout.grid.counts == (5, 1)


@pytest.mark.usefixtures("session")
def test_what_is_held_does_not_follow_a_partner_that_is_held_too() -> None:
    matrix, later = mn.asarray(DENSE, blocks=3).persist(), mn.asarray(OTHER, blocks=5) + 1
    mn.align(matrix, later)
    needed = [tied_to(matrix), tied_to(later)]
    later.persist()
    assert (matrix.layout.grid.counts, later.layout.grid.counts) == ((3, 1), (5, 1))
    del needed
    gc.collect()
    (later * 2).persist()
    assert lie_alike((0,), matrix, later)


@pytest.mark.usefixtures("small")
def test_no_policy_cuts_rows_of_what_is_aligned_on_columns(
    sessions: Callable[..., mn.session.Session],
) -> None:
    session = sessions()
    matrix, short = mn.asarray(SKEWED, blocks=4).persist(), mn.asarray(SKEWED[:50], blocks=2).persist()
    mn.align(matrix, short, axis=1)
    mn.repartition(matrix, (1, 1))
    before = matrix.layout
    assert session.rebalance_now() == ()
    assert matrix.layout == before
    assert lie_alike((1,), matrix, short)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("is_held", [False, True])
def test_a_policy_takes_partners_along_and_not_what_is_held(
    sessions: Callable[..., mn.session.Session], is_held: bool
) -> None:
    cuts = (0, 100, 2000)
    session = sessions(rebalance=Stubborn({5: cuts}), engine="dask")
    matrix, vector = mn.asarray(SKEWED, blocks=4).persist(), mn.asarray(B, blocks=3).persist()
    mn.align(matrix, vector)
    before = cuts_of(matrix)[0]
    result = tied_to(vector) if is_held else None
    looped(matrix, 20)
    assert cuts_of(matrix)[0] == (before if is_held else cuts)
    assert lie_alike((0,), matrix, vector)
    if is_held:
        refused = [one.decision for one in session.history if not one.decision.acts]
        assert any("total_of is tied to its parts" in one.reason for one in refused)
        assert result is not None


@pytest.mark.parametrize("processes", [False, pytest.param(True, marks=pytest.mark.cluster)])
def test_arrays_whose_worker_was_lost_lie_alike_again_and_so_do_loops_on_them(
    sessions: Callable[..., mn.session.Session], processes: bool
) -> None:
    session = sessions(processes=processes)
    matrix, short = mn.asarray(SPARSE, blocks=3).persist(), mn.asarray(SHORT).persist()
    vector, other = mn.asarray(VECTOR, blocks=3).persist(), mn.asarray(VECTOR + 1, blocks=2).persist()
    mn.align(matrix, short, axis=1)
    mn.align(vector, other)

    def check(factor: float) -> None:
        found, _ = mn.iterate(lambda x: (matrix @ (matrix.T @ x)) * factor, vector, max_iterations=3)
        expected = VECTOR
        for _ in range(3):
            expected = SPARSE @ (SPARSE.T @ expected) * factor
        np.testing.assert_allclose(found.compute(), expected)

    check(0.1)
    assert lie_alike((1,), matrix, short)
    if processes:
        os.kill(session.cluster.client.run(os.getpid)[session.cluster.workers[1].address], signal.SIGKILL)
    else:
        servers = session.cluster._servers.cluster
        servers.loop.add_callback(servers.workers[1].close)
    wait_until(lambda: session.cluster.attendance().num_gone > 0)
    check(0.2)
    for one in (short, matrix, other, vector):
        one.persist()
    for axes, pair in (((1,), (matrix, short)), ((0,), (vector, other))):
        assert all(one.layout is not None for one in pair)
        assert lie_alike(axes, *pair)
    same(matrix, SPARSE.toarray()), same(short, SHORT)


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_partners_go_along_to_a_worker_that_joins() -> None:
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
        mn.connect(cluster) as session,
    ):
        matrix, vector = mn.asarray(SKEWED, blocks=4).persist(), mn.asarray(B, blocks=3).persist()
        columns, short = mn.asarray(SPARSE).persist(), mn.asarray(SHORT, blocks=(1, 4)).persist()
        mn.align(matrix, vector)
        mn.align(columns, short, axis=1)
        cluster.scale(3)
        wait_until(lambda: len(cluster.scheduler.workers) == 3)
        wait_until(lambda: bool(session.rebalance_now()) and max(matrix.layout.owners) == 2)
        assert lie_alike((0,), matrix, vector)
        mn.repartition(short)
        assert set(short.layout.owners) == {0, 1, 2}
        assert lie_alike((1,), columns, short)
        assert any("workers joined" in one.decision.reason for one in session.history)
    mn.stop()
