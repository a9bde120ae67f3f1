"""Dataclasses as JSON in which every number is exact, and back: each field is checked by its type."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Annotated, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

import numpy as np

_LARGEST = 2**63 - 1  # of a count: a row's number is an int64
T = TypeVar("T")


@dataclass(frozen=True)
class Limits:
    """What a number may be. Without it a float is any finite one, and an int at least 0.

    Attributes
    ----------
    least
        The least there may be.
    is_open
        Whether that itself is too little.
    words
        Values that a float may have, apart from numbers: "inf", "nan".
    """

    least: float = -math.inf
    is_open: bool = False
    words: tuple[str, ...] = ()


class FieldPlace(Enum):
    """Where a field of a dataclass stands in JSON, if not under its name.

    Attributes
    ----------
    INLINE
        Its own fields stand among those of what holds it.
    NEWER
        Files of older versions do not have it; it has its default then.
    NOWHERE
        It is not written, and has its default when it is read.
    """

    INLINE = 1
    NEWER = 2
    NOWHERE = 3


Amount = Annotated[float, Limits(0)]
Rate = Annotated[float, Limits(0, is_open=True)]
AmountOrEndless = Annotated[float, Limits(0, words=("inf",))]
NumberOrUnknown = Annotated[float, Limits(words=("nan",))]
Check = Callable[[object, str], None]


class WrongFieldError(Exception):
    """What a field holds cannot be; the message names field and value."""


def written(value: object, hint: object) -> object:
    """Return a value of some type as JSON has it.

    Parameters
    ----------
    hint
        Its type: a dataclass, str, bool, int, float, an array of int64, a choice of words, an optional one, a
        tuple, or a mapping from numbers of workers, of these.
    """
    hint, _ = _bare(hint)
    arguments = get_args(hint)
    if is_dataclass(hint):
        return dict(_written_fields(value, cast("type", hint)))
    if hint is float:  # JSON has no word for those that are not finite
        number = float(cast("float", value))
        return number if math.isfinite(number) else str(number)
    if hint in (int, bool):
        return cast("type", hint)(value)
    if get_origin(hint) is tuple:
        return [written(one, arguments[0]) for one in cast("tuple[object, ...]", value)]
    if get_origin(hint) is Mapping:
        items = cast("Mapping[int, object]", value).items()
        return {str(int(worker)): written(one, arguments[1]) for worker, one in items}
    if get_origin(hint) is np.ndarray:
        return cast("np.ndarray", value).tolist()
    if hint is str or get_origin(hint) is Literal or value is None:
        return value
    return written(value, arguments[0])


def _written_fields(value: object, kind: type) -> Iterator[tuple[str, object]]:
    for name, hint, place in _fields_of(kind):
        held = getattr(value, name)
        if place is FieldPlace.INLINE:
            yield from _written_fields(held, cast("type", _bare(hint)[0]))
        elif place is not FieldPlace.NOWHERE:
            yield name, written(held, hint)


def read(value: object, hint: object, place: str, check: Check) -> object:
    """Return the value of some type that JSON has.

    Parameters
    ----------
    value, hint
        What the JSON has, and the type as of :func:`written`.
    place
        Of the value, for errors: "decisions[3].before".
    check
        Called with each dataclass that was read and its place; looks at what fields say together.

    Raises
    ------
    WrongFieldError
        When the value is of another type, or out of its limits.
    """
    hint, limits = _bare(hint)
    arguments = get_args(hint)
    if is_dataclass(hint):
        if not isinstance(value, dict):
            raise WrongFieldError(f"{place} is {shortly(value)}, not an object")
        return _read_fields(value, cast("type", hint), place, check)
    if hint is float:
        return _read_number(value, limits or Limits(), place)
    if hint is int:
        return _read_count(value, limits or Limits(0), place)
    if hint is bool and not isinstance(value, bool):
        raise WrongFieldError(f"{place} is {shortly(value)}, not true or false")
    if hint is str and not isinstance(value, str):
        raise WrongFieldError(f"{place} is {shortly(value)}, not a string")
    if get_origin(hint) is Literal and value not in arguments:
        raise WrongFieldError(f"{place} is {shortly(value)}, not {' or '.join(map(repr, arguments))}")
    if hint in (bool, str) or get_origin(hint) is Literal or value is None:
        return value
    if get_origin(hint) is tuple:
        if not isinstance(value, list):
            raise WrongFieldError(f"{place} is {shortly(value)}, not a list")
        return tuple(read(one, arguments[0], f"{place}[{i}]", check) for i, one in enumerate(value))
    if get_origin(hint) is np.ndarray:
        return np.array(read(value, tuple[int, ...], place, check), np.int64)
    if get_origin(hint) is Mapping:
        return _read_by_worker(value, arguments[1], place, check)
    return read(value, arguments[0], place, check)


def read_object(value: object, kind: type[T], place: str, check: Check) -> T:
    """Return the dataclass that JSON has, as :func:`read`."""
    return cast("T", read(value, kind, place, check))


def _read_fields(value: Mapping[str, object], kind: type, place: str, check: Check) -> object:
    found: dict[str, object] = {}
    for name, hint, where in _fields_of(kind):
        at = f"{place}.{name}" if place else name
        if where is FieldPlace.INLINE:
            found[name] = _read_fields(value, cast("type", _bare(hint)[0]), place, check)
        elif name in value and where is not FieldPlace.NOWHERE:
            found[name] = read(value[name], hint, at, check)
        elif where not in (FieldPlace.NEWER, FieldPlace.NOWHERE):
            raise WrongFieldError(f"{at} is missing")
    made = kind(**found)
    check(made, place)
    return made


def _read_number(value: object, limits: Limits, place: str) -> float:
    if isinstance(value, str) and value in limits.words:
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise WrongFieldError(f"{place} is {shortly(value)}, not a number")
    if not -sys.float_info.max <= value <= sys.float_info.max:
        raise WrongFieldError(f"{place} is {shortly(value)}, which is too large")
    if limits.is_open and value <= limits.least:
        raise WrongFieldError(f"{place} is {shortly(value)}, which must be above {limits.least:g}")
    if value < limits.least:
        raise WrongFieldError(f"{place} is {shortly(value)}, which must be at least {limits.least:g}")
    return float(value)


def _read_count(value: object, limits: Limits, place: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not limits.least <= value <= _LARGEST:
        words = f"not a whole number of at least {limits.least:g}"
        raise WrongFieldError(f"{place} is {shortly(value)}, {words}")
    return value


def _read_by_worker(value: object, hint: object, place: str, check: Check) -> dict[int, object]:
    if not isinstance(value, dict):
        raise WrongFieldError(f"{place} is {shortly(value)}, not an object")
    for worker in value:
        if not (worker.isascii() and worker.isdigit() and len(worker) < 10):
            raise WrongFieldError(f"{place} has a worker {shortly(worker)}, which is not a number")
    return {int(worker): read(one, hint, f"{place}.{worker}", check) for worker, one in value.items()}


def shortly(value: object) -> str:
    """Return a value for an error, in few characters."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _bare(hint: object) -> tuple[object, Limits | None]:
    # The type without what is said of it, and the limits.
    if get_origin(hint) is not Annotated:
        return hint, None
    bare, *notes = get_args(hint)
    return bare, next((one for one in notes if isinstance(one, Limits)), None)


@cache
def _fields_of(kind: type) -> tuple[tuple[str, object, FieldPlace | None], ...]:
    # Of each field its name, type and place.
    hints = get_type_hints(kind, include_extras=True)
    found = []
    for one in fields(kind):
        notes = get_args(hints[one.name])[1:] if get_origin(hints[one.name]) is Annotated else ()
        place = next((note for note in notes if isinstance(note, FieldPlace)), None)
        found.append((one.name, hints[one.name], place))
    return tuple(found)
