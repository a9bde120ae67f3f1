"""A member's registers: reference-counted pooled buffers, and whole arrays that blocks are views of."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from matnb.blocks.formats import Csr, Dense, NumericArray
from matnb.blocks.kernels.shaping.shaping import root_of
from matnb.program.operators import Join
from matnb.program.plan import Slot, Step, Task
from matnb.program.program import check_held

POOLED_BYTES = 4096  # smaller arrays are as quickly made as found again
LARGE_BYTES = 65536  # arrays from this size on are counted when they are made
_MOST_VIEWS = 8  # of a buffer that are remembered
_LINE = 64  # bytes: where a line of the cache begins


class Buffer:
    """Memory that the pool gives again and again, and how many registers and messages are in it.

    ``views`` are the arrays that it was given as: whoever knows one again need not look where it is.
    """

    __slots__ = ("begin", "holders", "num_bytes", "raw", "views")

    def __init__(self, num_bytes: int) -> None:
        self.raw = np.empty(num_bytes + _LINE, np.uint8)
        self.begin = -self.raw.ctypes.data % _LINE
        self.num_bytes = num_bytes
        self.holders = 0
        self.views: dict[object, NumericArray] = {}

    def view(self, shape: tuple[int, ...], dtype: np.dtype) -> NumericArray:
        """Return it as an array in C order."""
        found = self.views.get((shape, dtype))
        if found is None:
            if len(self.views) >= _MOST_VIEWS:
                self.views.clear()
            found = self.views[shape, dtype] = np.ndarray(shape, dtype, self.raw, self.begin)
        return found


class Whole:
    """An array that several blocks lie in, one after the other; ``filled`` has a bit for each given out."""

    __slots__ = ("array", "buffer", "filled", "group")

    def __init__(self, group: int, array: NumericArray, buffer: Buffer | None) -> None:
        self.group = group
        self.array = array
        self.buffer = buffer
        self.filled = 0


class Register:
    """A register's value, the buffer it lies in where that is pooled, and its part of a whole."""

    __slots__ = ("buffer", "index", "value", "whole")

    def __init__(
        self, value: Any, buffer: Buffer | None = None, whole: Whole | None = None, index: int = 0
    ) -> None:
        self.value = value
        self.buffer = buffer
        self.whole = whole
        self.index = index


