"""One task's steps, analyzed once and run many times in memory that is used again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any, TypeAlias

import numpy as np

from matnb.backend.operators_into import Give, Runner, Take, links_of, runner_of
from matnb.blocks.formats import Dense, NumericArray
from matnb.blocks.kernels.compiled import given
from matnb.blocks.kernels.reductions import accumulator_dtype
from matnb.blocks.kernels.row_parts import RowParts, product_fits
from matnb.blocks.kernels.tile_loops import TILE
from matnb.blocks.kernels.tiles import FLOAT, Tiles, TileSum, form_of, write_tiles
from matnb.blocks.sums import num_nodes
from matnb.program import operators as op
from matnb.program.fusing import taken_apart
from matnb.program.plan import Step, Task

Share: TypeAlias = Callable[
    [Callable[[int], None], int], None
]  # runs parts, by their numbers, and returns then
_PART, _SUMMED = 2**16, 2**15  # elements that are taken at a time, for a value and for a sum


def in_turn(run: Callable[[int], None], count: int) -> None:
    """Run parts of a task, by their numbers, one after the other."""
    for part in range(count):
        run(part)


def prepare(task: Task, share: Share = in_turn) -> PooledTask:
    """Return what runs the steps of a task again and again; ``share`` has other threads run parts of them."""
    return PooledTask(task, share)


class PooledTask:
    """The steps of one task; one thread runs it at a time.

    Attributes
    ----------
    may_overwrite
        For each input whether its memory may be given as ``out``, if it has the result's shape and dtype and
        nobody else reads it afterwards.
    running
        The operator that was running when the last run raised; of several that run together the last one.
    """

    def __init__(self, task: Task, share: Share) -> None:
        count = len(task.inputs)
        steps = taken_apart(task.steps, count)  # which run together where the tile machine knows them
        groups = _groups(steps, count)
        self._sequence = _Sequence([_unit(group, steps, count, share) for group in groups], len(steps), count)
        self.may_overwrite = _may_overwrite(groups[-1] if groups else (), steps, count)

    @property
    def running(self) -> op.Operator | None:
        """See above."""
        return self._sequence.running

    def run(self, values: Sequence[Any], take: Take, give: Give, out: NumericArray | None) -> Any:
        """Return the value of the last step, with the bits that ``worker.run`` gives.

        Parameters
        ----------
        values
            Of the task's inputs.
        take
            Gives an array in C order, of a shape and dtype, with any elements, that nobody else writes.
        give
            Gets those of them back that are not part of the result.
        out
            Contiguous memory for a Dense result of this shape and dtype, or None. Without it the result lies
            in an array from ``take``, or is small, or is a view of one of the values.
        """
        return self._sequence.run(values, take, give, out)


@dataclass(frozen=True)
class _Unit:
    """Steps that run as one; ``operator`` is the last one's."""

    operator: op.Operator
    arguments: tuple[int, ...]
    place: int
    run: Runner


class _Sequence:
    """Units one after the other, each value going with its last reader."""

    def __init__(self, units: Sequence[_Unit], num_steps: int, num_inputs: int) -> None:
        self.running: op.Operator | None = None
        last = {place: unit.place for unit in units for place in unit.arguments}
        self._room: list[Any] = [None] * num_steps
        self._last = num_inputs + num_steps - 1
        todo = []
        for unit in units:
            if isinstance(unit.operator, op.Constant):
                self._room[unit.place - num_inputs] = unit.operator.block
                continue
            ended = [p for p in set(unit.arguments) if p >= num_inputs and last[p] == unit.place]
            todo.append((unit, tuple(ended)))
        self._units = tuple(todo)

    def run(self, values: Sequence[Any], take: Take, give: Give, out: NumericArray | None) -> Any:
        registers = [*values, *self._room]
        if len(self._units) == 1:
            ((unit, _),) = self._units
            self.running = unit.operator
            return _settled(unit.run([registers[place] for place in unit.arguments], take, give, out), out)
        taken: dict[int, NumericArray] = {}

        def take_value(shape: tuple[int, ...], dtype: np.dtype) -> NumericArray:
            array = take(shape, dtype)
            taken[id(_root(array))] = array
            return array

        def give_value(array: NumericArray) -> None:
            taken.pop(id(_root(array)), None)
            give(array)

        for unit, ended in self._units:
            self.running = unit.operator
            is_last = unit.place == self._last
            operands = [registers[place] for place in unit.arguments]
            registers[unit.place] = unit.run(operands, take_value, give_value, out if is_last else None)
            if taken and ended:
                gone = [registers[place] for place in ended]
                for place in ended:
                    registers[place] = None
                _give_back(gone, registers, taken, give)
        value = _settled(registers[self._last], out)
        if out is not None and isinstance(value, Dense):  # of which nothing that was taken is a part
            for array in taken.values():
                give(array)
        return value


