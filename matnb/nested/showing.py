"""A nested array shown: its facts for pictures, and how it is cut and why; nothing is computed."""

from __future__ import annotations

from matnb.lazy.array import DistArray
from matnb.lazy.evaluator import shown
from matnb.nested.choice_texts import cost_text, measured_text
from matnb.nested.strategy_log import StrategyItem, strategies_of, strategy_facts
from matnb.nested.structure import Structure
from matnb.pictures.facts import NestedFacts
from matnb.pictures.quantities import seconds_text
from matnb.session.current import active_session


def nested_facts(structure: Structure, values: DistArray, strategy: str, is_sparse: bool) -> NestedFacts:
    """Return what is known of a nested array."""
    return NestedFacts(
        shown(values.expression),
        structure.knots.segments,
        structure.knots.values,
        structure.longest,
        structure.histogram,
        strategy,
        "" if structure.choice is None else structure.choice.reason,
        structure.cuts,
        is_sparse,
    )


def explained(
    structure: Structure, values: DistArray, strategy: str, stage: str | None, measured: bool
) -> str:
    """Return the strategy, why, what both were predicted to take and took, then the plan of the values."""
    lines = [] if stage is not None else strategy_lines(structure, strategy, measured)
    return "\n".join([*lines, values.explain(stage, measured)])


def strategy_lines(structure: Structure, strategy: str, measured: bool) -> list[str]:
    """Return the strategy and why, then what both were predicted to take and took, a line each."""
    choice, session = structure.choice, active_session()
    if choice is None:
        return [f"{strategy}: as the array it is made from"]
    lines = [f"{choice.strategy}: {choice.reason}"]
    if len(choice.cuts) < 3:
        return lines
    items = () if session is None else strategies_of(session).of(structure.knots)
    own = next((one for one in items if one.choice.cuts == choice.cuts), StrategyItem(choice))
    facts = strategy_facts(own, measured)
    for name, cost in (("segmented", facts.segmented), ("uniform", facts.uniform)):
        words = [f"  {name}: predicted {cost_text(cost)}"]
        words += [
            f"measured {measured_text(fact)}"
            for fact in (strategy_facts(one, measured) for one in items if one.choice.strategy == name)
            if fact.measured_seconds is not None
        ][:1]
        lines.append(", ".join(words))
    round_text = seconds_text(choice.uniform.round_seconds)
    lines.append(f"  of a reduction: the busiest slot's seconds, and {round_text} between two rounds")
    return lines
