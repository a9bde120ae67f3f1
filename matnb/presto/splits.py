"""Presto's splits and foreach: arrays as sequences of parts, and a function called for each of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import overload

import numpy as np
import scipy.sparse as sp

from matnb.blocks.formats import NumericArray
from matnb.blocks.grid import MOST_PARTS, Grid, Region, region_shape
from matnb.blocks.kernels.calls import Function, SplitPart, results_of
from matnb.blocks.kernels.reductions.labels import reduced_dtype
from matnb.blocks.layout import Layout
from matnb.blocks.semiring import MONOIDS
from matnb.errors import LoopBodyError, OptionError, ShapeError, TooLargeError, suggestion
from matnb.expr.client_data import SHIP_BYTES
from matnb.expr.nodes import Expr, Shape
from matnb.lazy.array import DistArray, wrap
from matnb.lazy.evaluator import evaluator
from matnb.lazy.functions.mapping import function_name, tried
from matnb.lazy.handles import expression_of
from matnb.lazy.loop import loop_numbers
from matnb.lazy.portable import portable
from matnb.pictures.quantities import bytes_text, plural_text
from matnb.presto.calls import (
    BLOCKS,
    WAYS,
    CombinedValue,
    Foreach,
    ForeachArray,
    ForeachValue,
    SplitArray,
    part_of,
    regular_parts,
    split_space,
)
from matnb.presto.pictures import parts_html, parts_text

_MOST_SHOWN = 20  # parts
_ROWS = 2  # of an example: one would not tell rows from a sum of them
_ON_ONES = "let it take ones, or give reduce=() if it gives no values to combine"
Cuts = tuple[tuple[int, ...], ...]


class Splits(Sequence[SplitPart]):
    """The parts of one array, or the same parts of several; made by :func:`matnb.splits`.

    Looking at it computes and moves nothing: parts of an array that is not laid out yet are those it will
    have. It follows its arrays: after an assignment, or a repartition, it has the parts that there are then.

    Attributes
    ----------
    arrays : tuple of DistArray
        The arrays that are split.
    by : str
        "rows", "columns" or "blocks".
    """

    def __init__(self, arrays: tuple[DistArray, ...], by: str, cuts: Cuts) -> None:
        self.arrays, self.by, self._cuts = arrays, by, cuts

    @property
    def cuts(self) -> Cuts:
        """Cuts of the axes that are split, where ``n`` was given; else empty."""
        return self._cuts

    def _parts(self) -> list[SplitPart]:
        # Planned as a function that gives nothing of its own would be.
        nodes = tuple(one.expression for one in self.arrays)
        if any(node.free for node in nodes):
            raise LoopBodyError(
                "splits: an array inside the body of a loop or branch, which is only being recorded, has no "
                "parts to look at yet; give the splits to mn.foreach, whose function may take part="
            )
        layout, shape = layout_of_parts(nodes, self.by, self._cuts), nodes[0].shape
        regions = [part_of(shape, self.by, part) for part in layout.grid.regions()]
        return [
            SplitPart(index, len(regions), tuple(slice(*axis) for axis in region), owner)
            for index, (region, owner) in enumerate(zip(regions, layout.owners, strict=True))
        ]

    def __len__(self) -> int:
        return len(self._parts())

    @overload
    def __getitem__(self, place: int) -> SplitPart: ...
    @overload
    def __getitem__(self, place: slice) -> list[SplitPart]: ...
    def __getitem__(self, place: int | slice) -> SplitPart | list[SplitPart]:
        return self._parts()[place]

    def __iter__(self) -> Iterator[SplitPart]:
        return iter(self._parts())

    def __repr__(self) -> str:
        title, parts, left = self._shown()
        return parts_text(title, parts, left)

    def _repr_html_(self) -> str:
        title, parts, left = self._shown()
        return parts_html(title, parts, left)

    def _shown(self) -> tuple[str, list[tuple[str, str, str]], int]:
        shapes = ", ".join(f"{one.shape} {one.dtype}" for one in self.arrays)
        if any(one.expression.free for one in self.arrays):
            return f"splits of {shapes} by {self.by}, inside the body of a loop or branch", [], 0
        parts = self._parts()
        shown = [
            (
                str(one.index),
                f"[{', '.join(f'{axis.start}:{axis.stop}' for axis in one.region)}]",
                f"worker {one.owner}",
            )
            for one in parts[:_MOST_SHOWN]
        ]
        title = f"splits of {shapes} by {self.by}: {plural_text(len(parts), 'part')}"
        return title, shown, len(parts) - len(shown)


def layout_of_parts(nodes: tuple[Expr, ...], by: str, cuts: Cuts) -> Layout:
    """Return how a function's calls for the parts of arrays would lie; computes nothing."""
    function, space = Function("parts", b"", b""), split_space(nodes[0].shape, by)
    made = SplitArray(space, np.dtype(np.uint8), False, BLOCKS)
    call = Foreach(nodes, function, (by,) * len(nodes), (made,), (), cuts, True, b"", 0)
    found = evaluator().planned_layout(ForeachArray(call, 0))
    if cuts and found.grid.cuts != cuts:  # the interpreter's, which makes arrays whole
        return Layout(Grid(cuts), found.owners[:1] * Grid(cuts).num_blocks)
    return found


