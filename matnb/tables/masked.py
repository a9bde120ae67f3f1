"""Columns of whole numbers or booleans of which some are missing: exact values, and a mask beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from numbers import Number
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
from numpy.lib.mixins import NDArrayOperatorsMixin

from matnb.blocks.foreign import is_missing_value
from matnb.errors import DTypeError, OptionError, RangeError
from matnb.io.columns import fit_float64
from matnb.lazy.array import DistArray, handle_of
from matnb.lazy.creation import asarray
from matnb.lazy.evaluator import evaluator
from matnb.lazy.foreign_names import as_numpy, is_in_matplotlib
from matnb.lazy.functions.mapping import replicated
from matnb.lazy.labels import by_place
from matnb.tables.column_arrays import column_array, plain_array
from matnb.tables.columns import Column, shown_value
from matnb.tables.dtypes import kind_of_dtype, numbers_dtype
from matnb.tables.makers import makers

if TYPE_CHECKING:
    from matnb.tables.times import TimeColumn

_COMPARISONS = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)
_PREDICATES = (*_COMPARISONS, np.isinf, np.signbit)  # booleans that say something of a value
_CONNECTIVES = {
    **dict.fromkeys((np.bitwise_and, np.logical_and), "and"),
    **dict.fromkeys((np.bitwise_or, np.logical_or), "or"),
    **dict.fromkeys((np.bitwise_xor, np.logical_xor), "xor"),
}
# Of these NaN has a meaning that is not "missing where an operand is", and products need whole arrays.
_OF_FLOATS = (np.fmax, np.fmin)


class MaskedColumn(Column, NDArrayOperatorsMixin):
    """Whole numbers or booleans of which some are missing: exact values, and a mask beside them.

    Values never pass through floats unless a function asks for them. Ufuncs whose result is whole, such as
    ``c + 1`` and ``c // 2``, give such columns; those whose result is a float, such as ``c / 2``, give arrays
    with NaN for missing values. Missing values compare as NaN does: ``!=`` is True, all other comparisons are
    False. Booleans are combined by ``& | ^ ~`` in three values, as in pandas and polars, and pick rows where
    they are True. Other functions of NumPy's take the column as floats with NaN and refuse a value that no
    float64 has.

    Examples
    --------
    >>> import numpy as np, matnb as mn
    >>> t = mn.table({"people": [1, None, 3]})
    >>> t["people"].compute()
    array([ 1., nan,  3.])
    >>> int(t["people"].sum())
    4
    >>> np.where(t["people"].isna(), 0, t["people"]).compute()
    array([1, 0, 3])
    """

    __matnb_leads__ = True

    def __init__(self, codes: DistArray, mask: DistArray, may_miss: bool = True) -> None:
        super().__init__(codes, may_miss)
        self._gone = mask  # not `_mask`, by which np.ma would take it for one of its own

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, int | np.integer):
            return np.nan if self._gone[key].compute() else self.codes[key].compute()
        return MaskedColumn(self.codes[key], self._gone[key], self.may_miss)

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the values."""
        return self.codes.dtype

    def _word(self) -> str:
        return f"{self.dtype} or missing"

    @property
    def missing(self) -> DistArray:
        """A boolean mask of missing values."""
        return self._gone

    def compute(self) -> npt.NDArray[Any]:
        """Compute the column and return a NumPy array.

        Without a missing value it has the column's dtype. With one it is float64, with NaN for missing
        values, if float64 has all others exactly, and an array of objects if not: Python's numbers, and None.

        Raises
        ------
        TooLargeError
            If the values exceed the session's ``compute_limit``.
        """
        if len(self):
            evaluator().persist([self.codes.expression, self._gone.expression])
        values, gone = np.asarray(self.codes.compute()), np.asarray(self._gone.compute())
        if not gone.any():
            return values
        if not (gone | fit_float64(values)).all():
            found = values.astype(object)
            found[gone] = None
            return found
        return np.where(gone, np.nan, values.astype(np.float64))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.compute())  # which are floats or not by all of them

    # Other forms

    def astype(self, dtype: Any, errors: str = "raise") -> Any:
        """Return the column with another dtype: integers keep their mask, floats have NaN, ``str`` is text.

        Raises
        ------
        RangeError
            For values that a narrower dtype does not have.
        """
        kind = kind_of_dtype(dtype)
        if kind == "text":
            return self.map(str)
        if kind not in "biuf":
            raise DTypeError(
                f"astype({dtype!r}) of a column of {self.dtype}: choose a dtype of numbers, or str"
            )
        wanted = numbers_dtype(dtype)
        if kind == "f":
            return self.to_float().astype(wanted)
        if kind in "iu" and self.dtype.kind != "b":
            limits, values = np.iinfo(wanted), self._filled(0)
            least, most = int(values.min(initial=0)), int(values.max(initial=0))
            if least < limits.min or most > limits.max:
                raise RangeError(f"astype({dtype!r}): the column has {least if least < limits.min else most}")
        return MaskedColumn(self.codes.astype(wanted), self._gone)

    def to_datetime(
        self, format: str | None = None, errors: str = "raise", unit: str | None = None
    ) -> TimeColumn:
        """Return numbers as dates and times, by ``format="%Y%m%d"`` or ``unit="s"``, as arrays do."""
        return makers.times_of_numbers(self, format, errors, unit)

    def to_float(self, **options: object) -> DistArray:
        """Return the values as float64, rounded where they need to be, with NaN for missing ones.

        Parameters
        ----------
        **options
            Of columns of text; numbers are as they are.
        """
        return column_array(np.where(self._gone, np.nan, self.codes.astype(np.float64)), self.name)  # type: ignore[no-any-return]  # operators of arrays give Any

    def to_int(self, **options: object) -> MaskedColumn:
        """Return the values as whole numbers, which they are; options are those of columns of text."""
        return self if self.dtype.kind in "iu" else MaskedColumn(self.codes.astype(np.int64), self._gone)

    def __matnb_array__(self) -> DistArray:
        """Return the values as float64 with NaN; one that float64 does not hold is an error once computed."""
        if self.codes.dtype.itemsize < 8:
            return handle_of(np.where(self._gone, np.nan, self.codes.astype(np.float64)))
        codes: Any = self.codes
        lost = np.where(self._gone | fit_float64(codes), codes.dtype.type(0), codes)
        check = partial(_checked, name=self.name, dtype=str(self.dtype))
        nan = replicated(check, lost.min(initial=0), lost.max(initial=0), like=np.nan)
        return handle_of(np.where(self._gone, nan, codes.astype(np.float64)))

    def __matnb_mask__(self) -> DistArray:
        """Return where values are there and true: the rows that the column picks.

        Raises
        ------
        DTypeError
            For a column of numbers.
        """
        if self.dtype.kind != "b":
            raise DTypeError(
                f"a column of {self._word()} picks no rows: compare it, as in t[{self.name!r}] > 0; "
                "fillna makes numbers of rows of it"
            )
        return self._truth()  # type: ignore[no-any-return]  # operators of arrays give Any

    def present(self) -> DistArray:
        """Return the values that are not missing; their number is computed immediately."""
        return column_array(self.codes[~self._gone], self.name)  # type: ignore[no-any-return]  # operators of arrays give Any

    def _here(self, codes: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return codes

    def _complete(self) -> DistArray:
        return column_array(self.codes, self.name)  # type: ignore[no-any-return]  # operators of arrays give Any

    def _chosen(self, where: DistArray, other: Any) -> Any:
        if is_missing_value(other):
            return MaskedColumn(self.codes, self._gone | ~where)
        if isinstance(other, MaskedColumn | DistArray | np.ndarray):
            return np.where(where, self, other)
        if isinstance(other, Column):
            raise DTypeError(f"a column of {self.dtype} cannot have {shown_value(other)}: give numbers")
        number = self._number(other)
        if number is None and self.dtype.kind != "b" and isinstance(other, float | np.floating):
            return np.where(where, self.__matnb_array__(), float(other))
        if number is None or (self.dtype.kind == "b") != isinstance(other, bool | np.bool_):
            raise DTypeError(
                f"{other!r} in a column of {self.dtype}: give a value of that dtype; "
                "to_float() is an array of floats with NaN"
            )
        return np.where(where, self, self.dtype.type(number))

    # Statistics, of the values that are there

    def clip(self, lower: Any = None, upper: Any = None) -> Any:
        """Return the column with values below ``lower`` and above ``upper`` replaced by these."""
        return np.clip(self, lower, upper)

    def abs(self) -> Any:
        """Return magnitudes."""
        return np.abs(self)

    def _filled(self, value: int) -> Any:
        return np.where(self._gone, self.dtype.type(value), self.codes)

    def _truth(self) -> Any:
        # Where a value is there and not zero.
        codes: Any = self.codes
        return (codes if self.dtype.kind == "b" else codes != 0) & ~self._gone

    # Comparisons with values

    def _number(self, value: object) -> int | None:
        if not isinstance(value, Number | np.generic) or isinstance(value, np.datetime64 | np.timedelta64):
            raise DTypeError(
                f"{shown_value(value)} cannot be compared with a column of {self.dtype}: give numbers"
            )
        try:
            whole = int(cast(Any, value))
        except (OverflowError, TypeError):  # infinities, and complex numbers
            return None
        if self.dtype.kind == "b":
            return whole if value in (0, 1) else None
        info = np.iinfo(self.dtype)
        return whole if whole == value and info.min <= whole <= info.max else None

    # NumPy's protocols

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **options: object) -> object:
        if is_in_matplotlib():
            return getattr(ufunc, method)(*as_numpy(inputs), **as_numpy(options))
        if method != "__call__" or options or ufunc.signature is not None or ufunc in _OF_FLOATS:
            return getattr(ufunc, method)(*_as_floats(inputs), **_as_floats(options))
        if ufunc in _CONNECTIVES and (ufunc.__name__[:3] == "log" or _are_boolean(inputs)):
            return _connected(_CONNECTIVES[ufunc], *inputs)
        if ufunc in (np.isnan, np.isfinite):
            return self._gone if ufunc is np.isnan else ~self._gone
        if ufunc in _COMPARISONS:
            for one in inputs:
                if isinstance(one, str | bytes):
                    raise DTypeError(
                        f"{one!r} cannot be compared with a column of {self.dtype}: give numbers"
                    )
            inputs = tuple(np.nan if is_missing_value(one) else one for one in inputs)
        columns = [one for one in inputs if isinstance(one, MaskedColumn)]
        gone: Any = columns[0]._gone
        for one in columns[1:]:
            gone = gone | one._gone
        found = ufunc(*(one.codes if isinstance(one, MaskedColumn) else one for one in inputs))
        if ufunc in _PREDICATES:
            return column_array(found | gone if ufunc is np.not_equal else found & ~gone)
        several = found if isinstance(found, tuple) else (found,)
        made = tuple(_with_missing(one, gone) for one in several)
        return made if isinstance(found, tuple) else made[0]

    def __array_function__(
        self, function: Callable[..., Any], types: object, args: Any, kwargs: Mapping[str, object]
    ) -> object:
        if is_in_matplotlib():
            return function(*as_numpy(args), **as_numpy(kwargs))
        if kwargs and function in _BY_PLACE:
            args, kwargs = by_place(_BY_PLACE[function], args, kwargs)
        exact = _FUNCTIONS.get(function)
        if exact is not None and (not kwargs or function in _WITH_OPTIONS):
            found = exact(*args, **kwargs)
            if found is not NotImplemented:
                return found
        if function in _MOVES and isinstance(args[0], MaskedColumn):
            values, gone = (function(one, *args[1:], **kwargs) for one in (args[0].codes, args[0]._gone))
            return MaskedColumn(values, gone)
        return function(*_as_floats(args), **_as_floats(kwargs))


