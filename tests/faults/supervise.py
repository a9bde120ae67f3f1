"""Runs schedules in a process of their own, and watches it: it hangs once its whole tree is idle."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from faults.schedule import Outcome, drawn

IDLE_SECONDS = 75.0  # longer than any wait that ends by itself
IDLE_SHARE = 0.08  # of a core: less than that is looking whether something has come
MOST_SECONDS = 600.0  # of one step, whatever it does
_LOOK_SECONDS = 1.0
_TESTS = Path(__file__).parents[1]


def outcomes(
    seed: int, numbers: Sequence[int], processes: bool | None = None, log: Callable[[str], None] | None = None
) -> Iterator[Outcome]:
    """Perform schedules and yield what became of each; one that hangs is ended, and the others go on."""
    left = list(numbers)
    while left:
        for outcome in _batch(seed, left, processes):
            left.remove(outcome.only)
            if log is not None:
                log(line(seed, outcome))
            yield outcome


def _batch(seed: int, numbers: Sequence[int], processes: bool | None) -> Iterator[Outcome]:
    # Of one process; it ends early when a schedule hangs or ends the process.
    with tempfile.TemporaryDirectory(prefix="faults-run-") as folder:
        out, errors = Path(folder, "out"), Path(folder, "errors")
        out.touch()
        call = f"perform({seed}, {list(numbers)}, {processes}, {str(out)!r})"
        code = f"from faults.schedule import perform; {call}"
        guarded = Path(folder, "performing.py")
        guarded.write_text(f'if __name__ == "__main__":\n    {code}\n')
        path = os.pathsep.join([str(_TESTS), str(_TESTS.parent), os.environ.get("PYTHONPATH", "")])
        with errors.open("w") as sink:
            child = subprocess.Popen(
                [sys.executable, str(guarded)],
                env={**os.environ, "PYTHONPATH": path, "TMPDIR": folder},
                stdout=sink,
                stderr=sink,
            )
        try:
            yield from _watched(child, out, errors)
        finally:
            _end(child.pid)
            child.wait()


def _watched(child: subprocess.Popen[bytes], out: Path, errors: Path) -> Iterator[Outcome]:
    read = 0
    now, only = "import", -1
    since = busy_since = time.monotonic()
    spent = 0.0
    while True:
        ended = child.poll() is not None
        lines = out.read_text().splitlines()
        for text in lines[read:]:
            told = json.loads(text)
            only, since = told["only"], time.monotonic()
            busy_since = since
            if "outcome" in told:
                yield Outcome(**told["outcome"])
                only = -1
            else:
                now = told["now"]
        read = len(lines)
        if ended:
            if only >= 0:
                yield Outcome(only, untold=[f"the process ended in {now}: {errors.read_text()[-600:]}"])
            elif child.returncode:
                raise RuntimeError(f"the schedules could not be performed: {errors.read_text()[-2000:]}")
            return
        total = _cpu_seconds(child.pid)
        if total - spent > IDLE_SHARE * _LOOK_SECONDS:
            busy_since = time.monotonic()
        spent = total
        idle, long = time.monotonic() - busy_since, time.monotonic() - since
        if only >= 0 and (idle > IDLE_SECONDS or long > MOST_SECONDS):
            yield Outcome(only, hung=[f"{now}: idle for {idle:.0f} s, {long:.0f} s in all"])
            return
        time.sleep(_LOOK_SECONDS)


def _tree(pid: int) -> list[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        first = psutil.Process(pid)
        return [first, *first.children(recursive=True)]
    return []


def _cpu_seconds(pid: int) -> float:
    total = 0.0
    for one in _tree(pid):
        with suppress(psutil.NoSuchProcess):
            times = one.cpu_times()
            total += times.user + times.system
    return total


def _end(pid: int) -> None:
    for one in reversed(_tree(pid)):
        with suppress(psutil.NoSuchProcess):
            one.kill()


def line(seed: int, outcome: Outcome) -> str:
    """Return what is printed of a schedule: how it went, what it was, and how to repeat it."""
    schedule = drawn(seed, outcome.only)
    faults = "; ".join(
        f"{one.what} ({one.seconds:g} s) when {one.where}, time {one.number}, cell {one.cell}"
        for one in schedule.faults
    )
    words = [
        f"{name}: {', '.join(found)}"
        for name in ("wrong", "hung", "leaked", "untold", "short", "told")
        if (found := getattr(outcome, name))
    ]
    how = " | ".join(words) or "good"
    return (
        f"{'BAD ' if outcome.is_bad else ''}--seed {seed} --only {outcome.only}: {how}\n"
        f"    {schedule.options} cells {', '.join(schedule.cells)}; {faults}; struck {outcome.struck}; "
        f"{outcome.seconds:.0f} s"
    )


def totals(found: Sequence[Outcome]) -> str:
    """Return the totals of schedules."""

    def count(name: str) -> int:
        return sum(bool(getattr(one, name)) for one in found)

    return (
        f"{len(found)} schedules, {sum(one.cells for one in found)} cells, "
        f"{sum(one.struck for one in found)} faults struck: "
        f"{count('wrong')} wrong, {count('hung')} hung, {count('leaked')} leaked, "
        f"{count('untold')} with an error that is not told as a loss, "
        f"{count('short')} short of workers; "
        f"{sum(len(one.told) for one in found)} losses told, {sum(one.cancelled for one in found)} cells "
        f"cancelled, {sum(one.raised for one in found)} raised what was put there"
    )