def splits(*arrays: DistArray, by: str = "rows", n: int | Sequence[int] | None = None) -> Splits:
    """Return the parts of an array, for :func:`matnb.foreach`.

    It is a sequence: ``len``, indexing and a ``for`` loop give for each part ``part.index``, ``part.count``,
    ``part.region``, slices such that ``A[part.region]`` is the part, and ``part.owner``, the number of the
    worker that has it. Looking computes and moves nothing.

    Parameters
    ----------
    *arrays
        An array, or several with axes of equal length that are split at the same places; the first one's
        parts are shown, and its workers.
    by
        "rows" for ranges of the first axis, "columns" for ranges of the last, or "blocks" for rectangles, of
        arrays of one shape.
    n
        The number of nearly equal parts; for blocks a number for each axis. By default parts are as the first
        array is cut, and change when it is repartitioned.

    Raises
    ------
    OptionError
        For anything other than a DistArray, an unknown ``by``, and ``n`` below 1.
    ShapeError
        For numbers, which have no parts, and for axes of unequal length.
    LoopBodyError
        When the parts of an array are looked at in the body of a loop or branch.

    Examples
    --------
    >>> import matnb as mn
    >>> A = mn.ones((10, 3))
    >>> [part.region for part in mn.splits(A, n=2)]
    [(slice(0, 5, None), slice(0, 3, None)), (slice(5, 10, None), slice(0, 3, None))]

    References
    ----------
    Venkataraman et al., "Presto: distributed machine learning and graph processing with sparse matrices",
    EuroSys 2013, section 3.1.
    """
    if not arrays:
        raise OptionError("splits: give an array")
    for one in arrays:
        if not isinstance(one, DistArray):
            raise OptionError(f"splits: {type(one).__name__} is not a DistArray; make one with mn.asarray")
    if by not in WAYS:
        raise OptionError(f"splits(by={by!r}); {suggestion(by, WAYS)}")
    if any(not one.ndim for one in arrays):
        raise ShapeError("splits: a number has no parts; give arrays of at least one axis")
    if len({split_space(one.shape, by) for one in arrays}) > 1:
        shapes = ", ".join(str(one.shape) for one in arrays)
        raise ShapeError(f"splits: arrays of shapes {shapes} do not have equally many {by}")
    shape = arrays[0].shape
    return Splits(arrays, by, () if n is None else regular_parts(shape, by, _counts(n, shape, by)))


def _counts(n: int | Sequence[int], shape: Shape, by: str) -> tuple[int, ...]:
    counts = tuple(n) if isinstance(n, Sequence) and not isinstance(n, str) else (n,)
    for one in counts:
        is_number = isinstance(one, int | np.integer) and not isinstance(one, bool)
        if not is_number or not 1 <= one <= MOST_PARTS:
            raise OptionError(f"splits(n={n!r}): give whole numbers from 1 to {MOST_PARTS:,}")
    wanted = len(split_space(shape, by))
    if len(counts) != wanted:
        wanted_text = plural_text(wanted, "number")
        raise ShapeError(
            f"splits(n={n!r}): give {wanted_text}, of parts along each axis that is split by {by}"
        )
    return tuple(map(int, counts))


