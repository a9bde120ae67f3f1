"""Tables against pandas and polars: read, looked at, chosen from, grouped, made matrices, handed over."""

from __future__ import annotations

import datetime
import io
import re
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import matnb as mn
from matnb.errors import ColumnError, DTypeError, MatnbError, OptionError, ShapeError, TooLargeError
from matnb.tables.pandas_names import OF_COLUMNS

# Five tables of the shape of those that tutorials load: text, dates, holes, numbers that are whole or not.
RNG = np.random.default_rng(5)
N = 400
DAYS = pd.date_range("2019-03-01 00:03:11", periods=N, freq="3h7min13s")


def holes(values: object, share: float = 0.1) -> pd.Series:
    """Return a column of which some values are missing."""
    return pd.Series(values).where(RNG.random(N) > share)


TABLES = {
    "trips": pd.DataFrame(
        {
            "pickup": DAYS,
            "dropoff": holes(DAYS + pd.to_timedelta(RNG.integers(60, 5000, N), "s")),
            "people": RNG.integers(0, 6, N),
            "fare": RNG.lognormal(2, 1, N).round(2),
            "payment": holes(RNG.choice(["card", "cash"], N)),
            "zone": RNG.choice(["Île d'Or", "Astoria", "zürich", "東京", "a, b"], N),
        }
    ),
    "bills": pd.DataFrame(
        {"bill": RNG.random(N) * 50, "smoker": RNG.choice(["Yes", "No"], N), "size": RNG.integers(1, 7, N)}
    ),
    "ship": pd.DataFrame(
        {
            "survived": RNG.integers(0, 2, N),
            "age": holes(RNG.random(N) * 80, 0.2),
            "deck": holes(RNG.choice([*"ABCDEFG"], N), 0.7),
            "alone": RNG.random(N) < 0.5,
            "berths": holes(RNG.integers(0, 9, N)).astype("Int64"),
        }
    ),
    "planets": pd.DataFrame(
        {"method": RNG.choice(["Transit", "Imaging"], N), "mass": holes(RNG.random(N), 0.5), "year": 2005}
    ),
    "flights": pd.DataFrame(
        {"year": 1949 + np.arange(N) // 12, "month": np.tile([*"JFMAMJJASOND"], 34)[:N], "n": np.arange(N)}
    ),
}

pytestmark = pytest.mark.session("two threads", compute_limit="1 MB")


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, mn.Table]:
    folder = tmp_path_factory.mktemp("tables")
    for name, frame in TABLES.items():
        frame.to_csv(folder / f"{name}.csv", index=False)
    return {name: mn.load(folder / f"{name}.csv") for name in TABLES}


def same(found: object, expected: pd.Series | pd.DataFrame) -> None:
    """Compare a table or column with pandas', whose missing values and text are written in several ways."""
    frame = expected.to_frame() if isinstance(expected, pd.Series) else expected
    table = found if isinstance(found, mn.Table) else mn.table({frame.columns[0]: found})
    assert list(table.columns) == list(frame.columns)
    for name, values in table.to_arrow().to_pydict().items():
        wanted = [None if pd.isna(one) else one for one in frame[name].tolist()]
        if frame[name].dtype.kind == "f":
            np.testing.assert_allclose(
                np.array(values, float), np.array(wanted, float), rtol=1e-12, err_msg=name
            )
        else:
            assert values == [one.to_pydatetime() if hasattr(one, "nanosecond") else one for one in wanted]


@pytest.mark.parametrize("name", TABLES)
def test_a_file_is_read_as_pandas_does(loaded: dict[str, mn.Table], name: str) -> None:
    table = loaded[name]
    assert len(table) == N
    assert table.shape == TABLES[name].shape
    same(table, TABLES[name])
    same(table.head(3), TABLES[name].head(3))
    same(table.tail(2), TABLES[name].tail(2))


def test_what_columns_are(loaded: dict[str, mn.Table]) -> None:
    dtypes = loaded["trips"].dtypes
    assert list(dtypes.values())[:4] == ["datetime64[us]", "datetime64[us]", "int64", "float64"]
    assert dtypes["zone"] == np.dtypes.StringDType()
    assert loaded["ship"].dtypes["berths"] == np.int64
    assert loaded["ship"]["berths"].may_miss
    assert loaded["ship"].dtypes["alone"] == np.bool_
    assert loaded["trips"]["zone"].labels.to_pylist() == sorted(set(TABLES["trips"]["zone"]))
    assert isinstance(loaded["trips"]["fare"], mn.DistArray)


