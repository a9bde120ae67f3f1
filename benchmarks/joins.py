"""Tables joined, put in order, aggregated by groups and described, against polars and DuckDB.

All have the tables already: polars as frames, DuckDB as tables of its own; DuckDB leaves its result as one.
Polars takes as many threads as there are processors, so two where the others are given two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import polars as pl
from harness.comparison import OURS, Bench, Claim, Contender
from harness.inputs import THREADS

import matnb as mn
from matnb.lazy.evaluator import evaluator

ROWS, OTHERS, NUM_LABELS = 8_000_000, 1_000_000, 300
TARGET, DESCRIBING = 1.2, 0.8  # of the seconds that the best peer takes
Frames = Callable[[int], list[pl.DataFrame]]


@dataclass(frozen=True)
class Work:
    """What is done with some tables, in three libraries' words.

    Attributes
    ----------
    frames
        Makes the tables of a round.
    ours, polars, query
        What each library does; DuckDB's tables are called t0 and t1.
    checked
        Columns of the result whose values are compared, whatever the order of rows.
    """

    frames: Frames
    ours: Callable[[list[mn.Table]], mn.Table]
    polars: Callable[[list[pl.DataFrame]], pl.DataFrame]
    query: str
    checked: Sequence[str]

    def contenders(self) -> list[Contender]:
        """Return the three, which start from the same values."""
        return [
            Contender(OURS, self._made, lambda number: list(map(mn.table, self.frames(number))), self._value),
            Contender("polars", self.polars, self.frames, self._value),
            Contender("DuckDB", lambda _: duckdb.execute(self.query), self._kept, self._value_of_made),
        ]

    def _made(self, tables: list[mn.Table]) -> mn.Table:
        found = self.ours(tables)
        handles = [one.codes if isinstance(one, mn.Column) else one for one in found.values()]
        evaluator().persist([one.expression for one in handles])
        return found

    def _kept(self, number: int) -> None:
        for place, frame in enumerate(self.frames(number)):
            duckdb.register("given", frame)
            duckdb.execute(f"create or replace table t{place} as select * from given")
            duckdb.unregister("given")

    def _value(self, table: Any) -> np.ndarray:
        columns = [np.sort(np.asarray(table[name], float)) for name in self.checked]
        return np.array([[len(one), one.sum(), *one[:: len(one) // 100 + 1][:50]] for one in columns])

    def _value_of_made(self, _: object) -> np.ndarray:
        return self._value(duckdb.sql("from made").fetchnumpy())


def joined(rows: int, others: int, is_dense: bool) -> Frames:
    """Return what makes a table of many rows, and one of fewer with a row for each key."""

    def frames(number: int) -> list[pl.DataFrame]:
        rng = np.random.default_rng(number)
        keys = rng.permutation(others) if is_dense else rng.integers(0, 1 << 60, others)
        many = {"k": keys[rng.integers(0, others, rows)], "v": rng.random(rows)}
        return [
            pl.DataFrame({**many, "g": rng.integers(0, NUM_LABELS, rows)}),
            pl.DataFrame({"k": keys, "w": rng.random(others)}),
        ]

    return frames


def unordered(rows: int) -> Frames:
    """Return what makes a table of a column to sort by, and two that come along."""

    def frames(number: int) -> list[pl.DataFrame]:
        rng = np.random.default_rng(number)
        labels = rng.integers(0, NUM_LABELS, rows)
        return [pl.DataFrame({"v": rng.random(rows), "k": rng.integers(0, 1 << 40, rows), "g": labels})]

    return frames


def described(table: Any) -> np.ndarray:
    """Return count, mean, deviation, extremes and quartiles of all columns."""
    if isinstance(table, mn.Table):
        return np.stack([np.asarray(table[name]) for name in table.columns if name != "statistic"])
    kept = table.filter(pl.col("statistic") != "null_count").drop("statistic")
    return kept.to_numpy().astype(float).T


def main() -> None:
    bench = Bench(__doc__)
    duckdb.execute(f"set threads = {THREADS}")
    rows, others = bench.sized(ROWS, 80_000), bench.sized(OTHERS, 10_000)
    with mn.start(threads=THREADS):
        for word, is_dense in (("from 0 to a million", True), ("of 60 bits", False)):
            join = Work(
                joined(rows, others, is_dense),
                lambda tables: tables[0].merge(tables[1], on="k"),
                lambda frames: frames[0].join(frames[1], on="k"),
                "create or replace table made as select t0.*, w from t0 join t1 using (k)",
                ("v", "w", "g"),
            )
            work = f"{rows:,} rows with {others:,}, keys {word}, inner"
            bench.compare(Claim(f"join on keys {word}", work, TARGET), join.contenders())
        order = Work(
            unordered(rows),
            lambda tables: tables[0].sort_values("v"),
            lambda frames: frames[0].sort("v"),
            "create or replace table made as select * from t0 order by v",
            ("v", "k"),
        )
        work = f"{rows:,} rows of 3 columns, by one of doubles"
        bench.compare(Claim("a table in order", work, TARGET), order.contenders())
        v, k = pl.col("v"), pl.col("k")
        groups = Work(
            unordered(rows),
            lambda tables: (
                tables[0]
                .groupby("g")
                .agg(a=("v", "sum"), b=("v", "mean"), c=("v", "min"), d=("k", "max"), e=("v", "std"))
            ),
            lambda frames: (
                frames[0].group_by("g").agg(a=v.sum(), b=v.mean(), c=v.min(), d=k.max(), e=v.std())
            ),
            "create or replace table made as select g, sum(v) a, avg(v) b, min(v) c, max(k) d, stddev(v) e "
            "from t0 group by g",
            ("a", "b", "c", "d", "e"),
        )
        work = f"{rows:,} rows, {NUM_LABELS} groups: sum, mean, min, max, std"
        bench.compare(Claim("five results of each group", work, TARGET), groups.contenders())
        bench.compare(
            Claim("describe of a long table", f"3 columns of {rows:,} numbers", DESCRIBING),
            [
                Contender(
                    OURS, mn.Table.describe, lambda number: mn.table(unordered(rows)(number)[0]), described
                ),
                Contender(
                    "polars",
                    lambda frame: frame.describe(interpolation="linear"),
                    lambda number: unordered(rows)(number)[0],
                    described,
                ),
            ],
        )


if __name__ == "__main__":
    main()
