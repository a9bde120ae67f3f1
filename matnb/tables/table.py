"""Tables of named, typed columns: looked at, chosen from, grouped, made matrices, handed over."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, NoReturn, overload

import numpy as np
import numpy.typing as npt

from matnb.errors import (
    ColumnError,
    DTypeError,
    MissingAttributeError,
    OptionError,
    TooLargeError,
    UnsupportedError,
    no_attribute,
    suggestion,
)
from matnb.lazy import lost_writes
from matnb.lazy.array import DistArray
from matnb.lazy.creation import asarray
from matnb.lazy.evaluator import evaluator
from matnb.lazy.foreign_names import asks, refuse_dask
from matnb.lazy.limits import RAISE
from matnb.pictures.quantities import bytes_text
from matnb.tables import numbers as _numbers  # noqa: F401  gives arrays the methods of columns
from matnb.tables.aggregates import METHODS
from matnb.tables.choosing import constant, is_one_value
from matnb.tables.column_arrays import ColumnArray
from matnb.tables.columns import Column, TextColumn, as_column, is_missing
from matnb.tables.drawing import draw_table
from matnb.tables.frame import FrameMethods, by_columns, of_each
from matnb.tables.free_names import free_name
from matnb.tables.group_keys import groupby
from matnb.tables.groups import keyed
from matnb.tables.incoming import column_from, columns_from, columns_of_mapping
from matnb.tables.joining import merge
from matnb.tables.makers import makers
from matnb.tables.masked import MaskedColumn
from matnb.tables.outgoing import library, pandas_types, with_strings
from matnb.tables.pandas_names import OF_TABLES, ONE_HOT, no_table_name
from matnb.tables.pivots import Pivot, pivoted, with_nan
from matnb.tables.row_orders import check_length, check_order, note_given, reordered
from matnb.tables.showing import looked, table_html, table_text, takes_long, value_text
from matnb.tables.sorting import nlargest, nsmallest, sort_values
from matnb.tables.times import TimeColumn, ZonedDtype

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow

_SHOWN = 5  # rows of the beginning, and of the end
_MOST_WHOLE = 60  # rows of a table that is shown as a whole, as pandas shows it
_STATISTICS = ("count", "mean", "std", "min", "25%", "50%", "75%", "max")
_COMBINED = ("sum", "min", "max", "first", "last", "error")
_OF_COUNTS = ("unique", "top", "freq")  # rows of describe() for text and booleans, after the others
_NO_NAMES = "pandas asks a table for an array, which has no names: t.to_pandas() is a DataFrame with them"


class ColumnNames(tuple[str, ...]):
    """Names of columns: a tuple, which gives a list as pandas' labels do."""

    __slots__ = ()

    def tolist(self) -> list[str]:
        """Return the names as a list."""
        return list(self)

    to_list = tolist


class ValuesOfColumns:
    """What ``t.values`` is: called, it returns the columns; used as pandas' array, it says what to write."""

    _WAYS = "t.to_numpy() is the array that pandas has there, t.to_matrix() one of the workers"

    def __init__(self, columns: Iterable[DistArray | Column]) -> None:
        self._columns = tuple(columns)

    def __call__(self) -> tuple[DistArray | Column, ...]:
        """Return the columns."""
        return self._columns

    def __repr__(self) -> str:
        return f"t.values() returns the columns; {self._WAYS}"

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        raise no_attribute("t.values", name, instead=lambda: self._WAYS)

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise UnsupportedError(f"t.values is no array: {self!r}")

    __array__ = __matnb_array__ = __getitem__ = __iter__ = __len__ = _refuse


