"""What a session is now, in a few numbers."""

from __future__ import annotations

from dataclasses import dataclass

from matnb.backend.cluster import Attendance
from matnb.backend.store import Store
from matnb.config import Config
from matnb.pictures.quantities import plural_text
from matnb.program.plan import Workers
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
    workers_text
        What became of workers that are not there any more; nothing while none is gone.
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
    workers_text: str = ""
    memo_dir: str = ""
    file_bytes: int = 0


def status_of(
    description: str, workers: Workers, attendance: Attendance, store: Store, memo: Memo, config: Config
) -> Status:
    """Return what a session on some workers is now."""
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
        attendance.num_gone,
        attendance_text(attendance, attendance.num_gone),
        *memo.files,
    )


def attendance_text(attendance: Attendance, num_lost: int) -> str:
    """Return what to tell of workers that are gone, ``num_lost`` of which were not told of yet."""
    num_now, num_asked = attendance.num_now, attendance.num_asked
    lost = plural_text(num_lost, "worker")
    if num_asked is not None and num_now < num_asked:
        there = f"{num_now} of {plural_text(num_asked, 'worker')} there"
        if attendance.trouble:
            return f"{there}: starting another failed ({attendance.trouble}) and is tried again"
        return f"{there}: others are being started in the place of those that were lost"
    if not num_lost:
        return ""
    if num_asked is not None:
        return f"{plural_text(num_now, 'worker')} now, {lost} lost before and replaced"
    if not num_now:
        return f"no worker is left, {lost} gone: mn.stop() and start again, or wait until one comes"
    return f"{plural_text(num_now, 'worker')} now, {lost} gone"
