"""One operator's value, made in given memory where its kernel can."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from matnb.backend.worker import execute
from matnb.blocks.formats import Block, Csr, Dense, NumericArray, cast, to_numpy
from matnb.blocks.kernels.chains import chain_into
from matnb.blocks.kernels.dense_products import multiply_into
from matnb.blocks.kernels.elementwise import Link
from matnb.blocks.kernels.frontier import push, put_together
from matnb.blocks.kernels.indexing import gather, local_place, put_each, put_into
from matnb.blocks.kernels.one_pass import packed, reduce_chain
from matnb.blocks.kernels.operands import check_loop_dtype
from matnb.blocks.kernels.products import accumulate
from matnb.blocks.kernels.reductions import accumulator_dtype
from matnb.blocks.semiring import MONOIDS, semiring_named
from matnb.program import operators as op

Take: TypeAlias = Callable[[tuple[int, ...], np.dtype], NumericArray]  # an array in C order with any elements
Give: TypeAlias = Callable[[NumericArray], None]  # gets such an array back
Runner: TypeAlias = Callable[[list[Any], Take, Give, NumericArray | None], Any]


def links_of(operator: op.Operator) -> tuple[Link, ...]:
    """Return the functions of an elementwise step, or none."""
    match operator:
        case op.Chain(links):
            return links
        case op.Apply(name, input_dtypes, dtype, output, sparse):
            arguments = tuple(range(len(input_dtypes)))
            return (Link(name, input_dtypes, dtype, output, sparse, arguments),)
    return ()


def runner_of(operator: op.Operator) -> Runner:
    """Return what runs one operator on values, and writes a Dense result to the last argument if it can.

    Without that memory, or where it cannot, the result lies in taken memory, or is a view of a value, or is
    made anew as ``worker.execute`` makes it.
    """
    match operator:
        case op.Apply() | op.Chain():
            return _function_runner(operator, links_of(operator))
        case op.Multiply(_, _, False):
            return _product_runner(operator)
        case op.Push():
            return _push_runner(operator)
        case op.PutTogether():
            return _together_runner(operator)
        case op.PartialAll():
            return _reduction_runner(operator)
        case op.Accumulate():
            return _accumulation_runner(operator)
        case op.Join(_, _, _, False):
            return _join_runner(operator)
        case op.Flip():
            return _flip_runner(operator)
        case op.Take():
            return _taking_runner(operator)
        case op.Stretch():
            return _stretch_runner(operator)
        case op.PutAt():
            return _put_runner(operator)
        case op.PutEachAt():
            return _put_each_runner(operator)
        case op.GatherAt():
            return _gather_runner
    return lambda values, take, give, out: execute(operator, values)


def _stretch_runner(operator: op.Stretch) -> Runner:
    shape = operator.shape

    def run(values: list[Any], take: Take, give: Give, out: NumericArray | None) -> Any:
        elements = to_numpy(values[0])
        try:
            stretched = np.broadcast_to(elements, shape)
        except ValueError:
            return execute(operator, values)  # which says so
        return _copied(stretched, take, out, afresh=True)

    return run


def _function_runner(operator: op.Operator, links: tuple[Link, ...]) -> Runner:
    dtype, is_sparse = links[-1].dtype, any(link.sparse for link in links)

    def run(values: list[Any], take: Take, give: Give, out: NumericArray | None) -> Any:
        if is_sparse or not all(isinstance(value, Dense) for value in values):
            return execute(operator, values)
        arrays = [value.values for value in values]
        shapes = [array.shape for array in arrays]
        try:
            for link in links:
                shapes.append(np.broadcast_shapes(*(shapes[place] for place in link.arguments)))
        except ValueError:
            return execute(operator, values)
        target = take(shapes[-1], dtype) if out is None else out
        if chain_into(links, arrays, target, take, give):
            return Dense(target)
        np.copyto(target, execute(operator, values).values)
        return Dense(target)

    return run


def _product_runner(operator: op.Multiply) -> Runner:
    semiring, dtype = semiring_named(operator.semiring), operator.dtype

    def run(values: list[Any], take: Take, give: Give, out: NumericArray | None) -> Any:
        left, right = values
        fits = isinstance(left, Csr) and isinstance(right, Dense) and 1 <= right.values.ndim <= 2
        if not fits or left.shape[1] != right.shape[0]:
            return execute(operator, values)
        check_loop_dtype(dtype)
        target = take((left.shape[0], *right.shape[1:]), dtype) if out is None else out
        multiply_into(left, right, semiring, target)
        return Dense(target)

    return run


def _push_runner(operator: op.Push) -> Runner:
    semiring, masked = semiring_named(operator.semiring), operator.masked

    def run(values: list[Any], take: Take, give: Give, out: NumericArray | None) -> Any:
        pieces = [one.values for one in values[1 + masked :]]
        wanted = cast(values[1].values, np.dtype(np.bool_)) if masked else None
        if wanted is not None and operator.complement:
            wanted = np.logical_not(wanted)
        return push(values[0], pieces, wanted, semiring, operator.dtype, _or_taken(out, take))

    return run


def _together_runner(operator: op.PutTogether) -> Runner:
    monoid = MONOIDS[operator.monoid]

    def run(values: list[Any], take: Take, give: Give, out: NumericArray | None) -> Any:
        memory = _or_taken(out, take)
        return put_together(values, operator.bounds, monoid, operator.dtype, operator.whole, memory)

    return run


def _reduction_runner(operator: op.PartialAll) -> Runner:
    links, shares, outputs = operator.links, operator.shares, operator.outputs

    def run(values: list[Any], take: Take, give: Give, out: NumericArray | None) -> Any:
        found = reduce_chain(links, shares, values, take, give)
        return packed(found, outputs) if len(found) > 1 else found[0]

    return run


def _or_taken(out: NumericArray | None, take: Take) -> Take:
    def memory(shape: tuple[int, ...], dtype: np.dtype) -> NumericArray:
        fits = out is not None and out.shape == shape and out.dtype == dtype
        return out if fits and out is not None else take(shape, dtype)

    return memory


def _accumulation_runner(operator: op.Accumulate) -> Runner:
    monoid, dtype = MONOIDS[operator.monoid], operator.dtype
    wide = accumulator_dtype("sum", dtype)
    combine = getattr(np, monoid.ufunc)

    def run(values: list[Any], take: Take, give: Give, out: NumericArray | None) -> Any:
        alike = all(isinstance(part, Dense) and part.shape == values[0].shape for part in values)
        if not alike or len(values) < 2:
            return accumulate(values, monoid, dtype)
        target = take(values[0].shape, dtype) if out is None else out
        total = target if wide == dtype else take(values[0].shape, wide)
        combine(cast(values[0].values, wide), cast(values[1].values, wide), out=total)
        for part in values[2:]:
            combine(total, cast(part.values, wide), out=total)
        if total is not target:
            np.copyto(target, total, casting="same_kind")
            give(total)
        return Dense(target)

    return run


def _join_runner(operator: op.Join) -> Runner:
    offsets, shape, dtype = operator.offsets, operator.shape, operator.dtype

    def run(values: list[Any], take: Take, give: Give, out: NumericArray | None) -> Any:
        if len(values) == 1 or not all(isinstance(part, Dense) and part.dtype == dtype for part in values):
            return execute(operator, values)
        target = take(shape, dtype) if out is None else out
        if sum(part.values.size for part in values) != target.size:
            target.fill(0)  # what no part covers
        for offset, part in zip(offsets, values, strict=True):
            place = tuple(slice(a, a + length) for a, length in zip(offset, part.shape, strict=True))
            target[place] = part.values
        return Dense(target)

    return run


def _flip_runner(operator: op.Flip) -> Runner:
    axes = operator.axes

    def run(values: list[Any], take: Take, give: Give, out: NumericArray | None) -> Any:
        if not isinstance(values[0], Dense):
            return execute(operator, values)
        return _copied(values[0].values.transpose(axes), take, out)

    return run


def _taking_runner(operator: op.Take) -> Runner:
    key = tuple(slice(*part) if isinstance(part, tuple) else part for part in operator.key)

    def run(values: list[Any], take: Take, give: Give, out: NumericArray | None) -> Any:
        if not isinstance(values[0], Dense):
            return execute(operator, values)
        return _copied(values[0].values[(*key, ...)], take, out)

    return run


def _put_runner(operator: op.PutAt) -> Runner:
    key, region, shape = operator.key, operator.region, operator.shape

    def run(values: list[Any], take: Take, give: Give, out: NumericArray | None) -> Any:
        place = local_place(key, region, shape, values[2:])
        if out is None and place is not None:
            out = take(values[0].shape, values[0].dtype)
        return put_into(values[0], place, values[1], out)

    return run


def _put_each_runner(operator: op.PutEachAt) -> Runner:
    start, length = operator.start, operator.length

    def run(values: list[Any], take: Take, give: Give, out: NumericArray | None) -> Any:
        block, places, value = values
        target = take(block.shape, block.dtype) if out is None else out
        return put_each(block, places, value, start, length, target)

    return run


def _gather_runner(values: list[Any], take: Take, give: Give, out: NumericArray | None) -> Any:
    operand, index = values
    target = take((*index.shape, *operand.shape[1:]), operand.dtype) if out is None else out
    return gather(operand, index, target)


def _copied(view: NumericArray, take: Take, out: NumericArray | None, afresh: bool = False) -> Block:
    # Loops read memory in C order, so a view that is in it already needs no copy.
    if out is None and view.flags.c_contiguous and not afresh:
        return Dense(view)
    target = take(view.shape, view.dtype) if out is None else out
    np.copyto(target, view)
    return Dense(target)
