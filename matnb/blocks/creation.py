"""Arrays known by their parameters: constants, ranges and random numbers, made rectangle by rectangle."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import product
from math import prod
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import Block, Csr, Dense, Empty, NumericArray, cast
from matnb.blocks.grid import Region, region_shape
from matnb.errors import OptionError

Raw = npt.NDArray[np.uint64]
_PIECE = 2**15  # elements: temporaries for a few times as many stay in a core's cache


class Creation(Protocol):
    """Parameters of an array that is made a rectangle at a time, with the same bits however it is cut."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the array."""

    @property
    def dtype(self) -> np.dtype:
        """Type of the elements."""

    @property
    def sparse(self) -> bool:
        """Tell whether the blocks are sparse."""

    def make(self, region: Region) -> Block:
        """Return the part of the array in a region, in memory of its own."""


class _Parameters:
    """Parameters compared by their text: 0.0 and -0.0 make different arrays, NaN and NaN the same."""

    @property
    def sparse(self) -> bool:
        """Tell whether the blocks are sparse."""
        return False

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


@dataclass(frozen=True, eq=False)
class Full(_Parameters):
    """An array of one value, given as its bytes in ``dtype``."""

    shape: tuple[int, ...]
    value: bytes
    dtype: np.dtype

    def make(self, region: Region) -> Block:
        """Return the part of the array in a region."""
        return Dense(np.full(region_shape(region), np.frombuffer(self.value, self.dtype)[0], self.dtype))


@dataclass(frozen=True, eq=False)
class Eye(_Parameters):
    """The sparse matrix with ones on the diagonal ``offset`` places right of the main one; pattern-only."""

    rows: int
    columns: int
    offset: int
    dtype: np.dtype

    @property
    def shape(self) -> tuple[int, int]:
        """Lengths of the array."""
        return self.rows, self.columns

    @property
    def sparse(self) -> bool:
        """Tell whether the blocks are sparse."""
        return True

    def make(self, region: Region) -> Block:
        """Return the part of the array in a region."""
        (first, last), (left, right) = region
        shape = (last - first, right - left)
        # Rows of the region whose diagonal element lies between its left and right edge.
        start = min(max(first, left - self.offset), last)
        stop = max(start, min(last, right - self.offset))
        if start == stop:
            return Empty(shape, self.dtype)
        rows = np.arange(first, last + 1)
        pointers = np.clip(rows - start, 0, stop - start).astype(np.int32)
        columns = np.arange(start + self.offset - left, stop + self.offset - left, dtype=np.int32)
        return Csr(shape, pointers, columns, None, self.dtype)


@dataclass(frozen=True, eq=False)
class Arange(_Parameters):
    """``length`` evenly spaced numbers, with the bits of ``numpy.arange``."""

    start: float
    step: float
    length: int
    dtype: np.dtype

    @property
    def shape(self) -> tuple[int]:
        """Lengths of the array."""
        return (self.length,)

    def make(self, region: Region) -> Block:
        """Return the part of the array in a region."""
        ((low, high),) = region
        # NumPy converts the first two numbers and extends them by their difference, so steps are whole in an
        # integer dtype; float16 is computed as float32.
        numbers = (self.start, self.start + self.step)[: self.length]
        out = np.empty(high - low, self.dtype)
        with np.errstate(all="ignore"):
            first_two = np.array([np.array(number).astype(self.dtype) for number in numbers], self.dtype)
            out[: max(0, 2 - low)] = first_two[low:high]
            begin = max(low, 2)
            wide = np.dtype(np.float32) if self.dtype == np.float16 else self.dtype
            for start, stop in _pieces(begin, high):
                first, second = first_two.astype(wide)
                places = np.arange(start, stop).astype(wide)
                out[start - low : stop - low] = (first + places * (second - first)).astype(self.dtype)
        return Dense(out)


@dataclass(frozen=True, eq=False)
class Linspace(_Parameters):
    """``num`` evenly spaced numbers from ``start`` to ``stop``, with the bits of ``numpy.linspace``.

    They are worked out in ``computed``, a real floating dtype, and then converted to ``dtype``.
    """

    start: float
    stop: float
    num: int
    endpoint: bool
    computed: np.dtype
    dtype: np.dtype

    @property
    def shape(self) -> tuple[int]:
        """Lengths of the array."""
        return (self.num,)

    def make(self, region: Region) -> Block:
        """Return the part of the array in a region."""
        ((low, high),) = region
        out = np.empty(high - low, self.dtype)
        for start, stop in _pieces(low, high):
            out[start - low : stop - low] = self._part(start, stop)
        return Dense(out)

    def _part(self, low: int, high: int) -> NumericArray:
        number = self.computed.type
        intervals = self.num - 1 if self.endpoint else self.num
        with np.errstate(all="ignore"):
            places = np.arange(low, high).astype(self.computed)
            width = number(self.stop) - number(self.start)
            step = width / intervals if intervals else width
            # Where the step underflows NumPy divides first, so as not to lose the few bits there are.
            values = places / intervals * width if intervals and step == 0 else places * step
            values += number(self.start)
            if self.endpoint and self.num > 1 and low < high == self.num:
                values[-1] = number(self.stop)
            if self.dtype.kind in "iu":
                np.floor(values, out=values)
        return cast(values, self.dtype)


