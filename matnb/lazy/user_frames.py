"""Errors in functions that a user gives: their tracebacks have the user's own frames, and none of matnb's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from traceback import walk_tb
from types import FrameType, TracebackType
from typing import ParamSpec, TypeVar

from matnb.errors import MatnbError

_OWN = __name__.partition(".")[0]
_LIBRARIES = (_OWN, "numpy", "scipy", "cloudpickle", "functools")  # call a user's functions, and are none
Given = ParamSpec("Given")
Result = TypeVar("Result")


def shows_user_frames(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Let errors of what a user gives to a function show where the user called it, and then the user's lines.

    An error that no function of the user's had a part in keeps all of its frames. So do frames of matnb below
    the user's, where the error is none of matnb's: what is wrong may be there.
    """

    @wraps(function)
    def called(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        try:
            return function(*args, **kwargs)
        except Exception as error:  # whatever it is, it goes on
            chain = list(_chained(error))
            if any(_is_users(frame) for one in chain for frame, _ in walk_tb(one.__traceback__)):
                for one in chain:
                    one.__traceback__ = _without_own(one)
            raise  # again, by which Python adds no frame: this one would be back else

    return called


def _chained(error: BaseException | None) -> Iterator[BaseException]:
    # An error and those that it was raised from, which a user may have made a ring of.
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _without_own(error: BaseException) -> TracebackType | None:
    entries = []
    place = error.__traceback__
    while place is not None:
        entries.append(place)
        place = place.tb_next
    shown = None
    is_below = True  # the last of the user's frames
    for entry in reversed(entries):
        is_below = is_below and not _is_users(entry.tb_frame)
        if not isinstance(error, MatnbError) if is_below else _package(entry.tb_frame) != _OWN:
            shown = TracebackType(shown, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return shown


def _is_users(frame: FrameType) -> bool:
    return _package(frame) not in _LIBRARIES


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__")).partition(".")[0]