class Pool:
    """Buffers for dense arrays. Each of its functions may be called by any thread.

    Attributes
    ----------
    num_allocated
        How many arrays of 64 KiB or more were made, here or by kernels.
    num_bytes
        Of all buffers, those that are free among them.
    """

    def __init__(self) -> None:
        self.num_allocated = self.num_bytes = 0
        self._lock = threading.Lock()
        self._free: dict[int, list[Buffer]] = defaultdict(list)
        self._buffers: dict[int, Buffer] = {}  # by the identity of their memory, which they keep

    def take(self, shape: tuple[int, ...], dtype: np.dtype) -> NumericArray:
        """Return an uninitialized array in C order; it is free again when it is given back, or let go."""
        num_bytes = _buffer_bytes(shape, dtype)
        if num_bytes < POOLED_BYTES:
            return np.empty(shape, dtype)
        return self._taken(num_bytes).view(shape, dtype)

    def give(self, array: NumericArray) -> None:
        """Take back what was taken and is in nobody's register."""
        buffer = self.buffer_of(array)
        if buffer is not None:
            with self._lock:
                self._free[buffer.num_bytes].append(buffer)

    def add(self, count: int, shape: tuple[int, ...], dtype: np.dtype) -> None:
        """Make a few more buffers for such arrays, whatever is free now."""
        num_bytes = _buffer_bytes(shape, dtype)
        if num_bytes >= POOLED_BYTES:
            with self._lock:
                self._free[num_bytes] += [self._made(num_bytes) for _ in range(count)]

    def reserve(self, count: int) -> None:
        """Make a few more of every large buffer, to be taken last; what is not used has no pages."""
        with self._lock:
            for num_bytes in [size for size in self._free if size >= LARGE_BYTES]:
                spare = [self._made(num_bytes) for _ in range(count)]
                self._free[num_bytes][:0] = spare

    def buffer_of(self, array: NumericArray) -> Buffer | None:
        """Return the buffer that an array lies in, or None where it is not of this pool."""
        root: Any = array
        while root is not None:
            found = self._buffers.get(id(root))
            if found is not None:
                return found
            root = getattr(root, "base", None)
        return None

    def hold(self, value: object) -> Buffer | None:
        """Note that a block is in a register more, or in a message, and return its buffer to release."""
        if type(value) is not Dense:
            return None
        buffer = self.buffer_of(value.values)
        if buffer is not None:
            with self._lock:
                buffer.holders += 1
        return buffer

    def keep(self, buffer: Buffer | None) -> None:
        """Increase a buffer's reference count."""
        if buffer is not None:
            with self._lock:
                buffer.holders += 1

    def release(self, buffer: Buffer | None) -> None:
        """Decrease a buffer's reference count, and free the buffer at zero."""
        if buffer is not None:
            with self._lock:
                buffer.holders -= 1
                if not buffer.holders:
                    self._free[buffer.num_bytes].append(buffer)

    def note_results(self, value: object, inputs: Sequence[object]) -> None:
        """Count the large arrays of a kernel's result that are neither of this pool nor of its inputs."""
        known = None
        for array in arrays_of(value):
            if array.nbytes >= LARGE_BYTES and self.buffer_of(array) is None:
                if known is None:
                    known = {id(root_of(one)) for block in inputs for one in arrays_of(block)}
                if id(root_of(array)) not in known:
                    with self._lock:
                        self.num_allocated += 1

    def _taken(self, num_bytes: int) -> Buffer:
        with self._lock:
            free = self._free[num_bytes]
            if free:
                return free.pop()
            return self._made(num_bytes)

    def _made(self, num_bytes: int) -> Buffer:
        buffer = Buffer(num_bytes)
        self._buffers[id(buffer.raw)] = buffer
        self.num_bytes += num_bytes
        self.num_allocated += num_bytes >= LARGE_BYTES
        return buffer


class Allowance:
    """What a member may hold: its given blocks are counted where they are stored, all else here.

    Parameters
    ----------
    limit_bytes
        The most; None for no limit.
    held, given
        All registers, and the identities of the arrays of given blocks.
    pool
        Whose buffers count, used or free.

    Attributes
    ----------
    is_claimed
        Whether a thread has claimed memory for what it makes.
    """

    def __init__(
        self, limit_bytes: int | None, held: Mapping[Slot, Register], given: Container[int], pool: Pool
    ) -> None:
        self._limit, self._held, self._given, self._pool = limit_bytes, held, given, pool
        self._claimed: dict[int, int] = {}  # by threads
        self._lock = threading.Lock()
        self.is_claimed = False

    def check(self, growth: int) -> None:
        """Refuse to go on if the bytes held, plus ``growth``, exceed the limit."""
        if self._limit is not None:
            check_held(self._num_bytes(), growth, self._limit)

    def claim(self, num_bytes: int) -> int:
        """Return how many bytes are left after this claim and the claims of other threads.

        If that is not less than 0, they are claimed until the thread's job is done.
        """
        assert self._limit is not None
        me = threading.get_ident()
        with self._lock:
            others = sum(size for thread, size in self._claimed.items() if thread != me)
            left = self._limit - self._num_bytes() - others - num_bytes
            if left >= 0:
                self._claimed[me] = num_bytes
                self.is_claimed = True
        return left

    def settle(self) -> None:
        """Let go of what this thread has claimed: a register has it now, or nothing has."""
        with self._lock:
            self._claimed.pop(threading.get_ident(), None)
            self.is_claimed = bool(self._claimed)

    def _num_bytes(self) -> int:
        apart: dict[int, int] = {}
        for held in tuple(self._held.values()):
            if held.buffer is None:
                for array in arrays_of(held.value):
                    if id(array) not in self._given:
                        apart[id(array)] = array.nbytes
        return self._pool.num_bytes + sum(apart.values())


