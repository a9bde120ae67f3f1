"""Sources of arrays that are there, and of what a user's function returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from matnb.errors import OptionError, ShapeError
from matnb.lazy.array import DistArray
from matnb.lazy.creation import asarray
from matnb.sources.batches import BatchSource
from matnb.sources.rows import Demand, RowPart, Series, check_finite, part_of
from matnb.sources.whole_numbers import whole


class _Here(Series):
    """Rows that are on the workers."""

    is_here = True

    def __init__(self, X: DistArray, y: DistArray | None) -> None:
        self._part = RowPart(X, y, 0, "mn.sources.memory")

    def __repr__(self) -> str:
        return f"{len(self._part)} rows in memory"

    @property
    def num_rows(self) -> int | None:
        return len(self._part)

    def parts(self, order: np.random.Generator | None, wanted: Demand) -> Iterator[RowPart]:
        yield self._part


def memory(
    X: object, y: object = None, *, batch_size: int, shuffle: bool = False, seed: int = 0
) -> BatchSource:
    """Return a source of the rows of an array.

    Parameters
    ----------
    X
        n x p: a DistArray, or what :func:`matnb.asarray` takes.
    y
        The target of each row, of shape (n,) or n x targets.
    batch_size
        Rows per batch; the last one may have fewer.
    shuffle
        Whether to shuffle the rows in each pass; the order depends only on the seed and the number of the
        pass.
    seed
        A nonnegative integer.

    Raises
    ------
    ShapeError
        If X does not have two axes, or y has another length.
    OptionError
        For NaN or infinity in data given from this process, and for an empty batch.

    Examples
    --------
    >>> import numpy as np, matnb as mn
    >>> source = mn.sources.memory(np.arange(10.0).reshape(5, 2), y=np.arange(5), batch_size=2)
    >>> [(batch.start, batch.y.compute().tolist()) for batch in source]
    [(0, [0, 1]), (2, [2, 3]), (4, [4])]
    """
    size = whole(batch_size, "batch_size")
    part = part_of((X, y), 0, "mn.sources.memory")
    check_finite(part)
    rows = asarray(part.X)
    return BatchSource(_Here(rows, None if y is None else asarray(part.y)), size, drawn_from(shuffle, seed))


def drawn_from(shuffle: bool, seed: int) -> int | None:
    """Return the seed of an order, or None where rows keep theirs."""
    return whole(seed, "seed", least=0) if shuffle else None


class _Calls(Series):
    """Rows that a function of the user's returns, call by call."""

    def __init__(self, fn: Callable[[int], object], num_batches: int) -> None:
        self._fn, self._num_batches = fn, num_batches

    def __repr__(self) -> str:
        return f"{self._num_batches} calls of {getattr(self._fn, '__name__', 'a function')}"

    def parts(self, order: np.random.Generator | None, wanted: Demand) -> Iterator[RowPart]:
        numbers = np.arange(self._num_batches)
        for number in numbers if order is None else order.permutation(numbers):
            try:
                made = self._fn(int(number))
            except Exception as error:  # whatever it is, it says where
                name = getattr(self._fn, "__name__", "a function")
                error.add_note(f"in call {number} of {name}, of a source")
                raise
            part = part_of(made, int(number), f"call {number}")
            if isinstance(part.X, DistArray) or isinstance(part.y, DistArray):
                raise OptionError(f"call {number} returns a DistArray: return NumPy's or SciPy's arrays")
            check_finite(RowPart(part.X, part.y, 0, part.where))
            # A function may fill the same array at each call.
            yield RowPart(part.X.copy(), None if part.y is None else part.y.copy(), part.first, part.where)


def calls(
    fn: Callable[[int], object],
    num_batches: int,
    *,
    batch_size: int | None = None,
    shuffle: bool = False,
    seed: int = 0,
) -> BatchSource:
    """Return a source of the rows that a function returns; a thread in this process calls it ahead of time.

    Parameters
    ----------
    fn
        ``fn(k)``, for k = 0, 1, ..., returns X, or X and y, as NumPy or SciPy arrays. It should always return
        the same for the same k, else passes differ. Rows of consecutive calls are concatenated.
    num_batches
        Number of calls per pass.
    batch_size
        Rows per batch; by default as many as the first call returns.
    shuffle, seed
        As in :func:`memory`: the calls are made in random order, and rows are shuffled within 64 batches.

    Raises
    ------
    ShapeError, DTypeError
        At the batch where the result is not rows, or has another width.
    OptionError
        There too, for NaN or infinity, and for DistArrays, which need not be read ahead.

    Examples
    --------
    >>> import numpy as np, matnb as mn
    >>> source = mn.sources.calls(lambda k: np.full((2, 1), k), 3)
    >>> [batch.X.compute().ravel().tolist() for batch in source]
    [[0, 0], [1, 1], [2, 2]]
    """
    series = _Calls(fn, whole(num_batches, "num_batches"))
    if batch_size is None:
        first = part_of(fn(0), 0, "call 0")
        if not len(first):
            raise ShapeError("the first call returns no rows: give batch_size=")
        batch_size = len(first)
    return BatchSource(series, batch_size, drawn_from(shuffle, seed))
