"""What is remembered, as a table: what is written alike is one line."""

from __future__ import annotations

from dataclasses import replace

from matnb.pictures.memo import MAX_ROWS, MemoEntry, memo_html, memo_text

HEAD = MemoEntry("(200000,) float64[0:5]", (5,), "float64", 40, 1, 0.5, "value", False)


def test_the_rows_of_one_table_are_one_line() -> None:
    entries = [HEAD] * 20 + [replace(HEAD, names=("x",)), replace(HEAD, dtype="int64")]
    lines = memo_text(entries).splitlines()
    assert len(lines) == 1 + 3 + 1
    assert lines[1].split() == [
        *["20", "of", "(200000,)", "float64[0:5]"], "5", "float64", "800", "B", "20", "value", "10", "s",
    ]  # fmt: skip
    assert lines[-1] == "22 entries, 880 B as values"
    assert memo_html(entries).count("<tr") == 4
    assert "x" in lines[2]


def test_how_many_are_not_shown_counts_each() -> None:
    others = [replace(HEAD, expression=f"a{number}") for number in range(MAX_ROWS)]
    last = memo_text([*others, *[replace(HEAD, expression="b")] * 3]).splitlines()[-1]
    assert last.endswith("; 3 more entries not shown")