def _buffer_bytes(shape: tuple[int, ...], dtype: np.dtype) -> int:
    return -(-prod(shape) * dtype.itemsize // _LINE) * _LINE


def arrays_of(value: object) -> tuple[NumericArray, ...]:
    """Return the arrays of a block."""
    match value:
        case Dense(values):
            return (values,)
        case Csr(_, pointers, columns, values, _):
            return (pointers, columns) if values is None else (pointers, columns, values)
    return ()


@dataclass(frozen=True)
class Hint:
    """Where a register is best made: as one part of the wholes of a group.

    Parts of the same ``family`` are blocks of one array, and lie in the same whole.
    """

    group: int
    index: int
    family: int


@dataclass(frozen=True)
class Stack:
    """Blocks that are put together along the first axis: where each begins and stops in the whole."""

    bounds: tuple[tuple[int, int], ...]
    shape: tuple[int, ...]
    dtype: np.dtype


@dataclass(frozen=True)
class JoinUse:
    """Blocks that a task reads as one array; ``group`` is that of their wholes, if they have one."""

    operator: Join
    parts: tuple[Slot, ...]
    bounds: tuple[tuple[int, int], ...]
    group: int | None = None


@dataclass(frozen=True)
class TaskParts:
    """A task without the joins that can be views.

    Attributes
    ----------
    joins
        They come first.
    rest
        What is left of the task, or None: the value of the join is the task's. Its inputs are some of the
        task's, then one for each join.
    inputs
        The other inputs of the task that the rest reads.
    """

    joins: tuple[JoinUse, ...]
    rest: Task | None
    inputs: tuple[Slot, ...]


def parted(task: Task) -> TaskParts:
    """Return the joins of whole inputs along the first axis apart from the rest of a task."""
    count = len(task.inputs)
    found: dict[int, JoinUse] = {}
    for number, step in enumerate(task.steps):
        bounds = bounds_of(step.operator) if isinstance(step.operator, Join) else None
        if isinstance(step.operator, Join) and bounds and all(place < count for place in step.arguments):
            parts = tuple(task.inputs[place] for place in step.arguments)
            found[number] = JoinUse(step.operator, parts, bounds)
    if len(task.steps) - 1 in found:
        joins = (found[0],) if len(task.steps) == 1 else ()
        return TaskParts(joins, None if joins else task, () if joins else task.inputs)
    if not found:
        return TaskParts((), task, task.inputs)
    used = {
        place for number, step in enumerate(task.steps) if number not in found for place in step.arguments
    }
    inputs = [place for place in range(count) if place in used]
    places = {place: new for new, place in enumerate((*inputs, *(count + number for number in found)))}
    steps: list[Step] = []
    for number, step in enumerate(task.steps):
        if number not in found:
            places[count + number] = len(inputs) + len(found) + len(steps)
            steps.append(replace(step, arguments=tuple(places[place] for place in step.arguments)))
    names = tuple(task.inputs[place] for place in inputs)
    virtual = tuple(-1 - number for number in found)  # slots that no value of the program has
    rest = replace(task, inputs=(*names, *virtual), steps=tuple(steps))
    return TaskParts(tuple(found.values()), rest, names)


def bounds_of(join: Join) -> tuple[tuple[int, int], ...] | None:
    """Return where each part begins and stops on the first axis; None where they are not rows, in order."""
    if join.sparse or not join.shape or not join.offsets:
        return None
    starts = [offset[0] for offset in join.offsets]
    if starts[0] or sorted(starts) != starts or any(any(offset[1:]) for offset in join.offsets):
        return None
    return tuple(pairwise((*starts, join.shape[0])))


class Stacks:
    """Which registers are made in the same wholes, from what a member's tasks put together.

    Parameters
    ----------
    joins
        Of all its tasks.
    renamings
        Registers that become others by their names alone: both are made in the same place.
    """

    def __init__(self, joins: Iterable[JoinUse], renamings: Iterable[tuple[Slot, Slot]]) -> None:
        self.groups: list[Stack] = []
        self.hints: dict[Slot, Hint] = {}
        self._num_families = 0
        sources: dict[Slot, list[Slot]] = defaultdict(list)
        for old, new in renamings:
            sources[new].append(old)
        for use in joins:
            self._add(use, sources)

    def group_of(self, use: JoinUse) -> int | None:
        """Return the group whose wholes may be what a join puts together."""
        hints = [self.hints.get(name) for name in use.parts]
        first = hints[0]
        if first is None or self.groups[first.group].shape != use.operator.shape:
            return None
        found = [None if hint is None else (hint.group, hint.index) for hint in hints]
        fits = found == [(first.group, index) for index in range(len(hints))]
        return first.group if fits and self.groups[first.group].bounds == use.bounds else None

    def _add(self, use: JoinUse, sources: Mapping[Slot, Sequence[Slot]]) -> None:
        group = Stack(use.bounds, use.operator.shape, use.operator.dtype)
        names = [_all_sources(name, sources) for name in use.parts]
        known = {hint.group for some in names for name in some if (hint := self.hints.get(name)) is not None}
        number = next((one for one in sorted(known) if self.groups[one] == group), None)
        if number is None:
            number = len(self.groups)
            self.groups.append(group)
        for index, some in enumerate(names):
            for place, name in enumerate(some):
                self.hints.setdefault(name, Hint(number, index, self._num_families + place))
        self._num_families += max(map(len, names))


def _all_sources(name: Slot, sources: Mapping[Slot, Sequence[Slot]]) -> list[Slot]:
    # Blocks of one array have theirs in the same order.
    found = [name]
    for one in found:
        found.extend(source for source in sources.get(one, ()) if source not in found)
    return found


class Wholes:
    """The wholes that are being filled; a register's part is given out once.

    Parameters
    ----------
    pool
        Where their memory is from.
    groups
        Which there are.

    Attributes
    ----------
    pool
        As given.
    """

    def __init__(self, pool: Pool, groups: Sequence[Stack]) -> None:
        self.pool = pool
        self._groups = groups
        self._open: dict[int, Whole] = {}  # by family
        self._lock = threading.Lock()

    def place(self, hint: Hint) -> tuple[Whole, NumericArray]:
        """Return the whole in which a register of this tick is to be made, and its part."""
        with self._lock:
            whole = self._open.get(hint.family)
            if whole is None or whole.filled >> hint.index & 1:
                if whole is not None:
                    self.pool.release(whole.buffer)
                whole = self._open[hint.family] = self._begun(hint.group)
            return whole, self._part(whole, hint.index)

    def place_beside(self, hint: Hint, neighbors: Iterable[Register]) -> tuple[Whole, NumericArray] | None:
        """Return the whole that neighbors of a register lie in, and its part, if that is to be had."""
        with self._lock:
            for held in neighbors:
                whole = held.whole
                if whole is not None and whole.group == hint.group and not whole.filled >> hint.index & 1:
                    return whole, self._part(whole, hint.index)
        return None

    def close(self) -> None:
        """Give nothing more out of the wholes of this tick, but beside their parts."""
        if self._open:
            with self._lock:
                for whole in self._open.values():
                    self.pool.release(whole.buffer)
                self._open.clear()

    def _begun(self, number: int) -> Whole:
        group = self._groups[number]
        array = self.pool.take(group.shape, group.dtype)
        # Held until the tick ends: its parts may come and go one by one.
        return Whole(number, array, self.pool.hold(Dense(array)))

    def _part(self, whole: Whole, index: int) -> NumericArray:
        whole.filled |= 1 << index
        start, stop = self._groups[whole.group].bounds[index]
        if whole.buffer is None:
            return whole.array[start:stop]
        views, key = whole.buffer.views, (whole.group, start)
        part = views.get(key)
        if part is None or part.base is not whole.buffer.raw:
            part = views[key] = whole.array[start:stop]
        return part
