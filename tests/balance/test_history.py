"""The history keeps, merges and forgets as it says; a trace is read as it was written, or refused."""

from __future__ import annotations

import json
import math
import threading
from dataclasses import fields, is_dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matnb.balance import trace
from matnb.balance.decision import Decision, Gain, HistoryItem
from matnb.balance.history import History
from matnb.balance.situation import Costs, Profile, Situation
from matnb.balance.trace import RecordedTimes, Times, Trace
from matnb.blocks.layout import Cuts
from matnb.errors import FileFormatError

EVEN = Cuts((0, 50, 100), (0, 1))
BETTER = Cuts((0, 20, 100), (0, 1))
numbers = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, -0.0, 1e-323, 1.7e307])
amounts = numbers.map(abs)
rates = amounts.filter(bool)
counts = st.integers(0, 2**62)
loads = st.dictionaries(st.integers(0, 999), amounts, max_size=3)


@st.composite
def cuts(draw, length=None):
    length = draw(st.integers(1, 2**50)) if length is None else length
    inner = draw(st.sets(st.integers(1, length - 1), max_size=4)) if length > 1 else set()
    places = (0, *sorted(inner), length)
    owners = st.lists(st.integers(0, 9), min_size=len(places) - 1, max_size=len(places) - 1)
    return Cuts(places, tuple(draw(owners)))


@st.composite
def decisions(draw):
    before = draw(cuts())
    return Decision(
        name=draw(st.text()),
        policy=draw(st.text()),
        acts=draw(st.booleans()),
        reason=draw(st.text()),
        before=before,
        after=draw(cuts(before.cuts[-1])),
        strategy=draw(st.sampled_from(["segmented", "uniform"])),
        loads_before=draw(loads),
        loads_after=draw(loads),
        block_seconds=tuple(draw(st.lists(amounts, max_size=3))),
        saving_seconds=draw(numbers),
        num_remaining=draw(amounts | st.just(math.inf)),
        cost_seconds=draw(amounts),
        moved_bytes=draw(counts),
        iteration=draw(counts),
        in_entries=draw(st.booleans()),
    )


gains = st.builds(Gain, loads, numbers | st.just(math.nan), amounts, counts)
passed = st.builds(HistoryItem, counts, decisions(), st.none() | gains, st.integers(1, 2**40))


@st.composite
def stretches(draw):
    layout = draw(cuts())
    places = np.array(layout.cuts, np.int64)
    entries = np.cumsum(draw(st.lists(st.integers(0, 2**40), min_size=len(places), max_size=len(places))))
    situation = Situation(
        name=draw(st.text()),
        cuts=layout,
        profile=Profile(places, np.asarray(entries, np.int64)),
        row_bytes=draw(amounts),
        entry_bytes=draw(amounts),
        block_seconds=(),
        error=draw(amounts),
        speeds=draw(st.dictionaries(st.integers(0, 999), rates, max_size=3)),
        threads=draw(st.integers(1, 99)),
        entry_seconds=draw(amounts),
        apart_row_seconds=draw(amounts),
        row_seconds=draw(amounts),
        iteration=draw(counts),
        num_remaining=draw(amounts | st.just(math.inf)),
        iteration_seconds=draw(amounts),
        costs=Costs(draw(amounts), draw(rates)),
        other_seconds=draw(loads),
        since_last=draw(st.integers(-1, 99)),
        can_split_rows=draw(st.booleans()),
    )
    seconds = st.lists(amounts, min_size=layout.num_blocks, max_size=layout.num_blocks).map(tuple)
    times = st.builds(Times, counts, st.integers(1, 99), seconds, loads, amounts, amounts | st.just(math.inf))
    return RecordedTimes(situation, tuple(draw(st.lists(times, max_size=2))))


def plain(value):
    """Return a value as what can be compared: NaN equals itself, and 0.0 is not -0.0."""
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, np.ndarray):
        return (value.dtype.name, value.tolist())
    if isinstance(value, tuple):
        return [plain(one) for one in value]
    return repr(value)


def test_a_trace_that_a_user_saved_before_is_read_whatever_the_order_of_its_fields():
    text = (Path(__file__).parent / "data" / "trace_version_1.json").read_text(encoding="ascii")
    assert Trace.from_json(text).to_json() == written()
    assert json.loads(text) == json.loads(written())


