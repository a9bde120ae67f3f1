"""Writes docs/performance.md: each claim of results.jsonl now, before and at its best; what was simulated."""

from __future__ import annotations

from pathlib import Path

from harness.document import document, ratio_now
from harness.record import RESULTS, pasts, read

DOCUMENT = Path(__file__).parents[1] / "docs" / "performance.md"
SIMULATED = RESULTS.with_name("simulated_placement.txt")  # by placement.py
OF_SIMULATED = """
## Placement on simulated machines

What `mn.simulate` says of 16 machines of 32 workers, from `benchmarks/placement.py`: nobody ran this. Bytes
follow from plans; seconds are estimates.

"""


def main() -> None:
    measured = document(list(pasts(read(RESULTS), ratio_now).values()))
    simulated = SIMULATED.read_text(encoding="utf-8")
    DOCUMENT.write_text(f"{measured}{OF_SIMULATED}```\n{simulated}```\n", encoding="utf-8")
    print(f"wrote {DOCUMENT.relative_to(DOCUMENT.parents[1])}")


if __name__ == "__main__":
    main()