def _checked(least: Any, greatest: Any, name: str, dtype: str) -> float:
    # NaN, unless a value is no float: then these are the least and the greatest of such values, and not 0.
    if not least and not greatest:
        return np.nan
    column = f"t[{name!r}]" if name else "the column"
    raise OptionError(
        f"{column} of {dtype} has missing values, and {int(greatest or least)}, which no float64 holds: "
        f"an array with NaN would round it. {column}.fillna(0) and {column}.present() have whole numbers, "
        f"{column}.to_float() rounds"
    )


def _as_floats(value: Any) -> Any:
    # Arguments with arrays in place of columns.
    if isinstance(value, MaskedColumn):
        return value.__matnb_array__()
    if type(value) in (list, tuple):
        return type(value)(map(_as_floats, value))
    return {name: _as_floats(one) for name, one in value.items()} if type(value) is dict else value


def _with_missing(values: Any, gone: Any) -> Any:
    # Whole numbers beside a mask, floats with NaN.
    if values.dtype.kind in "biu":
        return MaskedColumn(values, gone)
    return column_array(np.where(gone, values.dtype.type(np.nan), values))


def _parts(value: object) -> tuple[Any, Any]:
    # Values and mask of an operand; False where it misses none.
    if isinstance(value, MaskedColumn):
        return value.codes, value._gone
    return value, False