def test_a_table_shows_its_first_and_last_rows(loaded: dict[str, mn.Table]) -> None:
    table, runs = loaded["trips"], len(mn.history())
    text, html = repr(table), table._repr_mimebundle_()["text/html"]
    assert text.startswith("400 rows x 6 columns\npickup")
    assert "datetime64[us]" in text
    assert str(TABLES["trips"]["fare"][0]) in text
    assert str(TABLES["trips"]["fare"][N - 1]) in html
    assert "..." in text
    assert len(mn.history()) == runs
    lines = repr(mn.table({"a": [1.0, 1e-9, 2 / 3], "b": [7, 12345, 0], "c": ["x", "yy", ""]})).splitlines()
    assert lines[1:] == [
        "       a      b  c",
        " float64  int64  text",
        "     1.0      7  x",
        "   1e-09  12345  yy",
        "0.666667      0",
    ]
    hostile = mn.table({"<b>": ["<script>"]})._repr_mimebundle_()["text/html"]
    assert "<script>" not in hostile
    assert "&lt;b&gt;" in hostile
    wide = mn.table({f"c{place}": [1] for place in range(300)})
    assert len(repr(wide).splitlines()[1]) < 400
    assert table._ipython_key_completions_() == list(TABLES["trips"])


def test_names_that_are_not_there(loaded: dict[str, mn.Table]) -> None:
    table = loaded["trips"]
    with pytest.raises(KeyError, match="no column 'fair'; did you mean 'fare'") as told:
        table["fair"]
    assert isinstance(told.value, MatnbError)
    for call in (lambda: table[["fare", "tip"]], lambda: table.groupby("zon"), lambda: table.dropna(["x"])):
        with pytest.raises(ColumnError, match="no column"):
            call()
    with pytest.raises(AttributeError, match=r"t\['fare'\] is the column"):
        table.fare  # noqa: B018  it is the attribute that raises
    with pytest.raises(AttributeError, match="did you mean 'describe'"):
        table.desribe  # noqa: B018
    with pytest.raises(AttributeError, match="did you mean 'weekday'"):
        table["pickup"].weekdy  # noqa: B018
    with pytest.raises(DTypeError, match="a mask of 400 booleans"):
        table[table["fare"]]
    with pytest.raises(OptionError, match="n=-1"):
        table.head(-1)


def test_rows_and_columns_are_chosen(loaded: dict[str, mn.Table]) -> None:
    table, frame = loaded["trips"], TABLES["trips"]
    same(table[["zone", "fare"]], frame[["zone", "fare"]])
    same(
        table[(table["fare"] > 8) & (table["zone"] != "a, b")],
        frame[(frame.fare > 8) & (frame.zone != "a, b")],
    )
    same(table[table["zone"].isin(["東京", "nowhere"])], frame[frame.zone.isin(["東京", "nowhere"])])
    same(table[table["people"] == 3], frame[frame.people == 3])
    same(table[table["payment"] == "cash"], frame[frame.payment == "cash"])
    same(table[table["payment"] > "card"], frame[frame.payment > "card"])
    same(table[table["payment"] < "cash"], frame[frame.payment < "cash"])
    same(table[table["payment"] != "cash"], frame[frame.payment != "cash"])
    same(table[table["zone"] <= "b"], frame[frame.zone <= "b"])
    same(table[table["zone"] == table["zone"]], frame)
    same(table.dropna(), frame.dropna())
    same(table.dropna(["payment"]), frame.dropna(subset=["payment"]))
    same(table[10:13], frame[10:13])
    same(table[table["pickup"] < "2019-03-05"], frame[frame.pickup < "2019-03-05"])
    later = datetime.datetime(2019, 4, 1, 12)
    same(table[table["dropoff"] >= later], frame[frame.dropoff >= later])
    ship, people = loaded["ship"], TABLES["ship"]
    same(ship[ship["berths"] > 4], people[(people.berths > 4).fillna(False)])
    same(ship[ship["berths"].isna()], people[people.berths.isna()])
    with pytest.raises(DTypeError, match="compared with 3"):
        table["zone"] == 3  # noqa: B015


