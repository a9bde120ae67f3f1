"""Columns of numbers: DistArrays whose statistics skip missing values, as those of pandas do."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, Self

import numpy as np

from matnb.blocks.foreign import is_missing_value
from matnb.errors import MissingAttributeError
from matnb.expr.nodes import Expr
from matnb.lazy import lost_writes
from matnb.lazy.array import DistArray, wrap
from matnb.lazy.creation import asarray
from matnb.lazy.foreign_names import instead_of, is_in_matplotlib
from matnb.lazy.reductions import without_nan
from matnb.lazy.registry import recorded
from matnb.tables.pandas_names import OF_COLUMNS, no_table_name
from matnb.tables.row_orders import check_rows

# Of each statistic of NumPy's the one that skips NaN, if there is a NaN to skip.
_SKIPPING = {
    "sum": np.nansum, "prod": np.nanprod, "mean": np.nanmean, "var": np.nanvar, "std": np.nanstd,
    "min": np.nanmin, "max": np.nanmax, "argmin": np.nanargmin, "argmax": np.nanargmax,
}  # fmt: skip
# Of each running statistic NumPy's function, and the one that skips NaN; two have names of pandas' alone.
_RUNNING: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "cumsum": (np.cumsum, np.nancumsum),
    "cumprod": (np.cumprod, np.nancumprod),
    "cummin": (np.minimum.accumulate, np.fmin.accumulate),
    "cummax": (np.maximum.accumulate, np.fmax.accumulate),
}
_PLACE_OF_DDOF = 3  # among the arguments after the array
# Methods of arrays whose results are columns as well.
_KEPT = (
    *("astype", "clip", "conj", "conjugate", "flatten", "ravel", "repeat", "reshape", "round"),
    *("squeeze", "take", "transpose"),
)


class ColumnArray(DistArray):
    """Numbers or booleans of a table's column: an array whose statistics are those of pandas.

    Missing values, which are NaN, are skipped by ``sum prod mean std var min max any all argmin argmax``
    unless ``skipna=False``, and by ``median quantile count nunique idxmin idxmax`` in any case; ``cumsum
    cumprod cummin cummax`` leave them where they are. ``std`` and ``var`` have ``ddof=1``. NumPy's functions
    of these names skip missing values too, with NumPy's ``ddof=0``, as they do in a Series; ``np.median``,
    ``np.ptp`` and ``np.quantile`` do not, neither here nor there. What operators,
    ufuncs, NumPy's functions and indexing make of a column is a column; ``mn.asarray(column)`` is an array,
    to which NumPy's rules apply.

    Examples
    --------
    >>> import numpy as np, matnb as mn
    >>> x = mn.table({"fare": [6.0, None, 9.0]})["fare"]
    >>> float(x.mean()), float((x * 2).max()), float(np.sum(x)), x.cumsum().compute().tolist()
    (7.5, 18.0, 15.0, [6.0, nan, 15.0])
    >>> float(x.std()), float(np.std(x)), float(mn.asarray(x).mean())
    (2.1213203435596424, 1.5, nan)
    """

    __slots__ = ("_known", "name")

    def __init__(self, expression: Expr, name: str = "", complete: bool = False) -> None:
        super().__init__(expression)
        self.name = name
        self._known = expression if complete else None  # of which no value is missing, if it is still that

    def __matnb_array__(self) -> DistArray:
        """Return the numbers as an array to which NumPy's rules apply."""
        return DistArray(self._expression)

    def _recorded(self, node: Expr) -> Any:
        is_of_this = sum(one.ndim == 1 for one in node.operands) == 1  # and not of two columns
        return column_array(wrap(node), self.name if is_of_this else "")

    def _become(self, version: Expr) -> None:
        check_rows(version)
        super()._become(version)

    def __eq__(self, other: object) -> Any:
        return super().__eq__(np.nan if is_missing_value(other) else other)  # as nothing is equal to it

    def __ne__(self, other: object) -> Any:
        return super().__ne__(np.nan if is_missing_value(other) else other)

    def __getitem__(self, key: Any) -> Any:
        return column_array(super().__getitem__(key), self.name)

    def copy(self, order: str = "C") -> Self:
        """Return a column with the same values; later assignments to either do not affect the other."""
        return lost_writes.owned(type(self)(self._expression, self.name, self._is_complete))

    @property
    def _lost(self) -> str:
        word = self.name if self.name.isidentifier() else "name"
        return (
            "this changed a copy of a column, which nothing refers to: a table is not changed. Write "
            f"c = t[{self.name or 'name'!r}]; c[0] = 4; t = t.with_columns({word}=c)"
        )

    @property
    def empty(self) -> bool:
        """Whether it has no values."""
        return not len(self)

    @property
    def _is_complete(self) -> bool:
        return self.dtype.kind != "f" or self._known is self._expression

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except MissingAttributeError:
            if name not in OF_COLUMNS[""] and instead_of(name, False):
                raise
        known = [one for one in dir(self) if not one.startswith("_")]
        raise no_table_name("a column of numbers", name, OF_COLUMNS[""], lambda: known) from None

    # NumPy's protocols: they get arrays, and what they make is a column again

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **options: object) -> object:
        name = _common_name(one for one in inputs if isinstance(one, ColumnArray))
        return _columns_of(super().__array_ufunc__(ufunc, method, *inputs, **options), name)

    def __array_function__(
        self,
        function: Callable[..., object],
        types: Sequence[type],
        args: Sequence[object],
        kwargs: Mapping[str, object],
    ) -> object:
        skipping = _FUNCTIONS.get(function)
        if skipping is not None and args and isinstance(args[0], ColumnArray) and not is_in_matplotlib():
            return skipping(*args, **kwargs)
        arrays: list[tuple[ColumnArray, DistArray]] = []
        given, options = _as_arrays(args, arrays), _as_arrays(kwargs, arrays)
        types = [DistArray if issubclass(one, ColumnArray) else one for one in types]
        found = super().__array_function__(function, types, given, options)
        for column, array in arrays:  # np.put and out= change what they are given
            if array.expression is not column.expression:
                column._become(array.expression)
                lost_writes.noted.pop(id(array), None)  # the column has it
            if found is array:
                return column
        return _columns_of(found, _common_name(column for column, _ in arrays))


