"""What work costs: a model of measured times by kind of operation and worker."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import mul

import numpy as np

from matnb.balance.situation import Floats, Integers

MOST_POINTS = 256  # of one kind: a worker with so many rows and entries; the oldest is forgotten
MOST_KINDS = 4  # a fit takes some milliseconds for each
NEWEST = 5  # samples of a point that count
NUM_ROUNDS = 16
SETTLED = 1e-3  # the model, when no residual changes by more
NEARLY = 1e-3  # residuals below count alike, so that weights stay finite and rounds are few
UNKNOWN_SPREAD = (
    0.3  # of a block's seconds about the model, where nothing tells it: how rows lie matters as much
)
LEAST_RUNS = 3  # of a worker's blocks: any one may have taken thirty times as long as the next will
USUAL_SPREAD = 0.5  # of the workers' factors, as logarithms, before anything is measured
# What leads to one factor or another where samples cannot tell them apart: entries first, a constant last.
RIDGE = np.diag([1e-11, 1e-9, 1e-7])


@dataclass(frozen=True)
class Sample:
    """What an operation took for one block.

    Attributes
    ----------
    kind
        Of operation.
    worker
        Which did it.
    rows, entries
        Of the block.
    seconds
        Of one run, the mean over ``num_runs``.
    num_runs
        Runs that were measured.
    """

    kind: str
    worker: int
    rows: int
    entries: int
    seconds: float
    num_runs: int = 1


@dataclass(frozen=True)
class KindCost:
    """What a kind of operation costs on a usual worker: none of the numbers is negative."""

    entry_seconds: float
    row_seconds: float
    constant_seconds: float

    def seconds(self, rows: float, entries: float) -> float:
        """Return what one run for a block should take."""
        return self.entry_seconds * entries + self.row_seconds * rows + self.constant_seconds


@dataclass(frozen=True)
class Fit:
    """The model as the samples have it: seconds = (a entries + b rows + c) / speed.

    Attributes
    ----------
    kinds
        a, b and c for each kind of operation.
    speeds
        For each worker with samples; 1.0 is usual, 0.5 takes twice as long. What few samples say counts
        less, and a difference that their spread explains is none.
    error
        Relative: how far half of the samples are from the model, as a standard deviation; at least 0.3 with
        too few samples to tell, infinite with none.
    """

    kinds: Mapping[str, KindCost]
    speeds: Mapping[int, float]
    error: float

    @property
    def entry_seconds(self) -> float:
        """What an entry costs when each kind runs once."""
        return sum(cost.entry_seconds for cost in self.kinds.values())

    @property
    def row_seconds(self) -> float:
        """What a row costs when each kind runs once."""
        return sum(cost.row_seconds for cost in self.kinds.values())


class LoadModel:
    """Fits seconds = (a entries + b rows + c) / speed to the newest samples.

    Of each worker and size of block the lower median of the last samples counts, so that a first run or one
    that was interrupted does not; the model has the least absolute deviations from these, relative to them
    (by reweighted least squares), so that points far off do not matter either.
    """

    def __init__(self) -> None:
        self._points: dict[str, dict[tuple[int, int, int], deque[float]]] = {}
        self._fit: Fit | None = None

    def add(self, samples: Iterable[Sample]) -> None:
        """Take samples; those without a run or of no seconds tell nothing."""
        for sample in samples:
            if sample.num_runs < 1 or not 0 < sample.seconds < math.inf:
                continue
            points = self._points.pop(sample.kind, {})
            self._points[sample.kind] = points
            place = (sample.worker, sample.rows, sample.entries)
            newest = points.pop(place, None)
            points[place] = newest = deque(maxlen=NEWEST) if newest is None else newest
            newest.append(sample.seconds)
            if len(points) > MOST_POINTS:
                del points[next(iter(points))]
            if len(self._points) > MOST_KINDS:
                del self._points[next(iter(self._points))]
            self._fit = None

    def fit(self) -> Fit:
        """Return the model; the same until samples are added."""
        if self._fit is None:
            self._fit = self._fitted()
        return self._fit

    def _fitted(self) -> Fit:
        if not self._points:
            return Fit({}, {}, math.inf)
        names = sorted(self._points)
        kinds, places, seconds, runs = [], [], [], []
        for number, name in enumerate(names):
            for place, newest in sorted(self._points[name].items()):
                kinds.append(number)
                places.append(place)
                seconds.append(sorted(newest)[(len(newest) - 1) // 2])
                runs.append(len(newest))
        points = _Points(np.array(kinds), np.array(places, np.int64), np.array(seconds), np.array(runs))
        costs, slowness, residuals = points.fitted(len(names))
        return Fit(
            {name: KindCost(*map(float, cost)) for name, cost in zip(names, costs, strict=True)},
            points.speeds(slowness, residuals),
            points.error(len(names), residuals),
        )


class _Points:
    """Seconds of blocks, with the parts of the model's sum beside them."""

    def __init__(self, kinds: Integers, places: Integers, seconds: Floats, runs: Integers) -> None:
        self._numbers, self._workers = np.unique(places[:, 0], return_inverse=True)
        self._kinds = [np.flatnonzero(kinds == kind) for kind in range(int(kinds.max()) + 1)]
        self._counts = np.bincount(self._workers)
        self._runs = np.bincount(self._workers, weights=runs)
        self._middles = np.cumsum(self._counts) - 1 - self._counts // 2
        self._parts = np.column_stack([places[:, 2], places[:, 1], np.ones(len(places))]).astype(np.float64)
        self._seconds = seconds

    def fitted(self, num_kinds: int) -> tuple[Floats, Floats, Floats]:
        """Return a, b and c of each kind, the logarithms of the workers' factors, the points' residuals."""
        costs, slowness = np.zeros((num_kinds, 3)), np.zeros(len(self._numbers))
        # At first the seconds are weights, or blocks that are far too fast, alone, would have the say.
        weights, logarithms = self._seconds / self._seconds.mean(), np.log(self._seconds)
        offsets = np.zeros(len(self._seconds))
        residuals, nearly = np.full(len(offsets), np.inf), UNKNOWN_SPREAD
        for _ in range(NUM_ROUNDS):
            relative = self._parts * np.exp(slowness[self._workers] - logarithms)[:, None]
            for kind, members in enumerate(self._kinds):
                costs[kind] = _nonnegative(relative[members], weights[members])
                offsets[members] = logarithms[members] - np.log(self._parts[members] @ costs[kind] + 1e-300)
            slowness = offsets[np.lexsort((offsets, self._workers))[self._middles]]
            slowness -= np.sort(slowness)[(len(slowness) - 1) // 2]
            before, residuals = residuals, offsets - slowness[self._workers]
            if np.abs(residuals - before).max() < SETTLED:
                break
            # Squares of model / seconds - 1, weighted so that they come to |log(model / seconds)|.
            # Small residuals count alike, at first all usual ones, or the model would stay where it hits one.
            weights = 1 / np.maximum(np.abs(residuals), nearly)
            weights *= (residuals**2 + nearly**2) / (np.expm1(-residuals) ** 2 + nearly**2)
            nearly = max(NEARLY, nearly / 4)
        return costs, slowness, residuals

    def speeds(self, slowness: Floats, residuals: Floats) -> dict[int, float]:
        """Return the workers' speeds as far as the residuals let one believe in them."""
        spare = max(0, len(residuals) - len(slowness))
        squares = float(np.sum(np.minimum(np.abs(residuals), UNKNOWN_SPREAD) ** 2))
        variance = (squares + 2 * UNKNOWN_SPREAD**2) / (spare + 2)
        speeds = {}
        for number, runs, count, factor in zip(
            self._numbers, self._runs, self._counts, slowness, strict=True
        ):
            own = variance / count
            believed = factor * USUAL_SPREAD**2 / (USUAL_SPREAD**2 + own)
            is_sure = runs >= LEAST_RUNS and abs(factor) > 2 * math.sqrt(own)
            speeds[int(number)] = math.exp(-believed) if is_sure else 1.0
        return speeds

    def error(self, num_kinds: int, residuals: Floats) -> float:
        """Return the residuals' standard deviation as their median has it."""
        error = 1.4826 * float(np.median(np.abs(residuals)))
        return error if len(residuals) > 3 * num_kinds + len(self._numbers) else max(error, UNKNOWN_SPREAD)


def _nonnegative(parts: Floats, weights: Floats) -> Floats:
    """Return the a, b, c >= 0 for which ``parts @ (a, b, c)`` is nearest to 1: one of eight cases is best."""
    scales = np.maximum(np.sqrt(weights @ parts**2), 1e-300)
    scaled = parts / scales
    gram = ((scaled * weights[:, None]).T @ scaled + RIDGE).tolist()
    aims = (weights @ scaled).tolist()
    best, least = np.zeros(3), 0.0
    for used in _CASES:
        found = _solved(gram, aims, used)
        loss = -sum(aims[one] * value for one, value in zip(used, found, strict=True))  # what depends on it
        if min(found) >= 0 and loss < least:
            best, least = np.zeros(3), loss
            best[list(used)] = found
            if len(used) == 3:
                break
    return best / scales


_CASES = ((0, 1, 2), (0, 1), (0, 2), (0,), (1, 2), (1,), (2,))


def _solved(gram: Sequence[Sequence[float]], aims: Sequence[float], used: Sequence[int]) -> list[float]:
    # By Cholesky's factors, in Python's numbers: for three unknowns numpy.linalg takes forty times as long.
    factor: list[list[float]] = []
    forward: list[float] = []
    for one in used:
        row: list[float] = []
        for before, other in zip(factor, used, strict=False):
            row.append((gram[one][other] - sum(map(mul, row, before))) / before[-1])
        row.append(math.sqrt(max(gram[one][one] - sum(value * value for value in row), 1e-300)))
        forward.append((aims[one] - sum(map(mul, row, forward))) / row[-1])
        factor.append(row)
    found: list[float] = [0.0] * len(used)
    for place in reversed(range(len(used))):
        later = sum(factor[below][place] * found[below] for below in range(place + 1, len(used)))
        found[place] = (forward[place] - later) / factor[place][place]
    return found