def _settled(value: Any, out: NumericArray | None) -> Any:
    # what is Dense lies where it is wanted
    if out is None or not isinstance(value, Dense) or value.values is out:
        return value
    if not _within(value.values, out):
        np.copyto(out, value.values)
    return Dense(out)


def _give_back(
    gone: Sequence[Any], registers: Sequence[Any], taken: dict[int, NumericArray], give: Give
) -> None:
    # Views of what was taken may still be read.
    held = {id(_root(one.values)) for one in registers if isinstance(one, Dense)}
    for one in gone:
        if isinstance(one, Dense):
            root = id(_root(one.values))
            if root in taken and root not in held:
                give(taken.pop(root))


def _root(array: NumericArray) -> object:
    root: object = array
    while isinstance(root, np.ndarray) and root.base is not None:
        root = root.base
    return root


def _within(values: NumericArray, out: NumericArray) -> bool:
    # whether the values are the elements of ``out``, seen through a view
    return (
        _root(values) is _root(out)
        and values.__array_interface__["data"] == out.__array_interface__["data"]
        and values.strides == out.strides
    )


def _groups(steps: Sequence[Step], num_inputs: int) -> list[tuple[int, ...]]:
    # Steps that may run together: a product, the functions of it, and their sum. Each but the last is read by
    # the next one alone.
    readers: dict[int, set[int]] = {}
    for number, step in enumerate(steps):
        for place in step.arguments:
            readers.setdefault(place - num_inputs, set()).add(number)
    for number in reversed(range(len(steps) - 1)):
        if not readers.get(number):
            for found in readers.values():
                found.discard(number)
    groups: list[tuple[int, ...]] = []
    grouped: set[int] = set()
    for number in reversed(range(len(steps))):
        if number in grouped or (groups and not readers.get(number)):  # nobody reads it
            continue
        group = [number]
        while True:
            before = [
                place - num_inputs
                for place in dict.fromkeys(steps[group[0]].arguments)
                if place >= num_inputs
                and readers[place - num_inputs] == {group[0]}
                and _joins(steps[place - num_inputs].operator, steps[group[0]].operator)
            ]
            if len(before) != 1:
                break
            group.insert(0, before[0])
        groups.append(tuple(group))
        grouped.update(group)
    return sorted(groups, key=lambda group: group[-1])


def _joins(operator: op.Operator, reader: op.Operator) -> bool:
    match operator, reader:
        case op.Multiply(), op.Apply() | op.Chain():
            return _multiplies_floats(operator)
        case op.Multiply(), op.Partial():
            return _multiplies_floats(operator) and _sums_floats(reader)
        case ((op.Apply() | op.Chain()), op.Partial()):
            return _sums_floats(reader)
        case op.Partial(), op.Finish(_, _, _, dtype, None, _):
            return _sums_floats(operator) and dtype == FLOAT
    return False


def _multiplies_floats(operator: op.Operator) -> bool:
    match operator:
        case op.Multiply("plus_times", dtype, False):
            return dtype == FLOAT
    return False


def _sums_floats(operator: op.Operator) -> bool:
    match operator:
        case op.Partial("sum", (0,), dtype, _, _):
            return dtype == FLOAT
    return False


def _unit(group: tuple[int, ...], steps: Sequence[Step], num_inputs: int, share: Share) -> _Unit:
    last = steps[group[-1]]
    place = num_inputs + group[-1]
    if len(group) > 1 or links_of(last.operator) or _sums_floats(last.operator):
        fused = _Fused(group, steps, num_inputs, share)
        return _Unit(last.operator, fused.arguments, place, fused.run)
    runner = runner_of(last.operator)

    def run(values: list[Any], take: Take, give: Give, out: NumericArray | None) -> Any:
        with np.errstate(all="ignore"):
            return runner(values, take, give, out)

    return _Unit(last.operator, last.arguments, place, run)


