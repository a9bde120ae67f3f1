"""What a session is now, in a few numbers."""

from __future__ import annotations

from dataclasses import dataclass

from matnb.backend.store import Store
from matnb.config import Config
from matnb.plan.plan import Workers
from matnb.session.remembering import Memo


@dataclass(frozen=True)
class Status:
    """What a session is now.

    Attributes
    ----------
    stored_bytes, num_arrays
        Of the arrays on the workers; ``memo_bytes`` is their limit.
    num_values
        Small values remembered in this process.
    num_remembered, remembered_bytes
        Of the arrays, those without a handle.
    remembers
        Whether anything is, without a handle.
    num_gone
        Of the workers there have been, those that are lost or left; ``num_workers`` are there now, with
        ``num_threads`` in all.
    memo_dir, file_bytes
        The folder with files of results, if there is one, and what they take.
    """

    description: str
    num_workers: int
    num_threads: int
    stored_bytes: int
    memo_bytes: int
    num_arrays: int
    engine: str
    num_values: int = 0
    num_remembered: int = 0
    remembered_bytes: int = 0
    remembers: bool = True
    num_gone: int = 0
    memo_dir: str = ""
    file_bytes: int = 0


def status_of(
    description: str, workers: Workers, num_gone: int, store: Store, memo: Memo, config: Config
) -> Status:
    """Return what a session on some workers is now, of which others are gone."""
    idle = store.idle()
    return Status(
        description,
        len(workers.numbers),
        workers.slots,
        store.num_bytes,
        config.memo_bytes,
        len(store.entries()),
        config.engine,
        memo.num_values,
        len(idle),
        sum(entry.num_bytes for entry in idle),
        config.remembers,
        num_gone,
        *memo.files,
    )
