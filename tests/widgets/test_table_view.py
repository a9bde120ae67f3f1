"""A table whose rows take a while shows what is known at once, and its rows in the same place."""

from __future__ import annotations

import numpy as np
import pytest
from notebook_shell import Person

import matnb as mn
from matnb.tables import showing
from matnb.widgets.views import table_view

pytestmark = pytest.mark.session("one thread")


def test_its_rows_take_the_place_of_what_is_known(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    table = mn.table({"a": np.arange(50.0)})
    late = table[table["a"] > 9]
    assert not late._takes_long()
    monkeypatch.setattr(showing, "_TOLD_BYTES", 1)
    assert late._takes_long()
    table_view(late, person.shell)
    first, last = (one["data"]["text/plain"] for one in person.shell.display_pub.outputs)
    assert first.startswith("40 rows x 1 column\n")
    assert first.endswith("its first and last rows are computed")
    assert last.splitlines()[3].strip() == "10.0"
    (seen,) = person.outputs  # one display
    assert seen["text/plain"] == last
    assert not late._takes_long()
