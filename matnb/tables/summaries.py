"""A value for each column of a table, and statistics of each two of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.mixins import NDArrayOperatorsMixin

from matnb.errors import ColumnError, DTypeError, OptionError, suggestion
from matnb.lazy.array import DistArray
from matnb.lazy.evaluator import evaluator
from matnb.pictures.escaping import escaped
from matnb.tables.columns import Column, as_column
from matnb.tables.masked import MaskedColumn
from matnb.tables.showing import duration_text, value_text
from matnb.tables.times import TimeColumn


class Record(NDArrayOperatorsMixin, Mapping[str, Any]):
    """A value for each column of a table, such as their means, or those of one row.

    ``r["fare"]`` is one of them; comparisons and arithmetic give another record, ``r[r > 0]`` those where a
    record of booleans is True, and ``np.asarray(r)`` all of them. Keys of groups, in a row of their results,
    are left alone by arithmetic and left out by statistics, as in the table.

    Examples
    --------
    >>> import matnb as mn
    >>> t = mn.table({"zone": ["a", None], "fare": [6.0, 9.0]})
    >>> t.mean()
    fare  7.5
    >>> missing = t.isna().sum()
    >>> int(missing["zone"]), int(missing.sum()), missing[missing > 0].to_dict()
    (1, 1, {'zone': 1})
    """

    __hash__ = None  # type: ignore[assignment]  # it compares value by value

    def __init__(self, values: Mapping[str, Any], keys: Sequence[str] = ()) -> None:
        self._values, self._keys = dict(values), keys

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, Record):
            return Record({name: one for name, one in self._values.items() if key[name]})
        if isinstance(key, list):
            return Record({name: self[name] for name in key})
        if key not in self._values:
            raise ColumnError(f"no value of {key!r}; {suggestion(key, self._values)}")
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def _beside_keys(self) -> npt.NDArray[Any]:
        return np.array([one for name, one in self._values.items() if name not in self._keys])

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(list(self._values.values()), dtype)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__" or options or ufunc.nout != 1:
            return NotImplemented
        first = next(one for one in inputs if isinstance(one, Record))
        names = list(first)
        if any(isinstance(one, Record) and set(one) != set(names) for one in inputs):
            raise ColumnError("the records have values of other columns")
        made = {
            name: ufunc(*(one._values[name] if isinstance(one, Record) else one for one in inputs))
            for name in names
            if name not in first._keys
        }
        return Record({**first._values, **made}, first._keys)

    def __bool__(self) -> bool:
        raise OptionError("the truth value of a record is ambiguous: use .any() or .all()")

    def sum(self) -> Any:
        """Return the sum of the values."""
        return self._beside_keys().sum()

    def min(self) -> Any:
        """Return the least value."""
        return self._beside_keys().min()

    def max(self) -> Any:
        """Return the greatest value."""
        return self._beside_keys().max()

    def mean(self) -> Any:
        """Return the mean of the values."""
        return self._beside_keys().mean()

    def any(self) -> bool:
        """Return whether any value is true."""
        return bool(self._beside_keys().any())

    def all(self) -> bool:
        """Return whether all values are true."""
        return bool(self._beside_keys().all())

    def round(self, decimals: int = 0) -> Record:
        """Return the values rounded."""
        made = {name: np.round(one, decimals) for name, one in self._values.items() if name not in self._keys}
        return Record({**self._values, **made}, self._keys)

    def sort_values(self, ascending: bool = True) -> Record:
        """Return the record ordered by its values, NaN last."""
        order = np.argsort(np.asarray(self) if ascending else -np.asarray(self), kind="stable")
        names = list(self._values)
        return Record({names[place]: self._values[names[place]] for place in order})

    def idxmax(self) -> str:
        """Return the name of the greatest value."""
        return list(self._values)[int(np.nanargmax(np.asarray(self)))]

    def idxmin(self) -> str:
        """Return the name of the least value."""
        return list(self._values)[int(np.nanargmin(np.asarray(self)))]

    @property
    def index(self) -> tuple[str, ...]:
        """The names."""
        return tuple(self._values)

    def to_dict(self) -> dict[str, Any]:
        """Return the values by name, as Python's."""
        return {name: one.item() if hasattr(one, "item") else one for name, one in self._values.items()}

    def tolist(self) -> list[Any]:
        """Return the values as a list of Python's."""
        return list(self.to_dict().values())

    def _texts(self) -> list[tuple[str, str]]:
        return [(name, _text(one)) for name, one in self._values.items()]

    def __repr__(self) -> str:
        width = max((len(name) for name in self._values), default=0)
        return "\n".join(f"{name:<{width}}  {text}" for name, text in self._texts()) or "no columns"

    def _repr_html_(self) -> str:
        rows = (f"<tr><th>{escaped(name)}</th><td>{escaped(text)}</td></tr>" for name, text in self._texts())
        return f"<table>{''.join(rows)}</table>"


