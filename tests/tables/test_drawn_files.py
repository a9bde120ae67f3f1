"""Drawn CSV files: the same values, labels and errors for any cuts, and those of Python's csv module."""

from __future__ import annotations

import csv
import datetime
import io
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from matnb.blocks.formats import to_numpy
from matnb.blocks.grid import Grid
from matnb.errors import FileFormatError
from matnb.io import delimited, lines
from matnb.io.columns import ColumnSource
from matnb.io.durations import NO_TIME
from matnb.io.source import open_source
from matnb.io.texts import NO_VALUE
from matnb.ops.creation import read_blocks

# No control characters, and no line breaks inside a field, which are refused.
LETTERS = st.characters(exclude_categories=("Cs", "Cc"))
TEXTS = st.text(LETTERS, max_size=6)
MOMENTS = st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2200, 1, 1))
KINDS: dict[str, st.SearchStrategy[str]] = {
    "int": st.integers(-(2**63), 2**63 - 1).map(str),
    "float": st.floats(allow_nan=False, allow_infinity=False).map(repr),
    "bool": st.sampled_from(["true", "False"]),
    "text": TEXTS,
    "day": st.dates(datetime.date(1700, 1, 1)).map(str),
    "time": MOMENTS.map(str),
    "empty": st.just(""),
}


@st.composite
def files(draw: st.DrawFn) -> tuple[bytes, list[list[str]]]:
    """Return a file and its fields."""
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=4))
    cells = [st.one_of(KINDS[kind], st.sampled_from(["", "NA"])) for kind in kinds]
    rows = [list(row) for row in draw(st.lists(st.tuples(*cells), max_size=12))]
    quoting = draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow([f"c{place}" for place in range(len(kinds))])
    for row in rows:
        # A row of one empty field is not a blank line.
        how = csv.QUOTE_ALL if row == [""] else quoting
        end = draw(st.sampled_from(["\n", "\r\n"]))
        csv.writer(text, lineterminator=end, quoting=how).writerow(row)
    whole = text.getvalue().encode()
    return whole[:-1] if draw(st.booleans()) and whole.endswith(b"\n") and rows else whole, rows


def columns_of(path: Path, num_pieces: int, cuts: Sequence[int]) -> list[Any]:
    """Return what is read of each column in pieces and blocks: facts, labels, values and masks."""
    table = open_source(path, quoted_text=False)  # some files quote their numbers, too
    context = table.merge([table.summary(table.parse(piece)) for piece in table.pieces(num_pieces)])
    length = context.found.shape[0]
    grid = Grid((tuple(sorted({0, length, *(cut % (length + 1) for cut in cuts)})),)) if length else None
    found = []
    for place, facts in enumerate(context.found.columns):
        arrays = [
            np.concatenate(
                [
                    to_numpy(block)
                    for block in read_blocks(ColumnSource(table, place, mask), num_pieces, grid)[1]
                ]
            )
            for mask in (False, True)
        ]
        labels = None if facts.labels is None else facts.labels.to_pylist()
        found.append((facts, labels, *arrays))
    return found


def values_of(facts: Any, labels: list[str] | None, values: np.ndarray, mask: np.ndarray) -> list[object]:
    """Return the values of a column as Python's."""
    if labels is not None:
        return [None if code < 0 else labels[code] for code in values.tolist()]
    if facts.kind.unit:
        return [None if value == NO_TIME else value for value in values.tolist()]
    gone = np.isnan(values) if values.dtype.kind == "f" else mask
    return [None if is_gone else value for value, is_gone in zip(values.tolist(), gone, strict=True)]


def meant(text: str, word: str, unit: str) -> object:
    """Return the value that a field stands for."""
    if word == "text":
        return None if text in NO_VALUE else text
    text = text.strip()
    if text in NO_VALUE:
        return None
    if word == "bool":
        return text.lower() == "true"
    if word == "datetime":
        return int(np.datetime64(text, unit).astype(np.int64))
    return float(text) if word == "float" else int(text)


@pytest.fixture(autouse=True, scope="module")
def small() -> Any:
    """Read in pieces of a byte and chunks of a line."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "SMALLEST_PIECE", 1)
        patch.setattr(delimited, "CHUNK_BYTES", 16)
        yield


@settings(max_examples=40)
@given(files(), st.integers(2, 40), st.lists(st.integers(0, 99), max_size=3))
def test_values_are_those_of_the_fields_for_any_cuts(
    drawn: tuple[bytes, list[list[str]]], num_pieces: int, cuts: list[int]
) -> None:
    data, rows = drawn
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.csv")
        path.write_bytes(data)
        whole = columns_of(path, 1, [])
        cut = columns_of(path, num_pieces, cuts)
    for place, ((facts, labels, *arrays), (others, other_labels, *other_arrays)) in enumerate(
        zip(whole, cut, strict=True)
    ):
        assert (facts, labels) == (others, other_labels)
        for one, two in zip(arrays, other_arrays, strict=True):
            assert one.dtype == two.dtype
            assert one.tobytes() == two.tobytes()
        word = facts.kind.word if facts.kind.word != "number" else facts.kind.stored.name.rstrip("0123456789")
        expected = [meant(row[place], word, facts.kind.unit) for row in rows]
        assert values_of(facts, labels, *arrays) == expected
        if labels is not None:
            assert labels == sorted({one for one in expected if one is not None})


BROKEN = st.sampled_from(
    ['1,"a\n', '1,a"b"\n', "1\n", "1,2,3\n", "1,\x01\n", "1,a\r2,b\n", '"', "\udcff,1\n"]
)


@settings(max_examples=40)
@given(st.lists(BROKEN, min_size=1, max_size=3), st.integers(0, 9), st.integers(2, 40))
def test_the_first_error_is_told_for_any_cuts(broken: list[str], before: int, num_pieces: int) -> None:
    good = "7,x\n" * before
    text = "n,t\n" + good + good.join(broken) + good
    assume(before or text.count('"') % 2)  # else a quote may end a value that has a line break
    told = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.csv")
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        for count in (1, num_pieces):
            table = open_source(path)
            with pytest.raises(FileFormatError) as error:
                table.merge([table.summary(table.parse(piece)) for piece in table.pieces(count)])
            told.append((error.value.line, error.value.reason))
    assert told[0] == told[1]
    assert told[0][0] == before + 2


@given(st.lists(st.one_of(st.none(), TEXTS), max_size=20), st.integers(1, 9))
def test_text_of_arrow_has_the_same_labels_for_any_chunks(texts: list[str | None], size: int) -> None:
    from matnb.io.columns import by_code_point, places_among, values_of

    chunks = [texts[start : start + size] for start in range(0, len(texts), size)]
    made = [values_of(pa.array(chunk, pa.string())) for chunk in chunks]
    labels = by_code_point([one.labels for one in made]).to_pylist()
    assert labels == sorted({text for text in texts if text is not None})
    codes = [places_among(one.labels, pa.array(labels, pa.string()))[one.values].tolist() for one in made]
    assert [None if code < 0 else labels[code] for part in codes for code in part] == texts
