"""What ``agg`` of a table's groups is asked for, in pandas' forms: names, lists, mappings, named pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from matnb.errors import ColumnError, OptionError, suggestion

if TYPE_CHECKING:
    from matnb.tables.table import Table

METHODS = (
    *("count", "sum", "prod", "mean", "std", "var", "min", "max", "median", "quantile", "nunique"),
    *("first", "last"),
)
OF_NUMBERS = ("sum", "prod", "mean", "std", "var", "median", "quantile")  # the others are of text too
_FUNCTIONS: dict[Any, str] = {
    len: "size", sum: "sum", min: "min", max: "max", np.sum: "sum", np.prod: "prod", np.mean: "mean",
    np.median: "median", np.min: "min", np.max: "max", np.nansum: "sum", np.nanmean: "mean",
    np.nanmin: "min", np.nanmax: "max", np.nanmedian: "median",
}  # fmt: skip


class Aggregate(NamedTuple):
    """One column of a result: its name, the column that it is of, and the method."""

    name: str
    column: str
    method: str


def method_of(func: object) -> str:
    """Return the method that a name or a known function stands for.

    Raises
    ------
    OptionError
        For an unknown name, and a function that is run on no worker.
    """
    if isinstance(func, str):
        if func == "size" or func in METHODS:
            return func
        known = ("size", *METHODS)
        raise OptionError(f"agg: no method {func!r}; {suggestion(func, known, 'there are')}")
    try:
        return _FUNCTIONS[func]
    except (KeyError, TypeError):
        raise OptionError(
            f"agg: {_word_of(func)} is not one of {', '.join(('size', *METHODS))}: give such a name; "
            'groups["fare"].quantile(0.9) is another quantile, and groups.nested("fare") has all values of '
            "each group"
        ) from None


def _word_of(func: object) -> str:
    return f"the function {func.__name__}" if hasattr(func, "__name__") else repr(func)


def aggregates_of(
    func: object, named: Mapping[str, object], values: Sequence[str], is_chosen: bool, table: Table
) -> list[Aggregate]:
    """Return what is asked for.

    Parameters
    ----------
    values
        The columns of the groups, which ``is_chosen`` says a user has selected.

    Raises
    ------
    ColumnError, OptionError
        For what is not there.
    """
    if (func is None) == (not named):
        raise OptionError(
            'agg: give methods, as in agg(["mean", "max"]), agg({"fare": "sum"}) or '
            'agg(total=("fare", "sum"))'
        )
    if named:
        return [_named(name, one, values, table) for name, one in named.items()]
    found: list[Aggregate] = []
    if isinstance(func, Mapping):
        for column, one in func.items():
            _check_column(column, table)
            found += _of_column(column, one, str(column))
    else:
        for column in values:
            found += _of_column(column, func, "" if is_chosen and len(values) == 1 else column)
    twice = next(
        (one.name for place, one in enumerate(found) if one.name in [a.name for a in found[:place]]), None
    )
    if not found or twice is not None:
        raise OptionError(f"agg: {f'{twice!r} is asked for twice' if found else 'nothing is asked for'}")
    return found


def _of_column(column: str, func: object, prefix: str) -> list[Aggregate]:
    if not isinstance(func, list | tuple | set):
        return [Aggregate(column, column, method_of(func))]
    methods = [method_of(one) for one in func]
    return [Aggregate(f"{prefix}_{one}" if prefix else one, column, one) for one in methods]


def _named(name: str, given: object, values: Sequence[str], table: Table) -> Aggregate:
    if isinstance(given, tuple | list) and len(given) == 2:
        _check_column(given[0], table)
        return Aggregate(name, given[0], method_of(given[1]))
    if len(values) == 1 and not isinstance(given, tuple | list):
        return Aggregate(name, values[0], method_of(given))
    raise OptionError(f'agg({name}={given!r}): give a column and a method, as in {name}=("fare", "sum")')


def _check_column(name: object, table: Table) -> None:
    if name not in table:
        raise ColumnError(f"agg: no column {name!r}; {suggestion(name, table.columns)}")
