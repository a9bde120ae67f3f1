"""What the load monitor shows: facts of workers, the words for their work, and rows of finite numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from matnb.events import BatchSpan
from matnb.pictures.quantities import bytes_text, count_text, plural_text, seconds_text
from matnb.pictures.summary import batches_text
from matnb.program.kinds import OTHER, shown_kind


@dataclass(frozen=True)
class WorkerFacts:
    """One worker.

    Attributes
    ----------
    number
        Of the worker.
    busy
        For each kind of work the share of the last seconds that its threads were in such kernels, 0.0 to 1.0
        over all threads.
    num_queued, num_running
        Tasks that wait and run.
    memory_bytes, limit_bytes
        In use, and at most; a limit of 0 is none.
    received_bytes, sent_bytes
        From and to other workers, a second, over the last seconds.
    history
        Its busy share over time, oldest first, one number for each step of ``MonitorFacts.step_seconds``.
    is_lost
        Whether it was killed or left.
    """

    number: int
    busy: Mapping[str, float] = field(default_factory=dict)
    num_queued: int = 0
    num_running: int = 0
    memory_bytes: int = 0
    limit_bytes: int = 0
    received_bytes: float = 0.0
    sent_bytes: float = 0.0
    history: tuple[float, ...] = ()
    is_lost: bool = False


@dataclass(frozen=True)
class BatchProgress:
    """How far a learner is, or a loop over a source.

    Attributes
    ----------
    span
        The batches that its loop goes through, or its last one went through.
    iterations
        Batches of these that are done.
    seconds
        Since the first batch of all.
    """

    span: BatchSpan
    iterations: int
    seconds: float


@dataclass(frozen=True)
class MonitorFacts:
    """What the monitor shows.

    Attributes
    ----------
    workers
        In the order of their numbers.
    step_seconds
        Between two numbers of a history.
    imbalance
        The busiest worker's kernel seconds over the mean, over time, oldest first; 1.0 is even.
    iteration
        Of the loop that runs, or -1 when none does; where nothing runs, of the last one.
    most_iterations
        At most; infinity where that is not known.
    iteration_seconds
        What one takes now; where nothing runs, what each took; 0.0 where that is not known.
    seconds_left
        Until the loop's end; infinity where that is not known.
    num_repartitions
        So far.
    is_running, has_run
        Whether anything runs, and whether anything has run.
    is_past
        Whether this is how it was when something ran last.
    has_stopped
        Whether the session is over.
    at
        The time of day at which it was so, or ended; a notebook may be saved then and opened later.
    outcome
        How it ended, where it did not come to its end: "cancelled", "failed", ...
    imbalance_of_all
        The busiest worker's kernel seconds over the mean, in all that ran; 0.0 where that is not known.
    is_elsewhere
        Whether a newer output goes on with it.
    batches
        What is gone through batch by batch; where nothing runs, what was last. None where the loop is no such
        one.
    run_text
        How far the run is that is no loop.
    """

    workers: tuple[WorkerFacts, ...] = ()
    step_seconds: float = 1.0
    imbalance: tuple[float, ...] = ()
    iteration: int = -1
    most_iterations: float = float("inf")
    iteration_seconds: float = 0.0
    seconds_left: float = float("inf")
    num_repartitions: int = 0
    is_running: bool = False
    has_run: bool = False
    is_past: bool = False
    has_stopped: bool = False
    at: str = ""
    outcome: str = ""
    imbalance_of_all: float = 0.0
    is_elsewhere: bool = False
    batches: BatchProgress | None = None
    run_text: str = ""


# The rows of the load monitor: one a worker, or one a quantile of many; every number is finite.

MOST_WORKERS = 64  # that have a row each
MOST_POINTS = 60  # of a line over time
MOST_KINDS = 5  # of work that have a name; what is left is "other"
QUANTILES = (("most", 1.0), ("90 %", 0.9), ("75 %", 0.75), ("median", 0.5), ("25 %", 0.25), ("10 %", 0.1),
             ("least", 0.0))  # fmt: skip
FULL = 0.8  # share of the limit from which on memory is short
_MOST_NAMED = 8  # workers that a line names
_LONGEST_KIND = 24
_MOST_COUNT, _MOST_BYTES, _MOST_NUMBER = 10**12, 10**18, 10**9
_MOST_SECONDS = 360_000.0
_MOST_UNEVEN = 999.0


@dataclass(frozen=True)
class Row:
    """One worker, or the workers of one rank.

    Attributes
    ----------
    label, title
        In a few characters, and in full.
    busy
        Share of each kind of work; they add up to 1.0 at most.
    history
        Busy shares, oldest first.
    """

    label: str
    title: str
    busy: Mapping[str, float]
    history: tuple[float, ...] = ()
    num_queued: int = 0
    num_running: int = 0
    memory_bytes: int = 0
    limit_bytes: int = 0
    received_bytes: float = 0.0
    sent_bytes: float = 0.0
    is_lost: bool = False

    @property
    def share(self) -> float:
        """Share of the time in which its threads were busy."""
        return share_of(sum(self.busy.values()))

    @property
    def full(self) -> float:
        """Share of the memory's limit in use; 0.0 without a limit."""
        return share_of(self.memory_bytes / self.limit_bytes) if self.limit_bytes else 0.0


