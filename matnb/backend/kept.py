"""References that keep a block alive on a worker: a Dask future, or the block itself in this process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

from distributed import Future


@dataclass(frozen=True, eq=False)
class LocalBlock:
    """A block of a worker in this process, which goes with the last reference; Dask knows nothing of it.

    Attributes
    ----------
    key
        No other block has it.
    block
        Read-only; or what a reader has read so far.
    """

    key: str
    block: Any

    def __post_init__(self) -> None:
        _local_blocks[self.key] = self


BlockRef: TypeAlias = Future | LocalBlock


def names_of(kept: Sequence[BlockRef]) -> tuple[str, ...]:
    """Return the names of some blocks, which no others have."""
    return tuple(one.key for one in kept)


_local_blocks: WeakValueDictionary[str, LocalBlock] = WeakValueDictionary()


@dataclass(frozen=True)
class LocalRef:
    """Stands for a block in the parameters of a task of Dask's, which are pickled even in one process."""

    key: str


def resolved(value: Any) -> Any:
    """Return what a task reads: a value as it is, or the block that a reference stands for."""
    return _local_blocks[value.key].block if isinstance(value, LocalRef) else value
