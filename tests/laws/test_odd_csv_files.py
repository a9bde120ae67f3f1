"""Odd CSV files: each is read right, or told, or refused with what to do, which then reads it right."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import math
import re
import warnings
import zipfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from reading import read_table, read_whole

import matnb as mn
from matnb.errors import FileContentWarning, MatnbError, OptionError
from matnb.io.columns import TableSource
from matnb.io.folders import open_files

Columns = dict[str, list[Any]]


@dataclass(frozen=True)
class OddFile:
    """A file, and what has to come of it.

    ``said`` is in the warning or in the error; ``way`` are the options that it names, with which the file is
    read right. What is right is told by pandas with ``pandas`` as its options, or by ``right``.
    """

    name: str
    content: str | bytes
    suffix: str = ".csv"
    options: dict[str, Any] = field(default_factory=dict)
    pandas: dict[str, Any] | None = None
    right: Columns | None = None
    said: str = ""
    is_refused: bool = False
    way: dict[str, Any] | None = None
    way_suffix: str = ""

    @property
    def data(self) -> bytes:
        return self.content if isinstance(self.content, bytes) else self.content.encode()

    def expected(self, path: Path) -> Columns:
        if self.right is not None:
            return self.right
        assert self.pandas is not None
        frame = pd.read_csv(path, **self.pandas)
        return {str(name): plain(frame[name].tolist()) for name in frame}


def plain(values: list[Any]) -> list[Any]:
    """Return values with None where one is missing."""
    return [None if isinstance(one, float) and math.isnan(one) else one for one in values]


def right(name: str, content: str | bytes, **more: Any) -> OddFile:
    return OddFile(name, content, **{"pandas": {}, **more} if "right" not in more else more)


def told(name: str, content: str | bytes, said: str, **more: Any) -> OddFile:
    return right(name, content, said=said, **more)


def refused(name: str, content: str | bytes, said: str, **more: Any) -> OddFile:
    return right(name, content, said=said, is_refused=True, **more)


def zipped(*names: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name in names:
            archive.writestr(name, "a,b\n1,2\n")
    return stream.getvalue()


AB = {"a": [1], "b": [2]}
EUROPEAN = {"sep": ";", "decimal": ",", "thousands": "."}
MANY = "".join(f"{number},{number / 4}\n" for number in range(60))
ODD_FILES = [
    # What separates columns
    right("semicolons", "id;price;name\n1;2.5;a\n2;3.5;b\n", pandas={"sep": ";"}),
    right("tabs", "id\tprice\n1\t2\n", pandas={"sep": "\t"}),
    right("tabs with commas in text", "id\ttext\n1\ta, b\n2\tc\n", suffix=".tsv", pandas={"sep": "\t"}),
    right("commas in tabs' place", "id,text\n1,a\n", suffix=".tsv"),
    right("bars", "a|b\n1|2\n", pandas={"sep": "|"}),
    right("spaces", "a b c\n1 2 3\n4 5 6\n", pandas={"sep": " "}),
    right("spaces and tabs in line", "a     b \t c\n1     2    3\n 44    5    6\n", pandas={"sep": r"\s+"}),
    right("semicolons with commas in text", "id;text\n1;a, b\n2;c, d\n", pandas={"sep": ";"}),
    right("commas with semicolons in text", "id,text\n1,a; b\n2,c; d\n"),
    right("a line that says so", "sep=;\na;b\n1;2\n", right=AB),
    right("one column", "a\n1\n2\n"),
    right("one column of two words", "title\nx; y\nz | w\n", right={"title": ["x; y", "z | w"]}),
    told("colons", "a:b\n1:2\n", "':' separates columns", way={"delimiter": ":"}, pandas={"sep": ":"}),
    told("carets", "a^b\n1^2\n", r"'\^' separates columns", way={"delimiter": "^"}, pandas={"sep": "^"}),
    told("fixed widths", "name      age  city\nMary Ann  13   New York\nJohn      12   Rome\n", "read_fwf",
         right={"name      age  city": ["Mary Ann  13   New York", "John      12   Rome"]}),
    told("two that fit", "a;b,c;d\n1;2,3;4\n", "both ';' and ','", way={"delimiter": ","}, pandas={}),
    told("commas, and semicolons given", "a,b\n1,2\n", "commas may", options={"delimiter": ";"},
         right={"a,b": ["1,2"]}),
    refused("ragged rows", "id;price;name\n1;2.5;a\n2;3.5\n", "line 3: 2 fields where the header .*nrows=",
            way={"nrows": 1}, pandas={"sep": ";", "nrows": 1}),
    refused("all rows ragged", "a;b;c\n1;2\n", "delimiter=';', or", way={"delimiter": ";", "nrows": 0},
            right={"a": [], "b": [], "c": []}),
    refused("more fields than names", "a,b\n0,1,2\n1,3,4\n", "names=.*header=0",
            way={"names": ["i", "a", "b"], "header": 0}, pandas={"names": ["i", "a", "b"], "header": 0}),
    right("a delimiter at each end", "a,b,\n1,2,\n", right={"a": [1], "b": [2], "": [None]}),
    refused("text with a comma", "a,b\n1,x, y\n2,z\n", "line 2: 3 fields.*quote a field that has ','"),
    # Where the rows begin and end
    right("blank lines", "\n\na,b\n\n1,2\n\n3,4\n\n"),
    right("byte order mark", b"\xef\xbb\xbfid,b\n1,2\n"),
    right("carriage returns too", "a,b\r\n1,2\r\n3,4\r\n"),
    refused("carriage returns alone", "a,b\r1,2\r3,4\r", "save it with line feeds"),
    refused("a title", "Report 2020\nBy me\n\na,b,c\n1,2,3\n4,5,6\n", "skip=3", way={"skip": 3},
            pandas={"skiprows": 3}),
    refused("remarks", "# by me\n# again\na,b\n1,2\n3,4\n", "skip=2.*comment='#'", way={"comment": "#"},
            pandas={"comment": "#"}),
    told("units", "time,dist\ns,m\n1,2\n3,4.5\n", r"first row: skip=\[1\]", way={"skip": [1]},
         pandas={"skiprows": [1]}),
    refused("two rows of names", "a,a,b\nx,y,z\n1,2,3\n4,5,6\n", "names=.*header=0", way={"header": 1},
            pandas={"header": 1}),
    refused("a footer", "n,v\n1,1\n2,2\n\nSource: me\n", "line 5: 1 fields.*nrows=", way={"nrows": 2},
            pandas={"nrows": 2}),
    right("a line of totals", "n,v\na,1\nTotal,3\n"),
    right("names given", "1,2\n3,4\n", options={"names": ["a", "b"]}, pandas={"names": ["a", "b"]}),
    told("names given and there", "x,y\n3,4\n5,6\n", "header=0", options={"names": ["a", "b"]},
         way={"header": 0}, pandas={"names": ["a", "b"], "header": 0}),
    told("numbers in place of names", "1,2\n3,4\n", "header=None", way={"header": None},
         right={"0": [1, 3], "1": [2, 4]}),
    right("only a header", "a,b\n", right={"a": [], "b": []}),
    refused("nothing", "", "empty"),
    refused("nothing but line breaks", "\n\n\n", "all of them are blank"),
    refused("one name twice", "a,a,b\n1,2,3\n", "names=.*header=0",
            way={"names": ["a", "c", "b"], "header": 0}, pandas={"names": ["a", "c", "b"], "header": 0}),
    refused("names that are blank", "a,,\n1,2,3\n", "2 columns named ''.*columns=", way={"columns": ["a"]},
            pandas={"usecols": ["a"]}),
    right("a name that is blank", ",a\n0,1\n", right={"": [0], "a": [1]}),
    # Quotes
    right("line breaks in quotes", 'a,b\n1,"x\ny"\n2,"z"\n'),
    told("all is quoted", '"a","b"\n"1","x"\n"3","y"\n', "quoted_text=False", way={"quoted_text": False}),
    told(
        "all is quoted, nothing too", '"a","b","c"\n"1","x","2"\n"3","","4"\n"5","y",""\n',
        "quoted_text=False",
        way={"quoted_text": False},
    ),
    right("quoted text among numbers", 'a,b\n1,"7"\n3,"08"\n', pandas={"dtype": {"b": str}}),
    told("single quotes", "a,b\n1,'x'\n2,'z'\n", "quotechar", right={"a": [1, 2], "b": ["'x'", "'z'"]}),
    refused("backslashes before quotes", 'a,b\n1,"x \\" y"\n2,z\n', "line 2: .*write a quote inside twice"),
    refused("a quote in a field", 'a,b\n1,5" pipe\n2,z\n', "line 2: .*quote the whole field"),
    refused("a quote that is not closed", 'a,b\n1,"x\n2,z\n', "line 2: .*not closed"),
    # Numbers
    right("decimal commas", "id;price\n1;1.234,56\n2;3,5\n3;-0,25\n", pandas=EUROPEAN),
    right("decimal commas by tabs", "id\tprice\n1\t1,5\n", pandas={"sep": "\t", "decimal": ","}),
    told("commas that may be either", "id;n\n1;1,234\n2;5,678\n", 'decimal="," or thousands=","',
         way={"thousands": ","}, pandas={"sep": ";", "thousands": ","}),
    told("decimal commas, and points not told of", "a;b\nx;5.125,23\ny;12,5\n", 'such as .*thousands="."',
         options={"decimal": ","}, way=EUROPEAN, pandas=EUROPEAN),
    told("points between thousands alone", "a;b\nx;1.234\ny;950\nz;12.500\n",
         "'b' may have points between thousands: '1.234' was read as 1.234, thousands=\".\" reads 1234",
         way={"thousands": "."}, pandas=EUROPEAN),
    told("points between thousands of millions", "a;b\nx;1.234.567\ny;950\n", 'such as .*thousands="."',
         way={"thousands": "."}, pandas=EUROPEAN),
    told("quoted points between thousands", 'a;b\n"x";"1.234"\ny;950\n',
         'thousands="."[^,]*, with quoted_text=False',
         way={"thousands": ".", "quoted_text": False}, pandas=EUROPEAN),
    told("quoted numbers beside others", 'a;b\n"x";"1.234"\ny;950\n', "'b' read as text.*quoted_text=False",
         options={"thousands": "."}, way={"thousands": ".", "quoted_text": False}, pandas=EUROPEAN),
    refused("a title among empty fields", "Report;;\na;b;c\n1;2;3\n", "skip=1 leaves out a title line",
            way={"skip": 1}, pandas={"sep": ";", "skiprows": 1}),
    right("three decimals, and others", "a;b\n1;1.234\n2;0.950\n", pandas={"sep": ";"}),
    right("three decimals by commas", "a,b\n1,1.234\n2,12.500\n"),
    right("addresses", "a;b\n1;10.0.0.1\n2;192.168.100.100\n", pandas={"sep": ";"}),
    refused("points between thousands", "a;b\n" + "1;2,5\n" * 99_000 + "1;1.234,5\n",
            'line 99002: .*thousands="."', way=EUROPEAN, pandas=EUROPEAN, options={"decimal": ","}),
    told("points and commas", "a;b\n1.5;2,5\n2.25;3,75\n", 'decimal=","', way={"decimal": ","},
         right={"a": ["1.5", "2.25"], "b": [2.5, 3.75]}),
    told("quoted thousands", 'a,b\n"1,234",2\n"2,345,678",3\n', 'thousands=","', way={"thousands": ","},
         pandas={"thousands": ","}),
    refused("a late decimal comma", "a;b\n" + "1;2\n" * 99_000 + "1;2,5\n", "line 99002: .*decimal=\",\"",
            way={"decimal": ","}, pandas={"sep": ";", "decimal": ","}),
    right("ZIP codes", "zip,n\n01234,1\n99999,2\n", pandas={"dtype": {"zip": str}}),
    refused("a late ZIP code", "zip,n\n" + "12345,1\n" * 99_000 + "01234,2\n", 'line 99002: .*codes.*"text"',
            way={"dtype": {"zip": "text"}}, pandas={"dtype": {"zip": str}}),
    right("percent and currencies", "a,b\n50%,$1.50\n7%,€2\n"),
    right("beyond 2**63", "a,b\n9223372036854775808,9007199254740993\n1,2\n"),
    told("beyond 2**64", "a\n99999999999999999999\n1\n", "no type of numbers holds", pandas={"dtype": str},
         options={}),
    right("not finite", "a\ninf\n-inf\n\nNaN\n1\n"),
    right("spaces around numbers", "a , b\n 1 , 2\n 3, 4 \n", right={"a": [1, 3], "b": [2, 4]}),
    right("numbers and words", "a,b\n1,x\nfoo,y\n3,z\n"),
    refused("a late word", f"a,b\n{MANY * 900}x,1\n", "'x' in column 'a' is not a number.*\"text\"",
            way={"dtype": {"a": "text"}}, pandas={"dtype": {"a": str}}),
    told("marks for missing", "a,b\n1,-\n2,3\n4,5\n", r"na_values=\['-'\]", way={"na_values": ["-"]},
         pandas={"na_values": ["-"]}),
    refused("codes for missing", f"a,b\n{MANY * 900}k.A.,1\nw.n., k.A.\nk.A.,3\nverweigert,x\n5,6\n",
            r"na_values=\['k\.A\.', 'w\.n\.', 'verweigert'\] takes them as missing, dtype=\{'a': \"text\"",
            way={"na_values": ["k.A.", "w.n.", "verweigert", "x"]},
            pandas={"na_values": ["k.A.", "w.n.", "verweigert", "x"], "skipinitialspace": True}),
    refused("one code for missing", f"a,b\n{MANY}k.A.,1\n", r"na_values=\['k\.A\.'\] takes it as missing",
            way={"na_values": ["k.A."]}, pandas={"na_values": ["k.A."]}),
    refused("many codes", f"a,b\n{MANY * 9}ab,1\ninf,2\n" + "".join(f"{one * 2},1\n" for one in "abcdefgh"),
            r"na_values=\['ab', 'aa', 'bb', 'cc', 'dd'\] takes them", way={"dtype": {"a": "text"}},
            pandas={"dtype": {"a": str}}),
    refused("a late mark for missing", f"a,b\n{MANY * 900}?,1\n", r"na_values=\['\?'\]",
            way={"na_values": ["?"]}, pandas={"na_values": ["?"]}),
    right("words for missing", "a,b\nNA,n/a\n1,2\n,NULL\n"),
    right("true and false", "a,b\nTRUE,yes\nFALSE,no\n"),
    # Times
    right("days and times", "d,t\n2020-01-02,2020-01-02 03:04:05\n",
          right={"d": ["2020-01-02"], "t": ["2020-01-02T03:04:05.000000"]}),
    right("days first, or months", "d,x\n01/02/2020,1\n03/04/2020,2\n"),
    right("days with points", "d,x\n31.12.2020,1\n1.2.2021,2\n"),
    told("offsets of zones", "t,x\n2020-01-02T03:04:05Z,1\n2020-01-02T03:04:05+02:00,2\n", "read as UTC",
         right={"t": ["2020-01-02T03:04:05.000000", "2020-01-02T01:04:05.000000"], "x": [1, 2]}),
    right("days in quotes", 'd,x\n"2020-01-02",1\n', options={"parse_dates": ["d"]},
          right={"d": ["2020-01-02"], "x": [1]}),
    refused("no days", "d,x\n1.2.2020,1\n", "to_datetime", options={"parse_dates": ["d"]},
            way={"parse_dates": None}, pandas={}),
    # Letters
    right("UTF-16", "id,ü\n1,ä\n".encode("utf-16"), pandas={"encoding": "utf-16"}),
    refused("UTF-16 without a mark", "id,b\n1,2\n".encode("utf-16-be"), 'encoding="utf-16-be"',
            way={"encoding": "utf-16-be"}, pandas={"encoding": "utf-16-be"}),
    refused("Windows' umlauts", "id,ort\n1,München\n2,3 €\n".encode("cp1252"), 'line 2: .*encoding="cp1252"',
            way={"encoding": "cp1252"}, pandas={"encoding": "cp1252"}),
    refused("umlauts in names", "id,größe\n1,3\n".encode("latin-1"), 'line 1: .*encoding="cp1252"',
            way={"encoding": "latin-1"}, pandas={"encoding": "latin-1"}),
    told("UTF-8 as Latin-1", "id,stadt\n1,München\n", "is UTF-8 text", options={"encoding": "latin-1"},
         way={"encoding": "utf-8"}, pandas={}),
    refused("Windows' euro as Latin-1", "id,preis\n1,3 €\n".encode("cp1252"), 'encoding="cp1252"',
            options={"encoding": "latin-1"}, way={"encoding": "cp1252"}, pandas={"encoding": "cp1252"}),
    # Other files
    right("gzip", gzip.compress(b"a,b\n1,2\n"), suffix=".csv.gz"),
    right("bzip2", bz2.compress(b"a,b\n1,2\n"), suffix=".csv.bz2"),
    right("xz", lzma.compress(b"a\tb\n1\t2\n"), suffix=".tsv.xz", pandas={"sep": "\t"}),
    right("zip", zipped("a.csv"), suffix=".csv.zip"),
    refused("two in a zip", zipped("a.csv", "b.csv"), "has 2 files in it: extract", suffix=".csv.zip"),
    refused("damaged bzip2", b"BZh91AY&SYjunk", "damaged", suffix=".csv.bz2"),
    refused("cut xz", lzma.compress(b"a,b\n1,2\n")[:-20], "cannot be decompressed", suffix=".csv.xz"),
    refused("gzip by another name", gzip.compress(b"a,b\n1,2\n"), r"name it \.csv\.gz", way={},
            way_suffix=".csv.gz", pandas={"compression": "gzip"}),
    refused("JSON", json.dumps([AB]), r"pandas\.read_json\(path\)"),
    refused("JSON by its name", json.dumps([AB]), r"pandas\.read_json\(path\)", suffix=".json"),
    refused("lines of JSON", json.dumps(AB) + "\n" + json.dumps(AB), r"lines=True"),
    refused("HTML", "<!DOCTYPE html>\n<table><tr><td>1,2</td></tr></table>\n", r"pandas\.read_html\(path\)"),
    refused("Excel", zipped("xl/workbook.xml"), r"pandas\.read_excel\(path\)"),
    refused("Excel by its name", zipped("xl/workbook.xml"), r"pandas\.read_excel\(path\)", suffix=".xlsx"),
    refused("an older Excel", b"\xd0\xcf\x11\xe0\xa1" + bytes(600), r"pandas\.read_excel\(path\)"),
    refused("Parquet", b"PAR1" + bytes(100), 'kind="parquet"'),
    refused("edges by its name", "id,price\n1,2\n", 'kind="csv"', suffix=".txt", way={"kind": "csv"}),
    refused("a byte of zero", b"a,b\n1,2\n\0,3\n", "line 3: a control character"),
]  # fmt: skip


@dataclass
class Opened:
    """What came of a file: columns or an error, and warnings."""

    columns: Columns | None
    error: str
    warnings: str


def opened(path: Path, options: dict[str, Any], num_pieces: int = 1) -> Opened:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        columns, error = None, ""
        try:
            source = open_files(path, **options)
            if isinstance(source, TableSource):
                columns = read_table(source, num_pieces)
            else:
                read_whole(source)
        except MatnbError as problem:
            error = str(problem)
    return Opened(columns, error, "\n".join(str(one.message) for one in caught))


def outcome(odd: OddFile, folder: Path) -> str:
    """Return whether a file was right, told or refused; a failure of the law is an assertion."""
    path = folder / f"odd{odd.suffix}"
    path.write_bytes(odd.data)
    for num_pieces in (1, 3):
        found = opened(path, odd.options, num_pieces)
        if odd.is_refused:
            assert re.search(odd.said, found.error, re.DOTALL), (odd.name, found)
            assert len(found.error) < 600
            assert str(path) in found.error
        elif odd.said:
            assert re.search(odd.said, found.warnings), (odd.name, found)
        else:
            assert not found.warnings, (odd.name, found)
            assert found.columns == odd.expected(path), odd.name
    if odd.said and odd.way is None and not odd.is_refused:
        assert found.columns == odd.expected(path), odd.name
    if odd.way is not None:
        path = path.rename(folder / f"odd{odd.way_suffix}") if odd.way_suffix else path
        followed = opened(path, {**odd.options, **odd.way})
        assert followed.columns == odd.expected(path), (odd.name, followed)
    return "refused" if odd.is_refused else "told" if odd.said else "right"


@pytest.mark.parametrize("odd", ODD_FILES, ids=[one.name for one in ODD_FILES])
def test_an_odd_file_is_right_or_told_or_refused(
    odd: OddFile, tmp_path: Path, record_property: pytest.RecordProperty
) -> None:
    record_property("odd_csv", outcome(odd, tmp_path))


def test_there_are_many() -> None:
    names = Counter(one.name for one in ODD_FILES)
    assert max(names.values()) == 1
    assert len(names) >= 31


ENGLISH = [one for one in ODD_FILES if one.suffix == ".csv" and not one.said and not one.options]


def test_duckdb_finds_no_more_columns(tmp_path: Path) -> None:
    """DuckDB's sniffing gives what is read right as many columns and rows, but for some where it is wrong."""
    duckdb = pytest.importorskip("duckdb")
    differs = set()
    for odd in ENGLISH:
        path = tmp_path / "odd.csv"
        path.write_bytes(odd.data)
        try:
            relation = duckdb.connect().read_csv(str(path))
            shape = (len(relation.fetchall()), len(relation.columns))
        except duckdb.Error:
            shape = (-1, -1)
        columns = opened(path, {}).columns
        assert columns is not None
        if shape != (len(next(iter(columns.values()))), len(columns)):
            differs.add(odd.name)
    assert differs <= DUCKDB_DIFFERS


