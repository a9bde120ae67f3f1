"""CSV: quoted is text wherever pieces are cut, options mean what they mean in pandas, numbers are exact."""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reading import read_table

from matnb.blocks.formats import to_numpy
from matnb.errors import FileContentWarning, FileFormatError, OptionError
from matnb.io import delimited, lines
from matnb.io.columns import ColumnSource
from matnb.io.source import open_source
from matnb.ops.creation import read_blocks
from matnb.sources import files, from_files

SMALL = settings(max_examples=15)
NASTY = st.sampled_from(
    ["02134", "NA", "None", "true", "", "1", "-0", "1e5", "2020-01-01", "nan", " 7 ", "#"]
)
# What drawn texts may mean beside what they are is the matter of test_odd_csv_files.py.
pytestmark = pytest.mark.filterwarnings("ignore:.* read as text, with:matnb.errors.FileContentWarning")
TEXTS = st.one_of(NASTY, st.text('ab,;"\n\r\té1 #', max_size=6))


@pytest.fixture(autouse=True, scope="module")
def small() -> Iterator[None]:
    """Read in pieces of a byte and chunks of a few."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "SMALLEST_PIECE", 1)
        patch.setattr(delimited, "CHUNK_BYTES", 16)
        yield


def read(data: bytes | str, num_pieces: int = 1, **options: Any) -> dict[str, list[Any]]:
    """Return the values of each column of a file, None where they are missing."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.csv")
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return read_table(open_source(path, **options), num_pieces)


def quoted(texts: list[str | None]) -> list[str]:
    return ["" if one is None else '"' + one.replace('"', '""') + '"' for one in texts]


@SMALL
@given(
    st.lists(
        st.tuples(st.one_of(st.none(), TEXTS), st.integers(-9, 9), st.one_of(st.none(), TEXTS)), max_size=9
    ),
    st.sampled_from(["\n", "\r\n"]),
    st.integers(1, 30),
)
@example([("\n", 1, "\n"), ("\n", 2, "\n"), ("\n", 3, "\n")], "\n", 7)  # where quotes alone do not tell
@example([(",", 1, ","), (",\n", 2, "\n,"), ('"', 3, '",\n"')], "\n", 9)
def test_quoted_is_text_for_any_cuts(rows: list[tuple[Any, int, Any]], end: str, num_pieces: int) -> None:
    one, other = quoted([row[0] for row in rows]), quoted([row[2] for row in rows])
    body = [f"{a},{row[1]},{b}{end}" for a, row, b in zip(one, rows, other, strict=True)]
    found = read("".join([f'"a",n,"b\n c"{end}', *body]), num_pieces)
    none = {"a": [row[0] for row in rows], "n": [row[1] for row in rows], "b\n c": [row[2] for row in rows]}
    assert found == none


@SMALL
@given(st.lists(st.text('ab,"\n', max_size=4), min_size=1, max_size=12), st.integers(2, 40))
def test_what_the_csv_module_writes_over_lines(texts: list[str], num_pieces: int) -> None:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(
        [["x", "t"], *([str(n), f"-{text}"] for n, text in enumerate(texts))]
    )
    found = read(stream.getvalue(), num_pieces)
    assert found == {"x": list(range(len(texts))), "t": [f"-{text}" for text in texts]}


BROKEN = st.sampled_from(['1,"a\n', '1,a"b"\n', '"', '1,"a"b\n', '1,"\n', '1,""a\n', '"1","2"3,4"\n'])


@SMALL
@given(st.lists(BROKEN, min_size=1, max_size=3), st.integers(0, 6), st.integers(2, 60))
@example(['1,"a\n', '1,"\n', '1,"a\n'], 0, 2)
@example(['1,"a\n', '1,"\n', '1,"\n'], 0, 2)
def test_broken_quotes_are_told_at_one_line_for_any_cuts(
    broken: list[str], before: int, num_pieces: int
) -> None:
    good = '7,"x\ny"\n' * before
    text = "n,t\n" + good + good.join(broken) + good
    told = []
    for count in (1, num_pieces):
        try:
            read(text, count)
        except FileFormatError as error:
            told.append((error.line, error.reason))
        else:
            told.append((None, ""))  # of quotes that pair by chance
    assert told[0] == told[1]
    line = told[0][0]
    if len(broken) == 1:
        assert line == 2 * before + 2
    # Quotes may pair by chance with those of a later row: what comes before the line is whole rows.
    rows = text.splitlines(keepends=True)[: None if line is None else line - 1]
    assert all(len(row) == 2 for row in csv.reader(io.StringIO("".join(rows)), strict=True))


