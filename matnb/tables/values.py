"""What is found by comparing a column's values with each other: distinct, frequent, least and mapped ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from matnb.blocks.foreign import is_missing_value
from matnb.errors import DTypeError, OptionError
from matnb.io.durations import NO_TIME
from matnb.io.texts import strings
from matnb.lazy.array import DistArray, handle_of
from matnb.lazy.creation import arange, asarray
from matnb.lazy.functions.grouping import GroupBy, groupby
from matnb.tables.columns import Column, TextColumn, as_column
from matnb.tables.free_names import free_name
from matnb.tables.incoming import column_from
from matnb.tables.makers import makers
from matnb.tables.masked import MaskedColumn
from matnb.tables.strings import recoded
from matnb.tables.times import TimeColumn

if TYPE_CHECKING:
    from matnb.tables.table import Table


def present_rows(column: Column) -> DistArray | None:
    """Return the rows of the values that are there, ascending; None for all."""
    return handle_of(np.flatnonzero(column.notna())) if column.may_miss else None


def first_rows(column: Column) -> DistArray:
    """Return the rows in which distinct values come first, ascending, and that of the first missing one."""
    if not len(column):
        return arange(0)
    return handle_of(np.sort(alike([column]).min(arange(len(column)))))


def mapped(column: Column, arg: Mapping[Any, object] | Callable[[Any], object]) -> Any:
    """Return a column of what a dict or a function gives for each value; a function is called here.

    Raises
    ------
    DTypeError
        For results of several types.
    OptionError
        For what is neither a dict nor a function.
    """
    if isinstance(arg, Mapping):
        return _mapped_by_dict(column, arg)
    if not callable(arg):
        raise OptionError(f"map of a {type(arg).__name__}: give a dict, or a function of one value")

    def results(keys: npt.NDArray[Any]) -> list[Any]:
        distinct = column._here(keys)
        return [arg(one) for one in (distinct.tolist() if distinct.dtype.kind in "biufO" else distinct)]

    return mapped_numbers(column, results)


def mapped_numbers(column: Column, results: Callable[[npt.NDArray[Any]], list[Any]]) -> Any:
    """Return a column of what a function makes of the distinct numbers that stand for values."""
    there = as_column(column.dropna()).codes
    keys = np.asarray(groupby(there).keys if len(there) else there)
    place: Any = np.searchsorted(asarray(keys), column.codes)
    last = [None] if column.may_miss or not len(keys) else []
    if column.may_miss:
        place = np.where(column.missing, len(keys), place)
    return as_column(column_from(column.name, [*results(keys), *last]))[place]._plain()


def _mapped_by_dict(column: Column, arg: Mapping[Any, object]) -> Any:
    keys, values = _ascending(column, arg)
    codes: Any = column.codes
    place: Any = np.searchsorted(asarray(keys), codes)
    if isinstance(column, TextColumn) and 0 < len(keys) == len(column.labels) and not column.may_miss:
        return as_column(column_from(column.name, values))[place]._plain()
    # Then come a value for what is not in the dict, and one for what is missing.
    of_missing = next((one for key, one in arg.items() if is_missing_value(key)), None)
    made = as_column(column_from(column.name, [*values, None, of_missing]))
    if len(keys):
        place = np.minimum(place, len(keys) - 1)
        place = np.where(asarray(keys)[place] == codes, place, len(keys))
    if column.may_miss:
        place = np.where(column.missing, len(keys) + 1, place)
    return made[place]._plain()


def _ascending(column: Column, arg: Mapping[Any, object]) -> tuple[npt.NDArray[Any], list[object]]:
    # The numbers that stand for the keys of a dict that are not missing, ascending, and the values of these.
    there = [one for one in arg if not is_missing_value(one)]
    pairs: list[Any] = [
        (number, arg[one])
        for number, one in zip(column._numbers(there), there, strict=True)
        if number is not None
    ]
    pairs.sort(key=lambda pair: pair[0])
    return np.array([number for number, _ in pairs], column.codes.dtype), [value for _, value in pairs]


def replaced(column: Column, to_replace: object, value: object) -> Any:
    """Return a column with new values, or none, in place of old ones, which may be the missing ones.

    Raises
    ------
    DTypeError
        For a value that the column cannot have.
    """
    found, new = column, replacements(to_replace, value)
    if isinstance(column, TextColumn):
        found = _with_new_texts(column, {old: one for old, one in new.items() if not is_missing_value(old)})
        new = {old: one for old, one in new.items() if is_missing_value(old)}
    for old, one in new.items():
        is_old = column.missing if is_missing_value(old) else column._plain() == old
        found = as_column(found._chosen(~is_old, one))
    return found._plain()


def replacements(to_replace: object, value: object) -> dict[Any, object]:
    """Return new values by old ones, from what pandas' ``replace`` takes.

    Raises
    ------
    OptionError
        For lists of unequal lengths.
    """
    if isinstance(to_replace, Mapping):
        return dict(to_replace)
    if not isinstance(to_replace, list | tuple):
        return {to_replace: value}
    new = list(value) if isinstance(value, list | tuple) else [value] * len(to_replace)
    if len(new) != len(to_replace):
        raise OptionError(f"replace: {len(to_replace)} values by {len(new)}: give as many")
    return dict(zip(to_replace, new, strict=True))


def _with_new_texts(column: TextColumn, new: Mapping[str, object]) -> TextColumn:
    # The labels get them, so that rows are read once, however many texts are replaced.
    from pyarrow import compute

    for one in new.values():
        if not isinstance(one, str) and not is_missing_value(one):
            column._other(one)  # which refuses it
    places, texts = _ascending(column, new)
    if not texts:
        return column
    is_old = np.zeros(len(column.labels), np.bool_)
    is_old[places] = True
    made = strings([None if is_missing_value(one) else cast(str, one) for one in texts])
    return recoded(column, compute.replace_with_mask(column.labels, is_old, made))


def counted(column: Column, name: str, normalize: bool, ascending: bool, dropna: bool) -> Table:
    """Return a table of a column's values and how often they come, or their shares of all counted."""
    sizes = makers.table({name: column._plain()}).groupby(name).size()
    keys, counts = (sizes[one] for one in sizes.columns)
    if not dropna and column.may_miss and (missing := int(column.missing.sum())):
        length = len(sizes)
        if length:
            places = np.append(np.arange(length), 0)
            keys = as_column(keys)[asarray(places)]._chosen(asarray(np.arange(length + 1) < length), None)
        else:
            keys = column[:1]
        counts = np.concatenate([counts, asarray(np.array([missing]))])
    order = np.argsort(counts if ascending else -counts, kind="stable")
    shown = free_name("proportion" if normalize else "count", [name])
    counts = counts / counts.sum() if normalize else counts
    return makers.table({name: as_column(keys)._plain(), shown: counts})._keyed([name])._rows(order)._look()