class Table(FrameMethods):
    """A table of named, typed columns, as returned by ``mn.load`` and ``mn.table``.

    ``t["fare"]`` is a column: a DistArray of numbers or booleans, or a column of text, of times, or of
    integers with missing values. ``t[["fare", "zone"]]`` selects columns, and ``t[mask]`` the rows where a
    mask is true. Missing floats are NaN, missing times NaT.

    Examples
    --------
    >>> import matnb as mn
    >>> t = mn.table({"zone": ["a", "b", "a"], "fare": [6.0, 9.0, 7.0]})
    >>> t.shape, t.columns
    ((3, 2), ('zone', 'fare'))
    >>> float(t["fare"].mean())
    7.333333333333333
    >>> print(t[t["zone"] == "a"].head())
    2 rows x 2 columns
    zone     fare
    text  float64
    a         6.0
    a         7.0
    """

    _keys: tuple[str, ...] = ()  # of groups, whose results these are: what pandas has in the index
    _key_columns: Table | None = None  # of the same rows, also where further columns took their place

    def __init__(
        self, columns: Mapping[str, DistArray | Column], complete: frozenset[str] = frozenset()
    ) -> None:
        self._columns = {name: _named(name, one, name in complete) for name, one in columns.items()}
        self._complete = complete.intersection(columns)  # floats among which is no NaN: none is looked for
        self._seen: tuple[list[list[str]], list[list[str]]] | None = None
        self._note = ""  # what is said of these rows
        lengths = [len(one) for one in self._columns.values()]
        for name, length in zip(self._columns, lengths, strict=True):
            check_length(name, length, lengths[0])

    # What there is

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return ColumnNames(self._columns)

    @columns.setter
    def columns(self, names: object) -> NoReturn:
        raise UnsupportedError('a table is not changed: write t = t.rename(columns={"old": "new"})')

    @property
    def dtypes(self) -> dict[str, np.dtype | ZonedDtype]:
        """The dtype of each column, by name; text has NumPy's StringDType, times with a zone a ZonedDtype."""
        return {name: one.dtype for name, one in self._columns.items()}

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""
        return len(self), len(self._columns)

    def __len__(self) -> int:
        return next((len(one) for one in self._columns.values()), 0)

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def keys(self) -> tuple[str, ...]:
        """Return the names of the columns."""
        return self.columns

    @property
    def values(self) -> ValuesOfColumns:
        """The columns, when called, as of a dict; the array that pandas has here is ``t.to_numpy()``."""
        return ValuesOfColumns(map(self._taken, self._columns))

    def items(self) -> tuple[tuple[str, DistArray | Column], ...]:
        """Return pairs of names and columns."""
        return tuple((name, self._taken(name)) for name in self._columns)

    def _taken(self, name: str) -> Any:
        # A column that may be changed, and leaves the table as it is.
        return _named(name, self._columns[name], name in self._complete)

    def _ipython_key_completions_(self) -> list[str]:
        return list(self._columns)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            refuse_dask(name, "a table", "call its to_pandas()")
            raise AttributeError(name)
        if name in self._columns:
            text = f"a table has no attribute {name!r}; t[{name!r}] is the column"
            raise MissingAttributeError(name, lambda: text)
        if name == "index" and asks("sklearn"):  # as permutation_importance does
            raise AttributeError(
                "scikit-learn changes a table here, and tables are not changed: give it t.to_pandas()"
            )
        known = [one for one in dir(Table) if not one.startswith("_")]
        raise no_table_name("a table", name, OF_TABLES, lambda: known)

    def __delitem__(self, name: object) -> NoReturn:
        raise UnsupportedError(f"a table is not changed: write t = t.drop(columns={name!r})")

    def __setattr__(self, name: str, value: object) -> None:
        if name.startswith("_") or hasattr(type(self), name):
            object.__setattr__(self, name, value)
            return
        raise UnsupportedError(f"a table is not changed: write t = t.with_columns({name}=values)")

    def __setitem__(self, key: object, value: object) -> NoReturn:
        is_word = isinstance(key, str) and key.isidentifier()
        given = (
            f"{key}=values"
            if is_word
            else f"**{{{key!r}: values}}"
            if isinstance(key, str)
            else "name=values"
        )
        raise UnsupportedError(f"a table is not changed: write t = t.with_columns({given})")

    # Columns and rows

    @overload
    def __getitem__(self, key: str) -> Any: ...
    @overload
    def __getitem__(self, key: list[str] | DistArray | slice | np.ndarray) -> Table: ...
    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            if key not in self._columns:
                raise ColumnError(f"no column {key!r}; {suggestion(key, self._columns)}")
            return self._taken(key)
        if isinstance(key, list) and all(isinstance(one, str) for one in key):
            chosen = Table({name: self[name] for name in key}, self._complete & set(key))
            return chosen._keyed(self._keys)
        if isinstance(key, slice):
            return self._rows(key)
        mask = asarray(key.__matnb_mask__() if isinstance(key, MaskedColumn) else key)
        if mask.dtype.kind != "b" or mask.shape != (len(self),):
            raise DTypeError(
                f"t[...] of {mask.dtype} and shape {mask.shape}: give a name, a list of names, a slice, or a "
                f"mask of {len(self):,} booleans{'; t.take(numbers) has rows' * (mask.dtype.kind in 'iu')}"
            )
        if isinstance(key, DistArray | Column):
            check_order(self, mask, "the mask")
        return self._rows(mask)

    def _rows(self, key: Any) -> Table:
        made = Table({name: one[key] for name, one in self._columns.items()}, self._complete)
        made._keyed(self._keys)
        is_other = len(made) < len(self) or (isinstance(key, DistArray) and key.dtype.kind in "iu")
        return reordered(made, self) if is_other or made._keys else made

    def _replaced(self, columns: Mapping[str, DistArray | Column]) -> Table:
        # With further columns, or others of names that there are.
        made = Table({**self._columns, **columns}, self._complete.difference(columns))
        return made._keyed(self._keys)

    @staticmethod
    def _of(columns: Mapping[str, DistArray | Column]) -> Table:
        return Table(columns)

    def head(self, n: int = _SHOWN) -> Table:
        """Return the first ``n`` rows."""
        return self._rows(slice(0, _count(n)))._look()

    def tail(self, n: int = _SHOWN) -> Table:
        """Return the last ``n`` rows."""
        return self._rows(slice(max(0, len(self) - _count(n)), None))._look()

    def with_columns(self, **columns: object) -> Table:
        """Return the table with columns added or replaced; one value is in every row.

        A function is called with the table so far, as by :meth:`assign`.

        Examples
        --------
        >>> import matnb as mn
        >>> t = mn.table({"fare": [6.0, 9.0], "tip": [1.5, 0.0]})
        >>> t.with_columns(share=t["tip"] / t["fare"]).columns
        ('fare', 'tip', 'share')
        """
        if any(map(callable, columns.values())):
            return self.assign(**columns)
        made = {name: _column(name, one, len(self), bool(self._columns)) for name, one in columns.items()}
        for name, one in made.items():
            if isinstance(columns[name], DistArray | Column):
                check_order(self, one, f"column {name!r}")
            else:
                note_given(self, one)
        return self._replaced(made)

    def missing(self, names: Sequence[str] | None = None) -> DistArray:
        """Return a boolean mask of rows with a missing value in the given columns, by default in any."""
        masks = [self._missing(name) for name in self._named(names)]
        found: Any = None
        for mask in masks:
            if mask is not None:
                found = mask if found is None else found | mask
        return asarray(np.zeros(len(self), np.bool_)) if found is None else found

    def dropna(
        self, subset: Sequence[str] | None = None, how: str = "any", thresh: int | None = None
    ) -> Table:
        """Return the rows without missing values, in all columns or in those of ``subset``.

        Parameters
        ----------
        subset
            A name, or names of columns.
        how
            "any" leaves out rows with a missing value, "all" those without any other.
        thresh
            How many values a row has that is kept, instead of ``how``.
        """
        if how not in ("any", "all"):
            raise OptionError(f"dropna(how={how!r}): {suggestion(how, ('any', 'all'), 'choose one of')}")
        if thresh is not None or how == "all":
            there: Any = sum(as_column(self[name]).notna().astype(np.int64) for name in self._named(subset))
            return self._rows(there >= (1 if thresh is None else thresh))
        if all(self._missing(name) is None for name in self._named(subset)):
            return self
        kept = self._rows(~self.missing(subset))
        for name in self._named(subset):
            one = kept._columns[name]
            if isinstance(one, MaskedColumn):
                kept._columns[name] = one.codes
            elif isinstance(one, Column):
                kept._columns[name] = one._like(one.codes, may_miss=False)
        kept._complete |= frozenset(self._named(subset))
        return kept

    def _missing(self, name: str) -> DistArray | None:
        return None if name in self._complete else is_missing(self[name])

    def _named(self, names: Sequence[str] | str | None) -> tuple[str, ...]:
        if names is None:
            return self._without_keys().columns
        found = (names,) if isinstance(names, str) else tuple(names)
        for name in found:
            self[name]
        return found

    merge, sort_values, nlargest, nsmallest = merge, sort_values, nlargest, nsmallest
    groupby = groupby

    # Groups and statistics

    def value_counts(self, name: str | Sequence[str] | None = None) -> Table:
        """Return the counts of a column's values, or of rows' of several or all, the most frequent first.

        Ties are ordered by value; rows with a missing value are left out.
        """
        sizes = self.groupby(list(self._named(name))).size("count")
        order = np.argsort(-sizes[sizes.columns[-1]], kind="stable")
        return sizes._rows(order)._look()

    def describe(self, include: Any = None, exclude: Any = None) -> Table:
        """Return statistics of every column, as pandas does with ``include="all"``, or of some kinds.

        Numbers: count, mean, sample standard deviation (ddof=1), minimum, quartiles and maximum, float64.
        Dates, times and durations: the same as text; dates and times have no standard deviation. Text and
        booleans, as text: count, unique values, the most frequent value (ties: the least) and its frequency,
        in rows that come last and only if there is such a column. Missing values are skipped.

        Examples
        --------
        >>> import matnb as mn
        >>> t = mn.table({"zone": ["b", "a", "b"], "fare": [6.0, 9.0, 7.5]}).describe()
        >>> t["fare"].compute().tolist()[:4], t["zone"].compute().tolist()[-3:]
        ([3.0, 7.5, 1.5, 6.0], ['2', 'b', '2'])
        """
        values = self._without_keys()
        is_all = include in (None, "all") and exclude is None
        return _described(values if is_all else values.select_dtypes(include, exclude))

    def _present(self, name: str) -> DistArray:
        # The values of a column of numbers or times that are there, times as counts of their unit.
        mask, one = self._missing(name), self[name]
        values = one.codes if isinstance(one, Column) else one
        return values if mask is None else values[~mask]

    # Matrices

    def to_matrix(self, columns: Sequence[str] | None = None) -> DistArray:
        """Return numeric columns, by default all columns, as one dense matrix.

        Missing values are NaN. The dtype is the columns' common dtype.

        Raises
        ------
        DTypeError
            For a column of text or times; the message lists the numeric columns.
        """
        names = self.columns if columns is None else self._named(columns)
        bad = [name for name in names if not _is_numeric(self[name], booleans=True)]
        if bad:
            good = [name for name in self.columns if _is_numeric(self[name], booleans=True)]
            raise DTypeError(
                f"column {bad[0]!r} is {_word(self[bad[0]])}, not numeric; to_matrix({good!r}) takes the "
                f"numeric columns, and {ONE_HOT.replace('zone', bad[0])} is sparse, a column for each value"
            )
        if not names:
            raise OptionError("to_matrix: give at least one column")
        made: Any = np.stack([asarray(self[name]) for name in names], axis=1)
        return made  # type: ignore[no-any-return]  # operators of arrays give Any

    def __matnb_array__(self) -> DistArray:
        return self.to_matrix()

    def pivot(
        self,
        rows: str,
        columns: str,
        values: str | None = None,
        combine: str = "sum",
        *,
        row_labels: Sequence[object] | None = None,
        column_labels: Sequence[object] | None = None,
    ) -> Pivot:
        """Return a sparse matrix with a row per value of one column and a column per value of another.

        Parameters
        ----------
        rows, columns
            Names of the columns whose distinct values, ascending, label the rows and columns of the matrix.
            Table rows where either is missing are left out.
        values
            The numeric column to store; None counts rows. Missing values are skipped: where rows have no
            others, sums are 0 and what else is combined is NaN, stored, as in pandas. Rows and columns
            without any value are left out. Elements without rows are not stored: they are 0, also in
            ``P.mean(axis=0)`` of means, and NaN in ``to_pandas()`` but for sums and counts:
            ``P.to_pandas().mean()`` leaves them out.
        combine
            How several values for one element are combined: "sum", in the dtype of ``np.sum``, "min", "max",
            "first", "last", or "error" to raise; also "mean", "median", "std" and other methods of groups.
        row_labels, column_labels
            The values that have rows and columns, in this order: those of another pivot make matrices of one
            shape, such as of ratings to learn from and to test with. Table rows of other values are left out;
            a label that is in no row has zeros. By default all values.

        Returns
        -------
        Pivot
            A sparse DistArray with ``row_labels`` and ``column_labels``, NumPy arrays.

        Raises
        ------
        OptionError
            For another ``combine``, and for labels that are missing values or repeat.
        DTypeError
            For ``values`` that are not numbers, and whole numbers beside NaN that float64 does not hold.

        Examples
        --------
        >>> import numpy as np, matnb as mn
        >>> t = mn.table({"user": ["a", "b", "a"], "film": [7, 7, 9], "stars": [5.0, 3.0, 4.0]})
        >>> P = t.pivot("user", "film", "stars")
        >>> np.asarray(P)
        array([[5., 4.],
               [3., 0.]])
        >>> P.row_labels.tolist(), P.column_labels.tolist()
        (['a', 'b'], [7, 9])
        >>> np.asarray(t.head(1).pivot("user", "film", row_labels=P.row_labels, column_labels=[9, 7]))
        array([[0, 1],
               [0, 0]])
        """
        _check_combined(combine, values)
        fill = 0 if values is None or combine in ("sum", "count", "nunique") else np.nan
        used = [rows, columns] if values is None else [rows, columns, values]
        table = Table({name: self[name] for name in used}, self._complete)
        may_miss = combine not in _COMBINED or (values is not None and table._missing(values) is not None)
        if values is not None and combine not in ("sum", "error") and may_miss:
            axes = {rows: row_labels, columns: column_labels}
            found = table.groupby([rows, columns])[values].agg(combine)
            table = with_nan(found, [name for name, given in axes.items() if given is None], values)
            combine = "error"
        else:
            table = table.dropna()
        if values is not None and not _is_numeric(table[values], booleans=True):
            raise DTypeError(f"pivot: column {values!r} is {_word(table[values])}, not numeric")
        stored: Any = np.ones((), np.int64) if values is None else asarray(table[values])
        keys = keyed(table, [rows]), keyed(table, [columns])
        return pivoted(keys, stored, combine, row_labels, column_labels, fill)

    # To other libraries

    def _check_limit(self) -> None:
        total = sum(_num_bytes(one) for one in self._columns.values())
        handle = next((_handle_of(one) for one in self._columns.values()), None)
        if handle is not None and total > (limit := evaluator().limit(handle.expression)):
            raise TooLargeError(
                f"a table of {len(self):,} rows takes {bytes_text(total)}, over the limit of "
                f"{bytes_text(limit)} for bringing values into this process: take some rows or columns, "
                f"write it with mn.save, {RAISE}"
            )

    def _computed(self) -> None:
        # All columns in one run.
        handles = self._handles()
        if handles and len(self):
            evaluator().persist([one.expression for one in handles])

    def to_arrow(self) -> pyarrow.Table:
        """Compute the table and return an Arrow table; missing values are null.

        Text is dictionary-encoded, as it is in the table: a column's ``cast(pyarrow.string())`` decodes it.

        Raises
        ------
        TooLargeError
            If it exceeds the session's ``compute_limit``.
        """
        import pyarrow

        self._check_limit()
        self._computed()
        return pyarrow.table({name: _arrow_of(one) for name, one in self._columns.items()})

    def to_pandas(self, strings_to_categorical: bool = False) -> pd.DataFrame:
        """Compute the table and return a pandas DataFrame.

        Text has pandas' type for strings, and dates have that of times. Whole numbers and booleans of which
        some are missing have pandas' dtypes for these, such as ``Int64`` and ``boolean``. Keys of groups are
        columns, as tables have no index:
        ``t.groupby("zone")["fare"].sum().to_pandas().set_index("zone").plot(kind="bar")`` draws sums by key.

        Parameters
        ----------
        strings_to_categorical
            Whether text is categorical, which takes less memory where texts are repeated.

        Raises
        ------
        TooLargeError
            If it exceeds the session's ``compute_limit``.
        UnsupportedError
            If pandas is not installed.
        """
        import pyarrow

        pandas, arrow = library("pandas"), self.to_arrow()
        arrow = arrow if strings_to_categorical else with_strings(arrow)
        made = {}
        for name, one in self._columns.items():
            column = arrow.column(name)
            dtype = None if pyarrow.types.is_dictionary(column.type) else pandas_types(pandas, one)
            # pandas has no dtype of days, and Python's dates know neither .dt nor resample
            made[name] = column.to_pandas(date_as_object=False, types_mapper=lambda _, dtype=dtype: dtype)
        return pandas.DataFrame(made)

    def to_polars(self) -> pl.DataFrame:
        """Compute the table and return a polars DataFrame; text is of polars' String.

        Raises
        ------
        TooLargeError
            If it exceeds the session's ``compute_limit``.
        UnsupportedError
            If polars is not installed.
        """
        return library("polars").from_arrow(with_strings(self.to_arrow()))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Compute the table and return it as Arrow's stream: what polars, DuckDB and pandas take."""
        return with_strings(self.to_arrow()).__arrow_c_stream__(requested_schema)

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> object:
        """Compute the table and return it in the interchange protocol of frames, which seaborn takes."""
        return with_strings(self.to_arrow()).__dataframe__(nan_as_null, allow_copy)

    def __narwhals_dataframe__(self) -> object:
        # Altair and Plotly ask narwhals, which has no public name for what it keeps of a frame.
        made = with_strings(self.to_arrow())
        return library("narwhals").from_native(made, eager_only=True)._compliant_frame

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if asks("pandas.core.frame"):
            raise UnsupportedError(_NO_NAMES)
        self._check_limit()
        self._computed()
        values = _array_of([*self._columns.values()], self.shape)
        return values if dtype is None else values.astype(dtype)

    def to_numpy(self, dtype: npt.DTypeLike | None = None) -> npt.NDArray[Any]:
        """Compute the table and return a NumPy array, a column each: numbers, or objects with other columns.

        Raises
        ------
        TooLargeError
            If it exceeds the session's ``compute_limit``.
        """
        return self.__array__(dtype)

    def __matnb_plot__(self, axes: Any) -> Any:
        return draw_table(self, axes, self._keys)

    # What it looks like

    def _look(self) -> Table:
        # Fetches the rows that are shown, the first and last in one run: showing them computes nothing then.
        if self._columns:
            length = len(self)
            if length <= _MOST_WHOLE:
                parts = [self]
            else:
                ends = slice(0, _SHOWN), slice(length - _SHOWN, length)
                parts = [Table({name: one[end] for name, one in self._columns.items()}) for end in ends]
            handles = [handle for part in parts for handle in part._handles() if len(part)]
            if handles:
                evaluator().persist([one.expression for one in handles])
            texts = [part._texts() for part in parts]
            first, last = self._seen = texts[0], texts[1] if len(texts) > 1 else []
            if len(first) > 2 * _SHOWN + 1:  # a column shows its values in one line
                first, last = first[:_SHOWN], first[-_SHOWN:]
            for place, one in enumerate(self._columns.values()):
                if isinstance(one, Column):
                    one.seen = [row[place] for row in first], [row[place] for row in last]
        return self

    def _looked(self) -> str:
        # Fetches rows to be shown, if they are not there; tells what that took, or why there are none.
        if self._columns and self._seen is None:
            self._note = looked(self._handles(), self._look)
        return self._note

    def _handles(self) -> list[DistArray]:
        return [handle for one in self._columns.values() for handle in _handles_of(one)]

    def _texts(self) -> list[list[str]]:
        columns = [_written(one) for one in self._columns.values()]
        return [list(row) for row in zip(*columns, strict=True)]

    def _told(self) -> list[tuple[str, str]]:
        return [(name, _word(one)) for name, one in self._columns.items()]

    def _takes_long(self) -> bool:
        # Whether rows that are shown are not there yet, and a user waits for them.
        return self._seen is None and takes_long(self._handles())

    def _without_rows(self) -> dict[str, str]:
        given = self.shape, self._told(), None, "its first and last rows are computed"
        return {"text/plain": table_text(*given), "text/html": table_html(*given)}

    def __repr__(self) -> str:
        note = self._looked()
        return table_text(self.shape, self._told(), self._seen, note)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        note = self._looked()
        given = self.shape, self._told(), self._seen, note
        return {"text/plain": table_text(*given), "text/html": table_html(*given)}


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    setattr(Table, f"__{_name}__", by_columns(getattr(operator, _name), False))
    setattr(Table, f"__r{_name}__", by_columns(getattr(operator, _name), True))