def _text(one: Any) -> str:
    if isinstance(one, np.timedelta64):
        return duration_text(int(one.astype(np.int64)), np.datetime_data(one.dtype)[0])
    return value_text(one.item() if hasattr(one, "item") else one)


def is_number(one: DistArray | Column) -> bool:
    """Tell whether a column has numbers or booleans."""
    return isinstance(one, DistArray | MaskedColumn)


def reduced(columns: Iterable[tuple[str, DistArray | Column]], name: str, **options: Any) -> Record:
    """Return a statistic of each column that has it, as pandas' frames do of all that are not text.

    Numbers and booleans have all, durations and times those that are meaningful, text the least and the
    greatest.

    Raises
    ------
    DTypeError
        Where no column has it.
    """
    kinds = {"min": Column, "max": Column, "sum": MaskedColumn}
    found: dict[str, Any] = {}
    for column_name, one in columns:
        column = as_column(one)
        if is_number(one) or (name == "sum" and getattr(column, "word", "") == "timedelta"):
            found[column_name] = of_numbers(one, name, **options) if is_number(one) else column.sum()
        elif isinstance(column, kinds.get(name, TimeColumn)):
            found[column_name] = getattr(column, name)(**options)
    if not found:
        raise DTypeError(f"{name} of a table without a numeric column: t.describe() is of every column")
    lazy = [one.expression for one in found.values() if isinstance(one, DistArray)]
    if lazy:
        evaluator().persist(lazy)
    return Record(
        {key: np.asarray(one)[()] if isinstance(one, DistArray) else one for key, one in found.items()}
    )


def of_numbers(one: Any, name: str, axis: int | None = None, **options: Any) -> Any:
    """Return a statistic of numbers, as pandas has it: missing values are skipped, ``ddof`` is 1."""
    if one.dtype.kind == "b" and name in ("mean", "median", "std", "var", "quantile"):
        one = one.astype(np.float64) if isinstance(one, DistArray) else one.to_float()
    if name in ("std", "var"):
        options.setdefault("ddof", 1)
    function = getattr(np, name if name in ("any", "all") else f"nan{name}")
    if len(one) == 0 and name in ("min", "max"):
        return np.nan
    return function(one, axis=axis, **options)


# Statistics of each two columns, of the rows that have both: with M where a value is and X of zeros
# elsewhere, M' M counts them, X' M sums them, and X' X and (X * X)' M sum products and squares.


def covariances(X: Any, min_periods: int, correlate: bool, ddof: int = 1) -> npt.NDArray[Any]:
    """Return covariances of the columns of a matrix, or correlations, of the rows with numbers in both."""
    means = np.asarray(X.mean(axis=0)) if len(X) else np.full(X.shape[1], np.nan)
    if np.isfinite(means).all():  # so all values are there, and one product has everything
        centered = X - means
        products = np.asarray(centered.T @ centered).copy()
        constant = np.diag(products) <= len(X) * (16 * np.finfo(float).eps * means) ** 2
        products[constant, :] = products[:, constant] = 0  # whose mean was rounded
        counts, sums = np.full(products.shape, float(len(X))), np.zeros(products.shape)
        squares = np.broadcast_to(np.diag(products)[:, np.newaxis], products.shape)
    else:
        is_there: Any = np.isfinite(X) if correlate else X == X  # pandas' way with infinity
        X = np.where(is_there, X, np.nan) if correlate else X
        X = X - np.nanmean(X, axis=0)  # for the digits: sums of squares would lose them
        X, M = np.where(is_there, X, 0.0), is_there.astype(np.float64)
        wanted = [M.T @ M, X.T @ M, X.T @ X, (X * X).T @ M]
        evaluator().persist([one.expression for one in wanted])
        counts, sums, products, squares = (np.asarray(one) for one in wanted)
    with np.errstate(invalid="ignore", divide="ignore"):
        products = products - sums * sums.T / counts
        if correlate:
            spread = squares - sums**2 / counts
            spread[spread <= 1e-14 * squares] = 0  # of values that are one in the rows of a pair
            found = np.clip(products / np.sqrt(spread * spread.T), -1, 1)
            found[(spread == 0) | (spread.T == 0)] = np.nan
        else:
            found = products / (counts - ddof)
    found[(counts < max(min_periods, 2 if correlate else 1 + ddof)) | (found != found)] = np.nan
    return found  # type: ignore[no-any-return]  # operators of arrays give Any
