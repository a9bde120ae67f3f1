"""Columns of one value, and columns of text or times that ``np.where`` and ``np.select`` put together."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from functools import wraps
from numbers import Number
from typing import Any

import numpy as np

from matnb.blocks.foreign import is_missing_value
from matnb.errors import DTypeError, ShapeError
from matnb.lazy.array import DistArray, handle_of
from matnb.lazy.creation import asarray, full
from matnb.lazy.registry import FUNCTIONS
from matnb.tables.columns import Column, as_column, shown_value
from matnb.tables.incoming import column_from
from matnb.tables.makers import makers
from matnb.tables.rows import AnyColumn, all_missing

_SCALARS = (str, Number, np.generic, datetime.date, datetime.timedelta)


def is_one_value(one: object) -> bool:
    """Tell whether a value is to be in every row of a column: a number, a text, a time, or a missing one."""
    return isinstance(one, _SCALARS) or is_missing_value(one) or (hasattr(one, "ndim") and not one.ndim)


def constant(name: str, value: Any, length: int) -> AnyColumn:
    """Return a column that has one value in every row.

    Raises
    ------
    DTypeError
        For a value that no table holds.
    """
    if isinstance(value, DistArray):
        return handle_of(np.broadcast_to(value, (length,)))
    if isinstance(value, np.ndarray):
        value = value[()]
    if is_missing_value(value) and not isinstance(value, np.datetime64 | np.timedelta64):
        return full(length, np.nan)
    if isinstance(value, np.generic | Number) and getattr(value, "dtype", np.dtype(float)).kind not in "mM":
        return column_from(name, full(length, value, np.asarray(value).dtype))
    one = column_from(name, np.array([value]) if isinstance(value, np.generic) else [value])
    if is_missing_value(value) or not isinstance(one, Column):
        return all_missing(one, length)
    return one._like(full(length, one._number(value), one.codes.dtype), may_miss=False)


def _is_of_column(one: object) -> bool:
    # What arrays of numbers have not.
    if isinstance(one, Column):
        return one.dtype.kind not in "biuf"
    if isinstance(one, DistArray):
        return False
    is_time = isinstance(one, datetime.date | datetime.timedelta | np.datetime64 | np.timedelta64)
    return isinstance(one, str) or is_time or getattr(one, "dtype", np.dtype(float)).kind in "UTmM"


def _picked(condition: Any, one: Any, other: Any, length: int) -> Any:
    # The column that has one where a condition holds, and else the other.
    if is_missing_value(one) and not is_missing_value(other):
        return _picked(~condition, other, one, length)
    if not _is_of_column(one) and _is_of_column(other):
        word = shown_value(one) if isinstance(one, Column) or np.ndim(one) == 0 else "numbers"
        raise DTypeError(f"where: {word} and {shown_value(other)} in one column: give texts alone, as '1'")
    column = as_column(constant("", one, length) if is_one_value(one) else column_from("", one))
    if not isinstance(other, str) and not is_one_value(other):
        other = as_column(column_from("", other))
    return as_column(column._chosen(condition, other))


def _condition(given: Any) -> DistArray:
    found = asarray(given.__matnb_mask__() if isinstance(given, Column) else given)
    if found.ndim != 1:
        raise ShapeError(f"a condition of shape {found.shape}, which chooses texts or times: give one axis")
    return found if found.dtype.kind == "b" else found != 0


def _or_else(usual: Callable[..., Any], columns: Callable[..., Any], choices: Callable[..., Any]) -> Any:
    @wraps(usual)
    def function(*args: Any, **options: Any) -> Any:
        if any(map(_is_of_column, choices(*args, **options))):
            return columns(*args, **options)
        return usual(*args, **options)

    return function


def _where(condition: Any, one: Any, other: Any) -> Any:
    mask = _condition(condition)
    return _picked(mask, one, other, len(mask))._plain()


def _select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = None) -> Any:
    condlist, choicelist = list(condlist), list(choicelist)
    if len(condlist) != len(choicelist) or not condlist:
        raise ShapeError(f"select: {len(condlist)} conditions for {len(choicelist)} choices: give as many")
    masks, found = [*map(_condition, condlist)], default
    for mask, choice in zip(reversed(masks), reversed(choicelist), strict=True):
        if not is_missing_value(choice) or not is_missing_value(found):
            found = _picked(mask, choice, found, len(mask))
    return found._plain()


FUNCTIONS[np.where] = _or_else(FUNCTIONS[np.where], _where, lambda _, *choices: choices)
FUNCTIONS[np.select] = _or_else(
    FUNCTIONS[np.select], _select, lambda _, choicelist, default=None: (*choicelist, default)
)


makers.constant = constant
