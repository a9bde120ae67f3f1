"""What explain and pictures say of chosen computations; ``python -m tests.golden_explain`` writes it anew.

Nothing runs and there is no cluster: plans are laid out over two workers that are made up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp

import matnb as mn
from matnb.backend.store import Entry, Store
from matnb.blocks.grid import Grid
from matnb.blocks.layout import Layout
from matnb.config import Config
from matnb.events import TaskTimed
from matnb.expr.nodes import Expr, Load
from matnb.io.files import File
from matnb.io.npy import Npy, NpyHeader
from matnb.lazy.array import DistArray
from matnb.location import Location
from matnb.ops.selecting import Compress
from matnb.pictures.graph import graph_text
from matnb.plan.measured import Measures
from matnb.program.plan import StoredArray
from matnb.session.inspect import Looker
from matnb.session.planning import Planner

FOLDER = Path(__file__).parent / "plan" / "golden"

# Gives one array or several, where it takes a desk with arrays that are there.
Case: TypeAlias = Callable[..., object]


class Desk:
    """Explains and draws without a cluster: over two workers of two threads that are nowhere."""

    def __init__(self) -> None:
        workers = [SimpleNamespace(host="here", threads=2, memory_limit_bytes=10**9) for _ in range(2)]
        cluster = SimpleNamespace(
            workers=workers, alive=lambda: (0, 1), refresh_if_changed=lambda waits=False: None
        )
        self.store, self.measures = Store(), Measures()
        self.planner = Planner(Config(workers=2), cluster, self.store)
        self.remembered: set[Expr] = set()
        self.handles: list[DistArray] = []  # what is there stays while there is one
        self.looker = Looker(self.planner, self.store, self.measures, self.remembered)

    def put(self, array: DistArray) -> None:
        """Make believe that an array was computed: its blocks are on the workers, and it was measured."""
        self.handles.append(array)
        node = array.expression
        planned, optimized = self.planner.plan({"value": node}, {})
        timed = [
            TaskTimed(task.key, task.kind.name, task.owner, 0.001 * (place + 1), 1, 1, 8_000)
            for place, task in enumerate(planned.tasks)
        ]
        made = planned.outputs[optimized[node]]
        self.measures.note(planned.stages, timed, {node: made.keys}, planned.tasks)
        self.store.add(node, Entry(self._counted(node, self._named(made)), ()))

    def lay(self, array: DistArray, layout: Layout) -> None:
        """Make believe that an array is on the workers, in a layout of its own."""
        self.handles.append(array)
        stored = self._named(StoredArray(layout, tuple(range(layout.grid.num_blocks))))
        self.store.add(array.expression, Entry(self._counted(array.expression, stored), ()))

    def _named(self, array: StoredArray) -> StoredArray:
        return replace(array, keys=tuple(f"there-{len(self.handles)}-{key}" for key in array.keys))

    def _counted(self, node: Expr, stored: StoredArray) -> StoredArray:
        sizes = [
            int(np.prod([stop - start for start, stop in region])) for region in stored.layout.grid.regions()
        ]
        if node.sparse:
            sizes = [max(1, size // 1000) for size in sizes]
        each = node.dtype.itemsize + (4 if node.sparse else 0)
        return replace(
            stored,
            block_nnz=tuple(sizes) if node.sparse else (),
            block_bytes=tuple(each * size for size in sizes),
        )


def told(name: str) -> str:
    """Return all that is said of a case: its explanation, and the trees of its picture."""
    desk, case = Desk(), CASES[name]
    value = case(desk) if case.__code__.co_argcount else case()
    values = value if isinstance(value, tuple) else (value,)
    named = {
        "value" if len(values) == 1 else f"value {place}": one.expression for place, one in enumerate(values)
    }
    picture = desk.looker.picture(named)
    parts = [desk.looker.explain(named), "", "drawn:", *([picture.said] if picture.said else [])]
    for name, facts in picture.stages:
        if name in picture.shown:
            parts += ["", f"[{name}]", graph_text(facts)]
    return "\n".join(parts).rstrip() + "\n"


# What cases are made of.


def matrix(rows: int = 1024, columns: int = 128) -> DistArray:
    return mn.asarray(np.arange(rows * columns, dtype=float).reshape(rows, columns) % 7)


def vector(length: int = 200_000) -> DistArray:
    return mn.asarray(np.arange(length, dtype=float) % 11)


def sparse(length: int = 20_000) -> DistArray:
    places = np.arange(8 * length)
    return mn.asarray(
        sp.csr_array(
            (np.ones(8 * length), (places % length, (places * 7919 + places // 3) % length)),
            shape=(length, length),
        )
    )


CASES: dict[str, Case] = {}


def listed(make: Callable[..., object]) -> Callable[..., object]:
    """List a case by the name of its function, which gives one array or several."""
    CASES[make.__name__] = make
    return make


# Expressions, in the order of the families of operations.


@listed
def elementwise() -> object:
    x = vector()
    return np.sqrt(x * x + x) * 2 - abs(x - 0.5) + np.exp(-x)


@listed
def sources() -> object:
    drawn = mn.random.default_rng(5).normal(size=(1024, 128))
    return mn.eye(1024, 128) + drawn + mn.full((1024, 128), 2.5) + matrix() + mn.arange(128.0)


@listed
def read_from_a_file() -> object:
    file = File(Location("/nowhere/values.npy"), 1_048_704, 1, 1, 1, Location("values.npy"))
    header = NpyHeader((1024, 128), np.dtype(float), False, 128)
    values = DistArray(Load(Npy(file, header), "matrix", (1024, 128), np.dtype(float), False))
    return values.T @ values, values.sum(axis=0)


@listed
def dtypes_and_choices() -> object:
    x = matrix()
    return np.where(x > 3, x.astype(np.float32), np.clip(x, 1, 2)).astype(np.int64)


@listed
def literals() -> object:
    return vector() * np.asarray(2.5) + mn.asarray([1.0, 2.0]).sum()


@listed
def several_roots() -> object:
    x = matrix()
    shared = x + 1
    return shared.sum(axis=0), shared @ x.T, shared


@listed
def one_root_by_two_names() -> object:
    x = vector()
    y = (x - x.mean()) * 1 + 0.5
    return y, y


@listed
def standardized() -> object:
    x = matrix()
    return (x - x.mean(axis=0)) / x.std(axis=0)


@listed
def reductions_in_one_pass() -> object:
    x = vector()
    return x.min() + x.max() * (x * x).sum()


@listed
def reductions_along_axes() -> object:
    x = matrix(60, 40).reshape(10, 60, 4)
    return x.any(axis=(0, 2)), x.max(axis=1), np.argmin(x, axis=2), x.prod()


@listed
def dense_product() -> object:
    x = matrix()
    return x.T @ x


@listed
def products_of_a_tall_matrix() -> object:
    x, weights = matrix(10_000, 60), vector(10_000)
    return x.T @ (weights[:, None] * x), x.T @ (1.0 - weights)


@listed
def chain_of_products() -> object:
    x = matrix(400, 300)
    return (x @ x.T) @ (x @ mn.ones(300))


@listed
def sparse_times_vector() -> object:
    A = sparse()
    return (0.85 * (A @ mn.ones(20_000)) + 0.15).sum()


@listed
def sparse_transposed() -> object:
    A = sparse()
    return A.T @ mn.ones(20_000), A.T.sum(axis=0)


@listed
def sparse_times_sparse() -> object:
    A = sparse()
    return A @ A


@listed
def masked_product() -> object:
    A = sparse(2000)
    return mn.matmul(A, A, mask=A), mn.matmul(A, A.T, mask=~(A > 0))


@listed
def other_semiring() -> object:
    A = sparse(2000)
    return mn.matmul(A, mn.ones(2000), semiring="min_plus")


@listed
def sampled_product() -> object:
    A, x = sparse(2000), matrix(2000, 16)
    return (A * (x @ x.T)).sum(axis=1)


@listed
def einsum() -> object:
    x = matrix(200, 100)
    return np.einsum("ij,kj->ik", x, x), np.kron(mn.eye(3), matrix(20, 10))


@listed
def transposed() -> object:
    x = matrix(60, 40).reshape(10, 60, 4)
    return np.transpose(x, (1, 0, 2)), x.T, matrix().T.copy()


@listed
def broadcast() -> object:
    return np.broadcast_to(vector(400), (300, 400)) + matrix(300, 400)


@listed
def sliced() -> object:
    x = matrix()
    return x[1, ::2], x[::-1, None], x[10:900:3, 5]


@listed
def picked() -> object:
    x, places = matrix(), mn.asarray([3, 1, 1, 900])
    return x[places], x[:, mn.asarray([2, 5])], np.take_along_axis(x, np.argsort(x, axis=1), axis=1)


@listed
def picked_by_several() -> object:
    x, rows = matrix(), mn.asarray([3, 1, 900])
    return x[rows, rows % 7]


@listed
def read_at_a_scalar() -> object:
    x = matrix()
    return x[x.argmax() % 1000], x[:, x.sum().astype(np.int64) % 100]


@listed
def put() -> object:
    x, y, z = matrix(), matrix() + 1, matrix() + 2
    x[3:500] = 1.0
    y[mn.asarray([3, 1, 900])] = vector(128)
    z[z.argmax() % 1000, 2:9] = 5.0
    return x, y, z


@listed
def put_where() -> object:
    x = matrix()
    x[x > 3] = 0.0
    return x


@listed
def selected() -> object:
    x = matrix()
    chosen = Compress(x.expression, (vector(1024) > 5).expression, (0, 512, 1024), (0, 300, 700))
    return DistArray(chosen)


@listed
def scattered() -> object:
    return mn.scatter_reduce(vector(1000), mn.arange(1000) % 7, 7, monoid="plus")


@listed
def functions_of_a_user() -> object:
    values, vectors = mn.replicated(np.linalg.eigh, matrix(30, 30) + matrix(30, 30).T)
    x = matrix()
    return values, vectors, mn.map_blocks(np.cbrt, x, shape=x.shape, dtype=x.dtype, pure=True)


@listed
def parts_of_two_arrays() -> object:
    def ranked(a: sp.csr_array, old: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, float]:
        new = a @ x
        return new, np.abs(new - old).max()

    A, x, p = sparse(), vector(20_000), mn.zeros(20_000)
    return mn.foreach(ranked, mn.splits(A, n=3), mn.splits(p), whole=x, out=[p], reduce="max")


@listed
def joined() -> object:
    x = matrix()
    return np.concatenate([x, x * 2]), np.stack([x, x + 1]), np.pad(x, 2)


@listed
def joined_sparse() -> object:
    A = sparse(2000)
    return np.concatenate([A[:, ::2], A[:, ::2]])


@listed
def reshaped() -> object:
    x = matrix()
    return x.reshape(128, 1024), np.repeat(vector(1000), 3), x.ravel() + 1


@listed
def diagonals() -> object:
    x = matrix(400, 400)
    return np.diag(x), np.diag(vector(400)), np.tril(x), np.trace(x)


@listed
def scanned() -> object:
    x = matrix()
    return np.cumsum(x, axis=0), np.diff(vector()), np.cumprod(vector())


@listed
def sorted_values() -> object:
    x = vector()
    return np.sort(x), np.argsort(x), np.sort(matrix(), axis=1)


@listed
def quantiles() -> object:
    x = vector()
    return np.median(x), np.quantile(matrix(), [0.1, 0.9], axis=0)


@listed
def searched() -> object:
    x = vector()
    return np.searchsorted(mn.arange(10.0), x), np.interp(x, [-1, 0, 1], [3.0, 1.0, 2.0]), np.isin(x, [1, 2])


@listed
def histogram() -> object:
    x = vector()
    return np.histogram(x, bins=10)[0], np.histogram(x, bins=3, range=(0, 11))[0]


@listed
def grouped() -> object:
    groups = mn.groupby(mn.arange(1000) % 7, num_groups=7)
    return groups.sum(vector(1000)), groups.mean(vector(1000))


@listed
def windows() -> object:
    x = vector()
    return np.convolve(x, np.ones(5), mode="valid"), np.lib.stride_tricks.sliding_window_view(x, 9).mean(
        axis=1
    )


@listed
def folded() -> object:
    return mn.reduce(matrix(), "min", axis=1), np.maximum.reduce(vector())


@listed
def in_other_blocks() -> object:
    x = matrix()
    return mn.asarray(x, blocks=[3, 2]) + 1, x + mn.asarray(x, blocks=[8, 1])


@listed
def long_chain() -> object:
    x = vector(40)
    for number in range(300):
        x = x + float(number)
    return x


# With arrays that are there.


@listed
def stored_below(desk: Desk) -> object:
    x = matrix()
    y = x + 1
    desk.put(y)
    return (y * 2).sum(), y @ y.T


@listed
def stored_elsewhere(desk: Desk) -> object:
    x, y = matrix(), matrix() + 1
    desk.lay(x, Layout(Grid(((0, 100, 1024), (0, 128))), (1, 0)))
    desk.lay(y, Layout(Grid(((0, 512, 1024), (0, 64, 128))), (0, 1, 1, 0)))
    return x + y, x.T @ y


@listed
def stored_already(desk: Desk) -> object:
    x = matrix()
    y = (x - x.mean(axis=0)) @ mn.ones(128)
    desk.put(y)
    return y


@listed
def remembered_value(desk: Desk) -> object:
    x = vector()
    total = (x * 2).sum()
    desk.remembered.add(total.expression)
    return x / total, total


# Loops and branches.


@listed
def loop_of_a_product() -> object:
    A, share = sparse(), vector(20_000)
    x, n = mn.iterate(
        lambda x: 0.85 * (A @ (x * share)) + 0.15,
        mn.ones(20_000),
        until=lambda old, new: abs(new - old).sum() < 1e-9,
        max_iterations=30,
    )
    return x * 2, n


@listed
def loop_without_a_bound() -> object:
    many = tuple(vector(20) * place for place in range(9))
    (first, *_), _ = mn.iterate(lambda state: state[::-1], many, until=lambda old, new: new[0].sum() > 1)
    return first


@listed
def loop_in_a_loop() -> object:
    def step(state: tuple[DistArray, DistArray]) -> tuple[DistArray, DistArray]:
        x, k = state
        y, _ = mn.iterate(lambda y: y * 2 + x, x, max_iterations=k)
        return mn.cond(y.sum() > 3, lambda: y / 5, lambda: y), k

    (x, _), _ = mn.iterate(step, (vector(200), mn.asarray(3)), max_iterations=4)
    return x


@listed
def loop_that_collects() -> object:
    rng = mn.random.default_rng(3)
    x, _, kept = mn.iterate(lambda x: x + rng.random(4), mn.zeros(4), max_iterations=5, collect=lambda x: x)
    return x, kept


@listed
def loop_over_places() -> object:
    def step(state: tuple[DistArray, DistArray]) -> tuple[DistArray, DistArray]:
        row, table = state
        k = mn.iteration()
        row = row + table[k]
        table[k] = row
        return row, table

    (row, table), _ = mn.iterate(step, (mn.zeros(128), matrix()), max_iterations=4)
    return row, table


@listed
def loop_of_a_sparse_state() -> object:
    a = sparse(2000)
    reach, _ = mn.iterate(lambda r: (r @ a) * 0.5 + a, a, max_iterations=3)
    return reach


@listed
def loop_with_functions_of_a_user() -> object:
    labels = mn.asarray([0, 1, 1, 4, 2])
    x, _ = mn.iterate(
        lambda x: mn.scatter_reduce(mn.replicated(np.sort, x) + mn.iteration(), labels, 5, monoid="plus"),
        mn.arange(5.0),
        max_iterations=3,
    )
    return x


@listed
def loop_after_a_loop(desk: Desk) -> object:
    x, _ = mn.iterate(lambda x: x / 2 + 1, vector(), max_iterations=5)
    y, _ = mn.iterate(lambda y: y + x, x, max_iterations=2)
    return y.sum()


@listed
def loop_over_stored_arrays(desk: Desk) -> object:
    A, share = sparse(), vector(20_000)
    desk.put(A)
    desk.lay(share, Layout(Grid(((0, 3000, 20_000),)), (1, 0)))
    x, _ = mn.iterate(lambda x: A @ (x * share) + (x * share).sum(), mn.ones(20_000), max_iterations=3)
    return x


@listed
def branch() -> object:
    x = vector()
    low, high = mn.cond(x.sum() > 100, lambda: (x, x * 2), lambda: (x - 1, x * 0.0))
    return low + 1, high


@listed
def branch_in_a_loop() -> object:
    def step(x: DistArray) -> DistArray:
        even = mn.iteration() % 2 == 0
        return mn.cond(even, lambda: x + 1, lambda: mn.cond(x.sum() > 8, lambda: x * 0.5, lambda: x * 3))

    x, _ = mn.iterate(step, vector(), max_iterations=7)
    return x


def main() -> None:
    """Write the text of every case."""
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.txt"):
        path.unlink()
    for name in CASES:
        (FOLDER / f"{name}.txt").write_text(told(name), encoding="utf-8")
    print(f"{len(CASES)} texts in {FOLDER}")


if __name__ == "__main__":
    main()
