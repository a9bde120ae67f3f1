"""Pictures of the history: well-formed, small, escaped; what is measured is told only where it may be."""

from __future__ import annotations

import math
import re
import time
from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from matnb.pictures.facts import DecisionFacts, GainFacts, HistoryFacts, StripFacts
from matnb.pictures.history import decisions_text, history_text, last_text
from matnb.pictures.history_page import (
    HEIGHT,
    MOST_BYTES,
    WIDTH,
    decision_html,
    decision_names,
    drawn_strips,
    height_of,
    history_html,
    history_svg,
    num_left_out,
)
from matnb.pictures.imbalance import imbalance
from matnb.pictures.svg_style import color_of

SVG = "{http://www.w3.org/2000/svg}"
EVIL = "<script>alert('1')</script> & \"x\""
BEFORE = StripFacts((0, 250, 500, 750, 1000), (0, 0, 1, 1), (0.5, 0.1, 0.1, 0.1), ((0, 0.6), (1, 0.2)))
AFTER = StripFacts((0, 100, 1000), (0, 1), (), ((0, 0.42), (1, 0.38)))
GAINED = GainFacts(((0, 0.41), (1, 0.40)), 0.195, 0.081, 900_000)
REPARTITIONED = DecisionFacts(
    "A, x", "auto", True, "uneven: 1.5", 12, "segmented", BEFORE, AFTER,
    saving_seconds=0.18, num_remaining=38, cost_seconds=0.09, moved_bytes=1_000_000, gained=GAINED,
)  # fmt: skip
KEPT = DecisionFacts("A, x", "auto", False, "balanced: 1.02", 40, "segmented", AFTER, AFTER, num_repeats=7)
ENTRIES = StripFacts((0, 500, 1000), (0, 1), (), ((0, 900), (1, 100)))
EVENED = StripFacts((0, 100, 1000), (0, 1), (), ((0, 510), (1, 490)))
COUNTED = DecisionFacts(
    "A", "entries", True, "uneven: 1.80 of the mean", 0, "segmented", ENTRIES, EVENED, True, gained=GAINED
)


def facts(*decisions: DecisionFacts, measured: bool = True, setting: str = "auto") -> HistoryFacts:
    return HistoryFacts(decisions, setting, measured=measured)


def elements(text: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(text).iter())


def drawn(decision: DecisionFacts, measured: bool = True) -> list[ElementTree.Element]:
    return elements(f"<svg>{drawn_strips(decision, measured)}</svg>")


def rectangles(path: str) -> list[tuple[int, int, int, int]]:
    found = re.findall(r"M(\d+) (\d+)h(\d+)v(\d+)h-\3z", path)
    return [tuple(map(int, one)) for one in found]


def covered(decision: DecisionFacts) -> dict[int, list[tuple[int, int, str]]]:
    """Return by strip the filled rectangles in order: begin, end, color."""
    strips_found: dict[int, list[tuple[int, int, str]]] = {}
    for path in drawn(decision):
        if path.tag == "path" and path.get("fill") not in (None, "none"):
            for x, y, wide, _ in rectangles(path.get("d")):
                strips_found.setdefault(y, []).append((x, x + wide, path.get("fill")))
    return {top: sorted(ones) for top, ones in sorted(strips_found.items())}


def test_the_blocks_fill_both_strips_to_scale_in_their_owners_colors():
    before, after = covered(REPARTITIONED).values()
    for ones in (before, after):
        assert (ones[0][0], ones[-1][1]) == (46, 346)
        assert all(left[1] == right[0] for left, right in pairwise(ones))
    assert after == [(46, 76, color_of(0)), (76, 346, color_of(1))]
    assert [color for _, _, color in before] == [
        color_of(0),
        color_of(0),
        color_of(1),
    ]  # neighbors alike joined


def test_a_heavy_block_is_the_strongest():
    shades = {path.get("fill-opacity") for path in drawn(REPARTITIONED) if path.get("fill-opacity")}
    first = next(path for path in drawn(REPARTITIONED) if "M46 0" in path.get("d", ""))
    assert float(first.get("fill-opacity")) == max(map(float, shades)) == 1.0


