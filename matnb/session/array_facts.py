"""What is known of an array for display, with its values where they are resident; computes nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from matnb.backend.engines.few_values import FewValues, RegionValues, few_of, few_values
from matnb.backend.engines.futures import Answers
from matnb.backend.store import Store
from matnb.blocks.formats import Block, Csr, Dense, sparse_bytes
from matnb.blocks.grid import Grid, intersect, whole
from matnb.expr.client_data import held
from matnb.expr.nodes import Expr, Literal
from matnb.lazy import reductions, ufuncs
from matnb.pictures.facts import ArrayFacts
from matnb.pictures.values import corners, corners_text, entries_text, num_first_entries
from matnb.plan.explain import told_alone
from matnb.program.memory import estimate_bytes
from matnb.program.plan import StoredArray
from matnb.session.memo import Memo
from matnb.session.naming import line_of, variable_of

_BUSY = "values not shown: the workers are busy now"
_TOO_MANY = "values not shown: too many axes"
Read = Callable[[Sequence[tuple[int, FewValues]]], list[RegionValues] | None]


class ValuesThere:
    """Finds values that are there, without the session's lock and without waiting for what runs.

    Parameters
    ----------
    store, memo
        Of the session.
    interpreted
        Returns a value that was interpreted, or None.
    answers
        Of its workers.
    """

    def __init__(
        self, store: Store, memo: Memo, interpreted: Callable[[Expr], Block | None], answers: Answers
    ) -> None:
        self._store, self._memo, self._interpreted, self._answers = store, memo, interpreted, answers

    def stored(self, node: Expr) -> StoredArray | None:
        """Return where the blocks of an array are, or None."""
        entry = self._store.entry(node)
        return None if entry is None else entry.stored

    def here(self, node: Expr) -> Block | None:
        """Return a value that is in this process, not a copy: a small one, or any that was interpreted."""
        return self._interpreted(node) or self._memo.value(node)

    def few(
        self, node: Expr, stored: StoredArray, wanted: Sequence[tuple[int, FewValues]]
    ) -> list[RegionValues] | None:
        """Return a few values of blocks by their numbers.

        That is None where workers in other processes do not answer at once, and where the array is not
        ``stored`` so any more.
        """
        entry = self._store.entry(node)
        if entry is None or entry.stored is not stored:
            return None
        owners = stored.layout.owners
        return few_values(
            self._answers, [(entry.futures[number], owners[number], one) for number, one in wanted]
        )

    def statistics(self, node: Expr) -> tuple[tuple[str, str], ...]:
        """Return what a user asked for before, and is remembered: the least, the mean, and the like."""
        if not node.size or node.dtype.kind not in "biuf" or not node.ndim or not self._memo.num_values:
            return ()
        asked = {
            "min": [reductions.reduce(node, "min")],
            "mean": [reductions.mean(node)],
            "max": [reductions.reduce(node, "max")],
        }
        if node.dtype.kind == "f":
            is_nan = ufuncs.call(np.isnan, (node,))[0]
            asked["NaN"] = [reductions.reduce(is_nan, "sum"), reductions.count_nonzero(is_nan)]
        found = []
        for name, nodes in asked.items():
            value = next((one for node in nodes if (one := self.here(node)) is not None), None)
            if isinstance(value, Dense):
                number = value.values.item()
                found.append((name, f"{number:,}" if name == "NaN" else f"{number:.6g}"))
        return tuple(found)


def array_facts(
    node: Expr, there: ValuesThere | None, with_values: bool = False, made: Block | None = None
) -> ArrayFacts:
    """Return what is known of an array.

    Parameters
    ----------
    there
        Of the session in use, if there is one.
    with_values
        Whether values of what is on the workers, or was given, are looked up, too; small ones that are
        remembered in this process are there anyway.
    made
        Its value, where it was computed to be shown.
    """
    stored = None if there is None else there.stored(node)
    given = Dense(node.value) if isinstance(node, Literal) else held(node)
    facts = ArrayFacts(
        node.shape,
        node.dtype.name,
        node.sparse,
        expression=_made_by(node),
        is_given=given is not None,
        is_open=bool(node.free),
    )
    if stored is not None:
        facts = _of_stored(facts, node, stored)
    elif given is not None:
        is_pattern = isinstance(given, Csr) and given.values is None
        facts = replace(facts, pattern=is_pattern, nnz=given.nnz, num_bytes=given.nbytes)
    elif not node.sparse:
        facts = replace(facts, nnz=node.size, expected_bytes=estimate_bytes(node, node.size))
    here = made if made is not None or there is None else there.here(node)
    if with_values and here is None and stored is None:
        here = given
    if here is not None:
        nnz = (here.nnz,) if node.sparse else ()
        return _with_values(facts, node, there, whole(node.shape), nnz, partial(_of_block, here))
    if with_values and stored is not None and there is not None:
        read = partial(there.few, node, stored)
        return _with_values(facts, node, there, stored.layout.grid, stored.block_nnz, read)
    return facts


def _made_by(node: Expr) -> str:
    # In a user's words: the line of a cell, or an operation on variables; nothing where arrays have no name.
    if line := line_of(node):
        return line
    is_named = all(variable_of(one) for one in node.operands if one.shape)
    return told_alone(node, called=variable_of) if is_named else ""


def _of_stored(facts: ArrayFacts, node: Expr, stored: StoredArray) -> ArrayFacts:
    known = bool(stored.block_nnz)  # of an interrupted run they are not
    return replace(
        facts,
        pattern=_is_pattern(node, stored),
        stored=True,
        nnz=sum(stored.block_nnz) if known else None,
        num_bytes=sum(stored.block_bytes) if known else None,
        cuts=stored.layout.grid.cuts,
        owners=stored.layout.owners,
        block_nnz=stored.block_nnz,
    )


def _is_pattern(node: Expr, stored: StoredArray) -> bool:
    # Blocks are not looked into; but without values they are smaller than with them.
    if not node.sparse or not any(stored.block_nnz):
        return False
    bare = [
        sparse_bytes(stop - start, nnz, node.dtype, pattern=True) if nnz else 0
        for ((start, stop), _), nnz in zip(stored.layout.grid.regions(), stored.block_nnz, strict=True)
    ]
    return tuple(bare) == stored.block_bytes


def _of_block(block: Block, wanted: Sequence[tuple[int, FewValues]]) -> list[RegionValues]:
    return [few_of(block, one) for _, one in wanted]


def _with_values(
    facts: ArrayFacts,
    node: Expr,
    there: ValuesThere | None,
    grid: Grid,
    block_nnz: tuple[int, ...],
    read: Read,
) -> ArrayFacts:
    text = _entries(grid, block_nnz, read) if node.sparse else _elements(node, grid, read)
    statistics = () if there is None else there.statistics(node)
    if text in (_BUSY, _TOO_MANY):
        return replace(facts, why_not=text, statistics=statistics)
    return replace(facts, value=text, statistics=statistics)


def _elements(node: Expr, grid: Grid, read: Read) -> str:
    found = corners(node.shape)
    if found is None:
        return _TOO_MANY
    room = found.room(node.dtype)
    wanted, places = [], []
    for region, into in found.regions():
        for index in grid.overlapping(region):
            block = grid.region(index)
            common = intersect(region, block)
            inside = tuple((a - c, b - c) for (a, b), (c, _) in zip(common, block, strict=True))
            wanted.append((grid.number(index), FewValues(inside)))
            places.append(
                tuple(
                    slice(there.start + a - c, there.start + b - c)
                    for there, (a, b), (c, _) in zip(into, common, region, strict=True)
                )
            )
    parts = read(wanted)
    if parts is None:
        return _BUSY
    for place, (values,) in zip(places, parts, strict=True):
        room[place] = values
    return corners_text(found, room)


def _entries(grid: Grid, block_nnz: tuple[int, ...], read: Read) -> str:
    # In the order of rows, so that blocks beside each other are looked at together.
    if not any(block_nnz):
        return ""
    num_wanted, num_found, num_beside = num_first_entries(), 0, grid.counts[1]
    numbers: list[int] = []
    for first in range(0, grid.num_blocks, num_beside):
        beside = [number for number in range(first, first + num_beside) if block_nnz[number]]
        numbers += beside
        num_found += sum(block_nnz[number] for number in beside)
        if num_found >= num_wanted:
            break
    parts = read([(number, FewValues(num_entries=num_wanted)) for number in numbers])
    if parts is None:
        return _BUSY
    regions = [region for number, region in enumerate(grid.regions()) if number in set(numbers)]
    rows = np.concatenate([part[0] + region[0][0] for part, region in zip(parts, regions, strict=True)])
    columns = np.concatenate([part[1] + region[1][0] for part, region in zip(parts, regions, strict=True)])
    values = np.concatenate([part[2] for part in parts])
    first_ones = np.lexsort((columns, rows))[:num_wanted]
    return entries_text(rows[first_ones], columns[first_ones], values[first_ones], sum(block_nnz))
