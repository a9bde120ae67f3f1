"""Tables joined where keys are equal: which rows meet, and the table of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from matnb.errors import ColumnError, DTypeError, OptionError, TooLargeError, UnsupportedError, suggestion
from matnb.io.columns import by_code_point
from matnb.lazy.array import wrap
from matnb.lazy.creation import arange, asarray, full
from matnb.lazy.evaluator import evaluator
from matnb.lazy.functions.grouping import groupby, scatter_reduce
from matnb.pictures.quantities import bytes_text
from matnb.tables.columns import TextColumn, is_missing
from matnb.tables.makers import makers
from matnb.tables.masked import MaskedColumn
from matnb.tables.matching import MOST_LOOKED_IN, Matches
from matnb.tables.row_orders import reordered
from matnb.tables.rows import (
    AnyColumn,
    all_missing,
    at_places,
    codes_among,
    codes_of,
    in_a_row,
    look_up,
    order_of,
    repeated,
    word_of,
)
from matnb.tables.time_operators import finer
from matnb.tables.times import TimeColumn

if TYPE_CHECKING:
    from matnb.tables.table import Table

_WAYS = ("inner", "left", "right", "outer", "semi", "anti")
_OTHER_WORDS = {"full": "outer", "full_outer": "outer", "left_semi": "semi", "left_anti": "anti"}
_VALIDATE = {"1:1": "11", "1:m": "1m", "m:1": "m1", "m:m": "mm"}
_VALIDATE |= {"one_to_one": "11", "one_to_many": "1m", "many_to_one": "m1", "many_to_many": "mm"}
_PLACE_BYTES = 32  # of a row of the result: where it comes from on either side, and what that is made of

Names = str | Sequence[str]
Rows = Callable[[AnyColumn], AnyColumn]  # from a column to those rows of it that a result has


def merge(
    self: Table,
    right: object,
    how: str = "inner",
    on: Names | None = None,
    left_on: Names | None = None,
    right_on: Names | None = None,
    *,
    suffixes: tuple[str | None, str | None] = ("_x", "_y"),
    validate: str | None = None,
    indicator: bool | str = False,
) -> Table:
    """Join with another table where keys are equal, as ``pandas.merge`` does; missing keys equal each other.

    Parameters
    ----------
    right
        A table, or what :func:`matnb.table` takes.
    how
        "inner": rows whose keys are in both tables. "left", "right": all rows of one table, and what the
        other has for them. "outer": all rows of both. "semi", "anti": the rows of this table whose keys are
        in the other one, or are not; no columns of the other.
    on, left_on, right_on
        The names of the key columns, or of those of each table; by default all that both have. Numbers are
        equal if their values are, whatever their types; text meets text, and times meet times.
    suffixes
        Appended to the names of columns, other than keys, that both tables have.
    validate
        "1:1", "1:m", "m:1": keys that are to be unique on the left, on the right, or both.
    indicator
        Whether to add a column of text that says where a row is from: "left_only", "right_only" or "both";
        or its name, "_merge" by default.

    Returns
    -------
    Table
        The columns of this table, then those of the other without the keys that have one name. Rows are in
        the order of this table, and of equal keys in the order of the other one; with "right" it is the other
        way round; with "outer" rows are in the order of the keys, missing ones last. What a table does not
        have is missing: NaN, NaT, or a missing text; whole numbers and booleans stay exact, in a
        MaskedColumn.

    Raises
    ------
    ColumnError, DTypeError
        For a key that is not there, or keys of types that do not compare.
    OptionError
        For an unknown option, names that would be there twice, and keys that ``validate`` does not allow.
    TooLargeError
        For a result that the workers have no room for, before anything of it is made.

    Notes
    -----
    How many rows meet is computed immediately. The smaller table's keys are hashed on each worker, and the
    other's rows are looked up where they lie; where both have more than four million rows, all keys are
    grouped.

    Examples
    --------
    >>> import matnb as mn
    >>> trips = mn.table({"zone": ["b", "a", "b", "c"], "fare": [6.0, 9.0, 7.0, 8.0]})
    >>> zones = mn.table({"zone": ["a", "b"], "borough": ["Queens", "Bronx"]})
    >>> print(trips.merge(zones, on="zone").head())
    3 rows x 3 columns
    zone     fare  borough
    text  float64  text
    b         6.0  Bronx
    a         9.0  Queens
    b         7.0  Bronx
    """
    other = _as_table(self, right)
    _check_options(how, suffixes, validate)
    keys = _keys_of(self, other, on, left_on, right_on)
    parts = [part for one, two in keys for part in _comparable(one, self[one], two, other[two])]
    if validate is not None:
        _check_unique(_VALIDATE[validate], parts, keys)
    codes = _coded(parts)
    if how in ("semi", "anti"):
        return _filtered(self, codes, how == "anti")
    joined = _joined_rows(self, other, codes, how)
    return _assembled(self, other, keys, joined, _ColumnNames(how, suffixes, indicator))


def _as_table(left: Table, right: object) -> Table:
    if isinstance(right, type(left)):
        return right
    return makers.table_of(right)


def _check_options(how: object, suffixes: object, validate: object) -> None:
    if how == "cross":
        raise UnsupportedError(
            'merge(how="cross"): every row with every other is as large as both lengths multiplied: give '
            "keys, or compute with arrays, as in x[:, None] - y"
        )
    if how not in _WAYS:
        word = f"write {_OTHER_WORDS[how]!r}" if how in _OTHER_WORDS else suggestion(how, _WAYS)
        raise OptionError(f"merge(how={how!r}): {word}")
    if not (isinstance(suffixes, tuple | list) and len(suffixes) == 2):
        raise OptionError(f'merge(suffixes={suffixes!r}): give two texts, such as ("_x", "_y")')
    if validate is not None and validate not in _VALIDATE:
        raise OptionError(f"merge(validate={validate!r}): {suggestion(validate, _VALIDATE)}")


def _keys_of(
    left: Table, right: Table, on: Names | None, left_on: Names | None, right_on: Names | None
) -> list[tuple[str, str]]:
    if on is None and left_on is None and right_on is None:
        on = [name for name in left.columns if name in right]
        if not on:
            raise OptionError("merge: the tables have no column name in common; give left_on= and right_on=")
    if (on is None) == (left_on is None and right_on is None) or (left_on is None) != (right_on is None):
        raise OptionError("merge: give on=, or left_on= and right_on=")
    ours, theirs = (_listed(one) for one in ((on, on) if on is not None else (left_on, right_on)))
    if len(ours) != len(theirs) or not ours:
        raise OptionError(f"merge: {len(ours)} keys on the left and {len(theirs)} on the right")
    for side, table, names in (("left", left, ours), ("right", right, theirs)):
        for name in names:
            if not isinstance(name, str):
                raise OptionError(f"merge: a key is {name!r}: give names of columns")
            if name not in table:
                raise ColumnError(
                    f"the {side} table has no column {name!r}; {suggestion(name, table.columns)}"
                )
    return list(zip(ours, theirs, strict=True))


def _listed(names: Any) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


# Keys as numbers that are equal where the keys are


def _comparable(name: str, one: AnyColumn, other: str, two: AnyColumn) -> list[tuple[Any, Any]]:
    # Pairs of arrays of one dtype: rows of the two columns are equal where those of all pairs are.
    if isinstance(one, TextColumn) and isinstance(two, TextColumn):
        labels = one.labels if one.labels.equals(two.labels) else by_code_point([one.labels, two.labels])
        return [(codes_among(one, labels), codes_among(two, labels))]
    if isinstance(one, TimeColumn) and isinstance(two, TimeColumn):
        if one.word == two.word and bool(one.zone) == bool(two.zone):
            unit = finer(one.unit, two.unit)
            return [(one.to_unit(unit).codes, two.to_unit(unit).codes)]
    elif not isinstance(one, TextColumn | TimeColumn) and not isinstance(two, TextColumn | TimeColumn):
        return _comparable_numbers(one, two)
    raise DTypeError(
        f"merge: key {name!r} is {word_of(one)} on the left and {other!r} is {word_of(two)} on the right: "
        f"convert one of them first, {_conversion(one, two)}"
    )


def _conversion(one: AnyColumn, two: AnyColumn) -> str:
    kinds = {type(one), type(two)}
    if TextColumn in kinds and TimeColumn in kinds:
        return "as to_datetime() of a column of text does"
    if TextColumn in kinds:
        return "as to_int() and to_float() of a column of text do"
    return "as x.to_zone(None) does, which leaves the zone out" if len(kinds) == 1 else "to the same type"


def _comparable_numbers(one: AnyColumn, two: AnyColumn) -> list[tuple[Any, Any]]:
    gone = [is_missing(column) for column in (one, two)]
    values: list[Any] = [codes_of(column) for column in (one, two)]
    kinds = [value.dtype.kind for value in values]
    pairs: list[tuple[Any, Any]] = []
    is_masked = any(isinstance(column, MaskedColumn) and column.may_miss for column in (one, two))
    if "f" in kinds or kinds[0] == kinds[1] or "u" not in kinds:
        dtype = np.result_type(*(value.dtype for value in values))
    else:
        dtype = np.dtype(np.int64)  # signed and unsigned
    if kinds != ["f", "f"]:
        if "f" in kinds and any(value.dtype.kind in "iu" and value.dtype.itemsize == 8 for value in values):
            values, pairs = _as_whole(values)
            is_masked = True
        elif sorted(kinds) == ["i", "u"]:
            # Values that one type lacks differ by their sign.
            signs = [(value.astype(np.int64) < 0).astype(np.int8) for value in values]
            pairs = [(signs[0], -signs[1])] if kinds[1] == "u" else [(-signs[0], signs[1])]
        if is_masked:
            masks = [
                full(len(value), 0, np.int8) if mask is None else mask.astype(np.int8)
                for value, mask in zip(values, gone, strict=True)
            ]
            pairs.append((masks[0], masks[1]))
            values = [
                value if mask is None else np.where(mask, value.dtype.type(0), value)
                for value, mask in zip(values, gone, strict=True)
            ]
    if any(value.dtype.kind == "f" for value in values) or dtype.kind != "f":
        values = [value.astype(dtype) for value in values]
    return [(values[0], values[1]), *pairs]


def _as_whole(values: list[Any]) -> tuple[list[Any], list[tuple[Any, Any]]]:
    # Whole numbers of 64 bits beside floats, of which few are such numbers: these as whole numbers, and what
    # is left of the others.
    whole = next(value for value in values if value.dtype.kind in "iu")
    limit = 2.0 ** (8 * whole.dtype.itemsize - (whole.dtype.kind == "i"))
    made: list[Any] = []
    rests: list[Any] = []
    for value in values:
        if value.dtype.kind != "f":
            made.append(value.astype(whole.dtype))
            rests.append(full(len(value), 0.0, np.float64))
            continue
        wide = value.astype(np.float64)
        lowest = -limit if whole.dtype.kind == "i" else 0.0
        is_whole = (wide == np.floor(wide)) & (wide >= lowest) & (wide < limit)
        made.append(np.where(is_whole, wide, 0.0).astype(whole.dtype))
        rests.append(np.where(is_whole | np.isnan(wide), 0.0, wide))
    return made, [(rests[0], rests[1])]


@dataclass(frozen=True, eq=False)
class _RowCodes:
    """Numbers from 0 to ``count`` for the rows of two tables, the same where keys are; ``count`` meets none.

    ``are_places`` says that those of the right are its rows' own numbers, if no two of them are equal.
    """

    left: Any
    right: Any
    count: int
    are_places: bool


def _coded(parts: Sequence[tuple[Any, Any]]) -> _RowCodes:
    found = _coded_alone(*parts[0])
    for part in parts[1:]:
        two = _coded_alone(*part)
        both = [
            np.where((a == found.count) | (b == two.count), -1, a.astype(np.int64) * two.count + b)
            for a, b in ((found.left, two.left), (found.right, two.right))
        ]
        found = _coded_alone(both[0], both[1])
        # What misses a part is equal to nothing.
        left, right = (
            np.where(one < 0, found.count, code)
            for one, code in zip(both, (found.left, found.right), strict=True)
        )
        found = _RowCodes(left, right, found.count, found.are_places)
    evaluator().persist([found.left.expression, found.right.expression])  # asked of several times
    return found


def _coded_alone(left: Any, right: Any) -> _RowCodes:
    shorter = min(len(left), len(right))
    if shorter <= MOST_LOOKED_IN:
        among = right if len(right) <= len(left) else left
        codes = [wrap(Matches(one.expression, among.expression)) for one in (left, right)]
        return _RowCodes(codes[0], codes[1], shorter, among is right)
    both: Any = np.concatenate([left, right])
    groups = groupby(both)
    numbers: Any = groups.transform(both, lambda found, _: arange(found.num_groups))
    return _RowCodes(numbers[: len(left)], numbers[len(left) :], groups.num_groups, False)


def _check_unique(wanted: str, parts: Sequence[tuple[Any, Any]], keys: list[tuple[str, str]]) -> None:
    for side, word in enumerate(("left", "right")):
        rows = tuple(part[side] for part in parts)
        if wanted[side] == "1" and len(rows[0]) and groupby(rows).num_groups < len(rows[0]):
            names = ", ".join(repr(key[side]) for key in keys)
            raise OptionError(
                f"merge(validate=...): keys {names} of the {word} table are not unique: "
                f"t.groupby(keys).size() counts them, and validate=None joins them all"
            )


# Which rows meet


@dataclass(frozen=True, eq=False)
class _MeetingRows:
    """The rows of a result: what makes them of a column of each table, and masks of those that one lacks.

    A mask is None where a table lacks no row.
    """

    left: Rows
    right: Rows
    left_lacks: Any
    right_lacks: Any


def _filtered(table: Table, codes: _RowCodes, is_anti: bool) -> Table:
    counts = _counts(codes)
    found: Any = look_up(counts, codes.left) > 0
    return table._rows(~found if is_anti else found)


def _counts(codes: _RowCodes) -> Any:
    # How many rows of the right have each code; none has the last, which meets nothing.
    return np.concatenate([_counts_of_all(codes)[: codes.count], np.zeros(1, np.int64)])


def _counts_of_all(codes: _RowCodes) -> Any:
    return groupby(codes.right, num_groups=codes.count + 1).count()


def _joined_rows(left: Table, right: Table, codes: _RowCodes, how: str) -> _MeetingRows:
    row_bytes = sum(codes_of(one).dtype.itemsize for one in (*left.values(), *right.values()))
    if how == "right":
        turned = _RowCodes(codes.right, codes.left, codes.count, False)
        rows, places, lacks = _meeting(turned, len(right), len(left), True, row_bytes)
        return _MeetingRows(lambda one: at_places(one, places, lacks is not None), rows, lacks, None)
    rows, places, lacks = _meeting(codes, len(left), len(right), how != "inner", row_bytes)
    if how != "outer":
        return _MeetingRows(rows, lambda one: at_places(one, places, lacks is not None), None, lacks)
    # Rows of the right that meet none come after the others.
    turned = _RowCodes(codes.right, codes.left, codes.count, False)
    alone: Any = np.flatnonzero(look_up(_counts(turned), codes.right) == 0)
    if not len(alone):
        return _MeetingRows(rows, lambda one: at_places(one, places, lacks is not None), None, lacks)
    all_places: Any = np.concatenate([places, alone])
    return _MeetingRows(
        lambda one: in_a_row([rows(one), all_missing(one, len(alone))]),
        lambda one: at_places(one, all_places, lacks is not None),
        arange(len(all_places)) >= len(places),
        None if lacks is None else all_places < 0,
    )


def _meeting(
    codes: _RowCodes, length: int, others: int, keeps_all: bool, row_bytes: int
) -> tuple[Rows, Any, Any]:
    # What makes the rows of the first table, the places of those of the second, negative where there is none,
    # and a mask of these, if there are any.
    places = _only_places(codes, others)
    if places is not None:
        is_there: Any = places >= 0
        count = int(np.count_nonzero(is_there)) if length else 0
        if count == length or keeps_all:
            _check_room(length, row_bytes)
            return (lambda one: one), places, None if count == length else ~is_there
        _check_room(count, row_bytes)
        return (lambda one: one[is_there]), places[is_there], None
    each: Any = look_up(_counts(codes), codes.left)
    lengths = np.maximum(each, 1) if keeps_all else each
    total = int(lengths.sum())
    _check_room(total, row_bytes, int(each.max(initial=0)))
    counts = _counts_of_all(codes)
    starts: Any = np.cumsum(counts) - counts
    order: Any = np.concatenate([np.argsort(codes.right, kind="stable"), np.full(1, -1)])
    before: Any = np.cumsum(lengths) - lengths
    first: Any = np.where(each == 0, others, look_up(starts, codes.left)) - before
    found = look_up(order, np.repeat(first, lengths) + arange(total))
    lacks = found < 0 if keeps_all and bool((each == 0).any()) else None
    return (lambda one: repeated(one, lengths)), found, lacks


def _only_places(codes: _RowCodes, others: int) -> Any:
    # The place of the only row of the second table that each row of the first one meets, negative where there
    # is none; None where some meet several.
    if not others or not len(codes.left):
        return full(len(codes.left), -1, np.int64)
    if codes.are_places and bool((codes.right == arange(others)).all()):
        return np.where(codes.left == codes.count, -1, codes.left)
    counts = _counts(codes)
    if int(counts.max(initial=0)) > 1:
        return None
    rows: Any = scatter_reduce(arange(others), codes.right, codes.count + 1, "max")
    return look_up(np.where(counts > 0, rows, -1), codes.left)


def _check_room(rows: int, row_bytes: int, most: int = 1) -> None:
    needed, room = rows * (row_bytes + _PLACE_BYTES), evaluator().memory_here()
    if room and needed > room:
        why = f", since a key is in up to {most:,} rows of one table" if most > 1 else ""
        raise TooLargeError(
            f"merge: the result has {rows:,} rows and takes {bytes_text(needed)}, where the workers have "
            f'{bytes_text(room)}{why}: group or select rows before, or let validate="m:1" tell of keys that '
            "are there several times"
        )


# The table of them


@dataclass(frozen=True)
class _ColumnNames:
    how: str
    suffixes: tuple[str | None, str | None]
    indicator: bool | str


def _assembled(
    left: Table, right: Table, keys: list[tuple[str, str]], rows: _MeetingRows, naming: _ColumnNames
) -> Table:
    shared = [one for one, two in keys if one == two]
    names = _names_of(left, right, shared, naming)
    made: dict[str, AnyColumn] = {}
    for name, one in left.items():
        made[names[0][name]] = rows.left(one)
        if name in shared and rows.left_lacks is not None:
            is_right = naming.how == "right"
            made[names[0][name]] = (
                rows.right(right[name]) if is_right else _filled(name, rows, one, right[name])
            )
    for name, one in right.items():
        if name not in shared:
            made[names[1][name]] = rows.right(one)
    if naming.indicator is not False:
        made["_merge" if naming.indicator is True else str(naming.indicator)] = _origin(rows, made)
    complete = {names[0][name] for name in left._complete} if rows.left_lacks is None else set()
    if rows.right_lacks is None:
        complete |= {names[1][name] for name in right._complete if name not in shared}
    by_keys = {name for pair in keys for name in pair} <= {*left._keys} & {*right._keys}
    table = type(left)(made, frozenset(complete))._keyed(left._keys if by_keys else ())
    if naming.how != "outer":
        return reordered(table, left) if naming.how == "right" or table._keys else table
    by = [
        made[names[0][one]] if one == two else _filled(one, rows, left[one], right[two]) for one, two in keys
    ]
    order = order_of(by, [True] * len(by))
    ordered = type(left)({name: at_places(one, order) for name, one in made.items()}, table._complete)
    return reordered(ordered._keyed(table._keys), left, right)


def _filled(name: str, rows: _MeetingRows, one: AnyColumn, two: AnyColumn) -> AnyColumn:
    # Keys: of the left where it has the row, else of the right.
    if rows.left_lacks is None:
        return rows.left(one)
    both = in_a_row([rows.left(one), rows.right(two)], f"merge: key {name!r}")
    places = arange(len(rows.left_lacks))
    found = at_places(both, places + np.where(rows.left_lacks, len(rows.left_lacks), 0))
    if isinstance(found, MaskedColumn) and is_missing(one) is None and is_missing(two) is None:
        return found.codes  # of which none is missing
    return found


def _names_of(
    left: Table, right: Table, shared: Sequence[str], naming: _ColumnNames
) -> tuple[dict[str, str], dict[str, str]]:
    both = {name for name in left.columns if name in right and name not in shared}
    if both and not any(naming.suffixes):
        raise OptionError(f"merge: both tables have a column {min(both)!r}: give suffixes for their names")
    found = tuple(
        {name: name + (suffix or "") if name in both else name for name in table.columns}
        for table, suffix in zip((left, right), naming.suffixes, strict=True)
    )
    names = [*found[0].values(), *(name for one, name in found[1].items() if one not in shared)]
    if naming.indicator is not False:
        names.append("_merge" if naming.indicator is True else str(naming.indicator))
    twice = next((name for number, name in enumerate(names) if name in names[:number]), None)
    if twice is not None:
        raise OptionError(f"merge: two columns of the result would be called {twice!r}: give other suffixes")
    return found[0], found[1]


def _origin(rows: _MeetingRows, made: dict[str, AnyColumn]) -> TextColumn:
    import pyarrow

    length = len(next(iter(made.values())))
    codes: Any = full(length, 0, np.int32)
    if rows.right_lacks is not None:
        codes = np.where(rows.right_lacks, 1, codes)
    if rows.left_lacks is not None:
        codes = np.where(rows.left_lacks, 2, codes)
    labels = pyarrow.array(["both", "left_only", "right_only"])
    return TextColumn(asarray(codes).astype(np.int32), labels, may_miss=False)