def test_a_trace_from_before_rows_were_told_apart_is_read():
    text = changed("recorded", 0, "situation", "apart_row_seconds", to=...)
    assert Trace.from_json(text).to_json() == written()


def test_a_trace_from_before_columns_were_cut_is_read():
    text = changed("decisions", 0, "axis", to=...)
    assert Trace.from_json(text).to_json() == written()


@given(st.lists(passed, max_size=3), st.lists(stretches(), max_size=2), st.integers(0, 10**6))
def test_a_trace_is_read_as_it_was_written(decided, recorded, num_dropped):
    trace = Trace(tuple(decided), tuple(recorded), num_dropped)
    text = trace.to_json()
    assert text.isascii()
    read = Trace.from_json(text)
    assert plain(read) == plain(trace)
    assert read.to_json() == text


def strict(word):
    raise AssertionError(f"{word} is not JSON")


def decision(name="A", acts=False, reason="balanced: 1.02 of the mean", **others):
    given_ones = {
        "policy": "auto",
        "before": EVEN,
        "after": BETTER if acts else EVEN,
        "strategy": "segmented",
        "loads_before": {0: 0.3, 1: 0.1},
        "loads_after": {0: 0.2, 1: 0.2},
        "block_seconds": (0.3, 0.1),
        "saving_seconds": 0.1,
        "num_remaining": 7.0,
        "cost_seconds": 0.05,
        "moved_bytes": 1000,
        "iteration": 3,
    }
    return Decision(name=name, acts=acts, reason=reason, **{**given_ones, **others})


def situation(layout=EVEN, **others):
    given_ones = {
        "name": "A",
        "profile": Profile(np.array([0, 20, 100]), np.array([0, 800, 1600])),
        "row_bytes": 8.0,
        "entry_bytes": 12.0,
        "block_seconds": (),
        "error": 0.0,
        "speeds": {0: 1.0, 1: 1.0},
        "threads": 1,
        "entry_seconds": 1e-4,
        "row_seconds": 0.0,
        "iteration": 1,
        "num_remaining": 50.0,
        "iteration_seconds": 0.4,
        "costs": Costs(0.01, 1e9),
    }
    return Situation(cuts=layout, **{**given_ones, **others})


def written():
    history = History()
    number = history.add(decision(acts=True))
    history.gained(number, Gain({0: 0.2, 1: 0.2}, math.nan, 0.04, 900))
    for owner in (0, 1):
        history.measured(situation(), owner, 2, {owner: 0.6 - 0.4 * owner})
    return history.trace().to_json()


def test_what_is_not_finite_is_still_json():
    text = written()
    value = json.loads(text, parse_constant=strict)
    assert value["decisions"][0]["gain"]["saving_seconds"] == "nan"
    assert math.isnan(Trace.from_json(text).passed[0].gain.saving_seconds)


def test_a_trace_has_no_path_and_no_time():
    assert not {"path", "time", "date", "when", "host"} & set(json.loads(written())["decisions"][0])
    assert written() == written()


def changed(*path, to):
    value = json.loads(written())
    place = value
    for step in path[:-1]:
        place = place[step]
    if to is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = to
    return json.dumps(value)


