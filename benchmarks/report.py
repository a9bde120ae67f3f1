"""Writes docs/performance.md from the newest line of each claim in results.jsonl."""

from __future__ import annotations

from pathlib import Path

from harness.document import document
from harness.record import RESULTS, newest, read

DOCUMENT = Path(__file__).parents[1] / "docs" / "performance.md"


def main() -> None:
    DOCUMENT.write_text(document(list(newest(read(RESULTS)).values())), encoding="utf-8")
    print(f"wrote {DOCUMENT.relative_to(DOCUMENT.parents[1])}")


if __name__ == "__main__":
    main()
