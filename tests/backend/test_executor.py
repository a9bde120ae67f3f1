"""Steps fused give the bits of the same steps run one by one, in fresh memory and in any that is given."""

from __future__ import annotations

import tracemalloc
import weakref
from dataclasses import replace
from itertools import count
from unittest.mock import patch

import numpy as np
import pytest
import scipy.sparse as sp
import strategies
from block_checks import array_of
from hypothesis import given, settings
from hypothesis import strategies as st
from written import written

from matnb.backend.tasks import executor, registers, small_passes
from matnb.backend.tasks.executor import FRESH, PreparedTask, StepMemory, execute, in_turn
from matnb.blocks.formats import Csr, Dense, Empty, csr_block, freeze
from matnb.blocks.kernels.calls import unpacked
from matnb.blocks.kernels.elementwise import chains, tile_loops, tiles
from matnb.blocks.kernels.elementwise.elementwise import Link
from matnb.blocks.kernels.elementwise.one_pass import Share
from matnb.blocks.kernels.elementwise.tiles import Pass
from matnb.blocks.kernels.products import frontier
from matnb.blocks.sums import num_nodes, share_of
from matnb.program import operators as op
from matnb.program.writer import TaskWriter

FLOAT, TRUTH = np.dtype(float), np.dtype(bool)
FUNCTIONS = ("add", "subtract", "multiply", "divide", "maximum", "minimum", "less", "greater_equal", "equal",
             "negative", "absolute", "square", "sqrt", "reciprocal", "where", "logical_and", "logical_not",
             "astype", "exp", "floor_divide")  # fmt: skip


MULTIPLY = op.Multiply("plus_times", FLOAT, False, in_parts=True)


def function_of(name: str, inputs: tuple[np.dtype, ...], dtype: np.dtype) -> op.FusedKernel:
    return op.FusedKernel((Link(name, inputs, dtype, 0, False, tuple(range(len(inputs)))),))


def total_of(along: int | None, start: int, operation: str = "sum") -> op.FusedKernel:
    """Return a block's share of a sum over its first axis."""
    return op.FusedKernel((), (Share(0, operation, (0,), FLOAT, along, start),))


