"""Values as NumPy writes them: of a large array those at its corners, of a sparse one the first entries."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from matnb.pictures.quantities import count_text

MOST_VALUES = 1000  # that are looked at: some kB, and NumPy's own threshold
_MOST_CHARACTERS = 12_000  # an array of as many floats takes no more
_CUT = "..."

Span = tuple[int, int]


@dataclass(frozen=True)
class Corners:
    """Which elements of a dense array are written out.

    Parameters
    ----------
    shape
        Of the array.
    spans
        For each axis one range, or two where what is between them is left out.
    is_cut
        Whether some are left out.
    """

    shape: tuple[int, ...]
    spans: tuple[tuple[Span, ...], ...]
    is_cut: bool

    @property
    def num_edge(self) -> int:
        """How many are written at each end of an axis."""
        return max((spans[0][1] for spans in self.spans if len(spans) > 1), default=1)

    def regions(self) -> list[tuple[tuple[Span, ...], tuple[slice, ...]]]:
        """Return each part of the array that is written, and where it is in :meth:`room`."""
        found = []
        for places in itertools.product(*(range(len(spans)) for spans in self.spans)):
            region = tuple(spans[place] for spans, place in zip(self.spans, places, strict=True))
            # The second range is behind one element that stands for all between.
            starts = [
                spans[0][1] + 1 if place else 0 for spans, place in zip(self.spans, places, strict=True)
            ]
            sizes = [stop - start for start, stop in region]
            into = tuple(slice(start, start + size) for start, size in zip(starts, sizes, strict=True))
            found.append((region, into))
        return found

    def room(self, dtype: np.dtype) -> np.ndarray:
        """Return an array for what is written, with one element more where an axis is cut."""
        return np.zeros(
            [sum(stop - start for start, stop in one) + len(one) - 1 for one in self.spans], dtype
        )


def corners(shape: Sequence[int]) -> Corners | None:
    """Return which elements of a dense array NumPy's options ask for; None where they are too many."""
    options = np.get_printoptions()
    shape = tuple(shape)
    if prod(shape) <= min(options["threshold"], MOST_VALUES):
        return Corners(shape, tuple(((0, length),) for length in shape), False)
    for num_edge in range(min(max(1, int(options["edgeitems"])), MOST_VALUES), 0, -1):
        if prod(min(length, 2 * num_edge) for length in shape) <= MOST_VALUES:
            spans = tuple(
                ((0, num_edge), (length - num_edge, length)) if length > 2 * num_edge else ((0, length),)
                for length in shape
            )
            return Corners(shape, spans, any(len(one) > 1 for one in spans))
    return None


def num_first_entries() -> int:
    """Return how many entries of a sparse array are written: as many as at both ends of an axis."""
    return 2 * min(max(1, int(np.get_printoptions()["edgeitems"])), MOST_VALUES // 2)


def corners_text(found: Corners, values: npt.NDArray[np.generic]) -> str:
    """Return elements as NumPy writes an array, with dots for what is left out.

    Parameters
    ----------
    found
        Which elements they are.
    values
        In the place that each has in ``found.room(dtype)``.
    """
    if found.is_cut:
        return _written(values, threshold=0, edgeitems=found.num_edge)
    return _written(values, threshold=values.size)


def entries_text(
    rows: npt.NDArray[np.integer],
    columns: npt.NDArray[np.integer],
    values: npt.NDArray[np.generic],
    num_entries: int | None,
) -> str:
    """Return a line for each of the first entries of a sparse array, and one for those that follow."""
    places = [f"({row}, {column})" for row, column in zip(rows.tolist(), columns.tolist(), strict=True)]
    wide = max(map(len, places), default=0)
    # A column: all are written alike.
    column = _written(values[:, None], threshold=values.size).splitlines() if values.size else []
    told = [line[2:].rstrip("]") for line in column]
    if len(told) != len(places):  # a user's formatter made other lines
        told = list(map(str, values.tolist()))
    lines = [f"{place:<{wide}}  {value}".rstrip() for place, value in zip(places, told, strict=True)]
    if num_entries is not None and num_entries > len(places):
        lines.append(f"{_CUT} {count_text(num_entries - len(places))} more")
    return _shortened("\n".join(lines))


def _written(values: npt.NDArray[np.generic], **options: int) -> str:
    if not values.ndim:  # all digits, as NumPy writes a scalar
        return str(values[()])
    formatters: tuple[dict[str, object] | None, ...] = (None, {})
    for formatter in formatters:  # a user's own, which may raise whatever it likes, or NumPy's
        try:
            return _shortened(np.array2string(values, formatter=formatter, **options))  # type: ignore[arg-type]  # see above
        except Exception:  # nothing that is shown may raise
            continue
    return ""


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}{_CUT}"
