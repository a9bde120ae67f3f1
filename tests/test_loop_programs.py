"""Random programs mean the same inside a loop's body, on every engine."""

from __future__ import annotations

import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from programs import programs, with_state
from test_engines import check

import matnb as mn

pytestmark = pytest.mark.session(
    "interpreter", "dask: two threads", "gang: two threads", "gang: three workers", "gang: processes"
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_programs_mean_what_numpy_means(data: st.DataObject) -> None:
    pairs = data.draw(programs(mn.asarray))
    roots = [pair.mine.expression for pair in pairs]
    starts = [
        mn.asarray(sp.csr_array(root.shape, dtype=root.dtype))
        if root.sparse
        else mn.zeros(root.shape, root.dtype)
        for root in roots
    ]
    (_, *results), n = mn.iterate(
        lambda state: (state[0], *with_state(roots, state[0])), (mn.asarray(1.0), *starts), max_iterations=2
    )
    mn.compute(*results, n)
    assert int(n) == 2
    for pair, result in zip(pairs, results, strict=True):
        check(result, pair.theirs, pair.text)
