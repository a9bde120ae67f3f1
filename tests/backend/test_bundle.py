"""Tasks of a small run that a worker's threads do together, inside one task of Dask's."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from written import written

from matnb.backend.engines import graphs
from matnb.backend.engines.graphs import is_bundled, perform
from matnb.backend.tasks import worker
from matnb.blocks.formats import Dense
from matnb.blocks.grid import whole
from matnb.blocks.layout import Layout
from matnb.program.kinds import COMBINE, MAP
from matnb.program.operators import Accumulate
from matnb.program.plan import Plan, Step, StoredArray, Task

FLOAT = np.dtype(np.float64)
RUN = worker.RunId("test-bundle-", 7)


def number(value: float) -> Dense:
    return Dense(np.array([value]))


def added(key: str, *inputs: str, owner: int = 0) -> Task:
    step = Step(Accumulate("plus", FLOAT), tuple(range(len(inputs))))
    return Task(key, (step,), inputs, owner, COMBINE)


def constant(key: str, value: float) -> Task:
    return Task(key, (Step(written(number(value)), ()),), (), 0, MAP)


# a and b from c; then their sum twice over, and what nobody wants
TASKS = [
    added("a", "given", "c"),
    constant("c", 2.0),
    added("b", "a", "c"),
    added("sum", "a", "b"),
    added("twice", "sum", "sum"),
]


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    yield
    worker.forget(RUN)
    worker._forgotten.discard(RUN)


def test_several_results_are_a_bundle_with_a_report() -> None:
    made = perform(RUN, 0, TASKS, ["b", "twice"], ["b"], ["given"], 0, number(1.0))
    assert [graphs.take(key, made).values.item() for key in ("b", "twice")] == [5.0, 16.0]
    told = graphs.report_of(made)
    assert told.failed is None
    assert set(told.counts) == {"b", "twice"}
    assert {key: one.values.item() for key, one in told.values.items()} == {"b": 5.0}
    assert told.values["b"].values is not made.values["b"].values  # a copy
    assert sorted(one.key for one in told.timed) == ["a", "b", "c", "sum", "twice"]
    assert not graphs.take("b", made).values.flags.writeable


def test_a_failure_ends_the_run() -> None:
    tasks = [constant("c", 1.0), added("bad"), added("after", "bad", "c"), added("beside", "c")]
    made = perform(RUN, 0, tasks, ["after", "beside"], [], [], 0)
    assert made.report.failed.key == "bad"
    assert made.values == {}
    assert isinstance(graphs.take("beside", made), worker.TaskFailure)


def test_a_run_that_is_forgotten_begins_no_more_tasks() -> None:
    worker.forget(RUN)
    made = perform(RUN, 0, TASKS, ["b", "twice"], [], ["given"], 0, number(1.0))
    assert made.report.failed is not None
    assert made.report.timed == ()


def test_only_small_runs_without_exchanges_are_bundled() -> None:
    def plan(*tasks: Task, peak: int = 8, read: int = 8) -> Plan:
        layout = Layout(whole((1,)), (0,))
        return Plan(
            tasks, (), (), {}, {constant: StoredArray(layout, ("given",), (1,), (read,))}, {0: peak}, 0
        )

    assert is_bundled(plan(added("a", "given"), added("b", "a"), added("c", "given", owner=1)))
    assert not is_bundled(plan(added("a", "given"), added("b", "a", owner=1)))
    assert not is_bundled(plan(added("a", "given"), peak=2 * 10**9))
    assert not is_bundled(plan(added("a", "given"), read=10**9))
