"""No circles of files: what a file imports, at its top or inside functions, never comes back to it."""

from __future__ import annotations

import ast

import pytest
from counts import PROJECT, circles, imported_late, imported_when_run, name_of, room_of
from house import CIRCLES, LATE_IN_ROOM


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.Module]:
    return {name_of(path): ast.parse(path.read_text()) for path in sorted((PROJECT / "matnb").rglob("*.py"))}


def circles_of(trees: dict[str, ast.Module]) -> list[set[str]]:
    return circles({name: imported_when_run(tree, {*trees}) for name, tree in trees.items()})


def late_in_room(trees: dict[str, ast.Module]) -> set[str]:
    return {
        f"{name} -> {other}"
        for name, tree in trees.items()
        for other in imported_late(tree, {*trees})
        if other != name and room_of(name) == room_of(other)
    }


def test_no_circle_of_files(trees: dict[str, ast.Module]):
    found = [{f"{one.replace('.', '/')}.py" for one in circle} for circle in circles_of(trees)]
    assert [sorted(one) for one in found if not any(one <= known for known in CIRCLES)] == []
    assert {name for known in CIRCLES for name in known} == {name for one in found for name in one}, "fewer"


def test_late_imports_inside_a_room_have_a_reason(trees: dict[str, ast.Module]):
    late = late_in_room(trees)
    assert sorted(late - LATE_IN_ROOM.keys()) == [], "import it at the top, or list it with the reason"
    assert sorted(LATE_IN_ROOM.keys() - late) == [], "no longer so: take it off the list"


def test_a_circle_is_seen():
    made = {
        "matnb.io.text": "from matnb.io import lines",
        "matnb.io.lines": "def f():\n    from matnb.io.words import split",
        "matnb.io.words": "import matnb.io.text\nfrom matnb.errors import Wrong",
        "matnb.errors": "if TYPE_CHECKING:\n    from matnb.io.text import Text",
    }
    trees = {name: ast.parse(text) for name, text in made.items()}
    assert circles_of(trees) == [{"matnb.io.text", "matnb.io.lines", "matnb.io.words"}]
    assert late_in_room(trees) == {"matnb.io.lines -> matnb.io.words"}
    del made["matnb.io.words"]
    assert circles_of({name: ast.parse(text) for name, text in made.items()}) == []
