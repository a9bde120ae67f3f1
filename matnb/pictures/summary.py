"""The line under a cell: what was run and the plan behind it, or how far work in the background is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matnb.events import BatchSpan, LoopAdvanced, RunStarted
from matnb.pictures.escaping import LONGEST_NAME, escaped, shortened
from matnb.pictures.quantities import bytes_text, count_text, plural_text, rate_text, seconds_text

STYLE = "font-size:12px;margin:4px 0;opacity:.8"
MAX_LOOPS = 3  # of a cell that are listed one by one
MAX_REPARTITIONS = 3  # arrays that are listed by name


@dataclass(frozen=True)
class LoopFacts:
    """A loop or branch that a cell ran.

    Parameters
    ----------
    iterations
        Of a loop; None for a branch.
    num_tasks
        Of its program, each counted once.
    num_workers
        Those that ran it as a gang; 0 where it was run task by task.
    reason
        Why no gang ran it.
    sent_bytes
        From one of the gang to another.
    seconds
        Measured, or None.
    """

    iterations: int | None
    num_tasks: int
    num_workers: int
    reason: str = ""
    sent_bytes: int = 0
    seconds: float | None = None


@dataclass(frozen=True)
class RepartitionFacts:
    """Arrays that were repartitioned while a cell ran.

    Parameters
    ----------
    name
        Of the arrays.
    num_times
        How often.
    imbalances
        Before the first time and as predicted after the last, or None where these are measured.
    seconds
        Measured, or None.
    """

    name: str
    num_times: int
    imbalances: tuple[float, float] | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class SummaryFacts:
    """What happened to one cell.

    Parameters
    ----------
    num_operations, num_merged
        Operations the cell wrote, and how many of them were the same as another one.
    num_run, num_arrays, num_remembered
        Of its run: operations that were computed, arrays newly made for them, and results that were there
        already.
    num_tasks, moved_bytes, projected_bytes
        Of its run: tasks, bytes between workers, memory planned on top of what is used. ``num_tasks`` is None
        when nothing was run.
    left_lazy
        Names that were not computed, being larger than the memo budget.
    workers_text
        What became of workers that were lost, or nothing.
    plan_text
        The plan, as ``explain`` writes it.
    plan_html
        The plan as a picture, which is shown instead; it goes into the page as it is.
    loops
        Those that were run.
    repartitions
        What was repartitioned.
    notes
        What loading told.
    num_gave_way
        Arrays with a handle that went from the workers to make room.
    seconds, imbalance, actual_bytes
        Measured, so None wherever the same text must come out every time.
    """

    num_operations: int
    num_merged: int
    num_run: int = 0
    num_arrays: int = 0
    num_remembered: int = 0
    num_tasks: int | None = None
    moved_bytes: int = 0
    projected_bytes: int = 0
    left_lazy: tuple[str, ...] = ()
    workers_text: str = ""
    plan_text: str = ""
    plan_html: str = ""
    loops: tuple[LoopFacts, ...] = ()
    repartitions: tuple[RepartitionFacts, ...] = ()
    notes: tuple[str, ...] = ()
    num_gave_way: int = 0
    seconds: float | None = None
    imbalance: float | None = None
    actual_bytes: int | None = None


def summary_text(facts: SummaryFacts) -> str:
    """Return the summary as one short line, and further ones for loops and what needs attention."""
    return "\n".join([_line(facts), *_notes(facts)])


def summary_html(facts: SummaryFacts) -> str:
    """Return the summary as a line that opens to show all counts and the plan, without script."""
    notes = "".join(f"<div>{escaped(note)}</div>" for note in _notes(facts))
    counts = f'<div style="margin:4px 0 4px 1em">{escaped(counts_text(facts))}</div>'
    if facts.plan_html:  # not paler than other pictures
        line = f'<summary style="{STYLE};margin:0;cursor:pointer">{escaped(_line(facts))}</summary>'
        plan = f'<div style="margin:6px 0 6px 1em">{facts.plan_html}</div>'
        below = f'<div style="{STYLE};margin:0">{notes}</div>' if notes else ""
        counts = f'<div style="{STYLE};margin-left:1em">{escaped(counts_text(facts))}</div>'
        return f'<div style="margin:4px 0"><details>{line}{counts}{plan}</details>{below}</div>'
    line = f'<summary style="cursor:pointer">{escaped(_line(facts))}</summary>'
    plan = (
        '<pre style="margin:4px 0 4px 1em;font-size:12px;overflow-x:auto;background:transparent">'
        f"{escaped(facts.plan_text)}</pre>"
        if facts.plan_text
        else ""
    )
    return f'<div style="{STYLE}"><details>{line}{counts}{plan}</details>{notes}</div>'


def _line(facts: SummaryFacts) -> str:
    words = ["nothing run" if facts.num_tasks is None else plural_text(facts.num_tasks, "task")]
    if facts.seconds is not None:
        words.append(seconds_text(facts.seconds))
    if facts.num_remembered:
        words.append(f"{plural_text(facts.num_remembered, 'result')} reused")
    if facts.num_gave_way:
        words.append(f"{plural_text(facts.num_gave_way, 'array')} gave way")
    return ", ".join(words)


def counts_text(facts: SummaryFacts) -> str:
    """Return every count of the summary, with what it is of."""
    same = f" ({count_text(facts.num_merged)} merged with equal ones)" if facts.num_merged else ""
    words = [f"{plural_text(facts.num_operations, 'operation')} recorded{same}"]
    if facts.num_tasks is None:
        return words[0]
    words += [
        f"{plural_text(facts.num_run, 'operation')} run in {plural_text(facts.num_tasks, 'task')}",
        f"{plural_text(facts.num_arrays, 'array')} made",
        f"{plural_text(facts.num_remembered, 'result')} reused",
        f"{bytes_text(facts.moved_bytes)} moved between workers",
    ]
    used = "" if facts.actual_bytes is None else f", {bytes_text(facts.actual_bytes)} used"
    words.append(f"memory: {bytes_text(facts.projected_bytes)} projected{used}")
    if facts.num_gave_way:
        words.append(f"{plural_text(facts.num_gave_way, 'array')} gave way, made again when read")
    if facts.imbalance is not None:
        words.append(f"imbalance of the workers {facts.imbalance:.2f} (1 is even)")
    return "; ".join(words)


def seconds_left(loop: LoopAdvanced, each: float, seconds: float) -> float:
    """Return how long a loop goes on, infinity where that is not known.

    Parameters
    ----------
    each
        What an iteration takes; 0.0 where that is not known.
    seconds
        Since it came as far as it is.
    """
    if loop.has_until or math.isinf(loop.most_iterations) or each <= 0:
        return math.inf
    return max(0.0, (loop.most_iterations - loop.iterations) * each - seconds)


def progress_text(
    num_finished: int, loop: LoopAdvanced, seconds: float, now: float, since: float | None = None
) -> str:
    """Return how far a loop is, in one line; what is not known is left out.

    Parameters
    ----------
    num_finished
        Loops that ran before it.
    loop
        What it told last.
    seconds
        Since what runs began.
    now
        By the clock of ``loop.batches.since``.
    since
        When the loop came as far as it is, by that clock; None for now.
    """
    rates = []
    if loop.seconds > 0 and loop.flops:
        rates.append(f"{rate_text(loop.flops / loop.seconds)}FLOP/s")
    if loop.seconds > 0 and loop.accessed_bytes and loop.batches is None:
        rates.append(f"{bytes_text(round(loop.accessed_bytes / loop.seconds))}/s")
    if loop.batches is not None:
        return batches_text(loop.batches, loop.iterations, now - loop.batches.since, rates)
    known = loop.most_iterations < math.inf and not loop.has_until
    of = f" of {count_text(int(loop.most_iterations))}" if known else ""
    noun = "iteration" if loop.iterations == 1 and not known else "iterations"
    words = [
        f"loop{f' {num_finished + 1}' if num_finished else ''}: {count_text(loop.iterations)}{of} {noun}"
    ]
    if loop.seconds > 0:
        words += [f"{seconds_text(loop.seconds)} each", *rates]
    words.append(f"{seconds_text(seconds)} so far")
    left = seconds_left(loop, loop.seconds, 0.0 if since is None else now - since)
    if left < math.inf:
        words.append(f"{seconds_text(left)} left")
    return ", ".join(words)


def batches_text(
    span: BatchSpan, iterations: int, seconds: float, rates: Sequence[str] = (), is_over: bool = False
) -> str:
    """Return how far a learner is, or a loop over a source, in one line.

    Parameters
    ----------
    span
        The batches that its loop goes through.
    iterations
        Batches of these that are done.
    seconds
        Since the first batch of all.
    rates
        What else it does a second.
    is_over
        Whether nothing is left to wait for.
    """
    number = span.start + iterations
    of = "" if span.num_batches is None else f" of {count_text(span.num_batches)}"
    words = [f"batch {count_text(number)}{of}"]
    if span.epochs > 1:
        words.append(f"pass {span.epoch + 1} of {span.epochs}")
    rows, done = span.rows_done + iterations * span.rows, span.num_done + iterations
    if rows and seconds > 0:
        words.append(f"{count_text(round(rows / seconds))} rows/s")
    words += rates
    if waiting := round(100 * span.waiting):
        words.append(f"{waiting} % waiting for data")
    if span.loss is not None:
        held_out = "" if span.held_out is None else f" (held-out {_loss_text(span.held_out)})"
        words.append(f"loss {_loss_text(span.loss)}{held_out}")
    if span.num_batches is not None and done and not is_over:
        left = span.num_batches * (span.epochs - span.epoch) - number
        words.append(f"{seconds_text(max(0, left) * seconds / done)} left")
    return ", ".join(words)


def _loss_text(loss: float) -> str:
    text = f"{loss:.4g}"
    return text[1:] if text.startswith("0.") else text


def fitting_text(text: str, width: int) -> str:
    """Return a line of progress in so many characters: its first words, and what is left of the time."""
    words = text.split(", ")
    while len(", ".join(words)) > width and len(words) > 2:
        del words[-2]
    return ", ".join(words)[:width]


def tasks_text(run: RunStarted, seconds: float, num_done: int | None = None, num_compiled: int = 0) -> str:
    """Return how far a run is that is no loop, in one line.

    Parameters
    ----------
    run
        What was told when it began.
    seconds
        Since then.
    num_done
        How many of its tasks are done, if it is known.
    num_compiled
        Loops that were compiled for it, with the one that is compiled now.
    """
    tasks = plural_text(run.num_tasks, "task")
    done = min(num_done or 0, run.num_tasks)
    words = [tasks if num_done is None else f"{count_text(done)} of {tasks}"]
    if done == run.num_tasks > 0 and not num_compiled:
        # What is left are results on their way, or put together of their blocks.
        return f"{words[0]} done, bringing the results together, {seconds_text(seconds)} so far"
    if run.read_bytes and num_done is not None:
        read = round(run.read_bytes * done / max(1, run.num_tasks))
        words.append(f"{bytes_text(read)} of {bytes_text(run.read_bytes)} read")
    else:
        words.append(f"{bytes_text(run.projected_bytes)} projected")
    if num_compiled:
        words.append(f"compiling, first time only: loop {count_text(num_compiled)}")
    words.append(f"{seconds_text(seconds)} so far")
    if 0 < done < run.num_tasks and not num_compiled:
        words.append(f"{seconds_text(seconds * (run.num_tasks - done) / done)} left")
    return ", ".join(words)


def _notes(facts: SummaryFacts) -> list[str]:
    loops = [_loop(one) for one in facts.loops[:MAX_LOOPS]]
    if len(facts.loops) > MAX_LOOPS:
        others = facts.loops[MAX_LOOPS:]
        iterations = sum(one.iterations or 0 for one in others)
        loops.append(f"and {plural_text(len(others), 'more loop')}: {plural_text(iterations, 'iteration')}")
    workers = [facts.workers_text] if facts.workers_text else []
    return [*workers, *facts.notes, *loops, *_repartitions(facts), *_left_lazy(facts)]


def _repartitions(facts: SummaryFacts) -> list[str]:
    lines = [_repartition_line(one) for one in facts.repartitions[:MAX_REPARTITIONS]]
    if len(facts.repartitions) > MAX_REPARTITIONS:
        num_times = sum(one.num_times for one in facts.repartitions[MAX_REPARTITIONS:])
        lines.append(f"and {count_text(num_times)} times others: %distmat history tells of them")
    return lines


def _repartition_line(facts: RepartitionFacts) -> str:
    times = {1: "once", 2: "twice"}.get(facts.num_times, f"{count_text(facts.num_times)} times")
    words = []
    if facts.imbalances is not None:
        words.append("imbalance {:.2f} -> {:.2f}".format(*facts.imbalances))
    if facts.seconds is not None:
        words.append(seconds_text(facts.seconds))
    return f"repartitioned {facts.name} {times}{': ' if words else ''}{', '.join(words)}"


def _loop(facts: LoopFacts) -> str:
    program = f"a program of {plural_text(facts.num_tasks, 'task')}"
    if facts.iterations is None:
        words = [f"branch: {program}"]
    else:
        words = [f"loop: {plural_text(facts.iterations, 'iteration')} of {program}"]
    if facts.num_workers:
        words.append(f"by {plural_text(facts.num_workers, 'worker')}")
    else:
        words.append(f"task by task{f' ({facts.reason})' if facts.reason else ''}")
    if facts.num_workers > 1:
        words.append(f"{bytes_text(facts.sent_bytes)} sent")
    if facts.seconds is not None:
        words.append(seconds_text(facts.seconds))
        if facts.iterations:
            words.append(f"{seconds_text(facts.seconds / facts.iterations)} each")
    return ", ".join(words)


def _left_lazy(facts: SummaryFacts) -> list[str]:
    reason = "stays lazy: larger than the memo budget"
    return [
        f"{name} {reason}; to compute it, use --keep {name}"
        if name.isidentifier() and name != "_"
        else f"the last value {reason}; to compute it, give it a name and use --keep with that"
        for name in facts.left_lazy
    ]


# A cell's results that are computed in the background: which they are, and how far they are.

_MOST_NAMES = 8
_LONGEST_ERROR = 300  # characters


@dataclass(frozen=True)
class LaterFacts:
    """What is shown of work in the background.

    Attributes
    ----------
    names
        Of the results; "_" is the last value.
    state
        "waiting", "running", "cancelling", "done", "failed", "cancelled", or empty where it must not depend
        on the time.
    seconds
        For how long it has been running, or ran, if that is to be told.
    error
        What it ended with.
    progress
        How far the loop is that runs.
    """

    names: tuple[str, ...]
    state: str = ""
    seconds: float | None = None
    error: str = ""
    progress: str = ""


def later_text(facts: LaterFacts) -> str:
    """Return one line: what is computed, how far it is, and what to do."""
    words = _what(facts)
    match facts.state:
        case "":
            return f"in the background: {words}; result() waits for it"
        case "waiting":
            return f"waiting in the background: {words}; cancel() takes it back"
        case "running":
            time = "" if facts.progress else _time(facts, " for")
            far = f"; {facts.progress}" if facts.progress else ""
            return f"running in the background{time}: {words}{far}; cancel() ends it"
        case "cancelling":
            return f"being cancelled in the background: {words}"
        case "done":
            return f"done{_time(facts, ' in')}: {words}"
        case _:
            return f"{facts.state}{_time(facts, ' after')}: {words}; {shortened(facts.error, _LONGEST_ERROR)}"


def later_html(facts: LaterFacts) -> str:
    """Return that line as HTML."""
    return f'<div style="{STYLE}">{escaped(later_text(facts))}</div>'


def waiting_text(names: Sequence[str], cell: int | None) -> str:
    """Return for what a cell waits that another computes in the background, and what ends that."""
    if not names:
        return "waits for another thread, which uses the session"
    which = "another cell" if cell is None else f"cell {cell}"
    ends = "its handle's .cancel() ends that"
    what = f"waits for {_listed(names)}, which {which} computes in the background"
    return f"cells compute in turn: {what}; {ends}"


def interrupted_text(names: Sequence[str]) -> str:
    """Return the message for a user who interrupts that waiting."""
    if not names:
        return "interrupted while waiting for another thread, which uses the session; nothing was cancelled"
    work = f"the background work of {_listed(names)}"
    return f"interrupted while waiting for {work}; nothing was cancelled; cancel() of its handle ends it"


def _what(facts: LaterFacts) -> str:
    if not facts.names:
        return "no result"
    return f"{plural_text(len(facts.names), 'result')}, {_listed(facts.names)}"


def _listed(names: Sequence[str]) -> str:
    first = [
        "the last value" if name == "_" else shortened(name, LONGEST_NAME) for name in names[:_MOST_NAMES]
    ]
    more = f" and {len(names) - len(first)} more" if len(first) < len(names) else ""
    return f"{', '.join(first)}{more}"


def _time(facts: LaterFacts, word: str) -> str:
    return "" if facts.seconds is None else f"{word} {seconds_text(facts.seconds)}"
