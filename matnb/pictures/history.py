"""The history of balancing in words: what was re-cut, why, what was predicted and what came."""

from __future__ import annotations

from collections.abc import Sequence

from matnb.pictures.decisions import HEAD, is_compared, promises, row, text_strip, title, why
from matnb.pictures.facts import DecisionFacts, HistoryFacts
from matnb.pictures.quantities import count_text, plural_text

MOST_SHOWN = 20  # the newest; of the others only their number is told


def is_repeatable(policy: str, acts: bool, by_entries: bool) -> bool:
    """Tell whether a decision comes out the same every time, as it must to be told of in a report."""
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
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    lines = [head(facts), *older(facts, every[: len(every) - len(shown)])]
    for place, words in enumerate(rows if shown else ()):
        lines.append("  ".join([*map(str.ljust, words, widths), words[-1]]).rstrip())
        if place and is_compared(decision := shown[place - 1]):
            new = "after " if decision.acts else "not   "
            lines += [f"  before {text_strip(decision.before)}", f"  {new} {text_strip(decision.after)}"]
    return "\n".join(lines)


def last_text(facts: HistoryFacts) -> str:
    """Return the setting, and the newest decision with what it was to bring and brought."""
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
    """Return the decisions that may be told of, the oldest first."""
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
        return f"no re-cut; {plural_text(len(every), 'decision')} to leave it as it is"
    return f"{plural_text(len(every), 'decision')}, {count_text(num_acted)} to re-cut"


def _hidden(facts: HistoryFacts) -> str:
    """Return which decisions may be there although they are not told of."""
    if facts.measured or facts.setting in ("entries", "off"):
        return ""
    which = "to leave it as it is" if facts.setting == "replay" else "by measured seconds"
    return f"decisions {which} are not told of here"


def older(facts: HistoryFacts, left_out: Sequence[DecisionFacts], which: str = "older") -> list[str]:
    """Return how many decisions are not shown, and how many were not kept, a line each."""
    lines = []
    if left_out:
        num_acted = sum(one.acts for one in left_out)
        lines.append(f"and {plural_text(len(left_out), f'{which} decision')}, {num_acted} to re-cut")
    if facts.num_dropped and facts.measured:
        lines.append(f"{plural_text(facts.num_dropped, 'decision')} before them not kept")
    return lines
