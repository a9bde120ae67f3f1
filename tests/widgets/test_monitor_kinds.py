"""Every kind of task that plans have is told in a word of a user's."""

from __future__ import annotations

import sys

import pytest

from matnb.program.kinds import Kind, shown_kind
from matnb.widgets.monitor_rows import MonitorFacts, WorkerFacts, rows_of

WORDS = {
    "product", "elementwise", "reduce", "exchange", "read", "sort", "pick and put", "cut and join",
    "your function",
}  # fmt: skip


def test_every_kind_of_task_is_shown_in_a_word():
    modules = [module for name, module in sys.modules.items() if name.startswith("matnb.")]
    kinds = {one for module in modules for one in vars(module).values() if isinstance(one, Kind)}
    assert len({one.name for one in kinds}) > 40
    assert {shown_kind(one.name) for one in kinds} <= WORDS


@pytest.mark.parametrize(
    ("kind", "word"),
    [("product", "product"), ("map", "elementwise"), ("reduce", "reduce"), ("gather", "exchange"),
     ("parse", "read"), ("sort", "sort"), ("call", "your function")],
)  # fmt: skip
def test_the_word_is_the_one_that_a_person_would_say(kind: str, word: str):
    assert shown_kind(kind) == word


def test_kinds_of_one_word_are_shown_together_and_what_is_not_known_stays():
    facts = MonitorFacts((WorkerFacts(0, {"gather": 0.25, "move": 0.5, "mine": 0.1}),))
    (row,) = rows_of(facts)
    assert row.busy == pytest.approx({"exchange": 0.75, "mine": 0.1})
