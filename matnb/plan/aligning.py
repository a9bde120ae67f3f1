"""Which cuts a loop's arrays get, so that arrays that meet in it lie alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from matnb.blocks.grid import Grid, region_shape, regular_cuts
from matnb.blocks.layout import Layout
from matnb.expr.nodes import Expr
from matnb.program.memory import estimate_bytes
from matnb.program.operators import Join
from matnb.program.place import default_layout
from matnb.program.plan import Stored, Workers
from matnb.program.regions import region_size
from matnb.program.writer import PlanWriter, TaskWriter


@dataclass(frozen=True)
class _Rows:
    """How an axis of some length is cut, and who owns its parts."""

    cuts: tuple[int, ...]
    owners: tuple[int, ...]


class Alignment:
    """The cuts that dense arrays of a loop take over from its heaviest array of as many rows.

    Sparse arrays decide before dense ones, since what they are multiplied with should lie as their rows do.
    """

    def __init__(self, arrays: Iterable[tuple[Expr, Stored]], workers: Workers) -> None:
        self._workers = workers
        self._rows: dict[int, _Rows] = {}
        for node, array in sorted(arrays, key=_weight, reverse=True):
            counts = array.layout.grid.counts
            if node.shape and counts[0] > 1 and set(counts[1:]) <= {1}:
                rows = _Rows(array.layout.grid.cuts[0], array.layout.owners)
                self._rows.setdefault(node.shape[0], rows)

    def layout(self, node: Expr) -> Layout:
        """Return the layout of an array of the state: as others are cut on its longest axis, or default."""
        entries = node.shape[0] if node.sparse else node.size
        return self.wished(node) or default_layout(node, estimate_bytes(node, entries), self._workers)

    def wished(self, node: Expr) -> Layout | None:
        """Return the layout that other arrays suggest for an array, or None."""
        for axis in sorted(range(node.ndim), key=lambda one: (-node.shape[one], one)):
            if node.shape[axis] in self._rows and not (node.sparse and axis):
                rows = self._rows[node.shape[axis]]
                cuts = tuple(
                    rows.cuts if one == axis else regular_cuts(length, 1)
                    for one, length in enumerate(node.shape)
                )
                return Layout(Grid(cuts), rows.owners)
        return None


def _weight(one: tuple[Expr, Stored]) -> tuple[bool, int]:
    node, array = one
    return node.sparse, sum(array.block_bytes)


def write_aligned(node: Expr, layout: Layout, writer: PlanWriter) -> tuple[str, ...]:
    """Write the tasks that lay an array out anew, and return the keys of its blocks, each on its owner."""
    array = writer.registers[node]
    if array.layout == layout:
        return array.keys
    keys = []
    for region, owner in zip(layout.grid.regions(), layout.owners, strict=True):
        key = writer.block(node, region, owner)
        if writer.owner_of(key) != owner:
            task = TaskWriter()
            task.do(Join(((0,) * node.ndim,), region_shape(region), node.dtype, node.sparse), task.read(key))
            key = writer.add(task.task(f"{key}-on-{owner}", owner, "move"), writer.bytes_of(node, region))
        keys.append(key)
    return tuple(keys)


def sized(node: Expr, layout: Layout, keys: Sequence[str], like: Stored | None = None) -> Stored:
    """Return an array that will be there, with the counts of its blocks as far as they can be told before.

    ``like`` is an array of about as many entries, where it is sparse.
    """
    if not node.sparse:
        sizes = tuple(map(region_size, layout.grid.regions()))
        return Stored(layout, tuple(keys), sizes, tuple(size * node.dtype.itemsize for size in sizes))
    if like is not None and like.layout == layout:
        return replace(like, keys=tuple(keys))
    if like is None or not like.block_nnz:
        return Stored(layout, tuple(keys))
    count = len(keys)
    entries = sum(like.block_nnz) // count
    return Stored(layout, tuple(keys), (entries,) * count, (sum(like.block_bytes) // count,) * count, True)
