"""What columns of tables hold: missing values, true and false, dtypes; of CSV and of Parquet files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from reading import read_whole

from matnb.errors import FileFormatError, OptionError, UnsupportedError
from matnb.io.source import open_source
from matnb.ops.creation import read_here

pytestmark = pytest.mark.usefixtures("small_chunks")
TEXT = """id,when,flag,full,size,half,code
1,2020-01-01,N,True,1.0,NA,7
2,2020-01-02,Y,false,2.5,True,-999
3,,N,TRUE,,False,9
"""
NUMBERS = ["id", "full", "size", "half", "code"]


@pytest.fixture
def table(write_file) -> Path:
    return write_file("a.csv", TEXT)


@pytest.mark.parametrize("pieces", [1, 3])
def test_a_column_has_the_dtype_of_what_it_holds(table: Path, pieces: int) -> None:
    found, matrix = read_whole(open_source(table, columns=NUMBERS), pieces)
    assert [dtype.name for dtype in found.dtypes] == ["int64", "bool", "float64", "float64", "int64"]
    expected = [[1, 1, 1, np.nan, 7], [2, 0, 2.5, 1, -999], [3, 1, np.nan, 0, 9]]
    np.testing.assert_array_equal(matrix, expected)


def test_more_texts_and_numbers_may_stand_for_a_missing_value(table: Path, write_file) -> None:
    found, matrix = read_whole(open_source(table, columns=["code"], na_values=[-999]), 3)
    assert found.dtypes == (np.float64,)
    np.testing.assert_array_equal(matrix[:, 0], [7, np.nan, 9])
    path = write_file("b.csv", "n,m\n-,null\nunknown,1\n5,<NA>\n")
    found, matrix = read_whole(open_source(path, na_values=["-", "unknown"]), 2)
    np.testing.assert_array_equal(matrix, [[np.nan, np.nan], [np.nan, 1], [5, np.nan]])
    with pytest.raises(FileFormatError, match="line 2: '-' in column 'n' is not a number"):
        read_here(open_source(path))
    with pytest.raises(OptionError, match="na_values"):
        open_source(path, na_values=[None])


def test_all_columns_that_are_no_numbers_are_named(table: Path) -> None:
    with pytest.raises(FileFormatError) as told:
        read_here(open_source(table))
    assert "line 2: '2020-01-01' in column 'when' is not a number" in str(told.value)
    assert "columns=['id', 'full', 'size', 'half', 'code'] reads the others" in str(told.value)
    assert "'when', 'flag'" in str(told.value)


def test_a_dtype_that_is_asked_for(table: Path) -> None:
    found, _ = read_here(open_source(table, columns=["id", "size"], dtype={"id": "int8", "size": np.float32}))
    assert [dtype.name for dtype in found.dtypes] == ["int8", "float32"]
    found, _ = read_here(open_source(table, columns=["id", "size"], dtype=float))
    assert found.dtypes == (np.float64, np.float64)
    with pytest.raises(FileFormatError, match="'size' has 1 missing values: read it as float64"):
        read_here(open_source(table, columns=["size"], dtype=int))
    for wrong in ("text", object, {"nothing": int}):
        with pytest.raises(OptionError, match="dtype="):
            open_source(table, columns=["id"], dtype=wrong)


def test_numbers_that_no_double_holds_are_floats(write_file) -> None:
    path = write_file("a.csv", f"n,o,m,k\n{2**53 - 1},{2**53 + 1},{2**60},1.0\n")
    found, _ = read_here(open_source(path))
    assert [dtype.name for dtype in found.dtypes] == ["int64", "float64", "float64", "float64"]


def test_truths_and_numbers_in_one_column(write_file) -> None:
    path = write_file("a.csv", "n\nTrue\n2\n")
    with pytest.raises(FileFormatError, match="'n' has 1 values that are true or false and 1 numbers"):
        read_here(open_source(path), 2)


def test_without_a_header(write_file) -> None:
    path = write_file("a.csv", "1;2\n3;4\n")
    found, matrix = read_whole(open_source(path, header=False, delimiter=";"), 2)
    assert found.names == ("0", "1")
    assert matrix.tolist() == [[1, 2], [3, 4]]
    found, matrix = read_whole(
        open_source(path, header=False, delimiter=";", names=["x", "y"], columns=["y"]), 2
    )
    assert found.names == ("y",)
    assert matrix.tolist() == [[2], [4]]
    with pytest.raises(OptionError, match="a list of 2 names"):
        open_source(path, header=False, delimiter=";", names=["x"])


def test_parquet(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="the extra parquet is not installed")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {
        "id": pyarrow.array(range(10), "uint8"),
        "seen": pyarrow.array([1, None] * 5, "int32"),
        "price": pyarrow.array([0.5, np.nan, -0.0, np.inf, 1, 2, 3, 4, 5, 6], "float32"),
        "open": pyarrow.array([True, False] * 5),
        "name": pyarrow.array(list("abcdefghij")),
        "when": pyarrow.array(range(10), pyarrow.timestamp("s")),
    }
    path = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.table(columns), path, row_group_size=3)
    for pieces in (1, 4):
        source = open_source(path, columns=["price", "seen", "open", "id"])
        assert len(source.pieces(pieces)) == pieces
        found, matrix = read_whole(source, pieces, 2)
        assert found.names == ("price", "seen", "open", "id")
        assert [dtype.name for dtype in found.dtypes] == ["float64", "float64", "bool", "int64"]
        expected = [columns["price"].to_numpy(), [1, np.nan] * 5, [1, 0] * 5, range(10)]
        np.testing.assert_array_equal(matrix, np.array([list(one) for one in expected]).T)
        assert np.signbit(matrix[2, 0])
    with pytest.raises(FileFormatError, match=r"'name' is of type string.*'id', 'seen', 'price', 'open'"):
        open_source(path)
    path.write_bytes(b"PAR1" + bytes(40))
    with pytest.raises(FileFormatError, match="not a Parquet file, or a damaged one"):
        open_source(path)


def test_parquet_without_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1")
    with pytest.raises(UnsupportedError, match=r"pip install 'matnb\[parquet\]'"):
        open_source(path)
