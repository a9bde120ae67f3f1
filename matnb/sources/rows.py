"""Rows as sources give them, a part at a time, and how parts are cut, joined and cut anew."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from matnb.errors import DTypeError, OptionError, ShapeError
from matnb.lazy.array import DistArray
from matnb.lazy.limits import check_incoming

Values: TypeAlias = Any  # a NumPy array or SciPy's CSR in this process, or a DistArray: all cut by slices
Places: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RowPart:
    """Some rows that follow each other.

    Attributes
    ----------
    X, y
        The rows, and the target of each, if there are any.
    first
        The number of the first among its kind, by which rows are held out.
    where
        What they are called in messages: the file, or the call.
    """

    X: Values
    y: Values | None
    first: int = 0
    where: str = ""

    def __len__(self) -> int:
        return int(self.X.shape[0])

    @property
    def row_bytes(self) -> int:
        """About what a row takes."""
        X = self.X
        if isinstance(X, sp.csr_array):
            total = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
        elif isinstance(X, DistArray) and X.sparse:
            return 1
        else:
            total = X.size * X.dtype.itemsize
        return max(1, int(total) // max(1, len(self)))

    def cut(self, start: int, stop: int) -> RowPart:
        """Return the rows from ``start`` to ``stop``."""
        if start == 0 and stop >= len(self):
            return self
        y = None if self.y is None else self.y[start:stop]
        return RowPart(self.X[start:stop], y, self.first + start, self.where)

    def taken(self, places: Places) -> RowPart:
        """Return the rows at some places, in their order."""
        if isinstance(self.X, DistArray) and len(places) == len(self) == 0:
            return self
        y = None if self.y is None else self.y[places]
        return RowPart(self.X[places], y, self.first, self.where)

    def outside(self, every: int, held: bool) -> RowPart:
        """Return the rows whose numbers are the last of each ``every``, or the others."""
        is_last = (self.first + np.arange(len(self))) % every == every - 1
        return self.taken(np.flatnonzero(is_last == held))


def part_of(given: object, first: int, where: str) -> RowPart:
    """Return what a user's function gave, X or a pair of X and y, as a part.

    Raises
    ------
    ShapeError
        When X has not two axes, or y another number of rows.
    DTypeError
        For anything other than numbers.
    """
    X, y = given if isinstance(given, tuple) and len(given) == 2 else (given, None)
    rows = X if isinstance(X, DistArray) else values_of(X, where)
    check_incoming(y)
    targets = y if y is None or isinstance(y, DistArray) else np.asarray(y)
    if rows.ndim != 2:
        raise ShapeError(f"{where}: X has shape {rows.shape}; give a matrix with rows and features")
    if targets is not None and (not targets.ndim or targets.shape[0] != rows.shape[0]):
        raise ShapeError(f"{where}: y of shape {targets.shape} for X of shape {rows.shape}")
    for name, one in (("X", rows), ("y", targets)):
        if one is not None and one.dtype.kind not in "biufc":
            raise DTypeError(f"{where}: {name} has dtype {one.dtype}; give numbers")
    return RowPart(rows, targets, first, where)


def values_of(X: object, where: str) -> Values:
    """Return a user's matrix in this process: CSR where it is sparse, else NumPy's."""
    if sp.issparse(X):
        rows: Values = sp.csr_array(X)  # type: ignore[call-overload]  # whatever is sparse
        rows.sum_duplicates()
        return rows
    check_incoming(X)
    try:
        return np.asarray(X)
    except ValueError as error:
        raise ShapeError(f"{where}: not a matrix: {error}") from None


def joined(parts: Sequence[RowPart]) -> RowPart:
    """Return the rows of several parts as one."""
    if len(parts) == 1:
        return parts[0]
    for one in parts[1:]:
        check_alike(parts[0], one)
    Xs, ys = [one.X for one in parts], [one.y for one in parts]
    is_sparse = all(isinstance(X, sp.csr_array) for X in Xs)
    X: Values = sp.csr_array(sp.vstack(Xs, format="csr")) if is_sparse else np.concatenate(Xs)
    y = None if ys[0] is None else np.concatenate([one for one in ys if one is not None])
    return RowPart(X, y, parts[0].first, parts[0].where)


def check_alike(one: RowPart, other: RowPart) -> None:
    """Check that rows of one part can follow those of another.

    Raises
    ------
    ShapeError
        When they have another width, or only one of them has targets.
    DTypeError
        When one is sparse and the other is not, or their floats have another dtype.
    """
    if one.X.shape[1] != other.X.shape[1]:
        raise ShapeError(
            f"{other.where} has {other.X.shape[1]} columns where {one.where} has {one.X.shape[1]}: "
            "all rows of a source have one width"
        )
    targets = [0 if part.y is None else int(np.prod(part.y.shape[1:])) for part in (one, other)]
    if targets[0] != targets[1]:
        raise ShapeError(
            f"{other.where} has {targets[1]} targets a row where {one.where} has {targets[0]}: "
            "all rows of a source have as many"
        )
    if sp.issparse(one.X) != sp.issparse(other.X):
        kinds = ["sparse" if sp.issparse(part.X) else "dense" for part in (one, other)]
        raise DTypeError(f"{other.where} is {kinds[1]} where {one.where} is {kinds[0]}")
    if one.X.dtype != other.X.dtype and {one.X.dtype.kind, other.X.dtype.kind} <= set("fc"):
        raise DTypeError(
            f"{other.where} has X of {other.X.dtype} where {one.where} has {one.X.dtype}: "
            "all rows of a source have one dtype"
        )


def check_finite(part: RowPart) -> None:
    """Check that no number of a part is NaN or infinite, where it lies in this process.

    Raises
    ------
    OptionError
        With the row and column of the first one.
    """
    for name, one in (("X", part.X), ("y", part.y)):
        if one is None or isinstance(one, DistArray):
            continue
        values = one.data if isinstance(one, sp.csr_array) else one
        with np.errstate(over="ignore", invalid="ignore"):
            if values.dtype.kind not in "fc" or np.isfinite(values.sum()):
                continue
        wrong = np.flatnonzero(~np.isfinite(values.ravel()))
        if not wrong.size:
            continue
        place = int(wrong[0])
        what = "NaN" if np.isnan(values.ravel()[place]) else "infinite"
        if isinstance(one, sp.csr_array):
            row, column = int(np.searchsorted(one.indptr, place, "right")) - 1, int(one.indices[place])
        else:
            width = max(1, values[0].size)
            row, column = place // width, place % width
        column_text = f", column {column}," if one.ndim > 1 else ""
        raise OptionError(
            f"{part.where}: row {part.first + row}{column_text} of {name} is {what}, counted from 0; "
            "fill or leave out such rows first"
        )


@dataclass
class Demand:
    """How many rows the reader wants next; None if unknown. A part may have another number of rows."""

    rows: int | None = None


def cut_anew(parts: Iterable[RowPart], size: int, wanted: Demand) -> Iterator[RowPart]:
    """Yield the same rows in parts of ``size``, and a shorter last one; joins what comes in others."""
    waiting: list[RowPart] = []
    count, wanted.rows = 0, size
    for part in parts:
        if waiting:
            check_alike(waiting[0], part)
        start = 0
        while len(part) - start >= size - count:
            stop = start + size - count
            yield joined([*waiting, part.cut(start, stop)])
            waiting, count, start = [], 0, stop
        if start < len(part):
            waiting.append(part.cut(start, len(part)))
            count += len(waiting[-1])
        wanted.rows = size - count
    if waiting:
        yield joined(waiting)


class Series(ABC):
    """Where a source's rows come from: the same each time it is gone through.

    Attributes
    ----------
    is_here
        Whether the rows are there already, so that nothing has to be read ahead; they are one part then.
    """

    is_here = False

    @abstractmethod
    def parts(self, order: np.random.Generator | None, wanted: Demand) -> Iterator[RowPart]:
        """Yield the rows in parts of any number; files and the like in a drawn order, if one is given."""

    @abstractmethod
    def __repr__(self) -> str: ...

    @property
    def num_rows(self) -> int | None:
        """How many rows there are, where that is known without reading."""
        return None