WRONG = [
    ("", "not JSON"),
    ("\0\x01", "not JSON"),
    ("[1, 2\n3]", "t.json, line 2: not a trace, since it is not JSON"),
    ('{"format": NaN}', "NaN is not a number"),
    ("1" * 5000, "not JSON"),
    ("[" * 100_000, "too deep"),
    ("[]", 'a trace begins {"format": "matnb balance trace"'),
    ('{"nodes": []}', 'a trace begins {"format": "matnb balance trace"'),
    (changed("version", to=2), "version 2; this matnb reads 1"),
    (changed("version", to="x" * 999), "version 'xxx"),
    (changed("decisions", to=...), "decisions is missing"),
    (changed("decisions", to={}), "decisions is {}, not a list"),
    (changed("decisions", 0, to=3), "decisions[0] is 3, not an object"),
    (changed("decisions", 0, "name", to=None), "decisions[0].name is None, not a string"),
    (changed("decisions", 0, "acts", to=1), "decisions[0].acts is 1, not true or false"),
    (changed("decisions", 0, "strategy", to="random"), "'random', not 'segmented'"),
    (changed("decisions", 0, "iteration", to=-1), "decisions[0].iteration is -1, not a whole number"),
    (changed("decisions", 0, "iteration", to=True), "not a whole number"),
    (changed("decisions", 0, "moved_bytes", to=2**70), "not a whole number"),
    (changed("decisions", 0, "cost_seconds", to="0.5"), "cost_seconds is '0.5', not a number"),
    (changed("decisions", 0, "cost_seconds", to=10**400), "which is too large"),
    (changed("decisions", 0, "cost_seconds", to=True), "not a number"),
    (changed("decisions", 0, "cost_seconds", to=-1), "cost_seconds is -1, which must be at least 0"),
    (changed("decisions", 0, "cost_seconds", to="nan"), "cost_seconds is 'nan', not a number"),
    (changed("decisions", 0, "num_remaining", to="-inf"), "num_remaining is '-inf', not a number"),
    (
        changed("decisions", 0, "loads_after", to={"0": -2.0}),
        "loads_after.0 is -2.0, which must be at least 0",
    ),
    (changed("recorded", 0, "situation", "speeds", to={"0": 0.0}), "speeds.0 is 0.0, which must be above 0"),
    (changed("recorded", 0, "situation", "bytes_per_second", to=0), "bytes_per_second is 0, which must be"),
    (changed("recorded", 0, "times", 0, "block_seconds", to=[1.0, "inf"]), "block_seconds[1] is 'inf', not"),
    (changed("decisions", 0, "after", "cuts", to=[0, 5, 5, 100]), "they start at 0 and increase"),
    (changed("decisions", 0, "after", "cuts", to=[1, 100]), "they start at 0 and increase"),
    (changed("decisions", 0, "after", "owners", to=[0]), "has 1 workers for 2 blocks"),
    (changed("decisions", 0, "after", "cuts", to=[0, 5, 99]), "cuts 100 rows before and 99 after"),
    (changed("decisions", 0, "loads_after", to={"-1": 2.0}), "a worker '-1', which is not a number"),
    (changed("decisions", 0, "loads_after", to=[]), "loads_after is [], not an object"),
    (changed("decisions", 0, "gain", to=5), "decisions[0].gain is 5, not an object"),
    (changed("recorded", 0, "times", 0, "block_seconds", to=[1.0]), "of 1 blocks; there are 2"),
    (changed("recorded", 0, "situation", "places", to=[0, 9, 9]), "places is [0, 9, 9]: they start"),
    (changed("recorded", 0, "situation", "entries", to=[0, 9, 8]), "never decrease"),
    (changed("recorded", 0, "situation", "threads", to=0), "at least 1"),
]


@pytest.mark.parametrize(("text", "said"), WRONG)
def test_what_is_no_trace_is_refused_with_the_reason(text, said):
    with pytest.raises(FileFormatError) as caught:
        Trace.from_json(text, "t.json")
    assert str(caught.value).startswith("t.json")
    assert said in str(caught.value)
    assert len(str(caught.value)) < 300


def test_a_huge_text_is_refused_before_it_is_read(monkeypatch):
    monkeypatch.setattr(trace, "MAX_CHARACTERS", 100)
    with pytest.raises(FileFormatError, match="characters; a trace has at most 100"):
        Trace.from_json(" " * 101)


# the history


def test_decisions_are_numbered_and_gains_filled_in():
    history = History()
    first, second = history.add(decision(acts=True)), history.add(decision("B", acts=True))
    gain = Gain({0: 0.2}, 0.1, 0.05, 10)
    history.gained(second, gain)
    assert [(one.number, one.decision.name, one.gain) for one in history] == [
        (first, "A", None),
        (second, "B", gain),
    ]
    assert first != second
    assert history.last().number == second
    assert history.last("A").number == first
    assert history.last("C") is None


def test_refusals_alike_but_for_their_numbers_are_one_with_the_latest_numbers():
    history = History()
    for load in (1.02, 1.03, 1.04):
        number = history.add(decision(reason=f"balanced: {load} of the mean", iteration=int(load * 100)))
        history.add(decision("B", reason=f"12.5 ms {load} is noise"))  # others between do not matter
    assert [(one.decision.name, one.num_repeats) for one in history] == [("A", 3), ("B", 3)]
    assert history.last("A").decision.iteration == 104
    assert history.last("A").number == number


