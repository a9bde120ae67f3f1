"""Many texts looked up in a column of many: as pandas does, and without a search or a pass for each."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import matnb as mn
from matnb.tables.columns import TextColumn

COUNT = 300
KNOWN = [f"id{place}" for place in range(COUNT)]
ROWS = pd.Series([*KNOWN, None, "é", "zz"] * 2, dtype=object)
NEW = {one: f"{one[::-1]}" for one in KNOWN[::2]} | {"no row": "x", KNOWN[1]: None}
WAYS = {
    "isin": lambda x: x.isin([*KNOWN[::2], "no row"]),
    "isin with a missing one": lambda x: x.isin([*KNOWN[::2], None]),
    "map to texts": lambda x: x.map({old: new for old, new in NEW.items() if new}),
    "map to numbers": lambda x: x.map(dict(zip(KNOWN[::3], np.arange(COUNT).tolist(), strict=False))),
    "replace": lambda x: x.replace(NEW),
    "replace in turn": lambda x: x.replace(dict(pairwise(KNOWN))),
    "replace by one": lambda x: x.replace(KNOWN[:200], "one"),
}


pytestmark = pytest.mark.session("interpreter")


@pytest.mark.parametrize("way", WAYS)
def test_texts_are_looked_up_together(way, monkeypatch):
    calls = Counter()
    for name in ("_number", "_place", "_chosen"):
        usual = getattr(TextColumn, name)
        monkeypatch.setattr(
            TextColumn, name, lambda *args, name=name, usual=usual: calls.update([name]) or usual(*args)
        )
    found = np.asarray(WAYS[way](mn.table({"id": ROWS})["id"]))
    assert calls.total() <= 3
    wanted = WAYS[way](ROWS)
    if found.dtype == object:  # in which NaN is not the same as NaN
        found, wanted = (pd.Series(one).fillna("missing").to_numpy() for one in (found, wanted))
    np.testing.assert_array_equal(found, np.asarray(wanted))


def test_missing_texts_are_replaced_with_others():
    rows = pd.Series(["a", None, "b"], dtype=object)
    found = mn.table({"x": rows})["x"].replace({"a": "b", "b": None, None: "a"})
    assert pd.Series(found.compute()).fillna("missing").tolist() == ["b", "a", "missing"]


@pytest.mark.parametrize("text", ["a", "b", "c", "", "é", "zzz"])
def test_a_text_is_compared_by_its_place_among_the_labels(text):
    rows = pd.Series(["b", "é", "c", "zz"])
    x = mn.table({"x": rows})["x"]
    for mine, theirs in ((x == text, rows == text), (x < text, rows < text), (x >= text, rows >= text)):
        np.testing.assert_array_equal(np.asarray(mine), theirs.to_numpy())


def test_rows_are_read_by_their_places():
    x = mn.table({"id": ROWS})["id"]
    assert [x[0], x[-1]] == ["id0", "zz"]
    assert pd.isna(x[COUNT])
    assert x[:2].compute().tolist() == ["id0", "id1"]
