"""Chains of elementwise functions, evaluated tile by tile so that what lies between stays in cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from matnb.blocks.formats import Block, Csr, Dense, NumericArray, cast
from matnb.blocks.kernels.compiled import is_ready
from matnb.blocks.kernels.elementwise.elementwise import (
    Function,
    Link,
    apply,
    compute,
    function_named,
    select_into,
    shapes_of_links,
)
from matnb.blocks.kernels.elementwise.tile_loops import TILE, run_tiles
from matnb.blocks.kernels.elementwise.tiles import FLOAT, TRUTH, form_of, write_tiles
from matnb.blocks.kernels.patterns import same_pattern, settled
from matnb.blocks.kernels.shaping.selecting import prune

# With shorter ones threads wait for the interpreter's lock, which each call takes again when it is done.
TILE_ELEMENTS = 1 << 16
_WHERE = function_named("where")
_WORTH_COMPILING = 1 << 18  # elements: below, what the machine saves is little beside its first call
_LINE = 8  # doubles of a line of the cache, at which tiles begin


@dataclass(frozen=True)
class _Step:
    # One ufunc, ``where`` or cast that reads arrays of exactly its dtypes and fills one of ``dtype``.
    name: str
    dtype: np.dtype
    output: int
    arguments: tuple[int, ...]


def apply_chain(links: Sequence[Link], operands: Sequence[Block]) -> Block:
    """Apply elementwise functions one after the other and return what the last one gives.

    Parameters
    ----------
    links
        Each reads operands and links before it.
    operands
        Of any format and shape that :func:`apply` takes.

    Returns
    -------
    Block
        The bits that :func:`apply`, link by link, gives. Where all operands are Dense, or are scalars and
        blocks that share the memory of one pattern, values between the first and the last link exist only a
        tile at a time. Peak memory is then the result, and a tile for each value that is alive at a time and
        for each number;
        links of fewer elements than the result, as those of scalars, are held whole. Otherwise it is that of
        the links one by one, each value going with its last reader.

    Raises
    ------
    UnsupportedError, ShapeError
        As of :func:`apply`.
    """
    if len(links) > 1:
        if all(isinstance(operand, Dense) for operand in operands):
            arrays = [operand.values for operand in operands if isinstance(operand, Dense)]
            values = None if any(link.sparse for link in links) else _tiled(links, arrays)
            if values is not None:
                return Dense(values)
        else:
            found = _on_one_pattern(links, operands)
            if found is not None:
                return found
    return _one_by_one(links, operands)


def chain_into(
    links: Sequence[Link],
    arrays: Sequence[NumericArray],
    out: NumericArray,
    take: Callable[[tuple[int, ...], np.dtype], NumericArray],
    give: Callable[[NumericArray], None],
    num_elements: int | None = None,
) -> bool:
    """Write what :func:`apply_chain` gives of Dense operands into given memory, if that can be done by tiles.

    Parameters
    ----------
    links, arrays
        The functions, whose result is not sparse, and the operands' elements.
    out
        Memory of the result's shape and dtype. It may be an operand's of this shape.
    take, give
        Where memory for a tile of each value that is alive comes from, and what gets it back.
    num_elements
        Of all parts, where the result is part of what is made; those of ``out`` by default.

    Returns
    -------
    bool
        False where nothing was written: operands do not broadcast, or they or ``out`` lie in another order in
        memory.
    """
    shapes = shapes_of_links(links, [one.shape for one in arrays])
    if shapes is None or not out.flags.c_contiguous or not _fits_tiles(shapes, arrays):
        return False
    if _run_by_machine(links, arrays, out, take, give, num_elements or out.size):
        return True
    with np.errstate(all="ignore"):
        writer = _write_steps(links, arrays, shapes)
        _evaluate(writer.steps, writer.sources, out, take, give)
    return True


def _one_by_one(links: Sequence[Link], operands: Sequence[Block]) -> Block:
    values: list[Block | None] = list(operands)
    last = {place: number for number, link in enumerate(links) for place in link.arguments}
    for number, link in enumerate(links):
        read = [one for place in link.arguments if (one := values[place]) is not None]
        made = apply(link.name, read, link.input_dtypes, link.dtype, link.output, link.sparse)
        values.append(prune([made], 0) if link.drops_zeros else made)
        for place in link.arguments:
            if last[place] == number:
                values[place] = None
    result = values[-1]
    assert result is not None
    return result


def _on_one_pattern(links: Sequence[Link], operands: Sequence[Block]) -> Block | None:
    # Ones of a pattern are a scalar; what is computed from such alone is the same at every entry.
    pattern = next((operand for operand in operands if isinstance(operand, Csr)), None)
    if pattern is None:
        return None
    arrays: list[NumericArray] = []
    is_sparse: list[bool] = []
    for operand in operands:
        if isinstance(operand, Csr) and operand.shape == pattern.shape and same_pattern(operand, pattern):
            arrays.append(np.ones(1, operand.dtype) if operand.values is None else operand.values)
        elif isinstance(operand, Dense) and operand.values.size == 1 and len(operand.shape) <= 2:
            arrays.append(operand.values.reshape(1))
        else:
            return None
        is_sparse.append(isinstance(operand, Csr))
    for link in links:
        is_sparse.append(any(is_sparse[place] for place in link.arguments))
        if link.sparse != is_sparse[-1]:
            return None
    # An entry that is left out counts as the 0 that it is for those that leave out their own zeros too.
    drops = [link.drops_zeros for link in links]
    if True in drops and not all(drops[drops.index(True) :]):
        return None
    values = _tiled(links, arrays) if is_sparse[-1] else None
    if values is None:
        return None
    dtype = links[-1].dtype
    if values.size != pattern.nnz or pattern.nnz == 1:
        one = values[0]
        kept = None if one == dtype.type(1) else np.full(pattern.nnz, one, dtype)
    else:
        kept = values
    found = Csr(pattern.shape, pattern.pointers, pattern.columns, kept, dtype)
    return prune([found], 0) if drops[-1] else settled(found)


def _tiled(links: Sequence[Link], arrays: Sequence[NumericArray]) -> NumericArray | None:
    # None where shapes do not broadcast, which link by link says best, or memory is in another order.
    shapes = shapes_of_links(links, [one.shape for one in arrays])
    if shapes is None:
        return None
    if prod(shapes[-1]) <= TILE_ELEMENTS:
        values = list(arrays)
        for link in links:
            operands = [values[place] for place in link.arguments]
            values.append(compute(link.name, operands, link.input_dtypes, link.dtype, link.output))
        return values[-1]
    out = np.empty(shapes[-1], links[-1].dtype)
    if _run_by_machine(links, arrays, out, np.empty, lambda memory: None, out.size):
        return out
    if not _fits_tiles(shapes, arrays):
        return None
    writer = _write_steps(links, arrays, shapes)
    with np.errstate(all="ignore"):
        _evaluate(writer.steps, writer.sources, out, np.empty, lambda memory: None)
    return out


def _run_by_machine(
    links: Sequence[Link],
    arrays: Sequence[NumericArray],
    out: NumericArray,
    take: Callable[[tuple[int, ...], np.dtype], NumericArray],
    give: Callable[[NumericArray], None],
    num_elements: int,
) -> bool:
    # It goes from function to function without the interpreter's lock, so that its tiles may be short.
    if out.dtype not in (FLOAT, TRUTH) or (num_elements < _WORTH_COMPILING and not is_ready(run_tiles)):
        return False
    tiles = write_tiles(tuple(links), tuple(map(form_of, arrays)), 0, None)
    if tiles is None:
        return False
    memory = take((tiles.num_buffers * TILE + _LINE,), FLOAT)
    skipped = -memory.ctypes.data % (_LINE * FLOAT.itemsize) // FLOAT.itemsize
    buffers = memory[skipped:][: tiles.num_buffers * TILE].reshape(tiles.num_buffers, TILE)
    tiles.begin(arrays, out).run(0, tiles.length, buffers)
    give(memory)
    return True


def _fits_tiles(shapes: Sequence[tuple[int, ...]], arrays: Sequence[NumericArray]) -> bool:
    shape = shapes[-1]
    if any(np.broadcast_shapes(one, shape) != shape for one in shapes):  # a link that the last does not need
        return False
    # Of memory in another order NumPy's loops may round otherwise where they step through it otherwise.
    return all(array.flags.c_contiguous for array in arrays if array.shape == shape)


def _write_steps(
    links: Sequence[Link], arrays: Sequence[NumericArray], shapes: Sequence[tuple[int, ...]]
) -> _StepWriter:
    writer = _StepWriter(arrays, shapes[-1])
    for link, its_shape in zip(links, shapes[len(arrays) :], strict=True):
        writer.add(link, is_whole=its_shape != shapes[-1])
    return writer


class _StepWriter:
    """Writes links as steps; ``~n`` names the n-th source, and ``n`` the n-th step.

    Parameters
    ----------
    arrays
        The operands.
    shape
        Of the result. What has fewer elements is computed here and now, and becomes a source.
    """

    def __init__(self, arrays: Sequence[NumericArray], shape: tuple[int, ...]) -> None:
        self.sources: list[NumericArray] = []
        self.steps: list[_Step] = []
        self._shape = shape
        self._values: list[NumericArray | int] = list(arrays)
        self._found: dict[tuple[int, np.dtype], int] = {}

    def add(self, link: Link, is_whole: bool) -> None:
        if is_whole:
            arrays = [one for place in link.arguments if not isinstance(one := self._values[place], int)]
            self._values.append(compute(link.name, arrays, link.input_dtypes, link.dtype, link.output))
            return
        read = zip(link.arguments, link.input_dtypes, strict=True)
        arguments = tuple(self._read(place, dtype) for place, dtype in read)
        found = function_named(link.name)(*(np.empty(0, dtype) for dtype in link.input_dtypes))
        dtype = np.asarray(found[link.output] if isinstance(found, tuple) else found).dtype
        number = self._do(_Step(link.name, dtype, link.output, arguments))
        if dtype != link.dtype:
            number = self._do(_Step("astype", link.dtype, 0, (number,)))
        self._found[len(self._values), link.dtype] = number
        self._values.append(number)

    def _read(self, place: int, dtype: np.dtype) -> int:
        if (place, dtype) not in self._found:
            value = self._values[place]
            if isinstance(value, int):
                number = self._do(_Step("astype", dtype, 0, (value,)))
            elif value.dtype == dtype or value.shape != self._shape:
                self.sources.append(cast(value, dtype))
                number = ~(len(self.sources) - 1)
            else:
                number = self._do(_Step("astype", dtype, 0, (self._read(place, value.dtype),)))
            self._found[place, dtype] = number
        return self._found[place, dtype]

    def _do(self, step: _Step) -> int:
        self.steps.append(step)
        return len(self.steps) - 1


def _evaluate(
    steps: Sequence[_Step],
    sources: Sequence[NumericArray],
    result: NumericArray,
    take: Callable[[tuple[int, ...], np.dtype], NumericArray],
    give: Callable[[NumericArray], None],
) -> None:
    shape, whole = result.shape, result
    if not shape or all(one.shape == shape or one.size == 1 for one in sources):
        sources = [one.reshape(-1) for one in sources]  # one axis has the longest inner loops
        whole = result.reshape(-1)
    numbers, dtypes = _buffer_numbers(steps)
    memory = [take((min(TILE_ELEMENTS, whole.size),), dtype) for dtype in dtypes]
    functions = [function_named(step.name) for step in steps]
    buffers: list[NumericArray] = []
    for region in _regions(whole.shape):
        target = whole[region]
        if not buffers or buffers[0].shape != target.shape:
            buffers = [one[: target.size].reshape(target.shape) for one in memory]
        read = [_part(one, region) for one in sources]
        outs = [target if number < 0 else buffers[number] for number in numbers]
        for step, function, out in zip(steps, functions, outs, strict=True):
            operands = [outs[place] if place >= 0 else read[~place] for place in step.arguments]
            _fill(function, operands, step.output, out)
    for one in memory:
        give(one)


def _fill(function: Function, operands: Sequence[NumericArray], output: int, out: NumericArray) -> None:
    if function is _WHERE and select_into(operands[0], operands[1], operands[2], out):
        return
    if not isinstance(function, np.ufunc):
        found = function(*operands)
        assert not isinstance(found, tuple)
        real = found.real if found.dtype.kind == "c" and out.dtype.kind not in "cb" else found
        np.copyto(out, real, casting="unsafe")
    elif function.nout == 1:
        function(*operands, out=out)
    else:
        function(*operands, out=tuple(out if number == output else None for number in range(function.nout)))


def _buffer_numbers(steps: Sequence[_Step]) -> tuple[list[int], list[np.dtype]]:
    # Which buffer each step fills, -1 for the result, and the dtypes of the buffers. A buffer is taken again
    # after the last reader of what it holds, so that fewer need a place in the cache.
    last = {place: number for number, step in enumerate(steps) for place in step.arguments if place >= 0}
    numbers: list[int] = []
    dtypes: list[np.dtype] = []
    free: list[int] = []
    for number, step in enumerate(steps):
        if number == len(steps) - 1:
            numbers.append(-1)
            break
        fitting = [one for one in free if dtypes[one] == step.dtype]
        if fitting:
            free.remove(fitting[-1])
            numbers.append(fitting[-1])
        else:
            numbers.append(len(dtypes))
            dtypes.append(step.dtype)
        free += [numbers[place] for place in set(step.arguments) if last.get(place) == number]
    return numbers, dtypes


def _regions(shape: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    # Rectangles of at most a tile's elements: whole rows where several fit, else pieces of one.
    axis = next(one for one in range(len(shape)) if prod(shape[one + 1 :]) <= TILE_ELEMENTS)
    length = max(1, TILE_ELEMENTS // max(1, prod(shape[axis + 1 :])))
    rest = tuple(slice(None) for _ in shape[axis + 1 :])
    for index in np.ndindex(shape[:axis]):
        leading = tuple(slice(one, one + 1) for one in index)
        for start in range(0, shape[axis], length):
            yield (*leading, slice(start, min(start + length, shape[axis])), *rest)


def _part(array: NumericArray, region: tuple[slice, ...]) -> NumericArray:
    if array.size == 1:
        return array
    own = region[len(region) - array.ndim :]
    key = tuple(slice(None) if length == 1 else one for length, one in zip(array.shape, own, strict=True))
    return array[key]
