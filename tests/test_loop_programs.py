"""Random programs mean the same inside a loop's body, on every engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from programs import programs
from test_engines import check

import matnb as mn
from matnb.expr.nodes import Data, Expr, Literal, Regrid
from matnb.expr.traverse import topological

ENGINES = {
    "interpret": {"engine": "interpret"},
    "dask": {"engine": "dask", "workers": 1, "threads": 2},
    "threads": {"engine": "gang", "workers": 1, "threads": 2},
    "workers": {"engine": "gang", "workers": 3, "threads": 1},
    "processes": {"engine": "gang", "workers": 2, "threads": 1, "processes": True},
}


@pytest.fixture(
    scope="module",
    params=[pytest.param(one, marks=[pytest.mark.cluster] if one == "processes" else []) for one in ENGINES],
)
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    with mn.start(**ENGINES[request.param]):
        yield request.param
    mn.stop()


def with_state(roots: Sequence[Expr], one: mn.DistArray) -> list[mn.DistArray]:
    """Return the same program with every given array multiplied by the state, so that all runs inside."""
    new: dict[Expr, Expr] = {}
    for node in topological(roots):
        if isinstance(node, Data | Regrid | Literal) and node.shape:
            new[node] = (mn.DistArray(node) * one.astype(node.dtype)).expression
        else:
            new[node] = node.with_operands(*(new[operand] for operand in node.operands))
    return [mn.DistArray(new[root]) for root in roots]


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_programs_mean_what_numpy_means(engine: str, data: st.DataObject) -> None:
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