for _name in ("eq", "ne", "lt", "le", "gt", "ge", "and_", "or_", "xor"):
    setattr(Table, f"__{_name.rstrip('_')}__", by_columns(getattr(operator, _name), False))
for _name in ("neg", "abs", "invert"):
    setattr(Table, f"__{_name}__", of_each(getattr(operator, _name)))


def _described(made: Table) -> Table:
    # Numbers and times are statistics that one run computes; of text and booleans values are counted.
    if not made.columns:
        raise DTypeError("describe: a table without columns")
    numbers = {name: _statistics(made, name) for name, one in made.items() if not _is_counted(one)}
    handles = [one for row in numbers.values() for one in row if isinstance(one, DistArray)]
    if handles:
        evaluator().persist([one.expression for one in handles])
    counted = len(numbers) < len(made.columns)
    statistics = [*_STATISTICS, *(_OF_COUNTS if counted else ())]
    label = free_name("statistic", made.columns)
    found: dict[str, object] = {label: statistics}
    for name, one in made.items():
        if name not in numbers:
            found[name] = _counted(made, name)
            continue
        values = np.concatenate([np.atleast_1d(np.asarray(part, np.float64)) for part in numbers[name]])
        if isinstance(one, TimeColumn):
            texts = _times_as_text(made, name, values)
            found[name] = [*texts, *[None] * (len(_OF_COUNTS) if counted else 0)]
        else:
            found[name] = np.append(values, [np.nan] * (len(_OF_COUNTS) if counted else 0))
    return table(found)._keyed([label])