@pytest.mark.usefixtures("interpreter")
@pytest.mark.parametrize("last", ['1,"\n', '1,"', '"'])
def test_a_quote_that_is_open_at_the_end_loses_no_row_of_a_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: str
) -> None:
    monkeypatch.setattr(from_files, "SLAB_BYTES", 40)
    (tmp_path / "a.csv").write_text("a,b\n" + "1,2\n" * 60 + last)
    with pytest.raises(FileFormatError, match="line 62: a quoted field that is not closed"):
        list(files(tmp_path / "a.csv", batch_size=10))


@pytest.mark.parametrize("last", ['1,"\n', '1,"', '",1\n', '"', '1,"\n\n', '1,"\r\n', '"\n2,b\n2,c\n'])
@pytest.mark.parametrize("before", ["", '7,"x\ny"\n', "7,x\n" * 9])
def test_a_quote_that_is_open_at_the_end_loses_no_row(last: str, before: str) -> None:
    text = f"n,t\n{before}{last}"
    for num_pieces in (1, 2, 3, 5, len(text)):
        with pytest.raises(FileFormatError, match="a quoted field that is not closed") as caught:
            read(text, num_pieces)
        assert caught.value.line == 2 + before.count("\n")


@pytest.mark.parametrize("quoted_number", ['"5"', '"05"', '"NA"', '"true"'])
def test_a_quoted_value_beyond_the_sample_is_told(tmp_path: Path, quoted_number: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text("n,m\n" + "1,2\n" * 60_000 + f"{quoted_number},2\n" + "1,2\n" * 60_000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delimited, "CHUNK_BYTES", 1 << 20)
        source = open_source(path)
        with pytest.raises(FileFormatError, match=r"line 60002: .*dtype=\{'n': \"text\"\}"):
            source.merge([source.summary(source.parse(piece)) for piece in source.pieces(3)])


WORDS = ["NA", "nan", "", "-", "null", "-999", "-999.0", "7", "x", "<NA>", "1.#IND", "NULL", "None", "N/A"]


@SMALL
@given(
    st.lists(
        st.tuples(st.sampled_from(WORDS), st.sampled_from(["1", "2.5", "-999", "-999.0", "", "NA", "-"])),
        min_size=1,
        max_size=8,
    ),
    st.sampled_from(
        [(), "-", ["-"], [-999], ["-999"], ["-", "7"], {"a": ["x", "-"]}, {"b": [-999, "-"], "a": "NA"}]
    ),
    st.booleans(),
)
def test_missing_texts_are_those_of_pandas(rows: list[tuple[str, str]], na_values: Any, keep: bool) -> None:
    text = "n,a,b\n" + "".join(f"1,{a},{b}\n" for a, b in rows)
    options: dict[str, Any] = {"na_values": na_values, "keep_default_na": keep}
    found = read(text, 2, **options)
    frame = pd.read_csv(io.StringIO(text), **{**options, "na_values": None if na_values == () else na_values})
    for name in ("a", "b"):
        expected = [None if pd.isna(one) else one for one in frame[name].tolist()]
        if all(one is None or isinstance(one, str) for one in found[name]) and any(found[name]):
            assert [None if one is None else str(one) for one in found[name]] == [
                one if one is None or isinstance(one, str) else text_of(one, found[name]) for one in expected
            ]
        else:
            assert found[name] == expected


def text_of(number: float, texts: list[Any]) -> str:
    """Return the text that pandas made a number of, where a column is text here."""
    return next(text for text in texts if text is not None and text.strip() and float(text) == number)


def test_na_values_are_checked(tmp_path: Path) -> None:
    for wrong in ({"nothing": ["-"]}, [None], [["-"]]):
        with pytest.raises(OptionError, match="na_values"):
            read("a\n1\n", na_values=wrong)
    assert read('a\n"NA"\n"-"\n"x"\n', na_values=["-"]) == {"a": ["NA", None, "x"]}


@SMALL
@given(
    st.lists(
        st.one_of(
            st.integers(-(2**63), 2**65),
            st.integers(2**53, 2**54),
            st.sampled_from([2**63, 10**20 - 1, 2**70]),
        ),
        min_size=1,
        max_size=6,
    ),
    st.booleans(),
    st.integers(1, 9),
)
@pytest.mark.filterwarnings("ignore::matnb.errors.FileContentWarning")
def test_whole_numbers_stay_whole_or_text(numbers: list[int], with_blank: bool, num_pieces: int) -> None:
    text = "n,x\n" + "".join(f"{number},1\n" for number in numbers) + ",1\n" * with_blank
    found = read(text, num_pieces)["n"]
    assert found[: len(numbers)] in (numbers, [str(number) for number in numbers])
    assert found[len(numbers) :] == [None] * with_blank
    if all(-(2**63) <= one < 2**63 for one in numbers) or all(0 <= one < 2**64 for one in numbers):
        assert all(isinstance(one, int) for one in found[: len(numbers)])


@pytest.mark.parametrize(
    "numbers", [["99999999999999999999", "1"], ["-1", "11898508762506083287"], ["0.5", "9007199254740993"]]
)
def test_whole_numbers_that_no_type_holds_are_text_with_a_word(numbers: list[str]) -> None:
    with pytest.warns(FileContentWarning, match=r"'id' read as text, .*dtype=\{'id': \"float64\"\}"):
        assert read("id\n" + "\n".join(numbers) + "\n") == {"id": numbers}
    assert read("id\n" + "\n".join(numbers) + "\n", dtype=float) == {"id": [float(one) for one in numbers]}


@pytest.mark.parametrize(
    ("sampled", "later", "expected"),
    [
        ("1", "11898508762506083287", 11898508762506083287),
        ("1", "99999999999999999999", None),
        ("-1", "11898508762506083287", None),
        ("9007199254740993", "0.5", None),
        ("0.5", "9007199254740993", None),
        ("0.5", "18014398509481984", 2.0**54),
        ("18014398509481984", "0.5", 0.5),
        ("-9223372036854775808", "0.5", 0.5),
        ("9223372036854775808", "0.5", 0.5),
        ("18446744073709549568", "-1", -1.0),
    ],
)
def test_whole_numbers_beyond_the_sample(
    tmp_path: Path, sampled: str, later: str, expected: float | None
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,m\n" + f"{sampled},2\n" * 80_000 + f"{later},2\n" + f"{sampled},2\n" * 80_000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delimited, "CHUNK_BYTES", 1 << 16)
        for num_pieces in (1, 4):
            column = ColumnSource(open_source(path), 0)
            if expected is None:
                with pytest.raises(FileFormatError, match=r"whole number.*dtype=\{'id': \"text\"\}"):
                    read_blocks(column, num_pieces)
                continue
            values = np.concatenate([to_numpy(one) for one in read_blocks(column, num_pieces)[1]])
            assert values[80_000].item() == expected
            assert values[0].item() == float(sampled)


@SMALL
@given(
    st.lists(
        st.tuples(st.floats(-1e9, 1e9).map(lambda one: round(one, 3)), st.integers(-(10**9), 10**9)),
        min_size=1,
        max_size=6,
    ),
    st.sampled_from([(".", None), (",", None), (",", "."), (".", ","), (".", "'"), (",", " ")]),
    st.sampled_from([",", ";", "\t"]),
    st.integers(1, 9),
)
def test_numbers_with_other_marks(
    rows: list[tuple[float, int]], marks: tuple[str, str | None], delimiter: str, num_pieces: int
) -> None:
    decimal, thousands = marks

    def written(number: float) -> str:
        text = f"{number:,.3f}" if isinstance(number, float) else f"{number:,}"
        return text.translate(str.maketrans({",": thousands or "", ".": decimal}))

    stream = io.StringIO()
    writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
    writer.writerows([["x", "n", "t"], *([written(x), written(n), f"{x:.1f}a"] for x, n in rows)])
    options = {"decimal": decimal, "thousands": thousands}
    found = read(stream.getvalue(), num_pieces, delimiter=delimiter, **options)
    frame = pd.read_csv(io.StringIO(stream.getvalue()), sep=delimiter, **options)  # type: ignore[call-overload]
    assert found == {"x": [x for x, _ in rows], "n": [n for _, n in rows], "t": frame["t"].tolist()}
    assert found["n"] == frame["n"].tolist()


@pytest.mark.parametrize("text", ["1,5", "1,23", "12,3456", ",5", "1,,234"])
def test_marks_of_thousands_stand_before_three_digits(text: str) -> None:
    assert read(f"x;y\n{text};1\n", thousands=",", delimiter=";")["x"] == [text]


LETTERS = {"cp1252": "é€ß", "latin-1": "éßÿ", "cp1251": "жЯ", "utf-16": "é東€", "utf-16-le": "é東",
           "utf-8-sig": "é東", "shift_jis": "東表", "gbk": "東é", "utf-32": "é𝄞"}  # fmt: skip


@SMALL
@given(
    st.sampled_from(sorted(LETTERS)),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5)), max_size=8),
    st.integers(1, 20),
)
def test_other_encodings(encoding: str, rows: list[tuple[int, int]], num_pieces: int) -> None:
    letters = LETTERS[encoding]
    texts = [f'{letters[place % len(letters)]} "\n{place}' for _, place in rows]
    body = "".join(f"{n},{one}\n" for (n, _), one in zip(rows, quoted(list(texts)), strict=True))
    found = read(f"n,{letters}\n{body}".encode(encoding), num_pieces, encoding=encoding)
    assert found[letters] == (texts or [])
    assert found["n"] == [n for n, _ in rows]