def bars(decision: DecisionFacts, left: int, top: int) -> list[int]:
    found = [re.findall(r"M(\d+) (\d+)v-(\d+)h\d+v\3z", one.get("d", "")) for one in drawn(decision)]
    every = sorted(tuple(map(int, bar)) for ones in found for bar in ones)
    return [tall for x, y, tall in every if left <= x < left + 64 and y == top + 26]


def test_bars_are_as_tall_as_the_loads():
    assert bars(REPARTITIONED, 360, 0) == [26, round(26 / 3)]
    assert bars(REPARTITIONED, 360, 34) == [round(26 * 0.42 / 0.6), round(26 * 0.38 / 0.6)]
    assert bars(REPARTITIONED, 536, 34) == [round(26 * 0.41 / 0.6), round(26 * 0.40 / 0.6)]
    words = [one.text for one in drawn(REPARTITIONED) if one.tag == "text"]
    assert words == ["before", "after", "1.50 imbalance", "1.05 predicted", "1.01 measured"]


def test_seconds_after_entries_have_a_scale_of_their_own():
    assert bars(COUNTED, 360, 0) == [26, round(26 / 9)]
    assert max(bars(COUNTED, 536, 34)) == 26


def test_hovering_tells_rows_worker_and_load():
    titles = [one.text for one in drawn(REPARTITIONED) if one.tag == "title"]
    assert "rows 0 to 250, 25 %; worker 0; 500 ms" in titles
    assert "worker 1: 200 ms" in titles
    assert "<title>" not in drawn_strips(REPARTITIONED, detailed=False)