class Pool:
    """Gives poisoned memory, and notes what comes back."""

    def __init__(self) -> None:
        self.out: dict[int, np.ndarray] = {}

    def take(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        array = np.full(shape, np.nan if dtype.kind in "fc" else 1, dtype)
        self.out[id(array)] = array
        return array

    def give(self, array: np.ndarray) -> None:
        del self.out[id(array)]


def poisoned(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    return Pool().take(shape, dtype)


def root_of(array: np.ndarray) -> np.ndarray:
    return array if array.base is None else array.base


def assert_same_bits(found, expected) -> None:
    assert type(found) is type(expected)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    one, other = array_of(found), array_of(expected)
    np.testing.assert_array_equal(one, other)
    if one.dtype.kind == "f":
        known = ~np.isnan(one)  # which NaN it is differs between processors
        np.testing.assert_array_equal(np.signbit(one[known]), np.signbit(other[known]))


def expected_of(writer: TaskWriter, values):
    """Return the value of the steps as they were written, each run on its own."""
    registers = [*values]
    for operator, arguments in writer._steps:
        read = [registers[place if is_input else len(values) + place] for is_input, place in arguments]
        registers.append(execute(operator, read))
    return registers[-1]


@pytest.fixture(autouse=True, scope="module")
def unwarned():
    """Have no warnings of NumPy, as a member has none."""
    with np.errstate(all="ignore"):
        yield


def prepared_of(writer: TaskWriter, share: executor.Sharing | None = in_turn) -> PreparedTask:
    task = writer.task("key", 0, "map")
    return PreparedTask(task.steps, len(task.inputs), share)


def pooled(pool: Pool, out: np.ndarray | None = None) -> StepMemory:
    return StepMemory(pool.take, pool.give, out, True)


def check(writer: TaskWriter, values) -> None:
    """Run a task in fresh memory, and twice in each way: on its own, into given memory, over an input."""
    expected = expected_of(writer, values)
    with patch.object(executor, "_WORTH_COMPILING", 0):
        assert_same_bits(prepared_of(writer, None).run(values, FRESH), expected)
    prepared = prepared_of(writer)
    for _ in range(2):
        pool = Pool()
        found = prepared.run(values, pooled(pool))
        assert_same_bits(found, expected)
        left = [array for array in pool.out.values() if array.nbytes]
        if isinstance(found, Dense):
            left = [array for array in left if array is not root_of(found.values)]
        assert not left, "memory that was not given back"
    if not isinstance(expected, Dense):
        return
    for _ in range(2):
        pool, out = Pool(), poisoned(expected.shape, expected.dtype)
        found = prepared.run(values, pooled(pool, out))
        assert found.values is out
        assert_same_bits(found, expected)
        assert not pool.out
    for place, may in enumerate(prepared.may_overwrite):
        value = values[place]
        if (
            may
            and isinstance(value, Dense)
            and (value.shape, value.dtype) == (expected.shape, expected.dtype)
        ):
            pool, own = Pool(), value.values.copy(order="C")
            given_values = [Dense(own) if number == place else one for number, one in enumerate(values)]
            assert_same_bits(prepared.run(given_values, pooled(pool, own)), expected)
            assert not pool.out


class Writing:
    """Writes a random task: what its registers hold, and of which shape and dtype."""

    def __init__(self, draw: st.DrawFn, length: int) -> None:
        self.draw, self.length = draw, length
        self.writer, self.values, self.keys = TaskWriter(), [], count()
        self.registers: list[tuple[tuple[bool, int], np.dtype, tuple[int, ...]]] = []

    def read(self, block) -> tuple[bool, int]:
        self.values.append(block)
        return self.writer.read(f"input{next(self.keys)}")

    def operand(self) -> None:
        shape = self.draw(st.sampled_from([(self.length,)] * 3 + [(), (1,)]))
        dtype = self.draw(st.sampled_from([FLOAT] * 4 + [TRUTH, np.dtype("int64"), np.dtype("float32")]))
        block = self.draw(strategies.dense_blocks(shape, dtype))
        if self.draw(st.booleans()) and shape == ():
            self.registers.append((self.writer.do(written(block)), dtype, shape))
        else:
            self.registers.append((self.read(block), dtype, shape))

    def product(self, dtype: np.dtype, with_values: bool) -> None:
        width = self.draw(st.integers(1, 5))
        entries = self.draw(st.lists(st.lists(st.integers(0, width - 1), unique=True),
                                     min_size=self.length, max_size=self.length))  # fmt: skip
        columns = np.array([one for row in entries for one in sorted(row)], np.int32)
        pointers = np.cumsum([0, *map(len, entries)]).astype(np.int32)
        stored = np.arange(columns.size).astype(dtype) / 4 if with_values else None
        values = None if stored is None else stored.astype(dtype)
        shape = (self.length, width)
        matrix = freeze(Csr(shape, pointers, columns, values, dtype) if columns.size else Empty(shape, dtype))
        x = self.read(self.draw(strategies.dense_blocks((width,), FLOAT)))
        step = self.writer.do(MULTIPLY, self.read(matrix), x)
        self.registers.append((step, FLOAT, (self.length,)))

    def function(self) -> None:
        name = self.draw(st.sampled_from(FUNCTIONS))
        number = {"where": 3}.get(name, getattr(np, name).nin if hasattr(getattr(np, name, 0), "nin") else 1)
        read = [self.draw(st.sampled_from(self.registers)) for _ in range(number)]
        shape = np.broadcast_shapes(*(one[2] for one in read))
        if name == "where":
            inputs, dtype = (TRUTH, FLOAT, FLOAT), FLOAT
        elif name == "astype":
            inputs, dtype = (read[0][1],), self.draw(st.sampled_from([FLOAT, TRUTH]))
        elif name.startswith("logical"):
            kind = self.draw(st.sampled_from([FLOAT, TRUTH]))
            inputs, dtype = (kind,) * number, TRUTH
        else:
            inputs = (FLOAT,) * number
            dtype = getattr(np, name).resolve_dtypes((*inputs, None))[-1]
        step = self.writer.do(function_of(name, inputs, dtype), *(one[0] for one in read))
        self.registers.append((step, dtype, shape))

    def total(self) -> None:
        _, _, shape = self.registers[-1]
        start = self.draw(st.sampled_from([0, 64, 1, 63, 1000, 1023]))
        along = self.draw(st.sampled_from([0, None]))
        where = start if along == 0 else 0
        last = self.registers[-1][0]
        step = self.writer.do(total_of(along, where), last)
        if along is None:
            keepdims = self.draw(st.booleans())
            self.writer.do(op.Finish("sum", (0,), keepdims, FLOAT, None, ()), step)
        assert along is None or num_nodes(where, where + shape[0]) >= 0


@st.composite
def tasks(draw):
    writing = Writing(draw, draw(strategies.lengths(9)))
    if draw(st.booleans()):
        writing.product(draw(st.sampled_from([FLOAT, np.dtype("float32")])), draw(st.booleans()))
    for _ in range(draw(st.integers(1, 3))):
        writing.operand()
    for _ in range(draw(st.integers(0, 5))):
        writing.function()
    _, dtype, shape = writing.registers[-1]
    if dtype == FLOAT and len(shape) == 1 and draw(st.booleans()):
        writing.total()
    if writing.writer.is_copy:
        writing.function()
    return writing.writer, writing.values


@settings(max_examples=150)
@given(tasks())
def test_random_tasks_give_the_bits_of_their_steps(drawn):
    check(*drawn)


def functions(*names: str) -> list[tuple[str, op.FusedKernel]]:
    """Return functions of doubles."""
    return [(name, function_of(name, (FLOAT,) * getattr(np, name).nin, FLOAT)) for name in names]


def rank_task(ending: op.FusedKernel | None = None) -> TaskWriter:
    """Return a task of A @ x * 0.5 + y, and perhaps the sum."""
    writer = TaskWriter()
    half = writer.do(written(np.array(0.5)))
    product = writer.do(MULTIPLY, writer.read("A"), writer.read("x"))
    (_, multiply), (_, add) = functions("multiply", "add")
    last = writer.do(add, writer.do(multiply, product, half), writer.read("y"))
    if ending is not None:
        writer.do(ending, last)
    return writer


def random_matrix(rows: int, width: int, dtype: np.dtype, with_values: bool, seed: int = 0) -> Csr:
    """Return a matrix with rows of no, some and more than 64 entries."""
    generator = np.random.default_rng(seed)
    counts = generator.choice([0, 1, 3, 5, 70, 200], rows, p=[0.3, 0.3, 0.2, 0.1, 0.05, 0.05])
    picked = [np.sort(generator.choice(width, length, replace=False)) for length in counts]
    columns = np.concatenate([*picked, np.empty(0, np.int64)]).astype(np.int32)
    values = generator.standard_normal(columns.size).astype(dtype) if with_values else None
    return freeze(Csr((rows, width), np.cumsum([0, *counts]).astype(np.int32), columns, values, dtype))


@pytest.fixture
def machine_runs(monkeypatch):
    """Return a list with the length of each part that the tile machine ran."""
    runs: list[int] = []
    run = Pass.run

    def counted(self, begin, end, *arguments):
        runs.append(end - begin)
        run(self, begin, end, *arguments)

    monkeypatch.setattr(Pass, "run", counted)
    return runs


@pytest.mark.parametrize("rows", [1, 2, 63, 64, 1023, 1024, 1025, 3000])
@pytest.mark.parametrize("with_values", [False, True])
@pytest.mark.parametrize("start", [None, 0, 5, 1000])
def test_a_product_its_functions_and_their_sum_run_in_one_pass(rows, with_values, start, machine_runs):
    generator = np.random.default_rng(rows)
    matrix = random_matrix(rows, 300, FLOAT, with_values)
    values = [matrix, *(freeze(Dense(generator.standard_normal(n))) for n in (300, rows))]
    ending = None if start is None else total_of(0, start)
    check(rank_task(ending), values)
    assert set(machine_runs) == {rows}


@pytest.mark.parametrize("with_values", [False, True])
def test_a_task_that_runs_once_is_one_pass_too(with_values, machine_runs, monkeypatch):
    monkeypatch.setattr(executor, "_WORTH_COMPILING", 0)
    values = [random_matrix(100, 300, FLOAT, with_values), Dense(np.ones(300)), Dense(np.ones(100))]
    task = rank_task(total_of(None, 0))
    assert_same_bits(prepared_of(task, None).run(values, FRESH), expected_of(task, values))
    assert machine_runs == [100]


# What is wanted of the elements: themselves, the value of their sum's tree, or the share of a part of it.
PLACES = [(None, 0), (0, 0), (0, 5), (0, 1000)]
ENDINGS = [None, *(total_of(along, start) for along, start in PLACES)]


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(
    "share", [in_turn, lambda run, count: [run(part) for part in reversed(range(count))]]
)
def test_rows_in_parts_give_the_bits_of_the_whole_in_any_order(ending, share, machine_runs, monkeypatch):
    monkeypatch.setattr(executor, "_SHARED_WORK", 2000)
    monkeypatch.setattr(executor, "_WORK_ALONE", 2000)
    matrix, generator = random_matrix(9000, 300, FLOAT, True), np.random.default_rng(1)
    values = [matrix, *(freeze(Dense(generator.standard_normal(n))) for n in (300, 9000))]
    task = rank_task(ending)
    found = prepared_of(task, share).run(values, FRESH)
    assert_same_bits(found, expected_of(task, values))
    assert len(machine_runs) > 4
    assert sum(machine_runs) == 9000


@pytest.mark.parametrize("ending", ENDINGS)
def test_long_vectors_in_parts_give_the_bits_of_the_whole(ending, machine_runs, monkeypatch):
    monkeypatch.setattr(executor, "_PART", 128)
    monkeypatch.setattr(executor, "_SUMMED", 64)
    monkeypatch.setattr(small_passes, "MOST_SMALL", -1)  # so that the machine runs them
    writer = TaskWriter()
    (_, multiply), = functions("multiply")  # fmt: skip
    made = writer.do(multiply, writer.read("x"), writer.read("y"))
    if ending is not None:
        writer.do(ending, made)
    generator = np.random.default_rng(1)
    for length in (0, 1, 64, 200, 1000):
        values = [Dense(generator.standard_normal(length)) for _ in range(2)]
        expected = expected_of(writer, values)
        machine_runs.clear()
        assert_same_bits(prepared_of(writer).run(values, FRESH), expected)
        assert sum(machine_runs) == length
    assert len(machine_runs) > 4


def test_operands_of_other_forms_in_later_runs_give_their_bits():
    task, generator = rank_task(), np.random.default_rng(1)
    prepared = prepared_of(task)
    for rows, dtype, with_values in [(9, FLOAT, True), (70, FLOAT, False), (9, FLOAT, True), (9, "f4", True)]:
        matrix = random_matrix(rows, 300, np.dtype(dtype), with_values, rows)
        values = [matrix, Dense(generator.standard_normal(300)), Dense(generator.standard_normal(rows))]
        assert_same_bits(prepared.run(values, pooled(Pool())), expected_of(task, values))


def test_only_what_the_last_functions_read_in_place_may_be_overwritten():
    assert prepared_of(rank_task()).may_overwrite == (False, False, True)
    assert prepared_of(rank_task(total_of(0, 0))).may_overwrite == (False, False, False)
    writer = TaskWriter()
    part = writer.do(op.Cut(((0, 3),)), writer.read("x"))
    (_, add), = functions("add")  # fmt: skip
    writer.do(add, part, writer.read("x"))
    assert prepared_of(writer).may_overwrite == (False,)


def one_step(operator: op.Operator, *values) -> tuple[TaskWriter, list]:
    """Return a task of one step, and its values."""
    writer = TaskWriter()
    writer.do(operator, *(writer.read(f"input{number}") for number in range(len(values))))
    return writer, list(values)


GRID = Dense(np.arange(12.0).reshape(3, 4) / 7)
FULL, FEW = Dense(np.arange(4.0) / 3), Dense(np.arange(4, dtype="f4") / 3)


@pytest.mark.parametrize(
    ("operator", "values"),
    [
        (op.Accumulate("plus", FLOAT), [FULL, Dense(FULL.values * 1e9), Dense(-FULL.values * 1e9)]),
        (op.Accumulate("plus", np.dtype("f4")), [FEW, FEW, FEW]),
        (op.Accumulate("min", FLOAT), [FULL, Dense(FULL.values[::-1])]),
        (op.Accumulate("plus", FLOAT), [FULL]),
        (op.Join(((0,), (4,)), (8,), FLOAT, False), [FULL, FULL]),
        (op.Join(((4,), (0,)), (9,), FLOAT, False), [FULL, FULL]),
        (op.Join(((0,), (4,)), (8,), FLOAT, False), [FULL, FEW]),
        (op.Join(((0,),), (4,), FLOAT, False), [FULL]),
        (op.Cut(((1, 3), (0, 2))), [GRID]),
        (op.Flip((1, 0)), [GRID]),
        (op.Take(((0, 3, 2), None, 1)), [GRID]),
        (op.Take(((1, 3, 1), (0, 4, 1))), [GRID]),
        (op.Take((2, 3)), [GRID]),
        (op.Stretch((2, 3, 4)), [GRID]),
        (op.Stretch((4,)), [FULL]),
        (op.Multiply("plus_times", FLOAT), [random_matrix(5, 300, FLOAT, True), Dense(np.ones((300, 2)))]),
        (op.Multiply("min_plus", FLOAT), [random_matrix(5, 300, FLOAT, True), Dense(np.arange(300.0))]),
        (op.Multiply("plus_times", FLOAT), [Empty((5, 4), FLOAT), FULL]),
        (
            op.Multiply("plus_times", FLOAT, transposed=True),
            [random_matrix(5, 300, FLOAT, True), Dense(np.arange(10.0).reshape(5, 2) / 7)],
        ),
        (
            op.Multiply("plus_times", np.dtype("f4"), transposed=True),
            [random_matrix(4, 300, np.dtype("f4"), True), FEW],
        ),
        (total_of(None, 0), [GRID]),
        (total_of(None, 0, "max"), [FULL]),
        (op.Finish("sum", (0,), False, FLOAT, None, ()), [Dense(np.ones(1))]),
        (op.Finish("sum", (0,), False, FLOAT, 0, ((0, 3), (3, 4))), [Dense(np.ones(2)), Dense(np.ones(1))]),
    ],
)
def test_single_steps_give_their_bits_in_given_memory(operator, values):
    check(*one_step(operator, *(freeze(value) for value in values)))


def test_functions_the_machine_does_not_know_run_by_tiles(monkeypatch):
    monkeypatch.setattr(chains, "TILE_ELEMENTS", 4)
    writer = TaskWriter()
    (_, exp), (_, add), (_, log) = functions("exp", "add", "log")
    writer.do(log, writer.do(add, writer.do(exp, writer.read("x")), writer.read("y")))
    check(writer, [Dense(np.linspace(-2, 2, 11)), Dense(np.array(3, "i4"))])
    check(writer, [Dense(np.linspace(-2, 2, 12).reshape(3, 4)), Dense(np.linspace(0, 1, 3).reshape(3, 1))])
    check(writer, [Dense(np.linspace(-2, 2, 12).reshape(3, 4).T), Dense(np.array(1.5))])


def test_temporaries_come_from_the_pool_and_views_of_them_keep_them():
    writer = TaskWriter()
    (_, exp), (_, add) = functions("exp", "add")
    whole = writer.do(exp, writer.read("x"))
    part = writer.do(op.Cut(((1, 4),)), whole)
    writer.do(add, part, writer.do(op.Cut(((0, 3),)), whole))
    check(writer, [Dense(np.linspace(-2, 2, 5))])
    writer = TaskWriter()
    writer.do(op.Cut(((1, 4),)), writer.do(exp, writer.read("x")))
    check(writer, [Dense(np.linspace(-2, 2, 5))])


def heat_task(rows: int, columns: int, is_last: bool) -> TaskWriter:
    """Return a step of the heat equation in a block above or below another one, with a rate that is read."""
    writer = TaskWriter()
    (_, add), (_, multiply) = functions("add", "multiply")
    own, other, rate = (writer.read(name) for name in ("own", "other", "rate"))
    factor = writer.do(written(np.full((), 0.75)))

    def flow(begin: int, end: int, after: int, source: int) -> int:
        def window(first: int, column: int, of: int) -> int:
            return writer.do(op.Cut(((first, first + end - begin), (column, column + columns - 2))), of)

        middle = window(begin, 1, own)
        near = writer.do(add, window(begin, 0, own), window(begin, 2, own))
        around = writer.do(add, near, window(after, 1, source))
        scaled = writer.do(multiply, writer.do(multiply, around, rate), factor)
        return writer.do(add, middle, scaled)

    inner = ((0, rows - 1), (1, columns - 1)) if not is_last else ((1, rows), (1, columns - 1))
    border = rows - 1 if not is_last else 0
    within = flow(*inner[0], 1 if not is_last else 0, own)
    beside = flow(border, border + 1, 0 if not is_last else rows - 1, other)
    left, right = (writer.do(op.Cut(((0, rows), (one, one + 1))), own) for one in (0, columns - 1))
    bounds = (
        inner,
        ((border, border + 1), (1, columns - 1)),
        ((0, rows), (0, 1)),
        ((0, rows), (columns - 1, columns)),
    )
    writer.do(op.Fill(bounds, (rows, columns), FLOAT), within, beside, left, right)
    return writer


@pytest.fixture
def rows_run(monkeypatch):
    """Note how many rows of tables are run, with code for every program that is looked at."""
    monkeypatch.setattr(tile_loops, "_WORTH_COMPILING", 0)
    found: list[int] = []
    run = small_passes.run_rows

    def noted(table, begin, end):
        found.append(end - begin)
        run(table, begin, end)

    monkeypatch.setattr(small_passes, "run_rows", noted)
    return found


@pytest.mark.parametrize(("rows", "columns"), [(4, 50), (2, 3), (9, 9), (3, 40_000)])
@pytest.mark.parametrize("is_last", [False, True])
def test_windows_functions_of_them_and_where_they_go_are_rows_of_one_table(
    rows, columns, is_last, rows_run, monkeypatch
):
    monkeypatch.setattr(small_passes, "_PART", 64)
    task, generator = heat_task(rows, columns, is_last), np.random.default_rng(1)
    prepared, memory = prepared_of(task), pooled(Pool())
    blocks = [Dense(generator.standard_normal((rows, columns))) for _ in range(2)]
    blocks[0].values[0, : min(columns, 5)] = [np.nan, np.inf, -0.0, 5e-324, 1e308][: min(columns, 5)]
    for turn in range(9):  # blocks lie elsewhere in each, and the rate is another
        values = [*(Dense(block.values + turn) for block in blocks), Dense(np.array(0.1 * turn))]
        assert_same_bits(prepared.run(values, memory), expected_of(task, values))
    assert sum(rows_run) >= 3 * rows * 7
    check(task, values)


def test_rows_are_looked_at_anew_where_blocks_lie_otherwise(rows_run):
    task, generator = heat_task(4, 50, False), np.random.default_rng(1)
    prepared, memory = prepared_of(task), pooled(Pool())
    own, other = (generator.standard_normal((4, 50)) for _ in range(2))
    for turned in (False, True, False):
        for _ in range(3):
            one = np.asfortranarray(own) if turned else own
            values = [Dense(one), Dense(other), Dense(np.array(0.2))]
            assert_same_bits(prepared.run(values, memory), expected_of(task, values))
    assert len(rows_run) == 2


def test_windows_under_functions_that_no_loop_is_compiled_for_are_no_rows(rows_run):
    writer = TaskWriter()
    (_, exp), (_, add) = functions("exp", "add")
    x = writer.read("x")
    first, second = (writer.do(op.Cut(((one, one + 40),)), x) for one in (0, 1))
    writer.do(add, writer.do(exp, first), second)
    prepared, values = prepared_of(writer), [Dense(np.linspace(0, 1, 41))]
    for _ in range(5):
        assert_same_bits(prepared.run(values, pooled(Pool())), expected_of(writer, values))
    assert not rows_run


def test_a_failing_step_raises_and_is_named():
    task, values = one_step(op.Cut(((0, 1),)), GRID)
    prepared = prepared_of(task)
    with pytest.raises(ValueError, match="one slice"):
        prepared.run(values, pooled(Pool()))
    assert prepared.running == op.Cut(((0, 1),))


def test_a_later_run_allocates_nothing_that_grows():
    length = 1 << 16
    matrix = freeze(
        Csr((length, 1), np.arange(length + 1, dtype=np.int32), np.zeros(length, np.int32), None, FLOAT)
    )
    values = [matrix, Dense(np.ones(1)), Dense(np.ones(length))]
    prepared, out = prepared_of(rank_task()), np.empty(length)
    kept: dict[tuple[int, ...], np.ndarray] = {}

    def take(shape, dtype):  # always the same, as from a pool
        return kept.setdefault(shape, np.empty(shape if shape not in kept else 0, dtype))

    memory = StepMemory(take, lambda array: None, out, True)
    prepared.run(values, memory)
    tracemalloc.start()
    try:
        prepared.run(values, memory)
        assert tracemalloc.get_traced_memory()[1] < 1 << 16
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("is_pooled", [False, True])
def test_parts_of_single_precision_are_added_in_double(is_pooled: bool) -> None:
    one, small = np.float32(1.0), np.float32(2.0**-25)
    parts = [Dense(np.full(5, value, np.float32)) for value in (one, *[small] * 8)]
    memory = FRESH._replace(is_pooled=is_pooled)
    found = execute(op.Accumulate("plus", np.dtype(np.float32)), parts, memory)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found.values, np.float32(1.0 + 8 * 2.0**-25))
    assert np.float32(1.0 + 8 * 2.0**-25) != one  # each of them alone is lost beside it


def test_views_of_one_shape_in_other_orders_are_not_taken_for_each_other() -> None:
    links = (
        Link("multiply", (FLOAT, FLOAT), FLOAT, 0, False, (0, 1)),
        Link("add", (FLOAT, FLOAT), FLOAT, 0, False, (2, 0)),
    )
    step = executor.FusedPass(op.FusedKernel(links), None)
    whole = np.random.default_rng(0).normal(size=(300, 300))
    inner, three = (slice(1, -1), slice(1, -1)), Dense(np.array(3.0))
    for order in (whole, np.asfortranarray(whole), whole[:, ::-1], whole.T, whole[::-1], whole):
        view = order[inner]
        np.testing.assert_array_equal(step.run([Dense(view), three], FRESH).values, view * 3 + view)


@pytest.mark.parametrize("ending", [None, total_of(None, 0), total_of(0, 5)])
def test_arrays_that_a_pool_gives_again_are_read_anew(ending):
    task, generator, pool = rank_task(ending), np.random.default_rng(1), registers.Pool()
    prepared, matrix = prepared_of(task), random_matrix(9000, 300, FLOAT, True)
    x, y = generator.standard_normal(300), pool.take((9000,), FLOAT)
    bound = weakref.ref(y)
    for scale in (1.0, 2.0, 3.0):
        y[:] = scale * generator.standard_normal(9000)
        values = [matrix, Dense(x * scale), Dense(y)]
        memory = StepMemory(pool.take, pool.give, None, True)
        found = prepared.run(values, memory)
        assert_same_bits(found, expected_of(task, values))
        pool.give(found.values)
    del pool, y, values, found, memory
    assert bound() is None, "what was read is not kept alive"


SEVERAL = (
    Link("subtract", (FLOAT, FLOAT), FLOAT, 0, False, (0, 1)),
    Link("multiply", (FLOAT, FLOAT), FLOAT, 0, False, (3, 3)),
    Link("log1p", (FLOAT,), FLOAT, 0, False, (4,)),
    Link("multiply", (FLOAT, FLOAT), FLOAT, 0, False, (5, 2)),
)


@given(
    length=st.integers(1, 3000),
    start=st.integers(0, 500),
    places=st.lists(st.sampled_from([0, 1, 4, 5, 6]), min_size=2, max_size=4, unique=True),
    whole=st.booleans(),
    seed=st.integers(0, 9),
)
def test_several_sums_have_the_bits_of_each_alone_wherever_arrays_lie(length, start, places, whole, seed):
    generator, pool = np.random.default_rng(seed), registers.Pool()
    along, begin = (None, 0) if whole else (0, start)
    shares = tuple(Share(place, "sum", (0,), FLOAT, along, begin) for place in places)
    outputs = tuple(((num_nodes(begin, begin + length) if along == 0 else 1,), FLOAT) for _ in places)
    fused = executor.FusedPass(op.FusedKernel(SEVERAL, shares, outputs=outputs), in_turn)
    for scale in (1.0, 2.0, 3.0):
        x, y = pool.take((length,), FLOAT), generator.standard_normal(length)
        x[:] = generator.standard_normal(length) * scale
        number = np.array(scale)
        made = [x, y, number, x - y, (x - y) ** 2]
        made += [np.log1p(made[4]), np.log1p(made[4]) * number]
        found = fused.run([Dense(x), Dense(y), Dense(number)], StepMemory(pool.take, pool.give, None, True))
        assert fused._sums is not None
        for place, one in zip(places, unpacked(found.values, outputs), strict=True):
            assert one.tobytes() == share_of(made[place], (0,), along, begin).tobytes()


def test_several_sums_that_are_no_vectors_go_another_way():
    pool, rng = registers.Pool(), np.random.default_rng(0)
    memory = StepMemory(pool.take, pool.give, None, True)
    squares = (Link("multiply", (FLOAT, FLOAT), FLOAT, 0, False, (0, 0)),)
    for array in (rng.random((30, 4)), rng.random(60)[::2], np.float32(rng.random(30))):
        shares = tuple(Share(place, "sum", tuple(range(array.ndim)), FLOAT) for place in (0, 1))
        links = squares if array.dtype == FLOAT else (replace(squares[0], input_dtypes=(array.dtype,) * 2),)
        fused = executor.FusedPass(
            op.FusedKernel(links, shares, outputs=(((1,) * array.ndim, FLOAT),) * 2), in_turn
        )
        found = fused.run([Dense(array)], memory)
        expected = [array.sum(dtype=float), (array.astype(float) ** 2).sum()]
        np.testing.assert_allclose(
            [one.item() for one in unpacked(found.values, fused._operator.outputs)], expected, rtol=1e-6
        )


@pytest.mark.parametrize("is_sum", [False, True])
def test_a_pass_over_the_same_arrays_becomes_one_loop_when_that_pays(is_sum, monkeypatch):
    monkeypatch.setattr(tile_loops, "_WORTH_COMPILING", 3 * 9000 / (7 / 2) ** 2)
    tiles.write_tiles.cache_clear()
    tiles._whole_loop.cache_clear()
    links = (
        Link("multiply", (FLOAT, FLOAT), FLOAT, 0, False, (1, 2)),
        Link("add", (FLOAT, FLOAT), FLOAT, 0, False, (0, 3)),
    )
    shares = (Share(4, "sum", (0,), FLOAT),) if is_sum else ()
    fused, pool = executor.FusedPass(op.FusedKernel(links, shares), in_turn), registers.Pool()
    x, y = np.random.default_rng(1).standard_normal((2, 9000))
    memory, are_loops, found = StepMemory(pool.take, pool.give, None, True), [], []
    for scale in (1.0, 2.0, 3.0, 1.0, 2.0):
        value = fused.run([Dense(x), Dense(np.array(scale)), Dense(y)], memory)
        found.append(value.values.tobytes())
        pool.give(value.values)
        are_loops.append(fused._tiles.whole._code is not None)
    assert are_loops == [False, False, True, True, True]
    assert found[3:] == found[:2]
    tiles.write_tiles.cache_clear()
    tiles._whole_loop.cache_clear()


def test_products_of_patterns_inside_a_mask_are_shared_in_parts(monkeypatch):
    monkeypatch.setattr(frontier, "_PART_WORK", 200)
    rng = np.random.default_rng(3)
    pattern = csr_block(sp.csr_array(rng.random((60, 40)) < 0.3, dtype=float), pattern=True)
    right, wanted = Dense(rng.random((40, 4))), Dense(rng.random((60, 4)) < 0.5)
    product = op.MaskedMultiply("plus_times", FLOAT, False, False, None)
    counts = []

    def share(run, count):
        counts.append(count)
        for part in reversed(range(count)):
            run(part)

    writer = TaskWriter()
    writer.do(product, *map(writer.read, range(3)))
    found = prepared_of(writer, share).run([pattern, right, wanted], FRESH)
    expected = execute(product, [pattern, right, wanted])
    np.testing.assert_array_equal(array_of(found), array_of(expected))
    assert counts[0] > 2
