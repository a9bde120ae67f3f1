"""``python -m tests.faults --schedules 300 --seed 1``: what a session survives, by named points."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from faults.supervise import line, outcomes, totals


def main() -> int:
    """Perform schedules, print the bad ones and the totals, and return 1 if any is bad."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--schedules", type=int, default=20, help="how many")
    parser.add_argument("--seed", type=int, default=1, help="of all of them")
    parser.add_argument("--first", type=int, default=0, help="number of the first")
    parser.add_argument("--only", type=int, help="perform this one alone")
    parser.add_argument("--verbose", action="store_true", help="print the good ones too")
    chosen = parser.parse_args()
    numbers = (
        [chosen.only]
        if chosen.only is not None
        else list(range(chosen.first, chosen.first + chosen.schedules))
    )
    found = []
    for outcome in outcomes(chosen.seed, numbers):
        found.append(outcome)
        if outcome.is_bad or chosen.verbose:
            print(line(chosen.seed, outcome), flush=True)
    print(totals(found), flush=True)
    return int(any(one.is_bad for one in found))


if __name__ == "__main__":
    sys.exit(main())