def test_bytes_that_an_encoding_lacks_name_the_line() -> None:
    for encoding, data in (
        ("cp1252", b"a\n1\n\x81\n"),
        ("ascii", "a\n1\né\n".encode("latin-1")),
        ("utf-16", "a\n1\n".encode("utf-16") + b"x"),
    ):
        with pytest.raises(FileFormatError, match=r"line [23]: "):
            read(data, encoding=encoding)
    with pytest.raises(FileFormatError, match=r"line 1: is not utf-(16|32) text: .* BOM"):
        read(b"a,b\n1,\xe9\n", encoding="utf-16")
    with pytest.raises(OptionError, match="encoding='nothing'"):
        read(b"a\n", encoding="nothing")
    assert read("a\n1\n".encode("utf-16")) == read("a\n1\n".encode("utf-32")) == {"a": [1]}  # marks tell
    with pytest.raises(FileFormatError, match=r'is UTF-16 text without a mark: encoding="utf-16-le"'):
        read("a\n1\n".encode("utf-16-le"))
    with pytest.raises(FileFormatError, match=r'not UTF-8 text: .*encoding="cp1252"'):
        read("a\nxé\n".encode("cp1252"))


@SMALL
@example(["# it's \"open", "# d", "# it's \"open", '2,"a\n#b" # x"', "# it's \"open"], 5)
@example(['4,"x"', "# d", "3,b#c", "# d", "5,y", '2,"a\n#b" # x"'], 30)
@given(
    st.lists(
        st.one_of(
            st.sampled_from(["# it's \"open", "", '1,"#"', '2,"a\n#b" # x"', "3,b#c", "# d", '4,"x"']),
            st.just("5,y"),
        ),
        max_size=9,
    ),
    st.integers(1, 30),
)
def test_comments_are_those_of_pandas(rows: list[str], num_pieces: int) -> None:
    text = '# "first\nn,t # names\n0,z\n' + "\n".join(rows) + "\n"
    found = read(text, num_pieces, comment="#")
    frame = pd.read_csv(io.StringIO(text), comment="#")
    # pandas takes the space between a quoted field and a comment for a part of the field
    assert found["n"] == frame["n.1" if "n.1" in frame else "n"].tolist()
    assert [one.strip() for one in found["t"]] == [one.strip() for one in frame[frame.columns[1]]]


