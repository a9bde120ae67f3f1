"""Caches for repeated tasks: shapes of small values and addresses of resident arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from matnb.backend.tasks.step_memory import StepMemory
from matnb.blocks.formats import Dense, NumericArray
from matnb.blocks.kernels.elementwise.one_pass import PassPart, parts_of
from matnb.blocks.kernels.elementwise.small_chains import (
    MOST_SMALL,
    Form,
    SmallChain,
    SmallShare,
    form_of_array,
    small_chain,
)
from matnb.blocks.kernels.elementwise.tile_loops import ITEM, NUM_INPUTS, ROW_WORDS, TILE, Integers, run_rows
from matnb.blocks.kernels.elementwise.tiles import (
    FLOAT,
    BoundPass,
    OperandForm,
    Tiles,
    form_of,
    rows_of_elements,
    write_tiles,
)
from matnb.blocks.kernels.numpy_structs import address_of
from matnb.blocks.kernels.products.row_parts import WholeRows, product_fits
from matnb.blocks.sums import share_of
from matnb.program import operators as op
from matnb.program.fusing import is_sum
from matnb.program.plan import Step

MOST_BOUND = 2**16  # elements of a pass whose arrays are looked at once: it is one part, sums too
_MOST_TABLES = 8
# Of a task: its table is then at most 640 KiB, and of longer ones what a task costs is little.
_MOST_ROWS = 1 << 13
_PART = 1 << 17  # elements that are taken at a time where threads share them

Place: TypeAlias = tuple[slice, ...]


class SmallPass:
    """A product, functions and at most one reduction, where all that they read and make is small.

    Parameters
    ----------
    operator
        What is run, but for its ending.
    """

    def __init__(self, operator: op.FusedKernel) -> None:
        self._operator = operator
        self._forms: list[Form] = []  # for which there is a chain, or none
        self._chain: SmallChain | None = None
        self._share: SmallShare | None = None
        self._rows: WholeRows | None = None

    def forget(self) -> None:
        """Let go of the block that was looked at."""
        self._rows = None

    def run(self, values: Sequence[Any], memory: StepMemory) -> Dense | None:
        """Return the value; None where it is not small, or another way has its bits or is faster."""
        product, operands = None, values
        arrays: list[NumericArray] = []
        if self._operator.product is not None:
            matrix, x, *operands = values
            if matrix.shape[0] > MOST_SMALL or not product_fits(matrix, x):
                return None
            if self._rows is None or matrix is not self._rows.matrix:
                self._rows = WholeRows(matrix)
            arrays.append(product := np.empty(matrix.shape[0]))
        for one in operands:
            if type(one) is not Dense or one.values.size > MOST_SMALL:
                return None
            arrays.append(one.values)
        forms = [form_of_array(one) for one in arrays]
        if forms != self._forms:
            self._analyze(forms)
        chain = self._chain
        if chain is None:
            return None
        if product is not None and self._rows is not None:
            self._rows.multiply_into(x.values, product)
        if self._share is None:
            target = memory.target(chain.shape, chain.dtype)
            chain.write(arrays, target)
            return Dense(target)
        return self._share.of(chain.values(arrays)[self._operator.shares[0].place])

    def _analyze(self, forms: list[Form]) -> None:
        operator = self._operator
        self._forms, self._chain = forms, small_chain(operator.links, forms)
        if self._chain is not None and operator.shares:
            (share,) = operator.shares
            self._share = SmallShare(share, *self._chain.form(share.place))


class SeveralSums:
    """Sums of operands and of what functions make of them; each of these values is made whole, once.

    Parameters
    ----------
    operator
        Of vectors, whose reductions are sums.
    forms
        Of the operands.
    """

    def __init__(self, operator: op.FusedKernel, forms: Sequence[OperandForm]) -> None:
        self._shares = operator.shares
        self._parts: list[tuple[PassPart, Tiles, BoundPass]] = []
        known = dict(enumerate(forms))
        for part in parts_of(operator.links, operator.shares, len(forms)):
            tiles = write_tiles(part.links, tuple(known[place] for place in part.arguments), 0, None)
            if tiles is None or tiles.dtype != FLOAT or len(tiles.shape) != 1:
                break
            known[part.place] = OperandForm(tiles.shape, tiles.dtype, True)
            self._parts.append((part, tiles, BoundPass(tiles)))
        summed = [known.get(share.place) for share in operator.shares]
        length = max((form.shape[0] for form in summed if form is not None and form.shape), default=0)
        are_vectors = all(form == OperandForm((length,), FLOAT, True) for form in summed)
        self.is_possible = are_vectors and 0 < length < MOST_BOUND

    def run(self, values: Sequence[Any], memory: StepMemory) -> list[Dense]:
        """Return the share of each sum, with the bits of ``reduce_chain``."""
        arrays: dict[int, NumericArray] = {place: one.values for place, one in enumerate(values)}
        made: list[NumericArray] = []
        for part, tiles, bound in self._parts:
            buffers, out = memory.take((tiles.num_buffers, TILE), FLOAT), memory.take(tiles.shape, FLOAT)
            bound.run([arrays[place] for place in part.arguments], out, buffers)
            memory.give(buffers)
            arrays[part.place] = out
            made.append(out)
        sums = [share_of(arrays[one.place], one.axes, one.along, one.start) for one in self._shares]
        for array in made:
            memory.give(array)
        return [Dense(one) for one in sums]


def several_sums(operator: op.FusedKernel, values: Sequence[Any]) -> SeveralSums | None:
    """Return what runs a pass with several sums, or None where it is another, or its vectors are long."""
    are_sums = len(operator.shares) > 1 and all(map(is_sum, operator.shares))
    if operator.product is not None or not are_sums or not all(type(value) is Dense for value in values):
        return None
    found = SeveralSums(operator, [form_of(value.values) for value in values])
    return found if found.is_possible else None


@dataclass(frozen=True)
class _Window:
    # Part of what a task reads: the number of the input, none for a constant, and which part of it.
    values: NumericArray
    source: int | None
    part: Place | None = None

    @property
    def is_in_rows(self) -> bool:
        values = self.values
        in_order = values.ndim > 0 and (values.strides[-1] == ITEM or values.shape[-1] == 1)
        return in_order and values.dtype == FLOAT


@dataclass(frozen=True)
class _Number:
    # An element of an input that changes from run to run, and where the table reads it.
    numbers: NumericArray
    place: int
    source: int
    part: Place | None


class TaskRows:
    """A task that cuts out windows, applies functions and puts the parts together, as rows of a table.

    All its rows are run by one call. It is looked at how windows lie in what they are cut out of once, and
    what changes where arrays lie elsewhere are addresses. It holds no array but those of constants.

    Parameters
    ----------
    steps, num_inputs
        Of the task.
    """

    def __init__(self, steps: Sequence[Step], num_inputs: int) -> None:
        self._steps, self._num_inputs = steps, num_inputs
        self._num_runs = self._num_elements = 0
        self._forms: list[Form] = []  # of the inputs
        self._rows: Integers | None = None  # addresses counted from where their array begins
        self._arrays: np.ndarray | None = None  # the array of each: 0 for none, the inputs, the target
        self._kept: list[NumericArray] = []
        self._numbers: list[_Number] = []
        self._bounds: list[int] = []
        self._tables: dict[tuple[int, ...], Integers] = {}

    @staticmethod
    def fits(steps: Sequence[Step]) -> bool:
        """Tell whether the steps of a task are of the kinds that can be rows."""
        if not steps:
            return False
        *before, last = [step.operator for step in steps]
        if not any(isinstance(one, op.Cut) for one in before):
            return False
        if isinstance(last, op.Fill):
            is_last = last.dtype == FLOAT and len(last.shape) > 0
        else:
            is_last = _is_functions(last)
        return is_last and all(
            isinstance(one, op.Cut | op.Stretch | op.Constant)
            or (isinstance(last, op.Fill) and _is_functions(one))
            for one in before
        )

    def run(
        self,
        values: Sequence[Any],
        memory: StepMemory,
        share: Callable[[Callable[[int], None], int], None] | None,
    ) -> Dense | None:
        """Return the value, which has the bits of the steps one by one; None where these are to be run."""
        arrays: list[NumericArray] = []
        for value in values:
            if type(value) is not Dense:
                return None
            arrays.append(value.values)
        forms = [form_of_array(one) for one in arrays]
        if forms != self._forms:
            self._forget_rows()
            self._forms = forms
        if self._rows is None:
            self._look(arrays)
            return None
        target = memory.target(self._shape, FLOAT)
        if not target.flags.c_contiguous:
            return None
        for one in self._numbers:
            source = arrays[one.source]
            one.numbers[one.place] = (source if one.part is None else source[one.part]).item()
        table, bounds = self._table([*arrays, target]), self._bounds
        if share is None or len(bounds) == 2:
            run_rows(table, 0, bounds[-1])
        else:
            share(lambda part: run_rows(table, bounds[part], bounds[part + 1]), len(bounds) - 1)
        return Dense(target)

    def forget(self) -> None:
        """Let go of what follows from where arrays lie."""
        self._tables.clear()

    def _forget_rows(self) -> None:
        self._rows = self._arrays = None
        self._num_runs = self._num_elements = 0
        self.forget()
        self._kept.clear()
        self._numbers.clear()

    def _table(self, arrays: Sequence[NumericArray]) -> Integers:
        key = tuple(map(address_of, arrays))
        table = self._tables.get(key)
        if table is None:
            assert self._rows is not None
            assert self._arrays is not None
            if len(self._tables) >= _MOST_TABLES:
                self._tables.clear()
            table = self._tables[key] = self._rows + np.array([0, *key])[self._arrays]
        return table

    def _look(self, arrays: Sequence[NumericArray]) -> None:
        # After so many runs as were before the last look, since it takes as long as several runs.
        self._num_runs += 1
        if self._num_runs & (self._num_runs - 1) or self._num_runs == 1:
            return
        windows: list[_Window | None] = [_Window(one, number) for number, one in enumerate(arrays)]
        for step in self._steps:
            windows.append(_window_of(step, windows))
        final = self._steps[-1]
        match final.operator:
            case op.Fill(bounds, shape):
                parts = [tuple(slice(*one) for one in part) for part in bounds]
                made = list(zip(parts, final.arguments, strict=True))
            case _:
                shapes = [
                    one.values.shape for place in final.arguments if (one := windows[place]) is not None
                ]
                shape = max(shapes, key=len, default=())
                made = [((slice(None),) * len(shape), len(windows) - 1)]
        self._shape = shape
        self._write(made, windows, arrays)

    def _write(
        self,
        made: Sequence[tuple[Place, int]],
        windows: Sequence[_Window | None],
        arrays: Sequence[NumericArray],
    ) -> None:
        target = np.empty(self._shape)
        self._num_elements = self._num_runs * target.size
        tables: list[Integers] = []
        belongs: list[np.ndarray] = []
        kept: list[NumericArray] = []
        numbers: list[_Number] = []
        for part, place in made:
            step = self._steps[place - self._num_inputs] if place >= self._num_inputs else None
            out = target[part]
            if step is not None and isinstance(step.operator, op.FusedKernel):
                read = [windows[one] for one in step.arguments]
                found = self._functions(step.operator, read, out, kept, numbers)
            else:
                found = _copied(windows[place], out)
            if found is None:
                return
            table, sources = found
            row = np.zeros(ROW_WORDS, np.uint8)
            row[1 : 1 + len(sources)] = [0 if one is None else 1 + one for one in sources]
            row[2 + NUM_INPUTS] = 1 + len(arrays)
            tables.append(table)
            belongs.append(np.broadcast_to(row, table.shape))
        rows = np.concatenate(tables)
        if len(rows) > _MOST_ROWS:
            return
        self._arrays = np.concatenate(belongs)
        self._rows = rows - np.array([0, *map(address_of, (*arrays, target))])[self._arrays]
        self._kept, self._numbers = kept, numbers
        self._bounds = _cut_rows(rows[:, -1])

    def _functions(
        self,
        operator: op.FusedKernel,
        read: Sequence[_Window | None],
        out: NumericArray,
        kept: list[NumericArray],
        numbers: list[_Number],
    ) -> tuple[Integers, list[int | None]] | None:
        windows = [one for one in read if one is not None]
        if len(windows) < len(read):
            return None
        forms = [OperandForm(one.values.shape, one.values.dtype, one.is_in_rows) for one in windows]
        tiles = write_tiles(operator.links, tuple(forms), 0, None)
        if tiles is None or tiles.dtype != FLOAT or tiles.shape != out.shape:
            return None
        found = tiles.rows([one.values for one in windows], out, self._num_elements)
        if found is None:
            return None
        table, its_numbers = found
        kept.append(its_numbers)
        for number, place in tiles.number_places:
            source = windows[place].source
            if source is not None:
                numbers.append(_Number(its_numbers, number, source, windows[place].part))
        return table, [windows[place].source for place in tiles.input_places]


def _is_functions(operator: object) -> bool:
    return isinstance(operator, op.FusedKernel) and operator.product is None and not operator.shares


def _window_of(step: Step, windows: Sequence[_Window | None]) -> _Window | None:
    match step.operator:
        case op.Constant() as constant:
            return _Window(constant.block.values, None)
        case op.Cut(bounds):
            of = windows[step.arguments[0]]
            if of is None or of.part is not None or of.values.ndim != len(bounds) or not bounds:
                return None
            part = tuple(slice(*one) for one in bounds)
            return _Window(of.values[part], of.source, part)
        case op.Stretch(shape):
            of = windows[step.arguments[0]]
            return of if of is not None and of.values.shape == shape else None
    return None


def _copied(window: _Window | None, out: NumericArray) -> tuple[Integers, list[int | None]] | None:
    if window is None or not window.is_in_rows or window.values.shape != out.shape:
        return None
    return rows_of_elements([window.values], out), [window.source]


def _cut_rows(widths: Integers) -> list[int]:
    # Where parts begin that threads take, each of about as many elements.
    ends = np.cumsum(widths)
    count = max(1, int(ends[-1]) // _PART)
    cuts = np.searchsorted(ends, ends[-1] * np.arange(1, count) / count)
    return [0, *(int(cut) + 1 for cut in cuts), len(widths)]
