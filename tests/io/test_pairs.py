"""Rows of svmlight against scikit-learn's reader, and documents of LDA-C against their published counts."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from reading import read_whole
from sklearn.datasets import load_svmlight_file

import matnb as mn
from matnb.errors import FileFormatError, OptionError
from matnb.io.source import open_source
from matnb.ops.creation import labels_here


@pytest.mark.usefixtures("small_pieces")
class TestPublished:
    @pytest.mark.parametrize("name", ["heart_scale/heart_scale", "a9a/a9a.t"])
    @pytest.mark.parametrize(("pieces", "counts"), [(1, 1), (7, 3)])
    def test_rows_are_those_of_scikit_learn(self, test_data: Path, name: str, pieces: int, counts: int):
        X, y = load_svmlight_file(str(test_data / name))
        source = open_source(test_data / name, kind="svmlight")
        found, matrix = read_whole(source, pieces, counts)
        assert np.array_equal(matrix, X.toarray())
        assert found.nnz == X.nnz
        assert np.array_equal(labels_here(source).values, y)

    def test_documents_have_their_published_counts(self, test_data: Path):
        found, matrix = read_whole(open_source(test_data / "lda_reuters" / "reuters.ldac"), 5, 2)
        assert (found.shape, found.dtype, matrix.sum()) == ((395, 4258), np.int64, 84_010)
        with (test_data / "lda_reuters" / "reuters.ldac").open() as lines:
            assert [int(line.split()[0]) for line in lines] == (matrix > 0).sum(axis=1).tolist()


TEXT = "# a comment\n1 qid:7 1:0.5 3:-2e1 # another\n\n-1\n+2.5 qid:12 2:nan 4:1\r\n0 10:3"
ROWS = np.zeros((4, 10))
ROWS[0, 0], ROWS[0, 2], ROWS[2, 1], ROWS[2, 3], ROWS[3, 9] = 0.5, -20, np.nan, 1, 3


@pytest.mark.usefixtures("small_chunks")
def test_comments_queries_and_rows_without_an_entry(write_file):
    write_file("a.svm.gz", gzip.compress(TEXT.encode()))
    for name in (write_file("a.svm", TEXT), write_file("a.svm", TEXT).with_name("a.svm.gz")):
        for pieces in (1, 9):
            assert np.array_equal(read_whole(open_source(name), pieces)[1], ROWS, equal_nan=True)
            assert labels_here(open_source(name)).values.tolist() == [1, -1, 2.5, 0]


def test_columns_are_counted_from_where_is_asked(write_file):
    from_one, from_zero = write_file("a.svm", "1 1:5\n2 3:6\n"), write_file("b.svm", "1 0:5\n2 3:6\n")
    assert read_whole(open_source(from_one))[0].shape == (2, 3)
    assert read_whole(open_source(from_zero))[0].shape == (2, 4)
    assert read_whole(open_source(from_one, zero_based=True))[0].shape == (2, 4)
    assert read_whole(open_source(from_one, n_features=7))[0].shape == (2, 7)
    for options in ({"n_features": 3, "zero_based": True}, {"n_features": 2}):
        with pytest.raises(FileFormatError, match="3"):
            read_whole(open_source(from_one, **options))
    with pytest.raises(FileFormatError, match=r"line 1: index 0 is not in 1"):
        read_whole(open_source(from_zero, zero_based=False))


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("a.svm", "1 1:2\n1 2:3:4\n", "line 2"),
        ("a.svm", "1 1:2\n1 2 :3\n", "line 2"),
        ("a.svm", "1 1:2\n1 2::3\n", "line 2"),
        ("a.svm", "1 1:2\n1 2: 3\n", "line 2"),
        ("a.svm", "1 1:2\n1 2:3 4:", "line 2"),
        ("a.ldac", "1 1:2\n:1 2:3\n", "line 2"),
        ("a.svm", "1:2 3:4\n", "line 1"),
        ("a.svm", "1 1:2\n1 2:3 7\n", "line 2: '?7'? is not a pair INDEX:VALUE"),
        ("a.svm", "1 1:x\n", "line 1"),
        ("a.svm", "a 1:2\n", "line 1"),
        ("a.svm", "1 -1:2\n", "line 1: index -1"),
        ("a.svm", "1 1:2 4:5\n1 2:1 2:1\n", "line 2: index 2 after 2: indices of a row ascend"),
        ("a.svm", "1 4:2 3:5\n", "line 1: index 3 after 4"),
        ("a.svm", ":\n", "colon|pair"),
        ("a.ldac", "2 1:2 3:1\n2 1:2\n", "line 2: claims 2 terms and lists 1"),
        ("a.ldac", "1 1:-2\n", "line 1: count -2 is not in 0"),
        ("a.ldac", "1 1:1.5\n", "line 1"),
    ],
)
def test_bad_lines_are_named(write_file, name: str, text: str, reason: str):
    with pytest.raises(FileFormatError, match=reason):
        read_whole(open_source(write_file(name, text)))


def test_bad_options_are_refused(write_file):
    path = write_file("a.svm", "1 1:2\n")
    for options in ({"zero_based": 2}, {"n_features": -1}, {"n_features": 1.5}, {"skip": 1}):
        with pytest.raises(OptionError):
            open_source(path, **options)


def test_loading_gives_targets_as_labels(interpreter: None, write_file):
    X = mn.load(write_file("a.svm", "1.5 1:2\n-1 2:3\n"))
    assert X.compute().todense().tolist() == [[2, 0], [0, 3]]
    assert X.labels.compute().tolist() == [1.5, -1]
