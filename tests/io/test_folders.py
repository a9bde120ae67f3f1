"""Several files as one table: the values of the files one below the other, for any cuts, or one error."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matnb.blocks.formats import to_numpy
from matnb.errors import FileFormatError, MissingFileError, OptionError
from matnb.io import lines
from matnb.io.columns import ColumnSource
from matnb.io.folders import TableFiles, open_files
from matnb.ops.creation import read_blocks

ROWS = st.lists(st.tuples(st.sampled_from(["é", "b", "", "東"]), st.integers(-9, 9)), min_size=1, max_size=6)


def frame_of(rows: list[tuple[str, int]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["zone", "n"])


def values(source: Any, num_pieces: int = 3) -> dict[str, list[object]]:
    """Return the values of each column, text as labels."""
    context = source.merge([source.summary(source.parse(piece)) for piece in source.pieces(num_pieces)])
    found: dict[str, list[object]] = {}
    for place, facts in enumerate(context.found.columns):
        blocks = read_blocks(ColumnSource(source, place), num_pieces, None)[1]
        codes = np.concatenate([to_numpy(block) for block in blocks]).tolist()
        if facts.labels is not None:
            labels = [*facts.labels.to_pylist(), None]
            assert labels[:-1] == sorted(labels[:-1])
            codes = [labels[code] for code in codes]
        found[facts.name] = codes
    return found


def arrow_of(frame: pd.DataFrame) -> pa.Table:
    """Return a frame with text that is typed where all of it is missing, too."""
    types = {"zone": pa.string(), "n": pa.int64()}
    return pa.table(
        {name: pa.array([one if one != "" else None for one in frame[name]], types[name]) for name in frame}
    )


def write(frame: pd.DataFrame, path: Path) -> None:
    text = frame.to_csv(index=False).encode()
    if path.name.endswith(".csv"):
        path.write_bytes(text)
    elif path.name.endswith(".gz"):
        path.write_bytes(gzip.compress(text))
    elif path.name.endswith(".zst"):
        with pa.CompressedOutputStream(str(path), "zstd") as stream:
            stream.write(text)
    elif path.name.endswith(".parquet"):
        pyarrow.parquet.write_table(arrow_of(frame), path, row_group_size=2)
    else:
        pyarrow.feather.write_feather(arrow_of(frame), path, compression="zstd")


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".csv.zst", ".parquet", ".feather", ".arrow"])
@settings(max_examples=10)
@given(parts=st.lists(ROWS, min_size=2, max_size=4), num_pieces=st.integers(1, 40))
def test_files_one_below_the_other_for_any_cuts(
    suffix: str,
    parts: list[list[tuple[str, int]]],
    num_pieces: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("many")
    for number, rows in enumerate(parts):
        frame = frame_of(rows)
        write(frame[["n", "zone"]] if number == 1 else frame, folder / f"{number}{suffix}")
    whole = frame_of([row for rows in parts for row in rows])
    expected = {"zone": [text or None for text in whole.zone], "n": whole.n.tolist()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "SMALLEST_PIECE", 1)
        for where in (folder, folder / f"*{suffix}", sorted(folder.iterdir())):
            assert values(open_files(where), num_pieces) == expected
    assert values(open_files(folder, columns=["n"]), num_pieces) == {"n": expected["n"]}


def test_types_are_those_of_all_files(tmp_path: Path) -> None:
    for name, text in {"a": "x,y,z\n1,,2020-01-01\n", "b": "x,y,z\n2.5,u,2020-01-02 03:04:05\n"}.items():
        (tmp_path / f"{name}.csv").write_text(text)
    source = open_files(tmp_path)
    assert isinstance(source, TableFiles)
    assert [kind.dtype for kind in source.kinds] == ["float64", np.dtypes.StringDType(), "datetime64[us]"]
    found = values(source)
    assert found["x"] == [1.0, 2.5]
    assert found["y"] == [None, "u"]
    assert found["z"][0] == np.datetime64("2020-01-01", "us").astype(int)


def test_row_groups_of_one_file_widen_those_of_another(tmp_path: Path) -> None:
    pd.DataFrame({"x": [1, 2]}).to_parquet(tmp_path / "a.parquet")
    pd.DataFrame({"x": [0.5]}).to_parquet(tmp_path / "b.parquet")
    assert values(open_files(tmp_path)) == {"x": [1.0, 2.0, 0.5]}
    pd.DataFrame({"x": ["u"]}).to_parquet(tmp_path / "c.parquet")
    with pytest.raises(
        FileFormatError, match=r"c\.parquet: column 'x' holds text where .*a\.parquet has float64"
    ):
        open_files([tmp_path / f"{name}.parquet" for name in "abc"])


def test_a_file_with_other_columns_is_named_with_both_lists(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    (tmp_path / "b.csv").write_text("y,z\n1,2\n")
    with pytest.raises(
        FileFormatError, match=r"b\.csv: has the columns 'y', 'z' where .*a\.csv has 'x', 'y'"
    ):
        open_files(tmp_path)
    assert values(open_files(tmp_path, columns=["y"])) == {"y": [2, 1]}
    with pytest.raises(OptionError, match=r"b\.csv: no column 'x'"):
        open_files(tmp_path, columns=["x"])


def test_the_first_error_of_the_first_file_is_told_with_its_own_line(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n" + "1\n" * 30)
    (tmp_path / "b.csv").write_text("x\n" + "1\n" * 30 + "one\n")
    (tmp_path / "c.csv").write_text("x\ntwo\n")
    source = open_files(tmp_path)
    for num_pieces in (1, 7):
        parts = [source.parse(piece) for piece in source.pieces(num_pieces)]
        with pytest.raises(FileFormatError, match=r"b\.csv.*'one' in column 'x' is not a number") as told:
            source.merge([source.summary(part) for part in parts])
        assert told.value.line == 32


def test_what_is_no_table_or_not_there(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(3))
    (tmp_path / "notes.txt").write_text("no table\n")
    with pytest.raises(
        MissingFileError, match=r"the suffixes are \.csv.*; mn.sources.files\(path, batch_size=n\)"
    ):
        open_files(tmp_path)
    (tmp_path / "other").mkdir()
    with pytest.raises(MissingFileError, match=r"as one table; the suffixes are \.csv[^;]*$"):
        open_files(tmp_path / "other")
    with pytest.raises(MissingFileError, match="no file matches the pattern"):
        open_files(tmp_path / "*.csv")
    with pytest.raises(
        OptionError, match=r"a\.npy: several files are loaded together only if all are tables"
    ):
        open_files([tmp_path / "a.npy", tmp_path / "a.npy"])
    with pytest.raises(OptionError, match="the list is empty"):
        open_files([])
    with pytest.raises(OptionError, match="3 is not a file"):
        open_files(3)  # type: ignore[arg-type]  # a user's mistake
    assert open_files(tmp_path / "*.npy").pieces(1)[0].stop == 3
