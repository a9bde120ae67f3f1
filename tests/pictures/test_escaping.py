"""What no XML may hold is shown as a sign in its place, in every picture that tells a name."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from matnb.pictures.escaping import columns_of, escaped, shortened
from matnb.pictures.findings import Finding, findings_html
from matnb.pictures.summary import LaterFacts, LoopFacts, SummaryFacts, later_html, summary_html
from matnb.widgets.monitor_pictures import monitor_html
from matnb.widgets.monitor_rows import MonitorFacts, WorkerFacts

NAME = "bad\x01\x0b\ud800<b>&\x7f.csv"
KIND = {NAME: 0.5}


def loop(reason: str) -> LoopFacts:
    return LoopFacts(iterations=3, num_tasks=1, num_workers=1, reason=reason, sent_bytes=0, seconds=1.0)


@pytest.mark.parametrize(
    "drawn",
    [
        pytest.param(findings_html([Finding("files", NAME)]), id="findings"),
        pytest.param(later_html(LaterFacts(("x",), "failed", 1.0, NAME)), id="later"),
        pytest.param(monitor_html(MonitorFacts((WorkerFacts(0, KIND),))), id="monitor, html"),
        pytest.param(summary_html(SummaryFacts(1, 0, num_tasks=1, loops=(loop(NAME),))), id="summary"),
    ],
)
def test_control_characters_leave_it_well_formed(drawn: str) -> None:
    assert "<b>&" not in drawn
    ElementTree.fromstring(f"<div>{drawn}</div>")
    assert drawn.encode()


def test_each_character_that_is_unfit_is_one_sign() -> None:
    assert escaped("a\x01\x0bb") == "a\ufffd\ufffdb"


@pytest.mark.parametrize(
    ("text", "longest", "short"),
    [
        ("", 3, ""),
        ("abc", 3, "abc"),
        ("abcd", 3, "ab\u2026"),
        ("a" * 9, 1, "\u2026"),
        ("\u00e9" * 5, 4, "\u00e9" * 3 + "\u2026"),
    ],
)
def test_text_that_is_too_long_has_so_many_characters_and_a_sign(text: str, longest: int, short: str) -> None:
    assert shortened(text, longest) == short
    assert escaped(text, longest) == short


def test_it_is_shortened_before_it_is_escaped() -> None:
    assert escaped("<<<<", 3) == "&lt;&lt;\u2026"
    assert escaped("<<<<") == "&lt;" * 4


@pytest.mark.parametrize(
    ("text", "columns"),
    [("", 0), ("ab c", 4), ("\u00e9t\u00e9", 3), ("\u884c\u5217x", 5), ("\uff21", 2), ("\U0001f600", 2)],
)
def test_columns_are_those_of_a_terminal(text: str, columns: int) -> None:
    assert columns_of(text) == columns
