"""Sparse matrices of tables, whose rows and columns have labels that follow them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from matnb.blocks.foreign import is_missing_value
from matnb.errors import OptionError, ShapeError
from matnb.expr.nodes import Elementwise, Expr
from matnb.lazy.array import DistArray, wrap
from matnb.lazy.creation import asarray, coo_array
from matnb.lazy.evaluator import shown
from matnb.lazy.labels import are_same, difference, labeled, unlabeled
from matnb.ops.diagonals import DiagonalMatrix
from matnb.pictures.arrays import array_html, array_text
from matnb.tables.groups import GroupKeys, keyed
from matnb.tables.outgoing import library
from matnb.tables.showing import label_text, labeled_html, labeled_text, looked, value_text

if TYPE_CHECKING:
    import pandas as pd

    from matnb.tables.table import Table

Labels = npt.NDArray[Any]
_SHOWN_ROWS, _SHOWN_COLUMNS = 8, 12


def _ends(length: int, most: int) -> list[int]:
    # The first places and the last, where these are not all.
    if length <= most:
        return list(range(length))
    return [*range(most // 2), *range(length - most // 2, length)]


class _Axis:
    # The labels of an axis. Those that an array of the workers picks are picked when they are asked for.

    def __init__(self, values: Labels | None, origin: _Axis | None = None, key: Any = None) -> None:
        self._values, self._origin, self._key = values, origin, key

    @property
    def values(self) -> Labels:
        if self._values is None:
            assert self._origin is not None, "of labels that are picked"
            self._values = self._origin.values[np.asarray(self._key)]
        return self._values

    def picked(self, key: Any) -> _Axis:
        if isinstance(key, slice) and key == slice(None):
            return self
        if isinstance(key, DistArray):
            return _Axis(None, self, key)
        return _Axis(self.values[key if isinstance(key, slice) else np.asarray(key)])

    def is_that_of(self, other: _Axis) -> bool:
        return self is other or are_same(self.values, other.values)


class Pivot(DistArray):
    """A sparse matrix with row and column labels, as returned by ``Table.pivot``.

    The transpose, slices, flips, triangles, rows and columns that an index picks, and functions element by
    element keep the labels, and so do products with a diagonal matrix; products of two pivots have the row
    labels of the first and the column labels of the second. A pivot is combined with another, with a graph,
    or with a vector of either only if the labels are the same, and graph algorithms refuse one whose rows
    have other labels than its columns. Pairs that no row has are 0 in all of these, also in ``mean(axis=0)``.

    Attributes
    ----------
    row_labels, column_labels
        NumPy arrays; text as objects. ``rows`` and ``columns`` are the same, and so is ``labels`` for the
        rows, also of sums and of vectors that are made of them.

    Examples
    --------
    >>> import matnb as mn
    >>> P = mn.table({"user": ["a", "b", "a"], "film": [7, 7, 9]}).pivot("user", "film")
    >>> (2 * P.T)[:, 1:].column_labels.tolist()
    ['b']
    """

    __slots__ = ("_columns", "_fill", "_rows")
    _fill: float  # what a frame has where no row of the table is: 0, or NaN

    def __init__(self, matrix: DistArray, row_labels: Labels, column_labels: Labels, fill: float = 0) -> None:
        super().__init__(labeled(matrix.expression, row_labels, column_labels))
        self._rows, self._columns, self._fill = _Axis(row_labels), _Axis(column_labels), fill

    @property
    def row_labels(self) -> Labels:
        """The labels of the rows."""
        return self._rows.values

    @property
    def column_labels(self) -> Labels:
        """The labels of the columns."""
        return self._columns.values

    @property
    def rows(self) -> Labels:
        """The labels of the rows, as ``row_labels``."""
        return self._rows.values

    @property
    def columns(self) -> Labels:
        """The labels of the columns, as ``column_labels``."""
        return self._columns.values

    def __repr__(self) -> str:
        corner, note = self._corner()
        facts = array_text(replace(shown(self.expression), value=""))
        return "\n".join(filter(None, (labeled_text(corner), facts, note)))

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        corner, note = self._corner()
        facts = replace(shown(self.expression), value="")
        text = "\n".join(filter(None, (labeled_text(corner), array_text(facts), note)))
        return {"text/plain": text, "text/html": f"{labeled_html(corner, note)}{array_html(facts)}"}

    def _corner(self) -> tuple[list[list[str]], str]:
        # The first and last rows and columns under their labels, as pandas shows them, and what is said of
        # them where they are not there.
        rows, columns = _ends(self.shape[0], _SHOWN_ROWS), _ends(self.shape[1], _SHOWN_COLUMNS)
        if not rows or not columns:
            return [], ""
        corner: Any = self.without_labels()
        for axis, (length, ends) in enumerate(zip(self.shape, (rows, columns), strict=True)):
            if length > len(ends):
                corner = np.take(corner, ends, axis)
        found: list[npt.NDArray[Any]] = []
        parts = [corner, corner.pattern()] if corner.sparse and self._fill != 0 else [corner]
        note = looked(parts, lambda: found.extend(map(np.asarray, parts)), "values", "compute() returns them")
        if not found:
            return [], note
        if len(found) > 1:  # nothing where there is no row
            found[0] = found[0].astype(object)
            found[0][~found[1]] = None
        grid = [["", *map(label_text, self.columns[columns])]]
        for label, row in zip(self.rows[rows], found[0].tolist(), strict=True):
            grid.append([label_text(label), *map(value_text, row)])
        if self.shape[1] > len(columns):
            for row in grid:
                row.insert(1 + len(columns) // 2, "...")
        if self.shape[0] > len(rows):
            grid.insert(1 + len(rows) // 2, ["..."] * len(grid[0]))
        return grid, note

    def without_labels(self) -> DistArray:
        """Return the matrix alone, which is combined with others row by row and column by column."""
        return wrap(unlabeled(self.expression))

    def to_pandas(self, fill_value: float | None = None) -> pd.DataFrame:
        """Compute the matrix and return a dense pandas DataFrame whose index and columns are the labels.

        Parameters
        ----------
        fill_value
            The value of pairs that are not stored, since no row of the table has them. By default 0 for sums
            and counts, and NaN for what else is combined, also in slices, transposes and products; 0 in sums
            of pivots, comparisons and choices such as ``np.maximum``, which store no zeros.

        Raises
        ------
        TooLargeError
            If it exceeds the session's ``compute_limit``.
        UnsupportedError
            If pandas is not installed.

        Examples
        --------
        >>> import matnb as mn
        >>> mn.table({"user": ["a", "b", "a"], "film": [7, 7, 9]}).pivot("user", "film").to_pandas()
           7  9
        a  1  1
        b  1  0
        >>> t = mn.table({"time": [0, 0, 1], "sensor": ["p", "q", "p"], "value": [5.0, 3.0, 4.0]})
        >>> t.pivot("time", "sensor", "value", combine="mean").to_pandas()
             p    q
        0  5.0  3.0
        1  4.0  NaN
        """
        values, fill = self.toarray(), self._fill if fill_value is None else fill_value
        if self.sparse and fill != 0:
            stored = DistArray(self.expression).pattern().toarray()
            values = values if stored.all() else np.where(stored, values, fill)
        return library("pandas").DataFrame(values, self.rows, self.columns)

    def copy(self, order: str = "C") -> DistArray:
        """Return an array with the same values; later assignments to either do not affect the other."""
        return _labeled(self.without_labels(), self._rows, self._columns, self._fill)

    def __getitem__(self, key: object) -> DistArray:
        found = super().__getitem__(key)
        keys = key if isinstance(key, tuple) else (key,)
        if any(one is None for one in keys) or found.ndim != 2:
            return found
        parts = list(keys)
        if any(one is Ellipsis for one in parts):
            place = next(number for number, one in enumerate(parts) if one is Ellipsis)
            parts[place : place + 1] = [slice(None)] * (3 - len(parts))
        parts = [*parts, *[slice(None)] * (2 - len(parts))]
        crossed = [np.ndim(cast(Any, one)) for one in parts]
        if crossed == [2, 2]:  # of np.ix_
            parts = [np.ravel(cast(Any, one)) for one in parts]
        elif max(crossed) > 1 or any(isinstance(one, DistArray) and one.expression.free for one in parts):
            return found
        return _labeled(found, self._rows.picked(parts[0]), self._columns.picked(parts[1]), self._fill)

    # Element by element

    def _labeled_alike(self, name: str, found: Any, others: tuple[Any, ...]) -> Any:
        for one in others:
            _check_aligned(name, self, one)
        return _kept(found, self)

    def _labeled_moved(self, move: Callable[..., Any], found: Any) -> Any:
        rows = move(np.arange(self.shape[0])[:, np.newaxis])
        columns = move(np.arange(self.shape[1])[np.newaxis, :])
        if move(np.empty((2, 3))).shape == (2, 3):
            return _labeled(
                found, self._rows.picked(rows[:, 0]), self._columns.picked(columns[0]), self._fill
            )
        return _labeled(found, self._columns.picked(columns[:, 0]), self._rows.picked(rows[0]), self._fill)

    def _labeled_product(self, product: Callable[[Any, Any], Any], one: Any, other: Any) -> Any:
        return _product(product, one, other)

    def _recorded(self, node: Expr) -> Any:
        found = super()._recorded(node)
        if node.shape != self.shape:
            return found
        return _labeled(found, self._rows, self._columns, _fill_of(node, self))

    def __matmul__(self, other: Any) -> Any:
        return np.matmul(self, other)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **options: object) -> object:
        if ufunc is np.matmul and method == "__call__":
            multiply: Callable[..., Any] = partial(ufunc, **options)
            if options.get("out") is not None:
                return multiply(*map(_plain, inputs))
            return _product(multiply, *inputs)
        pivots = [one for one in inputs if isinstance(one, Pivot)]
        for one in pivots[1:]:
            _check_aligned(ufunc.__name__, pivots[0], one)
        found = super().__array_ufunc__(ufunc, method, *inputs, **options)
        return _kept(found, self) if method == "__call__" and "out" not in options else found


def pivoted(
    keys: tuple[GroupKeys, GroupKeys],
    stored: Any,
    combine: str,
    row_labels: Any,
    column_labels: Any,
    fill: float,
) -> Pivot:
    """Return values at the places of two keys among labels, where these are given, else among all."""
    down, rows = _placed(keys[0], row_labels, "row_labels")
    across, columns = _placed(keys[1], column_labels, "column_labels")
    if row_labels is not None or column_labels is not None:
        wanted: Any = (down >= 0) & (across >= 0)
        down, across = down[wanted], across[wanted]
        stored = stored[wanted] if stored.ndim else stored
    if combine == "sum":
        stored = stored.astype(np.sum(np.empty(0, stored.dtype)).dtype)  # NumPy's sums are at least int64
    matrix = coo_array((stored, (down, across)), (len(rows), len(columns)), duplicates=combine)
    return Pivot(matrix, rows, columns, fill)


def _placed(rows: GroupKeys, given: Any, word: str) -> tuple[Any, Labels]:
    # The place of each row among given labels, or -1, and the labels; by default all, ascending.
    keys = np.asarray(rows.keys[0])
    if given is None:
        return rows.numbers, keys
    labels = _labels_from(given, keys.dtype, word)
    order = np.argsort(labels)
    places = np.full(len(keys) + 1, -1)  # one more, for a table without rows
    at = np.searchsorted(labels[order], keys)
    known = np.flatnonzero(at < len(labels))
    known = known[labels[order[at[known]]] == keys[known]]
    places[known] = order[at[known]]
    return asarray(places)[rows.numbers], labels


def _labels_from(given: Any, dtype: np.dtype, word: str) -> Labels:
    if isinstance(given, str):  # whose letters would be labels
        raise OptionError(f"pivot: {word}={given!r} is one text: give a list of labels, as [{given!r}]")
    values = np.asarray(given) if hasattr(given, "__array__") else list(given)
    if any(map(is_missing_value, values)):
        raise OptionError(f"pivot: {word} has a missing value, whose rows are left out: give it without")
    try:
        labels = np.array(values, dtype).reshape(len(values))
        is_own = all(isinstance(one, str) for one in labels) if dtype.kind == "O" else None
        is_own = bool(np.all(labels == np.asarray(values))) if is_own is None else is_own
    except (TypeError, ValueError, OverflowError):
        is_own = False
    if not is_own:
        kind = "text" if dtype.kind == "O" else dtype
        raise OptionError(f"pivot: {word} has other values than a column of {kind} can have: give its own")
    if len(np.unique(labels)) < len(labels):
        raise OptionError(f"pivot: {word} has a label twice: give each once, as np.unique does")
    return labels


def _labeled(matrix: Any, rows: _Axis, columns: _Axis, fill: float = 0) -> DistArray:
    made = Pivot.__new__(Pivot)
    DistArray.__init__(made, matrix.expression)
    made._rows, made._columns, made._fill = rows, columns, fill
    return made


def _kept(found: Any, like: Pivot) -> Any:
    # The result of a function element by element, which is of the matrix's shape or of a broader one.
    if isinstance(found, tuple):
        return tuple(_kept(one, like) for one in found)
    is_like = isinstance(found, DistArray) and found.shape == like.shape
    return _labeled(found, like._rows, like._columns, _fill_of(found.expression, like)) if is_like else found


def _fill_of(node: Expr, like: Pivot) -> float:
    # What a frame has where the result of a function element by element stores nothing: 0 unless it stores
    # all that its operands do.
    if not isinstance(node, Elementwise) or not node.sparse or node.drops_zeros or node.dtype == np.bool_:
        return 0
    return like._fill if all(one.dtype != np.bool_ for one in node.inputs) else 0


def _check_aligned(name: str, one: Pivot, other: Pivot) -> None:
    for word, own, others in (("row", one._rows, other._rows), ("column", one._columns, other._columns)):
        if not own.is_that_of(others):
            words = difference(own.values, others.values, (f"a {word} of one", f"a {word} of the other"))
            raise ShapeError(
                f"{name} of two pivots with different {word} labels: {words}. Pivot both from one table, or "
                "give one without_labels()"
            )


def _product(product: Callable[[Any, Any], Any], one: Any, other: Any) -> Any:
    if isinstance(one, Pivot) and isinstance(other, Pivot) and not one._columns.is_that_of(other._rows):
        words = difference(
            one._columns.values, other._rows.values, ("a column of the first", "a row of the second")
        )
        raise ShapeError(
            "the product of two pivots, of which the columns of the first have other labels than the rows of "
            f"the second: {words}. Pivot both from one table, or give one without_labels()"
        )
    found: Any = product(_plain(one), _plain(other))
    if isinstance(one, Pivot) and isinstance(other, Pivot):
        return _labeled(found, one._rows, other._columns)
    pivot, scales = (one, other) if isinstance(one, Pivot) else (other, one)
    return _kept(found, pivot) if _is_diagonal(scales) else found


def _plain(matrix: Any) -> Any:
    return DistArray(matrix.expression) if isinstance(matrix, Pivot) else matrix


def _is_diagonal(matrix: Any) -> bool:
    node = matrix.expression if isinstance(matrix, DistArray) else None
    return isinstance(node, DiagonalMatrix) and not node.offset


def _aligned(name: str) -> Callable[[Pivot, Any], Any]:
    usual = getattr(DistArray, name)

    def operator(self: Pivot, other: Any) -> Any:
        if isinstance(other, Pivot):
            _check_aligned(name.strip("_"), self, other)
        return usual(self, other)

    operator.__name__, operator.__qualname__ = name, f"Pivot.{name}"
    return operator


def _same_places(name: str) -> Callable[..., Any]:
    usual = getattr(DistArray, name)

    def method(self: Pivot, *args: Any, **options: Any) -> Any:
        found = usual(self, *args, **options)
        return _labeled(found, self._rows, self._columns, self._fill if name == "astype" else 0)

    method.__name__, method.__qualname__, method.__doc__ = name, f"Pivot.{name}", usual.__doc__
    return method


# The operators of two handles go past NumPy's protocols.
for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor"):
    setattr(Pivot, f"__{_name}__", _aligned(f"__{_name}__"))
    setattr(Pivot, f"__i{_name}__", _aligned(f"__i{_name}__"))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Pivot, f"__{_name}__", _aligned(f"__{_name}__"))
for _name in ("astype", "prune", "eliminate_zeros", "select", "pattern"):
    setattr(Pivot, _name, _same_places(_name))


def with_nan(cells: Table, names: Sequence[str], values: str) -> Table:
    """Return results of pairs without the keys, of columns, all of whose results are missing.

    The others are kept if they are missing, in a column of floats with NaN; without such, whole numbers are
    whole numbers.
    """
    is_missing: Any = cells._missing(values)
    if is_missing is None or not len(cells) or not bool(is_missing.any()):
        return cells.dropna()
    keep: Any = is_missing == is_missing
    for name in names:
        key = keyed(cells, [name])
        keep = keep & (key.groups.sum((~is_missing).astype(np.int64)) > 0)[key.numbers]
    return cells._rows(keep) if bool((is_missing & keep).any()) else cells.dropna()
