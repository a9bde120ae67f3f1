"""Fetches a few values of blocks for display: directly in this process, else with one message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from matnb.backend.engines.futures import Answers
from matnb.backend.kept import BlockRef, LocalBlock
from matnb.blocks.formats import Block, Csr, Dense, Empty, NumericArray
from matnb.blocks.grid import Region

MOST_BLOCKS = 64  # that are asked for by one message
MOST_SECONDS = 0.05


@dataclass(frozen=True)
class FewValues:
    """What is wanted of a block: a region of a dense one, or the first entries of a sparse one.

    Parameters
    ----------
    region
        In the block.
    num_entries
        Of a sparse block.
    """

    region: Region = ()
    num_entries: int = 0


RegionValues = tuple[NumericArray, ...]  # the values of a region; or rows, columns and values of entries


def few_values(
    answers: Answers, blocks: Sequence[tuple[BlockRef, int, FewValues]], seconds: float = MOST_SECONDS
) -> list[RegionValues] | None:
    """Return a few values of each block; None where workers do not give them in time.

    Parameters
    ----------
    blocks
        For each what keeps it, its worker, and what is wanted of it.
    seconds
        How long workers in other processes have for their answers.
    """
    far = {(kept.key, wanted): owner for kept, owner, wanted in blocks if not isinstance(kept, LocalBlock)}
    if len(far) > MOST_BLOCKS:
        return None
    found: dict[tuple[str, FewValues], RegionValues] = {}
    if far:
        told = answers.ask_shortly(few_values_here, (list(far),), set(far.values()), seconds)
        for one in told or ():
            found.update(one)
        if len(found) < len(far):
            return None
    return [
        few_of(kept.block, wanted) if isinstance(kept, LocalBlock) else found[kept.key, wanted]
        for kept, _, wanted in blocks
    ]


def few_values_here(
    wanted: Sequence[tuple[str, FewValues]], dask_worker: Any
) -> Mapping[tuple[str, FewValues], RegionValues]:
    """Return the requested values of the blocks that are in this worker's memory, by key and request."""
    data = getattr(dask_worker.data, "fast", dask_worker.data)  # nothing is read from disk for it
    return {(key, one): few_of(data[key], one) for key, one in wanted if key in data}


def few_of(block: Block, wanted: FewValues) -> RegionValues:
    """Return copies of the elements of a region, or of the rows, columns and values of the first entries."""
    match block:
        case Dense(values):
            return (np.array(values[tuple(slice(*span) for span in wanted.region)]),)
        case Csr(_, pointers, columns, values, dtype):
            num = min(wanted.num_entries, columns.size)
            rows: NumericArray = np.searchsorted(pointers, np.arange(num), side="right") - 1
            entries = np.ones(num, dtype) if values is None else values[:num].copy()
            return rows, columns[:num].astype(np.int64), entries
        case Empty(_, dtype):
            return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, dtype)