@pytest.mark.parametrize(
    "other",
    [
        {"acts": True},
        {"reason": "too early: 1 iteration"},
        {"policy": "presto"},
        {"before": BETTER, "after": BETTER},
    ],
)
def test_what_differs_is_not_merged(other):
    history = History()
    history.add(decision())
    history.add(decision(**other))
    history.add(decision())
    assert [one.num_repeats for one in history] == [1, 1, 1]


def test_re_cuts_are_never_merged():
    history = History()
    history.add(decision(acts=True))
    history.add(decision(acts=True))
    assert len(history) == 2


def test_it_is_bounded_and_refusals_go_first():
    history = History(limit=3)
    for number in range(3):
        history.add(decision(f"A{number}", acts=True))
        history.add(decision(f"A{number}"))
    # Two refusals went, then, for the newest one's sake, the oldest repartition.
    assert [(one.number, one.decision.acts) for one in history] == [(2, True), (4, True), (5, False)]
    assert history.num_dropped == 3
    assert history.trace().num_dropped == 3
    history.gained(1, Gain({}, 0.0, 0.0, 0))  # which is gone
    assert all(one.gain is None for one in history)


def test_it_may_be_read_while_it_is_written():
    history, failures, done = History(limit=20), [], threading.Event()

    def read():
        try:
            while not done.is_set():
                numbers_now = [one.number for one in history.passed]
                assert numbers_now == sorted(numbers_now)
                history.trace()
                history.last("A1")
        except Exception as error:
            failures.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(3000):
        history.gained(history.add(decision(f"A{number % 3}", acts=number % 7 == 0)), Gain({}, 0.0, 0.0, 0))
    done.set()
    reader.join()
    assert failures == []


def test_times_are_recorded_when_every_worker_has_told_its_own():
    history = History()
    now = situation(other_seconds={0: 0.05, 1: 0.0})
    history.measured(now, 0, 2, {0: 0.6})
    assert history.trace().recorded == ()
    history.measured(now, 0, 1, {0: 0.4})  # the newest counts
    history.measured(replace(now, iteration=4), 1, 4, {1: 0.8})
    (recorded,) = history.trace().recorded
    assert recorded.times == (Times(4, 1, (0.4, 0.2), {0: 0.45, 1: 0.2}, 0.4, 50.0),)
    assert recorded.situation.block_seconds == ()


def test_workers_that_share_a_block_each_add_their_part():
    history = History()
    history.measured(situation(), 1, 1, {0: 0.1, 1: 0.2})
    history.measured(situation(), 0, 1, {0: 0.3})
    (recorded,) = history.trace().recorded
    (row,) = recorded.times
    assert row.block_seconds == (0.4, 0.2)
    assert row.loads == pytest.approx({0: 0.3, 1: 0.3})


def test_other_cuts_or_another_array_of_the_name_begin_a_new_stretch():
    history = History()
    other = situation(profile=Profile(np.array([0, 100]), np.array([0, 5])))
    for now in (situation(), situation(), situation(BETTER), situation(), other, replace(other, name="A")):
        for owner in (0, 1):
            history.measured(now, owner, 1, {owner: 0.1})
    lengths = [(one.situation.cuts, len(one.times)) for one in history.trace().recorded]
    assert lengths == [(EVEN, 2), (BETTER, 1), (EVEN, 1), (EVEN, 2)]


def test_old_times_are_forgotten():
    history = History(most_rounds=4)
    for step in range(12):
        now = situation(EVEN if step < 9 else BETTER, iteration=step)
        for owner in (0, 1):
            history.measured(now, owner, 1, {owner: 0.1})
    kept = [row.iteration for one in history.trace().recorded for row in one.times]
    assert kept == [8, 9, 10, 11]
    history.clear()
    assert len(history) == 0
    assert len(history.trace().recorded) == 0


def test_stretches_are_bounded(monkeypatch):
    monkeypatch.setattr("matnb.balance.history.MOST_STRETCHES", 3)
    history = History()
    for number in range(9):
        for owner in (0, 1):
            history.measured(situation(name=f"A{number}"), owner, 1, {owner: 0.1})
    assert [one.situation.name for one in history.trace().recorded] == ["A6", "A7", "A8"]
    history.measured(situation(name="A0"), 0, 1, {0: 0.1})
    history.measured(situation(name="A0"), 1, 1, {1: 0.1})
    assert [one.situation.name for one in history.trace().recorded] == ["A7", "A8", "A0"]
