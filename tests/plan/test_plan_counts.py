"""Counters: operations recorded, merged and run, arrays made, results remembered, tiles of chains."""

from __future__ import annotations

import numpy as np
import pytest

import matnb as mn
from matnb.blocks.kernels.elementwise.chains import chain_into
from matnb.blocks.kernels.elementwise.elementwise import Link
from matnb.events import RunFinished
from matnb.expr.nodes import MatMul
from matnb.magics.cell import compile_cell, run_cell
from matnb.plan.lower import lower
from matnb.plan.plan_counts import counts_of, functions_of, num_temporaries, num_tiles, reductions_of
from matnb.program.kinds import MAP
from matnb.program.operators import FusedKernel, Make
from matnb.program.plan import Plan, Step, Task, Workers

TWO = Workers((0, 1), 1, 0)
N = 300
FLOAT = np.dtype(float)
ADD = Link("add", (FLOAT, FLOAT), FLOAT, 0, False, (0, 1))

pytestmark = pytest.mark.session("two workers")


@pytest.fixture
def namespace() -> dict[str, object]:
    """Return the names that cells find: arrays and a generator that no test had before."""
    given = np.random.default_rng()
    return {
        "mn": mn,
        "np": np,
        "rng": mn.random.default_rng(int(given.integers(2**40))),
        "A": mn.asarray(given.random((N, N)), blocks=2),
        "x": mn.asarray(given.random(N), blocks=2),
        "L": mn.asarray(np.tril(given.random((N, N)) < 0.1, -1).astype(float), format="sparse"),
    }


def ran(namespace: dict[str, object], source: str) -> RunFinished:
    """Run a cell and return what it counted."""
    done = run_cell(compile_cell(source, "<cell>"), namespace)
    return mn.current_session().run(done.program.roots, done.record).finished


def plan_of(*arrays: mn.DistArray) -> Plan:
    return lower([one.expression for one in arrays], (), {}, TWO)


@pytest.mark.parametrize(
    ("source", "counts"),
    [
        ("B = (A * A) + (A * A)", (3, 1, 2, 1)),
        # The paper's example: two random inputs and the result; nobody reads the third.
        (
            "A = rng.integers(0, 9, 4000)\nB = rng.integers(0, 9, 4000)\nC = rng.integers(0, 9, 4000)\n"
            "C = B + A\nA = C + A\nA",
            (5, 0, 4, 3),
        ),
        ("y = A @ x", (1, 0, 1, 1)),
        ("y = A @ x + 1", (2, 0, 2, 2)),  # the product is whole for a while
        ("s = (A * 2).sum()", (2, 0, 2, 0)),
        ("m = A.max(axis=0)", (1, 0, 1, 1)),
        ("y = A @ x\nz = (y + 1) * y\ny, z", (3, 0, 3, 2)),
        ("7", (0, 0, 0, 0)),
    ],
)
def test_a_cell_counts(namespace: dict[str, object], source: str, counts: tuple[int, ...]) -> None:
    told = ran(namespace, source)
    assert (told.num_operations, told.num_merged, told.num_run, told.num_arrays) == counts
    assert told.num_remembered == 0


def test_a_masked_product_builds_no_other(namespace: dict[str, object]) -> None:
    L = namespace["L"]
    total = ((L @ L) * L).sum()
    plan = plan_of(total)
    assert not any(isinstance(node, MatMul) for stage in plan.stages for node in stage.inside)
    told = ran(namespace, "t = ((L @ L) * L).sum()")
    assert (told.num_operations, told.num_run) == (3, 2)
    assert told.num_arrays <= 1


def test_what_a_cell_found_is_remembered(namespace: dict[str, object]) -> None:
    first = "low, high, mean, spread, low2, low3 = x.min(), x.max(), x.mean(), x.std(), x.min(), x.min()"
    told = ran(namespace, first)
    assert (told.num_operations, told.num_merged, told.num_remembered) == (6, 2, 0)
    assert told.num_tasks > 0
    again = ran(
        namespace, first.replace("=", "= 0, 0, 0, 0, 0, 0\n_ =", 1).replace("_ =", "a, b, c, d, e, f =")
    )
    assert (again.num_tasks, again.num_run, again.num_arrays) == (0, 0, 0)
    assert again.num_remembered >= 4
    ran(namespace, "y = A @ x")
    told = ran(namespace, "z = y + 1\nw = y.sum()")
    assert (told.num_run, told.num_arrays, told.num_remembered) == (2, 1, 1)


def test_what_a_loop_of_the_cell_gave_is_not_remembered(namespace: dict[str, object]) -> None:
    told = ran(namespace, "y, _ = mn.iterate(lambda s: s / 2, x, max_iterations=3)\nz = y + 1")
    assert told.num_remembered == 0
    assert told.num_run == 1


def test_parts_of_a_product_are_arrays_too() -> None:
    wide = mn.asarray(np.ones((200, 3000)), blocks=(1, 3))
    plan = plan_of(wide @ mn.asarray(np.ones((3000, 200)), blocks=(3, 1)))
    assert sum(task.kind.name == "product" for task in plan.tasks) == 3
    assert counts_of(plan).num_arrays == 1 + 3


def test_temporaries_go_with_their_last_reader() -> None:
    make, apply = Make(None, ()), FusedKernel((ADD,))  # type: ignore[arg-type]

    def task(*arguments: tuple[int, ...]) -> Task:
        steps = tuple(Step(apply if ones else make, ones) for ones in arguments)
        return Task("k", steps, ("a",), 0, MAP)

    assert num_temporaries(task((0, 0))) == 0
    assert num_temporaries(task((), (1, 0))) == 1
    assert num_temporaries(task((), (), (1, 2))) == 2
    assert num_temporaries(task((), (1, 0), (2, 0), (3, 0))) == 2  # one is read while the next is made


def chain_of(array: mn.DistArray) -> tuple[Task, Step]:
    plan = plan_of(array)
    task = next(
        one for one in plan.tasks if any(isinstance(step.operator, FusedKernel) for step in one.steps)
    )
    return task, next(step for step in task.steps if isinstance(step.operator, FusedKernel))


def chains() -> list[mn.DistArray]:
    # Of single precision, which NumPy's functions go through.
    x, y = (mn.asarray(np.full(4000, seed, np.float32)) for seed in (1, 2))
    long = x
    for number in range(12):
        long = np.sqrt(long * x) + float(number)
    z = x * y
    return [
        (x * x) + (x * x),
        np.sqrt(x * x + y) * 2 - abs(x - 0.5) / (y + 1) + np.exp(-x),
        long,
        (z + x) * (z + y) * z,
        np.where(x > y, x * 2, y * 3),
    ]


@pytest.mark.parametrize("place", range(5))
def test_tiles_are_as_many_as_the_kernel_takes(place: int) -> None:
    _, step = chain_of(chains()[place])
    links = step.operator.links
    arrays = [np.ones(4000, np.float32)] * len(step.arguments)
    taken = []

    def take(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        taken.append(dtype)
        return np.empty(shape, dtype)

    out = np.empty(4000, links[-1].dtype)
    assert chain_into(links, arrays, out, take, lambda memory: None)
    assert num_tiles(links, len(step.arguments), ends_apart=True) == len(taken)


def test_functions_share_buffers() -> None:
    task, _ = chain_of(chains()[2])
    assert functions_of(task) == (36, 3)


def test_reductions_of_one_array_are_counted() -> None:
    x = mn.asarray(np.ones(40_000), blocks=2)
    plan = plan_of(x.min(), x.max(), x.sum())
    assert max(map(reductions_of, plan.tasks)) == 3
