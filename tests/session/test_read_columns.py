"""Columns that were read of a file stay known while anything that was made of them lives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import matnb as mn
from matnb.io.delimited import CsvTable

FRAME = pd.DataFrame(
    {
        "amount": np.where(np.arange(3000) % 7 == 0, np.nan, np.arange(3000.0)),
        "quantity": np.arange(3000) * 3 % 101,
        "shop": np.arange(3000) % 13,
        "name": np.array(["ash", "elm", "oak"])[np.arange(3000) % 3],
        "day": np.datetime64("2024-01-01") + np.arange(3000) % 400,
    }
)
MADE: dict[str, Callable[[Any], Any]] = {
    "dropna": lambda t: t.dropna(subset=["amount"]),
    "filter": lambda t: t[t["quantity"] > 50],
    "head": lambda t: t.head(2000),
    "sorted": lambda t: t.sort_values("quantity"),
    "columns": lambda t: t[["amount", "quantity", "shop", "name", "day"]].iloc[10:],
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    FRAME.to_csv(tmp_path / "sales.csv", index=False)
    return tmp_path / "sales.csv"


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    seen: list[str] = []
    parse = CsvTable.parse

    def counted(self: CsvTable, piece: Any) -> Any:
        seen.append("piece")
        return parse(self, piece)

    monkeypatch.setattr(CsvTable, "parse", counted)
    yield seen
    mn.stop()


def asked(table: Any) -> list[Any]:
    total = sum(float(table[name].mean()) for name in ("amount", "quantity", "shop"))
    return [round(total, 6), str(table["name"].max()), str(table["day"].max())[:10]]


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("memo", ["1GB", "off"])
def test_a_name_given_anew_reads_nothing_again(reads: list[str], path: Path, name: str, memo: str) -> None:
    mn.start(workers=2, threads=1, memo=memo)
    table = mn.load(path)
    num_reads = len(reads)
    table = MADE[name](table)
    path.unlink()
    assert asked(table) == asked(MADE[name](FRAME))
    made = MADE[name](table)  # of what was made
    del table
    assert asked(made) == asked(MADE[name](MADE[name](FRAME)))
    assert len(reads) == num_reads


def test_columns_go_with_the_last_that_was_made_of_them(reads: list[str], path: Path) -> None:
    session = mn.start(workers=2, threads=1)
    table = mn.load(path)
    table = table[table["quantity"] > 50]
    assert session.status().num_arrays >= 5
    del table
    assert session.status().num_arrays == 0


def test_columns_that_do_not_fit_the_memo_are_read_again(reads: list[str], path: Path) -> None:
    mn.start(workers=2, threads=1, memo="1KB")
    table = mn.load(path)
    num_reads = len(reads)
    table = table[table["quantity"] > 50]
    assert asked(table) == asked(FRAME[FRAME["quantity"] > 50])
    assert len(reads) > num_reads


def test_columns_without_a_name_go_first_and_when_the_memo_is_cleared(reads: list[str], path: Path) -> None:
    session = mn.start(workers=2, threads=1)
    table = mn.load(path)
    table = table[table["quantity"] > 50]
    status = session.status()
    assert status.num_remembered == status.num_arrays == 5
    mn.memo.clear()
    assert session.status().num_arrays == 0
    num_reads = len(reads)
    assert asked(table) == asked(FRAME[FRAME["quantity"] > 50])
    assert num_reads < len(reads)
    num_reads = len(reads)
    assert float(table["shop"].sum()) == FRAME["shop"][FRAME["quantity"] > 50].sum()
    assert len(reads) == num_reads, "what was read again stays, too"