def most_frequent(column: Column) -> npt.NDArray[Any]:
    """Return the most frequent values, ascending."""
    sizes = counted(column, "value", False, False, True)
    if not len(sizes):
        return np.asarray(as_column(sizes["value"])._plain())
    counts = sizes["count"]
    return np.asarray(sizes["value"][counts == counts.max()])


def extreme(column: Column, name: str, axis: object, out: object, skipna: bool) -> Any:
    """Return the least or greatest value as NumPy's; None of text, NaT of times, where there is none."""
    _check_whole(name, axis, out)
    there = as_column(column.dropna())
    if not len(there) or not (skipna or len(there) == len(column)):
        return _no_value(column)
    return there._here(np.asarray(getattr(np, name)(there.codes)).reshape(1))[0]


def _check_whole(name: str, axis: object, out: object) -> None:
    if axis not in (None, 0, -1) or out is not None:
        raise OptionError(f"{name} of a column has one axis, and no out=: leave both out")


def _no_value(column: Column, word: str = "") -> Any:
    if not isinstance(column, TimeColumn):
        return None
    return np.array(NO_TIME).view(f"{word or column.word}64[{column.unit}]")[()]


def place_of_extreme(column: Column, find: Callable[..., Any], name: str) -> int:
    """Return the first row that has the least or the greatest value.

    Raises
    ------
    OptionError
        Where no value is there.
    """
    rows = present_rows(column)
    codes = column.codes if rows is None else column.codes[rows]
    if not len(codes):
        raise OptionError(f"{name} of a column without values")
    place = int(find(codes))
    return place if rows is None else int(rows[place])


# Statistics of times, in doubles of what is after the first of them, which hold it exactly where they do not
# hold times; those of dates are in seconds.


