"""What is chosen of sparse arrays is counted before it is sized: few rows may have most entries."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import matnb as mn
from matnb.errors import TooLargeError
from matnb.events import RunFinished, RunStarted
from matnb.expr.nodes import Expr
from matnb.expr.traverse import topological
from matnb.ops.interpret import interpret
from matnb.plan.chosen_entries import Choice, chosen_entries, most_chosen

# By how steep the law is by which entries lie in few rows and columns: even, grown, and a star.
LAWS = {"even": 1.0, "grown": 3.0, "star": 12.0}


def drawn(law: float, rows: int, columns: int, count: int) -> sp.csr_array:
    """Return a matrix whose entries lie by a law."""
    rng = np.random.default_rng(5)
    places = ((np.array([rows, columns]) * rng.random((count, 2)) ** law).astype(np.int32)).T
    return sp.csr_array((rng.integers(1, 4, count) * 1.0, tuple(places)), shape=(rows, columns))


WAYS: dict[str, Callable[[mn.DistArray, mn.DistArray, int], mn.DistArray]] = {
    "rows": lambda A, B, k: A[:k],
    "every other row": lambda A, B, k: A[k::2],
    "columns backward": lambda A, B, k: A[:, k::-1],
    "corner": lambda A, B, k: A[: k + 1, : k + 2],
    "steps on both axes": lambda A, B, k: A[::-2, k::3],
    "listed rows": lambda A, B, k: A[np.arange(k + 1).repeat(5)],
    "listed columns": lambda A, B, k: A[:, [k, 0, 0, -1]],
    "rows, then columns": lambda A, B, k: A[[0, k, 0]][:, [0, 0, 1]],
    "taken": lambda A, B, k: mn.take(A, mn.asarray([0, 1, 0, k]), axis=0),
    "mask": lambda A, B, k: A[mn.arange(A.shape[0]) % 3 < k % 3],
    "computed mask": lambda A, B, k: A[(A.sum(axis=1) > k)],
    "compressed": lambda A, B, k: mn.compress(np.arange(A.shape[0]) < k, A, axis=0),
    "repeated": lambda A, B, k: mn.repeat(A[:k], 3, axis=0),
    "repeated by counts": lambda A, B, k: mn.repeat(A, np.arange(A.shape[0]) % 4, axis=0),
    "columns repeated by counts": lambda A, B, k: mn.repeat(A, np.arange(A.shape[1]) % 4, axis=1),
    "neighbors": lambda A, B, k: mn.dynamic_slice(A, mn.asarray(k % 3), 5),
    "kron": lambda A, B, k: mn.kron(A[:k, :9], B),
    "kron of kron": lambda A, B, k: mn.kron(mn.kron(B, B[:2]), A[:2]),
    "of a transpose": lambda A, B, k: A.T[: k + 1, ::2],
    "rolled": lambda A, B, k: mn.roll(A, k, axis=0),
    "joined": lambda A, B, k: mn.concatenate([A[:k], A, A[:, ::-1]]),
    "grid": lambda A, B, k: A[np.ix_([0, k, 1], [0, 0, 2, 1])],
}


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(WAYS)), st.sampled_from(sorted(LAWS)), st.integers(0, 20))
def test_a_count_is_that_of_what_is_chosen(session, way: str, law: str, k: int) -> None:
    A, B = mn.asarray(drawn(LAWS[law], 30, 25, 200)), mn.asarray(drawn(LAWS[law], 4, 3, 7))
    chosen = [
        node
        for node in topological([WAYS[way](A, B, k)._expression])
        if isinstance(node, Choice) and node.sparse
    ]
    entries: dict[Expr, int] = {}
    for node in topological(chosen):
        if node.sparse:
            entries[node] = interpret(node, {}).nnz
    for node in chosen:
        assert int(interpret(chosen_entries(node), {})) == entries[node]
        most = most_chosen(node, entries)
        assert most is not None
        assert entries[node] <= most


pytestmark = pytest.mark.session("two threads", memory_limit="400MB", memo="off")


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(
    "way",
    ["listed rows", "listed columns", "corner", "mask", "repeated by counts", "kron", "rows, then columns"],
)
def test_no_more_is_stored_than_was_projected(session, monkeypatch, law: str, way: str) -> None:
    monkeypatch.setattr("matnb.plan.product_entries.WORTH_COUNTING_BYTES", 0)
    A = mn.asarray(drawn(LAWS[law], 600, 500, 9000), blocks=(3, 1)).persist()
    B = mn.asarray(drawn(LAWS[law], 30, 20, 60)).persist()
    projected: list[int] = []
    unsubscribe = session.subscribe(
        lambda event: projected.append(event.projected_bytes) if isinstance(event, RunStarted) else None
    )
    found = WAYS[way](A, B, 150).persist()
    unsubscribe()
    held = sum(session.stored(found._expression).block_bytes)
    assert held <= projected[-1] <= 12 * held + 2_000_000


def test_rows_beyond_the_limit_are_refused_before_they_are_made(session) -> None:
    A = mn.asarray(drawn(3.0, 43_690, 43_690, 349_525), blocks=(4, 1)).persist()  # 4 MB
    hubs = np.arange(40).repeat(800)
    made: list[int] = []
    unsubscribe = session.subscribe(
        lambda event: made.append(event.actual_bytes) if isinstance(event, RunFinished) else None
    )
    for chosen in (lambda: A[hubs], lambda: mn.kron(A[:600, :600], A[:60, :60]), lambda: A[:, hubs]):
        with pytest.raises(TooLargeError, match=r"needs about .* the worker has 400 MB"):
            chosen().persist()
    unsubscribe()
    assert sum(made) < 2**23, "only rows and columns were counted"
    average = A[np.arange(30_000, 43_000)].persist()
    assert sum(session.stored(average._expression).block_nnz) > 0


def test_what_cannot_be_large_costs_no_other_run_and_a_count_is_remembered(session) -> None:
    A = mn.asarray(drawn(3.0, 43_690, 43_690, 349_525), blocks=(4, 1)).persist()
    runs: list[int] = []
    unsubscribe = session.subscribe(
        lambda event: runs.append(event.num_tasks) if isinstance(event, RunFinished) else None
    )
    counts = []
    for rows in (np.arange(20), np.arange(100).repeat(10), np.arange(100).repeat(10)):
        runs.clear()
        A[rows].persist()
        counts.append(len(runs))
    unsubscribe()
    assert counts == [1, 2, 1]
