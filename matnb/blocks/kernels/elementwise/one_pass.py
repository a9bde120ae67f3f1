"""Reductions of a chain of elementwise functions, and several of one block, in one pass over memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Protocol

import numpy as np

from matnb.blocks.formats import Block, Dense, NumericArray, cast
from matnb.blocks.kernels.calls import Output, packed_bytes, unpacked
from matnb.blocks.kernels.compiled import is_ready
from matnb.blocks.kernels.elementwise.chains import TILE_ELEMENTS, apply_chain, chain_into
from matnb.blocks.kernels.elementwise.elementwise import Link, compute, shapes_of_links
from matnb.blocks.kernels.elementwise.tiles import FLOAT, form_of, write_tiles
from matnb.blocks.kernels.reductions.deviations import Deviation, measure_tiles, slabs
from matnb.blocks.kernels.reductions.reductions import DEVIATIONS, combine, reduce_block
from matnb.blocks.sums import Range, VectorSum, merged, share_of, sums_as_tree

_EXTREMES = {"min": np.minimum, "max": np.maximum}
_MEASURABLE = {"deviation", "sum", *_EXTREMES}  # that one deviation finds
_MEASURED = (np.dtype(np.float64), np.dtype(np.float32))  # whose elements deviations see as they are
_FEW = 1 << 12  # elements: going through them in slabs takes longer than reducing them
_LONG = 1 << 20  # elements of a slab of which nothing needs to stay in cache
_WORTH_COMPILING = 1 << 18  # elements: below, what one loop saves is little beside its first call
_MADE = 1 << 18  # of one that is made first: in shorter ones the threads wait for the interpreter's lock
Take = Callable[[tuple[int, ...], np.dtype], NumericArray]
Give = Callable[[NumericArray], None]


@dataclass(frozen=True)
class Share:
    """A reduction of one of the values of a chain: what ``reduce_block`` takes.

    Parameters
    ----------
    place
        Number of the value: the operands of the chain come first, then the links in their order.
    """

    place: int
    operation: str
    axes: tuple[int, ...]
    dtype: np.dtype
    along: int | None = None
    start: int = 0


def reduce_chain(
    links: Sequence[Link],
    shares: Sequence[Share],
    operands: Sequence[Block],
    take: Take = np.empty,
    give: Give = lambda memory: None,
) -> list[Dense]:
    """Reduce operands, and what elementwise functions make of them, and return each share.

    Parameters
    ----------
    links, operands
        As of ``apply_chain``.
    shares
        One or more.
    take, give
        Where memory for tiles comes from, and what gets it back.

    Returns
    -------
    list of Dense
        The bits that ``reduce_block`` gives of each value. Where all operands are Dense and lie in C order,
        and what is reduced has one shape, each is read once, and values exist only a tile at a time. Peak
        memory is then the shares, and a tile for each value that is alive; a tile is at least one element of
        the first axis. Otherwise it is that of the chain and of the reductions one by one.
    """
    arrays = [operand.values for operand in operands if isinstance(operand, Dense)]
    shapes = shapes_of_links(links, [one.shape for one in arrays]) if len(arrays) == len(operands) else None
    if shapes is not None and max(map(prod, shapes)) <= _FEW and not any(link.sparse for link in links):
        return _at_once(links, shares, arrays)
    if shapes is None or not _runs_by_tiles(links, shares, arrays, shapes):
        return _one_by_one(links, shares, operands)
    found = _measured(links, shares, arrays, take, give)
    if found is not None:
        return found
    walk = _SlabWalk(links, shares, arrays, shapes, take)
    with np.errstate(all="ignore"):
        for first, last in walk.slabs:
            walk.add(first, last, take, give)
        for memory in walk.memory.values():
            give(memory)
        return walk.found()


def _at_once(links: Sequence[Link], shares: Sequence[Share], values: list[NumericArray]) -> list[Dense]:
    for link in links:
        operands = [values[place] for place in link.arguments]
        values.append(compute(link.name, operands, link.input_dtypes, link.dtype, link.output))
    return [
        reduce_block(one.operation, Dense(values[one.place]), one.axes, one.dtype, one.along, one.start)
        for one in shares
    ]


def packed(values: Sequence[Dense], outputs: Sequence[Output]) -> Dense:
    """Return shares packed in a block of bytes, of which ``calls.unpack`` gives one."""
    buffer = np.zeros(packed_bytes(outputs), np.uint8)
    for place, value in zip(unpacked(buffer, outputs), values, strict=True):
        place[...] = value.values
    return Dense(buffer)


@dataclass(frozen=True)
class PassPart:
    """The links that make one of the values, and the values that they read."""

    place: int
    links: tuple[Link, ...]
    arguments: tuple[int, ...]


def parts_of(links: Sequence[Link], shares: Sequence[Share], num_operands: int) -> list[PassPart]:
    """Return what makes each value that is reduced, in order; a part may read values of those before it.

    Values that are reduced are made once each, and what lies between them and the operands as well.
    """
    there = set(range(num_operands))
    parts = []
    for place in sorted({share.place for share in shares} - there):
        wanted = {place}
        for number in range(place, num_operands - 1, -1):
            if number in wanted and number not in there:
                wanted.update(links[number - num_operands].arguments)
        made = [number for number in sorted(wanted) if number not in there]
        inside = [number for number in made if number >= num_operands]
        read = sorted(wanted - set(inside))
        numbers = {one: count for count, one in enumerate((*read, *inside))}
        some = tuple(
            replace(link, arguments=tuple(numbers[one] for one in link.arguments))
            for link in (links[number - num_operands] for number in inside)
        )
        parts.append(PassPart(place, some, tuple(read)))
        there.add(place)
    return parts


def _one_by_one(links: Sequence[Link], shares: Sequence[Share], operands: Sequence[Block]) -> list[Dense]:
    values: dict[int, Block] = dict(enumerate(operands))
    for part in parts_of(links, shares, len(operands)):
        values[part.place] = apply_chain(part.links, [values[one] for one in part.arguments])
    return [
        reduce_block(one.operation, values[one.place], one.axes, one.dtype, one.along, one.start)
        for one in shares
    ]


def _runs_by_tiles(
    links: Sequence[Link],
    shares: Sequence[Share],
    arrays: Sequence[NumericArray],
    shapes: Sequence[tuple[int, ...]],
) -> bool:
    shape = shapes[shares[0].place]
    if not shape or prod(shape) == 0 or any(link.sparse for link in links):
        return False
    if any(np.broadcast_shapes(one, shape) != shape for one in shapes):
        return False
    if not all(array.flags.c_contiguous for array in arrays if array.shape == shape):
        return False
    return all(shapes[one.place] == shape and _goes_by_slabs(one, len(shape)) for one in shares)


def _goes_by_slabs(share: Share, num_axes: int) -> bool:
    # whether the share follows from those of slabs of the first axis, bit by bit
    if share.operation in DEVIATIONS:
        return share.operation == "deviation" and len(share.axes) == num_axes and share.along in (None, 0)
    if 0 not in share.axes:
        return True
    if sums_as_tree(share.operation, share.dtype):
        return share.dtype.kind == "f" and share.along in (None, 0)
    return share.operation not in ("sum", "prod") or share.dtype.kind in "biu"


def _found_by_one_deviation(shares: Sequence[Share], arrays: Sequence[NumericArray]) -> bool:
    operations, values = {share.operation for share in shares}, arrays[shares[0].place]
    return (
        "deviation" in operations <= _MEASURABLE
        and all(share.place == shares[0].place for share in shares)
        and values.ndim == 1
        and values.dtype in _MEASURED
    )


def _measured(
    links: Sequence[Link], shares: Sequence[Share], arrays: Sequence[NumericArray], take: Take, give: Give
) -> list[Dense] | None:
    # Shares that one deviation finds, of what the tile machine makes: made and measured by one loop.
    operations = {share.operation for share in shares}
    if len({share.place for share in shares}) > 1 or not operations <= _MEASURABLE:
        return None
    if len(operations) == 1 and "deviation" not in operations:
        return None  # which is less work
    parts = parts_of(links, shares, len(arrays))
    if len(parts) != 1 or any(share.dtype != FLOAT for share in shares):
        return None
    read = [arrays[place] for place in parts[0].arguments]
    tiles = write_tiles(parts[0].links, tuple(map(form_of, read)), 0, None)
    if tiles is None or tiles.dtype != FLOAT or len(tiles.shape) != 1:
        return None
    if tiles.length < _WORTH_COMPILING and not is_ready(measure_tiles):
        return None
    start = max(share.start if share.along == 0 else 0 for share in shares)
    deviation, one_run = Deviation(start), tiles.begin(read, np.empty(0))
    buffers = take(one_run.room, FLOAT)
    deviation.add_made(one_run.program(buffers), tiles.direct, tiles.length)
    give(buffers)
    found = [_measured_share(share, deviation, tiles.length) for share in shares]
    return None if any(share is None for share in found) else [Dense(one) for one in found if one is not None]


def _measured_share(share: Share, deviation: Deviation, length: int) -> NumericArray | None:
    # None for an extreme that is not certain
    if share.operation in _EXTREMES:
        extreme = deviation.extreme(share.operation)
        return None if extreme is None else np.full(1, extreme)
    fold = _fold_of(share, (length,), 0 if share.along is None else share.start, {share.place: deviation})
    return fold.found()


class _SlabWalk:
    """Goes through the values slab by slab along the first axis.

    Attributes
    ----------
    shape, start
        Of what is reduced, and its global place on the first axis.
    slabs
        Where each begins and ends on that axis.
    memory
        A tile for each value that is made.
    """

    def __init__(
        self,
        links: Sequence[Link],
        shares: Sequence[Share],
        arrays: Sequence[NumericArray],
        shapes: Sequence[tuple[int, ...]],
        take: Take,
    ) -> None:
        self._arrays, self._shares = arrays, shares
        self._parts = parts_of(links, shares, len(arrays))
        self.shape = shapes[shares[0].place]
        self.start = max(share.start if share.along == 0 else 0 for share in shares)
        is_read_once = not self._parts and _found_by_one_deviation(shares, arrays)
        length = _LONG if is_read_once else _MADE if self._parts else TILE_ELEMENTS
        self.slabs = slabs(self.shape, self.start, length)
        rows = max(last - first for first, last in self.slabs)
        self.memory = {
            part.place: take((rows, *self.shape[1:]), part.links[-1].dtype) for part in self._parts
        }
        measured = {share.place: Deviation(self.start) for share in shares if share.operation == "deviation"}
        self._measured = measured
        self._folds = [_fold_of(share, self.shape, self.start, measured) for share in shares]

    def add(self, first: int, last: int, take: Take, give: Give) -> None:
        """Reduce a slab."""
        begin, end = first - self.start, last - self.start
        values: dict[int, NumericArray] = {
            place: one[begin:end] if one.ndim == len(self.shape) and one.shape[0] > 1 else one
            for place, one in enumerate(self._arrays)
        }
        for part in self._parts:
            out = self.memory[part.place][: end - begin]
            arrays = [values[one] for one in part.arguments]
            if not chain_into(part.links, arrays, out, take, give, prod(self.shape)):
                raise AssertionError("slabs of arrays in C order are in C order")
            values[part.place] = out
        for place, deviation in self._measured.items():
            deviation.add(values[place])
        for share, fold in zip(self._shares, self._folds, strict=True):
            fold.add(values[share.place], first)

    def found(self) -> list[Dense]:
        """Return the shares of what was added."""
        return [Dense(fold.found()) for fold in self._folds]


class _Fold(Protocol):
    # A share that is put together slab by slab.

    def add(self, slab: NumericArray, at: int) -> None:
        """Add the next slab, which begins at a global place."""

    def found(self) -> NumericArray:
        """Return the share."""


def _fold_of(share: Share, shape: tuple[int, ...], start: int, measured: Mapping[int, Deviation]) -> _Fold:
    ones = (1,) * (len(shape) - 1)
    whole = (start, start + shape[0]) if share.along is None else None
    is_full = len(share.axes) == len(shape)
    if share.operation == "deviation":
        return _DeviationPass(measured[share.place], share.along is None, ones)
    if sums_as_tree(share.operation, share.dtype) and 0 in share.axes:
        if is_full and share.place in measured:
            return _MeasuredSum(measured[share.place], whole, ones)
        if len(shape) == 1:
            return _VectorSum(VectorSum(start), whole)
        return _SumFold(share, whole)
    if is_full and share.operation in _EXTREMES:
        return _ExtremeFold(share, ones, measured.get(share.place))
    return _PlainFold(share)


@dataclass
class _DeviationPass:
    # A deviation; slabs are added to it once, whoever needs it.
    deviation: Deviation
    is_whole: bool
    ones: tuple[int, ...]

    def add(self, slab: NumericArray, at: int) -> None:
        """Do nothing."""

    def found(self) -> NumericArray:
        """Return its nodes."""
        nodes = self.deviation.whole() if self.is_whole else self.deviation.share()
        return nodes.reshape(-1, *self.ones, nodes.shape[-1])


@dataclass
class _MeasuredSum:
    # A sum that a deviation finds as well.
    deviation: Deviation
    whole: Range | None
    ones: tuple[int, ...]

    def add(self, slab: NumericArray, at: int) -> None:
        """Do nothing."""

    def found(self) -> NumericArray:
        """Return the share of the sum."""
        return _ended(self.deviation.sums(), self.whole).reshape(-1, *self.ones)


@dataclass
class _VectorSum:
    total: VectorSum
    whole: Range | None

    def add(self, slab: NumericArray, at: int) -> None:
        """Add the next slab."""
        self.total.add(slab)

    def found(self) -> NumericArray:
        """Return the share."""
        return _ended(self.total.share(), self.whole)


class _SumFold:
    # A sum over the first axis, and perhaps others.
    def __init__(self, share: Share, whole: Range | None) -> None:
        self._share, self._whole = share, whole
        self._parts: list[NumericArray] = []
        self._ranges: list[Range] = []

    def add(self, slab: NumericArray, at: int) -> None:
        """Add the next slab."""
        self._parts.append(share_of(slab, self._share.axes, 0, at))
        self._ranges.append((at, at + slab.shape[0]))

    def found(self) -> NumericArray:
        """Return the share."""
        return merged(np.concatenate(self._parts), self._ranges, 0, self._whole is not None)


class _ExtremeFold:
    # The least or the greatest element of all.
    def __init__(self, share: Share, ones: tuple[int, ...], deviation: Deviation | None) -> None:
        self._reduce, self._share, self._ones = _EXTREMES[share.operation].reduce, share, ones
        self._deviation = deviation if share.dtype in _MEASURED else None
        self._parts: list[NumericArray | float] = []

    def add(self, slab: NumericArray, at: int) -> None:
        """Add the next slab, of which a deviation may have found the extremes as well."""
        there = self._deviation if slab.dtype == self._share.dtype else None
        known = there.extreme(self._share.operation) if there else None
        self._parts.append(self._reduce(cast(slab, self._share.dtype), axis=None) if known is None else known)

    def found(self) -> NumericArray:
        """Return the share."""
        return np.asarray(self._reduce(np.array(self._parts, self._share.dtype))).reshape(1, *self._ones)


class _PlainFold:
    # What may be combined in any order, and what each line of the first axis gives alone.
    def __init__(self, share: Share) -> None:
        self._share = share
        self._parts: list[Dense] = []

    def add(self, slab: NumericArray, at: int) -> None:
        """Add the next slab."""
        one = self._share
        part = reduce_block(one.operation, Dense(slab), one.axes, one.dtype, one.along, one.start)
        self._parts.append(part)

    def found(self) -> NumericArray:
        """Return the share."""
        if 0 in self._share.axes:
            return combine(self._share.operation, self._parts).values
        return np.concatenate([part.values for part in self._parts])


def _ended(nodes: NumericArray, whole: Range | None) -> NumericArray:
    # The value of the tree, where the nodes are those of a whole axis.
    return nodes if whole is None else merged(nodes, [whole], 0, True)
