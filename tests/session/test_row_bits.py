"""A heavy row that all threads share gives the bits of one that is summed in one go, on real workers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn
from matnb.blocks.kernels.products import split_rows
from matnb.session.session import Session

CLUSTERS = [
    {"workers": 1, "threads": 2},
    {"workers": 2, "threads": 1},
    {"workers": 4, "threads": 1},
    pytest.param({"workers": 2, "threads": 2, "engine": "dask"}, marks=pytest.mark.slow, id="dask"),
    pytest.param(
        {"workers": 2, "threads": 1, "processes": True},
        marks=[pytest.mark.cluster, pytest.mark.slow],
        id="processes",
    ),
]
N = 4000
DTYPES = ("float64", "float32", "int64", "int32", "bool")
HEAVY = {"first": [0], "middle": [1234], "last": [N - 1], "several": [0, 17, 18, 3000, N - 1]}
Bits = dict[str, bytes]


def matrix(
    rows: list[int], dtype: str = "float64", num_others: int = 1500, width: int = 1900
) -> sp.csr_array:
    """A graph with heavy rows: most of all entries are in them. What is summed cancels in part."""
    rng = np.random.default_rng(len(rows))
    places = [(row, column) for row in rows for column in rng.choice(N, width, replace=False)]
    places += list(zip(*rng.integers(0, N, (2, num_others)), strict=True))
    i, j = np.unique(np.array(places), axis=0).T
    values = rng.normal(size=i.size) * 10.0 ** rng.integers(-6, 7, i.size)
    values = values > 0 if dtype == "bool" else np.where(abs(values) < 1, 3, values)
    return sp.csr_array((values.astype(dtype), (i, j)), shape=(N, N))


def cuts(rows: list[int]) -> list[int]:
    """Each heavy row is a block."""
    return sorted({0, N // 3, N, *rows, *(row + 1 for row in rows)})


def in_a_cell(a: mn.DistArray, dtype: str, all_semirings: bool) -> Bits:
    rng = mn.random.default_rng(3)
    x = (rng.random(N) * 200 - 100).astype(dtype)
    X = (rng.random((N, 3)) * 200 - 100).astype(dtype)
    found = {"vector": a @ x, "matrix": a @ X}
    names = ("min_plus", "min_second", "min_first", "plus_pair", "lor_land", "lor_second")
    for name in names if all_semirings else ():
        if dtype != "bool" or not name.startswith("min"):
            found[name] = mn.matmul(a, x, semiring=name)
            found[f"{name} matrix"] = mn.matmul(a, X, semiring=name)
    if dtype.startswith("float"):
        found["functions"] = np.sqrt(abs(a @ x)) * 0.5 + x
        found["sum"] = ((a @ x) ** 2).sum()
    return {name: np.asarray(one.compute()).tobytes() for name, one in found.items()}


def in_a_loop(a: mn.DistArray, dtype: str) -> Bits:
    start = mn.random.default_rng(4).random(N).astype(dtype)

    def step(state: tuple) -> tuple:
        x, X, least, total = state
        y = a @ x * np.float64(1e-8).astype(dtype) + start
        shorter = np.minimum(least, mn.matmul(a, least, semiring="min_plus"))
        return y, (a @ X) * np.float64(1e-8).astype(dtype) + 1, shorter, total + abs(y - x).sum()

    wide = mn.random.default_rng(5).random((N, 2)).astype(dtype)
    begins = start, wide, mn.where(mn.arange(N) % 7 == 0, start, np.inf).astype(dtype), mn.sum(start) * 0
    state, _ = mn.iterate(step, begins, max_iterations=4)
    return {f"loop {place}": np.asarray(one.compute()).tobytes() for place, one in enumerate(state)}


def kinds_of(session: Session, run: Callable[[], Bits]) -> tuple[Bits, set[str]]:
    """Return what is computed, and the kinds of the tasks that ran."""
    kinds: set[str] = set()
    stop = session.subscribe(lambda event: kinds.update(one.kind for one in getattr(event, "tasks", ())))
    try:
        return run(), kinds
    finally:
        stop()


@pytest.fixture
def small_rows_are_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split_rows, "SHARED_ENTRIES", 300)


@pytest.fixture(scope="module")
def expected() -> dict[tuple[str, str], Bits]:
    """What one thread makes of the uncut matrices."""
    found = {}
    with mn.start(workers=1, threads=1, rebalance="off"):
        for name, rows in HEAVY.items():
            for dtype in DTYPES:
                if name == "several" or dtype == "float64":
                    a = mn.asarray(matrix(rows, dtype), blocks=1)
                    found[name, dtype] = in_a_cell(a, dtype, name == "several")
                    if dtype.startswith("float"):
                        found[name, dtype] |= in_a_loop(a, dtype)
    mn.stop()
    return found


@pytest.mark.parametrize("options", CLUSTERS)
@pytest.mark.usefixtures("small_rows_are_shared")
def test_rows_in_parts_have_the_bits_of_uncut_ones(
    options: dict, expected: dict[tuple[str, str], Bits]
) -> None:
    with mn.start(**options, rebalance="off") as session:
        for (name, dtype), bits in expected.items():
            a = mn.asarray(matrix(HEAVY[name], dtype), blocks=[cuts(HEAVY[name]), None]).persist()
            every = name == "several"
            found, kinds = kinds_of(session, lambda a=a, dtype=dtype, every=every: in_a_cell(a, dtype, every))
            assert ("share" in kinds) == (options.get("threads", 1) > 1), (name, dtype)
            if dtype.startswith("float"):
                looped, kinds = kinds_of(session, lambda a=a, dtype=dtype: in_a_loop(a, dtype))
                assert "share" in kinds, (name, dtype)
                found |= looped
            assert {one for one in bits if bits[one] != found[one]} == set(), (name, dtype)
    mn.stop()


@pytest.mark.usefixtures("small_rows_are_shared")
def test_values_are_those_of_scipy_and_masks_transposes_and_entries_are_as_ever() -> None:
    rows = HEAVY["several"]
    A, x = matrix(rows), np.random.default_rng(6).random(N)
    with mn.start(workers=2, threads=2, rebalance="off"):
        a = mn.asarray(A, blocks=[cuts(rows), None]).persist()
        size = abs(A) @ x
        assert np.all(abs((a @ x).compute() - A @ x) <= 1e-12 * size)
        y, _ = mn.iterate(lambda y: a @ y, mn.asarray(x), max_iterations=1)
        assert np.all(abs(y.compute() - A @ x) <= 1e-12 * size)
        np.testing.assert_allclose((a.T @ x).compute(), A.T @ x, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose((x @ a).compute(), x @ A, rtol=1e-9, atol=1e-9)
        least = mn.matmul(a, x, semiring="min_plus").compute()
        for row in rows:
            first, last = A.indptr[row : row + 2]
            assert least[row] == np.min(A.data[first:last] + x[A.indices[first:last]])
        assert (abs((a * 2.0).to_scipy() - A * 2.0)).nnz == 0
        assert (abs(a.to_scipy() - A)).nnz == 0
        np.testing.assert_allclose(a.sum(axis=1).compute(), A.sum(axis=1), rtol=1e-9)
        np.testing.assert_allclose(((a @ x) * 2.0 - x).sum().compute(), (A @ x * 2 - x).sum(), rtol=1e-9)
    mn.stop()


@pytest.mark.usefixtures("small_rows_are_shared")
def test_a_matrix_that_changes_in_a_loop_is_cut_by_what_it_stores_then() -> None:
    A = matrix([1234])
    others = matrix([1234, 17], num_others=100)
    found = []
    for options, blocks in (
        ({"workers": 1, "threads": 1}, 1),
        ({"workers": 2, "threads": 2}, [cuts([1234]), None]),
    ):
        with mn.start(**options, rebalance="off"):
            a, b = (mn.asarray(one, blocks=blocks).persist() for one in (A, others))
            start = mn.asarray(np.random.default_rng(7).random(N))
            # What is absent takes no part, so that sums of a matrix with more and more entries follow.
            (_, x), _ = mn.iterate(
                lambda s, b=b: (s[0] + b, s[0] @ s[1] * 1e-8), (a, start), max_iterations=3
            )
            found.append(np.asarray(x.compute()).tobytes())
        mn.stop()
    assert found[0] == found[1]


@pytest.mark.parametrize("options", [{"workers": 1, "threads": 2}, {"workers": 2, "threads": 1}])
def test_a_row_of_a_million_entries(options: dict) -> None:
    num_columns, row = 1_200_000, 3
    rng = np.random.default_rng(8)
    columns = np.sort(rng.choice(num_columns, 1_000_000, replace=False))
    others = rng.integers(0, num_columns, (7, 1000))
    i = np.concatenate([np.full(columns.size, row), np.repeat([0, 1, 2, 4, 5, 6, 7], 1000)])
    A = sp.csr_array(
        (rng.normal(size=i.size), (i, np.concatenate([columns, others.ravel()]))), (8, num_columns)
    )
    found = []
    for cluster, blocks in (({"workers": 1, "threads": 1}, 1), (options, [[0, 3, 4, 8], None])):
        with mn.start(**cluster, rebalance="off") as session:
            a = mn.asarray(A, blocks=blocks).persist()
            x = mn.random.default_rng(9).random(num_columns)

            def run(a: mn.DistArray = a, x: mn.DistArray = x) -> Bits:
                y, _ = mn.iterate(lambda y: a @ (x + y.sum() * 1e-9), mn.zeros(8), max_iterations=3)
                return {"y": np.asarray(y.compute()).tobytes(), "z": np.asarray((a @ x).compute()).tobytes()}

            bits, kinds = kinds_of(session, run)
            assert ("share" in kinds) == (cluster is options)
            found.append(bits)
        mn.stop()
    assert found[0] == found[1]