def foreach(
    fn: Callable[..., object],
    *parts: Splits,
    whole: object = (),
    out: Sequence[DistArray] = (),
    reduce: str | Sequence[str] = "plus",
    like: object = (),
    safe: bool = True,
    pure: bool = True,
) -> DistArray | tuple[DistArray, ...]:
    """Call a function for each part of some arrays, where the first array's part is: Presto's ``foreach``.

    It is recorded, not run: what reads a result waits for it, so there is no barrier. Nothing is gathered
    but what is in ``whole``. Inside the body of :func:`matnb.iterate` it works on the state too.

    Parameters
    ----------
    fn
        Called as ``fn(block, ..., *whole)``, with a block of each array that is split. Blocks are NumPy
        arrays, and SciPy CSR arrays where arrays are sparse; all are read-only. It returns a block for each
        array in ``out`` and ``like``, then values to combine, in a tuple where there are several. If it has
        a keyword-only parameter ``part``, it is passed the part's ``index``, ``count`` and ``region``. It
        must be deterministic.
    *parts
        Of :func:`matnb.splits`. All arrays have the same parts, so axes that are split are equally long.
    whole
        Arrays, or one, of which every call gets all.
    out
        Arrays whose blocks ``fn`` gives: each handle gets a new version (Presto's ``update``). Whoever read
        the version before keeps it.
    reduce
        The monoid that combines the values of all parts: "plus", "times", "min", "max", "lor" or "land", or
        one for each value. Neighboring parts are combined first, then what they gave, so the bits of a sum
        follow the parts, and never the workers. ``()``: there are no values, and ``fn`` is not tried on ones.
    like
        Examples of new arrays that ``fn`` gives after those of ``out``: an array, or a tuple of them, of
        which only shape, dtype and format matter.
    safe
        Whether results are right for any parts. A function that is not safe, such as one that sets the first
        row of each part, is tied to the parts there are when it is recorded, and the cuts of its arrays stay
        as long as a result of it lives.
    pure
        Whether equal blocks always give equal results. If not, results are not remembered, and in the body of
        a loop it is called in each iteration.

    Returns
    -------
    DistArray or tuple of DistArrays
        The handles of ``out``, the arrays of ``like``, the combined values; a tuple if there are several.
        Ask for results of one call together, as the end of a cell and :func:`matnb.compute` do: then the
        function is called once a part.

    Raises
    ------
    OptionError
        For arguments of other kinds, one array twice in ``out``, splits into unequal numbers of parts, and a
        function that cannot be sent to workers, or tried on ones.
    ShapeError
        If axes that are split differ in length; if a block has another shape than its part of the array.
    DTypeError
        If ``fn`` returns anything but numbers, or floats for an array of whole numbers and the like.
    TooLargeError
        If two rows of ones are too large to try ``fn`` on.
    KernelError
        If ``fn`` raises on a worker, with the part, the worker, its own error and line.

    Examples
    --------
    An iteration of PageRank, with what it changed:

    >>> import numpy as np, matnb as mn
    >>> M, x, z = mn.asarray(np.full((4, 4), 0.25)), mn.arange(4.0), mn.ones(4)
    >>> p = mn.zeros(4)
    >>> def update_rank(m, z, x, *, part):
    ...     new = m @ x + z
    ...     return new, np.abs(new - x[part.region[0]]).sum()
    >>> p, change = mn.foreach(update_rank, mn.splits(M), mn.splits(z), whole=[x], out=[p])
    >>> p.compute(), float(change)
    (array([2.5, 2.5, 2.5, 2.5]), 5.0)

    References
    ----------
    Venkataraman et al., "Presto: distributed machine learning and graph processing with sparse matrices",
    EuroSys 2013, sections 3.2 and 5.3.
    """
    name = function_name(fn, "foreach")
    _check_arguments(parts, out, reduce)
    arrays = list(chain.from_iterable(one.arrays for one in parts))
    ways = tuple(one.by for one in parts for _ in one.arrays)
    nodes = [one.expression for one in arrays]
    for node, by in zip(nodes, ways, strict=True):
        if split_space(node.shape, by) != split_space(nodes[0].shape, ways[0]):
            raise ShapeError(
                f"foreach: {node.shape} by {by} beside {nodes[0].shape} by {ways[0]}: parts are at the same "
                "places of all arrays, so the axes that are split must be equally long"
            )
    several = whole if isinstance(whole, tuple | list) else (whole,)
    whole_ones = [expression_of(one) for one in several]
    known = {id(one): by for one, by in zip(arrays, ways, strict=True)}
    made = tuple(
        SplitArray(one.shape, one.dtype, one.sparse, known.get(id(one), ways[0])) for one in out
    ) + tuple(_new_array(one, ways[0]) for one in (like if isinstance(like, tuple | list) else (like,)))
    function = portable(fn, name, "foreach", "part")
    found = _call_on_ones(fn, function, nodes, ways, whole_ones, made) if len(reduce) else []
    values = _combined(found, reduce, name)
    if not made and not values:
        raise OptionError(f"foreach: {name} gives nothing: name arrays in out= or like=, or return values")
    cuts: Cuts = next((one.cuts for one in parts if one.cuts), ())
    if not safe and not cuts and not any(node.free for node in nodes):
        cuts = layout_of_parts(tuple(nodes[: len(parts[0].arrays)]), ways[0], ()).grid.cuts
    token = b"" if pure else os.urandom(16)
    inputs = (*nodes, *whole_ones, *(() if pure else loop_numbers()))
    call = Foreach(inputs, function, ways, made, values, cuts, safe, token, len(whole_ones))
    return _handed_out(wrap(call).expression, out, len(made), len(values))


