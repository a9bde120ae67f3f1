"""Planning takes memory by blocks and entries, never by the lengths of axes."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from situations import situation_of

import matnb as mn
from matnb.balance.partition import cuts_for
from matnb.balance.situation import Profile
from matnb.blocks.formats import Csr, block_from
from matnb.io.source import ROW_ENTRIES
from matnb.lazy.handles import expression_of
from matnb.program.place import SMALL_BYTES, default_layout
from matnb.program.plan import Workers

LENGTHS = 2**20, 2**30
MOST_BYTES = 2**20  # more for axes a thousand times as long; a byte a column would be a gigabyte


def hypersparse(columns: int) -> mn.DistArray:
    """Three rows and five entries."""
    rows, places = [0, 2, 2, 0, 1], [5, columns - 1, columns // 2, columns - 2, 7]
    return mn.asarray(sp.csr_array(sp.coo_array((np.arange(1.0, 6), (rows, places)), shape=(3, columns))))


def assigned(S: mn.DistArray) -> mn.DistArray:
    made = S.copy()
    made[1, 5] = 3.0
    return made


PROGRAMS: dict[str, Callable[[mn.DistArray], mn.DistArray]] = {
    "S @ S.T": lambda S: S @ S.T,
    "S.T": lambda S: S.T,
    "S.T @ S": lambda S: S.T @ S,
    "S @ S.T @ S": lambda S: S @ S.T @ S,
    "S @ x": lambda S: S @ mn.ones(S.shape[1]),
    "S.T @ x": lambda S: S.T @ mn.ones(3),
    "S.T @ X": lambda S: S.T @ mn.ones((3, 2)),
    "x @ S": lambda S: mn.ones(3) @ S,
    "min_plus": lambda S: mn.matmul(S, S.T, semiring="min_plus"),
    "masked": lambda S: mn.matmul(S, S.T, mask=(S @ S.T) > 0),
    "sampled": lambda S: S * (mn.ones((3, 2)) @ mn.ones((2, S.shape[1]))),
    "masked sum": lambda S: ((S @ S.T) * (S @ S.T)).sum(),
    "einsum": lambda S: np.einsum("ij,kj->ik", S, S),
    "vdot": lambda S: np.vdot(S, S),
    "kron": lambda S: np.kron(S, mn.eye(1)),
    "sum": lambda S: S.sum(),
    "sum of columns": lambda S: S.sum(axis=0),
    "sum of rows": lambda S: S.sum(axis=1),
    "sum of rows of S.T": lambda S: S.T.sum(axis=1),
    "max": lambda S: S.max(axis=1),
    "std": lambda S: S.std(axis=1),
    "norm": lambda S: np.linalg.norm(S),
    "argmax": lambda S: np.argmax(S, axis=1),
    "cumsum": lambda S: np.cumsum(S, axis=1),
    "median": lambda S: np.median(S, axis=1),
    "sort": lambda S: np.sort(S, axis=1),
    "slice": lambda S: S[:, 5:-3],
    "every second": lambda S: S[:, ::2],
    "backwards": lambda S: S[:, ::-1],
    "rows of S.T": lambda S: S.T[5:-3],
    "list": lambda S: S[:, [1, 5]],
    "list of S.T": lambda S: S.T[[3, 5]],
    "row": lambda S: S[1],
    "column": lambda S: S[:, 5],
    "element": lambda S: S[1, 5],
    "assigned": assigned,
    "concatenate": lambda S: np.concatenate([S, S], axis=0),
    "halves": lambda S: np.hstack([S[:, : S.shape[1] // 2], S[:, S.shape[1] // 2 :]]),
    "roll": lambda S: np.roll(S, 3, axis=1),
    "pad": lambda S: np.pad(S, 1),
    "repeat": lambda S: np.repeat(S[:, : S.shape[1] // 2], 2, axis=1),
    "reshape": lambda S: S.reshape(S.shape[1], 3),
    "diff": lambda S: np.diff(S, axis=1),
    "diagonal": lambda S: np.diagonal(S),
    "triangle": lambda S: np.tril(S),
    "S + S": lambda S: S + S.conj(),
    "S * x": lambda S: S * mn.ones(S.shape[1]),
    "where": lambda S: np.where(S > 1, S, 0),
    "cos": lambda S: np.cos(S),
    "regrid": lambda S: mn.asarray(S, blocks=(3, 7)) @ mn.ones(S.shape[1]),
    "dense": lambda S: mn.zeros(S.shape[1]) + 1,
    "identity": lambda S: mn.eye(S.shape[1]) @ S.T,
    "diagonal matrix": lambda S: mn.diag(mn.ones(S.shape[1])) @ S.T,
    "random": lambda S: mn.random.default_rng(0).random(S.shape[1]).sum(),
    "R-MAT": lambda S: (
        mn.random.rmat(scale=S.shape[1].bit_length() - 1, edge_factor=1).T @ mn.ones(S.shape[1])
    ),
    "loop": lambda S: mn.iterate(lambda x: S @ (S.T @ x), mn.ones(3), max_iterations=3)[0],
    "loop of long ones": lambda S: mn.iterate(lambda x: S.T @ (S @ x), mn.ones(S.shape[1]), max_iterations=3)[
        0
    ],
}

pytestmark = pytest.mark.session("two workers")


def peak_of(work: Callable[[], object]) -> int:
    """The most bytes that work takes at a time, on top of what there was."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def planned(program: Callable[[mn.DistArray], mn.DistArray], S: mn.DistArray) -> None:
    found = program(S)
    found.explain()
    mn.visualize(found)
    found.facts()


@pytest.mark.parametrize("name", PROGRAMS)
def test_planning(name: str):
    short, long = (peak_of(lambda n=n: planned(PROGRAMS[name], hypersparse(n))) for n in LENGTHS)
    assert long < 2 * short + MOST_BYTES


@given(st.integers(9, 60), st.integers(9, 60), st.integers(2, 9), st.floats(0, 1), st.booleans())
def test_cuts_are_where_the_work_is_equal(
    rows: int, columns: int, count: int, density: float, transposed: bool
):
    matrix = sp.random_array((rows, columns), density=density**3, rng=rows * columns, format="csr")
    block = block_from(matrix)
    if not isinstance(block, Csr):
        return
    array = mn.asarray(matrix)
    node = expression_of(array.T if transposed else array)
    found = default_layout(node, SMALL_BYTES, Workers((0,), count, 0), block).grid.cuts[0]
    counts = np.bincount(matrix.indices if transposed else matrix.tocoo().row, minlength=node.shape[0])
    work = np.append(0, np.cumsum(counts)) + ROW_ENTRIES * np.arange(node.shape[0] + 1)
    wanted = np.searchsorted(work, np.arange(1, count) * (work[-1] / count)).clip(1, node.shape[0] - 1)
    assert found == (0, *np.unique(wanted).tolist(), node.shape[0])


@pytest.mark.parametrize("kind", ["segmented", "uniform"])
def test_balancing(kind: str):
    def cut(length: int) -> None:
        # What workers tell of where entries are, with one row that outweighs all others.
        heavy = 10**9 if kind == "uniform" else 0
        places = np.array([0, 5, length // 2, length // 2 + 1, length])
        profile = Profile(places, np.array([0, 100, 5000, 5000 + heavy, 10**5 + heavy]))
        cuts_for(situation_of(profile, (0, length // 4, length), workers=4))

    short, long = (peak_of(lambda n=n: cut(n)) for n in LENGTHS)
    assert long < 2 * short + MOST_BYTES
