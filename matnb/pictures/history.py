"""The history of balancing in words: what was repartitioned, why, what was predicted and what came."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matnb.pictures.escaping import shortened
from matnb.pictures.facts import DecisionFacts, HistoryFacts, StripFacts
from matnb.pictures.imbalance import imbalance
from matnb.pictures.quantities import axes_text, bytes_text, count_text, plural_text, seconds_text

MOST_SHOWN = 20  # the newest; of the others only their number is given


def is_repeatable(policy: str, acts: bool, by_entries: bool) -> bool:
    """Tell whether a decision is the same every time, as it must be to appear in a report."""
    match policy:
        case "entries":
            return True
        case "asked":
            return by_entries
        case "replay":
            return acts
    return False


def history_text(facts: HistoryFacts, limit: int | None = MOST_SHOWN) -> str:
    """Return decisions as a table, below each whose cuts are others than those before both.

    Parameters
    ----------
    facts
        What happened.
    limit
        How many are shown, the newest; None for all.
    """
    every = told(facts)
    shown = every if limit is None else every[-limit:]
    rows = [HEAD, *(row(one, facts.measured) for one in shown)]
    used = [any(one[place] for one in rows[1:]) for place in range(len(HEAD))]
    rows = [tuple(word for word, is_used in zip(one, used, strict=True) if is_used) for one in rows]
    lines = [head(facts), *older(facts, every[: len(every) - len(shown)])]
    for place, line in enumerate(_columns(rows) if shown else ()):
        lines.append(line)
        if place and is_compared(decision := shown[place - 1]):
            new = "after " if decision.acts else "not   "
            lines += [f"  before {text_strip(decision.before)}", f"  {new} {text_strip(decision.after)}"]
    for section in facts.sections:
        rows = [section.head, *(section.rows if limit is None else section.rows[-limit:])]
        lines += [f"{plural_text(len(rows) - 1, section.what)}; {section.legend}", *_columns(rows)]
    return "\n".join(lines)


def _columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    return ["  ".join([*map(str.ljust, words, widths), words[-1]]).rstrip() for words in rows]


def last_text(facts: HistoryFacts) -> str:
    """Return the setting, and the newest decision with the gain that was expected and the measured one."""
    newest = told(facts)[-1:]
    lines = [f"rebalance={facts.setting}"]
    for one in newest:
        lines += [f"{title(one)}{why(one, facts.measured)}", *promises(one, facts.measured)]
    if not newest:
        lines.append(_hidden(facts) or "no decision yet")
    return "\n".join(lines)


def decisions_text(facts: HistoryFacts) -> str:
    """Return a line for each decision."""
    lines = [f"{title(one)}{why(one, facts.measured)}" for one in told(facts)]
    return "\n".join(lines) or "; ".join(filter(None, ("done", _hidden(facts))))


def told(facts: HistoryFacts) -> list[DecisionFacts]:
    """Return the decisions that a report may show, the oldest first."""
    return [
        one
        for one in facts.decisions
        if facts.measured or is_repeatable(one.policy, one.acts, one.by_entries)
    ]


def head(facts: HistoryFacts) -> str:
    """Return the setting, and how many decisions there were."""
    return f"rebalance={facts.setting}: {'; '.join(filter(None, (_counts(facts), _hidden(facts))))}"


def _counts(facts: HistoryFacts) -> str:
    every = told(facts)
    num_acted = sum(one.acts for one in every)
    if not every:
        return "" if _hidden(facts) else "no decision yet"
    if not num_acted:
        return f"no repartition; {plural_text(len(every), 'decision')} to leave the cuts as they are"
    return f"{plural_text(len(every), 'decision')}, {count_text(num_acted)} to repartition"


def _hidden(facts: HistoryFacts) -> str:
    """Return which decisions may be there although they are not told of."""
    if facts.measured or facts.setting in ("entries", "off"):
        return ""
    which = "to change nothing" if facts.setting == "replay" else "based on measured times"
    return f"decisions {which} are not shown here"


def older(facts: HistoryFacts, left_out: Sequence[DecisionFacts], which: str = "older") -> list[str]:
    """Return how many decisions are not shown, and how many were not kept, a line each."""
    lines = []
    if left_out:
        num_acted = sum(one.acts for one in left_out)
        lines.append(f"and {plural_text(len(left_out), f'{which} decision')}, {num_acted} to repartition")
    if facts.num_dropped and facts.measured:
        lines.append(f"{plural_text(facts.num_dropped, 'earlier decision')} not kept")
    return lines


# A decision in words: what was done and why, what was predicted and what came, and its numbers as a row.

HEAD = ("arrays", "", "after", "policy", "imbalance", "saves", "costs", "moves", "saved", "cost", "reason")
ENDS = ("before", "after", "loads")  # of a table that has room for them
_TEXT_WIDE = 48  # characters of a strip
_BLOCKS = 12  # cuts that are written out
_LONGEST_NAME, _LONGEST_REASON = 80, 300  # characters
_MARKS = "0123456789abcdefghijklmnopqrstuvwxyz"


def is_compared(one: DecisionFacts) -> bool:
    """Tell whether there are other cuts to look at: new ones, or those that were considered and refused."""
    return one.acts or (one.before.cuts, one.before.owners) != (one.after.cuts, one.after.owners)


def outcome(one: DecisionFacts) -> str:
    """Return what was decided, in a word: "kept" is where no other cuts were found."""
    return "repartitioned" if one.acts else "refused" if is_compared(one) else "kept"


def title(one: DecisionFacts) -> str:
    """Return what was done with what, when, and who decided."""
    when = f"after iteration {count_text(one.iteration)}" if one.iteration else "before the first iteration"
    how = ", heavy rows shared" if one.acts and one.strategy == "uniform" else ""
    done = "repartitioned" if one.acts else "kept"
    if one.after.axis:
        done += f" along {axes_text((one.after.axis,))}"
    return f"{shortened(one.name, _LONGEST_NAME)} {done} {when} ({one.policy}{how})"


def why(one: DecisionFacts, measured: bool) -> str:
    """Return how often it was decided, and the reason, to follow the title."""
    times = f", {one.num_repeats} times in a row" if measured and one.num_repeats > 1 else ""
    return f"{times}: {_reason(one, measured)}"


def _reason(one: DecisionFacts, measured: bool) -> str:
    # The numbers of a reason are measured ones, but for entries.
    told = one.reason if measured or one.policy == "entries" else one.reason.partition(":")[0]
    return shortened(told, _LONGEST_REASON)


def promises(one: DecisionFacts, measured: bool) -> list[str]:
    """Return what was predicted and what was measured, a line each."""
    if not measured or not is_compared(one) or not (one.acts or one.cost_seconds > 0):
        return []
    word = "predicted" if one.acts else "not carried out; predicted"
    lines = [
        f"{word}: {_saving(one.saving_seconds, one.num_remaining)}costs {seconds_text(one.cost_seconds)}, "
        f"moves {bytes_text(one.moved_bytes)}"
    ]
    if one.gained is not None:
        saved = one.gained.saving_seconds
        words = "" if math.isnan(saved) else f"an iteration takes {_less(saved)}, "
        lines.append(
            f"measured: {words}cost {seconds_text(one.gained.cost_seconds)}, "
            f"moved {bytes_text(one.gained.moved_bytes)}"
        )
    return lines


def _saving(seconds: float, num_remaining: float) -> str:
    if not seconds or not math.isfinite(seconds):
        return ""
    many = (
        "iteration, however many" if math.isinf(num_remaining) else f"of {count_text(round(num_remaining))}"
    )
    return f"saves {seconds_text(seconds)} in each {many}, "


def _less(seconds: float) -> str:
    return f"{seconds_text(abs(seconds))} {'less' if seconds >= 0 else 'more'}"


def row(one: DecisionFacts, measured: bool) -> tuple[str, ...]:
    """Return the numbers under ``HEAD``; those of cuts that were only considered are in brackets."""
    gained = one.gained if measured else None
    times = f" {count_text(one.num_repeats)}x" if measured and one.num_repeats > 1 else ""
    has_loads = bool(one.before.loads) and (measured or one.by_entries)
    balance = f"{imbalance(dict(one.before.loads)):.2f}" if has_loads else ""
    if has_loads and is_compared(one) and one.after.loads:
        balance += " -> " + _bracketed(one, f"{imbalance(dict(one.after.loads)):.2f}")
    promised = measured and (one.acts or (is_compared(one) and one.cost_seconds > 0))
    saved = None if gained is None or math.isnan(gained.saving_seconds) else gained.saving_seconds
    return (
        shortened(one.name, _LONGEST_NAME),
        "repartitioned" if one.acts else f"kept{times}",
        count_text(one.iteration),
        one.policy,
        balance,
        _bracketed(one, seconds_text(one.saving_seconds)) if promised and one.saving_seconds > 0 else "",
        _bracketed(one, seconds_text(one.cost_seconds)) if promised else "",
        _bracketed(one, bytes_text(one.moved_bytes)) if one.acts or promised else "",
        "" if saved is None else ("-" if saved < 0 else "") + seconds_text(abs(saved)),
        "" if gained is None else seconds_text(gained.cost_seconds),
        _reason(one, measured),
    )


def _bracketed(one: DecisionFacts, text: str) -> str:
    return text if one.acts else f"({text})"


def load_text(load: float, unit: str) -> str:
    """Return a load with its unit, "entries" or "seconds"."""
    return seconds_text(load) if unit == "seconds" else plural_text(round(load), "entry")


def text_strip(strip: StripFacts) -> str:
    """Return a strip as a line: a mark of the owner for each part of the rows, then the cuts."""
    # A mark for each part of the rows, that of the worker which owns its middle.
    length, block, marks = strip.cuts[-1], 0, []
    for place in range(_TEXT_WIDE):
        row = (2 * place + 1) * length / (2 * _TEXT_WIDE)
        while block < len(strip.owners) - 1 and strip.cuts[block + 1] <= row:
            block += 1
        marks.append(_MARKS[strip.owners[block] % len(_MARKS)])
    return f"{''.join(marks)}  {cuts_text(strip)}"


def cuts_text(strip: StripFacts) -> str:
    """Return how many blocks there are, and where the first are cut."""
    inner = strip.cuts[1:-1]
    words = ", ".join(map(count_text, inner[:_BLOCKS])) + (", ..." if len(inner) > _BLOCKS else "")
    return f"{plural_text(len(strip.owners), 'block')}{f', cut at {words}' if inner else ''}"


def ends(one: DecisionFacts, measured: bool) -> tuple[str, str, str]:
    """Return the cuts and the loads under ``ENDS``."""
    after = _bracketed(one, cuts_text(one.after)) if is_compared(one) else ""
    if not measured and not one.by_entries:
        return cuts_text(one.before), after, ""
    unit = "entries" if one.by_entries else "seconds"
    told = [("before", one.before.loads, unit)]
    told += [("predicted", one.after.loads, unit)] if is_compared(one) else []
    if measured and one.gained is not None:
        told.append(("measured", one.gained.loads, "seconds"))
    words = [
        f"{when}: {', '.join(f'worker {owner} {load_text(load, kind)}' for owner, load in loads[:_BLOCKS])}"
        for when, loads, kind in told
        if loads
    ]
    return cuts_text(one.before), after, "; ".join(words)