def rows_of(facts: MonitorFacts) -> list[Row]:
    """Return a row for each worker, or one for each quantile of those that are there."""
    if len(facts.workers) <= MOST_WORKERS:
        return [_row(one) for one in facts.workers]
    here = [one for one in facts.workers if not one.is_lost]
    return _bands(here) if here else []


def are_bands(facts: MonitorFacts) -> bool:
    """Tell whether the rows are quantiles."""
    return len(facts.workers) > MOST_WORKERS


def head_of(facts: MonitorFacts) -> str:
    """Return what the rows are."""
    return "quantile" if are_bands(facts) else "worker"


def kinds_of(rows: Sequence[Row]) -> tuple[str, ...]:
    """Return the kinds of work that are named, those that take most, in an order that hardly changes."""
    shares: dict[str, float] = {}
    for row in rows:
        for kind, share in row.busy.items():
            shares[kind] = shares.get(kind, 0.0) + share
    shares.pop(OTHER, None)
    most = sorted(shares, key=lambda kind: (-shares[kind], kind))[:MOST_KINDS]
    is_all = len(most) == len(shares) and not any(OTHER in row.busy for row in rows)
    return (*sorted(most), *(() if is_all else (OTHER,)))


def work_of(row: Row, kinds: Sequence[str]) -> list[tuple[str, float]]:
    """Return the share of each of the named kinds, those that are not named together."""
    named = {kind: row.busy.get(kind, 0.0) for kind in kinds if kind != OTHER}
    if OTHER in kinds:
        named[OTHER] = max(0.0, row.share - sum(named.values()))
    return list(named.items())


def state_text(facts: MonitorFacts) -> str:
    """Return what runs, or ran: the iteration or batch, how long it takes, what is left."""
    if (all_of := facts.batches) is not None:
        when = "" if facts.is_running else f"{facts.outcome or 'ended'} after "
        text = batches_text(all_of.span, all_of.iterations, all_of.seconds, is_over=not facts.is_running)
        words = [when + text]
    elif facts.iteration < 0:
        words = [_what_runs(facts)]
    else:
        of = f" of {count_text(_whole(facts.most_iterations))}" if progress_of(facts) is not None else ""
        when = "iteration" if facts.is_running else f"{facts.outcome or 'ended'} after iteration"
        words = [f"{when} {count_text(_whole(facts.iteration))}{of}"]
        if each := duration_text(facts.iteration_seconds):
            words.append(f"{each} each now" if facts.is_running else f"{each} each")
        if facts.is_running and (left := duration_text(facts.seconds_left)):
            words.append(f"{left} left")
    if facts.has_stopped:
        words.append("the session was stopped")
    if facts.is_elsewhere:
        words.append("see the newer monitor")
    at = f"at {facts.at}: " if facts.at else ""
    return at + ", ".join(words)


def _what_runs(facts: MonitorFacts) -> str:
    if facts.is_running:
        return facts.run_text or "running"
    if facts.outcome or facts.is_past:
        return facts.outcome or "ended"
    return "nothing runs now" if facts.has_run else "nothing has run yet"


