"""Arrays of numbers and booleans as columns: pandas' methods for dense arrays with one axis."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from numbers import Number
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt

from matnb.blocks.foreign import is_missing_value
from matnb.errors import DTypeError, ShapeError
from matnb.lazy.array import DistArray
from matnb.lazy.registry import METHODS
from matnb.tables.casts import converted, times_of_numbers
from matnb.tables.column_arrays import ColumnArray, column_array, plain_array
from matnb.tables.columns import Column, shown_value
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
        return codes != codes  # type: ignore[no-any-return]

    def _here(self, codes: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return codes

    def _plain(self) -> DistArray:
        return column_array(self.codes)  # type: ignore[no-any-return]  # a handle

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
        return np.abs(self.codes)  # type: ignore[return-value]

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


METHODS["astype"] = converted
METHODS.update({name: _method(name) for name in _OF_ELEMENTS + _METHODS})