def column_array(array: Any, name: str = "") -> Any:
    """Return a dense array with one axis as a column of a table, a column with a name; others as they are."""
    if not isinstance(array, DistArray):
        if hasattr(array, "may_miss"):  # a column of another type
            array.name = array.name or name
    elif array.ndim == 1 and not array.sparse and array.dtype.kind in "biuf":
        if not isinstance(array, ColumnArray):
            check_rows(array.expression)
            made = ColumnArray(array.expression, name)
            is_copy = lost_writes.noted.get(id(array), array) is None
            return lost_writes.owned(made) if is_copy else made
        array.name = array.name or name
    return array


def plain_array(array: Any) -> Any:
    """Return a column of numbers as an array to which NumPy's rules apply; anything else as it is."""
    return array.__matnb_array__() if isinstance(array, ColumnArray) else array


def _columns_of(found: Any, name: str) -> Any:
    return (
        tuple(column_array(one, name) for one in found) if type(found) is tuple else column_array(found, name)
    )


def _common_name(columns: Iterable[ColumnArray]) -> str:
    names = {one.name for one in columns}
    return names.pop() if len(names) == 1 else ""


def _as_arrays(value: Any, arrays: list[tuple[ColumnArray, DistArray]]) -> Any:
    # Arguments with arrays in place of columns, which are noted.
    if isinstance(value, ColumnArray):
        known = next((array for column, array in arrays if column is value), None)
        if known is None:
            known = value.__matnb_array__()
            arrays.append((value, known))
        return known
    if type(value) in (list, tuple):
        return type(value)(_as_arrays(one, arrays) for one in value)
    return {name: _as_arrays(one, arrays) for name, one in value.items()} if type(value) is dict else value


# Statistics