@dataclass(frozen=True, eq=False)
class Uniform(_Parameters):
    """Random numbers in [low, high), equally likely."""

    shape: tuple[int, ...]
    seed: int
    stream: int
    low: float
    high: float
    dtype: np.dtype

    def make(self, region: Region) -> Block:
        """Return the part of the array in a region."""
        return Dense(_drawn(self, region))

    def take(self, raw: Raw) -> NumericArray:
        """Return the numbers that random bits become."""
        # As many random bits as the dtype holds, or a short float would be rounded up to 1.
        bits = np.finfo(self.dtype).nmant + 1
        values = (raw >> np.uint64(64 - min(bits, 53))) * 2.0 ** -min(bits, 53)
        values *= self.high - self.low
        values += self.low
        out = cast(values, self.dtype)
        if self.low < self.high:  # a sum may still round up to the end that is not part of the range
            low, high = self.dtype.type(self.low), self.dtype.type(self.high)
            np.minimum(out, np.nextafter(high, low), out=out)
        return out


@dataclass(frozen=True, eq=False)
class Normal(_Parameters):
    """Random numbers of a normal distribution, by its inverse cumulative distribution function."""

    shape: tuple[int, ...]
    seed: int
    stream: int
    mean: float
    deviation: float
    dtype: np.dtype

    def make(self, region: Region) -> Block:
        """Return the part of the array in a region."""
        return Dense(_drawn(self, region))

    def take(self, raw: Raw) -> NumericArray:
        """Return the numbers that random bits become."""
        # The middles of 2**52 equal parts of (0, 1): of twice as many the last would round to 1, and give
        # infinity.
        values = (raw >> np.uint64(12)) + 0.5
        values *= 2.0**-52
        from scipy.special import ndtri  # a sixth of a second of every import else

        ndtri(values, out=values)
        values *= self.deviation
        values += self.mean
        return cast(values, self.dtype)


@dataclass(frozen=True, eq=False)
class Integers(_Parameters):
    """Random whole numbers in [low, high).

    The upper half of 64 random bits times the number of values, without rejection: some values are more
    likely than others by one part in ``2**64 / (high - low)``.
    """

    shape: tuple[int, ...]
    seed: int
    stream: int
    low: int
    high: int
    dtype: np.dtype

    def __post_init__(self) -> None:
        if not 0 < self.high - self.low <= 2**64:
            raise OptionError(f"integers in [{self.low}, {self.high}): give 1 to 2**64 values")

    def make(self, region: Region) -> Block:
        """Return the part of the array in a region."""
        return Dense(_drawn(self, region))

    def take(self, raw: Raw) -> NumericArray:
        """Return the numbers that random bits become."""
        count = self.high - self.low
        if count < 2**64:
            raw = _upper_half(raw, count)
        raw += np.uint64(self.low % 2**64)  # negative numbers as their two's complement
        return raw.view(np.int64).astype(self.dtype, copy=False)


Random: TypeAlias = Uniform | Normal | Integers


