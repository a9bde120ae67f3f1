"""Changes of what nothing refers to: ``q[1][2] = 4`` changes a copy of a row, which is gone at once.

NumPy's slices are views, so there such a line changes ``q``. A handle that is written into and dies in the
same instruction of the user's code, or as the row of a loop over an array, was such a copy.
"""

from __future__ import annotations

import dis
import sys
from types import CodeType
from typing import TypeVar

from matnb.errors import LostWriteWarning, warn

_FARTHEST = 16  # bytes from a call to the instruction that drops what it gave
_Handle = TypeVar("_Handle")
_Place = tuple[CodeType, int]  # whose instruction, and which
noted: dict[
    int, _Place | None
] = {}  # by the ids of handles that are alive; None for rows until they are changed
_rows: set[int] = set()  # the ids of rows that a loop over an array gave
_LOST = (
    "this changed a copy, which nothing refers to: parts of a DistArray are no views. Give the array itself "
    "the values: q[1, 2] = 4 for q[1][2] = 4, q[0] = np.sort(q[0]) for q[0].sort(), q[1:] = x for out=q[1:]"
)
_LOST_ROW = (
    "the loop changed rows, which are copies and gone with it; the array stays as it was. Give it the "
    "values: for i in range(len(q)): q[i] = q[i] - q[i].mean()"
)


def note_write(handle: object) -> None:
    """Note that a handle is written into by the user's line that runs."""
    frame = sys._getframe(2)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith("matnb."):
        frame = frame.f_back
    noted[id(handle)] = frame.f_code, frame.f_lasti


def noted_row(handle: _Handle) -> _Handle:
    """Note that a handle is a row that a loop over an array gives, and return it."""
    _rows.add(id(handle))
    noted[id(handle)] = None
    return handle


def forget(handle: object) -> None:
    """Warn where what was written into a handle, which dies, is lost with it."""
    is_row = id(handle) in _rows
    _rows.discard(id(handle))
    place = noted.pop(id(handle), None)
    if place is None:
        return
    frame = sys._getframe(1).f_back  # None where the interpreter ends
    code, written = place
    if frame is None or frame.f_code is not code:
        return
    if frame.f_lasti == written:
        warn(_LOST, LostWriteWarning)
        return
    ends = dis.opname[code.co_code[frame.f_lasti]]
    if ends == "POP_TOP" and 0 < frame.f_lasti - written <= _FARTHEST:
        warn(_LOST, LostWriteWarning)
    elif is_row and ends.startswith(("FOR_ITER", "STORE_", "UNPACK_SEQUENCE")):
        warn(_LOST_ROW, LostWriteWarning)