def load_text(facts: MonitorFacts) -> str:
    """Return how many workers there are, how busy, how evenly, and how often arrays were repartitioned."""
    here = [one for one in facts.workers if not one.is_lost]
    words = [plural_text(len(here), "worker")]
    if here and (facts.is_running or facts.is_past):
        busy = f"{percent_text(sum(map(_busy, here)) / len(here))} busy"
        words.append(f"{busy} {when_text(facts)}".rstrip())
    if not facts.is_running and facts.imbalance_of_all > 0.0:
        words.append(f"imbalance {min(_MOST_UNEVEN, max(1.0, facts.imbalance_of_all)):.2f}")
    elif uneven := imbalances(facts):
        words.append(f"imbalance {uneven[-1]:.2f} {when_text(facts)}".rstrip())
    words.append(
        plural_text(_whole(facts.num_repartitions), "repartition")
        if facts.num_repartitions
        else "no repartition"
    )
    return ", ".join(words)


def when_text(facts: MonitorFacts) -> str:
    """Return of when the newest numbers over time are; nothing where that is the time that is told."""
    if facts.is_running and facts.at:
        return ""
    return "now" if facts.is_running else "at the end" if facts.is_past else "in the last seconds"


def notes_of(facts: MonitorFacts) -> list[str]:
    """Return what the rows do not say: who was lost, and which workers are the busiest of many."""
    lost = [one.number for one in facts.workers if one.is_lost]
    notes = [f"lost: {_named(lost)}"] if lost else []
    if are_bands(facts):
        here = [one for one in facts.workers if not one.is_lost]
        busiest = sorted(here, key=_busy, reverse=True)
        notes.insert(0, f"busiest: {_named([one.number for one in busiest[:_MOST_NAMED]])}")
        notes.insert(0, "each column shows quantiles over all workers")
    return notes


def progress_of(facts: MonitorFacts) -> float | None:
    """Return the share of a loop, or of all passes, that is done, or None where that is not known."""
    if (all_of := facts.batches) is not None:
        span = all_of.span
        if not span.num_batches:
            return None
        done = span.epoch + (span.start + all_of.iterations) / span.num_batches
        return share_of(done / span.epochs)
    most = facts.most_iterations
    if not 0 < most <= _MOST_COUNT or not 0 <= facts.iteration <= most:
        return None
    return facts.iteration / most


def imbalances(facts: MonitorFacts) -> list[float]:
    """Return the imbalance over time, each at least 1.0."""
    return [
        one if 1.0 <= one <= _MOST_UNEVEN else min(_MOST_UNEVEN, max(1.0, one)) if one == one else 1.0
        for one in facts.imbalance[-MOST_POINTS:]
    ]


def window_text(facts: MonitorFacts) -> str:
    """Return how far back the lines over time go."""
    longest = max([len(facts.imbalance), *(len(one.history) for one in facts.workers[:MOST_WORKERS])])
    seconds = min(longest, MOST_POINTS) * facts.step_seconds
    return f"last {round(seconds)} s" if 1.0 <= seconds < _MOST_SECONDS else "over time"


def duration_text(seconds: float) -> str:
    """Return a duration, or nothing where none is known."""
    if not 0.0 < seconds < float("inf"):
        return ""
    return seconds_text(seconds) if seconds < _MOST_SECONDS else "over 100 h"


def percent_text(share: float) -> str:
    """Return a share in whole percent."""
    return f"{round(100 * share)} %"


def memory_text(row: Row) -> str:
    """Return the memory in use and its limit."""
    limit = f" of {bytes_text(row.limit_bytes)}" if row.limit_bytes else ""
    return f"{bytes_text(row.memory_bytes)}{limit}" if row.memory_bytes or row.limit_bytes else ""


def short_memory_text(row: Row) -> str:
    """Return the memory in use and its limit, both in the limit's unit."""
    if not row.limit_bytes:
        return memory_text(row)
    limit, unit = bytes_text(row.limit_bytes).split(" ")
    used = row.memory_bytes / row.limit_bytes * float(limit)
    return f"{min(used, 9999.0):.{2 if used < 10 else 0}f} of {limit} {unit}"


def rate_text(num_bytes: float) -> str:
    """Return bytes a second."""
    return f"{bytes_text(round(num_bytes))}/s" if num_bytes >= 0.5 else "0"


def share_of(value: float) -> float:
    """Return a share between 0.0 and 1.0, whatever was given."""
    return float(min(1.0, max(0.0, value))) if value == value else 0.0


def _shares(line: Sequence[float]) -> tuple[float, ...]:
    return tuple([one if 0.0 <= one <= 1.0 else share_of(one) for one in line])


