"""What comes into this process from elsewhere is within the session's limit, as what goes out is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

import matnb as mn
from matnb.blocks.foreign import bytes_elsewhere
from matnb.errors import MatnbError, TooLargeError
from matnb.lazy import limits
from matnb.learn import KMeans, LogisticRegression, Ridge
from matnb.sources import memory

LIMIT = 1_000_000
COUNT = 500_000  # elements, 4 MB


class Dataset:
    """Stands for a dataset in a file, as h5py gives them: parts of it are read, and it has no memory."""

    def __init__(
        self, shape: tuple[int, ...], chunks: tuple[int, ...] | None, is_readable: bool = True
    ) -> None:
        self.shape, self.chunks, self.dtype = shape, chunks, np.dtype(np.float64)
        self.is_readable = is_readable

    def __getitem__(self, key: object) -> np.ndarray:
        assert self.is_readable, "nothing was to be read"
        return np.ones(self.shape)[key]

    def __array__(self, dtype: object = None, copy: bool | None = None) -> np.ndarray:
        return self[()]


class Stored:
    """Stands for an array in a store that tells no chunks."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape, self.dtype, self.store = shape, np.dtype(np.int32), "elsewhere"

    def __getitem__(self, key: object) -> np.ndarray:
        raise AssertionError("nothing was to be read")

    def __array__(self, dtype: object = None, copy: bool | None = None) -> np.ndarray:
        raise AssertionError("nothing was to be read")


class Interfaced:
    """What has memory here, and says so by NumPy's interface alone."""

    def __init__(self, values: np.ndarray) -> None:
        self.values, self.shape, self.dtype = values, values.shape, values.dtype
        self.__array_interface__ = values.__array_interface__

    def __getitem__(self, key: object) -> np.ndarray:
        return self.values[key]


def unread(*_: object) -> np.ndarray:
    """Return nothing: whoever computes this has read what it was to refuse."""
    raise AssertionError("nothing was to be computed")


def graph(rows: int = COUNT, *others: int) -> da.Array:
    """Return an array of Dask's that must not be computed."""
    return da.ones((rows, *others), chunks=100_000).map_blocks(unread, dtype="f8")