def _handed_out(
    call: Expr, out: Sequence[DistArray], num_arrays: int, num_values: int
) -> DistArray | tuple[DistArray, ...]:
    for place, one in enumerate(out):
        one._become(ForeachArray(call, place))
    new = [wrap(ForeachArray(call, place)) for place in range(len(out), num_arrays)]
    values = [wrap(ForeachValue(call, place)) for place in range(num_values)]
    results = (*out, *new, *values)
    return results if len(results) > 1 else results[0]


def _check_arguments(parts: Sequence[object], out: object, reduce: object) -> None:
    names = (reduce,) if isinstance(reduce, str) else reduce
    if not isinstance(names, tuple | list) or any(not isinstance(one, str) for one in names):
        raise OptionError(f"foreach(reduce={reduce!r}): give the name of a monoid, a list of them, or ()")
    if not parts:
        raise OptionError("foreach: give the parts of an array after the function, as mn.splits(A)")
    cuts: Cuts = ()
    for one in parts:
        if not isinstance(one, Splits):
            raise OptionError(
                f"foreach: {type(one).__name__} is not split: give mn.splits(A), or A in whole= for all of it"
            )
        if cuts and one.cuts and one.cuts != cuts:
            counts = " and ".join(str([len(axis) - 1 for axis in some]) for some in (cuts, one.cuts))
            raise OptionError(f"foreach: unequal numbers of parts, {counts}: split all arrays alike")
        cuts = cuts or one.cuts
    if not isinstance(out, tuple | list):
        raise OptionError(f"foreach(out={type(out).__name__}): give a list of DistArrays")
    for one in out:
        if not isinstance(one, DistArray):
            raise OptionError(
                f"foreach: {type(one).__name__} in out= is not a DistArray; name new arrays in like="
            )
    if len({id(one) for one in out}) < len(out):
        raise OptionError("foreach: out= names one array twice; a part has one writer, so name it once")


def _new_array(example: object, by: str) -> SplitArray:
    if isinstance(example, DistArray):
        return SplitArray(example.shape, example.dtype, example.sparse, by)
    shape, dtype = _form_of(example, "foreach(like=)")
    return SplitArray(shape, dtype, sp.issparse(example), by)


def _form_of(one: object, name: str) -> tuple[Shape, np.dtype]:
    if sp.issparse(one):
        return tuple(one.shape), np.dtype(one.dtype)  # type: ignore[attr-defined]  # sparse here
    (plain,) = results_of((one,), name)
    return plain.shape, plain.dtype