class _Fused:
    """Steps that run in one pass over memory where the tile machine knows them, else one after the other."""

    def __init__(self, group: tuple[int, ...], steps: Sequence[Step], num_inputs: int, share: Share) -> None:
        self._share = share
        members = [steps[number] for number in group]
        inside = {num_inputs + number: place for place, number in enumerate(group)}
        read = [place for step in members for place in step.arguments if place not in inside]
        self.arguments = tuple(dict.fromkeys(read))
        numbers = {place: number for number, place in enumerate(self.arguments)}
        numbers |= {place: len(self.arguments) + number for place, number in inside.items()}
        self._steps = [Step(one.operator, tuple(numbers[p] for p in one.arguments)) for one in members]
        self._apart = _Sequence(
            [
                _Unit(one.operator, one.arguments, len(self.arguments) + number, runner_of(one.operator))
                for number, one in enumerate(self._steps)
            ],
            len(self._steps),
            len(self.arguments),
        )
        first = self._steps[0]
        self._factors = first.arguments if isinstance(first.operator, op.Multiply) else None
        reader = next((one for one in self._steps if links_of(one.operator)), None)
        product = len(self.arguments) if self._factors else -1
        # operands of the functions, or what is summed where there are none; -1 stands for the product
        source = reader.arguments if reader else (product,) if self._factors else first.arguments
        self._operands = tuple(-1 if place == product else place for place in source)
        self._inputs = tuple(place for place in self._operands if place >= 0)
        self._links = links_of(reader.operator) if reader else ()
        self._forms: object = None
        self._tiles: Tiles | None = None
        self._keepdims = True
        self._rows: RowParts | None = None
        match self._steps[-1].operator:
            case op.Finish(_, _, keepdims, _, _, _):
                self._keepdims = keepdims

    def run(self, values: list[Any], take: Take, give: Give, out: NumericArray | None) -> Any:
        forms: list[object] = []
        for value in values:
            if type(value) is Dense:
                array = value.values
                forms.append((array.shape, array.dtype, array.flags.c_contiguous))
            else:
                forms.append((value.shape, type(value), value.nnz and value.values is None))
        if forms != self._forms:
            self._forms, self._tiles = forms, self._written(values)
        tiles = self._tiles
        if tiles is None:
            with np.errstate(all="ignore"):
                return self._apart.run(values, take, give, out)
        if not self._keepdims:
            target: NumericArray = np.empty(1)
        else:
            target = take(tiles.shape, tiles.dtype) if out is None else out
        parts = tiles.begin([values[place].values for place in self._inputs], target)
        in_order = in_turn if tiles.is_sum else self._share
        rows, x = None, None
        if self._factors is not None:
            matrix, x = values[self._factors[0]], given(values[self._factors[1]].values)
            if self._rows is None or matrix is not self._rows.matrix:
                self._rows = RowParts(matrix, tiles.start)
            rows = self._rows
        bounds = _bounds(tiles) if rows is None else rows.bounds
        most = max(end - begin for begin, end in pairwise(bounds))

        def run(part: int) -> None:
            # A part's product is used while it is in the near cache. What is taken is as long for all parts.
            begin, end = bounds[part : part + 2]
            taken = [buffers := take((tiles.num_buffers, TILE), FLOAT)]
            product = room = None
            if rows is not None and x is not None:
                taken.append(product := take((most,), FLOAT))
                rows.multiply_into(part, x, product[: end - begin])
            if tiles.is_sum:
                taken.append(room := take((most,), FLOAT))
            parts.run(begin, end, buffers, product, None if room is None else room[: end - begin])
            for array in taken:
                give(array)

        in_order(run, len(bounds) - 1)
        return Dense(target if self._keepdims else target.reshape(()))

    def _written(self, values: Sequence[Any]) -> Tiles | None:
        num_rows = 0
        if self._factors is not None:
            matrix, x = (values[place] for place in self._factors)
            if not product_fits(matrix, x):
                return None
            num_rows = matrix.shape[0]
        if not all(isinstance(values[place], Dense) for place in self._inputs):
            return None
        forms = [None if place < 0 else form_of(values[place].values) for place in self._operands]
        ending = None
        for step in self._steps:
            match step.operator:
                case op.Partial(_, _, _, along, start):
                    shapes = [(num_rows,) if form is None else form.shape for form in forms]
                    length = max((prod(shape) for shape in shapes), default=0)
                    if 0 in (prod(shape) for shape in shapes):
                        length = 0
                    nodes = None if along is None else num_nodes(start, start + length)
                    ending = TileSum(start if along is not None else 0, nodes)
        return write_tiles(self._links, forms, num_rows, ending)


def _bounds(tiles: Tiles) -> list[int]:
    # In parts that stay in the near cache; those of a sum begin where leaves do, and run one by one.
    length, size = tiles.length, _SUMMED if tiles.is_sum else _PART
    if length < 2 * size:
        return [0, length]
    return [0, *range(size - tiles.start % size, length - size // 2, size), length]


def _may_overwrite(last: tuple[int, ...], steps: Sequence[Step], num_inputs: int) -> tuple[bool, ...]:
    # Elements are written where they were read just before: by functions, and by sums of products.
    if not last:
        return (False,) * num_inputs
    final = steps[last[-1]]
    free: tuple[int, ...] = ()
    match final.operator:
        case op.Apply() | op.Chain():
            is_sparse = any(link.sparse for link in links_of(final.operator))
            free = () if is_sparse else final.arguments
        case op.PutAt() | op.PutEachAt():  # the rest stays as it is
            free = final.arguments[:1] if final.arguments[0] not in final.arguments[1:] else ()
        case op.Accumulate(_, dtype):
            # the first two are read before anything is written
            free = final.arguments[:2] if accumulator_dtype("sum", dtype) == dtype else ()
            free = tuple(place for place in free if place not in final.arguments[2:])
    elsewhere = {place for step in steps if step is not final for place in step.arguments}
    return tuple(place in free and place not in elsewhere for place in range(num_inputs))
