"""What columns of tables hold: missing values, true and false, dtypes; of CSV, Parquet and Arrow files."""

from __future__ import annotations

import decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet
from reading import read_whole

from matnb.blocks.formats import to_numpy
from matnb.errors import FileContentWarning, FileFormatError, OptionError
from matnb.io import delimited
from matnb.io.columns import ColumnSource
from matnb.io.source import SourceFacts, open_source
from matnb.ops.creation import read_here

pytestmark = pytest.mark.usefixtures("small_chunks")
TEXT = """id,when,flag,full,size,half,code
1,2020-01-01,N,True,1.0,NA,7
2,2020-01-02,Y,false,2.5,True,-999
3,,N,TRUE,,False,9
"""


@pytest.fixture
def table(write_file) -> Path:
    return write_file("a.csv", TEXT)


@pytest.fixture
def larger_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read some more lines at a time, of files that are longer than the sample."""
    monkeypatch.setattr(delimited, "CHUNK_BYTES", 1 << 16)


def words(found: SourceFacts) -> list[str]:
    """Return what columns hold."""
    return [f"{one.kind.word} {one.kind.unit or one.kind.stored} {one.num_missing}" for one in found.columns]


@pytest.mark.parametrize("pieces", [1, 3])
def test_a_column_has_the_dtype_of_what_it_holds(table: Path, pieces: int) -> None:
    found, matrix = read_whole(open_source(table), pieces)
    assert words(found) == [
        *("number int64 0", "datetime D 1", "text int32 0", "bool bool 0"),
        *("number float64 1", "bool bool 1", "number int64 0"),
    ]
    assert found.columns[2].labels.to_pylist() == ["N", "Y"]
    numbers = matrix[:, [0, 2, 3, 4, 5, 6]]
    expected = [[1, 0, 1, 1, np.nan, 7], [2, 1, 0, 2.5, 1, -999], [3, 0, 1, np.nan, 0, 9]]
    np.testing.assert_array_equal(numbers, expected)


def test_more_texts_and_numbers_may_stand_for_a_missing_value(table: Path, write_file) -> None:
    found, matrix = read_whole(open_source(table, columns=["code"], na_values=[-999]), 3)
    assert words(found) == ["number int64 1"]
    np.testing.assert_array_equal(matrix[:, 0], [7, np.nan, 9])
    path = write_file("b.csv", "n,m\n-,null\nunknown,1\n5,<NA>\n")
    found, matrix = read_whole(open_source(path, na_values=["-", "unknown"]), 2)
    np.testing.assert_array_equal(matrix, [[np.nan, np.nan], [np.nan, 1], [5, np.nan]])
    assert words(read_here(open_source(path))[0]) == ["text int32 0", "number int64 2"]
    with pytest.raises(OptionError, match="na_values"):
        open_source(path, na_values=[None])


def test_a_dtype_that_is_asked_for(table: Path) -> None:
    found, _ = read_here(open_source(table, columns=["id", "size"], dtype={"id": "int8", "size": np.float32}))
    assert [dtype.name for dtype in found.dtypes] == ["int8", "float32"]
    found, _ = read_here(open_source(table, columns=["id", "size"], dtype=float))
    assert found.dtypes == (np.float64, np.float64)
    found, _ = read_here(open_source(table, dtype={"id": str, "when": "datetime64[s]"}))
    assert words(found)[:2] == ["text int32 0", "datetime s 1"]
    with pytest.raises(FileFormatError, match=r"line 2: '1\.0' in column 'size' is not a whole number"):
        read_here(open_source(table, columns=["size"], dtype=int))
    with pytest.raises(FileFormatError, match=r"'code' is not of dtype int8: .*-999"):
        read_here(open_source(table, columns=["code"], dtype="int8"))
    for wrong in (object, complex, {"nothing": int}, "datetime64[Y]"):
        with pytest.raises(OptionError, match="dtype="):
            open_source(table, columns=["id"], dtype=wrong)


@pytest.mark.parametrize("pieces", [1, 4])
def test_what_is_told_of_numbers_does_not_follow_the_cuts(write_file, pieces: int) -> None:
    path = write_file("a.csv", f"n,o,m,z\n{2**53 - 1},{2**53 + 1},{2**70},1\n5,6,7,-0\n1,2,3.5,+3\n")
    found, matrix = read_whole(open_source(path), pieces)
    assert [dtype.name for dtype in found.dtypes] == ["int64", "int64", "float64", "float64"]
    assert np.signbit(matrix[1, 3])
    np.testing.assert_array_equal(matrix[:, 2], [2.0**70, 7, 3.5])


def test_whole_numbers_and_days_give_way_to_finer_ones_beyond_the_sample(
    write_file, larger_chunks: None
) -> None:
    rows = "1,2020-01-01\n" * 40_000
    path = write_file("a.csv", f"n,day\n{rows}2.5,2020-01-02 10:30\n,\n{rows},\n")
    for pieces in (1, 3):
        source = open_source(path)
        assert source.types == ("int64", "date32")
        context = source.merge([source.summary(source.parse(piece)) for piece in source.pieces(pieces)])
        assert words(context.found) == ["number float64 2", "datetime us 2"]
    number, day = (to_numpy(read_here(ColumnSource(source, place), 3)[1]) for place in (0, 1))
    np.testing.assert_array_equal(number[39_999:40_003], [1, 2.5, np.nan, 1])
    assert np.isnan(number[-1])  # which is whole in its own piece
    times = day[39_999:40_003].view("datetime64[us]")
    expected = np.array(["2020-01-01", "2020-01-02T10:30", "NaT", "2020-01-01"], "datetime64[us]")
    np.testing.assert_array_equal(times, expected)


@pytest.mark.parametrize("row", ["-0,1", "1, -0", "-0|1", "1|-00", "-0\t1"])
def test_a_zero_with_a_sign_is_a_float_for_any_delimiter(write_file, larger_chunks: None, row: str) -> None:
    delimiter = next(one for one in ",|\t" if one in row)
    rows = f"1{delimiter}2\n" * 80_000
    source = open_source(write_file("a.csv", f"n{delimiter}m\n{rows}{row}\n{rows}"), delimiter=delimiter)
    assert source.types == ("int64", "int64")
    place = [one.strip().startswith("-") for one in row.split(delimiter)].index(True)
    assert np.signbit(to_numpy(read_here(ColumnSource(source, place), 3)[1])[80_000])


def test_a_zero_with_a_sign_is_a_float_and_sixteens_are_no_numbers(write_file, larger_chunks: None) -> None:
    rows = "1,2\n" * 80_000
    path = write_file("a.csv", f"n,m\n{rows}-0,1\n{rows}")
    source = open_source(path)
    assert source.types == ("int64", "int64")
    values = to_numpy(read_here(ColumnSource(source, 0), 3)[1])
    assert values.dtype == np.float64
    assert np.signbit(values[80_000])
    path.write_bytes(f"n,m\n{rows}0x10,1\n{rows}".encode())
    with pytest.raises(FileFormatError, match="line 80002: '0x10' in column 'n' is not a number"):
        read_here(open_source(path), 3)


def test_the_first_bad_value_of_the_file_is_told_whatever_the_cuts(write_file, larger_chunks: None) -> None:
    rows = "1,2\n" * 40_000
    path = write_file("a.csv", f"a,b\n{rows}1,oh\n{rows}1\n{rows}no,2\n")
    for pieces in (1, 2, 5):
        with pytest.raises(FileFormatError, match=r"line 40002: 'oh' in column 'b'.*dtype=\{'b': \"text\"\}"):
            read_here(open_source(path), pieces)


def test_truths_and_numbers_in_one_column_are_text(write_file) -> None:
    found, _ = read_here(open_source(write_file("a.csv", "n\nTrue\n2\n")), 2)
    assert found.columns[0].labels.to_pylist() == ["2", "True"]


def test_too_many_columns(write_file) -> None:
    names = ",".join(f"c{place}" for place in range(100_000))
    with pytest.raises(FileFormatError, match="100,000 columns; a table has 4,000 at most"):
        open_source(write_file("a.csv", f"{names}\n"))


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


def test_zstandard(write_file) -> None:
    path = write_file("a.csv.zst", pa.compress(TEXT.encode(), "zstd", asbytes=True))
    assert read_here(open_source(path))[0].shape == (3, 7)
    path.write_bytes(path.read_bytes()[:-9] + b"x")
    with pytest.raises(FileFormatError, match="Zstandard"):
        read_here(open_source(path))


COLUMNS = {
    "id": pa.array(range(10), "uint8"),
    "seen": pa.array([1, None] * 5, "int32"),
    "price": pa.array([0.5, np.nan, -0.0, np.inf, 1, 2, 3, 4, 5, None], "float32"),
    "open": pa.array([True, False] * 5),
    "name": pa.array([*"zyxwvuts", None, "a"]),
    "kind": pa.array(["b", "a"] * 5).dictionary_encode(),
    "when": pa.array([*range(9), None], pa.timestamp("ms")),
    "took": pa.array(range(10), pa.duration("ms")),
    "none": pa.nulls(10),
}
KINDS = [
    *("number uint8 0", "number int32 5", "number float32 2", "bool bool 0", "text int32 1", "text int32 0"),
    *("datetime ms 1", "timedelta ms 0", "number float64 10"),
]


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_arrow_files(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.{suffix}"
    if suffix == "parquet":
        parquet.write_table(pa.table(COLUMNS), path, row_group_size=3)
    else:
        feather.write_feather(pa.table(COLUMNS), path, chunksize=3)
    for pieces in (1, 4):
        source = open_source(path)
        assert len(source.pieces(pieces)) == pieces
        found, matrix = read_whole(source, pieces, 2)
        assert found.names == tuple(COLUMNS)
        assert words(found) == KINDS
        assert found.columns[4].labels.to_pylist() == [*"astuvwxyz"]
        np.testing.assert_array_equal(matrix[:, 4], [8, 7, 6, 5, 4, 3, 2, 1, -1, 0])
        np.testing.assert_array_equal(matrix[:, 1], [1, np.nan] * 5)
        assert np.signbit(matrix[2, 2])
    found, matrix = read_whole(open_source(path, columns=["price", "id"]), 2)
    assert found.names == ("price", "id")
    path.write_bytes(b"PAR1" + bytes(40))
    with pytest.raises(FileFormatError, match="file, or a damaged one"):
        open_source(path)


def test_lists_are_refused_by_name_and_decimals_are_floats(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    price = pa.array([decimal.Decimal("1.25"), None])
    parquet.write_table(pa.table({"a": [1, 2], "tags": [["x"], []], "price": price}), path)
    with pytest.raises(FileFormatError, match=r"'tags' is of type list<.*columns=\['a', 'price'\] reads the"):
        open_source(path)
    with pytest.warns(FileContentWarning, match="decimal numbers in 'price' are read as floats"):
        source = open_source(path, columns=["a", "price"])
    np.testing.assert_array_equal(read_whole(source)[1], [[1, 1.25], [2, np.nan]])
