"""Two checkouts of matnb side by side, alternately, each time in a process of its own.

    python benchmarks/checkouts.py ../other                      every snippet
    python benchmarks/checkouts.py ../other --snippets sum cell  some of them
    python benchmarks/checkouts.py ../other --benchmark lanczos --rounds 3 -- --trial

Benchmarks and snippets are those of this checkout; the other one gives its matnb alone. A ratio is this
checkout's time for each second of the other's: of the medians over rounds, with the quartiles of single
rounds. Both share what else the machine does in a round, so that a busy machine widens the spread before it
moves a ratio. Nothing is added to the record.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from harness.comparison import OURS
from harness.record import read
from harness.snippets import SNIPPETS
from harness.statistics import duration, ratio_of

BENCHMARKS = Path(__file__).parent
ROUNDS = 5
# By what was timed: the wall seconds of one process and its seconds of processors.
Timings = Mapping[str, tuple[float, float]]


def run_python(checkout: Path, arguments: Sequence[str]) -> str:
    """Run Python with the matnb of a checkout and the benchmarks of this one; return what it printed."""
    path = os.pathsep.join(map(str, (checkout, BENCHMARKS)))
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=checkout,  # which Python looks through first for -c and -m
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)} failed with the matnb of {checkout}: {done.stdout}")
    return done.stdout


def check_checkout(checkout: Path) -> None:
    """Refuse a folder whose matnb is not the one that Python finds there."""
    found = Path(run_python(checkout, ["-c", "import matnb; print(matnb.__file__)"]).strip())
    if not found.is_relative_to(checkout):
        raise SystemExit(f"{checkout} has no matnb: Python finds that of {found.parent}")


def run_snippet(checkout: Path, name: str) -> Timings:
    """Return what one snippet takes in a fresh process."""
    told = json.loads(run_python(checkout, ["-m", "harness.snippets", name]))
    return {name: tuple(told["seconds"])}


def run_benchmark(checkout: Path, name: str, options: Sequence[str]) -> Timings:
    """Return what matnb takes for each claim of a benchmark, by medians, in a fresh process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "found.jsonl"
        script = str(BENCHMARKS / f"{name}.py")
        run_python(checkout, [script, "--alone", "--record", str(path), *options])
        lines = read(path)
    median = statistics.median
    return {
        line.claim: (median(line.seconds[OURS]), median(line.cpu_seconds[OURS]))
        for line in lines
        if OURS in line.cpu_seconds  # what is derived from other claims has none
    }


def alternated(
    run: Callable[[Path], Timings], this: Path, other: Path, rounds: int
) -> dict[str, dict[Path, list[tuple[float, float]]]]:
    """Return by name and checkout what every round found; which goes first changes from round to round."""
    found: dict[str, dict[Path, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    for number in range(rounds):
        for checkout in (this, other) if number % 2 == 0 else (other, this):
            for name, seconds in run(checkout).items():
                found[name][checkout].append(seconds)
    return found


def row(name: str, mine: Sequence[tuple[float, float]], theirs: Sequence[tuple[float, float]]) -> str:
    """Return a line: both medians, and the ratios of wall seconds and of seconds of processors."""
    my_wall, my_cpu = zip(*mine, strict=True)
    their_wall, their_cpu = zip(*theirs, strict=True)
    times = f"{duration(statistics.median(my_wall))} for {duration(statistics.median(their_wall))}"
    return f"{name:<44} {times:<22} wall {ratio_of(my_wall, their_wall)}   CPU {ratio_of(my_cpu, their_cpu)}"


def print_rows(
    found: Mapping[str, Mapping[Path, Sequence[tuple[float, float]]]], this: Path, other: Path
) -> None:
    """Print a line for what both checkouts have run in every round, and name what one has not."""
    for name, by_checkout in found.items():
        mine, theirs = by_checkout.get(this, ()), by_checkout.get(other, ())
        if mine and len(mine) == len(theirs):
            print(row(name, mine, theirs), flush=True)
        else:
            print(f"{name}: run {len(mine)} times here and {len(theirs)} times there")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("other", type=Path, help="the checkout to compare with")
    parser.add_argument("--this", type=Path, default=BENCHMARKS.parent, help="in place of this checkout")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="processes of each checkout")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--snippets", nargs="+", choices=sorted(SNIPPETS), default=list(SNIPPETS))
    what.add_argument(
        "--benchmark", metavar="NAME", help="the claims of a benchmark, by the name of its file"
    )
    parser.epilog = "What follows -- is given to the benchmark."
    words = sys.argv[1:]
    end = words.index("--") if "--" in words else len(words)
    given, options = parser.parse_args(words[:end]), words[end + 1 :]
    this, other = given.this.resolve(), given.other.resolve()
    for checkout in (this, other):
        check_checkout(checkout)
    print(f"{this} for each second of {other}, {given.rounds} rounds")
    if given.benchmark:
        options = options or ["--rounds", "5"]
        found = alternated(
            lambda checkout: run_benchmark(checkout, given.benchmark, options), this, other, given.rounds
        )
        print_rows(found, this, other)
        return
    for name in given.snippets:
        found = alternated(lambda checkout, name=name: run_snippet(checkout, name), this, other, given.rounds)
        print_rows(found, this, other)


if __name__ == "__main__":
    main()