def _with_skipna(usual: Callable[..., Any], doc: str, ddof: float | None = None) -> Any:
    # The signature of a method of arrays, and what pandas' has besides.
    signature = inspect.signature(usual)
    skipna = inspect.Parameter("skipna", inspect.Parameter.KEYWORD_ONLY, default=True, annotation=bool)
    known = [
        one.replace(default=ddof) if one.name == "ddof" else one for one in signature.parameters.values()
    ]
    variable = [known.pop()] if known[-1].kind is inspect.Parameter.VAR_KEYWORD else []

    def decorate(method: Callable[..., Any]) -> Any:
        found: Any = wraps(usual)(method)
        found.__doc__ = doc
        found.__signature__ = signature.replace(parameters=[*known, skipna, *variable])
        return found

    return decorate


def _statistic(name: str) -> Any:
    all_of: Callable[..., Any] = getattr(np, name)
    skipping: Callable[..., Any] = _SKIPPING[name]  # type: ignore[assignment]  # functions all
    has_ddof = name in ("std", "var")

    def method(self: ColumnArray, *args: Any, skipna: bool = True, **options: Any) -> Any:
        if has_ddof and len(args) <= _PLACE_OF_DDOF and not options.keys() & {"ddof", "correction"}:
            options["ddof"] = 1
        if name in ("min", "max") and not (len(self) or args or options):
            return asarray(np.nan)
        options.pop("numeric_only", None)  # which they are
        least = options.pop("min_count", 0) if name in ("sum", "prod") else 0
        if self._is_complete and len(self) < least:
            return asarray(np.nan)
        if least > 0 and not self._is_complete:  # as pandas has it: of fewer values there is none
            return np.where(self.count() >= least, method(self, *args, skipna=skipna, **options), np.nan)
        return recorded(all_of if not skipna or self._is_complete else skipping)(self, *args, **options)

    below = ", with ``number - ddof`` in the denominator, and ``ddof=1``" if has_ddof else ""
    doc = f"``numpy.{name}`` of the values that are not missing{below}."
    return _with_skipna(getattr(DistArray, name), doc, 1)(method)


def _running(name: str) -> Callable[..., Any]:
    all_of, skipping = _RUNNING[name]

    def method(
        self: ColumnArray, axis: int | None = None, *args: Any, skipna: bool = True, **options: Any
    ) -> Any:
        array: Any = DistArray(self._expression)
        if not skipna or self._is_complete:
            return column_array(all_of(array, axis or 0, *args, **options), self.name)
        found = np.where(array != array, array, skipping(array, axis or 0, *args, **options))
        return column_array(found, self.name)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = (
        "Return what there is up to each row; missing values are skipped and stay where they are."
    )
    return method


def _truth(name: str) -> Any:
    def method(self: ColumnArray, *args: Any, skipna: bool = True, **options: Any) -> Any:
        skips = skipna and not self._is_complete and name == "any"  # NaN itself is not zero
        array = wrap(without_nan(self._expression, 0)) if skips else self
        return recorded(getattr(np, name))(array, *args, **options)

    doc = f"Tell whether {name} of the values that are not missing are other than zero."
    return _with_skipna(getattr(DistArray, name), doc)(method)


def _by_numpy(name: str) -> Callable[..., Any]:
    # NumPy's function, with its own ddof.
    method = getattr(ColumnArray, name)

    def function(column: ColumnArray, *args: Any, **options: Any) -> Any:
        if name in ("std", "var") and len(args) <= _PLACE_OF_DDOF and "correction" not in options:
            options.setdefault("ddof", 0)
        return method(column, *args, **options)

    return function


def _kept(name: str) -> Callable[..., Any]:
    usual = getattr(DistArray, name)

    @wraps(usual)
    def method(self: ColumnArray, *args: Any, **options: Any) -> Any:
        return column_array(usual(self, *args, **options), self.name)

    return method


for _name in _SKIPPING:
    setattr(ColumnArray, _name, _statistic(_name))
for _name in _RUNNING:
    setattr(ColumnArray, _name, _running(_name))
for _name in ("any", "all"):
    setattr(ColumnArray, _name, _truth(_name))
for _name in _KEPT:
    setattr(ColumnArray, _name, _kept(_name))

_FUNCTIONS: dict[Callable[..., object], Callable[..., Any]] = {
    **{getattr(np, name): _by_numpy(name) for name in (*_SKIPPING, "any", "all", "cumsum", "cumprod")},
}