def test_times(loaded: dict[str, mn.Table]) -> None:
    table, frame = loaded["trips"], TABLES["trips"]
    for name in ("year", "month", "day", "hour", "minute", "second"):
        np.testing.assert_array_equal(
            np.asarray(getattr(table["dropoff"], name)), getattr(frame.dropoff.dt, name), err_msg=name
        )
    np.testing.assert_array_equal(np.asarray(table["pickup"].weekday), frame.pickup.dt.day_of_week)
    took = table["dropoff"] - table["pickup"]
    expected = frame.dropoff - frame.pickup
    assert took.dtype == np.dtype("timedelta64[us]")
    np.testing.assert_array_equal(np.asarray(took.total_seconds()), expected.dt.total_seconds())
    same(table["pickup"] + took, frame.dropoff.rename("pickup"))
    same(table["pickup"] + np.timedelta64(90, "m"), frame.pickup + pd.Timedelta(minutes=90))
    same(table["pickup"] - datetime.timedelta(days=2), frame.pickup - pd.Timedelta(days=2))
    for unit, period in (("day", "D"), ("hour", "h"), ("minute", "min")):
        same(table["dropoff"].truncate(unit), frame.dropoff.dt.floor(period))
    for unit, period in (("month", "M"), ("year", "Y")):
        starts = frame.pickup.dt.to_period(period).dt.start_time
        same(table["pickup"].truncate(unit), starts.rename("pickup"))
    with pytest.raises(OptionError, match="unit 'weeks'"):
        table["pickup"].truncate("weeks")
    with pytest.raises(DTypeError, match="give a duration"):
        table["pickup"] + table["pickup"]


def test_years_of_all_times_numpy_knows() -> None:
    days = np.arange(-800_000, 3_000_000, 97).astype("datetime64[D]")
    column = mn.table({"d": pa.array(days)})["d"]
    np.testing.assert_array_equal(column.year.compute(), days.astype("datetime64[Y]").astype(int) + 1970)
    months = days.astype("datetime64[M]")
    np.testing.assert_array_equal(column.month.compute(), months.astype(int) % 12 + 1)
    np.testing.assert_array_equal(column.day.compute(), (days - months).astype(int) + 1)
    np.testing.assert_array_equal(column.truncate("month").compute(), months.astype(days.dtype))


@pytest.mark.parametrize(
    "method", ["count", "sum", "mean", "std", "min", "max", "median", "nunique", "first", "last"]
)
def test_groups(loaded: dict[str, mn.Table], method: str) -> None:
    ship, frame = loaded["ship"], TABLES["ship"]
    names = ["age", "survived", "berths"]
    found = getattr(ship.groupby("deck")[names], method)()
    expected = getattr(frame.astype({"berths": float}).groupby("deck")[names], method)().reset_index()
    assert found.columns == ("deck", *names)
    assert found.to_arrow()["deck"].to_pylist() == expected["deck"].tolist()
    for name in names:
        np.testing.assert_allclose(
            np.asarray(found[name], float), expected[name].to_numpy(float), rtol=1e-12, err_msg=name
        )
    trips, frame = loaded["trips"], TABLES["trips"]
    same(
        getattr(trips.groupby(["zone", "payment"])["fare"], method)(),
        getattr(frame.groupby(["zone", "payment"])["fare"], method)().reset_index(),
    )
    if method in ("count", "min", "max", "nunique", "first", "last"):
        same(
            getattr(trips.groupby("people")[["payment", "dropoff"]], method)(),
            getattr(frame.groupby("people")[["payment", "dropoff"]], method)().reset_index(),
        )


def test_groups_of_which_every_value_is_missing() -> None:
    frame = pd.DataFrame({"key": [*"aabb"], "x": [np.nan, np.nan, 1, 2], "text": [None, None, "u", "v"]})
    frame["when"] = pd.to_datetime([None, None, "2020-01-02", "2020-01-01"])
    table = mn.table(frame)
    for method in ("min", "max", "first", "last", "count", "nunique"):
        same(getattr(table.groupby("key"), method)(), getattr(frame.groupby("key"), method)().reset_index())
    for method in ("sum", "mean", "std", "median"):
        found = getattr(table.groupby("key")["x"], method)()
        same(found, getattr(frame.groupby("key")["x"], method)().reset_index())