def _is_counted(one: DistArray | Column) -> bool:
    return isinstance(one, TextColumn) or one.dtype.kind == "b"


def _statistics(made: Table, name: str) -> list[Any]:
    # What _STATISTICS says of a column of numbers, or of times after the first of them.
    values: Any = made._present(name)
    count = values.shape[0]
    if not count:
        return [0, *[np.nan] * 7]
    if isinstance(made[name], TimeColumn):
        values = values - values.min()  # doubles hold the differences exactly where they do not hold times
    spread = np.std(values.astype(np.float64), ddof=1) if count > 1 else np.nan
    quartiles = np.percentile(values.astype(np.float64), [25, 50, 75])  # of int8, differences would wrap
    return [count, values.mean(), spread, values.min(), quartiles, values.max()]


def _times_as_text(made: Table, name: str, values: npt.NDArray[np.float64]) -> list[str | None]:
    # Statistics of times, given those of their differences from the first; those of dates are in seconds.
    column = made[name]
    count = int(values[0])
    if not count:
        return ["0", *[None] * 7]
    first = int(made._present(name).min())
    unit, times = ("s", 86_400) if column.unit == "D" else (column.unit, 1)
    texts: list[str | None] = [str(count)]
    for statistic, value in zip(_STATISTICS[1:], values[1:], strict=True):
        if np.isnan(value) or (statistic == "std" and column.word == "datetime"):
            texts.append(None)
            continue
        start = 0 if statistic == "std" else first
        units = start * times + round(float(value) * times)
        texts += TimeColumn(column.codes, column.word, unit, zone=column.zone).texts_of(np.array([units]))
    return texts


