"""Tables as pictures: their numbers as lines and bars, over times, texts, or the keys of groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from matnb.errors import DTypeError, TooLargeError, UnsupportedError
from matnb.tables.columns import TextColumn
from matnb.tables.masked import MaskedColumn
from matnb.tables.times import TimeColumn

if TYPE_CHECKING:
    from matnb.tables.table import Table

_MOST_BARS = 500  # of a picture
_MOST_COLORS = 20  # that are told apart
_MOST_LETTERS = 60  # of labels beside each other, under axes of usual width

_Values = npt.NDArray[Any]


def draw_table(table: Table, axes: Any, keys: tuple[str, ...]) -> Any:
    """Draw the numbers of a table, and return the axes.

    Lines over times or the keys of groups, bars over texts and for counts of a few values, and without these
    lines over the numbers of rows. Bars are beside each other, by columns of numbers or a second key, and
    each value of a second key has a line of its own.

    Raises
    ------
    DTypeError
        For a table without numbers.
    TooLargeError
        If it exceeds the session's ``compute_limit``, and for more bars or colors than a picture shows.
    UnsupportedError
        For groups by three keys, and several columns of groups by two.
    """
    texts = [name for name, one in table.items() if _is_text(one, name in keys)]
    names = [
        name
        for name, one in table.items()
        if name not in keys and not isinstance(one, TextColumn | TimeColumn)
    ]
    over = next((name for name in (*keys, *table.columns) if name not in names), None)
    if not names:
        raise DTypeError(f"plot of a table without a column of numbers; it has {', '.join(table.columns)}")
    if over in texts and len(table) > _MOST_BARS:
        raise TooLargeError(
            f"plot draws a bar for each of the {len(table):,} rows, and {_MOST_BARS} at most: group them "
            f"first, as in mn.plot(t.groupby({over!r})[{names[0]!r}].sum())"
        )
    table._check_limit()
    table._computed()
    places = np.arange(len(table)) if over is None else _values(table[over])
    others = keys[1:] or [name for name in texts if name != over and not keys and over in texts]
    series = _by_second(table, places, names, others, keys) if others else None
    axes.set_xlabel("row" if over is None else over)
    if series is not None:
        (_bars if over in texts else _lines)(axes, series)
        axes.set_ylabel(names[0])
        axes.legend(title=others[0])
        return axes
    is_counted = [name.rstrip("_") for name in names] in (["count"], ["proportion"])
    is_counted = is_counted and over in keys and not isinstance(table[over], TimeColumn)
    series = [(name, places, np.asarray(table[name])) for name in names]
    if over in texts:
        _bars(axes, series)
    elif is_counted and len(table) <= _MOST_BARS:
        axes.bar(places, series[0][2], label=names[0])
    elif over in keys:
        _lines(axes, series)
    else:
        for name, _, values in series:
            axes.plot(places, values, label=name)
    axes.set_ylabel(names[0]) if len(names) == 1 else axes.legend()
    return axes


def _is_text(column: Any, is_key: bool) -> bool:
    return isinstance(column, TextColumn) or (is_key and column.dtype.kind == "b")


def _values(column: Any) -> _Values:
    found = np.asarray(column.to_float() if isinstance(column, MaskedColumn) else column)
    return found.astype(str) if _is_text(column, True) else found


def _by_second(
    table: Table, places: _Values, names: Sequence[str], others: Sequence[str], keys: Sequence[str]
) -> list[tuple[str, _Values, _Values]] | None:
    # What is drawn for each value of a second key: its name, places and values. Columns of text of a table
    # that is none of groups are keys where they tell all rows apart.
    if not keys and len(set(places.tolist())) == len(places):
        return None
    second = _values(table[others[0]]).astype(str)
    pairs = set(zip(places.tolist(), second.tolist(), strict=True))
    if len(pairs) < len(places):
        if not keys:
            return None
        way = f"mn.plot(t.groupby([{keys[0]!r}, {keys[1]!r}])[{names[0]!r}].sum())"
        raise UnsupportedError(f"plot draws groups by two keys, and these are by {len(keys)}: {way}")
    if len(names) > 1:
        raise UnsupportedError(
            f"plot draws one column of groups by two keys, and there are {', '.join(names)}: choose one "
            f"before, as in t.groupby([{', '.join(map(repr, (keys or others)[:2]))}])[{names[0]!r}].sum()"
        )
    labels = list(dict.fromkeys(second.tolist()))
    if len(labels) > _MOST_COLORS:
        raise TooLargeError(
            f"plot draws a color for each of the {len(labels)} values of {others[0]!r}, and "
            f"{_MOST_COLORS} at most: make it the first key, or leave out rows"
        )
    values = np.asarray(table[names[0]])
    return [(label, places[second == label], values[second == label]) for label in labels]


def _colors(count: int) -> list[Any]:
    from matplotlib import colormaps, rcParams

    own = rcParams["axes.prop_cycle"].by_key().get("color", [])
    return own if count <= len(own) else [colormaps["tab20"](number) for number in range(_MOST_COLORS)]


def _lines(axes: Any, series: Sequence[tuple[str, _Values, _Values]]) -> None:
    colors = _colors(len(series))
    for number, (label, places, values) in enumerate(series):
        order = np.argsort(places, kind="stable")
        axes.plot(places[order], values[order], label=label, color=colors[number % len(colors)])


def _bars(axes: Any, series: Sequence[tuple[str, _Values, _Values]]) -> None:
    # Beside each other at each text, in the order in which texts come; rows of one text have a place each.
    rows = list(dict.fromkeys(text for _, places, _ in series for text in places.tolist()))
    if any(len(set(places.tolist())) < len(places) for _, places, _ in series):
        rows = series[0][1].tolist()
        series = [(label, np.arange(len(rows)), values) for label, _, values in series]
    elif len(series) > 1:
        number_of = {text: number for number, text in enumerate(rows)}
        series = [
            (label, np.array([number_of[text] for text in places.tolist()], np.int64), values)
            for label, places, values in series
        ]
    colors, width = _colors(len(series)), 0.8 / len(series)
    for number, (label, places, values) in enumerate(series):
        shift = (number - (len(series) - 1) / 2) * width
        at = places + shift if places.dtype.kind == "i" else places
        axes.bar(at, values, width, label=label, color=colors[number % len(colors)])
    if series[0][1].dtype.kind == "i":
        axes.set_xticks(range(len(rows)), rows)
    if sum(map(len, rows)) > _MOST_LETTERS:
        axes.tick_params(axis="x", rotation=90)
