"""A plan that is used again holds no value of the arrays it was made for.

All that NumPy has here, all kinds of sources, fits, loops and branches are asked for twice in one session,
with other values of the same shapes, dtypes and cuts.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from breadth.case import Case
from breadth.test_cases import CASES, Asked, called, compare, computed, given

import matnb as mn
from matnb.expr import client_data
from matnb.ops import creation
from matnb.plan import program_cache
from matnb.plan.program_cache import PlanCache

SEEDS = (1, 2)
BATCH = 24  # calls that are asked for together, in one plan
GIVEN = [case for case in CASES if case.makers]
FIRST = list({case.name: case for case in reversed(GIVEN)}.values())[::-1]
ALL_LARGE = [case for case in CASES if case.large and case.name != "diag"]  # of which no dense copy fits
LARGE = ALL_LARGE[::3]
FEW_LARGE = {case.name: case for case in ALL_LARGE if case.name in ("clip", "std", "cumsum", "roll")}
ONE_WORKER, DEFAULT_CUTS = {"workers": 1, "threads": 64}, {"workers": 3, "threads": 40}
PROCESSES = {"workers": 2, "threads": 1, "processes": True}
Settings = dict[str, Any]
Source = Callable[[np.random.Generator], list[Any]]


def batches(cases: Sequence[Case]) -> list[Sequence[Case]]:
    return [cases[begin : begin + BATCH] for begin in range(0, len(cases), BATCH)]


@pytest.fixture
def all_are_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the smallest arrays take the way of larger ones: else they are constants of what is asked for."""
    monkeypatch.setattr(client_data, "LITERAL_BYTES", -1)


@pytest.fixture
def plan_caches(monkeypatch: pytest.MonkeyPatch) -> list[PlanCache]:
    """The caches of the sessions that start."""
    caches: list[PlanCache] = []
    made = PlanCache.__init__

    def noted(self: PlanCache) -> None:
        made(self)
        caches.append(self)

    monkeypatch.setattr(PlanCache, "__init__", noted)
    return caches


def asked_twice(cases: Sequence[Case], way: str, is_large: bool = False) -> list[str]:
    """Return what differs from NumPy where calls are asked for together, with other values each time."""
    failures: list[str] = []
    for seed in SEEDS:
        asked: list[Asked] = []
        for number, case in enumerate(cases):
            rng, cuts = np.random.default_rng([seed, number]), np.random.default_rng(number)
            arrays = [make(rng) for make in (case.large if is_large else case.makers)]
            if way == "sparse":  # an absent zero has no sign
                arrays = [one + one.dtype.type(0) if one.dtype.kind in "fc" else one for one in arrays]
            mine = [in_small_blocks(one) if is_large else given(one, way, case, cuts) for one in arrays]
            if way == "sparse" and not any(one.sparse for one in mine):
                continue
            try:
                asked += called(case, arrays, mine, f"{case.name}, {way}, seed {seed}")
            except Exception:  # any failure is told, with all the others
                failures.append(f"{case.name}, seed {seed}:\n{traceback.format_exc(limit=-4)}")
        for one, value in zip(asked, computed([one.mine for one in asked]), strict=True):
            try:
                compare(one.mine, one.theirs, one.case, one.text, value)
            except Exception:  # see above
                failures.append(f"{one.text}:\n{traceback.format_exc(limit=-4)}")
    return failures


