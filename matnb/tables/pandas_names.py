"""What pandas and polars call what a table has under another name, and what to write instead."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping

from matnb.errors import meant, near_name, no_attribute, ways
from matnb.lazy.foreign_names import CUT, QCUT

# Zeros and ones, sparse, with a column for each value; rows without one are there, too.
ONE_HOT = 't.with_columns(row=np.arange(len(t))).pivot("row", "zone", row_labels=np.arange(len(t)))'
OF_TABLES = ways(
    {
        "to_graph to_networkx to_edgelist": (
            'mn.asarray(nx.from_pandas_edgelist(t.to_pandas(), "src", "dst", create_using=nx.DiGraph))'
        ),
        "persist": 't["fare"].persist(), a column at a time', "npartitions partitions": 't["fare"].layout',
        "repartition": 'mn.repartition(t["fare"], n), though matnb cuts by itself',
        "map_partitions": 'mn.map_blocks(fn, t["fare"])',
        "schema": "t.dtypes, or t.describe() for counts and quartiles", "is_null": "t.isna()",
        "row rows": "t.iloc[number], t[mask] or t.head(n)", "filter where": 't[t["fare"] > 5]',
        "query eval": 't[(t["fare"] > 5) & (t["zone"] == "a")], with brackets around each condition',
        "insert with_column": "t.with_columns(name=values)", "pop": 't["name"], and t.drop(columns="name")',
        "drop_nulls": "t.dropna(columns)", "fill_null": "t.fillna(value)", "fill_nan": "t.fillna(value)",
        "pivot_table": 't.pivot("zone", "hour", "fare", combine="mean"), or another aggfunc as combine; '
        "pairs without rows are not stored, and are NaN in frames: "
        't.pivot("zone", "hour", "fare", combine="mean").to_pandas()',
        "get_dummies to_dummies": ONE_HOT,
        "crosstab": 't.pivot("zone", "hour")', "unstack": 't.pivot("zone", "hour", "fare")',
        "sort_index": 't.sort_values("zone"), by the column that is the index in pandas',
        "reindex": 't.to_pandas().set_index("id").reindex(values), by the column that is the index there',
        "values": "t.to_numpy(), or t.to_matrix(columns)", "group_by": "t.groupby(columns)",
        "write_parquet write_csv to_json to_excel to_sql to_hdf": "mn.save(t, path), or t.to_pandas()",
        "n_unique": "len(t.drop_duplicates())", "height": "len(t)", "width": "len(t.columns)",
        "iterrows itertuples iter_rows": "t.to_pandas().itertuples(); column arithmetic needs no loop",
        "sort": 't.sort_values(columns, na_position="first"), as polars does, or t.sort_values(columns)',
        "top_k": "t.nlargest(n, columns)",
        "resample": 't.groupby("pickup", freq="D"), without steps that no row has',
        "bottom_k": "t.nsmallest(n, columns)", "join": 't.merge(other, on="zone", how="left")',
        "set_index index": 't[t["id"] == value]: a table has no index, and rows are picked by their values',
        "append extend vstack": "mn.concat([t, u])", "T transpose": "t.to_matrix(columns).T",
        "apply applymap transform map": 't["fare"] * 2, np.log(t["fare"]) or t["zone"].map(fn)',
        "agg aggregate": "t.describe(), t.mean() and the like",
        "cumsum": 't["fare"].cumsum(), a column at a time', "cumprod": 't["fare"].cumprod()',
        "cummax": 't["fare"].cummax()', "cummin": 't["fare"].cummin()',
        "rank": 't["fare"].rank(), a column at a time',
        "shift": 't["fare"].shift(1), a column at a time', "diff": 't["fare"].diff()',
        "pct_change": 't["fare"] / t["fare"].shift(1) - 1', "mode": 't["zone"].mode()',
        "unique": 't["zone"].unique(), or t.drop_duplicates(columns)', "rolling": 'mn.rolling(t["fare"], n)',
        "interpolate": 't["fare"].to_pandas().interpolate(), or t.ffill()', "get": 't["fare"]',
        "plot": "mn.plot(t), lines over times and bars over text and for counts",
        "hist": 'plt.hist(t["fare"])', "boxplot": 'plt.boxplot(t["fare"].dropna())',
        "compute": "t.to_pandas()", "hvplot": "t.to_pandas().hvplot, after import hvplot.pandas",
        "idxmax": 't["fare"].idxmax()', "idxmin": 't["fare"].idxmin()', "memory_usage": 't["fare"].nbytes',
        "add_prefix": 't.rename(columns=lambda name: "x_" + name)',
        "add_suffix": 't.rename(columns=lambda name: name + "_x")',
        "skew kurt kurtosis sem": 'scipy.stats.skew(t["fare"].dropna().to_numpy(), bias=False) and the like',
    }
)  # fmt: skip

_ELSEWHERE = "melt unpivot stack explode join_asof lookup xs wide_to_long"
OF_TABLES |= dict.fromkeys(
    _ELSEWHERE.split(), "do it in pandas or polars, from t.to_pandas() or t.to_polars(), then mn.table(frame)"
)

_OF_ALL_COLUMNS = ways(
    {
        "is_null": "x.isna()", "is_not_null": "x.notna()", "is_in": "x.isin(values)",
        "n_unique": "x.nunique(dropna=False)",
        "is_between": "x.between(left, right)", "values": "x.to_numpy()",
        "cast": "x.astype(dtype)", "fill_null": "x.fillna(value)", "drop_nulls": "x.dropna()",
        "apply": "x.map(fn)", "iloc loc iat at": "x[3], x[:5], x[mask], or x[[3, 1]]", "take": "x[[3, 1]]",
        "drop_duplicates": "x.unique()", "to_dict": "dict(enumerate(x))", "to_frame": "mn.table({name: x})",
        "index": "np.arange(len(x))", "reindex": "x[[3, 1]]",
        "sort_index": "x itself, which is in the order of its rows",
        "groupby": 't.groupby("zone")',
        "sort": 'x.sort_values(na_position="first"), as polars does, or x.sort_values()',
        "top_k": "x.nlargest(n)",
        "bottom_k": "x.nsmallest(n)",
        "rename alias": 't.rename(columns={"zone": "new"})',
        "eq": "x == value", "ne": "x != value", "lt": "x < value", "le": "x <= value",
        "gt": "x > value", "ge": "x >= value",
    }
)  # fmt: skip
_OPERATORS = ways(
    {
        "add radd": "x + value", "sub": "x - value", "rsub": "value - x", "mul rmul": "x * value",
        "div truediv": "x / value", "rdiv rtruediv": "value / x", "floordiv": "x // value",
        "mod": "x % value", "pow": "x ** value",
    }
)  # fmt: skip
_CLOCK = "year month day hour minute second weekday strftime date tz_convert tz tz_localize"
# Of columns of each kind, by what their dtypes begin with: what a way names must be there.
OF_COLUMNS = {
    "text": _OF_ALL_COLUMNS | ways(
        {
            f"dt {_CLOCK}": "x.to_datetime(format).dt, of text that has times",
            "categories cat": "x.unique(), or x.codes", "floor round ceil": "np.floor(x.to_float())",
            "plot hist": 'mn.plot(x.value_counts()["count"])',
            "persist layout nbytes": "x.codes, numbers that stand for texts; -1 where one is missing",
        }
    ),
    "datetime64": _OF_ALL_COLUMNS | ways(
        {
            "str": "x.dt.strftime(format).str", "categories cat": "x.unique()",
            "floor": "x.dt.floor(freq)", "round": '(x + np.timedelta64(30, "m")).dt.floor("h"), for hours',
            "ceil": '(x - np.timedelta64(1, "us")).dt.floor("h") + np.timedelta64(1, "h"), for hours',
            "strftime": "x.dt.strftime(format)", "date": 'x.to_unit("D")',
            "tz_convert": "x.dt.tz_convert(name)", "tz": "x.dt.tz", "tz_localize": "x.dt.tz_localize(name)",
            "plot hist": 'mn.plot(x.dt.hour), or mn.plot of another number',
            "persist layout nbytes": "x.codes, units since 1970; the least int64 where one is missing",
        }
    ),
    "timedelta64": _OF_ALL_COLUMNS | ways(
        {
            "str": "x.map(str)", "categories cat": "x.unique()", "floor round ceil": "x.dt.floor(freq)",
            f"{_CLOCK}": "x.dt.days, x.dt.seconds or x.dt.total_seconds(): these are durations",
            "plot hist": "mn.plot(x.dt.total_seconds())",
            "persist layout nbytes": "x.codes, units; the least int64 where one is missing",
        }
    ),
    "": _OF_ALL_COLUMNS | _OPERATORS | ways(
        {
            f"dt {_CLOCK}": 'x.to_datetime("%Y%m%d").dt, of numbers such as 20240131',
            "str": "x.map(str).str", "categories cat": "x.unique()",
            "floor": "np.floor(x)", "round": "np.round(x)", "ceil": "np.ceil(x)",
            "plot": "mn.plot(x)", "hist": "plt.hist(x)", "cut": CUT, "qcut": QCUT, "cov": "t.cov()",
            "rolling": "mn.rolling(x, n), or mn.rolling(x, n, min_periods=1) of the values that are there",
            "unstack": 't.pivot("zone", "hour", "fare")',
            "interpolate": "x.to_pandas().interpolate(), or x.ffill()",
            "persist layout nbytes": "x.dropna(), an array of the numbers that are there",
        }
    ),
}  # fmt: skip

OF_TIMES = ways(
    {
        "round": '(x + np.timedelta64(30, "m")).dt.floor("h"), for hours', "time": "x - x.dt.normalize()",
        "to_period": 'x.dt.floor("MS")', "to_pydatetime": "x.to_numpy().astype(object)",
        "week weekofyear": 'x.dt.isocalendar()["week"]', "components": "x.dt.days and x.dt.seconds",
        "daysinmonth": "x.dt.days_in_month", "nanosecond": "x.to_pandas().dt.nanosecond",
        "ceil": '(x - np.timedelta64(1, "us")).dt.floor("h") + np.timedelta64(1, "h"), for hours',
        "truncate": "x.dt.floor(freq)",
        "as_unit": "x.to_unit(unit)",
    }
)  # fmt: skip

OF_TEXTS = ways(
    {
        "join": "x.map(sep.join)",
        "findall extractall": "x.str.count(pat), or x.str.extract(pat) for the first",
        "encode decode": "[text.encode() if isinstance(text, str) else None for text in x], a list",
        "wrap": "x.map(textwrap.fill)", "translate": "x.map(lambda text: text.translate(table))",
        "get_dummies to_dummies": ONE_HOT,
        "to_datetime strptime to_date": "x.to_datetime(format)", "to_integer": "x.to_int()",
        "to_lowercase": "x.str.lower()", "to_uppercase": "x.str.upper()", "strip_chars": "x.str.strip()",
        "starts_with": "x.str.startswith(text)", "ends_with": "x.str.endswith(text)",
        "len_chars": "x.str.len()", "replace_all": "x.str.replace(old, new)", "to_titlecase": "x.str.title()",
    }
)  # fmt: skip

# The rows themselves, where pandas gives their numbers.
_LARGEST = 't.dropna("tip").sort_values("tip", ascending=False).groupby("zone")'
_SMALLEST = 't.dropna("tip").sort_values("tip").groupby("zone")'
_ELSEWHERE_OF_GROUPS = "rolling expanding ewm corr corrwith cov skew kurt sem any all ohlc boxplot"
OF_GROUPS = dict.fromkeys(
    _ELSEWHERE_OF_GROUPS.split(), 'do it in pandas, from t.to_pandas().groupby("zone"), then mn.table(frame)'
) | ways(
    {
        "apply pipe map": 'groups["tip"].agg(["mean", "max"]), or a loop: for key, rows in groups',
        "resample": 't.with_columns(day=t["pickup"].dt.floor("D")).groupby(["zone", "day"]), '
        "without steps that no row has",
        "groups indices": "{key: rows for key, rows in groups}",
        "describe": 'groups["tip"].agg(["count", "mean", "std", "min", "median", "max"])',
        "nlargest": 't.sort_values("tip", ascending=False).groupby("zone").head(n)',
        "nsmallest": 't.sort_values("tip").groupby("zone").head(n)',
        "sample": 't.sample(frac=1).groupby("zone").head(n)', "nth": "t[groups.cumcount() == n]",
        "idxmax": f"{_LARGEST}.head(1)", "idxmin": f"{_SMALLEST}.head(1)",
        "fillna": 't["tip"].fillna(groups["tip"].transform("mean")), or groups["tip"].ffill()',
        "unique": 't.drop_duplicates(["zone", "tip"])',
        "pct_change": 't["tip"] / groups["tip"].shift(1) - 1',
        "filter": 't[t.groupby("zone")["tip"].transform("size") > 10]',
        "plot hist": 'mn.plot(groups["tip"].mean())',
        "value_counts": 't.groupby(["zone", "tip"]).size()',
        "unstack": 't.pivot("zone", "hour", "fare", combine="mean")',
    }
)  # fmt: skip


def no_table_name(
    owner: str, name: str, ways: Mapping[str, str], known: Callable[[], Iterable[str]]
) -> AttributeError:
    """Return the error for an attribute that a table, a column or groups lack, with what to write instead."""

    own = {"a table": "t", "TableGroups": "groups"}.get(owner, owner if owner[0] == "x" else "x")

    def instead() -> str:
        if name in ways:
            return ways[name]
        # What pandas has is another thing than a name that is only like it.
        pandas, near = sys.modules.get("pandas"), near_name(name, known())
        is_spelled_so = near is not None and near.replace("_", "") == name.replace("_", "")
        kind = {"a table": "DataFrame", "x.str": "", "x.dt": "", "TableGroups": ""}.get(owner, "Series")
        if not is_spelled_so and kind and hasattr(getattr(pandas, kind, None), name):
            return f"do it in pandas: {own}.to_pandas().{name}"
        return meant(name, known()) or f"help({own}) lists what there is"

    return no_attribute(owner, name, instead=instead)
