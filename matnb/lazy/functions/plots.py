"""Pictures of large arrays by matplotlib: what is drawn is found on the workers, and only that comes here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from matnb.errors import DTypeError, ShapeError
from matnb.lazy.array import handle_of
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.functions.mapping import reduce_blocks
from matnb.pictures.plots import axes_or_current, draw_density, draw_envelope

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_CELLS = 256  # along each axis: more than a picture of usual size has room for
_MOST_PIXELS = 2000


def spy(A: ArrayLike, ax: Axes | None = None) -> Axes:
    """Plot the sparsity pattern of a matrix as a grid: the darker a cell, the denser its entries.

    Entries are counted on the workers and only the counts are brought here, so the matrix may have any size.
    Darkness is proportional to the logarithm of the density.

    Parameters
    ----------
    A
        Of shape (m, n) and any dtype. In a sparse matrix stored entries count, including zeros; in a dense
        one nonzero elements.
    ax
        The axes to draw in; by default pyplot's current axes.

    Returns
    -------
    matplotlib.axes.Axes
        With an image of at most 256 x 256 cells; rows go down, as in matplotlib's own ``spy``.

    Raises
    ------
    ShapeError
        For an array that does not have two axes, or has an axis of length 0.

    Examples
    --------
    >>> import matnb as mn, scipy.sparse as sp
    >>> from matplotlib.figure import Figure
    >>> A = mn.asarray(sp.eye_array(1000, format="csr"))
    >>> ax = mn.spy(A, ax=Figure().subplots())
    >>> ax.images[0].get_array().shape
    (256, 256)
    """
    matrix = handle_of(A)
    if matrix.ndim != 2 or not matrix.size:
        raise ShapeError(f"spy: an array of shape {matrix.shape}; give a matrix with rows and columns")
    num_rows, num_columns = matrix.shape
    is_sparse = matrix.sparse
    cells = min(num_rows, _MOST_CELLS), min(num_columns, _MOST_CELLS)

    def counted(slab: Any, *, place: Any) -> Any:
        rows, columns = slab.tocoo().coords if is_sparse else slab.nonzero()
        down = (rows.astype(np.int64) + place[0].start) * cells[0] // num_rows
        across = columns.astype(np.int64) * cells[1] // num_columns
        return np.bincount(down * cells[1] + across, minlength=cells[0] * cells[1])

    pattern: Any = matrix.pattern() if is_sparse else matrix != 0
    counts: Any = reduce_blocks(
        counted, pattern, combine=np.add, shape=(cells[0] * cells[1],), dtype=np.int64
    )
    sizes = [
        np.diff(_starts(length, count), append=length)
        for length, count in zip(matrix.shape, cells, strict=True)
    ]
    found = np.asarray(counts.compute()).reshape(cells)
    return draw_density(axes_or_current(ax), found, np.outer(*sizes), matrix.shape)


def plot(x: ArrayLike, ax: Axes | None = None) -> Axes:
    """Plot a long series as a line, through the minimum and the maximum of the elements in each pixel.

    These are found on the workers, and only they are brought here; the plot looks like a line through all
    points. A series of at most 4000 elements is drawn point by point.

    Parameters
    ----------
    x
        Of shape (n,), or (n, k) for k lines; dense or sparse, real. NaN are ignored, unless a pixel has
        nothing else. Of a table its columns of numbers are drawn, over a column of times, or text as bars. Of
        a square sparse matrix, as of a graph, the pattern is drawn as by :func:`spy`.
    ax
        The axes to draw in; by default pyplot's current axes.

    Returns
    -------
    matplotlib.axes.Axes
        With one line per series, of at most 4000 points, float64.

    Raises
    ------
    ShapeError
        For an empty array, or one with more than two axes.
    DTypeError
        For complex numbers.

    Examples
    --------
    >>> import matnb as mn, numpy as np
    >>> from matplotlib.figure import Figure
    >>> ax = mn.plot(np.sin(mn.arange(100_000.0)), ax=Figure().subplots())
    >>> ax.lines[0].get_ydata().shape
    (4000,)
    """
    if (drawn := getattr(x, "__matnb_plot__", None)) is not None:
        return drawn(axes_or_current(ax))  # type: ignore[no-any-return]  # axes
    series = handle_of(x)
    if series.ndim not in (1, 2) or not series.size:
        raise ShapeError(f"plot: an array of shape {series.shape}; give one of shape (n,) or (n, k)")
    if series.dtype.kind == "c":
        raise DTypeError("plot: complex numbers; give x.real, x.imag or abs(x)")
    length, is_sparse = series.shape[0], series.sparse
    if is_sparse and series.shape == (length, length) and length > 1:
        return spy(series, ax)
    starts = _starts(length, min(length, _MOST_PIXELS))
    if length <= 2 * _MOST_PIXELS:
        axes = axes_or_current(ax)
        axes.plot(np.asarray(series), linewidth=0.8)
        axes.set_xlabel("index")
        return axes

    def extremes(slab: Any, *, place: Any) -> Any:
        values = (slab.toarray() if is_sparse else slab).astype(np.float64)
        rows = np.arange(place[0].start, place[0].stop)
        pixels = np.searchsorted(starts, rows, side="right") - 1
        first = np.flatnonzero(np.diff(pixels, prepend=-1))
        found = np.full((2, starts.size, *values.shape[1:]), np.nan)
        found[0][pixels[first]] = np.fmin.reduceat(values, first, axis=0)
        found[1][pixels[first]] = np.fmax.reduceat(values, first, axis=0)
        return found

    def wider(one: Any, other: Any) -> Any:
        return np.stack([np.fmin(one[0], other[0]), np.fmax(one[1], other[1])])

    shape = (2, starts.size, *series.shape[1:])
    found: Any = reduce_blocks(extremes, series, combine=wider, shape=shape, dtype=np.float64)
    least, most = np.asarray(found.compute())
    return draw_envelope(axes_or_current(ax), starts, least, most, length)


def _starts(length: int, count: int) -> np.ndarray:
    # Where each of some nearly equal parts begins: those whose place times the count, over the length, is it.
    return -(-np.arange(count, dtype=np.int64) * length // count)