@SMALL
@given(
    st.sampled_from([";", "\t", "|", ","]),
    st.lists(st.tuples(st.integers(0, 9), TEXTS), max_size=6),
    st.integers(1, 20),
)
def test_the_delimiter_is_found(delimiter: str, rows: list[tuple[int, str]], num_pieces: int) -> None:
    body = "".join(
        f"{n}{delimiter}{one}\n" for (n, _), one in zip(rows, quoted([text for _, text in rows]), strict=True)
    )
    found = read(f"n{delimiter}t\n{body}", num_pieces)
    assert found["n"] == [n for n, _ in rows]
    assert rows == [] or found["t"] == [text for _, text in rows]


def test_a_delimiter_that_was_given_or_is_none() -> None:
    assert list(read("a;b\n1;2\n", delimiter=",")) == ["a;b"]
    assert read("a;b\n1\n2\n") == {"a;b": [1, 2]}
    assert read("title\nx; y\nz | w\n") == {"title": ["x; y", "z | w"]}
    assert read("a, b;c\nx;3\n") == {"a, b": ["x"], "c": [3]}
    assert read("p;q\n1;2,5\n3;4,5\n", decimal=",") == {"p": [1, 3], "q": [2.5, 4.5]}


@pytest.mark.parametrize("text", ["1,x\n2,y\n", '"1","x"\n"2","y"\n', "1.5,2020-01-01\n2,2020-01-02\n"])
@pytest.mark.parametrize("header", ["infer", None, 0, True, False])
def test_names_mean_what_they_mean_in_pandas(text: str, header: Any) -> None:
    found = read(text, 2, names=["p", "q"], header=header)
    in_pandas = {True: 0, False: None}.get(header, header) if isinstance(header, bool) else header
    frame = pd.read_csv(io.StringIO(text), names=["p", "q"], header=in_pandas)
    assert len(found["p"]) == len(frame)
    assert [str(one) for one in found["q"]] == [str(one) for one in frame["q"]]


def test_names_for_a_file_that_has_a_header_are_told() -> None:
    text = "a,b\n" + "1,2\n" * 30
    with pytest.raises(FileFormatError, match=r"line 1: 'a' in column 'p' is not a number.*header=0"):
        read(text, 2, names=["p", "q"])
    assert read(text, names=["p", "q"], header=0)["p"] == [1] * 30
    assert read("\ufeff1,2\n", names=["p", "q"]) == {"p": [1], "q": [2]}