def in_small_blocks(array: np.ndarray) -> mn.DistArray:
    """Return a handle on an array in blocks of at most 16 KiB, along its longest axis."""
    if not array.ndim or array.nbytes <= 1 << 20:
        return mn.asarray(array)
    axis = int(np.argmax(array.shape))
    parts = min(array.shape[axis], -(-array.nbytes // (16 * 1024)) + 1)
    return mn.asarray(array, blocks=[parts if one == axis else 1 for one in range(array.ndim)])


def check(failures: list[str]) -> None:
    if failures:
        pytest.fail("\n\n".join(failures), pytrace=False)


@pytest.mark.usefixtures("all_are_data")
def test_each_function_twice(plan_caches: list[PlanCache]) -> None:
    with mn.start(workers=1, threads=2):
        check([one for cases in batches(FIRST) for one in asked_twice(cases, "cut")])
    (cache,) = plan_caches
    assert cache.num_reused >= len(batches(FIRST)) // 2


@pytest.mark.usefixtures("all_are_data")
def test_large_arrays_in_small_blocks_twice() -> None:
    with mn.start(**ONE_WORKER):
        check([one for case in FEW_LARGE.values() for one in asked_twice([case], "large", is_large=True)])


@pytest.mark.slow
@pytest.mark.usefixtures("all_are_data")
@pytest.mark.parametrize(
    ("way", "inline_bytes"),
    [("cut", creation.INLINE_BYTES), ("sparse", 0)],
    ids=["cut, along", "sparse, before"],
)
def test_each_call_twice(monkeypatch: pytest.MonkeyPatch, way: str, inline_bytes: int) -> None:
    monkeypatch.setattr(creation, "INLINE_BYTES", inline_bytes)  # a block is sent along with tasks, or before
    with mn.start(**DEFAULT_CUTS if inline_bytes else ONE_WORKER):
        check([one for cases in batches(GIVEN) for one in asked_twice(cases, way)])


@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.usefixtures("all_are_data")
def test_each_function_twice_over_processes() -> None:
    with mn.start(**PROCESSES):
        check([one for cases in batches(FIRST) for one in asked_twice(cases, "cut")])


@pytest.mark.slow
def test_more_large_arrays_in_small_blocks_twice() -> None:
    with mn.start(**ONE_WORKER):
        check([one for case in LARGE for one in asked_twice([case], "large", is_large=True)])


# Other sources than arrays, and what is more than one run.


def large(rng: np.random.Generator, rows: int = 1500, columns: int = 100) -> np.ndarray:
    """Return a matrix of more than a megabyte; in 64 or 120 blocks of rows each has less than 20 KiB."""
    return rng.random((rows, columns)) + 0.5


def of_blocks(rng: np.random.Generator) -> list[Any]:
    values, numbers = large(rng), rng.integers(0, 9, 200_000)
    x, n = mn.asarray(values), mn.asarray(numbers, blocks=([0, 5, 200_000],))
    y = mn.asarray(values[:, 0] > 1, blocks=1500)
    return [x.sum(axis=0), x.mean(), n.sum(), np.cumsum(n), y.sum(), (x.T @ x), x[7], np.argsort(n)[:10]]


def of_sparse(rng: np.random.Generator) -> list[Any]:
    pattern = sp.random_array((400, 500), density=0.4, format="csr", rng=np.random.default_rng(0))
    pattern.data[:] = rng.random(pattern.nnz)
    A, x = mn.asarray(pattern, blocks=8), rng.random(500)
    B = mn.asarray(sp.random_array((400, 500), density=0.4, rng=rng), blocks=(4, 3))
    return [A @ x, A.sum(axis=0), B @ x, (A + A * 2).sum(axis=1), B.T.sum(), A @ rng.random((500, 3))]


def of_tables(rng: np.random.Generator) -> list[Any]:
    n = 150_000
    values = rng.random(n)
    values[rng.random(n) < 0.1] = np.nan
    t = mn.table(
        pd.DataFrame(
            {
                "key": rng.integers(0, 7, n), "v": values, "w": rng.integers(-9, 9, n),
                "when": np.datetime64("2024-01-01") + rng.integers(0, 900, n).astype("m8[D]"),
                "word": rng.choice(["red", "green", "blue"], n),
            }
        )
    )  # fmt: skip
    groups = t.groupby("key")
    return [
        *(groups[name].sum().to_pandas().to_numpy() for name in ("v", "w")),
        t[t["v"] > 0.5]["w"].sum(), (t["word"] == "red").sum(),
        t[t["when"] > np.datetime64("2025-01-01")]["w"].sum(),
        t.groupby("word")["v"].mean().to_pandas()["v"].to_numpy(),
    ]  # fmt: skip


def of_nested(rng: np.random.Generator) -> list[Any]:
    N = mn.nested.unflatten(rng.random(160_000), np.full(1600, 100))
    M = N.with_values(mn.asarray(rng.random(160_000)))
    return [N.sum(), (N * M).max(), N.mean(), (N - N.mean()).sum(), np.cumsum(M.values)]


def of_fits(rng: np.random.Generator) -> list[Any]:
    X, y = large(rng), rng.random(1500)
    fitted = mn.learn.LinearRegression().fit(X, y)
    return [
        fitted.coef_,
        fitted.predict(X)[:9],
        mn.learn.KMeans(3, max_iter=300, random_state=0).fit(X).inertia_,
    ]


def of_more_fits(rng: np.random.Generator) -> list[Any]:
    X, y = large(rng, 1500, 90), rng.random(1500)
    learn = mn.learn
    return [
        learn.Ridge(alpha=2.0).fit(X, y).coef_,
        learn.LogisticRegression(max_iter=1000).fit(X, y > 0.5).coef_,
        learn.PCA(n_components=2).fit(X).explained_variance_,
        learn.TruncatedSVD(n_components=2, random_state=0).fit(X).singular_values_,
        learn.NMF(n_components=2, max_iter=1000, random_state=0).fit(X).components_,
        learn.NearestNeighbors(n_neighbors=2).fit(X).kneighbors(X[:5])[0],
        mn.linalg.svds(mn.asarray(X), k=2).s,
        mn.graph.pagerank(sp.csr_array(rng.random((300, 300))))[0],
    ]


def of_control(rng: np.random.Generator) -> list[Any]:
    X, y, start = large(rng), rng.random(100), rng.random(100)
    x = mn.asarray(X)
    state, _ = mn.iterate(lambda s: x.T @ (x @ s) / 1e5 + y, mn.asarray(start), max_iterations=3)
    rows, _ = mn.iterate(lambda s: s * 0.5 + X[:, 0], mn.asarray(X[:, 1], blocks=1500), max_iterations=3)
    taken = mn.cond(x[0, 0] > 0, lambda: mn.asarray(y) * 2, lambda: mn.asarray(start))
    Z = X.copy()
    for _ in range(3):
        Z = mn.asarray(Z) * 0.5 + X
    return [state, rows, taken, Z.sum(axis=0)]


def of_functions(rng: np.random.Generator) -> list[Any]:
    X, y = large(rng), rng.random(100)
    x = mn.asarray(X)
    small = rng.random((100, 100)) + 100 * np.eye(100)
    found, total = mn.foreach(
        lambda block, w: (block @ w, block.sum()), mn.splits(x), whole=[y], like=X[:, 0], reduce="plus"
    )
    return [
        mn.replicated(np.linalg.solve, small, y), mn.map_blocks(np.cos, x, dtype="f8", pure=True).sum(axis=0),
        mn.reduce_blocks(np.sum, x, combine=np.add), found, total, np.apply_along_axis(np.ptp, 1, x),
        mn.groupby(rng.integers(0, 9, 1500), 9).sum(x[:, 0]),
    ]  # fmt: skip


def of_assignments(rng: np.random.Generator) -> list[Any]:
    X, places = large(rng), rng.permutation(1500)[:400]
    x, z = mn.asarray(X), mn.zeros((1500, 100))
    z[places] = X[:400]
    z[:, 3] = rng.random(1500)
    z[5] = rng.random(100)
    z[mn.asarray(X) > 1.2] = 7.0
    return [
        z.sum(axis=0),
        x[places].sum(axis=0),
        np.take(x, places, axis=0)[0],
        np.where(X > 1, x, X.T.sum())[3],
    ]


ALL_SOURCES = [
    of_blocks,
    of_sparse,
    of_tables,
    of_nested,
    of_fits,
    of_control,
    of_functions,
    of_assignments,
    of_more_fits,
]
SOURCES = ALL_SOURCES[:-1]


def valued(results: Sequence[Any]) -> list[np.ndarray]:
    return [np.asarray(one.compute() if hasattr(one, "compute") else one) for one in results]


@pytest.fixture
def planned_anew(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Make sessions plan each run by itself."""

    def forget() -> None:
        monkeypatch.setattr(PlanCache, "_found", lambda self, form: None)
        monkeypatch.setattr(program_cache, "_control_key", lambda *_: object())

    return forget


def check_sources(
    settings: Settings, planned_anew: Callable[[], None], seeds: Sequence[int], sources: Sequence[Source]
) -> None:
    """Compare the results of all sources one after another with a session that plans each run by itself."""
    again: dict[tuple[Source, int], list[np.ndarray]] = {}
    with mn.start(**settings):
        for make in sources:
            for seed in seeds:
                again[make, seed] = valued(make(np.random.default_rng(seed)))
    planned_anew()
    with mn.start(**settings):
        for make in sources:
            for seed in seeds[1:]:
                anew = valued(make(np.random.default_rng(seed)))
                for place, (found, expected) in enumerate(zip(again[make, seed], anew, strict=True)):
                    message = f"{make.__name__}, seed {seed}, result {place}"
                    np.testing.assert_array_equal(found, expected, err_msg=message)
                    assert not np.array_equal(found, again[make, seeds[0]][place]), f"{message} has no values"


def test_each_kind_of_source_twice(planned_anew: Callable[[], None]) -> None:
    check_sources(ONE_WORKER, planned_anew, SEEDS, SOURCES)


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"workers": 2, "threads": 2},
        {"workers": 2, "threads": 2, "engine": "dask"},
        pytest.param(PROCESSES, marks=pytest.mark.cluster),
    ],
    ids=lambda settings: "-".join(map(str, settings.values())),
)
def test_each_kind_of_source_three_times(settings: Settings, planned_anew: Callable[[], None]) -> None:
    check_sources(settings, planned_anew, (*SEEDS, 3), ALL_SOURCES)
