"""Stored arrays laid out anew: the same values, one owner a block, nothing left behind, nothing half done."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from waiting import wait_until
from watching import tasks_on_scheduler

import matnb as mn
from matnb.backend.engines.engine_dask import DaskEngine
from matnb.backend.engines.futures import OwnersLost
from matnb.backend.engines.results import Outcome, RunCancelled
from matnb.backend.store import Entry
from matnb.blocks.grid import Grid
from matnb.blocks.layout import Cuts, Layout
from matnb.errors import CellCancelled, TooLargeError
from matnb.program.plan import Plan
from matnb.session.repartitioner import Repartition, Repartitioner

NUM_ROWS = 60
rng = np.random.default_rng(5)
SPARSE = sp.random(NUM_ROWS, 40, 0.2, "csr", random_state=1)
SPARSE.data[:] = rng.standard_normal(SPARSE.nnz)
GAPS = SPARSE.copy()
GAPS.data[GAPS.indptr[20] : GAPS.indptr[50]] = 0
GAPS.eliminate_zeros()
ARRAYS = {
    "sparse": sp.csr_array(SPARSE),
    "pattern": sp.csr_array(SPARSE != 0),
    "float32": sp.csr_array(SPARSE.astype(np.float32)),
    "rows without entries": sp.csr_array(GAPS),
    "no entries": sp.csr_array((NUM_ROWS, 40)),
    "vector": rng.standard_normal(NUM_ROWS),
    "matrix": rng.standard_normal((NUM_ROWS, 3)),
    "cube": rng.integers(0, 9, (NUM_ROWS, 2, 2)),
}


@pytest.fixture(scope="module", params=[False, pytest.param(True, marks=pytest.mark.cluster)])
def session(request: pytest.FixtureRequest) -> Iterator[mn.session.Session]:
    with mn.start(workers=3, threads=1, processes=request.param, rebalance="off", engine="dask") as session:
        yield session
    mn.stop()


@st.composite
def row_cuts(draw: st.DrawFn) -> Cuts:
    inner = draw(st.sets(st.integers(1, NUM_ROWS - 1), max_size=7))
    cuts = (0, *sorted(inner), NUM_ROWS)
    owners = sorted(draw(st.lists(st.integers(0, 2), min_size=len(cuts) - 1, max_size=len(cuts) - 1)))
    return Cuts(cuts, tuple(owners))


def repartitioner(session: mn.session.Session) -> Repartitioner:
    runner = session._runner
    return Repartitioner(session._engine, runner.planner, runner.memo.replaced)


def entry_of(session: mn.session.Session, array: mn.DistArray) -> Entry:
    entry = session._store.entry(array.expression)
    assert entry is not None
    return entry


def recut(session: mn.session.Session, arrays: list[mn.DistArray], new: Cuts) -> Repartition:
    entries = {one.expression: entry_of(session, one) for one in arrays}
    return repartitioner(session).repartition(
        {node: (entry, entry.stored.layout.with_rows(new)) for node, entry in entries.items()}
    )


def keys_on_workers(session: mn.session.Session) -> dict[str, int]:
    # How many workers hold each block.
    held = session.cluster.client.run(lambda dask_worker: [str(key) for key in dask_worker.data])
    found: dict[str, int] = {}
    for key in (key for keys in held.values() for key in keys if "-r" in key or "-s" in key):
        found[key] = found.get(key, 0) + 1
    return found


def same(array: mn.DistArray, expected: object) -> bool:
    found = array.compute()
    if sp.issparse(expected):
        return found.dtype == expected.dtype and (found != expected).nnz == 0 and found.nnz == expected.nnz
    return bool((found == expected).all())


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
@pytest.mark.parametrize("name", ARRAYS)
def test_any_cuts_and_owners_hold_the_same_values(
    session: mn.session.Session, name: str, data: st.DataObject
) -> None:
    array = mn.asarray(ARRAYS[name], blocks=4).persist()
    before = entry_of(session, array)
    for new in data.draw(st.lists(row_cuts(), min_size=1, max_size=3)):
        recut(session, [array], new)
        entry = entry_of(session, array)
        stored = entry.stored
        assert stored.layout.owners == new.owners
        assert stored.layout.grid.cuts[0] == new.cuts
        assert sum(stored.block_nnz) == sum(before.stored.block_nnz)
        # Each block is on its owner, and as large as it is said to be.
        blocks = session._engine.blocks.gather(entry.futures, stored.layout.owners)
        assert tuple(block.nbytes for block in blocks) == stored.block_bytes
        assert tuple(block.nnz for block in blocks) == stored.block_nnz
        who_has = session.cluster.client.who_has(list(entry.futures))
        for future, owner in zip(entry.futures, stored.layout.owners, strict=True):
            assert session.cluster.workers[owner].address in who_has[future.key]
        assert same(array, ARRAYS[name])


@pytest.mark.parametrize("name", ["sparse", "pattern", "matrix"])
def test_blocks_of_both_axes_are_put_together(session: mn.session.Session, name: str) -> None:
    array = mn.asarray(ARRAYS[name], blocks=[3, 2]).persist()
    num_columns = array.shape[1]
    for cuts in (
        ((0, 7, NUM_ROWS), (0, 1, num_columns)),
        ((0, NUM_ROWS), (0, 1, 2, num_columns)),
        ((0, 30, NUM_ROWS), (0, num_columns)),
    ):
        grid = Grid(cuts)
        entry = entry_of(session, array)
        layout = Layout(grid, tuple(number % 3 for number in range(grid.num_blocks)))
        repartitioner(session).repartition({array.expression: (entry, layout)})
        assert array.layout == layout
        assert same(array, ARRAYS[name])


def test_old_blocks_go_from_the_workers_and_those_that_stay_are_kept_as_they_are(
    session: mn.session.Session,
) -> None:
    values = [ARRAYS[name] * 2 for name in ("sparse", "vector")]  # which no other test has cut
    arrays = [mn.asarray(one, blocks=4).persist() for one in values]
    old = [entry_of(session, one).futures for one in arrays]
    old_names = [[future.key for future in futures] for futures in old]
    owners = arrays[0].layout.owners
    # The first block stays, the second is cut in two, the others become one elsewhere.
    new = Cuts((0, 15, 20, 30, NUM_ROWS), (owners[0], owners[1], owners[1], 2))
    done = recut(session, arrays, new)
    assert done.num_blocks == 6
    assert entry_of(session, arrays[0]).futures[0] is old[0][0]
    wanted = {future.key for one in arrays for future in entry_of(session, one).futures}
    del old, done
    gc.collect()
    gone = {name for names in old_names for name in names[1:]}
    wait_until(lambda: not gone.intersection(keys_on_workers(session)))
    wait_until(lambda: wanted <= keys_on_workers(session).keys())
    assert all(map(same, arrays, values))


def test_the_bytes_that_move_are_those_of_parts_that_change_their_worker(session: mn.session.Session) -> None:
    x = mn.asarray(ARRAYS["vector"], blocks=[[0, 20, 40, NUM_ROWS]]).persist()
    first, second, third = x.layout.owners
    done = recut(session, [x], Cuts((0, 10, 45, NUM_ROWS), (first, second, third)))
    assert done.moved_bytes == (10 + 5) * 8
    assert done.copied_bytes == (10 + 20 + 15) * 8


def test_arrays_keep_their_places_in_the_store(session: mn.session.Session) -> None:
    gc.collect()
    store = session._store
    given_array = mn.asarray(np.arange(2.0 * 10**6), blocks=4)  # so large that no copy stays here
    pinned = mn.asarray(ARRAYS["matrix"], blocks=4).persist()
    second = pinned + 0  # another name of the same
    second.compute()
    assert given_array.expression in store._given or given_array.layout is None
    given_array.persist()
    num_bytes, num_arrays = store.num_bytes, len(store.entries())
    length = given_array.shape[0]
    recut(session, [given_array], Cuts((0, 5, length), (1, 2)))
    recut(session, [pinned], Cuts((0, 5, NUM_ROWS), (1, 2)))
    assert (store.num_bytes, len(store.entries())) == (num_bytes, num_arrays)
    assert store.bytes_by_owner().get(0, 0) <= num_bytes
    np.testing.assert_array_equal(given_array[:7].compute(), np.arange(7.0))
    assert same(pinned, ARRAYS["matrix"])
    store.trim(0)
    assert pinned.layout is not None
    del given_array, pinned, second
    gc.collect()
    session._runner.planner.retain()


def test_batches_are_bounded(session: mn.session.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("matnb.session.repartitioner._IN_FLIGHT_BYTES", 200)
    plans: list[Plan] = []
    run = DaskEngine.run_plan

    def noted(self: DaskEngine, plan: Plan, *rest: object, **named: object) -> Outcome:
        plans.append(plan)
        return run(self, plan, *rest, **named)

    x = mn.asarray(ARRAYS["vector"], blocks=3).persist()
    monkeypatch.setattr(DaskEngine, "run_plan", noted)
    recut(session, [x], Cuts(tuple(range(0, NUM_ROWS + 1, 10)), (2, 2, 2, 2, 2, 2)))
    assert len(plans) == 3
    for plan in plans:
        made = [task for task in plan.tasks if task.kind.name == "repartition"]
        assert sum(80 for _ in made) <= 200
    assert same(x, ARRAYS["vector"])


def test_without_room_for_both_nothing_is_done(
    session: mn.session.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = mn.asarray(ARRAYS["vector"], blocks=3).persist()
    layout = x.layout
    monkeypatch.setattr(session._runner.planner, "fits", lambda peaks: max(peaks.values()) < 100)
    with pytest.raises(TooLargeError, match=r"up to (480|960) B"):
        recut(session, [x], Cuts((0, NUM_ROWS), (0,)))
    assert x.layout is layout


@pytest.mark.parametrize("error", [RunCancelled, OwnersLost])
def test_what_stops_half_way_leaves_all_as_it_was(
    session: mn.session.Session, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    monkeypatch.setattr("matnb.session.repartitioner._IN_FLIGHT_BYTES", 200)
    a, x = mn.asarray(ARRAYS["sparse"], blocks=3).persist(), mn.asarray(ARRAYS["vector"], blocks=3).persist()
    entries = [entry_of(session, one) for one in (a, x)]
    gc.collect()
    before = keys_on_workers(session).keys()
    run, num_runs = DaskEngine.run_plan, 0

    def stopped(self: DaskEngine, plan: Plan, *rest: object, **named: object) -> Outcome:
        nonlocal num_runs
        num_runs += 1
        if num_runs < 3:
            return run(self, plan, *rest, **named)
        nothing = Outcome()
        raise RunCancelled("stopped", nothing) if error is RunCancelled else OwnersLost([1])

    monkeypatch.setattr(DaskEngine, "run_plan", stopped)
    expected = CellCancelled if error is RunCancelled else OwnersLost
    with pytest.raises(expected) as caught:
        recut(session, [a, x], Cuts((0, 5, NUM_ROWS), (2, 2)))
    monkeypatch.setattr(DaskEngine, "run_plan", run)
    assert num_runs == 3
    assert [entry_of(session, one) for one in (a, x)] == entries
    del stopped
    gc.collect()
    wait_until(lambda: keys_on_workers(session).keys() <= before)
    assert caught.value is not None  # though its traceback is there still
    assert same(a, ARRAYS["sparse"])
    assert same(x, ARRAYS["vector"])


@pytest.mark.slow
def test_history_does_not_grow_with_every_change(session: mn.session.Session) -> None:
    x = mn.asarray(ARRAYS["vector"], blocks=3).persist()
    counts = []
    for turn in range(60):
        recut(session, [x], Cuts((0, 10 + turn % 2, NUM_ROWS), (turn % 3, 2)))
        gc.collect()
        counts.append(tasks_on_scheduler(session))
    assert max(counts[-25:]) <= max(counts[:25]) + 5
    assert same(x, ARRAYS["vector"])


def test_a_profile_is_that_of_the_whole_matrix(session: mn.session.Session) -> None:
    a = mn.asarray(ARRAYS["sparse"], blocks=4).persist()
    profile = repartitioner(session).profile(a.expression, entry_of(session, a))
    np.testing.assert_array_equal(profile.places, np.arange(NUM_ROWS + 1))  # few rows: every one is told
    np.testing.assert_array_equal(profile.entries, ARRAYS["sparse"].indptr)


def test_a_histogram_is_that_of_the_whole_matrix(session: mn.session.Session) -> None:
    a = mn.asarray(ARRAYS["sparse"], blocks=[3, 2]).persist()
    counts, edges = repartitioner(session).histogram(a.expression, entry_of(session, a))
    stored = (ARRAYS["sparse"] != 0).toarray()
    for row, (top, bottom) in enumerate(pairwise(edges[0])):
        for column, (left, right) in enumerate(pairwise(edges[1])):
            assert counts[row, column] == stored[top:bottom, left:right].sum()


def test_what_is_counted_of_a_block_takes_no_more_than_its_plan_says(
    session: mn.session.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = sp.random_array((3000, 400), density=0.01, rng=np.random.default_rng(1), format="csr")
    a = mn.asarray(counts, blocks=[2, 1]).persist()
    looking = repartitioner(session)
    run, sizes = looking._engine.run, list[tuple[int, int]]()

    def noted(plan: Plan, *rest: Any, **named: Any) -> Outcome:
        done = run(plan, *rest, **named)
        sizes.extend((done.fetched[key].nbytes, plan.sizes[key]) for key in done.fetched)
        return done

    monkeypatch.setattr(looking._engine, "run", noted)
    looking.profile(a.expression, entry_of(session, a))
    looking.histogram(a.expression, entry_of(session, a))
    assert len(sizes) == 4
    assert all(0.4 * most <= made <= most for made, most in sizes), sizes


@pytest.mark.cluster
def test_a_worker_killed_during_a_change_costs_nothing_but_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with mn.start(workers=2, threads=1, processes=True, rebalance="off") as session:
        monkeypatch.setattr("matnb.session.repartitioner._IN_FLIGHT_BYTES", 200)
        a = mn.asarray(ARRAYS["sparse"], blocks=4).persist()
        pids = list(session.cluster.client.run(os.getpid).values())
        run, num_runs = DaskEngine.run_plan, 0

        def killing(self: DaskEngine, plan: Plan, *rest: object, **named: object) -> Outcome:
            nonlocal num_runs
            num_runs += 1
            if num_runs == 2:
                os.kill(pids[1], signal.SIGKILL)
            return run(self, plan, *rest, **named)

        monkeypatch.setattr(DaskEngine, "run_plan", killing)
        mn.repartition(a, n=7)
        assert a.layout.grid.counts == (7, 1)
        assert same(a, ARRAYS["sparse"])
    mn.stop()


@pytest.mark.cluster
def test_two_sessions_on_a_cluster_change_the_same_array_each_for_itself() -> None:
    from distributed import LocalCluster

    from matnb.backend.cluster import dask_cluster as clusters
    from matnb.config import Config
    from matnb.lazy.handles import live_expressions

    with LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster:
        sessions = [mn.session.Session(Config(), clusters.connect(cluster)) for _ in range(2)]
        x = mn.asarray(ARRAYS["vector"], blocks=4)
        for one in sessions:
            one.persist([x.expression])
        for one, owner in zip(sessions, (0, 1), strict=True):
            recut(one, [x], Cuts((0, 9, NUM_ROWS), (owner, owner)))
        for one, owner in zip(sessions, (0, 1), strict=True):
            assert entry_of(one, x).stored.layout.owners == (owner, owner)
            np.testing.assert_array_equal(one.value(x.expression).values, ARRAYS["vector"])
        assert x.expression in live_expressions()
        for one in sessions:
            one.close()
