"""What tables are cleaned and summed up with, by the names and rules of pandas' frames."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, NoReturn, Protocol, cast

import numpy as np

from matnb.blocks.foreign import is_missing_value
from matnb.errors import ColumnError, DTypeError, OptionError, suggestion
from matnb.io.files import suffix_of
from matnb.lazy.array import DistArray
from matnb.lazy.creation import asarray
from matnb.lazy.registry import writer_of
from matnb.location import Location
from matnb.tables.choosing import is_one_value
from matnb.tables.columns import Column, TextColumn, as_column
from matnb.tables.free_names import free_name
from matnb.tables.makers import makers
from matnb.tables.outgoing import is_for_tables, with_strings
from matnb.tables.places import RowsByLabel, RowsByPlace, ValueAt
from matnb.tables.row_orders import check_keys
from matnb.tables.summaries import Record, covariances, is_number, of_numbers, reduced
from matnb.tables.values import duplicated

if TYPE_CHECKING:
    from matnb.tables.table import Table

Names = str | Sequence[str]
_FORMS = ("dict", "list", "records")
# Kinds of columns by the words of select_dtypes.
_KINDS: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("number", "numeric"), lambda one: is_number(one) and one.dtype.kind in "iuf"),
    **dict.fromkeys(("int", "integer", "int64"), lambda one: is_number(one) and one.dtype.kind in "iu"),
    **dict.fromkeys(("float", "floating", "float64"), lambda one: is_number(one) and one.dtype.kind == "f"),
    **dict.fromkeys(("bool", "boolean"), lambda one: is_number(one) and one.dtype.kind == "b"),
    **dict.fromkeys(("object", "str", "string", "category", "text"), lambda one: isinstance(one, TextColumn)),
    **dict.fromkeys(
        ("datetime", "datetime64", "datetimetz"), lambda one: getattr(one, "word", "") == "datetime"
    ),
    **dict.fromkeys(("timedelta", "timedelta64"), lambda one: getattr(one, "word", "") == "timedelta"),
}


class _Frame(Protocol):
    """What a table gives to the methods here."""

    @property
    def columns(self) -> tuple[str, ...]: ...

    _keys: tuple[str, ...]

    def __len__(self) -> int: ...
    def __getitem__(self, key: Any) -> Any: ...
    def items(self) -> tuple[tuple[str, DistArray | Column], ...]: ...
    def _named(self, names: Names | None) -> tuple[str, ...]: ...
    def _rows(self, key: Any) -> Table: ...
    def _replaced(self, columns: Mapping[str, DistArray | Column]) -> Table: ...
    def _of(self, columns: Mapping[str, DistArray | Column]) -> Table: ...
    def _without_keys(self) -> Table: ...
    def to_matrix(self, columns: Sequence[str] | None = None) -> DistArray: ...
    def to_arrow(self) -> Any: ...
    def to_numpy(self) -> Any: ...


class FrameMethods:
    """Methods of pandas' frames that tables have; each returns a new table or what it found."""

    __matnb_leads__ = True

    def __array_ufunc__(self: _Frame, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        # Of each column, as operators are; of what is more than elementwise, such as ``t @ w``, the numbers.
        if method != "__call__" or options or ufunc.nout != 1 or len(inputs) > 2 or ufunc.signature:
            is_lazy = any(isinstance(one, DistArray) for one in inputs)
            array = self.to_matrix if is_lazy else self.to_numpy
            arrays = [array() if one is self else one for one in inputs]
            return getattr(ufunc, method)(*arrays, **options)
        if len(inputs) == 1:
            return of_each(ufunc)(self)
        is_reflected = not isinstance(inputs[0], FrameMethods)
        return by_columns(ufunc, is_reflected)(*(inputs[::-1] if is_reflected else inputs))

    # Keys of groups

    def _keyed(self: _Frame, keys: Iterable[str]) -> Table:
        # Remembers the keys among the columns; without a column beside them they are values themselves.
        there = tuple(name for name in keys if name in self.columns)
        self._keys = there if len(there) < len(self.columns) else ()
        return self  # type: ignore[return-value]

    def _without_keys(self: _Frame) -> Table:
        # What statistics of the whole table are of.
        keys = self._keys
        return self[[name for name in self.columns if name not in keys]] if keys else self  # type: ignore[return-value]

    # Missing values

    def isna(self: _Frame) -> Table:
        """Return a table of booleans that say where values are missing; ``t.isna().sum()`` counts them."""
        return _of_values(self, lambda one: one.isna())

    def notna(self: _Frame) -> Table:
        """Return a table of booleans that say where values are there."""
        return _of_values(self, lambda one: one.notna())

    isnull, notnull = isna, notna

    def fillna(self: _Frame, value: Any = None) -> Table:
        """Return the table with a value where one is missing.

        Parameters
        ----------
        value
            One value, for all columns that can have it; or a dict or record of values by column, such as
            ``t.fillna(t.mean())``.

        Raises
        ------
        DTypeError
            For one value that a column with missing values cannot have.
        ColumnError
            For an unknown column.

        Examples
        --------
        >>> import matnb as mn
        >>> t = mn.table({"zone": ["a", None], "fare": [None, 9.0]})
        >>> t.fillna({"zone": "?", "fare": 0}).to_arrow().to_pydict()
        {'zone': ['a', '?'], 'fare': [0.0, 9.0]}
        """
        if isinstance(value, Mapping):
            return self._replaced({name: as_column(self[name]).fillna(one) for name, one in value.items()})
        made: dict[str, DistArray | Column] = {}
        for name, one in self._without_keys().items():
            column = as_column(one)
            if not column.may_miss:
                continue
            try:
                made[name] = column.fillna(value)
            except DTypeError as error:
                if bool(column.missing.any()):
                    way = f"t.fillna({{{name!r}: ...}}) names columns"
                    raise DTypeError(f"column {name!r}: {error}; {way}") from None
        return self._replaced(made)

    def ffill(self: _Frame) -> Table:
        """Return the table with missing values replaced by the last ones before them."""
        return _of_values(self, lambda one: one.ffill()._plain())

    def bfill(self: _Frame) -> Table:
        """Return the table with missing values replaced by the first ones after them."""
        return _of_values(self, lambda one: one.bfill()._plain())

    # Values

    def replace(self: _Frame, to_replace: Any, value: object = None) -> Table:
        """Return the table with some values replaced by others.

        Parameters
        ----------
        to_replace
            A value, a list of values, or a dict of new values by old ones, for all columns that can have
            the old ones; or a dict of such dicts by column.
        value
            The new value, or a list of as many.
        """
        if isinstance(to_replace, Mapping) and any(isinstance(one, Mapping) for one in to_replace.values()):
            return self._replaced(
                {name: as_column(self[name]).replace(one) for name, one in to_replace.items()}
            )
        old = to_replace if isinstance(to_replace, list | tuple | Mapping) else [to_replace]
        made = {
            name: as_column(one).replace(to_replace, value)
            for name, one in self._without_keys().items()
            if all(_may_have(as_column(one), each) for each in old)
        }
        if not made and len(self.columns):
            raise DTypeError(
                f"replace: no column can have all of {list(old)!r}: give a dict by column, as in "
                't.replace({"zone": {"old": "new"}})'
            )
        return self._replaced(made)

    def isin(self: _Frame, values: Any) -> Table:
        """Return a table of booleans: where values are in a list, or in a dict's list of their column."""
        if isinstance(values, Mapping):
            nowhere = asarray(np.zeros(len(self), np.bool_))
            return self._replaced(
                {
                    name: as_column(one).isin(values[name]) if name in values else nowhere
                    for name, one in self._without_keys().items()
                }
            )
        return _of_values(self, lambda one: one.isin([each for each in values if _may_have(one, each)]))

    def clip(self: _Frame, lower: Any = None, upper: Any = None) -> Table:
        """Return the table with numbers below ``lower`` and above ``upper`` replaced by these."""
        values = self._without_keys().items()
        numbers: Any = [(name, one) for name, one in values if is_number(one) and one.dtype.kind != "b"]
        return self._replaced({name: np.clip(one, lower, upper) for name, one in numbers})

    def round(self: _Frame, decimals: int | Mapping[str, int] = 0, out: None = None) -> Table:
        """Return the table with floats rounded, to as many places in all columns or by a dict of columns."""
        if out is not None:
            raise OptionError("round: a table is not written to: leave out= out")
        places = decimals if isinstance(decimals, Mapping) else dict.fromkeys(self._named(None), decimals)
        return self._replaced(
            {
                name: np.round(self[name], count)
                for name, count in places.items()
                if is_number(self[name]) and self[name].dtype.kind == "f"
            }
        )

    def abs(self: _Frame) -> Table:
        """Return the table with numbers and durations without their sign.

        Raises
        ------
        DTypeError
            For a column of text or of times.
        """
        texts = [name for name, one in self._without_keys().items() if isinstance(one, TextColumn)]
        if texts:
            raise DTypeError(f'abs: column {texts[0]!r} is text; t.select_dtypes("number") are the numbers')
        return _of_values(self, lambda one: one.abs())

    def astype(self: _Frame, dtype: Any) -> Table:
        """Return the table with columns converted to a dtype, all to one or by a dict of columns."""
        wanted = dtype if isinstance(dtype, Mapping) else dict.fromkeys(self._named(None), dtype)
        return self._replaced({name: self[name].astype(one) for name, one in wanted.items()})

    # Columns

    def assign(self: _Frame, **columns: Any) -> Table:
        """Return the table with columns added or replaced; a function is called with the table so far.

        Examples
        --------
        >>> import matnb as mn
        >>> t = mn.table({"fare": [6.0, 9.0], "tip": [1.5, 0.0]})
        >>> t.assign(total=lambda t: t["fare"] + t["tip"])["total"].compute()
        array([7.5, 9. ])
        """
        made: Any = self
        for name, one in columns.items():
            made = made.with_columns(**{name: one(made) if callable(one) else one})
        return made  # type: ignore[no-any-return]  # operators of arrays give Any

    def rename(
        self: _Frame, mapper: Any = None, columns: Any = None, axis: Any = None, errors: str = "ignore"
    ) -> Table:
        """Return the table with other names of columns.

        Parameters
        ----------
        mapper, columns
            A dict of new names by old ones, or a function of a name such as ``str.lower``.
        errors
            "raise", for an error if an old name is not there.

        Raises
        ------
        OptionError
            For names that come twice.
        """
        given = mapper if columns is None else columns
        if not isinstance(given, Mapping) and not callable(given):
            raise OptionError('rename: give columns={"old": "new"}, or a function of a name')
        if isinstance(given, Mapping) and (errors == "raise" or len(given) == 1):
            for name in given:
                self[name]
        new = [given.get(one, one) if isinstance(given, Mapping) else given(one) for one in self.columns]
        twice = [name for place, name in enumerate(new) if name in new[:place]]
        if twice:
            raise OptionError(f"rename: two columns would be named {twice[0]!r}")
        names = {old: str(name) for old, name in zip(self.columns, new, strict=True)}
        made = self._of({names[old]: one for old, one in self.items()})
        return made._keyed(names[old] for old in self._keys)

    def drop(self: _Frame, labels: Any = None, axis: Any = None, columns: Names | None = None) -> Table:
        """Return the table without some columns.

        Parameters
        ----------
        labels, columns
            The name of a column, or a list of names.

        Raises
        ------
        ColumnError
            For an unknown column.
        OptionError
            For numbers of rows.
        """
        given = labels if columns is None else columns
        names = [given] if isinstance(given, str) else given
        if not isinstance(names, Sequence) or not all(isinstance(one, str) for one in names):
            raise OptionError(
                'drop leaves out columns, as in t.drop(columns=["tip"]); t[mask] and t[start:stop] keep rows'
            )
        out = self._named(names)
        return self[[name for name in self.columns if name not in out]]  # type: ignore[no-any-return]  # operators of arrays give Any

    def select(self: _Frame, *names: Any) -> Table:
        """Return a table of some columns, given their names or lists of names."""
        listed = [name for one in names for name in ([one] if isinstance(one, str) else one)]
        return self[listed]  # type: ignore[no-any-return]  # operators of arrays give Any

    def select_dtypes(self: _Frame, include: Any = None, exclude: Any = None) -> Table:
        """Return the columns of some kinds.

        Parameters
        ----------
        include, exclude
            One or several of "number", "int", "float", "bool", "object" or "str" for text, "datetime" and
            "timedelta".
        """

        def are(given: Any, one: DistArray | Column) -> bool:
            words = given if isinstance(given, list | tuple) else [given]
            return any(_kind_of(word)(one) for word in words)

        if include is None and exclude is None:
            raise OptionError('select_dtypes: give include="number", or exclude')
        return self[  # type: ignore[no-any-return]  # operators of arrays give Any
            [
                name
                for name, one in self.items()
                if (include is None or are(include, one)) and (exclude is None or not are(exclude, one))
            ]
        ]

    def pipe(self: _Frame, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Return what a function gives for the table, and for other arguments."""
        return func(self, *args, **kwargs)

    def copy(self: _Frame) -> Table:
        """Return the table: it is not changed by anything."""
        return self  # type: ignore[return-value]

    def reset_index(self: _Frame, drop: bool = True) -> Table:
        """Return the table, which has no index; keys of groups are columns as any other in it."""
        made = self._replaced({})
        made._keys = ()
        return made

    # Rows

    @property
    def iloc(self: _Frame) -> RowsByPlace:
        """Rows by number, as in ``t.iloc[:5]``, ``t.iloc[[3, 1]]``, ``t.iloc[-1]`` and ``t.iloc[:5, 0]``."""
        return RowsByPlace(self)

    @property
    def loc(self: _Frame) -> RowsByLabel:
        """Rows by a mask, and columns by name, as in ``t.loc[t["fare"] > 5, ["zone", "tip"]]``."""
        return RowsByLabel(self)

    @property
    def at(self: _Frame) -> ValueAt:
        """One value by the number of its row and the name of its column, as in ``t.at[0, "fare"]``."""
        return ValueAt(self)

    @property
    def iat(self: _Frame) -> RowsByPlace:
        """One value by number, as in ``t.iat[0, 1]``."""
        return RowsByPlace(self)

    def duplicated(self: _Frame, subset: Names | None = None, keep: object = "first") -> DistArray:
        """Return a mask of rows that come again; missing values are equal to each other.

        Parameters
        ----------
        subset
            Columns whose values are compared; all by default.
        keep
            Which of equal rows is not in it: "first", "last", or False for none.
        """
        return duplicated([self[name] for name in self._named(subset)], keep)

    def drop_duplicates(self: _Frame, subset: Names | None = None, keep: object = "first") -> Table:
        """Return the rows without those that come again, in their order; see :meth:`duplicated`.

        Examples
        --------
        >>> import matnb as mn
        >>> t = mn.table({"zone": ["b", "a", "b"], "fare": [6.0, 9.0, 7.0]})
        >>> t.drop_duplicates("zone")["fare"].compute()
        array([6., 9.])
        """
        return self._rows(~duplicated([self[name] for name in self._named(subset)], keep))

    def sample(
        self: _Frame,
        n: int | None = None,
        frac: float | None = None,
        replace: bool = False,
        random_state: Any = None,
        seed: Any = None,
    ) -> Table:
        """Return rows drawn at random, in random order.

        Parameters
        ----------
        n, frac
            How many rows, 1 by default, or which share of all.
        replace
            Whether a row may be drawn more than once.
        random_state, seed
            A seed, or a Generator of NumPy's, for the same rows every time.

        Raises
        ------
        OptionError
            For more rows than there are, and a share that is no number from 0 on.
        """
        if n is not None and frac is not None:
            raise OptionError("sample: give n or frac, not both")
        if frac is not None and not (isinstance(frac, int | float) and frac >= 0):
            raise OptionError(f"sample: frac={frac!r} is no share of the rows")
        count = (1 if n is None else n) if frac is None else round(frac * len(self))
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 0:
            raise OptionError(f"sample: n={count!r}: give a number of rows, from 0 on")
        if (not replace and count > len(self)) or (count and not len(self)):
            raise OptionError(f"sample: {count:,} of {len(self):,} rows: give fewer, or replace=True")
        generator = np.random.default_rng(seed if random_state is None else random_state)
        rows = generator.choice(len(self), count, replace=replace) if len(self) else np.empty(0, np.int64)
        return self._rows(asarray(rows))

    def take(self: _Frame, indices: Any, axis: int | str = 0) -> Table:
        """Return rows by number, negative ones from the end, or with ``axis=1`` columns by number.

        scikit-learn splits tables with it: ``train_test_split(t)``, ``cross_val_score(model, X, y)``.

        Raises
        ------
        IndexingError
            For numbers of rows that there are not, and a mask of another length.
        OptionError
            For an axis other than 0, 1, "index" and "columns".

        Examples
        --------
        >>> import matnb as mn
        >>> t = mn.table({"zone": ["b", "a", "c"], "fare": [6.0, 9.0, 7.0]})
        >>> t.take([2, 0])["fare"].compute(), t.take([1], axis=1).columns
        (array([7., 6.]), ('fare',))
        """
        if axis in (0, "index"):
            return RowsByPlace(self)[indices]  # type: ignore[no-any-return]  # operators of arrays give Any
        if axis in (1, "columns"):
            return RowsByPlace(self)[:, list(indices)]  # type: ignore[no-any-return]  # operators of arrays give Any
        raise OptionError(f"take: axis={axis!r}: give 0 for rows, or 1 for columns")

    # Statistics

    def count(self: _Frame) -> Record:
        """Compute how many values are not missing in each column."""
        values = self._without_keys().items()
        return reduced(((name, as_column(one).notna()) for name, one in values), "sum")

    def nunique(self: _Frame, dropna: bool = True) -> Record:
        """Compute the number of distinct values of each column."""
        return Record({name: as_column(one).nunique(dropna) for name, one in self._without_keys().items()})

    def sum(self: _Frame, axis: Any = 0, numeric_only: bool = False) -> Any:
        """Compute the sum of each column of numbers or durations, or with ``axis=1`` that of each row."""
        return _reduced(self, "sum", axis, numeric_only)

    def mean(self: _Frame, axis: Any = 0, numeric_only: bool = False) -> Any:
        """Compute the mean of each column that is not text, or with ``axis=1`` that of each row.

        Missing values are skipped, as in all statistics of tables.

        Examples
        --------
        >>> import matnb as mn
        >>> mn.table({"zone": ["b", "a"], "fare": [6.0, None], "tip": [1.0, 2.0]}).mean()
        fare  6.0
        tip   1.5
        """
        return _reduced(self, "mean", axis, numeric_only)

    def median(self: _Frame, axis: Any = 0, numeric_only: bool = False) -> Any:
        """Compute the median of each column that is not text, or with ``axis=1`` that of each row."""
        return _reduced(self, "median", axis, numeric_only)

    def std(self: _Frame, axis: Any = 0, ddof: int = 1, numeric_only: bool = False) -> Any:
        """Compute the sample standard deviation of each column that is not text, or of each row."""
        return _reduced(self, "std", axis, numeric_only, ddof=ddof)

    def var(self: _Frame, axis: Any = 0, ddof: int = 1, numeric_only: bool = False) -> Any:
        """Compute the sample variance of each column of numbers, or with ``axis=1`` that of each row."""
        return _reduced(self, "var", axis, True, ddof=ddof)

    def min(self: _Frame, axis: Any = 0, numeric_only: bool = False) -> Any:
        """Compute the least value of each column, or with ``axis=1`` of each row."""
        return _reduced(self, "min", axis, numeric_only)

    def max(self: _Frame, axis: Any = 0, numeric_only: bool = False) -> Any:
        """Compute the greatest value of each column, or with ``axis=1`` of each row."""
        return _reduced(self, "max", axis, numeric_only)

    def any(self: _Frame, axis: Any = 0) -> Any:
        """Compute whether any value is true in each column, or with ``axis=1`` in each row."""
        return _reduced(self, "any", axis, True)

    def all(self: _Frame, axis: Any = 0) -> Any:
        """Compute whether all values are true in each column, or with ``axis=1`` in each row."""
        return _reduced(self, "all", axis, True)

    def quantile(self: _Frame, q: float = 0.5, numeric_only: bool = False) -> Record:
        """Compute one quantile of each column of numbers, times or durations."""
        columns = {
            name: as_column(one)
            for name, one in self._without_keys().items()
            if not isinstance(one, TextColumn)
            and one.dtype.kind != "b"
            and (is_number(one) or not numeric_only)
        }
        return Record({name: np.asarray(one.quantile(q))[()] for name, one in columns.items()})

    def corr(
        self: _Frame, method: str = "pearson", min_periods: int = 1, numeric_only: bool = False
    ) -> Table:
        """Return Pearson's correlations of columns of numbers, with their names in a first column.

        Rows in which one of two columns has no value are left out for these two. Other libraries draw it as
        pandas' frame, as in ``seaborn.heatmap(t.corr().to_pandas().set_index("column"))``.

        Examples
        --------
        >>> import matnb as mn
        >>> print(mn.table({"a": [1.0, 2.0, 3.0], "b": [3.0, 2.0, 1.0]}).corr())
        2 rows x 3 columns
        column        a        b
        text    float64  float64
        a           1.0     -1.0
        b          -1.0      1.0
        """
        if method != "pearson":
            raise OptionError(f"corr(method={method!r}): {spearman_way(self)}")
        return _matrix_of(self._without_keys(), min_periods, True)

    def cov(self: _Frame, min_periods: int = 1, ddof: int = 1, numeric_only: bool = False) -> Table:
        """Return covariances of columns of numbers, with their names in a first column; see :meth:`corr`."""
        return _matrix_of(self._without_keys(), min_periods, False, ddof)

    def info(self: _Frame) -> Record:
        """Compute of each column how many values are not missing, and say its type.

        Examples
        --------
        >>> import matnb as mn
        >>> mn.table({"zone": ["a", None], "fare": [6.0, 9.0]}).info()
        zone  1 non-null, text
        fare  2 non-null, float64
        """
        counts = FrameMethods.count(FrameMethods.reset_index(self))
        return Record(
            {
                name: f"{counts[name]:,} non-null, {'text' if isinstance(one, TextColumn) else one.dtype}"
                for name, one in self.items()
            }
        )

    # Other forms

    @property
    def size(self: _Frame) -> int:
        """The number of values, missing ones included."""
        return len(self) * len(self.columns)

    def __bool__(self) -> NoReturn:
        raise OptionError(
            "the truth value of a table is ambiguous: write len(t) > 0 for whether it has rows, and "
            "t is not None for whether there is a table"
        )

    @property
    def empty(self: _Frame) -> bool:
        """Whether there are no rows or no columns."""
        return len(self) * len(self.columns) == 0

    @property
    def ndim(self: _Frame) -> int:
        """2, of rows and columns."""
        return 2

    def equals(self: _Frame, other: object) -> bool:
        """Compute whether another table has the same names, types and values; missing ones are equal."""
        if not isinstance(other, FrameMethods):
            return False
        frame = cast(_Frame, other)
        if frame.columns != self.columns or len(frame) != len(self):
            return False
        return bool(with_strings(self.to_arrow()).equals(with_strings(frame.to_arrow())))

    def to_dict(self: _Frame, orient: str = "dict") -> Any:
        """Compute the table and return it as Python's dicts and lists.

        Parameters
        ----------
        orient
            "dict" for dicts of values by row number by column, "list" for lists by column, "records" for a
            list of dicts, one for each row.

        Raises
        ------
        TooLargeError
            If it exceeds the session's ``compute_limit``.
        """
        if orient not in _FORMS:
            raise OptionError(f"to_dict(orient={orient!r}): {suggestion(orient, _FORMS, 'choose one of')}")
        if orient == "records":
            return self.to_arrow().to_pylist()
        lists = self.to_arrow().to_pydict()
        return lists if orient == "list" else {name: dict(enumerate(one)) for name, one in lists.items()}

    def to_csv(
        self: _Frame,
        path: str | os.PathLike[str] | IO[str],
        sep: str = ",",
        decimal: str = ".",
        index: bool = False,
    ) -> None:
        """Write the table as CSV, as ``mn.save`` does with a path that ends in ``.csv``.

        Parameters
        ----------
        path
            Or an open file, such as ``sys.stdout``, to which pandas writes, within ``compute_limit``.
        sep
            What is between values, such as ";" or a tab.
        decimal
            What is before the fraction of floats: "." or ",".
        """
        if isinstance(path, str | os.PathLike):
            _written(self, path, ".csv", sep, decimal)
        else:
            frame: Any = self
            frame.to_pandas().to_csv(path, sep=sep, decimal=decimal, index=False)

    def to_parquet(self: _Frame, path: str | os.PathLike[str], index: bool = False) -> None:
        """Write the table as Parquet, as ``mn.save`` does with a path that ends in ``.parquet``."""
        _written(self, path, ".parquet")

    def to_feather(self: _Frame, path: str | os.PathLike[str]) -> None:
        """Write the table as Feather, as ``mn.save`` does with a path that ends in ``.feather``."""
        _written(self, path, ".feather")


def _may_have(column: Column, value: object) -> bool:
    # Whether a column could have a value.
    if is_missing_value(value):
        return True
    if column.dtype.kind in "biuf" and (column.dtype.kind == "b") != isinstance(value, bool | np.bool_):
        return False
    try:
        column._number(value)
    except DTypeError:
        return False
    return True


def _kind_of(word: object) -> Callable[[Any], bool]:
    name = word.__name__ if isinstance(word, type) else str(word)
    if name not in _KINDS:
        raise OptionError(f"select_dtypes: no kind {word!r}; {suggestion(name, _KINDS)}")
    return _KINDS[name]


def _numbers_of(frame: _Frame) -> Any:
    return frame._of({name: one for name, one in frame.items() if is_number(one)})


def _of_values(frame: _Frame, make: Callable[[Column], Any]) -> Table:
    # What is made of each column but keys, which stay as they are.
    return frame._replaced({name: make(as_column(one)) for name, one in frame._without_keys().items()})


def _reduced(frame: _Frame, name: str, axis: Any, numeric_only: bool, **options: Any) -> Any:
    frame = frame._without_keys()
    if axis in (0, "index", "rows", None):
        return reduced((_numbers_of(frame) if numeric_only else frame).items(), name, **options)
    if axis not in (1, "columns"):
        raise OptionError(f"{name}: axis={axis!r}: 0 is along the rows, for each column, 1 is for each row")
    matrix = _numbers_of(frame).to_matrix()
    return of_numbers(matrix, name, axis=1, **options)


def _matrix_of(frame: _Frame, min_periods: int, correlate: bool, ddof: int = 1) -> Table:
    names = [name for name, one in frame.items() if is_number(one)]
    if not names:
        raise DTypeError("there is no column of numbers to correlate")
    found = covariances(frame.to_matrix(names).astype(np.float64), min_periods, correlate, ddof)
    label = free_name("column", names)
    made = makers.table_of({label: names, **{name: found[:, place] for place, name in enumerate(names)}})
    return made._keyed([label])


def spearman_way(frame: _Frame) -> str:
    """Return what to write for Spearman's correlation: of ranks among the rows that have both values."""
    names = [name for name, one in frame._without_keys().items() if is_number(one)][:2]
    one, two = names if len(names) == 2 else ("a", "b")
    return (
        f"u[{one!r}].rank().corr(u[{two!r}].rank()) is Spearman's, with u = t[[{one!r}, {two!r}]].dropna(), "
        "whose rows have both; t.to_pandas().corr has all methods"
    )


_COMPRESSED = (".gz", ".bz2", ".zip", ".xz", ".zst")


def _written(
    frame: _Frame, path: str | os.PathLike[str], suffix: str, sep: str = ",", decimal: str = "."
) -> None:
    if suffix_of(path) != suffix:
        call = f"to_{suffix[1:]}(path{', index=False' * (suffix == '.csv')})"
        way = "mn.save(t, path)" if is_for_tables(path) else f"t.to_pandas().{call}, in this process"
        raise OptionError(
            f"{Location(os.fsdecode(path))}: give a path that ends in {suffix}, or write {way}"
            f"{'; Parquet, of t.to_parquet, is compressed' * (suffix_of(path) in _COMPRESSED)}"
        )
    writer = writer_of(frame, suffix)
    assert writer is not None, "registered for tables"
    writer(frame, path, sep, decimal)


def by_columns(operation: Callable[[Any, Any], Any], is_reflected: bool) -> Callable[[Any, Any], Any]:
    """Return an operator with one value, or with the columns of another table that are called the same."""

    def method(made: Any, other: Any) -> Any:
        is_table = isinstance(other, FrameMethods)
        if is_table and other.columns != made.columns:
            raise ColumnError(
                f"{operation.__name__} of tables with the columns {', '.join(made.columns)} and "
                f"{', '.join(other.columns)}: select the same ones"
            )
        if is_table:
            check_keys(made, other, operation.__name__)
        if not is_table and not is_one_value(other):
            raise DTypeError(
                f"{operation.__name__} of a table and {type(other).__name__}: give one value, or a table; a "
                'column at a time is t["fare"] * x'
            )

        def of_column(name: str, one: Any) -> Any:
            two = other[name] if is_table else other
            return operation(two, one) if is_reflected else operation(one, two)

        return _each_column(made, of_column)

    return method


def of_each(operation: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return an operator of a table that makes a table of the results for its columns."""
    return lambda table: _each_column(table, lambda _, one: operation(one))


def _each_column(table: Any, of_column: Callable[[str, Any], Any]) -> Any:
    # Keys of groups, which pandas has in the index, stay as they are.
    values = table._without_keys()
    found = {}
    for name, one in values.items():
        try:
            found[name] = of_column(name, one)
        except DTypeError as error:
            numbers = [name for name, other in values.items() if is_number(other)]
            if is_number(one) or not numbers:
                raise
            way = f"t[{numbers[0]!r}]" if len(numbers) == 1 else f"t[{numbers[:3]!r}]"
            what = "" if repr(name) in str(error) else f"column {name!r}: "
            raise DTypeError(f"{what}{error}; {way} selects numbers") from None
    return table._replaced(found)