# It splits no lines by spaces, and two words of one column, reads no UTF-16 by its mark, and a line that says
# what the delimiter is, and a blank one, as rows.
DUCKDB_DIFFERS = {
    *("spaces", "spaces and tabs in line", "one column of two words", "UTF-16", "a line that says so"),
    "not finite",
}


def test_streamed_rows_are_those_of_the_table(tmp_path: Path) -> None:
    """Sources read files with the same options into the same numbers."""
    with mn.start(workers=1, processes=False):
        assert num_streamed_alike(tmp_path) > 20


def num_streamed_alike(tmp_path: Path) -> int:
    count = 0
    for odd in ODD_FILES:
        path = tmp_path / f"odd{odd.suffix}"
        path.write_bytes(odd.data)
        options = {**odd.options, **(odd.way or {})} if odd.is_refused or odd.way else odd.options
        found = opened(path, options).columns
        is_numbers = found and all(
            one is None or type(one) in (int, float, bool) for values in found.values() for one in values
        )
        if not found or not is_numbers or odd.suffix == ".txt":
            continue
        X = np.array(list(zip(*found.values(), strict=True)), dtype=float)
        if not X.size or not np.isfinite(X).all():
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FileContentWarning)
            source = mn.sources.files(path, batch_size=1000, **options)
            batches = [one.X.compute() for one in source]
        np.testing.assert_array_equal(np.concatenate(batches), X, odd.name)
        count += 1
    return count


