"""Arrays of numbers and booleans as columns, with pandas' methods, and such columns as other types."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from numbers import Number
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt

from matnb.blocks.foreign import is_missing_value
from matnb.errors import DTypeError, OptionError, ShapeError, suggestion
from matnb.io.durations import NO_TIME, PER_DAY, stored_unit, unit_ratio
from matnb.lazy.array import DistArray, handle_of
from matnb.lazy.functions.mapping import map_blocks
from matnb.lazy.registry import METHODS
from matnb.tables.column_arrays import ColumnArray, column_array, plain_array
from matnb.tables.columns import Column, as_column, shown_value
from matnb.tables.dtypes import is_nullable, numbers_dtype
from matnb.tables.makers import makers
from matnb.tables.masked import MaskedColumn
from matnb.tables.times import TimeColumn

# What an array has from pandas; what NumPy's arrays have, such as mean, it has from NumPy.
_OF_ELEMENTS = ("isna", "isnull", "notna", "notnull", "fillna", "where", "mask", "isin", "between", "abs")
_METHODS = (
    *("ffill", "bfill", "dropna", "replace", "map", "shift", "diff", "pct_change", "unique", "nunique"),
    *("count", "mode", "value_counts", "describe", "head", "tail", "to_list", "median", "quantile"),
    *("idxmin", "idxmax", "duplicated", "corr", "sample", "to_datetime", "to_float", "to_int"),
    *("sort_values", "nlargest", "nsmallest", "rank"),
)


class NumberColumn(Column):
    """An array as a column of a table, whose missing values are NaN."""

    def __init__(self, codes: DistArray) -> None:
        super().__init__(codes, may_miss=codes.dtype.kind == "f")
        self.name = getattr(codes, "name", "")

    def _like(self, codes: DistArray, may_miss: bool | None = None) -> Self:
        return type(self)(codes)

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the values."""
        return self.codes.dtype

    @property
    def missing(self) -> DistArray:
        """A boolean mask of missing values."""
        codes: Any = self.codes
        return codes != codes  # type: ignore[no-any-return]  # operators of arrays give Any

    def _here(self, codes: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return codes

    def _plain(self) -> DistArray:
        return column_array(self.codes)  # type: ignore[no-any-return]  # operators of arrays give Any

    def _complete(self) -> DistArray:
        return self._plain()

    def _number(self, value: object) -> Any:
        if not isinstance(value, Number | np.generic) or isinstance(value, np.datetime64 | np.timedelta64):
            raise DTypeError(
                f"{shown_value(value)} cannot be compared with a column of {self.dtype}: give numbers"
            )
        if isinstance(value, complex | np.complexfloating):
            return None
        with np.errstate(all="ignore"):
            made = np.asarray(value).astype(self.dtype)
        return made[()] if made == value else None

    def abs(self) -> DistArray:
        """Return magnitudes."""
        return handle_of(np.abs(self.codes))

    def _chosen(self, where: DistArray, other: Any) -> Any:
        if is_missing_value(other):
            if self.dtype.kind == "f":
                return NumberColumn(cast(DistArray, np.where(where, self.codes, self.dtype.type(np.nan))))
            return MaskedColumn(self.codes, ~where)
        if isinstance(other, NumberColumn):
            other = other.codes
        is_number = isinstance(other, Number | np.ndarray | np.generic | DistArray | MaskedColumn)
        if not is_number or getattr(other, "dtype", np.dtype(float)).kind not in "biuf":
            raise DTypeError(f"an array of {self.dtype} cannot have {shown_value(other)}: give numbers")
        found: Any = np.where(where, self.codes, other)
        return NumberColumn(found) if isinstance(found, DistArray) else found

    def to_datetime(
        self, format: str | None = None, errors: str = "raise", unit: str | None = None
    ) -> TimeColumn:
        """Return numbers as dates and times: as they are written, or as counts of a unit since 1970.

        Parameters
        ----------
        format
            How they are written, such as ``"%Y%m%d"`` for 20240401.
        errors
            "raise", or "coerce" to make numbers that are not times missing.
        unit
            "D", "s", "ms", "us" or "ns".

        Raises
        ------
        OptionError
            Without a form and a unit.

        Examples
        --------
        >>> import matnb as mn
        >>> mn.table({"day": [20240401, 20240402]})["day"].to_datetime("%Y%m%d").compute()
        array(['2024-04-01', '2024-04-02'], dtype='datetime64[D]')
        """
        return times_of_numbers(self, format, errors, unit)

    def to_float(self, **options: object) -> DistArray:
        """Return the numbers as float64: code that read text as numbers runs again on what it made.

        Parameters
        ----------
        **options
            Of columns of text; numbers are as they are.
        """
        return self.codes.astype(np.float64)

    def to_int(self, **options: object) -> DistArray:
        """Return whole numbers as they are, for the same reason; options are those of columns of text.

        Raises
        ------
        DTypeError
            For other numbers.
        """
        if self.dtype.kind not in "biu":
            raise DTypeError(
                f'to_int of a column of {self.dtype}: x.astype("int64") cuts off what is below one, and '
                "np.round(x) rounds before"
            )
        return self.codes if self.dtype.kind in "iu" else self.codes.astype(np.int64)


def _method(name: str) -> Callable[..., Any]:
    function = getattr(NumberColumn, name)

    @wraps(function)
    def method(array: DistArray, *args: object, **options: object) -> Any:
        if array.ndim != 1 and name not in _OF_ELEMENTS:
            raise ShapeError(
                f"{name} of an array of shape {array.shape}: it is of columns, which have one axis"
            )
        found = function(NumberColumn(array), *args, **options)
        found = found.codes if isinstance(found, NumberColumn) else found
        return column_array(found, array.name) if isinstance(array, ColumnArray) else plain_array(found)

    return method


METHODS.update({name: _method(name) for name in _OF_ELEMENTS + _METHODS})


# Numbers as other types: whole ones, with missing values or without, times and text.


def converted(array: DistArray, dtype: Any) -> Any:
    """Return an array in a dtype that NumPy's rules are not for; None where they are.

    Floats of a table's column, and what is made of them, become whole numbers only where all can. Types of
    pandas' for values of which some are missing, such as "Int64", keep the missing ones of any array; ``str``
    makes text of a dense array with one axis.

    Raises
    ------
    OptionError
        Once computed, for values that the dtype does not have.
    """
    if array.sparse or array.ndim != 1:
        return None
    if dtype is str or str(dtype) in ("str", "string"):
        return as_column(array).map(str)
    nullable = is_nullable(dtype)
    try:
        wanted = numbers_dtype(dtype)
    except TypeError:
        return None
    is_float = array.dtype.kind == "f"
    if nullable and is_float and wanted.kind in "iub":
        values = _whole(array, wanted, missing=True)
        return MaskedColumn(values.astype(wanted), handle_of(np.isnan(array)))
    if nullable:
        return array.astype(wanted)
    if is_float and wanted.kind in "iu" and isinstance(array, ColumnArray):
        return _whole(array, wanted, missing=False)
    return None


def times_of_numbers(column: Column, format: str | None, errors: str, unit: str | None) -> TimeColumn:
    """Return a column of numbers as dates and times: as they are written, or as counts of a unit since 1970.

    Raises
    ------
    OptionError
        Without a form and a unit, or with both.
    """
    if (format is None) == (unit is None):
        raise OptionError('to_datetime of numbers: give format="%Y%m%d", or unit="s" for seconds since 1970')
    if unit is None:
        whole = column if column.dtype.kind != "f" else as_column(column.codes.astype("Int64"))
        return whole.map(str).to_datetime(format, errors)  # type: ignore[no-any-return]  # operators of arrays give Any
    if unit not in PER_DAY:
        raise OptionError(f"unit={unit!r}; {suggestion(unit, PER_DAY)}")
    made: Any = column.codes
    stored = "us" if column.dtype.kind == "f" and unit != "ns" else stored_unit(unit)
    if stored != unit:
        made = np.round(made * unit_ratio(unit, stored))
    codes: Any = np.where(column.missing, NO_TIME, np.where(column.missing, 0, made).astype(np.int64))
    return TimeColumn(codes, "datetime", stored, column.may_miss)


def _whole(array: DistArray, wanted: np.dtype, missing: bool) -> DistArray:
    dtype = np.dtype(np.int8) if wanted.kind == "b" else wanted
    kind = "bool" if wanted.kind == "b" else str(wanted)
    return map_blocks(
        partial(whole_numbers, kind=kind, missing=missing), array, shape=array.shape, dtype=dtype, pure=True
    )


def whole_numbers(block: npt.NDArray[Any], kind: str, missing: bool) -> npt.NDArray[Any]:
    """Return floats as whole numbers of a type; those that are missing, if some may be, as 0."""
    gone, cut = np.isnan(block), np.trunc(block)
    dtype = np.dtype(np.int8 if kind == "bool" else kind)
    low, end = (0, 2) if kind == "bool" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max) + 1)
    if missing:
        cut[gone] = 0
        if (is_broken := (cut != block) & ~gone).any():
            raise OptionError(
                f"{block[is_broken][0]} has a fraction, which a whole number has not: x.round() before"
            )
    elif gone.any():
        raise OptionError(
            f"some values are missing (NaN), and no {kind} is: x.fillna(0) gives them a value, x.dropna() "
            f"leaves them out, and x.astype({kind.capitalize().replace('Ui', 'UI')!r}) keeps them missing"
        )
    if (is_beyond := (cut < low) | (cut >= end)).any():  # doubles hold both ends exactly
        raise OptionError(f"{cut[is_beyond][0]} is beyond the numbers of {kind}: choose another dtype")
    return cut.astype(dtype)  # type: ignore[no-any-return]  # operators of arrays give Any


makers.numbers, makers.times_of_numbers = NumberColumn, times_of_numbers
METHODS["astype"] = converted
