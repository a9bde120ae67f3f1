"""Logistic steps over batches streamed from files, against reading and parsing the files alone."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp
from harness.comparison import Bench, Claim, Contender
from harness.inputs import THREADS
from harness.sessions import public

import matnb as mn

FEATURES, WIDE, BATCH = 32, 100_000, 4096
TARGET = 1 / 0.7  # of the seconds that reading and parsing alone take
STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def dense_rows(number: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and the classes of one file."""
    rng = np.random.default_rng(number)
    X = rng.normal(size=(rows, FEATURES))
    return X, (X[:, 0] + X[:, 1] > rng.normal(size=rows)).astype(float)


def write_dense(folder: Path, files: int, rows: int) -> None:
    for number in range(files):
        X, y = dense_rows(number, rows)
        np.savez(folder / f"{number:03}.npz", X=X, y=y)


def write_sparse(folder: Path, files: int, rows: int) -> None:
    for number in range(files):
        rng = np.random.default_rng(number)
        indices = np.sort(rng.integers(0, WIDE, (rows, FEATURES)), axis=1)
        indices += np.arange(FEATURES)  # ascending, none twice
        X = sp.csr_array(
            (rng.random(rows * FEATURES), indices.ravel().astype(np.int32), np.arange(rows + 1) * FEATURES),
            shape=(rows, WIDE + FEATURES),
        )
        parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": X.shape}
        np.savez(folder / f"{number:03}.npz", **parts, format=b"csr", y=rng.integers(0, 2, rows) * 1.0)


def write_table(folder: Path, files: int, rows: int) -> None:
    for number in range(files):
        X, y = dense_rows(number, rows)
        columns = {f"x{place}": X[:, place] for place in range(FEATURES)} | {"y": y}
        pq.write_table(
            pa.table(columns), folder / f"{number:03}.parquet", row_group_size=1 << 16, use_dictionary=False
        )


def read_arrays(path: Path) -> int:
    """Return the rows of a .npz file, once all of it was read."""
    with np.load(path) as members:
        arrays = {name: members[name] for name in members.files}
    if "X" in arrays:
        return len(arrays["X"])
    parts = tuple(arrays[name] for name in ("data", "indices", "indptr"))
    return sp.csr_array(parts, shape=arrays["shape"]).shape[0]


def read_table(path: Path) -> int:
    """Return the rows of a Parquet file, once all of it was made a matrix, some rows at a time."""
    count = 0
    with pq.ParquetFile(path) as opened:
        for rows in opened.iter_batches(1 << 16, use_threads=False):
            matrix = np.empty((rows.num_rows, rows.num_columns))
            for place, column in enumerate(rows.columns):
                matrix[:, place] = column.to_numpy()
            count += len(matrix)
    return count


def step(w: mn.DistArray, batch: mn.sources.Minibatch) -> mn.DistArray:
    wrong = 1 / (1 + np.exp(-(batch.X @ w))) - batch.y
    return w - 0.1 / BATCH * (batch.X.T @ wrong)


def _status(name: str) -> int:
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) << 10


@contextmanager
def peak(told: list[float]) -> Iterator[None]:
    """Append by how many MB the memory of this process grew at most."""
    if not CLEAR.exists():
        yield
        return
    CLEAR.write_text("5")  # the peak begins anew
    before = _status("VmRSS")
    yield
    told.append((_status("VmHWM") - before) / 1e6)


def compare(
    bench: Bench, name: str, write: Callable[[Path, int, int], None], read: Callable[[Path], int], rows: int
) -> None:
    files = bench.sized(8, 2)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write(folder, files, rows)
        paths = sorted(folder.iterdir())
        size = sum(path.stat().st_size for path in paths)
        source = mn.sources.files(
            folder, batch_size=BATCH, target="y" if paths[0].suffix == ".parquet" else None
        )
        width = source.num_features
        told: list[float] = []

        def pass_of(number: int) -> int:
            with peak(told):
                w, _ = mn.iterate(step, mn.full(width, number * 1e-9), over=source)
            return files * rows + int(np.isnan(w.sum()))

        ours, call = public(pass_of)
        bench.compare(
            Claim(
                f"logistic steps streamed from {name}",
                f"{files * rows:,} rows, {size / 1e9:.2f} GB on disk, batches of {BATCH:,}",
                TARGET,
            ),
            [ours, Contender("reading and parsing alone", lambda _: sum(map(read, paths)))],
            lambda: (*call.notes(), f"memory grew by {max(told, default=0):.0f} MB at most"),
        )


def main() -> None:
    bench = Bench(__doc__)
    with mn.start(threads=THREADS):
        compare(bench, "dense .npz", write_dense, read_arrays, bench.sized(500_000, 20_000))
        compare(bench, "sparse .npz", write_sparse, read_arrays, bench.sized(300_000, 20_000))
        compare(bench, "Parquet", write_table, read_table, bench.sized(500_000, 20_000))


if __name__ == "__main__":
    main()
