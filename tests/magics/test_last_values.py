"""What a cell ends with is computed wherever it lies: alone, or in tuples, lists and dicts in each other."""

from __future__ import annotations

import numpy as np
from cells import fail, run

import matnb as mn
from matnb.magics.cell import last_values

LONG = "x" * 10_000


def test_arrays_of_dicts_are_computed(shell):
    run(shell, "x = mn.arange(3.0)")
    run(shell, "%%distmat --out found\n{'a': x + 1, 'b': [x * 2, {'c': (x - 1, 7)}], 3: 'no array'}")
    found = shell.user_ns["found"]
    arrays = [found["a"], found["b"][0], found["b"][1]["c"][0]]
    assert all(one.facts().stored for one in arrays)
    np.testing.assert_array_equal(arrays[2].compute(), [-1, 0, 1])


def test_each_has_a_name_of_its_own():
    x, y = mn.ones(3), mn.ones(4)
    one = [x, {"a": y, "b": [x]}]
    assert [name for name, _ in last_values(one, "_")] == ["_[0]", "_[1]['a']", "_[1]['b'][0]"]
    names = [name for name, _ in last_values({LONG + "1": x, LONG + "2": y, (1, 2): x}, "_")]
    assert len(set(names)) == 3
    assert max(map(len, names)) < 100


def test_a_list_that_holds_itself_ends():
    x = mn.ones(3)
    around: list[object] = [x]
    around.append({"again": around})
    assert [name for name, _ in last_values(around)] == ["_[0]"]


def test_a_long_name_does_not_fill_the_screen(shell, capsys):
    run(shell, f"%%distmat\n{LONG} = mn.ones(3) + 1\nother = {LONG}.sum()\nother")
    capsys.readouterr()
    run(shell, f"%distmat explain {LONG}")
    shown = capsys.readouterr().out
    assert "= xxxx" in shown
    assert len(shown) < 2000
    for line in (
        f"%distmat explain {LONG}y",
        f"%distmat {LONG}",
        f"%distmat explain --{LONG}",
        f"%distmat explain {{{LONG}y}}",
        f"%%distmat --out {LONG}-\n1",
        f"%%distmat --keep {LONG}y\n{LONG}2 = mn.ones(3)",
        f"%%distmat\n{LONG} + mn.ones(4)",
    ):
        _, text = fail(shell, capsys, line)
        assert 20 < len(text) < 2000, line[:40]


def test_nested_arrays_are_computed(shell):
    run(shell, "x = mn.arange(5.0)")
    run(shell, "%%distmat --out last\nN = mn.nested.unflatten(x + 1, [2, 0, 3])\nM = N * 2\nM")
    assert shell.user_ns["last"].values.facts().stored
    assert shell.user_ns["M"].tolist() == [[2.0, 4.0], [], [6.0, 8.0, 10.0]]
    run(shell, "%%distmat\nS = mn.nested.unflatten(x * 3, [4, 1])")
    assert shell.user_ns["S"].values.facts().stored
    shown = repr(shell.user_ns["S"])
    assert shown.startswith("[[")
    assert "NestedArray: 2 segments of 5 float64 values" in shown


def test_a_nested_array_is_explained_by_name(shell, capsys):
    run(shell, "N = mn.nested.from_lists([[1.0], [2.0]]) * 2")
    capsys.readouterr()
    run(shell, "%distmat explain N")
    assert "multiply" in capsys.readouterr().out
