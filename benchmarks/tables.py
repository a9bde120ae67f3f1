"""Tables: a CSV file, a mean by a column of text, statistics, a pivot, against polars, DuckDB and pandas.

The file has been written before and lies in the system's cache. Polars takes as many threads as there are
processors, so two where the others are given two.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse as sp
from harness.comparison import OURS, Bench, Claim, Contender
from harness.inputs import THREADS

import matnb as mn

FILE_ROWS, TABLE_ROWS = 8_000_000, 10_000_000  # of a file of about 1 GB, and of a table that is there
NUM_LABELS, NUM_USERS = 300, 50_000
LOADING, GROUPING, DESCRIBING, PIVOTING = 1.2, 1.0, 1.0, 0.5  # of the seconds that the peer takes


def trips(rows: int, seed: int) -> pl.DataFrame:
    """Return fourteen columns: text, times, whole numbers, numbers, some of them missing."""
    rng = np.random.default_rng(seed)
    zones = np.array([f"zone {number:03d}" for number in range(NUM_LABELS)])
    start = np.datetime64("2020-01-01T00:00:00") + rng.integers(0, 30_000_000, rows)
    money = {name: rng.gamma(2.0, 6.0, rows).round(2) for name in ("fare", "tip", "tolls", "total", "extra")}
    frame = pl.DataFrame(
        {
            "vendor": rng.integers(1, 3, rows),
            "pickup": start.astype("datetime64[us]"),
            "dropoff": (start + rng.integers(60, 5000, rows)).astype("datetime64[us]"),
            "people": rng.integers(1, 7, rows),
            "distance": rng.gamma(1.0, 3.0, rows).round(2),
            "rate": rng.integers(1, 7, rows),
            "flag": np.array(["N", "Y"])[rng.integers(0, 2, rows)],
            "zone": zones[rng.integers(0, NUM_LABELS, rows)],
            "to_zone": zones[rng.integers(0, NUM_LABELS, rows)],
            **money,
        }
    )
    return frame.with_columns(extra=pl.when(pl.col("people") < 6).then(pl.col("extra")))


def loading(bench: Bench, folder: str) -> None:
    """Compare reading a file."""

    def written(number: int) -> Path:
        path = Path(folder, "trips.csv")
        trips(FILE_ROWS, number).write_csv(path)
        path.read_bytes()  # into the cache
        return path

    ours = Contender(
        OURS, mn.load, written, lambda table: np.asarray([len(table), float(table["tip"].sum())])
    )
    polars = Contender(
        "polars",
        lambda path: pl.read_csv(path, try_parse_dates=True),
        written,
        lambda frame: np.asarray([len(frame), frame["tip"].sum()]),
    )
    bench.compare(Claim("a CSV file of 14 columns", f"{FILE_ROWS:,} rows, load", LOADING), [ours, polars])


def on_frames(
    bench: Bench,
    claim: Claim,
    ours: Callable[[mn.Table], Any],
    peer: tuple[str, Callable[[Any], Any]],
    frame: Callable[[int], pl.DataFrame],
    given: Callable[[int], Any] | None = None,
) -> None:
    """Compare work on a table that is there already; ``given`` makes the peer's, where it is no frame."""
    name, theirs = peer
    bench.compare(
        claim,
        [
            Contender(OURS, ours, lambda number: mn.table(frame(number))),
            Contender(name, theirs, given or frame),
        ],
    )


def means(number: int) -> pl.DataFrame:
    """Return a column of text and one of numbers."""
    rng = np.random.default_rng(number)
    zones = np.array([f"zone {place:03d}" for place in range(NUM_LABELS)])
    return pl.DataFrame(
        {"zone": zones[rng.integers(0, NUM_LABELS, TABLE_ROWS)], "tip": rng.random(TABLE_ROWS)}
    )


def numbers(number: int) -> pl.DataFrame:
    """Return columns of numbers."""
    rng = np.random.default_rng(number)
    return pl.DataFrame({f"x{place}": rng.random(TABLE_ROWS // 4) for place in range(4)})


def ratings(number: int) -> pl.DataFrame:
    """Return who rated what, and how."""
    rng = np.random.default_rng(number)
    return pl.DataFrame(
        {
            "user": rng.integers(0, NUM_USERS, TABLE_ROWS),
            "film": rng.integers(0, 5000, TABLE_ROWS),
            "stars": rng.integers(1, 6, TABLE_ROWS).astype(float),
        }
    )


def pivoted(frame: pl.DataFrame) -> float:
    """Return the sum of a sparse matrix made by pandas and SciPy."""
    users, _ = pd.factorize(frame["user"].to_numpy(), sort=True)
    films, _ = pd.factorize(frame["film"].to_numpy(), sort=True)
    return float(sp.coo_array((frame["stars"].to_numpy(), (users, films))).tocsr().sum())


def main() -> None:
    bench = Bench(__doc__)
    duckdb.execute(f"set threads = {THREADS}")

    def kept_by_duckdb(number: int) -> str:
        duckdb.register("given", means(number))
        duckdb.execute("create or replace table kept as select * from given")
        return "select zone, avg(tip) as tip from kept group by zone order by zone"

    def mean_by_duckdb(query: str) -> np.ndarray:
        return duckdb.sql(query).fetchnumpy()["tip"]

    def described(table: mn.Table) -> np.ndarray:
        return np.stack([np.asarray(table.describe()[name]) for name in table.columns])

    def described_by_polars(frame: pl.DataFrame) -> np.ndarray:
        found = frame.describe(interpolation="linear")
        kept = found.filter(pl.col("statistic") != "null_count").drop("statistic")
        return kept.to_numpy().astype(float).T

    with mn.start(threads=THREADS), tempfile.TemporaryDirectory() as folder:
        loading(bench, folder)
        on_frames(
            bench,
            Claim("mean by a column of text", f"{TABLE_ROWS:,} rows, {NUM_LABELS} labels", GROUPING),
            lambda table: table.groupby("zone")["tip"].mean()["tip"].compute(),
            ("DuckDB", mean_by_duckdb),
            means,
            kept_by_duckdb,
        )
        on_frames(
            bench,
            Claim("describe", f"4 columns of {TABLE_ROWS // 4:,} doubles", DESCRIBING),
            described,
            ("polars", described_by_polars),
            numbers,
        )
        on_frames(
            bench,
            Claim("pivot to a sparse matrix", f"{TABLE_ROWS:,} rows", PIVOTING),
            lambda table: float(table.pivot("user", "film", "stars").sum()),
            ("pandas and SciPy", pivoted),
            ratings,
        )


if __name__ == "__main__":
    main()
