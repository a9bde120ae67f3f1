"""How much work plans are: operations and bytes, counted by hand, the same for any cuts."""

from __future__ import annotations

import time

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn
from matnb.events import BatchesFinished, Event, LoopAdvanced, LoopFinished
from matnb.lazy.batch_turns import BatchTurns
from matnb.plan.lower import lower
from matnb.plan.work import works_of
from matnb.program.plan import PlanWork, Workers

M, K, N = 60, 50, 40
A, B = mn.asarray(np.ones((M, K))), mn.asarray(np.ones((K, N)))
S = mn.asarray(sp.random_array((M, K), density=0.1, rng=0, format="csr"))
x, y = mn.asarray(np.ones(K)), mn.asarray(np.ones(K))

pytestmark = pytest.mark.session("two threads")


def work(array: mn.DistArray, num_workers: int = 1) -> PlanWork:
    """Return the sum over the stages of an array's plan."""
    plan = lower([array.expression], (), {}, Workers(tuple(range(num_workers)), 1, 0))
    return PlanWork(*map(sum, zip(*plan.work, strict=True)))


@pytest.mark.parametrize(
    ("array", "flops", "num_bytes"),
    [
        (A @ B, 2 * M * K * N, 8 * (M * K + K * N + M * N)),
        (x @ y, 2 * K, 8 * (2 * K + 1)),
        (S @ x, 2 * 300, None),
        (S @ B, 2 * 300 * N, None),
        (np.exp(x) + y, 2 * K, 8 * 3 * K),
        ((x * y).sum(), 2 * K, None),
        (x.astype(np.float32), 0, 12 * K),
        (x[:5], 0, 8 * 10),
        (np.exp(A @ B).sum(), 2 * M * K * N + 2 * M * N, 8 * (M * K + K * N + 1)),
        (mn.matmul(A, B, mask=mn.asarray(sp.eye_array(M, N, format="csr"))), 2 * N * K, None),
    ],
)
def test_it_is_what_is_counted_by_hand(array: mn.DistArray, flops: int, num_bytes: int | None) -> None:
    found = work(array)
    assert found.flops == flops
    assert num_bytes is None or found.accessed_bytes == num_bytes


@pytest.mark.parametrize("array", [A @ B, (A * 2 + A.mean(axis=0)).sum(axis=0), np.exp(A @ B).sum()])
def test_cuts_change_nothing(array: mn.DistArray) -> None:
    assert work(array, 4) == work(array)


def test_what_two_stages_make_counts_once() -> None:
    plan = lower([(A @ B).expression], (), {}, Workers((0,), 1, 0))
    entries = {node: node.size for stage in plan.stages for node in stage.inside}
    assert works_of(plan.stages * 2, entries)[len(plan.stages) :] == ((0, 0),) * len(plan.stages)


MEAN = mn.learn.Model(
    lambda X, y: {"total": np.zeros(2)},
    lambda parameters, X, y: X.mean(),
    update=lambda parameters, X, y: {"total": parameters["total"] + X.sum(axis=0)},
)


def heard(session: mn.session.Session) -> tuple[list[Event], mn.session.listeners.Subscription]:
    events: list[Event] = []
    return events, session.subscribe(events.append)


def test_a_loop_tells_that_of_its_iterations(session: mn.session.Session) -> None:
    events, end = heard(session)
    mn.iterate(lambda v: A.T @ (A @ v), mn.ones(K), max_iterations=7)[0].compute()
    end()
    (advanced, *_), (finished,) = (
        [one for one in events if isinstance(one, kind)] for kind in (LoopAdvanced, LoopFinished)
    )
    assert advanced.flops == 4 * M * K
    assert finished.flops == 7 * 4 * M * K
    assert advanced.accessed_bytes > 2 * 8 * M * K
    assert advanced.batches is None


def test_batches_of_a_source_are_told_with_the_pass(session: mn.session.Session) -> None:
    events, end = heard(session)
    source = mn.sources.memory(np.ones((10, 3)), batch_size=4)
    mn.iterate(lambda total, batch: total + batch.X.sum(), 0.0, over=source, epochs=2)
    end()
    spans = [one.batches for one in events if isinstance(one, LoopAdvanced) and one.batches is not None]
    told = [(one.epoch, one.epochs, one.start, one.num_batches, one.rows, one.rows_done) for one in spans]
    assert list(dict.fromkeys(told)) == [
        (0, 2, 0, 3, 4, 0),
        (0, 2, 2, 3, 2, 8),
        (1, 2, 0, 3, 4, 10),
        (1, 2, 2, 3, 2, 18),
    ]
    assert isinstance(events[-1], BatchesFinished)


def test_the_share_in_which_data_was_waited_for_is_told() -> None:
    now, waited = [10.0], [3.0]
    turns = BatchTurns(2, 4, waited=lambda: waited[0], clock=lambda: now[0])
    with turns.loop(5, 0):
        assert turns.span.waiting == 0.0
    turns.done(4)
    now[0], waited[0] = 14.0, 4.0
    with turns.loop(5, 1):
        assert turns.span.waiting == 0.25


def test_a_slow_source_is_waited_for(session: mn.session.Session) -> None:
    def slowly(k: int) -> np.ndarray:
        time.sleep(0.05)
        return np.full((4, 2), float(k))

    for learns in (False, True):
        events, end = heard(session)
        source = mn.sources.calls(slowly, 5)
        if learns:
            mn.learn.Learner(MEAN).fit(source)
        else:
            mn.iterate(lambda total, batch: total + batch.X.sum(), 0.0, over=source)
        end()
        spans = [one.batches for one in events if isinstance(one, LoopAdvanced) and one.batches is not None]
        assert 0 < spans[-1].waiting <= 1


def test_a_learners_history_has_rates(session: mn.session.Session) -> None:
    events, end = heard(session)
    X = np.random.default_rng(0).normal(size=(100, 8))
    learner = mn.learn.Learner(mn.learn.models.GeneralizedLinear(), optimizer=mn.learn.SGD(0.1))
    history = learner.fit(X, X.sum(axis=1), epochs=2, batch_size=10, validation=(X, X.sum(axis=1))).history_
    end()
    loops = [one for one in events if isinstance(one, LoopFinished) and one.iterations == 10]
    flops = loops[0].flops
    assert flops > 10 * 4 * 10 * 8
    seconds = 100 / history.rows_per_second
    np.testing.assert_allclose(history.flops_per_second * seconds, flops)
    np.testing.assert_allclose(history.bytes_per_second * seconds, loops[0].accessed_bytes, rtol=1e-3)
    last = [one.batches for one in events if isinstance(one, LoopAdvanced) and one.batches is not None][-1]
    assert (last.epoch, last.start, last.num_done) == (1, 0, 10)
    assert last.loss == pytest.approx(history.loss[:10].mean())
    assert last.held_out == history.held_out[0]


def test_nothing_counts_what_is_interpreted() -> None:
    with mn.start(workers=1, engine="interpret"):
        learner = mn.learn.Learner(mn.learn.models.GeneralizedLinear(), optimizer=mn.learn.SGD(0.1))
        history = learner.fit(np.ones((6, 2)), np.ones(6), batch_size=3).history_
    assert np.isnan(history.flops_per_second).all()
    assert np.isnan(history.bytes_per_second).all()