ELSEWHERE: dict[str, Callable[[], Any]] = {
    "dask array": graph,
    "dask array of columns": lambda: graph(COUNT // 10, 10),
    "h5py dataset": lambda: Dataset((COUNT,), (1000,), False),
    "contiguous dataset": lambda: Dataset((COUNT // 10, 10), None, False),
    "zarr array": lambda: Stored((COUNT, 2)),
    "list of them": lambda: [graph(COUNT // 4) for _ in range(4)],
    "list of datasets": lambda: [Dataset((COUNT // 4,), (10,), False)] * 4,
}
WAYS: dict[str, Callable[[Any], Any]] = {
    "asarray": mn.asarray,
    "asarray of a dtype": lambda x: mn.asarray(x, dtype="float32"),
    "asarray in blocks": lambda x: mn.asarray(x, blocks=4),
    "sum": lambda x: mn.ones(3)[:1] + x,
    "reflected": lambda x: np.multiply(x, mn.ones(3)[:1]),
    "where": lambda x: np.where(mn.ones(1) > 0, x, 0.0),
    "concatenate": lambda x: np.concatenate([mn.ones(3), x]),
    "in-place": lambda x: mn.zeros(3).__setitem__(slice(0, 1), x),
    "take": lambda x: mn.take(mn.ones(9), x),
    "bins": lambda x: mn.histogram(mn.ones(3), x),
    "loop": lambda x: mn.iterate(lambda y: y * 2, x, max_iterations=1),
    "rows of an estimator": lambda x: KMeans(2).fit(x),
    "targets": lambda x: Ridge().fit(mn.ones((COUNT, 1)), x),
    "classes": lambda x: LogisticRegression().fit(mn.ones((COUNT, 1)), x),
    "batches": lambda x: memory(x, batch_size=10),
}


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    with dask.config.set(scheduler="synchronous"):
        yield


ONE_THREAD = pytest.mark.session("one thread", compute_limit=LIMIT)


@ONE_THREAD
@pytest.mark.parametrize("name", ELSEWHERE)
@pytest.mark.parametrize("way", ["asarray", "sum", "concatenate"])
def test_what_is_elsewhere_is_refused_unread_with_sizes_and_ways(session, name: str, way: str) -> None:
    if way == "concatenate" and name.startswith("list"):
        pytest.skip("a list of arrays is one argument")
    with pytest.raises(TooLargeError, match=r"MB, over the limit of 1 MB .* np\.asarray\(x\)"):
        WAYS[way](ELSEWHERE[name]())


@ONE_THREAD
@pytest.mark.parametrize("way", WAYS)
def test_no_way_in_is_open(session, way: str) -> None:
    with pytest.raises(TooLargeError, match=r"dask Array .*4 MB, over the limit"):
        WAYS[way](graph())


@ONE_THREAD
def test_a_dask_operand_is_refused_on_either_side(session) -> None:
    X = mn.ones(COUNT)
    for call in (lambda: X + graph(), lambda: graph() + X):
        with pytest.raises(TooLargeError):
            call()


def in_hdf5(folder: Path) -> Any:
    """Return a dataset in a file of HDF5."""
    file = pytest.importorskip("h5py").File(folder / "x.h5", "w")
    return file.create_dataset("x", data=np.arange(float(COUNT)), chunks=(50_000,))


def in_zarr(folder: Path) -> Any:
    """Return an array in a folder of Zarr's."""
    zarr = pytest.importorskip("zarr")
    zarr.save(str(folder / "x.zarr"), np.arange(float(COUNT)))
    return zarr.open(str(folder / "x.zarr"), mode="r")


@ONE_THREAD
@pytest.mark.parametrize("make", [in_hdf5, in_zarr])
def test_real_datasets_are_within_the_limit(
    session, make: Callable[[Path], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = make(tmp_path)
    for way in ("asarray", "sum", "concatenate"):
        with pytest.raises(TooLargeError, match=r"4 MB, over the limit of 1 MB .* np\.asarray\(x\)"):
            WAYS[way](dataset)
    np.testing.assert_array_equal(mn.asarray(dataset[:10]).compute(), np.arange(10.0))
    monkeypatch.setattr(session, "config", replace(session.config, compute_limit_bytes=8 * COUNT))
    np.testing.assert_array_equal(mn.asarray(dataset).compute(), np.arange(float(COUNT)))


@ONE_THREAD
def test_lengths_that_follow_from_values_are_counted_first(session) -> None:
    x = da.arange(COUNT, chunks=100_000)
    few = x[x < 10]
    np.testing.assert_array_equal(mn.asarray(few).compute(), np.arange(10))
    with pytest.raises(TooLargeError, match="4 MB"):
        mn.asarray(x[x >= 0])
    assert np.isnan(few.shape[0]), "the user's array is as it was"


@ONE_THREAD
def test_frames_of_dask_are_refused(session) -> None:
    frame = dd.from_pandas(pd.DataFrame({"a": np.arange(COUNT), "b": 1.0}), npartitions=3)
    for one in (frame, frame["a"]):
        with pytest.raises(TooLargeError, match="over the limit of 1 MB"):
            mn.asarray(one)
    assert mn.asarray(frame.partitions[0].head(5)).shape == (5, 2)


@ONE_THREAD
def test_what_is_small_comes_in(session) -> None:
    np.testing.assert_array_equal(mn.asarray(da.arange(10, chunks=3)).compute(), np.arange(10))
    np.testing.assert_array_equal((mn.ones(10) + Dataset((10,), (5,))).compute(), np.full(10, 2.0))
    assert mn.asarray([da.ones(3), da.zeros(3)]).shape == (2, 3)


@ONE_THREAD
def test_what_is_here_is_never_refused(session, tmp_path) -> None:
    values = np.ones(COUNT)
    np.save(tmp_path / "x.npy", values)
    here = [
        values,
        values.astype(">f8"),
        values.tolist(),
        [values, values],
        Interfaced(values),
        memoryview(values),
        pd.Series(values),
        pd.Series(values, dtype="Float64").to_numpy(),
        pd.DataFrame({"a": values}),
        pd.Index(values),
        pl.Series(values),
        np.load(tmp_path / "x.npy", mmap_mode="r"),
        da.from_array(values).compute(),
    ]
    for one in here:
        assert bytes_elsewhere(one) == 0
        assert mn.asarray(one).size >= COUNT
    assert mn.asarray(sp.eye_array(COUNT, format="csr")).sparse


@ONE_THREAD
def test_the_limit_is_that_of_the_session(session) -> None:
    with mn.start(workers=1, threads=1, compute_limit=4 * COUNT * 8):
        assert mn.asarray(da.ones(COUNT)).shape == (COUNT,)
    with mn.start(workers=1, threads=1, compute_limit=8 * 100), pytest.raises(MatnbError):
        mn.asarray(da.ones(101))


@pytest.mark.parametrize("use", [mn.asarray, mn.array, lambda x: mn.ones(4) @ x])
def test_a_mapped_file_larger_than_memory_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, use: Callable[[Any], Any]
) -> None:
    with mn.start(processes=False):
        np.save(tmp_path / "x.npy", np.arange(20.0).reshape(4, 5))
        mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
        np.testing.assert_array_equal(mn.asarray(mapped), np.arange(20.0).reshape(4, 5))
        monkeypatch.setattr(limits, "_physical_memory", lambda: 100)
        with pytest.raises(
            TooLargeError, match=r"mapped file of shape \(4, 5\) float64 is 160 B.*asarray\(x"
        ):
            use(mapped)
        np.testing.assert_array_equal(mn.asarray(mapped[:2]), np.arange(10.0).reshape(2, 5))