def _counted(made: Table, name: str) -> list[str | None]:
    # The count, and of the values how many differ, the most frequent one, and how often it comes.
    one = made[name]
    sizes = Table({name: one}).value_counts(name)
    counts = sizes[sizes.columns[-1]]
    count = int(counts.sum()) if len(sizes) else 0
    texts: list[str | None] = [str(count), *[None] * 7, str(len(sizes))]
    if not len(sizes):
        return [*texts, None, None]
    first = sizes._rows(slice(0, 1))
    return [*texts, str(np.asarray(first[name])[0]), str(int(np.asarray(counts[:1])[0]))]


def table(data: object) -> Table:
    """Return a table from a pandas or polars DataFrame, an Arrow table, a DuckDB relation, or a dict.

    Parameters
    ----------
    data
        Any object with Arrow's ``__arrow_c_stream__``; or a mapping of names to columns: DistArrays, columns
        of other tables, anything that Arrow or NumPy can convert to a 1-D array, or one value for all rows.
        Labels of the index of a pandas frame become columns.

    Raises
    ------
    DTypeError
        For columns of lists or other unsupported types, of values of several types, and of times of which
        only some have a zone; the message names the column.
    RangeError
        For whole numbers beyond 64 bits.
    ShapeError
        For columns of unequal lengths.

    Warns
    -----
    FileContentWarning
        For data that are lost: an unnamed index of whole numbers that is not a range, digits of decimal
        numbers that become floats, the zones of times that have several, which become UTC, and the order of
        categories, such as S < M < L, where it is not that of their texts or numbers.

    Examples
    --------
    >>> import matnb as mn
    >>> mn.table({"zone": ["a", None, "b"], "fare": [6.0, 9.0, 7.0]}).dropna().shape
    (2, 2)
    """
    if isinstance(data, Table):
        return data
    if isinstance(data, Mapping):
        lengths = [len(one) for one in data.values() if hasattr(one, "__len__") and not is_one_value(one)]
        if lengths:
            data = {
                name: _column(str(name), one, lengths[0]) if is_one_value(one) else one
                for name, one in data.items()
            }
        return Table(*columns_of_mapping(data))._look()
    if not hasattr(data, "__arrow_c_stream__"):
        if not hasattr(data, "fetch_arrow_table"):
            raise DTypeError(
                f"table of a {type(data).__name__}: give a dict of columns{_fields_as_columns(data)}, or an "
                "object with __arrow_c_stream__, such as a pandas or polars DataFrame"
            )
        data = data.fetch_arrow_table()  # a DuckDB relation of old
    return Table(*columns_from(data))._look()


