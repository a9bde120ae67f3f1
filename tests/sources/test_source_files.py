"""Sources of files of each kind against the rows that were written, and files that are damaged or changed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

import matnb as mn
from matnb.errors import ColumnError, FileFormatError, MatnbError, MissingFileError, OptionError, ShapeError
from matnb.io import lines
from matnb.sources import BatchSource, from_files, rows

pytestmark = pytest.mark.session("interpreter")
CUTS = (0, 40, 41, 41, 103)
NAMES = ["p", "q", "r", "s"]


def drawn() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return np.round(rng.normal(size=(103, 4)) * (rng.random((103, 4)) < 0.5), 3), rng.integers(
        0, 3, 103
    ) * 1.0


def table(X: np.ndarray, y: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(np.column_stack([X[:, :2], y, X[:, 2:]]), columns=["p", "q", "y", "r", "s"])


def rows_with_targets(path: Path, X: np.ndarray, y: np.ndarray) -> None:
    A = sp.csr_array(X)
    parts = {"data": A.data, "indices": A.indices, "indptr": A.indptr, "shape": A.shape}
    np.savez(path, **parts, format=b"csr", y=y)


# How rows are written, what the source is told, and whether it has targets.
KINDS: dict[str, tuple[str, Callable[[Path, np.ndarray, np.ndarray], object], dict[str, object], bool]] = {
    "arrays": (".npz", lambda path, X, y: np.savez(path, X=X, y=y), {}, True),
    "compressed arrays": (".npz", lambda path, X, y: np.savez_compressed(path, X=X, y=y), {}, True),
    "rows alone": (".npz", lambda path, X, y: np.savez(path, X=X), {}, False),
    "SciPy's rows": (".npz", lambda path, X, y: sp.save_npz(path, sp.csr_array(X)), {}, False),
    "SciPy's rows with y": (".npz", rows_with_targets, {}, True),
    "SciPy's columns": (".npz", lambda path, X, y: sp.save_npz(path, sp.csc_array(X)), {}, False),
    "npy": (".npy", lambda path, X, y: np.save(path, X), {}, False),
    "npy with a target": (
        ".npy", lambda path, X, y: np.save(path, np.column_stack([y, X])), {"target": 0}, True,
    ),
    "csv": (".csv", lambda path, X, y: table(X, y).to_csv(path, index=False), {"target": "y"}, True),
    "csv, columns": (
        ".csv", lambda path, X, y: table(X, y).to_csv(path, index=False), {"columns": NAMES}, False,
    ),
    "parquet": (".parquet", lambda path, X, y: table(X, y).to_parquet(path), {"target": "y"}, True),
    "svmlight": (".svm", lambda path, X, y: dump_svmlight_file(X, y, str(path), zero_based=False), {}, True),
}  # fmt: skip


@pytest.fixture(params=["small slabs", "whole files"])
def slabs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read few rows at a time, or as many as there are."""
    if request.param == "small slabs":
        monkeypatch.setattr(from_files, "SLAB_BYTES", 100)
        monkeypatch.setattr(lines, "SMALLEST_PIECE", 1)


def rows_of(source: BatchSource) -> tuple[np.ndarray, np.ndarray | None]:
    batches = list(source)
    assert [len(one.X) for one in batches[:-1]] == [source.batch_size] * (len(batches) - 1)
    X = np.concatenate([one.X.to_scipy().toarray() if one.X.sparse else one.X.compute() for one in batches])
    return X, None if batches[0].y is None else np.concatenate([one.y.compute() for one in batches])


@pytest.mark.usefixtures("slabs")
@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_those_written(tmp_path: Path, kind: str):
    suffix, write, options, has_targets = KINDS[kind]
    X, y = drawn()
    shown = [place for place in range(4) if CUTS[place] < CUTS[place + 1] or suffix in (".npy", ".csv")]
    for place in shown:
        part = slice(CUTS[place], CUTS[place + 1])
        write(tmp_path / f"{place}{suffix}", X[part], y[part])
    for where in (tmp_path, tmp_path / f"*{suffix}", sorted(tmp_path.iterdir())):
        source = mn.sources.files(where, batch_size=7, **options)
        found, targets = rows_of(source)
        assert np.array_equal(found, X)
        assert np.array_equal(targets, y) if has_targets else targets is None
    shuffled = mn.sources.files(tmp_path, batch_size=7, shuffle=True, seed=1, **options)
    order = rows_of(shuffled)[0]
    assert not np.array_equal(order, X)
    assert sorted(map(tuple, order)) == sorted(map(tuple, X))
    training, held_out = source.holdout(10)
    assert len(rows_of(training)[0]) + len(rows_of(held_out)[0]) == len(X)


@pytest.mark.usefixtures("slabs")
def test_published_rows(test_data: Path):
    X, y = load_svmlight_file(str(test_data / "heart_scale" / "heart_scale"))
    source = mn.sources.files(test_data / "heart_scale" / "heart_scale", batch_size=64, kind="svmlight")
    found, targets = rows_of(source)
    assert np.array_equal(found, X.toarray())
    assert np.array_equal(targets, y)
    documents = mn.sources.files(test_data / "lda_reuters" / "reuters.ldac", batch_size=100)
    assert rows_of(documents)[0].sum() == 84_010
    assert (documents.num_features, documents.has_targets, documents.first.X.sparse) == (4258, False, True)


