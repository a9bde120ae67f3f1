"""``mn.splits`` and ``mn.foreach``: the same loop over parts in plain NumPy, on any engine, and refusals."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from fixed_policy import NUM_ROWS, A, B, Stubborn, looped, sessions, small
from foreach_als import als
from foreach_kmeans import kmeans
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plan_runner import run_by_hand, whole
from strategies import layouts

import matnb as mn
from matnb.blocks.formats import csr_block
from matnb.blocks.grid import regular_cuts
from matnb.blocks.kernels.rows.solves import segment_solves
from matnb.blocks.kernels.shaping.shaping import cut
from matnb.errors import DTypeError, KernelError, LoopBodyError, OptionError, ShapeError
from matnb.events import RunFinished
from matnb.expr.nodes import Expr
from matnb.learn.recommend.alternating import AlternatingSquares
from matnb.ops.interpret import interpret
from matnb.ops.reference import block_of
from matnb.plan.lower import lower
from matnb.plan.reproducibility import depends_on_layout
from matnb.program.check import check_plan
from matnb.program.plan import StoredArray, Workers
from matnb.program.writer import Slots

__all__ = ["sessions", "small"]
WORKERS = Workers((0, 1, 2), 1, 0)
RNG = np.random.default_rng(0)
N, M = 83, 7
X, Y, W = RNG.standard_normal((N, M)), RNG.standard_normal(N), RNG.standard_normal(M)
S = sp.csr_array(sp.random_array((N, M), density=0.3, format="csr", rng=1))


ON_EACH = pytest.mark.session(
    "interpreter", "two threads", "dask: three workers", "gang: two workers", "processes"
)


@pytest.fixture
def two() -> Iterator[mn.session.Session]:
    with mn.start(workers=2, threads=1) as session:
        yield session
    mn.stop()


def regions(count: int, length: int = N) -> list[slice]:
    return [slice(*pair) for pair in pairwise(regular_cuts(length, count))]


def neighbors_first(values: Sequence[Any], combine: Callable[[Any, Any], Any] = np.add) -> Any:
    """Return values combined in pairs, then what they gave, in plain NumPy."""
    found = list(values)
    while len(found) > 1:
        pairs = [found[place : place + 2] for place in range(0, len(found), 2)]
        found = [reduce(combine, pair) for pair in pairs]
    return found[0]


def scores(s: sp.csr_array, y: np.ndarray, w: np.ndarray, *, part: Any) -> tuple[Any, ...]:
    """Give a dense vector, a sparse block, a sum of floats, the least, and what was seen of the part."""
    made = s @ w - y
    seen = np.zeros(64, np.int64)
    seen[part.index] = part.count + part.region[0].start
    return made, s * 2.0, (made**2).sum(), made.min(), seen


@ON_EACH
def test_any_engine_gives_the_bits_of_the_loop_in_numpy() -> None:
    for count in (1, 2, 5, 40):
        s, y, made = mn.asarray(S), mn.asarray(Y), mn.zeros(N)
        results = mn.foreach(
            scores, mn.splits(s, y, n=count), whole=[W], out=[made], like=S, reduce=["plus", "min", "plus"]
        )
        assert results[0] is made
        plain = [S[rows] @ W - Y[rows] for rows in regions(count)]
        found, twice, total, least, seen = mn.compute(*results)
        np.testing.assert_array_equal(found, np.concatenate(plain))
        assert isinstance(results[1].to_scipy(), sp.csr_array)
        assert (results[1].to_scipy() != 2 * S).nnz == 0
        assert twice.shape == S.shape
        assert total == neighbors_first([(one**2).sum() for one in plain])
        assert least == min(one.min() for one in plain)
        assert seen[:count].tolist() == [count + rows.start for rows in regions(count)]


@ON_EACH
def test_edges() -> None:
    nothing, x, s = mn.zeros((0, 3)), mn.asarray(X), mn.asarray(S)
    made, total = mn.foreach(lambda a: (a * 2, a.sum()), mn.splits(nothing, n=3), like=nothing)
    assert made.compute().shape == (0, 3)
    assert float(total) == 0
    assert len(mn.splits(nothing, n=3)) == 1
    assert len(mn.splits(x, n=100)) == N  # no part without a row
    bits = mn.asarray(Y > 0)
    some, every, count = mn.foreach(
        lambda b: (b.any(), b.all(), b[:1]), mn.splits(bits, n=4), reduce=["lor", "land", "plus"]
    )
    assert (some.dtype, every.dtype, count.dtype) == (bool, bool, np.int64)
    assert (bool(some), bool(every)) == ((Y > 0).any(), (Y > 0).all())
    assert count.compute() == sum(Y[rows][0] > 0 for rows in regions(4))
    turns = mn.foreach(lambda x: x.sum(axis=0) * 1j, mn.splits(x, n=4))
    np.testing.assert_array_equal(
        turns.compute(), neighbors_first([X[rows].sum(axis=0) for rows in regions(4)]) * 1j
    )
    product = mn.foreach(lambda x, s: x @ s.T, mn.splits(x, n=3), whole=s, like=np.empty((N, N)))
    np.testing.assert_array_equal(product.compute(), np.concatenate([X[rows] @ S.T for rows in regions(3)]))


@ON_EACH
def test_blocks_are_read_only() -> None:
    def writes(x: np.ndarray) -> np.ndarray:
        x[0] = 1
        return x

    x, s = mn.asarray(X), mn.asarray(S)
    for given_whole in ((), (x,)):
        called = writes if not given_whole else (lambda s, x: writes(x))
        parts = mn.splits(x if not given_whole else s, n=4)
        with pytest.raises(KernelError, match=r"raised ValueError on part \d of 4.*read-only"):
            mn.foreach(called, parts, whole=given_whole, like=x, reduce=()).compute()


@ON_EACH
def test_columns_and_blocks_are_parts_too() -> None:
    for count in (1, 3, M):
        x, s = mn.asarray(X), mn.asarray(S)
        turned = mn.foreach(
            lambda x, s: x[::-1] + s.sum(axis=0), mn.splits(x, by="columns", n=count),
            mn.splits(s, by="columns"), like=np.empty(X.shape),
        )  # fmt: skip
        np.testing.assert_array_equal(turned.compute(), X[::-1] + S.sum(axis=0))
        scaled = mn.foreach(lambda s: s * 3.0, mn.splits(s, by="columns", n=count), like=s)
        assert (scaled.to_scipy() != 3 * S).nnz == 0
    grid = mn.splits(x, by="blocks", n=(4, 3))
    flipped, number = mn.foreach(lambda x: (x[::-1, ::-1], 1), grid, like=x)
    expected = X.copy()
    for rows in regions(4):
        for columns in regions(3, M):
            expected[rows, columns] = X[rows, columns][::-1, ::-1]
    np.testing.assert_array_equal(flipped.compute(), expected)
    assert int(number) == 12


@ON_EACH
def test_it_works_on_the_state_of_a_loop() -> None:
    links = sp.csr_array(sp.random_array((N, N), density=0.2, format="csr", rng=2))
    a, z = mn.asarray(links), mn.asarray(Y)

    def step(state: tuple[Any, Any]) -> tuple[Any, Any]:
        x, _ = state
        new = mn.zeros(N)
        new, change = mn.foreach(
            lambda a, z, old, x: (new := a @ x / 30 + z, np.abs(new - old).max()),
            mn.splits(a, n=5), mn.splits(z, x), whole=x, out=[new], reduce="max",
        )  # fmt: skip
        return new, change

    found, count = mn.iterate(
        step, (mn.zeros(N), mn.asarray(np.inf)), until=lambda old, new: new[1] < 1e-6, max_iterations=60
    )
    x, rounds, change = np.zeros(N), 0, np.inf
    while change >= 1e-6:
        new = np.concatenate([links[rows] @ x / 30 + Y[rows] for rows in regions(5)])
        change, x, rounds = np.abs(new - x).max(), new, rounds + 1
    assert int(count) == rounds
    np.testing.assert_array_equal(found[0].compute(), x)
    assert float(found[1]) == change


@ON_EACH
def test_a_function_that_is_not_pure_is_called_in_each_iteration() -> None:
    x = mn.asarray(X)

    def step(state: tuple[Any, Any]) -> tuple[Any, Any]:
        changes, last = state
        # Nothing that it reads changes.
        drawn = mn.foreach(
            lambda x, scale: scale * np.random.default_rng().random(),
            mn.splits(x, n=3),
            whole=2.0,
            pure=False,
        )
        return changes + (drawn != last), drawn

    (changes, last), _ = mn.iterate(step, (mn.asarray(0), mn.asarray(-1.0)), max_iterations=7)
    assert int(changes) == 7
    assert 0 < float(last) < 6


def run_cut(root: Expr, sources: dict[Expr, Any], cuts: dict[Expr, Any]) -> np.ndarray:
    """Run the plan of an expression over arrays that lie as they are cut."""
    slots, stored, blocks = Slots(), {}, {}
    for number, (node, values) in enumerate(sources.items()):
        names = tuple(f"{number}-{place}" for place in range(cuts[node].grid.num_blocks))
        stored[node] = slots.of(StoredArray(cuts[node], names))
        for slot, region in zip(stored[node].keys, cuts[node].grid.regions(), strict=True):
            blocks[slot] = cut(block_of(values), tuple(slice(*part) for part in region))
    plan = lower([root], (), stored, WORKERS, slots)
    check_plan(plan)
    return whole(root, plan.outputs[root], run_by_hand(plan, blocks))


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(drawn=st.data(), count=st.integers(1, 40))
def test_fixed_parts_give_the_same_bits_however_arrays_lie(drawn: st.DataObject, count: int) -> None:
    s, y, w = mn.asarray(S), mn.asarray(Y), mn.asarray(W)
    results = mn.foreach(
        scores, mn.splits(s, y, n=count), whole=w, like=(Y, S), reduce=["plus", "min", "plus"]
    )
    sources = {s.expression: S, y.expression: Y, w.expression: W}
    cuts = {one: drawn.draw(layouts(one.shape)) for one in sources}
    for one in results:
        expected = interpret(one.expression)
        made = run_cut(one.expression, sources, cuts)
        if sp.issparse(expected):
            made, expected = np.asarray(made), expected.toarray()
        np.testing.assert_array_equal(made, expected)


@settings(max_examples=30)
@given(drawn=st.data())
def test_without_a_number_parts_are_those_of_the_first_array(drawn: st.DataObject) -> None:
    x, y = mn.asarray(X), mn.asarray(Y)
    seen = mn.foreach(lambda x, y, *, part: np.full(len(y), part.index), mn.splits(x), mn.splits(y), like=Y)
    cuts = {one: drawn.draw(layouts(one.shape)) for one in (x.expression, y.expression)}
    made = run_cut(seen.expression, {x.expression: X, y.expression: Y}, cuts)
    first = cuts[x.expression].grid
    if first.counts[1] == 1:
        expected = np.concatenate([np.full(b - a, k) for k, (a, b) in enumerate(pairwise(first.cuts[0]))])
        np.testing.assert_array_equal(made, expected)
    else:
        assert (np.diff(made) >= 0).all()


def test_bits_follow_the_cuts_unless_the_parts_are_fixed(two: mn.session.Session) -> None:
    x = mn.asarray(RNG.random((6000, 30)))
    for n, follows in ((None, True), (4, False)):
        made, total = mn.foreach(
            lambda x: (x @ x.T[:, :1], x.sum()), mn.splits(x, n=n), like=np.empty((6000, 1))
        )
        for one in (made, total):
            plan, _ = two._runner.planner.plan({"value": one.expression}, {})
            assert depends_on_layout(plan.stages, plan.tasks) == follows


def test_a_call_runs_where_the_first_block_is_and_gathers_nothing(two: mn.session.Session) -> None:
    moved: list[int] = []
    two.subscribe(lambda event: moved.append(event.moved_bytes) if isinstance(event, RunFinished) else None)
    a = mn.asarray(RNG.random((4000, 50)), blocks=4).persist()
    b = mn.asarray(RNG.random(4000), blocks=4).persist()
    del moved[:]
    made = mn.foreach(lambda a, b: a * b[:, None], mn.splits(a), mn.splits(b), like=a).persist()
    assert moved == [0]
    assert made.layout == a.layout
    assert [part.owner for part in mn.splits(a)] == list(a.layout.owners)


def test_a_function_is_called_once_a_part_for_all_its_results(
    two: mn.session.Session, tmp_path: Path
) -> None:
    calls = str(tmp_path / "calls")

    def counted(x: np.ndarray, *, part: Any) -> tuple[np.ndarray, float]:
        with open(calls, "a") as file:
            file.write(f"{part.count} ")
        return x + 1, x.sum()

    x = mn.asarray(X).persist()
    made, total = mn.foreach(counted, mn.splits(x, n=3), like=x)
    assert float(total) == neighbors_first([X[rows].sum() for rows in regions(3)])
    np.testing.assert_array_equal(made.compute(), X + 1)
    assert Path(calls).read_text().split().count("3") == 3


def test_an_old_version_stays_with_who_read_it(two: mn.session.Session) -> None:
    p = mn.asarray(X)
    before = p + 0
    q = p.copy()
    mn.foreach(lambda p: p * 2, mn.splits(p, n=3), out=[p])
    mn.foreach(lambda p: p + 1, mn.splits(p, n=3), out=[p])
    np.testing.assert_array_equal(p.compute(), X * 2 + 1)
    np.testing.assert_array_equal(before.compute(), X)
    np.testing.assert_array_equal(q.compute(), X)


def test_parts_follow_a_repartition_between_two_calls(two: mn.session.Session) -> None:
    a = mn.asarray(S, blocks=3).persist()
    parts = mn.splits(a)
    ranks = [mn.foreach(lambda a, w: a @ w, parts, whole=W, like=Y)]
    ranks[0].persist()
    mn.repartition(a, cuts=[0, 10, 70, 71, N])
    assert [part.region[0] for part in parts] == [slice(0, 10), slice(10, 70), slice(70, 71), slice(71, N)]
    ranks.append(mn.foreach(lambda a, w: 1 * (a @ w), parts, whole=W, like=Y))
    assert ranks[1].persist().layout.grid.cuts == ((0, 10, 70, 71, N),)
    np.testing.assert_array_equal(ranks[0].compute(), S @ W)
    np.testing.assert_array_equal(ranks[1].compute(), S @ W)


def test_looking_at_parts_computes_nothing(two: mn.session.Session) -> None:
    runs: list[RunFinished] = []
    two.subscribe(lambda event: runs.append(event) if isinstance(event, RunFinished) else None)
    lazy = mn.asarray(RNG.random((6000, 30))) * 2 + 1
    parts = mn.splits(lazy)
    assert len(parts) == 2
    assert parts[1] == list(parts)[-1]
    assert parts[1].region == (slice(3000, 6000), slice(0, 30))
    assert [part.owner for part in parts] == [0, 1]
    assert "2 parts" in repr(parts)
    assert "[3000:6000, 0:30]" in repr(parts)
    assert "worker 1" in parts._repr_html_()
    assert not runs
    cut = mn.splits(lazy.persist())
    assert [part.owner for part in cut] == list(lazy.layout.owners)
    iterated = mn.iterate(lambda x: x + 1, lazy, max_iterations=2)[0]
    assert len(mn.splits(iterated)) == 2


def failing(x: np.ndarray, *, part: Any) -> np.ndarray:
    if part.index == 2:
        raise ZeroDivisionError("no inverse")
    return x


def test_a_part_that_fails_is_named_with_its_worker_and_line(two: mn.session.Session) -> None:
    x = mn.asarray(X, blocks=4)
    with pytest.raises(
        KernelError, match=r"failing raised ZeroDivisionError on part 2 of 4, \[41:62, 0:7\]"
    ) as caught:
        mn.foreach(failing, mn.splits(x, n=4), like=x).compute()
    told = " ".join(caught.value.__notes__)
    assert "on worker 1" in told
    assert 'raise ZeroDivisionError("no inverse")' in told

    def writes(x: np.ndarray) -> np.ndarray:
        x[0] = 1
        return x

    with pytest.raises(OptionError, match=r"writes raised ValueError on ones.*read-only: change a copy"):
        mn.foreach(writes, mn.splits(x, n=4), like=x)
    with pytest.raises(
        KernelError, match=r"writes raised ValueError on part \d of 4.*read-only: change a copy"
    ):
        mn.foreach(writes, mn.splits(x, n=4), like=x, reduce=()).compute()
    s = mn.asarray(S)

    def sparse_writes(s: sp.csr_array) -> sp.csr_array:
        s.data[:] = 0
        return s

    with pytest.raises(
        KernelError, match=r"sparse_writes raised ValueError on part \d of 4.*read-only: change a copy"
    ):
        mn.foreach(sparse_writes, mn.splits(s, n=4), like=s, reduce=()).compute()


def test_what_a_function_must_give_is_checked_before_and_while_it_runs(two: mn.session.Session) -> None:
    x, parts = mn.asarray(X), mn.splits(mn.asarray(X), n=4)
    with pytest.raises(ShapeError, match=r"gave a block of shape \(1, 7\) float64 for ones.*\(2, 7\)"):
        mn.foreach(lambda x: x[:1], parts, out=[x])
    with pytest.raises(DTypeError, match="gave a NoneType"):
        mn.foreach(lambda x: None, parts, out=[x])
    with pytest.raises(ShapeError, match="gave 1 result, and out= and like= name 2 arrays"):
        mn.foreach(lambda x: x, parts, out=[x], like=X)
    with pytest.raises(
        ShapeError, match=r"for part 1 of 4, \[20:41, 0:7\] where one of shape \(21, 7\) belongs"
    ):
        mn.foreach(lambda x, *, part: x[int(part.index == 1) :], parts, like=X, reduce=()).compute()
    with pytest.raises(ShapeError, match=r"gave 2 results for part \d of 4.*where 1 belongs"):
        mn.foreach(lambda x: (x, 1), parts, like=X, reduce=()).compute()
    with pytest.raises(DTypeError, match=r"on part \d of 4.* gave a NoneType"):
        mn.foreach(lambda x: None, parts, like=X, reduce=()).compute()
    with pytest.raises(DTypeError, match=r"dtype complex128 for part \d of 4"):
        mn.foreach(lambda x: x * 1j, parts, like=X, reduce=()).compute()


def test_arguments_are_refused_in_a_sentence() -> None:
    x, y = mn.asarray(X), mn.asarray(Y)
    with pytest.raises(OptionError, match="give the parts of an array"):
        mn.foreach(abs)
    with pytest.raises(OptionError, match=r"DistArray is not split: give mn.splits"):
        mn.foreach(abs, x)
    with pytest.raises(OptionError, match=r"unequal numbers of parts, \[2\] and \[3\]"):
        mn.foreach(max, mn.splits(x, n=2), mn.splits(y, n=3), like=x)
    with pytest.raises(OptionError, match="names one array twice"):
        mn.foreach(abs, mn.splits(x), out=[x, x])
    with pytest.raises(OptionError, match="ndarray in out= is not a DistArray"):
        mn.foreach(abs, mn.splits(x), out=[X])  # type: ignore[list-item]
    with pytest.raises(OptionError, match="give a list"):
        mn.foreach(abs, mn.splits(x), out=x)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="no monoid 'sum'"):
        mn.foreach(abs, mn.splits(x), out=[x], reduce="sum")
    with pytest.raises(OptionError, match="reduce= names 2 monoids for the 1 values"):
        mn.foreach(np.sum, mn.splits(x), reduce=["plus", "min"])
    for wrong in (None, 3, np.add, [np.add], [["plus"]]):
        with pytest.raises(OptionError, match=r"foreach\(reduce=.*give the name of a monoid"):
            mn.foreach(np.sum, mn.splits(x), reduce=wrong)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="gives nothing"):
        mn.foreach(np.sum, mn.splits(x), reduce=())
    with pytest.raises(OptionError, match="3 is not a function"):
        mn.foreach(3, mn.splits(x))  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="axes that are split must be equally long"):
        mn.foreach(max, mn.splits(x), mn.splits(mn.ones(5)), like=x)
    with pytest.raises(ShapeError, match="axes that are split must be equally long"):
        mn.foreach(abs, mn.splits(x), like=np.ones(5), reduce=())
    with pytest.raises(ShapeError, match="do not have equally many rows"):
        mn.splits(x, mn.ones(5))
    with pytest.raises(ShapeError, match="a number has no parts"):
        mn.splits(x.sum())
    with pytest.raises(ShapeError, match="give 2 numbers, of parts along each axis that is split by blocks"):
        mn.splits(x, by="blocks", n=2)
    with pytest.raises(OptionError, match="did you mean 'rows'"):
        mn.splits(x, by="row")
    with pytest.raises(OptionError, match="whole numbers from 1"):
        mn.splits(x, n=0)
    with pytest.raises(OptionError, match="is not a DistArray"):
        mn.splits(X)  # type: ignore[arg-type]

    def looks(x: Any) -> Any:
        return x * len(mn.splits(x))

    with pytest.raises(LoopBodyError, match="has no parts to look at yet"):
        mn.iterate(looks, x, max_iterations=2)


def test_a_function_that_is_not_pure_is_called_again(two: mn.session.Session) -> None:
    x = mn.asarray(X)

    def draws() -> np.ndarray:
        made = mn.foreach(
            lambda x: np.random.default_rng().random(len(x)), mn.splits(x, n=2), like=Y, pure=False
        )
        assert isinstance(made, mn.DistArray)
        return np.asarray(made.compute())

    assert (draws() != draws()).any()
    drawn = mn.foreach(lambda x: x, mn.splits(x, n=2), like=x, pure=False)
    assert isinstance(drawn, mn.DistArray)
    assert drawn.expression.is_made_anew  # by which neither memo nor files remember it


# Algorithms in both dialects.


def kernel_factors(ratings: sp.csr_array, others: np.ndarray) -> np.ndarray:
    """Return the factors of rows by the sums of ``mn.learn.ALS`` on workers, in their order."""
    return segment_solves(csr_block(ratings), np.ascontiguousarray(others), 0.1, True)


def rated() -> sp.csr_array:
    found = sp.random_array((90, 40), density=0.2, format="csr", rng=5)
    found.data = np.ceil(found.data * 10) / 2
    return sp.csr_array(found)


@ON_EACH
def test_als_by_foreach_is_that_of_learn(kind: str) -> None:
    ratings, k = mn.asarray(rated(), blocks=3), 4
    learned = mn.learn.ALS(factors=k, regularization=0.1, iterations=3, random_state=1).fit(ratings)
    start = AlternatingSquares(0.1, None, "cholesky").start(ratings, k, 1)
    U, M = als(ratings, start.T, 3)
    np.testing.assert_allclose(U.T.compute(), learned.user_factors_.compute(), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(M.T.compute(), learned.item_factors_.compute(), rtol=1e-8, atol=1e-10)
    if kind != "interpreter":  # whose learner has other sums
        U, M = als(ratings, start.T, 3, kernel_factors)
        np.testing.assert_array_equal(U.T.compute(), learned.user_factors_.compute())
        np.testing.assert_array_equal(M.T.compute(), learned.item_factors_.compute())


@ON_EACH
def test_kmeans_by_foreach_has_the_bits_of_learn() -> None:
    rng = np.random.default_rng(2)
    points = rng.normal(size=(600, 3)) + 4 * rng.integers(0, 4, 600)[:, None]
    points = np.round(points * 256) / 256  # so that sums are exact in any order
    X, start = mn.asarray(points, blocks=5), points[:4]
    learned = mn.learn.KMeans(4, init=start, n_init=1, tol=0).fit(X)
    centers, labels, count = kmeans(X, mn.asarray(start))
    np.testing.assert_array_equal(centers.compute(), learned.cluster_centers_.compute())
    np.testing.assert_array_equal(labels.compute(), learned.labels_.compute())
    assert int(count) == learned.n_iter_


# Presto's hazards: a function that is tied to its parts, and a balancer that would cut them anew.


def first_row(block: Any, *, part: Any) -> Any:
    made = block.tolil()
    made[0] = part.index + 1.0
    return made.tocsr()


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("engine", ["gang", "dask"])
def test_an_unsafe_function_keeps_the_cuts_of_its_arrays_while_a_result_lives(
    sessions: Callable[..., mn.session.Session], engine: str
) -> None:
    session = sessions(rebalance=Stubborn({0: (0, 7, 90, NUM_ROWS)}), engine=engine)
    a = mn.asarray(A, blocks=4).persist()
    cuts = a.layout.grid.cuts
    marked = mn.foreach(first_row, mn.splits(a), like=a, safe=False)
    expected = A.tolil()
    for number, (start, _) in enumerate(pairwise(cuts[0])):
        expected[start] = number + 1.0
    for number, one in enumerate((a, marked, a)):
        looped(one, 20 + number)
        assert a.layout.grid.cuts == cuts
        assert one.layout.grid.cuts == cuts
        assert (marked.compute() != expected.tocsr()).nnz == 0
    reasons = {one.decision.reason for one in session.history}
    assert reasons == {"the cuts stay: first_row is tied to its parts, as foreach(safe=False) says"}
    assert "first_row is tied to its parts" in repr(mn.history())
    refusal = r"repartition: .*first_row is tied to its parts.*release the results of that function first"
    for name, parts in (("a", 3), ("marked", 3), ("a", (2, 2))):
        with pytest.raises(OptionError, match=refusal):
            mn.repartition({"a": a, "marked": marked}[name], parts)
    mn.align(a, mn.asarray(B).persist())  # the other one moves
    assert a.layout.grid.cuts == cuts
    del marked, one
    looped(a, 30)
    assert a.layout.grid.cuts[0] == (0, 7, 90, NUM_ROWS)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("first", [0, 3])
def test_an_unsafe_function_in_a_loop_keeps_the_cuts_of_what_it_reads(
    sessions: Callable[..., mn.session.Session], first: int
) -> None:
    session = sessions(rebalance=Stubborn({first: (0, 7, 90, NUM_ROWS)}))
    a = mn.asarray(A, blocks=4).persist()
    cuts = a.layout.grid.cuts

    def step(x: mn.DistArray) -> Any:
        made = mn.foreach(
            lambda a, x, *, part: a @ x / 100 + part.index, mn.splits(a), whole=x, like=x, safe=False
        )
        assert isinstance(made, mn.DistArray)
        return made

    found = mn.iterate(step, mn.asarray(B), max_iterations=200)[0].compute()
    assert a.layout.grid.cuts == cuts
    x = B
    for _ in range(200):
        x = np.concatenate([A[i:j] @ x / 100 + k for k, (i, j) in enumerate(pairwise(cuts[0]))])
    np.testing.assert_array_equal(found, x)
    # Before the loop the policy is asked in any case, while it runs where there was time to.
    assert first or any("is tied to its parts" in one.decision.reason for one in session.history)


@pytest.mark.usefixtures("small")
def test_what_is_aligned_with_an_array_does_not_move_it_from_its_parts(
    sessions: Callable[..., mn.session.Session],
) -> None:
    sessions(rebalance="off")
    a, b = mn.asarray(A, blocks=4), mn.asarray(B, blocks=3).persist()
    mn.align(a, b)
    numbered = mn.foreach(lambda b, *, part: np.full(len(b), part.index), mn.splits(b), like=B, safe=False)
    a.persist()
    looped(a, 5)
    assert b.layout.grid.counts == (3,)
    del numbered
    looped(a, 6)
    assert b.layout.grid.cuts[0] == a.layout.grid.cuts[0]


def test_an_unsafe_function_has_its_parts_though_its_array_is_made_again(two: mn.session.Session) -> None:
    x = mn.asarray(X, blocks=5)
    numbered = mn.foreach(lambda x, *, part: np.full(len(x), part.index), mn.splits(x), like=Y, safe=False)
    cut = x.expression.operands[0]
    other = mn.DistArray(cut)
    del x
    assert numbered.expression.call.cuts == ((0, 16, 33, 49, 66, N),)
    expected = np.concatenate([np.full(rows.stop - rows.start, k) for k, rows in enumerate(regions(5))])
    np.testing.assert_array_equal(numbered.compute(), expected)
    np.testing.assert_array_equal(other.compute(), X)


@pytest.mark.slow
@pytest.mark.cluster
def test_a_worker_killed_in_the_middle_changes_no_bits(tmp_path: Path) -> None:
    flag = tmp_path / "killed"
    flag.touch()

    def dies(x: np.ndarray, *, part: Any) -> tuple[np.ndarray, float]:
        if part.index == 3 and part.count == 5 and flag.exists():
            flag.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return x * 2, x.sum()

    with mn.start(workers=2, threads=1, processes=True):
        x = mn.asarray(X)
        made, total = mn.foreach(dies, mn.splits(x, n=5), like=x)
        found, value = mn.compute(made, total)
        assert not flag.exists()
        np.testing.assert_array_equal(found, X * 2)
        assert value == neighbors_first([X[rows].sum() for rows in regions(5)])
    mn.stop()
