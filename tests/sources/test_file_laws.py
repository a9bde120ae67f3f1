"""Laws of sources of files, over drawn files: each row once a pass, in the order in which it was written."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from sklearn.datasets import dump_svmlight_file

import matnb as mn
from matnb.errors import FileFormatError
from matnb.sources import BatchSource, from_files

pytestmark = pytest.mark.session("interpreter")
WIDTH = 3
COLUMNS = ["p", "q", "r"]


def write_lda(path: Path, X: np.ndarray) -> None:
    lines = [
        " ".join([str(np.count_nonzero(row)), *(f"{k}:{int(row[k])}" for k in row.nonzero()[0])]) for row in X
    ]
    path.write_text("".join(f"{line}\n" for line in lines))


def table(X: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(X, columns=COLUMNS).assign(y=X[:, 0])


# How rows are written, what the source is given, and whether it has targets, the first column.
WRITERS: dict[str, tuple[str, Callable[[Path, np.ndarray], object], dict[str, object], bool]] = {
    "dense npz": (".npz", lambda path, X: np.savez(path, X=X, y=X[:, 0]), {}, True),
    "sparse npz": (".npz", lambda path, X: sp.save_npz(path, sp.csr_array(X)), {}, False),
    "npy": (".npy", np.save, {}, False),
    "svmlight": (
        ".svm",
        lambda path, X: dump_svmlight_file(X, X[:, 0], str(path), zero_based=True),
        {"n_features": WIDTH, "zero_based": True},
        True,
    ),
    "LDA-C": (".ldac", write_lda, {"n_features": WIDTH}, False),
    "CSV": (".csv", lambda path, X: table(X).to_csv(path, index=False), {"target": "y"}, True),
    "Parquet": (
        ".parquet", lambda path, X: table(X).to_parquet(path, row_group_size=5), {"target": "y"}, True,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Drawn:
    """Which files there are, and how a source goes through them."""

    kind: str
    counts: tuple[int, ...]
    batch_size: int
    slab_bytes: int
    how: str


@st.composite
def drawn_files(draw: st.DrawFn) -> Drawn:
    kind = draw(st.sampled_from(sorted(WRITERS)))
    # A file of no row is no svmlight or LDA-C file, and pandas writes no dtype for it.
    counts = draw(st.lists(st.integers(1, 14), min_size=1, max_size=4))
    size, slab = draw(st.integers(1, 16)), draw(st.sampled_from([40, 1 << 23]))
    return Drawn(kind, tuple(counts), size, slab, draw(st.sampled_from(["folder", "pattern", "list"])))


@contextmanager
def written(drawn: Drawn) -> Iterator[tuple[Callable[..., BatchSource], np.ndarray, list[Path]]]:
    """Write the files; yields what makes a source of them, the rows in the order promised, and the paths."""
    suffix, write, options, _ = WRITERS[drawn.kind]
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        patch.setattr(from_files, "SLAB_BYTES", drawn.slab_bytes)
        rows, paths, first = [], [], 1
        for number, count in enumerate(drawn.counts):
            ids = np.arange(first, first + count, dtype=float)
            rows.append(np.column_stack([ids, rng.integers(0, 3, (count, WIDTH - 1))]))
            paths.append(Path(place) / f"{number}{suffix}")
            write(paths[-1], rows[-1])
            first += count
        X = np.concatenate(rows)
        where: object = {"folder": place, "pattern": f"{place}/*{suffix}", "list": paths[::-1]}[drawn.how]
        if drawn.how == "list":
            X = np.concatenate(rows[::-1])

        def source(**more: object) -> BatchSource:
            return mn.sources.files(where, batch_size=drawn.batch_size, **options, **more)

        yield source, X, paths


def rows_of(source: BatchSource) -> np.ndarray:
    """Return the rows of a pass, once batches were found equal in size and targets to agree."""
    batches = list(source)
    for one, following in pairwise(batches):
        assert len(one.X) == source.batch_size or following.epoch > one.epoch
    found = [one.X.to_scipy().toarray() if one.X.sparse else one.X.compute() for one in batches]
    for batch, X in zip(batches, found, strict=True):
        assert batch.y is None or np.array_equal(batch.y.compute(), X[:, 0])
    return np.concatenate(found) if found else np.empty((0, WIDTH))


def by_number(X: np.ndarray) -> np.ndarray:
    return X[np.argsort(X[:, 0])]


@settings(max_examples=60, deadline=None)
@given(drawn_files())
def test_each_row_comes_once_a_pass_in_the_order_of_the_files(drawn: Drawn):
    with written(drawn) as (source, X, _):
        made = source()
        assert (made.first.y is not None) == WRITERS[drawn.kind][3]
        assert np.array_equal(rows_of(made), X)
        assert np.array_equal(rows_of(made), X), "a pass is the same when it is gone through again"
        assert np.array_equal(rows_of(made.repeat(2)), np.concatenate([X, X]))


@settings(max_examples=40, deadline=None)
@given(drawn_files(), st.integers(0, 3))
def test_a_shuffled_pass_has_the_same_rows_in_an_order_of_the_seed(drawn: Drawn, seed: int):
    with written(drawn) as (source, X, _):
        made = source(shuffle=True, seed=seed)
        found = rows_of(made)
        assert np.array_equal(by_number(found), by_number(X))
        assert np.array_equal(rows_of(made), found)
        assert np.array_equal(rows_of(source(shuffle=True, seed=seed)), found)


@settings(max_examples=40, deadline=None)
@given(drawn_files(), st.integers(2, 5), st.booleans())
def test_rows_held_out_never_reach_training(drawn: Drawn, every: int, shuffle: bool):
    with written(drawn) as (source, X, _):
        training, held_out = source(shuffle=shuffle, seed=1).holdout(every)
        kept, held = rows_of(training), rows_of(held_out)
        assert not set(kept[:, 0]) & set(held[:, 0])
        assert np.array_equal(by_number(np.concatenate([kept, held])), by_number(X))
        again = rows_of(training.repeat(2))
        assert not set(again[:, 0]) & set(held[:, 0])
        # Counted in each file, from the file's number on.
        counts = drawn.counts[::-1] if drawn.how == "list" else drawn.counts
        places = np.concatenate([number + np.arange(count) for number, count in enumerate(counts)])
        assert np.array_equal(held, X[places % every == every - 1])


@settings(max_examples=30, deadline=None)
@given(drawn_files(), st.integers(0, 3))
def test_a_file_that_changed_between_passes_is_named(drawn: Drawn, which: int):
    assume(which < len(drawn.counts))
    suffix, write, _, _ = WRITERS[drawn.kind]
    with written(drawn) as (source, X, paths):
        made = source()
        rows_of(made)
        write(paths[which], X[:1] + 1)
        os.utime(paths[which], ns=(0, 0))
        with pytest.raises(FileFormatError, match=rf"/{which}\{suffix}.*has changed"):
            rows_of(made)
