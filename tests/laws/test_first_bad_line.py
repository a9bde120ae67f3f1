"""An error of a file names its first bad line, whatever is read first; times taken as weights are told."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matnb as mn
from matnb.errors import FileContentWarning, FileFormatError
from matnb.io import delimited, lines
from matnb.io.columns import RowSpan
from matnb.io.source import facts_of_piece, merge_facts, open_source, parse_piece

GOOD = {
    "a.txt": "1 2\n",
    "w.txt": "1 2 0.5\n",
    "a.mtx": "1 1 333333333\n",
    "a.svm": "1 3:0.5 4:2\n",
    "a.ldac": "1 3:5\n",
}
BAD = {
    "a.txt": ["x 2\n", "1 2 3\n", "1\n", "1 -2\n", "http://a/b 2\n", "99999999999999999999 1\n"],
    "w.txt": ["1 2 x\n", "1 2\n", "-1 2 3\n", "1 2 3 4\n"],
    "a.mtx": ["1 9 3\n", "1 1\n", "1 1 x\n", "0 1 1\n"],
    "a.svm": ["1 4:1 3:2\n", "x 1:1\n", "1 3:\n", "1 2:x\n"],
    "a.ldac": ["2 3:5\n", "1 3:-5\n", "1 x:5\n"],
}


@pytest.fixture(autouse=True, scope="module")
def small() -> Iterator[None]:
    """Read in pieces of a byte."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "SMALLEST_PIECE", 1)
        yield


def error_of(
    path: Path, num_pieces: int, order: Callable[[list[int]], None], **options: object
) -> FileFormatError:
    """Return the error that the tasks of reading end with, done in some order."""
    source = open_source(path, **options)
    pieces = source.pieces(num_pieces)
    numbers = list(range(len(pieces)))
    order(numbers)
    parsed = {number: parse_piece((), source, pieces[number]) for number in numbers}
    facts = [facts_of_piece((parsed[number],), source) for number in range(len(pieces))]
    with pytest.raises(FileFormatError) as told:
        merge_facts(facts, source)
    return told.value


@settings(max_examples=40)
@given(
    drawn=st.sampled_from(sorted(GOOD)).flatmap(
        lambda name: st.tuples(st.just(name), st.lists(st.sampled_from(BAD[name]), min_size=1, max_size=3))
    ),
    before=st.integers(1, 9),
    num_pieces=st.integers(1, 30),
    chunk_bytes=st.sampled_from([1 << 18, 16]),
    chance=st.randoms(),
)
def test_the_first_bad_line_is_named(
    drawn: tuple[str, list[str]],
    before: int,
    num_pieces: int,
    chunk_bytes: int,
    chance: random.Random,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    name, bad = drawn
    good = GOOD[name] * before
    body = good + good.join(bad) + good
    head = f"%%MatrixMarket matrix coordinate integer general\n5 5 {body.count(chr(10))}\n" * name.endswith(
        "mtx"
    )
    path = tmp_path_factory.mktemp("bad") / name
    path.write_text(head + body)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "CHUNK_BYTES", chunk_bytes)
        errors = [error_of(path, num_pieces, chance.shuffle), error_of(path, 1, chance.shuffle)]
    assert [one.line for one in errors] == [head.count("\n") + before + 1] * 2
    assert errors[0].reason == errors[1].reason


def test_web_addresses_as_ids_name_a_way_and_one_line_each_time(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("".join(f"http://a/{number} http://b/{number}\n" for number in range(60_000)))
    with mn.start(workers=2, threads=1):
        for _ in range(3):
            with pytest.raises(
                FileFormatError, match=r"line 1: 'http://a/0' is not a whole number.*read_edgelist"
            ):
                mn.load(path)


SECONDS = st.lists(st.integers(10**9, 2 * 10**9 - 1), min_size=1, max_size=9)


@pytest.fixture
def one_worker() -> Iterator[None]:
    """A small session."""
    mn.start(workers=1, threads=1)
    yield
    mn.stop()


@settings(max_examples=10)
@given(times=SECONDS, unit=st.sampled_from([1, 1000, 10**6]), directed=st.booleans())
def test_times_are_told_and_weights_are_not(
    times: list[int], unit: int, directed: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("edges") / "a.txt"

    def seeming(column: list[object], **options: object) -> tuple[int, ...]:
        path.write_text("".join(f"{place} {place + 1} {one}\n" for place, one in enumerate(column)))
        source = open_source(path, directed=directed, **options)
        facts = [source.summary(source.parse(piece)) for piece in source.pieces(3)]
        return source.merge(facts).found.edges.times

    units = [time * unit for time in times]
    assert seeming(units) == (min(units), max(units))
    assert seeming([*units, 0.5]) == seeming([*units, 3]) == seeming([time + 0.5 for time in times]) == ()
    assert seeming(units, weights=True) == seeming(units, weights=False) == ()


def test_times_are_told_where_the_file_is_loaded(tmp_path: Path, one_worker: None) -> None:
    path = tmp_path / "a.txt"
    path.write_text("1 2 1082040961\n2 3 1098777142\n3 1 1090000000\n")
    with pytest.warns(
        FileContentWarning, match=r"1082040961 to 1098777142, seems to be times.*weights=False"
    ):
        weighted = mn.load(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert float(mn.load(path, weights=True).sum()) == float(weighted.sum())
        assert float(mn.load(path, weights=False).sum()) == 3
    path.write_text("1 2 120500\n2 3 1000000000\n3 1 7\n")
    assert float(np.max(mn.load(path))) == 10**9


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "utf-8", "cp1250", "koi8-r"])
@pytest.mark.parametrize(
    ("bad", "line", "words"),
    [
        ("3\n", 3, "1 fields"),
        ("x,y,z\n", 3, "3 fields"),
        ('ok,"t"\n', 3, "'t' in column 'n' is not"),
        ('ok,7\nx,"2\n', 4, "quote"),
    ],
)
def test_letters_of_an_encoding_before_the_first_bad_line(
    encoding: str, bad: str, line: int, words: str, tmp_path: Path
) -> None:
    letter = "я" if encoding == "koi8-r" else "Á"
    rows = "".join(f"row,{number}\n" for number in range(20))
    (tmp_path / "a.csv").write_bytes(f"name,n\n{letter}a,1\n{bad}{rows}".encode(encoding))
    for num_pieces in (1, 3):
        error = error_of(tmp_path / "a.csv", num_pieces, lambda numbers: None, encoding=encoding)
        assert error.line == line
        assert words in str(error)


def test_looking_for_the_first_error_keeps_no_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "CHUNK_BYTES", 1000)
    rows = "".join(f"{number},text\n" for number in range(5000))
    (tmp_path / "a.csv").write_text(f"n,t\n{rows}x,y,z\n{rows}")
    source = open_source(tmp_path / "a.csv").within(20_000)
    error = source.error_after(RowSpan(0, 4, True, None))  # type: ignore[attr-defined]  # of a table of text
    assert error.line == 5002
