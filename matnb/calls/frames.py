"""Which frames of a traceback are a user's, and a traceback without the others."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Iterator
from functools import lru_cache
from traceback import walk_tb
from types import CodeType, FrameType, TracebackType

REMOVED = "_removed_frames"  # the attribute of an error that says what was taken out of its traceback
_OWN = __name__.partition(".")[0]
_OWN_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Of Python and matnb; and what folders of installed libraries are called, wherever they are. A library that
# is worked on lies in its own tree.
_NO_USERS = tuple(
    os.path.join(one, "")
    for one in {_OWN_FOLDER, sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
)
_OF_LIBRARIES = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages"))


def is_own(frame: FrameType) -> bool:
    """Tell whether a frame is one of matnb's."""
    return str(frame.f_globals.get("__name__")).partition(".")[0] == _OWN


def is_users(frame: FrameType) -> bool:
    """Tell whether a frame is of a user's own code: a cell, a script, a module that is not installed."""
    if frame.f_code.co_filename.endswith((".pyx", ".pxi", ".pxd")):  # Cython's, which has no path
        return False
    if frame.f_code.co_filename.startswith("<"):  # what is in no file, as libraries make functions
        return frame.f_globals.get("__name__") == "__main__"
    return not is_own(frame) and _lies_with_a_user(frame.f_code)


@lru_cache(maxsize=1024)
def _lies_with_a_user(code: CodeType) -> bool:
    path = os.path.abspath(code.co_filename)
    return not path.startswith(_NO_USERS) and not any(one in path for one in _OF_LIBRARIES)


def entries_of(trace: TracebackType | None) -> list[TracebackType]:
    """Return the entries of a traceback, the outermost first."""
    found = []
    while trace is not None:
        found.append(trace)
        trace = trace.tb_next
    return found


def linked(entries: list[TracebackType], below: TracebackType | None = None) -> TracebackType | None:
    """Return a traceback of copies of some entries, with another one below them."""
    for entry in reversed(entries):
        below = TracebackType(below, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return below


def users_part(trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback with the frames of users alone."""
    return linked([one for one in entries_of(trace) if is_users(one.tb_frame)])


def without_own_above_users(trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback without matnb's frames above a user's last; what lies below may be at fault."""
    entries = entries_of(trace)
    last = max((place for place, one in enumerate(entries) if is_users(one.tb_frame)), default=-1)
    return linked([one for place, one in enumerate(entries) if place > last or not is_own(one.tb_frame)])


def passes_through_own(trace: TracebackType | None) -> bool:
    """Tell whether a frame of matnb's is in a traceback."""
    return any(is_own(frame) for frame, _ in walk_tb(trace))


def chained(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and those that it was raised from, which a user may have made a ring of."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
