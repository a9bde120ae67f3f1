"""A class is named by a noun, not by a participle, which leaves open what it is that is kept or running."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

import pytest
from counts import PROJECT

# Only falls. What is left is named in texts that users see: nodes in explain, and one in matnb.extend.
NUM_PARTICIPLES = 8
IRREGULAR = {
    "begun", "broken", "brought", "built", "chosen", "done", "drawn", "found", "given", "gone", "held",
    "hidden", "kept", "known", "laid", "lost", "made", "met", "rewritten", "said", "seen", "sent", "shown",
    "sought", "taken", "thought", "told", "written",
}  # fmt: skip
NOUNS = {
    "clustering", "embedding", "ending", "feed", "finding", "gathering", "greeting", "ranking", "recording",
    "ring", "rolling", "semiring", "setting", "training", "wiring",
}  # fmt: skip
EVENTS = {"CellEnded", "PictureEnded"}  # what the monitor is told besides the events of events.py
SAY_WHAT_HAPPENED = {"events.py", "errors.py"}


def participles(tree: ast.Module) -> Iterator[str]:
    """Yield the classes that end in a participle, apart from exceptions, which say what happened."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef) or node.name in EVENTS:
            continue
        last = re.findall(r"[A-Z]+[a-z]*|[a-z]+", node.name)[-1].lower()
        is_exception = any(
            ast.unparse(base).endswith(("Exception", "Error", "Cancelled")) for base in node.bases
        )
        if (last in IRREGULAR or last.endswith(("ed", "ing"))) and last not in NOUNS and not is_exception:
            yield node.name


def all_participles(folders: Iterable[str]) -> list[str]:
    return [
        name
        for folder in folders
        for path in sorted((PROJECT / folder).rglob("*.py"))
        if path.name not in SAY_WHAT_HAPPENED
        for name in participles(ast.parse(path.read_text(encoding="utf-8")))
    ]


def test_types_are_named_by_nouns():
    found = all_participles(["matnb"])
    assert len(found) <= NUM_PARTICIPLES, f"a noun says what it is: {', '.join(found)}"
    assert len(found) == NUM_PARTICIPLES, "fewer: lower NUM_PARTICIPLES"


@pytest.mark.parametrize("name", ["Stopping", "_Kept", "LoopTold", "Placed", "_Made"])
def test_a_participle_is_seen(name: str):
    assert list(participles(ast.parse(f"class {name}(Block): pass"))) == [name]


@pytest.mark.parametrize("name", ["Semiring", "PassTraining", "MadeRun", "SVD", "RunFailed(Exception)"])
def test_a_noun_and_an_exception_are_not(name: str):
    assert list(participles(ast.parse(f"class {name}: pass"))) == []
