"""What pandas and polars call what a table has under another name, and what to write instead."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from matnb.errors import meant, no_attribute, ways

OF_TABLES = ways(
    {
        "persist": 't["fare"].persist(), a column at a time', "npartitions partitions": 't["fare"].layout',
        "repartition": 'mn.repartition(t["fare"], n), though matnb cuts by itself',
        "map_partitions": 'mn.map_blocks(fn, t["fare"])',
        "schema": "t.dtypes, or t.describe() for counts and quartiles", "is_null": "t.isna()",
        "at iat row rows": "t.iloc[number], t[mask] or t.head(n)", "filter where": 't[t["fare"] > 5]',
        "query eval": 't[(t["fare"] > 5) & (t["zone"] == "a")], with brackets around each condition',
        "insert with_column": "t.with_columns(name=values)", "pop": 't["name"], and t.drop(columns="name")',
        "drop_nulls": "t.dropna(columns)", "fill_null": "t.fillna(value)", "fill_nan": "t.fillna(value)",
        "pivot_table crosstab": "t.pivot(rows, columns, values)", "unpivot": "t.melt in polars",
        "values": "t.to_numpy(), or t.to_matrix(columns)", "group_by": "t.groupby(columns)",
        "write_parquet write_csv to_json to_excel to_sql to_hdf": "mn.save(t, path), or t.to_pandas()",
        "n_unique": "t.nunique()", "height": "len(t)", "width": "len(t.columns)",
        "iterrows itertuples iter_rows": "t.to_pandas().itertuples(); column arithmetic needs no loop",
        "sort": "t.sort_values(columns, ascending=False)", "top_k": "t.nlargest(n, columns)",
        "resample": 't.groupby("pickup", freq="D")',
        "bottom_k": "t.nsmallest(n, columns)", "join": 't.merge(other, on="zone", how="left")',
        "set_index index": 't[t["id"] == value]: a table has no index, and rows are picked by their values',
        "append extend vstack": "mn.concat([t, u])", "T transpose": "t.to_matrix(columns).T",
        "apply applymap transform": 't["fare"] * 2, np.log(t["fare"]) or t["zone"].map(fn)',
        "agg aggregate": "t.describe(), t.mean() and the like",
        "cumsum cumprod cummax cummin rank": 'np.cumsum(t["fare"]) and the like, a column at a time',
        "shift diff pct_change": 't["fare"].shift(1), a column at a time', "mode": 't["zone"].mode()',
        "unique": 't["zone"].unique(), or t.drop_duplicates(columns)', "rolling": 'mn.rolling(t["fare"], n)',
        "interpolate": "t.ffill(), or np.interp(x, xp, fp)", "get": 't["fare"]',
        "plot hist boxplot": 'mn.plot(t["fare"])', "compute": "t.to_pandas()",
        "hvplot": "t.to_pandas().hvplot, after import hvplot.pandas",
        "idxmax idxmin": 't["fare"].idxmax()', "memory_usage": 't["fare"].nbytes',
        "add_prefix add_suffix": 't.rename(columns=lambda name: "x_" + name)',
        "skew kurt kurtosis sem": "scipy.stats on np.asarray(t[\"fare\"])",
    }
)  # fmt: skip

_ELSEWHERE = "sort_index melt stack unstack explode join_asof lookup xs wide_to_long"
OF_TABLES |= dict.fromkeys(
    _ELSEWHERE.split(), "do it in pandas or polars, from t.to_pandas() or t.to_polars(), then mn.table(frame)"
)

OF_COLUMNS = ways(
    {
        "dt": "x.to_datetime(format).dt.hour, of text", "str": "x.map(fn) for distinct values",
        "categories cat": "x.unique(), or x.codes", "is_null": "x.isna()", "is_not_null": "x.notna()",
        "is_in": "x.isin(values)", "n_unique": "x.nunique()", "is_between": "x.between(left, right)",
        "values": "x.to_numpy()", "floor round ceil": "x.dt.floor(freq)", "cast": "x.astype(dtype)",
        "fill_null": "x.fillna(value)", "drop_nulls": "x.dropna()", "apply": "x.map(fn)",
        "iloc loc iat at": "x[:5], x[mask], or x[[3, 1]]", "drop_duplicates": "x.unique()",
        "to_dict": "x.tolist()", "to_frame": "mn.table({name: x})", "index": "np.arange(len(x))",
        "strftime": "x.dt.strftime(format)", "date": 'x.to_unit("D")',
        "tz_convert tz tz_localize": "x.to_zone(name), and x.to_zone(None) for times of its clocks",
        "plot hist": "mn.plot of numbers, such as x.value_counts()[\"count\"]",
    }
)  # fmt: skip

OF_TIMES = ways(
    {
        "ceil round": "x.dt.floor(freq), and np.where(x > floor, ...)", "time": "x - x.dt.normalize()",
        "to_period": 'x.dt.floor("MS")', "to_pydatetime": "x.to_numpy().astype(object)",
        "week weekofyear": 'x.dt.isocalendar()["week"]', "components": "x.dt.days and x.dt.seconds",
        "daysinmonth": "x.dt.days_in_month", "nanosecond": "x.codes % 1000", "truncate": "x.truncate(unit)",
        "as_unit": "x.to_unit(unit)",
    }
)  # fmt: skip

OF_TEXTS = ways(
    {
        "join": 'x.str.split(sep).str.join(other)', "findall": "x.str.count(pat) or x.str.extract(pat)",
        "extractall": "x.str.extract(pat)", "encode decode": "x.map(lambda text: text.encode())",
        "wrap translate": "x.map(lambda text: ...)", "get_dummies": "x.map, or t.pivot",
        "to_datetime strptime to_date": "x.to_datetime(format)", "to_integer": "x.to_int()",
        "to_lowercase": "x.str.lower()", "to_uppercase": "x.str.upper()", "strip_chars": "x.str.strip()",
        "starts_with": "x.str.startswith(text)", "ends_with": "x.str.endswith(text)",
        "len_chars": "x.str.len()", "replace_all": "x.str.replace(old, new)", "to_titlecase": "x.str.title()",
    }
)  # fmt: skip

OF_GROUPS = ways(
    {
        "apply pipe": 'groups["tip"].agg(["mean", "max"]), or groups.nested("tip") for another function',
        "resample rolling": 't.groupby("pickup", freq="D")', "cumsum cumcount rank shift diff": (
            "mn.groupby(keys), which has a value for each row too"
        ),
        "value_counts": "groups.size()",
        "transform": 'mn.groupby(t["zone"].codes).transform(t["tip"], "mean"), or t["hour"] of numbers',
    }
)  # fmt: skip


def no_table_name(
    owner: str, name: str, ways: Mapping[str, str], known: Callable[[], Iterable[str]]
) -> AttributeError:
    """Return the error for an attribute that a table, a column or groups lack, with what to write instead."""

    def instead() -> str:
        return ways.get(name) or meant(name, known()) or "docs/guides/tables.md lists what there is"

    return no_attribute(owner, name, instead=instead)
