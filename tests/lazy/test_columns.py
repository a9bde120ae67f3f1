"""Named columns: one, several, none of that name, and how they are shown."""

from __future__ import annotations

import numpy as np
import pytest

import matnb as mn
from matnb.errors import MatnbError

pytestmark = pytest.mark.usefixtures("interpreter")


@pytest.fixture
def table() -> mn.Columns:
    kinds = np.dtype(np.int64), np.dtype(np.float64), np.dtype(bool)
    return mn.Columns(("zone", "fare", "paid"), mn.asarray([[1.0, 2.5, 1], [3, np.nan, 0]]), kinds)


def test_a_list_of_names_gives_these_columns_in_its_order(table: mn.Columns) -> None:
    picked = table[["paid", "zone"]]
    assert picked.names == ("paid", "zone")
    assert [picked[name].dtype.name for name in picked] == ["bool", "int64"]
    np.testing.assert_array_equal(picked.array.compute(), [[1, 1], [0, 3]])
    assert picked["zone"].compute().tolist() == [1, 3]


def test_a_name_that_is_not_there_is_a_key_that_is_not_there(table: mn.Columns) -> None:
    with pytest.raises(KeyError) as told:
        table["tip"]
    assert isinstance(told.value, MatnbError)
    assert str(told.value) == "no column 'tip'; there are: zone, fare, paid"
    assert table.get("tip") is None
    with pytest.raises(KeyError, match="no column 'tip'"):
        table[["zone", "tip"]]


def test_an_attribute_says_how_columns_are_taken(table: mn.Columns) -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'fare'; table\[NAME\] is a column"):
        table.fare  # noqa: B018  it is the attribute that raises


def test_names_and_dtypes_are_shown(table: mn.Columns) -> None:
    assert repr(table).startswith("columns zone (int64), fare (float64), paid (bool) of\nDistArray 2 x 3")
    shown = mn.Columns(("<b>",), mn.ones((2, 1)))._repr_mimebundle_()
    assert "&lt;b&gt; (float64)" in shown["text/html"]
    many = mn.Columns(tuple(f"column {i}" for i in range(5000)), mn.ones((2, 5000)))._repr_mimebundle_()
    assert "column 99 (float64), 4,900 more" in many["text/plain"]
    assert len(many["text/html"]) < 20_000
