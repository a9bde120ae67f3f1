"""Small runs over worker processes: asked of the workers, the bits of tasks of Dask's, safe when one dies."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import numpy as np
import pytest
from waiting import wait_until

import matnb as mn
from matnb.backend.engines.engine_dask import DaskEngine
from matnb.backend.engines.engine_processes import ProcessEngine, split_between
from matnb.backend.engines.futures import Answers
from matnb.blocks.grid import regular
from matnb.blocks.layout import Layout
from matnb.errors import CellCancelled
from matnb.expr.nodes import Data, Expr
from matnb.lazy.recording import recording
from matnb.plan.lower import lower
from matnb.program.plan import Plan, StoredArray, Workers
from matnb.session.overrides import choosing


@pytest.fixture
def session() -> Iterator[mn.Session]:
    with mn.start(workers=2, threads=1, processes=True) as started:
        yield started


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """The plans that became tasks of Dask's."""
    plans: list[Plan] = []
    run = DaskEngine.run_plan

    def noted(self: DaskEngine, plan: Plan, *others: object, **named: object) -> object:
        plans.append(plan)
        return run(self, plan, *others, **named)  # type: ignore[arg-type]  # as it was called

    monkeypatch.setattr(DaskEngine, "run_plan", noted)
    return plans


def stored_in(owners: tuple[int, ...], node: Expr) -> StoredArray:
    grid = regular(node.shape, (len(owners), *[1] * (node.ndim - 1)))
    sizes = tuple(8 * node.size // len(owners) for _ in owners)
    return StoredArray(Layout(grid, owners), tuple(range(len(owners))), sizes, sizes)


def plan_of(handle: mn.DistArray, x: mn.DistArray, owners: tuple[int, ...] = (0, 1)) -> Plan:
    given = {x.expression: stored_in(owners, x.expression)}
    return lower([handle.expression], (), given, Workers((0, 1), 1, 10**9))


def handle_on(shape: tuple[int, ...]) -> mn.DistArray:
    return mn.DistArray(Data(b"x", shape, np.dtype(np.float64), False))


def total_of(x: mn.DistArray, number: float) -> float:
    """Return a sum of which nothing is kept: an assertion keeps what is made on the way."""
    return float((x * number).sum())


def test_a_reduction_is_made_by_workers_alone_up_to_what_puts_their_parts_together() -> None:
    x = handle_on((1000,))
    split = split_between(plan_of((x * 2 + 1).sum(), x))
    assert split is not None
    assert sorted(split.tasks) == [0, 1]
    assert [len(own) for own in split.results.values()] == [1, 1]
    assert [task.kind.name for task in split.rest] == ["combine"]
    assert {key for one in split.given.values() for key in one} == {0, 1}


def test_a_plan_in_which_blocks_go_between_workers_is_not_split() -> None:
    x = handle_on((40, 40))
    assert split_between(plan_of((x @ x).sum(), x)) is None


def test_a_plan_with_a_users_data_or_function_is_not_split() -> None:
    x = handle_on((1000,))
    assert split_between(plan_of((x + mn.asarray(np.arange(1000.0))).sum(), x)) is None
    assert split_between(plan_of(mn.map_blocks(np.sin, x, shape=x.shape, dtype=x.dtype).sum(), x)) is None


def test_from_the_second_time_on_a_number_is_asked_of_the_workers(
    session: mn.Session, sent: list[Plan]
) -> None:
    values = np.random.default_rng(0).random(1003)
    x = mn.asarray(values, blocks=2).persist()
    found = []
    for number in range(4):
        sent.clear()
        found.append(float((x * (number + 1.5) + 1).sum()))
        assert len(sent) == (number == 0)
        with choosing(engine="dask", remembers=False):
            assert float((x * (number + 1.5) + 1).sum()) == found[-1]
    assert found == pytest.approx([(values * (number + 1.5) + 1).sum() for number in range(4)])


def test_a_value_that_came_so_is_read_by_what_is_made_of_it(session: mn.Session) -> None:
    values = np.random.default_rng(1).random(999)
    x = mn.asarray(values, blocks=2).persist()
    for number in (2.5, 3.5, 4.5):
        total = (x * number).sum()
        float(total)
        np.testing.assert_allclose((x / total).compute(), values / (values * number).sum())


def test_numbers_of_a_cell_come_so_too(session: mn.Session, sent: list[Plan]) -> None:
    values = np.random.default_rng(2).random(500)
    x = mn.asarray(values, blocks=2).persist()
    for number in (2.5, 3.5, 4.5):
        sent.clear()
        with recording("cell") as record:
            roots = {"low": (x * number).min().expression, "high": (x + number).max().expression}
        session.run(roots, record)
        low, high = (session.small_value(node) for node in roots.values())
        assert low is not None
        assert high is not None
        assert (low.values, high.values) == ((values * number).min(), (values + number).max())
        assert len(sent) == (number == 2.5)


def test_without_a_memo_what_is_computed_stays_on_the_workers(sent: list[Plan]) -> None:
    with mn.start(workers=2, threads=1, processes=True, memo="off"):
        x = mn.asarray(np.arange(100.0), blocks=2).persist()
        for number in (2.5, 3.5):
            sent.clear()
            assert total_of(x, number) == 4950 * number
            assert len(sent) == 1


def test_an_interrupt_while_workers_are_asked_is_told_and_the_next_run_goes_on(
    session: mn.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = mn.asarray(np.arange(200.0), blocks=2).persist()
    assert total_of(x, 1.5) == 29_850.0

    def interrupted(*_: object) -> list[object]:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Answers, "ask", interrupted)
        with pytest.raises(CellCancelled):
            total_of(x, 2.5)
    assert total_of(x, 2.5) == 49_750.0


def test_a_worker_that_raises_has_the_run_made_by_tasks(
    session: mn.Session, monkeypatch: pytest.MonkeyPatch, sent: list[Plan]
) -> None:
    x = mn.asarray(np.arange(300.0), blocks=2).persist()
    assert total_of(x, 1.5) == 67_275.0
    sent.clear()
    monkeypatch.setattr(Answers, "ask", lambda self, work, parameters: [None for _ in parameters])
    assert total_of(x, 2.5) == 112_125.0
    assert len(sent) == 1


def test_a_worker_that_lacks_a_block_has_the_run_made_by_tasks(
    session: mn.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = mn.asarray(np.arange(400.0), blocks=2).persist()
    assert total_of(x, 1.5) == 119_700.0
    ask = Answers.ask

    def broken(self: Answers, work: object, parameters: dict[int, tuple]) -> list[object]:
        # names that no block has
        spoiled = {
            owner: (*own[:4], {slot: "none" if isinstance(one, str) else one for slot, one in own[4].items()})
            for owner, own in parameters.items()
        }
        return ask(self, work, spoiled)  # type: ignore[arg-type]  # as it was called

    monkeypatch.setattr(Answers, "ask", broken)
    assert total_of(x, 2.5) == 199_500.0


def test_a_worker_that_dies_costs_its_part(session: mn.Session) -> None:
    assert isinstance(session._engine, ProcessEngine)
    values = np.random.default_rng(3).random(700)
    x = mn.asarray(values, blocks=2).persist()
    assert total_of(x, 1.5) == pytest.approx((values * 1.5).sum())
    pids = session.cluster.client.run(os.getpid)
    os.kill(next(iter(pids.values())), signal.SIGKILL)
    assert total_of(x, 2.5) == pytest.approx((values * 2.5).sum())
    wait_until(lambda: session.cluster.has_newcomers or len(session.cluster.alive()) == 2, 60)
    assert total_of(x, 3.5) == pytest.approx((values * 3.5).sum())