def test_sizes_of_groups_and_counts_of_values(loaded: dict[str, mn.Table]) -> None:
    trips, frame = loaded["trips"], TABLES["trips"]
    same(trips.groupby("zone").size(), frame.groupby("zone").size().reset_index(name="size"))
    same(
        trips[trips["people"] < 0].groupby("zone").size(),
        pd.DataFrame({"zone": [], "size": []}, dtype=object),
    )
    counts = frame["payment"].value_counts().reset_index()
    same(trips.value_counts("payment"), counts)
    same(trips["payment"].value_counts(), counts)
    same(trips.groupby("zone")["fare"].mean(), frame.groupby("zone")["fare"].mean().reset_index())
    with pytest.raises(DTypeError, match=r"mean of column 'payment', which is not numeric.*'fare'"):
        trips.groupby("zone")["payment"].mean()
    with pytest.raises(AttributeError, match="did you mean 'median'"):
        trips.groupby("zone").medan  # noqa: B018


def test_described_as_pandas_and_polars_do(loaded: dict[str, mn.Table]) -> None:
    for table, frame in (
        (loaded["ship"], TABLES["ship"]),
        (loaded["bills"][["bill", "size"]], TABLES["bills"]),
    ):
        found = table.describe()
        assert found.columns == ("statistic", *table.columns)
        expected = frame[[*table.columns]].describe(include="all")
        rows = found["statistic"].compute().tolist()
        assert sorted(rows) == sorted(expected.index)
        assert rows[:8] == ["count", "mean", "std", "min", "25%", "50%", "75%", "max"]
        for name in table.columns:
            wanted = expected.loc[rows, name]
            if table.dtypes[name].kind in "iuf":
                np.testing.assert_allclose(found[name].compute(), wanted.to_numpy(float), rtol=1e-12)
            else:
                texts = [np.nan if pd.isna(one) else str(one) for one in wanted]
                assert found[name].compute().tolist() == texts


def test_times_described_as_pandas_does(loaded: dict[str, mn.Table]) -> None:
    frame = TABLES["trips"].assign(ride=TABLES["trips"]["dropoff"] - TABLES["trips"]["pickup"])
    names = ["pickup", "dropoff", "ride"]
    expected = frame[names].describe(include="all")
    found = mn.table(frame[names]).describe()
    rows = found["statistic"].compute().tolist()
    for name in names:
        for row, text in zip(rows, found[name].compute().tolist(), strict=True):
            wanted = expected.loc[row, name]
            if row == "count":
                assert text == str(int(wanted))
            elif row == "std" and name != "ride":
                assert text is np.nan
            elif name == "ride":
                assert abs(pd.Timedelta(text) - wanted) <= pd.Timedelta(1, "us")
            else:
                assert abs(pd.Timestamp(text) - wanted) <= pd.Timedelta(1, "us")
    # Half days between dates, and times of which doubles do not hold the nanoseconds.
    days = mn.table({"day": pa.array(np.array(["2020-01-01", "2020-01-02"], "datetime64[D]"))}).describe()
    assert days["day"].compute().tolist()[5] == "2020-01-01 12:00:00"
    late = np.array(["2200-01-01T00:00:00.000000001"] * 3, "datetime64[ns]")
    texts = mn.table({"late": late}).describe()["late"].compute().tolist()
    assert texts[1] == texts[7] == "2200-01-01 00:00:00.000000001"
    none = mn.table({"when": pa.nulls(2, pa.timestamp("us")), "what": pa.nulls(2, pa.string())}).describe()
    assert none["when"].compute().tolist() == ["0", *[np.nan] * 10]
    assert none["what"].compute().tolist() == ["0", *[np.nan] * 7, "0", np.nan, np.nan]


def test_matrices(loaded: dict[str, mn.Table]) -> None:
    ship, frame = loaded["ship"], TABLES["ship"]
    expected = frame[["age", "berths", "alone"]].astype(float).to_numpy()
    np.testing.assert_array_equal(ship.to_matrix(["age", "berths", "alone"]).compute(), expected)
    np.testing.assert_array_equal(mn.asarray(ship[["age", "berths", "alone"]]).compute(), expected)
    np.testing.assert_array_equal(np.asarray(ship[["age", "berths", "alone"]]), expected)
    with pytest.raises(DTypeError, match=r"'deck' is text, not numeric; to_matrix\(\['survived', 'age'"):
        ship.to_matrix()
    trips, frame = loaded["trips"], TABLES["trips"]
    found = trips.pivot("zone", "people", "fare")
    expected = frame.pivot_table(index="zone", columns="people", values="fare", aggfunc="sum").fillna(0)
    assert found.sparse
    assert found.row_labels.tolist() == expected.index.tolist()
    assert found.column_labels.tolist() == expected.columns.tolist()
    np.testing.assert_allclose(np.asarray(found), expected.to_numpy(), rtol=1e-12)
    counts = trips.pivot("zone", "payment")
    np.testing.assert_array_equal(np.asarray(counts), pd.crosstab(frame["zone"], frame["payment"]))
    most = frame.pivot_table(index="zone", columns="people", values="fare", aggfunc="max").fillna(0)
    np.testing.assert_array_equal(np.asarray(trips.pivot("zone", "people", "fare", combine="max")), most)