def _are_boolean(operands: tuple[object, ...]) -> bool:
    return all((one if hasattr(one, "dtype") else np.asarray(one)).dtype.kind == "b" for one in operands)


def _connected(word: str, one: object, other: object) -> MaskedColumn:
    # Kleene's logic: a missing value counts where both truths would give another result.
    (a, not_a), (b, not_b) = (_truths(value) for value in (one, other))
    if word == "and":
        found, opposite = a & b, not_a | not_b
    elif word == "or":
        found, opposite = a | b, not_a & not_b
    else:
        found, opposite = (a & not_b) | (not_a & b), (a & b) | (not_a & not_b)
    return MaskedColumn(found, ~(found | opposite))


def _truths(value: object) -> tuple[Any, Any]:
    # Where an operand is true, and where it is false.
    values, gone = _parts(value)
    values = values if isinstance(values, DistArray) else asarray(values)
    is_true = values if values.dtype.kind == "b" else values != 0
    return (is_true, ~is_true) if gone is False else (is_true & ~gone, ~is_true & ~gone)


# Functions that keep whole numbers; NotImplemented where floats have to do.


def _chosen(condition: Any, *choices: Any) -> Any:
    if isinstance(condition, MaskedColumn):
        condition = condition._truth()
    if not choices or not any(isinstance(one, MaskedColumn) for one in choices):
        return np.where(condition, *choices)
    (one, no_one), (other, no_other) = map(_parts, choices)
    found = np.where(condition, one, other)
    where = asarray(condition)
    # Where the condition is a column's own mask, nothing of that column that is missing is chosen.
    if no_one is False and where.expression is no_other.expression:
        return found
    if no_other is False and where.expression is (~no_one).expression:
        return found
    return _with_missing(found, np.where(where, no_one, no_other))