WRONG_OPTIONS = [
    ({"index_col": 0}, "tables have no index"),
    ({"quotechar": "'"}, r"mn\.table\(pandas\.read_csv\(path, \.\.\.\)\)"),
    ({"chunksize": 5}, r"mn\.sources\.files\("),
    ({"skipfooter": 1}, "nrows="),
    ({"date_format": "%d.%m.%Y"}, "to_datetime"),
    ({"true_values": ["yes"]}, "== "),
    ({"compression": "zip"}, r"\.csv\.zip"),
    ({"separator": ";"}, "write delimiter="),
    ({"has_header": False}, "write header="),
    ({"delimitr": ";"}, "did you mean 'delimiter'"),
    ({"sep": ";", "delimiter": ";"}, "sep= and delimiter= are one option"),
    ({"usecols": ["a"], "columns": ["a"]}, "usecols= and columns= are one option"),
    ({"delimiter": ";;"}, r"give one character.*\\s\+"),
    ({"header": [0, 1]}, r"skip=\[1\]"),
    ({"header": -1}, "header=-1"),
    ({"header": "yes"}, "header='yes'"),
    ({"skip": [1, 3]}, "only lines before the first row"),
    ({"skip": -1}, "0 or more"),
    ({"skiprows": ["a"]}, "0 or more"),
    ({"nrows": -1}, "0 or more"),
    ({"nrows": 2.5}, "0 or more"),
    ({"parse_dates": True}, "give a list of columns"),
    ({"parse_dates": ["x"]}, "no column 'x'"),
    ({"columns": [2]}, "no column 2"),
    ({"columns": [0, "a"]}, "'a' is listed twice"),
    ({"names": ["a"], "header": None}, "give a list of 2 names"),
]


