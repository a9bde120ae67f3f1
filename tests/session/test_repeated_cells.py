"""Runs of a form that was planned before are not planned again, and give what their own data give."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from watching import runs

import matnb as mn
from matnb.backend.engines import graphs
from matnb.errors import KernelError
from matnb.lazy.recording import recording
from matnb.program.plan import Plan
from matnb.session import planning
from matnb.session.overrides import choosing

TWO_THREADS = pytest.mark.session("two threads")


@pytest.fixture
def lowered(session: mn.session.Session, monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """Return the plans that are made anew."""
    plans: list[Plan] = []
    lower = planning.lower

    def noted(*arguments: object, **options: object) -> Plan:
        plans.append(lower(*arguments, **options))
        return plans[-1]

    monkeypatch.setattr(planning, "lower", noted)
    return plans


@TWO_THREADS
def test_a_loop_that_asks_each_time_is_planned_once(lowered: list[Plan]) -> None:
    rng = np.random.default_rng(0)
    dense, start = rng.random((60, 40)), rng.random(60)
    A, x, theirs = mn.asarray(dense, blocks=2).persist(), mn.asarray(start), start
    for step in range(100):
        r = dense.T @ theirs - 1.0
        theirs = theirs - 0.37 / (step + 3.0) * (dense @ r)
        rest = A.T @ x - 1.0
        x = x - 0.37 / (step + 3.0) * (A @ rest)  # another number each time
        if float(abs(rest).sum()) > 1e30:
            break
        assert float(x.sum()) == pytest.approx(theirs.sum(), rel=1e-9)
    np.testing.assert_allclose(x.compute(), theirs)
    assert len(lowered) <= 6


@TWO_THREADS
def test_cells_over_new_data_are_planned_once(lowered: list[Plan]) -> None:
    for seed in range(4):
        a, b = np.random.default_rng(seed).random((2, 500, 300))
        x, y = mn.asarray(a, blocks=2), mn.asarray(b)  # shipped with the run
        np.testing.assert_allclose(
            (np.sqrt(x * y) @ y.T).sum(axis=0).compute(), (np.sqrt(a * b) @ b.T).sum(axis=0)
        )
    assert len(lowered) == 1


@TWO_THREADS
def test_sparse_transposes_are_made_when_they_would_have_been(lowered: list[Plan]) -> None:
    S = sp.random_array((300, 200), density=0.05, rng=3, format="csr")
    A, x, theirs = mn.asarray(S, blocks=2).persist(), mn.asarray(np.ones(200)), np.ones(200)
    for _ in range(60):
        x, theirs = A.T @ (A @ x), S.T @ (S @ theirs)
        x, theirs = x / 3.7, theirs / 3.7
        assert float(x.max()) == pytest.approx(theirs.max(), rel=1e-9)
    assert mn.current_session().stored(A.T.expression) is not None
    assert len(lowered) <= 8


@TWO_THREADS
def test_data_of_another_size_cut_or_dtype_is_planned_anew(lowered: list[Plan]) -> None:
    for shape, blocks, dtype in [
        ((8, 5), 1, float),
        ((5, 8), 1, float),
        ((8, 5), 2, float),
        ((8, 5), 1, int),
    ]:
        values = np.arange(40).reshape(shape).astype(dtype)
        x = mn.asarray(values, blocks=blocks).persist()
        lowered.clear()
        np.testing.assert_array_equal((x + x).sum(axis=0).compute(), (values + values).sum(axis=0))
        assert len(lowered) == 1


@TWO_THREADS
def test_constants_that_are_stored_are_told_apart(session: mn.session.Session) -> None:
    for value in (3, 4):
        x = mn.asarray(np.full((), value)).persist()
        y = mn.full(3, float(value)).persist()
        assert float((x + y).sum()) == 6 * value


@TWO_THREADS
def test_an_array_under_two_names_is_read_as_such(session: mn.session.Session) -> None:
    # In the first run both names are of one array, in the second of two, and the other way round.
    for seed, same in [(0, True), (1, False), (2, True)]:
        a, b = np.random.default_rng(seed).random((2, 50))
        x = mn.asarray(a).persist()
        y = (mn.asarray(a if same else b) * 1.0).persist()
        np.testing.assert_allclose((x * 2.25 - y).compute(), a * 2.25 - (a if same else b))


@TWO_THREADS
def test_what_is_stored_is_found_in_the_other_order(session: mn.session.Session, lowered: list[Plan]) -> None:
    seen = runs(session)
    for seed in range(6):  # in the order of digests, and the other way round
        x, y = (mn.asarray(one).persist() for one in np.random.default_rng(seed).random((2, 70)))
        z = np.sqrt(x) + y * 2.0
        z.persist()
        seen.clear()
        np.testing.assert_array_equal((y * 2.0 + np.sqrt(x)).compute(), z.compute())
        assert sum(run.num_tasks for run in seen) == 0


@TWO_THREADS
def test_what_passes_find_stored_belongs_to_one_run_alone(session: mn.session.Session) -> None:
    one, other = np.random.default_rng(5).random((2, 30, 20))
    x, y = mn.asarray(one).persist(), mn.asarray(other).persist()
    held = (x + 0.3).persist()
    np.testing.assert_array_equal((x.T.T + 0.3).compute(), one + 0.3)  # there, by the name that passes give
    np.testing.assert_array_equal((y.T.T + 0.3).compute(), other + 0.3)
    assert held.shape == one.shape


@TWO_THREADS
def test_what_passes_make_of_nothing_is_not_made_again(session: mn.session.Session) -> None:
    x, y, z = (mn.asarray(np.arange(200) + seed).persist() for seed in range(3))
    assert not (y - y).compute().any()
    mn.memo.clear()
    held = (x * 0).persist()  # the same zeros
    assert not (z - z).compute().any()
    mn.memo.clear()
    np.testing.assert_array_equal((held + x).compute(), np.arange(200))


def explode(values: np.ndarray) -> np.ndarray:
    if values[0] < 0:
        raise ZeroDivisionError("below zero")
    return values * 2


@TWO_THREADS
def test_an_error_names_the_line_of_its_own_cell(session: mn.session.Session, lowered: list[Plan]) -> None:
    cell = "\n" * 2 + "y = mn.replicated(explode, x * 1.5 + 2.5, like=x)\n"
    for seed, lines in [(1.0, 2), (-9.0, 5)]:
        x = (mn.asarray(np.full(30, seed)) + 0.0).persist()
        names = {"mn": mn, "explode": explode, "x": x}
        filename = f"cell {seed}"
        with recording(filename) as record:
            exec(compile("\n" * lines + cell, filename, "exec"), names)
        if seed > 0:
            session.run({"y": names["y"].expression}, record)
        else:
            with pytest.raises(KernelError, match="below zero") as caught:
                session.run({"y": names["y"].expression}, record)
            assert caught.value.lines == (lines + 3,)


@TWO_THREADS
def test_a_small_run_is_one_task_of_dask_its_report_and_one_for_each_block_that_stays(
    session: mn.session.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[tuple[int, int]] = []
    graph_of = graphs.graph_of

    def counted(run: graphs.PlanRun, *arguments: object) -> graphs.DaskGraph:
        graph = graph_of(run, *arguments)
        counts.append((len(run.staying), sum(map(len, graph.tasks.values()))))
        return graph

    monkeypatch.setattr("matnb.backend.engines.engine_dask.graph_of", counted)
    with choosing(engine="dask"):
        x = mn.asarray(np.arange(40.0), blocks=4)
        assert float((x * x).sum()) == 20540
        y = (x + 1.5).persist()
        assert float(y.sum()) == 840
    assert counts[1:] == [(4, 6), (1, 3)]
    assert counts[0][1] == 2 + counts[0][0]


@TWO_THREADS
def test_a_large_sparse_product_written_again_is_planned_once(
    session: mn.session.Session, lowered: list[Plan]
) -> None:
    entries = sp.random_array((3000, 3000), density=0.01, rng=np.random.default_rng(0), format="csr")
    A = mn.asarray(entries, blocks=2).persist()
    seen = runs(session)
    for factor in (1.5, 2.5, 3.5):
        seen.clear()
        np.testing.assert_allclose(float((A @ A * factor).sum()), float((entries @ entries).sum()) * factor)
        if factor == 1.5:
            del lowered[:]  # of the one that counts the product's entries, and the one that makes them
            projected = seen[-1].projected_bytes
        assert seen[-1].projected_bytes == projected
    assert not lowered