def _sorted(column: Any, axis: int | None = -1, *rest: Any) -> Any:
    # Missing values last, where NaN is.
    if axis not in (None, 0, -1) or rest:
        return NotImplemented
    there = np.sort(column.present())
    count = len(column) - len(there)
    if not count:
        return there
    values: Any = np.concatenate([there, np.zeros(count, column.dtype)])
    return MaskedColumn(values, asarray(np.arange(len(column)) >= len(there)))


def _sorting_order(column: Any, axis: int | None = -1, *rest: Any) -> Any:
    if axis not in (None, 0, -1) or rest:
        return NotImplemented
    return np.lexsort((column.codes, column.missing.astype(np.int8)))


def _distinct(column: Any, *rest: Any) -> Any:
    if any(rest):
        return NotImplemented
    there = np.unique(column.present())
    if bool(~column.missing.any()):
        return there
    values: Any = np.concatenate([there, np.zeros(1, column.dtype)])
    return MaskedColumn(values, asarray(np.arange(len(values)) == len(there)))


def _concatenated(columns: Any, axis: int | None = 0, *rest: Any) -> Any:
    if axis not in (None, 0, -1) or rest or not all(getattr(one, "ndim", 1) == 1 for one in columns):
        return NotImplemented
    values, masks = zip(*map(_parts, columns), strict=True)
    masks = tuple(
        np.zeros(len(one), np.bool_) if mask is False else mask
        for one, mask in zip(columns, masks, strict=True)
    )
    return _with_missing(np.concatenate(values), np.concatenate(masks))