def _fields_as_columns(data: object) -> str:
    # Of a result of several values: those with a value for each vertex or the like, and their labels.
    fields: tuple[str, ...] = getattr(data, "_fields", ())
    vectors = [one for one in fields if getattr(getattr(data, one), "ndim", 0) == 1]
    if not vectors:
        return ""
    label = f'"label": result.{vectors[0]}.labels, ' * (getattr(data, vectors[0]).labels is not None)
    return f', as mn.table({{{label}"{vectors[0]}": result.{vectors[0]}}})'


def _column(name: str, one: object, length: int, has_rows: bool = True) -> DistArray | Column:
    return constant(name, one, length) if has_rows and is_one_value(one) else column_from(name, one)


def _named(name: str, one: DistArray | Column, complete: bool) -> DistArray | Column:
    if isinstance(one, DistArray):
        # Of its own, also where rows of a table are picked: x += 1 changes no other table, as in pandas.
        return lost_writes.owned(ColumnArray(one.expression, name, complete))
    if isinstance(one, Column) and one.name != name:
        one = copy(one)
        one.name = name
    return one


def _written(one: DistArray | Column) -> list[str]:
    # The values of a column as they are shown.
    if isinstance(one, TimeColumn):  # of which some are before Python's first
        return one.texts_of(np.asarray(one.codes.compute()))
    return [value_text(value) for value in _arrow_of(one).to_pylist()]