def test_columns_of_svmlight_are_those_of_all_files(tmp_path: Path):
    (tmp_path / "a.svm").write_text("1 1:5\n")
    (tmp_path / "b.svm").write_text("2 3:6\n")
    assert rows_of(mn.sources.files(tmp_path, batch_size=1))[0].tolist() == [[5, 0, 0], [0, 0, 6]]
    (tmp_path / "c.svm").write_text("3 0:7\n")
    assert rows_of(mn.sources.files(tmp_path, batch_size=1))[0].shape == (3, 4)
    narrow = mn.sources.files(tmp_path, batch_size=1, n_features=3, zero_based=True)
    with pytest.raises(FileFormatError, match=r"b.svm.*index 3"):
        rows_of(narrow)


def test_nothing_but_headers_is_read_before_it_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    np.savez(tmp_path / "a.npz", X=np.ones((3, 2)))
    np.savez(tmp_path / "b.npz", X=np.ones((1, 2)))

    def refuse(*_: object) -> None:
        raise AssertionError("rows are read")

    monkeypatch.setattr(rows.RowPart, "__post_init__", refuse, raising=False)
    source = mn.sources.files(tmp_path, batch_size=2)
    assert (source.num_rows, source.num_batches) == (4, 2)
    assert repr(source) == f"BatchSource(2 files from '{tmp_path}/a.npz' on, batch_size=2)"


def test_files_of_unequal_width_are_refused(tmp_path: Path):
    np.save(tmp_path / "a.npy", np.ones((3, 2)))
    np.save(tmp_path / "b.npy", np.ones((3, 4)))
    with pytest.raises(ShapeError, match=r"b.npy has 4 columns where .*a.npy has 2"):
        mn.sources.files(tmp_path, batch_size=2)


def test_targets_in_some_files_alone_are_refused(tmp_path: Path):
    np.savez(tmp_path / "a.npz", X=np.ones((3, 2)), y=np.ones(3))
    np.savez(tmp_path / "b.npz", X=np.ones((3, 2)))
    with pytest.raises(ShapeError, match=r"b.npz has 0 targets a row where .*a.npz has 1"):
        list(mn.sources.files(tmp_path, batch_size=2))


@pytest.mark.parametrize("suffix", [".npz", ".npy", ".csv", ".parquet", ".svm"])
def test_a_file_that_changed_between_passes_is_refused(tmp_path: Path, suffix: str):
    _, write, options, _ = next(one for name, one in KINDS.items() if one[0] == suffix)
    X, y = drawn()
    path = tmp_path / f"a{suffix}"
    write(path, X, y)
    source = mn.sources.files(path, batch_size=50, **options)
    list(source)
    write(path, X[:-1] + 1, y[:-1])
    os.utime(path, ns=(0, 0))
    with pytest.raises(FileFormatError, match=r"a\.\w+.*has changed"):
        list(source)


@pytest.mark.parametrize("kind", [name for name in KINDS if name not in ("csv", "csv, columns", "svmlight")])
def test_a_truncated_file_is_refused(tmp_path: Path, kind: str):
    suffix, write, options, _ = KINDS[kind]
    path = tmp_path / f"a{suffix}"
    write(path, *drawn())
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * 2 // 3])
    with pytest.raises(FileFormatError, match=rf"a{suffix}"):
        list(mn.sources.files(path, batch_size=50, **options))


@pytest.mark.parametrize("suffix", [".npz", ".npy", ".csv", ".parquet", ".svm"])
def test_nan_is_refused_with_file_and_row(tmp_path: Path, suffix: str):
    _, write, options, _ = next(one for name, one in KINDS.items() if one[0] == suffix)
    X, y = drawn()
    write(tmp_path / f"a{suffix}", X, y)
    X[77, 2] = 4321
    path = tmp_path / f"b{suffix}"
    if suffix == ".svm":
        write(path, X, y)
        path.write_text(path.read_text().replace("4321", "nan"))
    else:
        write(path, np.where(X == 4321, np.nan, X), y)
    source = mn.sources.files(tmp_path, batch_size=30, **options)
    seen: list[int] = []
    with pytest.raises(OptionError, match=rf"b{suffix}: row 77, column 2, of X is NaN"):
        seen.extend(batch.number for batch in source)
    assert seen, "batches before it are given"


def test_damaged_members_are_refused(tmp_path: Path):
    A = sp.csr_array(drawn()[0])
    good = {"data": A.data, "indices": A.indices, "indptr": A.indptr, "shape": A.shape, "format": b"csr"}
    for name, bad in {
        "indptr": A.indptr[::-1], "indices": A.indices + 9, "data": A.data[:-1], "y": np.ones(3),
    }.items():  # fmt: skip
        np.savez(tmp_path / "a.npz", **{**good, name: bad})
        with pytest.raises(MatnbError, match=r"a\.npz"):
            list(mn.sources.files(tmp_path / "a.npz", batch_size=50))


def test_bad_arguments_are_refused(tmp_path: Path):
    np.save(tmp_path / "a.npy", np.ones((3, 2)))
    np.save(tmp_path / "flat.npy", np.ones(3))
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    (tmp_path / "empty").mkdir()
    for where, options, error in [
        ("none.npy", {}, MissingFileError),
        ("none*.npy", {}, MissingFileError),
        ("empty", {}, MissingFileError),
        ("flat.npy", {}, FileFormatError),
        ("a.npy", {"target": 2}, OptionError),
        ("a.npy", {"target": "b"}, OptionError),
        ("a.npy", {"skip": 1}, OptionError),
        ("a.npy", {"kind": "none"}, OptionError),
        ("a.npy", {"batch_size": 0}, OptionError),
        ("a.csv", {"target": "c"}, ColumnError),
        ("a.csv", {"target": 1}, ColumnError),
    ]:
        with pytest.raises(error):
            mn.sources.files(tmp_path / where, **{"batch_size": 2, **options})
    with pytest.raises(OptionError, match="list is empty"):
        mn.sources.files([], batch_size=2)
