"""What sharing costs: two notebooks on one cluster, and a cell in the background beside a plain one.

Of two notebooks each is a process of its own, whose calls are timed while the other makes as many. A cell
with ``--nowait`` runs a loop in the background while the notebook goes on: plain cells wait for the loop and
no longer, and Python code of the notebook's waits for as little as may be. There are no peers:
``checkouts.py`` compares two checkouts by it.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from harness.comparison import OURS, Bench, Claim, Contender
from harness.inputs import THREADS

import matnb as mn
from matnb.lazy.recording import recording

LENGTH, CALLS = 1000, 10
ITERATIONS, SIDE = 2000, 300
STEPS = 1_000_000  # of Python's own
_NOTEBOOK = """
import sys
import numpy as np
import matnb as mn

with mn.connect(sys.argv[1]):
    x = mn.asarray(np.arange(1000.0), blocks=2).persist()
    print("ready", flush=True)
    for number, line in enumerate(sys.stdin):
        if line == "end\\n":
            break
        for call in range(int(line)):
            float((x * (number + 2.5 + call / 128)).sum())
        print("done", flush=True)
"""


@dataclass(frozen=True)
class Notebook:
    """A process that is connected to a cluster and calls when it is told to."""

    process: subprocess.Popen[str]

    def begin(self, num_calls: int) -> None:
        """Have it make so many calls."""
        self._write(f"{num_calls}\n")

    def wait(self) -> None:
        """Wait for the end of its calls, or till it is connected."""
        assert self.process.stdout is not None
        if not self.process.stdout.readline():
            raise SystemExit("a notebook's process has ended")

    def end(self) -> None:
        """End the process."""
        self._write("end\n")
        self.process.communicate()

    def _write(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line)
        self.process.stdin.flush()


@contextmanager
def notebooks(address: str, count: int) -> Iterator[list[Notebook]]:
    """Give notebooks that are connected to a scheduler."""
    command = [sys.executable, "-c", _NOTEBOOK, address]
    pipe = subprocess.PIPE
    found = [
        Notebook(subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=Path.cwd()))
        for _ in range(count)
    ]
    try:
        for one in found:
            one.wait()
        yield found
    finally:
        for one in found:
            one.end()


def call(books: list[Notebook]) -> None:
    """Have all notebooks call at one time."""
    for one in books:
        one.begin(CALLS)
    for one in books:
        one.wait()


def compare_notebooks(bench: Bench) -> None:
    from distributed import LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        notebooks(cluster.scheduler_address, 2) as books,
    ):
        for _ in range(2):
            call(books)
        work = f"float((x * k).sum()) of {LENGTH:,} doubles in 2 blocks, by 2 workers"
        for count, words in ((1, "one notebook on a cluster"), (2, "two notebooks on a cluster")):
            ours = Contender(OURS, lambda _, count=count: call(books[:count]))
            bench.compare(Claim(words, f"{work}; {words}; a call"), [ours], calls=CALLS)


_numbers = itertools.count(1)  # so that no memo knows a value


@contextmanager
def background(iterations: int) -> Iterator[None]:
    """Run a loop as a cell with ``--nowait`` does; what is left of it at the end is cancelled."""
    A = mn.asarray(np.full((SIDE, SIDE), (1 + next(_numbers) * 1e-9) / SIDE))
    with recording("loop") as record:
        x, _ = mn.iterate(lambda x: A @ x, mn.ones(SIDE), max_iterations=iterations)
    later = mn.current_session().later({"x": x.expression}, record)
    while later.state == "waiting":
        time.sleep(1e-4)
    try:
        yield
    finally:
        later.cancel()


def plain_cells(x: mn.DistArray) -> float:
    """Run some cells of a sum each."""
    total = 0.0
    for _ in range(CALLS):
        with recording("cell") as record:
            result = (x * (next(_numbers) + 0.5)).sum()
        mn.current_session().run({"result": result.expression}, record)
        total += float(result)
    return total


def python_alone() -> int:
    """Do what touches no array."""
    total = 0
    for step in range(STEPS):
        total += step & 7
    return total


def compare_background(bench: Bench) -> None:
    x = mn.asarray(np.arange(float(LENGTH))).persist()
    loop = f"products of {SIDE} x {SIDE} with --nowait"
    bench.compare(
        Claim(
            "plain cells beside one with --nowait",
            f"{CALLS} sums of {LENGTH:,} doubles that wait for {ITERATIONS:,} {loop}",
        ),
        [Contender(OURS, lambda _: plain_cells(x), within=lambda: background(ITERATIONS))],
    )
    bench.compare(
        Claim("Python beside a cell with --nowait", f"{STEPS:,} steps of Python beside endless {loop}"),
        [Contender(OURS, lambda _: python_alone(), within=lambda: background(10**9))],
    )


def main() -> None:
    bench = Bench(__doc__)
    compare_notebooks(bench)
    with mn.start(threads=THREADS):
        compare_background(bench)


if __name__ == "__main__":
    main()
