"""How long a fresh Python takes from before ``import matnb`` to the first result; caches are warm."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from harness.comparison import OURS, Bench, Claim, Comparison
from harness.inputs import THREADS
from harness.statistics import duration

LIMIT_SECONDS = 2.0
CELL = f"""
import time
begin = time.perf_counter()
import matnb as mn
imported = time.perf_counter()
mn.start(threads={THREADS})
started = time.perf_counter()
A = mn.random.rmat(scale=16, seed=1)
x = mn.ones(2**16)
y = (A @ x).compute()
print(imported - begin, started - imported, time.perf_counter() - started, float(y.sum()))
mn.stop()
"""


def fresh_process() -> tuple[float, float, float, float]:
    """Run the cell in a fresh Python; return the seconds of import, start and cell, and of the process."""
    begin = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", CELL], check=True, capture_output=True, text=True)
    whole = time.perf_counter() - begin
    imported, started, cell, total = map(float, done.stdout.split())
    if total <= 2**16:
        raise SystemExit(f"the first result's sum is {total}: nothing was timed")
    return imported, started, cell, whole


def main() -> None:
    bench = Bench(__doc__)
    fresh_process()  # fills the caches of compiled code and of the file system
    runs = [fresh_process() for _ in range(bench.rounds)]
    imported, started, cell, whole = (statistics.median(each) for each in zip(*runs, strict=True))
    claim = Claim(
        "first result of a fresh Python",
        "from before import matnb to the value of A @ x, R-MAT 2^16 made in the same cell",
        1.0,
    )
    seconds = {OURS: [sum(run[:3]) for run in runs], "the limit": [LIMIT_SECONDS] * len(runs)}
    note = (
        f"import {duration(imported)}, start {duration(started)}, the cell {duration(cell)}; the whole "
        f"process with its end {duration(whole)}"
    )
    bench.publish(Comparison(claim, seconds, ["the limit"], [note]))


if __name__ == "__main__":
    main()
