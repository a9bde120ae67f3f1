"""A family from outside: clamping, intervals, grid files, an estimator of midranges, a count of tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

import matnb as mn
from matnb.extend import (
    Block,
    Dense,
    DistArray,
    Expr,
    ExprGraph,
    File,
    HistorySection,
    Kind,
    Plan,
    PlanWriter,
    Rewritten,
    Run,
    TaskTimed,
    Value,
    WholeFile,
    Workers,
    dense,
    expression_of,
    lowers,
    means,
    on_run,
    reader,
    register_container,
    register_pass,
    rewrite,
    to_numpy,
    wrap,
)

# An operation: a node, what it means, the tasks it becomes, and their kernel.


@dataclass(frozen=True, eq=False, repr=False)
class Clamp(Expr):
    """An array with elements limited to -bound to bound."""

    operand: Expr
    bound: float

    def __post_init__(self) -> None:
        self.settle(self.operand.shape, self.operand.dtype, False, self.operand)


@means(Clamp)
def _(node: Clamp, operands: Sequence[Value]) -> Value:
    """Return the limited elements."""
    return np.clip(dense(operands[0]), -node.bound, node.bound)


CLAMP = Kind("clamp", shown="elementwise")


@lowers(Clamp)
def _(node: Clamp, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks, each where the block is."""
    for block in writer.each_block(node, writer.registers[node.operand].layout, CLAMP, f"to {node.bound}"):
        value = writer.read(block, node.operand, block.region, block.owner)
        block.do(Run(clamped, (node.bound,)), value)


def clamped(values: Sequence[Block], bound: float) -> Block:
    """The kernel."""
    return Dense(np.clip(to_numpy(values[0]), -bound, bound))


def clamp(x: Any, bound: float) -> DistArray:
    """Return x with elements limited to -bound to bound."""
    return wrap(Clamp(expression_of(x), float(bound)))


# A pass: of two limits the smaller one is left.


def join_clamps(graph: ExprGraph) -> Rewritten:
    """Clamp once."""
    if Clamp not in graph.kinds:
        return Rewritten(graph, {})
    return rewrite(graph, _joined)


def _joined(node: Expr) -> Expr | None:
    match node:
        case Clamp(Clamp(inner, one), other):
            return Clamp(inner, min(one, other))
    return None


register_pass("clamps", join_clamps, after="identities", because="before sampling, which looks at chains")


# A container: it goes through loops, branches and cells as tuples do.


@dataclass(frozen=True)
class Interval:
    """Two ends, and their unit."""

    low: Any
    high: Any
    unit: str


register_container(
    Interval,
    lambda one: ((one.low, one.high), one.unit),
    lambda unit, ends: Interval(*ends, unit),
    paths=lambda unit: (".low", ".high"),
)


# A reader of files with rows of numbers below a line with their shape.


@reader("grid", ".grid")
def open_grid(file: File, scale: int = 1) -> WholeFile:
    """Return the source of a grid file; ``scale`` multiplies its numbers."""
    with file.open() as stream:
        words = stream.readline().split()
    if len(words) != 2 or not all(word.isdigit() for word in words):
        raise file.error("the first line has to be two whole numbers: rows and columns", 1)
    return WholeFile("grid", file, (int(words[0]), int(words[1])), np.dtype(float), numbers_of, (scale,))


def numbers_of(stream: IO[bytes], scale: int) -> np.ndarray:
    """Return the numbers of an open grid file."""
    stream.readline()
    return np.loadtxt(stream, ndmin=2) * scale


# An estimator: a class with scikit-learn's conventions, written on arrays.


class Midrange:
    """The middle between the least and the largest value of each column."""

    def fit(self, X: Any, y: Any = None) -> Midrange:
        """Learn the middles, in one run."""
        X = mn.asarray(X)
        self.middle_ = np.asarray((X.min(axis=0) + X.max(axis=0)) / 2)
        return self

    def transform(self, X: Any) -> DistArray:
        """Return X with the middles taken away, clamped to -1 to 1."""
        return clamp(mn.asarray(X) - self.middle_, 1.0)


# A listener: how often clamping ran, told in the history.


@on_run("toy")
class ClampLog:
    """Counts tasks of clamping."""

    def __init__(self, workers: Any) -> None:
        self.num_tasks = 0

    def note(self, plan: Plan, timed: Sequence[TaskTimed]) -> None:
        """Count those of a run."""
        self.num_tasks += sum(task.kind is CLAMP for task in plan.tasks)

    def section(self, measured: bool) -> HistorySection | None:
        """Return one row."""
        if not self.num_tasks:
            return None
        sentence = f"{self.num_tasks} tasks clamped elements"
        return HistorySection(
            "clamping as a table", "count", "of tasks", ("tasks",), ((str(self.num_tasks),),), (sentence,)
        )
