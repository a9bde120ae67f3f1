"""What stands in the names of folders is a column, however the files are named: nothing is lost."""

from __future__ import annotations

import os
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
