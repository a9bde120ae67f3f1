"""Every kind of task that plans have is told in a word of a user's."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from matnb.widgets.monitor_rows import MonitorFacts, WorkerFacts, rows_of, word_of

HOUSE = Path(__file__).parents[2] / "matnb"
WORDS = {
    "product", "elementwise", "reduce", "exchange", "read", "sort", "pick and put", "cut and join",
    "your function",
}  # fmt: skip


KIND_AT = {"task": 2, "each_block": 2, "part_of": 3, "add_for": 3}  # the place of a kind among what is given


def kinds_in_plans() -> Iterator[str]:
    """Yield the kinds of tasks that lowerings give, wherever they are written out."""
    for path in HOUSE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(func=ast.Attribute(attr=name), args=given) if name in KIND_AT:
                    found: list[ast.expr] = given[KIND_AT[name] : KIND_AT[name] + 1]
                case ast.Assign(targets=[ast.Attribute(attr="kind")], value=value):
                    found = [value]
                case _:
                    continue
            yield from (str(one.value) for one in found if isinstance(one, ast.Constant))


def test_every_kind_of_task_has_a_word():
    kinds = set(kinds_in_plans())
    assert len(kinds) > 30
    assert {word_of(kind) for kind in kinds | {"product", "map", "reduce sum max", "argmax"}} <= WORDS


@pytest.mark.parametrize(
    ("kind", "word"),
    [("product", "product"), ("map", "elementwise"), ("reduce sum", "reduce"), ("gather", "exchange"),
     ("parse", "read"), ("sort", "sort"), ("call", "your function")],
)  # fmt: skip
def test_the_word_is_the_one_that_a_person_would_say(kind: str, word: str):
    assert word_of(kind) == word


def test_kinds_of_one_word_are_shown_together_and_what_is_not_known_stays():
    facts = MonitorFacts((WorkerFacts(0, {"gather": 0.25, "move": 0.5, "mine": 0.1}),))
    (row,) = rows_of(facts)
    assert row.busy == pytest.approx({"exchange": 0.75, "mine": 0.1})