def _count(n: object) -> int:
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0:
        raise OptionError(f"n={n!r}: give a number of rows, from 0 on")
    return int(n)


def _check_combined(combine: str, values: str | None) -> None:
    if combine not in (*_COMBINED, *METHODS):
        raise OptionError(
            f"pivot(combine={combine!r}): {suggestion(combine, dict.fromkeys((*_COMBINED, *METHODS)))}"
        )
    if values is None and combine not in _COMBINED:
        raise OptionError(f"pivot(combine={combine!r}): give values=, the column that it is of")


def _is_numeric(one: DistArray | Column, booleans: bool = False) -> bool:
    return isinstance(one, DistArray | MaskedColumn) and (booleans or one.dtype.kind in "iuf")


def _word(one: DistArray | Column) -> str:
    return one._word() if isinstance(one, Column) else str(one.dtype)


def _handles_of(one: DistArray | Column) -> list[DistArray]:
    if isinstance(one, MaskedColumn):
        return [one.codes, one.missing]
    return [one.codes if isinstance(one, Column) else one]


def _array_of(columns: list[DistArray | Column], shape: tuple[int, int]) -> npt.NDArray[Any]:
    # Numbers or times as a matrix, and with other columns objects, as pandas' frames give them. What is
    # missing is NaN or NaT, by which other libraries know it.
    arrays: list[npt.NDArray[Any]] = [np.asarray(one) for one in columns]
    kinds = {one.dtype.kind for one in arrays}
    if kinds and (kinds <= set("biuf") or kinds in ({"M"}, {"m"})):
        return np.stack(arrays, axis=1)
    values = np.empty(shape, object)
    for place, (one, column) in enumerate(zip(arrays, columns, strict=True)):
        gone = np.datetime64("NaT") if isinstance(column, TimeColumn) else np.nan
        values[:, place] = [gone if value is None else value for value in one.astype(object)]
    return values


