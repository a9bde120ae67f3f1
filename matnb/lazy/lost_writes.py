"""Changes of copies that NumPy would make in the array itself: ``q[1][2] = 4``, ``c = q[1:-1]; c += 1``.

NumPy's slices are views. A handle that stands for a part of an array which another handle stands for is told
of when it is first changed; so is one that dies in the instruction of the user's code which changes it.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Protocol, TypeVar, runtime_checkable
from weakref import ref

from matnb.errors import LostWriteWarning, warn
from matnb.expr.nodes import Elementwise, Expr, Index, Transpose
from matnb.ops.diagonals import Diagonal
from matnb.ops.reshaping import Reshape

_FARTHEST = 16  # bytes from a call to the instruction that drops what it gave
_Handle = TypeVar("_Handle")


@runtime_checkable
class HasExpression(Protocol):
    """A handle on an expression."""

    @property
    def expression(self) -> Expr:
        """What it stands for."""


_Place = tuple[CodeType, int]  # whose instruction, and which
# By the ids of handles that are alive: what changed them last; None for copies that were asked for.
noted: dict[int, _Place | None] = {}
# Of handles on all of an array, as x[:] or x.reshape(-1): that array, and what it stood for.
views: dict[int, tuple[ref[HasExpression], Expr]] = {}
_WAYS = "q[1, 2] = 4 for q[1][2] = 4, q[1:-1] += x for c = q[1:-1]; c += x, q[1:] = x for out=q[1:]"
_LOST = f"this changed a copy, which nothing refers to: parts of a DistArray are no views. Write {_WAYS}"
_PART = (
    "this changes a copy of a part of an array, which stays as it was: parts of a DistArray are no views. "
    f"Write {_WAYS}, or c = q[1:-1].copy() for a copy"
)


def owned(handle: _Handle) -> _Handle:
    """Note that a handle is a copy that was asked for, and return it."""
    noted[id(handle)] = None
    return handle


def view(handle: _Handle, of: object) -> _Handle:
    """Note that NumPy would have an array as a view of all of another, and return it."""
    if isinstance(of, HasExpression) and of is not handle:
        views[id(handle)] = ref(of), of.expression
    return handle


def note_write(handle: object, version: Expr, living: dict[int, Expr]) -> None:
    """Note that a handle is changed by the user's line that runs, and warn where NumPy would change others.

    Parameters
    ----------
    version
        What it stands for before the change.
    living
        What all handles stand for, by their ids.
    """
    frame = users_frame(3)
    is_new = id(handle) not in noted
    noted[id(handle)] = frame.f_code, frame.f_lasti
    if (
        is_new
        and (
            _is_view(handle)
            or any(one is whole for whole in _wholes(version) for one in living.copy().values())
        )
        and not _is_given_back(frame.f_code, frame.f_lasti)
    ):
        noted[id(handle)] = None  # once is enough
        warn(_PART, LostWriteWarning)


def users_frame(above: int) -> FrameType:
    """Return the frame of the user's code, from so many frames above on."""
    frame = sys._getframe(above)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith(("matnb.", "numpy.")):
        frame = frame.f_back
    return frame


def _is_given_back(code: CodeType, place: int) -> bool:
    # Whether an operator changes a part for what it is a part of: `q[1] += 4`, `c.real *= 2`.
    instructions = (one for one in dis.get_instructions(code) if one.offset >= place)
    names = (one.opname for one in instructions if one.opname not in ("CACHE", "SWAP"))
    return next(names, "").startswith("BINARY_OP") and next(names, "") in ("STORE_SUBSCR", "STORE_ATTR")


def _is_view(handle: object) -> bool:
    # Whether the array of which NumPy's view would show all is still there, as it was.
    of, version = views.get(id(handle), (lambda: None, None))
    whole = of()
    return whole is not None and whole.expression is version


def _wholes(part: Expr) -> Iterator[Expr]:
    # The arrays that NumPy's view would show a part of.
    while True:
        is_of_complex = isinstance(part, Elementwise) and part.name in ("real", "imag")
        if not is_of_complex and not isinstance(part, Index | Transpose | Reshape | Diagonal):
            return
        part = part.operands[0]
        yield part


def forget(handle: object) -> None:
    """Warn where what was written into a handle, which dies, is lost with it.

    A handle that has ``_lost`` says itself what to write.
    """
    place = noted.pop(id(handle), None)
    frame = sys._getframe(1).f_back  # None where the interpreter ends
    if place is None or frame is None or frame.f_code is not place[0]:
        return
    bytes_after = frame.f_lasti - place[1]
    if not bytes_after or (
        0 < bytes_after <= _FARTHEST and dis.opname[frame.f_code.co_code[frame.f_lasti]] == "POP_TOP"
    ):
        warn(getattr(handle, "_lost", _LOST), LostWriteWarning)