def _differences(column: Any, n: int = 1, axis: int = -1, *ends: Any) -> Any:
    if n < 0 or axis not in (0, -1) or ends:
        return NotImplemented
    for _ in range(n):
        later, earlier = column[1:], column[:-1]
        column = later ^ earlier if column.dtype.kind == "b" else later - earlier
    return column


def _clipped(
    column: Any,
    least: Any = None,
    most: Any = None,
    *rest: Any,
    min: Any = None,
    max: Any = None,
    **options: Any,
) -> Any:
    if rest or options:
        return NotImplemented
    least, most = min if least is None else least, max if most is None else most
    found = column if least is None else np.maximum(column, least)
    return found if most is None else np.minimum(found, most)


def _within(values: Any, wanted: Any, assume_unique: bool = False, invert: bool = False, **kind: Any) -> Any:
    is_there = values.isin(wanted) if isinstance(values, MaskedColumn) else np.isin(values, wanted.present())
    return ~is_there if invert else is_there


# Statistics, which skip missing values, with all that NumPy's functions are given.


def _of_filled(function: Callable[..., Any], fill: Callable[[Any], Any]) -> Callable[..., Any]:
    # With values instead of missing ones that do not change the result.
    return lambda column, *rest, **options: function(fill(column), *rest, **options)


def _extreme(function: Callable[..., Any]) -> Callable[..., Any]:
    # NaN where there is no value.
    def found(
        column: Any, axis: Any = None, out: Any = None, keepdims: bool = False, *initial: Any, **options: Any
    ) -> Any:
        if not initial and "initial" not in options and bool(column.missing.all()):
            values = column.to_float()
        else:
            values = (_greatest if function is np.min else _least)(column)
        return function(values, axis, out, keepdims, *initial, **options)

    return found


def _spread(column: Any, axis: int | None = None, out: Any = None, **options: Any) -> Any:
    if bool(column.missing.any()):
        return np.ptp(column.to_float(), axis, out, **options)
    greatest, least = (function(column, axis=axis, **options) for function in (np.max, np.min))
    return np.subtract(greatest, least, out=out)


def _running(function: Callable[..., Any], fill: Callable[[Any], Any]) -> Callable[..., Any]:
    # What there is up to each row, without the missing values, which stay.
    return lambda column, axis=None: MaskedColumn(function(fill(column), axis or 0), column.missing)


def _least(column: Any) -> Any:
    return column._filled(False if column.dtype.kind == "b" else np.iinfo(column.dtype).min)


def _greatest(column: Any) -> Any:
    return column._filled(True if column.dtype.kind == "b" else np.iinfo(column.dtype).max)


def _place_of_extreme(find: Callable[..., Any]) -> Callable[..., Any]:
    # Among the values that are there; as among floats where there are none.
    def found(column: Any, axis: int | None = None, out: Any = None, **options: Any) -> Any:
        there = np.flatnonzero(~column.missing)
        if not len(there):
            return find(column.to_float(), axis, out, **options)
        place = there[find(column.present(), axis, **options)]
        if out is None:
            return place
        out[...] = place
        return out

    return found


