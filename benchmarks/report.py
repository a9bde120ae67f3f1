"""Writes docs/performance.md from results.jsonl: each claim now, before, and at its best."""

from __future__ import annotations

from pathlib import Path

from harness.document import document, ratio_now
from harness.record import RESULTS, pasts, read

DOCUMENT = Path(__file__).parents[1] / "docs" / "performance.md"


def main() -> None:
    DOCUMENT.write_text(document(list(pasts(read(RESULTS), ratio_now).values())), encoding="utf-8")
    print(f"wrote {DOCUMENT.relative_to(DOCUMENT.parents[1])}")


if __name__ == "__main__":
    main()
