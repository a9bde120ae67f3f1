"""The boundary between a user's code and matnb's: errors that leave show the user's lines.

Every public function and method is called through a function of its name and signature that does nothing
until something is raised. Then matnb's own frames are taken out of the traceback, as JAX does, so that
whatever shows it (a script, a thread, a log, pytest, a notebook) ends at the user's line. An interrupt that
comes before a run, or after it, is a CellCancelled as one that ends a run.
``MATNB_FULL_TRACEBACK=1`` leaves them in, for work on matnb and for debuggers.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import wraps
from types import FunctionType, TracebackType
from typing import Any

from matnb.calls.arguments import OF_ARGUMENTS, argument_error
from matnb.calls.frames import (
    REMOVED,
    chained,
    entries_of,
    is_own,
    is_users,
    linked,
    users_part,
    without_own_above_users,
)
from matnb.config import shows_full_tracebacks
from matnb.errors import CellCancelled, MatnbError, no_attribute
from matnb.lazy.registry import FUNCTIONS

_OWN = __name__.partition(".")[0]
_IS_DOOR = "__matnb_door__"  # on what is a door already
# Special methods that raise nothing, or that Python or a library looks into.
_LEFT_ALONE = frozenset(
    f"__{name}__"
    for name in (
        "new", "del", "hash", "reduce", "reduce_ex", "getstate", "setstate", "init_subclass", "dir",
        "class_getitem", "set_name", "subclasshook", "instancecheck", "subclasscheck", "post_init", "sizeof",
    )
)  # fmt: skip


@dataclass(frozen=True)
class RemovedFrames:
    """What an error that has left carries: its traceback as it was, and what is in its place now."""

    whole: TracebackType | None = None
    kept: TracebackType | None = None

    def __reduce__(self) -> tuple[type[RemovedFrames], tuple[()]]:
        return RemovedFrames, ()  # frames stay where they are, and errors go to other processes


def guard(namespaces: Iterable[Mapping[str, object]], kinds: Iterable[type] = ()) -> None:
    """Put the boundary around all public functions and methods of some namespaces, and of more classes.

    The functions take the place of those they call in the modules that define them too, so they are pickled
    by name. A second time changes nothing.
    """
    if shows_full_tracebacks():
        return
    found: set[type] = set(kinds)
    for namespace in namespaces:
        for name, value in list(namespace.items()):
            if isinstance(value, type):
                found |= set() if issubclass(value, BaseException) else {value}
            elif isinstance(value, FunctionType) and _is_public(name) and _is_matnbs(value):
                _replace(namespace, name, value)
            elif _is_matnbs(type(value)):
                found.add(type(value))
    for kind in found:
        if _is_matnbs(kind) and not hasattr(kind, "__getattr__"):
            kind.__getattr__ = _tell_near_name  # type: ignore[attr-defined]  # from now on
    for kind in {base for one in found for base in one.__mro__ if _is_matnbs(base)}:
        _guard_class(kind)


def _tell_near_name(self: object, name: str) -> object:
    if not name.startswith("_"):
        if inspect.getattr_static(type(self), name, None) is not None:
            return object.__getattribute__(self, name)  # what a property raised, once more
        known = {*dir(type(self)), *getattr(self, "__dict__", ())}
        raise no_attribute(type(self).__name__, name, lambda: known)
    raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


_tell_near_name.__name__ = "__getattr__"  # as which it is called


def _is_matnbs(one: Any) -> bool:
    return str(getattr(one, "__module__", "")).partition(".")[0] == _OWN


def _is_public(name: str) -> bool:
    if name.startswith(("_repr_", "_ipython_display_")) and name.endswith("_"):
        return True  # IPython asks for it
    return not name.startswith("_") or (name.endswith("__") and name not in _LEFT_ALONE)


def _replace(namespace: Mapping[str, object], name: str, function: FunctionType) -> None:
    door = function if hasattr(function, _IS_DOOR) else None
    home = vars(sys.modules[function.__module__])
    if door is None:
        known = home.get(function.__name__)
        is_known = hasattr(known, _IS_DOOR) and getattr(known, "__wrapped__", None) is function
        door = known if is_known else _door(function)
    if home.get(function.__name__) is function:
        home[function.__name__] = door
    namespace[name] = door  # type: ignore[index]  # the dictionary of a module


def _guard_class(kind: type) -> None:
    for name, value in list(vars(kind).items()):
        if not _is_public(name):
            continue
        if isinstance(value, FunctionType):
            guarded: object = _door(value)
        elif isinstance(value, staticmethod | classmethod) and isinstance(value.__func__, FunctionType):
            guarded = type(value)(_door(value.__func__))
        elif isinstance(value, property) and isinstance(value.fget, FunctionType):
            setter = _door(value.fset) if isinstance(value.fset, FunctionType) else value.fset
            guarded = property(_door(value.fget), setter, value.fdel, value.__doc__)
        else:
            continue
        setattr(kind, name, guarded)


def _door(function: FunctionType) -> Any:
    if hasattr(function, _IS_DOOR):
        return function
    leave, left = _leave, _left

    def door(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            if (other := leave(error, function, args, kwargs)) is None:
                raise  # again, by which Python adds no frame: what was taken out would be back else
            try:
                raise other
            except BaseException:
                left(other)
                raise

    code = door.__code__.replace(co_name=function.__name__, co_qualname=function.__qualname__)
    made = wraps(function)(
        FunctionType(code, function.__globals__, function.__name__, None, door.__closure__)
    )
    setattr(made, _IS_DOOR, True)
    if function in FUNCTIONS:  # is asked for by its name, which is the door's from now on
        FUNCTIONS[made] = FUNCTIONS.pop(function)
    return made


def _left(error: BaseException) -> None:
    error.__traceback__ = None


def _leave(
    error: BaseException, function: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]
) -> BaseException | None:
    # The error that leaves instead of this one, if another does; else this one's traceback is made shorter.
    is_bare = type(error) is KeyboardInterrupt
    if function.__name__ == "__getattr__" and not is_bare:  # libraries ask for names by the thousand
        error.__traceback__ = None
        return None
    caller = sys._getframe(1).f_back
    if caller is not None and is_own(caller):
        return None  # who called will see to it
    other: MatnbError | CellCancelled | None = None
    if type(error) in OF_ARGUMENTS and users_part(error.__traceback__) is None:
        other = argument_error(error, function, args, kwargs)
    if other is None:
        _shorten(error)
    if is_bare:
        other = CellCancelled("interrupted")
        other.__cause__ = error
    return other


def _shorten(error: BaseException) -> None:
    if isinstance(error, MatnbError | KeyboardInterrupt):
        whole = whole_traceback(error)
        for one in chained(error):
            users = users_part(one.__traceback__)
            if users is not None or type(one) not in OF_ARGUMENTS:  # else a fault may lie there
                one.__traceback__ = users
        vars(error)[REMOVED] = RemovedFrames(whole, error.__traceback__)
    else:
        chain = list(chained(error))
        if any(is_users(entry.tb_frame) for one in chain for entry in entries_of(one.__traceback__)):
            for one in chain:
                part = users_part if isinstance(one, MatnbError) else without_own_above_users
                one.__traceback__ = part(one.__traceback__)


def whole_traceback(error: BaseException) -> TracebackType | None:
    """Return the traceback of an error with what was taken out of it at the boundary."""
    removed = vars(error).get(REMOVED)
    if removed is None:
        return error.__traceback__
    above = []
    for entry in entries_of(error.__traceback__):
        if entry is removed.kept:
            break
        above.append(entry)
    return linked(above, removed.whole)