def test_whole_numbers_with_holes_in_numpys_functions(loaded: dict[str, mn.Table]) -> None:
    column, expected = loaded["ship"]["berths"], TABLES["ship"]["berths"].to_numpy(float, na_value=np.nan)
    np.testing.assert_array_equal((column * 2 + 1).compute(), expected * 2 + 1)
    np.testing.assert_array_equal(
        (loaded["ship"]["age"] + column).compute(), TABLES["ship"]["age"] + expected
    )
    np.testing.assert_array_equal(np.isnan(column).compute(), np.isnan(expected))
    for name in ("sum", "mean", "min", "max", "std"):
        options = {"ddof": 0} if name == "std" else {}  # pandas' is 1
        np.testing.assert_allclose(
            float(getattr(column, name)(**options)), getattr(np, f"nan{name}")(expected)
        )


def test_frames_of_others_come_in_and_go_out(loaded: dict[str, mn.Table]) -> None:
    frame = pl.from_pandas(TABLES["trips"])
    table = mn.table(frame)
    same(table, TABLES["trips"])
    assert table.to_polars().with_columns(pl.col("zone", "payment").cast(pl.String)).equals(frame)
    assert pl.DataFrame(table).shape == frame.shape
    assert pa.table(table).num_rows == N
    same(mn.table(TABLES["ship"]), TABLES["ship"])
    same(mn.table(TABLES["bills"].to_dict("list")), TABLES["bills"])
    for names in (["people", "fare"], list(table.columns)):  # pandas would number the columns
        with pytest.raises(mn.errors.UnsupportedError, match=r"t\.to_pandas\(\) is a DataFrame"):
            pd.DataFrame(table[names])
    assert pd.DataFrame({"zone": table["zone"]})["zone"].tolist() == TABLES["trips"]["zone"].tolist()
    pandas = loaded["bills"].to_pandas()
    pd.testing.assert_frame_equal(pandas.astype({"smoker": TABLES["bills"]["smoker"].dtype}), TABLES["bills"])
    chunks = pa.chunked_array([["b", "a"], ["c", None]])
    same(mn.table({"x": chunks}), pd.DataFrame({"x": ["b", "a", "c", None]}))
    with pytest.raises(DTypeError, match="'x' is of type list"):
        mn.table({"x": [[1], [2]]})
    with pytest.raises(ShapeError, match="'y' has 1 rows where others have 2"):
        mn.table({"x": [1, 2], "y": [1]})
    with pytest.raises(DTypeError, match="__arrow_c_stream__"):
        mn.table(3)


def test_duckdb_relations_come_in() -> None:
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    same(mn.table(duckdb.sql("select 1 as a, 'x' as b")), pd.DataFrame({"a": [1], "b": ["x"]}))


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".feather", ".csv"])
def test_tables_are_saved_and_come_back(loaded: dict[str, mn.Table], tmp_path: Path, suffix: str) -> None:
    mn.save(loaded["trips"], tmp_path / f"a{suffix}")
    same(mn.load(tmp_path / f"a{suffix}"), TABLES["trips"])
    with pytest.raises(OptionError, match=r"no writer of tables for suffix '\.npz'"):
        mn.save(loaded["trips"], tmp_path / "a.npz")
    assert [one.name for one in tmp_path.iterdir()] == [f"a{suffix}"]


def test_what_is_too_large_stays_on_the_workers() -> None:
    table = mn.table({"x": np.arange(100_000.0), "y": np.arange(100_000)})
    for take in (mn.Table.to_arrow, mn.Table.to_pandas, mn.Table.to_polars, np.asarray, pl.DataFrame):
        with pytest.raises(TooLargeError, match="1 MB"):
            take(table)
    assert table[:10].to_arrow().num_rows == 10


