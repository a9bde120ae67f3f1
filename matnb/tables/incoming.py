"""Columns of what readers found, and of the data of other libraries: frames, Arrow tables, arrays, lists."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from matnb.blocks.foreign import is_missing_value
from matnb.errors import DTypeError, FileContentWarning, RangeError, ShapeError, warn
from matnb.io.columns import (
    ColumnFacts,
    ColumnValues,
    by_code_point,
    is_rounded,
    kind_of,
    places_among,
    values_of,
)
from matnb.lazy.array import DistArray
from matnb.lazy.creation import asarray, owned_array
from matnb.lazy.fields import refuse_result
from matnb.tables.columns import Column, TextColumn
from matnb.tables.free_names import free_name
from matnb.tables.makers import makers
from matnb.tables.masked import MaskedColumn
from matnb.tables.times import TimeColumn

_OF_INDEX = re.compile(r"__index_level_\d+__")  # what Arrow calls a level of a pandas frame without a name
_SHOWN_CATEGORIES = 8


def column_of(facts: ColumnFacts, codes: DistArray, mask: DistArray | None) -> DistArray | Column:
    """Return a column of a table, given what is known of it and its arrays."""
    may_miss = facts.num_missing != 0
    if facts.kind.word == "text":
        return TextColumn(codes, facts.labels, may_miss)
    if facts.kind.unit:
        return TimeColumn(codes, facts.kind.word, facts.kind.unit, may_miss, facts.kind.zone)
    return codes if mask is None else MaskedColumn(codes, mask)


def columns_from(data: Any) -> tuple[dict[str, DistArray | Column], frozenset[str]]:
    """Return the columns of a frame, or of another object with Arrow's stream, and which miss no value.

    Labels of a pandas frame's index that has no name are columns named as ``frame.reset_index()`` names them.

    Raises
    ------
    DTypeError
        For a column that no table holds; the message names it.

    Warns
    -----
    FileContentWarning
        For an unnamed index of whole numbers that is not a range: it is left out.
    """
    import pyarrow

    is_frame = hasattr(data, "columns") and hasattr(data, "reset_index")  # of pandas
    if is_frame:
        _check_names([str(name) for name in data.columns])
    try:
        arrow = pyarrow.table(data)
    except (pyarrow.ArrowException, TypeError, ValueError, OverflowError) as error:
        if not is_frame:
            raise DTypeError(f"the table has a column that cannot be taken: {error}") from None
        made = {str(name): column_from(str(name), data[name].reset_index(drop=True)) for name in data.columns}
        index, _ = columns_from(data[[]])
        return made | {free_name(name, made): one for name, one in index.items()}, frozenset()
    arrow = _with_index(arrow)
    if is_frame and (name := _name_of_range(data)) is not None:
        arrow = arrow.append_column(free_name(name, arrow.column_names), pyarrow.array(data.index))
    names = arrow.column_names
    for name in names if is_frame else ():
        if getattr(arrow.schema.field(name).type, "tz", None) and data.get(name) is not None:
            place = names.index(name)
            column = _with_one_zone(name, data[name], arrow.column(name))
            arrow = arrow.set_column(place, name, column)
    _check_names(names)
    values = {name: _values_of(name, arrow.column(name)) for name in names}
    complete = frozenset(name for name, one in values.items() if not one.num_missing)
    return {name: _column_of_values(one) for name, one in values.items()}, complete


def _check_names(names: Sequence[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise DTypeError(f"{count} columns named {name!r}: give each a name of its own")


def _name_of_range(frame: Any) -> str | None:
    # Of an index that counts rows, which Arrow keeps only as a range.
    is_range = hasattr(frame.index, "step") and frame.index.name is not None
    return str(frame.index.name) if is_range else None


def _with_index(arrow: Any) -> Any:
    import pyarrow

    levels = [name for name in arrow.column_names if _OF_INDEX.fullmatch(name)]
    if len(levels) == 1 and pyarrow.types.is_integer(arrow.schema.field(levels[0]).type):
        warn(
            "the index of the frame, whole numbers without a name, is left out: frame.reset_index() makes it "
            "a column, and frame.reset_index(drop=True) says that it counts rows",
            FileContentWarning,
        )
        return arrow.drop_columns(levels)
    new = {name: f"level_{place}" for place, name in enumerate(levels)}
    if len(levels) == 1 and "index" not in arrow.column_names:
        new = {levels[0]: "index"}
    return arrow.rename_columns([new.get(name, name) for name in arrow.column_names])


def columns_of_mapping(data: Mapping[Any, Any]) -> tuple[dict[str, DistArray | Column], frozenset[str]]:
    """Return the columns of a dict, and which of them miss no value."""
    _check_names([str(name) for name in data])
    made = {str(name): column_from(str(name), one) for name, one in data.items()}
    known = {str(name): one for name, one in data.items() if not isinstance(one, DistArray | Column)}
    return made, frozenset(name for name, one in known.items() if not _has_nan(one))


def _has_nan(values: object) -> bool:
    found = np.asarray(values)
    return found.dtype.kind not in "biu" and not (found.dtype.kind == "f" and not np.isnan(found).any())


def _tell_index(name: str, one: Any) -> None:
    # A Series of pandas with an index, by which pandas would find the row of each value.
    index = one.index if hasattr(one, "reset_index") and hasattr(one, "index") else None
    if index is not None and not (getattr(index, "start", None) == 0 and index.step == 1):
        warn(
            f"column {name!r}: the values of a Series are taken in their order, without the index by which "
            "pandas finds their rows: give series.reset_index(drop=True) if this is the order of the rows",
            FileContentWarning,
        )


def texts_like(given: Any, length: int) -> Any:
    """Return texts, one for each row, as a column, of a list or an array; anything else as it is given.

    Raises
    ------
    ShapeError
        With another number of texts.
    """
    if isinstance(given, list | tuple):
        may_be = any(isinstance(one, str) for one in given)
    else:
        may_be = getattr(given, "ndim", 0) == 1 and getattr(given.dtype, "kind", "") in ("U", "T", "O")
    made = column_from("given", given) if may_be else None
    if not isinstance(made, TextColumn):
        return given
    if len(made) != length:
        raise ShapeError(
            f"a column of text of {length:,} rows is compared with {len(made):,} texts: give as many"
        )
    return made


def column_from(name: str, one: object) -> DistArray | Column:
    """Return a column of an array, a list, or another library's column.

    Raises
    ------
    DTypeError
        For values of several types, types that no table holds, and a result of several values.
    RangeError
        For whole numbers beyond 64 bits.
    """
    import pyarrow

    refuse_result(one)
    if isinstance(one, Column):
        return one
    if isinstance(one, DistArray):
        if one.ndim != 1 or one.sparse:
            raise DTypeError(f"column {name!r} of shape {one.shape}: give a dense array with one axis")
        if one.dtype.kind not in "biuf" or one.dtype.itemsize > 8:
            raise DTypeError(
                f"column {name!r} of {one.dtype}: tables hold numbers of up to 64 bits; convert it"
            )
        return one
    _tell_index(name, one)
    if hasattr(one, "sparse"):  # of pandas, which stores only values other than one
        one = cast(Any, one).sparse.to_dense()
    if isinstance(one, np.ndarray) and one.dtype.kind in "biuf":
        return column_from(name, asarray(one))
    if isinstance(one, np.ndarray) and one.dtype == np.dtypes.StringDType():
        one = one.astype(object)
    if isinstance(one, np.ndarray) and one.dtype.kind in "mM":
        one = _in_unit_of_arrow(one)
    try:
        is_arrow = isinstance(one, pyarrow.Array | pyarrow.ChunkedArray)
        if not is_arrow and hasattr(one, "to_arrow"):  # of polars: categories in an order keep it
            one = cast(Any, one).to_arrow()
            is_arrow = True
        made = one if is_arrow else pyarrow.array(one, from_pandas=True)
    except OverflowError:
        made = _large_whole_numbers(name, one)
    except (pyarrow.ArrowException, TypeError, ValueError) as error:
        raise DTypeError(f"column {name!r} is not a column of a table: {error}") from None
    if not is_arrow and getattr(cast(Any, made).type, "tz", None):
        made = _with_one_zone(name, one, made)
    return _column_of_values(_values_of(name, made))


def _with_one_zone(name: str, values: Any, made: Any) -> Any:
    # Arrow gives times of Python's the zone of the first one, and takes those without a zone for UTC's.
    import pyarrow

    if getattr(values, "dtype", None) != np.dtype(object) and not isinstance(values, list | tuple):
        return made
    zones = {one.tzinfo for one in values if isinstance(one, datetime) and not is_missing_value(one)}
    if None in zones:
        raise DTypeError(f"column {name!r} has times with a zone and times without one: give all of them one")
    if len(zones) < 2:
        return made
    warn(
        f"times of column {name!r} have {len(zones)} zones, and are taken as UTC: "
        f't[{name!r}].to_zone("Europe/Berlin") has the clocks of a zone',
        FileContentWarning,
    )
    return made.cast(pyarrow.timestamp(made.type.unit, "UTC"))


def _large_whole_numbers(name: str, values: Any) -> Any:
    # Python's numbers, of which some are beyond int64.
    import pyarrow

    try:
        return pyarrow.array(values, pyarrow.uint64(), from_pandas=True)
    except (pyarrow.ArrowException, TypeError, ValueError, OverflowError):
        numbers = [one for one in values if isinstance(one, int | np.integer)]
        large = max(numbers, key=lambda one: abs(int(one)), default=None)
        is_beyond = large is not None and not -(2**63) <= large < 2**64
        raise RangeError(
            f"column {name!r} has {large}, and no integer type of 64 bits holds "
            f"{'it' if is_beyond else 'all its numbers'}: give them as text, list(map(str, values))"
        ) from None


def _in_unit_of_arrow(times: npt.NDArray[Any]) -> npt.NDArray[Any]:
    # Arrow has dates of days, times and durations of seconds and shorter ones.
    unit, kind = np.datetime_data(times.dtype)[0], times.dtype.kind
    if kind == "M" and unit in ("Y", "M", "W"):
        return times.astype("M8[D]")
    is_long = unit in ("h", "m") or (kind == "m" and unit in ("D", "W"))
    return times.astype(f"{kind}8[s]") if is_long else times


def _values_of(name: str, column: Any) -> ColumnValues:
    import pyarrow

    if kind_of(column.type) is None:
        raise DTypeError(
            f"column {name!r} is of type {column.type}, which tables do not support: leave it out"
        )
    if pyarrow.types.is_decimal(column.type) and column.type.scale > 0:
        warn(
            f"decimal numbers of column {name!r} are taken as floats, which rounds them",
            FileContentWarning,
        )
    if pyarrow.types.is_dictionary(column.type) and column.type.ordered:
        _warn_of_order(name, column)
    found = values_of(column)
    if is_rounded(column, found):
        raise RangeError(f"column {name!r} has whole numbers beyond 64 bits: cast them to text")
    return found


def _warn_of_order(name: str, column: Any) -> None:
    # Of categories in another order than their values have, which columns do not keep.
    import pyarrow

    chunks = column.chunks if isinstance(column, pyarrow.ChunkedArray) else [column]
    orders: list[list[Any]] = [one.dictionary.drop_null().to_pylist() for one in chunks]
    order = max(orders, key=len, default=[])
    if order == sorted(order):
        return
    is_long = len(order) > _SHOWN_CATEGORIES
    shown = [*order[:_SHOWN_CATEGORIES], "..."] if is_long else order
    numbers = {one: place for place, one in enumerate(order)}
    given = "{category: number, ...}" if is_long else str(numbers)
    usual = "text is ordered alphabetically" if isinstance(order[0], str) else "numbers are ordered as such"
    warn(
        f"column {name!r} loses the order {' < '.join(map(str, shown))} of its categories: {usual}; "
        f"t.with_columns(order=t[{name!r}].map({given})) has their numbers, which sort and compare so",
        FileContentWarning,
    )


def _column_of_values(one: ColumnValues) -> DistArray | Column:
    may_miss = one.num_missing > 0
    values = owned_array(np.ascontiguousarray(one.values))
    if one.kind.word == "text":
        assert one.labels is not None, "of text"
        ordered = by_code_point([one.labels])
        codes = places_among(one.labels, ordered)[one.values]
        return TextColumn(owned_array(codes), ordered, may_miss)
    if one.kind.unit:
        return TimeColumn(values, one.kind.word, one.kind.unit, may_miss, one.kind.zone)
    return MaskedColumn(values, owned_array(one.missing)) if one.missing is not None else values


makers.column_from = column_from
makers.texts_like = texts_like
