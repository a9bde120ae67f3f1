"""Columns of lists in Parquet and Arrow files, read on the workers, against pyarrow's own lists."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from drawn_segments import Segments, drawn_segments
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import feather, parquet

import matnb as mn
from matnb.blocks.formats import to_numpy
from matnb.errors import FileFormatError, MissingFileError, OptionError
from matnb.io.arrow_files import ArrowTable
from matnb.nested.lists import open_lists
from matnb.ops.creation import read_blocks

pytestmark = pytest.mark.session("interpreter", "two threads")


def write(path: Path, columns: dict[str, Any], rows: int) -> Path:
    table = pa.table(columns)
    if path.suffix == ".parquet":
        parquet.write_table(table, path, row_group_size=rows)
    else:
        feather.write_feather(table, path, chunksize=rows)
    return path


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
@given(drawn=drawn_segments(), rows=st.integers(1, 9), is_large=st.booleans())
@settings(max_examples=15)
def test_a_column_of_lists(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, drawn: Segments, rows: int, is_large: bool
) -> None:
    lists = drawn.nested().to_arrow()
    if not is_large:
        lists = lists.cast(pa.list_(lists.type.value_type))
    columns = {"id": np.arange(len(lists)), "hits": lists}
    path = write(tmp_path_factory.getbasetemp() / f"drawn{suffix}", columns, rows)
    found = mn.nested.load(path, "hits", strategy=drawn.strategy)
    assert found.dtype == drawn.values.dtype
    assert found.counts.compute().tolist() == drawn.counts.tolist()
    np.testing.assert_array_equal(found.values.compute(), drawn.values)


def test_any_pieces_and_blocks_give_the_same(tmp_path: Path) -> None:
    counts = np.array([3, 0, 0, 40, 1, 2, 0, 5, 0])
    lists = np.split(np.arange(counts.sum()), np.cumsum(counts)[:-1])
    path = write(tmp_path / "a.parquet", {"hits": pa.array(lists)}, 2)
    source = open_lists(path, "hits")
    for num_pieces in (1, 2, 5):
        assert len(source.pieces(num_pieces)) == num_pieces
        for one, wanted in ((source, np.arange(51)), (source.lengths(), counts)):
            found, blocks = read_blocks(one, num_pieces)
            assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
            np.testing.assert_array_equal(to_numpy(blocks[0]), wanted)


def test_what_reading_takes_follows_the_column_of_lists(tmp_path: Path) -> None:
    columns = {"id": np.arange(9), "hits": pa.array([[1.0] * 50] * 9), "x": np.arange(9)}
    for name in ("a.parquet", "a.feather"):
        source = open_lists(write(tmp_path / name, columns, 3), "hits")
        held, beside = source.parsing_bytes(source.pieces(1)[0], 1)
        assert held == 8 * (9 + 450)
        assert beside > held
        assert (source.estimated_entries(), source.lengths().estimated_entries()) == (450, 9)


def test_batches_of_other_writers_that_are_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lists = [[1], [2, 3], [], [4], [5, 6, 7]]
    longer = pa.record_batch({"hits": pa.array([[8, 9], *lists, [9]])})
    path = write(tmp_path / "a.feather", {"hits": pa.array(lists)}, 5)
    monkeypatch.setattr(
        ArrowTable, "batches", lambda self, piece: iter([longer.slice(1, 2), longer.slice(3, 3)])
    )
    assert mn.nested.load(path, "hits").tolist() == lists


def test_files_of_a_folder_are_one_below_the_other(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", {"hits": pa.array([[1], [], [2, 3]])}, 2)
    write(tmp_path / "b.feather", {"x": [1, 2], "hits": pa.array([[], [0.5]])}, 1)
    found = mn.nested.load(tmp_path, "hits")
    assert found.tolist() == [[1.0], [], [2.0, 3.0], [], [0.5]]
    assert found.dtype == np.float64
    assert mn.nested.load(tmp_path / "*.parquet", "hits").dtype == np.int64


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
@pytest.mark.parametrize("num_pieces", [1, 2, 5])
def test_lists_of_lists(tmp_path: Path, suffix: str, num_pieces: int) -> None:
    lists = [[[1, 2], []], [], [[3]], [[], [], []], [[4, 5, 6], [7]]]
    path = write(tmp_path / f"a{suffix}", {"x": range(5), "hits": pa.array(lists)}, 2)
    found = mn.nested.load(path, "hits")
    assert isinstance(found, mn.nested.DeepNestedArray)
    assert found.tolist() == lists
    source = open_lists(path)
    counts = [[2, 0, 1, 3, 2], [2, 0, 1, 0, 0, 0, 3, 1], [1, 2, 3, 4, 5, 6, 7]]
    for one, wanted in zip((source.lengths(0), source.lengths(1), source), counts, strict=True):
        facts, blocks = read_blocks(one, num_pieces)
        assert facts.shape == (len(wanted),)
        assert to_numpy(blocks[0]).tolist() == wanted
    held, _ = source.parsing_bytes(source.pieces(1)[0], 1)
    assert held >= 8 * sum(map(len, counts))
    three = write(tmp_path / f"b{suffix}", {"hits": pa.array([lists, [], lists[:1]])}, 1)
    assert mn.nested.load(three).tolist() == [lists, [], lists[:1]]


def test_files_of_other_levels_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", {"hits": pa.array([[1]])}, 2)
    write(tmp_path / "b.parquet", {"hits": pa.array([[[1]]])}, 2)
    with pytest.raises(FileFormatError, match=r"b\.parquet.* has 2 levels of lists where .*a\.parquet has 1"):
        mn.nested.load(tmp_path, "hits")


def test_the_only_column_of_lists_needs_no_name(tmp_path: Path) -> None:
    one = {"id": [1], "hits": pa.array([[1.5]])}
    assert mn.nested.load(write(tmp_path / "a.parquet", one, 1)).tolist() == [[1.5]]
    for columns, words in (
        ({**one, "x": pa.array([[1]])}, "columns 'hits', 'x' are of lists"),
        ({"id": [1]}, "no column is of lists of numbers; give column="),
    ):
        path = write(tmp_path / "b.feather", columns, 1)
        with pytest.raises(OptionError, match=words):
            mn.nested.load(path)


def test_half_floats_become_floats(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", {"hits": pa.array([[1.5]], pa.list_(pa.float16()))}, 1)
    assert mn.nested.load(path, "hits").dtype == np.float32


def test_tables_name_the_way_to_read_lists(tmp_path: Path) -> None:
    columns = {"id": [1], "tags": pa.array([["a"]]), "hits": pa.array([[1.5]])}
    path = write(tmp_path / "a.parquet", columns, 1)
    with pytest.raises(FileFormatError, match=r"'tags' is of .*mn\.nested\.load\(path, 'hits'\) reads lists"):
        mn.load(path)
    assert mn.load(path, columns=["id"])["id"].compute().tolist() == [1]


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (pa.array([["a"]]), "is of type list<.*string>, not of lists of numbers"),
        (pa.array([[["a"]]]), "not of lists of numbers"),
        (pa.array([[[1], None], [[2]]]), "column 'hits' has 1 missing lists: write empty"),
        (pa.array([[[1, None], []]]), "column 'hits' has 1 missing values in lists"),
        (pa.array([{"a": 1}]), "not of lists of numbers"),
        (pa.array([1]), "is of type int64, not of lists"),
        (pa.array([[1], None, [2], None]), "column 'hits' has 2 missing lists: write empty"),
        (pa.array([[1], [], [2, None]]), "column 'hits' has 1 missing values in lists"),
    ],
)
@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_other_columns_and_missing_values_are_refused(
    tmp_path: Path, suffix: str, column: pa.Array, words: str
) -> None:
    path = write(tmp_path / f"a{suffix}", {"hits": column}, 10)
    with pytest.raises(FileFormatError, match=words) as told:
        mn.nested.load(path, "hits")
    assert path.name in str(told.value)


def test_names_and_kinds_that_there_are_not(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", {"hits": pa.array([[1]])}, 1)
    refusals: list[tuple[Callable[[], object], type[Exception], str]] = [
        (lambda: mn.nested.load(path, "hit"), OptionError, "no column 'hit'; .*'hits'"),
        (lambda: mn.nested.load(path, "hits", kind="csv"), OptionError, "kind='csv'"),
        (lambda: mn.nested.load(tmp_path / "a.csv", "hits"), MissingFileError, "a.csv"),
        (lambda: mn.nested.load(tmp_path / "b.parquet", "hits"), MissingFileError, "b.parquet"),
        (lambda: mn.nested.load(path, "hits", kind="arrow"), FileFormatError, "is not an Arrow IPC"),
        (lambda: mn.nested.load(path, "hits", strategy="x"), OptionError, "strategy='x'"),
    ]
    for refused, error, words in refusals:
        with pytest.raises(error, match=words):
            refused()
    text = tmp_path / "a.csv"
    text.write_text("hits\n1\n")
    with pytest.raises(OptionError, match="lists are read from Parquet and Arrow files"):
        mn.nested.load(text, "hits")


def test_a_damaged_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", {"hits": pa.array([[1.0] * 50] * 50)}, 10)
    content = bytearray(path.read_bytes())
    content[40:400] = bytes(360)
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=r"a\.parquet"):
        mn.nested.load(path, "hits")
