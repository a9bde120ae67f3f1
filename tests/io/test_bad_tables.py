"""Tables broken far from their beginning, in another encoding, or too wide: one error that says where."""

from __future__ import annotations

from pathlib import Path

import pytest
from reading import read_table

from matnb.errors import FileFormatError
from matnb.io.source import open_source

ROWS = 1_000_000


def refused(path: Path, num_pieces: int) -> FileFormatError:
    """Return the error that reading a file in pieces ends with, whichever piece is read first."""
    table = open_source(path)
    facts = {piece.number: table.summary(table.parse(piece)) for piece in reversed(table.pieces(num_pieces))}
    with pytest.raises(FileFormatError) as told:
        table.merge([facts[number] for number in sorted(facts)])
    return told.value


@pytest.mark.parametrize("num_pieces", [1, 5])
def test_a_column_that_changes_its_type_after_a_million_rows(tmp_path: Path, num_pieces: int) -> None:
    path = tmp_path / "a.csv"
    path.write_text("n,day\n" + "7,2020-01-01\n" * ROWS + "seven,2020-01-01\nx,2020-01-01\n")
    error = refused(path, num_pieces)
    assert error.line == ROWS + 2
    assert "'seven' in column 'n' is not a number" in error.reason
    assert "reads it as text" in error.reason


@pytest.mark.parametrize("num_pieces", [1, 5])
def test_ragged_rows_tell_the_first_of_them(tmp_path: Path, num_pieces: int) -> None:
    path = tmp_path / "a.csv"
    good = "1,2\n" * 50_000
    path.write_text(f"a,b\n{good}1,2,3\n{good}1\n")
    error = refused(path, num_pieces)
    assert error.line == 50_002
    assert error.reason.startswith("3 fields where the header has 2: quote a field")


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_another_encoding(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(("zone,n\n" + "zurich,1\n" * 99 + "zürich,2\n").encode(encoding))
    if encoding == "utf-16":
        assert read_table(open_source(path))["zone"][-1] == "zürich"  # which its mark tells
    else:
        error = refused(path, 3)
        assert error.line == 101
        assert "is not UTF-8 text" in error.reason


def test_a_hundred_thousand_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    names = [f"c{number}" for number in range(100_000)]
    path.write_text(",".join(names) + "\n" + ",".join("1" for _ in names) + "\n")
    with pytest.raises(FileFormatError, match=r"has 100,000 columns; a table has 4,000 at most: pick some"):
        open_source(path)
    table = open_source(path, columns=["c99999", "c0"])
    assert table.merge([table.summary(table.parse(piece)) for piece in table.pieces(1)]).found.shape == (1, 2)