_STATISTICS: dict[Callable[..., Any], Callable[..., Any]] = {
    **dict.fromkeys((np.sum, np.nansum), _of_filled(np.sum, lambda column: column._filled(0))),
    **dict.fromkeys((np.prod, np.nanprod), _of_filled(np.prod, lambda column: column._filled(1))),
    **dict.fromkeys((np.min, np.amin, np.nanmin), _extreme(np.min)),
    **dict.fromkeys((np.max, np.amax, np.nanmax), _extreme(np.max)),
    **dict.fromkeys((np.mean, np.nanmean), _of_filled(np.nanmean, MaskedColumn.to_float)),
    **dict.fromkeys((np.std, np.nanstd), _of_filled(np.nanstd, MaskedColumn.to_float)),
    **dict.fromkeys((np.var, np.nanvar), _of_filled(np.nanvar, MaskedColumn.to_float)),
    np.nanmedian: _of_filled(np.nanmedian, MaskedColumn.__matnb_array__),
    np.median: _of_filled(np.median, MaskedColumn.__matnb_array__),
    np.ptp: _spread,
    **dict.fromkeys((np.argmin, np.nanargmin), _place_of_extreme(np.argmin)),
    **dict.fromkeys((np.argmax, np.nanargmax), _place_of_extreme(np.argmax)),
    np.any: _of_filled(np.any, MaskedColumn._truth),
    np.all: _of_filled(np.all, lambda column: column._truth() | column.missing),
    np.count_nonzero: _of_filled(np.count_nonzero, MaskedColumn._truth),
}
_SUMS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.cumsum: _running(np.cumsum, lambda column: column._filled(0)),
    np.cumprod: _running(np.cumprod, lambda column: column._filled(1)),
}
_FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    **_STATISTICS,
    **_SUMS,
    np.where: _chosen,
    np.isin: _within,
    np.sort: _sorted,
    np.argsort: _sorting_order,
    np.unique: _distinct,
    np.concatenate: _concatenated,
    np.diff: _differences,
    np.clip: _clipped,
    np.nonzero: lambda column: np.nonzero(column._truth()),
    np.flatnonzero: lambda column: np.flatnonzero(column._truth()),
}
_WITH_OPTIONS = {*_STATISTICS, np.clip, np.isin}
# Functions that give elements other places.
_MOVES: tuple[Callable[..., Any], ...] = (np.flip, np.roll, np.take, np.repeat, np.tile, np.copy, np.delete)
# What is done here takes arguments by place: NumPy's signatures, which compiled functions need not have.
_BY_PLACE: dict[Callable[..., Any], Callable[..., Any]] = {
    **{one: one for one in (*_FUNCTIONS, *_MOVES) if one is not np.where},
    np.concatenate: lambda arrays, axis=0, *rest, **options: None,
}


# Methods


def _method(name: str, found: Callable[..., Any], all_of: Callable[..., Any], ddof: int | None) -> Any:
    options = {} if ddof is None else {"ddof": ddof}

    def method(self: MaskedColumn, *args: Any, skipna: bool = True, **given: Any) -> Any:
        given.pop("numeric_only", None)  # which they are
        least = given.pop("min_count", 0) if name in ("sum", "prod") else 0
        if least > 0 and int(self.count()) < least:
            return asarray(np.nan)
        if skipna:
            return found(self, *args, **options | given)
        return all_of(plain_array(self.to_float()), *args, **options | given)

    method.__name__, method.__qualname__ = name, f"MaskedColumn.{name}"
    method.__doc__ = (
        f"Return ``{name}`` of the values that are not missing, as pandas has it"
        f"{', with ``ddof=1``' if ddof else ''}; with ``skipna=False``, NumPy's, with NaN for the others."
    )
    return method


for _name in ("sum", "prod", "mean", "std", "var", "min", "max", "any", "all", "argmin", "argmax"):
    _function = getattr(np, _name)
    _ddof = 1 if _name in ("std", "var") else None
    setattr(MaskedColumn, _name, _method(_name, _STATISTICS[_function], _function, _ddof))
for _name, _running_one, _all_of in (
    ("cumsum", _SUMS[np.cumsum], np.cumsum),
    ("cumprod", _SUMS[np.cumprod], np.cumprod),
    ("cummin", _running(np.minimum.accumulate, _greatest), np.minimum.accumulate),
    ("cummax", _running(np.maximum.accumulate, _least), np.maximum.accumulate),
):
    setattr(MaskedColumn, _name, _method(_name, _running_one, _all_of, None))


makers.masked = MaskedColumn
