"""Orders within segments of which some are longer than a block: no task has one of these whole."""

from __future__ import annotations

import numpy as np
import pytest

import matnb as mn
from matnb.expr.traverse import topological
from matnb.nested.segments import SegmentOrder

LENGTHS = [3, 0, 4000, 1, 2, 5000, 0, 400, 7, 2000]

pytestmark = pytest.mark.session("two workers", rebalance="off")


@pytest.mark.parametrize("strategy", ["uniform", "segmented"])
@pytest.mark.parametrize("wanted", ["sort", "argsort", "rank"])
@pytest.mark.parametrize("blocks", [1, 4, 9])
def test_long_segments_are_ordered_as_numpy_orders_them(blocks: int, wanted: str, strategy: str) -> None:
    values = np.random.default_rng(blocks).integers(0, 50, sum(LENGTHS)).astype(float)
    values[::97] = np.nan
    N = mn.nested.unflatten(mn.asarray(values, blocks=blocks), LENGTHS, strategy=strategy)
    expected = []
    for one in np.split(values, np.cumsum(LENGTHS)[:-1]):
        places = np.argsort(one, kind="stable")
        expected.append({"sort": one[places], "argsort": places, "rank": np.argsort(places)}[wanted])
    np.testing.assert_array_equal(getattr(N, wanted)().values.compute(), np.concatenate(expected))


def test_no_task_has_a_long_segment_whole() -> None:
    N = mn.nested.unflatten(mn.asarray(np.ones(sum(LENGTHS)), blocks=9), LENGTHS, strategy="uniform")
    nodes = topological([N.sort().values.expression])
    lengths = [one.knots.num_values for one in nodes if isinstance(one, SegmentOrder)]
    assert lengths
    assert sum(lengths) == sum(LENGTHS) - 4000 - 5000 - 2000
    alone = mn.nested.unflatten(mn.asarray(np.ones(900), blocks=9), [300] * 3, strategy="uniform")
    assert not any(isinstance(one, SegmentOrder) for one in topological([alone.rank().values.expression]))
