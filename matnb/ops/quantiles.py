"""Quantiles, along axes or of all elements."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from matnb.blocks.grid import Grid, all_of, whole
from matnb.blocks.kernels.sorting import ordering, quantiles
from matnb.blocks.kernels.sorting.quantiles import QuantileRequest, quantiles_along
from matnb.blocks.layout import Layout
from matnb.errors import ShapeError
from matnb.expr.nodes import Expr
from matnb.ops.lanes import lanes_layout
from matnb.ops.ordering import write_sorted
from matnb.ops.ranking import RankSearch, sorting_layouts
from matnb.ops.reference import Value, dense
from matnb.ops.registry import lowers, means
from matnb.program.kinds import REDUCTIONS, Kind
from matnb.program.operators import Run
from matnb.program.plan import Workers
from matnb.program.writer import PlanWriter

_QUANTILE = Kind("quantile", follows_cuts=True, shown=REDUCTIONS)


@dataclass(frozen=True, eq=False, repr=False)
class Quantiles(Expr):
    """Quantiles along some axes, which stay with length 1; those of ``wanted`` come first."""

    plain: ClassVar[bool] = True
    operand: Expr
    axes: tuple[int, ...]
    wanted: QuantileRequest

    def __post_init__(self) -> None:
        shape = self.operand.shape
        wanted = self.wanted
        if not (wanted.is_median or wanted.skips_nan) and not all(shape[axis] for axis in self.axes):
            raise ShapeError(f"quantiles of an array of shape {shape}: there are no values to order")
        kept = tuple(1 if axis in self.axes else length for axis, length in enumerate(shape))
        with np.errstate(all="ignore"):
            tried = quantiles_along(np.ones((1,) * len(shape), self.operand.dtype), self.axes, self.wanted)
        self.settle((*self.wanted.shape, *kept), tried.dtype, False, self.operand)


@means(Quantiles)
def _(node: Quantiles, operands: Sequence[Value]) -> Value:
    """Return the quantiles along axes."""
    values, wanted = dense(operands[0]), node.wanted
    if not values.size and wanted.skips_nan and not wanted.is_median:
        # NumPy gives one NaN, however many are wanted.
        return np.full(node.shape, np.nan, node.dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of slices without a number
        if wanted.is_median:
            median = np.nanmedian if wanted.skips_nan else np.median
            return np.asarray(median(values, axis=node.axes, keepdims=True))
        quantile = np.nanquantile if wanted.skips_nan else np.quantile
        shares = wanted.shares.item() if wanted.is_weak else wanted.shares
        return np.asarray(quantile(values, shares, axis=node.axes, method=wanted.method, keepdims=True))  # type: ignore[call-overload]  # one of METHODS


# Quantiles: along axes that are whole in every block, else by exact ranks among sorted blocks.


@lowers(Quantiles)
def _(node: Quantiles, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of quantiles."""
    if node.operand.ndim == 1:
        domain, _ = sorting_layouts(node.operand, writer, workers)
        if domain.grid.num_blocks > 1:
            _lower_ranks(node, domain, writer)
            return
    else:
        domain = lanes_layout(node.operand, node.axes, writer, workers)
    first = all_of(node.wanted.shape)
    cuts = (
        (0, 1) if axis in node.axes and node.shape[len(first) + axis] else cuts
        for axis, cuts in enumerate(domain.grid.cuts)
    )
    layout = Layout(Grid((*first, *cuts)), domain.owners)
    read = list(domain.grid.regions())
    for block in writer.each_block(node, layout, _QUANTILE, "along axes"):
        region = read[block.number]
        value = writer.read(block, node.operand, region, block.owner, alone=True)
        block.take(3 * writer.bytes_of(node.operand, region))  # copies in which NumPy partitions
        block.do(Run(quantiles.along, (node.axes, node.wanted)), value)
        block.num_bytes = writer.bytes_of(node) // domain.grid.num_blocks


def _lower_ranks(node: Quantiles, domain: Layout, writer: PlanWriter) -> None:
    # Each block is sorted where it is; only elements near the ranks are looked at by all.
    blocks = write_sorted(node, node.operand, domain, writer)
    search = RankSearch(writer, node, blocks, node.operand.dtype.itemsize)
    counts = [
        search.run(quantiles.count_numbers, (node.wanted.skips_nan,), (key,), 8, owner)
        for key, owner in blocks
    ]
    num_ranks = 2 * node.size + 1
    ranks = search.run(quantiles.ranks_wanted, (node.wanted,), counts, 8 * num_ranks)
    brackets, windows = search.windows(ranks, num_ranks)
    size = num_ranks * node.dtype.itemsize
    elements = search.run(ordering.at_ranks, (), (brackets, *windows), size)
    parameters = (node.wanted, 1, node.dtype)
    value = search.run(quantiles.from_ranks, parameters, (elements, *counts), size)
    layout = Layout(whole(node.shape), (domain.owners[0],))
    writer.finish(node, layout, [search.done(value, size)], _QUANTILE, "by ranks")
