"""What blocks take and how fast workers are, from their last reports, and a model of all measured times."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import mul
from statistics import median

import numpy as np

from matnb.balance.situation import Floats, Integers, Profile
from matnb.blocks.layout import Cuts

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


# What the blocks of some arrays take in an iteration, from their last reports.

WINDOW = 24  # reports of a worker that count while nothing changes
NUM_CHANGED = 2  # reports in a row that are off alike make a change
LEAST_CHANGE = 0.15  # as a logarithm
LEAST_DEVIATIONS = 3.5
LEAST_SHARE = 0.05  # of its worker's seconds; what a smaller block takes is no sign of a change
USUAL_NOISE = 0.1  # relative, between reports, before any is known; counts as two differences
PASSING_SECONDS = 0.2  # for so long other work on a machine may make a worker slow that is not
MEDIAN_ERROR = 1.25  # of a median over that of a mean
NOISE_WINDOW = 128
LEAST_SLOWER = 0.1  # as a logarithm, what a worker's speed changes by after a change of its seconds
LEAST_SLOWER_REPARTITIONED = 0.2  # the same where seconds are of other blocks than before, and so less sure


@dataclass(frozen=True)
class _Report:
    seconds: Mapping[int, float]  # of an iteration, by block
    other_seconds: float
    span_seconds: float  # of all iterations together

    @property
    def total(self) -> float:
        return sum(self.seconds.values())


class BlockLoads:
    """Follows the blocks of arrays that are cut alike.

    Of each block the median over its worker's last reports counts. When two reports in a row are off alike,
    the ones before are forgotten, so that a change is seen at once and a single slow iteration is not.

    How slow a worker is and how heavy its blocks are look the same. A change of all blocks of one worker
    between two reports is the worker's, as far as the others did not change alike. After a repartition it is
    expected that rows take what they took before, wherever they are now; where the blocks of a worker differ
    from that together, and not those of the others, it is the worker's too.

    Parameters
    ----------
    profile
        Where the entries are; a finer one may be set later.
    """

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self._cuts = Cuts((0,), ())
        self._reports: dict[int, deque[_Report]] = {}
        self._measured: dict[int, int] = {}
        # Between two reports of a worker, as a logarithm: of its sum, and of its blocks.
        self._differences: deque[float] = deque(maxlen=NOISE_WINDOW)
        self._block_differences: deque[float] = deque(maxlen=NOISE_WINDOW)
        self._speeds: dict[int, float] = {}
        self._supposed: dict[int, float] = {}
        self._expected: dict[int, float] = {}  # by block, what it takes on a usual worker
        self._changed: set[int] = (
            set()
        )  # workers whose blocks are expected to take what they took just before

    def begin(
        self, cuts: Cuts, entry_seconds: float, row_seconds: float, speeds: Mapping[int, float] | None = None
    ) -> None:
        """Start anew: with other cuts, or with the same in another loop.

        Parameters
        ----------
        cuts
            That hold from now on.
        entry_seconds, row_seconds
            By these the seconds of a block are spread over its rows.
        speeds
            As for :meth:`suppose`.
        """
        self.suppose(speeds or {})
        self._speeds = self.speeds(self._speeds.keys() | set(self._cuts.owners))
        works = None if cuts == self._cuts else self._works()
        self._expected = {}
        if works is not None:
            places = np.asarray(self._cuts.cuts)
            weights = self.profile.weights(places, entry_seconds, row_seconds)
            wanted = np.asarray(cuts.cuts)
            wanted_weights = self.profile.weights(wanted, entry_seconds, row_seconds)
            # Weights that stand still over a block of seconds would put all of them at one place.
            step = max(float(weights[-1]), 1e-200) * 1e-6 / max(1, int(places[-1]))
            before = np.interp(
                wanted_weights + wanted * step, weights + places * step, np.append(0.0, np.cumsum(works))
            )
            self._expected = dict(enumerate(np.diff(before).tolist()))
        self._cuts = cuts
        self._reports, self._measured, self._changed = {}, {}, set()

    def suppose(self, speeds: Mapping[int, float]) -> None:
        """Take how fast workers are, as a model of all samples has them, until their blocks tell it."""
        self._supposed = {**self._supposed, **speeds}

    def add(
        self,
        owner: int,
        iteration: int,
        num_iterations: int,
        seconds: Mapping[int, float],
        other_seconds: float = 0.0,
    ) -> None:
        """Take what a worker reported.

        Parameters
        ----------
        owner
            The worker.
        iteration
            How many are done.
        num_iterations
            Over how many of them the seconds are summed.
        seconds
            By block.
        other_seconds
            Of its other work.
        """
        if num_iterations < 1:
            return
        own = {block: value / num_iterations for block, value in seconds.items()}
        span_seconds = sum(seconds.values()) + other_seconds
        report = _Report(own, other_seconds / num_iterations, span_seconds)
        reports = self._reports.setdefault(owner, deque(maxlen=WINDOW))
        if reports and max(report.total, reports[-1].total) > 0:
            last = reports[-1].seconds
            apart = [own.get(block, 0.0) - last.get(block, 0.0) for block in own.keys() | last.keys()]
            totals = report.total, reports[-1].total
            self._block_differences.append(_difference(sum(map(abs, apart)), *totals))
            self._differences.append(_difference(abs(sum(apart)), *totals))
        reports.append(report)
        self._measured[owner] = self._measured.get(owner, 0) + num_iterations
        if self._has_changed(reports):
            self._forget(owner, reports)

    @property
    def num_iterations(self) -> int:
        """Iterations measured since the start, by the worker with the fewest reports."""
        return min((self._measured.get(owner, 0) for owner in self._cuts.owners), default=0)

    @property
    def num_counted(self) -> int:
        """Reports that count, since the beginning or the last change, of the worker with the fewest."""
        return min((len(self._reports.get(owner, ())) for owner in self._cuts.owners), default=0)

    def block_seconds(self) -> tuple[float, ...]:
        """Return what each block takes in an iteration; empty until every one was reported."""
        if not self._complete():
            return ()
        sums = [0.0] * self._cuts.num_blocks
        for reports in self._reports.values():
            for block, seconds in _medians(reports).items():
                sums[block] += seconds
        return tuple(sums)

    def error(self, threads: int = 2) -> float:
        """Return the relative standard error of a block's seconds, of the worker with the fewest reports.

        Parameters
        ----------
        threads
            Of each worker. With one, it is that of the sum of its blocks; with more, a block that takes
            longer matters although others take less.
        """
        every = [self._reports.get(owner, ()) for owner in set(self._cuts.owners)]
        num_reports = min(map(len, every), default=0)
        # Two reports after a change may both be of what passes soon, if they are of a short time.
        span_seconds = min((sum(one.span_seconds for one in reports) for reports in every), default=0.0)
        doubt = 1.5 if num_reports <= NUM_CHANGED and span_seconds < PASSING_SECONDS else 1.0
        return doubt * MEDIAN_ERROR * self._noise(threads > 1) / math.sqrt(max(1, num_reports))

    def speeds(self, workers: Iterable[int]) -> dict[int, float]:
        """Return how fast workers are, 1.0 being usual, and 1.0 where nothing tells it."""
        slower = {owner: self._slower(owner) for owner in self._reports}
        if slower and len(slower) == len(set(self._cuts.owners)):
            # What all have in common is the work's.
            least = min(slower.values(), key=abs)
            alike = all(value * least > 0 for value in slower.values())
            slower = {owner: value - least * alike for owner, value in slower.items()}
        return {
            worker: self._speed(worker) * math.exp(-self._believed(worker, slower.get(worker, 0.0)))
            for worker in sorted(workers)
        }

    def other_seconds(self) -> dict[int, float]:
        """Return the seconds of each worker's other work in an iteration."""
        return {
            owner: median(report.other_seconds for report in reports)
            for owner, reports in sorted(self._reports.items())
        }

    def loads(self) -> dict[int, float]:
        """Return the seconds of blocks in an iteration for each worker that reported."""
        return {owner: sum(_medians(reports).values()) for owner, reports in sorted(self._reports.items())}

    def _complete(self) -> bool:
        return self._cuts.num_blocks > 0 and all(
            block in self._reports[owner][-1].seconds if owner in self._reports else False
            for block, owner in enumerate(self._cuts.owners)
        )

    def _noise(self, by_block: bool) -> float:
        differences = self._block_differences if by_block else self._differences
        # Four fifths of the distances of two normal numbers are below 1.8 deviations. Single reports that are
        # far off do not count; where every third is, as on a busy machine, it does, unlike with the median.
        count = len(differences)
        found = sorted(differences)[4 * count // 5] / 1.6 if differences else 0.0
        # Few of them may be small by chance, as Student's t has it.
        return math.sqrt((count * found**2 + 2 * USUAL_NOISE**2) / (count + 2)) * (1 + 4 / (count + 2))

    def _has_changed(self, reports: Sequence[_Report]) -> bool:
        if len(reports) < NUM_CHANGED + 2:
            return False
        least = max(LEAST_CHANGE, LEAST_DEVIATIONS * self._noise(by_block=False))
        before, after = list(reports)[:-NUM_CHANGED], list(reports)[-NUM_CHANGED:]
        if _is_off([one.total for one in before], [one.total for one in after], least):
            return True
        least = max(LEAST_CHANGE, LEAST_DEVIATIONS * self._noise(by_block=True))
        heavy = LEAST_SHARE * after[-1].total
        return any(
            _is_off(
                [one.seconds.get(block, 0.0) for one in before],
                [one.seconds.get(block, 0.0) for one in after],
                least,
            )
            for block, value in after[-1].seconds.items()
            if value > heavy
        )

    def _forget(self, owner: int, reports: deque[_Report]) -> None:
        newest = [reports.pop() for _ in range(NUM_CHANGED)]
        # A block is expected to take what it took before, if its worker is as fast as it was taken to be.
        self._speeds[owner] = self.speeds([owner])[owner]
        for block, seconds in self._own(owner, reports).items():
            self._expected[block] = seconds * self._speeds[owner]
        self._changed.add(owner)
        reports.clear()
        reports.extend(reversed(newest))

    def _slower(self, owner: int) -> float:
        """Return the logarithm of how much longer a worker takes than its speed so far lets one expect."""
        ratios = []
        for block, seconds in self._own(owner, self._reports[owner]).items():
            expected = self._expected.get(block, 0.0) / self._speed(owner)
            if expected > 0 and seconds > 0:
                ratios.append((math.log(seconds / expected), expected))
        ratios.sort()
        half = sum(weight for _, weight in ratios) / 2
        for value, weight in ratios:
            half -= weight
            if half <= 0:
                return value
        return 0.0

    def _own(self, owner: int, reports: Sequence[_Report]) -> dict[int, float]:
        """Return the seconds of the blocks on which no other worker works."""
        shared = {
            block for other, theirs in self._reports.items() if other != owner for block in theirs[-1].seconds
        }
        return {block: seconds for block, seconds in _medians(reports).items() if block not in shared}

    def _speed(self, worker: int) -> float:
        return self._speeds.get(worker, self._supposed.get(worker, 1.0))

    def _believed(self, owner: int, slower: float) -> float:
        least = LEAST_SLOWER if owner in self._changed else LEAST_SLOWER_REPARTITIONED
        return slower if abs(slower) > least else 0.0

    def _works(self) -> list[float] | None:
        """Return what each block takes on a usual worker, as far as it is known of all."""
        seconds = self.block_seconds()
        if seconds:
            speeds = self.speeds(set(self._cuts.owners))
            return [value * speeds[owner] for value, owner in zip(seconds, self._cuts.owners, strict=True)]
        works = [self._expected.get(block, 0.0) for block in range(self._cuts.num_blocks)]
        return works if len(self._expected) == self._cuts.num_blocks > 0 else None


def _medians(reports: Sequence[_Report]) -> dict[int, float]:
    """Return each block's median, times what makes their sum the median of the sums.

    Where blocks are slow now and then, each for itself, the sum of medians is less than any sum was.
    """
    medians = {
        block: median(report.seconds.get(block, 0.0) for report in reports) for block in reports[-1].seconds
    }
    total = sum(medians.values())
    scale = median(report.total for report in reports) / total if total > 0 else 1.0
    return {block: seconds * scale for block, seconds in medians.items()}


def _difference(apart: float, one: float, other: float) -> float:
    """Return how far apart two sums of seconds are, as a logarithm: of sixteen times as long 2.8.

    As a share of the larger one it could not exceed 1, and where a busy machine lets either worker wait
    now and then for as long as twenty iterations take, half a dozen reports would seem to be enough to tell
    which is the slow one.
    """
    return math.log1p(apart / (min(one, other) or max(one, other)))


def _is_off(before: Sequence[float], after: Sequence[float], least: float) -> bool:
    usual = median(before)
    if usual <= 0 or min(after) <= 0:
        return usual <= 0 < min(after)
    changes = [math.log(value / usual) for value in after]
    return min(changes) > least or max(changes) < -least
