"""The line under a cell tells counts; measured numbers only where it was given some."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

from matnb.pictures.summary import (
    LoopFacts,
    RepartitionFacts,
    SummaryFacts,
    counts_text,
    summary_html,
    summary_text,
)

COUNTS = SummaryFacts(24, 3, 18, 2, 5, 40, 1_234_567, 35_000_000, plan_text="stage 1\n  a < b & c")


def test_counts_only():
    assert summary_text(COUNTS) == "40 tasks, 5 results reused"
    assert counts_text(COUNTS) == (
        "24 operations recorded (3 merged with equal ones); 18 operations run in 40 tasks; 2 arrays made; "
        "5 results reused; 1.23 MB moved between workers; memory: 35 MB projected"
    )


def test_measured_numbers():
    facts = SummaryFacts(1, 0, 1, 1, 0, 1, 0, 8, seconds=1.234, imbalance=1.5, actual_bytes=16)
    assert summary_text(facts) == "1 task, 1.23 s"
    assert counts_text(facts) == (
        "1 operation recorded; 1 operation run in 1 task; 1 array made; 0 results reused; "
        "0 B moved between workers; memory: 8 B projected, 16 B used; "
        "imbalance of the workers 1.50 (1 is even)"
    )


def test_arrays_that_gave_way_are_told():
    facts = replace(COUNTS, num_gave_way=2)
    assert summary_text(facts) == "40 tasks, 5 results reused, 2 arrays gave way"
    assert counts_text(facts).endswith("35 MB projected; 2 arrays gave way, made again when read")


def test_a_cell_that_only_records_says_so():
    assert summary_text(SummaryFacts(2, 1)) == "nothing run"
    tree = ElementTree.fromstring(summary_html(SummaryFacts(2, 1)))
    assert tree.find("details/div").text == "2 operations recorded (1 merged with equal ones)"


def test_the_plan_is_behind_the_line():
    tree = ElementTree.fromstring(summary_html(COUNTS))
    assert tree.find("details/summary").text == summary_text(COUNTS)
    assert tree.find("details/div").text == counts_text(COUNTS)
    assert tree.find("details/pre").text == COUNTS.plan_text


def test_a_picture_of_the_plan_takes_the_place_of_its_text_and_is_not_paler():
    facts = replace(COUNTS, plan_html="<svg><title>as it ran</title></svg>", left_lazy=("P",))
    tree = ElementTree.fromstring(summary_html(facts))
    assert tree.find("details/summary").text == summary_text(facts).splitlines()[0]
    assert tree.find("details/div[2]/svg/title").text == "as it ran"
    assert tree.find("details/pre") is None
    assert "P stays lazy" in "".join(tree.find("div").itertext())
    around = (tree, tree.find("details"), tree.find("details/div[2]"))
    assert not any("opacity" in one.get("style", "") for one in around)


def test_names_left_lazy_are_told_with_what_to_do():
    facts = SummaryFacts(2, 0, num_tasks=1, left_lazy=("P", "_"))
    assert "P stays lazy: larger than the memo budget; to compute it, use --keep P" in summary_text(facts)
    assert "the last value stays lazy" in summary_html(facts)


def loop_line(*loops: LoopFacts) -> list[str]:
    return summary_text(SummaryFacts(1, 0, num_tasks=1, loops=loops)).splitlines()[1:]


def test_a_loop_says_how_often_and_by_whom():
    assert loop_line(LoopFacts(20, 14, 1)) == ["loop: 20 iterations of a program of 14 tasks, by 1 worker"]
    assert loop_line(LoopFacts(1, 1, 3, sent_bytes=4000, seconds=0.5)) == [
        "loop: 1 iteration of a program of 1 task, by 3 workers, 4 kB sent, 500 ms, 500 ms each"
    ]
    assert loop_line(LoopFacts(0, 14, 0, "no gang today", seconds=0.5)) == [
        "loop: 0 iterations of a program of 14 tasks, task by task (no gang today), 500 ms"
    ]
    assert loop_line(LoopFacts(None, 4, 1)) == ["branch: a program of 4 tasks, by 1 worker"]


def test_many_loops_are_told_of_together():
    lines = loop_line(*(LoopFacts(number, 3, 1) for number in range(40)))
    assert len(lines) == 4
    assert lines[-1] == "and 37 more loops: 777 iterations"


def repartition_lines(*repartitions: RepartitionFacts) -> list[str]:
    return summary_text(SummaryFacts(1, 0, num_tasks=1, repartitions=repartitions)).splitlines()[1:]


def test_what_was_re_cut_is_told_with_what_it_should_bring():
    assert repartition_lines(
        RepartitionFacts("A", 1, (1.618, 1.041), 0.031), RepartitionFacts("B, x", 12)
    ) == [
        "repartitioned A once: imbalance 1.62 -> 1.04, 31 ms",
        "repartitioned B, x 12 times",
    ]
    assert repartition_lines(RepartitionFacts("A", 2, seconds=0.5)) == ["repartitioned A twice: 500 ms"]


def test_many_arrays_that_were_re_cut_are_told_of_together():
    lines = repartition_lines(*(RepartitionFacts(f"A{number}", number + 1) for number in range(9)))
    assert lines[2:] == ["repartitioned A2 3 times", "and 39 times others: %distmat history tells of them"]
    assert "<b>" not in summary_html(
        SummaryFacts(1, 0, num_tasks=1, repartitions=(RepartitionFacts("<b>", 1),))
    )