def test_many_workers_and_blocks_stay_small():
    cuts, owners = tuple(range(0, 20_001, 2)), tuple(block // 10 for block in range(10_000))
    loads = tuple((owner, 1.0 + owner % 7) for owner in range(1000))
    strip = StripFacts(cuts, owners, (), loads)
    text = history_html(facts(*[replace(REPARTITIONED, before=strip, after=strip, gained=None)] * 200))
    assert len(text.encode()) <= MOST_BYTES
    assert "<svg" in text
    assert imbalance(dict(loads)) == pytest.approx(7 / 4, rel=0.01)


def test_html_is_well_formed_escaped_and_without_script_or_address():
    evil = replace(REPARTITIONED, name=EVIL, reason=EVIL, policy=EVIL)
    text = history_html(facts(evil, replace(evil, acts=False), setting=EVIL))
    everything = elements(text)
    assert not any(one.tag == "script" for one in everything)
    assert EVIL in "".join(ElementTree.fromstring(text).itertext())
    assert not re.search(r"https?://|url\(|\bon[a-z]+=", text)
    assert any(one.tag == "svg" and EVIL in one.get("aria-label") for one in everything)


def test_the_table_says_what_the_picture_shows():
    (table,) = (one for one in elements(history_html(facts(REPARTITIONED, KEPT))) if one.tag == "table")
    head, *rows = [["".join(cell.itertext()) for cell in row] for row in table.iter("tr")]
    first = dict(zip(head, rows[0], strict=True))
    assert first["before"] == "4 blocks, cut at 250, 500, 750"
    assert first["after"] in ("12", "2 blocks, cut at 100")
    assert rows[0][-2] == "2 blocks, cut at 100"
    assert first["loads"] == (
        "before: worker 0 600 ms, worker 1 200 ms; predicted: worker 0 420 ms, worker 1 380 ms; "
        "measured: worker 0 410 ms, worker 1 400 ms"
    )
    assert first["saves"] == "180 ms"
    assert first["saved"] == "195 ms"
    assert rows[1][1] == "kept 7x"
    assert all(cell.get("scope") == "col" for cell in table.iter("th"))


def test_the_svg_is_a_document_and_the_same_every_time():
    text = history_svg(facts(REPARTITIONED, KEPT, replace(REPARTITIONED, name=EVIL, reason="long " * 60)))
    root = ElementTree.fromstring(text)
    assert root.tag == f"{SVG}svg"
    assert text == history_svg(
        facts(REPARTITIONED, KEPT, replace(REPARTITIONED, name=EVIL, reason="long " * 60))
    )
    places = [int(one.get("y")) for one in root.findall(f"{SVG}text")]
    assert places == sorted(places)
    assert all(b - a >= 14 for a, b in pairwise(places))
    assert float(root.get("height")) > places[-1]
    assert len(root.findall(f"{SVG}g")) == 2


def test_drawings_stay_inside():
    for one in drawn(REPARTITIONED):
        if one.tag == "rect":
            assert 0 <= int(one.get("x")) <= int(one.get("x")) + int(one.get("width")) <= WIDTH
            assert 0 <= int(one.get("y")) <= int(one.get("y")) + int(one.get("height")) <= HEIGHT


def test_text_is_aligned_and_shows_the_cuts():
    assert history_text(facts(REPARTITIONED, KEPT)).splitlines() == [
        "rebalance=auto: 2 decisions, 1 to repartition",
        "arrays                 after  policy  imbalance     saves   costs  moves  saved   cost   reason",
        "A, x    repartitioned  12     auto    1.50 -> 1.05  180 ms  90 ms  1 MB   195 ms  81 ms  "
        "uneven: 1.5",
        "  before 000000000000000000000000111111111111111111111111  4 blocks, cut at 250, 500, 750",
        "  after  000001111111111111111111111111111111111111111111  2 blocks, cut at 100",
        "A, x    kept 7x        40     auto    1.05                                               "
        "balanced: 1.02",
    ]


def test_the_newest_are_shown_and_the_rest_counted():
    many = [replace(REPARTITIONED if n % 10 == 0 else KEPT, iteration=n, num_repeats=1) for n in range(200)]
    given_facts = HistoryFacts(tuple(many), num_dropped=5)
    text = history_text(given_facts)
    assert "200 decisions, 20 to repartition" in text
    assert "and 180 older decisions, 18 to repartition" in text
    assert "5 earlier decisions not kept" in text
    shown = chosen_between(history_html(given_facts))
    left_out = num_left_out(given_facts)
    assert len(shown) == 200 - left_out >= 12
    assert f"and {left_out} other decisions, " in history_html(given_facts)
    # Those that were acted upon stay longer.
    assert [one for one in shown if "repartition" in one][-3:] == [
        "A, x, iteration 170: repartitioned",
        "A, x, iteration 180: repartitioned",
        "A, x, iteration 190: repartitioned",
    ]
    assert shown[-1] == "A, x, iteration 199: kept"
    assert len([one for one in shown if "repartition" in one]) > len(shown) / 2
    everything = history_text(given_facts, limit=None).splitlines()
    assert sum(line.startswith("A, x") for line in everything) == 200


def chosen_between(html: str) -> list[str]:
    return [one.find("input").tail for one in elements(html) if one.tag == "label"]


def test_of_many_decisions_one_is_seen_at_a_time_the_newest_re_cut_first():
    html = history_html(facts(KEPT, REPARTITIONED, KEPT, replace(KEPT, iteration=44)))
    assert chosen_between(html) == [
        "A, x, iteration 40: kept",
        "A, x, iteration 12: repartitioned",
        "A, x, iteration 40: kept (2)",
        "A, x, iteration 44: kept",
    ]
    checked = [one.find("input").get("checked") for one in elements(html) if one.tag == "label"]
    assert checked == [None, "checked", None, None]
    views = [one for form in elements(html) if form.tag == "form" for one in form if one.tag == "div"]
    assert [len(list(view.iter("svg"))) for view in views] == [2, 2, 2, 2]  # cuts, and loads
    assert "".join(views[1].itertext()).startswith(
        "A, x repartitioned after iteration 12 (auto): uneven: 1.5"
    )
    assert not chosen_between(history_html(facts(KEPT, REPARTITIONED)))


def test_every_decision_has_a_name_of_its_own_by_arrays_time_and_outcome():
    refused = replace(REPARTITIONED, acts=False, name="B", iteration=0)
    every = [
        REPARTITIONED,
        replace(REPARTITIONED, name="B"),
        refused,
        refused,
        KEPT,
        replace(REPARTITIONED, name="n" * 500),
    ]
    assert decision_names(every) == [
        "A, x, iteration 12: repartitioned",
        "B, iteration 12: repartitioned",
        "B, start: refused",
        "B, start: refused (2)",
        "A, x, iteration 40: kept",
        "n" * 23 + "\N{HORIZONTAL ELLIPSIS}, iteration 12: repartitioned",
    ]
    assert chosen_between(history_html(facts(*every))) == decision_names(every)


def test_it_is_told_where_in_its_run_a_decision_was_taken():
    one, two = (replace(KEPT, iteration=n) for n in (10, 40))
    every = [
        one,
        two,
        replace(KEPT, name="B", iteration=7),
        replace(REPARTITIONED, iteration=0),
        replace(KEPT, iteration=8),
    ]
    told = [re.findall(r"iteration [\d,]+ of [\d,]+", decision_html(every, place)) for place in range(5)]
    assert told == [
        ["iteration 10 of 40"],
        ["iteration 40 of 40"],
        [],
        ["iteration 0 of 8"],
        ["iteration 8 of 8"],
    ]
    marks = [int(x) for place in range(5) for x in re.findall(r"M(\d+) [47]v", decision_html(every, place))]
    assert all(46 <= x <= 346 for x in marks)
    (pointer,) = re.findall(r"M(\d+) 10l-4-8h8z", decision_html(every, 0))
    assert int(pointer) == 46 + round(300 * 10 / 40)


def test_cuts_that_were_considered_and_refused_are_drawn_with_what_they_would_bring():
    refused = replace(REPARTITIONED, acts=False, reason="not worth it", gained=None)
    words = [one.text for one in drawn(refused) if one.tag == "text"]
    assert words == ["before", "or", "1.50 imbalance", "1.05 predicted"]
    shown = history_html(facts(refused))
    assert "not carried out; predicted: saves 180 ms in each of 38, costs 90 ms, moves 1 MB" in shown
    assert "measured:" not in shown
    text = history_text(facts(refused))
    assert "  not    000001111111111111111111111111111111111111111111  2 blocks, cut at 100" in text
    assert "1.50 -> (1.05)  (180 ms)  (90 ms)  (1 MB)" in text
    assert height_of(KEPT) < height_of(refused) == HEIGHT
    assert [one.text for one in drawn(KEPT) if one.tag == "text"] == ["cuts", "1.05 imbalance"]


def test_names_and_reasons_without_end_are_shortened():
    endless = replace(REPARTITIONED, name="n" * 10_000, reason="r" * 10_000)
    for show in (history_html, history_svg, history_text):
        assert len(show(facts(*[endless] * 40))) < 2 * MOST_BYTES
    assert len(history_html(facts(*[endless] * 40)).encode()) <= MOST_BYTES
    assert "n" * 79 + "\N{HORIZONTAL ELLIPSIS}" in history_text(facts(endless))


def test_five_hundred_decisions_are_drawn_quickly():
    many = facts(*(replace(REPARTITIONED if n % 9 == 0 else KEPT, iteration=n) for n in range(500)))
    seconds = []
    for _ in range(3):
        start = time.process_time()
        assert len(history_html(many).encode()) <= MOST_BYTES
        seconds.append(time.process_time() - start)
    assert min(seconds) < 0.2


def test_nothing_yet():
    assert history_text(facts()) == "rebalance=auto: no decision yet"
    assert "<table" not in history_html(facts())
    elements(history_svg(facts()))
    assert last_text(facts(setting="off")) == "rebalance=off\nno decision yet"


UNREPEATABLE = [
    REPARTITIONED,
    KEPT,
    replace(REPARTITIONED, policy="asked"),
    replace(KEPT, policy="replay"),
    replace(REPARTITIONED, policy="workers"),
    replace(COUNTED, policy="auto"),
]


@pytest.mark.parametrize("decision", UNREPEATABLE)
def test_what_was_decided_by_measured_times_is_not_told_where_all_must_repeat(decision):
    given_facts = facts(COUNTED, decision, measured=False)
    without = facts(COUNTED, measured=False)
    for show in (history_text, history_html, history_svg, last_text, decisions_text):
        assert show(given_facts) == show(without)
    assert "decisions based on measured times are not shown here" in history_text(without)


def test_where_nothing_was_re_cut_it_says_so():
    assert history_text(facts(KEPT, KEPT)).startswith(
        "rebalance=auto: no repartition; 2 decisions to leave the cuts as they are\n"
    )
    one = replace(KEPT, policy="entries")
    for show in (history_text, history_html, history_svg):
        shown = show(facts(one, measured=False, setting="entries"))
        assert "rebalance=entries: no repartition; 1 decision to leave the cuts as they are" in shown
        assert ">or<" not in shown


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("auto", "decisions based on measured times are not shown here"),
        ("replay", "decisions to change nothing are not shown here"),
    ],
)
def test_where_all_decisions_are_hidden_none_are_counted(setting, said):
    hidden = facts(replace(KEPT, policy=setting), measured=False, setting=setting)
    assert history_text(hidden) == f"rebalance={setting}: {said}"
    assert last_text(hidden) == f"rebalance={setting}\n{said}"