@dataclass(frozen=True, eq=False)
class Window(_Parameters):
    """A rectangle of an array known by its parameters, with the bits that it has there."""

    whole: Creation
    region: Region

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the rectangle."""
        return region_shape(self.region)

    @property
    def dtype(self) -> np.dtype:
        """Type of the elements."""
        return self.whole.dtype

    @property
    def sparse(self) -> bool:
        """Tell whether the blocks are sparse."""
        return self.whole.sparse

    def make(self, region: Region) -> Block:
        """Return the part of the rectangle in a region."""
        return self.whole.make(_inside(self.region, region))


# A stretch of random numbers begins by moving the counter, which takes as long as so many (measured: 406).
_RUN_NUMBERS = 400


def window(creation: Creation, region: Region) -> Creation:
    """Return the creation that makes a rectangle of another one."""
    match creation:
        case Window(whole, outer):
            return window(whole, _inside(outer, region))
        case Full():
            return replace(creation, shape=region_shape(region))
    return Window(creation, region)


def worth_making(creation: Creation, region: Region) -> Region:
    """Return the rectangle around a region that takes the least work to make: all of the array, or less.

    Random numbers come in stretches along the last axis. Many short ones take longer than the numbers in
    between.
    """
    whole = creation.whole if isinstance(creation, Window) else creation
    if not isinstance(whole, Random):
        return region
    every = tuple((0, length) for length in creation.shape)
    around = [(*region[:axis], *every[axis:]) for axis in range(len(every) + 1)]
    return min(around, key=lambda one: _work(creation, one))


def _work(creation: Creation, region: Region) -> int:
    whole, there = creation, region
    if isinstance(creation, Window):
        whole, there = creation.whole, _inside(creation.region, region)
    lengths = region_shape(there)
    cut = max((axis + 1 for axis, one in enumerate(there) if one != (0, whole.shape[axis])), default=0)
    return prod(lengths) + _RUN_NUMBERS * prod(lengths[: max(0, cut - 1)])


def _inside(outer: Region, region: Region) -> Region:
    return tuple((low + start, low + stop) for (low, _), (start, stop) in zip(outer, region, strict=True))


def drawn_anew(creation: Random, numbers: Sequence[int]) -> Random:
    """Return other random numbers of the same kind for each sequence of numbers, such as of iterations.

    Seed and stream together, 128 bits, follow from theirs and the numbers by BLAKE2b, so that two sequences
    would have to be tried 2**64 times to meet.
    """
    words = (creation.seed, creation.stream, *(number % 2**64 for number in numbers))
    mixed = blake2b(struct.pack(f"<{len(words)}Q", *words), digest_size=16, person=b"matnb draws")
    seed, stream = struct.unpack("<2Q", mixed.digest())
    return replace(creation, seed=seed, stream=stream)


def raw_pieces(seed: int, stream: int, shape: tuple[int, ...], region: Region) -> Iterator[tuple[int, Raw]]:
    """Yield 64 random bits for each element of a region, last axis fastest: where a piece begins, and them.

    The element with flat index i (last axis fastest) gets draw i of ``numpy.random.Philox`` with the key
    (seed, stream): Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011. Pieces fit a cache, so
    that what is made of them takes no memory to speak of; one is the next one's memory.

    Parameters
    ----------
    seed, stream
        From 0 to 2**64 - 1.
    """
    total = prod(region_shape(region))
    draws = np.empty(min(total, _PIECE), np.uint64)
    philox = np.random.Philox(key=np.array([seed, stream], np.uint64))
    position = filled = done = 0  # the position is the counter's, each step of which gives four draws
    for start, length in _runs(shape, region):
        stop = start + length
        while start < stop:
            some = min(stop - start, draws.size - filled)
            philox.advance(start // 4 - position)
            skipped = start % 4
            draws[filled : filled + some] = philox.random_raw(skipped + some)[skipped:]
            position = start // 4 + (skipped + some + 3) // 4
            start, filled = start + some, filled + some
            if filled == draws.size:
                yield done, draws
                done, filled = done + filled, 0
    if filled:
        yield done, draws[:filled]


def _drawn(creation: Random, region: Region) -> NumericArray:
    # The numbers of a region. Beyond the result, only a piece takes memory.
    out = np.empty(region_shape(region), creation.dtype)
    flat = out.reshape(-1)
    for begin, raw in raw_pieces(creation.seed, creation.stream, creation.shape, region):
        flat[begin : begin + raw.size] = creation.take(raw)
    return out


def _pieces(start: int, stop: int) -> Iterator[tuple[int, int]]:
    # The parts of a range that fit a core's cache.
    for begin in range(start, stop, _PIECE):
        yield begin, min(begin + _PIECE, stop)


def _runs(shape: tuple[int, ...], region: Region) -> Iterator[tuple[int, int]]:
    # Flat index and length of each stretch of the region's elements that are next to each other in the array.
    if 0 in region_shape(region):
        return
    axis = len(shape)  # the axes from here on are whole
    while axis and region[axis - 1] == (0, shape[axis - 1]):
        axis -= 1
    inner = prod(shape[axis:])
    if axis == 0:
        yield 0, inner
        return
    start, stop = region[axis - 1]
    for index in product(*(range(*one) for one in region[: axis - 1])):
        row = 0
        for place, length in zip(index, shape, strict=False):
            row = row * length + place
        yield (row * shape[axis - 1] + start) * inner, (stop - start) * inner


def _upper_half(raw: Raw, factor: int) -> Raw:
    # The upper 64 bits of the 128-bit products, from 32-bit halves; no sum below overflows 64 bits.
    half, mask = np.uint64(32), np.uint64(2**32 - 1)
    high, low = np.uint64(factor >> 32), np.uint64(factor & (2**32 - 1))
    raw_high, raw_low = raw >> half, raw & mask
    middle = raw_high * low + ((raw_low * low) >> half)
    upper: Raw = raw_high * high + (middle >> half) + ((raw_low * high + (middle & mask)) >> half)
    return upper
