"""A cell's code keeps its positions, its last expression is its value, and its roots are its sinks."""

from __future__ import annotations

import pytest

import matnb as mn
from matnb.errors import OptionError
from matnb.magics.cell import compile_cell, run_cell


def recorded(source, **namespace):
    return run_cell(compile_cell(source, "<cell>"), {"mn": mn, **namespace})


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("1 + 1", 2),
        ("x = 3\nx", 3),
        ("x = 3", None),
        ("", None),
        ("for i in '': i", None),
        ("'a'; 'b'", "b"),
    ],
)
def test_the_last_expression_is_the_value(source, value):
    assert recorded(source).value == value


def test_positions_are_those_of_the_source():
    done = recorded("\nx = mn.ones(3)\ny = (x\n     + 1)\n")
    assert sorted(line for lines in done.record.lines.values() for line in lines) == [2, 3]


def test_roots_are_the_value_and_the_sinks():
    done = recorded("a = mn.ones(3)\nb = a + 1\nc = a * 2\nb - 1")
    assert set(done.program.roots) == {"_", "c"}


def test_a_name_given_to_an_array_of_an_earlier_cell_is_a_root():
    x = mn.ones(3) + 1
    done = recorded("y = x", x=x)
    assert dict(done.program.roots) == {"y": x.expression}


def test_a_new_version_of_an_earlier_handle_is_a_root():
    x = mn.ones(3)
    done = recorded("import numpy as np\nnp.add(x, 1, out=x)\nNone", x=x)
    assert set(done.program.roots) == {"x"}


def test_keep_takes_what_is_consumed_and_refuses_what_is_no_array():
    namespace = {"mn": mn}
    code = compile_cell("a = mn.ones(3)\nb = a.sum()", "<cell>")
    assert set(run_cell(code, namespace, ["a"]).program.roots) == {"a", "b"}
    with pytest.raises(OptionError, match="assigned in this cell: a, b"):
        run_cell(code, {"mn": mn}, ["mn"])