@pytest.mark.parametrize(
    ("shown", "again"),
    [
        (COUNTED, replace(COUNTED, saving_seconds=7.0, cost_seconds=8.0, gained=None)),
        (
            replace(REPARTITIONED, policy="replay", reason="replayed: uneven: 1.5"),
            replace(
                REPARTITIONED,
                policy="replay",
                reason="replayed: uneven: 1.6",
                before=replace(BEFORE, loads=((0, 1.0), (1, 0.2)), block_loads=(0.9, 0.1, 0.1, 0.1)),
                gained=replace(GAINED, saving_seconds=0.1),
            ),
        ),
    ],
)
def test_what_is_told_there_has_no_measured_number_in_it(shown, again):
    for show in (history_text, history_html, history_svg, last_text):
        told = show(facts(shown, measured=False))
        assert told == show(facts(again, measured=False))
        assert not re.search(r"\d m?s\b", told)
        assert "repartition" in told


def test_gains_that_are_not_known_and_losses():
    unknown = replace(REPARTITIONED, gained=replace(GAINED, saving_seconds=math.nan, loads=()))
    assert "measured: cost 81 ms, moved 900 kB" in last_text(facts(unknown))
    worse = replace(REPARTITIONED, gained=replace(GAINED, saving_seconds=-0.01))
    assert "measured: an iteration takes 10 ms more, cost 81 ms" in last_text(facts(worse))
    endless = replace(REPARTITIONED, num_remaining=math.inf)
    assert "predicted: saves 180 ms in each iteration, however many, costs 90 ms, moves 1 MB" in last_text(
        facts(endless)
    )
    assert "-10 ms" in history_text(facts(worse))


def test_the_last_decision_with_the_setting():
    assert last_text(facts(KEPT, REPARTITIONED)).splitlines() == [
        "rebalance=auto",
        "A, x repartitioned after iteration 12 (auto): uneven: 1.5",
        "predicted: saves 180 ms in each of 38, costs 90 ms, moves 1 MB",
        "measured: an iteration takes 195 ms less, cost 81 ms, moved 900 kB",
    ]
    assert decisions_text(facts(REPARTITIONED, KEPT)).splitlines() == [
        "A, x repartitioned after iteration 12 (auto): uneven: 1.5",
        "A, x kept after iteration 40 (auto), 7 times in a row: balanced: 1.02",
    ]