# What a function gives beside its blocks is found by trying it, on two rows of ones.


def _call_on_ones(
    fn: Callable[..., object],
    function: Function,
    nodes: Sequence[Expr],
    ways: Sequence[str],
    whole_ones: Sequence[Expr],
    made: Sequence[SplitArray],
) -> list[NumericArray]:
    # The values of a part, after its blocks were looked at.
    space = split_space(nodes[0].shape, ways[0])
    part: Region = tuple((0, min(_ROWS, length)) for length in space)
    regions = [part_of(node.shape, by, part) for node, by in zip(nodes, ways, strict=True)]
    examples = [_ones(region_shape(region), node) for region, node in zip(regions, nodes, strict=True)]
    examples += [_ones(node.shape, node, is_whole=True) for node in whole_ones]
    whole_part = SplitPart(0, 1, tuple(slice(*axis) for axis in regions[0]))

    def called(*given: object) -> object:
        return fn(*given, part=whole_part) if function.takes_place else fn(*given)

    found = tried(called, function.name, examples, _ON_ONES)
    results = found if isinstance(found, tuple) else (found,)
    if len(results) < len(made):
        raise ShapeError(
            f"foreach: {function.name} gave {plural_text(len(results), 'result')}, and out= and like= name "
            f"{plural_text(len(made), 'array')}: it must return a block of each"
        )
    for place, (one, array) in enumerate(zip(results, made, strict=False)):
        wanted, element, _ = array.made(part)
        shape, dtype = _form_of(one, function.name)
        if shape != wanted or not np.can_cast(dtype, element, "same_kind"):
            raise ShapeError(
                f"foreach: {function.name} gave a block of shape {shape} {dtype} for ones, where array "
                f"{place} of out= and like= has {wanted} {element}"
            )
    return results_of(tuple(results[len(made) :]), function.name)


def _ones(shape: Shape, node: Expr, is_whole: bool = False) -> NumericArray | sp.csr_array:
    # Read-only, as blocks are; whole arrays take no memory, nor do sparse ones for much of it.
    if node.sparse:
        width = 0 if is_whole else min(shape[1], SHIP_BYTES // 64 // max(1, shape[0]))
        rows, columns = np.repeat(np.arange(shape[0]), width), np.tile(np.arange(width), shape[0])
        return sp.csr_array((np.ones(rows.size, node.dtype), (rows, columns)), (shape[0], shape[1]))
    if not is_whole and np.prod(shape, dtype=float) * node.dtype.itemsize > SHIP_BYTES:
        raise TooLargeError(
            f"foreach: two rows of ones of an array of shape {node.shape} take over "
            f"{bytes_text(SHIP_BYTES)}, too much to try a function on: give reduce=() if it gives no values "
            "to combine"
        )
    return np.broadcast_to(np.ones((), node.dtype), shape)


def _combined(
    found: Sequence[NumericArray], reduce: str | Sequence[str], name: str
) -> tuple[CombinedValue, ...]:
    monoids = [reduce] * len(found) if isinstance(reduce, str) else list(reduce)
    for one in (reduce,) if isinstance(reduce, str) else reduce:
        if one not in MONOIDS:
            raise OptionError(f"foreach: no monoid {one!r} for reduce=; {suggestion(one, MONOIDS)}")
    if len(monoids) != len(found):
        raise OptionError(
            f"foreach: reduce= names {len(monoids)} monoids for the {len(found)} values that {name} gives "
            "after its blocks: name one for each, or one for all"
        )
    made = tuple(
        CombinedValue(one.shape, reduced_dtype(MONOIDS[monoid], one.dtype), monoid)
        for one, monoid in zip(found, monoids, strict=True)
    )
    num_bytes = sum(int(np.prod(one.lengths)) * one.element.itemsize for one in made)
    if num_bytes > SHIP_BYTES:
        raise TooLargeError(
            f"foreach: values of {bytes_text(num_bytes)} a part, which one worker combines: up to "
            f"{bytes_text(SHIP_BYTES)}; give arrays with a row or column a part's own in like="
        )
    return made
