"""Programs written by hand for members of a gang, and their answers by SciPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from members import results_of
from written import written

from matnb.backend.tasks.executor import StepMemory, execute
from matnb.blocks.formats import Block, Dense, Empty, csr_block, to_numpy
from matnb.blocks.kernels.elementwise.elementwise import Link
from matnb.blocks.kernels.elementwise.one_pass import Share
from matnb.program.kinds import MAP
from matnb.program.operators import Finish, FusedKernel, Join, Multiply, Operator
from matnb.program.plan import Step, Task
from matnb.program.program import Batch, Iterate, Program

FLOAT, COUNT, BOOL = np.dtype(np.float64), np.dtype(np.int64), np.dtype(np.bool_)


class Functional:
    """Runs the steps of a task one by one, with new memory for each value."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.may_overwrite = (False,) * len(task.inputs)
        self.running: Operator | Link | None = None

    def run(self, values: Sequence[Any], memory: StepMemory) -> Any:
        registers = list(values)
        for step in self.task.steps:
            registers.append(execute(step.operator, [registers[place] for place in step.arguments]))
        return registers[-1]


def apply(name: str, *dtypes: np.dtype, dtype: np.dtype = FLOAT) -> FusedKernel:
    inputs = dtypes or (FLOAT, FLOAT)
    return FusedKernel((Link(name, inputs, dtype, 0, False, tuple(range(len(inputs)))),))


def constant(value: float, dtype: np.dtype = FLOAT) -> Operator:
    return written(np.array(value, dtype))


def task(key: str, owner: int, inputs: Sequence[str], *steps: tuple[Operator, tuple[int, ...]]) -> Task:
    return Task(key, tuple(Step(operator, places) for operator, places in steps), tuple(inputs), owner, MAP)


def limit(count: int, owner: int = 0) -> tuple[dict[str, Block], dict[str, int]]:
    return {"limit": Dense(np.array(count))}, {"limit": owner}


class Ranks:
    """The power iteration with restarts, in blocks of rows; checked by SciPy."""

    def __init__(self, size: int, num_blocks: int, members: Sequence[int], seed: int = 1) -> None:
        rng = np.random.default_rng(seed)
        self.matrix = sp.random_array((size, size), density=min(1, 8 / size), rng=rng, format="csr")
        self.first = rng.random(size)
        self.cuts = np.linspace(0, size, num_blocks + 1).astype(int)
        self.owners = [members[number * len(members) // num_blocks] for number in range(num_blocks)]
        self.members = tuple(members)

    def blocks(self, name: str) -> tuple[str, ...]:
        return tuple(f"{name}{number}" for number in range(len(self.owners)))

    def program(self, count: int, epsilon: float | None = None, through: str = "x") -> tuple[Program, dict]:
        blocks, owners = self.blocks, self.owners
        size = self.cuts[-1]
        given, held = limit(count, owners[-1])
        for number, (start, stop) in enumerate(zip(self.cuts, self.cuts[1:], strict=False)):
            part = self.matrix[start:stop]
            given[f"A{number}"] = csr_block(part) if stop > start else Empty((0, size), FLOAT)
            given[f"x0-{number}"] = Dense(self.first[start:stop].copy())
            held |= {f"A{number}": owners[number], f"x0-{number}": owners[number]}
        tasks = []
        if through == "z":  # gathered after a step of the same batch
            half = (constant(0.5), ()), (apply("multiply"), (0, 1))
            tasks += [task(f"z{place}", owner, [f"x{place}"], *half) for place, owner in enumerate(owners)]
        join = Join(tuple((int(start),) for start in self.cuts[:-1]), (int(size),), FLOAT, False)
        for owner in self.members:
            tasks.append(
                task(f"whole-for-{owner}", owner, blocks(through), (join, tuple(range(len(owners)))))
            )
        for number, owner in enumerate(owners):
            inputs = [f"A{number}", f"whole-for-{owner}"]
            steps = (
                (Multiply("plus_times", FLOAT), (0, 1)),
                (constant(0.1), ()),
                (apply("multiply"), (2, 3)),
            )
            more = ((constant(0.05), ()), (apply("add"), (4, 5)))
            tasks.append(task(f"y{number}", owner, inputs, *steps, *more))
        for number, owner in enumerate(owners):
            distance = (apply("subtract"), (0, 1)), (apply("absolute", FLOAT), (2,))
            partial = (FusedKernel((), (Share(0, "sum", (0,), FLOAT, 0, int(self.cuts[number])),)), (3,))
            tasks.append(task(f"share{number}", owner, [f"y{number}", f"x{number}"], *distance, partial))
        ranges = tuple((int(a), int(b)) for a, b in zip(self.cuts, self.cuts[1:], strict=False))
        finish = Finish("sum", (0,), False, FLOAT, 0, ranges)
        less = (
            (constant(-1.0 if epsilon is None else epsilon), ()),
            (apply("less", dtype=BOOL), (len(owners), len(owners) + 1)),
        )
        tasks.append(task("until", owners[0], blocks("share"), (finish, tuple(range(len(owners)))), *less))
        batch = Batch(tuple(tasks), (*blocks("y"), "until"))
        first = tuple(f"x0-{number}" for number in range(len(owners)))
        loop = Iterate(
            (blocks("x"),), (first,), (blocks("y"),), "limit", "until", "iteration", "taken", (batch,)
        )
        named = held | dict(zip(blocks("x"), owners, strict=True))
        everywhere = frozenset({"iteration", "taken"})
        results = (*blocks("x"), "taken")
        return Program(
            (loop,), held, named | {"taken": self.members[0], "iteration": 0}, everywhere, results
        ), given

    def expected(self, count: int, epsilon: float = -1.0, half: bool = False) -> tuple[np.ndarray, int]:
        x = self.first
        for taken in range(count):
            y = (self.matrix @ (x * 0.5 if half else x)) * 0.1 + 0.05
            x, before = y, x
            if abs(x - before).sum() < epsilon:
                return x, taken + 1
        return x, count


def state(found: dict, names: Sequence[str]) -> np.ndarray:
    results = results_of(found)
    return np.concatenate([to_numpy(results[name]) for name in names])