def _amount(value: float) -> float:
    return float(min(_MOST_BYTES, max(0, value))) if value == value else 0.0


def _whole(value: float) -> int:
    return int(min(_MOST_COUNT, max(0, value))) if value == value else 0


def _busy(worker: WorkerFacts) -> float:
    return share_of(sum(map(share_of, worker.busy.values())))


def _number(worker: WorkerFacts) -> int:
    return max(0, min(_MOST_NUMBER, worker.number))


@lru_cache(64)
def _kind(name: str) -> str:
    # A user may have named it: nothing of it may turn the text around or be no character of XML.
    text = "".join(one if one.isprintable() else " " for one in name[: 2 * _LONGEST_KIND]).strip() or OTHER
    return text if len(text) <= _LONGEST_KIND else f"{text[: _LONGEST_KIND - 3]}..."


def _row(worker: WorkerFacts, with_history: bool = True) -> Row:
    busy: dict[str, float] = {}
    for name, share in worker.busy.items():
        kind = _kind(shown_kind(name))
        busy[kind] = busy.get(kind, 0.0) + share_of(share)
    total = sum(busy.values())
    if total > 1.0:
        busy = {kind: share / total for kind, share in busy.items()}
    number = _number(worker)
    return Row(
        label=str(number),
        title=f"worker {number}",
        busy=busy,
        history=_shares(worker.history[-MOST_POINTS:]) if with_history else (),
        num_queued=_whole(worker.num_queued),
        num_running=_whole(worker.num_running),
        memory_bytes=int(_amount(worker.memory_bytes)),
        limit_bytes=int(_amount(worker.limit_bytes)),
        received_bytes=_amount(worker.received_bytes),
        sent_bytes=_amount(worker.sent_bytes),
        is_lost=worker.is_lost,
    )


def _bands(workers: Sequence[WorkerFacts]) -> list[Row]:
    # Each column on its own, so that no quantile hides behind another's worker.
    lines = _lines(workers)
    by_share = sorted(workers, key=_busy)
    by_memory = sorted(workers, key=_held)
    queued = sorted(_whole(one.num_queued) for one in workers)
    running = sorted(_whole(one.num_running) for one in workers)
    received = sorted(_amount(one.received_bytes) for one in workers)
    sent = sorted(_amount(one.sent_bytes) for one in workers)
    bands = []
    for label, rank in QUANTILES:
        place = round(rank * (len(workers) - 1))
        ranked = _row(by_share[place], with_history=False)
        held = _row(by_memory[place], with_history=False)
        title = {1.0: f"the busiest, {ranked.title}", 0.0: f"the least busy, {ranked.title}"}.get(
            rank, f"{round(100 * rank)} % of the workers are below this"
        )
        band = Row(
            label, title, ranked.busy, tuple(lines[place].tolist()), queued[place], running[place],
            held.memory_bytes, held.limit_bytes, received[place], sent[place],
        )  # fmt: skip
        bands.append(band)
    return bands


def _held(worker: WorkerFacts) -> tuple[float, float]:
    held, limit = _amount(worker.memory_bytes), _amount(worker.limit_bytes)
    return (share_of(held / limit) if limit else 0.0, held)


def _lines(workers: Sequence[WorkerFacts]) -> np.ndarray:
    """Return for each moment the sorted busy shares: (workers, moments)."""
    length = min(MOST_POINTS, max(len(one.history) for one in workers))
    histories = [one.history[-length:] if length else () for one in workers]
    filled = [line if len(line) == length else (0.0,) * (length - len(line)) + line for line in histories]
    try:
        lines = np.array(filled, dtype=np.float64).reshape(len(workers), length)
    except OverflowError:  # an integer that no float holds
        lines = np.array([list(map(share_of, line)) for line in filled])
    lines = np.clip(np.nan_to_num(lines, nan=0.0, posinf=1.0, neginf=0.0), 0.0, 1.0)
    return np.sort(lines, axis=0)


def _named(numbers: Sequence[int]) -> str:
    names = ", ".join(str(max(0, min(_MOST_NUMBER, one))) for one in numbers[:_MOST_NAMED])
    more = f" and {count_text(len(numbers) - _MOST_NAMED)} more" if len(numbers) > _MOST_NAMED else ""
    return f"{'worker' if len(numbers) == 1 else 'workers'} {names}{more}"
