"""An array's text informs, its table holds what is known, and what a user named is shown, not run."""

from __future__ import annotations

from math import prod
from xml.etree import ElementTree

import pytest

from matnb.pictures.arrays import array_html, array_text, block_map
from matnb.pictures.facts import ArrayFacts

STORED = ArrayFacts(
    shape=(7115, 7115),
    dtype="float64",
    sparse=True,
    pattern=True,
    stored=True,
    nnz=103_689,
    num_bytes=830_000,
    cuts=((0, 1000, 7115), (0, 7115)),
    owners=(0, 1),
    block_nnz=(53_689, 50_000),
)


def cells(html):
    tree = ElementTree.fromstring(html.replace("&nbsp;", " "))
    rows = {row.find("th").text: "".join(row.find("td").itertext()) for row in tree.iter("tr")}
    return {name: " ".join(value.split()) for name, value in rows.items()}


def test_text_of_a_stored_array():
    assert array_text(STORED) == (
        "DistArray 7115 x 7115 float64, sparse, pattern only, 103,689 entries (0.205 %), 830 kB, "
        "2 blocks on 2 workers"
    )


def test_text_of_a_lazy_array_says_how_it_is_made():
    lazy = ArrayFacts((5,), "int64", False, expression="x\n  + 1")
    way = "call .compute()"
    assert array_text(lazy) == f"DistArray 5 int64, dense, not computed: x + 1; {way}"
    assert array_text(ArrayFacts((), "bool", False)) == f"DistArray scalar bool, dense, not computed; {way}"
    sized = ArrayFacts((5,), "int64", False, expected_bytes=40)
    assert array_text(sized) == f"DistArray 5 int64, dense, about 40 B, not computed; {way}"
    assert cells(array_html(sized))["state"] == f"not computed; {way}"
    inside = ArrayFacts((5,), "int64", False, is_open=True)
    assert array_text(inside) == "DistArray 5 int64, dense, of the body of a loop or branch"


def test_what_is_remembered_of_the_values_and_why_none_are_shown_stands_in_text_and_table():
    facts = ArrayFacts(
        (5,), "float64", False, stored=True, num_bytes=40, cuts=((0, 5),), owners=(3,),
        why_not="values not shown: busy", statistics=(("min", "0.5"), ("NaN", "2")),
    )  # fmt: skip
    assert array_text(facts) == (
        "DistArray 5 float64, dense, min 0.5, 2 NaN, 40 B, 1 block on worker 3, values not shown: busy"
    )
    table = cells(array_html(facts))
    assert (table["min"], table["NaN"], table["values"]) == ("0.5", "2", "values not shown: busy")


def test_table_of_a_stored_array():
    assert cells(array_html(STORED)) == {
        "shape": "7115 \N{MULTIPLICATION SIGN} 7115",
        "dtype": "float64, sparse, pattern only",
        "nnz": "103,689",
        "density": "0.115 % 0.755 %",
        "bytes": "830 kB",
        "blocks": "2 (2 \N{MULTIPLICATION SIGN} 1), 1000 to 6115 long",
        "layout": "worker 0 worker 1",
    }


def test_an_array_of_any_dimension_has_a_table():
    for shape in [(), (0,), (0, 3), (2, 3, 4)]:
        cuts = tuple((0, length) for length in shape)
        facts = ArrayFacts(shape, "float64", False, stored=True, nnz=0, num_bytes=0, cuts=cuts, owners=(0,))
        assert cells(array_html(facts))["dtype"] == "float64, dense"
        assert "<svg" not in array_html(facts)


SCALAR = ArrayFacts((), "float64", False, stored=True, nnz=1, num_bytes=8, cuts=(), owners=(0,), value="15.0")
SMALL = ArrayFacts((2, 2), "int64", False, expression="x + 1", value="[[1 2]\n [3 4]]")


def test_text_of_few_values_starts_with_them():
    assert array_text(SCALAR) == "15.0  (DistArray scalar float64)"
    assert array_text(SMALL) == "[[1 2]\n [3 4]]\nDistArray 2 x 2 int64, dense, its value remembered"


def test_few_values_stand_above_the_table():
    for facts in (SCALAR, SMALL):
        html = array_html(facts)
        assert ElementTree.fromstring(html).find("./pre").text == facts.value
        assert html.index("<pre") < html.index("<table")
        assert cells(html)["dtype"] == f"{facts.dtype}, dense"
    assert "<pre" not in array_html(STORED)
    odd = ArrayFacts((1,), "float64", False, value="<script>")
    assert ElementTree.fromstring(array_html(odd)).find("./pre").text == "<script>"


def test_what_a_person_named_is_escaped():
    facts = ArrayFacts((2, 2), "float64", False, expression="load('<script>alert(1)</script>&.csv')")
    html = array_html(facts)
    assert "<script" not in html
    assert "load('<script>alert(1)</script>&.csv')" in cells(html)["made by"]


def test_an_endless_expression_is_cut():
    facts = ArrayFacts((2,), "float64", False, expression="x + " * 10_000)
    assert len(array_text(facts)) < 300
    assert len(array_html(facts)) < 20_000


@pytest.mark.parametrize(("shape", "size"), [((3, 3), 38), ((3,), 38), ((12, 6), 98), ((400, 400), 222)])
def test_few_elements_are_a_small_map(shape: tuple[int, ...], size: int) -> None:
    cuts = tuple((0, length) for length in shape)
    count = prod(shape)
    whole = ArrayFacts(
        shape,
        "int8",
        False,
        stored=True,
        nnz=count,
        num_bytes=count,
        cuts=cuts,
        owners=(0,),
        block_nnz=(count,),
    )
    drawing = ElementTree.fromstring(block_map(whole))
    assert max(int(drawing.get("width", 0)), int(drawing.get("height", 0))) == size
