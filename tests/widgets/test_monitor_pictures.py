"""Pictures of the load monitor: to scale, small for any number of workers, right whatever the numbers are."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matnb.pictures.svg_style import COLORS
from matnb.program.kinds import shown_kind
from matnb.widgets.monitor_pictures import MOST_BYTES, colors_of, monitor_html, monitor_text
from matnb.widgets.monitor_rows import MonitorFacts, WorkerFacts, rows_of

EVIL = "<script>alert('1')</script> & \"x\"\x00\u202e"
HALF = WorkerFacts(
    0, {"product": 0.5, "map": 0.25}, 12, 3, 1_200_000_000, 4_000_000_000, 1_500_000.0, 0.0, (0.0, 0.5, 1.0)
)
FULL = replace(HALF, number=7, busy={"product": 1.0}, memory_bytes=3_600_000_000, num_queued=0)
FACTS = MonitorFacts(
    (HALF, FULL), 1.0, (2.0, 1.14), iteration=312, most_iterations=1000, iteration_seconds=0.012,
    seconds_left=8.25, num_repartitions=2, is_running=True,
)  # fmt: skip


def many(num_workers: int) -> MonitorFacts:
    """Return facts of workers of which each is busier than the one before."""
    step = 1 / max(1, num_workers - 1)
    workers = tuple(
        WorkerFacts(
            number,
            {f"reduce {kind}": number * step / 8 for kind in range(8)},
            number, 2, 10**9 + 10**6 * number, 4 * 10**9, 1e6 * number, 2e6,
            tuple(abs(math.sin(number + moment)) for moment in range(60)),
        )
        for number in range(num_workers)
    )  # fmt: skip
    return MonitorFacts(workers, 1.0, tuple(1 + moment / 60 for moment in range(60)), num_repartitions=1)


def elements(text: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(text).iter())


def paths(text: str, fill: str) -> list[tuple[int, int, int, int]]:
    """Return the rectangles of a color: left, top, width, height."""
    found = re.findall(rf'<path fill="{fill}"[^>]*? d="([^"]*)"', text)
    return [tuple(map(int, one)) for d in found for one in re.findall(r"M(\d+) (\d+)h(\d+)v(\d+)h-\3z", d)]


def cells(text: str) -> list[list[str]]:
    (table,) = (one for one in elements(text) if one.tag == "table")
    return [["".join(cell.itertext()) for cell in row] for row in table.iter("tr")]


def test_bars_are_as_wide_as_the_shares_and_stand_side_by_side():
    text = monitor_html(FACTS)
    product, mapped = paths(text, COLORS[0]), paths(text, COLORS[1])
    (left, top, wide, tall), (whole_left, whole_top, whole, _) = product
    assert (wide, whole) == (68, 136)
    assert whole_left == 62
    assert mapped == [(62, top, 34, tall)]
    assert left == 62 + 34
    assert whole_top - top == 22


def test_shares_of_more_than_all_stay_inside_their_frame():
    text = monitor_html(MonitorFacts((replace(HALF, busy={"product": 1.0, "map": 0.9, "merge": math.nan}),)))
    (mapped,), (product,) = paths(text, COLORS[1]), paths(text, COLORS[0])
    assert mapped[0] + mapped[2] == product[0]
    assert product[0] + product[2] == 62 + 136


def test_memory_is_to_scale_and_told_apart_where_it_is_short():
    text = monitor_html(FACTS)
    assert [wide for *_, wide, _ in paths(text, "#d55e00")] == [36]
    assert (62, 20, 12, 14) in paths(text, "currentColor")
    assert ">1.20 of 4 GB<" in text
    without = monitor_html(replace(FACTS, workers=(replace(HALF, limit_bytes=0),)))
    assert ">1.2 GB<" in without


def test_the_line_over_time_ends_at_the_right_edge():
    (line,) = re.findall(r'fill-opacity=".5" d="(M[^"]*)"', monitor_html(replace(FACTS, workers=(HALF,))))
    begin, ups, floor = re.fullmatch(r"M(\d+) 34(.*)V(\d+)z", line).groups()
    steps = [int(one) for one in re.findall(r"h(\d+)", ups)]
    assert int(begin) + sum(steps) == 352
    assert [int(one) for one in re.findall(r"v(-?\d+)", ups)] == [-7, -7]
    assert floor == "34"


def test_the_table_says_what_the_picture_shows():
    head, first, second = cells(monitor_html(FACTS))
    assert head == ["worker", "busy", "by kind of work", "memory", "run", "wait", "in", "out"]
    assert first == [
        "0",
        "75 %",
        "elementwise 25 %, product 50 %",
        "1.2 GB of 4 GB",
        "3",
        "12",
        "1.5 MB/s",
        "0",
    ]
    assert second == ["7", "100 %", "product 100 %", "3.6 GB of 4 GB", "3", "0", "1.5 MB/s", "0"]
    assert "<table" not in monitor_html(FACTS, with_table=False)
    opened = [one.get("open") for one in elements(monitor_html(FACTS, is_open=True)) if one.tag == "details"]
    assert opened == [""]


def test_text_is_aligned():
    assert monitor_text(FACTS).splitlines() == [
        "iteration 312 of 1,000, 12 ms each now, 8.25 s left",
        "2 workers, 88 % busy now, imbalance 1.14 now, 2 repartitions",
        "worker  busy   by kind of work                 memory          run  wait  in        out",
        "0       75 %   elementwise 25 %, product 50 %  1.2 GB of 4 GB  3    12    1.5 MB/s  0",
        "7       100 %  product 100 %                   3.6 GB of 4 GB  3    0     1.5 MB/s  0",
    ]


def test_what_is_not_known_is_not_said():
    assert monitor_text(MonitorFacts()) == "nothing has run yet\n0 workers, no repartition"
    assert "% busy" not in monitor_text(MonitorFacts((WorkerFacts(0),)))
    endless = replace(FACTS, most_iterations=math.inf, seconds_left=math.inf, iteration_seconds=0.0)
    assert monitor_text(endless).startswith("iteration 312\n")
    assert monitor_text(replace(FACTS, iteration=-1)).startswith("running\n")
    ended = replace(FACTS, is_running=False, has_run=True, is_past=True)
    assert monitor_text(ended).startswith("ended after iteration 312 of 1,000, 12 ms each\n2 workers, ")
    for facts in (MonitorFacts(), endless):
        elements(monitor_html(facts))


def test_how_busy_workers_were_is_not_told_as_how_busy_they_are():
    now = replace(FACTS, iteration=-1, has_run=True)
    wanted = [
        (now, "running\n2 workers, 88 % busy now, "),
        (replace(now, at="12:47:03"), "at 12:47:03: running\n2 workers, 88 % busy, imbalance 1.14, "),
        (replace(now, is_running=False), "nothing runs now\n2 workers, imbalance 1.14 in the last seconds, "),
        (replace(now, is_running=False, is_past=True), "ended\n2 workers, 88 % busy at the end, "),
        (
            replace(now, is_running=False, is_past=True, has_stopped=True),
            "ended, the session was stopped\n2 workers, 88 % busy at the end, ",
        ),
    ]
    ended = replace(now, is_running=False, is_past=True, imbalance_of_all=1.25)
    wanted += [
        (replace(now, at="12:47:03"), "at 12:47:03: running\n2 workers, "),  # true in a file of that moment
        (replace(FACTS, at="12:47:03"), "at 12:47:03: iteration 312 of 1,000, 12 ms each now, 8.25 s left\n"),
        (replace(ended, outcome="cancelled"), "cancelled\n2 workers, 88 % busy at the end, imbalance 1.25, "),
        (replace(ended, iteration=7, outcome="failed"), "failed after iteration 7 of 1,000, 12 ms each\n"),
        (replace(ended, is_elsewhere=True), "ended, see the newer monitor\n2 workers, "),
    ]
    for facts, words in wanted:
        assert monitor_text(facts).startswith(words)
        said = " ".join("".join(ElementTree.fromstring(monitor_html(facts)).itertext()).split())
        assert all(word in said for word in words.rstrip(", ").split("\n"))


def test_a_lost_worker_is_shown_and_not_counted():
    facts = replace(FACTS, workers=(HALF, replace(FULL, is_lost=True)))
    assert "1 worker, 75 % busy" in monitor_text(facts)
    assert "lost: worker 7" in monitor_text(facts)
    assert cells(monitor_html(facts))[2][:2] == ["7", "lost"]
    assert len(paths(monitor_html(facts), COLORS[0])) == 1


@pytest.mark.parametrize("num_workers", [0, 1, 2, 8, 16, 17, 24, 25, 32, 33, 48, 63, 64, 65, 300, 1000])
def test_any_number_of_workers_is_small_and_well_formed(num_workers):
    facts = many(num_workers)
    for text in (monitor_html(facts), monitor_html(facts, with_table=False)):
        assert len(text.encode()) <= MOST_BYTES
        elements(text)
    assert monitor_html(facts) == monitor_html(facts)
    assert len(rows_of(facts)) == (num_workers if num_workers <= 64 else 7)
    if 0 < num_workers <= 64:  # each has a line over time, whatever was left out
        (lines,) = re.findall(r'fill-opacity=".5" d="([^"]*)"', monitor_html(facts, with_table=False))
        assert lines.count("M") == num_workers


def test_many_workers_are_quantiles():
    facts = many(1001)
    rows = {row.label: row for row in rows_of(facts)}
    shares = {label: row.share for label, row in rows.items()}
    wanted = {"most": 1.0, "90 %": 0.9, "75 %": 0.75, "median": 0.5, "25 %": 0.25, "10 %": 0.1, "least": 0.0}
    assert shares == pytest.approx(wanted)
    assert {label: row.num_queued for label, row in rows.items()} == pytest.approx(
        {label: 1000 * share for label, share in wanted.items()}
    )
    last = sorted(abs(math.sin(number + 59)) for number in range(1001))
    ranks = (1000, 900, 750, 500, 250, 100, 0)
    assert [row.history[-1] for row in rows.values()] == pytest.approx([last[rank] for rank in ranks])
    assert rows["most"].title == "the busiest, worker 1000"
    assert "busiest: workers 1000, 999, 998, 997, 996, 995, 994, 993" in monitor_text(facts)


def test_names_are_escaped_and_short():
    named = replace(HALF, busy={EVIL: 0.5, "x" * 10_000: 0.25, "\u202eevil": 0.1})
    facts = MonitorFacts((named,))
    text = monitor_html(facts)
    assert len(text) < 10_000
    assert not any(one.tag.endswith("script") for one in elements(text))
    assert "<script>alert(" in "".join(ElementTree.fromstring(text).itertext())
    assert "\u202e" not in text
    assert not re.search(r"https?://|url\(|\bon[a-z]+=", text)


def test_a_kind_has_one_color_whatever_else_there_is():
    alone = colors_of(["product"])["product"]
    assert colors_of(["a", "elementwise", "exchange", "product", "reduce"])["product"] == alone
    assert colors_of(["a", "b", "c", "d", "product"])["product"] == alone
    five = colors_of(["a", "b", "c", "d", "e"])
    assert len(set(five.values())) == 5


def test_all_kinds_that_have_a_word_have_colors_of_their_own():
    tasks = ("product", "map", "reduce", "send", "load", "sort", "pick", "join", "call")
    named = [shown_kind(task) for task in tasks]
    every = colors_of(named)
    assert len(set(every.values())) == len(tasks)
    for kind in named:
        for other in named:
            assert colors_of([other, kind, "unknown"])[kind] == every[kind]


def test_what_was_is_not_said_to_be_now():
    rested = MonitorFacts((HALF,), has_run=True)
    for show in (monitor_text, monitor_html):
        assert "busy in the last seconds" in show(rested)
        assert "busy at the end" in show(replace(rested, is_past=True))
        assert "busy in" not in show(replace(rested, is_running=True))


def test_kinds_without_a_name_are_other():
    facts = MonitorFacts((replace(HALF, busy={f"kind {place}": 0.1 for place in range(8)}),))
    (words,) = (row[2] for row in cells(monitor_html(facts))[1:])
    assert words.endswith("other 30 %")
    assert words.count("10 %") == 5


NUMBERS = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True), st.integers(-(10**400), 10**400), st.integers(-5, 5)
)
SOME_WORKERS = st.builds(
    WorkerFacts,
    number=st.integers(-(10**30), 10**30),
    busy=st.dictionaries(st.text(max_size=40), NUMBERS, max_size=8),
    num_queued=NUMBERS, num_running=NUMBERS, memory_bytes=NUMBERS, limit_bytes=NUMBERS,
    received_bytes=NUMBERS, sent_bytes=NUMBERS, history=st.lists(NUMBERS, max_size=70).map(tuple),
    is_lost=st.booleans(),
)  # fmt: skip


@given(
    workers=st.lists(SOME_WORKERS, max_size=4).map(tuple),
    copies=st.sampled_from([1, 1, 20]),
    step_seconds=NUMBERS,
    imbalance=st.lists(NUMBERS, max_size=70).map(tuple),
    iteration=NUMBERS,
    most_iterations=NUMBERS,
    iteration_seconds=NUMBERS,
    seconds_left=NUMBERS,
    num_repartitions=NUMBERS,
)
def test_whatever_the_numbers_are_it_is_drawn(workers, copies, **others):
    facts = MonitorFacts(workers * copies, **others)
    text = monitor_text(facts)
    assert not re.search(r"\bnan\b|\binf\b", re.sub(r"(?m)^.*by kind(.|\n)*", "", text))
    drawn = monitor_html(facts)
    elements(drawn)
    assert len(drawn.encode()) <= MOST_BYTES
    for d in re.findall(r' d="([^"]*)"', drawn):
        assert re.fullmatch(r"[MhvVHz0-9 -]*", d)
