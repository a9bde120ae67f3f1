"""Every kind of node that has a lowering of its own is in a call whose moved bytes and blocks are counted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import matnb as mn
from breadth.test_cases import CASES
from matnb.expr.nodes import Expr
from matnb.expr.traverse import topological
from matnb.ops.registry import lowers
from matnb.registration import is_foreign

# Kinds that no such call has, and why.
WITHOUT = {
    "Pattern": "sparse arrays alone, block by block; the large ones are dense",
    "Select": "sparse arrays alone, block by block; the large ones are dense",
    "SelectBy": "sparse arrays alone, block by block; the large ones are dense",
    "StoredEntries": "sparse arrays alone, block by block: tests/nested/test_rows_and_keys.py",
    "AtEntries": "made by a pass of functions of sparse arrays, block by block",
    "PutWhere": "sparse arrays alone, block by block; the large ones are dense",
    "Smallest": "made by a pass of the first columns of a sort, which have large cases",
    "RowExtremes": "made by a pass: tests/ops/test_row_extremes.py",
    "TallProducts": "made by a pass: tests/ops/test_tall_products.py",
    "QuotientProduct": "made by a pass: tests/passes/test_quotients.py",
    "NearestRows": "no function of NumPy's: tests/laws/test_far_rows.py",
    "RowDistances": "no function of NumPy's: tests/laws/test_far_rows.py",
    "RowDescent": "no function of NumPy's: tests/laws/test_row_by_row.py",
    "Foreach": "no function of NumPy's: tests/lazy/test_foreach.py",
    "ForeachArray": "no function of NumPy's: tests/lazy/test_foreach.py",
    "ForeachValue": "no function of NumPy's: tests/lazy/test_foreach.py",
    "SegmentReduce": "no function of NumPy's: tests/nested",
    "SegmentScan": "no function of NumPy's: tests/nested",
    "SegmentOrder": "no function of NumPy's: tests/nested",
    "SegmentSpread": "no function of NumPy's: tests/nested",
    "SegmentPlaces": "no function of NumPy's: tests/nested",
    "Matches": "of tables: tests/laws/test_joins.py",
    "Taken": "of tables: tests/laws/test_joins.py",
    "Load": "a file: tests/io and tests/session/test_files.py",
    "Regrid": "cuts that are asked for: tests/plan/test_lower.py",
}


def test_every_lowering_is_reached_by_a_large_case(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds: set[str] = set()

    def note(result: Any) -> None:
        if isinstance(result, tuple | list):
            for one in result:
                note(one)
        elif isinstance(result, mn.DistArray):
            kinds.update(type(node).__name__ for node in topological([result.expression]))

    with mn.start(engine="interpret") as session:
        value = type(session).value

        def noted(session: mn.session.Session, node: Expr) -> Any:
            note(mn.DistArray(node))  # what a length is asked of
            return value(session, node)

        monkeypatch.setattr(type(session), "value", noted)
        for case in CASES:
            if case.large:
                rng = np.random.default_rng(0)
                note(case.call(mn, *(mn.asarray(make(rng)) for make in case.large)))
    mn.stop()
    # Other tests of this process add operations, as packages do.
    missing = {kind.__name__ for kind in lowers.kinds if not is_foreign(kind)} - kinds
    assert missing == set(WITHOUT), "give a case of the kind large=, or say here why it has none"