def _handle_of(one: DistArray | Column) -> DistArray:
    return _handles_of(one)[0]


def _num_bytes(one: DistArray | Column) -> int:
    labels = one.labels.nbytes if isinstance(one, TextColumn) else 0
    return sum(handle.nbytes for handle in _handles_of(one)) + labels


def _arrow_of(one: DistArray | Column) -> pyarrow.Array:
    # A column as Arrow's: missing values are null.
    import pyarrow

    codes = np.asarray(_handle_of(one).compute())
    if isinstance(one, TextColumn):
        indices = pyarrow.array(codes, pyarrow.int32(), mask=codes < 0 if one.may_miss else None)
        return pyarrow.DictionaryArray.from_arrays(indices, one.labels)
    if isinstance(one, TimeColumn):
        return one.arrow_of(codes)
    if isinstance(one, MaskedColumn):
        return pyarrow.array(codes, mask=np.asarray(one.missing.compute()))
    return pyarrow.array(codes, from_pandas=True)


def _to_pandas(self: Any) -> pd.Series:
    """Compute the column and return a pandas Series of its name; see :meth:`Table.to_pandas` for types.

    Raises
    ------
    TooLargeError
        If it exceeds the session's ``compute_limit``.
    UnsupportedError
        If pandas is not installed.

    Examples
    --------
    >>> import matnb as mn
    >>> mn.table({"fare": [6.0, None]})["fare"].to_pandas()
    0    6.0
    1    NaN
    Name: fare, dtype: float64
    """
    frame = Table({self.name or "values": self}).to_pandas()
    return frame[self.name or "values"].rename(self.name or None)


for _kind in (ColumnArray, Column):
    _kind.to_pandas = _to_pandas  # type: ignore[union-attr]  # they are known left of tables


makers.table = Table
makers.table_of = table
