"""CSV against Python's csv module, and what is done about missing values, text and quotes."""

from __future__ import annotations

import csv
import gzip
import io
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import read_whole

from matnb.errors import FileFormatError, OptionError
from matnb.io.source import open_source
from matnb.ops.creation import read_here

pytestmark = pytest.mark.usefixtures("small_chunks")
NUMBERS = st.one_of(st.just(math.nan), st.floats(allow_nan=False), st.integers(-99, 99).map(float))
TEXTS = st.text('ab,"é ', max_size=5)


@given(
    st.lists(st.tuples(NUMBERS, TEXTS, NUMBERS), max_size=12),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.sampled_from([",", ";", "\t"]),
)
def test_what_the_csv_module_writes(tmp_path_factory, rows, newline: str, quoting: int, delimiter: str):
    stream = io.StringIO()
    writer = csv.writer(stream, quoting=quoting, lineterminator=newline, delimiter=delimiter)
    writer.writerow(["x", "a, b", "y"])
    writer.writerows([["" if math.isnan(x) else repr(x), text, repr(y)] for x, text, y in rows])
    path = tmp_path_factory.mktemp("table") / "a.csv"
    path.write_bytes(stream.getvalue().encode())
    source = open_source(path, columns=["y", "x"], delimiter=delimiter, quoted_text=False)
    for pieces, counts in ((1, 1), (4, 2)):
        found, matrix = read_whole(source, pieces, counts)
        assert found.names == ("y", "x")
        assert np.array_equal(matrix, np.array([[y, x] for x, _, y in rows]).reshape(-1, 2), equal_nan=True)


def test_missing_values_spaces_and_blank_lines(write_file):
    text = '\ufeff a ,b\r\n 1 ,2\r\n\r\n"", 3e1\r\nnan,\t-4\r\n'
    for path in (write_file("a.csv", text), write_file("a.csv.gz", gzip.compress(text.encode()))):
        found, matrix = read_whole(open_source(path), 3)
        assert found.names == ("a", "b")
        assert np.array_equal(matrix, [[1, 2], [np.nan, 30], [np.nan, -4]], equal_nan=True)


def test_text_in_a_column_of_numbers_names_its_line_and_column(write_file):
    path = write_file("a.csv", "n,flag\n" + "1,2\n" * 30 + '3,"yes"\n')
    with pytest.raises(FileFormatError, match=r"line 32: 'yes' in column 'flag' is not a number; .*dtype="):
        read_here(open_source(path), 3)
    assert read_whole(open_source(path, columns=["n"]), 3)[1][-1].tolist() == [3]


def test_one_column_and_no_row(write_file):
    assert read_whole(open_source(write_file("a.csv", "n\n1\n\n2")), 3)[1].tolist() == [[1], [2]]
    for text in ("n,m", "n,m\n"):
        found, block = read_here(open_source(write_file("a.csv", text)), 3)
        assert found.shape == block.shape == (0, 2)


def test_columns_of_one_name_are_refused_unless_others_are_picked(write_file):
    path = write_file("a.csv", "n,,n,m,\n1,2,3,4,5\n")
    with pytest.raises(FileFormatError, match=r"a\.csv, line 1: 2 columns named 'n': .* columns="):
        open_source(path)
    assert read_whole(open_source(path, columns=["m"]))[1].tolist() == [[4]]
    with pytest.raises(OptionError, match="columns=True: give a list of names"):
        open_source(path, columns=True)