def statistic(
    column: Column, name: str, axis: object = None, out: object = None, skipna: bool = True, **options: Any
) -> Any:
    """Return what a function of NumPy's gives of a column's numbers, times or durations that are there.

    Raises
    ------
    DTypeError
        For a column of text, and a sum of times.
    OptionError
        For another axis than the one there is, and an array to write to.
    """
    _check_whole(name, axis, out)
    if isinstance(column, TimeColumn):
        if name == "sum" and column.word == "datetime":
            raise DTypeError(
                f"sum of a column of {column._word()}: times cannot be added; x.mean() is their mean"
            )
        if not skipna and column.may_miss and bool(column.missing.any()):
            return _no_value(column, "timedelta" if name == "std" else "")
        return _of_times(column, name, lambda x: getattr(np, name)(x, **options))
    if isinstance(column, TextColumn):
        raise DTypeError(f"{name} of a column of text: x.to_float() are numbers, x.value_counts() counts")
    return getattr(np, f"nan{name}" if skipna else name)(column._plain(), **options)


def _of_times(column: TimeColumn, name: str, find: Callable[[Any], Any]) -> Any:
    unit = "s" if column.unit == "D" else column.unit
    there = as_column(column.to_unit(unit).dropna())
    codes: Any = there.codes
    if name == "sum":
        return np.array(int(codes.sum()), f"m8[{unit}]")[()]
    word, zone = ("timedelta", "") if name == "std" else (column.word, column.zone)
    first = int(codes.min()) if len(codes) else 0
    found = np.asarray(find((codes - first).astype(np.float64)) if len(codes) > (name == "std") else np.nan)
    is_none = np.isnan(found)
    counts = np.round(np.where(is_none, 0, found)).astype(np.int64) + (0 if name == "std" else first)
    counts = np.atleast_1d(np.where(is_none, NO_TIME, counts))
    made = TimeColumn(column.codes, word, unit, zone=zone)._here(counts)
    return made if found.ndim else made[0]


# Rows that are alike.


def _keys(columns: list[DistArray | Column]) -> list[Any]:
    # Arrays that are equal where rows are: values, and where they are missing if no value says so.
    keys: list[Any] = []
    for one in columns:
        column = as_column(one)
        codes: Any = column.codes
        if column.may_miss and (isinstance(column, MaskedColumn) or codes.dtype.kind == "f"):
            keys.append(column.missing)
            codes = np.where(column.missing, codes.dtype.type(0), codes)
        keys.append(codes)
    return keys


def alike(columns: list[DistArray | Column]) -> GroupBy:
    """Return rows grouped by the values of columns; missing ones are equal to each other."""
    keys = _keys(columns)
    return groupby(tuple(keys) if len(keys) > 1 else keys[0])


def num_distinct(column: Column, dropna: bool) -> int:
    """Return how many values a column has, a missing one among them unless they are left out."""
    if not len(column):
        return 0
    count = alike([column]).num_groups
    return count - (dropna and column.may_miss and bool(column.missing.any()))


def duplicated(columns: list[DistArray | Column], keep: object) -> DistArray:
    """Return a mask of rows that others equal: all but the first, all but the last, or all of them.

    Raises
    ------
    OptionError
        For another ``keep`` than "first", "last" and False.
    """
    if keep not in ("first", "last", False):
        raise OptionError(f"keep={keep!r}: choose 'first', 'last' or False")
    length = len(columns[0]) if columns else 0
    if not length:
        return asarray(np.zeros(length, np.bool_))
    groups, rows = alike(columns), arange(length)
    if keep is False:
        return groups.transform(rows, lambda found, _: found.count()) > 1  # type: ignore[no-any-return]  # operators of arrays give Any
    kept = groups.transform(
        rows, lambda found, values: getattr(found, "min" if keep == "first" else "max")(values)
    )
    return kept != rows  # type: ignore[no-any-return]  # operators of arrays give Any


makers.mapped, makers.mapped_numbers, makers.replaced = mapped, mapped_numbers, replaced
makers.duplicated, makers.first_rows, makers.num_distinct = duplicated, first_rows, num_distinct
makers.counted, makers.most_frequent, makers.statistic = counted, most_frequent, statistic
makers.extreme, makers.place_of_extreme = extreme, place_of_extreme
