"""Columns of numbers as other types: whole numbers, with missing values or without, and text."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from matnb.errors import OptionError, suggestion
from matnb.io.durations import NO_TIME, PER_DAY, stored_unit, unit_ratio
from matnb.lazy.array import DistArray
from matnb.lazy.functions.mapping import map_blocks
from matnb.tables.column_arrays import ColumnArray
from matnb.tables.columns import Column, as_column
from matnb.tables.dtypes import is_nullable, numbers_dtype
from matnb.tables.masked import MaskedColumn
from matnb.tables.times import TimeColumn


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
        return MaskedColumn(values.astype(wanted), np.isnan(array))  # type: ignore[arg-type]  # a handle
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
        return whole.map(str).to_datetime(format, errors)  # type: ignore[no-any-return]  # of text
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
    return cut.astype(dtype)  # type: ignore[no-any-return]  # as given
