"""What stands in the names of folders is a column, however the files are named: nothing is lost."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv, feather, parquet
from reading import read_table

import matnb as mn
from matnb.errors import FileContentWarning, MissingFileError, OptionError
from matnb.io.folders import open_files
from matnb.io.source import READERS

WRITERS = {"parquet": parquet.write_table, "csv": csv.write_csv, "feather": feather.write_feather}
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


def write(path: Path, rows: list[int]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    WRITERS[path.suffix[1:]](pa.table({"x": rows}), path)


def read(where: Any, num_pieces: int = 3, **options: Any) -> dict[str, list[Any]]:
    return read_table(open_files(where, **options), num_pieces)


@settings(max_examples=15)
@given(
    folders=st.lists(
        st.tuples(st.integers(-20, 20), st.text("aé /=%NA0", min_size=1, max_size=3)),
        min_size=1,
        max_size=4,
        unique=True,
    ),
    suffix=st.sampled_from(sorted(WRITERS)),
    num_pieces=st.integers(1, 9),
)
def test_keys_are_columns_for_any_way_of_naming_files(
    folders: list[tuple[int, str]], suffix: str, num_pieces: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("keys")
    paths = [root / f"Age={age}" / f"land={quote(text, safe='')}" / f"p.{suffix}" for age, text in folders]
    for number, path in enumerate(paths):
        write(path, [number, number + 1])
    order = [path.relative_to(root) for path in sorted(paths, key=str)]
    rank = {str(path): place for place, path in enumerate(paths)}
    numbers = [rank[str(root / path)] for path in order]
    expected = {
        "x": [one for number in numbers for one in (number, number + 1)],
        "Age": [folders[number][0] for number in numbers for _ in range(2)],
        "land": [folders[number][1] for number in numbers for _ in range(2)],
    }
    if not all(text.isdigit() for _, text in folders):
        for where in (root, f"{root}/*/*/*.{suffix}", f"{root}/Age=*/land=*/p.*"):
            assert read(where, num_pieces) == expected
    listed = read([str(root / path) for path in order], num_pieces)
    varying = {name for name in ("Age", "land") if len(set(expected[name])) > 1}
    assert {"x", *varying} <= set(listed)
    assert all(name == "land" or listed[name] == expected[name] for name in listed)


def test_types_of_keys(tmp_path: Path) -> None:
    for day, month, zone, number in (
        ("2020-01-01", "01", "02134", 1),
        ("2020-01-02", "02", "NA", 2),
        (NO_VALUE, "12", NO_VALUE, NO_VALUE),
    ):
        write(tmp_path / f"day={day}" / f"month={month}" / f"zone={zone}" / f"n={number}" / "a.csv", [7])
    found = read(tmp_path)
    assert sorted(map(str, found["day"])) == ["2020-01-01", "2020-01-02", "NaT"]
    assert sorted(found["month"]) == ["01", "02", "12"]  # a text that is no number as it is written
    assert sorted(map(str, found["zone"])) == ["02134", "NA", "None"]
    assert sorted(map(str, found["n"])) == ["1", "2", "None"]
    assert sorted(read(tmp_path, dtype={"month": "int64"})["month"]) == [1, 2, 12]
    assert sorted(map(str, read(tmp_path, dtype={"n": "text"})["n"])) == ["1", "2", "None"]
    with pytest.raises(OptionError, match="dtype='int64' of 'zone'"):
        read(tmp_path, dtype={"zone": "int64"})


@pytest.mark.parametrize("dtype", ["datetime64[D]", "datetime64[s]", "datetime64[us]", "datetime64[ns]"])
def test_keys_are_times_of_a_unit(dtype: str, tmp_path: Path) -> None:
    for day in ("2020-01-01", "2020-01-02", NO_VALUE):
        write(tmp_path / f"day={day}" / "a.csv", [7])
    found = read(tmp_path, dtype={"day": dtype})["day"]
    assert sorted(str(one)[:10] for one in found) == ["2020-01-01", "2020-01-02", "NaT"]


def test_keys_are_numbers_of_a_dtype(tmp_path: Path) -> None:
    for flag, n, large in (("true", "1", str(2**64 - 1)), ("false", "-2", "7")):
        write(tmp_path / f"flag={flag}" / f"n={n}" / f"large={large}" / "a.csv", [7])
    found = read(tmp_path, dtype={"flag": bool, "n": "float32", "large": "uint64"})
    assert sorted(found["flag"]) == [False, True]
    assert sorted(found["n"]) == [-2.0, 1.0]
    assert sorted(found["large"]) == [7, 2**64 - 1]


def test_keys_are_picked_as_other_columns(tmp_path: Path) -> None:
    for age in (20, 30):
        write(tmp_path / f"Age={age}" / "a.parquet", [age, age + 1])
    assert read(tmp_path, columns=["Age"]) == {"Age": [20, 20, 30, 30]}
    assert list(read(tmp_path, columns=["Age", "x"])) == ["Age", "x"]
    assert read(tmp_path / "Age=20") == {"x": [20, 21]}
    with pytest.raises(OptionError, match="no column 'y'"):
        read(tmp_path, columns=["y"])
    assert open_files(tmp_path).identity() != open_files(tmp_path, columns=["Age", "x"]).identity()


def test_a_file_outside_of_the_keys_is_told(tmp_path: Path) -> None:
    write(tmp_path / "Age=20" / "a.parquet", [1])
    write(tmp_path / "b.parquet", [1])
    with pytest.raises(OptionError, match=r"b\.parquet: has the keys \(none\) .* has 'Age'"):
        read(tmp_path)
    os.makedirs(tmp_path / "other")
    with pytest.raises(MissingFileError, match="no file here can be read"):
        read(tmp_path / "other")


def test_a_stream_says_that_it_leaves_the_keys_out(tmp_path: Path) -> None:
    for age in (20, 30):
        write(tmp_path / f"Age={age}" / "a.parquet", [age, age + 1])
    with pytest.warns(
        FileContentWarning, match=r"the values of 'Age' in the names of folders are not read here"
    ):
        source = mn.sources.files(tmp_path, batch_size=4)
    assert source.num_rows == 4


@pytest.mark.parametrize("ending", ["", "/", "//", "/./", "/Age=*/*", "//Age=*//*.parquet", "/*//*"])
def test_slashes_change_no_key(ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for age in (20, 30):
        write(tmp_path / "d" / f"Age={age}" / "a.parquet", [age, age + 1])
    expected = {"x": [20, 21, 30, 31], "Age": [20, 20, 30, 30]}
    monkeypatch.chdir(tmp_path)
    for folder in (f"{tmp_path}/d", "d", "./d", "../" + tmp_path.name + "//d"):
        assert read(folder + ending) == expected
    mixed = [f"{tmp_path}//d/Age=20/a.parquet", f"{tmp_path}/d//Age=30/a.parquet"]
    assert read(mixed) == expected


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("größe;n\n1;2\n3;4\n".encode("cp1252"), {"encoding": "cp1252"}),
        ("a,b\n1,2\n3,4\n".encode("utf-16"), {"encoding": "utf-16"}),
        (b"1,2\n3,4\n", {"header": None}),
        (b"not, a, table\na,b\n1,2\n3,4\n", {"skip": 1}),
        (b"# words\na:b\n1:2 # and more\n3:4\n", {"delimiter": ":", "comment": "#"}),
        (b"a,a\n1,2\n3,4\n", {"names": ["p", "q"], "header": 0}),
    ],
)
def test_keys_alone_are_read_with_the_options_of_the_files(
    text: bytes, options: dict[str, Any], tmp_path: Path
) -> None:
    for age in (20, 30):
        path = tmp_path / f"Age={age}" / "a.csv"
        path.parent.mkdir()
        path.write_bytes(text)
    whole = read(tmp_path, **options)
    assert read(tmp_path, columns=["Age"], **options) == {"Age": whole["Age"]} == {"Age": [20, 20, 30, 30]}
    by_name = {"dtype": {"Age": "int64"}, "columns": ["Age"]}
    assert read(tmp_path, **by_name, **options) == {"Age": whole["Age"]}


@pytest.mark.parametrize("suffix", sorted(WRITERS))
@pytest.mark.parametrize("columns", [None, ["Age"], ["x", "Age"], ["Age", "land"], ["land", "x", "Age"]])
def test_a_column_of_the_files_comes_before_that_of_a_key(
    columns: list[str] | None, suffix: str, tmp_path: Path
) -> None:
    for age, land in ((20, "a"), (30, "b")):
        path = tmp_path / f"Age={age}" / f"land={land}" / f"a.{suffix}"
        path.parent.mkdir(parents=True)
        WRITERS[suffix](pa.table({"x": [age], "Age": [age + 0.5]}), path)
    expected = {"x": [20, 30], "Age": [20.5, 30.5], "land": ["a", "b"]}
    found = read(tmp_path, **({} if columns is None else {"columns": columns}))
    assert found == {name: expected[name] for name in columns or expected}
    with pytest.raises(OptionError):
        read(tmp_path, columns=[])


@pytest.mark.parametrize("columns", [None, ["Age", "x"], ["Age"]])
def test_a_dtype_of_a_column_that_a_key_is_named_like(columns: list[str] | None, tmp_path: Path) -> None:
    path = tmp_path / "Age=20" / "a.csv"
    path.parent.mkdir()
    path.write_text("x,Age\n1,7\n")
    options = {} if columns is None else {"columns": columns}
    assert read(tmp_path, dtype={"Age": "text"}, **options)["Age"] == ["7"]


def test_files_whose_columns_are_in_another_order_have_the_same_types(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y,z\n1,2,0.5\n")
    (tmp_path / "b.csv").write_text('z,y,x\n"t",3,4\n')
    (tmp_path / "c.csv").write_text('y,z,x\n5,"",6\n')
    for where in (tmp_path, [tmp_path / f"{name}.csv" for name in "bca"]):
        found = read(where)
        assert sorted(found["x"]) == [1, 4, 6]
        assert sorted(found["y"]) == [2, 3, 5]
        assert sorted(found["z"]) == ["", "0.5", "t"]


@pytest.mark.parametrize("num_files", [1, 2, 3])
def test_each_file_is_opened_once_and_warns_once(
    num_files: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(num_files):
        (tmp_path / f"{number}.csv").write_text("n\n0.5\n9007199254740993\n")
    opened: list[Any] = []
    reader = READERS["csv"]
    monkeypatch.setitem(
        READERS,
        "csv",
        replace(reader, open=wraps(reader.open)(lambda *a, **o: opened.append(a) or reader.open(*a, **o))),
    )
    with pytest.warns(FileContentWarning) as said:
        source = open_files(tmp_path)
    assert len(opened) == num_files
    assert len(said) == 1
    assert source.kinds[0].word == "text"  # type: ignore[attr-defined]  # of a table
