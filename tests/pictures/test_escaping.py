"""What no XML may hold is shown as a sign in its place, in every picture that tells a name."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from matnb.pictures.escaping import escaped
from matnb.pictures.findings import Finding, findings_html
from matnb.pictures.later import LaterFacts, later_html
from matnb.pictures.monitor import monitor_html, monitor_svg
from matnb.pictures.monitor_facts import MonitorFacts, WorkerFacts
from matnb.pictures.summary import LoopFacts, SummaryFacts, summary_html

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
        pytest.param(monitor_svg(MonitorFacts((WorkerFacts(0, KIND),))), id="monitor, svg"),
        pytest.param(summary_html(SummaryFacts(1, 0, num_tasks=1, loops=(loop(NAME),))), id="summary"),
    ],
)
def test_control_characters_leave_it_well_formed(drawn: str) -> None:
    assert "<b>&" not in drawn
    ElementTree.fromstring(f"<div>{drawn}</div>")
    assert drawn.encode()


def test_each_character_that_is_unfit_is_one_sign() -> None:
    assert escaped("a\x01\x0bb") == "a\ufffd\ufffdb"
