"""No operation of nested arrays gathers: what comes to this process, the largest value, what workers send."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from fetched import counting
from plan_runner import run_by_hand

import matnb as mn
from matnb.nested.structure import structure_from_counts, structure_from_offsets
from matnb.plan.lower import lower
from matnb.program.plan import Workers

NUM_VALUES, NUM_BLOCKS, NUM_WORKERS = 400_000, 16, 4
SHARE = 8 * NUM_VALUES // NUM_BLOCKS  # bytes of a block
SUMMARY = 8 * 1024  # bytes that the driver asks of a structure, however many segments there are
NUMBER = 16  # bytes of what is carried from block to block
STRUCTURES = {
    "equal": [100] * (NUM_VALUES // 100),
    "one has half": [*[100] * (NUM_VALUES // 400), NUM_VALUES // 2, *[100] * (NUM_VALUES // 400)],
    "one has all": [0, NUM_VALUES, 0],
    "many empty": [0, 0, 400] * (NUM_VALUES // 400),
}
LEFT: dict[str, Callable[[Any], Any]] = {
    name: lambda N, name=name: getattr(N, name)()
    for name in ("sum", "prod", "min", "any", "argmax", "mean", "var")
}
RUNNING: dict[str, Callable[[Any], Any]] = {
    "cumsum": lambda N: N.cumsum().values,
    "stable": lambda N: N.cumsum(stable=True).values,
    "exclusive": lambda N: N.scan("max", exclusive=True).values,
    "reverse": lambda N: N.scan("plus", reverse=True).values,
}
ORDERS: dict[str, Callable[[Any], Any]] = {
    name: lambda N, name=name: getattr(N, name)().values for name in ("sort", "argsort", "rank")
}
OTHERS: dict[str, Callable[[Any], Any]] = {
    "scaled": lambda N: (N * N.max()).values,
    "places": lambda N: N.positions,
    "gathered": lambda N: (N * N.gather(mn.ones(N.longest, blocks=NUM_BLOCKS))).sum(),
}


class Travel(NamedTuple):
    """Bytes of the largest value of a task, and of what tasks read of other workers' tasks."""

    largest: int
    moved: int


pytestmark = pytest.mark.session("one thread")  # plans are for more workers, and are done by hand


def made(which: str, strategy: str) -> mn.nested.NestedArray:
    values = np.random.default_rng(0).standard_normal(NUM_VALUES)
    return mn.nested.unflatten(mn.asarray(values, blocks=NUM_BLOCKS), STRUCTURES[which], strategy=strategy)


def travelled(result: mn.DistArray) -> Travel:
    numbers = tuple(range(NUM_WORKERS))
    plan = lower([result.expression], [], {}, Workers(numbers, 1, 0, numbers))
    values = run_by_hand(plan)
    owners = {task.key: task.owner for task in plan.tasks} | {one.key: one.owner for one in plan.shipments}
    moved = sum(
        values[key].nbytes
        for task in plan.tasks
        for key in set(task.inputs)
        if owners.get(key, task.owner) != task.owner
    )
    return Travel(max((values[task.key].nbytes for task in plan.tasks), default=0), moved)


@pytest.mark.parametrize("strategy", ["segmented", "uniform"])
@pytest.mark.parametrize("which", STRUCTURES)
@pytest.mark.parametrize("name", [*LEFT, *RUNNING, *ORDERS, *OTHERS])
def test_no_task_makes_more_than_its_share(which: str, strategy: str, name: str) -> None:
    N = made(which, strategy)
    found = travelled({**LEFT, **RUNNING, **ORDERS, **OTHERS}[name](N))
    # What a segment needs as a whole: its order; and its cuts where these are between segments.
    whole = 8 * N.longest if name in ORDERS or strategy == "segmented" else 0
    assert found.largest <= max(2 * SHARE, whole + 2 * SHARE), (found, SHARE)


@pytest.mark.parametrize("strategy", ["segmented", "uniform"])
@pytest.mark.parametrize("which", STRUCTURES)
@pytest.mark.parametrize("name", [*LEFT, *RUNNING])
def test_workers_send_offsets_and_no_values_along_segments(which: str, strategy: str, name: str) -> None:
    N = made(which, strategy)
    before = travelled(N.values).moved  # into the cuts of a strategy, and of values that are turned
    turned = 2 * 8 * NUM_VALUES if name == "reverse" else 0
    found = travelled({**LEFT, **RUNNING}[name](N))
    offsets = 8 * (N.num_segments + 1)
    # Each pass has offsets twice at most, and numbers of segments; a uniform one what lies next to cuts.
    next_to_cuts = 8 * 2 * NUM_BLOCKS * min(N.longest, NUM_VALUES // NUM_BLOCKS // 8)
    shares = 8 * 64 * NUM_BLOCKS + NUMBER * 3 * NUM_BLOCKS
    assert found.moved <= before + turned + 10 * offsets + next_to_cuts + shares, found


@pytest.mark.parametrize("strategy", ["segmented", "uniform"])
@pytest.mark.parametrize("name", [*LEFT, *RUNNING, *ORDERS, *OTHERS])
def test_nothing_comes_here_before_it_is_asked_for(strategy: str, name: str) -> None:
    N = made("one has half", strategy)
    with counting() as fetched:
        result = {**LEFT, **RUNNING, **ORDERS, **OTHERS}[name](N)
        assert fetched.sizes == []
        float(result.max())
    assert fetched.num_bytes == result.dtype.itemsize


@pytest.mark.parametrize("count", [1_000, 1_000_000])
@pytest.mark.parametrize("draw", ["short", "power law", "empty"])
def test_a_structure_asks_for_its_summary_alone(draw: str, count: int) -> None:
    rng = np.random.default_rng(0)
    lengths = {
        "short": rng.integers(0, 5, count),
        "power law": np.minimum(rng.zipf(1.5, count), 10**6),
        "empty": np.zeros(count, np.int64),
    }[draw]
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    with counting() as fetched:
        of_counts = structure_from_counts(mn.asarray(lengths), "counts")
        assert 0 < fetched.num_bytes <= SUMMARY
    with counting() as fetched:
        of_offsets = structure_from_offsets(mn.asarray(offsets), "offsets")
        assert 0 < fetched.num_bytes <= SUMMARY
    bits = np.ceil(np.log2(lengths + 1)).astype(int)
    for found in (of_counts, of_offsets, structure_from_counts(lengths, "counts")):
        assert (found.num_segments, found.num_values) == (count, lengths.sum())
        assert (found.longest, found.histogram) == (lengths.max(), tuple(np.bincount(bits)))
        assert found.knots == of_counts.knots
        assert len(found.knots.segments) <= 600
        np.testing.assert_array_equal(offsets[list(found.knots.segments)], found.knots.values)


def test_equal_structures_are_compared_where_they_are() -> None:
    counts = mn.asarray(np.tile([1, 3], 100_000))
    N, M = (mn.nested.unflatten(mn.ones(400_000), counts + 0 * number) for number in (1, 2))
    with counting() as fetched:
        both = N + M
    assert fetched.num_bytes <= 8
    with counting() as fetched:
        assert float(both.sum().max()) == 6.0
    assert fetched.num_bytes == 8
