"""Sources made of sources: one after the other, or blended in drawn turns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from matnb.errors import DTypeError, OptionError
from matnb.sources.batches import BatchSource
from matnb.sources.rows import Demand, RowPart, Series, cut_anew
from matnb.sources.whole_numbers import whole


def _of_source(number: int, part: RowPart) -> RowPart:
    return replace(part, where=f"source {number} ({part.where})")


class _SeriesChain(Series):
    """All rows of one series, then those of the next."""

    def __init__(self, series: Sequence[Series]) -> None:
        self._series = tuple(series)

    def __repr__(self) -> str:
        return ", then ".join(map(repr, self._series))

    @property
    def num_rows(self) -> int | None:
        counts = [one.num_rows for one in self._series]
        return None if None in counts else sum(one for one in counts if one is not None)

    def parts(self, order: np.random.Generator | None, wanted: Demand) -> Iterator[RowPart]:
        numbers = np.arange(len(self._series))
        for number in numbers if order is None else order.permutation(numbers):
            yield from (_of_source(int(number), part) for part in self._series[number].parts(order, wanted))


class _SeriesBlend(_SeriesChain):
    """Rows of several series in turns of so many, drawn by their shares until all have ended."""

    def __init__(self, series: Sequence[Series], shares: Sequence[float], size: int, seed: int) -> None:
        super().__init__(series)
        self._shares, self._size, self._seed = np.asarray(shares), size, seed

    def __repr__(self) -> str:
        return " blended with ".join(map(repr, self._series))

    def parts(self, order: np.random.Generator | None, wanted: Demand) -> Iterator[RowPart]:
        draws = np.random.default_rng(self._seed) if order is None else order
        turns = [cut_anew(one.parts(order, Demand()), self._size, Demand()) for one in self._series]
        left = self._shares.astype(np.float64)
        while left.any():
            number = int(draws.choice(len(turns), p=left / left.sum()))
            part = next(turns[number], None)
            if part is None:
                left[number] = 0
            else:
                yield _of_source(number, part)


def joined(*sources: BatchSource) -> BatchSource:
    """Return the concatenation of several sources.

    Parameters
    ----------
    sources
        Sources before any ``map``, ``take``, ``repeat`` or ``holdout``. Batch size, order and seed are those
        of the first.

    Raises
    ------
    OptionError
        For a source that was changed before, or no source.
    ShapeError, DTypeError
        At the batch where rows have another width or format.

    Examples
    --------
    >>> import numpy as np, matnb as mn
    >>> one, two = (mn.sources.memory(np.full((3, 1), k), batch_size=2) for k in range(2))
    >>> [batch.X.compute().ravel().tolist() for batch in mn.sources.joined(one, two)]
    [[0, 0], [0, 1], [1, 1]]
    """
    first, series = _checked(sources, "joined")
    return BatchSource(_SeriesChain(series), first.batch_size, first.seed)


def blended(*sources: BatchSource, shares: Sequence[float] | None = None, seed: int = 0) -> BatchSource:
    """Return a source that interleaves the batches of several sources at random.

    Parameters
    ----------
    sources
        As for :func:`joined`.
    shares
        Relative frequency of each source until it is exhausted; by default equal.
    seed
        Seed of the interleaving, which is the same in each pass unless the first source is shuffled.

    Raises
    ------
    OptionError
        For shares that are not positive, or not one per source.

    Examples
    --------
    >>> import numpy as np, matnb as mn
    >>> one, two = (mn.sources.memory(np.full((4, 1), k), batch_size=2) for k in range(2))
    >>> sorted(batch.X.compute().ravel().tolist() for batch in mn.sources.blended(one, two))
    [[0, 0], [0, 0], [1, 1], [1, 1]]
    """
    first, series = _checked(sources, "blended")
    weights = [1.0] * len(sources) if shares is None else [float(one) for one in shares]
    if len(weights) != len(sources) or not all(0 < one < np.inf for one in weights):
        raise OptionError(f"shares={shares!r}: give a positive number for each of {len(sources)} sources")
    turns = _SeriesBlend(series, weights, first.batch_size, whole(seed, "seed", least=0))
    return BatchSource(turns, first.batch_size, first.seed)


def _checked(sources: Sequence[BatchSource], name: str) -> tuple[BatchSource, list[Series]]:
    if not sources:
        raise OptionError(f"mn.sources.{name}: give at least one source")
    for one in sources:
        if not isinstance(one, BatchSource):
            raise DTypeError(f"mn.sources.{name}: {one!r} is not a source")
        if one.maps or one.passes != 1 or one.limit is not None or one.every is not None:
            raise OptionError(
                f"mn.sources.{name}: apply map, take, repeat and holdout after it, not to {one!r}"
            )
    return sources[0], [one.series for one in sources]