@pytest.mark.parametrize("name", ["age", "alone", "berths", "survived"])
def test_values_of_groups_are_segments(name: str) -> None:
    frame = TABLES["ship"]
    groups, there = mn.table(frame).groupby("deck"), frame[frame["deck"].notna()]
    expected = there.groupby("deck")[name].apply(lambda values: values.dropna().tolist())
    for found in (groups.nested(name), groups[name].nested()):
        assert found.tolist() == expected.tolist()
    assert expected.index.tolist() == groups.size()["deck"].compute().tolist()


def test_what_no_segments_are_made_of() -> None:
    groups = mn.table(TABLES["trips"]).groupby("zone")
    for name in ("payment", "pickup"):
        with pytest.raises(DTypeError, match=rf"nested of column '{name}', .*t\['{name}'\]\.codes"):
            groups.nested(name)
    with pytest.raises(OptionError, match="nested of 2 columns: give the name of one"):
        groups[["people", "fare"]].nested()
    with pytest.raises(ColumnError, match="no column 'fares'"):
        groups.nested("fares")
    for given in (["people", "fare"], mn.table(TABLES["trips"])["fare"]):
        with pytest.raises(OptionError, match=f"nested of a {type(given).__name__}: give the name"):
            groups.nested(given)


@pytest.mark.parametrize("use", ["pivot", "dropna", "groupby"])
def test_a_table_with_an_added_column_stays_as_it_is_when_it_is_used(use: str) -> None:
    frame = pd.DataFrame({"zone": ["a", None, "b"], "day": [1, 1, 2], "fare": [1.0, 2.0, 3.0]})
    table = mn.table(frame).with_columns(hour=mn.asarray(np.array([4, 5, 6])))
    if use == "pivot":
        table.pivot("zone", "hour", "fare")
    elif use == "dropna":
        table.dropna(["zone"])
    else:
        table.groupby("zone").size()
    assert table.pivot("zone", "day", "fare").shape == (2, 2)
    assert table.dropna().shape == (2, 4)
    sizes = table.groupby("zone").size().to_pandas()
    assert sizes.set_index("zone")["size"].to_dict() == frame.groupby("zone").size().to_dict()


def test_a_column_shows_the_values_that_its_table_shows() -> None:
    table = mn.table({"zone": ["a, b", None, "x" * 90], "people": [1, None, 3]})
    assert repr(table["zone"]) == f"'a, b', missing, '{'x' * 21}...'\ncolumn 'zone' of 3 x text"
    assert repr(table["people"]) == "1, missing, 3\ncolumn 'people' of 3 x int64 or missing"
    assert repr(table["zone"][:2]) == "'a, b', missing\ncolumn of 2 x text"
    assert repr(mn.table({"a": ["", "b"]})["a"]) == "'', 'b'\ncolumn 'a' of 2 x text"
    assert repr(mn.table({"a": ["", None]})["a"]).startswith("'' or missing, '' or missing\n")
    long = mn.table({"zone": [f"{i:02d}" for i in range(30)]})
    assert repr(long["zone"]).startswith("'00', '01', '02', '03', '04', ..., '25', '26', '27', '28', '29'\n")


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda t: t.query("fare > 5"), 'write t[(t["fare"] > 5) & (t["zone"] == "a")], with brackets'),
        (lambda t: t.melt("fare"), "do it in pandas or polars"),
        (lambda t: t.insert(0, "a", 1), "write t.with_columns(name=values)"),
        (lambda t: t.colunms, "did you mean 'columns'?"),
        (lambda t: t["zone"].str.findall("a"), "x.str has no attribute 'findall'; write x.str.count(pat)"),
        (lambda t: t["zone"].apply(len), "write x.map(fn)"),
        (lambda t: t.groupby("zone").apply(len), 'write groups'),
        (lambda t: t.groupby("zone").meen(), "did you mean 'mean'?"),
    ],
)  # fmt: skip
def test_names_of_other_libraries_lead_to_what_a_table_has(use: object, words: str) -> None:
    table = mn.table({"zone": ["a", "b"], "fare": [1.0, 2.0]})
    with pytest.raises(AttributeError, match=re.escape(words)):
        use(table)


def test_a_column_is_added_by_with_columns() -> None:
    table = mn.table({"fare": [1.0, 2.0]})
    with pytest.raises(mn.errors.UnsupportedError, match=r"write t = t\.with_columns\(tip=values\)"):
        table["tip"] = table["fare"]
    assert table.columns == ("fare",)


