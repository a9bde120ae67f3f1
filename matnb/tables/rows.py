"""Columns row by row: taken at places, repeated, put one after the other, and the order of their values."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np

from matnb.errors import DTypeError
from matnb.io.columns import by_code_point, places_among
from matnb.io.durations import NO_TIME
from matnb.lazy.array import DistArray, handle_of, wrap
from matnb.lazy.creation import asarray, full
from matnb.lazy.functions.ordering import argsort
from matnb.tables.columns import Column, TextColumn
from matnb.tables.makers import makers
from matnb.tables.masked import MaskedColumn
from matnb.tables.matching import MOST_TAKEN_BYTES, Taken
from matnb.tables.time_operators import finer
from matnb.tables.times import TimeColumn

AnyColumn: TypeAlias = DistArray | Column


def word_of(one: AnyColumn) -> str:
    """Return the type of a column, as messages have it."""
    return one._word() if isinstance(one, Column) else str(one.dtype)


def codes_of(one: AnyColumn) -> Any:
    """Return the numbers that workers store for a column."""
    return one.codes if isinstance(one, Column) else one


# Rows that are picked


def look_up(values: Any, places: Any, fill: int = 0, may_miss: bool = False) -> Any:
    """Return the elements of an array at places; where these are negative NaN, or ``fill``.

    Each worker has the array whole, if that is not too much.
    """
    if values.nbytes <= MOST_TAKEN_BYTES:
        return wrap(Taken(values.expression, places.expression, fill))
    if not may_miss:
        return values[places]
    missing = np.nan if values.dtype.kind in "fc" else fill
    return np.where(places < 0, values.dtype.type(missing), values[np.maximum(places, 0)])


def at_places(column: AnyColumn, places: Any, may_miss: bool = False) -> AnyColumn:
    """Return the rows of a column at places; with ``may_miss`` they are missing where a place is negative."""
    if isinstance(column, MaskedColumn):
        gone = look_up(column.missing, places, 1, may_miss)
        return MaskedColumn(look_up(column.codes, places, 0, may_miss), gone, column.may_miss or may_miss)
    if isinstance(column, Column):
        fill = -1 if isinstance(column, TextColumn) else NO_TIME
        return column._like(look_up(column.codes, places, fill, may_miss), column.may_miss or may_miss)
    found = look_up(column, places, 0, may_miss)
    if may_miss and column.dtype.kind in "biu":
        return MaskedColumn(found, places < 0)
    return found  # type: ignore[no-any-return]  # operators of arrays give Any


def repeated(column: AnyColumn, counts: Any) -> AnyColumn:
    """Return each row of a column as often as an array of counts says."""
    if isinstance(column, MaskedColumn):
        codes: Any = np.repeat(column.codes, counts)
        gone: Any = np.repeat(column.missing, counts)
        return MaskedColumn(codes, gone, column.may_miss)
    if isinstance(column, Column):
        return column._like(handle_of(np.repeat(column.codes, counts)))
    return handle_of(np.repeat(column, counts))


# One after the other


def all_missing(like: AnyColumn, length: int) -> AnyColumn:
    """Return a column of the type of another, of which every value is missing."""
    codes = codes_of(like)
    if isinstance(like, TextColumn | TimeColumn):
        fill = -1 if isinstance(like, TextColumn) else NO_TIME
        return like._like(full(length, fill, codes.dtype), True)
    if codes.dtype.kind in "fc":
        return full(length, np.nan, codes.dtype)
    return MaskedColumn(full(length, 0, codes.dtype), full(length, True, np.bool_))


def in_a_row(columns: Sequence[AnyColumn], what: str = "concat") -> AnyColumn:
    """Return the rows of several columns, one after the other.

    Parameters
    ----------
    what
        They are of, for the messages.

    Raises
    ------
    DTypeError
        For columns that no type of columns holds together.
    """
    kinds = {_kind_of(one) for one in columns}
    if len(kinds) > 1:
        other = next(one for one in columns if _kind_of(one) != _kind_of(columns[0]))
        raise DTypeError(
            f"{what} is {word_of(columns[0])} in one table and {word_of(other)} in another: convert one of "
            "them, as in t.with_columns(name=...), or leave it out"
        )
    if isinstance(columns[0], TextColumn):
        return _texts_in_a_row([one for one in columns if isinstance(one, TextColumn)])
    if isinstance(columns[0], TimeColumn):
        return _times_in_a_row(what, [one for one in columns if isinstance(one, TimeColumn)])
    dtypes = [codes_of(one).dtype for one in columns]
    dtype = np.result_type(*dtypes)
    if dtype.kind == "f" and all(one.kind in "iu" for one in dtypes):
        raise DTypeError(
            f"{what} has {' and '.join(sorted({str(one) for one in dtypes}))}, and no type of whole numbers "
            "holds both: convert one of them with astype"
        )
    if dtype.kind == "f":
        floats = [one.to_float() if isinstance(one, MaskedColumn) else one for one in columns]
        return _joined([one.astype(dtype) for one in floats])
    codes = _joined([codes_of(one).astype(dtype) for one in columns])
    if not any(isinstance(one, MaskedColumn) for one in columns):
        return codes
    masks = [
        one.missing if isinstance(one, MaskedColumn) else full(len(one), False, np.bool_) for one in columns
    ]
    return MaskedColumn(codes, _joined(masks))


def _joined(arrays: Sequence[Any]) -> DistArray:
    return handle_of(np.concatenate(arrays)) if len(arrays) > 1 else arrays[0]


def _kind_of(one: AnyColumn) -> str:
    # Columns of one kind have a type in common.
    if isinstance(one, TextColumn):
        return "text"
    if isinstance(one, TimeColumn):
        return f"{one.word} with a zone" if one.zone else one.word
    return "boolean" if one.dtype.kind == "b" else "number"


def _texts_in_a_row(columns: Sequence[TextColumn]) -> TextColumn:
    labels = by_code_point([one.labels for one in columns])
    codes = _joined([codes_among(one, labels) for one in columns])
    return TextColumn(codes, labels, any(one.may_miss for one in columns))


def codes_among(column: TextColumn, labels: Any) -> Any:
    """Return the codes of a column of text among other labels, which have all of its own; -1 if missing."""
    if column.labels.equals(labels):
        return column.codes
    return asarray(places_among(column.labels, labels))[column.codes]  # of which the last is for no label


def _times_in_a_row(what: str, columns: Sequence[TimeColumn]) -> TimeColumn:
    zones = {one.zone for one in columns}
    if len(zones) > 1:
        raise DTypeError(
            f"{what} has times of the zones {' and '.join(sorted(zones))}: give them one zone first, as "
            'x.to_zone("UTC") does'
        )
    *_, unit = accumulate((one.unit for one in columns), finer)
    same = [one.to_unit(unit) for one in columns]
    codes = _joined([one.codes for one in same])
    return TimeColumn(codes, same[0].word, unit, any(one.may_miss for one in same), same[0].zone)


# Their order


def sort_keys(column: AnyColumn, is_ascending: bool, missing_first: bool) -> list[Any]:
    """Return arrays in whose ascending order a column's values are in the order that is wanted.

    The first array decides; the second is there where one does not tell missing values from all others.
    """
    if isinstance(column, MaskedColumn):
        if not column.may_miss:
            return sort_keys(column.codes, is_ascending, missing_first)
        gone: Any = column.missing
        keys = sort_keys(column.codes, is_ascending, missing_first)
        codes = np.where(gone, keys[0].dtype.type(0), keys[0])
        return [(~gone if missing_first else gone).astype(np.int8), codes]
    codes = codes_of(column)
    if isinstance(column, Column):
        fill = -1 if isinstance(column, TextColumn) else NO_TIME
        found = codes if is_ascending else ~codes
        if not column.may_miss or missing_first == is_ascending:
            return [found]  # the least number stands for missing values, or the greatest
        limits = np.iinfo(codes.dtype)
        return [np.where(codes == fill, limits.min if missing_first else limits.max, found)]
    if codes.dtype.kind == "f":
        found = codes if is_ascending else -codes
        return [(~np.isnan(codes)).astype(np.int8), found] if missing_first else [found]
    if codes.dtype.kind == "b":
        codes = codes.astype(np.uint8)
    return [codes if is_ascending else ~codes]


def order_of(
    columns: Sequence[AnyColumn], ascending: Sequence[bool], missing_first: bool = False
) -> DistArray:
    """Return the places of rows in the order of columns, the first of which decides; equal rows stay."""
    keys = [
        key
        for one, is_ascending in zip(columns, ascending, strict=True)
        for key in sort_keys(one, is_ascending, missing_first)
    ]
    order: Any = argsort(keys[-1])
    for key in reversed(keys[:-1]):
        order = look_up(order, argsort(look_up(key, order)))
    return order  # type: ignore[no-any-return]  # operators of arrays give Any


makers.sort_keys = sort_keys
