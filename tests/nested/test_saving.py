"""Nested arrays written as a column of lists, piece by piece, as pyarrow and matnb read it again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from drawn_segments import Segments, drawn_segments
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import feather, parquet

import matnb as mn
from matnb.errors import (
    DTypeError,
    LoopBodyError,
    MissingFileError,
    OptionError,
    TooLargeError,
    UnsupportedError,
)
from matnb.nested import files, lists

SUFFIXES = (".parquet", ".arrow", ".feather")

pytestmark = pytest.mark.session("two threads")


def read(path: Path) -> pa.ChunkedArray:
    table = parquet.read_table(path) if path.suffix == ".parquet" else feather.read_table(path)
    return table["values"]


def ragged() -> mn.nested.NestedArray:
    values = mn.asarray(np.arange(1000.0), blocks=7)
    return mn.nested.unflatten(values, [3, 0, 0, 500, 1, 0, 490, 6, 0])


@given(drawn_segments(), st.sampled_from(SUFFIXES), st.integers(1, 99), st.integers(1, 30))
@settings(max_examples=25)
def test_what_is_saved_is_loaded(
    tmp_path_factory: pytest.TempPathFactory, drawn: Segments, suffix: str, values: int, rows: int
) -> None:
    path = tmp_path_factory.getbasetemp() / f"saved{suffix}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "_VALUES", values)
        patch.setattr(files, "_ROWS", rows)
        mn.save(drawn.nested(), path)
    wanted = [one.tolist() for one in drawn.parts]
    np.testing.assert_equal(read(path).to_pylist(), wanted)  # in which NaN are equal
    found = mn.nested.load(path)
    assert found.dtype == drawn.values.dtype
    assert found.counts.compute().tolist() == drawn.counts.tolist()
    np.testing.assert_array_equal(found.values.compute(), drawn.values)


@pytest.mark.parametrize("rows", [1, 2, 100])
@pytest.mark.parametrize("suffix", SUFFIXES[:2])
def test_deeper_arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, rows: int) -> None:
    monkeypatch.setattr(files, "_VALUES", 64)
    monkeypatch.setattr(files, "_ROWS", rows)
    two = mn.nested.unflatten(ragged(), [2, 0, 4, 3])
    three = mn.nested.unflatten(two, [0, 3, 1])
    for one in (two, three, two[:0], two[1:2]):
        mn.save(one, tmp_path / f"a{suffix}")
        assert read(tmp_path / f"a{suffix}").to_pylist() == one.tolist()
        found = mn.nested.load(tmp_path / f"a{suffix}")
        assert (found.depth, found.tolist()) == (one.depth, one.tolist())


@pytest.mark.parametrize("dtype", ["bool", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"])
def test_each_dtype_is_kept(tmp_path: Path, dtype: str) -> None:
    limits = (
        [0, 1]
        if dtype == "bool"
        else ([np.iinfo(dtype).min, np.iinfo(dtype).max] if dtype[0] in "iu" else [np.nan, -np.inf])
    )
    values = np.array([*limits, 1], dtype)
    for suffix in SUFFIXES:
        mn.save(mn.nested.unflatten(values, [1, 0, 2]), tmp_path / f"a{suffix}")
        found = mn.nested.load(tmp_path / f"a{suffix}")
        assert found.dtype == dtype
        np.testing.assert_array_equal(found.values.compute(), values)


def test_each_block_comes_once_and_pieces_are_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = np.full(2000, 5)
    nested = mn.nested.unflatten(mn.asarray(np.arange(10_000.0), blocks=8), mn.asarray(counts, blocks=4))
    blocks, sizes = [], []
    real, written = files.current_session().blocks, files.write_lists

    def counted(node: Any) -> Any:
        layout, bring = real(node)
        return layout, lambda number: (blocks.append((node.shape, number)), bring(number))[1]

    def noted(path: Any, chunks: Iterable[Any], longest: int) -> None:
        assert longest == 5
        written(
            path, ((sizes.append(values.size), (values, levels))[1] for values, levels in chunks), longest
        )

    monkeypatch.setattr(type(files.current_session()), "blocks", lambda self, node: counted(node))
    monkeypatch.setattr(files, "write_lists", noted)
    monkeypatch.setattr(files, "_VALUES", 1003)
    monkeypatch.setattr(files, "_ROWS", 500)
    mn.save(nested, tmp_path / "a.parquet")
    assert len(blocks) == len(set(blocks)) > 8
    assert (max(sizes), sum(sizes)) == (1000, 10_000)
    assert parquet.ParquetFile(tmp_path / "a.parquet").num_row_groups == len(sizes) > 10


@pytest.mark.parametrize("levels", [1, 2])
def test_a_long_list_has_no_dictionary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, levels: int) -> None:
    # Parquet would fill it to the end of the list, for seconds, and could not be interrupted.
    monkeypatch.setattr(lists, "_LONG", 100)
    for count, has_dictionary in ((100, True), (101, False)):
        nested: Any = mn.nested.unflatten(np.arange(count + 3), [count, 3])
        if levels == 2:
            short = mn.nested.unflatten(np.arange(count + 3), [count - 10, 10, 3])
            nested = mn.nested.unflatten(short, [2, 1])
        mn.save(nested, tmp_path / "a.parquet")
        written = parquet.read_metadata(tmp_path / "a.parquet").row_group(0).column(0)
        assert written.has_dictionary_page == has_dictionary
        assert mn.nested.load(tmp_path / "a.parquet").tolist() == nested.tolist()


def test_a_url_is_written_to(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    mn.save(ragged(), "memory://nested/a.parquet")
    assert mn.nested.load("memory://nested/a.parquet").tolist() == ragged().tolist()


@pytest.mark.parametrize(
    ("save", "error", "words"),
    [
        (
            lambda N: mn.save(N, "a.npz"),
            OptionError,
            r"not with suffix '\.npz'; .*parquet.*N\.offsets can be",
        ),
        (lambda N: mn.save(N, "a.csv"), OptionError, r"column of lists, not with suffix '\.csv'"),
        (lambda N: mn.save(N * 1j, "a.parquet"), DTypeError, r"complex128: save np\.real\(N\)"),
        (lambda N: mn.save(N, "none/a.parquet"), MissingFileError, "there is no folder"),
        (
            lambda N: mn.save(mn.nested.from_rows(sp.eye_array(3, format="csr")), "a.parquet"),
            UnsupportedError,
            r"have positions.* save the sparse matrix .*from_offsets",
        ),
        (
            lambda N: mn.iterate(
                lambda x: (mn.save(N.with_values(x), "a.arrow"), x)[1], N.values, max_iterations=1
            ),
            LoopBodyError,
            "inside the body of a loop",
        ),
    ],
)
def test_what_lists_do_not_hold_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    save: Callable[[Any], object],
    error: type[Exception],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=words):
        save(ragged())
    assert not list(tmp_path.iterdir())


def test_a_segment_above_the_limit_is_refused(tmp_path: Path) -> None:
    with mn.start(workers=1, threads=1, compute_limit=3999):
        for one in (ragged(), mn.nested.unflatten(ragged(), [4, 5])):
            with pytest.raises(
                TooLargeError, match=r"the longest segment has 50\d values, 4(\.\d+)? kB, over the limit"
            ):
                mn.save(one, tmp_path / "a.parquet")
    assert not list(tmp_path.iterdir())