def test_spaces_of_a_label_are_seen_and_a_label_stays_on_its_line() -> None:
    page = mn.table({"zone": [" Bronx", "a\r\n\tb"]})._repr_mimebundle_()["text/html"]
    assert re.search(r'<td style="[^"]*white-space:pre;[^"]*"> Bronx</td>', page)
    assert ">a   b</td>" in page


def test_a_column_without_a_value_in_one_file_is_of_any_kind_in_others(tmp_path: Path) -> None:
    import pyarrow.parquet

    columns = {
        "text": pa.array(["u", None]),
        "number": pa.array([1, 2]),
        "float": pa.array([0.5, 1.5]),
        "flag": pa.array([True, False]),
        "when": pa.array([0, 5], pa.timestamp("us")),
        "none": pa.nulls(2),
    }
    whole = pa.table({"key": ["a", "b"], **columns})
    none = pa.table({"key": ["c"], **{name: pa.nulls(1) for name in columns}})
    for order in ((whole, none), (none, whole), (none, none)):
        for number, one in enumerate(order):
            pyarrow.parquet.write_table(one, tmp_path / f"{number}.parquet")
        found = mn.load(tmp_path).to_arrow().to_pydict()
        for name, values in found.items():
            assert values == [value for one in order for value in one[name].to_pylist()]


@pytest.mark.parametrize(
    "dtype",
    [f"M8[{one}]" for one in ("Y", "M", "W", "D", "h", "m", "s", "ns")]
    + [f"m8[{one}]" for one in ("W", "D", "h", "m", "s", "us")],
)
def test_times_of_every_unit_of_numpy_are_columns(dtype: str) -> None:
    times = np.array([5, 700, "NaT"], dtype)
    found = np.asarray(mn.table({"at": times})["at"].compute())
    np.testing.assert_array_equal(found[:2], times[:2])
    assert np.isnat(found[2])


def test_times_without_a_length_are_refused() -> None:
    for times in (np.array([1, 2], "m8[Y]"), np.array([1, 2], "m8")):
        with pytest.raises(mn.errors.DTypeError, match="column 'at' is not a column of a table"):
            mn.table({"at": times})


def test_up_to_sixty_rows_are_shown() -> None:
    assert "..." not in repr(mn.table({"a": np.arange(60)}))
    assert repr(mn.table({"a": np.arange(61)})).count("...") == 1


def test_a_table_is_written_to_an_open_file() -> None:
    table = mn.table({"day": ["a", "b"], "cost": [1.5, None]})
    written, expected = io.StringIO(), io.StringIO()
    table.to_csv(written, sep=";", decimal=",")
    table.to_pandas().to_csv(expected, sep=";", decimal=",", index=False)
    assert written.getvalue() == expected.getvalue()
    with pytest.raises(OptionError, match=r"pandas.read_csv\(file\)"):
        mn.load(written)  # type: ignore[arg-type]  # what is tried


def test_numbers_have_no_texts_methods_and_name_none_of_pythons_own() -> None:
    with pytest.raises(AttributeError, match=r"'contains'; help\(x\) lists what there is"):
        _ = mn.table({"x": [1, 2]})["x"].contains


@pytest.mark.parametrize(
    ("values", "accessor"),
    [
        (pd.Series(["a", "b"]), "str"),
        (pd.Series(pd.to_datetime(["2024-01-02", "2024-02-03"])), "dt"),
        (pd.Series(pd.to_timedelta([1, 2], "s")), "dt"),
    ],
)
def test_what_an_accessor_has_is_named_where_the_column_has_it_not(values: pd.Series, accessor: str) -> None:
    column = mn.table({"x": values})["x"]
    owner = getattr(column, accessor)
    names = [one for one in dir(getattr(values, accessor)) if one in dir(owner) and not hasattr(values, one)]
    own = OF_COLUMNS[{"text": "text"}.get(column._word(), str(column.dtype).partition("[")[0])]
    missing = [one for one in names if not (one.startswith("_") or one in dir(column) or one in own)]
    assert len(missing) > 1
    for name in missing:
        with pytest.raises(AttributeError, match=rf"write .*x\.{accessor}\.{name}\b") as told:
            getattr(column, name)
        if str(told.value).endswith("()"):
            eval(str(told.value).partition("; write ")[2], {"x": column})
    for name in {"day_name", "quarter", "days"} - set(names):
        with pytest.raises(AttributeError) as told:
            getattr(column, name)
        assert f".{name}" not in str(told.value)