@pytest.mark.parametrize(("options", "said"), WRONG_OPTIONS, ids=[repr(one) for one, _ in WRONG_OPTIONS])
def test_a_wrong_option_says_the_right_one(options: dict[str, Any], said: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n3,4\n5,6\n")
    with pytest.raises(OptionError, match=said):
        open_files(path, **options)


OPTIONS_OF_PANDAS: list[dict[str, Any]] = [
    {"sep": ","}, {"sep": None}, {"usecols": ["b"]}, {"usecols": [1]}, {"usecols": ["a", "b"]},
    {"skiprows": 1}, {"skiprows": [0]}, {"skiprows": [1, 2]}, {"header": 0}, {"header": 1}, {"header": 2},
    {"header": None}, {"names": ["x", "y"], "header": 0}, {"names": ["x", "y"], "skiprows": 1},
    {"nrows": 0}, {"nrows": 1}, {"nrows": 2}, {"nrows": 100}, {"nrows": 1, "skiprows": [1]},
    {"dtype": {"b": "float64"}}, {"na_values": [2]}, {"thousands": ","}, {"comment": "#", "nrows": 2},
    {"parse_dates": ["c"]}, {"parse_dates": [2], "nrows": 3}, {"header": 1, "nrows": 1},
]  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS_OF_PANDAS, ids=repr)
@pytest.mark.parametrize("num_pieces", [1, 4])
def test_options_mean_what_they_mean_in_pandas(
    options: dict[str, Any], num_pieces: int, tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    has_times = "parse_dates" in options
    more = ("", "", "") if not has_times else (",c", ",2020-01-01 00:00:01", ",2021-01-01 00:00:02")
    path.write_text(f"a,b{more[0]}\n1,2{more[1]}\n\n3,4{more[2]}\n5,6{more[1]}\n")
    frame = pd.read_csv(path, **{"engine": "python", **options} if options.get("sep", 0) is None else options)
    found = opened(path, options, num_pieces)
    assert found.columns is not None, found.error
    expected = {str(name): plain(frame[name].tolist()) for name in frame}
    if has_times:
        expected["c"] = frame["c"].to_numpy().astype("M8[us]").astype(str).tolist()
    assert found.columns == expected


@pytest.mark.parametrize("nrows", range(6))
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_the_first_rows_are_whole(nrows: int, suffix: str, tmp_path: Path) -> None:
    text = 'a,b\n1,"x\n\ny"\n\r\n2,"#"\n# 3,"z\n4,"""\n"\n5,w'
    path = tmp_path / f"a{suffix}"
    path.write_bytes(gzip.compress(text.encode()) if suffix.endswith("gz") else text.encode())
    rows = {"a": [1, 2, 4, 5][:nrows], "b": ["x\n\ny", "#", '"\n', "w"][:nrows]}
    for num_pieces in (1, 3):
        assert opened(path, {"comment": "#", "nrows": nrows}, num_pieces).columns == rows


def test_files_of_a_folder_that_differ_say_so(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    (tmp_path / "b.csv").write_text("a;c\n3;4\n")
    with pytest.raises(MatnbError, match=r"b\.csv.*'a', 'c' where .*a\.csv.* 'a', 'b'; columns="):
        open_files(tmp_path)
    source = open_files(tmp_path, columns=["a"])
    assert isinstance(source, TableSource)
    assert read_table(source) == {"a": [1, 3]}
    with pytest.raises(OptionError, match=r"t\.head\(n\)"):
        open_files(tmp_path, nrows=1)
    with pytest.raises(OptionError, match="the first batches"):
        mn.sources.files(tmp_path, batch_size=1, nrows=1)


INTERPRETED = pytest.mark.session("interpreter")


@INTERPRETED
@pytest.mark.parametrize("sep", [",", ";"])
@pytest.mark.parametrize("has_header", [True, False])
@pytest.mark.parametrize("lengths", [(2, 2, 3, 2), (3, 3, 2, 3), (3, 3, 2, 4), (2, 3, 2, 1)])
def test_rows_of_several_lengths_are_read_as_the_error_says(
    tmp_path: Path, sep: str, has_header: bool, lengths: tuple[int, ...]
) -> None:
    rows = [[f"{place}.{number}" for number in range(length)] for place, length in enumerate(lengths)]
    path = tmp_path / "a.csv"
    header = [sep.join("abcd"[: lengths[0]])] * has_header
    path.write_text("\n".join([*header, *map(sep.join, rows)]) + "\n")
    names = [*"abcd"[: max(lengths)]]
    whole = [[*map(float, row), *[math.nan] * (len(names) - len(row))] for row in rows]
    given: dict[str, Any] = {"header": 0 if has_header else None, "delimiter": sep}
    for options in (given, {**given, "names": names}):
        with pytest.raises(MatnbError) as caught:
            mn.load(path, **options)
        (way,) = re.findall(r"mn\.table\(pandas\.read_csv\(.*?\]\)\)", str(caught.value))
        found = eval(way.replace("[...]", repr(names)), {"mn": mn, "pandas": pd, "path": path})
        np.testing.assert_array_equal(found.to_numpy(), whole)


@INTERPRETED
def test_a_date_in_a_column_that_was_empty_so_far(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    for day, said in (
        ("2024-03-01", "parse_dates=['v']"),
        ("31.12.2020 10:00", "t['v'].to_datetime(\"%d.%m.%Y %H:%M\") makes times"),
        ("01/02/2024", 't[\'v\'].to_datetime("%d/%m/%Y") makes times with the day first, '
         'to_datetime("%m/%d/%Y") with the month first'),
    ):  # fmt: skip
        path.write_text("v,k\n" + ",1\n" * 150_000 + f"{day},1\n")
        with pytest.raises(MatnbError) as caught:
            mn.load(path)
        assert said in str(caught.value)
        options: dict[str, Any] = {"parse_dates": ["v"]} if "parse" in said else {"dtype": {"v": "text"}}
        t = mn.load(path, **options)
        if way := re.search(r't\[.v.\]\.(to_datetime\(".*?"\))', str(caught.value)):
            t = t.with_columns(v=eval(f"column.{way[1]}", {"column": t["v"]}))
        expected = pd.to_datetime(day, dayfirst="2024-" not in day).to_datetime64()
        assert t["v"].to_numpy()[-1] == expected
        assert t["v"].isna().sum().compute() == 150_000
